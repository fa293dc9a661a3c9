"""Polling with infinite buffers: known values, exact special cases, the conservation law, gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.queueing import closed_forms
from btqueue.queueing.laws import lattice
from btqueue.queueing.polling.branching import branching_polling
from btqueue.queueing.polling.conservation import (
    conservation_law,
    conservation_residual,
    symmetric_one_limited_wait,
)
from btqueue.queueing.polling.cycle_laws import cycle_laws
from btqueue.queueing.polling.limited_queue import limited_queue
from btqueue.queueing.polling.model import polling_model
from btqueue.queueing.polling.polling import EXACT, LIMITED, solve_polling

DISCIPLINES = ["limited", "gated", "limited"]
"""One compiled program serves the tests of limited service: three queues, limits padded to 8."""


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


def equal_queues(queues, load, limit, service=5.0, walk=2.0, scv=0.0, discipline="limited"):
    rate = load / queues / service
    return polling_model(
        arrival_rate=np.full(queues, rate),
        service_mean=service,
        service_second=(1 + scv) * service**2,
        switch_mean=walk,
        switch_second=(1 + scv) * walk**2,
        discipline=discipline,
        limit=limit,
    )


@pytest.mark.parametrize(
    ("discipline", "limit", "total"),
    [("exhaustive", 1, 3.24739), (("gated", "exhaustive", "limited"), 1, 3.62783)],
)
def test_right_side_of_the_conservation_law(discipline, limit, total):
    law = conservation_law(three_queues(discipline, limit=limit), np.zeros(3))
    assert float(law.total) == pytest.approx(total, abs=5e-6)


@pytest.mark.parametrize(
    ("queues", "rate", "wait"),
    [(4, 0.6 / 18.4, 7.804348), (14, 0.6 / 64.4, 20.304348), (8, 0.02, 20.363636)],
)
def test_round_robin_with_a_packet_or_an_empty_slot(queues, rate, wait):
    """Packets of 5 slots (.8) and 3: a walk of one slot and a service of the others."""
    mean, second = 0.8 * 4 + 0.2 * 2, 0.8 * 16 + 0.2 * 4
    assert float(symmetric_one_limited_wait(rate, mean, second, 1, 1, queues)) == pytest.approx(
        wait, abs=5e-7
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


@pytest.mark.parametrize(
    ("queues", "load", "limit", "simulated"),
    [(4, 0.5, 2, 11.05), (4, 0.8, 2, 112.95), (4, 0.8, 5, 29.66), (8, 0.8, 3, 67.37)],
)
@pytest.mark.long
def test_equal_limited_queues(queues, load, limit, simulated):
    """Constant services of 5 and walks of 2; with independent vacations these come out 11 to 38 % low."""
    solution = solve_polling(equal_queues(queues, load, limit))
    np.testing.assert_allclose(solution.mean_wait, simulated, rtol=0.04)


@pytest.mark.parametrize(
    ("discipline", "wait"),
    [("exhaustive", 36.0), ("gated", 122 / 3)],
)
def test_equal_queues_without_a_limit(discipline, wait):
    """Takagi (1986): 7 exponential queues, service 6, walk 2, load .7."""
    solution = solve_polling(equal_queues(7, 0.7, 1, 6, 2, 1.0, discipline))
    assert solution.method == EXACT
    np.testing.assert_allclose(solution.mean_wait, wait, rtol=1e-12)


GEOMETRIC_12 = (12.0, 2 * 12.0**2 - 12)


@pytest.mark.parametrize(("discipline", "wait"), [("exhaustive", 16.0), ("gated", 34.0)])
def test_one_queue_without_a_limit(discipline, wait):
    model = polling_model(
        arrival_rate=[0.1],
        service_mean=6,
        service_second=36,
        switch_law=lattice.geometric(12.0),
        discipline=discipline,
    )
    assert float(solve_polling(model).mean_wait[0]) == pytest.approx(wait, rel=1e-9)


def test_one_limited_queue():
    """Values of the vacation queue with constant service 6 and vacation 10; the limits in one batch."""
    limits = np.array([1.0, 2, 3, 5, 10])

    def wait(limit):
        model = polling_model(
            arrival_rate=[0.05],
            service_mean=6,
            service_second=36,
            switch_mean=10,
            switch_second=100,
            discipline="limited",
            limit=limit,
        )
        return solve_polling(model, max_limit=16).mean_wait[0]

    with jax.enable_x64(True):
        waits = jax.vmap(wait)(jnp.asarray(limits))
    np.testing.assert_allclose(waits, [37.0, 10.477567, 7.754771, 6.588921, 6.297837], atol=5e-7)


def test_two_point_laws_are_read_off_the_slots():
    law = lattice.from_points({2: 0.25, 6: 0.75})
    model = polling_model(arrival_rate=[0.05, 0.1], service_law=law, switch_law=[law, lattice.point(3)])
    np.testing.assert_allclose(model.service_mean, 5.0)
    np.testing.assert_allclose(model.service_second, 28.0)
    np.testing.assert_allclose(model.switch_mean, [5.0, 3.0])
    assert float(model.mean_cycle) == pytest.approx(8 / (1 - 0.75))


@pytest.mark.parametrize("discipline", [("exhaustive", "gated", "exhaustive"), "exhaustive", "gated"])
def test_exact_waits_obey_the_conservation_law(discipline):
    model = three_queues(discipline)
    waits, _ = branching_polling(model)
    assert float(conservation_residual(model, waits, np.zeros(3))) == pytest.approx(0, abs=1e-13)


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


def test_laws_of_cycles_have_the_moments_of_the_branching_process():
    services = [lattice.point(2), lattice.geometric(3.0), lattice.point(2)]
    switches = [lattice.uniform(1, 3), lattice.point(1), lattice.point(2)]
    disciplines = ("exhaustive", "gated", "exhaustive")
    parameters = {"arrival_rate": [0.05, 0.08, 0.1], "service_law": services, "switch_law": switches}
    laws = cycle_laws(**parameters, discipline=disciplines, points=1024)
    _, moments = branching_polling(polling_model(**parameters, discipline=disciplines))
    for law, mean, variance in (
        (laws.cycle, moments.cycle_mean, moments.cycle_variance),
        (laws.intervisit, moments.intervisit_mean, moments.intervisit_variance),
    ):
        np.testing.assert_allclose(np.sum(law, axis=1), 1.0, atol=1e-12)
        assert (np.asarray(law) > -1e-12).all()
        np.testing.assert_allclose(lattice.mean(law), mean, rtol=1e-9)
        np.testing.assert_allclose(lattice.second_moment(law) - lattice.mean(law) ** 2, variance, rtol=1e-7)
    # the shortest cycle: no customer anywhere in three walks of at least one slot each
    assert float(laws.cycle[0, :4].sum()) == pytest.approx(0.0, abs=1e-12)
    assert float(laws.cycle[0, 4]) > 0


def equal_three(load, limit, **changes):
    return equal_queues(3, load, limit, **changes)


@pytest.mark.parametrize("load", [0.1, 0.4, 0.6])
def test_equal_queues_of_limit_1_are_exact(load):
    model = equal_three(load, 1, scv=0.5)
    solution = solve_polling(model, max_limit=8)
    exact = symmetric_one_limited_wait(load / 15, 5, 37.5, 2, 6, 3)
    np.testing.assert_allclose(solution.mean_wait, exact, rtol=1e-9)
    assert solution.method == LIMITED


def test_the_case_that_other_programs_miss():
    """Seven exponential queues of limit 1: 183 slots (182.4 +- 3.3 simulated)."""
    assert float(symmetric_one_limited_wait(1 / 60, 6, 72, 2, 8, 7)) == pytest.approx(183.0, rel=1e-12)


def test_limits_out_of_reach_are_no_limits():
    """At load .05 a visit of 8 customers has a probability below 1e-9: exhaustive service."""
    parameters = {"arrival_rate": [0.01, 0.005, 0.008]}
    limited = solve_polling(three_queues("limited", limit=8, **parameters), max_limit=8)
    exhaustive = solve_polling(three_queues("exhaustive", **parameters))
    np.testing.assert_allclose(limited.mean_wait, exhaustive.mean_wait, rtol=2e-3)
    assert float(limited.served_pairs.max()) < 0.05


def test_a_batch_over_disciplines_marks_what_is_unstable():
    """In a batch all go through the program for limited queues, exact without such; outside it refuses."""
    mixed = three_queues(("exhaustive", "gated", "exhaustive"))
    unstable = three_queues(DISCIPLINES, arrival_rate=[0.1, 0.1, 0.2], limit=2)
    limited = three_queues(DISCIPLINES, limit=8)
    with jax.enable_x64(True):
        batch = jax.tree.map(lambda *each: jnp.stack(each), mixed, unstable, limited)
        solutions = jax.vmap(lambda model: solve_polling(model, max_limit=8))(batch)
    assert list(solutions.stable) == [True, False, True]
    np.testing.assert_allclose(solutions.mean_wait[0], solve_polling(mixed).mean_wait, rtol=1e-11)
    assert np.isposinf(solutions.mean_wait[1]).all()
    np.testing.assert_allclose(
        solutions.mean_wait[2], solve_polling(limited, max_limit=8).mean_wait, rtol=1e-9
    )
    with pytest.raises(ValueError, match="unstable"):
        solve_polling(unstable, max_limit=8)


def test_waits_grow_with_the_load_and_shrink_with_the_limit():
    waits = [
        np.asarray(solve_polling(equal_three(load, 3), max_limit=8).mean_wait) for load in (0.3, 0.6, 0.8)
    ]
    assert (waits[0] < waits[1]).all() and (waits[1] < waits[2]).all()
    by_limit = [
        np.asarray(solve_polling(equal_three(0.7, limit), max_limit=8).mean_wait) for limit in (2, 4, 8)
    ]
    assert (by_limit[0] > by_limit[1]).all() and (by_limit[1] > by_limit[2]).all()


def test_gradients_of_exact_waits_are_those_of_differences():
    with jax.enable_x64(True):
        model = jax.tree.map(jnp.asarray, three_queues(("exhaustive", "gated", "exhaustive")))

        def cost(rates):
            changed = eqx.tree_at(lambda m: m.arrival_rate, model, rates)
            return branching_polling(changed)[0] @ jnp.array([1.0, 2.0, 3.0])

        slopes, rates = jax.grad(cost)(model.arrival_rate), model.arrival_rate
        for queue in range(3):
            step = 1e-4 * rates[queue]
            up, down = (cost(rates.at[queue].add(sign * step)) for sign in (1, -1))
            assert float(slopes[queue]) == pytest.approx(float((up - down) / (2 * step)), rel=1e-6)


def test_gradients_of_one_limited_queue_are_those_of_differences():
    """Through the roots: rate, service mean and variance, means and variances of the vacations."""
    with jax.enable_x64(True):
        j = jnp.arange(5.0)
        point = (jnp.asarray(0.06), jnp.asarray(5.0), jnp.asarray(4.0), 9 + j, 20 + 5 * j)
        way = tuple(0.3 * value for value in point)

        def wait(values):
            return limited_queue(*values, jnp.asarray(4.0), max_limit=4).mean_wait

        slopes = jax.grad(wait)(point)
        along = sum(float(jnp.sum(slope * change)) for slope, change in zip(slopes, way, strict=True))
        up, down = (
            float(wait(tuple(v + sign * 1e-4 * c for v, c in zip(point, way, strict=True))))
            for sign in (1, -1)
        )
        assert along == pytest.approx((up - down) / 2e-4, rel=1e-6)


@pytest.mark.long
def test_gradients_are_those_of_differences():
    """Through the fixed point, for every continuous input; central differences err by about 1e-8."""
    with jax.enable_x64(True):
        model = jax.tree.map(
            jnp.asarray, three_queues(DISCIPLINES, limit=[3, 1, 2], service_second=[5.0, 18.0, 6.0])
        )
        names = ("arrival_rate", "service_mean", "service_second", "switch_mean", "switch_second")
        point = {name: getattr(model, name) for name in names}

        def cost(values):
            changed = eqx.tree_at(lambda m: [getattr(m, n) for n in names], model, [values[n] for n in names])
            return solve_polling(changed, max_limit=8, tolerance=1e-13).mean_wait @ jnp.array([1.0, 2.0, 3.0])

        slopes = jax.jit(jax.grad(cost))(point)
        for name in names:
            step = 1e-4 * point[name]
            for queue in range(3):
                up, down = (
                    cost({**point, name: point[name].at[queue].add(sign * step[queue])}) for sign in (1, -1)
                )
                difference = (up - down) / (2 * step[queue])
                assert float(slopes[name][queue]) == pytest.approx(float(difference), rel=1e-6), (name, queue)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival_rate": [0.1, 0.0, 0.1]}, "arrival_rate must be positive"),
        ({"service_second": [4.0, 8.0, 4.0]}, "service_second must be at least"),
        ({"switch_mean": 0.0, "switch_second": 0.0}, "switch_mean must be positive"),
        ({"limit": 1.5}, "limit must be a whole number"),
        ({"limit": [1, 2]}, "limit needs one value"),
        ({"service_mean": None}, "service_mean and service_second"),
    ],
)
def test_wrong_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        three_queues("limited", **changes)


def test_closed_forms_are_the_one_queue_case():
    model = polling_model(
        arrival_rate=[0.04], service_mean=6, service_second=50, switch_mean=9, switch_second=100
    )
    assert float(solve_polling(model).mean_wait[0]) == pytest.approx(
        float(closed_forms.exhaustive_wait(0.04, 6, 50, 9, 100)), rel=1e-12
    )
