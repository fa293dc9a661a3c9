"""Request, reply, good-bye over a stream; giving up and opening connections. TCP itself is left out here."""

from typing import Any

import numpy as np
import pytest
from session_network import DELAY, NOTHING, REQUESTER, RESPONDER, Network

OPTIONS = [
    "source", "destination", "reverse", "route", "back_route", "pattern", "pattern_length",
    "control_layout", "stream", "arrival_timer", "retransmission_timer", "ack_timer", "protocol",
    "application", "start_at", "aligned_phase", "mean_gap", "leave_active", "leave_idle", "schedule",
    "schedule_length", "schedule_next", "file_period", "message_size", "unit", "quick_acks", "nagle",
    "send_buffer", "session", "incarnation", "variant", "handshake", "hystart", "rwnd", "initial_window",
    "initial_ssthresh", "limited_transmit", "window_limited_growth", "hold_ssthresh", "reduction",
    "byte_counting", "exit_grows", "only_lost", "rack", "loss_probes", "frto",
    "largest_variation", "tuned_buffers", "mss", "packet_cost", "tick", "timeout_exit_holds",
    "inflate_by_one", "vegas_on_srtt", "ack_ends_backoff", "impatient", "sack", "sack_blocks",
    "rate_reduction", "alpha", "beta", "gamma", "adjustment", "timestamps", "initial_rto", "min_rto",
    "max_rto", "granularity", "backoff", "delayed_ack", "ack_every", "ack_delay", "ack_clock", "tick_phase",
    "piggyback", "ack_direct",
]  # fmt: skip
"""Fields of a connection that stay as they are when it is opened anew."""


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


def test_a_message_counts_only_when_it_is_whole(plain):
    network = new_network(plain).run(until=0)
    sim = network.sim
    sim.connections[REQUESTER].rcv_nxt = 2
    plain.sessions.on_message_delivered(sim, REQUESTER, DELAY)
    assert sim.connections[RESPONDER].written == 0
    sim.connections[REQUESTER].rcv_nxt = 3
    plain.sessions.on_message_delivered(sim, REQUESTER, DELAY)
    assert sim.connections[RESPONDER].written == 2
    assert sim.clock[0].sending == RESPONDER


def test_a_session_not_complete_in_time_is_lost_and_begins_anew(plain):
    network = new_network(plain, application_timeout=6 * DELAY, pause=DELAY)
    network.lose = lambda segment: segment.flow == RESPONDER and network.now < 6 * DELAY
    network.run(until=10 * DELAY)
    client = network.sim.flow_statistics[REQUESTER]
    assert (client.sessions, client.sessions_lost) == (1, 1)
    assert client.session_time_sum == 2 * DELAY
    assert list(network.sim.connections.incarnation) == [1, 1]
    second = [entry.segment.number for entry in network.sent if entry.at >= 7 * DELAY]
    assert second == [2, 1, 3], "numbered from 0 again"


def test_what_the_old_connection_still_delivers_is_ignored(plain):
    # the timeout comes when the reply is under way: it is in the network for another half DELAY
    network = new_network(plain, application_timeout=3 * DELAY // 2, pause=10 * DELAY).run(until=5 * DELAY)
    assert len(network.sent) == 2 and not network.travelling
    client, server = network.sim.flow_statistics
    assert (client.sessions, client.sessions_lost) == (0, 1)
    assert server.messages_delivered == 0
    assert network.sim.connections[RESPONDER].rcv_nxt == 0


def test_a_reply_in_time_stops_the_application_timeout(plain):
    network = new_network(plain, application_timeout=2 * DELAY).run(until=50 * DELAY)
    client = network.sim.flow_statistics[REQUESTER]
    assert (client.sessions, client.sessions_lost) == (1, 0)


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


def test_a_lost_syn_ack_makes_the_server_answer_twice_and_the_client_ask_once(plain):
    network = new_network(plain, handshake=True)
    network.lose = lambda segment: segment.kind == plain.records.SYN_ACK and network.now < 50 * DELAY
    network.run(until=200 * DELAY)
    records = plain.records
    assert [kind for _, _, kind in kinds(network)] == [
        *[records.SYN, records.SYN_ACK] * 2,
        *[records.DATA] * 3,
    ]


def test_a_late_syn_ack_does_not_begin_another_exchange(plain):
    network = new_network(plain, handshake=True).run(until=2 * DELAY)
    segment = network.sent[1].segment
    assert segment.kind == plain.records.SYN_ACK
    plain.connection_setup.on_segment(network.sim, REQUESTER, segment, network.now)
    assert network.session.exchange == 1
    assert network.sim.connections[REQUESTER].written == 3


def test_every_field_is_an_option_or_set_anew(plain):
    """A connection with 1 in every field becomes the same as one with 0 in every field, options apart."""
    dtype = plain.records.connection_dtype
    connections = np.zeros(2, dtype).view(np.recarray)
    for name in dtype.names:
        connections[name][0], connections[name][1] = (5, 5) if name in OPTIONS else (1, 0)
    for conn in connections:
        plain.fresh_connection.set_initial_values(conn)
    for name in dtype.names:
        assert np.array_equal(connections[name][0], connections[name][1]), name
        assert name not in OPTIONS or np.all(connections[name] == np.array(5, dtype[name].base)), name


def test_the_session_timer_is_due_at_the_earliest_deadline(plain):
    network = new_network(plain)
    sim, timer = network.sim, plain.session_timer
    sim.sessions.deadlines = plain.records.NEVER
    plain.timers.cancel(sim, 0)
    for place, due in ((3, 500), (1, 300), (5, 700)):
        timer.set_deadline(sim, 0, place, due)
    assert sim.timers[0].due == 300
    timer.set_deadline(sim, 0, 1, 600)
    assert timer.take_due(sim, 0, 300) == NOTHING, "it has moved away"
    assert sim.timers[0].due == 500
    timer.clear_deadline(sim, 0, 3)
    assert timer.take_due(sim, 0, 500) == NOTHING
    timer.set_deadline(sim, 0, 4, 600)
    assert [timer.take_due(sim, 0, 600) for _ in range(3)] == [1, 4, NOTHING]
    assert sim.timers[0].due == 700
