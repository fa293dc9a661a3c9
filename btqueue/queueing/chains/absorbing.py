"""Chains that end: how long until absorption, where, and what is visited on the way.

The fundamental matrix ``N = (I - T)^-1`` counts visits to transient states. It is found by elimination with
the pivots as sums of what leaves a state (Grassmann, Taksar and Heyman's idea carried over to absorption), so
that every entry is relatively accurate even if the chain hardly ever ends; all else is products with it.

Sources: Kemeny & Snell, Finite Markov Chains (1960), chapter 3; O'Cinneide, Numer. Math. 73 (1996).
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains.markov import require_transition
from btqueue.queueing.errors import is_traced, require_law
from btqueue.queueing.laws.lattice import CutLaw


@jax.custom_jvp
def _visits(transient: Array, exits: Array) -> Array:
    """By elimination; see `visit_counts`."""
    size = exits.shape[0]
    index = jnp.arange(size)

    def censor(step: int, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        matrix, leave, right, pivots = carry
        last = size - 1 - step
        below = index < last
        row = jnp.where(below, matrix[last], 0.0)
        pivot = row.sum() + leave[last]
        column = jnp.where(below, matrix[:, last], 0.0) / pivot
        return (
            matrix + column[:, None] * row[None, :],
            leave + column * leave[last],
            right + column[:, None] * right[last],
            pivots.at[last].set(pivot),
        )

    def unfold(state: int, visits: Array) -> Array:
        below = jnp.where(index < state, matrix[state], 0.0)
        return visits.at[state].set((right[state] + below @ visits) / pivots[state])

    start = (transient, exits, jnp.eye(size, dtype=exits.dtype), jnp.zeros_like(exits))
    matrix, _, right, pivots = jax.lax.fori_loop(0, size, censor, start)
    return jax.lax.fori_loop(0, size, unfold, jnp.zeros((size, size), exits.dtype))


@_visits.defjvp
def _visit_counts_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (transient, exits), (change, change_exits) = primals, tangents
    visits = _visits(transient, exits)
    between = change * (1.0 - jnp.eye(exits.shape[0], dtype=exits.dtype))
    leaving = between.sum(axis=1) + change_exits
    return visits, visits @ (between @ visits - leaving[:, None] * visits)


@jax.jit
def visit_counts(transient: Array, exits: Array) -> Array:
    """``(I - T)^-1`` from the off-diagonal of ``T`` and the probabilities (or rates) ``exits`` of the end.

    The diagonal of ``T`` is not read: it follows from the row sums. With rates in place of probabilities this
    is ``(-T)^-1``, times spent.
    """
    return _visits(transient, exits)


class Absorption(eqx.Module):
    """What happens before absorption, by transient state of the start.

    Attributes:
        visits: mean visits to each transient state, the start included, ``(m, m)``.
        mean_steps: mean steps to absorption, ``(m,)``.
        variance_steps: variance of the steps, ``(m,)``.
        probabilities: where the chain ends, ``(m, a)``.
    """

    visits: Array
    mean_steps: Array
    variance_steps: Array
    probabilities: Array


@jax.jit
def _absorb(transient: Array, absorption: Array) -> Absorption:
    visits = visit_counts(transient, absorption.sum(axis=1))
    mean_steps = visits.sum(axis=1)
    factorial = 2.0 * (visits @ (transient @ mean_steps))  # E[steps (steps - 1)]
    return Absorption(
        visits=visits,
        mean_steps=mean_steps,
        variance_steps=factorial + mean_steps - mean_steps**2,
        probabilities=visits @ absorption,
    )


def _require_absorbing(transient: ArrayLike, absorption: ArrayLike) -> None:
    if np.ndim(absorption) != 2 or np.shape(transient) != (np.shape(absorption)[0],) * 2:
        raise ValueError(
            "transient must be (m, m) and absorption (m, a), "
            f"got shapes {np.shape(transient)} and {np.shape(absorption)}"
        )
    if is_traced(transient, absorption):
        return
    among, away = np.asarray(transient, dtype=float), np.asarray(absorption, dtype=float)
    whole = np.zeros((sum(away.shape),) * 2)
    whole[: len(among)] = np.concatenate([among, away], axis=1)
    whole[len(among) :, len(among) :] = np.eye(away.shape[1])
    require_transition(whole, "the matrix of transient and absorption")
    ends = away.sum(axis=1) > 0
    while True:
        more = ends | ((among > 0) & ends[None, :]).any(axis=1)
        if (more == ends).all():
            break
        ends = more
    if not ends.all():
        raise ValueError(f"transient states {np.flatnonzero(~ends)[:5].tolist()} never lead to absorption")


@in_float64
def absorption(transient: ArrayLike, absorption: ArrayLike) -> Absorption:
    """Visits, steps and ends of an absorbing chain, from every transient state.

    Args:
        transient: ``(m, m)`` probabilities among the transient states.
        absorption: ``(m, a)`` probabilities of ending in each absorbing state.

    Raises:
        ValueError: if the rows do not sum to one, or some state never leads to absorption.
    """
    _require_absorbing(transient, absorption)
    return _absorb(jnp.asarray(transient, float), jnp.asarray(absorption, float))


@in_float64
def absorption_time(start: ArrayLike, transient: ArrayLike, exits: ArrayLike, length: int) -> CutLaw:
    """Law of the steps to absorption on ``0..length-1``; the tail is the mass still under way.

    Args:
        start: law on the transient states, ``(m,)``.
        transient: ``(m, m)`` probabilities among them.
        exits: ``(m,)`` probabilities of absorption at the next step.
        length: number of points.

    Raises:
        ValueError: if ``start`` is not a law or the rows do not sum to one.
    """
    require_law(start, "start")
    _require_absorbing(transient, jnp.asarray(exits)[:, None])
    chances, among = jnp.asarray(exits, float), jnp.asarray(transient, float)

    def step(under_way: Array, _: None) -> tuple[Array, Array]:
        return under_way @ among, under_way @ chances

    last, ended = jax.lax.scan(step, jnp.asarray(start, float), None, length=length - 1)
    return CutLaw(jnp.concatenate([jnp.zeros(1), ended]), last.sum())


@in_float64
def mean_hitting_times(transition: ArrayLike, targets: Sequence[int]) -> Array:
    """Mean steps from each state until one of ``targets`` is entered (0 from these), ``(n,)``.

    Raises:
        ValueError: if the matrix is no transition matrix, no target is given, or a state never gets there.
    """
    require_transition(transition)
    matrix = jnp.asarray(transition, float)
    hit = np.isin(np.arange(matrix.shape[0]), np.asarray(targets))
    if not hit.any():
        raise ValueError(f"targets must name states below {matrix.shape[0]}, got {list(targets)}")
    if hit.all():
        return jnp.zeros(matrix.shape[0])
    others = np.flatnonzero(~hit)
    ended = absorption(
        matrix[others][:, others], matrix[others][:, np.flatnonzero(hit)].sum(1, keepdims=True)
    )
    return jnp.zeros(matrix.shape[0]).at[others].set(ended.mean_steps)
