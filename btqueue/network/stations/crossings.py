"""The time of a train at a port of a piconet without bridges, wait by wait.

A wait is stretched together with the frames since the last wait: meanwhile work comes for other links, and is
served before the next visit (`queues`).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp, factorial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import nbdtr, nbdtrc

from btqueue.network.stations.network import EMPTY, ENDLESS, Train, Visit
from btqueue.network.stations.queues import ALWAYS, stretch

PARTS = (np.arange(16) + 0.5) / 16.0
"""Parts of an interval over which a mean is taken."""
MOST_TRAINS = 3
"""Random trains that may shift a known place in a cycle; more make it random."""
MANY_VISITS = 200
"""Visits of a train above which their mean number replaces the distribution."""


class Place(NamedTuple):
    """The place in the cycle of a piconet that a segment has just reached.

    Attributes:
        piconet, link, up: of the port that it has crossed.
        used: frames of the visit so far.
        over: chance that the visit is over; then no frames are used.
        busy: slots during which the central has polled no other link.
        rest: slots of the segment's frames since its last wait; the next wait includes them.
        owed: slots of the work of links that have not been visited since; the next wait takes them, too.
        gone_s: time on wires since it left the piconet.
    """

    piconet: int
    link: int
    up: bool
    used: float
    over: float
    busy: float
    rest: float = 0.0
    owed: float = 0.0
    gone_s: float = 0.0


class Crossing:
    """A train that crosses a port; times in slots of its piconet.

    Attributes:
        place: place at which the train, or the train that it answers, was last in this piconet; None if it
            comes at a random time.
        c: number of its crossing in `Queues`; -1 if its waits grow by `extra` slots for each visit to the
            others.
        beside: a crossing whose waits meet the same work of others; -1 if none is known.
        total: slots of its waits and frames, but for the `pending` frames since its last wait.
        after: slots that no work of others stretches.
        used: frames of its first visit that were sent before it begins.
        owed: slots of work that the next wait takes, too.
    """

    def __init__(
        self,
        laws: Any,
        visit: Visit,
        place: Place | None,
        c: int,
        *,
        host: bool,
        extra: float = 0.0,
        of: str = "stream",
        whole: bool = False,
    ) -> None:
        """Begin at the port.

        Args:
            laws: laws of the stations (`laws.Laws`).
            visit: visit of the port.
            place: where the train, or the train that it answers, has been before.
            c: see above.
            host: whether it comes from a host.
            extra: see above.
            of: as in `laws.Laws.way`.
            whole: whether its packets come at once, from a bridge.
        """
        self.laws, self.queues, self.visit = laws, laws.polled, visit
        self.c, self.host, self.extra = c, host, extra
        self.port, self.train, self.of = laws.network.ports[visit.index], visit.train, of
        piconet = laws.network.piconets[self.port.piconet]
        self.order, self.up = self.queues.orders[self.port.piconet], int(self.port.up)
        self.limit = float(ENDLESS if self.order.interleaved else self.port.limit)
        self.members = 1.0 if of == "work" else float(piconet.members)
        self.passed = (0.0, 0.0, 0.0) if of == "work" else self.order.passed
        # messages of sessions meet the work of others as any crossing of their port does
        self.beside = self.queues.at_random.get(visit.index, -1) if of == "message" else c
        self.answers = c >= 0 and host and bool(self.queues.back[c])
        self.in_parts = laws.network.relay == "packet" and not whole
        here = place if place is not None and place.piconet == self.port.piconet else None
        self.returned = here if here is not None and here.gone_s > 0.0 and c >= 0 else None
        self.place = here if here is not None and here.gone_s == 0.0 else None
        self.pending = self.place.rest if self.place else 0.0
        self.total = self.place.owed - self.pending if self.place else 0.0
        self.after = self.used = self.owed = 0.0

    def end(self) -> tuple[float, Place]:
        """Return the slots to the end of the train, and the place where it ends."""
        place, port = self.place, self.port
        if place is None:
            self._from_anywhere()
        elif place.link != port.link:
            self._from_another_link(place)
        elif place.up and self.host and not port.up:
            self._answer_down(place)
        else:
            self._answer_up(place)
        return self._send()

    def _wait(self, slots: float, visits: float, chance: float = 1.0) -> None:
        """Wait for some slots, with visits to each other link meanwhile, with this chance."""
        if chance <= 0.0:
            return
        slots, visits = chance * (slots + self.pending), chance * visits
        if self.beside >= 0:
            self.total += stretch(slots, visits, self.queues.pairs[self.beside], once=not self.order.plain)
        else:
            self.total += slots + visits * self.extra
        self.pending *= 1.0 - chance

    def _grown(self, slots: float, visits: float) -> float:
        """Return a wait with the work that has come since the last wait."""
        if self.c < 0:
            return slots
        slots += self.pending
        once = not self.order.plain
        return stretch(slots, visits, self.queues.pairs[self.c], once=once) - self.pending

    def _idle_cycle(self) -> tuple[float, float, float]:
        """Return the slots of a cycle without random trains of others, their rate (1/slot) and slots.

        The cycle includes the visits to full links. Trains come as a Poisson process, with the mean work
        E w^2 / E w that a random time meets.
        """
        pairs = self.queues.pairs[self.c]
        full = sum(visit for work, visit in pairs if work >= ALWAYS)
        work = max(sum(work for work, _ in pairs if work < ALWAYS), 1e-12)
        each = max(2.0 * float(self.queues.under_way[self.c]), 1e-12) / work
        return EMPTY * self.members + full, work / each, each

    def _held_back(self, chance: float, base: float, slots: float, on: float = 0.0) -> float:
        """Return the extra delay of an answer that its host holds back, beyond the hold time.

        Without others' trains visits come after some slots, and then once in a cycle. A train of another link
        shifts them, so that the rest of a cycle is random (assumed). Of 172 random piconets whose hosts take
        up to 30 ms, 2 round trips were more than 5 % off, and at most 8 %.

        Args:
            chance: that the data end their visit, or not.
            base: wait of an answer that is not held back.
            slots: until the first visit after the visit of the data, in an idle piconet.
            on: chance that the visit of the data goes on.
        """
        queues, c = self.queues, self.c
        if not self.answers or chance <= 0.0:
            return 0.0
        flow = self.laws.network.flows[queues.flow[c]]
        if flow.host_s + flow.jitter_s <= 0.0:
            return 0.0
        hold = (2.0 * flow.host_s + flow.jitter_s * PARTS) / float(queues.slot_s[c])
        (idle, often, shift), cycle = self._idle_cycle(), stretch(EMPTY * self.members, 1.0, queues.pairs[c])
        extra = self._grown(slots, 1.0) - slots - (idle - EMPTY * self.members)
        slots += idle - EMPTY * self.members
        none = float(np.exp(-extra / shift))
        first = slots + extra / max(1.0 - none, 1e-12)
        random = cycle / 2.0 + float(queues.under_way[c]) * cycle / idle
        quiet = np.exp(-often * np.maximum(hold - slots, 0.0))
        polled = idle - (hold - slots) % idle  # an answer at the time of a poll is too late
        then = np.where(hold >= slots, quiet * polled + (1.0 - quiet) * random, slots - hold)
        waits = none * then + (1.0 - none) * np.where(hold > first, random, first - hold)
        rides = on * (hold < float(queues.slots[queues.prev[c]]))  # beside other data
        if base < slots:  # in the visit of the data
            waits = np.where(hold >= base, waits, base - hold)
            rides = rides * (hold >= base)
        return chance * float(((1.0 - rides) * (waits - base)).mean())

    def _from_anywhere(self) -> None:
        """Wait for a visit from any time in a cycle."""
        self._wait(float(self.up) if self.of == "work" else self.order.first[self.up], self.passed[0])
        if self.returned is None or self.returned.link != self.port.link:
            return
        # it comes back from a wire at a known time in a cycle, unless others' random trains shift it
        (idle, often, shift), slot_s = self._idle_cycle(), float(self.queues.slot_s[self.c])
        gone, close = self.returned.gone_s / slot_s, 0.0
        since = gone + float(self.returned.up) - 1.0 - float(self.up) + EMPTY * self.returned.over
        for number in range(MOST_TRAINS + 1):
            chance = exp(-often * gone) * (often * gone) ** number / factorial(number)
            past = (since - number * shift) % idle
            self.total += chance * (idle / 2.0 - past)
            close += chance * (idle - EMPTY * self.members) * (min(past, idle - past) < EMPTY)
        self.laws.edges_s[int(self.queues.flow[self.c])] = close * slot_s

    def _since_a_full_visit(self) -> float:
        """Return the slots for which others have waited since the visit of the data began, 0 if not known."""
        if not self.answers:
            return 0.0
        return max(self.queues.visit_of(int(self.queues.prev[self.c])) - self.pending, 0.0)

    def _answer_down(self, place: Place) -> None:
        """Wait for an answer of the central's host, too late for the frame after the packet up."""
        queues, order, passed = self.queues, self.order, self.passed[2]
        over = max(place.over, order.closes)
        behind, frame = queues.next_one(self.c)
        if behind and queues.late[self.c]:  # the last answer of a run follows the one before
            last = behind * (1.0 - behind)
            frame = (behind * frame + last * EMPTY) / (behind + last)
            behind += last
        begun = self._since_a_full_visit()
        missed = (EMPTY, EMPTY) if self.of == "work" else order.missed_down
        slots = (1.0 - over) * missed[0] + over * missed[1]
        # the visit goes on with the data of the next segment, and has two frames left
        one_left = queues.ends_visit(int(queues.partner[self.c]), 1) if behind else 0.0
        rides = (1.0 - over) * behind * max(1.0 - one_left / max(1.0 - over, 1e-9), 0.0)
        self.pending += rides * frame
        on = rides / (1.0 - over) if over < 1.0 else 0.0
        self.after = self._held_back(1.0 - over, self._grown(missed[0], passed), missed[0], on)
        self.after += self._held_back(over, self._grown(missed[1], passed), missed[1])
        slots -= rides * missed[0]
        if begun > 0.0:
            # beside the next segment, or behind what came for others since the visit began
            self.pending -= rides * frame
            for chance, away in ((1.0 - over - rides, missed[0]), (over, missed[1])):
                self.after += chance * (self._grown(away + begun, passed) - begun)
            self.pending += rides * frame
        elif order.interleaved:
            self.pending += slots
        else:
            self._wait(slots, passed)

    def _answer_up(self, place: Place) -> None:
        """Go on in the visit of the data, or wait for the next one if it is over."""
        queues, order, c, passed = self.queues, self.order, self.c, self.passed[1]
        over = max(place.over, order.closes)
        behind, frame = queues.next_one(c) if self.host else (0.0, 0.0)
        begun = self._since_a_full_visit()
        # behind data down: no longer
        self.pending += EMPTY * (1.0 - over) + float(self.up) - float(place.up) - 1.0
        goes_on = 1.0 - (1.0 - behind) * (1.0 - queues.further_data(c)) if self.answers else 0.0
        self.after = self._held_back(1.0 - over, EMPTY, EMPTY + EMPTY * self.members, goes_on)
        missed = self._grown(order.missed_up, order.passed[1])
        self.after += self._held_back(over, missed, order.missed_up)
        if begun > 0.0:  # others wait since a full visit began
            visit = self.limit * float((queues.slots / queues.frames)[queues.prev[c]])
            begun = max(visit - self.pending, 0.0)
            longer = self._grown(order.missed_up + begun, order.passed[1]) - begun
            self.after += over * (longer - missed)
        self._wait(EMPTY if self.of == "work" else order.missed_up, passed, over)
        self.used = 0.0 if order.closes else place.used
        self.after += behind * (frame - EMPTY)  # instead of POLL there are data of the next segment

    def _from_another_link(self, place: Place) -> None:
        """Wait for the visit to this link behind the visit to another one."""
        queues, order, c = self.queues, self.order, self.c
        apart = (self.port.link - place.link) % self.members - 1.0
        slots = EMPTY * apart * order.polls[self.up] * (not order.interleaved)
        slots += EMPTY * (1.0 - max(place.over, order.closes)) + 1.0 - float(place.up) + self.up
        if self.in_parts:  # earlier parts have gone down meanwhile
            each = self.train.air / self.train.frames + 1.0
            slots += (ceil(self.train.frames / self.limit) - 1.0) * max(self.limit * each - EMPTY, 0.0)
        if c >= 0 and order.plain:
            now = stretch(slots + self.pending, 1.0, queues.on_way[c])
            self.owed = stretch(slots + self.pending, 1.0, queues.pairs[c]) - now
            self.total, self.pending = self.total + now + float(queues.with_others[c]), 0.0
        else:
            self._wait(slots, 1.0)

    def _send(self) -> tuple[float, Place]:
        """Send the frames, in as many visits as they need."""
        queues, order, c, train, port = self.queues, self.order, self.c, self.train, self.port
        frames, limit, fresh = train.frames, self.limit, self.place is None
        each = train.air / train.frames + 1.0
        if self.place is not None and self.place.link != port.link and self.in_parts:
            frames -= limit * max(ceil(frames / limit) - 1.0, 0.0)
        turns, over = visits_of(train, frames, self.used, limit)
        own, breaks = frames * each, max(turns - 1.0, 0.0)
        many, chance = max(breaks, 1.0), min(breaks, 1.0)
        away = EMPTY * (self.members - 1.0) * order.polls[self.up]
        since = 0.0  # slots before its last visit in which work has come for others that waits until then
        if c >= 0 and order.plain and chance > 0.0:
            sent = self.pending + max(many * limit - self.used, 0.0) * each
            until = _to_last_visit(sent, sent / many, many, EMPTY + away, queues.pairs[c])
            since = chance * max(sent / many - max(own - sent, each), 0.0) / 2.0
            self.total += chance * until
            self.pending += own - chance * sent - 1.0
        else:
            self.pending += own * breaks / max(turns, 1.0)
            self._wait(many * away, many * (self.of != "work"), chance)
            self.pending += own / max(turns, 1.0) - 1.0
        if order.interleaved and self.of == "message":  # each frame is a visit
            self.pending += frames * self.laws.met(int(self.laws.links.port_link[self.visit.index]))
        if c >= 0 and fresh:  # others' work since then is sent before the rest
            over, cut = queues.ends_visit(c), own * queues.sent_before(c)
            self.total, self.pending = self.total + cut, self.pending - cut
        over = max(over, order.closes)
        used = max(self.used + frames - (breaks + over) * limit, 0.0)
        total = self.total + self.pending
        if fresh and self.beside >= 0:
            total += queues.elsewhere(self.beside, self.pending)
        if c >= 0:
            total += self.after - float(queues.saved[c]) + fresh * float(queues.with_others[c])
        elif self.of == "stream":  # mean slots of the other half of a frame, beyond one slot
            total += frames * (self.laws.links.beside[self.visit.index] - 1.0)
        busy = min(frames, limit) * each
        rest = self.pending + since
        return float(total), Place(port.piconet, port.link, port.up, used, over, busy, rest, self.owed)


def _to_last_visit(
    sent: float, visit: float, many: float, cycle: float, work: list[tuple[float, float]]
) -> float:
    """Return the slots from the begin of a train that is cut until its last visit.

    Another link sends the frames that have come for it since its visit before the train, half a cycle before
    the train on average, until its last visit, half a cycle before the train's last one. Delays of 95 % of
    139 random stars were within 4 %; without the halves they were up to 14 % too short.

    Args:
        sent: slots of the train in its visits but for the last.
        visit: the same of one of them.
        many: visits but for the last.
        cycle: slots of an idle cycle.
        work: (work in a slot, work of a full visit) of each other link.
    """
    share = 1.0 - 0.5 / many
    earlier = (stretch(cycle, 1.0, work) + visit) / 2.0
    alone = sent + many * (cycle - EMPTY)
    within = stretch(earlier + share * alone, many, [(share * rate, share * full) for rate, full in work])
    return (within - earlier) / share


@lru_cache(maxsize=4096)  # turns repeat them
def visits_of(train: Train, frames: float, used: float, limit: float) -> tuple[float, float]:
    """Return the mean visits that a train takes, and the chance that its last frame is the last of a visit.

    Its packets are repeated a geometric number of times: their frames are negative binomial.

    Args:
        train: with `frames` left.
        frames: mean number.
        used: frames of the first visit that were sent before.
        limit: frames of a visit.
    """
    count = round(train.packets)
    most = int((used + train.frames + 8.0 * max(train.spread, 0.0) ** 0.5) / limit) + 2
    if train.spread <= 0.0 or count == 0 or limit >= ENDLESS or most > MANY_VISITS:
        visits = ceil((used + frames) / limit - 1e-9)
        return float(visits), float(used + frames >= visits * limit - 1e-9)
    fit = np.arange(1.0, most) * limit - used - (count + frames - train.frames)  # repetitions
    fit, chance = np.rint(fit), min(count / train.frames, 1.0)
    more = np.where(fit < 0.0, 1.0, nbdtrc(np.maximum(fit, 0.0), count, chance))
    most_but_one = np.where(fit < 1.0, fit < 0.0, nbdtr(np.maximum(fit - 1.0, 0.0), count, chance))
    return 1.0 + float(more.sum()), float(np.where(fit < 0.0, 0.0, 1.0 - more - most_but_one).sum())
