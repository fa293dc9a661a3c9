"""Vacation queues: closed forms and the finite chain against each other and against known values.

Service takes 6 slots. The values were each confirmed by simulations of 6e8 slots.
"""

from typing import Any

import jax
import numpy as np
import pytest
from jax.typing import ArrayLike

from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches
from btqueue.queueing.vacations.vacations import (
    VacationQueueSolution,
    exhaustive_service_queue,
    gated_service_queue,
    limited_service_queue,
)

SERVICE = lattice.point(6)
LONG = lattice.uniform(10, 50)
LONG_AND_POLL = np.stack([np.pad(LONG, (2, 0))] * 5 + [np.pad(LONG, (0, 2))])  # 2 slots more when emptied
FIVE = lattice.point(5)


def solve(arrivals, vacations, capacity: int, limit: int) -> VacationQueueSolution:
    return limited_service_queue(
        arrivals=arrivals, service=SERVICE, vacations=vacations, capacity=capacity, limit=limit
    )


SINGLES, TEN, GEOMETRIC = PoissonBatches(0.05), lattice.point(10), lattice.geometric(12.0)
OVERLOAD = PoissonBatches(0.2, np.pad(lattice.point(1), (0, 4)))
LARGE_LIMITS = [
    ((PoissonBatches(0.1), GEOMETRIC, 300, 40), {"mean_wait": 16.0406}, 5e-5),
    ((PoissonBatches(0.1), GEOMETRIC, 300, 120), {"mean_wait": 16.000002}, 5e-7),
]


@pytest.mark.parametrize(
    ("queue", "known", "digits"),
    [
        ((SINGLES, TEN, 400, 1), {"mean_wait": 37.0}, 5e-7),
        pytest.param((SINGLES, TEN, 400, 2), {"mean_wait": 10.477567}, 5e-7, marks=pytest.mark.long),
        ((SINGLES, TEN, 400, 5), {"mean_wait": 6.588921}, 5e-7),
        ((BernoulliBatches(0.05), lattice.uniform(10, 20), 30, 2), {"mean_wait": 18.745966}, 5e-7),
        ((PoissonBatches(0.008, FIVE), LONG, 300, 5), {"mean_queue": 2.564103, "mean_wait": 58.102564}, 5e-7),
        ((PoissonBatches(0.008, FIVE), LONG, 20, 5), {"mean_cycle": 39.420404, "mean_queue": 2.479354}, 5e-7),
        ((OVERLOAD, LONG, 20, 5), {"packet_loss": 0.583333, "throughput": 0.083333}, 5e-7),
        # a large limit approaches exhaustive service
        *(pytest.param(*known, marks=pytest.mark.long) for known in LARGE_LIMITS),
    ],
)
def test_limited_service(queue, known: dict[str, float], digits: float):
    """The short suite keeps a limit of 1, 2 and 5; each shape of its arrays is compiled anew."""
    solution = solve(*queue)
    assert {name: float(getattr(solution, name)) for name in known} == pytest.approx(known, abs=digits)


def test_batches_served_exhaustively_meet_the_closed_form():
    solution = exhaustive_service_queue(
        arrivals=PoissonBatches(0.012, FIVE), service=SERVICE, vacations=lattice.geometric(12.0), capacity=300
    )
    assert float(solution.mean_wait) == pytest.approx(31.9375, abs=5e-7)


EMPTIED = [0.02215193, 0.02616912, 0.02786312, 0.02851632, 0.02855724]
EMPTIED_AFTER_POLL = [0.01822464, 0.02360347, 0.02616383, 0.02740225, 0.0278584]


@pytest.mark.parametrize(
    ("vacations", "wait", "cycle", "emptied"),
    [(LONG, 182.041522, 57.692308, EMPTIED), (LONG_AND_POLL, 183.200197, 58.166356, EMPTIED_AFTER_POLL)],
)
def test_near_saturation(vacations, wait: float, cycle: float, emptied: list[float]):
    chain = solve(PoissonBatches(0.08), vacations, 500, 5)
    assert float(chain.mean_wait) == pytest.approx(wait, abs=2e-6)
    assert float(chain.mean_cycle) == pytest.approx(cycle, abs=5e-7)
    np.testing.assert_allclose(chain.served[:5], emptied, atol=5e-9)


def test_queue_left_behind_and_wait_satisfy_the_conservation_identity():
    """``M E[X] = E[N] lambda (W + E[B]) - (1 - rho) E[N (N - 1)] / 2`` with X left at the end of a visit."""
    rate = 0.08
    chain = solve(PoissonBatches(rate), LONG, 500, 5)
    served = np.arange(6)
    left = float(lattice.mean(chain.visit_start)) - rate * 30.0
    pairs = float(chain.served @ (served * (served - 1)))
    right = float(chain.mean_served) * rate * float(chain.mean_sojourn) - (1 - 6 * rate) * pairs / 2
    assert left == pytest.approx(12.955117, abs=5e-7)
    assert right / 5 == pytest.approx(left, rel=1e-9)


@pytest.mark.parametrize(
    ("rate", "packet_loss", "segment_loss"),
    [
        (0.006, 0.000995, 0.001644),
        (0.008, 0.004280, 0.006928),
        (0.010, 0.013082, 0.020897),
        (0.012, 0.031314, 0.049531),
    ],
)
def test_losses_at_a_finite_buffer(rate: float, packet_loss: float, segment_loss: float):
    solution = solve(PoissonBatches(rate, FIVE), LONG, 20, 5)
    assert float(solution.packet_loss) == pytest.approx(packet_loss, abs=5e-7)
    assert float(solution.segment_loss) == pytest.approx(segment_loss, abs=5e-7)
    # the loss seen by arrivals is what flow balance leaves over
    assert 1 - float(solution.throughput) / (5 * rate) == pytest.approx(
        float(solution.packet_loss), abs=1e-12
    )


@pytest.mark.parametrize("rate", [1e-9, 0.5, 5.0])
def test_no_load_and_hopeless_overload_have_answers(rate: float):
    """At 5 packets a slot the queue is empty less often than a double can say."""
    limited = solve(PoissonBatches(rate), lattice.geometric(12.0), 300, 40)
    exhaustive = exhaustive_service_queue(
        arrivals=PoissonBatches(rate), service=SERVICE, vacations=lattice.geometric(12.0), capacity=300
    )
    for solution in (limited, exhaustive):
        laws = (solution.visit_start, solution.served, solution.occupancy, solution.departure)
        means = (solution.packet_loss, solution.mean_wait, solution.mean_cycle, solution.mean_served)
        assert not any(np.isnan(value).any() for value in (*laws, *means))
        assert float(solution.occupancy.sum()) == pytest.approx(1.0, abs=1e-12)
        assert float(solution.throughput) == pytest.approx(rate * (1 - float(solution.packet_loss)), rel=1e-9)
    if rate > 1 / 6:
        assert float(exhaustive.throughput) == pytest.approx(1 / 6, rel=1e-9)
        assert float(limited.throughput) == pytest.approx(40 / (40 * 6 + 12), rel=1e-9)
    else:
        assert float(limited.mean_wait) == pytest.approx((2 * 12**2 - 12) / 24, rel=1e-5)


ROOM, MOST = 4, 2
COMES = np.array([0.8, 0.12, 0.08])  # nothing, one packet, two
SERVES = np.array([0.0, 0.0, 0.6, 0.4])
RESTS = np.array([[0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0], [0.0, 0.3, 0.3, 0.4]])  # by packets served


def slot_by_slot(gated: bool, limit: float) -> tuple[np.ndarray, float, float]:
    """Queue at the starts of slots, mean cycle and throughput, from the chain of all that there is to know.

    A state is (serving, slots left, queue, services still allowed, services done).
    """

    def begin(queue: int, allowed: float, done: int, chance: float) -> list[tuple[tuple, float]]:
        serving = queue > 0 and allowed > 0
        law = SERVES if serving else RESTS[min(done, MOST)]
        state = (queue, allowed if serving else 0, done if serving else 0)
        return [((serving, left, *state), chance * law[left]) for left in np.flatnonzero(law)]

    def slot(state: tuple) -> tuple[list[tuple[tuple, float]], bool]:
        serving, left, queue, allowed, done = state
        after, comes_back = [], not serving and left == 1
        for packets, chance in enumerate(COMES):
            there = min(queue + packets, ROOM)
            if left > 1:
                after.append(((serving, left - 1, there, allowed, done), chance))
            elif serving:
                after += begin(there - 1, allowed - 1, min(done + 1, MOST), chance)
            else:
                after += begin(there, min(there, limit) if gated else limit, 0, chance)
        return after, comes_back

    moves, found = {}, [(False, 1, 0, 0, 0)]
    while found:
        if (state := found.pop()) not in moves:
            moves[state] = slot(state)
            found += [after for after, _ in moves[state][0]]
    place = {state: row for row, state in enumerate(moves)}
    matrix = np.zeros((len(place), len(place)))
    for state, (after, _) in moves.items():
        for where, chance in after:
            matrix[place[state], place[where]] += chance
    equations = np.vstack([matrix.T - np.eye(len(place)), np.ones(len(place))])
    law = np.linalg.lstsq(equations, np.eye(len(place) + 1)[-1], rcond=None)[0]
    queue = np.bincount([state[2] for state in moves], law, ROOM + 1)
    visits = law @ [comes_back for _, comes_back in moves.values()]
    served = law @ [state[0] and state[1] == 1 for state in moves]
    return queue, 1.0 / float(visits), float(served)


QUEUE: dict[str, Any] = {
    "arrivals": BernoulliBatches(0.2, [0.0, 0.6, 0.4]),
    "service": SERVES,
    "vacations": RESTS,
    "capacity": ROOM,
}


@pytest.mark.parametrize(
    ("solved", "gated", "limit"),
    [
        (lambda: limited_service_queue(**QUEUE, limit=MOST), False, MOST),
        (lambda: gated_service_queue(**QUEUE, limit=MOST), True, MOST),
        (lambda: gated_service_queue(**{**QUEUE, "vacations": RESTS[[0, 1, 2, 2, 2]]}), True, np.inf),
        (lambda: exhaustive_service_queue(**QUEUE), False, np.inf),
    ],
    ids=["limited", "gated and limited", "gated", "exhaustive"],
)
def test_every_discipline_slot_by_slot(solved, gated: bool, limit: float):
    queue, cycle, throughput = slot_by_slot(gated, limit)
    solution = solved()
    np.testing.assert_allclose(solution.occupancy, queue, atol=1e-12)
    assert float(solution.mean_cycle) == pytest.approx(cycle, rel=1e-11)
    assert float(solution.throughput) == pytest.approx(throughput, rel=1e-11)
    offered = COMES @ np.arange(3)
    assert float(solution.packet_loss) == pytest.approx(1.0 - throughput / offered, rel=1e-10)


def test_one_limited_and_gated_of_one_are_the_same():
    queue: dict[str, Any] = {
        "arrivals": PoissonBatches(0.02, FIVE),
        "service": SERVICE,
        "vacations": LONG,
        "capacity": 15,
    }
    gated, limited = gated_service_queue(**queue, limit=1), limited_service_queue(**queue, limit=1)
    np.testing.assert_allclose(gated.occupancy, limited.occupancy, atol=1e-14)


def test_loss_is_differentiable():
    def loss(rate: ArrayLike) -> jax.Array:
        return solve(PoissonBatches(rate, FIVE), LONG, 20, 5).packet_loss

    with jax.enable_x64(True):
        slope = float(jax.grad(loss)(0.008))
        difference = float(loss(0.008 + 1e-6) - loss(0.008 - 1e-6)) / 2e-6
    assert slope == pytest.approx(difference, rel=1e-7)


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="limit"):
        solve(PoissonBatches(0.1), LONG, 20, 0)
    with pytest.raises(ValueError, match="vacations must give no probability to zero"):
        solve(PoissonBatches(0.1), [1.0], 20, 5)
    with pytest.raises(ValueError, match="vacations must be one law or"):
        solve(PoissonBatches(0.1), LONG_AND_POLL, 20, 4)
