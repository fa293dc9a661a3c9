"""Timers, with a heap and without, against a sorted list, for any order of scheduling and cancelling."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from state_tables import NEVER, tables


def new_timers(plain, count, islands, largest_scan):
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


@pytest.mark.parametrize("largest_scan", [0, 2, 6, 12])
@settings(max_examples=100)
@given(commands=commands, every=st.integers(1, 4), islands=st.integers(1, 4))
def test_the_earliest_of_an_island_is_always_the_timer_that_fires_first(
    plain, largest_scan, commands, every, islands
):
    count, steps = commands
    sim = new_timers(plain, count, islands, largest_scan)
    due = dict.fromkeys(range(count), NEVER)
    for number, (timer, at) in enumerate(steps):
        if at is None:
            plain.timers.cancel(sim, timer)
        else:
            plain.timers.schedule(sim, timer, at)
        due[timer] = NEVER if at is None else at
        for island, root in enumerate(sim.islands if number % every == 0 else ()):
            if islands > 1:  # what was found earlier is of another island; else it may be out of date
                plain.timers.forget_earliest(sim, sim.heap[root])
            first = min(range(island, count, islands), key=lambda t: (due[t], t))
            assert plain.timers.earliest(sim, root) == first, "earliest first, ties by number"
            assert sim.timers[first].due == due[first]


@example(now=NEVER, delay=0)
@example(now=5, delay=np.nan)
@given(now=st.integers(0, 2**55), delay=st.one_of(st.integers(0, 2**62), st.floats(min_value=0.0)))
def test_a_time_that_no_run_reaches_is_never(plain, now, delay):
    due = int(plain.timers.later(np.int64(now), delay))
    assert due == (now + int(delay) if now + delay < NEVER else NEVER)
