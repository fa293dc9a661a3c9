"""`Network`: the stations and classes of a scenario in numbers. Laws read these numbers, and no scenario.

A *station* serves segments one after the other: a *port* is one direction of a radio link (the central polls
it), a *wire* is the medium of outside links, a *bucket* grants tokens. A *class* is a flow: its segments
visit stations on the way forth, and their acknowledgements on the way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.stations.nagle import Cut
from btqueue.scenario.traits import Trait

if TYPE_CHECKING:
    from btqueue.network.stations import anchors  # functions import it that meet Bluetooth Low Energy

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
EMPTY = 2.0
"""Slots of a frame of POLL and NULL."""
ENDLESS = 10_000
"""Frames of a visit that stand for no limit."""


class Train(NamedTuple):
    """The packets of a segment, or an acknowledgement, on the air of one hop: means over the radio's states.

    Attributes:
        packets: that it is cut into.
        slots: slots of one transmission of each packet, together.
        frames: transmissions.
        air: slots of all transmissions, together.
        loss: chance that the segment does not come through whole.
        first: slots of its first packet; only the last one may be shorter.
        spread: variance of the number of transmissions, as if the radio changed its state between them.
        fast, slow: slots of all transmissions and one-slot answers, in the better and in the worse states.
        worse: share of the time in the worse states; none if the radio does not fade.
        stay_s: mean time that the worse states last.
        together: whether all links of a piconet fade at once.
        scheduled: whether the radio follows a schedule in time: all links of the network fade at once.
        better_better, better_worse, worse_better, worse_worse: chances that a segment arrives, by the states
            of a radio that fades at its first and at its last packet.
        crossing_s: time from the first packet to the last one (s); 0 where packets are repeated.
    """

    packets: float
    slots: float
    frames: float
    air: float
    loss: float
    first: float
    spread: float = 0.0
    fast: float = 0.0
    slow: float = 0.0
    worse: float = 0.0
    stay_s: float = 0.0
    together: float = 0.0
    scheduled: float = 0.0
    better_better: float = 0.0
    better_worse: float = 0.0
    worse_better: float = 0.0
    worse_worse: float = 0.0
    crossing_s: float = 0.0

    @property
    def through(self) -> Matrix:
        """Chances that a segment arrives, by the states at its first and at its last packet, (2, 2)."""
        return np.array(self[-5:-1]).reshape(2, 2)

    @property
    def loses_by_state(self) -> bool:
        """Whether the worse state loses more segments."""
        better, worse = self.through.sum(axis=1)
        return bool(better > worse)

    @property
    def last(self) -> float:
        """Time of its last packet over the mean time of a packet, each with its one-slot answer."""
        shorter = self.slots - (self.packets - 1.0) * self.first + 1.0
        return shorter * self.packets / (self.slots + self.packets)

    def plus(self, other: Train, share: float) -> Train:
        """Return this train plus a share of another one; a sum of means."""
        return Train(*(a + share * b for a, b in zip(self, other, strict=True)))

    def part(self, share: float) -> Train:
        """Return a share of its packets."""
        return self._replace(
            packets=share * self.packets, slots=share * self.slots, frames=share * self.frames,
            air=share * self.air, spread=share * self.spread,
        )  # fmt: skip


NO_TRAIN = Train(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class Visit(NamedTuple):
    """A stop of a segment: the station, its service there, and the delays and losses on the way to the next.

    Attributes:
        kind: "port", "wire" or "bucket".
        index: index of the station of its kind.
        train: on the air; nothing elsewhere.
        service_s: time on a wire, or of the tokens at their rate.
        delay_s: propagation behind the station (s).
        jitter_s: mean of an exponential time after that, in the order of the segments.
        places: segments that find place before the station.
        loss: chance that a segment is lost there at random.
        flush_s: age at which a packet is given up if its transmission fails; endless where none fails.
        node: number of the node whose buffer has these places, for all its ports together; -1 if only this
            station uses them.
        turn: number of the queue before a wire that is served in turn with others; -1 elsewhere.
        pdus: packets of a segment on a link of Bluetooth Low Energy; none elsewhere.
        cycle_s: longest wait for the next anchor point there, uniform; 0 if it is constant.
    """

    kind: str
    index: int
    train: Train
    service_s: float
    delay_s: float
    loss: float
    jitter_s: float = 0.0
    places: float = inf
    flush_s: float = inf
    node: int = -1
    turn: int = -1
    pdus: anchors.Pdus | None = None
    cycle_s: float = 0.0

    def shares_places(self, other: Visit) -> bool:
        """Whether segments wait in the same places before both stops."""
        if self.node >= 0 or other.node >= 0:
            return self.node == other.node
        return (self.kind, self.index) == (other.kind, other.index)


Visits = tuple[Visit, ...]


@dataclass(frozen=True)
class Port:
    """One direction of a radio link.

    Attributes:
        piconet, link: numbers.
        up: whether the member sends.
        places: packets that find place in its queue.
        bridge: number of the bridge at its member's end, or -1.
        limit: frames of a visit.
    """

    piconet: int
    link: int
    up: bool
    places: float
    bridge: int
    limit: int


@dataclass(frozen=True)
class Piconet:
    """A polled piconet.

    Attributes:
        members: links in the cycle.
        discipline: discipline of the visits.
        limit: frames of a visit to an ordinary link.
        idle_polls: polls of an idle link in a cycle in which another one has data.
        free_share: free share of the time that voice leaves to data.
        data_share: data share of the time in which frames of data are sent if there is always one to be sent.
        central_bridge: number of the bridge that is its central, or -1.
        apart: whether acknowledgements do not fit beside data between voice packets.
    """

    members: int
    discipline: str
    limit: int
    idle_polls: float
    free_share: float
    data_share: float
    central_bridge: int
    apart: bool = False


@dataclass(frozen=True)
class Bridge:
    """A device in several piconets in turn.

    Attributes:
        piconets: numbers.
        schedule: how it finds the centrals.
        window_s: length of a window.
        switch_s: mean time lost at each change of piconet.
        cycles: whole cycles that it stays; 0: one exchange.
        exchanges: most exchanges of a stay outside windows.
        own: number of the piconet of which it is the central, or -1.
    """

    piconets: tuple[int, ...]
    schedule: str
    window_s: float
    switch_s: float
    cycles: float
    exchanges: float
    own: int

    def early(self, piconet: int) -> float:
        """Return the mean time (slots) that a bridge may be late for a poll at the same time.

        All polls begin at even slots. Of polls at the same time the piconet of the lower number polls first.
        A bridge that comes from a piconet of lower number is therefore in time for a poll here, and a bridge
        that comes from a higher number is not.
        """
        before = self.piconets[self.piconets.index(piconet) - 1]
        return 0.0 if self.switch_s else float((piconet > before) - (piconet < before))

    def share(self, frame: float) -> float:
        """Return the share of the time that windows give to one piconet, with frames of `frame` slots.

        A bridge leaves each window a frame earlier, and on average half of another frame does not fit.
        """
        window = self.window_s / SLOT_S
        return max(window - EMPTY - frame / 2.0, EMPTY) / window / len(self.piconets)


@dataclass(frozen=True)
class Wire:
    """The medium of outside links: share of the time that it is up, mean time down, packets that may wait."""

    name: str
    up_share: float
    down_s: float
    places: float


@dataclass(frozen=True)
class Bucket:
    """Tokens: the rate and the depth (bits), and the packets that may wait for them."""

    rate: float
    depth: float
    places: float


class Layer(NamedTuple):
    """The layers of a host, one way, that take one segment at a time (Johansson et al. 2000, section 4.1).

    The slowest of them stands for all: behind it segments are so far apart that they wait for no other.

    Attributes:
        node: number of the host.
        wire: number of the wire that stands for it.
        back: whether acknowledgements of the flow pass it, not its segments.
        apart_s: time of the flow's segments at the station before or behind it (s).
    """

    node: int
    wire: int
    back: bool
    apart_s: float


class Piece(NamedTuple):
    """Equal segments of a message: their number, their size over a full segment, and their visits."""

    count: int
    share: float
    visits: tuple[Visit, ...]


class InEvents(NamedTuple):
    """A flow by connection events: fields of `Flow`, with an acknowledgement for `every` segments."""

    forth: Visits
    back: Visits
    every: float
    late_s: float = 0.0
    soon_s: float = 0.0
    released: float = 0.0
    at_sender_s: float = 0.0


@dataclass(frozen=True)
class Flow:
    """A class: the law of its source, its transport, and where its segments and acknowledgements go.

    Attributes:
        source: law of the messages.
        load: segments offered a second; infinite for a source that always has data.
        batch: segments of a message.
        more: chance that a further message follows at once, in a burst.
        kilobits: kilobits of user data of a segment.
        forth, back: visits.
        host_s: time in the layers of a host, each way.
        relays_s: time in the basebands of all nodes that pass segments on, each way.
        jitter_s: largest random delay at the host that sends a segment or an acknowledgement (s).
        protocol: "tcp", "none" or "centaurus".
        window: segments that may be under way; infinite without a transport.
        transport, traffic: the tables as the flow sees them, for laws of transport.
        acks: acknowledgements a segment.
        short: whether messages leave short segments, which wait for acknowledgements (Nagle).
        reverse: number of the flow that answers, for a session.
        messages: of a session, in the order in which this end sends them: request and good-bye, or reply.
        kinds: segments of different length: their share, the share of these that leave when an
            acknowledgement comes, and their visits.
        cut: the law of segments that wait for all before them (Nagle's algorithm).
        span_s: time of the smallest rest of a message, and of a full segment, at their stops (s).
        uneven: time of a full segment at its stops over the time of the mean segment. Only the last segment
            of a message may be shorter, and it is ahead of no other segment of the message.
        meets: share of the segments that meet others of the flow under way: short ones have waited for some.
        behind_s: mean wait for segments of the same stream, where it follows from the rule by which short
            segments wait (s).
        layer_s: longest time of a layer of a host that takes one segment at a time.
        layers: rows of such layers that it passes. Their time is part of `host_s`.
        late_s: how much later an acknowledgement of a timer gets across, as it waits for an anchor point.
        soon_s: how much shorter the round trip of a segment is that an acknowledgement lets out, as it goes
            in the same event.
        released: share of these segments.
        at_sender_s: wait for an anchor point of segments for which a window has no room.
    """

    source: str
    load: float
    batch: float
    more: float
    kilobits: float
    forth: tuple[Visit, ...]
    back: tuple[Visit, ...]
    host_s: float
    relays_s: float
    jitter_s: float
    protocol: str
    window: float
    transport: Any
    traffic: Any
    acks: float
    short: bool
    reverse: int | None
    messages: tuple[tuple[Piece, ...], ...] = ()
    kinds: tuple[tuple[float, float, tuple[Visit, ...]], ...] = ()
    cut: Cut | None = None
    span_s: tuple[float, float] = (0.0, 0.0)
    uneven: float = 1.0
    meets: float = 1.0
    behind_s: float | None = None
    layer_s: float = 0.0
    layers: tuple[Layer, ...] = ()
    late_s: float = 0.0
    soon_s: float = 0.0
    released: float = 0.0
    at_sender_s: float = 0.0

    @property
    def delays_received(self) -> bool:
        """Whether acknowledgements wait for further segments, or a timer."""
        delayed = self.protocol == "tcp" and self.transport.delayed_ack
        return delayed and self.transport.ack_every_segments > 1 and self.transport.ack_delay_s > 0.0

    @property
    def pairs(self) -> float:
        """Mean product of the works of two segments of a message, over the square of the mean work."""
        return self.uneven * (2.0 - self.uneven)

    @property
    def together(self) -> float:
        """Segments that may be under way at once: less than the window for a stream with short segments."""
        return 1.0 + (self.window - 1.0) * self.meets

    @property
    def shared_in_backlog(self) -> bool:
        """Whether messages share segments only while data wait for room in the window (without Nagle)."""
        own, open_load = self.transport, self.load < inf and not self.messages and self.source != "file"
        in_bytes = self.protocol == "tcp" and own.windows == "bytes" and own.nagle is False
        return in_bytes and open_load and self.traffic.message_bytes % own.mss_bytes > 0

    @property
    def segments(self) -> int:
        """Segments of all messages of this end in a session."""
        return sum(piece.count for message in self.messages for piece in message)

    @cached_property
    def loss(self) -> float:
        """Chance that a segment is lost at random on its way."""
        return 1.0 - prod(1.0 - visit.loss for visit in self.forth)

    def arriving(self, relay: str) -> tuple[list[float], list[float]]:
        """Return the shares of segments, and of acknowledgements, that come to each stop of their ways.

        A buffer refuses a segment before its stop, and a radio or a wire loses it there. Where a `relay`
        passes packets on, the other packets of a lost segment go on. Their share is exact for independent
        losses of packets; packets that fade together are mostly lost together, and fewer go on.
        """
        ways: tuple[list[float], list[float]] = [], []
        for found, visits in zip(ways, (self.forth, self.back), strict=True):
            share = 1.0
            for visit in visits:
                own = visit.train.loss if visit.kind == "port" else visit.loss
                share *= (1.0 - visit.loss) / (1.0 - own) if own < 1.0 else 1.0
                found.append(share)
                by_packets = visit.kind == "port" and relay == "packet"
                share *= (1.0 - own) ** (1.0 / max(visit.train.packets, 1.0) if by_packets else 1.0)
        return ways

    @cached_property
    def ack_loss(self) -> float:
        """Chance that an acknowledgement is lost at random on its way."""
        return 1.0 - prod(1.0 - visit.loss for visit in self.back)


@dataclass(frozen=True)
class Network:
    """Stations and classes.

    Attributes:
        turns: number of the wire of each queue: the ends of the links of a medium take turns.
        traits: the keys that make a difference, for doubts about unread keys.
        run_s, warmup_s: time of a run, and the time before it without measurements (s); the answer is for an
            endless run.
        anchored: links of Bluetooth Low Energy, each with the numbers of its wires down and up.
    """

    ports: tuple[Port, ...]
    piconets: tuple[Piconet, ...]
    bridges: tuple[Bridge, ...]
    wires: tuple[Wire, ...]
    buckets: tuple[Bucket, ...]
    flows: tuple[Flow, ...]
    relay: str
    turns: tuple[int, ...] = ()
    traits: tuple[Trait, ...] = ()
    run_s: float = inf
    warmup_s: float = 0.0
    anchored: tuple[tuple[anchors.Station, int, int], ...] = ()

    def frame_s(self, visit: Visit) -> float:
        """Return the time of a frame and its answer at a port that always has one (s), beside voice."""
        share = self.piconets[self.ports[visit.index].piconet].data_share
        return (visit.train.air / visit.train.frames + 1.0) * SLOT_S / share


def alike(network: Network) -> list[int]:
    """Return for each flow the first one with the same answer by symmetry; itself if there is none.

    Colours of flows, links and stations are refined by the colours that they meet until no class splits any
    more. The result is an equitable partition, so that a fixed point exists that is equal within each class.
    Bridges have an order in time, so with bridges each flow is a class.

    Source: B. McKay, Practical graph isomorphism, Congressus Numerantium 30 (1981), for the refinement.
    """
    flows = network.flows
    if network.bridges or len(flows) < 2:
        return list(range(len(flows)))
    ways = [(*((0, visit) for visit in flow.forth), *((1, visit) for visit in flow.back)) for flow in flows]
    colours: list[Any] = []
    for f, (flow, way) in enumerate(zip(flows, ways, strict=True)):
        ports = [network.ports[visit.index] for _, visit in way if visit.kind == "port"]
        crossed = [(port.up, port.places, port.limit) for port in ports]
        turns = [
            (after.link - port.link) % network.piconets[port.piconet].members
            for port, after in pairwise(ports)
            if port.piconet == after.piconet
        ]
        own = (flow.source, flow.load, flow.batch, flow.more, flow.kilobits, flow.host_s, flow.layer_s,
               flow.jitter_s, flow.protocol, flow.window, id(flow.transport), id(flow.traffic), flow.acks,
               flow.short, flow.cut, (flow.reverse or 0) > f, *turns, *crossed)  # fmt: skip
        visits = [
            (back, visit._replace(index=0, node=min(visit.node, 0), turn=min(visit.turn, 0)))
            for back, visit in way
        ]
        colours.append(hash((own, *visits)))
    while True:
        places: dict[tuple, list[int]] = {}
        for colour, way, flow in zip(colours, ways, flows, strict=True):
            for layer in flow.layers:
                places.setdefault(("wire", layer.wire), []).append(hash((colour, layer.back)))
            for stop, (_, visit) in enumerate(way):
                places.setdefault((visit.kind, visit.index), []).append(hash((colour, stop)))
                for kind, number in (("node", visit.node), ("turn", visit.turn)):
                    if number >= 0:
                        places.setdefault((kind, number), []).append(hash((colour, stop)))
        at: dict[Any, Any] = {place: hash(tuple(sorted(met))) for place, met in places.items()}
        links: dict[tuple[int, int], list[Any]] = {}
        for n, port in enumerate(network.ports):
            here = (port.up, port.places, port.limit, at.get(("port", n)))
            links.setdefault((port.piconet, port.link), []).append(hash(here))
        link = {place: hash(tuple(sorted(met))) for place, met in links.items()}
        whole = [
            hash((piconet, *sorted(colour for (index, _), colour in link.items() if index == number)))
            for number, piconet in enumerate(network.piconets)
        ]
        new = []
        for f, flow in enumerate(flows):
            met: list[Any] = [at["wire", layer.wire] for layer in flow.layers]
            for _, visit in ways[f]:
                met.append(
                    (at[visit.kind, visit.index], at.get(("node", visit.node)), at.get(("turn", visit.turn)))
                )
                if visit.kind == "port":
                    port = network.ports[visit.index]
                    met.append((link[port.piconet, port.link], whole[port.piconet]))
            new.append(hash((colours[f], colours[flow.reverse] if flow.reverse is not None else None, *met)))
        if len(set(new)) == len(set(colours)):
            return [new.index(colour) for colour in new]
        colours = new


def least_s(visits: tuple[Visit, ...]) -> float:
    """Return the time of a lone segment at its stops (s), without waits: buckets have tokens for it."""
    stops = [visit for visit in visits if visit.kind != "bucket"]
    return sum(visit.service_s + (visit.train.air + visit.train.frames) * SLOT_S for visit in stops)
