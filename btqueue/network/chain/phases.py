"""Where in the radio's course the periods of the sawtooth begin in the long run.

A period takes the same work wherever it begins, and whether its timer expires depends on where that is. So
the places at which periods begin are a Markov chain. Where some periods last as long as the radio's own, the
two lock.
"""

import numpy as np
from numpy.typing import NDArray

from btqueue.network.chain.splitting import shared_out

Array = NDArray[np.float64]

PLACES = 64


def long_run(chances: Array, lasting: Array, spreads: Array, starts: Array, round_: float) -> Array:
    """Return the weights of the samples in the long run. They must leave no place out.

    Args:
        chances: (kinds, samples) of each kind, for periods that begin at the places of `starts`.
        lasting: (kinds,) time of each kind.
        spreads: (kinds,) deviations of these times.
        starts: (samples,) places.
        round_: length of the course, after which it repeats itself, in the same unit.
    """
    to, shares = shared_out(starts * (PLACES / round_))
    to = (to % PLACES).ravel()
    seen = np.bincount(to, shares.ravel(), PLACES)
    by_place = np.array([np.bincount(to, (shares * row).ravel(), PLACES) for row in chances]) / seen
    grid = np.arange(PLACES) * (round_ / PLACES)
    chain = np.zeros((PLACES, PLACES))
    turned = (np.arange(PLACES) - np.arange(PLACES)[:, None]) % PLACES
    for row, time, spread in zip(by_place, lasting, spreads, strict=True):
        away = (grid - time + round_ / 2.0) % round_ - round_ / 2.0
        # Periods whose times deviate by less than a place are given a place's deviation.
        kernel = np.exp(-0.5 * (away / max(spread, round_ / PLACES)) ** 2)
        kernel /= kernel.sum()
        chain += row[:, None] * kernel[turned]
    system = np.vstack([(np.eye(PLACES) - chain.T)[:-1], np.ones(PLACES)])
    law = np.linalg.solve(system, np.eye(PLACES)[-1])
    return (shares * (law / seen)[to].reshape(shares.shape)).sum(axis=0)
