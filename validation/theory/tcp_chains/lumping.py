"""Exact lumping of a sender's transition graph: states whose futures look the same become one.

Two states are alike if every fate of every segment to come has the same effects in both. Then any law of the
losses gives them the same rewards, and the classes of alike states are a Markov chain themselves (strong
lumpability: J. G. Kemeny and J. L. Snell, Finite Markov Chains, 1960, section 6.3). The coarsest such classes
come from refining a first partition, by the effects of the next segment, until the targets of alike states
are alike (E. F. Moore, Gedanken-experiments on sequential machines, 1956).
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcp_chains.chain import ROUND_END, TransitionStructure

Classes = NDArray[np.int64]


@lru_cache(maxsize=32)
def lump(structure: TransitionStructure) -> TransitionStructure:
    """Return the chain of the classes of alike states of a sender, which have the same windows."""
    effects: list[ArrayLike] = [structure.ending.T, structure.delivered.T, structure.fast_retransmit.T]
    effects += [structure.acks.T, structure.held_up.T, structure.cwnd.T, window_found(structure)[None, :]]
    classes = np.zeros(structure.states, np.int64)
    for effect in np.concatenate(effects):
        classes = _refined(classes, np.unique(effect, return_inverse=True)[1])
    while True:
        finer = classes
        for target in structure.target.T:
            finer = _refined(finer, classes[target])
        if finer.max() == classes.max():
            break
        classes = finer
    _, first, of_state = np.unique(classes, return_index=True, return_inverse=True)
    kept = np.sort(first)
    place = np.argsort(np.argsort(first))
    return replace(
        structure,
        open_segments=structure.open_segments[kept],
        target=place[of_state][structure.target[kept]],
        ending=structure.ending[kept],
        delivered=structure.delivered[kept],
        fast_retransmit=structure.fast_retransmit[kept],
        acks=structure.acks[kept],
        held_up=structure.held_up[kept],
        cwnd=structure.cwnd[kept],
    )


def window_found(structure: TransitionStructure) -> NDArray[np.float64]:
    """Return the window that ACKs and expiries of the timer find in each state.

    cwnd is part of a state, so what a transition leaves is what the next one finds; a timeout leaves 1.
    """
    used, timeout = np.minimum(structure.cwnd, structure.window), structure.ending > ROUND_END
    found = np.ones(structure.states)
    found[structure.target[~timeout]] = used[~timeout]
    return found


def _refined(classes: Classes, others: Classes) -> Classes:
    """Return the classes of those who are in the same class of both partitions."""
    return np.unique(classes * (int(others.max()) + 1) + others, return_inverse=True)[1]
