"""The event loop: `advance` runs a replication to a given time, stops cleanly, and can be called again."""

from btqueue.simulator import bridges, delay_line, delayed_ack, disciplines, medium, sessions
from btqueue.simulator.application import on_arrival, start_application
from btqueue.simulator.compilation import compiled, entry_point, outlined
from btqueue.simulator.crossing import on_segment_crossed
from btqueue.simulator.forwarding import enter_port, leave_host
from btqueue.simulator.host import next_output, on_retransmission_timer, receive_segment
from btqueue.simulator.polling import begin, on_turn
from btqueue.simulator.records import (
    ARRIVAL,
    BRIDGE,
    DELAYED_ACK,
    LINE,
    MEDIUM,
    NOTHING,
    INBOX,
    OUTBOX,
    RETRANSMISSION,
    TOKENS,
    TURN,
)
from btqueue.simulator.state_type import STATE_TYPE
from btqueue.simulator.timers import cancel
from btqueue.simulator.token_bucket import on_tokens
from btqueue.simulator.trace import SEGMENT_SENT, segment_event

REACHED, NEEDS_SPACE = 0, 1
"""Why `advance` returned: it came to the time asked for, or a pool or the log is nearly full."""
LOG_RESERVE = 1024
"""More log entries than one event or piece of work writes."""


@compiled
def space_is_short(sim):
    """Whether the next piece of work could need more packets, segments, messages or log entries than are free."""
    clock = sim.clock[0]
    return (
        clock.free_packets < clock.packet_reserve
        or clock.free_segments < clock.segment_reserve
        or clock.free_messages < clock.message_reserve
        or (clock.logging and clock.log_length + LOG_RESERVE > len(sim.log))
    )


@outlined
def work_off(sim, now):
    """Do what an event has left to do, piece by piece; return whether it is done or space ran short before."""
    clock = sim.clock[0]
    while True:
        if space_is_short(sim):
            return NEEDS_SPACE
        if clock.entering != NOTHING:
            index = clock.entering
            clock.entering = NOTHING
            enter_port(sim, index, now)
        elif clock.arrived != NOTHING:
            index = clock.arrived
            clock.arrived = NOTHING
            receive_segment(sim, index, now)
        else:
            index = next_output(sim, now)
            if index == NOTHING:
                return REACHED
            segment_event(sim, SEGMENT_SENT, source_of(sim, index), index, now)
            leave_host(sim, index, now)


@compiled
def source_of(sim, index):
    """Return the node that sends the segment."""
    segment = sim.segments[index]
    conn = sim.connections[segment.flow]
    return conn.destination if segment.backward else conn.source


@outlined
def on_line(sim, line, now):
    """A delay line lets go of its oldest segment."""
    index = delay_line.release(sim, line, now)
    purpose = sim.lines[line].purpose
    if purpose == OUTBOX:
        sim.clock[0].entering = index
    elif purpose == INBOX:
        sim.clock[0].arrived = index
    else:
        on_segment_crossed(sim, index, now)


@entry_point
def start_piconet(sim, index):
    """Let a central begin, at time 0; one that is away begins when it comes back."""
    disciplines.start(sim, index)
    begin(sim, index)


@entry_point
def start_bridge(sim, index):
    """Let a bridge begin, at time 0; bridges begin before the centrals."""
    bridges.start(sim, index)


@entry_point
def start_session(sim, index):
    """Let a session begin, at time 0; sessions begin before their flows."""
    sessions.start(sim, index)


@entry_point
def start_flow(sim, flow):
    """Let the application of a flow begin, at time 0: it has its first arrival in `advance`."""
    start_application(sim, flow)


@entry_point
def advance(sim, until):
    """Play all events up to and including time `until` (ns); return REACHED or NEEDS_SPACE."""
    clock = sim.clock[0]
    while True:
        if work_off(sim, clock.now) == NEEDS_SPACE:
            return NEEDS_SPACE
        timer = sim.heap[0]
        now = sim.timers[timer].due
        if now > until:
            clock.now = until
            return REACHED
        clock.now = now
        kind = sim.timers[timer].kind
        owner = sim.timers[timer].owner
        clock.events += 1
        if kind == TURN:
            on_turn(sim, owner, now)
            continue
        if kind == RETRANSMISSION:
            if not on_retransmission_timer(sim, owner, now):
                clock.events -= 1
            continue
        cancel(sim, timer)
        if kind == TOKENS:
            on_tokens(sim, owner, now)
        elif kind == LINE:
            on_line(sim, owner, now)
        elif kind == ARRIVAL:
            on_arrival(sim, owner, now)
            clock.sending = owner
        elif kind == MEDIUM:
            medium.on_timer(sim, owner, now)
        elif kind == DELAYED_ACK:
            delayed_ack.on_timer(sim.connections[owner])
            clock.acknowledging = owner
        elif kind == BRIDGE:
            bridges.on_timer(sim, owner, now)
        else:
            sessions.on_timer(sim, owner, now)
