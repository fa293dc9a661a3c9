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

from btqueue.queueing.single.finite_queue import finite_queue
from btqueue.queueing.single.single_queue import single_queue
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches
from btqueue.queueing.vacations.vacations import (
    exhaustive_service_queue,
    gated_service_queue,
    limited_service_queue,
)

EDGES = (1e-12, 1e-9, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 1e-6, 2.0, 10.0)
SIDE_BY_SIDE = 8
SIZES, SERVICES, VACATIONS = 5, 9, 17
"""Lengths of the vectors of batch sizes, services and vacations."""
loads = st.lists(st.sampled_from(EDGES) | st.floats(1e-12, 3.0), min_size=SIDE_BY_SIDE, max_size=SIDE_BY_SIDE)


def mean(law: np.ndarray) -> float:
    return float(law @ np.arange(len(law)))


def random_law(random: np.random.Generator, length: int, largest: int) -> np.ndarray:
    """A constant, two values, or some neighbouring values alike; on ``1..largest``."""
    low, high = np.sort(random.integers(1, largest + 1, 2))
    law = np.zeros(length)
    kind = random.integers(3)
    if kind == 0 or low == high:
        law[low] = 1.0
    elif kind == 1:
        law[high] = random.uniform(0.1, 0.6)
        law[low] = 1.0 - law[high]
    else:
        law[low : high + 1] = 1.0 / (high - low + 1)
    return law


def slotted(rate, laws):
    sizes, service, _ = laws
    return single_queue(arrivals=PoissonBatches(rate, sizes), service=service, length=16, horizon=16)


def unslotted(rate, laws):
    sizes, service, _ = laws
    batches = PoissonBatches(rate, sizes)
    return single_queue(arrivals=batches, service=service, length=16, horizon=16, slotted=False)


def geometric(rate, laws):
    sizes, service, _ = laws
    batches = BernoulliBatches(jnp.minimum(rate, 1.0), sizes)
    return single_queue(arrivals=batches, service=service, length=16, horizon=16)


def finite(rate, laws):
    sizes, service, _ = laws
    return finite_queue(arrivals=PoissonBatches(rate, sizes), service=service, capacity=12)


def finite_geometric(rate, laws):
    sizes, service, _ = laws
    return finite_queue(arrivals=BernoulliBatches(jnp.minimum(rate, 1.0), sizes), service=service, capacity=1)


def with_vacations(solve, rate, laws, **settings):
    sizes, service, vacation = laws
    return solve(arrivals=PoissonBatches(rate, sizes), service=service, vacations=vacation, **settings)


def limited(rate, laws):
    return with_vacations(limited_service_queue, rate, laws, capacity=12, limit=3)


def limited_to_one(rate, laws):
    return with_vacations(limited_service_queue, rate, laws, capacity=1, limit=1)


def gated(rate, laws):
    return with_vacations(gated_service_queue, rate, laws, capacity=12)


def exhaustive(rate, laws):
    return with_vacations(exhaustive_service_queue, rate, laws, capacity=12, longest_listed=8)


FINITE = (finite, finite_geometric, limited, limited_to_one, gated, exhaustive)
ENDLESS = (slotted, unslotted, geometric)
SLOW = {geometric, unslotted, gated}


def compiled(solve):
    """One program for all examples: laws are arguments too."""
    return jax.jit(jax.vmap(solve, in_axes=(0, None)))


@pytest.mark.parametrize(
    "solve",
    [
        pytest.param(one, id=one.__name__, marks=pytest.mark.long if one in SLOW else ())
        for one in (*FINITE, *ENDLESS)
    ],
)
def test_no_number_is_nan(solve):
    program = compiled(solve)

    @settings(max_examples=25)
    @given(loads, st.integers(0, 2**32 - 1))
    def check(load, seed):
        random = np.random.default_rng(seed)
        sizes = random_law(random, SIZES, SIZES - 1)
        service = random_law(random, SERVICES, SERVICES - 1)
        vacation = random_law(random, VACATIONS, VACATIONS - 1)
        rate = np.array(load) / mean(service) / mean(sizes)
        with jax.enable_x64(True):
            solution = program(rate, (sizes, service, vacation))
        for name, value in named(solution):
            assert not np.isnan(value).any(), (name, load)
            if solve in FINITE and name not in ("mean_cycle", "mean_served"):
                assert np.isfinite(value).all(), (name, load)
            if name.startswith(("occupancy", "departure", "visit_start", "at_")):
                assert (value >= 0).all(), (name, load)
        for name, law in laws_of(solution):
            assert (np.abs(law - 1.0) < 1e-12).all(), (name, load, law - 1.0)

    check()


def named(solution):
    """Names and values of a solution's arrays."""
    for path, value in jax.tree_util.tree_leaves_with_path(solution):
        yield jax.tree_util.keystr(path, simple=True, separator="."), np.asarray(value)


def laws_of(solution):
    """Sums of the laws of a solution, the mass beyond the table included."""
    for name in ("occupancy", "at_departures", "at_arrivals", "visit_start", "departure", "wait", "queue"):
        law = getattr(solution, name, None)
        if law is not None:
            tail = getattr(law, "tail", 0.0)
            yield name, np.asarray(getattr(law, "probabilities", law)).sum(axis=-1) + np.asarray(tail)


@pytest.mark.parametrize("solve", [slotted, finite, limited], ids=lambda one: one.__name__)
@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_no_traffic_is_an_error(solve, rate):
    laws = np.eye(SIZES)[1], np.eye(SERVICES)[2], np.eye(VACATIONS)[3]
    with pytest.raises(ValueError, match="batch_rate must be positive"):
        solve(rate, laws)
