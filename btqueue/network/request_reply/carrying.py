"""Laws of times on a lattice, carried through the transitions of a chain: a compiled loop.

A law is a row of weights. A row is known to be zero but for a range of its places, `held`, so that laws of
few points are carried as quickly as they are short.
"""

import numpy as np

from btqueue.transport.compilation import compiled

MOVE = np.dtype(
    [
        *((name, np.int64) for name in ("source", "target")),
        *((name, np.float64) for name in ("share", "time")),
    ]
)
"""A share of the law in row `source` goes to row `target`, so much later (ns)."""


NEGLIGIBLE = 1e-11
"""Weight below which a move is left out."""


class Laws:
    """Rows of weights, [row, place], and the range of places of each that may differ from zero, `held`."""

    def __init__(self, rows: int, points: int) -> None:
        """Nothing anywhere."""
        self.weights = np.zeros((rows, points))
        self.held = np.tile([points, 0], (rows, 1))

    @property
    def masses(self) -> np.ndarray:
        """The sum of the weights of each row."""
        found = np.zeros(len(self.weights))
        add_up(self.weights, self.held, found)
        return found

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.masses.sum())

    def clear(self) -> None:
        """Let nothing be anywhere."""
        empty(self.weights, self.held)


def carry(now: Laws, moves: np.ndarray, step_ns: float, then: Laws) -> None:
    """Add to the laws `then` what moves bring from the laws `now`, on a lattice of step `step_ns`.

    Moves that bring next to nothing are left out.
    """
    worth_it = moves[now.masses[moves["source"]] * moves["share"] > NEGLIGIBLE]
    add_moved(now.weights, now.held, worth_it, step_ns, then.weights, then.held)


@compiled()
def add_up(weights, held, masses):
    """Write the sum of each row."""
    for row in range(len(masses)):
        for i in range(held[row, 0], held[row, 1]):
            masses[row] += weights[row, i]


@compiled()
def empty(weights, held):
    """Let no row hold anything."""
    for row in range(len(weights)):
        for i in range(held[row, 0], held[row, 1]):
            weights[row, i] = 0.0
        held[row, 0], held[row, 1] = weights.shape[1], 0


@compiled()
def add_moved(now, held, moves, step_ns, then, reached):
    """Do what `carry` does; what falls between two places is shared between them, what is beyond is lost."""
    points = now.shape[1]
    for place in range(len(moves)):
        move = moves[place]
        later = move.time / step_ns
        if later >= points or held[move.source, 0] >= held[move.source, 1]:
            continue
        whole = int(later)
        beyond = move.share * (later - whole)
        near = move.share - beyond
        first, behind = held[move.source, 0], min(held[move.source, 1], points - whole)
        if first >= behind:
            continue
        law, target = now[move.source], then[move.target]
        for i in range(first, behind):
            target[whole + i] += near * law[i]
        end = min(behind, points - whole - 1)
        for i in range(first, end):
            target[whole + 1 + i] += beyond * law[i]
        reached[move.target, 0] = min(reached[move.target, 0], whole + first)
        reached[move.target, 1] = max(reached[move.target, 1], whole + max(behind, end + 1))
