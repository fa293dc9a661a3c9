"""One queue, with and without vacations: known values, exact special cases, a Markov chain.

Rooms for 100 and more are so large that nothing is lost. The known values were each confirmed by simulations
of 6e8 slots; services in them take 6 slots.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from btqueue.queueing.vacations import Discrete, Time, VacationQueue, vacation_queue

SIX = Time(6.0)
LONG = Discrete(np.arange(10.0, 51.0), np.full(41, 1 / 41))
SLOTS = np.arange(1.0, 401.0)
GEOMETRIC = Discrete(SLOTS, (11 / 12) ** (SLOTS - 1) / 12 / (1 - (11 / 12) ** 400))

solve = partial(vacation_queue, service=SIX)


def second(time: Time) -> float:
    return time.mean**2 * (1 + time.scv)


def third(time: Time) -> float:
    return second(time) * time.mean * (1 + 2 * time.scv)


def fourth(time: Time) -> float:
    return third(time) * time.mean * (1 + 3 * time.scv)


TEN, LATE = {"rate": 0.05, "vacations": Time(10.0), "capacity": 400}, {"vacations": LONG, "limit": 5}
KNOWN: list[tuple[dict[str, Any], dict[str, float]]] = [
    (TEN | {"limit": 1}, {"mean_wait": 37.0}),
    (TEN | {"limit": 2}, {"mean_wait": 10.477567}),
    (TEN | {"limit": 3}, {"mean_wait": 7.754771}),
    (TEN | {"limit": 5}, {"mean_wait": 6.588921}),
    (TEN | {"limit": 10}, {"mean_wait": 6.297837}),
    (LATE | {"rate": 0.008, "capacity": 300, "batch": 5}, {"mean_queue": 2.564103, "mean_wait": 58.102564}),
    (LATE | {"rate": 0.008, "capacity": 20, "batch": 5}, {"mean_cycle": 39.420404, "mean_queue": 2.479354}),
    (LATE | {"rate": 0.2, "capacity": 20}, {"packet_loss": 0.583333, "throughput": 0.083333}),
    ({"rate": 0.1, "vacations": GEOMETRIC, "capacity": 300}, {"mean_wait": 16.0}),
    ({"rate": 0.012, "vacations": GEOMETRIC, "capacity": 300, "batch": 5}, {"mean_wait": 31.9375}),
]


@pytest.mark.parametrize(("queue", "known"), KNOWN)
def test_known_values(queue, known: dict[str, float]):
    solution = solve(**queue)
    assert {name: getattr(solution, name) for name in known} == pytest.approx(known, abs=5e-7)


def test_a_large_limit_approaches_exhaustive_service():
    large = solve(rate=0.1, vacations=GEOMETRIC, capacity=300, limit=40)
    assert large.mean_wait == pytest.approx(16.0406, abs=5e-5)


def sojourn(rate: float, service: Time, vacation: Time | None) -> tuple[float, float, float]:
    """Mean, standard deviation and third cumulant of the sojourn in M/G/1, with exhaustive vacations too.

    Cumulants of the wait by Takagi's recursion of its moments, and independently of it the rest of a vacation
    (Fuhrmann & Cooper, Oper. Res. 33, 1985).
    """
    idle = 1 - rate * service.mean
    wait = rate * second(service) / (2 * idle)
    variance = wait**2 + rate * third(service) / (3 * idle) + service.mean**2 * service.scv
    mean = wait + service.mean
    skew = 2 * wait**3 + rate * third(service) / idle * wait + rate * fourth(service) / (4 * idle)
    skew += 2 * service.mean**3 * service.scv**2
    if vacation is not None:
        rest, square, cube = (
            moment(vacation) / ((n + 1) * vacation.mean)
            for n, moment in ((1, second), (2, third), (3, fourth))
        )
        mean += rest
        variance += square - rest**2
        skew += cube - 3 * rest * square + 2 * rest**3
    return mean, math.sqrt(variance), skew


LAWS = [Time(6.0), Time(6.0, 1e-7), Time(6.0, 0.3), Time(6.0, 1.0), Time(6.0, 2.5)]


@pytest.mark.parametrize("vacation", [None, Time(12.0), Time(12.0, 0.5), Time(4.0, 2.0)])
@pytest.mark.parametrize("service", LAWS)
@pytest.mark.parametrize("rate", [1e-12, 1e-9, 1e-4, 0.02, 0.1])
def test_sojourns_without_a_limit(rate: float, service: Time, vacation: Time | None):
    queue = solve(rate=rate, service=service, vacations=vacation, capacity=400)
    mean, deviation, skew = sojourn(rate, service, vacation)
    assert queue.sojourn_mean == pytest.approx(mean, rel=1e-9)
    assert queue.mean_wait + service.mean == pytest.approx(mean, rel=1e-9)
    # a difference of squares: of a deviation much below the mean, the square keeps its absolute error
    assert queue.sojourn_sd**2 == pytest.approx(deviation**2, rel=1e-8, abs=1e-12 * mean**2)
    assert queue.sojourn_third == pytest.approx(skew, rel=1e-7, abs=1e-11 * mean**3)


ROOM, LIMIT, BATCH, RATE, AGAIN, SERVICE = 6, 3, 2, 0.07, 0.2, 4.0
RESTS = (5.0, 9.0, 2.0, 7.0)
"""Mean vacations, by services of the visit."""


def moment_by_moment(limit: float, rests: tuple[float, ...] | None) -> dict[str, Any]:
    """The queue from the chain in continuous time of all that there is to know.

    A state is (serving, services done, queue); without a limit services are not counted.
    """

    def after_service(done: int, queue: int):
        done = min(done + 1, LIMIT) if limit < math.inf else 0
        if queue and done < limit:
            return (True, done, queue)
        return (False, done if rests is not None else 0, queue)

    def moves(state):
        serving, done, queue = state
        there = min(queue + BATCH, ROOM)
        if serving:
            yield (True, done, there), RATE
            yield after_service(done, queue), AGAIN / SERVICE
            yield after_service(done, queue - 1), (1 - AGAIN) / SERVICE
        elif rests is None:
            yield (True, 0, there), RATE
        else:
            yield (False, done, there), RATE
            yield (queue > 0, 0, queue), 1 / rests[done]

    found, waiting = {}, [(False, 0, 0)]
    while waiting:
        if (state := waiting.pop()) not in found:
            found[state] = list(moves(state))
            waiting += [after for after, _ in found[state]]
    place = {state: row for row, state in enumerate(found)}
    generator = np.zeros((len(place), len(place)))
    for state, after in found.items():
        for where, rate in after:
            generator[place[state], place[where]] += rate
            generator[place[state], place[state]] -= rate
    balance = np.vstack([generator.T, np.ones(len(place))])
    law = np.linalg.lstsq(balance, np.eye(len(balance))[-1], rcond=None)[0]
    chances = dict(zip(found, law, strict=True))
    queue = np.bincount([state[2] for state in found], law, ROOM + 1)
    busy = sum(chance for (serving, *_), chance in chances.items() if serving)
    # visits begin where vacations end; without vacations where a message finds nobody
    ends = {
        state: chance * (RATE if rests is None else 1 / rests[state[1]])
        for state, chance in chances.items()
        if not state[0]
    }
    visits = sum(ends.values())
    return {
        "occupancy": queue,
        "throughput": busy * (1 - AGAIN) / SERVICE,
        "mean_cycle": 1 / visits,
        "mean_served": busy / SERVICE / visits,
        "packet_loss": queue[-1] + queue[-2] / 2,
        "batch_loss": queue[-1] + queue[-2],
        "visit_start": np.bincount([state[2] for state in ends], list(ends.values()), ROOM + 1) / visits,
        "served": [
            sum(there for state, there in ends.items() if state[1] == done) / visits for done in range(4)
        ],
    }


@pytest.mark.parametrize(
    ("limit", "rests"),
    [(LIMIT, RESTS), (LIMIT, (5.0,) * 4), (None, (5.0,)), (None, None)],
    ids=["limited, four vacations", "limited", "exhaustive", "no vacations"],
)
def test_every_law_moment_by_moment(limit: int | None, rests: tuple[float, ...] | None):
    queue = vacation_queue(
        rate=RATE,
        service=Time(SERVICE, 1.0),
        vacations=None if rests is None else [Time(mean, 1.0) for mean in rests],
        capacity=ROOM,
        batch=BATCH,
        limit=limit,
        repeats=AGAIN,
    )
    expected = moment_by_moment(limit or math.inf, rests)
    if rests is None:
        expected["visit_start"] = np.eye(ROOM + 1)[BATCH]  # there with the message
    if limit is None:
        expected["served"] = []
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(queue, name), value, rtol=1e-10, atol=1e-13, err_msg=name)


EDGES = (1e-15, 1e-9, 1e-6, 0.5, 1 - 1e-6, 1.0, 1 + 1e-6, 2.0, 10.0)
TIMES = st.builds(Time, st.floats(0.1, 20.0), st.sampled_from([0.0, 1e-9, 0.3, 1.0, 5.0])) | st.builds(
    lambda low, more, chance: Discrete([low, low + more], [chance, 1 - chance]),
    st.floats(0.0, 5.0),
    st.floats(0.1, 20.0),
    st.floats(0.0, 0.9),
)
QUEUES = st.fixed_dictionaries(
    {
        "service": TIMES,
        "vacations": st.none() | TIMES,
        "capacity": st.integers(1, 25),
        "batch": st.integers(1, 6),
        "limit": st.none() | st.integers(1, 8),
        "repeats": st.sampled_from([0.0, 0.1, 0.6]),
    }
)


def of_load(load: float, queue: dict[str, Any], **changes: Any) -> VacationQueue:
    arguments: dict[str, Any] = queue | ({"limit": None} if queue["vacations"] is None else {}) | changes
    rate = load * (1 - queue["repeats"]) / queue["service"].mean / queue["batch"]
    return vacation_queue(rate=rate, **arguments)


RARE = {"service": SIX, "vacations": SIX, "capacity": 3, "batch": 1, "limit": 8, "repeats": 0.0}
"""A visit never reaches its limit."""


@settings(max_examples=200)
@given(QUEUES, st.sampled_from(EDGES) | st.floats(1e-6, 3.0))
@example(RARE, 1e-15)
def test_laws_sum_to_one_and_flows_balance(queue: dict[str, Any], load: float):
    solution = of_load(load, queue)
    for name in ("occupancy", "visit_start"):
        law = getattr(solution, name)
        assert law.min() >= 0.0 and law.sum() == pytest.approx(1.0, abs=1e-12)
    if len(solution.served):
        assert solution.served.sum() == pytest.approx(1.0, abs=1e-12)
        served = solution.served @ np.arange(len(solution.served))
        assert solution.mean_served == pytest.approx(served, rel=1e-9)
    assert not np.isnan(solution.mean_cycle)
    # the loss that arrivals see is what the flow through the server leaves over
    held, offered = queue["service"].mean / (1 - queue["repeats"]), load * (1 - solution.packet_loss)
    assert solution.throughput * held == pytest.approx(offered, rel=1e-9)
    assert solution.mean_wait >= -1e-9 * held
    assert solution.packet_loss <= solution.batch_loss <= queue["batch"] * solution.packet_loss + 1e-15
    if queue["vacations"] is None:
        assert solution.throughput * held == pytest.approx(1 - solution.occupancy[0], rel=1e-9)


@settings(max_examples=60)
@given(QUEUES, st.floats(1e-9, 0.9))
def test_littles_law_of_the_sojourns(queue: dict[str, Any], load: float):
    """The mean sojourn is read from the messages left behind, the mean wait from the queue at all moments."""
    solution = of_load(load, queue, capacity=150, batch=1)
    assume(solution.packet_loss < 1e-13)
    held = queue["service"].mean / (1 - queue["repeats"])
    assert solution.sojourn_mean == pytest.approx(solution.mean_wait + held, rel=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 0}, "limit must be a whole number of at least 1, got 0"),
        ({"limit": math.inf}, "limit must be a whole number"),
        ({"capacity": 0}, "capacity must be a whole number"),
        ({"capacity": 20.0}, "capacity must be a whole number"),
        ({"batch": 1.5}, "batch must be a whole number"),
        ({"rate": 0.0}, "rate must be positive and finite"),
        ({"rate": -1.0}, "rate must be positive and finite"),
        ({"rate": math.nan}, "rate must be positive and finite"),
        ({"rate": math.inf}, "rate must be positive and finite"),
        ({"repeats": 1.0}, "repeats must be a chance below 1"),
        ({"repeats": -0.1}, "repeats must be a chance below 1"),
        ({"service": Time(0.0)}, "service must have a positive"),
        ({"service": Time(6.0, -0.1)}, "service must have .* no negative times or scv"),
        ({"service": Time(6.0, math.nan)}, "service must have"),
        ({"vacations": Time(math.inf)}, "vacations must have a positive and finite mean"),
        ({"vacations": Discrete([1.0, 2.0], [0.5, 0.4])}, "vacations must have .* chances that sum to 1"),
        ({"vacations": Discrete([-1.0, 2.0], [0.5, 0.5])}, "vacations must have .* no negative times"),
        ({"vacations": Discrete([1.0, 2.0], [1.5, -0.5])}, "vacations must have"),
        ({"vacations": Discrete([1.0, 2.0], [1.0])}, "vacations must have"),
        ({"vacations": Discrete([0.0], [1.0])}, "vacations must have a positive"),
        ({"vacations": [Time(1.0)] * 5}, "one law, or one for each of 0 to 5 services, got 5"),
        ({"vacations": None}, "a server that never goes away has no limit of a visit, got limit = 5"),
    ],
)
def test_impossible_arguments_are_refused(arguments: dict[str, Any], message: str):
    good: dict[str, Any] = {"rate": 0.1, "vacations": LONG, "capacity": 20, "limit": 5}
    with pytest.raises(ValueError, match=message):
        solve(**(good | arguments))
