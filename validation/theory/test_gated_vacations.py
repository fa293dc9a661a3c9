"""Gated service, and infinite buffers against large finite ones, for every discipline."""

from typing import Any

import jax
import numpy as np
import pytest

from btqueue.queueing import closed_forms
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches
from btqueue.queueing.vacations.queue import vacation_queue
from btqueue.queueing.vacations.roots import unlimited_vacation_queue
from btqueue.queueing.vacations.unlimited import unlimited_exhaustive_queue, unlimited_gated_queue
from btqueue.queueing.vacations.vacations import (
    exhaustive_service_queue,
    gated_service_queue,
    limited_service_queue,
)

SIX = lattice.point(6)
MIXED = lattice.from_points({3: 0.2, 5: 0.5, 9: 0.3})
GEOMETRIC = lattice.geometric(12.0)
ONE = np.pad(lattice.point(1), (0, 4))
AWAY = lattice.uniform(10, 50)
AWAY_BY_SERVED = np.stack([np.pad(AWAY, (j, 5 - j)) for j in range(6)])
BATCHES = PoissonBatches(0.02, [0.0, 0.5, 0.3, 0.2])


def test_gated_service_meets_its_closed_form():
    queue = {"arrivals": PoissonBatches(0.1), "service": SIX, "vacations": GEOMETRIC}
    for solution in (unlimited_gated_queue(**queue, length=256), gated_service_queue(**queue, capacity=200)):
        assert float(solution.mean_wait) == pytest.approx(34.0, abs=5e-7)
        assert float(solution.mean_cycle) == pytest.approx(30.0, rel=1e-9)


def test_exhaustive_service_meets_its_closed_form():
    single = unlimited_exhaustive_queue(
        arrivals=PoissonBatches(0.1, ONE), service=SIX, vacations=GEOMETRIC, length=256
    )
    fives = unlimited_exhaustive_queue(
        arrivals=PoissonBatches(0.012, lattice.point(5)), service=SIX, vacations=GEOMETRIC, length=256
    )
    assert float(single.mean_wait) == pytest.approx(16.0, abs=1e-9)
    assert float(fives.mean_wait) == pytest.approx(31.9375, abs=1e-9)


@pytest.mark.parametrize(
    ("limit", "wait"),
    [
        (3, 7.754771),
        *(
            pytest.param(*known, marks=pytest.mark.long)
            for known in ((1, 37.0), (2, 10.477567), (5, 6.588921), (10, 6.297837))
        ),
    ],
)
def test_limited_service_with_an_infinite_buffer(limit: int, wait: float):
    solution = unlimited_vacation_queue(
        arrivals=PoissonBatches(0.05), service=SIX, vacations=lattice.point(10), limit=limit, length=64
    )
    assert float(solution.mean_wait) == pytest.approx(wait, abs=5e-7)
    assert bool(solution.converged)


CASES = {
    "exhaustive": (unlimited_exhaustive_queue, exhaustive_service_queue, AWAY, {}),
    "gated": (unlimited_gated_queue, gated_service_queue, AWAY, {}),
    "limited": (unlimited_vacation_queue, limited_service_queue, AWAY_BY_SERVED, {"limit": 5}),
    "gated-limited": (
        lambda **queue: unlimited_vacation_queue(**queue, gated=True),
        gated_service_queue,
        AWAY_BY_SERVED,
        {"limit": 5},
    ),
}


ALSO = [pytest.param(name, marks=pytest.mark.long) for name in ("gated", "limited")]


@pytest.mark.parametrize("name", ["exhaustive", "gated-limited", *ALSO])
def test_infinite_buffer_is_the_limit_of_finite_ones(name: str):
    infinite, finite, vacations, options = CASES[name]
    queue = {"arrivals": BATCHES, "service": MIXED, "vacations": vacations, **options}
    limit, chain = infinite(**queue, length=128), finite(**queue, capacity=127)
    for law in ("visit_start", "occupancy", "departure"):
        table, tail = getattr(limit, law)
        assert float(table.sum() + tail) == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(table, getattr(chain, law), atol=1e-12)
    for mean in ("mean_cycle", "mean_served", "mean_queue", "mean_wait"):
        assert float(getattr(limit, mean)) == pytest.approx(float(getattr(chain, mean)), rel=1e-9)
    length = min(len(limit.served.probabilities), len(chain.served))
    np.testing.assert_allclose(limit.served.probabilities[:length], chain.served[:length], atol=1e-12)
    np.testing.assert_allclose(limit.intervisit, chain.intervisit, atol=1e-12)
    # rate in is rate out
    assert float(limit.mean_served) == pytest.approx(0.02 * 1.7 * float(limit.mean_cycle), rel=1e-10)


def test_single_departures_leave_what_poisson_arrivals_find():
    solution = unlimited_vacation_queue(
        arrivals=PoissonBatches(0.05), service=MIXED, vacations=AWAY, limit=3, length=256
    )
    np.testing.assert_allclose(solution.departure.probabilities, solution.occupancy.probabilities, atol=1e-12)


def test_one_limited_and_gated_of_one_are_the_same():
    queue = {"arrivals": BATCHES, "service": MIXED, "vacations": AWAY, "capacity": 15, "limit": 1}
    gated, limited = gated_service_queue(**queue), limited_service_queue(**queue)
    np.testing.assert_allclose(gated.occupancy, limited.occupancy, atol=1e-14)


def test_unstable_queues_are_named():
    queue: dict[str, Any] = {"service": SIX, "vacations": AWAY}
    for solve in (unlimited_exhaustive_queue, unlimited_gated_queue):
        with pytest.raises(ValueError, match="unstable"):
            solve(arrivals=PoissonBatches(0.2), **queue)
    with pytest.raises(ValueError, match="unstable"):
        unlimited_vacation_queue(arrivals=PoissonBatches(0.1), limit=5, **queue)

    def inside(rate):
        solution = unlimited_exhaustive_queue(arrivals=PoissonBatches(rate), length=64, **queue)
        return solution.stable, solution.mean_wait

    with jax.enable_x64(True):
        stable, wait = jax.vmap(inside)(np.array([0.1, 0.2]))
    assert stable.tolist() == [True, False]
    expected = closed_forms.exhaustive_wait(0.1, 6, 36, 30, 30**2 + (41**2 - 1) / 12)
    assert float(wait[0]) == pytest.approx(expected, rel=1e-9)
    assert np.isinf(wait[1])


def test_one_door():
    queue = {"arrivals": BernoulliBatches(0.05), "service": SIX, "vacations": lattice.uniform(10, 20)}
    finite = vacation_queue(**queue, discipline="limited", limit=2, capacity=30)
    infinite = vacation_queue(**queue, discipline="limited", limit=2)
    assert float(finite.mean_wait) == pytest.approx(18.745966, abs=5e-7)
    assert float(infinite.mean_wait) == pytest.approx(float(finite.mean_wait), abs=1e-5)
    unknown: Any = "lazy"
    with pytest.raises(ValueError, match="discipline"):
        vacation_queue(**queue, discipline=unknown)
    with pytest.raises(ValueError, match="limit"):
        vacation_queue(**queue, discipline="limited")
    with pytest.raises(ValueError, match="limit"):
        vacation_queue(**queue, discipline="exhaustive", limit=3)
