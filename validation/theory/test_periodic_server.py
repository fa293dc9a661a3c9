"""A queue served at fixed positions: exact values (confirmed by simulation), balances, limits, gradients."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.typing import ArrayLike
from scipy import stats

from btqueue.queueing.laws import lattice
from btqueue.queueing.links.periodic_server import PeriodicServerSolution, periodic_server
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

THIRD_RESERVED = (False, True, True)


def solve(arrivals, capacity: int, is_open=THIRD_RESERVED) -> PeriodicServerSolution:
    return periodic_server(arrivals=arrivals, is_open=is_open, capacity=capacity)


@pytest.mark.parametrize(("rate", "sojourn"), [(0.30, 2.426181), (0.55, 5.340641)])
def test_one_position_of_three_reserved(rate: float, sojourn: float):
    solution = solve(PoissonBatches(rate), 150)
    assert float(solution.mean_sojourn) == pytest.approx(sojourn, abs=5.1e-7)
    assert bool(solution.stable)
    # the law counts from the end of the position of arrival, half a position later in the mean
    assert float(lattice.mean(solution.sojourn)) + 0.5 == pytest.approx(sojourn, abs=5.1e-7)
    assert float(solution.packet_loss) < 1e-12


@pytest.mark.parametrize("rate", [2 / 3, 0.9, 5.0])
def test_two_thirds_is_all_it_can_carry(rate: float):
    solution = solve(PoissonBatches(rate), 40)
    assert bool(solution.stable) is False
    assert float(solution.throughput) <= 2 / 3 + 1e-12
    if rate == 5.0:
        assert float(solution.throughput) == pytest.approx(2 / 3, abs=1e-12)


def test_always_open_is_the_slotted_queue():
    """Geo/D/1: at most one arrival a slot, served in the next, never waits."""
    solution = solve(BernoulliBatches(0.4), 10, is_open=[True])
    np.testing.assert_allclose(np.asarray(solution.at_position)[0, :3], [0.6, 0.4, 0.0], atol=1e-15)
    np.testing.assert_allclose(np.asarray(solution.sojourn)[:3], [0.0, 1.0, 0.0], atol=1e-15)


def test_bulk_arrivals_in_a_slotted_queue():
    """Bruneel & Kim: mean content ``rho + lambda''/(2 (1 - rho))`` of a single server with bulk arrivals."""
    sizes = np.array([0.0, 0.5, 0.0, 0.5])
    solution = solve(BernoulliBatches(0.3, sizes), 400, is_open=[True])
    load, pairs = 0.3 * 2.0, 0.3 * 0.5 * 6
    assert float(solution.mean_queue) == pytest.approx(load + pairs / (2 * (1 - load)), rel=1e-12)


@settings(deadline=None, max_examples=8)
@given(rate=st.floats(0.01, 2.0), second=st.booleans(), batch=st.floats(0.0, 1.0))
def test_balances_and_littles_law(rate: float, second: bool, batch: float):
    arrivals = BernoulliBatches(min(rate, 1.0), [0.0, 1.0 - batch, 0.0, batch])
    solution = solve(arrivals, 9, is_open=[False, True, second, False])
    assert np.asarray(solution.at_position).sum(axis=1) == pytest.approx(np.ones(4), abs=1e-12)
    assert float(np.sum(solution.sojourn)) == pytest.approx(1.0, abs=1e-12)
    offered = float(arrivals.packet_rate)
    assert float(solution.throughput) == pytest.approx(offered * (1 - float(solution.packet_loss)), rel=1e-10)
    # arrivals at the end of a position: queue at position starts over throughput
    assert float(lattice.mean(solution.sojourn)) == pytest.approx(float(solution.mean_sojourn), rel=1e-10)


def test_against_simulation():
    """2,000 queues side by side over 3,000 positions; seed 3, false alarm 1e-4 for both together."""
    draw, queues = np.random.default_rng(3), 2000
    sizes = np.array([0.0, 0.4, 0.6])
    solution = solve(BernoulliBatches(0.45, sizes), 6)
    content, lost, offered, level = (
        np.zeros(queues, int),
        np.zeros(queues),
        np.zeros(queues),
        np.zeros(queues),
    )
    for position in range(3300):
        arriving = (draw.random(queues) < 0.45) * draw.choice(3, queues, p=sizes)
        present = content > 0
        if position >= 300:
            level += content
            lost += np.maximum(content + arriving - 6, 0)
            offered += arriving
        content = np.minimum(content + arriving, 6) - (present & THIRD_RESERVED[position % 3])
    z = stats.norm.isf(1e-4 / 2 / 2)
    lost_share = lost - float(solution.packet_loss) * offered  # mean zero
    assert abs(lost_share.mean()) < z * lost_share.std() / np.sqrt(queues)
    assert abs(level.mean() / 3000 - float(solution.mean_queue)) < z * level.std() / np.sqrt(queues) / 3000


def test_gradient_and_batch():
    def sojourn(rate: ArrayLike) -> jax.Array:
        solution = solve(PoissonBatches(rate, [0.0, 0.7, 0.3]), 12)
        return solution.mean_sojourn + solution.packet_loss + lattice.mean(solution.sojourn)

    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(sojourn))
        slope = float(compiled(0.4)[1])
        difference = float(compiled(0.4 + 1e-5)[0] - compiled(0.4 - 1e-5)[0]) / 2e-5
        several, single = jax.vmap(sojourn)(np.array([0.2, 0.4])), float(compiled(0.4)[0])
    assert slope == pytest.approx(difference, rel=1e-6)
    assert float(several[1]) == pytest.approx(single, rel=1e-12)


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="is_open"):
        solve(PoissonBatches(0.1), 5, is_open=[False, False])
    with pytest.raises(ValueError, match="capacity"):
        solve(PoissonBatches(0.1), 0)


def test_a_source_without_pause_keeps_the_queue_full():
    solution = solve(BernoulliBatches(1.0), 5)
    np.testing.assert_allclose(np.asarray(solution.at_position)[:, 4:], [[1, 0], [0, 1], [1, 0]], atol=1e-12)
    assert float(solution.packet_loss) == pytest.approx(1 / 3, abs=1e-12)


def test_far_into_overload_nothing_overflows():
    solution = solve(PoissonBatches(200.0, lattice.point(5)), 60)
    assert float(solution.throughput) == pytest.approx(2 / 3, abs=1e-12)
    assert np.isfinite(np.asarray(solution.sojourn)).all()
