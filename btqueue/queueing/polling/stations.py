"""Second moments of visits and cycles from the linear regressions of a branching process, exactly.

Let ``X`` be the customers that the server finds at a queue. They came over the time ``T`` since the queue's
last gate: its *intervisit* time for exhaustive service, the whole cycle for gated. About the means,

    X = lambda T + e,      D = b N + z,      N = (X + lambda z) / (1 - rho) (exhaustive),  X (gated),

where ``D`` is the length of the visit, ``N`` the customers it serves, ``e`` the noise of the arrivals with
variance ``E[N]`` and ``z`` that of the service times with variance ``E[N] Var B``. These are the regressions
of Resing's branching process, so that the covariances below are exact.

State vector of length ``2 n``: last visit ``D`` of each queue, last walk after it. Covariances of a
cycle-stationary linear system ``P = M P M' + C``, by doubling.

Sources: Resing, Queueing Systems 13 (1993); Ferguson & Aminetzah, IEEE Trans. Comm. 33 (1985).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

DOUBLINGS = 32
"""Steps of the doubling: 2**32 cycles of memory, enough for a load of ``1 - 1e-8``."""


class Visits(NamedTuple):
    """How each queue's visit reacts, arrays ``(n,)`` (see the module).

    ``duration`` is by how many slots a visit lasts longer for a customer found more, ``stretch`` the same for
    a slot of service noise; ``includes_own`` is 1 if the time over which customers gather includes the last
    visit itself (gated). Then the variances of the three kinds of noise.
    """

    arrival_rate: Array
    duration: Array
    stretch: Array
    includes_own: Array
    arrival_noise: Array
    service_noise: Array
    walk_variance: Array


class Moves(NamedTuple):
    """One visit and the walk after it, ``state -> matrix @ state + noise``."""

    matrix: Array  # (n, 2n, 2n)
    noise: Array  # (n, 2n, 2n), its covariance


def moves(visits: Visits) -> Moves:
    """The linear maps of all visits."""
    n = visits.arrival_rate.shape[0]
    own, zero = jnp.eye(n), jnp.zeros((n, n))
    gathered = jnp.concatenate([1.0 - own * (1.0 - visits.includes_own), jnp.ones((n, n))], axis=1)
    found = visits.arrival_rate[:, None] * gathered
    of_found = jnp.concatenate([own * visits.duration[:, None], zero], axis=1)
    of_service = jnp.concatenate([own * visits.stretch[:, None], zero], axis=1)
    walk = jnp.concatenate([zero, own], axis=1)
    kept = 1.0 - jnp.concatenate([own, own], axis=1)

    def square(vectors: Array, variance: Array) -> Array:
        return variance[:, None, None] * vectors[:, :, None] * vectors[:, None, :]

    return Moves(
        matrix=of_found[:, :, None] * found[:, None, :] + kept[:, :, None] * jnp.eye(2 * n),
        noise=square(of_found, visits.arrival_noise)
        + square(of_service, visits.service_noise)
        + square(walk, visits.walk_variance),
    )


def stationary_covariance(matrix: Array, noise: Array) -> Array:
    """Solution of ``P = M P M' + C`` for a stable ``M``, by doubling.

    Example:
        >>> from btqueue.queueing.polling.stations import stationary_covariance
        >>> import jax.numpy as jnp
        >>> round(float(stationary_covariance(jnp.array([[0.5]]), jnp.array([[1.0]]))[0, 0]), 4)
        1.3333
    """

    def double(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        power, total = carry
        return (power @ power, total + power @ total @ power.T), None

    (_, covariance), _ = jax.lax.scan(double, (matrix, noise), None, length=DOUBLINGS)
    return covariance


def covariances(steps: Moves) -> Array:
    """Covariance of the state when the server comes to each queue, ``(n, 2n, 2n)``."""

    def compose(carry: tuple[Array, Array], step: Moves) -> tuple[tuple[Array, Array], None]:
        power, total = carry
        return (step.matrix @ power, step.matrix @ total @ step.matrix.T + step.noise), None

    def visit(covariance: Array, step: Moves) -> tuple[Array, Array]:
        return step.matrix @ covariance @ step.matrix.T + step.noise, covariance

    size = steps.matrix.shape[-1]
    cycle, _ = jax.lax.scan(compose, (jnp.eye(size), jnp.zeros((size, size))), steps)
    return jax.lax.scan(visit, stationary_covariance(*cycle), steps)[1]
