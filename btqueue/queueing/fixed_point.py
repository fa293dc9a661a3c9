"""Iterations to a fixed point: one step of Anderson's method."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

HISTORY = 6  # steps that an accelerated iteration looks back on


class Acceleration(NamedTuple):
    """Where an accelerated iteration stands; a vector and the last `HISTORY` steps.

    ``residual`` is the sum of absolute changes by the last step taken.
    """

    vector: Array
    inputs: Array
    changes: Array
    residual: Array
    iterations: Array


def start_acceleration(start: Any) -> Acceleration:
    """The beginning of an accelerated iteration.

    Example:
        >>> from btqueue.queueing.fixed_point import start_acceleration
        >>> now = start_acceleration([1.0])
        >>> float(now.vector[0])
        1.0
    """
    vector, _ = ravel_pytree(start)
    none = jnp.zeros((HISTORY, vector.shape[0]), vector.dtype)
    return Acceleration(vector, none, none, jnp.asarray(jnp.inf, vector.dtype), jnp.asarray(0))


def accelerated_step(step: Callable[[Array], Array], now: Acceleration) -> Acceleration:
    """One step of Anderson's method on vectors (D. G. Anderson, J. ACM 12, 1965; Walker & Ni 2011, type II).

    The next point combines the last steps so that their changes cancel in the sense of least squares. Where a
    combination made the change larger than twice the last one, the history is dropped and the plain step
    taken: far from the solution the map is not close to linear.

    Example:
        >>> from btqueue.queueing.fixed_point import accelerated_step, start_acceleration
        >>> import jax
        >>> import jax.numpy as jnp
        >>> with jax.enable_x64(True):
        ...     now = start_acceleration([1.0, 0.5])
        ...     for _ in range(12):
        ...         now = accelerated_step(lambda x: jnp.cos(x * jnp.array([1.0, 0.9])), now)
        >>> [round(float(value), 3) for value in now.vector]
        [0.739, 0.77]
    """
    image = step(now.vector)
    change = image - now.vector
    residual = jnp.abs(change).sum()
    keep = residual < 2.0 * now.residual
    slot = now.iterations % HISTORY
    inputs = jnp.where(keep, now.inputs, 0.0).at[slot].set(now.vector)
    changes = jnp.where(keep, now.changes, 0.0).at[slot].set(change)
    used = (jnp.abs(changes).sum(axis=1) > 0.0)[:, None]
    # differences to the present step; unused rows stay zero and get no weight
    by_change = jnp.where(used, changes - change, 0.0)
    by_input = jnp.where(used, inputs - now.vector, 0.0)
    gram = by_change @ by_change.T
    scale = jnp.trace(gram) + 1e-300
    weights = jnp.linalg.solve(gram / scale + 1e-14 * jnp.eye(HISTORY), by_change @ change / scale)
    return Acceleration(
        image - weights @ (by_input + by_change), inputs, changes, residual, now.iterations + 1
    )
