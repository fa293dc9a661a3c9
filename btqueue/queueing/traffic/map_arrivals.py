"""Arrivals driven by a hidden Markov chain: MAP and batch MAP, slot by slot or in continuous time.

Entry ``blocks[k][i, j]`` is the probability (or rate) that ``k`` packets come while the phase goes from ``i``
to ``j``; ``blocks[0]`` holds the moves without arrivals. Bursts, silences and a channel's good and bad spells
are all of this form.

Sources: Neuts, J. Appl. Prob. 16 (1979); Lucantoni, Stochastic Models 7 (1991); Heffes & Lucantoni, IEEE JSAC
4 (1986). Named processes: `map_sources`.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains import markov
from btqueue.queueing.errors import is_traced
from btqueue.queueing.laws.lattice import CutLaw
from btqueue.queueing.laws.phase_type import ContinuousPhaseType, DiscretePhaseType


class MarkovArrivals(eqx.Module):
    """What both kinds share; times in slots or in the unit of the rates.

    Attributes:
        blocks: ``(b + 1, m, m)``, batches of up to ``b`` packets, ``m`` phases. With traced numbers, phase 0
            has to be recurrent.

    Raises:
        ValueError: if the shape is wrong, the blocks do not add up to a transition matrix (a generator),
            several classes of phases are closed, or there are never any arrivals.
    """

    blocks: ArrayLike

    def __init__(self, blocks: Any) -> None:
        self.blocks = blocks if isinstance(blocks, jax.Array) else np.asarray(blocks, dtype=np.float64)

    def __check_init__(self) -> None:
        shape = np.shape(self.blocks)
        if len(shape) != 3 or shape[0] < 2 or shape[1] != shape[2]:
            raise ValueError(f"blocks must have shape (b + 1, m, m) with b at least 1, got {shape}")
        if is_traced(self.blocks):
            return
        blocks = np.asarray(self.blocks)
        if (blocks[1:] < 0).any():
            raise ValueError("blocks must not be negative where packets arrive")
        self._require_phases(blocks.sum(axis=0))
        recurrent = markov.require_one_closed_class(blocks.sum(axis=0))
        if not blocks[1:, recurrent].any():
            raise ValueError("blocks bring no arrivals: all but the first are zero in the phases that recur")

    def _require_phases(self, matrix: np.ndarray) -> None:
        raise NotImplementedError

    @property
    def phase_law(self) -> Array:
        """Stationary law of the phases, ``(m,)``."""
        raise NotImplementedError

    @property
    @in_float64
    def packet_rate(self) -> Array:
        """Mean packets a slot (a unit of time)."""
        return jnp.asarray(self.phase_law) @ self._mean_batches().sum(axis=1)

    @property
    @in_float64
    def batch_rate(self) -> Array:
        """Mean batches a slot (a unit of time)."""
        return jnp.asarray(self.phase_law) @ jnp.asarray(self.blocks)[1:].sum(axis=(0, 2))

    @property
    @in_float64
    def batch_size(self) -> Array:
        """Law of the packets in a batch, ``(b + 1,)``."""
        sizes = jnp.einsum("i,kij->k", jnp.asarray(self.phase_law), jnp.asarray(self.blocks)).at[0].set(0.0)
        return sizes / sizes.sum()

    def _mean_batches(self) -> Array:
        """``sum_k k blocks[k]``."""
        blocks = jnp.asarray(self.blocks)
        return jnp.tensordot(jnp.arange(blocks.shape[0], dtype=blocks.dtype), blocks, axes=1)

    def _covariance_growth(self, deviation: Array) -> Array:
        """What the phases add to the variance of the count, a unit of time."""
        weighted = self._mean_batches()
        return 2.0 * jnp.asarray(self.phase_law) @ weighted @ deviation @ weighted.sum(axis=1)

    def _second_moment_rate(self) -> Array:
        blocks = jnp.asarray(self.blocks)
        squares = jnp.arange(blocks.shape[0], dtype=blocks.dtype) ** 2
        return jnp.asarray(self.phase_law) @ jnp.tensordot(squares, blocks, axes=1).sum(axis=1)

    def _gap_parts(self) -> tuple[Array, Array, Array]:
        """Start, matrix and exits of the time from batch to batch."""
        blocks = jnp.asarray(self.blocks)
        batches = blocks[1:].sum(axis=0)
        entered = jnp.asarray(self.phase_law) @ batches
        return entered / entered.sum(), blocks[0], batches.sum(axis=1)

    def gaps(self) -> Any:
        """Phase-type law of the time from batch to batch."""
        raise NotImplementedError

    @in_float64
    def gap_correlation(self, lag: int) -> Array:
        """Correlation between a gap and the ``lag``-th after it, ``(p N P^lag N 1 - E^2) / Var``."""
        gaps = self.gaps()
        visits = jnp.asarray(gaps.visits)
        per_batch = visits @ jnp.asarray(self.blocks)[1:].sum(axis=0)
        later = visits.sum(axis=1)
        for _ in range(lag):
            later = per_batch @ later
        mean = jnp.asarray(gaps.mean)
        joint = jnp.asarray(gaps.moment(2)) if lag == 0 else jnp.asarray(gaps.start) @ visits @ later
        return (joint - mean**2) / jnp.asarray(gaps.variance)


class DiscreteMap(MarkovArrivals):
    """At most one batch a slot; ``blocks`` hold probabilities."""

    def __init__(self, blocks: ArrayLike | Sequence[Any]) -> None:
        super().__init__(blocks)

    def _require_phases(self, matrix: np.ndarray) -> None:
        markov.require_transition(matrix, "the sum of blocks")
        if (np.asarray(self.blocks) < 0).any():
            raise ValueError("blocks must not be negative")

    @property
    @in_float64
    def phase_law(self) -> Array:
        """Stationary law of the phases at slot starts, ``(m,)``."""
        return markov.stationary_vector(jnp.asarray(self.blocks).sum(axis=0))

    @property
    @in_float64
    def index_of_dispersion(self) -> Array:
        """Limit of the variance of the packets in ``n`` slots over their mean."""
        rate = jnp.asarray(self.packet_rate)
        deviation = jnp.asarray(markov.deviation_matrix(jnp.asarray(self.blocks).sum(axis=0)))
        growth = self._second_moment_rate() - rate**2 + self._covariance_growth(deviation)
        return growth / rate

    @in_float64
    def gaps(self) -> DiscretePhaseType:
        """Law of the slots from batch to batch (1 if the next slot brings one)."""
        return DiscretePhaseType(*self._gap_parts())

    @in_float64
    def slot_correlation(self, lag: int) -> Array:
        """Correlation between the packets of a slot and those of the ``lag``-th slot after it."""
        phases = jnp.asarray(self.blocks).sum(axis=0)
        weighted, rate = self._mean_batches(), jnp.asarray(self.packet_rate)
        second = self._second_moment_rate()
        if lag == 0:
            return jnp.ones_like(rate)
        later = weighted.sum(axis=1)
        for _ in range(lag - 1):
            later = phases @ later
        joint = jnp.asarray(self.phase_law) @ weighted @ later
        return (joint - rate**2) / (second - rate**2)

    @in_float64
    def count_law(self, slots: int, length: int) -> CutLaw:
        """Law of the packets in ``slots`` slots of the stationary process, on ``0..length-1``."""
        blocks = jnp.asarray(self.blocks)
        size = min(blocks.shape[0], length)
        # from_top[j]: more than what is left below `length`
        at_least = jnp.cumsum(blocks[::-1], axis=0)[::-1]
        room = length - jnp.arange(length)
        beyond = jnp.where(
            (room < blocks.shape[0])[:, None, None], at_least[jnp.minimum(room, blocks.shape[0] - 1)], 0.0
        )

        def one_slot(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            law, over = carry
            over = over @ blocks.sum(axis=0) + jnp.einsum("ki,kij->j", law, beyond)
            spread = jnp.zeros_like(law)
            for k in range(size):
                spread = spread.at[k:].add(law[: length - k] @ blocks[k])
            return (spread, over), None

        start = jnp.zeros((length, blocks.shape[1])).at[0].set(jnp.asarray(self.phase_law))
        (law, over), _ = jax.lax.scan(one_slot, (start, jnp.zeros(blocks.shape[1])), None, length=slots)
        return CutLaw(law.sum(axis=1), over.sum())


class ContinuousMap(MarkovArrivals):
    """Batches at moments of continuous time; ``blocks`` hold rates."""

    def __init__(self, blocks: ArrayLike | Sequence[Any]) -> None:
        super().__init__(blocks)

    def _require_phases(self, matrix: np.ndarray) -> None:
        # the parts of a sum of zero may be large
        scale = np.abs(np.asarray(self.blocks)).max() / max(np.abs(matrix).max(), np.finfo(float).tiny)
        markov.require_generator(matrix, "the sum of blocks", atol=1e-9 * max(scale, 1.0))
        first = np.asarray(self.blocks)[0]
        if (first - np.diag(np.diag(first)) < 0).any():
            raise ValueError("blocks must not be negative off the diagonal of the first")

    def _generator(self) -> Array:
        """Generator of the phases; rounding in the blocks' diagonals does not reach it."""
        moves = jnp.asarray(self.blocks).sum(axis=0)
        moves = moves * (1.0 - jnp.eye(moves.shape[0]))
        return moves - jnp.diag(moves.sum(axis=1))

    @property
    @in_float64
    def phase_law(self) -> Array:
        """Stationary law of the phases, ``(m,)``."""
        return markov.stationary_vector_continuous(self._generator())

    @property
    @in_float64
    def index_of_dispersion(self) -> Array:
        """Limit of the variance of the packets in a long time over their mean."""
        generator = self._generator()
        law = jnp.broadcast_to(jnp.asarray(self.phase_law), generator.shape)
        # scaled by the largest rate, so that the two parts of the sum weigh alike
        fastest = jnp.maximum(jnp.max(-jnp.diagonal(generator)), 1.0)
        deviation = (jnp.linalg.inv(law - generator / fastest) - law) / fastest
        return (self._second_moment_rate() + self._covariance_growth(deviation)) / jnp.asarray(
            self.packet_rate
        )

    @in_float64
    def gaps(self) -> ContinuousPhaseType:
        """Law of the time from batch to batch."""
        return ContinuousPhaseType(*self._gap_parts())


Kind = TypeVar("Kind", bound=MarkovArrivals)


@in_float64
def superpose(first: Kind, second: Kind) -> Kind:
    """The arrivals of two independent processes together, on ``m1 m2`` phases.

    Raises:
        ValueError: if one is discrete and the other continuous.
    """
    if type(first) is not type(second):
        raise ValueError("processes must both be discrete or both be continuous")
    one, other = jnp.asarray(first.blocks), jnp.asarray(second.blocks)
    phases = one.shape[1] * other.shape[1]
    if isinstance(first, DiscreteMap):
        blocks = jnp.zeros((one.shape[0] + other.shape[0] - 1, phases, phases))
        for i in range(one.shape[0]):
            for j in range(other.shape[0]):
                blocks = blocks.at[i + j].add(jnp.kron(one[i], other[j]))
        return type(first)(blocks)
    blocks = jnp.zeros((max(one.shape[0], other.shape[0]), phases, phases))
    for i in range(one.shape[0]):
        blocks = blocks.at[i].add(jnp.kron(one[i], jnp.eye(other.shape[1])))
    for j in range(other.shape[0]):
        blocks = blocks.at[j].add(jnp.kron(jnp.eye(one.shape[1]), other[j]))
    return type(first)(blocks)
