"""When messages are written: Poisson, interrupted Bernoulli, periodic or recorded arrivals.

The interrupted Bernoulli process (IBP; Johansson et al. 2000) is a two-state Markov chain with one step a
slot: a message comes in every slot of the active state and none in the idle state. With the probabilities p
of leaving the active state and q of leaving the idle state, messages come at the rate r = q / (p + q) a slot
and their gaps have the squared coefficient of variation C2 = p (2 - p - q) / (p + q)^2.

The load may change at given times (`schedules`: pairs of a time and the mean gap from then on, 0: silence).
An arrival drawn beyond the next change is discarded and drawn anew from there. This is exact where the
process has no memory: always for Poisson arrivals, in the idle state for an IBP, whose C2 stays as it is.

A periodic source that begins, or begins anew at a change, has a random phase: its first message comes after a
uniform share of the gap, as in an endless stationary process. Aligned sources (`aligned_phase`) write at
their start, and one gap after a change, all of them at the same time.
"""

import math

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.random_streams import exponential, uniform
from btqueue.simulator.machinery.timers import later
from btqueue.simulator.records.connections import FROM_FILE, IBP, POISSON
from btqueue.simulator.records.conventions import NEVER, SLOT, UNLIMITED


@compiled
def leave_probabilities(rate, scv):
    """Return (p, q) of the IBP with this rate (messages a slot) and squared coefficient of variation."""
    both = 2.0 * (1.0 - rate) / (scv + 1.0 - rate)
    return (1.0 - rate) * both, rate * both


def ibp_probabilities(rate: float, scv: float) -> tuple[float, float]:
    """Return (p, q) as `leave_probabilities` does, for moments that an IBP has (`btqueue.scenario.checks`).

    Both are probabilities when C2 >= (1 - r) |1 - 2r|, which follows from p <= 1 and q <= 1.
    """
    p, q = leave_probabilities(rate, scv)
    return min(p, 1.0), min(q, 1.0)


@outlined
def next_arrival(sim, flow, after, begins):
    """Return when the next message is written (ns), counted from the arrival at `after`.

    `begins`: no message was written at `after`, the source begins there.
    """
    conn = sim.connections[flow]
    stream = sim.streams[conn.stream]
    idle = False
    while True:
        change = next_change(sim, conn)
        arrival = NEVER
        if conn.mean_gap > 0.0:
            arrival = draw_arrival(stream, conn, after, idle, begins)
        if arrival <= change:
            return arrival
        take_step(sim, conn)
        idle = idle or change // SLOT > after // SLOT
        after = max(after, change)
        begins = True


@compiled
def draw_arrival(stream, conn, after, idle, begins):
    """Draw the next arrival (ns) at the present load; `idle`: an IBP is known to be idle at `after`."""
    if conn.application == POISSON:
        return later(after, exponential(stream, conn.mean_gap))
    if conn.application == IBP:
        return later(after // SLOT * SLOT, float(ibp_gap(stream, conn, idle)) * SLOT)
    if begins and not conn.aligned_phase:
        return later(after, uniform(stream) * conn.mean_gap)
    return later(after, conn.mean_gap + 0.5)


@compiled
def ibp_gap(stream, conn, idle):
    """Draw the slots until the next arrival of an IBP: one if it stays active, else one and its idle time."""
    if idle:
        return geometric(stream, conn.leave_idle)
    if uniform(stream) >= conn.leave_active:
        return 1
    return 1 + geometric(stream, conn.leave_idle)


@compiled
def geometric(stream, probability):
    """Draw the number of trials up to the first success, by inversion, at most UNLIMITED."""
    if probability >= 1.0:
        return 1
    if probability <= 0.0:
        return UNLIMITED
    failures = math.log(1.0 - uniform(stream)) / math.log1p(-probability)
    return 1 + int(failures) if failures < UNLIMITED else UNLIMITED


@compiled
def next_change(sim, conn):
    """Return when the load changes next (ns)."""
    if conn.schedule_next >= conn.schedule_length:
        return NEVER
    return sim.schedules[conn.schedule + 2 * conn.schedule_next]


@compiled
def take_step(sim, conn):
    """Change to the next mean gap of the schedule; an IBP keeps its squared coefficient of variation."""
    conn.mean_gap = float(sim.schedules[conn.schedule + 2 * conn.schedule_next + 1])
    conn.schedule_next += 1
    if conn.application == IBP:
        both = conn.leave_active + conn.leave_idle
        scv = conn.leave_active * (2.0 - both) / (both * both)
        rate = SLOT / conn.mean_gap if conn.mean_gap > 0.0 else 0.0
        conn.leave_active, conn.leave_idle = leave_probabilities(rate, scv)


@compiled
def recorded_arrival(sim, conn):
    """Return when the next message of the file is due (ns after `start_at`), or NEVER after the last one.

    `schedules` holds the arrival times of the file, then the size of each message. A file with
    a period is repeated for ever.
    """
    repetition = conn.schedule_next // conn.schedule_length
    if repetition > 0 and conn.file_period == 0:
        return NEVER
    place = conn.schedule_next % conn.schedule_length
    return conn.start_at + sim.schedules[conn.schedule + place] + repetition * conn.file_period


@compiled
def following_arrival(sim, flow, now):
    """Return the time (ns) at which the message after the message of `now` is written."""
    conn = sim.connections[flow]
    if conn.application == FROM_FILE:
        conn.schedule_next += 1
        return recorded_arrival(sim, conn)
    return next_arrival(sim, flow, now, False)


@compiled
def size_due(sim, conn):
    """Return the size of the message that is due, in segments or bytes."""
    if conn.application != FROM_FILE:
        return conn.message_size
    place = conn.schedule_next % conn.schedule_length
    return sim.schedules[conn.schedule + conn.schedule_length + place]


@outlined
def remember_source(sim, conn, backlog, now):
    """Store the state of the source when it writes a message now."""
    stream = sim.streams[conn.stream]
    backlog.due = now
    backlog.mean_gap, backlog.schedule_next = conn.mean_gap, conn.schedule_next
    backlog.leave_active, backlog.leave_idle = conn.leave_active, conn.leave_idle
    backlog.s0, backlog.s1, backlog.s2, backlog.s3 = stream.s0, stream.s1, stream.s2, stream.s3


@compiled
def change_places(sim, conn, backlog):
    """Exchange the present state of the source and its stored state."""
    stream = sim.streams[conn.stream]
    conn.mean_gap, backlog.mean_gap = backlog.mean_gap, conn.mean_gap
    conn.schedule_next, backlog.schedule_next = backlog.schedule_next, conn.schedule_next
    conn.leave_active, backlog.leave_active = backlog.leave_active, conn.leave_active
    conn.leave_idle, backlog.leave_idle = backlog.leave_idle, conn.leave_idle
    stream.s0, backlog.s0 = backlog.s0, stream.s0
    stream.s1, backlog.s1 = backlog.s1, stream.s1
    stream.s2, backlog.s2 = backlog.s2, stream.s2
    stream.s3, backlog.s3 = backlog.s3, stream.s3
