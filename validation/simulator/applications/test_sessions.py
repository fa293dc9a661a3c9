"""Request, reply, good-bye over a stream; giving up and opening connections. TCP itself is left out here."""

from typing import Any

import pytest
from session_network import DELAY, REQUESTER, RESPONDER, Network


def new_network(plain, **options) -> Any:
    return Network(plain, plain.records.TCP, **options)


def kinds(network):
    return [(entry.at // DELAY, int(entry.segment.flow), int(entry.segment.kind)) for entry in network.sent]


def test_what_the_old_connection_still_delivers_is_ignored(plain):
    # the timeout comes when the reply is under way: it is in the network for another half DELAY
    network = new_network(plain, application_timeout=3 * DELAY // 2, pause=10 * DELAY).run(until=5 * DELAY)
    assert len(network.sent) == 2 and not network.travelling
    client, server = network.sim.flow_statistics
    assert (client.sessions, client.sessions_lost) == (0, 1)
    assert server.messages_delivered == 0
    assert network.sim.connections[RESPONDER].rcv_nxt == 0


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
