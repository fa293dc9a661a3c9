"""Bulk service: roots and chain against each other and against known values."""

import jax
import numpy as np
import pytest
from scipy.stats import poisson

from btqueue.queueing.laws import lattice
from btqueue.queueing.single.bulk_service import bulk_queue, unlimited_bulk_queue

FOUR = poisson.pmf(np.arange(60), 4.0)


def test_known_values_from_roots_and_chain():
    roots = unlimited_bulk_queue(arrivals=FOUR, bulk=5, length=128)
    chain = bulk_queue(arrivals=FOUR, bulk=5, capacity=127)
    for queue in (roots, chain):
        assert float(queue.mean_queue) == pytest.approx(5.156240, abs=5e-7)
        assert float(queue.queue.probabilities[0]) == pytest.approx(0.011274, abs=5e-7)
        assert float(lattice.mean(queue.served)) == pytest.approx(4.0, rel=1e-11)
    np.testing.assert_allclose(roots.queue.probabilities, chain.queue.probabilities, atol=1e-13)


def test_one_at_a_time_is_a_queue_of_one_server():
    """With ``b = 1``, ``E[q] = m + m^2 / (2 (1 - m))``: one M/D/1 service is one epoch."""
    queue = unlimited_bulk_queue(arrivals=poisson.pmf(np.arange(40), 0.6), bulk=1, length=128)
    assert float(queue.mean_queue) == pytest.approx(0.6 + 0.36 / 0.8, rel=1e-12)
    assert float(queue.queue.probabilities[0]) == pytest.approx(0.4, rel=1e-12)


@pytest.mark.parametrize("bulk", [1, 3, 5])
def test_flow_balance_with_losses(bulk: int):
    queue = bulk_queue(arrivals=FOUR, bulk=bulk, capacity=12, max_bulk=5)
    assert float(queue.queue.probabilities.sum()) == pytest.approx(1.0, abs=1e-12)
    carried = 4.0 * (1 - float(queue.packet_loss))
    assert float(lattice.mean(queue.served)) == pytest.approx(carried, rel=1e-11)


def test_gradient_passes_through_the_roots():
    def mean_queue(share):  # the share of epochs that bring nothing
        nothing = np.zeros(60)
        nothing[0] = 1.0
        return unlimited_bulk_queue(
            arrivals=(1 - share) * FOUR + share * nothing, bulk=5, length=64
        ).mean_queue

    with jax.enable_x64(True):
        slope = float(jax.grad(mean_queue)(0.2))
        h = 1e-3
        at = [float(mean_queue(0.2 + k * h)) for k in (-2, -1, 1, 2)]
    assert slope == pytest.approx((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h), rel=1e-8)


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="unstable"):
        unlimited_bulk_queue(arrivals=FOUR, bulk=3)
    with pytest.raises(ValueError, match="length"):
        unlimited_bulk_queue(arrivals=FOUR, bulk=5, length=5)
    with pytest.raises(ValueError, match="bulk"):
        bulk_queue(arrivals=FOUR, bulk=0, capacity=5)
