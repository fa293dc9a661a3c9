"""Delayed acknowledgements on a path that is not full: odd segments, which wait for the timer.

A receiver acknowledges every second segment, and one that is left alone when its timer expires. Segments go
round in trains. The last one of a train of odd length waits, its acknowledgement releases a segment alone,
and so it goes round by itself from then on. Per round trip with w segments in flight, n of them alone, there
are (w + n)/2 acknowledgements, of which each opens the window by 1/w. So

* one more segment goes alone in ``(w - n)/2w`` of the round trips: a train grows, and becomes odd;
* one less in ``n/w``: it gets company of the segment by which the window opens;
* two less in ``n (n - 1) t``, if a share t of a round trip is as long as the timer: one comes while another
  waits, and they go round as a pair.

That is a Markov chain for each w. Where the window stays at its limit, only its odd segment goes alone. A
segment waits at most until the next segment comes back from its round trip.

Approximations: the chain is stationary at each window; the places of trains in the round trip are independent
and uniform; where an acknowledgement covers more than two segments, an incomplete group is treated as the odd
segment of a pair.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating]

MOST = 12
"""Segments alone that are told apart."""
STEPS = 8
"""Waits shorter than the timer that are told apart."""


class OddSegments(NamedTuple):
    """Segments that travel alone, with no other segment for the receiver to acknowledge with them.

    Attributes:
        alone: their mean number for each number in flight, (flights,).
        waits: times that their acknowledgements wait, (flights, STEPS + 1) (s).
        chances: probability of each of these waits.
    """

    alone: Vector
    waits: Vector
    chances: Vector


def odd_segments(flight: Vector, window: int, trip: Vector, service_s: float, delay_s: float) -> OddSegments:
    """Return the number of segments that travel alone, and the law of their waits for the timer.

    Args:
        flight: numbers of segments in flight, (flights,).
        window: the most segments that may be in flight.
        trip: round-trip time for each number in flight (s), (flights,).
        service_s: time between two segments at the bottleneck.
        delay_s: timer of the acknowledgement; without delayed acknowledgements it is zero.

    Example:
        >>> import numpy as np
        >>> from btqueue.transport.odd_segments import odd_segments
        >>> found = odd_segments(np.array([3.0]), 3, np.array([0.1]), 0.01, 0.2)
        >>> float(found.alone[0]), found.waits.shape, round(float(found.waits.max()), 3)
        (1.0, (1, 9), 0.07)
    """
    longest = np.minimum(delay_s, np.maximum(trip - flight * service_s, 0.0))
    share = longest / trip
    alone = np.array(
        [_alone(w, t) if w < window else float(w % 2) for w, t in zip(flight, share, strict=True)]
    )
    # the first other train cuts the wait short
    edges = np.linspace(0.0, 1.0, STEPS + 1)[None, :] * longest[:, None]
    longer = (1.0 - edges / trip[:, None]) ** np.maximum(alone, 1.0)[:, None]
    middle = (edges[:, 1:] + edges[:, :-1]) / 2.0
    waits = np.concatenate([middle, longest[:, None]], axis=1)
    chances = np.concatenate([longer[:, :-1] - longer[:, 1:], longer[:, -1:]], axis=1)
    return OddSegments(alone, waits, chances)


def _alone(flight: float, share: float) -> float:
    """Mean number of segments alone in the stationary chain."""
    most = int(min(MOST, flight))
    if most < 1 or share == 0.0:
        return 0.0
    one_more, pairs, number = _chain(flight, most)
    return float(np.linalg.solve(one_more + share * pairs, number == most) @ number)


@lru_cache(maxsize=512)
def _chain(flight: float, most: int) -> tuple[Vector, Vector, Vector]:
    """Return the equations of the chain, of single steps and of pairs, and its states."""
    number = np.arange(most + 1.0)
    found = []
    for steps in (
        ((1, (flight - number) / (2.0 * flight)), (-1, number / flight)),
        ((-2, number * (number - 1.0)),),
    ):
        chain = np.zeros((most + 1, most + 1))
        for more, rate in steps:
            chain += np.diag((rate[:-more] if more > 0 else rate[-more:]), more)
        chain -= np.diag(chain.sum(axis=1))
        found.append(chain.T)
        found[-1][-1] = float(len(steps) > 1)
    return found[0], found[1], number
