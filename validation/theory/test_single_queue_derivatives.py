"""Derivatives of the measures of infinite and finite single queues against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from btqueue.queueing.laws import lattice
from btqueue.queueing.single.finite_queue import finite_queue
from btqueue.queueing.traffic.arrivals import PoissonBatches

from .single_queue_cases import MIXED, UNIFORM, solve


def infinite_outputs(parameters):
    rate, share = parameters
    service = share * UNIFORM + (1 - share) * np.pad(lattice.point(3), (0, 4))
    solution = solve(PoissonBatches(rate, MIXED), service)
    return jnp.stack(
        [
            solution.mean_wait,
            solution.second_moment_sojourn,
            solution.occupancy.probabilities[3],
            solution.wait.probabilities[9],
        ]
    )


def finite_outputs(parameters):
    rate, share = parameters
    service = share * UNIFORM + (1 - share) * np.pad(lattice.point(3), (0, 4))
    solution = finite_queue(
        arrivals=PoissonBatches(rate, MIXED), service=service, capacity=6, acceptance="whole"
    )
    return jnp.stack(
        [solution.packet_loss, solution.second_moment_wait, solution.occupancy[3], solution.wait[9]]
    )


@pytest.mark.parametrize(
    ("outputs", "mode"),
    [
        (infinite_outputs, jax.jacfwd),
        (finite_outputs, jax.jacrev),
        pytest.param(infinite_outputs, jax.jacrev, marks=pytest.mark.long),
        pytest.param(finite_outputs, jax.jacfwd, marks=pytest.mark.long),
    ],
)
def test_derivatives_are_central_differences(outputs, mode):
    with jax.enable_x64(True):
        outputs = jax.jit(outputs)
        at = jnp.array([0.06, 0.7])
        jacobian = mode(outputs)(at)
        # fourth-order differences: truncation h^4, rounding 1e-13 / h
        for column, step in enumerate((2e-4, 2e-3)):
            shift = step * jnp.eye(2)[column]
            near = (outputs(at + shift) - outputs(at - shift)) / (2 * step)
            far = (outputs(at + 2 * shift) - outputs(at - 2 * shift)) / (4 * step)
            np.testing.assert_allclose(jacobian[:, column], (4 * near - far) / 3, rtol=1e-6)
