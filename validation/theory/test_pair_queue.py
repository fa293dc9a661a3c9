"""The fast pair-service queue: limits with known answers, invariants, gradients, simulated random systems.

The default tests share one batch program; gradients, unlike stations and the comparison with simulation over
random systems need programs of their own and are marked `long`. Tolerances of the closure are the errors
measured in docs/explanation/queueing-pair-polling.md; those of exact properties are rounding.
"""

import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.laws import lattice
from btqueue.queueing.pairs.batch import pair_queue_batch
from btqueue.queueing.pairs.joint_chain import joint_chain
from btqueue.queueing.pairs.polling import independent_vacations
from btqueue.queueing.pairs.queue import PairQueue, pair_queue
from btqueue.queueing.pairs.solution import PairQueueSolution
from btqueue.queueing.pairs.stations import PairPolling
from btqueue.queueing.traffic.arrivals import PoissonBatches

PACKETS = (0.0, 0.0, 0.0, 0.2, 0.0, 0.8)
MEAN_SLOTS = 4.6
WIDTH = 6  # of every law given to the batch: one program serves all


def batch_law(size: int) -> np.ndarray:
    return np.eye(WIDTH)[size]


def solve(points: list[tuple], *, tolerance: float = 1e-8) -> PairQueueSolution:
    """Equal stations ``(n, M, batch, load, K)``; load as a share of ``1 / (2 n 4.6)`` packets a slot."""
    stations, limits, batches, loads, rooms = (np.array(column) for column in zip(*points, strict=True))
    rate = loads / (2 * stations * MEAN_SLOTS * batches)
    return pair_queue_batch(
        stations=stations,
        limit=limits,
        batch_rate=np.stack([rate, rate], axis=1),
        batch_size=np.stack([np.stack([batch_law(size)] * 2) for size in batches]),
        packet_slots=PACKETS,
        capacity=rooms,
        tolerance=tolerance,
    )


CASES = [
    (n, limit, batch, load, room)
    for n in (1, 2, 4, 7)
    for limit, batch, room in ((1, 1, 20), (5, 1, 6), (10, 5, 20), (3, 2, 1))
    for load in (0.1, 0.6, 0.95, 1.6)
]


@cache
def solved() -> PairQueueSolution:
    return solve(CASES)


def queues(solution: PairQueueSolution) -> list:
    return [solution.inbound, solution.outbound]


def test_laws_sum_to_one_and_hold_no_negative_mass():
    answer = solved()
    assert np.asarray(answer.converged).all()
    laws = [queue.occupancy for queue in queues(answer)] + [answer.cycle[1], answer.intervisit[1]]
    for law in laws:
        assert np.abs(np.sum(law, axis=-1) - 1.0).max() < 1e-12
        assert np.min(law) >= -1e-15


def test_little_and_conservation_of_packets():
    answer = solved()
    offered = np.array([load / (2 * n * MEAN_SLOTS) for n, _, _, load, _ in CASES])
    for queue in queues(answer):
        np.testing.assert_allclose(
            queue.throughput, offered * (1 - np.asarray(queue.packet_loss)), rtol=1e-12
        )
        np.testing.assert_allclose(
            queue.mean_queue, np.asarray(queue.throughput) * queue.mean_sojourn, rtol=1e-12
        )
        np.testing.assert_allclose(np.asarray(queue.mean_sojourn) - queue.mean_wait, MEAN_SLOTS, rtol=1e-9)
        assert (np.asarray(queue.batch_loss) >= np.asarray(queue.packet_loss) - 1e-15).all()


def test_packets_sent_in_the_visits_are_those_accepted():
    # a consistency of the closure that its construction does not enforce
    assert np.abs(solved().imbalance).max() < 0.05


def test_mean_cycle_is_that_of_its_law():
    answer = solved()
    points, law = (np.asarray(part) for part in answer.cycle)
    np.testing.assert_allclose((points * law).sum(axis=1), answer.mean_cycle, rtol=0.02)


@pytest.mark.parametrize("stations", [1, 2, 7])
@pytest.mark.parametrize("limit", [1, 10])
def test_without_traffic_a_cycle_is_one_empty_frame_per_station(stations: int, limit: int):
    answer = solve([(stations, limit, 1, 1e-7, 20)])
    assert float(answer.mean_cycle[0]) == pytest.approx(2 * stations, rel=1e-5)
    for queue in queues(answer):
        # a packet waits for the residual cycle and, outbound, the half frame before its own
        assert float(queue.occupancy[0, 0]) == pytest.approx(1.0, abs=1e-5)
        assert float(queue.packet_loss[0]) < 1e-12
    assert float(answer.mean_visit[0]) == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize("stations", [1, 2, 5])
@pytest.mark.parametrize("limit", [1, 3, 10])
def test_far_in_overload_every_frame_is_full(stations: int, limit: int):
    answer = solve([(stations, limit, 5, 40.0, 20)])
    # the grids of lengths end at the longest tour, and mass shared beyond their end is drawn in
    assert float(answer.mean_cycle[0]) == pytest.approx(2 * MEAN_SLOTS * limit * stations, rel=5e-3)
    for queue in queues(answer):
        assert float(queue.throughput[0]) == pytest.approx(1 / (2 * MEAN_SLOTS * stations), rel=5e-3)


def polling(stations: int, limit: int, batch: int, load: float, room: int) -> PairPolling:
    queue = PoissonBatches(load / (2 * stations * MEAN_SLOTS * batch), lattice.point(batch))
    return PairPolling(stations, limit, np.array(PACKETS), queue, room, queue, room)


@pytest.mark.parametrize("load", [0.3, 0.9, 1.6])
def test_one_station_against_its_exact_chain(load: float):
    # with one station the "absence" is nothing, and the reference method is exact
    exact = independent_vacations(polling(1, 3, 2, load, 6))
    answer = solve([(1, 3, 2, load, 6)])
    for queue, truth in zip(queues(answer), (exact.inbound, exact.outbound), strict=True):
        assert float(queue.mean_sojourn[0]) == pytest.approx(float(truth.mean_sojourn), rel=0.05)
        assert float(queue.packet_loss[0]) == pytest.approx(float(truth.packet_loss), rel=0.10)
    assert float(answer.mean_cycle[0]) == pytest.approx(float(exact.mean_cycle), rel=0.05)


@pytest.mark.parametrize(
    ("limit", "batch", "rate", "room"),
    [(2, 1, 0.05, 6), pytest.param(5, 5, 0.012, 8, marks=pytest.mark.long)],
)
def test_two_stations_against_the_exact_chain(limit: int, batch: int, rate: float, room: int):
    load = rate * 2 * 2 * MEAN_SLOTS * batch
    exact, answer = joint_chain(polling(2, limit, batch, load, room)), solve([(2, limit, batch, load, room)])
    for queue, truth in zip(queues(answer), (exact.inbound, exact.outbound), strict=True):
        assert float(queue.mean_sojourn[0]) == pytest.approx(float(truth.mean_sojourn), rel=0.05)
        # small blocking is the closure's weak side
        assert float(queue.packet_loss[0]) == pytest.approx(float(truth.packet_loss), rel=0.25)
    assert float(answer.mean_cycle[0]) == pytest.approx(float(exact.mean_cycle), rel=0.05)


@pytest.mark.parametrize(("stations", "load"), [(2, 0.6), (7, 0.6), (4, 0.3)])
def test_one_frame_a_visit_against_the_closed_form_without_loss(stations: int, load: float):
    rate = load / (2 * stations * MEAN_SLOTS)
    moments = (MEAN_SLOTS - 1.0, 0.8 * 16 + 0.2 * 4)  # of a packet's slots beyond the poll
    share = 2 * stations * rate * moments[0]
    # the 1-limited cycle of 2 n queues with a slot of walking, and two slots per frame in all
    assert float(solve([(stations, 1, 1, load, 20)]).mean_cycle[0]) == pytest.approx(
        2 * stations / (1 - share), rel=0.02
    )


@in_float64
def measures(x: Array) -> Array:
    batch = jnp.zeros(WIDTH).at[1].set(x[2]).at[5].set(1 - x[2])
    packets = jnp.zeros(WIDTH).at[3].set(x[3]).at[5].set(1 - x[3])
    system = PairQueue(
        stations=3, limit=4, batch_rate=x[:2], batch_size=batch, packet_slots=packets, capacity=(12, 9)
    )
    o = pair_queue(system, tolerance=1e-13)
    return jnp.stack(
        [
            o.outbound.mean_sojourn,
            o.inbound.mean_wait,
            o.outbound.packet_loss,
            o.inbound.batch_loss,
            o.mean_cycle,
        ]
    )


@pytest.mark.long
@in_float64
def test_gradients_by_every_input_through_the_fixed_point():
    x = jnp.array([0.012, 0.009, 0.4, 0.3])
    with_value = jax.jit(lambda x: jax.vmap(lambda d: jax.jvp(measures, (x,), (d,)))(jnp.eye(4)))
    values, derivatives = with_value(x)
    for column in range(4):
        step = 1e-4 * float(x[column])
        moved = {k: np.asarray(with_value(x.at[column].add(k * step))[0][0]) for k in (-2, -1, 1, 2)}
        slope = (8 * (moved[1] - moved[-1]) - (moved[2] - moved[-2])) / (12 * step)
        np.testing.assert_allclose(derivatives[column], slope, rtol=1e-6)
    # the same system, in the batch
    batch = np.array([0, 0.4, 0, 0, 0, 0.6])
    one = pair_queue_batch(
        stations=3,
        limit=4,
        batch_rate=np.array([[0.012, 0.009]]),
        batch_size=batch,
        packet_slots=np.array([0, 0, 0, 0.3, 0, 0.7]),
        capacity=np.array([[12, 9]]),
        tolerance=1e-12,
    )
    single = [one.outbound.mean_sojourn[0], one.inbound.mean_wait[0], one.outbound.packet_loss[0]]
    np.testing.assert_allclose(single, values[0][:3], rtol=1e-9)


SYSTEMS = st.tuples(
    st.integers(1, 7), st.integers(1, 10), st.integers(1, 5), st.floats(0.0, 3.0), st.integers(1, 20)
)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.lists(SYSTEMS, min_size=32, max_size=32))
def test_no_nan_and_shares_are_shares(points: list[tuple]):
    answer = solve(points, tolerance=1e-5)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(answer))
    for queue in queues(answer):
        assert (np.asarray(queue.packet_loss) >= -1e-15).all()
        assert (np.asarray(queue.packet_loss) <= 1.0).all()
        assert (np.asarray(queue.mean_wait) > 0.0).all()
        np.testing.assert_allclose(np.sum(queue.occupancy, axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("stations", 0, "stations"),
        ("limit", 0, "limit"),
        ("limit", 1.5, "whole"),
        ("capacity", 0, "capacity"),
        ("batch_rate", (-0.1, 0.1), "batch_rate"),
        ("batch_rate", (np.inf, 0.1), "batch_rate"),
        ("packet_slots", (0.5, 0.5), "packet_slots"),
        ("batch_size", (0.0, 0.9), "batch_size"),
    ],
)
def test_refusals_name_the_argument(field: str, value: object, message: str):
    arguments: dict = {
        "stations": 2,
        "limit": 2,
        "batch_rate": (0.01, 0.01),
        "packet_slots": PACKETS,
        "capacity": 5,
    }
    with pytest.raises(ValueError, match=message):
        PairQueue(**{**arguments, field: value})


def comparison() -> Any:
    folder = Path(__file__).parents[1] / "crosscheck"
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("pair_queue_against_simulation")
    finally:
        sys.path.remove(str(folder))


@pytest.mark.long
def test_unlike_stations_that_are_equal_are_the_equal_ones():
    arguments: dict = {"stations": 2, "limit": 5, "packet_slots": PACKETS, "capacity": 6}
    equal = pair_queue(PairQueue(batch_rate=(0.04, 0.03), **arguments), tolerance=1e-11)
    unlike = pair_queue(PairQueue(batch_rate=((0.04, 0.04), (0.03, 0.03)), **arguments), tolerance=1e-11)
    assert float(unlike.mean_cycle) == pytest.approx(float(equal.mean_cycle), rel=1e-7)
    for way in ("inbound", "outbound"):
        np.testing.assert_allclose(
            getattr(unlike, way).mean_wait, np.asarray(getattr(equal, way).mean_wait), rtol=1e-7
        )


@pytest.mark.long
@pytest.mark.parametrize("equal", [True, False])
def test_random_systems_against_simulation(equal: bool):
    # medians over many queues: the simulation's own noise (seeded) is well below the bounds
    rows = comparison().compare(60 if equal else 12, equal=equal, seed=41)
    wait = np.abs([row["wait_error"] for row in rows])
    loss = np.abs([row["loss_error"] for row in rows if row["loss_simulated"] > 1e-4])
    assert np.median(wait) < 0.05
    assert np.percentile(wait, 95) < 0.15
    assert np.median(loss) < 0.10
