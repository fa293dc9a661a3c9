r"""The station of Bluetooth Low Energy: a link that serves PDUs in bulk, at the anchor points of its events.

In a connection event PDUs go to and fro while there is data and time (Core Specification, 6, B, 4.5.1 and
4.5.6). One direction of a link with data at every anchor point is a chain embedded there: its state is the
next PDU of a segment. Without errors the chain is a cycle, and its mean number of PDUs an event is exact; so
is the mean with errors of PDUs of equal length.

One direction is a wire (`network.Wire`) whose service of a PDU is the interval over the PDUs of an event. A
PDU that comes while no event is open waits for the next anchor point. With events that may last until the
next one, and a use :math:`\rho` of the time by PDUs, this takes :math:`(1 - \rho) T / 2` on average, as if
data were a fluid; the queue behind it is the queue of the wire. For one PDU an event, both together are
exactly the slotted M/D/1 queue.

A node that has several links reserves time for the events of each. The reservations of one central are a
schedule in time, played for some intervals. Clocks of two centrals drift: reservations of :math:`L` and
:math:`L'` overlap for the share :math:`(L + L') / T` of the time, and each link loses half of these events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, expm1, gcd, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import low_energy as air
from btqueue.network.bounds import frames_of
from btqueue.scenario.errors import bracketed, shown
from btqueue.scenario.metrics import EVENT_METRICS
from btqueue.scenario.radio import Radio
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.topology import Topology

Vector = NDArray[np.float64]
States = tuple[tuple[float, float], ...]

FULL = 0.97
"""Use of a direction above which it always has data."""
ERRORS = 0.05
"""Share of damaged PDUs, and part of a round trip, from which on rough laws of them make a difference."""
ON_AIR_BYTES = 4 + 2 + 3
"""Access address, header and CRC."""
ROUGHLY = ("le.interval_spread_s", "le.iso_interval_s", "link.node_buffer_bytes")
"""Keys with an effect that no law has in full."""
PLAYED = 64
"""Intervals for which the schedule of a central is played."""
LONGEST = 100_000
"""PDUs after which segments and credits are taken as a cycle, even if they are not yet."""
TOUCHING_S = 1e-6
"""Reservations that overlap by less are next to each other."""


class Pdus(NamedTuple):
    """The PDUs of segments.

    Attributes:
        payloads: bytes of each.
        ends: whether a frame of L2CAP ends with it.
        segments: whose PDUs these are.
        beside: payload bytes that go the other way for each PDU.
    """

    payloads: tuple[int, ...]
    ends: tuple[bool, ...]
    segments: int = 1
    beside: float = 0.0

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
    """

    pdus: float
    exchanges: float
    tries: float


@dataclass(frozen=True)
class Station:
    """A link between a central and a peripheral.

    Attributes:
        interval_s: between events that are to take place.
        listens_s: between events in which an idle peripheral listens.
        window_s: of an event, for exchanges.
        taken: share of the events that take place: one of the nodes may be at another event.
        vain: share of the events in which the central is at another one, and the peripheral listens in vain.
        le: the table of keys.
        radio: its bit errors, down and up.
        fading: share and bit error rate of the states of its radio, down and up.
        energy: the table of currents.
    """

    interval_s: float
    listens_s: float
    window_s: float
    taken: float
    vain: float
    le: Any
    radio: tuple[Radio, Radio]
    fading: tuple[States, States]
    energy: Any

    @property
    def space_us(self) -> float:
        """The frame space (us)."""
        return 1e6 * self.le.frame_space_s

    def air_us(self, payload: float) -> float:
        """Return the air time of a PDU (us)."""
        return air.air_time_us(self.le.phy, payload, encrypted=self.le.encrypted)

    def error(self, payload: float, *, up: bool, channel: float, ber: float) -> float:
        """Return the chance that a PDU is damaged, with the bit error rates of a channel and of the radio."""
        radio = self.radio[up]
        if radio.model == "constant" and radio.per is not None:
            return radio.per
        bits = 8.0 * payload
        if radio.bits == "on-air":  # access address, header, message integrity check and CRC, too
            bits += 8.0 * (ON_AIR_BYTES + air.MIC_BYTES * (self.le.encrypted and payload > 0.0))
        return 1.0 - (1.0 - channel) ** bits * (1.0 - ber) ** bits

    def states(self, *, up: bool) -> list[tuple[float, float, float]]:
        """Return the states of an event: share, and bit error rates of its channel and of the radio."""
        classes = [(one.channels / air.CHANNELS, one.ber) for one in self.le.channel_classes] or [(1.0, 0.0)]
        return [(part * share, channel, ber) for part, channel in classes for share, ber in self.fading[up]]

    def events(self, pdus: Pdus, *, up: bool) -> Events:
        """Return the means of an event with data in one direction.

        Args:
            pdus: of segments.
            up: whether the peripheral sends.
        """
        found = np.zeros(3)
        for share, channel, ber in self.states(up=up):
            errors = tuple(self.error(one, up=up, channel=channel, ber=ber) for one in pdus.payloads)
            other = sum(
                part * self._facing_error(pdus, up, channel, one) for part, one in self.fading[not up]
            )
            found += share * np.array(_events(self, pdus, errors, other))
        return Events(*found.tolist())

    def _facing_error(self, pdus: Pdus, up: bool, channel: float, ber: float) -> float:
        """Return the mean chance that a PDU of the other side is damaged, some with credits."""
        often = sum(pdus.ends) / len(pdus.ends) / self.le.credits_returned_every
        often *= self.le.transfer == "coc"
        plain, credits = (
            self.error(size, up=not up, channel=channel, ber=ber)
            for size in (pdus.beside, max(pdus.beside, float(air.CREDITS_BYTES)))
        )
        return (1.0 - often) * plain + often * credits

    def charge_uc(self, events: float, exchanges: float, sent: float, heard: float) -> float:
        """Return the charge (uC) of the peripheral a second.

        Args:
            events: a second in which it wakes up.
            exchanges: a second.
            sent: air time of its PDUs, a second (us).
            heard: air time of the central's PDUs, a second (us).
        """
        energy = self.energy
        # clocks drift apart since the last event, so that this does not depend on how many there are
        widening_us = 2.0 * self.le.clock_ppm
        vain = self.vain / self.listens_s
        heard = heard + widening_us * (1.0 + 2.0 * self.vain) + self.air_us(0) * vain
        spaces = (2.0 * exchanges - events) * self.space_us
        return energy.event_uc * (events + vain) + 1e-3 * (
            energy.tx_ma * sent + energy.rx_ma * heard + energy.idle_ma * spaces
        )

    def lone_s(self, pdus: Pdus, events: Events, *, up: bool) -> float:
        """Return the time from an anchor point until a lone segment is across (s).

        Each PDU is an exchange with an empty one, and further events are needed for more than fit.
        """
        empty_us = self.air_us(0)
        own = sum(map(self.air_us, pdus.payloads)) / pdus.segments
        between = empty_us + 2.0 * self.space_us
        fit = max(events.pdus, 1e-9)
        more = ceil(pdus.each / fit - 1e-9) - 1
        last = max(pdus.each - more * fit, 0.0) / pdus.each
        again = (events.tries / max(events.pdus, 1e-9) - 1.0) * (own + pdus.each * between)
        within = last * (own + pdus.each * between) - between + (empty_us + self.space_us) * up + again
        return more * self.interval_s / max(self.taken, 1e-9) + 1e-6 * within

    def served_s(self, *, up: bool, silent: bool) -> float:
        """Return the time between two events of a direction that always has data (s).

        A peripheral may skip events though the central has data, unless it has data, too.

        Args:
            up: whether the peripheral sends.
            silent: whether nothing but credits goes the other way.
        """
        skips = 0.0 if up or not silent else float(self.le.latency)
        return self.interval_s * (1.0 + skips) / max(self.taken, 1e-9)

    def waits_s(self, pdus: Pdus, load: float, *, up: bool) -> float:
        """Return the mean time (s) between anchor points, without the share in which an event is open."""
        open_ = min(load * self.exchanges_s(pdus), 1.0)
        # an idle peripheral sleeps; it wakes up for its own data
        return (1.0 - open_) * (self.interval_s if up else self.listens_s) / max(self.taken, 1e-9)

    def beyond_wire_s(self, load: float, service_s: float, *, up: bool) -> float:
        """Return how much longer segments wait for earlier ones than in the queue of a wire (s).

        An event of n segments leaves some behind only if more than n have come: the wait of the queue of a
        wire with use rho, `rho T / (2 n (1 - rho))`, counts with `rho^(n - 1)`. It is exact for one segment
        an event, and for many as the use comes to 1.
        """
        used = load * service_s
        if used >= FULL:
            return 0.0
        every_s = (self.interval_s if up else self.listens_s) / max(self.taken, 1e-9)
        number = max(every_s / service_s, 1.0)
        return -used * (1.0 - used ** (number - 1.0)) * service_s / (2.0 * (1.0 - used))

    def exchanges_s(self, pdus: Pdus) -> float:
        """Return the time of the exchanges of a segment (s)."""
        each_us = self.air_us(0) + 2.0 * self.space_us
        return 1e-6 * (sum(map(self.air_us, pdus.payloads)) / pdus.segments + pdus.each * each_us)


def pdus_of(scenario: Scenario, sizes: Sequence[tuple[float, float]]) -> Pdus:
    """Return the PDUs of segments of these sizes (bytes, share), one of each size, the rarest once."""
    least = min(share for _, share in sizes)
    payloads: list[int] = []
    ends: list[bool] = []
    segments = 0
    for size, share in sizes:
        for _ in range(min(round(share / least), LONGEST)):
            segments += 1
            for frame in frames_of(scenario.le, int(size)):
                cut = air.pdus(frame, scenario.le.payload_bytes)
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
) -> Station:
    """Return the link of a piconet to its member of this number, with its radio and states down and up."""
    le = scenario.le
    here = plan.piconets[piconet]
    taken, window_s = schedule(
        len(here.members), le.reserved_s, le.interval_s * le.subrate, le.interval_s, le.event_extension,
        le.anchors == "random",
    )[member]  # fmt: skip
    at_central, at_member = (
        len(_beside(plan, piconet, node)) for node in (here.central, here.members[member])
    )
    links = sum(len(one.members) for one in plan.piconets)
    drift = le.clock_ppm > 0.0 or le.anchors == "random" or le.interval_spread_s > 0.0
    lost = min(2.0 * le.reserved_s / (le.interval_s * le.subrate), 1.0) / 2.0
    if not drift and links * le.reserved_s <= le.interval_s:
        lost = 0.0  # first anchors follow each other by one reservation, in all piconets
    comes = taken * (1.0 - lost) ** at_central
    taken = comes * (1.0 - lost) ** at_member
    if le.event_extension and at_central + at_member:  # it ends at the next reservation, anywhere after it
        window_s = le.reserved_s + (window_s - le.reserved_s) / (at_central + at_member + 1.0)
    if le.iso_interval_s > 0.0:
        window_s = min(window_s, (le.iso_interval_s - le.iso_length_s) / 2.0)
    interval_s = le.interval_s * le.subrate
    return Station(
        interval_s, interval_s * (1 + le.latency), window_s - le.event_overhead_s, taken, 1.0 - comes, le,
        radio, fading, scenario.energy,
    )  # fmt: skip


def _beside(plan: Topology, piconet: int, node: int) -> list[tuple[int, int]]:
    """Return the links of a node in other piconets, whose clocks are other ones."""
    return [
        (index, member)
        for index, one in enumerate(plan.piconets)
        if index != piconet
        for member in one.members
        if node in (one.central, member)
    ]


@lru_cache(maxsize=256)
def schedule(
    links: int, length_s: float, period_s: float, interval_s: float, extends: bool, anywhere: bool
) -> tuple[tuple[float, float], ...]:
    """Return for each link of a central the share of its events that take place, and their window (s).

    The first anchors follow each other by one reservation. Of two events whose reservations overlap, the link
    that has waited longer goes.

    Args:
        links: number of them.
        length_s: of a reservation.
        period_s: between two events of a link that are to take place.
        interval_s: the connection interval.
        extends: whether an event may go on until the next reservation.
        anywhere: whether first anchors are at random instead; then overlaps are those of drifting clocks.
    """
    most = interval_s if extends else length_s
    if links == 1:
        return ((1.0, most),)
    if anywhere:
        taken = max(1.0 - length_s / period_s, 0.0) ** (links - 1)
        gap = period_s / links if extends else length_s
        return ((taken, max(min(gap, most), length_s)),) * links
    first = [(n * length_s) % interval_s for n in range(links)]
    last, taken, window = [-1.0] * links, [0] * links, [0.0] * links
    until = -1.0
    anchors = sorted((k * period_s + at, n) for n, at in enumerate(first) for k in range(PLAYED))
    for place, (now, n) in enumerate(anchors):
        near = [m for at, m in anchors[place + 1 : place + links] if at < now + length_s - TOUCHING_S]
        if until > now + TOUCHING_S or any(last[m] < last[n] for m in near):
            continue
        end = now + length_s
        if extends:
            free = next((at for at, m in anchors[place + 1 :] if at >= end - TOUCHING_S and m != n), inf)
            end = max(end, min(free, now + interval_s))
        last[n], until, taken[n], window[n] = now, now + length_s, taken[n] + 1, window[n] + end - now
    return tuple((count / PLAYED, each / max(count, 1)) for count, each in zip(taken, window, strict=True))


@lru_cache(maxsize=1024)
def _events(link: Station, pdus: Pdus, errors: tuple[float, ...], other: float) -> tuple[float, float, float]:
    """Return PDUs that come across, exchanges and transmissions of an event (`Station.events`)."""
    le, space = link.le, link.space_us
    every = le.credits_returned_every if le.transfer == "coc" else 0
    count, frames = len(pdus.payloads), sum(pdus.ends)
    turns = every // gcd(every, frames) if every and frames else 1
    turns = max(min(turns, LONGEST // count), 1)
    payload = np.tile(np.array(pdus.payloads, float), turns)
    facing, data = np.full(len(payload), pdus.beside), np.ones(len(payload))
    if every:  # credits go in the exchange after the frame
        ends = np.tile(np.array(pdus.ends), turns)
        last = np.flatnonzero(ends & (np.cumsum(ends) % every == 0)) + 1
        if le.credits == every:  # the sender has no credit left, and its PDU in this exchange is empty
            payload, facing, data = (
                np.insert(one, last, at) for one, at in ((payload, 0), (facing, 0), (data, 0))
            )
            last += np.arange(len(last))
        last %= len(payload)
        facing[last] = np.maximum(facing[last], air.CREDITS_BYTES)
    on_air = np.array([link.air_us(one) for one in payload])
    against = np.array([link.air_us(one) for one in facing])
    each = on_air + space + against
    needed = each
    if le.event_admission == "largest":
        needed = np.full(len(each), 2.0 * link.air_us(le.payload_bytes) + space)
    begins = np.concatenate([[0.0], np.cumsum(each + space)])
    cycle, window = begins[-1], max(1e6 * link.window_s, 0.0)
    most, held = le.event_packets or LONGEST, le.acl_buffers or LONGEST
    repeated = ceil(window / cycle) + 2
    starts = (begins[:-1][None, :] + cycle * np.arange(repeated)[:, None]).ravel()
    over = starts + np.tile(needed, repeated)
    sent = np.concatenate([[0.0], np.cumsum(np.tile(data, repeated))])
    fits: dict[int, int] = {}
    place, order = 0, []
    while place not in fits and len(order) < LONGEST:
        number = int(np.searchsorted(over, starts[place] + window + 1e-6, side="right")) - place
        fits[place] = min(max(number, 1), most)
        order.append(place)
        place = (place + fits[place]) % len(each)
    begun = np.array(order[order.index(place) if place in fits else 0 :])
    numbers = np.array([fits[one] for one in begun])
    real = np.minimum(sent[begun + numbers] - sent[begun], held)
    error = float(np.mean(errors))
    # where the controller has no more data, the event goes on for the credits of its last frame
    credits = float((numbers > held).mean()) / every if every else 0.0
    if error == 0.0 and other == 0.0:
        mean = float(real.mean())
        return mean, float(np.minimum(numbers, held).mean()) + credits, mean
    found = np.array([_through(int(one), error, other, min(int(one), held)) for one in numbers])
    through, made, tries = found.mean(axis=0).tolist()
    share = float(data.mean())
    return through * share, made + credits, tries * share


@lru_cache(maxsize=4096)
def _through(exchanges: int, error: float, other: float, held: int) -> tuple[float, float, float]:
    """Return data PDUs that come across, exchanges and transmissions in an event with room for `exchanges`.

    Two damaged PDUs in a row at one side close the event (6, B, 4.5.6). A damaged PDU of the other side
    (chance `other`) leaves the data unacknowledged: it is sent again although it came across.

    Args:
        exchanges: that have time.
        error: chance that a data PDU is damaged.
        other: the same of the other side's PDUs.
        held: data PDUs that the controller holds; it has no more in this event.
    """
    # chances by PDUs across so far, and by damage last: none, data, the other side's, both
    counts = held < exchanges
    chances = np.zeros((held + 1 if counts else 1, 4))
    chances[0, 0] = 1.0
    good = (1.0 - error) * (1.0 - other)
    lost = np.array([error * (1.0 - other), (1.0 - error) * other, error * other])
    through = made = 0.0
    for _ in range(exchanges):
        open_ = chances[:held] if counts else chances
        total = open_.sum(axis=1)
        made += float(total.sum())
        through += good * float(total.sum())
        after = np.zeros_like(chances)
        after[1 if counts else 0 :, 0] += good * total if not counts else good * total[: len(chances) - 1]
        bad = after[:held] if counts else after
        # a second one in a row at one side closes the event
        bad[:, 1] += lost[0] * (open_[:, 0] + open_[:, 2])
        bad[:, 2] += lost[1] * (open_[:, 0] + open_[:, 1])
        bad[:, 3] += lost[2] * open_[:, 0]
        chances = after
    return through, made, made


def disconnections_s(link: Station) -> float:
    """Return the disconnections a second: a run of events without an intact PDU is as long as the timeout.

    Both PDUs of an exchange have to be damaged, and both of the next one, which closes the event. A run of k
    events begins after an intact one, so the mean time between losses is that of runs of failures (W. Feller,
    An Introduction to Probability Theory, vol. 1, XIII.7), in each state of channel and radio.
    """
    events = ceil(link.le.supervision_timeout_s / link.interval_s - 1e-9)
    found = 0.0
    for share, channel, ber in link.states(up=False):
        alike = link.radio[0] == link.radio[1]
        for part, other in ((1.0, ber),) if alike else link.fading[True]:
            down = link.error(0.0, up=False, channel=channel, ber=ber)
            failing = (down * link.error(0.0, up=True, channel=channel, ber=other)) ** 2
            run = failing**events
            each = 1.0 / link.le.supervision_timeout_s
            if run < 1.0:
                each = min((1.0 - failing) * run / (1.0 - run) / link.interval_s, each)
            found += share * part * each
    return found


class Carried:
    """What a link carries, a second, down and up.

    Attributes:
        pdus: data PDUs, repetitions included, shape (2,).
        us: their air time above the time of empty ones, shape (2,).
        messages: that come by themselves.
        answers: messages and acknowledgements of the peripheral.
        by_chance: whether none of their sources is periodic.
        up: use of the direction up.
        used: use of each direction by data, shape (2,).
        exchanges: of an event with data at every time.
    """

    def __init__(self, link: Station) -> None:
        self.link = link
        self.pdus, self.us = np.zeros((2, 2))
        self.messages, self.answers, self.up = 0.0, 0.0, 0.0
        self.used, self.exchanges = np.zeros(2), 0.0
        self.by_chance = True

    def add(self, pdus: Pdus, segments_s: float, side: int) -> Events:
        """Add segments in a direction: 0 down, 1 up."""
        link, le = self.link, self.link.le
        events = link.events(pdus, up=bool(side))
        made = segments_s * pdus.each * events.tries / max(events.pdus, 1e-9)
        self._add(made, sum(map(link.air_us, pdus.payloads)) / len(pdus.payloads), side)
        if le.transfer == "coc":
            frames = segments_s * sum(pdus.ends) / pdus.segments
            self._add(frames / le.credits_returned_every, link.air_us(air.CREDITS_BYTES), 1 - side)
        return events

    def _add(self, count: float, each_us: float, side: int) -> None:
        self.pdus[side] += count
        self.us[side] += count * (each_us - self.link.air_us(0))

    def of_events(self) -> tuple[float, float]:
        """Return the events a second that take place, and the exchanges of each.

        An event has an exchange at least. A peripheral that may skip events wakes up for data.
        """
        link = self.link
        every = link.taken / link.interval_s
        if self.used.max() > FULL:
            return every, self.exchanges
        # idle, it listens after `latency` events without data of its own
        data = max(-expm1(-self.answers * link.interval_s), self.up)
        skips = 1.0 + link.le.latency
        between = (1.0 - (1.0 - data) ** skips) / data if data > 0.0 else skips
        events_s = every / between
        each = self.messages / events_s
        none = exp(-each) if self.by_chance else max(1.0 - each, 0.0)
        # an event goes on for the credits of its last frame
        credits = (1.0 - none) / link.le.credits_returned_every if link.le.transfer == "coc" else 0.0
        return events_s, float(self.pdus.max()) / events_s + none + credits


def metrics(network: Any, rate: Vector) -> dict[str, Any]:
    """Return means of the links, shape (links,), and the energy of a bit.

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
                    carried.exchanges = max(carried.exchanges, events.exchanges)
    events_s, exchanges = carried.of_events()
    empty_us = link.air_us(0) * exchanges * events_s
    heard, sent = empty_us + carried.us
    charge_uc = link.charge_uc(events_s, exchanges * events_s, sent, heard)
    missed = 1.0 - link.taken
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
    for f, flow in enumerate(network.flows):
        endless = bool(point.links.links.endless[f])
        if network.anchored and flow.protocol != "none":
            found.append(
                "answers over connection events: which acknowledgements come in the same event, and how "
                "timers meet anchor points, is known on average only: goodput of full windows was up to 40 % "
                "off, round trips 15 % in the median"
            )
        if network.anchored and flow.protocol == "none" and endless and len(flow.forth) > 1:
            found.append(
                "a source that always has data fills its first link only, and the queue before a slower one "
                "grows: theory takes the whole way at the rate of the slowest link"
            )
        for visit in flow.forth:
            if visit.pdus is not None:
                often = float(point.rate[f])
                found += _of_visit(network, visit, often, endless=endless, tcp=flow.protocol == "tcp")
    return list(dict.fromkeys(found))


def _of_visit(network: Any, visit: Any, rate: float, *, endless: bool, tcp: bool) -> Iterator[str]:
    """Yield the doubts about the stop of a flow, with this rate (segments a second), at a link."""
    links = {wire: (link, bool(up)) for link, *wires in network.anchored for up, wire in enumerate(wires)}
    link, up = links[visit.index]
    events = link.events(visit.pdus, up=up)
    longest_us = link.air_us(max(visit.pdus.payloads)) + link.air_us(0) + link.space_us
    if len(network.anchored) > 1 and 1e-6 * longest_us > link.le.reserved_s:
        yield (
            "[le] event_length_s: an exchange lasts longer than the time that a node reserves for it, and "
            "other links miss their events: goodput was up to 60 % too high"
        )
    if visit.pdus.beside > link.le.payload_bytes / 2.0:
        yield (
            "data go both ways over a link, which theory takes as full PDUs in every exchange: where one "
            "direction has little, the other has up to 60 % more room"
        )
    if not up and link.le.latency and (tcp or link.radio[0].model != "perfect"):
        yield (
            "[le] latency: a peripheral skips events although the central has data, unless it has to answer: "
            "goodput was up to three times too high"
        )
    if link.le.latency and rate * link.interval_s > ERRORS:
        yield (
            "[le] latency: how often data wake a peripheral is known on average only: exchanges of an event "
            "and currents were up to 40 % off"
        )
    if not endless and events.tries > (1.0 + ERRORS) * events.pdus:
        yield (
            f"{1.0 - events.pdus / events.tries:.0%} of the PDUs are damaged, and a repetition may wait for "
            "the next event: delays were up to 40 % off"
        )
