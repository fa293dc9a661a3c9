"""The map from one round's start to the next, and its fixed point.

Inside a round no state repeats, so the stationary law of all micro-steps follows from the law at the starts
of rounds by one pass from the longest burst to the shortest. Only the law at the starts is unknown: it
solves x = x P with P the round map, applied without being formed.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, gmres

from btqueue.transport.chain import ROUND_END, TransitionStructure

Array = NDArray[np.float64]


class NotConvergedError(RuntimeError):
    """The stationary law was not found to the tolerance asked for."""


@dataclass(frozen=True, eq=False)
class RoundIndex:
    """Constant index arrays of a structure's rounds.

    Attributes:
        levels: states with n, n - 1, ..., 1 open segments, as slices.
        descend: one sparse 0/1 matrix a level but the last: (states of the next level, fates times states of
            this one).
        starts: states in which a round may start.
        close: sparse 0/1 matrix (exits, fates times states of the last level).
        exit_ending: (exits,) ending of each exit: a pair (ending, state in which the next round starts).
        arrive: sparse 0/1 matrix (starts, exits).
    """

    levels: tuple[slice, ...]
    descend: tuple[sparse.csr_array, ...]
    starts: NDArray[np.int64]
    close: sparse.csr_array
    exit_ending: NDArray[np.int64]
    arrive: sparse.csr_array


@lru_cache(maxsize=32)
def index_rounds(structure: TransitionStructure) -> RoundIndex:
    """Sort the transitions of a structure into those inside a round and those that close one."""
    longest = int(structure.open_segments[0])
    bounds = np.searchsorted(-structure.open_segments, np.arange(-longest, 1), side="left")
    bounds[-1] = structure.states
    levels = tuple(slice(int(a), int(b)) for a, b in pairwise(bounds))

    descend = []
    for level, following in pairwise(levels):
        target = structure.target[level].T.ravel() - following.start
        descend.append(_selector(target, following.stop - following.start))

    last = levels[-1]
    ending, target = structure.ending[last].T.ravel(), structure.target[last].T.ravel()
    exits, exit_of = np.unique(ending * structure.states + target, return_inverse=True)
    exit_ending, exit_target = np.divmod(exits, structure.states)
    starts, start_of_exit = np.unique(exit_target, return_inverse=True)
    return RoundIndex(
        levels=levels,
        descend=tuple(descend),
        starts=starts,
        close=_selector(exit_of, exits.size),
        exit_ending=exit_ending,
        arrive=_selector(start_of_exit, starts.size),
    )


def _selector(row_of_column: NDArray[np.int64], rows: int) -> sparse.csr_array:
    """0/1 matrix that adds column k of its operand into row `row_of_column[k]`."""
    columns = row_of_column.size
    ones = np.ones(columns)
    return sparse.csr_array((ones, (row_of_column, np.arange(columns))), shape=(rows, columns))


@dataclass(frozen=True, eq=False)
class RoundMap:
    """One round of a connection over a loss process with m hidden states.

    Attributes:
        structure: the sender's transition graph.
        fate_probability: (F, m) probability of each fate by hidden state.
        between_segments: (m, m) hidden transition from one segment of a burst to the next.
        between_rounds: (endings, m, m) hidden transition from the last segment of a round to the next round,
            by ending (that of WITHIN_ROUND is not used).
    """

    structure: TransitionStructure
    fate_probability: Array
    between_segments: Array
    between_rounds: Array

    def micro_steps(self, start: Array) -> Array:
        """(starts, m) law at a round's start -> (N, m) expected visits to each micro-step in that round."""
        index = index_rounds(self.structure)
        visits = np.zeros((self.structure.states, start.shape[1]))
        visits[index.starts] = start
        for level, following, descend in zip(index.levels[:-1], index.levels[1:], index.descend, strict=True):
            visits[following] += descend @ self._by_fate(visits[level]) @ self.between_segments
        return visits

    def __call__(self, start: Array) -> Array:
        """(starts, m) law at a round's start -> (starts, m) law at the next."""
        index = index_rounds(self.structure)
        leaving = index.close @ self._by_fate(self.micro_steps(start)[index.levels[-1]])
        for ending in range(ROUND_END, self.between_rounds.shape[0]):
            these = self._exits(ending)
            leaving[these] = leaving[these] @ self.between_rounds[ending]
        return index.arrive @ leaving

    def _exits(self, ending: int) -> slice:
        """Exits are sorted by ending."""
        first, last = np.searchsorted(index_rounds(self.structure).exit_ending, [ending, ending + 1])
        return slice(int(first), int(last))

    def _by_fate(self, visits: Array) -> Array:
        """(n, m) visits -> (F n, m) visits by fate, all of the first fate first."""
        return (self.fate_probability[:, None, :] * visits).reshape(-1, visits.shape[1])


@dataclass(frozen=True, eq=False)
class StationaryLaw:
    """Stationary law at the starts of rounds, (starts, m), and how it was reached."""

    law: Array
    residual: float
    iterations: int


def stationary_law(
    round_map: RoundMap, *, tolerance: float = 1e-11, restart: int = 40, max_iterations: int = 4000
) -> StationaryLaw:
    """Solve x = x P, sum(x) = 1, by restarted GMRES on (I - P' + u 1') x = u with u a law near the answer.

    The added rank-one term makes the system regular, and its solution is the stationary law whatever u is.

    Args:
        round_map: the map x -> x P.
        tolerance: largest total variation |x P - x| accepted, of a law that sums to one.
        restart: Krylov vectors between restarts.
        max_iterations: applications of the map in GMRES.

    Raises:
        NotConvergedError: the tolerance was not met.
    """
    shape = (index_rounds(round_map.structure).starts.size, round_map.fate_probability.shape[1])
    near = np.full(shape, 1.0 / np.prod(shape))
    settling = 20  # plain rounds first: they empty the states that the connection hardly visits
    for _ in range(settling):
        near = round_map(near)
    near = (near / near.sum()).ravel()

    class Shifted(LinearOperator):
        """I - P' + u 1', applied and never formed."""

        def _matvec(self, x: Array) -> Array:
            return x - round_map(x.reshape(shape)).ravel() + near * x.sum()

    iterations = settling

    def count(_: float) -> None:
        nonlocal iterations
        iterations += 1

    operator = Shifted(np.dtype(np.float64), (near.size, near.size))
    solution, _ = gmres(
        operator, near, x0=near, rtol=0.0, atol=1e-2 * tolerance * float(np.linalg.norm(near)),
        restart=restart, maxiter=max_iterations // restart, callback=count, callback_type="pr_norm",
    )  # fmt: skip
    law = np.maximum(solution, 0.0)
    law = (law / law.sum()).reshape(shape)
    residual = float(np.abs(round_map(law) - law).sum())
    if not residual <= tolerance:
        raise NotConvergedError(
            f"stationary law: residual {residual:.3g} above {tolerance:.3g} after {iterations} iterations"
        )
    return StationaryLaw(law, residual, iterations)
