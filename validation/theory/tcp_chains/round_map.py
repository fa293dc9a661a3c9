"""The stationary law of a connection's micro-steps, from the few states that every cycle passes through.

A *cut* is a set of states without which the transition graph has no cycles. Given the law at the cut, one
pass through all other states in topological order yields the expected visits to each of them before the cut
is met again, and the law there: the return map of the chain that is watched only at the cut (the censored
chain). Only the law at the cut is unknown, some hundreds of states out of tens of thousands: it solves
x = x P with P the return map, applied without being formed.

Reference: C. D. Meyer, Stochastic complementation, uncoupling Markov chains, and the theory of nearly
reducible systems, SIAM Review 31 (1989).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tcp_chains.chain import WITHIN_ROUND, TransitionStructure
from tcp_chains.cycle_cut import cut_cycles

Array = NDArray[np.float64]
Indices = NDArray[np.uint32]


REFINING = 8
"""Plain passes at the end: what is rare gets its digits from what is not."""


class NotConvergedError(RuntimeError):
    """The stationary law was not found to the tolerance asked for."""


@dataclass(frozen=True, eq=False)
class Passage:
    """Constant index arrays of one pass through a structure of N states with a cut of K.

    Rows 0 to N - 1 are the states in topological order; row N + k stands for the return to cut state k.
    Transitions that close a round meet in *exits*, one for each pair (ending, row reached).

    Attributes:
        order: (N,) state of each row.
        cut: (K,) rows of the cut.
        reached: (N, F) row reached by a transition within a round; N + K + x where it closes the round by
            exit x.
        first_exit: (N + K + 1,) exits that reach row i are `first_exit[i]` to `first_exit[i + 1]` - 1.
        ending: (X,) ending of each exit.
    """

    order: NDArray[np.int64]
    cut: NDArray[np.int64]
    reached: Indices
    first_exit: Indices
    ending: Indices


@lru_cache(maxsize=32)
def index_passage(structure: TransitionStructure) -> Passage:
    """Choose a cut and sort the states and the transitions of a structure accordingly."""
    cut, order = cut_cycles(structure.target)
    states, rows = structure.states, structure.states + cut.size
    row_of_state = np.empty(states, np.int64)
    row_of_state[order] = np.arange(states)
    arrival = row_of_state.copy()
    arrival[cut] = states + np.arange(cut.size)

    reached, ending = arrival[structure.target[order]], structure.ending[order]
    closes = ending != WITHIN_ROUND
    endings = int(ending.max()) + 1
    exits, exit_of = np.unique((reached * endings + ending)[closes], return_inverse=True)
    exit_row, exit_ending = np.divmod(exits, endings)
    reached[closes] = rows + exit_of
    return Passage(
        order=order,
        cut=row_of_state[cut],
        reached=reached.astype(np.uint32),
        first_exit=np.searchsorted(exit_row, np.arange(rows + 1)).astype(np.uint32),
        ending=exit_ending.astype(np.uint32),
    )


@njit(cache=True, error_model="numpy")
def _pass(visits, lanes, fate, between_segments, still, between_rounds, reached, first_exit, ending):
    """Fill `visits`, by row and then by exit, from the law at the cut that it holds among zeros.

    `lanes` is a tuple with an entry for each hidden state, so that the compiler knows their number. `still`
    says that the hidden state does not change within a round.
    """
    states, fates = reached.shape
    rows = len(first_exit) - 1
    for here in range(rows):
        for k in range(first_exit[here], first_exit[here + 1]):
            for j in range(len(lanes)):
                arriving = 0.0
                for i in range(len(lanes)):
                    arriving += visits[rows + k, i] * between_rounds[ending[k], i, j]
                visits[here, j] += arriving
        if here >= states:
            continue
        for f in range(fates):
            there = reached[here, f]
            if still or there >= rows:
                for i in range(len(lanes)):
                    visits[there, i] += visits[here, i] * fate[f, i]
            else:
                for i in range(len(lanes)):
                    for j in range(len(lanes)):
                        visits[there, j] += visits[here, i] * fate[f, i] * between_segments[i, j]


@dataclass(frozen=True, eq=False)
class RoundMap:
    """The rounds of a connection over a loss process with m hidden states.

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

    def rows(self, start: Array) -> Array:
        """(K, m) law at the cut -> expected visits to rows and exits until the cut is met again."""
        passage = index_passage(self.structure)
        hidden = start.shape[1]
        visits = np.zeros((passage.first_exit.size - 1 + passage.ending.size, hidden))
        visits[passage.cut] = start
        _pass(
            visits,
            (0,) * hidden,
            np.ascontiguousarray(self.fate_probability),
            np.ascontiguousarray(self.between_segments),
            bool(np.array_equal(self.between_segments, np.eye(hidden))),
            np.ascontiguousarray(self.between_rounds),
            passage.reached,
            passage.first_exit,
            passage.ending,
        )
        return visits

    def __call__(self, start: Array) -> Array:
        """(K, m) law at the cut -> (K, m) law at the next visit to the cut."""
        return self.returns(self.rows(start))

    def returns(self, rows: Array) -> Array:
        """Visits to rows -> (K, m) law at the next visit to the cut."""
        states, ends = self.structure.states, index_passage(self.structure).first_exit.size - 1
        return rows[states:ends]

    def micro_steps(self, rows: Array) -> Array:
        """Visits to rows -> (N, m) visits to states."""
        order = index_passage(self.structure).order
        visits = np.empty((order.size, rows.shape[1]))
        visits[order] = rows[: order.size]
        return visits


@dataclass(frozen=True, eq=False)
class StationaryLaw:
    """Stationary law at the cut, (K, m), visits to the states from there, (N, m), and how it was reached."""

    law: Array
    visits: Array
    residual: float
    iterations: int


def stationary_law(
    round_map: RoundMap, *, tolerance: float = 1e-11, restart: int = 40, max_iterations: int = 4000
) -> StationaryLaw:
    """Solve x = x P, sum(x) = 1, by restarted GMRES on (I - P' + u 1') x = u with u a law near the answer.

    The added rank-one term makes the system regular, and its solution is the stationary law whatever u is.

    Args:
        round_map: whose return map is x -> x P.
        tolerance: largest total variation |x P - x| accepted, of a law that sums to one.
        restart: Krylov vectors between restarts.
        max_iterations: applications of the map in GMRES.

    Raises:
        NotConvergedError: the tolerance was not met.
    """
    from scipy.sparse.linalg import LinearOperator, gmres

    shape = (index_passage(round_map.structure).cut.size, round_map.fate_probability.shape[1])
    near = np.full(shape, 1.0 / np.prod(shape))
    settling = 2  # plain passes first: they empty the states that the connection hardly visits
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
    law = np.maximum(solution, 0.0).reshape(shape)
    for _ in range(REFINING):
        law = round_map(law)
    law = law / law.sum()
    rows = round_map.rows(law)
    residual = float(np.abs(round_map.returns(rows) - law).sum())
    if not residual <= tolerance:
        raise NotConvergedError(
            f"stationary law: residual {residual:.3g} above {tolerance:.3g} after {iterations} iterations"
        )
    return StationaryLaw(law, round_map.micro_steps(rows), residual, iterations)
