"""Delay lines: order, two servers in a row against a simulation of their queues, the jitter."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_tables import NEVER, NOTHING, tables

MS = 1_000_000


def new_line(plain, segments, **fields):
    sim = tables(plain.records, timers=1, segments=segments, lines=1)
    sim.heap, sim.timers.due = np.arange(1), NEVER
    sim.streams = plain.random_streams.make_streams(1, 0, 1)
    sim.lines.head = sim.lines.tail = NOTHING
    for name, value in fields.items():
        sim.lines[0][name] = value
    return sim


def play(plain, sim, entries):
    """Let segment 0, 1, ... enter at these times; return (segment, time) of all releases, in their order."""
    left, waiting = [], deque(enumerate(entries))
    while waiting or sim.timers[0].due != NEVER:
        now = int(sim.timers[0].due)
        if waiting and waiting[0][1] <= now:
            segment, now = waiting.popleft()
            plain.delay_line.enter(sim, 0, segment, now)
        else:
            plain.timers.cancel(sim, 0)
            left.append((int(plain.delay_line.release(sim, 0, now)), now))
    assert sim.lines[0].length == 0
    return left


def tandem(entries, delay, intervals):
    """Simulate the queues of two servers nanosecond by nanosecond; return when each segment leaves them."""
    queues: list[deque] = [deque(), deque()]
    busy_until: list[int] = [0, 0]
    arrivals, left, now = deque(time + delay for time in entries), [], 0
    while len(left) < len(entries):
        while arrivals and arrivals[0] == now:
            queues[0].append(arrivals.popleft())
        for place in (0, 1):  # a segment that leaves the first server may begin at the second at once
            done = bool(queues[place]) and busy_until[place] == now and queues[place][0] == "in service"
            if done:
                queues[place].popleft()
                if place == 0:
                    queues[1].append("waiting")
                else:
                    left.append(now)
            if queues[place] and queues[place][0] != "in service":
                queues[place][0] = "in service"
                busy_until[place] = now + intervals[place]
        now += 1
    return left


@given(
    gaps=st.lists(st.integers(0, 8), min_size=1, max_size=15),
    delay=st.integers(0, 5),
    intervals=st.tuples(st.integers(1, 6), st.integers(1, 6)),
)
def test_two_servers_in_a_row_are_those_of_a_simulation_of_their_queues(plain, gaps, delay, intervals):
    entries = np.cumsum(gaps).tolist()
    fields = {"delay": delay, "interval_1": intervals[0], "interval_2": intervals[1]}
    left = play(plain, new_line(plain, len(entries), **fields), entries)
    assert left == list(enumerate(tandem(entries, delay, intervals)))


@pytest.mark.parametrize("exponential", [False, True])
@given(gaps=st.lists(st.integers(0, 3 * MS), min_size=1, max_size=30))
def test_the_jitter_is_drawn_for_each_and_nobody_overtakes(plain, exponential, gaps):
    entries, random = np.cumsum(gaps), plain.random_streams
    sim = new_line(plain, len(entries), delay=MS, jitter=5 * MS, exponential=exponential)
    stream = sim.streams.copy()[0]
    draws = [random.exponential(stream, 1) if exponential else random.uniform(stream) for _ in gaps]
    times = np.maximum.accumulate(entries + MS + (np.array(draws) * (5 * MS)).astype(int))
    assert play(plain, sim, entries.tolist()) == list(enumerate(times))


def test_a_queue_in_front_of_a_server_of_days_does_not_come_round_to_the_past(plain):
    service = 10**15
    sim = new_line(plain, 10_000, interval_1=service)
    for segment in range(10_000):  # 10^19 ns is beyond 2^63
        plain.delay_line.enter(sim, 0, segment, segment)
    releases = sim.segments.release_at
    assert releases[:3].tolist() == [service, 2 * service, 3 * service]
    assert (np.diff(releases) >= 0).all()
    assert releases[-1] == NEVER
