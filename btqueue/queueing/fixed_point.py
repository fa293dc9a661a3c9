"""Iteration to a stationary law: plain, accelerated, and differentiated implicitly."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.scipy.sparse.linalg import gmres
from jax.typing import ArrayLike

from btqueue.queueing.errors import ConvergenceError, is_traced

State = TypeVar("State")

HISTORY = 6  # steps that an accelerated iteration looks back on
LINEAR_TOLERANCE = 1e-13  # of the linear system of implicit differentiation, relative


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
    """The beginning of an accelerated iteration."""
    vector, _ = ravel_pytree(start)
    none = jnp.zeros((HISTORY, vector.shape[0]), vector.dtype)
    return Acceleration(vector, none, none, jnp.asarray(jnp.inf, vector.dtype), jnp.asarray(0))


def accelerated_step(step: Callable[[Array], Array], now: Acceleration) -> Acceleration:
    """One step of Anderson's method on vectors (D. G. Anderson, J. ACM 12, 1965; Walker & Ni 2011, type II).

    The next point combines the last steps so that their changes cancel in the sense of least squares. Where a
    combination made the change larger than twice the last one, the history is dropped and the plain step
    taken: far from the solution the map is not close to linear.
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


def continue_acceleration(
    step: Callable[[State], State],
    now: Acceleration,
    unravel: Callable[[Array], State],
    *,
    tolerance: ArrayLike,
    max_iterations: ArrayLike,
) -> Acceleration:
    """Go on until a step changes the state by less than ``tolerance``, or after ``max_iterations`` in all."""

    def on_vectors(vector: Array) -> Array:
        return ravel_pytree(step(unravel(vector)))[0]

    def unfinished(now: Acceleration) -> Array:
        return (now.residual > tolerance) & (now.iterations < max_iterations)

    return jax.lax.while_loop(unfinished, lambda now: accelerated_step(on_vectors, now), now)


def accelerate(
    step: Callable[[State], State], start: State, *, tolerance: ArrayLike, max_iterations: int
) -> tuple[State, Array, Array]:
    """As `iterate`, by Anderson's method, for the whole state: fewer steps where plain iteration crawls."""
    _, unravel = ravel_pytree(start)
    end = continue_acceleration(
        step, start_acceleration(start), unravel, tolerance=tolerance, max_iterations=max_iterations
    )
    return unravel(end.vector), end.residual, end.iterations


def implicit_fixed_point(
    step: Callable[[State], State], start: State, *, tolerance: ArrayLike, max_iterations: int
) -> tuple[State, Array, Array]:
    """The fixed point of ``step`` by `accelerate`, with derivatives by the implicit function theorem.

    What ``step`` closes over may be differentiated, forwards and backwards: a derivative costs one linear
    system with the matrix ``I - step'`` at the solution, solved by GMRES from products with ``step'`` alone.

    Returns the state, the residual and the iterations, the last two without derivatives.
    """
    vector, unravel = ravel_pytree(start)

    def change(point: Array) -> Array:
        return ravel_pytree(step(unravel(point)))[0] - point

    def solve(function: Callable[[Array], Array], guess: Array) -> tuple[Array, tuple[Array, Array]]:
        end, residual, iterations = accelerate(
            lambda point: function(point) + point, guess, tolerance=tolerance, max_iterations=max_iterations
        )
        return end, (residual, iterations.astype(residual.dtype))

    def linear_solve(product: Callable[[Array], Array], wanted: Array) -> Array:
        def krylov(matrix: Callable[[Array], Array], right: Array) -> Array:
            answer, _ = gmres(matrix, right, tol=LINEAR_TOLERANCE, atol=0.0, restart=60, maxiter=10)
            return answer

        return jax.lax.custom_linear_solve(product, wanted, solve=krylov, transpose_solve=krylov)

    end, (residual, iterations) = jax.lax.custom_root(change, vector, solve, linear_solve, has_aux=True)
    return unravel(end), residual, iterations.astype(int)


def require_converged(residual: Array, iterations: Array, tolerance: float) -> None:
    """Raise `ConvergenceError` if a finished iteration stopped above its tolerance."""
    if not is_traced(residual) and not bool(residual <= tolerance):
        raise ConvergenceError(
            f"no stationary law after {int(iterations)} iterations: the last one changed it by "
            f"{float(residual):.3g}, {tolerance:.3g} is asked for"
        )
