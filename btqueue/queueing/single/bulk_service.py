"""Bulk service: at each epoch up to ``b`` packets leave at once, and a random number arrives until the next.

``q' = (q - b)^+ + A`` with an infinite buffer, ``q' = min((q - b)^+ + A, K)`` with room for K. The generating
function with an infinite buffer is

    Q(z) = A(z) (b - m) (z - 1) / (z^b - A(z)) * prod_k (z - z_k) / (1 - z_k),      m = A'(1),

over the ``b - 1`` roots of ``z^b = A(z)`` inside the unit disc.

Sources: Bailey, J. Royal Statistical Society B 16 (1954); Chaudhry & Templeton, A First Course in Bulk Queues
(1983).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains.elimination import stationary_law
from btqueue.queueing.errors import ConvergenceError, is_traced, require_count, require_law
from btqueue.queueing.laws import lattice
from btqueue.queueing.vacations.roots import differentiable_roots, inside_roots
from btqueue.queueing.vacations.transforms import circle, require_stable, tabulate


class BulkQueue(eqx.Module):
    """Steady state at the epochs, just before packets leave.

    Attributes:
        queue: law of the queue, and the mass beyond the table.
        mean_queue: its mean (infinite if the queue is unstable).
        served: law of the number that leaves, ``(b + 1,)``.
        packet_loss: share of the packets that find no room.
        converged: whether the roots were found to rounding (true for a finite buffer).
        stable: whether there is a steady state.
    """

    queue: lattice.CutLaw
    mean_queue: Array
    served: Array
    packet_loss: Array
    converged: Array
    stable: Array


@eqx.filter_jit
def _unlimited(arrivals: Array, bulk: int, length: int) -> BulkQueue:
    def arrived(z: Array) -> Array:
        return jnp.polyval(arrivals[::-1], z)

    def frozen(z: Array) -> Array:
        return jnp.polyval(jax.lax.stop_gradient(arrivals)[::-1], z)

    roots, converged = inside_roots(frozen, jnp.ones_like, bulk)
    roots = differentiable_roots(roots, arrived, jnp.ones_like, bulk)
    mean = lattice.mean(arrivals)
    second = lattice.second_moment(arrivals) - mean
    slack = bulk - mean
    z = circle(length)
    factors = (z[:, None] - roots) / (1.0 - roots)
    law = tabulate(arrived(z) * slack * (z - 1.0) / (z**bulk - arrived(z)) * factors.prod(axis=1))
    short = law[:bulk]
    mean_queue = mean + (1.0 / (1.0 - roots)).sum().real - (bulk * (bulk - 1.0) - second) / (2.0 * slack)
    return BulkQueue(
        queue=lattice.CutLaw(law, jnp.maximum(1.0 - law.sum(), 0.0)),
        mean_queue=jnp.where(slack > 0.0, mean_queue, jnp.inf),
        served=jnp.append(short, 1.0 - short.sum()),
        packet_loss=jnp.zeros(()),
        converged=converged,
        stable=slack > 0.0,
    )


@in_float64
def unlimited_bulk_queue(*, arrivals: ArrayLike, bulk: int, length: int = 512) -> BulkQueue:
    """Bulk service with an infinite buffer, from the roots of the generating function.

    Args:
        arrivals: law of the packets that arrive between two epochs.
        bulk: most packets that leave at an epoch b.
        length: size of the table of the queue, above ``bulk``.

    Raises:
        ValueError: if an argument is out of range, or the mean arrivals are not below ``bulk``.
        ConvergenceError: if the roots are not found.
    """
    require_law(arrivals, "arrivals")
    require_count(bulk, "bulk")
    require_count(length, "length", least=bulk + 1)
    arrivals = jnp.asarray(arrivals)
    require_stable(bulk - lattice.mean(arrivals), "mean arrivals below bulk")
    solution = _unlimited(arrivals, bulk, length)
    if not is_traced(solution.converged) and not bool(solution.converged):
        raise ConvergenceError("the roots of z^b = A(z) were not found")
    return solution


@eqx.filter_jit
def _finite(arrivals: Array, bulk: Array, capacity: int, longest: int) -> BulkQueue:
    content = jnp.arange(capacity + 1)
    filling = lattice.filling_matrix(lattice.truncate(arrivals, capacity + 1))
    queue = stationary_law(filling[jnp.maximum(content - bulk, 0)])
    leaving = jnp.minimum(content, bulk)
    mean = lattice.mean(arrivals)
    excess = jnp.maximum(content[:, None] - leaving[:, None] + jnp.arange(arrivals.shape[0]) - capacity, 0)
    return BulkQueue(
        queue=lattice.CutLaw(queue, jnp.zeros(())),
        mean_queue=lattice.mean(queue),
        served=jnp.zeros(longest + 1).at[leaving].add(queue),
        packet_loss=queue @ (excess @ arrivals) / mean,
        converged=jnp.asarray(True),
        stable=jnp.asarray(True),
    )


@in_float64
def bulk_queue(
    *, arrivals: ArrayLike, bulk: ArrayLike, capacity: int, max_bulk: int | None = None
) -> BulkQueue:
    """Bulk service with room for ``capacity`` packets, exact; what finds no room is lost.

    Args:
        arrivals: law of the packets that arrive between two epochs.
        bulk: most packets that leave at an epoch b; may be traced if ``max_bulk`` is given.
        capacity: room K.
        max_bulk: bound of ``bulk``; ``bulk`` itself if left out.

    Raises:
        ValueError: if an argument is out of range.
    """
    require_law(arrivals, "arrivals")
    require_count(capacity, "capacity")
    if max_bulk is None:
        if is_traced(bulk):
            raise ValueError("max_bulk must be given where bulk is traced")
        max_bulk = int(np.asarray(bulk))
        require_count(max_bulk, "bulk")
    return _finite(jnp.asarray(arrivals), jnp.asarray(bulk), capacity, max_bulk)
