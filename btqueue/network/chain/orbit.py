"""A greedy NewReno connection over one piconet: the sawtooth between two overflows of a node's buffer.

The link never idles, so nothing but the order of segments matters, and that is deterministic: the sender's
machine (`newreno_sender`) is followed from one fast retransmit to the next against a pipe (`chain.pipes`).

Repetitions on the radio stretch the time. They matter to the order through the retransmission timer alone.
That may expire wherever an acknowledgement is long in coming: in a recovery, and between two rounds. How
likely it is follows from the law of the times (`chain.timer`); what it does to the order, from a period that
branches off there and lasts to its own next fast retransmit (`Orbit.branch`).

Approximation: all periods begin alike.
"""

from copy import copy
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import NamedTuple

from btqueue.network.chain.pipes import Chance, Line, Rounds
from btqueue.network.chain.timer import NOTHING, PROGRESS, RECOVERY
from btqueue.transport.newreno_sender import Receiver, Sender

SETTLING_PERIODS = 2
PERIODS = 4
MOST_ACKNOWLEDGEMENTS = 4000
"""An orbit in which nothing is lost is followed so far if it does not repeat; half of it counts."""
SAME = 1e-9
"""Relative difference of times up to which a window, or a period, repeats the one before."""


@dataclass
class Tally:
    """What is added up along the orbit; times in seconds."""

    acknowledgements: int = 0
    windows: float = 0.0
    cwnds: float = 0.0
    delivered: int = 0
    sent: int = 0
    lost: int = 0
    expiries: int = 0
    recoveries: int = 0
    elapsed: float = 0.0
    rtts: list[tuple[float, int]] = field(default_factory=list)  # with the segments on their way

    def copied(self) -> "Tally":
        """Return one that goes on by itself."""
        return replace(self, rtts=list(self.rtts))

    def is_like(self, other: "Tally") -> bool:
        """Whether the same has been added in the same time."""
        counts = ("acknowledgements", "delivered", "sent", "lost", "expiries", "recoveries")
        same = all(getattr(self, name) == getattr(other, name) for name in counts)
        return same and abs(self.elapsed - other.elapsed) <= SAME * self.elapsed

    def since(self, earlier: "Tally") -> "Tally":
        """Return what has been added since an earlier state."""
        names = [one.name for one in fields(self) if one.name != "rtts"]
        sums = {name: getattr(self, name) - getattr(earlier, name) for name in names}
        return Tally(**sums, rtts=self.rtts[len(earlier.rtts) :])


class Event(NamedTuple):
    """An acknowledgement of the orbit: see `timer.EVENT`."""

    time: float
    echo: int
    kind: int
    expired: bool
    chance: Chance


@dataclass
class Walk:
    """A connection that is followed: its machines, its clock, the times so far, and what it has done."""

    sender: Sender
    pipe: Line | Rounds
    receiver: Receiver = field(default_factory=Receiver)
    tally: Tally = field(default_factory=Tally)
    now: float = 0.0
    times: list[float] = field(default_factory=list)

    def copied(self) -> "Walk":
        """Return one that goes on by itself."""
        receiver = replace(self.receiver, early=set(self.receiver.early))
        return Walk(
            copy(self.sender), self.pipe.copied(), receiver, self.tally.copied(), self.now, list(self.times)
        )

    @property
    def waits(self) -> bool:
        """Whether the next acknowledgement is new, and comes with a new batch or at the end of a recovery."""
        return self.pipe.next_number == self.sender.una and (self.pipe.turns or self.sender.recovering)

    def send(self, numbers: list[int]) -> None:
        """Put segments into the pipe."""
        for number in numbers:
            self.tally.sent += 1
            self.tally.lost += not self.pipe.offer(number, len(self.times), self.now)

    def step(self, *, expires: bool = False) -> Event:
        """Take the next acknowledgement, before which the timer may expire.

        It does so too where nothing is on its way.
        """
        sender, tally = self.sender, self.tally
        expiries = tally.expiries
        if len(self.pipe) == 0:
            self._pass(sender.deadline if sender.deadline < inf else self.now)
            self._expire()
        number, sent, time, chance = self.pipe.take(self.now)
        if expires:
            self._expire()
        self._pass(time)
        self.times.append(time)
        acknowledged, echo = self.receiver.take(number, sent)
        tally.acknowledgements += 1
        tally.windows += sender.window
        tally.cwnds += sender.cwnd
        kind, echoed = NOTHING, self.times[int(echo) - 1] if echo else 0.0
        if acknowledged > sender.una:
            kind = PROGRESS
            tally.delivered += acknowledged - sender.una
            tally.rtts.append((time - echoed, len(self.pipe) + 1))
        recoveries = sender.fast_retransmits
        self.send(sender.acknowledge(acknowledged, echoed, time))
        if sender.fast_retransmits > recoveries:
            kind = RECOVERY
            tally.recoveries += 1
        return Event(time, int(echo), kind, tally.expiries > expiries, chance)

    def _expire(self) -> None:
        self.tally.expiries += 1
        self.send(self.sender.expire(self.now))

    def _pass(self, time: float) -> None:
        self.tally.elapsed += time - self.now
        self.now = time


@dataclass
class Orbit:
    """A period of the connection, from one fast retransmit to the next, and how it came there.

    Attributes:
        events: all acknowledgements, from the start.
        begin: place of the first one of the period.
        first: the tally there.
        waits: events of the period before which the timer may expire, and the walks up to there.
        tally: of the period, or of several.
    """

    events: list[Event]
    begin: int
    first: Tally
    waits: dict[int, Walk]
    tally: Tally

    def branch(self, event: int) -> "Orbit":
        """Return the period if the timer expires before an event, up to its own next fast retransmit."""
        walk = self.waits[event].copied()
        recoveries = walk.tally.recoveries
        events, waits = self.events[:event], {}
        events.append(walk.step(expires=True))
        while walk.tally.recoveries == recoveries and len(events) < MOST_ACKNOWLEDGEMENTS:
            if walk.waits:
                waits[len(events)] = walk.copied()
            events.append(walk.step())
        return Orbit(events, self.begin, self.first, waits, walk.tally.since(self.first))


def follow(sender: Sender, pipe: Line | Rounds) -> Orbit:
    """Follow a connection from its start, with an empty pipe, for some of its periods.

    The tally is that of the period, if the next one is like it, else of all; of half of the orbit where
    nothing is lost.
    """
    walk = Walk(sender, pipe)
    orbit = Orbit([], 0, walk.tally, {}, walk.tally)
    begin = before = walk.tally.copied()
    last, cwnd = MOST_ACKNOWLEDGEMENTS, 0.0
    walk.send(sender.sendable(0.0))
    for count in range(MOST_ACKNOWLEDGEMENTS):
        tally = walk.tally
        if tally.recoveries == SETTLING_PERIODS and walk.waits:
            orbit.waits[count] = walk.copied()
        event = walk.step()
        if tally.recoveries <= SETTLING_PERIODS:
            orbit.events.append(event)
        if event.kind == RECOVERY:
            period, begin = tally.since(begin), tally.copied()
            if tally.recoveries == SETTLING_PERIODS:
                orbit.begin, orbit.first = count + 1, begin
            elif tally.recoveries == SETTLING_PERIODS + PERIODS or (orbit.waits and period.is_like(before)):
                break
            before = period
        if count == last:
            orbit.tally = tally.since(orbit.first)
            orbit.tally.cwnds = cwnd * orbit.tally.acknowledgements
            return orbit
        if last == MOST_ACKNOWLEDGEMENTS and tally.recoveries == 0:
            if _repeats(sender, tally):
                last = count + sender.receive_window
                cwnd = _later_window(sender, count)
            if last < MOST_ACKNOWLEDGEMENTS or count == MOST_ACKNOWLEDGEMENTS // 2:
                orbit.first = tally.copied()
    orbit.tally = walk.tally.since(orbit.first)
    return orbit


def _repeats(sender: Sender, tally: Tally) -> bool:
    """Whether the window is at its limit, and its round trips are those of the window before."""
    count = sender.receive_window
    if sender.cwnd < count or len(tally.rtts) % count or len(tally.rtts) < 3 * count:
        return False
    pairs = zip(tally.rtts[-count:], tally.rtts[-2 * count : -count], strict=True)
    return all(abs(now - before) <= SAME * now for (now, _), (before, _) in pairs)


def _later_window(sender: Sender, count: int) -> float:
    """Return the mean congestion window of the half that would count, had the orbit been followed on.

    It grows for ever where nothing is lost, though the receive window alone matters.
    """
    cwnd, total = sender.cwnd, 0.0
    for later in range(count + 1, MOST_ACKNOWLEDGEMENTS):
        total += cwnd if later > MOST_ACKNOWLEDGEMENTS // 2 else 0.0
        cwnd += 1.0 if cwnd < sender.ssthresh else 1.0 / cwnd
    return total / (MOST_ACKNOWLEDGEMENTS - 1 - MOST_ACKNOWLEDGEMENTS // 2)
