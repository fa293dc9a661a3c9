"""Polling with infinite buffers: known values, exact special cases, the conservation law, gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.queueing.polling.conservation import conservation_law
from btqueue.queueing.polling.model import polling_model
from btqueue.queueing.polling.polling import solve_polling


def three_queues(discipline, **changes):
    """Services: constant 2, exponential 3, constant 2; walks exponential 1, 2 and 1/2."""
    settings = {
        "arrival_rate": [0.05, 0.08, 0.1],
        "service_mean": [2.0, 3.0, 2.0],
        "service_second": [4.0, 18.0, 4.0],
        "switch_mean": [1.0, 2.0, 0.5],
        "switch_second": [2.0, 8.0, 0.5],
        "limit": 1,
    }
    return polling_model(**{**settings, **changes}, discipline=discipline)


def equal_queues(queues, load, service, walk, scv, discipline):
    return polling_model(
        arrival_rate=np.full(queues, load / queues / service),
        service_mean=service,
        service_second=(1 + scv) * service**2,
        switch_mean=walk,
        switch_second=(1 + scv) * walk**2,
        discipline=discipline,
    )


@pytest.mark.parametrize(
    ("discipline", "limit", "total"),
    [("exhaustive", 1, 3.24739), (("gated", "exhaustive", "limited"), 1, 3.62783)],
)
def test_right_side_of_the_conservation_law(discipline, limit, total):
    law = conservation_law(three_queues(discipline, limit=limit), np.zeros(3))
    assert float(law.total) == pytest.approx(total, abs=5e-6)


@pytest.mark.parametrize(
    ("discipline", "waits"),
    [
        ("exhaustive", [7.62352907615826, 6.341739155791728, 6.5759745619273176]),
        ("gated", [7.5614501665997285, 8.566410088812905, 8.03088715795073]),
    ],
)
def test_unequal_queues_as_line_computes_them(discipline, waits):
    """LINE 3.0.8, MVA: all services and walks exponential."""
    model = three_queues(discipline, service_second=[8.0, 18.0, 8.0])
    np.testing.assert_allclose(solve_polling(model).mean_wait, waits, rtol=1e-10)


@pytest.mark.parametrize(
    ("discipline", "wait"),
    [("exhaustive", 36.0), ("gated", 122 / 3)],
)
def test_equal_queues_without_a_limit(discipline, wait):
    """Takagi (1986): 7 exponential queues, service 6, walk 2, load .7."""
    solution = solve_polling(equal_queues(7, 0.7, 6, 2, 1.0, discipline))
    np.testing.assert_allclose(solution.mean_wait, wait, rtol=1e-12)


@settings(max_examples=15)
@given(
    rates=st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3),
    load=st.floats(0.05, 0.98),
    services=st.lists(st.tuples(st.floats(0.5, 8), st.floats(0, 3)), min_size=3, max_size=3),
    walks=st.lists(st.tuples(st.floats(0.1, 9), st.floats(0, 3)), min_size=3, max_size=3),
    disciplines=st.lists(st.sampled_from(["exhaustive", "gated"]), min_size=3, max_size=3),
)
def test_exact_waits_obey_the_conservation_law_whatever_the_parameters(
    rates, load, services, walks, disciplines
):
    service, walk = np.array(services), np.array(walks)
    model = polling_model(
        arrival_rate=np.array(rates) * load / (np.array(rates) @ service[:, 0]),
        service_mean=service[:, 0],
        service_second=service[:, 0] ** 2 * (1 + service[:, 1]),
        switch_mean=walk[:, 0],
        switch_second=walk[:, 0] ** 2 * (1 + walk[:, 1]),
        discipline=disciplines,
    )
    solution = solve_polling(model)
    assert abs(float(solution.conservation_residual)) < 1e-10
    assert (np.asarray(solution.mean_wait) > 0).all()
    np.testing.assert_allclose(
        solution.mean_queue, model.arrival_rate * np.asarray(solution.mean_sojourn), rtol=1e-14
    )


def test_limited_queues_are_refused_outside_and_have_no_number_inside():
    limited = three_queues(("exhaustive", "limited", "gated"))
    with pytest.raises(ValueError, match="limited service has no exact solution"):
        solve_polling(limited)
    with jax.enable_x64(True):
        batch = jax.tree.map(lambda *each: jnp.stack(each), limited, three_queues("gated"))
        waits = np.asarray(jax.vmap(lambda model: solve_polling(model).mean_wait)(batch))
    assert np.isnan(waits[0]).all() and np.isfinite(waits[1]).all()


def test_a_batch_marks_what_is_unstable():
    stable, unstable = three_queues("gated"), three_queues("gated", arrival_rate=[0.1, 0.2, 0.2])
    with jax.enable_x64(True):
        batch = jax.tree.map(lambda *each: jnp.stack(each), stable, unstable)
        solutions = jax.vmap(solve_polling)(batch)
    assert list(solutions.stable) == [True, False]
    np.testing.assert_allclose(solutions.mean_wait[0], solve_polling(stable).mean_wait, rtol=1e-11)
    assert np.isposinf(solutions.mean_wait[1]).all() and np.isposinf(solutions.moments.cycle_mean[1]).all()
    with pytest.raises(ValueError, match="unstable: the load must be below 1"):
        solve_polling(unstable)


def test_cycles_of_one_queue_are_those_of_a_branching_process():
    """Gated, one queue: ``C' = V + sum of the services of those that came in C`` (Takagi 1986)."""
    rate, service, vacation, scv = 0.06, 5.0, 9.0, 0.5
    model = equal_queues(1, rate * service, service, vacation, scv, "gated")
    load = rate * service
    cycle = vacation / (1 - load)
    variance = (scv * vacation**2 + rate * cycle * (1 + scv) * service**2) / (1 - load**2)
    moments = solve_polling(model).moments
    assert float(moments.cycle_mean[0]) == pytest.approx(cycle, rel=1e-13)
    assert float(moments.cycle_variance[0]) == pytest.approx(variance, rel=1e-12)
    assert float(moments.intervisit_variance[0]) == pytest.approx(scv * vacation**2, rel=1e-12)


def test_gradients_of_exact_waits_are_those_of_differences():
    with jax.enable_x64(True):
        model = jax.tree.map(jnp.asarray, three_queues(("exhaustive", "gated", "exhaustive")))

        def cost(rates):
            changed = eqx.tree_at(lambda m: m.arrival_rate, model, rates)
            return solve_polling(changed).mean_wait @ jnp.array([1.0, 2.0, 3.0])

        slopes, rates = jax.grad(cost)(model.arrival_rate), model.arrival_rate
        for queue in range(3):
            step = 1e-4 * rates[queue]
            up, down = (cost(rates.at[queue].add(sign * step)) for sign in (1, -1))
            assert float(slopes[queue]) == pytest.approx(float((up - down) / (2 * step)), rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival_rate": [0.1, 0.0, 0.1]}, "arrival_rate must be positive"),
        ({"service_second": [4.0, 8.0, 4.0]}, "service_second must be at least"),
        ({"switch_mean": 0.0, "switch_second": 0.0}, "switch_mean must be positive"),
        ({"limit": 1.5}, "limit must be a whole number"),
        ({"limit": [1, 2]}, "limit needs one value"),
    ],
)
def test_wrong_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        three_queues("limited", **changes)
