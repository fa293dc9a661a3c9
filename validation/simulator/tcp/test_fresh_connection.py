"""A connection that is opened anew forgets all of the old one, and nothing of the other direction."""

from thesis import thesis

from btqueue.simulator.records.conventions import NEVER, NOTHING, SECOND


def test_a_connection_that_is_opened_anew_has_every_place_and_timer_as_at_the_start(plain):
    sim = plain.state.new_state(thesis(transport={"windows": "segments", "delayed_ack": True}), 0)
    sim.fresh = sim.connections.copy()
    old, other = sim.connections[0], sim.connections[1]
    rings = sim.scoreboard, sim.out_of_order, sim.sent_at
    for ring in (*rings, sim.starts):
        ring[:] = 1
    for conn in (old, other):
        conn.cwnd, conn.srtt, conn.rcv_nxt, conn.snd_max, conn.tick_phase = 7.0, 1e8, 2, 5, 11
    messages = sim.pools[plain.records.MESSAGES]
    free = int(messages.left)
    plain.application.write_message(sim, 0, 3, 0)
    assert messages.left == free - 1
    own = [int(timer) for timer in (old.retransmission_timer, old.ack_timer) if timer != NOTHING]
    for timer in range(len(sim.timers)):
        plain.timers.schedule(sim, timer, SECOND)
    kept = other.copy()
    plain.fresh_connection.restart_connection(sim, 0)
    expected = sim.fresh[0].copy()
    expected.incarnation, expected.tick_phase = sim.fresh[0].incarnation + 1, 11
    assert sim.connections[0] == expected and sim.connections[1] == kept
    assert all(not ring[0].any() and ring[1].all() for ring in rings)
    assert sim.starts[0][0] == 0 and sim.starts[1].all()
    assert own and [number for number, timer in enumerate(sim.timers) if timer.due == NEVER] == sorted(own)
    assert sim.flow_statistics[0].bytes_wasted == 3 * 1460, "two of five segments were read"
    assert sim.flow_statistics[1].bytes_wasted == 0 and messages.left == free
