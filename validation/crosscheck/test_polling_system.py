"""The queueing-only simulator as a machine: against a plain event list, in pieces, in threads, out of room.

That its numbers are those of queueing theory is checked in `theory/test_queueing_limits.py`.
"""

import heapq
from collections import deque

import numpy as np
import pytest

from btqueue.simulator.machinery.compilation import entry_point
from btqueue.simulator.machinery.random_streams import exponential, make_streams
from btqueue.simulator.queueing_only.independent_runs import CountLost
from btqueue.simulator.queueing_only.polling_system import (
    PollingSystem,
    advance_to,
    check_polling,
    forget_polling_statistics,
    measure_polling,
    new_polling_state,
    simulate_polling_system,
)
from btqueue.simulator.queueing_only.random_times import (
    ConstantTime,
    ErlangTime,
    ExponentialTime,
    GeometricTime,
    TwoPointTime,
    UniformTime,
    draw_time,
    law_dtype,
)
from btqueue.simulator.queueing_only.server_group import ServerGroup, simulate_server_group
from btqueue.simulator.queueing_only.token_gate import TokenGate, simulate_token_gate
from btqueue.simulator.records.conventions import SLOT

RATES = (0.05, 0.08, 0.1)
SERVICES = (
    ConstantTime(slots=2),
    ExponentialTime(mean=3),
    TwoPointTime(short=1, long=4, probability_long=1 / 3),
)
WALKS = (ErlangTime(mean=2, phases=2), UniformTime(least=1, most=2), GeometricTime(mean=1.5))


def three_queues(**settings):
    return PollingSystem(**{"arrival_rates": RATES, "services": SERVICES, "walks": WALKS, **settings})


SYSTEMS = {
    "exhaustive": three_queues(),
    "gated": three_queues(gated=True),
    "one, two and all": three_queues(limit=(1, 2, None)),
    "gated, limited, short of room, batches": three_queues(
        gated=(True, False, True), limit=2, buffer=(3, None, 4), batch=(2, 1, 3)
    ),
    "no walks": three_queues(walks=ConstantTime(slots=0)),
}


@entry_point
def next_gap(stream, mean):
    """Draw a gap: the simulator's parts are compiled for compiled callers only."""
    return int(exponential(stream, mean))


@entry_point
def next_time(law, stream):
    """Draw a service or a walk."""
    return draw_time(law, stream)


class EventList:
    """The same system, written as one would with an event list: every arrival is played when it happens."""

    def __init__(self, system, seed):
        count = len(system.arrival_rates)
        self.streams = make_streams(seed, 0, 3 * count)
        self.means = [SLOT / rate for rate in system.arrival_rates]
        self.services, self.walks = (
            [np.array([law.record()], law_dtype).view(np.recarray)[0] for law in system.of_each(laws)]
            for laws in (system.services, system.walks)
        )
        self.walking_takes_time = any(law.mean > 0 for law in system.of_each(system.walks))
        self.limits = [limit or 10**9 for limit in system.of_each(system.limit)]
        self.places = [places or 10**9 for places in system.of_each(system.buffer)]
        self.gated, self.batches = system.of_each(system.gated), system.of_each(system.batch)
        self.lines = [deque() for _ in range(count)]
        self.waited, self.started, self.offered, self.refused, self.visits = np.zeros((5, count), np.int64)
        self.events = []
        for queue in range(count):
            self.expect(queue, 0)
        self.arrive(0, 0)

    def expect(self, queue, now):
        gap = next_gap(self.streams[3 * queue], self.means[queue])
        heapq.heappush(self.events, (now + gap, queue, "arrival"))

    def schedule_server(self, time, what):
        heapq.heappush(self.events, (time, len(self.lines), what))

    def arrive(self, queue, now):
        self.queue, self.served = queue, 0
        present = len(self.lines[queue])
        self.allowance = min(self.limits[queue], present) if self.gated[queue] else self.limits[queue]
        self.go_on(now)

    def go_on(self, now):
        queue = self.queue
        if self.lines[queue] and self.served < self.allowance:
            self.started[queue] += 1
            self.waited[queue] += now - self.lines[queue][0]
            self.schedule_server(now + next_time(self.services[queue], self.streams[3 * queue + 1]), "served")
            return
        self.visits[queue] += 1
        self.queue = (queue + 1) % len(self.lines)
        if self.walking_takes_time:
            walk = next_time(self.walks[queue], self.streams[3 * queue + 2])
            self.schedule_server(now + walk, "arrived")
        elif any(self.lines):
            self.arrive(self.queue, now)
        else:
            self.schedule_server(self.events[0][0], "arrived")  # when somebody comes

    def run(self, until):
        while self.events[0][0] <= until:
            now, queue, what = heapq.heappop(self.events)
            if what == "arrival":
                for _ in range(self.batches[queue]):
                    self.offered[queue] += 1
                    if len(self.lines[queue]) < self.places[queue]:
                        self.lines[queue].append(now)
                    else:
                        self.refused[queue] += 1
                self.expect(queue, now)
            elif what == "arrived":
                self.arrive(self.queue, now)
            else:
                self.lines[self.queue].popleft()
                self.served += 1
                self.go_on(now)


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_the_same_customers_wait_the_same_times_as_with_an_event_list(system):
    with np.errstate(over="ignore"):
        state = advance_to(new_polling_state(system, seed=5, replication=0), 4000)
        reference = EventList(system, seed=5)
        reference.run(4000 * SLOT)
    for name in ("offered", "refused", "started", "waited", "visits"):
        np.testing.assert_array_equal(state.stations[name], getattr(reference, name), name)
    np.testing.assert_array_equal(state.stations.length, [len(line) for line in reference.lines])


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_advancing_in_pieces_changes_nothing(system):
    with np.errstate(over="ignore"):
        whole = advance_to(new_polling_state(system, seed=3, replication=0), 5000)
        pieces = new_polling_state(system, seed=3, replication=0)
        for slots in np.linspace(0, 5000, 777):
            pieces = advance_to(pieces, slots)
    for name, records in whole._asdict().items():
        assert records.tobytes() == getattr(pieces, name).tobytes(), name


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_customers_are_conserved_and_littles_law_is_exact(system):
    with np.errstate(over="ignore"):
        state = advance_to(new_polling_state(system, seed=2, replication=0), 1234.5)
        forget_polling_statistics(state)
        state = advance_to(state, 9876.5)
    check_polling(state)
    assert measure_polling(state)["services"] > 500, "and something happened"


@pytest.mark.parametrize("field", ["served", "refused", "sojourn", "area"])
def test_a_lost_count_is_noticed(field):
    with np.errstate(over="ignore"):
        state = advance_to(new_polling_state(three_queues(), seed=2, replication=0), 1000)
    check_polling(state)
    state.stations[field][1] += 1
    with pytest.raises(CountLost):
        check_polling(state)


SIMULATIONS = {
    "polling": (simulate_polling_system, three_queues()),
    "servers": (simulate_server_group, ServerGroup(arrival_rate=0.5, service=SERVICES[1], servers=2)),
    "bucket": (
        simulate_token_gate,
        TokenGate(batch_rate=0.01, batch=5, token_slots=10, depth=9, service=SERVICES[1]),
    ),
}


@pytest.mark.parametrize(("simulate", "system"), SIMULATIONS.values(), ids=SIMULATIONS.keys())
def test_results_do_not_depend_on_the_number_of_threads(simulate, system):
    results = [simulate(system, duration_slots=1e4, threads=threads) for threads in (1, 2, 5)]
    assert results[0].identical(results[1])
    assert results[0].identical(results[2])


def test_an_overloaded_unlimited_queue_finds_room():
    system = PollingSystem(arrival_rates=(0.5,), services=ConstantTime(slots=4))
    result = simulate_polling_system(system, duration_slots=2e5, replications=2)
    # Half of the customers are served; the queue grows by a quarter of a customer a slot.
    assert float(result.queue_length.mean()) == pytest.approx(0.25 * 2e5 / 2, rel=0.05)


def test_one_replication_has_no_interval():
    result = simulate_polling_system(three_queues(), duration_slots=1e3, replications=1)
    assert np.isnan(result.waiting_half_width).all()
    assert np.isnan(result.cycle_half_width)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival_rates": (0.1,)}, "services needs one value"),
        ({"arrival_rates": (0.1, 0.1, 0.0)}, "arrival_rates must be positive"),
        ({"limit": 0}, "limit must be at least 1"),
        ({"limit": (1, None)}, "limit needs one value"),
        ({"buffer": -2}, "buffer must be at least 1"),
        ({"batch": 0}, "batch must be at least 1"),
    ],
)
def test_wrong_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        three_queues(**changes)


ONE = SERVICES[0]
WRONG = {
    "a time below 0": lambda: ConstantTime(slots=-1),
    "a time below a nanosecond": lambda: ConstantTime(slots=1e-9),
    "a probability above 1": lambda: TwoPointTime(short=1, long=2, probability_long=1.5),
    "no phases": lambda: ErlangTime(mean=3, phases=0),
    "least above most": lambda: UniformTime(least=3, most=2),
    "a mean below 1": lambda: GeometricTime(mean=1),
    "no arrivals": lambda: ServerGroup(arrival_rate=0, service=ONE, servers=1),
    "places below 0": lambda: ServerGroup(arrival_rate=1, service=ONE, servers=1, waiting_places=-1),
    "tokens in no time": lambda: TokenGate(
        batch_rate=1, batch=1, token_slots=0, depth=1, service=SERVICES[0]
    ),
    "no depth": lambda: TokenGate(batch_rate=1, batch=1, token_slots=1, depth=0, service=ONE),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_laws_groups_and_buckets_are_refused(what):
    with pytest.raises(ValueError):
        WRONG[what]()
