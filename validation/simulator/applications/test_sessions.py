"""Request and reply over TCP connections: giving up and opening them, in times of a wire."""

from typing import Any

import pytest
from thesis import over_wires, thesis

from btqueue.simulator.records.conventions import SECOND

HANDSHAKE, SESSION = (100_000_000 + 8000 * both for both in (42 + 42, 142 + 242))
"""Of bytes both ways at 1 Mbit/s and 50 ms (ns)."""


def play(plain, until, loss=0.0, application_timeout_s=None, **transport) -> Any:
    """Return the state of sessions with a pause of a second, at this time (ns)."""
    own = {"name": "wire", "from": "a", "to": "b", "rate_kbps": 1000, "delay_s": 0.05, "header_bytes": 2}
    sizes = {"request_bytes": 100, "reply_bytes": 200, "goodbye_bytes": 50}
    scenario = thesis(
        network=over_wires(own | {"loss": loss}),
        traffic={"source": "request-reply", "pause_s": 1.0, "application_timeout_s": application_timeout_s}
        | sizes,
        transport=transport,
    )
    return go_on(plain, plain.state.new_state(scenario, 0), until)


def go_on(plain, sim, until) -> Any:
    assert plain.engine.advance(sim, until) == plain.engine.REACHED
    return sim


def test_what_the_old_connection_still_delivers_is_ignored(plain):
    whole = {"windows": "segments", "mss_bytes": 60, "initial_window_segments": 4}
    sim = play(plain, SECOND, application_timeout_s=0.09, **whole)  # the reply is under way then
    client, server = sim.flow_statistics
    assert (client.bytes_delivered, server.bytes_wasted) == (100, 200)
    assert (client.messages_delivered, client.sessions, client.sessions_lost) == (1, 0, 1)
    assert (server.messages_delivered, sim.connections[1].rcv_nxt) == (0, 0)


@pytest.mark.parametrize(("per_session", "connects"), [(False, 1), (True, 3)])
def test_a_handshake_opens_the_connection(plain, per_session, connects):
    sim = play(plain, HANDSHAKE, handshake=True, connection_per_session=per_session, min_rto_s=0.1)
    conn = sim.connections[0]  # which the handshake has measured
    assert (bool(conn.measured), conn.srtt, conn.rttvar) == (True, HANDSHAKE, HANDSHAKE / 2)
    assert conn.rto == 3 * HANDSHAKE
    client = go_on(plain, sim, 3 * SECOND).flow_statistics[0]
    assert (client.sessions, client.connects) == (3, connects)
    assert client.connect_time_sum == connects * HANDSHAKE
    assert client.session_time_sum == 3 * SESSION, "without the time of the handshake"


def test_a_lost_syn_is_repeated_and_its_timeout_doubled_up_to_the_limit(plain):
    sim = play(plain, 130 * SECOND, loss=1.0, handshake=True, initial_rto_s=1.0)
    sim.ports.loss = 0.0
    sim = go_on(plain, sim, 191 * SECOND + HANDSHAKE)  # 1 + 2 + 4 + 8 + 16 + 32 + 64 + 64: at most 64 s
    client, conn = sim.flow_statistics[0], sim.connections[0]
    assert (client.connects, client.connect_time_sum) == (1, 191 * SECOND + HANDSHAKE)
    assert not conn.measured, "which SYN was answered is not known"
    assert conn.rto == 3 * SECOND, "RFC 6298, 5.7"
