"""Request, reply, good-bye over a stream; giving up and opening connections. TCP itself is left out here."""

from typing import Any

import pytest
from session_network import DELAY, NOTHING, REQUESTER, RESPONDER, Network


def new_network(plain, **options) -> Any:
    return Network(plain, plain.records.TCP, **options)


def kinds(network):
    return [(entry.at // DELAY, int(entry.segment.flow), int(entry.segment.kind)) for entry in network.sent]


def test_request_reply_and_goodbye_follow_each_other(plain):
    network = new_network(plain, pause=5 * DELAY).run(until=8 * DELAY - 1)
    data = plain.records.DATA
    assert kinds(network) == [(0, REQUESTER, data), (1, RESPONDER, data), (2, REQUESTER, data)]
    assert [entry.segment.number for entry in network.sent] == [2, 1, 3], "last segment: 3, 2 and 1 written"
    client = network.sim.flow_statistics[REQUESTER]
    assert (client.sessions, client.session_time_sum) == (1, 2 * DELAY)
    assert client.session_time_squares == (2.0 * DELAY) ** 2
    assert network.session.phase == plain.records.PAUSING
    network.run(until=8 * DELAY)
    assert network.session.phase == plain.records.REQUEST, "good-bye delivered at 3, then the pause"
    assert network.session.exchange == 2


def test_without_a_goodbye_the_pause_follows_the_reply(plain):
    network = new_network(plain, goodbye=0, pause=5 * DELAY, start_at=3 * DELAY).run(until=20 * DELAY)
    starts = [at for at, flow, _ in kinds(network) if flow == REQUESTER]
    assert starts == [3, 10, 17]
    assert [entry.segment.number for entry in network.sent if entry.segment.flow == REQUESTER] == [2, 5, 8]


def test_what_the_old_connection_still_delivers_is_ignored(plain):
    # the timeout comes when the reply is under way: it is in the network for another half DELAY
    network = new_network(plain, application_timeout=3 * DELAY // 2, pause=10 * DELAY).run(until=5 * DELAY)
    assert len(network.sent) == 2 and not network.travelling
    client, server = network.sim.flow_statistics
    assert (client.sessions, client.sessions_lost) == (0, 1)
    assert server.messages_delivered == 0
    assert network.sim.connections[RESPONDER].rcv_nxt == 0


def test_messages_of_an_abandoned_connection_are_given_back(plain):
    network = new_network(plain, application_timeout=6 * DELAY)
    network.lose = lambda segment: True
    network.run(until=5 * DELAY)
    free = network.sim.clock[0].free_messages
    network.run(until=6 * DELAY)
    assert network.sim.clock[0].free_messages == free + 1, "the request"
    assert network.sim.connections[REQUESTER].message_head == NOTHING


@pytest.mark.parametrize(("per_session", "connects"), [(False, 1), (True, 3)])
def test_a_handshake_opens_the_connection(plain, per_session, connects):
    network = new_network(plain, handshake=True, per_session_connection=per_session, pause=DELAY)
    network.run(done=lambda: network.sim.flow_statistics[REQUESTER].sessions == 3)
    records = plain.records
    assert kinds(network)[:3] == [
        (0, REQUESTER, records.SYN),
        (1, REQUESTER, records.SYN_ACK),
        (2, REQUESTER, records.DATA),
    ]
    assert [bool(entry.segment.backward) for entry in network.sent[:3]] == [False, True, False]
    client = network.sim.flow_statistics[REQUESTER]
    assert (client.connects, client.connect_time_sum) == (connects, connects * 2 * DELAY)
    assert client.session_time_sum == 3 * 2 * DELAY, "without the time of the handshake"
    # which is the first round trip that is measured
    conn = network.sim.connections[REQUESTER]
    assert (bool(conn.measured), conn.srtt, conn.rttvar, conn.rto) == (True, 2 * DELAY, DELAY, 6 * DELAY)


def test_a_lost_syn_is_repeated_and_its_timeout_doubled_up_to_the_limit(plain):
    network = new_network(plain, handshake=True)
    network.lose = lambda segment: network.now < 2000 * DELAY
    network.run(until=3000 * DELAY)
    syns = [at for at, _, kind in kinds(network) if kind == plain.records.SYN]
    assert syns == [0, 100, 300, 700, 1500, 2300], "initial RTO 100, at most 800"
    client = network.sim.flow_statistics[REQUESTER]
    assert (client.connects, client.connect_time_sum) == (1, 2302 * DELAY)
    conn = network.sim.connections[REQUESTER]
    assert not conn.measured, "which SYN was answered is not known"
    assert conn.rto == 3 * plain.records.SECOND
