"""What a lost segment costs: how long its repair takes, how it can fail, and the window that is left.

What is approximate: holes behind the first are spread evenly over the flight; SACK repairs one in a round
trip and several in up to two, NewReno one in each round trip; Reno halves its window twice for two holes and
waits for its timer with more; nothing is lost in a recovery except what is sent again.

Sources: Fall & Floyd, Computer Communication Review 26(3), 1996 (how the variants repair several holes); RFC
6582, RFC 6675, RFC 6298 (the timer is not restarted by a fast retransmit).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from btqueue.transport import binomial

Vector = NDArray[np.floating]

AVOIDANCE, SLOW, LATE = "congestion avoidance", "slow start", "late timeout"
DUPLICATES = 3
BACKOFFS = 6
MOST_HOLES = 12


@dataclass(frozen=True)
class LossyPath:
    """What the window meets.

    Attributes:
        loss: probability that a segment is lost.
        segments_per_ack: segments that an acknowledgement covers, the lost acknowledgements counted in.
        window: most segments in flight by the receive window.
        room: most segments in flight that path and buffer hold; one more is lost.
        base_s: round-trip time of a lone segment.
        service_s: time between two segments at the bottleneck.
        variant: "tahoe", "reno", "newreno" or "sack".
        min_rto_s, max_rto_s: bounds of the timeout; `backoff`: whether it doubles.
        ack_delay_s: timer of delayed acknowledgements; zero if each segment is acknowledged at once.
    """

    loss: float
    segments_per_ack: float
    window: int
    room: float
    base_s: float
    service_s: float
    variant: str
    min_rto_s: float
    max_rto_s: float
    backoff: bool
    ack_delay_s: float = 0.0

    def round_trip(self, flight: ArrayLike) -> Vector:
        """Return the round-trip time (s) with so many segments in flight: the path's, or the queue's.

        In each round of growth one acknowledgement releases two segments at once, so that half of the
        segments wait for one that was sent with them.
        """
        flight = np.asarray(flight, float)
        return np.maximum(self.base_s + self._pair(flight), flight * self.service_s)

    def trip_of_new(self, flight: ArrayLike) -> Vector:
        """Return the round-trip time (s) of new segments; it is longer than that of repetitions.

        The first of those that share an acknowledgement waits for the last, unless they stand in a queue.
        """
        flight = np.asarray(flight, float)
        gathered = min(self.ack_delay_s, (self.segments_per_ack - 1.0) * self.service_s)
        return np.maximum(self.round_trip(flight), self.base_s + gathered + self._pair(flight))

    def _pair(self, flight: Vector) -> Vector:
        return np.where(flight < self.window, 0.5 * self.service_s, 0.0)

    def repair_trip(self, flight: ArrayLike) -> Vector:
        """Return the time (s) from a fast retransmit to its acknowledgement.

        The queue has become shorter by the four segments that the third duplicate had to wait for.
        """
        return self.round_trip(np.asarray(flight, float) - DUPLICATES - 1.0)


class Start(NamedTuple):
    """How a cycle starts; `half` is a number of half segments.

    In congestion avoidance with that window; in slow start from two segments to that threshold; or after a
    timer that expired too soon: the new segments of the recovery are still in flight, and their
    acknowledgements open the window from there.
    """

    kind: str
    half: int

    @property
    def window(self) -> float:
        """The first window."""
        return 2.0 if self.kind == SLOW else self.half / 2.0

    @property
    def threshold(self) -> float:
        """Window from which it opens by congestion avoidance."""
        return max(self.window, 0.75 * self.half - 1.0) if self.kind == LATE else self.half / 2.0


class Recovery(NamedTuple):
    """What follows a loss that is found with f segments in flight; arrays by f.

    Attributes:
        seconds: time from the last new acknowledgement to the next.
        timeouts, fast_retransmits: mean numbers.
        losses: mean number of segments lost, repetitions included.
        duplicates: mean number of duplicate acknowledgements.
        leads_to: chances of the starts of the next cycle.
    """

    seconds: Vector
    timeouts: Vector
    fast_retransmits: Vector
    losses: Vector
    duplicates: Vector
    leads_to: Vector


def recovery_of(path: LossyPath, top: int, starts: list[Start], deviation: Vector) -> Recovery:
    """Enumerate losses found with up to `top` segments in flight.

    `deviation` is the mean deviation of round trips with so many in flight (s).
    """
    flight = np.arange(top + 1)
    holes = np.arange(1, MOST_HOLES + 1)
    chance = binomial.probability(holes - 1, np.maximum(flight - 1, 0)[:, None], path.loss)
    chance[:, -1] += 1.0 - chance.sum(axis=1)
    silent = flight[:, None] - holes < DUPLICATES
    if path.variant == "reno":
        silent = silent | (holes > 2)
    repeated = np.ones_like(holes) if path.variant == "tahoe" else holes
    repaired = np.where(silent, 0.0, chance * (1.0 - path.loss) ** repeated)
    waiting = np.where(silent, chance, 0.0).sum(axis=1)
    good = repaired.sum(axis=1)
    late = late_chance(path, np.maximum(flight, 1.0), deviation)
    numbers = holes.astype(float)
    seconds = (repaired * _rounds(path.variant, numbers)).sum(axis=1) * path.repair_trip(flight)
    seconds += good * 4.0 * path.round_trip(flight) / np.maximum(flight, 1)
    seconds += (1.0 - good) * (_expiries_s(path, flight) + path.round_trip(flight))
    mean_holes = chance @ numbers
    twice = repaired[:, 1] if path.variant == "reno" else 0.0
    return Recovery(
        seconds=seconds,
        timeouts=(1.0 - good) / (1.0 - path.loss) + good * late,
        fast_retransmits=1.0 - waiting + twice,
        losses=mean_holes / (1.0 - path.loss),  # a repetition is lost as often as anything else
        duplicates=np.maximum(flight - mean_holes, 0.0),
        leads_to=_targets(path, top, starts, waiting, repaired, late),
    )


def _targets(
    path: LossyPath, top: int, starts: list[Start], waiting: Vector, repaired: Vector, late: Vector
) -> Vector:
    """Return by flight the chances of the starts of the next cycle."""
    place = {start: number for number, start in enumerate(starts)}
    leads_to = np.zeros((top + 1, len(starts)))
    expired = expired_flight(path, np.arange(top + 1))
    for flight in range(top + 1):
        half = max(4, flight)
        good = repaired[flight].sum()
        leads_to[flight, place[Start(SLOW, half)]] += waiting[flight]
        leads_to[flight, place[Start(SLOW, max(4, int(expired[flight])))]] += 1.0 - good - waiting[flight]
        if path.variant == "tahoe":
            leads_to[flight, place[Start(SLOW, half)]] += good
            continue
        twice = repaired[flight, 1] if path.variant == "reno" else 0.0
        leads_to[flight, place[Start(AVOIDANCE, max(4, flight // 2))]] += twice
        leads_to[flight, place[Start(LATE, half)]] += (good - twice) * late[flight]
        leads_to[flight, place[Start(AVOIDANCE, half)]] += (good - twice) * (1.0 - late[flight])
    return leads_to


def expired_flight(path: LossyPath, flight: NDArray) -> NDArray:
    """Return the flight when a timer expires in recovery: new segments keep half of it in the network."""
    return np.minimum(path.window, flight + np.maximum(flight // 2 - 2, 0))


def _rounds(variant: str, holes: Vector) -> Vector:
    """Return the round trips of a recovery, by the number of holes.

    With SACK all others are sent again between half a round trip, when the pipe has drained, and the time
    that the last one shows, uniform over the round.
    """
    if variant == "sack":
        later = holes - 1.0
        last = 0.5 ** (later + 1) + later / (later + 1) * (1.0 - 0.5 ** (later + 1))
        return 1.0 + np.where(later > 0, last, 0.0)
    return np.ones_like(holes) if variant == "tahoe" else holes


def _expiries_s(path: LossyPath, flight: NDArray) -> Vector:
    """Return the mean time (s) until a retransmission gets through: the timeout, and those that follow."""
    first = np.maximum(path.min_rto_s, path.round_trip(flight))
    factor = 2.0 if path.backoff else 1.0
    more = sum(path.loss**k * np.minimum(path.max_rto_s, first * factor**k) for k in range(1, BACKOFFS + 1))
    return first + more


def late_chance(path: LossyPath, flight: Vector, deviation: Vector) -> Vector:
    """Return the chance that the timer expires before a retransmission that arrives is acknowledged.

    The timer runs since the last new acknowledgement. The third duplicate comes four places after it: in the
    same burst, or, of the last three segments of a burst, in the next. Segments of a burst are one service
    apart. With delayed acknowledgements the very last one leaves a segment behind that waits for the timer of
    its acknowledgement, and that is new. The timeout is four mean deviations above the mean, and half of the
    segments wait a service more.
    """
    trip = path.round_trip(flight)
    timeout = np.maximum(path.min_rto_s, trip + np.maximum(2.0 * path.service_s, 4.0 * deviation))
    crossing = np.minimum(1.0, DUPLICATES / flight)
    same = 4.0 * path.service_s
    following = np.maximum(trip - (flight - 4.0) * path.service_s, same)
    repair = path.repair_trip(flight)
    left_behind = np.maximum(following - path.ack_delay_s, same)
    late = [_exceeds(time + repair - timeout, path.service_s) for time in (same, following, left_behind)]
    shares = (2.0, 1.0) if path.ack_delay_s > 0.0 else (3.0, 0.0)
    next_burst = (shares[0] * late[1] + shares[1] * late[2]) / DUPLICATES
    return crossing * next_burst + (1.0 - crossing) * late[0]


def _exceeds(excess: Vector, width: float) -> Vector:
    """Return the chance that a time is too long which is uniform over a service around its mean.

    What a segment waits for others of its burst is between nothing and a service.
    """
    return np.clip(0.5 + excess / width, 0.0, 1.0)
