r"""The station of Bluetooth Low Energy: a link that serves PDUs in bulk, at the anchor points of its events.

In a connection event PDUs go to and fro while there is data and time (Core Specification, 6, B, 4.5.1 and
4.5.6). A direction with data at every anchor point is a finite chain, embedded at exchanges: its state is the
next PDU of each side, their credits, and segments and acknowledgements that wait. Without errors the chain is
a cycle, and its mean number of PDUs an event is exact; so is the mean with errors of PDUs of equal length.

One direction is a wire (`network.Wire`) whose service of a PDU is the interval over the PDUs of an event. A
PDU that comes while no event is open waits for the next anchor point: the rest of a vacation. The queue
behind it is the queue of the wire. For one PDU an event, both together are exactly the slotted M/D/1 queue.

A node that has several links reserves time for the events of each. The reservations of one central are a
schedule in time, played for some intervals. Clocks of two centrals drift: reservations of :math:`L` overlap
for the share :math:`2 L / T` of the time, at most all of it, and each link loses half of these events.

Errors against the simulator: docs/explanation/model-low-energy.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, exp, expm1, gcd, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, pdtr

from btqueue.baseband import low_energy as air
from btqueue.network.bounds import frames_of
from btqueue.scenario.errors import bracketed, shown
from btqueue.scenario.low_energy import LowEnergy
from btqueue.scenario.metrics import EVENT_METRICS
from btqueue.scenario.radio import Radio
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.topology import Topology

Vector = NDArray[np.float64]
States = tuple[tuple[float, float], ...]

FULL = 0.97
"""Use of a direction above which it always has data."""
ERRORS = 0.05
"""Share of damaged PDUs, and segments an interval that wake a peripheral, from which on they are doubted."""
ROUGHLY = ("le.interval_spread_s", "le.iso_interval_s", "link.node_buffer_bytes", "link.flush_timeout_s")
"""Keys with an effect that no law has in full."""
SLOWLY = 0.2
"""Window of an event over the mean stay of a radio in a state, above which states change within events."""
LIGHT, FEW_FIT = 0.05, 4
"""Use of a direction, and segments of an event, from and up to which segments cut by an event matter."""
CROWDED = 0.3
"""Use of a direction above which waits for an anchor point are not uniform."""
MANY_FIT, LEFT = 8, 4000
"""Segments of an event up to which their PDUs are followed, and PDUs that may be left behind then."""
EVENTS = 2000
"""Events over which segments left behind are summed, and most events until PDUs left behind settle."""
LEVELS = (np.arange(32) + 0.5) / 32.0
"""Middles of cells of an interval in which vacations end, and levels of the quantiles of a uniform law."""
WRAPS = 8
"""Intervals after which a busy period may end anywhere in one."""
PLAYED, FEW = 64, 16
"""Intervals for which the schedule of a central is followed, and the same for each set of random anchors."""
SETS = 128
"""Sets of first anchors that stand for random ones; also steps until shares of missed events settle."""
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
"""Their roots spread the first anchors of up to 20 links evenly."""
AT_ONCE = 40
"""Segments of an event, with the window that lets them out, whose acknowledgements are followed."""
LONGEST = 20_000
"""PDUs after which segments and credits are taken as a cycle, even if they are not yet."""
MIXED = 64
"""Segments that stand for a law of their sizes."""
WINDOW = 500
"""PDUs of the largest window whose exchanges are followed; more have the same share of each phase."""
TOUCHING_S = 1.001e-6
"""Reservations that overlap by less, 1 us and what rounding adds, are next to each other."""


class Pdus(NamedTuple):
    """The PDUs of segments.

    Attributes:
        payloads: bytes of each.
        ends: whether a frame of L2CAP ends with it.
        segments: whose PDUs these are.
        beside: payload bytes that go the other way for each PDU.
        window: segments that may be under way; without end for a source that always has room.
        every: segments of an acknowledgement.
        answer: payloads and frame ends of the PDUs of an acknowledgement, where the window has an end.
        late: whether the answer to a PDU of the peripheral goes one exchange later.
    """

    payloads: tuple[int, ...]
    ends: tuple[bool, ...]
    segments: int = 1
    beside: float = 0.0
    window: float = inf
    every: int = 1
    answer: tuple[tuple[int, ...], tuple[bool, ...]] = ((), ())
    late: bool = False

    @property
    def each(self) -> float:
        """Mean PDUs of a segment."""
        return len(self.payloads) / self.segments


NO_PDUS = Pdus((), ())


class Events(NamedTuple):
    """Means of an event that takes place while there is always data in one direction.

    Attributes:
        pdus: data PDUs that come across.
        exchanges: exchanges.
        tries: transmissions of data PDUs.
        needed: events that a lone segment needs if no PDU is damaged.
        apart: intervals to the next event: a peripheral without data skips some.
        over: anchor points of the link that pass during an event, which lasts longer than the interval.
        damaged: chance that a data PDU is damaged.
        facing: chance that a PDU of the other side is damaged.
    """

    pdus: float
    exchanges: float
    tries: float
    needed: float
    apart: float
    over: float
    damaged: float
    facing: float


@dataclass(frozen=True)
class Station:
    """A link between a central and a peripheral.

    Attributes:
        interval_s: time between events that are to take place.
        listens_s: time between events in which an idle peripheral listens.
        window_s: window of an event, for exchanges.
        taken: share of the events that take place: one of the nodes may be at another event.
        vain: share of the events in which the central is at another one, and the peripheral listens in vain.
        le: the table of keys.
        radio: its bit errors, down and up.
        fading: share and bit error rate of the states of its radio, down and up.
        stay_s: least mean time in one of these states.
        energy: the table of currents.
        beside: links at the central, and at the member, whose anchors have random distances from its anchors.
        drifts: whether its anchors move against the anchors of these links.
        behind_s: mean wait for exchanges of other links that are longer than reservations, beyond the wait
            that follows from `taken`.
        own: share of the other events whose anchor points pass during an event of the link, which is longer
            than the interval.
    """

    interval_s: float
    listens_s: float
    window_s: float
    taken: float
    vain: float
    le: Any
    radio: tuple[Radio, Radio]
    fading: tuple[States, States]
    stay_s: float
    energy: Any
    beside: tuple[int, int]
    drifts: bool
    behind_s: float = 0.0
    own: float = 0.0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, one.name) for one in fields(self)))

    @cached_property
    def space_us(self) -> float:
        """The frame space (us)."""
        return 1e6 * float(self.le.frame_space_s)

    @cached_property
    def window_us(self) -> float:
        """The time for exchanges in an event (us)."""
        return max(1e6 * self.window_s, 0.0)

    @cached_property
    def _air_us(self) -> dict[float, float]:
        return {}

    def air_us(self, payload: float) -> float:
        """Return the air time of a PDU (us)."""
        if payload not in self._air_us:
            self._air_us[payload] = air.air_time_us(self.le.phy, payload, encrypted=self.le.encrypted)
        return self._air_us[payload]

    def total_us(self, payloads: Iterable[float]) -> float:
        """Return the sum of the air times of PDUs (us)."""
        return sum(count * self.air_us(size) for size, count in Counter(payloads).items())

    def error(self, payload: float, *, up: bool, channel: float, ber: float) -> float:
        """Return the chance that a PDU is damaged, with the bit error rates of a channel and of the radio."""
        radio = self.radio[up]
        bits, per = 8.0 * payload, radio.per or 0.0 if radio.model == "constant" else 0.0
        if radio.bits == "on-air":  # access address, header, message integrity check and CRC, too
            bits += 8.0 * (air.ON_AIR_BYTES + air.MIC_BYTES * (self.le.encrypted and payload > 0.0))
        hit = 1.0 - (1.0 - channel) ** bits * (1.0 - ber) ** bits
        return hit + (1.0 - hit) * per * (payload > 0.0)

    def states(self, *, up: bool) -> list[tuple[float, float, float]]:
        """Return the states of an event: share, and bit error rates of its channel and of the radio."""
        classes = [(one.channels / air.CHANNELS, one.ber) for one in self.le.channel_classes] or [(1.0, 0.0)]
        return [(part * share, channel, ber) for part, channel in classes for share, ber in self.fading[up]]

    def facing(self, ber: float, *, up: bool) -> States:
        """Return the states of the other direction while this one has a bit error rate.

        Both directions are in the same state, unless their radios differ.
        """
        return ((1.0, ber),) if self.radio[0] == self.radio[1] else self.fading[not up]

    def events(self, pdus: Pdus, *, up: bool) -> Events:
        """Return the means of an event with data in one direction, `up` if the peripheral sends."""
        return _means(self, pdus, up)

    def mean_error(self, payloads: Vector, up: bool, channel: float, ber: float) -> float:
        """Return the mean chance that one of these PDUs is damaged."""
        sizes, counts = np.unique(payloads, return_counts=True)
        chances = [self.error(float(size), up=up, channel=channel, ber=ber) for size in sizes]
        return float(np.average(chances, weights=counts))

    def exchange_us(self, down: float, back: float) -> float:
        """Return the time of an exchange of PDUs of these bytes (us)."""
        return self.air_us(down) + self.space_us + self.air_us(back)

    def needed_us(self, down: float, back: float) -> float:
        """Return the time that must remain of the window for this exchange to start (us)."""
        if self.le.event_admission == "largest":
            down = back = self.le.payload_bytes
        return self.exchange_us(down, back)

    def times_us(self, payloads: Vector) -> Vector:
        """Return the times of exchanges, and the times that must remain for them (us): (2, exchanges)."""
        rows = [tuple(row) for row in payloads.tolist()]
        known = {one: (self.exchange_us(*one), self.needed_us(*one)) for one in set(rows)}
        return np.array([known[one] for one in rows]).T

    def charge_uc(self, events: float, exchanges: float, sent: float, heard: float) -> float:
        """Return the charge (uC) of the peripheral a second.

        The arguments are per second, too: events that it wakes up for, exchanges, and the air times of PDUs
        that it sends and hears (us).
        """
        energy = self.energy
        # clocks drift apart since the last event, so that this does not depend on how many there are
        widening_us = 2.0 * self.le.clock_ppm
        vain = self.vain / self.listens_s
        heard = heard + widening_us * (1.0 + 2.0 * self.vain) + self.air_us(0) * vain
        spaces = (2.0 * exchanges - events) * self.space_us
        awake = energy.tx_ma * sent + energy.rx_ma * heard + energy.idle_ma * spaces
        return energy.event_uc * (events + vain) + 1e-3 * awake

    def service_s(self, pdus: Pdus, events: Events) -> float:
        """Return the time that a segment takes of a direction that always has data (s)."""
        return self.apart_s(events) * pdus.each / max(events.pdus, 1e-9)

    def apart_s(self, events: Events) -> float:
        """Return the time between two events with data (s)."""
        return max(events.apart, 1.0 + events.over) * self.interval_s / max(self.taken, 1e-9)

    def lone_s(self, pdus: Pdus, events: Events, *, up: bool) -> float:
        """Return the time from an anchor point until a lone segment is across (s).

        Further events are needed for PDUs that do not fit, and for repetitions for which none has room.
        """
        own, each_us = self.total_us(pdus.payloads) / pdus.segments, 1e6 * self.exchanges_s(pdus, up)
        more = events.needed - 1.0
        last = max(1.0 - more * events.tries / pdus.each, 1.0 / pdus.each)
        again = events.damaged / max(1.0 - events.damaged, 1e-9)  # repetitions until a PDU is across
        within = last * each_us - (each_us - own) / pdus.each + (self.air_us(0) + self.space_us) * up
        if events.tries >= last * pdus.each + 1.0:  # there is room for one
            within += again * each_us
        else:
            more += again * pdus.each
        return more * self.apart_s(events) + 1e-6 * within

    def burst_s(self, pdus: Pdus, number: int, *, up: bool, come: float = 0.0) -> tuple[float, float]:
        """Return the mean time (s) until segments waiting at an anchor are across, and then acknowledged.

        Further segments, `come` of them in an interval, wake a peripheral that sends them. The receiver has
        kept any number of earlier K-frames, and returns their credits with the credits of later K-frames.
        """
        every = self.le.credits_returned_every if self.le.transfer == "coc" else 1
        kept = range(0, every, gcd(sum(pdus.ends), every))
        found = [_burst_us(self, pdus, number, up, come, frames) for frames in kept]
        there, back = (1e-6 * sum(times) / len(found) for times in zip(*found, strict=True))
        return there, back

    def answered_s(self, pdus: Pdus, come: float, window: float, *, up: bool) -> float:
        """Return the mean time (s) from when a segment is across until its acknowledgement is.

        A Poisson number of segments, of mean `come`, comes between two events.
        """
        most = int(min(window, AT_ONCE))
        numbers = np.minimum(1 + np.searchsorted(pdtr(np.arange(most), come), LEVELS[2::4]), most)
        found = Counter(numbers.tolist())
        total = sum(often * self.burst_s(pdus, n, up=up, come=come)[1] for n, often in found.items())
        return total / len(numbers)

    def waits_s(self, pdus: Pdus, load: float, *, up: bool) -> float:
        """Return the mean wait (s) of a random segment for an anchor point, the rest of a vacation.

        An event ends when all segments have gone, and the server is away until the next anchor point. The
        mean rest of a vacation V is E(V^2) / 2 E(V), and the wait for earlier segments adds to it (S. W.
        Fuhrmann and R. B. Cooper, Operations Research 33, 1985). The segments that come in a vacation take a
        busy period, here with a gamma law of its mean and variance, whose end decides how long the next
        vacation is. So vacations are a Markov chain, here on equal cells of the interval.
        """
        chances, vacations, rests = self._away(pdus, load, up)
        behind_s = self.behind_s / (1.0 - min(load * self.service_s(pdus, self.events(pdus, up=up)), FULL))
        return float(chances @ rests**2) / (2.0 * float(chances @ vacations)) + behind_s

    def _away(self, pdus: Pdus, load: float, up: bool) -> tuple[Vector, Vector, Vector]:
        """Return chances and lengths of vacations, and the parts of these in which data have to wait (s)."""
        # an idle peripheral sleeps, and wakes up for data that it sends
        period_s = (self.interval_s if up else self.listens_s) / max(self.taken, 1e-9)
        each_s, behind_s = _in_bursts(self, pdus, up)
        vacations = np.append(LEVELS[:-1], 1.0) * period_s  # the last one follows no segments
        chances = _vacations(load * period_s, each_s / period_s)
        number = self.events(pdus, up=up).pdus / pdus.each
        if number <= 1.0:  # an event has no room for what comes in it
            chances = chances * min(number * each_s / period_s, 1.0)
            chances[-1] += 1.0 - chances.sum()
        # data come in time for an idle event until the peripheral answers, and at the central until it ends
        idle_us = self.air_us(0) + self.space_us if up else self.exchange_us(0, 0)
        if not up and (
            idle_us + self.space_us + self.needed_us(pdus.payloads[0], 0) > self.window_us
            or self.le.event_packets == 1
        ):
            idle_us = 0.0  # no room for a PDU behind an empty one
        rests = np.maximum(vacations - min(behind_s, period_s), 0.0)
        rests[-1] = max(period_s - 1e-6 * idle_us, 0.0)
        return chances, vacations, rests

    def with_room(
        self, pdus: Pdus, load: float, service_s: float, back_s: float, clock_s: float, *, up: bool
    ) -> tuple[float, float]:
        """Return the share of unacknowledged segments that find room in a window, and a wait of the last (s).

        Their number is a sum: the segments in a queue M/D/1, the segments that came since a vacation began
        (Fuhrmann and Cooper), and a Poisson number of segments whose acknowledgements are on their way back
        for `back_s`. A last segment, which leaves none behind, waits until another segment is across, or a
        timer expires after `clock_s`.
        """
        chances, vacations, rests = self._away(pdus, load, up)
        at, window, used = rests[-1] * LEVELS, int(pdus.window), load * service_s
        parts = chances @ (rests[:, None] > at) * (rests[-1] / len(at)) / float(chances @ vacations)
        at, parts = np.append(at, 0.0), np.append(parts, 1.0 - parts.sum())
        rest_s = float(parts @ at)
        last_s = min(rest_s - expm1(-load * max(clock_s - rest_s, 0.0)) / load, clock_s)
        last_s *= (1.0 - used) * float(parts @ np.exp(-load * at))
        below = pdtr(np.arange(window)[:, None], load * (at + back_s)) @ parts
        below = np.convolve(_queue_law(used, window), below)[:window]
        mean = load * (rest_s + back_s) + used + used**2 / (2.0 - 2.0 * used)
        return float((1.0 - below).sum()) / mean, last_s

    def beyond_wire_s(self, pdus: Pdus, load: float, service_s: float, *, up: bool) -> float:
        """Return how much longer segments wait for earlier ones than in the queue of a wire (s).

        They wait for segments of the same event, as in the M/D/1 queue, and a whole interval for each event
        that has left them behind. An event of n segments, a on average come between two, leaves behind the
        sum over k of E(max(N_k - k n, 0)) / k, where N_k is a Poisson number of mean k a (F. Spitzer,
        Transactions of the American Mathematical Society 82, 1956). Two errors in a row close an event
        anywhere in the busy part of an interval, and the segments left wait for the next event.
        """
        period_s = (self.interval_s if up else self.listens_s) / max(self.taken, 1e-9)
        each_s, number, come = _in_bursts(self, pdus, up)[0], period_s / service_s, load * period_s
        used = load * service_s
        if not 0.0 < used < FULL:
            return 0.0
        same_s = load * each_s**2 / (2.0 * (1.0 - min(load * each_s, FULL)))
        beyond_s, away_s = 0.0, max(period_s - number * each_s, 0.0)
        if number > 1.0:
            beyond_s = same_s + _left_behind(number, come) / load - used * service_s / (2.0 * (1.0 - used))
            if away_s < period_s / 2.0:  # segments left behind wait for little but services
                beyond_s = min(beyond_s, 0.0)
            if pdus.segments == 1 and number < MANY_FIT and round(come, 6) > 0.0:
                made = round(number * pdus.each, 6)  # equal events are solved once
                beyond_s += away_s * _cut_off(len(pdus.payloads), made, round(come, 6))
        events, whole = self.events(pdus, up=up), _events(self, pdus, up, 0.0, 0.0)[0]
        closed_s = 2.0 * period_s * pdus.each / events.pdus * max(1.0 - events.tries / whole, 0.0)
        later_s = load * period_s * (1.0 - used + used**2 / 3.0) / (2.0 * (1.0 - used))
        return beyond_s + closed_s * (1.0 - used / 2.0 + later_s)

    def run_s(self, pdus: Pdus, *, up: bool) -> float:
        """Return the time of a segment in a run whose credits go before acknowledgements (s), 0 in others."""
        events, le = self.events(pdus, up=up), self.le
        at_once = (
            le.transfer == "coc" and le.credits_returned_every == 1 and not (le.acl_buffers or le.latency)
        )
        if not (at_once and all(pdus.ends) and exchanges_of(self, pdus, up).data.all()):
            return 0.0
        if events.pdus < FEW_FIT * pdus.each:  # runs go on in the next event
            return self.service_s(pdus, events)
        return _in_bursts(self, pdus, up)[0]

    def exchanges_s(self, pdus: Pdus, up: bool) -> float:
        """Return the time of the exchanges of a segment (s)."""
        payloads, data = exchanges_of(self, pdus, up)[:2]
        each_us = self.total_us(payloads.ravel().tolist()) + 2.0 * self.space_us * len(data)
        return 1e-6 * each_us * pdus.each / int(data.sum())


def pdus_of(scenario: Scenario, sizes: Sequence[tuple[float, float]]) -> Pdus:
    """Return the PDUs of segments of these sizes (bytes, share): the fewest with these shares, or `MIXED`."""
    le: Any = scenario.le  # hashable, as it is frozen
    return _cut(le, tuple(sizes))


@lru_cache(maxsize=256)
def _cut(le: LowEnergy, sizes: tuple[tuple[float, float], ...]) -> Pdus:
    """Return the PDUs of segments of these sizes (bytes, share)."""
    each, shares = np.array(sizes).T
    near = (number for number in range(1, MIXED) if (abs((number * shares + 0.5) % 1.0 - 0.5) < 1e-6).all())
    segments = next(near, MIXED)
    levels = (np.arange(segments) + 0.5) / segments
    payloads: list[int] = []
    ends: list[bool] = []
    for size in each[np.searchsorted(np.cumsum(shares), levels)]:
        for frame in frames_of(le, int(size)):
            cut = air.pdus(frame, le.payload_bytes)
            payloads += cut
            ends += [False] * (len(cut) - 1) + [True]
    return Pdus(tuple(payloads), tuple(ends), segments)


def station(
    scenario: Scenario,
    plan: Topology,
    piconet: int,
    member: int,
    radio: tuple[Radio, Radio],
    fading: tuple[States, States],
    stay_s: float,
) -> Station:
    """Return the link of a piconet to its member of this number, with its radio and states down and up."""
    le = scenario.le
    here = plan.piconets[piconet]
    taken, window_s = schedule(
        len(here.members), le.reserved_s, le.interval_s * le.subrate, le.interval_s, le.event_extension,
        le.anchors == "random",
    )[member]  # fmt: skip
    interval_s = le.interval_s * le.subrate
    if not {flow.source for flow in plan.flows} & set(here.members):
        taken = min(taken * (1 + le.latency), 1.0)  # who misses an event listens to the next, and meets fewer
    at_central, at_member = (
        len(_beside(plan, piconet, node)) for node in (here.central, here.members[member])
    )
    drifts = le.clock_ppm > 0.0 or le.anchors == "random" or le.interval_spread_s > 0.0
    anywhere = (len(here.members) - 1) * (le.anchors == "random")
    if drifts:
        kept = 1.0 - beaten(le.reserved_s, interval_s)
        comes = taken * kept**at_central
        taken = comes * kept**at_member
    else:  # first anchors follow each other by one reservation, in all piconets: links take turns, if at all
        turns = interval_s / le.reserved_s
        comes = min(taken, turns / (len(here.members) + at_central)) if at_central else taken
        taken = min(comes, turns / (1.0 + at_member))
    if le.event_extension and at_central + at_member:  # it ends at the next reservation, anywhere after it
        window_s = le.reserved_s + (window_s - le.reserved_s) / (at_central + at_member + 1.0)
    if le.iso_interval_s > 0.0:
        window_s = min(window_s, (le.iso_interval_s - le.iso_length_s) / 2.0)
    return Station(
        interval_s, interval_s * (1 + le.latency), window_s - le.event_overhead_s, taken, 1.0 - comes, le,
        radio, fading, stay_s, scenario.energy, (at_central + anywhere, at_member), drifts,
    )  # fmt: skip


def _beside(plan: Topology, piconet: int, node: int) -> list[tuple[int, int]]:
    """Return the links of a node in other piconets, which have other clocks."""
    return [
        (index, member)
        for index, one in enumerate(plan.piconets)
        if index != piconet
        for member in one.members
        if node in (one.central, member)
    ]


def beaten(length_s: float, period_s: float) -> float:
    """Return the share of events that a link loses to reservations, as long as its own, that drift past."""
    return min(2.0 * length_s / period_s, 1.0) / 2.0


@lru_cache(maxsize=1024)
def _burst_us(
    link: Station, pdus: Pdus, number: int, up: bool, come: float, kept: int
) -> tuple[float, float]:
    """Return the times of `Station.burst_s` (us) if the receiver has kept `kept` K-frames."""
    found = _chain(link, pdus._replace(window=float(number), every=1), up, once=True, kept=kept)[0]
    period_us = 1e6 * link.interval_s / max(link.taken, 1e-9)
    anchor_us, at_us, made, there_us, back_us = 0.0, 0.0, 0, [], []
    for place, (payloads, exchange_us, needed_us) in enumerate(
        zip(found.payloads.tolist(), *link.times_us(found.payloads).tolist(), strict=True)
    ):
        over = at_us + needed_us > link.window_us or made == link.le.event_packets
        if place and (over or found.closes[place - 1]):
            skipped = sum(exp(-come * (n + 1.0) * up) for n in range(link.le.latency)) * (
                not found.awake[place]
            )
            passed = max(ceil((at_us - link.space_us) / (1e6 * link.interval_s) - 1e-9), 1.0)
            anchor_us += passed * period_us
            anchor_us += max(skipped + 1.0 - passed, 0.0) * 1e6 * link.interval_s
            at_us, made = 0.0, 0
        ends_us = anchor_us + at_us + exchange_us
        early_us = link.space_us + link.air_us(payloads[1])  # the central's PDU ends before
        if found.whole[place]:
            there_us.append(ends_us - early_us * (not up))
        if found.answered[place]:
            back_us.append(ends_us - early_us * up)
        if len(back_us) == number:
            break
        at_us, made = ends_us - anchor_us + link.space_us, made + 1
    there = sum(there_us) / number
    return there, sum(back_us) / number - there


@lru_cache(maxsize=1024)
def _in_bursts(link: Station, pdus: Pdus, up: bool) -> tuple[float, float]:
    """Return the time of a segment among others of an event, and how long the event goes on for data (s).

    Segments go first where credits go before acknowledgements: these follow behind the last segment. The last
    segment has any place among the segments of an acknowledgement, all equally often. Data come in time for
    the last exchange until their side answers, or at the central until it ends.
    """
    whole_us, behind_us = 1e6 * link.exchanges_s(pdus, up), 0.0
    if pdus.window == inf:
        return 1e-6 * whole_us, 0.0
    each_us = []
    for number in range(2 * pdus.every, 3 * pdus.every):
        played = _chain(link, pdus._replace(window=float(number)), up, once=True)[0]
        across, open_us, at_us = [], 0.0, 0.0
        for place, (down, back) in enumerate(played.payloads.tolist()):
            over = at_us + link.needed_us(down, back) > link.window_us
            if place and (over or played.closes[place - 1]):
                break
            open_us = at_us + (link.air_us(down) + link.space_us if up else link.exchange_us(down, back))
            at_us += link.exchange_us(down, back) + link.space_us
            if played.whole[place]:
                across.append(at_us)
        if len(across) < number:  # an event ends within the burst
            return 1e-6 * whole_us, 0.0
        each_us.append(min((across[-1] - across[0]) / (number - 1.0), whole_us))
        behind_us += max(open_us - number * each_us[-1], 0.0) / pdus.every
    return 1e-6 * float(np.mean(each_us)), 1e-6 * behind_us


@lru_cache(maxsize=256)
def until_shared(come: float, late: float, there: float, clock: int, sleeps: int) -> float:
    """Return how much longer round trips are if two segments share an acknowledgement.

    A round trip is timed from the first of them. A Poisson number of segments, of mean `come`, waits at an
    anchor point. If the first of two is the last of its event, it waits for segments of a later event, or
    for the event to which its timer sends the acknowledgement. The state of the chain is the number of
    anchor points for which a segment has waited. Times are in intervals.

    Args:
        come: segments that come in an interval.
        late: wait of an acknowledgement which an event does not wait for, of the last segment.
        there: time from an anchor point until a segment is across.
        clock: events from a segment to the first one with the acknowledgement that its timer sends.
        sleeps: the same if no further segment wakes the peripheral.
    """
    n = np.arange(int(come + 8.0 * come**0.5 + 8.0))
    chances = np.diff(pdtr(n, come), prepend=0.0)
    rests = 1.0 - (n + 1.0) / (n[:, None] + 1.0)  # of each of n segments
    paired = [  # the sum of rests of segments whose second one is at the same event, by those left before
        np.array([rests[one, left : one - 1 : 2].sum() if one else 0.0 for one in n]) for left in (0, 1)
    ]
    odd, even = n % 2 == 1, (n % 2 == 0) & (n > 0)
    leaves = (float(chances[odd].sum()), float(chances[even].sum()))  # a segment, behind none and behind one
    # shares of anchor points with no segment left, and with one that has waited for 1, 2, ... intervals
    step, ages = np.zeros((sleeps + 1, sleeps + 1)), np.arange(sleeps + 1)
    step[:, 1] = np.where((ages > 0) & (ages < clock), leaves[1], leaves[0])
    step[ages[1:-1], ages[2:]] += chances[0]
    step[:, 0] = 1.0 - step[:, 1:].sum(axis=1)
    share = np.linalg.solve(step.T - np.eye(sleeps + 1) + 1.0, np.ones(sleeps + 1))
    ended = np.where(ages < sleeps, 1.0 - chances[0], 1.0)[1:] * share[1:]  # waits of these lengths
    waits = float(share[1:clock].sum())
    begun = 1.0 - waits
    rest = chances / (n + 1.0)
    left = (begun * rest[odd].sum() + waits * rest[even].sum()) / (begun * leaves[0] + waits * leaves[1])
    acks = begun * (chances @ (n // 2)) + waits * (chances @ ((n + 1) // 2)) + ended[clock - 1 :].sum()
    times = begun * (chances @ paired[0] + late * leaves[1]) + waits * (
        chances @ paired[1] + late * leaves[0]
    )
    times += ended @ (left + ages[1:]) - there * ended[clock - 1 :].sum()
    alone = 0.5 + late * -expm1(-come) / come
    return float(times / acks) - alone


def _queue_law(used: float, most: int) -> Vector:
    """Return the chances of 0, 1, ... customers of a queue M/D/1, `most` of them (by its embedded chain)."""
    comes = np.diff(pdtr(np.arange(most + 1), used), prepend=0.0)
    found = np.zeros(most)
    found[0] = 1.0 - used
    for n in range(most - 1):
        before = found[0] * comes[n] + found[1 : n + 1] @ comes[n:0:-1]
        found[n + 1] = max((found[n] - before) / comes[0], 0.0)
    return found


@lru_cache(maxsize=256)
def until_run_ends(used: float, window: int, clock: float) -> float:
    """Return the mean time from the end of a segment's service until its run ends (in services).

    Then its acknowledgement may go. A run of services begins with one segment. It ends when the sender has no
    segment, or when the run has the segments of a window.

    Args:
        used: segments that come in a service.
        window: most segments of a run.
        clock: services after which a timer acknowledges the first segment of two; 0 if each has its own.
    """
    # by parity of the segments before, and segments at the sender: acknowledgements, sum of the waits for
    # them, chance that a segment is left over, services until the end
    found = np.zeros((4, 2, window + 1))
    found[2, 1] = 1.0
    for room in range(1, window + 1):
        before, found = found, found.copy()
        for held in range(1, room + 1):
            come = np.arange(room - held + 1)
            chances = np.diff(pdtr(come, used), prepend=0.0)
            chances[-1] += 1.0 - chances.sum()
            after = before[:, :, held - 1 + come] @ chances
            for odd in (0, 1):
                found[:, odd, held] = after[:, 1 - odd if clock else 0]
                found[:, odd, held] += (1 - odd, (1 - odd) * after[3, 0], 0.0, 1.0)
    (acks, waits, left, lasts), joins = found[:, :, 1], -expm1(-used * clock)
    if not clock:
        return float(waits[0] / acks[0])
    # share of runs that find a segment left over
    begun = joins * left[0] / (1.0 - joins * (left[1] - left[0]))
    waits = waits + left * joins * (1.0 / used + lasts[1])
    return float((waits[0] + begun * (waits[1] - waits[0])) / (acks[0] + begun * (acks[1] - acks[0])))


@lru_cache(maxsize=256)
def _cut_off(each: int, made: float, come: float) -> float:
    """Return the mean events that segments wait as events end within one, whose rest waits for the next.

    PDUs left behind by an event are a Markov chain: a segment comes with `each`, an event takes `made`, which
    are as many or more, and `come` segments come on average between two events. A segment waits for a whole
    number of events, more than the quotient of the PDUs ahead and the PDUs of an event.
    """
    chances = np.diff(pdtr(np.arange(int(come + 6.0 * come**0.5 + 6.0)), come), prepend=0.0)
    size = min(int(made + each * (len(chances) + 6.0 / (1.0 - min(come * each / made, FULL)))) + 1, LEFT)
    least, part = int(made), made % 1.0
    left = np.zeros(size)
    left[0] = 1.0
    for _ in range(EVENTS):
        there = np.zeros(size + each * len(chances) + least + 1)
        for number, chance in enumerate(chances):
            there[each * number : each * number + size] += chance * left
        after = (1.0 - part) * there[least : least + size] + part * there[least + 1 : least + 1 + size]
        after[0] += there[:least].sum() + part * there[least]
        before, left = left, after / after.sum()
        if np.abs(before - left).sum() < 1e-5:
            break
    earlier = 1.0 - pdtr(np.arange(len(chances)), come)  # segments that came before it in the interval
    ahead = np.arange(size)[:, None] + each * np.arange(1, len(chances) + 1)
    events = -(1.0 - part) * (-ahead // least) - part * (-ahead // (least + 1))
    return float(left @ events @ earlier / earlier.sum() - left @ np.arange(size) / (each * come) - 1.0)


@lru_cache(maxsize=256)
def _left_behind(number: float, come: float) -> float:
    """Return the mean segments that an event of `number` leaves behind, if `come` come between two events."""
    k = np.arange(1.0, EVENTS)
    over = k * come * gammainc(k * number, k * come) - k * number * gammainc(k * number + 1.0, k * come)
    return float((over / k).sum())


@lru_cache(maxsize=256)
def _vacations(come: float, each: float) -> Vector:
    """Return the chances of cells of vacations, with segments and their time in units of the interval."""
    cells, used = len(LEVELS), min(come * each, FULL)
    vacations = np.append(LEVELS[:-1], 1.0)
    spread = (used * each / (1.0 - used) ** 3) ** 0.5  # of a busy period
    wraps = max(min(ceil(used / (1.0 - used) + 8.0 * spread), WRAPS), 1)
    ends = np.arange(wraps * cells + 1) / cells / each * (1.0 - used) ** 2
    below = gammainc(np.maximum(come * vacations * (1.0 - used), 1e-12)[:, None], ends)
    step = np.diff(below).reshape(cells, wraps, cells).sum(axis=1)[:, ::-1]
    step += (1.0 - below[:, -1:]) / cells  # busy periods that are longer end anywhere
    chances: Vector = np.linalg.solve(step.T - np.eye(cells) + 1.0, np.ones(cells))
    return chances


@lru_cache(maxsize=256)
def schedule(
    links: int, length_s: float, period_s: float, interval_s: float, extends: bool, anywhere: bool
) -> tuple[tuple[float, float], ...]:
    """Return for each link of a central the share of its events that take place, and their window (s).

    The first anchors follow each other by one reservation of `length_s`, or are anywhere, and these are means
    over anchors and links. Of two events whose reservations overlap, the link that has waited longer goes.
    Events of a link follow each other by `period_s`. One that `extends` goes on until the next reservation.
    """
    most = interval_s if extends else length_s
    if links == 1:
        return ((1.0, most),)
    if not anywhere:
        first = [(n * length_s) % interval_s for n in range(links)]
        return _scheduled(first, length_s, period_s, interval_s, most, PLAYED)
    found = np.zeros(2)  # means over anchors that are spread evenly (Kronecker's sequence)
    for number in range(1, SETS + 1):
        first = [(number * prime**0.5) % 1.0 * interval_s for prime in PRIMES[:links]]
        for taken, window in _scheduled(first, length_s, period_s, interval_s, most, FEW):
            found += taken / SETS / links * np.array([1.0, window])
    return ((float(found[0]), float(found[1] / found[0])),) * links


def _scheduled(
    first: list[float], length_s: float, period_s: float, interval_s: float, most: float, intervals: int
) -> tuple[tuple[float, float], ...]:
    """Return the same as `schedule` for these first anchors (s); `most`: longest window (s)."""
    links = len(first)
    last, taken, window = [-1.0] * links, [0] * links, [0.0] * links
    until = -1.0
    anchors = sorted((k * period_s + at, n) for n, at in enumerate(first) for k in range(intervals + 1))
    for place, (now, n) in enumerate(anchors[: intervals * links]):  # behind the last ones others follow
        near = [m for at, m in anchors[place + 1 : place + links] if at < now + length_s - TOUCHING_S]
        if until > now + TOUCHING_S or any(last[m] < last[n] for m in near):
            continue
        end = now + length_s
        if most > length_s:
            free = next((at for at, m in anchors[place + 1 :] if at >= end - TOUCHING_S and m != n), inf)
            end = max(end, min(free, now + interval_s))
        last[n], until, taken[n], window[n] = now, now + length_s, taken[n] + 1, window[n] + end - now
    return tuple((count / intervals, each / max(count, 1)) for count, each in zip(taken, window, strict=True))


def shaded(links: Sequence[tuple[Station, Sequence[tuple[Pdus, bool, float]]]]) -> list[Station]:
    """Return the links of a central, with events missed because exchanges outlast their reservations.

    The first exchange of an event always goes. Anchor points before its end are missed, also anchor points of
    the same link. A link with pauses has the exchanges of its segments, and a link that always has data the
    first exchanges of events. The exchanges of a segment come in a row: a link waits as at low priority
    behind batches. The links are in the order of their anchors, each with PDUs, their direction, and segments
    a second.
    """
    found, apart = np.array([link.taken for link, _ in links]), inf
    # anchor points that a link misses for an event of another one, and in an interval: mean and square
    each, often, squares = np.zeros((3, len(links), len(links)))
    over = np.zeros(len(links))
    for m, (link, sources) in enumerate(links):
        period_us, length_us = 1e6 * link.interval_s, 1e6 * link.le.reserved_s
        first_us = np.arange(len(links)) * length_us % (1e6 * link.le.interval_s)
        after_us = (first_us - first_us[m]) % period_us
        after_us[m] = period_us
        near = after_us < length_us - 1e6 * TOUCHING_S  # the schedule knows them
        for pdus, up, segments_s in sources:
            cycle, events = exchanges_of(link, pdus, up), link.events(pdus, up=up)
            kinds = Counter(map(tuple, cycle.payloads.tolist()))
            times_us = np.array([link.exchange_us(*one) for one in kinds])
            apart = min(apart, events.apart)
            reach = np.ceil((times_us[:, None] - after_us) / period_us - 1e-9).clip(0.0)
            missed = (list(kinds.values()) * (times_us > length_us)) @ np.where(near, 0.0, reach)
            if segments_s == inf:
                over[m] = max((1.0 + events.over) / events.apart - 1.0, 0.0)
                each[m] += missed * min(events.exchanges / len(cycle.data), 1.0)
            else:
                missed *= pdus.each * events.tries / max(events.pdus, 1e-9) / int(cycle.data.sum())
                often[m] += segments_s * link.interval_s * missed
                squares[m] += segments_s * link.interval_s * np.maximum(missed**2, missed)
    if not each.any() and not often.any():
        return [link for link, _ in links]
    taken, lost, step = found, np.zeros(len(links)), 1.0 / (1.0 + max(each.sum(axis=0).max(), 1.0))
    for _ in range(SETS):  # a link misses events of all intervals, and takes one of those for which it skips
        lost = np.minimum(taken @ each / apart + often.sum(axis=0), 1.0)
        taken = taken + step * (found * np.minimum((1.0 - lost) * apart, 1.0) - taken)
    own = np.minimum(taken * np.diag(each) / apart + np.diag(often), FULL)
    lost = np.clip(lost - own, 0.0, FULL)
    own = np.where(np.diag(each) > 0.0, over / (1.0 + over), own)  # of one that has data always
    taken = np.minimum(taken / (1.0 - own), 1.0)
    behind = squares.sum(axis=0) - np.diag(squares)
    behind = (lost + (behind + lost**2 - lost) / (1.0 - lost)) / (2.0 * (1.0 - lost))
    behind *= each.sum() == 0.0  # beside a link that always has data this wait is left out (not measured)
    return [
        replace(link, taken=share, vain=1.0 - share, behind_s=more * link.interval_s, own=during)
        if share < link.taken or during
        else link
        for (link, _), share, more, during in zip(
            links, taken.tolist(), behind.tolist(), own.tolist(), strict=True
        )
    ]


class Exchanges(NamedTuple):
    """Exchanges without damaged PDUs, one after the other.

    Attributes:
        payloads: bytes from the central and from the peripheral, (exchanges, 2).
        data: whether a PDU of the source is in it.
        closes: whether neither side has more to send at its end, which closes the event.
        awake: whether the peripheral has data at its begin.
        whole: whether a segment is across.
        answered: whether an acknowledgement is across.
    """

    payloads: Vector
    data: NDArray[np.bool_]
    closes: NDArray[np.bool_]
    awake: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    answered: NDArray[np.bool_]


@lru_cache(maxsize=1024)
def exchanges_of(link: Station, pdus: Pdus, up: bool) -> Exchanges:
    """Return the cycle of exchanges of a source that always has data for its window."""
    exchanges, first = _chain(link, pdus, up)
    columns: Any = (column[first:] for column in exchanges)
    return Exchanges(*columns)


@lru_cache(maxsize=1024)
def _chain(link: Station, pdus: Pdus, up: bool, once: bool = False, kept: int = 0) -> tuple[Exchanges, int]:
    """Return the exchanges of a source that always has data for its window, and the first one of their cycle.

    `once`: it has the segments of one window, and no more. `kept`: earlier K-frames whose credits are not yet
    returned.

    Both sides choose their PDUs before they know the PDU of the other. Credits go before data: while a side
    returns credits for each PDU, its acknowledgements wait. The answer to the peripheral's PDU enters a
    queue when the exchange is over: too late to keep the event open.
    """
    held, window = link.le.acl_buffers or inf, pdus.window
    every = link.le.credits_returned_every if link.le.transfer == "coc" else inf
    ways = [(pdus.payloads, pdus.ends), pdus.answer]
    cuts = [
        list(zip(payloads, ends, (*ends[-1:], *ends[:-1]), strict=True))  # whether a frame ends, and begins
        for payloads, ends in (ways[::-1] if up else ways)
    ]
    # of both sides: segments to be sent, place of the next PDU, K-frames that may be sent, frames received
    # since credits were returned, credits to be returned, and PDUs in this event
    segments, place, credits = [0.0, 0.0], [0, 0], [link.le.credits if every < inf else inf] * 2
    received, owed, sent = [0, 0], [0, 0], [0, 0]
    segments[up], received[not up], credits[up] = window, kept, credits[up] - kept

    def choose(side: int) -> tuple[int, int]:
        """Return the payload of the next PDU of a side, and the credits in it."""
        if sent[side] >= held or not (owed[side] or segments[side]):
            return 0, 0
        if owed[side]:
            return air.CREDITS_BYTES, owed[side]
        payload, _, begins = cuts[side][place[side]]
        return 0 if begins and not credits[side] else payload, 0

    seen: dict[tuple[float, ...], int] = {}
    rows: list[tuple[float, ...]] = []
    gathered, made, ends_us, first, coming = 0, 0, 0.0, 0, 0.0
    while len(rows) < LONGEST:
        state = (*segments, *place, *credits, *received, *owed, *sent, gathered, made, ends_us, coming)
        if state in seen:
            first = seen[state]
            break
        seen[state] = len(rows)
        awake, closes, across = segments[1] > 0, False, [False, False]
        chosen = choose(0), choose(1)
        segments[0], coming = segments[0] + coming, 0.0
        for side, (payload, returned) in enumerate(chosen):
            sent[side] += payload > 0 and held < inf
            if returned:
                credits[1 - side], owed[side] = credits[1 - side] + returned, owed[side] - returned
            elif payload:
                _, ends, begins = cuts[side][place[side]]
                credits[side] -= begins
                place[side] = (place[side] + 1) % len(cuts[side])
                across[side] = place[side] == 0
                segments[side] -= across[side]
                received[1 - side] += ends and every < inf
                if received[1 - side] >= every:
                    owed[1 - side], received[1 - side] = owed[1 - side] + received[1 - side], 0
            closes, before = side == 1 and not (choose(0)[0] or choose(1)[0]), segments[0]
            if across[side] and side != up:
                segments[up] += pdus.every * (not once)
            elif across[side] and window < inf:
                gathered = (gathered + 1) % pdus.every
                segments[1 - side] += not gathered
        if held < inf:  # what is sent depends on the end of the event
            made, ends_us = made + 1, ends_us + link.exchange_us(*(one for one, _ in chosen)) + link.space_us
            over_us = ends_us + link.needed_us(choose(0)[0], choose(1)[0])
            closes = closes or made == link.le.event_packets or over_us > link.window_us
            if closes:
                sent, made, ends_us = [0, 0], 0, 0.0
        if pdus.late and across[1]:  # the central has chosen its next PDU
            coming, segments[0] = segments[0] - before, before
        (down, _), (back, _) = chosen
        data = chosen[up][0] > 0 and not chosen[up][1]
        rows.append((down, back, data, closes, awake, across[up], across[not up]))
    found = np.array(rows, float)
    return Exchanges(found[:, :2], *(found[:, 2:] > 0.0).T), first


@lru_cache(maxsize=1024)
def _means(link: Station, pdus: Pdus, up: bool) -> Events:
    """Return the means of an event over the states of channel and radio."""
    found = np.zeros(8)
    cycle = exchanges_of(link, pdus, up)
    for share, channel, ber in link.states(up=up):
        error = link.mean_error(cycle.payloads[cycle.data, int(up)], up, channel, ber)
        facing = np.maximum(cycle.payloads[:, int(not up)], pdus.beside)
        other = sum(
            part * link.mean_error(facing, not up, channel, one) for part, one in link.facing(ber, up=up)
        )
        found += share * np.array([*_events(link, pdus, up, error, other), error, other])
    return Events(*found.tolist())


@lru_cache(maxsize=1024)
def _events(link: Station, pdus: Pdus, up: bool, error: float, other: float) -> tuple[float, ...]:
    """Return the first six means of `Events`, with these chances that a PDU of either side is damaged."""
    le, space = link.le, link.space_us
    cycle = exchanges_of(link, pdus, up)
    count = len(cycle.data)
    payloads = cycle.payloads.copy()
    payloads[:, int(not up)] = np.maximum(payloads[:, int(not up)], pdus.beside)
    each, needed = link.times_us(payloads)
    repeated = ceil(link.window_us / float((each + space).sum())) + 2
    begins = np.concatenate([[0.0], np.cumsum(np.tile(each + space, repeated))])
    over = begins[:-1] + np.tile(needed, repeated)
    places = np.arange(count)
    room = np.searchsorted(over, begins[places] + link.window_us + 1e-6, side="right") - places
    room = room.clip(1, le.event_packets or LONGEST)
    shut = np.flatnonzero(np.tile(cycle.closes, repeated))
    after = np.append(shut, LONGEST)[np.searchsorted(shut, places)] + 1 - places
    made = np.minimum(room, after)
    order, place, met = [], 0, {}
    while place not in met:
        met[place] = len(order)
        order.append(place)
        place = (place + int(made[place])) % count
    sent = np.concatenate([[0.0], np.cumsum(np.tile(cycle.data, repeated))])
    begun = np.array(order)
    totals = np.cumsum(sent[begun + made[begun]] - sent[begun])
    needed_events = 1.0 + np.searchsorted(totals, pdus.each - 1e-9)
    if pdus.each > totals[-1]:
        needed_events = pdus.each * len(totals) / float(totals[-1])
    begun = begun[met[place] :]
    real, numbers = sent[begun + made[begun]] - sent[begun], made[begun]
    awake = cycle.awake[begun] | (pdus.beside > 0.0)
    apart = 1.0 + le.latency * float((~awake).mean())
    lasts_us = begins[begun + made[begun]] - begins[begun] - space
    over = float(np.ceil(lasts_us / (1e6 * link.interval_s) - 1e-9).clip(1.0).mean()) - 1.0
    found = np.array([real.mean(), numbers.mean(), real.mean()])
    if error > 0.0 or other > 0.0:
        found[:] = 0.0
        for most, count, data in zip(room[begun].tolist(), numbers.tolist(), real.tolist(), strict=True):
            # an event that closes early has room for repetitions, and goes on for credits or answers; in
            # others exchanges without data take their share of the room
            early = most > count and data > 0.0
            whole, part = divmod(most if early else most * data / count, 1.0)
            for tried, weight in ((int(whole), 1.0 - part), (int(whole) + 1, part)):
                means = _through(tried, error, other, int(data) if early else tried)
                found += weight / len(real) * np.array(means)
            found[1] += (count - data) / len(real)
    return *found.tolist(), needed_events, apart, over


@lru_cache(maxsize=4096)
def _through(exchanges: int, error: float, other: float, held: int) -> tuple[float, float, float]:
    """Return data PDUs that come across, exchanges and transmissions in an event with room for `exchanges`.

    Two damaged PDUs in a row at one side close the event (6, B, 4.5.6). A data PDU is damaged with the chance
    `error`. A damaged PDU of the other side (chance `other`) leaves the data unacknowledged: it is sent again
    although it came across. The controller has no more than `held` data PDUs in this event.
    """
    # chances by PDUs across so far, and by damage last: none, data, the other side's, both
    counts = held < exchanges
    chances = np.zeros((held + 1 if counts else 1, 4))
    chances[0, 0] = 1.0
    good = (1.0 - error) * (1.0 - other)
    data, facing = error * (1.0 - other), (1.0 - error) * other
    # a second one in a row at one side closes the event
    bad = np.array([[0, data, facing, error * other], [0, 0, facing, 0], [0, data, 0, 0], [0, 0, 0, 0]])
    made = 0.0  # every exchange transmits a data PDU
    for _ in range(exchanges):
        open_ = chances[:held] if counts else chances
        total = open_.sum(axis=1)
        made += float(total.sum())
        after = np.zeros_like(chances)
        after[: len(open_)] = open_ @ bad
        after[int(counts) :, 0] += good * total
        chances = after
    return good * made, made, made


def disconnections_s(link: Station) -> float:
    """Return the disconnections a second: a run of events without an intact PDU is as long as the timeout.

    Both PDUs of an exchange have to be damaged, and both of the next exchange, which closes the event. A run
    of k events begins after an intact PDU. The mean time between runs of failures is known (W. Feller, An
    Introduction to Probability Theory and Its Applications, vol. 1, XIII.7); it is taken in each state of
    channel and radio. Events that a node misses are left out: they alternate with others.
    """
    events = ceil(link.le.supervision_timeout_s / link.listens_s - 1e-9)
    found = 0.0
    for share, channel, ber in link.states(up=False):
        for part, other in link.facing(ber, up=False):
            down = link.error(0.0, up=False, channel=channel, ber=ber)
            failing = (down * link.error(0.0, up=True, channel=channel, ber=other)) ** 2
            run = failing**events
            each = 1.0 / link.le.supervision_timeout_s
            if run < 1.0:
                each = min((1.0 - failing) * run / (1.0 - run) / link.listens_s, each)
            found += share * part * each
    return found


class Carried:
    """The traffic of a link, a second, down and up.

    Attributes:
        pdus: exchanges with data PDUs, and without data between them, repetitions included, shape (2,).
        us: their air time above the time of empty ones, shape (2,).
        messages: messages that no acknowledgement lets out.
        answers: messages and acknowledgements of the peripheral.
        by_chance: whether none of their sources is periodic.
        up: use of the direction up.
        used: use of each direction by data, shape (2,).
        exchanges: exchanges of an event with data at every time.
        apart: intervals between two of these events.
        room: whether an event has time for an exchange behind a segment, in which its last credits return.
    """

    def __init__(self, link: Station) -> None:
        self.link, self.room = link, False
        self.pdus, self.us = np.zeros((2, 2))
        self.messages, self.answers, self.up = 0.0, 0.0, 0.0
        self.used, self.exchanges, self.apart = np.zeros(2), 0.0, 1.0
        self.by_chance = True

    def add(self, pdus: Pdus, segments_s: float, side: int) -> Events:
        """Add segments in a direction: 0 down, 1 up."""
        link, le = self.link, self.link.le
        events = link.events(pdus, up=bool(side))
        made = segments_s * pdus.each * events.tries / max(events.pdus, 1e-9)
        data = exchanges_of(link, pdus, bool(side)).data
        apart = 1.0 if le.acl_buffers else len(data) / int(data.sum())
        self.pdus[side] += made * apart
        self.room |= apart == 1.0 and events.exchanges >= pdus.each + 1.0
        self._add(made, link.total_us(pdus.payloads) / len(pdus.payloads), side)
        if le.transfer == "coc":
            frames = segments_s * sum(pdus.ends) / pdus.segments
            self._add(frames / le.credits_returned_every, link.air_us(air.CREDITS_BYTES), 1 - side)
        return events

    def _add(self, count: float, each_us: float, side: int) -> None:
        self.us[side] += count * (each_us - self.link.air_us(0))

    def of_events(self) -> tuple[float, float]:
        """Return the events a second that take place, and the exchanges of each.

        An event has an exchange at least. A peripheral that may skip events wakes up for data.
        """
        link = self.link
        every = link.taken / link.interval_s
        if self.used.max() > FULL:
            return every / self.apart, self.exchanges
        every *= 1.0 - link.own
        # a peripheral without data listens after `latency` events
        data = max(-expm1(-self.answers * link.interval_s), self.up)
        skips = 1.0 + link.le.latency
        between = (1.0 - (1.0 - data) ** skips) / data if data > 0.0 else skips
        events_s = every / between
        each = self.messages / events_s
        none = exp(-each) if self.by_chance else max(1.0 - each, 0.0)
        # an event goes on for the credits of its last frame, if it has time
        credits = (1.0 - none) / link.le.credits_returned_every if link.le.transfer == "coc" else 0.0
        return events_s, float(self.pdus.max()) / events_s + none + credits * self.room


def metrics(network: Any, rate: Vector) -> dict[str, Any]:
    """Return the metrics of each link, shape (links,), and the energy of a bit.

    Args:
        network: the stations and flows, a `Network`.
        rate: segments of each flow that come across (1/s), (flows,).
    """
    rows = [_of_link(network, rate, link, wires) for link, *wires in network.anchored]
    found: dict[str, Any] = dict(zip(EVENT_METRICS, np.array(rows).T, strict=True))
    bits = 1e3 * float(rate @ np.array([flow.kilobits for flow in network.flows]))
    volts = np.array([link.energy.supply_v for link, *_ in network.anchored])
    return found | ({"energy_uj_per_bit": 1e3 * float(volts @ found["current_ma"]) / bits} if bits else {})


def _of_link(network: Any, rate: Vector, link: Station, wires: list[int]) -> tuple[float, ...]:
    """Return the metrics of a link, in the order of `EVENT_METRICS`."""
    carried = Carried(link)
    for f, flow in enumerate(network.flows):
        for back, way in enumerate((flow.forth, flow.back)):
            for visit in way:
                if visit.pdus is None or visit.index not in wires:
                    continue
                segments_s = float(rate[f]) * (flow.acks if back else 1.0)
                events = carried.add(visit.pdus, segments_s, wires.index(visit.index))
                carried.answers += segments_s * (visit.index == wires[1])
                carried.up += segments_s * visit.service_s * (visit.index == wires[1])
                if not back:
                    carried.messages += segments_s / max(flow.batch, 1.0)
                    carried.by_chance &= flow.source != "periodic"
                    carried.used[wires.index(visit.index)] += segments_s * visit.service_s
                    if events.exchanges > carried.exchanges:
                        carried.exchanges = events.exchanges
                        carried.apart = max(events.apart, 1.0 + events.over)
    events_s, exchanges = carried.of_events()
    empty_us = link.air_us(0) * exchanges * events_s
    heard, sent = empty_us + carried.us
    charge_uc = link.charge_uc(events_s, exchanges * events_s, sent, heard)
    missed = 1.0 - link.taken * (1.0 - link.own)
    return (
        exchanges,
        1e-6 * (heard + sent),
        missed,
        3600.0 * disconnections_s(link),
        1e-3 * (charge_uc + link.energy.sleep_ua),
    )


def doubts(network: Any, point: Any) -> list[str]:
    """Return the doubts about links of Bluetooth Low Energy, with errors against the simulator.

    Args:
        network: the stations and flows, a `Network`.
        point: the operating point, a `Point`.
    """
    found = [
        f"{bracketed(trait.key)} = {shown(trait.value)}: theory does not use this key, or roughly"
        for trait in network.traits
        if network.anchored and trait.kind in ROUGHLY and trait.value not in (None, 0.0)
    ]
    links = {wire: (link, bool(up)) for link, *wires in network.anchored for up, wire in enumerate(wires)}
    for f, flow in enumerate(network.flows):
        endless = bool(point.links.links.endless[f])
        if network.anchored and flow.protocol != "none" and not (endless and _in_step(network, flow)):
            found.append(
                "answers over connection events: how timers meet anchor points is known on average: goodput "
                "was up to 50 % off, round trips 2 % in the median, 13 % in one of ten, more beside timeouts"
            )
        if network.anchored and flow.protocol == "none" and endless and len(flow.forth) > 1:
            found.append("the queue before the slowest link grows, and theory takes its rate for the way")
        stops = [visit for visit in flow.forth if visit.pdus is not None]
        relayed = any(links[one.index][1] and not links[two.index][1] for one, two in pairwise(stops))
        if relayed or (len(stops) > 1 and not network.anchored[0][0].drifts):
            found.append(
                "anchor points of links of one central, or without drift, keep their distances: delays were "
                "up to 70 % too long"
            )
        if stops and flow.source == "periodic" and not endless:
            found.append(
                "a periodic source keeps its phase between anchor points for a whole run; theory gives the "
                "mean over phases, and mean delays of single runs were 0.5 to 2.7 times as long; with "
                "le.latency theory's currents were 12 % too low to 30 % too high"
            )
        for visit in stops:
            often, (link, up) = float(point.rate[f]), links[visit.index]
            each_s = link.exchanges_s(visit.pdus, up)
            if endless and flow.protocol == "none" and flow.layer_s > each_s:
                found.append(
                    "a layer of a host takes longer for a segment than its exchanges: events end while "
                    "segments are in the host, and goodput was up to 25 % too high"
                )
            if not endless and often * flow.layer_s > ERRORS:
                found.append(
                    "segments of an event come at once to the layers of the receiver, and wait there: delays "
                    "were up to 9 % too short"
                )
            full_s = each_s / visit.pdus.each * link.events(visit.pdus, up=up).pdus
            if (
                flow.source == "ibp"
                and not endless
                and full_s * link.taken < (1.0 - ERRORS) * link.interval_s
            ):
                found.append(
                    "bursts of an ibp source over events shorter than the interval: in theory their segments "
                    "wait for each other at the rate of full events, and delays were up to 42 % too long"
                )
            found += _of_visit(
                network, link, visit, often, up=up, endless=endless, tcp=flow.protocol == "tcp"
            )
    return list(dict.fromkeys(found))


def _in_step(network: Any, flow: Any) -> bool:
    """Whether the exchanges of a window are known: no timer expires between segments or acknowledgements.

    Nor may it matter in which exchange an answer to the peripheral goes: the next one, at an anchor point, or
    else one later, as the central has chosen its next PDU.
    """
    visit, own, pdus = flow.forth[0], flow.transport, flow.forth[0].pdus
    if pdus is None or pdus.window == inf or own.variant == "vegas":
        return False
    if own.delayed_ack and flow.window < own.ack_every_segments:
        return False
    link, up = next(
        (link, wires.index(visit.index)) for link, *wires in network.anchored if visit.index in wires
    )
    late_s = link.listens_s / max(link.taken, 1e-9) + visit.service_s
    late_s += visit.service_s * flow.window * (flow.window % pdus.every > 0.0)
    in_time = pdus.every == 1 or (late_s < own.ack_delay_s and own.ack_clock == "timer")
    places = np.flatnonzero((cycle := exchanges_of(link, pdus, bool(up))).answered)
    silent = np.diff(places, append=places[0] + len(cycle.data)).max() / len(cycle.data)
    silent_s = silent * flow.window * visit.service_s  # longest time without an acknowledgement
    silent_s += max(link.listens_s / max(link.taken, 1e-9) - link.window_s, 0.0)  # and without an event
    # in a small window one damaged PDU lets the event end
    most = 0.0 if link.le.acl_buffers else ERRORS / 2.0 if flow.window <= 2.0 else ERRORS
    events, later = (link.events(one, up=bool(up)) for one in (pdus, pdus._replace(late=True)))
    fails = events.damaged > most or abs(later.pdus / events.pdus - 1.0) > ERRORS
    fails |= bool(link.le.acl_buffers and link.le.latency)
    return in_time and silent_s < own.min_rto_s and not fails


def _of_visit(
    network: Any, link: Station, visit: Any, rate: float, *, up: bool, endless: bool, tcp: bool
) -> Iterator[str]:
    """Yield the doubts about the stop of a flow, with this rate (segments a second), at a link."""
    events = link.events(visit.pdus, up=up)
    payloads = exchanges_of(link, visit.pdus, up).payloads
    longest_us = max(link.exchange_us(*one) for one in set(map(tuple, payloads.tolist())))
    if 1e-6 * longest_us > (link.le.reserved_s if len(network.anchored) > 1 else link.interval_s):
        yield (
            "[le] event_length_s: an exchange lasts longer than the time reserved, and others miss events: "
            "goodput was up to 24 % off, delays 5 % in the median, or more where a link misses nearly all"
        )
    if visit.pdus.beside >= sum(visit.pdus.payloads) / len(visit.pdus.payloads):
        yield "data go both ways over a link: where one way has little, the other has up to 60 % more room"
    if min(link.beside) > 0 and link.drifts:
        yield "[le] clock_ppm: others reserve time at both ends: missed events were up to 20 % too many"
    if link.beside[0] and link.le.anchors == "random":
        yield "[le] anchors: theory has means over anchors: goodput was up to 12 % off, delays 30 % too short"
    sizes = max(visit.pdus.payloads), min(visit.pdus.payloads)
    most, least = (
        sum(share * link.error(size, up=up, channel=on, ber=ber) for share, on, ber in link.states(up=up))
        for size in sizes
    )
    if most - least > ERRORS:
        yield "PDUs of a segment differ in length, and in their errors: goodput was up to 50 % too high"
    if link.window_s > SLOWLY * link.stay_s:
        yield (
            "the radio changes its state within an event, which has one state in theory: goodput was up to "
            "30 % too high where stays last as long as events, and more where they are shorter; delays were "
            "up to 33 % too short"
        )
    if events.facing > ERRORS / 2.0:
        yield "PDUs of the other side are damaged, credits among them: goodput was up to 10 % too low"
    if not up and link.le.latency and (tcp or link.radio[0].model != "perfect"):
        yield "[le] latency: answers wake a peripheral: goodput was up to 50 % off"
    if link.le.latency and (rate * link.interval_s > ERRORS or link.taken < 1.0):
        yield "[le] latency: data wake a peripheral: exchanges of an event and currents were up to 40 % off"
    used, fit = rate * visit.service_s, events.pdus / visit.pdus.each
    alike = sizes[0] == sizes[1] or link.le.event_admission == "fits"
    cut = used > LIGHT and fit < FEW_FIT and (abs(fit - round(fit)) > 0.01 or not alike)
    spent = visit.pdus.each > 1.0 and not exchanges_of(link, visit.pdus, up).data.all()
    if not endless and (events.needed > 1.0 or cut or spent):
        yield "an event, or the credits, end within a segment: delays were up to 20 % off, 8 % in one of ten"
    if not endless and up and 2e-6 * link.air_us(0) > ERRORS * link.interval_s:
        yield "data come in time while a peripheral answers an idle event: delays were up to 10 % too long"
    if not endless and used > CROWDED:
        yield "waits for nearly full events are not uniform: 95 % quantiles were up to 20 % too short"
    worst = max(link.error(sizes[0], up=up, channel=on, ber=ber) for _, on, ber in link.states(up=up))
    if not endless and worst > ERRORS:
        yield f"{worst:.0%} of the longest PDUs are damaged on the worst channel: delays were up to 33 % off"
