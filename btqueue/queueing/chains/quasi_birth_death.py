"""Quasi-birth-death chains: levels 0, 1, 2, ... with phases, each step at most one level up or down.

The level process is solved through ``G``, the law of the phase in which the next lower level is first
entered, found by logarithmic reduction (quadratic convergence, no subtractions), and ``R = A_up (I - A_local
- A_up G)^-1``, which gives ``pi[k + 1] = pi[k] R``. ``G`` is differentiated as the fixed point it is.

Sources: Latouche & Ramaswami, J. Appl. Prob. 30 (1993), and Introduction to Matrix Analytic Methods (1999),
chapters 6 and 8.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains import markov
from btqueue.queueing.chains.absorbing import visit_counts
from btqueue.queueing.errors import is_traced
from btqueue.queueing.laws.lattice import CutLaw

# after k doublings paths of 2^k levels are counted: more than any load below 1 - 1e-12 needs
_DOUBLINGS = 60


def _visits(up: Array, local: Array, down: Array, passage: Array) -> Array:
    """``(I - A_local - A_up G)^-1``: visits to a level before the one below is entered."""
    never = jnp.maximum(1.0 - passage.sum(axis=1), 0.0)
    return visit_counts(local + up @ passage, down.sum(axis=1) + up @ never)


@jax.custom_jvp
def first_passage_matrix(up: Array, local: Array, down: Array) -> Array:
    """Minimal solution of ``G = A_down + A_local G + A_up G^2`` by logarithmic reduction.

    The diagonal of ``local`` is not read: rows sum to one.
    """
    stay = visit_counts(local, (up + down).sum(axis=1))

    def unfinished(carry: tuple[Array, ...]) -> Array:
        *_, change, doublings = carry
        return (change > 1e-18) & (doublings < _DOUBLINGS)

    def double(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        higher, lower, passage, climb, _, doublings = carry
        two_up, two_down = higher @ higher, lower @ lower
        around = visit_counts(higher @ lower + lower @ higher, (two_up + two_down).sum(axis=1))
        higher, lower = around @ two_up, around @ two_down
        more = climb @ lower
        return higher, lower, passage + more, climb @ higher, jnp.max(more), doublings + 1

    higher, lower = stay @ up, stay @ down
    one = jnp.ones((), up.dtype)
    return jax.lax.while_loop(
        unfinished, double, (higher, lower, lower, higher, one, jnp.zeros((), jnp.int32))
    )[2]


@first_passage_matrix.defjvp
def _first_passage_jvp(
    primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]
) -> tuple[Array, Array]:
    # dG = N (dA_down + dA_local G + dA_up G^2) + (N A_up) dG G: summed by doubling, as the spectral radii of
    # N A_up and G have a product below one
    (up, local, down), (change_up, change_local, change_down) = primals, tangents
    passage = first_passage_matrix(up, local, down)
    visits = _visits(up, local, down, passage)
    source = visits @ (change_down + (change_local + change_up @ passage) @ passage)

    def square(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        left, right = carry
        return (left @ left, right @ right), carry

    _, powers = jax.lax.scan(square, (visits @ up, passage), None, length=40)

    def add(total: Array, factors: tuple[Array, Array]) -> tuple[Array, None]:
        left, right = factors
        return total + left @ total @ right, None

    return passage, jax.lax.scan(add, source, powers)[0]


class QuasiBirthDeath(eqx.Module):
    """Steady state with infinitely many levels.

    Attributes:
        boundary: stationary probabilities of the phases of level 0, ``(b,)``.
        first: those of level 1, ``(m,)``; ``first @ R^(k-1)`` is level ``k``.
        rate_matrix: ``R``, ``(m, m)``.
        first_passage: ``G``, ``(m, m)``.
        beyond: ``(I - R)^-1``, ``(m, m)``.
        drift: mean levels gained a step away from the boundary; negative if stable.
        stable: whether there is a steady state. If not, all probabilities are zero.
        residual: largest error of ``G`` in its equation.
    """

    boundary: Array
    first: Array
    rate_matrix: Array
    first_passage: Array
    beyond: Array
    drift: Array
    stable: Array
    residual: Array

    @property
    @in_float64
    def mean_level(self) -> Array:
        """Mean level; infinite if not stable."""
        above = jnp.asarray(self.first) @ self.beyond @ self.beyond
        return jnp.where(self.stable, above.sum(), jnp.inf)

    @in_float64
    def phases(self, length: int) -> Array:
        """Stationary probabilities of levels ``1..length`` by phase, ``(length, m)``."""

        def climb(level: Array, _: None) -> tuple[Array, Array]:
            return level @ self.rate_matrix, level

        return jax.lax.scan(climb, jnp.asarray(self.first), None, length=length)[1]

    @in_float64
    def level_law(self, length: int) -> CutLaw:
        """Law of the level on ``0..length-1``; without steady state everything is beyond."""
        levels = jnp.asarray(self.phases(length))
        law = jnp.concatenate([jnp.asarray(self.boundary).sum()[None], levels[:-1].sum(axis=1)])
        return CutLaw(law, jnp.where(self.stable, (levels[-1] @ self.beyond).sum(), 1.0))


@eqx.filter_jit
def _solve(
    up: Array, local: Array, down: Array, at_zero: Array, from_zero: Array, to_zero: Array
) -> QuasiBirthDeath:
    phases = up.shape[0]
    law = markov.stationary_vector(up + local + down)
    drift = law @ up.sum(axis=1) - law @ down.sum(axis=1)
    stable = drift < 0
    passage = first_passage_matrix(up, local, down)
    residual = jnp.abs(down + (local + up @ passage) @ passage - passage).max()
    rates = up @ _visits(up, local, down, passage)
    # without steady state R has a root of one: any number in its place, masked below
    rates_safe = jnp.where(stable, rates, 0.0)
    beyond = jnp.linalg.inv(jnp.eye(phases) - rates_safe)
    censored = jnp.concatenate(
        [
            jnp.concatenate([at_zero, from_zero], axis=1),
            jnp.concatenate([to_zero, local + up @ passage], axis=1),
        ]
    )
    weights = markov.stationary_vector(jnp.where(stable, censored, 1.0 / censored.shape[0]))
    boundary, first = weights[: at_zero.shape[0]], weights[at_zero.shape[0] :]
    total = boundary.sum() + (first @ beyond).sum()
    share = jnp.where(stable, 1.0 / total, 0.0)
    return QuasiBirthDeath(share * boundary, share * first, rates, passage, beyond, drift, stable, residual)


def _require_row_sums(blocks: list[ArrayLike], name: str, total: float) -> None:
    """Raise ``ValueError`` unless the rows of blocks side by side sum to ``total`` (traced ones pass)."""
    if is_traced(*blocks):
        return
    whole = np.concatenate([np.asarray(block, dtype=float) for block in blocks], axis=1)
    scale = max(np.abs(whole).max(), 1e-300)
    off = np.abs(whole.sum(axis=1) - total).max()
    if not np.isfinite(whole).all() or off > 1e-9 * scale:
        raise ValueError(f"the rows of {name} must sum to {total:g}, got {whole.sum(axis=1)}")
    if total and (whole < -1e-12).any():
        raise ValueError(f"{name} must hold non-negative probabilities")


def _transition_blocks(
    up: ArrayLike,
    local: ArrayLike,
    down: ArrayLike,
    boundary: tuple[ArrayLike, ArrayLike, ArrayLike] | None,
    rates: bool,
) -> tuple[Array, ...]:
    """Checked blocks as transition probabilities; rates are uniformized with the fastest state's."""
    if not (np.ndim(up) == 2 and np.shape(up) == np.shape(local) == np.shape(down) == np.shape(up)[::-1]):
        raise ValueError(
            f"up, local and down must be square and alike, got shapes "
            f"{np.shape(up)}, {np.shape(local)}, {np.shape(down)}"
        )
    if boundary is None:
        boundary = (jnp.asarray(local, float) + jnp.asarray(down, float), up, down)
    at_zero, from_zero, to_zero = boundary
    edge, phases = np.shape(at_zero)[0], np.shape(up)[0]
    shapes = (np.shape(at_zero), np.shape(from_zero), np.shape(to_zero))
    if shapes != ((edge, edge), (edge, phases), (phases, edge)):
        raise ValueError(f"boundary blocks must have shapes (b, b), (b, m) and (m, b), got {shapes}")
    total = 0.0 if rates else 1.0
    _require_row_sums([down, local, up], "down, local and up", total)
    _require_row_sums([at_zero, from_zero], "the boundary's first two blocks", total)
    _require_row_sums([to_zero, local, up], "the boundary's third block, local and up", total)
    blocks = [jnp.asarray(block, float) for block in (up, local, down, at_zero, from_zero, to_zero)]
    if not rates:
        return tuple(blocks)
    fastest = jnp.maximum(jnp.max(-jnp.diagonal(blocks[1])), jnp.max(-jnp.diagonal(blocks[3])))
    blocks = [block / fastest for block in blocks]
    for k in (1, 3):
        blocks[k] = blocks[k] + jnp.eye(blocks[k].shape[0])
    return tuple(blocks)


@in_float64
def quasi_birth_death(
    up: ArrayLike,
    local: ArrayLike,
    down: ArrayLike,
    *,
    boundary: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    rates: bool = False,
) -> QuasiBirthDeath:
    """Steady state of a chain whose levels from 1 on all move alike.

    With traced input, phase 0 and the boundary's state 0 must be recurrent, and stability is a flag.

    Args:
        up: ``(m, m)``, one level up.
        local: ``(m, m)``, within the level.
        down: ``(m, m)``, one level down.
        boundary: ``(b, b)`` within level 0, ``(b, m)`` from it up to level 1, ``(m, b)`` from level 1 down to
            it; left out, level 0 is like the others but for a step down, which stays.
        rates: whether the blocks hold rates of continuous time (rows sum to zero) or probabilities.

    Raises:
        ValueError: if shapes or row sums do not fit, or (outside compiled code) the levels drift upward.
    """
    blocks = _transition_blocks(up, local, down, boundary, rates)
    solution = _solve(*blocks)
    if not is_traced(solution.stable) and not bool(solution.stable):
        raise ValueError(
            "up outweighs down, there is no steady state: the mean drift must be negative, got "
            f"{float(solution.drift):g} levels a step"
        )
    return solution
