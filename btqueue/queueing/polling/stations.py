"""Second moments of visits and cycles from a linear model, exact for exhaustive and gated visits.

Let ``X`` be the customers that the server finds at a queue: ``L``, left behind by the last visit, and the
arrivals over the time ``T`` since the queue's last gate, its *intervisit* time (the whole cycle if gated).
About the means,

    X = L + lambda T + e,     D = d X + d' z,     L' = l X + l' z,

where ``D`` is the length of the visit, ``L'`` the customers it leaves behind, ``e`` the noise of the arrivals
and ``z`` the noise of the service times. Exhaustive and gated visits serve every customer found. A visit of
``N`` customers has ``Var z = E[N] Var B`` and ``Var e = E[N] E[G^2] / E[G]`` for batches ``G``, and

    D = (b X + z) / (1 - rho) (exhaustive),     D = b X + z (gated).

These are the regressions of Resing's branching process, so the covariances below are exact. For limited
visits the gains ``d``, ``d'``, ``l``, ``l'`` and the noise are chosen in `polling.limited`.

State vector of length ``3 n``: last visit of each queue, last walk after it, customers left behind.
Covariances of a cycle-stationary linear system ``P = M P M' + C``, by doubling.

Sources: Resing, Queueing Systems 13 (1993); Ferguson & Aminetzah, IEEE Trans. Comm. 33 (1985).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

DOUBLINGS = 32
"""Steps of the doubling: 2**32 cycles of memory, enough for a load of ``1 - 1e-8``."""


class Visits(NamedTuple):
    """How each queue's visit reacts, arrays ``(n,)`` (see the module).

    ``duration``: slots by which a visit lasts longer for one more customer found; ``left``: customers that it
    then leaves more. ``stretch`` and ``left_of_service``: the same for a slot of service noise.
    ``includes_own`` is 1 if the time over which customers gather includes the last visit itself (gated). The
    last three fields are the variances of the three kinds of noise.
    """

    arrival_rate: Array
    duration: Array
    left: Array
    stretch: Array
    left_of_service: Array
    includes_own: Array
    arrival_noise: Array
    service_noise: Array
    walk_variance: Array


class Moves(NamedTuple):
    """One visit and the walk after it, ``state -> matrix @ state + noise``, for each queue."""

    matrix: Array  # (n, 3n, 3n)
    noise: Array  # (n, 3n, 3n), its covariance
    away: Array  # (n, 3n): the state's weights in the time over which customers gathered
    found: Array  # (n, 3n): the state's weights in the customers found
    of_found: Array  # (n, 3n): the state after the visit, for a customer found more
    of_service: Array  # (n, 3n): the same for a slot of service noise


def moves(visits: Visits) -> Moves:
    """The linear maps of all visits."""
    n = visits.arrival_rate.shape[0]
    own, zero = jnp.eye(n), jnp.zeros((n, n))
    away = jnp.concatenate([1.0 - own * (1.0 - visits.includes_own), jnp.ones((n, n)), zero], axis=1)
    found = visits.arrival_rate[:, None] * away + jnp.concatenate([zero, zero, own], axis=1)
    of_found = jnp.concatenate([own * visits.duration, zero, own * visits.left], axis=1)
    of_service = jnp.concatenate([own * visits.stretch, zero, own * visits.left_of_service], axis=1)
    walk = jnp.concatenate([zero, own, zero], axis=1)
    kept = 1.0 - jnp.concatenate([own, own, own], axis=1)

    def square(vectors: Array, variance: Array) -> Array:
        return variance[:, None, None] * vectors[:, :, None] * vectors[:, None, :]

    return Moves(
        matrix=of_found[:, :, None] * found[:, None, :] + kept[:, :, None] * jnp.eye(3 * n),
        noise=square(of_found, visits.arrival_noise)
        + square(of_service, visits.service_noise)
        + square(walk, visits.walk_variance),
        away=away,
        found=found,
        of_found=of_found,
        of_service=of_service,
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


def cycle_from(steps: Moves, first: Array | int) -> tuple[Array, Array]:
    """The map of a whole cycle that begins with the visit to queue ``first``, and its noise."""
    n, size = steps.found.shape

    def visit(carry: tuple[Array, Array], queue: Array) -> tuple[tuple[Array, Array], None]:
        power, total = carry
        matrix = steps.matrix[queue]
        return (matrix @ power, matrix @ total @ matrix.T + steps.noise[queue]), None

    start = (jnp.eye(size), jnp.zeros((size, size)))
    return jax.lax.scan(visit, start, (first + jnp.arange(n)) % n)[0]


def covariances(steps: Moves) -> Array:
    """Covariance of the state when the server comes to each queue, ``(n, 3n, 3n)``."""

    def visit(covariance: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        matrix, noise = step
        return matrix @ covariance @ matrix.T + noise, covariance

    return jax.lax.scan(visit, stationary_covariance(*cycle_from(steps, 0)), (steps.matrix, steps.noise))[1]


def memory(visits: Visits, queue: Array, service_noise: Array, discount: Array) -> Array:
    """Twice the sum of a queue's intervisit autocovariances, each multiplied by ``discount**lag``.

    No visit empties the queue, so that its visits vary by ``service_noise`` alone.
    """
    own = jnp.arange(visits.arrival_rate.shape[0]) == queue
    fixed: dict[str, ArrayLike] = {"duration": 0.0, "left": 0.0, "stretch": 1.0, "left_of_service": 0.0}
    fixed["service_noise"] = service_noise
    changed = {name: jnp.where(own, value, getattr(visits, name)) for name, value in fixed.items()}
    steps = moves(visits._replace(**changed))
    matrix, noise = cycle_from(steps, queue)
    away = steps.away[queue]
    covariance = stationary_covariance(matrix, noise) @ away
    later = jnp.linalg.solve(jnp.eye(matrix.shape[0]) - discount * matrix, discount * (matrix @ covariance))
    return 2.0 * jnp.maximum(away @ later, 0.0)
