"""No number is NaN for any valid input: loads of almost nothing, of almost one, far above; laws at random.

Every function is compiled once for eight systems side by side (`jax.vmap`), as in batches and under ``jit``,
where an unstable queue is no error but a flag.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_queues import SERVICES, SIZES, VACATIONS, mean, random_law

from btqueue.queueing.single.bulk_service import bulk_queue
from btqueue.queueing.single.finite_queue import finite_queue
from btqueue.queueing.single.n_policy import n_policy_queue
from btqueue.queueing.single.priority_queue import priority_queue
from btqueue.queueing.single.single_queue import single_queue
from btqueue.queueing.token_bucket.token_bucket import token_bucket
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches
from btqueue.queueing.vacations.roots import unlimited_vacation_queue
from btqueue.queueing.vacations.unlimited import unlimited_exhaustive_queue, unlimited_gated_queue
from btqueue.queueing.vacations.vacations import (
    exhaustive_service_queue,
    gated_service_queue,
    limited_service_queue,
)

EDGES = (1e-12, 1e-9, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 1e-6, 2.0, 10.0)
SIDE_BY_SIDE = 8
loads = st.lists(st.sampled_from(EDGES) | st.floats(1e-12, 3.0), min_size=SIDE_BY_SIDE, max_size=SIDE_BY_SIDE)
counts = st.lists(st.integers(1, 20), min_size=SIDE_BY_SIDE, max_size=SIDE_BY_SIDE)


def slotted(rate, laws, room, limit):
    sizes, service, _ = laws
    return single_queue(arrivals=PoissonBatches(rate, sizes), service=service, length=16, horizon=16)


def unslotted(rate, laws, room, limit):
    sizes, service, _ = laws
    batches = PoissonBatches(rate, sizes)
    return single_queue(arrivals=batches, service=service, length=16, horizon=16, slotted=False)


def geometric(rate, laws, room, limit):
    sizes, service, _ = laws
    batches = BernoulliBatches(jnp.minimum(rate, 1.0), sizes)
    return single_queue(arrivals=batches, service=service, length=16, horizon=16)


def finite(rate, laws, room, limit):
    sizes, service, _ = laws
    return finite_queue(arrivals=PoissonBatches(rate, sizes), service=service, capacity=12)


def finite_geometric(rate, laws, room, limit):
    sizes, service, _ = laws
    return finite_queue(arrivals=BernoulliBatches(jnp.minimum(rate, 1.0), sizes), service=service, capacity=1)


def priority(rate, laws, room, limit):
    sizes, service, _ = laws
    streams = [PoissonBatches(share * rate, sizes) for share in (0.5, 0.5)]
    return priority_queue(arrivals=streams, services=[service, service], horizon=16)


def n_policy(rate, laws, room, limit):
    sizes, service, _ = laws
    batches = PoissonBatches(rate, sizes)
    return n_policy_queue(arrivals=batches, service=service, threshold=limit, largest=20, length=16)


def bulk(rate, laws, room, limit):
    *_, vacation = laws
    arrivals = jnp.asarray(vacation) * jnp.minimum(rate, 1.0)
    arrivals = arrivals.at[0].add(1.0 - arrivals.sum())
    return bulk_queue(arrivals=arrivals, bulk=limit, capacity=20, max_bulk=20)


def with_vacations(solve, rate, laws, **settings):
    sizes, service, vacation = laws
    return solve(arrivals=PoissonBatches(rate, sizes), service=service, vacations=vacation, **settings)


def limited(rate, laws, room, limit):
    bounds = {"capacity": room, "max_capacity": 20, "limit": limit, "max_limit": 20}
    return with_vacations(limited_service_queue, rate, laws, **bounds)


def gated(rate, laws, room, limit):
    return with_vacations(gated_service_queue, rate, laws, capacity=room, max_capacity=20)


def exhaustive(rate, laws, room, limit):
    bounds = {"capacity": room, "max_capacity": 20, "longest_listed": 8}
    return with_vacations(exhaustive_service_queue, rate, laws, **bounds)


def endless_exhaustive(rate, laws, room, limit):
    return with_vacations(unlimited_exhaustive_queue, rate, laws, length=32, longest_listed=8)


def endless_gated(rate, laws, room, limit):
    return with_vacations(unlimited_gated_queue, rate, laws, length=32)


def endless_limited(rate, laws, room, limit):
    return with_vacations(unlimited_vacation_queue, rate, laws, limit=3, length=32)


def bucket(rate, laws, room, limit):
    sizes, service, _ = laws
    time = jnp.asarray(service) @ jnp.arange(SERVICES)
    return token_bucket(batches=PoissonBatches(rate, sizes), token_time=time, depth=3, buffer=5)


FINITE = (finite, finite_geometric, bulk, limited, gated, exhaustive, bucket)
ENDLESS = (slotted, unslotted, geometric, n_policy, endless_exhaustive, endless_gated, endless_limited)
SLOW = {priority, n_policy, geometric, unslotted, gated, endless_gated, endless_limited}
LIMIT_OF_ENDLESS = 3


def compiled(solve):
    """One program for all examples: laws are arguments too."""
    return jax.jit(jax.vmap(solve, in_axes=(0, None, 0, 0)))


@pytest.mark.parametrize(
    "solve",
    [
        pytest.param(one, id=one.__name__, marks=pytest.mark.long if one in SLOW else ())
        for one in (*FINITE, *ENDLESS, priority)
    ],
)
def test_no_number_is_nan(solve):
    program = compiled(solve)

    @settings(max_examples=25 if solve is not endless_limited else 10)
    @given(loads, counts, counts, st.integers(0, 2**32 - 1))
    def check(load, room, limit, seed):
        random = np.random.default_rng(seed)
        sizes = random_law(random, SIZES, SIZES - 1)
        service = random_law(random, SERVICES, SERVICES - 1)
        vacation = random_law(random, VACATIONS, VACATIONS - 1)
        a_packet = mean(service) + (mean(vacation) / LIMIT_OF_ENDLESS if solve is endless_limited else 0.0)
        rate = np.array(load) / a_packet / mean(sizes)
        with jax.enable_x64(True):
            solution = program(rate, (sizes, service, vacation), np.array(room), np.array(limit))
        for name, value in named(solution):
            assert not np.isnan(value).any(), (name, load)
            if solve in FINITE and name not in ("mean_cycle", "mean_served"):
                assert np.isfinite(value).all(), (name, load)
            if name.startswith(("occupancy", "departure", "visit_start", "at_")):
                assert (value >= 0).all(), (name, load)
        for name, law in laws_of(solution):
            # limited service finds laws of a cycle to 1e-13, absolute; departures are rare in a cycle
            lost = 1e-13 / np.array(load) if solve is endless_limited and name == "departure" else 0.0
            assert (np.abs(law - 1.0) < 1e-12 + lost).all(), (name, load, law - 1.0)

    check()


def named(solution):
    """Names and values of a solution's arrays, without the auxiliary ones."""
    for path, value in jax.tree_util.tree_leaves_with_path(solution):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if not name.startswith("epochs"):
            yield name, np.asarray(value)


def laws_of(solution):
    """Sums of the laws of a solution, the mass beyond the table included."""
    for name in ("occupancy", "at_departures", "at_arrivals", "visit_start", "departure", "wait", "queue"):
        law = getattr(solution, name, None)
        if law is not None:
            tail = getattr(law, "tail", 0.0)
            yield name, np.asarray(getattr(law, "probabilities", law)).sum(axis=-1) + np.asarray(tail)


@pytest.mark.parametrize("solve", [slotted, finite, bucket], ids=lambda one: one.__name__)
@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_no_traffic_is_an_error(solve, rate):
    laws = np.eye(SIZES)[1], np.eye(SERVICES)[2], np.eye(VACATIONS)[3]
    with pytest.raises(ValueError, match="batch_rate must be positive"):
        solve(rate, laws, 3, 3)


def test_gated_service_next_to_saturation():
    """The product for the laws would take 4e10 factors; means need none (Takagi, vol. 1, section 2.3)."""
    rate, slack = 0.5 * (1 - 1e-9), 1e-9
    solved = unlimited_gated_queue(
        arrivals=PoissonBatches(rate), service=np.eye(SERVICES)[2], vacations=np.eye(VACATIONS)[5], length=16
    )
    assert not solved.converged
    expected = rate * 2**2 / (2 * slack) + 5 / 2 + (1 - slack) * 5 / slack
    np.testing.assert_allclose(solved.mean_wait, expected, rtol=1e-6)


def test_what_comes_leaves_though_the_table_is_short():
    """Vacations by the number served: the cycle must not depend on how much of the queue's law is listed."""
    rate, vacations = 0.32, np.eye(VACATIONS)[[12, 8, 2]]
    solved = unlimited_vacation_queue(
        arrivals=PoissonBatches(rate), service=np.eye(SERVICES)[2], vacations=vacations, limit=2, length=32
    )
    assert solved.occupancy.tail > 0.05
    np.testing.assert_allclose(solved.mean_served / solved.mean_cycle, rate, rtol=1e-12)
