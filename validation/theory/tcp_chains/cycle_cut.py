"""A small cut of a directed graph: vertices without which it has no cycles, and the order that then exists.

Depth-first search meets the cycles one by one; the vertices that close them are a cut. Each is put back if
the others cut all cycles through it, until none can be spared: the cut is minimal, not the least one, which
would be hard to find (a feedback vertex set: R. Karp, Reducibility among combinatorial problems, 1972).

Graphs are (N, F) arrays of the F successors of each vertex, all of them reached from vertex 0.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vertices = NDArray[np.int64]


def cut_cycles(successors: Vertices) -> tuple[Vertices, Vertices]:
    """Return a minimal cut, ascending, and all vertices in an order in which edges lead onwards.

    Edges to vertices of the cut may lead backwards.
    """
    cut = closing_vertices(successors)
    in_cut = np.zeros(len(successors), np.bool_)
    in_cut[cut] = True
    spare(successors, in_cut, cut, np.empty(len(successors), np.int64), np.empty(len(successors), np.int64))
    return np.flatnonzero(in_cut), order_without(successors, in_cut)


def closing_vertices(successors: Vertices) -> Vertices:
    """Return the vertices that a depth-first search finds again while they are on its way.

    The last successor is looked at first: in a chain of TCP those are the fates that keep a connection going,
    so that cycles close in the rare states that losses lead to, and few of them are met in a round.
    """
    untouched, under_way, left = range(3)
    condition = [untouched] * len(successors)
    reversed_rows = successors[:, ::-1].tolist()
    closing: set[int] = set()
    condition[0], way = under_way, [(0, iter(reversed_rows[0]))]
    while way:
        vertex, following = way[-1]
        for successor in following:
            if condition[successor] == untouched:
                condition[successor] = under_way
                way.append((successor, iter(reversed_rows[successor])))
                break
            if condition[successor] == under_way:
                closing.add(successor)
        else:
            condition[vertex] = left
            way.pop()
    return np.array(sorted(closing))


@njit(cache=True, error_model="numpy")
def spare(successors, in_cut, candidates, seen_from, stack):
    """Take those candidates out of the cut that no cycle needs; the last two arguments are work space."""
    seen_from[:] = -1
    for candidate in candidates:
        in_cut[candidate] = False
        stack[0], height, cycle = candidate, 1, False
        while height > 0 and not cycle:
            height -= 1
            vertex = stack[height]
            for k in range(successors.shape[1]):
                following = successors[vertex, k]
                cycle |= following == candidate
                if not in_cut[following] and seen_from[following] != candidate:
                    seen_from[following] = candidate
                    stack[height] = following
                    height += 1
        in_cut[candidate] = cycle


def order_without(successors: Vertices, in_cut: NDArray[np.bool_]) -> Vertices:
    """Return all vertices such that edges lead onwards, but for those to the cut (A. Kahn, 1962)."""
    before = np.bincount(successors.ravel(), minlength=len(successors))
    before[in_cut] = 0
    ready = np.flatnonzero(before == 0).tolist()
    waiting, rows, cut = before.tolist(), successors.tolist(), in_cut.tolist()
    order: list[int] = []
    while ready:
        vertex = ready.pop()
        order.append(vertex)
        for following in rows[vertex]:
            if not cut[following]:
                waiting[following] -= 1
                if waiting[following] == 0:
                    ready.append(following)
    return np.array(order)
