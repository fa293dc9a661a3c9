"""Waiting times of vacation queues: known values, Little's law, its distributional form, and a simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches
from btqueue.queueing.vacations.cycle import cycle_times
from btqueue.queueing.vacations.roots import unlimited_vacation_queue
from btqueue.queueing.vacations.sojourn import waiting_time
from btqueue.queueing.vacations.unlimited import (
    UnlimitedVacationQueue,
    unlimited_exhaustive_queue,
    unlimited_gated_queue,
)
from btqueue.queueing.vacations.vacations import (
    exhaustive_service_queue,
    gated_service_queue,
    limited_service_queue,
)

from .slot_simulation import simulate

SIX = lattice.point(6)
MIXED = lattice.from_points({3: 0.2, 5: 0.5, 9: 0.3})
AWAY = lattice.uniform(5, 25)
AWAY_BY_SERVED = np.stack([np.pad(AWAY, (2 * j, 6 - 2 * j)) for j in range(4)])  # two slots more for each
BATCHES = [0.0, 0.4, 0.3, 0.3]
QUEUE = {"arrivals": PoissonBatches(0.04, BATCHES), "service": MIXED, "capacity": 12}


def solve(name: str):
    """One of the finite queues."""
    if name == "limited":
        return limited_service_queue(**QUEUE, vacations=AWAY_BY_SERVED, limit=3)
    if name == "one-limited":
        return limited_service_queue(**QUEUE, vacations=AWAY, limit=1, max_limit=3)
    if name == "gated":
        return gated_service_queue(**QUEUE, vacations=AWAY)
    if name == "gated-limited":
        return gated_service_queue(**QUEUE, vacations=AWAY_BY_SERVED, limit=3)
    return exhaustive_service_queue(**QUEUE, vacations=AWAY_BY_SERVED, longest_listed=150)


ALSO = [pytest.param(name, marks=pytest.mark.long) for name in ("one-limited", "gated", "exhaustive")]
NAMES = ["limited", "gated-limited", *ALSO]


def test_known_tail_of_the_wait():
    queue = limited_service_queue(
        arrivals=BernoulliBatches(0.05), service=SIX, vacations=lattice.uniform(10, 20), capacity=30, limit=2
    )
    times = waiting_time(queue.epochs, horizon=600)
    assert float(times.wait_exceeds(60)) == pytest.approx(0.034257, abs=5e-7)
    assert float(times.wait_exceeds(120)) == pytest.approx(0.001145, abs=5e-7)
    assert float(lattice.mean(times.wait.probabilities)) == pytest.approx(18.745966, abs=5e-7)


@pytest.mark.parametrize("name", NAMES)
def test_laws_of_time_agree_with_the_chain(name: str):
    """Little's law, flow balance, and the cycle and the visit as laws against their means."""
    queue = solve(name)
    times = waiting_time(queue.epochs, horizon=2048)
    assert float(times.accepted) == pytest.approx(1 - float(queue.packet_loss), abs=1e-12)
    for law in (times.wait, times.sojourn):
        assert float(law.probabilities.sum() + law.tail) == pytest.approx(1.0, abs=1e-12)
        assert float(law.tail) < 1e-11
    mean_sojourn = float(lattice.mean(times.sojourn.probabilities) + times.mean_rest_of_slot)
    assert mean_sojourn == pytest.approx(float(queue.mean_sojourn), rel=1e-9)
    assert float(queue.throughput) == pytest.approx(0.04 * 1.9 * float(times.accepted), rel=1e-11)

    lengths = cycle_times(queue, horizon=1024)
    assert float(lattice.mean(lengths.cycle.probabilities)) == pytest.approx(
        float(queue.mean_cycle), rel=1e-6
    )
    visit = float(queue.mean_cycle - lattice.mean(queue.intervisit))
    assert float(lattice.mean(lengths.visit.probabilities)) == pytest.approx(visit, rel=1e-6)
    assert float(lengths.visit.probabilities[0]) == pytest.approx(float(queue.served[0]), abs=1e-13)


def test_a_short_horizon_cuts_and_does_not_fold():
    epochs = solve("gated-limited").epochs
    long, short = waiting_time(epochs, horizon=2048), waiting_time(epochs, horizon=64)
    np.testing.assert_allclose(short.wait.probabilities, long.wait.probabilities[:64], atol=1e-14)
    assert float(short.wait.tail) == pytest.approx(float(long.wait.probabilities[64:].sum()), abs=1e-12)
    with pytest.raises(ValueError, match="horizon"):
        short.wait_exceeds(64)


UNLIMITED = {"arrivals": BernoulliBatches(0.06), "service": MIXED, "length": 256}


UNLIMITED_QUEUES = {
    "limited": lambda: unlimited_vacation_queue(**UNLIMITED, vacations=AWAY_BY_SERVED, limit=3),
    "gated-limited": lambda: unlimited_vacation_queue(
        **UNLIMITED, vacations=AWAY_BY_SERVED, limit=3, gated=True
    ),
    "gated": lambda: unlimited_gated_queue(**UNLIMITED, vacations=AWAY),
    "exhaustive": lambda: unlimited_exhaustive_queue(**UNLIMITED, vacations=AWAY),
}
REST = [pytest.param(name, marks=pytest.mark.long) for name in ("limited", "gated", "exhaustive")]


@pytest.mark.parametrize("name", ["gated-limited", *REST])
def test_distributional_form_of_littles_law(name: str):
    """A departing packet leaves behind those that came, one a slot at most, while it was there."""
    solution = UNLIMITED_QUEUES[name]()
    times = waiting_time(solution.epochs, horizon=4096)
    assert float(times.sojourn.tail) < 1e-10
    left = lattice.compound(times.sojourn.probabilities, [0.94, 0.06], 100).probabilities
    np.testing.assert_allclose(left, solution.departure.probabilities[:100], atol=1e-11)


@pytest.mark.parametrize(
    "name", ["limited", "gated-limited", pytest.param("exhaustive", marks=pytest.mark.long)]
)
def test_against_a_slot_simulation(name: str):
    """Four numbers in three queues within 4.5 standard errors: a false alarm in 1e-4 of all seeds."""
    queue = solve(name)
    times = waiting_time(queue.epochs, horizon=2048)
    seen = simulate(
        batch_rate=0.04,
        batch_size=BATCHES,
        service=MIXED,
        vacations=AWAY_BY_SERVED,
        capacity=12,
        limit=10**9 if name == "exhaustive" else 3,
        gated=name == "gated-limited",
        long=60,
        copies=3000,
        slots=4000,
        warm_up=1000,
        seed=20031105,
    )
    expected = {
        "packet_loss": queue.packet_loss,
        "wait": lattice.mean(times.wait.probabilities),
        "long_waits": times.wait_exceeds(60),
        "cycle": queue.mean_cycle,
    }
    for what, value in expected.items():
        estimate, error = getattr(seen, what)
        assert abs(estimate - float(value)) < 4.5 * error, (what, estimate, float(value), error)


LIGHT, HEAVY = lattice.from_points({2: 1.0, 9: 0.0}), lattice.from_points({2: 0.5, 9: 0.5})
SHORT, SPREAD = np.pad(lattice.point(10), (0, 15)), lattice.uniform(5, 25)


def of_inputs(discipline: str):
    """Loss or mean cycle, mean wait and a tail of the wait, by rate, service, vacation and batch size."""

    def answers(inputs):
        rate, heavy, spread, pairs = inputs
        one_or_two = jnp.stack([0.0 * pairs, 1 - pairs, pairs])
        queue = {
            "arrivals": PoissonBatches(rate, one_or_two),
            "service": (1 - heavy) * LIGHT + heavy * HEAVY,
            "vacations": (1 - spread) * SHORT + spread * SPREAD,
        }
        if discipline == "unlimited":
            solution = unlimited_vacation_queue(**queue, limit=3, length=64)
        elif discipline == "unlimited gated":
            solution = unlimited_gated_queue(**queue, length=64, factors=100)
        elif discipline == "gated":
            solution = gated_service_queue(**queue, capacity=8, limit=3)
        elif discipline == "exhaustive":
            solution = exhaustive_service_queue(**queue, capacity=8)
        else:
            solution = limited_service_queue(**queue, capacity=8, limit=3)
        tail = waiting_time(solution.epochs, horizon=128).wait_exceeds(30)
        infinite = isinstance(solution, UnlimitedVacationQueue)
        first = solution.mean_cycle if infinite else solution.packet_loss
        return jnp.stack([first, solution.mean_wait, tail])

    return answers


SLOW_TO_COMPILE = [
    pytest.param(name, marks=pytest.mark.long)
    for name in ("gated", "exhaustive", "unlimited", "unlimited gated")
]


@pytest.mark.parametrize("discipline", ["limited", *SLOW_TO_COMPILE])
def test_gradients(discipline: str):
    """Reverse mode against central differences of fourth order, step 1e-3: error below 1e-9 relative."""
    with jax.enable_x64(True):
        answers = jax.jit(of_inputs(discipline))
        point = jnp.array([0.04, 0.3, 0.4, 0.35])
        slopes = jax.jit(jax.jacrev(of_inputs(discipline)))(point)
        for which in range(4):
            step = 1e-3 * float(point[which])
            at = [answers(point.at[which].add(k * step)) for k in (-2, -1, 1, 2)]
            difference = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
            np.testing.assert_allclose(slopes[:, which], difference, rtol=1e-6, atol=1e-9)
