"""Phase-type laws: times until absorption of small Markov chains, in slots (discrete) or in continuous time.

Both kinds are triples (start, matrix, exits): a law on the phases, what moves between them, and the
probability or rate of ending from each. The exits are kept beside the matrix, although they complete its row
sums, because the difference would lose the digits of rare ends.

Sources: Neuts, Matrix-Geometric Solutions in Stochastic Models (1981), chapter 2; Latouche & Ramaswami,
Introduction to Matrix Analytic Methods (1999), chapter 2. Fits: `phase_type_fit`.
"""

from collections.abc import Sequence
from math import factorial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import block_diag, expm
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains.absorbing import absorption_time, visit_counts
from btqueue.queueing.errors import is_traced, require_law
from btqueue.queueing.laws.lattice import CutLaw

Numbers = ArrayLike | Sequence[Any]


def _as_array(value: Any) -> Any:
    return value if isinstance(value, jax.Array) else np.asarray(value, dtype=np.float64)


class PhaseType(eqx.Module):
    """What both kinds share.

    Attributes:
        start: law of the first phase, ``(m,)``; no mass ends at once.
        matrix: ``(m, m)`` transition probabilities (discrete) or rates (continuous) between phases.
        exits: ``(m,)`` probabilities or rates of the end; the rows of ``matrix`` completed, if left out.

    Raises:
        ValueError: if ``start`` is not a law, shapes differ, or a row is not completed by its exit.
    """

    start: ArrayLike
    matrix: ArrayLike
    exits: ArrayLike

    def __init__(self, start: Numbers, matrix: Numbers, exits: Numbers | None = None) -> None:
        self.start = _as_array(start)
        inner = _as_array(matrix)
        self.matrix = inner
        self.exits = self._row_total() - inner.sum(axis=-1) if exits is None else _as_array(exits)

    def _row_total(self) -> float:
        raise NotImplementedError

    def __check_init__(self) -> None:
        phases = np.shape(self.start)[-1] if np.ndim(self.start) else 0
        if np.shape(self.matrix) != (phases, phases) or np.shape(self.exits) != (phases,):
            raise ValueError(
                "start, matrix and exits must have shapes (m,), (m, m) and (m,), "
                f"got {np.shape(self.start)}, "
                f"{np.shape(self.matrix)} and {np.shape(self.exits)}"
            )
        require_law(self.start, "start")
        if is_traced(self.matrix, self.exits):
            return
        matrix, exits = np.asarray(self.matrix), np.asarray(self.exits)
        largest = max(np.abs(matrix).max(), 1e-300)
        if np.abs(matrix.sum(axis=1) + exits - self._row_total()).max() > 1e-9 * largest:
            raise ValueError(f"each row of matrix and its exit must sum to {self._row_total()}, got {matrix}")
        between = matrix if self._row_total() else matrix - np.diag(np.diag(matrix))
        if (between < -1e-12 * largest).any() or (exits < -1e-12 * largest).any():
            raise ValueError("matrix and exits must not be negative (the diagonal of rates excepted)")

    @property
    @in_float64
    def visits(self) -> Array:
        """Mean slots (or time) spent in each phase by start phase, ``(m, m)``."""
        return visit_counts(jnp.asarray(self.matrix), jnp.asarray(self.exits))

    @property
    @in_float64
    def mean(self) -> Array:
        """Mean, ``alpha N 1``."""
        return jnp.asarray(self.start) @ jnp.asarray(self.visits).sum(axis=1)

    @in_float64
    def moment(self, order: int) -> Array:
        """Moment about zero of the given order."""
        raise NotImplementedError

    @property
    @in_float64
    def variance(self) -> Array:
        """Variance."""
        return jnp.asarray(self.moment(2)) - jnp.asarray(self.mean) ** 2

    @property
    @in_float64
    def scv(self) -> Array:
        """Squared coefficient of variation, variance over squared mean."""
        return jnp.asarray(self.variance) / jnp.asarray(self.mean) ** 2


class DiscretePhaseType(PhaseType):
    """Whole slots, at least one, until absorption."""

    def __init__(self, start: Numbers, matrix: Numbers, exits: Numbers | None = None) -> None:
        super().__init__(start, matrix, exits)

    def _row_total(self) -> float:
        return 1.0

    @in_float64
    def factorial_moment(self, order: int) -> Array:
        """``E[X (X-1) ... (X-order+1)] = order! alpha N^order T^(order-1) 1``."""
        vector = jnp.ones(jnp.shape(self.start)[0])
        for _ in range(order - 1):
            vector = jnp.asarray(self.visits) @ (jnp.asarray(self.matrix) @ vector)
        return factorial(order) * (jnp.asarray(self.start) @ (jnp.asarray(self.visits) @ vector))

    @in_float64
    def moment(self, order: int) -> Array:
        """Moment about zero, from the factorial moments by Stirling numbers of the second kind."""
        stirling = [1]  # S(0, .)
        for _ in range(order):
            stirling = [
                j * (stirling[j] if j < len(stirling) else 0) + (stirling[j - 1] if j else 0)
                for j in range(len(stirling) + 1)
            ]
        return sum(
            (count * jnp.asarray(self.factorial_moment(j)) for j, count in enumerate(stirling) if j),
            start=jnp.zeros(()),
        )

    @in_float64
    def law(self, length: int) -> CutLaw:
        """The law on ``0..length-1`` slots and the mass beyond."""
        return absorption_time(self.start, self.matrix, self.exits, length)


class ContinuousPhaseType(PhaseType):
    """Time until absorption of a chain in continuous time; ``matrix`` holds rates, rows completed to zero."""

    def __init__(self, start: Numbers, matrix: Numbers, exits: Numbers | None = None) -> None:
        super().__init__(start, matrix, exits)

    def _row_total(self) -> float:
        return 0.0

    @in_float64
    def moment(self, order: int) -> Array:
        """``E[X^order] = order! alpha N^order 1``."""
        vector = jnp.ones(jnp.shape(self.start)[0])
        for _ in range(order):
            vector = jnp.asarray(self.visits) @ vector
        return factorial(order) * (jnp.asarray(self.start) @ vector)

    @in_float64
    def survival(self, time: ArrayLike) -> Array:
        """``Pr(X > time)`` for one time."""
        return (jnp.asarray(self.start) @ expm(jnp.asarray(self.matrix) * time)).sum()

    @in_float64
    def density(self, time: ArrayLike) -> Array:
        """Probability density at one time."""
        return jnp.asarray(self.start) @ expm(jnp.asarray(self.matrix) * time) @ jnp.asarray(self.exits)


Kind = TypeVar("Kind", bound=PhaseType)


def _require_one_kind(parts: Sequence[PhaseType]) -> None:
    if len({type(part) for part in parts}) != 1:
        raise ValueError("phase-type laws must all be discrete or all be continuous")


@in_float64
def convolve(first: Kind, second: Kind) -> Kind:
    """Law of the sum of two independent phase-type times, on ``m1 + m2`` phases."""
    _require_one_kind([first, second])
    ends, begins = jnp.asarray(first.exits), jnp.asarray(second.start)
    among = block_diag(jnp.asarray(first.matrix), jnp.asarray(second.matrix))
    among = among.at[: ends.shape[0], ends.shape[0] :].set(ends[:, None] * begins[None, :])
    start = jnp.concatenate([jnp.asarray(first.start), jnp.zeros_like(begins)])
    return type(first)(start, among, jnp.concatenate([jnp.zeros_like(ends), jnp.asarray(second.exits)]))


@in_float64
def mixture(weights: Numbers, parts: Sequence[Kind]) -> Kind:
    """Law that is ``parts[i]`` with probability ``weights[i]``.

    Raises:
        ValueError: if the weights are not probabilities, or not one for each law.
    """
    _require_one_kind(parts)
    require_law(weights, "weights")
    if np.shape(weights) != (len(parts),):
        raise ValueError(f"weights must hold one for each law, got {np.shape(weights)} for {len(parts)}")
    chances = jnp.asarray(weights, dtype=float)
    return type(parts[0])(
        jnp.concatenate([chances[i] * jnp.asarray(part.start) for i, part in enumerate(parts)]),
        block_diag(*[jnp.asarray(part.matrix) for part in parts]),
        jnp.concatenate([jnp.asarray(part.exits) for part in parts]),
    )


@in_float64
def geometric_sum(part: Kind, success: ArrayLike) -> Kind:
    """Law of a sum of copies whose number is geometric on ``1, 2, ...``, ending with ``success``.

    The service of a packet that is sent again until it gets through, on the same phases.

    Raises:
        ValueError: if ``success`` is not in (0, 1].
    """
    if not is_traced(success) and not 0.0 < float(np.asarray(success)) <= 1.0:
        raise ValueError(f"success must be a probability above 0, got {success}")
    chance = jnp.asarray(success, float)
    start, ends = jnp.asarray(part.start), jnp.asarray(part.exits)
    return type(part)(
        start, jnp.asarray(part.matrix) + (1.0 - chance) * jnp.outer(ends, start), chance * ends
    )


def _ones(part: PhaseType) -> Array:
    return jnp.ones(jnp.shape(part.start)[0])


def _both(first: PhaseType, second: PhaseType) -> Array:
    """How the two run together: product of probabilities, sum of rates."""
    one, other = jnp.asarray(first.matrix), jnp.asarray(second.matrix)
    if isinstance(first, DiscretePhaseType):
        return jnp.kron(one, other)
    return jnp.kron(one, jnp.eye(other.shape[0])) + jnp.kron(jnp.eye(one.shape[0]), other)


@in_float64
def minimum(first: Kind, second: Kind) -> Kind:
    """Law of the smaller of two independent phase-type times, on ``m1 m2`` phases."""
    _require_one_kind([first, second])
    ends, other_ends = jnp.asarray(first.exits), jnp.asarray(second.exits)
    goes_on = jnp.asarray(first.matrix).sum(axis=1) if isinstance(first, DiscretePhaseType) else _ones(first)
    exits = jnp.kron(ends, _ones(second)) + jnp.kron(goes_on, other_ends)
    return type(first)(
        jnp.kron(jnp.asarray(first.start), jnp.asarray(second.start)), _both(first, second), exits
    )


@in_float64
def maximum(first: Kind, second: Kind) -> Kind:
    """Law of the larger of two independent phase-type times, on ``m1 m2 + m1 + m2`` phases."""
    _require_one_kind([first, second])
    one, other = jnp.asarray(first.matrix), jnp.asarray(second.matrix)
    ends, other_ends = jnp.asarray(first.exits), jnp.asarray(second.exits)
    together, alone = one.shape[0] * other.shape[0], one.shape[0] + other.shape[0]
    if isinstance(first, DiscretePhaseType):
        first_stays, second_stays, at_once = one, other, jnp.kron(ends, other_ends)
    else:
        first_stays, second_stays, at_once = jnp.eye(len(ends)), jnp.eye(len(other_ends)), jnp.zeros(together)
    matrix = block_diag(_both(first, second), one, other)
    matrix = matrix.at[:together, together:].set(
        jnp.concatenate(
            [jnp.kron(first_stays, other_ends[:, None]), jnp.kron(ends[:, None], second_stays)], axis=1
        )
    )
    start = jnp.kron(jnp.asarray(first.start), jnp.asarray(second.start))
    return type(first)(
        jnp.concatenate([start, jnp.zeros(alone)]), matrix, jnp.concatenate([at_once, ends, other_ends])
    )


@in_float64
def stationary_excess(part: Kind) -> Kind:
    """Law of what is left of a time met at a random moment: the same phases, started in equilibrium.

    Discrete: the slots still to come *with* the current one (`lattice.equilibrium_residual` plus one).
    """
    spent = jnp.asarray(part.start) @ jnp.asarray(part.visits)
    return type(part)(spent / spent.sum(), part.matrix, part.exits)
