"""Upper bounds on goodputs that hold for every engine: from the time of devices and links, and from windows.

Derived from the scenario alone, without a model of queues, losses or polling. The neglected parts
(repetitions, idle polls, waits, optional acknowledgements) only take more time. Goodputs are in kbit/s;
arrays have one value for each flow of `topology`, shape (flows,).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S, low_energy, packet_types
from btqueue.network.repetition import cut
from btqueue.scenario.low_energy import LowEnergy
from btqueue.scenario.network import OutsideLink
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.topology import FlowPlan, Hop, Topology, topology
from btqueue.scenario.traits import shares_segments

KILOBIT_BYTES = 125
WITHOUT_FAST_RETRANSMIT = 3
"""Largest window in which a lost segment cannot cause three duplicate acknowledgements."""


class Segments(NamedTuple):
    """The data segments of a flow.

    Attributes:
        sizes: user bytes of each size, and how many of it are in a message.
        exact: whether segments have just these sizes; if not, some may have fewer bytes.
    """

    sizes: tuple[tuple[int, int], ...]
    exact: bool

    @property
    def alike(self) -> bool:
        """Whether all segments have one size."""
        return self.exact and len(self.sizes) == 1

    @property
    def number(self) -> int:
        """Segments of a message."""
        return sum(count for _, count in self.sizes)

    @property
    def kilobits(self) -> float:
        """User data of a message."""
        return sum(size * count for size, count in self.sizes) / KILOBIT_BYTES


class OnAir(NamedTuple):
    """The least use of one Bluetooth hop by segments: slots plus packets, and slots less packets."""

    plus: float
    less: float

    @property
    def packets(self) -> float:
        """Number of packets, if both sums are exact."""
        return (self.plus - self.less) / 2

    def times(self, number: float) -> OnAir:
        """Return the use of the hop by `number` times these segments."""
        return OnAir(number * self.plus, number * self.less)


class Link(NamedTuple):
    """The link of a member, a node, in a piconet, by its number."""

    piconet: int
    member: int


Part = Link | str
"""A link, or the name of a medium outside."""


@dataclass(frozen=True)
class Capacity:
    """The time of devices and outside media that goodputs use.

    *Devices.* A frame is a packet down a link and one up, each of a slot at least (POLL and NULL), and a
    device is in one frame at a time, in whichever of its piconets. Data of S slots, U packets of them up and
    D down, are in max(U, D) frames at least, which take S + |U - D| slots: the larger of S + (U - D) and
    S - (U - D). Each segment delivered has crossed every hop. So has an acknowledgement for each window of
    them, where it is a separate segment; further acknowledgements take a slot at least for each packet by
    which they make |U - D| smaller. Voice takes its slots before any data.

    *Outside media.* Each segment delivered, with its headers, has crossed the medium, and so have these
    acknowledgements where both directions share it.

    Attributes:
        names: names of the devices that are centrals or bridges, and of the media.
        part, flow: entries: the part (link or medium) whose time a flow takes, shape (entries,).
        takes: seconds of the part for a kilobit of the flow, if most packets go one way or the other; the
            part takes the larger of the sums over its flows, shape (2, entries).
        owner, owned: a name and a part that takes its time, shape (pairs,).
        shares: shares of the time of each name that is left to data, shape (names,).
        parts, flows: numbers of parts and of flows.
    """

    names: tuple[str, ...]
    part: np.ndarray
    flow: np.ndarray
    takes: np.ndarray
    owner: np.ndarray
    owned: np.ndarray
    shares: np.ndarray
    parts: int
    flows: int

    def used(self, goodputs: np.ndarray) -> np.ndarray:
        """Return the least share of its time for data that each of `names` is busy, shape (names,)."""
        each = np.asarray(goodputs, float)[self.flow]
        one, other = (np.bincount(self.part, way * each, self.parts) for way in self.takes)
        return np.bincount(self.owner, np.maximum(one, other)[self.owned], len(self.names)) / self.shares

    def most_kbps(self, flow: int | None = None) -> float:
        """Return the most goodput of one flow, or of the mean over all; infinite if nothing limits it.

        By a linear program in the goodputs g and the times t of the parts: t is no less than the time that g
        uses of the part, by either sum, and no device or medium is used for more than its time.
        """
        from scipy.optimize import linprog
        from scipy.sparse import block_array, csr_array, eye_array

        wanted = np.full(self.flows, 1.0 / self.flows) if flow is None else np.eye(self.flows)[flow]
        one, other = (
            csr_array((way, (self.part, self.flow)), (self.parts, self.flows)) for way in self.takes
        )
        owned = csr_array(
            (1.0 / self.shares[self.owner], (self.owner, self.owned)), (len(self.names), self.parts)
        )
        less = -eye_array(self.parts)
        rows = block_array([[one, less], [other, less], [None, owned]])
        limits = np.repeat([0.0, 1.0], [2 * self.parts, len(self.names)])
        found = linprog(np.concatenate([-wanted, np.zeros(self.parts)]), rows, limits)
        return -float(found.fun) if found.success else np.inf


def capacity(scenario: Scenario) -> Capacity:
    """Return the time that flows use of each device and outside medium, as a function of their goodputs."""
    plan = topology(scenario)
    parts: dict[Part, int] = {}
    entries = [
        (parts.setdefault(part, len(parts)), number, along, against)
        for number, flow in enumerate(plan.flows)
        for part, along, against in _taken(scenario, plan, flow)
    ]
    bridges = {bridge.node for bridge in plan.bridges}
    pairs, shares = [], {}
    for part, place in parts.items():
        if isinstance(part, str):
            pairs.append((part, place))
            shares[pairs[-1][0]] = 1.0
            continue
        central = plan.piconets[part.piconet].central
        for node in {central, part.member}:
            if node == central or node in bridges:
                pairs.append((f"device {plan.nodes[node]}", place))
                shares[pairs[-1][0]] = 1.0 if node in bridges else _share_beside_voice(scenario)
    number = {name: place for place, name in enumerate(shares)}
    part, flow, *takes = np.array(entries, float).reshape(-1, 4).T
    return Capacity(
        names=tuple(shares),
        part=part.astype(int),
        flow=flow.astype(int),
        takes=np.array(takes),
        owner=np.array([number[name] for name, _ in pairs], int),
        owned=np.array([place for _, place in pairs], int),
        shares=np.array(list(shares.values())),
        parts=len(parts),
        flows=len(plan.flows),
    )


def window_kbps(scenario: Scenario) -> np.ndarray:
    """Return the goodput that the window of each flow allows; infinite without a window.

    At most W segments are outstanding, each for at least the least round trip R of a segment of its size. So
    by Little's law the rate of segments is at most W / R.

    With delayed acknowledgements and a window that is too small to make the receiver acknowledge at once,
    each acknowledgement waits for the receiver's clock. If the clock is a timer of D seconds, it releases at
    most W segments at a time, and the first of them has waited for D. So the mean time outstanding is at
    least R + D / W, and the rate is at most W / D. A clock that ticks every D seconds releases at most W
    segments at a tick. If the retransmission timer expires, the receiver acknowledges the repetition and the
    next segment at once, but the expiry costs at least the least timeout. So the bound holds if 2 D is at
    most the least timeout. The clock is not counted where 2 D is more, or where other segments can make the
    receiver acknowledge at once (piggybacking, duplicates of larger windows, sessions).
    """
    plan = topology(scenario)
    bounds = np.full(len(plan.flows), np.inf)
    for number, flow in enumerate(plan.flows):
        own = scenario.of_flow(flow.spec)
        transport, session = own.transport, own.traffic.source == "request-reply"
        begun_anew = transport.connection_per_session or own.traffic.application_timeout_s is not None
        if transport.protocol != "tcp" or (session and begun_anew):
            continue
        window, sent = window_of(scenario, flow), segments_of(scenario, flow)
        least = sum(count * _round_trip_s(own, plan, flow, size) for size, count in sent.sizes)
        least /= sent.number
        delay = transport.ack_delay_s
        waits = (
            transport.delayed_ack
            and window < transport.ack_every_segments
            and window <= WITHOUT_FAST_RETRANSMIT
            and not (transport.piggyback and flow.reverse is not None)
            and not session
            and min(transport.min_rto_s, transport.initial_rto_s) >= 2 * delay
        )
        if waits:
            least = max(least + (delay / window if transport.ack_clock == "timer" else 0.0), delay)
        if least > 0:
            bounds[number] = window * sent.kilobits / sent.number / least
    return bounds


def law_of(scenario: Scenario, flow: FlowPlan) -> str:
    """Return the source's law of a flow."""
    return scenario.of_flow(flow.spec).traffic.source


def window_of(scenario: Scenario, flow: FlowPlan) -> int:
    """Return the receive window of a flow (segments)."""
    return scenario.of_flow(flow.spec).transport.receive_window_segments


def segments_of(scenario: Scenario, flow: FlowPlan) -> Segments:
    """Return the data segments of a flow; a segment of the largest size where the sizes are not known.

    A byte of user data takes the least time in the largest segments, if segments need not fill whole packets.
    Where the sizes are not exact, segments are taken as if they need not.
    """
    own = scenario.of_flow(flow.spec)
    transport, law = own.transport, own.traffic.source
    most = transport.centaurus_packet_bytes if transport.protocol == "centaurus" else transport.mss_bytes
    if law in ("request-reply", "file") or shares_segments(own):
        return Segments(((most, 1),), exact=False)
    endless = law == "greedy" and transport.protocol == "tcp" and transport.windows == "bytes"
    full, rest = divmod(most if endless else own.traffic.message_bytes, most)
    sizes = ((most, full), (rest, 1 if rest else 0))
    return Segments(tuple((size, count) for size, count in sizes if count), exact=True)


def _taken(scenario: Scenario, plan: Topology, flow: FlowPlan) -> Iterator[tuple[Part, float, float]]:
    """Yield the time (s) that a kilobit of the flow uses of each part: if most packets go up, or down."""
    scenario = scenario.of_flow(flow.spec)
    transport, sent = scenario.transport, segments_of(scenario, flow)
    answered = transport.protocol == "tcp" and scenario.traffic.source != "request-reply"
    alone = transport.ack_path == "queued" and not transport.piggyback
    acks = sent.number / window_of(scenario, flow) if answered and alone else 0.0
    for hop in plan.route(flow.source, flow.target):
        if hop.kind == "outside":
            link, back = plan.outside[hop.index].link, hop.source != plan.outside[hop.index].source
            data = sum(count * _outside_s(scenario, link, size) for size, count in sent.sizes)
            for way, seconds in ((back, data), (not back, acks * _outside_s(scenario, link, 0))):
                yield _medium(link, way), seconds / sent.kilobits, seconds / sent.kilobits
            continue
        up = hop.target == plan.piconets[hop.index].central
        data = [on_air(scenario, size, exact=sent.exact).times(count) for size, count in sent.sizes]
        ack = on_air(scenario, 0).times(acks)
        alike = (sum(one.plus for one in data) + ack.less) * SLOT_S / sent.kilobits
        other = (sum(one.less for one in data) + ack.plus) * SLOT_S / sent.kilobits
        yield (
            Link(hop.index, hop.source if up else hop.target),
            *((alike, other) if up else (other, alike)),
        )


def _medium(link: OutsideLink, back: bool) -> str:
    """Return the medium that carries one direction of an outside link."""
    if link.medium is not None:
        return f"medium {link.medium}"
    if link.half_duplex:
        return f"outside link {link.name}"
    return f"outside link {link.name} to {link.source if back else link.target}"


def _outside_s(scenario: Scenario, link: OutsideLink, size: int) -> float:
    """Return the least time in which an outside link sends a segment with `size` user bytes (s)."""
    return (size + scenario.transport.header_bytes + link.header_bytes) / KILOBIT_BYTES / link.rate_kbps


def on_air(scenario: Scenario, size: int, *, exact: bool = True) -> OnAir:
    """Return the least use of a Bluetooth hop by a segment with `size` user bytes.

    The segment is cut as the scenario says. If its size is not `exact`, or the packet type follows the radio,
    every packet is taken as full and of the best type.
    """
    link = scenario.link
    if link.bearer == "le":
        return _exchanged(scenario, size + scenario.transport.header_bytes)
    frame = size + scenario.transport.header_bytes + link.l2cap_header_bytes
    if frame == 0:
        return OnAir(0.0, 0.0)
    if exact and link.adaptation == "fixed":
        pieces = cut(frame, link.packets, link.segmentation)
        slots = sum(packet.slots for packet in pieces)
        return OnAir(slots + len(pieces), slots - len(pieces))
    types = packet_types(_names(scenario))
    return OnAir(*(frame * min((each.slots + k) / each.payload_bytes for each in types) for k in (1, -1)))


def _exchanged(scenario: Scenario, size: int) -> OnAir:
    """Return the use of a hop of Bluetooth Low Energy: PDUs with a frame space and an empty PDU each.

    A frame is an exchange there, and the empty PDU that answers takes the place of POLL and NULL.
    """
    le = scenario.le
    sent = [
        low_energy.air_time_us(le.phy, payload, encrypted=le.encrypted)
        for frame in frames_of(le, size)
        for payload in low_energy.pdus(frame, le.payload_bytes)
    ]
    empty_us = low_energy.air_time_us(le.phy, 0)
    plus_us = sum(sent) + len(sent) * (empty_us + 1e6 * le.frame_space_s)
    return OnAir(plus_us * 1e-6 / SLOT_S, (sum(sent) - len(sent) * empty_us) * 1e-6 / SLOT_S)


def frames_of(le: LowEnergy, size: int) -> tuple[int, ...]:
    """Return the bytes of the frames of L2CAP that carry a segment of `size` bytes, headers included."""
    if size == 0:
        return ()
    if le.transfer == "notifications":
        return low_energy.notifications(size, le.att_mtu_bytes)
    most = le.sdu_bytes or size
    whole, rest = divmod(size, most)
    parts = (most,) * whole + ((rest,) if rest else ())
    return tuple(frame for part in parts for frame in low_energy.k_frames(part, le.frame_bytes))


def _names(scenario: Scenario) -> tuple[str, ...]:
    """Return the packet types that may be sent."""
    link = scenario.link
    return link.packets if link.adaptation == "fixed" else (*link.packets, *link.adaptation_packets)


def least_round_trip_s(scenario: Scenario, flow: FlowPlan, most_bytes: int | None = None) -> float:
    """Return the least round trip (s) of a flow's largest segment, as a capture below IP shows it.

    Args:
        scenario: scenario of the flow.
        flow: whose segments are sent.
        most_bytes: user data of the segment, if less than the largest.
    """
    own = scenario.of_flow(flow.spec)
    size = max(size for size, _ in segments_of(scenario, flow).sizes)
    size = size if most_bytes is None else min(size, most_bytes)
    above = 2 * (own.transport.tcp_delay_s + own.transport.ip_delay_s + own.link.l2cap_delay_s)
    return _round_trip_s(own, topology(scenario), flow, size) - above


def _round_trip_s(scenario: Scenario, plan: Topology, flow: FlowPlan, size: int) -> float:
    """Return the least time from the sending of a segment until its acknowledgement comes."""
    exact = segments_of(scenario, flow).exact
    forth = _way_s(scenario, plan, plan.route(flow.source, flow.target), size, exact)
    if scenario.transport.ack_path == "direct":
        return forth
    return forth + _way_s(scenario, plan, plan.route(flow.target, flow.source), 0, True)


def _way_s(scenario: Scenario, plan: Topology, route: tuple[Hop, ...], size: int, exact: bool) -> float:
    """Return the least time of a segment on its way.

    On a Bluetooth hop a slot at least lies between two packets one way. Where hops pass on whole segments,
    their times add up. Else the slowest hop takes the time of a segment and each other hop of a packet.
    """
    transport, link = scenario.transport, scenario.link
    fixed = 2 * (transport.tcp_delay_s + transport.ip_delay_s + link.l2cap_delay_s)
    shortest = min(each.slots for each in packet_types(_names(scenario))) * SLOT_S
    times, packets = [], []
    for hop in route:
        if hop.kind == "outside":
            outside = plan.outside[hop.index].link
            fixed += outside.delay_s
            times.append(_outside_s(scenario, outside, size))
            packets.append(0.0)
        else:
            times.append(max(on_air(scenario, size, exact=exact).plus - 1.0, 0.0) * SLOT_S)
            packets.append(min(shortest, times[-1]))
    if scenario.network.relay == "segment":
        return fixed + sum(times)
    return fixed + max(time - packet for time, packet in zip(times, packets, strict=True)) + sum(packets)


def packets_of(scenario: Scenario, flow: FlowPlan) -> float:
    """Return the most packets of a segment and its acknowledgement; infinite where they are not known."""
    sent = segments_of(scenario, flow)
    if not sent.exact or scenario.link.adaptation != "fixed" or scenario.link.bearer == "le":
        return np.inf
    return max(on_air(scenario, size).packets for size, _ in sent.sizes) + on_air(scenario, 0).packets


def _share_beside_voice(scenario: Scenario) -> float:
    """Return the share of the slots that voice leaves to data if it repeats nothing."""
    voice = scenario.voice.reservation
    return voice.gap / voice.period if voice else 1.0
