"""One timer for all deadlines of a session: it is set to the earliest of its `deadlines`.

A deadline that is moved to a later time leaves the timer as it is: when the timer fires no deadline is due,
and it is set to the deadline that is then the earliest.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.timers import schedule
from btqueue.simulator.records.connections import DEADLINES
from btqueue.simulator.records.conventions import NEVER, NOTHING


@outlined
def set_deadline(sim, index, place, due):
    """Let the session's timer fire for this place of its deadlines at `due` (ns)."""
    session = sim.sessions[index]
    session.deadlines[place] = due
    if due < sim.timers[session.timer].due:
        schedule(sim, session.timer, due)


@compiled
def clear_deadline(sim, index, place):
    """Let the session's timer no longer fire for this place of its deadlines."""
    sim.sessions[index].deadlines[place] = NEVER


@compiled
def take_due(sim, index, now):
    """Return the first place of the deadlines that is due, now cleared, or NOTHING; set the timer anew."""
    session = sim.sessions[index]
    due_place = NOTHING
    for place in range(DEADLINES):
        if due_place == NOTHING and session.deadlines[place] <= now:
            due_place = place
    if due_place != NOTHING:
        session.deadlines[due_place] = NEVER
    earliest = NEVER
    for place in range(DEADLINES):
        earliest = min(earliest, session.deadlines[place])
    schedule(sim, session.timer, earliest)
    return due_place
