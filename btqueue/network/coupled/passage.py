"""Passes through the rounds of a connection whose hidden state is a channel and a level of its token bucket.

As in `btqueue.transport.round_map`, a law at the cut of the chain is carried on until the cut is met again.
The hidden state is a pair (channel state c, level k); a segment moves the level by a whole number of steps,
so no matrix over all pairs is needed.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.transport.chain import TransitionStructure
from btqueue.transport.compilation import compiled
from btqueue.transport.round_map import NotConvergedError, index_passage

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Moves(NamedTuple):
    """What a segment and what a pause do to the hidden state, with C channel states and K levels.

    Attributes:
        place: (N,) which of the G places in rounds each state of the sender is at.
        segment: (2, G, K, F + 1, C, C) probability of each fate and the channel's move: up to the next
            segment of the round, and up to the end of this one, its last. The last fate is that the bucket
            refuses the segment.
        refused, refused_share: (G, K) first of three levels, and (G, K, 3) their shares, after a refused
            segment.
        pause: (E, K, C, C) move of the channel from a round's last segment to the first of the next.
        drained, drained_share: (E, K) and (E, K, 3): likewise of the level at the next round.
    """

    place: Integers
    segment: Array
    refused: Integers
    refused_share: Array
    pause: Array
    drained: Integers
    drained_share: Array


@compiled()
def _pass(visits, lanes, order, reached, first_exit, ending, moves):
    """Fill `visits`, [row and then exit, level, channel], from the law at the cut that it holds among zeros.

    `lanes` is a tuple with an entry for each channel state, so that the compiler knows their number.
    """
    states, fates = reached.shape
    rows, levels = len(first_exit) - 1, visits.shape[1]
    for here in range(rows):
        for x in range(first_exit[here], first_exit[here + 1]):
            closing = ending[x]
            for k in range(levels):
                if visits[rows + x, k, 0] == 0.0:
                    continue
                to = moves.drained[closing, k]
                for j in range(len(lanes)):
                    arriving = 0.0
                    for i in range(len(lanes)):
                        arriving += visits[rows + x, k, i] * moves.pause[closing, k, i, j]
                    for s in range(3):
                        visits[here, to + s, j] += arriving * moves.drained_share[closing, k, s]
        if here >= states:
            continue
        place = moves.place[order[here]]
        for k in range(levels):
            if visits[here, k, 0] == 0.0:
                continue
            for f in range(fates):
                there = reached[here, f]
                closes = 1 if there >= rows else 0
                for j in range(len(lanes)):
                    arriving = 0.0
                    for i in range(len(lanes)):
                        arriving += visits[here, k, i] * moves.segment[closes, place, k, f, i, j]
                    visits[there, k, j] += arriving
            if moves.segment[1, place, k, fates, 0, 0] > 0.0:
                there, to = reached[here, 0], moves.refused[place, k]
                closes = 1 if there >= rows else 0
                for j in range(len(lanes)):
                    arriving = 0.0
                    for i in range(len(lanes)):
                        arriving += visits[here, k, i] * moves.segment[closes, place, k, fates, i, j]
                    for s in range(3):
                        visits[there, to + s, j] += arriving * moves.refused_share[place, k, s]


@dataclass(frozen=True, eq=False)
class Visits:
    """Expected visits from one visit to the cut to the next, with the hidden states.

    Attributes:
        law: (K', levels, channels) stationary law at the cut.
        states: (N, levels, channels) visits to the states.
        exits: (X, levels, channels) ends of rounds, by exit, before the pause.
        ending: (X,) ending of each exit.
        residual: total variation between the law and its image.
        iterations: passes.
    """

    law: Array
    states: Array
    exits: Array
    ending: Integers
    residual: float
    iterations: int


def rows_from(structure: TransitionStructure, moves: Moves, start: Array, visits: Array) -> Array:
    """(K', levels, channels) law at the cut -> expected visits to rows and exits until it is met again.

    They are written into `visits`, memory that is used again from pass to pass.
    """
    passage = index_passage(structure)
    visits.fill(0.0)
    visits[passage.cut] = start
    lanes = (0,) * start.shape[2]
    _pass(visits, lanes, passage.order, passage.reached, passage.first_exit, passage.ending, moves)
    return visits


def stationary_visits(
    structure: TransitionStructure,
    moves: Moves,
    near: Array | None,
    *,
    tolerance: float,
    restart: int = 30,
    most: int = 600,
) -> Visits:
    """Find the stationary law at the cut and the visits from there, by restarted GMRES.

    Args:
        structure: of a sender.
        moves: of the hidden state.
        near: a law near the answer, if one is known.
        tolerance: largest total variation accepted.
        restart: Krylov vectors between restarts.
        most: passes, at most.

    Raises:
        NotConvergedError: the tolerance was not met.
    """
    from scipy.sparse.linalg import LinearOperator, gmres

    passage = index_passage(structure)
    shape = (passage.cut.size, moves.refused.shape[1], moves.segment.shape[-1])
    states, ends = structure.states, passage.first_exit.size - 1
    memory = np.empty((ends + passage.ending.size, *shape[1:]))
    iterations = 0

    def image(start: Array) -> Array:
        nonlocal iterations
        iterations += 1
        return rows_from(structure, moves, start.reshape(shape), memory)[states:ends].ravel().copy()

    law = np.full(shape, 1.0 / np.prod(shape)).ravel() if near is None else near.ravel()
    after = image(law / law.sum())
    for _ in range(2 if near is None else 0):
        after = image(after / after.sum())
    law = after / after.sum()

    class Shifted(LinearOperator):
        """I - P' + u 1', applied and never formed."""

        def _matvec(self, x: Array) -> Array:
            return x - image(x) + law * x.sum()

    operator = Shifted(np.dtype(np.float64), (law.size, law.size))
    solution, _ = gmres(
        operator, law, x0=law, rtol=0.0, atol=0.1 * tolerance * float(np.linalg.norm(law)),
        restart=restart, maxiter=most // restart,
    )  # fmt: skip
    solution = np.maximum(solution, 0.0)
    solution = (solution / solution.sum()).reshape(shape)
    visits = rows_from(structure, moves, solution, memory)
    residual = float(np.abs(visits[states:ends] - solution).sum())
    if not residual <= tolerance:
        raise NotConvergedError(f"stationary law: residual {residual:.3g} after {iterations} passes")
    by_state = np.empty((states, *shape[1:]))
    by_state[passage.order] = visits[:states]
    return Visits(solution, by_state, visits[ends:], passage.ending.astype(np.int64), residual, iterations)
