"""Polling with finite buffers: the small chain against other exact results, the decomposition against it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.queueing.laws import lattice
from btqueue.queueing.polling.finite import solve_finite_polling
from btqueue.queueing.polling.model import polling_model
from btqueue.queueing.polling.polling import solve_polling
from btqueue.queueing.polling.small_chain import small_polling_chain
from btqueue.queueing.traffic.arrivals import PoissonBatches
from btqueue.queueing.vacations.vacations import limited_service_queue

SERVICES = (lattice.point(3), lattice.from_points({2: 0.5, 6: 0.5}))
SWITCHES = (lattice.point(1), lattice.uniform(1, 3))
SIZES = {"max_capacity": 32, "max_limit": 8}
"""One compiled program of the decomposition for each number of queues."""


def chain(discipline, limit: int | tuple[int, int] = 1, rates=(0.15, 0.1), capacity=(6, 4)):
    return small_polling_chain(
        arrival_rate=rates,
        service_law=SERVICES,
        switch_law=SWITCHES,
        capacity=capacity,
        discipline=discipline,
        limit=limit,
    )


def decomposition(discipline, limit=1, rates=(0.15, 0.1), capacity=(6, 4)):
    model = polling_model(
        arrival_rate=rates, service_law=SERVICES, switch_law=SWITCHES, discipline=discipline, limit=limit
    )
    return solve_finite_polling(model, capacity, **SIZES)


MIXTURES = [
    (("exhaustive", "gated"), (1, 1)),
    (("limited", "limited"), (2, 3)),
    (("gated", "limited"), (1, 1)),
]


@pytest.mark.parametrize(
    ("mixture", "cycle", "waits", "blocking"),
    [
        (MIXTURES[0], 14.5433, (7.1534, 15.7263), (0.01116, 0.12815)),
        (MIXTURES[1], 12.7428, (23.7779, 8.2526), (0.15518, 0.03900)),
        (MIXTURES[2], 11.5895, (9.8752, 29.4750), (0.01693, 0.25309)),
    ],
)
def test_two_small_queues(mixture, cycle, waits, blocking):
    """Simulated (2e7 slots): blocking .0113 .1287, .1556 .0390, .0170 .2536; cycles 14.55, 12.75, 11.60."""
    solution = chain(*mixture)
    assert float(solution.mean_cycle) == pytest.approx(cycle, abs=1e-4)
    np.testing.assert_allclose(solution.mean_wait, waits, atol=1e-4)
    np.testing.assert_allclose(solution.blocking, blocking, atol=1e-5)
    # found by two routes: share of time that a queue is full, and customers that come out
    np.testing.assert_allclose(1 - solution.throughput / np.array([0.15, 0.1]), solution.blocking, rtol=1e-9)
    np.testing.assert_allclose(np.sum(solution.occupancy, axis=1), 1.0, atol=1e-12)
    walks = sum(float(lattice.mean(law)) for law in SWITCHES)
    work = sum(
        float(n) * float(lattice.mean(law)) for n, law in zip(solution.mean_served, SERVICES, strict=True)
    )
    assert float(solution.mean_cycle) == pytest.approx(walks + work, rel=1e-12)


@pytest.mark.parametrize("limit", [1, 3])
def test_one_queue_is_the_vacation_queue(limit):
    solution = small_polling_chain(
        arrival_rate=[0.12],
        service_law=[SERVICES[1]],
        switch_law=[lattice.uniform(2, 9)],
        capacity=[9],
        discipline="limited",
        limit=limit,
    )
    known = limited_service_queue(
        arrivals=PoissonBatches(0.12),
        service=SERVICES[1],
        vacations=lattice.uniform(2, 9),
        capacity=9,
        limit=limit,
    )
    assert float(solution.mean_wait[0]) == pytest.approx(float(known.mean_wait), rel=1e-9)
    assert float(solution.blocking[0]) == pytest.approx(float(known.packet_loss), rel=1e-9)
    np.testing.assert_allclose(solution.occupancy[0], known.occupancy, atol=1e-12)


def test_large_buffers_are_infinite_ones():
    rates = (0.06, 0.04)
    small = chain(("exhaustive", "gated"), rates=rates, capacity=(16, 12))
    model = polling_model(
        arrival_rate=rates, service_law=SERVICES, switch_law=SWITCHES, discipline=("exhaustive", "gated")
    )
    assert float(np.max(small.blocking)) < 1e-7
    np.testing.assert_allclose(small.mean_wait, solve_polling(model).mean_wait, rtol=1e-5)


@pytest.mark.parametrize("limit", [1, 5])
def test_decomposition_of_one_queue_is_exact(limit):
    model = polling_model(
        arrival_rate=[0.08],
        service_mean=6,
        service_second=36,
        switch_mean=30,
        switch_second=900,
        discipline="limited",
        limit=limit,
    )
    solution = solve_finite_polling(model, 20, **SIZES)
    known = limited_service_queue(
        arrivals=PoissonBatches(0.08),
        service=lattice.point(6),
        vacations=lattice.point(30),
        capacity=20,
        limit=limit,
    )
    assert float(solution.mean_wait[0]) == pytest.approx(float(known.mean_wait), rel=1e-8)
    assert float(solution.blocking[0]) == pytest.approx(float(known.packet_loss), rel=1e-8)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_decomposition_against_the_exact_chain(mixture):
    """Within the published worst cases of the table."""
    exact, near = chain(*mixture), decomposition(*mixture)
    np.testing.assert_allclose(near.mean_wait, exact.mean_wait, rtol=0.15)
    np.testing.assert_allclose(near.blocking, exact.blocking, rtol=0.2)
    assert float(near.mean_cycle) == pytest.approx(float(exact.mean_cycle), rel=0.03)


@settings(max_examples=8)
@given(
    rates=st.tuples(st.floats(0.01, 0.4), st.floats(0.01, 0.4)),
    capacity=st.tuples(st.integers(1, 32), st.integers(1, 32)),
    limit=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    disciplines=st.tuples(*[st.sampled_from(["exhaustive", "gated", "limited"])] * 2),
)
def test_decomposition_always_has_an_answer(rates, capacity, limit, disciplines):
    solution = decomposition(disciplines, limit, rates, capacity)
    np.testing.assert_allclose(np.sum(solution.occupancy, axis=1), 1.0, atol=1e-10)
    blocking = np.asarray(solution.blocking)
    assert ((blocking >= 0) & (blocking < 1)).all()
    np.testing.assert_allclose(1 - solution.throughput / np.array(rates), blocking, atol=1e-6)
    assert (np.asarray(solution.mean_wait) > 0).all()


def test_gradients_of_the_exact_chain_are_those_of_differences():
    def cost(rates):
        solution = chain(("exhaustive", "limited"), (1, 2), rates, (3, 2))
        return solution.blocking @ jnp.array([1.0, 2.0]) + solution.mean_wait[0]

    with jax.enable_x64(True):
        rates = jnp.array([0.15, 0.1])
        slopes = jax.grad(cost)(rates)
        for queue in range(2):
            up, down = (cost(rates.at[queue].add(sign * 1e-5)) for sign in (1, -1))
            assert float(slopes[queue]) == pytest.approx(float(up - down) / 2e-5, rel=1e-6)


@pytest.mark.long
def test_gradients_are_those_of_differences():
    """Of the blocking, through the fixed point; central differences of a converged solver."""
    with jax.enable_x64(True):
        model = jax.tree.map(
            jnp.asarray,
            polling_model(
                arrival_rate=[0.1, 0.12],
                service_mean=[3, 4],
                service_second=[11, 20],
                switch_mean=[1, 2],
                switch_second=[2, 5],
                discipline=("limited", "gated"),
                limit=2,
            ),
        )
        names = ("arrival_rate", "service_mean", "service_second", "switch_mean", "switch_second")

        def cost(values):
            changed = eqx.tree_at(lambda m: [getattr(m, n) for n in names], model, values)
            solution = solve_finite_polling(changed, [4, 3], tolerance=1e-13, **SIZES)
            return solution.blocking @ jnp.array([1.0, 2.0])

        point = [getattr(model, name) for name in names]
        slopes = jax.jit(jax.grad(cost))(point)
        for place in range(len(names)):
            step = 1e-4 * point[place]
            up, down = (
                cost([p + sign * step * (i == place) for i, p in enumerate(point)]) for sign in (1, -1)
            )
            assert float(slopes[place] @ step) == pytest.approx(float(up - down) / 2, rel=1e-6), names[place]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity": (0, 4)}, "capacity"),
        ({"capacity": (40, 40)}, "joint states"),
        ({"discipline": ("limited", "random")}, "discipline must be from"),
    ],
)
def test_wrong_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        chain(**{"discipline": "limited", **changes})
