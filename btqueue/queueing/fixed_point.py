"""Plain iteration to a stationary law."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing.errors import ConvergenceError, is_traced

State = TypeVar("State")


def iterate(
    step: Callable[[State], State],
    start: State,
    measure: Callable[[State], Array],
    *,
    tolerance: ArrayLike,
    max_iterations: int,
) -> tuple[State, Array, Array]:
    """Repeat ``step`` until ``measure(state)`` changes by less than ``tolerance`` (sum of absolute changes).

    Returns the state, the last change and the number of iterations.
    """

    def unfinished(carry: tuple[State, Array, Array]) -> Array:
        _, residual, iterations = carry
        return (residual > tolerance) & (iterations < max_iterations)

    def advance(carry: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
        state, _, iterations = carry
        new = step(state)
        return new, jnp.abs(measure(new) - measure(state)).sum(), iterations + 1

    return jax.lax.while_loop(unfinished, advance, (start, jnp.asarray(jnp.inf), jnp.asarray(0)))


def require_converged(residual: Array, iterations: Array, tolerance: float) -> None:
    """Raise `ConvergenceError` if a finished iteration stopped above its tolerance."""
    if not is_traced(residual) and not bool(residual <= tolerance):
        raise ConvergenceError(
            f"no stationary law after {int(iterations)} iterations: the last one changed it by "
            f"{float(residual):.3g}, {tolerance:.3g} is asked for"
        )
