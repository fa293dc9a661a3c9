"""The rounds of a sender's chain with their size, which decides how long they last.

The chain of `btqueue.transport.chain` need not know how many segments a round has had when it ends, since all
its rounds last equally long. Here they do not. So each state is split by the segments of its round that have
been decided, by the last of them that brought a new acknowledgement, from which the timer runs, and by the
size of the round before, whose acknowledgements let this one out.

Of the size before it is kept whether it was 1, less by one than this round's, or the same; anything else
counts as the nearest of these. The chain's timer doubles `MAX_BACKOFF` times at most; where its cap is
further away, expiries in a row are counted on.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from btqueue.transport.chain import WITHIN_ROUND, TransitionStructure, compile_chain
from btqueue.transport.lumping import lump, window_found
from btqueue.transport.newreno_chain import MAX_BACKOFF, Fate

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CountedRounds:
    """A sender's chain whose states know how far their round has got.

    Attributes:
        structure: N states; its `ending` counts the rows of `endings`.
        place: (N,) row of `places` of each state.
        members: states of each place.
        places: (G, 3) segments of the round, of the one before, and which of them is decided next, from 1.
        endings: (E, 5) segments of the round and of the one before; the last that brought a new
            acknowledgement, 0 for none; doublings of the timer that expires then, -1 if none does; its age in
            rounds. Row 0 is no ending.
        found: (N,) window that an acknowledgement finds, if windows were asked for.
    """

    structure: TransitionStructure
    place: Integers
    members: tuple[Integers, ...]
    places: Integers
    endings: Integers
    found: NDArray[np.float64]


@lru_cache(maxsize=16)
def counted_rounds(window: int, *, windows: bool = False, beyond: int = 0) -> CountedRounds:
    """Return the rounds of NewReno with this receive window (segments), cached.

    Args:
        window: receive window.
        windows: whether the states also know the congestion window.
        beyond: doublings of the timer that are counted beyond those of the chain, `MAX_BACKOFF`.
    """
    structure = lump(compile_chain(window), windows=windows)
    target, ending, delivered = (
        table.tolist() for table in (structure.target, structure.ending, structure.delivered)
    )
    left = structure.open_segments.tolist()
    timers = [(-1, 0), (-1, 0), *map(tuple, structure.timeout_kinds.tolist())]
    states = [(int(structure.target[structure.ending != WITHIN_ROUND][0]), 0, 0, 1, 0)]
    numbers, endings = {states[0]: 0}, {(0, 0, 0, -1, 0): 0}
    rows = []
    for state, decided, acknowledged, before, more in states:  # grows while it is read
        row = []
        for fate, following in enumerate(target[state]):
            news = fate == Fate.ACKNOWLEDGED and delivered[state][fate] > 0
            new, kept = (decided + 1, 0) if news else (acknowledged, more)
            reached, closing = (following, decided + 1, new, before, kept), 0
            if ending[state][fate] != WITHIN_ROUND:
                doublings, age = timers[ending[state][fate]]
                heard = new if doublings >= 0 and age == 0 else 0
                full = doublings == MAX_BACKOFF
                key = (decided + 1, before, heard, doublings + (kept if full else 0), age)
                closing = endings.setdefault(key, len(endings))
                if doublings >= 0:
                    kept = min(kept + 1, beyond) if full else 0
                size = 1 if doublings >= 0 else _kept(decided + 1, left[following])
                reached = (following, 0, 0, size, kept)
            if reached not in numbers:
                numbers[reached] = len(states)
                states.append(reached)
            row.append((numbers[reached], closing))
        rows.append(row)
    table, of_lumped = np.array(rows), np.array([state for state, *_ in states])
    where = np.array([(k + left[state], before, k + 1) for state, k, _, before, _ in states])
    places, place = np.unique(where, axis=0, return_inverse=True)
    return CountedRounds(
        structure=replace(
            structure,
            open_segments=structure.open_segments[of_lumped],
            target=np.ascontiguousarray(table[:, :, 0]),
            ending=np.ascontiguousarray(table[:, :, 1]),
            delivered=structure.delivered[of_lumped],
            fast_retransmit=structure.fast_retransmit[of_lumped],
            overflows=structure.overflows[of_lumped],
            cwnd=structure.cwnd[of_lumped],
        ),
        place=place.ravel(),
        members=tuple(np.flatnonzero(place.ravel() == k) for k in range(len(places))),
        places=places,
        endings=np.array(list(endings)),
        found=window_found(structure)[of_lumped] if windows else np.full(len(states), np.nan),
    )


def _kept(before: int, size: int) -> int:
    """Return what is remembered of the size of the round before."""
    if before == 1 or size == 1:
        return 1
    return min(max(before, size - 1), size)
