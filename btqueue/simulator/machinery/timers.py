"""The timers of each island: schedule, re-schedule and cancel them, and find the earliest one.

Up to `LARGEST_SCAN` timers are looked through for the earliest one; more stand in an indexed binary heap,
where everything takes O(log n). An island is a part of the network without a connection to the rest, usually
the whole network. Every timer has a fixed number and stays in its island; a timer that is not running is due
`NEVER`. Timers due at the same nanosecond fire in the order of their numbers, so a run does not depend on its
past.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.conventions import NEVER, NOTHING

LARGEST_SCAN = 32
"""Most timers of an island without a heap."""


@compiled
def earliest(sim, root):
    """Return the timer that fires first of the island whose timers begin at `root` of `heap`.

    Mostly it is one of the two that fired last: then only the earliest time of the others is compared.
    """
    clock = sim.clock[0]
    if before(sim.timers, clock.second, clock.first):
        clock.first, clock.second = clock.second, clock.first
    kept = clock.first
    if sim.timers[kept].due < clock.others_due:
        return kept
    first = sim.heap[root]
    if sim.timers[first].place != NOTHING:
        return first
    due = others_due = NEVER
    for place in range(root, sim.timers[first].end):
        timer = sim.heap[place]
        timer_due = NEVER if timer == kept else sim.timers[timer].due
        others_due = min(others_due, max(due, timer_due))
        if timer_due < due:
            first = timer
            due = timer_due
    clock.second, clock.others_due = first, others_due
    return first if before(sim.timers, first, kept) else kept


@compiled
def forget_earliest(sim, timer):
    """Let `earliest` search all timers the next time; `timer` is one of the island that is played."""
    clock = sim.clock[0]
    clock.first, clock.second, clock.others_due = timer, timer, NOTHING


@compiled
def before(timers, first, second):
    """Whether timer `first` fires before timer `second`."""
    due_first, due_second = timers[first].due, timers[second].due
    return due_first < due_second or (due_first == due_second and first < second)


@outlined
def sift_up(timers, heap, place):
    """Move the timer at `place` towards the root until its parent fires before it."""
    timer = heap[place]
    root = timers[timer].root
    while place > root:
        parent = root + ((place - root - 1) >> 1)
        if not before(timers, timer, heap[parent]):
            break
        heap[place] = heap[parent]
        timers[heap[place]].place = place
        place = parent
    heap[place] = timer
    timers[timer].place = place


@outlined
def sift_down(timers, heap, place):
    """Move the timer at `place` towards the leaves until it fires before both children."""
    timer = heap[place]
    root, end = timers[timer].root, timers[timer].end
    while True:
        child = 2 * place + 1 - root
        if child >= end:
            break
        if child + 1 < end and before(timers, heap[child + 1], heap[child]):
            child += 1
        if not before(timers, heap[child], timer):
            break
        heap[place] = heap[child]
        timers[heap[place]].place = place
        place = child
    heap[place] = timer
    timers[timer].place = place


@compiled
def schedule(sim, timer, due):
    """Let `timer` fire at `due` (ns), whether it is running or not."""
    earlier = due < sim.timers[timer].due
    sim.timers[timer].due = due
    if sim.timers[timer].place == NOTHING:
        if timer != sim.clock[0].first and timer != sim.clock[0].second:
            sim.clock[0].others_due = min(sim.clock[0].others_due, due)
        return
    if earlier:
        sift_up(sim.timers, sim.heap, sim.timers[timer].place)
    else:
        sift_down(sim.timers, sim.heap, sim.timers[timer].place)


@compiled
def later(now, delay):
    """Return the time `delay` ns (whole or not, 0 or more) after `now`; NEVER if no run lasts until then."""
    if delay < NEVER - now:
        return now + int(delay)
    return NEVER


@compiled
def cancel(sim, timer):
    """Stop `timer`."""
    schedule(sim, timer, NEVER)
