"""The queue of a flow behind its own segments: waits that a window cuts off."""

from __future__ import annotations

from math import exp, expm1, inf, log
from typing import NamedTuple


class Tail(NamedTuple):
    """The law P(wait > t) = share exp(-t / mean), cut off by a buffer.

    A buffer that takes the part of a train that fits is a finite dam: its law is the law of the infinite dam,
    cut off at the room and normalised (J. Cohen, The Single Server Queue, 1982, section III.5).

    Attributes:
        share: probability of a wait.
        mean: mean of the waits (s).
        room: longest wait that the buffer allows (s).
    """

    share: float
    mean: float
    room: float = inf

    @staticmethod
    def of(share: float, wait: float) -> Tail:
        """Return the tail of a mean wait, where a share of the segments waits at all."""
        return Tail(share, wait / share) if share > 0.0 and wait > 0.0 else NONE

    @property
    def wait(self) -> float:
        """Mean wait without a limit (s)."""
        return self.share * self.mean

    def up_to(self, longest: float) -> Tail:
        """Return the exponential law with the mean of these waits cut off at the longest one (s)."""
        return self._replace(mean=-self.mean * expm1(-longest / self.mean))

    def between(self, start: float, end: float) -> float:
        """Return the integral of the law from a time to a later one."""
        end = max(min(self.room, end), start)
        if self.share <= 0.0 or self.mean <= 0.0 or end <= start:
            return 0.0
        beyond = self.share * exp(-self.room / self.mean) if self.room < inf else 0.0
        after = exp(-end / self.mean) if end < inf else 0.0
        total = self.share * self.mean * (exp(-start / self.mean) - after)
        return (total - (beyond * (end - start) if beyond else 0.0)) / max(1.0 - beyond, 1e-9)


NONE = Tail(0.0, 0.0)


def longer(first: Tail, second: Tail, most: float) -> float:
    """Return the mean of the longer of two waits, cut off at a time (s).

    A segment crosses two queues in a row. With constant service its total wait is the longer of the waits
    that each queue alone would cause (H. Friedman, Operations Research 13, 1965). Both waits come from the
    same arrivals, so that they are long together. So the chance that the longer wait exceeds t is taken as
    the larger of the two chances. That is a lower bound, whatever their joint law.
    """
    most = max(most, 0.0)
    often, seldom = (second, first) if second.share > first.share else (first, second)
    meet = inf
    if seldom.share > 0.0 and seldom.mean > often.mean > 0.0:
        meet = log(often.share / seldom.share) / (1.0 / often.mean - 1.0 / seldom.mean)
    meet = min(meet, often.room, most)
    return often.between(0.0, meet) + (seldom.between(meet, most) if meet < inf else 0.0)


class Own(NamedTuple):
    """The queue in which a flow waits longest at a port of its hosts.

    Attributes:
        load: load of the port.
        wait: mean wait behind all trains of the port (s).
        service: time that each earlier segment of the flow adds to this wait (s).
        turn: time of the port for each of its segments while it is busy (s).
        fixed: segments of the same message that are ahead.
        of_message: part of the wait that is behind these.
        bursty: whether segments come several at once.
        share: share of this wait that is behind the flow's segments.
        trip: round trip without waits (s).
        rest: mean waits at further ports of hosts (s).
        rate: segments of the flow (1/s).
    """

    load: float
    wait: float
    service: float
    turn: float
    fixed: float
    of_message: float
    bursty: bool
    share: float
    trip: float
    rest: float
    rate: float

    @property
    def of_others(self) -> float:
        """Mean wait behind trains of other flows (s)."""
        return (1.0 - self.share) * (self.wait - self.of_message)

    def within(self, window: float, tokens: Tail = NONE) -> float:
        """Return the mean wait of segments that a window lets out, for the port and for tokens (s).

        A window lets a segment out when an acknowledgement comes back: a round trip is at most the time in
        which a window of segments passes the slower queue, or the round trip without waits.

        Args:
            window: segments.
            tokens: wait for these.
        """
        if self.bursty:
            return self.rest + longer(Tail.of(self.load, self._in_bursts(window)), tokens, inf)
        most = inf if window == inf else max(window * self.turn - self.trip, 0.0)
        return self.rest + longer(Tail.of(self.load, self.wait), tokens, most)

    def _in_bursts(self, window: float) -> float:
        """Return the wait of segments of bursts that a window has let out; the rest wait at their sender.

        The number of own segments of earlier messages at the port is taken as geometric from the first on,
        with the right mean. The segments of earlier messages and of its message that are ahead of a segment
        are less than a window.
        """
        if window == inf:
            return self.wait
        size = 2.0 * self.fixed + 1.0
        # a message within a window leaves at once, beside those of earlier messages; of a longer one
        # acknowledgements let the rest out
        elsewhere = self.rate * self.trip if size <= window else self.trip / self.service - 1.0
        window = max(window - max(elsewhere, 0.0), 1.0)
        wait = max(self.wait - self.of_message, 0.0)  # but for rounding
        waiting = self.load * wait / self.service
        more = waiting / max(self.load + waiting, 1e-12)
        free = window - 1.0
        letting = min(size, free)  # segments of a message that a window may let out at once
        beyond = (
            more ** (free - letting + 1.0) * (1.0 - more**letting) / max(1.0 - more, 1e-12) + size - letting
        )
        first = min(window, size)
        ahead = first * (first - 1.0) / 2.0 / size + (1.0 - first / size) * (first - 1.0)
        each = self.of_message / self.fixed if self.fixed else self.service
        inside = wait * (1.0 - beyond / size) + ahead * each
        return (1.0 - self.share) * self.wait + self.share * inside
