"""The event loop: `advance` runs a replication to a given time, stops cleanly, and can be called again."""

from btqueue.simulator.application import on_arrival, schedule_arrival
from btqueue.simulator.compilation import entry_point
from btqueue.simulator.host import on_outbox, on_retransmission_timer, send_pending
from btqueue.simulator.polling import on_turn, send_downlink
from btqueue.simulator.records import ARRIVAL, OUTBOX, TOKENS, TURN
from btqueue.simulator.timers import cancel
from btqueue.simulator.token_bucket import on_tokens

REACHED, NEEDS_SPACE = 0, 1
"""Why `advance` returned: it came to the time asked for, or a pool has to grow before it can go on."""


@entry_point
def start(sim):
    """Let the sources and the central begin, at time 0."""
    # The central first: with no other timer running yet, it cannot skip visits past the first arrival.
    send_downlink(sim, 0)
    for flow in range(len(sim.connections)):
        if not sim.connections[flow].greedy:
            schedule_arrival(sim, flow, 0)
        send_pending(sim, flow, 0)


@entry_point
def advance(sim, until):
    """Play all events up to and including time `until` (ns); return REACHED or NEEDS_SPACE."""
    clock = sim.clock[0]
    while True:
        timer = sim.heap[0]
        now = sim.timers[timer].due
        if now > until:
            clock.now = until
            return REACHED
        if clock.free_packets < clock.packet_reserve or clock.free_segments < clock.segment_reserve:
            return NEEDS_SPACE
        clock.now = now
        kind = sim.timers[timer].kind
        owner = sim.timers[timer].owner
        clock.events += 1
        if kind == TURN:
            on_turn(sim, now)
        elif kind == TOKENS:
            cancel(sim, timer)
            on_tokens(sim, owner, now)
        elif kind == OUTBOX:
            cancel(sim, timer)
            on_outbox(sim, owner, now)
        elif kind == ARRIVAL:
            on_arrival(sim, owner, now)
            send_pending(sim, owner, now)
        elif not on_retransmission_timer(sim, owner, now):
            clock.events -= 1
