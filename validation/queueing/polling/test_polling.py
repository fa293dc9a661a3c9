"""Polling with infinite buffers: known values, exact special cases, the conservation law, limits, gradients.

Limited service of three queues is one compiled program here: limits are padded to 8.
"""

import importlib
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.queueing import polling_model, solve_polling
from btqueue.queueing.polling.conservation import conservation_law
from btqueue.study.closed_forms import closed_forms

MIXED = ["limited", "gated", "limited"]


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


def equal_queues(queues, load, service, walk, scv, discipline, **changes):
    return polling_model(
        arrival_rate=np.full(queues, load / queues / service),
        service_mean=service,
        service_second=(1 + scv) * service**2,
        switch_mean=walk,
        switch_second=(1 + scv) * walk**2,
        discipline=discipline,
        **changes,
    )


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


@pytest.mark.parametrize(("discipline", "wait"), [("exhaustive", 36.0), ("gated", 122 / 3)])
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


def test_importing_the_package_imports_no_jax():
    program = "import sys, btqueue.queueing; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    with pytest.raises(AttributeError, match="no attribute 'solve_poling'"):
        importlib.import_module("btqueue.queueing").__getattr__("solve_poling")


@pytest.mark.parametrize(("load", "wait", "within"), [(0.7, 28.30, 0.003), (0.9, 134.45, 0.01)])
def test_seven_equal_queues_of_limit_5(load, wait, within):
    """Constant services of 6 and walks of 2 slots: long simulations say 28.30 and 134.45."""
    solution = solve_polling(equal_queues(7, load, 6, 2, 0, "limited", limit=5), max_limit=8)
    np.testing.assert_allclose(solution.mean_wait, wait, rtol=within)


@pytest.mark.parametrize(("queues", "load", "service", "wait"), [(7, 0.7, 6, 183.0), (3, 0.6, 5, None)])
def test_equal_queues_of_limit_1_are_exact(queues, load, service, wait):
    """The conservation law has one unknown; 183 is of exponential laws (182.4 +- 3.3 simulated)."""
    wait_of = closed_forms()["wait, one-limited cycle"].function("lambda", "N", "b", "b_2", "w", "w_2")
    exact = wait_of(load / queues / service, queues, service, 2 * service**2, 2, 8)
    assert wait is None or exact == pytest.approx(wait, rel=1e-12)
    model = equal_queues(queues, load, service, 2, 1.0, "limited", limit=1)
    np.testing.assert_allclose(solve_polling(model, max_limit=8).mean_wait, exact, rtol=1e-10)


@pytest.mark.parametrize(("mean", "second"), [(2.0, 4.0), (2.5, 6.5), (2.0, 6.0), (1.5, 5.0), (3.4, 12.5)])
def test_batches_of_a_limited_queue_keep_the_law_that_one_queue_solves(mean, second):
    """One queue of limit 1 is solved by the law alone: the roots have to find the same, for any batches."""
    model = equal_queues(1, 0.12, 6, 12, 0.5, "limited", limit=1, batch_mean=mean, batch_second=second)
    solution = solve_polling(model, max_limit=16)
    assert abs(float(solution.conservation_residual)) < 1e-9
    law = conservation_law(model, np.zeros(1))
    assert float(solution.mean_wait[0]) == pytest.approx(float(law.total / law.weights[0]), rel=1e-9)


def test_batches_of_a_limited_queue_against_a_long_chain():
    """Limit 3, constant batches of 2, service and vacation of a slot each: the queue at visits is a chain."""
    rate, service, vacation, limit, batch = 0.3, 1.0, 1.0, 3, 2
    size, steps = 400, np.arange(120)
    chances = np.exp(-rate / batch) * np.cumprod(np.r_[1.0, rate / batch / steps[1:]])
    come = np.zeros(size)
    come[: 2 * 120 : 2] = chances[: size // 2]
    kernel = np.zeros((size, size))
    served_of = np.zeros((size, limit + 1))
    for found in range(size):
        states = {0: np.eye(size)[found]}
        for served in range(limit):
            going = states[served].copy()
            going[0] = 0.0
            served_of[found, served] = states[served][0]
            kernel[found] += np.convolve(np.eye(size)[0] * states[served][0], come)[:size]
            states[served + 1] = np.convolve(np.r_[going[1:], 0.0], come)[:size]
        served_of[found, limit] = states[limit].sum()
        kernel[found] += np.convolve(states[limit], come)[:size]
    kernel[:, -1] += 1.0 - kernel.sum(axis=1)
    law = np.full(size, 1.0 / size)
    for _ in range(4000):
        law = law @ kernel
    served = law @ served_of
    model = polling_model(
        arrival_rate=[rate], service_mean=service, service_second=1, switch_mean=vacation, switch_second=1,
        discipline="limited", limit=limit, batch_mean=batch, batch_second=batch**2,
    )  # fmt: skip
    solution = solve_polling(model, max_limit=16)
    pairs = served @ (np.arange(limit + 1) * (np.arange(limit + 1) - 1.0))
    assert float(solution.served_pairs[0]) == pytest.approx(pairs, rel=1e-8)
    law_of_waits = conservation_law(model, np.array([pairs]))
    wait = float(law_of_waits.total / law_of_waits.weights[0])
    assert float(solution.mean_wait[0]) == pytest.approx(wait, rel=1e-8)
    assert abs(float(solution.conservation_residual)) < 1e-8


def test_a_batch_marks_what_is_unstable():
    """In a batch all go through the program for limited queues, exact without such; outside it refuses."""
    stable, unstable = three_queues("gated"), three_queues("gated", arrival_rate=[0.1, 0.2, 0.2])
    full, limited = three_queues(MIXED, limit=1, arrival_rate=[0.2, 0.05, 0.05]), three_queues(MIXED, limit=8)
    with jax.enable_x64(True):
        batch = jax.tree.map(lambda *each: jnp.stack(each), stable, unstable, full, limited)
        with pytest.raises(ValueError, match="max_limit is needed"):
            jax.vmap(solve_polling)(batch)
        solutions = jax.vmap(lambda model: solve_polling(model, max_limit=8))(batch)
    assert list(solutions.stable) == [True, False, False, True] and solutions.converged.all()
    np.testing.assert_allclose(solutions.mean_wait[0], solve_polling(stable).mean_wait, rtol=1e-11)
    alone = solve_polling(limited, max_limit=8)
    np.testing.assert_allclose(solutions.mean_wait[3], alone.mean_wait, rtol=1e-9)
    assert np.isposinf(solutions.mean_wait[1:3]).all()
    assert np.isposinf(solutions.moments.cycle_mean[1:3]).all()
    for one in (unstable, full):
        with pytest.raises(ValueError, match="unstable"):
            solve_polling(one)


def test_a_fixed_point_that_is_not_found_is_said():
    two = equal_queues(2, 0.6, 5, 2, 1.0, "limited", limit=2)
    with pytest.raises(ArithmeticError, match="no fixed point of the limited queues after 2 iterations"):
        solve_polling(two, max_iterations=2)


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
        ({"arrival_rate": [0.1, -0.1, 0.1]}, "arrival_rate must be finite and not negative"),
        ({"service_mean": [2, 0, 2]}, "service_mean must be positive"),
        ({"service_second": [4.0, 8.0, 4.0]}, "service_second must be at least"),
        ({"batch_mean": 0.5}, "batch_mean must be at least 1"),
        ({"batch_mean": 2.0}, "batch_second must be at least"),
        ({"batch_mean": 2.5, "batch_second": 6.4}, "batch_second must be at least"),
        ({"batch_second": 2.0}, "and 1 where batch_mean is 1"),
        ({"limit": 1.5}, "limit must be a whole number"),
        ({"limit": [1, 2]}, "limit needs one value"),
    ],
)
def test_wrong_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        three_queues("limited", **changes)
