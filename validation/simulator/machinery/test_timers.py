"""Timers, with a heap and without, against a sorted list, for any order of scheduling and cancelling."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from state_tables import NEVER, tables


def new_timers(plain, count, islands=1, largest_scan=0):
    """Timers that are not running, dealt out to the islands in turn."""
    sim = tables(plain.records, clock=1, timers=count)
    sim.timers.due = NEVER
    sim.heap, sim.islands = plain.numbering.heaps(sim.timers, np.arange(count) % islands, largest_scan)
    plain.timers.forget_earliest(sim, 0)
    return sim


commands = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.tuples(st.integers(0, count - 1), st.one_of(st.none(), st.integers(0, 6))), max_size=60),
    )
)


@pytest.mark.parametrize("largest_scan", [0, 6, 12])
@settings(max_examples=50)
@given(commands=commands, every=st.integers(1, 4))
def test_the_earliest_is_always_the_timer_that_fires_first(plain, largest_scan, commands, every):
    count, steps = commands
    sim = new_timers(plain, count, 1, largest_scan)
    due = dict.fromkeys(range(count), NEVER)
    for number, (timer, at) in enumerate(steps):
        if at is None:
            plain.timers.cancel(sim, timer)
        else:
            plain.timers.schedule(sim, timer, at)
        due[timer] = NEVER if at is None else at
        first = min(due, key=lambda t: (due[t], t))
        if number % every == 0:  # what was found earlier may be out of date
            assert plain.timers.earliest(sim, 0) == first, "earliest first, ties by number"
        assert sim.timers[first].due == due[first]


@pytest.mark.parametrize("largest_scan", [0, 2, 12])
@settings(max_examples=50)
@given(commands=commands, islands=st.integers(2, 4))
def test_each_island_finds_its_earliest_timer(plain, largest_scan, commands, islands):
    count, steps = commands
    sim = new_timers(plain, count, islands, largest_scan)
    for timer, at in steps:
        plain.timers.schedule(sim, timer, NEVER if at is None else at)
    for island, root in enumerate(sim.islands):
        own = range(island, count, islands)
        plain.timers.forget_earliest(sim, sim.heap[root])
        assert plain.timers.earliest(sim, root) == min(own, key=lambda timer: (sim.timers[timer].due, timer))


@example(now=NEVER, delay=0)
@example(now=5, delay=np.nan)
@given(now=st.integers(0, 2**55), delay=st.one_of(st.integers(0, 2**62), st.floats(min_value=0.0)))
def test_a_time_that_no_run_reaches_is_never(plain, now, delay):
    due = int(plain.timers.later(np.int64(now), delay))
    assert due == (now + int(delay) if now + delay < NEVER else NEVER)
