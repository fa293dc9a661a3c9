"""Stationary vectors of large sparse chains, with derivatives.

The balance equations, with the probability of one recurrent state fixed, are solved by a sparse LU
factorisation on the host (SuperLU), called from compiled code; the derivative is one more solve with the same
matrix. Unlike GTH (`markov.stationary_vector`) it subtracts: probabilities keep an absolute accuracy of some
1e-15, not a relative one.

Source: Stewart, Introduction to the Numerical Solution of Markov Chains (1994), chapter 2.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import splu

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains import markov
from btqueue.queueing.errors import is_traced


class SparseTransition(eqx.Module):
    """A transition matrix by its entries; those given twice add up.

    Attributes:
        rows: state before, whole numbers, ``(entries,)``.
        columns: state after, ``(entries,)``.
        probabilities: ``(entries,)``.
        states: number of states.
    """

    rows: ArrayLike
    columns: ArrayLike
    probabilities: ArrayLike
    states: int = eqx.field(static=True)

    @classmethod
    def from_scipy(cls, matrix: Any) -> "SparseTransition":
        """From any scipy sparse matrix or array."""
        entries = matrix.tocoo()
        return cls(
            entries.row.astype(np.int32),
            entries.col.astype(np.int32),
            entries.data.astype(float),
            matrix.shape[0],
        )

    def to_scipy(self) -> Any:
        """As a scipy array in compressed rows."""
        return _assemble(self.rows, self.columns, self.probabilities, self.states)


def _assemble(rows: Any, columns: Any, probabilities: Any, states: int) -> Any:
    entries = (np.asarray(probabilities, dtype=float), (np.asarray(rows), np.asarray(columns)))
    matrix = sparse.coo_array(entries, shape=(states, states)).tocsr()
    matrix.eliminate_zeros()
    return matrix


def _without(vector: np.ndarray, state: int) -> np.ndarray:
    return np.delete(vector, state)


def _with(vector: np.ndarray, state: int, value: float) -> np.ndarray:
    return np.insert(vector, state, value)


def _factorised(matrix: Any, state: int) -> Any:
    """Factors of ``I - P`` without the row and column of ``state``."""
    keep = _without(np.arange(matrix.shape[0]), state)
    return _lu(sparse.eye_array(len(keep), format="csc") - matrix[keep][:, keep].tocsc())


def _lu(m_matrix: Any) -> Any:
    """Sparse factors, pivots taken from the diagonal."""
    return splu(
        sparse.csc_array(m_matrix),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def _relative_to(matrix: Any, state: int) -> np.ndarray:
    """Stationary measure with mass one at ``state``."""
    out = _without(np.asarray(matrix[[state]].todense()).ravel(), state)
    return _with(_factorised(matrix, state).solve(out, trans="T"), state, 1.0)


def _likely_state(matrix: Any, closed: list[int]) -> int:
    """A state of large stationary probability: relative to a rare one, all others would be inaccurate.

    The likeliest state of the chain watched at the end of a geometric time of mean 1e12, which exists without
    any state being fixed: ``I - (1 - 1e-12) P`` is a well-behaved M-matrix.
    """
    states = matrix.shape[0]
    damped = sparse.eye_array(states, format="csc") - (1.0 - 1e-12) * matrix.tocsc()
    weights = _lu(damped).solve(np.full(states, 1.0 / states), trans="T")
    return closed[int(np.abs(weights[closed]).argmax())]


def _host_law(rows: Any, columns: Any, probabilities: Any, states: int) -> np.ndarray:
    matrix = _assemble(rows, columns, probabilities, states)
    closed = markov.closed_classes(matrix)
    if len(closed) != 1:
        return np.full(states, np.nan)
    if states == 1:
        return np.ones(1)
    weights = _relative_to(matrix, _likely_state(matrix, closed[0]))
    law = np.maximum(weights, 0.0) / weights.sum()
    # a chain that hardly ever leaves one part for another is beyond this method
    if not np.abs(law @ matrix - law).sum() < 1e-10 or weights.min() < -1e-9 * weights.max():
        return np.full(states, np.nan)
    return law / law.sum()


def _host_solve(
    rows: Any, columns: Any, probabilities: Any, law: Any, right: Any, states: int, transposed: bool
) -> np.ndarray:
    """Solve ``x (I - P + 1 pi) = r``, or transposed ``(I - P + 1 pi) x = r``."""
    law, right = np.asarray(law), np.asarray(right)
    if not np.isfinite(law).all():
        return np.full(states, np.nan)
    if states == 1:
        return right
    state = int(law.argmax())
    factors = _factorised(_assemble(rows, columns, probabilities, states), state)
    if transposed:
        mean = law @ right
        part = _with(factors.solve(_without(right - mean, state)), state, 0.0)
        return part - law @ part + mean
    part = _with(factors.solve(_without(right - right.sum() * law, state), trans="T"), state, 0.0)
    return part + (right.sum() - part.sum()) * law


@jax.custom_jvp
def _stationary(probabilities: Array, rows: Array, columns: Array, start: Array) -> Array:
    states = start.shape[0]
    return jax.pure_callback(
        partial(_host_law, states=states),
        jax.ShapeDtypeStruct((states,), jnp.float64),
        rows,
        columns,
        probabilities,
        vmap_method="sequential",
    )


@_stationary.defjvp
def _stationary_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    # as for the dense chain: dpi (I - P + 1 pi) = pi dP
    (probabilities, rows, columns, start), (perturbation, *_) = primals, tangents
    law = _stationary(probabilities, rows, columns, start)
    states = start.shape[0]

    def product(vector: Array) -> Array:
        moved = jnp.zeros(states).at[columns].add(vector[rows] * probabilities)
        return vector - moved + vector.sum() * law

    def solver(transposed: bool) -> Any:
        def solve(_: Any, right: Array) -> Array:
            return jax.pure_callback(
                partial(_host_solve, states=states, transposed=transposed),
                jax.ShapeDtypeStruct((states,), jnp.float64),
                rows,
                columns,
                probabilities,
                law,
                right,
                vmap_method="sequential",
            )

        return solve

    right = jnp.zeros(states).at[columns].add(law[rows] * perturbation)
    change = jax.lax.custom_linear_solve(product, right, solver(False), solver(True))
    return law, change


def _require_sparse(chain: SparseTransition, atol: float) -> None:
    rows, columns = np.asarray(chain.rows), np.asarray(chain.columns)
    if not (rows.shape == columns.shape == np.shape(chain.probabilities) and rows.ndim == 1):
        raise ValueError("rows, columns and probabilities must be vectors of one length")
    if min(rows.min(), columns.min()) < 0 or max(rows.max(), columns.max()) >= chain.states:
        raise ValueError(f"rows and columns must name states below {chain.states}")
    values = np.asarray(chain.probabilities, dtype=float)
    if not np.isfinite(values).all() or (values < -atol).any():
        raise ValueError("probabilities must be finite and not negative")
    totals = np.bincount(rows, values, chain.states)
    worst = int(np.abs(totals - 1.0).argmax())
    if abs(totals[worst] - 1.0) > atol:
        raise ValueError(
            f"the probabilities from each state must sum to one, but row {worst} has {totals[worst]:.17g}"
        )
    markov.require_one_closed_class(chain.to_scipy())


@in_float64
def sparse_stationary_vector(chain: SparseTransition, *, atol: float = 1e-9) -> Array:
    """Stationary law ``pi = pi P`` of a large sparse chain with one closed class, ``(states,)``.

    Differentiable in ``probabilities`` along directions whose row sums are zero, forward and in reverse.
    Batches (``vmap``) are solved one after the other. Inside compiled code a chain with
    several closed classes, or too close to that, gives NaN.

    Args:
        chain: the transition matrix.
        atol: largest error of a row sum that is accepted.

    Raises:
        ValueError: if indices, probabilities or row sums are wrong, or several classes are closed or nearly
            so.
    """
    if not is_traced(chain.rows, chain.columns, chain.probabilities):
        _require_sparse(chain, atol)
    law = _stationary(
        jnp.asarray(chain.probabilities, float),
        jnp.asarray(chain.rows),
        jnp.asarray(chain.columns),
        jnp.zeros(chain.states),
    )
    if not is_traced(law) and not bool(jnp.isfinite(law).all()):
        raise ValueError(
            "chain is too close to a reducible one for the sparse route: use markov.stationary_vector"
        )
    return law
