"""The event loop: `advance` runs a replication to a given time, stops cleanly, and can be called again."""

from btqueue.simulator.applications import sessions
from btqueue.simulator.applications.application import on_arrival, start_application
from btqueue.simulator.bluetooth import bridges, connection_events, disciplines
from btqueue.simulator.bluetooth.polling import begin, on_turn
from btqueue.simulator.bluetooth.token_bucket import on_tokens
from btqueue.simulator.hosts import delay_line, medium
from btqueue.simulator.hosts.forwarding import enter_port, leave_host
from btqueue.simulator.hosts.host import next_output, on_retransmission_timer, receive_segment
from btqueue.simulator.machinery.numba_cache import compiled, entry_point, outlined
from btqueue.simulator.machinery.timers import cancel, earliest, forget_earliest
from btqueue.simulator.records import run
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.nodes import INBOX, OUTBOX
from btqueue.simulator.statistics.backlog import take_looks
from btqueue.simulator.tcp import delayed_ack

REACHED, NEEDS_SPACE, PAUSED = 0, 1, 2
"""Reasons why `advance` returned: it reached the wanted time; a pool or the log is nearly full; or there were
`EVENTS_A_PAUSE` events. A further call goes on."""
BEGIN = -1
"""Before the first event: where `advance` goes first."""
EVENTS_A_PAUSE = 1 << 16
"""Events between two pauses (about 3 ms): a moment of simulated time may hold any number of them."""
LOG_RESERVE = 1024
"""More log entries than one event or piece of work writes."""


@compiled
def space_is_short(sim):
    """Whether a pool or the log has less free than the next piece of work could need."""
    clock, spare = sim.clock[0], 0
    for pool in range(3):  # the sign of a number is its first bit: one branch for all three
        spare |= sim.pools[pool].left - sim.pools[pool].reserve
    return spare < 0 or (clock.logging and clock.log_length + LOG_RESERVE > len(sim.log))


@compiled
def has_work(sim):
    """Whether the event has left work to do; a copy made by ARQ counts, as it took space."""
    clock = sim.clock[0]
    nothing = clock.entering & clock.arrived & clock.sending & clock.acknowledging == NOTHING
    return not nothing or sim.settings[0].lossy_feedback


@outlined
def work_off(sim, now):
    """Finish the pending work of an event, piece by piece; return REACHED when done, or NEEDS_SPACE."""
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
            leave_host(sim, index, now)


@compiled
def on_line(sim, line, now):
    """A delay line lets go of its oldest segment."""
    index = delay_line.release(sim, line, now)
    purpose = sim.lines[line].purpose
    if purpose == OUTBOX:
        sim.clock[0].entering = index
    elif purpose == INBOX:
        sim.clock[0].arrived = index
    else:
        delay_line.on_segment_crossed(sim, index, now)


@outlined
def start(sim):
    """Start all parts at time 0: bridges first, for a central may be away, then centrals, then flows.

    Segments of applications leave in `advance`, with their first arrivals.
    """
    for bridge in range(len(sim.bridges)):
        bridges.start(sim, bridge)
    for piconet in range(len(sim.piconets)):
        disciplines.start(sim, piconet)
        begin(sim, piconet)
    for link in range(len(sim.le_links)):
        connection_events.start(sim, link)
    for session in range(len(sim.sessions)):
        sessions.start(sim, session)
    for flow in range(len(sim.connections)):
        start_application(sim, flow)


@entry_point
def advance(sim, until):
    """Play all events up to and including time `until` (ns); return the reason why it stopped.

    Reasons are REACHED (the time `until`), NEEDS_SPACE (the caller has to enlarge a pool or empty the log)
    and PAUSED (after `EVENTS_A_PAUSE` events); after the last two a further call goes on.

    Islands (parts of the network that no path connects) are played one after the other: their data stay in
    the processor's cache, and an event costs the same in a network of any size. At the times in `looks` the
    statistics of the whole network are read: all islands are played up to this time first. At `until` = BEGIN
    the parts are started: a separate entry point would take two seconds more to compile.
    """
    clock = sim.clock[0]
    if until == BEGIN:
        start(sim)
        return REACHED
    if clock.pause_at == 0:
        take_looks(sim)
    clock.pause_at = clock.events + EVENTS_A_PAUSE
    while True:
        stop = min(until, sim.looks[clock.look])
        reason = play_islands(sim, stop)
        if reason != REACHED:
            return reason
        take_looks(sim)
        if stop == until:
            break
    forget_earliest(sim, 0)
    clock.pause_at = 0  # the state is the same, however often it was stopped on the way
    return REACHED


@outlined
def play_islands(sim, until):
    """Play all events up to `until`, one island (see `advance`) after the other."""
    clock = sim.clock[0]
    while clock.island < len(sim.islands):
        reason = play(sim, sim.islands[clock.island], until)
        if reason != REACHED:
            return reason
        clock.island += 1
    clock.island = 0
    return REACHED


@compiled
def play(sim, root, until):
    """Play the events of the island whose timers begin at `root` of `heap`."""
    clock = sim.clock[0]
    forget_earliest(sim, sim.heap[root])
    while True:
        if has_work(sim) and work_off(sim, clock.now) == NEEDS_SPACE:
            return NEEDS_SPACE
        timer = earliest(sim, root)
        now = sim.timers[timer].due
        if now > until:
            clock.now = until
            return REACHED
        if clock.events >= clock.pause_at:
            return PAUSED
        clock.now = now
        kind = sim.timers[timer].kind
        owner = sim.timers[timer].owner
        clock.events += 1
        if kind == run.TURN:
            on_turn(sim, owner, now)
            continue
        if kind == run.RETRANSMISSION:
            if not on_retransmission_timer(sim, owner, now):
                clock.events -= 1
            continue
        cancel(sim, timer)
        if kind == run.TOKENS:
            on_tokens(sim, owner, now)
        elif kind == run.LINE:
            on_line(sim, owner, now)
        elif kind == run.ARRIVAL:
            on_arrival(sim, owner, now)
            clock.sending = owner
        elif kind == run.MEDIUM:
            medium.on_timer(sim, owner, now)
        elif kind == run.DELAYED_ACK:
            delayed_ack.on_timer(sim.connections[owner])
            clock.acknowledging = owner
        elif kind == run.EVENT:
            connection_events.on_timer(sim, owner, now)
        else:
            sessions.on_timer(sim, owner, now)
