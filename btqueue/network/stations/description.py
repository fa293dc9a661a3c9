"""`network_of`: a scenario in numbers. Only this file of the theory of stations reads keys of all tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from math import ceil, gcd, inf
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import pdtr

from btqueue.baseband import SLOT_S
from btqueue.baseband.voice import ESCO_PACKETS, Frame, VoiceLinks
from btqueue.network.bounds import segments_of
from btqueue.network.repetition import kinds_of
from btqueue.network.stations.nagle import Cut, waits_for_all
from btqueue.network.stations.network import (
    EMPTY,
    ENDLESS,
    NO_TRAIN,
    Bridge,
    Bucket,
    Flow,
    InEvents,
    Layer,
    Network,
    Piconet,
    Piece,
    Port,
    Visit,
    Visits,
    Wire,
    least_s,
)
from btqueue.network.stations.trains import State, intact, states_of, train_of
from btqueue.scenario.radio import Radio
from btqueue.scenario.recordings import read_arrivals
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.topology import FlowPlan, Hop, Topology, topology
from btqueue.scenario.traits import radio_of, shares_segments, traits

if TYPE_CHECKING:
    from btqueue.network.stations import anchors  # functions import it that meet Bluetooth Low Energy

MOST_SHARED = 64
"""Segments of an acknowledgement that are told apart."""
MOST_FRAMES = 100
"""Frames in a row whose places between voice packets are told apart."""
BACKLOG = 0.99
"""Share of full segments of messages that do not fill theirs, above which data wait at the sender."""
ONE_FRAME = ("1-limited", "round-robin")


def network_of(scenario: Scenario, cuts: tuple[Cut | None, ...] = ()) -> Network:
    """Return the network of a scenario; the only function here that reads one.

    Args:
        scenario: to be read.
        cuts: the segments of each flow whose messages share segments, where they are known.
    """
    return _Builder(scenario, cuts).network()


class _Builder:
    """Collects the stations that the routes of the flows pass."""

    def __init__(self, scenario: Scenario, cuts: tuple[Cut | None, ...]) -> None:
        self.scenario = scenario
        self.cuts = cuts
        self.plan: Topology = topology(scenario)
        self.ports: dict[tuple[int, int, bool], int] = {}
        self.port_list: list[Port] = []
        self.wires: dict[str, int] = {}
        self.wire_list: list[Wire] = []
        self.turns: dict[tuple[int, bool], tuple[int, int]] = {}  # number of the queue, and its wire
        self.buckets: dict[int, int] = {}
        self.bucket_list: list[Bucket] = []
        self.radios: dict[tuple[int, int], tuple[Radio, tuple[State, ...]]] = {}
        self.low_energy = scenario.link.bearer == "le"
        self.anchored: dict[tuple[int, int], tuple[anchors.Station, int, int]] = {}
        routes = (self.plan.route(flow.source, flow.target) for flow in self.plan.flows)
        self.data = Counter((hop.source, hop.target) for route in routes for hop in route)  # pairs of nodes

    def network(self) -> Network:
        flows = tuple(self._flow(flow, number) for number, flow in enumerate(self.plan.flows))
        if self.low_energy:
            for index, piconet in enumerate(self.plan.piconets):
                for member in range(len(piconet.members)):  # idle links have events, too
                    self._anchored(index, member)
            if self._shades(flows):
                flows = tuple(self._flow(flow, number) for number, flow in enumerate(self.plan.flows))
            return Network(
                (), (), (), tuple(self.wire_list), (), flows, self.scenario.network.relay,
                tuple(wire for _, wire in self.turns.values()), traits(self.scenario),
                *self._run_s(), tuple(self.anchored[link] for link in sorted(self.anchored)),
            )  # fmt: skip
        for bridge in self.plan.bridges:  # centrals poll bridges even if they carry no flow
            for index in bridge.piconets:
                central = self.plan.piconets[index].central
                if central != bridge.node:
                    self._port(Hop("bluetooth", index, central, bridge.node))
        return Network(
            self._in_packets("port", self.port_list, flows),
            tuple(
                replace(self._piconet(index), **self._beside_voice(index, flows))
                for index in range(len(self.plan.piconets))
            ),
            tuple(self._bridge(index) for index in range(len(self.plan.bridges))),
            tuple(self.wire_list),
            self._in_packets("bucket", self.bucket_list, flows),
            flows,
            self.scenario.network.relay,
            tuple(wire for _, wire in self.turns.values()),
            traits(self.scenario),
            *self._run_s(),
        )

    def _run_s(self) -> tuple[float, float]:
        run = self.scenario.run
        return run.duration_s, run.warmup_s if run.warmup_s != "auto" else 0.0

    # -------------------------------------------------------------------------------------------- stations

    def _in_packets(self, kind: str, stations: list[Any], flows: tuple[Flow, ...]) -> tuple[Any, ...]:
        """Return stations with places in packets: segments wait whole where packets are cut on the air."""
        packets = [1.0] * len(stations)
        if self.scenario.link.adaptation != "fixed":
            for visit in (visit for flow in flows for visit in flow.forth if visit.kind == kind):
                packets[visit.index] = max(packets[visit.index], visit.train.packets)
        return tuple(replace(one, places=one.places * n) for one, n in zip(stations, packets, strict=True))

    def _bridge_of(self, node: int) -> int:
        return next((n for n, bridge in enumerate(self.plan.bridges) if bridge.node == node), -1)

    def _piconet(self, index: int) -> Piconet:
        polling, plan = self.scenario.polling, self.plan.piconets[index]
        name = polling.discipline
        limit = 1 if name in (*ONE_FRAME, "fep") else polling.limit
        if name in ("exhaustive", "gated"):
            limit = ENDLESS
        idle = {"fep": 0.0, "slq": 0.0, "ldq": 0.0}.get(name, 1.0)
        if name in ("lwrr", "prc-lwrr"):
            idle = 1.0 / polling.max_weight
        return Piconet(len(plan.members), name, limit, idle, 1.0, 1.0, self._bridge_of(plan.central))

    def _beside_voice(self, index: int, flows: tuple[Flow, ...]) -> dict[str, Any]:
        """Return the shares of the time that voice leaves to data in a piconet, and that its frames can use.

        Also whether acknowledgements have frames of their own (`apart`).

        Gaps may be no multiple of a frame, so the share is of frames that are sent one after the other: of
        two segments of each flow in turn. Their acknowledgements are the answers to the first frame of a
        segment, to its shorter last one where they fit beside no other, or have frames of their own. Behind
        as many frames as visits may have, the links without data are polled. A segment of several sizes
        counts by its mean.
        """
        voice = self.scenario.voice.reservation
        if voice is None:
            return {"free_share": 1.0, "data_share": 1.0}
        here = [port.piconet == index for port in self.port_list]
        frames, busy, apart = [], set(), 0
        for flow in flows:
            for data, ack in zip_longest(flow.forth, reversed(flow.back)):
                if data is None or data.kind != "port" or not here[data.index]:
                    continue
                train, busy = data.train, busy | {self.port_list[data.index].link}
                more = max(round(train.packets) - 1, 0)
                last = max(round(train.slots - more * train.first), 1.0)
                reply = ack.train.first if ack is not None and ack.kind == "port" else 0.0
                acks = round(2.0 * min(flow.acks, 1.0)) if reply else 0
                up = self.port_list[data.index].up
                fits = [one + reply <= voice.gap for one in (train.first, last)]
                # a member answers the first frame beside which its acknowledgement fits
                place, beside = (0, True) if fits[0] else (more, fits[1] and not up)
                longer = round(reply) - 1 if acks and beside else 0
                for number in range(2):
                    answers = [0] * (more + 1)
                    answers[place] = int(number < acks)
                    slots = [train.first + 1.0] * more + [last + 1.0]
                    frames += [
                        Frame(min(round(one), voice.gap), answer if longer else 0, longer, up)
                        for one, answer in zip(slots, answers, strict=True)
                    ]
                if acks and not beside:
                    frames, apart = frames + [Frame(round(reply) + 1)] * acks, apart + acks
        piconet = self._piconet(index)
        visit = max(int(min(piconet.limit, len(frames))), 1) * max(len(busy), 1)
        polls = [Frame(round(EMPTY))] * round((piconet.members - len(busy)) * piconet.idle_polls)
        # other laws count acknowledgements in frames of their own without a poll
        slots = EMPTY + sum(one.slots + one.more * one.answers for one in frames)
        without_polls = 1.0 - EMPTY * apart / slots
        whole = visit // gcd(visit, len(frames) or 1)
        frames = frames * (whole if len(frames) * whole <= MOST_FRAMES else 1) or [Frame(round(EMPTY))]
        visits = [frames[n : n + visit] for n in range(0, len(frames), visit)]
        sent = [frame for frames in visits for frame in (*frames, *polls)]
        repeats = self._voice_repeats(index, voice) if voice.packet in ESCO_PACKETS else {0: 1.0}
        free = voice.gap - sum(slots * chance for slots, chance in repeats.items())
        data = without_polls * voice.data_share(sent, repeats)
        shares = {"free_share": free / voice.period, "data_share": data}
        return {name: max(share, 1.0 / voice.period**2) for name, share in shares.items()} | {
            "apart": apart > 0
        }

    def _voice_repeats(self, index: int, voice: VoiceLinks) -> dict[int, float]:
        """Return the chances of the slots that all voice links of a piconet take in their windows.

        Both directions of a link are in the same state of the radio, unless their radios differ; links are
        independent.
        """
        plan, together = self.plan.piconets[index], {0: 1.0}
        for number in range(voice.links):
            member = plan.members[number % len(plan.members)]
            errors = []
            for ends in ((plan.central, member), (member, plan.central)):
                radio, states = self._radio(Hop("bluetooth", index, *ends))
                kind = ESCO_PACKETS[voice.packet]
                errors.append([(one.share, 1.0 - intact(radio, kind, one.ber)[0]) for one in states])
            down, up = errors
            pairs = (
                [(p, a, b) for (p, a), (_, b) in zip(down, up, strict=True)]
                if down == up
                else [(p * q, a, b) for p, a in down for q, b in up]
            )
            after: dict[int, float] = {}
            for share, lost_down, lost_up in pairs:
                for slots, chance in voice.repeats(lost_down, lost_up).items():
                    for before, others in together.items():
                        after[before + slots] = after.get(before + slots, 0.0) + share * chance * others
            together = after
        return together

    def _bridge(self, index: int) -> Bridge:
        plan, polling = self.plan.bridges[index], self.scenario.polling
        own = next((p for p in plan.piconets if self.plan.piconets[p].central == plan.node), -1)
        stays = float(polling.residence_cycles)
        cycles = {"visit": 0.0, "cycle": stays, "complete": 1.0}[polling.residence]
        exchanges = {"visit": 1.0, "cycle": stays + 1.0, "complete": inf}[polling.residence]
        return Bridge(
            plan.piconets,
            polling.bridge_schedule,
            polling.rendezvous_s / len(plan.piconets),
            SLOT_S if polling.switch_delay else 0.0,
            cycles,
            exchanges,
            own,
        )

    def _port(self, hop: Hop) -> int:
        up = hop.target == self.plan.piconets[hop.index].central
        member = hop.source if up else hop.target
        key = (hop.index, self.plan.piconets[hop.index].members.index(member), up)
        if key not in self.ports:
            self.ports[key] = len(self.port_list)
            bridge, polling = self._bridge_of(member), self.scenario.polling
            plan, places = self.plan.piconets[hop.index], self.scenario.flow_control.places[up]
            limit = self._piconet(hop.index).limit
            if bridge >= 0:
                ordinary = max(1, len([one for one in plan.members if one not in self.plan.bridge_nodes]))
                single = polling.discipline in ONE_FRAME
                limit = polling.bridge_limit or (1 if single else ordinary * polling.limit)
                if up:
                    places = float(polling.bridge_buffer_packets or ordinary * polling.limit)
            self.port_list.append(Port(*key, places, bridge, limit))
        return self.ports[key]

    def _wire(self, hop: Hop) -> int:
        outside = self.plan.outside[hop.index]
        link, forth = outside.link, hop.source == outside.source
        if link.medium is not None:
            name = f"medium {link.medium}"
        elif link.half_duplex:
            name = f"link {link.name}"
        else:
            name = f"link {link.name} {'forth' if forth else 'back'}"
        if name not in self.wires:
            self.wires[name] = len(self.wire_list)
            up = link.up_s / (link.up_s + link.down_s) if link.down_s else 1.0
            self.wire_list.append(Wire(name, up, link.down_s, float(link.buffer_packets)))
        return self.wires[name]

    def _anchored(self, piconet: int, member: int) -> tuple[anchors.Station, int, int]:
        """Return a link of Bluetooth Low Energy with its wires down and up."""
        from btqueue.network.stations import anchors

        if (piconet, member) not in self.anchored:
            here = self.plan.piconets[piconet]
            ends = here.central, here.members[member]
            ways = (ends, ends[::-1])
            first = len(self.wire_list)
            for source, target in ways:
                name = f"link {self.plan.nodes[source]} to {self.plan.nodes[target]}"
                self.wire_list.append(Wire(name, 1.0, 0.0, inf))
            radios = [self._radio(Hop("bluetooth", piconet, *way)) for way in ways]
            of = (tuple((state.share, state.ber or 0.0) for state in states) for _, states in radios)
            (down, up), (of_down, of_up) = (radio for radio, _ in radios), of
            stay_s = min(state.stay_s for _, states in radios for state in states)
            station = anchors.station(
                self.scenario, self.plan, piconet, member, (down, up), (of_down, of_up), stay_s
            )
            self.anchored[piconet, member] = station, first, first + 1
        return self.anchored[piconet, member]

    def _all_at_once(self, port: int, price: float) -> bool:
        """Return whether a full bucket lets out a segment of this price (bits) whole, as after a timeout."""
        full = price <= self.bucket_list[self._bucket(port)].depth
        return full and self.scenario.transport.protocol == "tcp"

    def _shades(self, flows: tuple[Flow, ...]) -> bool:
        """Let links miss events beside exchanges longer than reservations; return whether any link does."""
        from btqueue.network.stations import anchors

        before, links, own = dict(self.anchored), self._stations(), defaultdict[int, list[Any]](list)
        for flow in flows:
            first = flow.forth[0].pdus
            back = flow.back if not first or first.window == inf else ()  # else they are among its exchanges
            for visit, acks in [*((one, 1.0) for one in flow.forth), *((one, flow.acks) for one in back)]:
                if visit.pdus:
                    own[visit.index].append((visit.pdus, links[visit.index][1], acks * flow.load))
        for index, piconet in enumerate(self.plan.piconets):
            here = [(index, member) for member in range(len(piconet.members))]
            found = [(link, own[down] + own[up]) for link, down, up in (self.anchored[one] for one in here)]
            if not any(station.drifts or max(station.beside) for station, _ in found):
                for one, station in zip(here, anchors.shaded(found), strict=True):
                    self.anchored[one] = (station, *self.anchored[one][1:])
        return self.anchored != before

    def _bucket(self, port: int) -> int:
        if port not in self.buckets:
            control = self.scenario.flow_control
            self.buckets[port] = len(self.bucket_list)
            self.bucket_list.append(
                Bucket(
                    control.token_rate_kbps * 1000.0,
                    control.bucket_bytes * 8.0,
                    float(control.buffer_packets),
                )
            )
        return self.buckets[port]

    # -------------------------------------------------------------------------------------------------- radio

    def _radio(self, hop: Hop) -> tuple[Radio, tuple[State, ...]]:
        if (hop.source, hop.target) not in self.radios:
            radio = radio_of(self.scenario, self.plan, hop)
            same = (one for one in self.radios.values() if one[0] == radio)
            self.radios[hop.source, hop.target] = next(same, None) or (radio, states_of(radio))
        return self.radios[hop.source, hop.target]

    # -------------------------------------------------------------------------------------------------- flows

    def _flow(self, plan: FlowPlan, index: int) -> Flow:
        own = self.scenario.of_flow(plan.spec)
        transport, traffic = own.transport, own.traffic
        messages = _messages(own, index, plan)
        cut = self.cuts[index] if self.cuts else None
        sizes: Sequence[tuple[float, float]] = [piece for message in messages for piece in message]
        sizes = cut.sizes if cut else sizes or _sizes(own, self.scenario, plan)
        headers = transport.header_bytes
        if transport.protocol == "centaurus":
            headers += transport.centaurus_header_bytes
        number = sum(share for _, share in sizes)
        if shares_segments(own) and transport.nagle is False and not messages:
            # windows and delayed acknowledgements count bytes, and these segments are not full
            part = sum(size * share for size, share in sizes) / number / transport.mss_bytes
            every = min(ceil(transport.ack_every_segments / part), MOST_SHARED)
            ends = (transport.receive_window_segments, transport.send_buffer_segments or inf)
            room = {"receive_window_segments": max(int(min(ends) / part), 1), "send_buffer_segments": None}
            transport = transport.model_copy(update=room | {"ack_every_segments": every})
            own = own.model_copy(update={"transport": transport})
        route, back = self.plan.route(plan.source, plan.target), self.plan.route(plan.target, plan.source)
        answered = transport.protocol != "none"
        ack = transport.header_bytes
        if transport.protocol != "tcp":
            ack += transport.centaurus_control_bytes
        queued = answered and transport.ack_path == "queued"
        parts = [(round(size) + headers, share / number) for size, share in sizes]
        mean = sum(size * share for size, share in parts)
        forth = [self._visits(route, parts, float(ack) if queued else 0.0)]
        behind = self._visits(back, [(ack, 1.0)], mean) if queued else ()
        every: float = (
            transport.ack_every_segments if transport.delayed_ack and transport.protocol == "tcp" else 1
        )
        short = shares_segments(own) and transport.nagle is not False and traffic.source != "request-reply"
        kilobits = sum(size * share for size, share in sizes) / number / 125.0
        load, more, batch = _arrivals(own, kilobits, number)

        def at_anchors(sizes: Sequence[tuple[float, float]], beside: float, held: float) -> InEvents:
            forth = self._visits(route, sizes, beside)
            if not self.low_energy:
                return InEvents(forth, behind, every)
            size = round(sum(size * share for size, share in sizes))
            return self._in_events(own, route, forth, behind, load, every, size, held)

        kinds, span_s = (), (0.0, 0.0)
        if short:
            ends = traffic.message_bytes % transport.mss_bytes, transport.mss_bytes
            short_s, full_s = (least_s(self._visits(route, [(end + headers, 1.0)])) for end in ends)
            span_s = short_s, full_s
        full = transport.centaurus_packet_bytes if transport.protocol == "centaurus" else transport.mss_bytes
        if cut:
            more, batch = 0.0, 1.0 + 2.0 * cut.ahead
        waits = cut if cut and waits_for_all(transport) else None
        if waits:
            every = 1.0 / waits.acks
        if cut or (len(parts) > 1 and load < inf and not messages):
            released = cut.released if cut else 0.0
            alike: dict[Any, list[tuple[int, float]]] = {}
            for size, share in parts:  # sizes of as many packets
                trains = tuple(visit.train[:2] for visit in self._visits(route, [(size, 1.0)]))
                alike.setdefault((size < full + headers, trains), []).append((size, share))
            kinds = tuple(
                (share, often, at_anchors([(size, one / share) for size, one in sizes], 0.0, often).forth)
                for (short, _), sizes in alike.items()
                for share, often in ((sum(one for _, one in sizes), released * short),)
            )
        # over wires alone only senders have a baseband
        radio = any(visit.kind == "port" or visit.pdus is not None for visit in forth[0])
        layers = transport.tcp_delay_s + transport.ip_delay_s + own.link.l2cap_delay_s
        layers += own.link.baseband_delay_s / (1.0 if radio else 2.0)
        if messages and forth[0] and forth[0][0].kind == "wire":
            layers += self.scenario.run.jitter_s / 4.0  # half of the jitter on each way, not for polls
        pieces = tuple(
            tuple(Piece(n, size / full, self._visits(route, [(size + headers, 1.0)])) for size, n in message)
            for message in messages
        )
        whole = [(max(size for size, _ in parts), 1.0)]
        meets = 1.0
        if waits:
            filled = sum(share for share, short, _ in kinds if not short)
            # in a backlog all segments are full, and under way with others
            meets = 1.0 if filled > BACKLOG else min(traffic.message_bytes / full, 1.0) * filled
        elif cut:
            # two short segments do not meet; works of pairs go with the squares of times
            brief = np.array([often > 0.0 for _, often, _ in kinds])
            part = np.array([share for share, *_ in kinds])
            squares = part * np.array([least_s(visits) for *_, visits in kinds]) ** 2
            meets = 1.0 - float(part[brief].sum() * squares[brief].sum() / squares.sum())
        one_size = waits or messages or len(parts) == 1
        uneven = 1.0 if one_size else least_s(self._visits(route, whole)) / least_s(forth[0])
        times: Any = ()
        if self.low_energy:
            held = sum(share * often for share, often, _ in kinds)
            forth[0], behind, every, *times = at_anchors(parts, float(ack) if queued else 0.0, held)
        layer_s = max(transport.ip_delay_s, own.link.l2cap_delay_s)
        window = float(transport.receive_window_segments) if transport.protocol == "tcp" else inf
        if transport.send_buffer_segments is not None and transport.protocol == "tcp":
            window = min(window, float(transport.send_buffer_segments))
        if cut and not waits:  # the window counts bytes
            window *= transport.mss_bytes / (kilobits * 125.0)
        return Flow(
            traffic.source,
            load,
            batch,
            more,
            kilobits,
            forth[0],
            behind,
            layers,
            own.link.baseband_delay_s * max(sum(visit.kind == "port" for visit in forth[0]) - 1, 0),
            own.run.jitter_s,
            transport.protocol,
            window,
            transport,
            traffic,
            _answers(own, pieces, index, plan) or (1.0 / min(every, max(window, 1.0)) if answered else 0.0),
            short,
            plan.reverse,
            pieces,
            kinds,
            waits,
            span_s,
            uneven,
            meets,
            cut.behind_s if cut else None,
            layer_s,
            self._layers(plan, forth[0], behind, layer_s),
            *times,
        )

    def _layers(self, plan: FlowPlan, forth: Visits, back: Visits, layer_s: float) -> tuple[Layer, ...]:
        """Return the rows of layers that a flow passes; they take `layer_s` (s)."""

        def time_s(visit: Visit) -> float:
            return visit.service_s + (visit.train.air + visit.train.frames) * SLOT_S * (visit.kind == "port")

        ways = ((forth, plan.source, plan.target), (back, plan.target, plan.source))
        found = []
        for number, (visits, source, target) in enumerate(ways if layer_s else ()):
            stops = [visit for visit in visits if visit.kind != "bucket"]
            # acknowledgements are as far apart as the segments that have passed the same layers
            apart = [layer_s if number else time_s(stops[at]) for at in (0, -1)] if stops else []
            for node, down, apart_s in zip((source, target), (True, False), apart, strict=False):
                name = f"layers of {self.plan.nodes[node]} {'down' if down else 'up'}"
                if name not in self.wires:
                    self.wires[name] = len(self.wire_list)
                    self.wire_list.append(Wire(name, 1.0, 0.0, inf))
                found.append(Layer(node, self.wires[name], bool(number), apart_s))
        return tuple(found)

    def _visits(
        self, route: tuple[Hop, ...], sizes: Sequence[tuple[float, float]], beside: float = 0.0
    ) -> tuple[Visit, ...]:
        """Return the stops of segments of these sizes (bytes, share); `beside` bytes go the other way."""
        s, found, before = self.scenario, [], None
        for place, hop in enumerate(route):
            if hop.kind == "outside":
                outside = self.plan.outside[hop.index]
                link, forth = outside.link, hop.source == outside.source
                wire = self._wire(hop)
                rate = link.rate_kbps * 1000.0 * self.wire_list[wire].up_share
                service = sum(share * (size + link.header_bytes) * 8.0 for size, share in sizes) / rate
                chance = link.loss if forth or link.loss_back is None else link.loss_back
                lost, places = 0.0, self.wire_list[wire].places
                for size, share in sizes:
                    blocks = (
                        ceil((size + link.header_bytes) / link.loss_block_bytes)
                        if link.loss_block_bytes
                        else 1
                    )
                    lost += share * (1.0 - (1.0 - chance) ** blocks)
                found.append(
                    Visit(
                        "wire",
                        wire,
                        NO_TRAIN,
                        service,
                        link.delay_s,
                        lost,
                        link.jitter_s,
                        places,
                        turn=self.turns.setdefault((hop.index, forth), (len(self.turns), wire))[0],
                    )
                )
                before = hop.kind
                continue
            if self.low_energy:
                found.append(self._served_in_events(hop, sizes, beside))
                before = hop.kind
                continue
            port, train = self._port(hop), NO_TRAIN
            radio, states = self._radio(hop)
            key: Any = s.link, s.radio.bits, radio, states  # hashable, as it is frozen
            trains = [(train_of(*key, size, beside), share) for size, share in sizes]
            for one, share in trains:
                train = train.plus(one, share)
            taken = 1.0 if s.link.adaptation != "fixed" else max(train.packets, 1.0)  # places of a segment
            held = inf  # segments for which a node has bytes, beside one that is being sent
            if s.link.node_buffer_bytes is not None:
                pdu = sum(share * size for size, share in sizes) + s.link.l2cap_header_bytes
                held = s.link.node_buffer_bytes / pdu - 1.0
            enters = place == 0 or before == "outside" or s.network.relay == "segment"
            if enters and s.flow_control.enabled:
                bucket = self._bucket(port)
                price = sum(share * _price(s, states, size) for size, share in sizes)
                rate, room = self.bucket_list[bucket].rate, self.bucket_list[bucket].places / taken
                found.append(
                    Visit(
                        "bucket",
                        bucket,
                        train,
                        price / rate if rate else inf,
                        0.0,
                        0.0,
                        0.0,
                        min(room, held),
                        node=hop.source if held < room else -1,
                    )
                )
            places = self.port_list[port].places / taken - 0.5  # half of a segment is being sent
            if place and self.port_list[port].up and self.port_list[port].bridge >= 0:
                places = inf  # a bridge loses the packets of a visit beyond its buffer, whatever the window
            places, node = (held, hop.source) if held < places else (places, -1)
            # the packets of a segment come at once: a queue that holds fewer packets loses a part of every
            # segment, and TCP sends the first of these again and again
            at_once = enters and (not s.flow_control.enabled or self._all_at_once(port, price))
            fixed, room = s.link.adaptation == "fixed", self.port_list[port].places
            too_long = sum(share for one, share in trains if at_once and fixed and room < one.packets)
            tcp = s.transport.protocol == "tcp"
            none = at_once and places < 0.0  # packets that come one by one get through
            blocked = 1.0 if none or (tcp and too_long > 0.0) else min(too_long, 1.0)
            repeats = s.link.arq != "none" and train.frames > train.packets
            flush = (s.link.flush_timeout_s if repeats else None) or inf
            lost = 1.0 - (1.0 - train.loss) * (1.0 - blocked)
            found.append(Visit("port", port, train, 0.0, 0.0, lost, 0.0, places, flush, node))
            before = hop.kind
        return tuple(found)

    def _served_in_events(self, hop: Hop, sizes: Sequence[tuple[float, float]], beside: float) -> Visit:
        """Return the stop of segments at a link of Bluetooth Low Energy; `beside` bytes go the other way."""
        from btqueue.network.stations import anchors

        up = hop.target == self.plan.piconets[hop.index].central
        member = self.plan.piconets[hop.index].members.index(hop.source if up else hop.target)
        station, *wires = self._anchored(hop.index, member)
        pdus = anchors.pdus_of(self.scenario, sizes)
        facing = min(beside / pdus.each, float(self.scenario.le.payload_bytes))
        if self.data[hop.target, hop.source]:  # PDUs as long as these, in every exchange
            facing = max(facing, sum(pdus.payloads) / len(pdus.payloads))
        pdus = pdus._replace(beside=facing)
        events = station.events(pdus, up=up)
        service_s = station.service_s(pdus, events)
        beyond_s = station.lone_s(pdus, events, up=up) - service_s
        return Visit("wire", wires[up], NO_TRAIN, service_s, beyond_s, 0.0, pdus=pdus)

    def _in_events(
        self, own: Scenario, route: tuple[Hop, ...], forth: Visits, back: Visits, load: float, every: float,
        size: int, held: float,
    ) -> InEvents:  # fmt: skip
        """Return the visits of a flow and of its acknowledgements with the waits for anchor points.

        A source that always has data does not wait for them, and the acknowledgements of its window let it go
        on. Others come at random, but for the share `held` that leaves as an acknowledgement comes.
        """
        transport, hop = own.transport, route[0]
        late_s = own.link.l2cap_delay_s + own.link.baseband_delay_s + own.run.jitter_s
        late_s += transport.tcp_delay_s + transport.ip_delay_s
        counts = self.data[hop.source, hop.target], self.data[hop.target, hop.source]
        alone = len(route) == 1 and counts == (1, 0) and late_s == 0.0
        pdus = forth[0].pdus if alone and back else None
        if transport.protocol == "tcp" and pdus is not None:
            return self._of_a_window(own, forth[0], back[0], load, size, held, every)
        share = 0.0 if load == inf and all(hop.kind == "bluetooth" for hop in route) else 0.5
        forth = self._until_anchors(forth, share, load if load < inf else 0.0)
        answered = share == 0.0 and transport.receive_window_segments > every
        return InEvents(forth, self._until_anchors(back, 0.0 if answered else 0.5, 0.0), every)

    def _of_a_window(
        self, own: Scenario, data: Visit, ack: Visit, load: float, size: int, held: float, together: float
    ) -> InEvents:
        """Return a TCP flow that has the exchanges of a link alone.

        Its service is the time of a segment among the exchanges of a full window. Of a source with pauses
        segments that wait at an anchor point are a burst, of a Poisson number. A segment that an
        acknowledgement lets out has no wait for an anchor point: it goes in the same event, or in the next
        one if that acknowledgement closes its event. A window has room for a share of the segments that are
        not acknowledged, and the rest waits at the sender.
        """
        from btqueue.network.stations import anchors

        transport, (station, up) = own.transport, self._stations()[data.index]
        pdus, answer = anchors.pdus_of(self.scenario, [(size, 1.0)]), ack.pdus or anchors.NO_PDUS
        every = transport.ack_every_segments if transport.delayed_ack else 1
        window = float(min(transport.receive_window_segments, transport.send_buffer_segments or inf))
        most = max(anchors.WINDOW // pdus.each, 2.0 * every)
        pdus = pdus._replace(
            beside=0.0, window=window - max(ceil((window - most) / every), 0) * every,
            every=int(min(every, window)), answer=(answer.payloads, answer.ends),
        )  # fmt: skip
        lone, period_s = pdus._replace(window=1.0, every=1), station.interval_s / max(station.taken, 1e-9)
        there_s, alone_s = station.burst_s(lone, 1, up=up)
        cycle = anchors.exchanges_of(station, lone, up)
        service_s = station.service_s(pdus, station.events(pdus, up=up))
        again_s = max(station.service_s(lone, station.events(lone, up=up)) - there_s - alone_s, 0.0)
        timer_s = late_s = timed_s = 0.0
        if every > 1:  # after its timer an acknowledgement waits for an anchor point
            timer_s = transport.ack_delay_s / (2.0 if transport.ack_clock == "tick" else 1.0)
            asleep_s = period_s * (1 + own.le.latency * up)  # a peripheral that waits for it has no data
            late_s = ceil((there_s + timer_s) / asleep_s) * asleep_s - there_s - timer_s - alone_s
            if load == inf and service_s >= timer_s:
                together = 1.0  # the timer expires before the next segment is across
            if window < every:  # each one waits for the timer; the answer of the receiver counts it, too
                timed_s, again_s = timer_s + late_s, period_s * bool(cycle.closes[cycle.answered].any())
                service_s = max(service_s, (there_s + timed_s + alone_s + again_s) / window)
        visit = data._replace(service_s=service_s, delay_s=there_s - service_s, pdus=pdus)
        ack = ack._replace(service_s=0.0, delay_s=-timed_s)
        if load * service_s >= 1.0:
            return InEvents((visit._replace(delay_s=0.0),), (ack,), together, late_s)
        (visit,) = self._until_anchors((visit,), 0.5, load)
        anchor_s = period_s if up else station.listens_s / max(station.taken, 1e-9)
        back_s = station.answered_s(lone, load * (1.0 - held) * anchor_s, window, up=up)
        shared = 1 < every <= window and not (shares_segments(own) and transport.nagle)
        clock_s = max(timer_s + late_s, 0.0) * shared
        run_s = station.run_s(pdus._replace(window=inf), up=up)
        # until further segments complete the count; in the law of receivers, too
        random_s = float((1.0 - pdtr(np.arange(every - 1), load * clock_s)).sum()) / load
        shared_s, asleep = random_s, own.le.latency and not up
        if every == 2 and shared and there_s < anchor_s and not asleep:
            clock, sleeps = (
                max(round(ceil((there_s + timer_s) / one) * one / anchor_s), 1)
                for one in (period_s, asleep_s)
            )
            alone = station.burst_s(lone, 1, up=up, come=load * anchor_s)[1]
            late = alone / anchor_s * (there_s + alone_s > period_s / 2.0)
            shared_s = anchor_s * anchors.until_shared(
                max(round(load * anchor_s, 6), 1e-6), late, there_s / anchor_s, clock, sleeps
            )
        if run_s > 0.0 and service_s < period_s:  # acknowledgements wait for the last credits
            behind = (
                load * (visit.delay_s + service_s) / (1.0 - load * run_s)
            )  # segments of the rest of a run
            back_s = max(back_s, alone_s + run_s * min(behind, (window - 1.0) / 2.0))
        elif run_s > 0.0:
            back_s += run_s * anchors.until_run_ends(load * run_s, int(window), clock_s / run_s) - random_s
        trip_s = visit.delay_s + service_s + back_s
        soon_s = trip_s - there_s - alone_s - again_s
        trip_s -= held * soon_s
        use = load * service_s
        wait_s = use * service_s / (2.0 * (1.0 - use))
        share, last_s = station.with_room(pdus, load, service_s, back_s + shared_s / 2.0, clock_s, up=up)
        longest_s = trip_s - station.beyond_wire_s(pdus, load, service_s, up=up)
        low, high, most_s = 0.0, longest_s, (trip_s + wait_s + timed_s) * share - timed_s
        if shared:  # the first segment is timed
            most_s += (last_s / 2.0 - random_s + -window % every * service_s) * (1.0 - share)
            most_s += (shared_s - random_s) * share
            high += max(shared_s - random_s, 0.0)
        elif window == 1.0:  # a queue whose first service is another one
            first_s = longest_s + timed_s
            most_s = first_s * (1.0 - use + load * service_s) / (1.0 - use + load * first_s) - timed_s
            high = max(high, most_s)
        most_s = min(most_s, 0.999 * window / load - random_s)  # the window carries the load
        decay, let_out = load * wait_s / (load * wait_s + use), ceil(window / every) * every - every + 1
        for _ in range(20):  # the solver takes the waits that a window lets into the network
            base_s = (low + high) / 2.0
            queued_s = wait_s * (1.0 - decay ** max(let_out - max(base_s / service_s, 1.0), 0.0))
            low, high = (base_s, high) if base_s + queued_s < most_s else (low, base_s)
        cycle_s = visit.cycle_s * (1.0 - held) * base_s / trip_s
        visit = visit._replace(delay_s=base_s - back_s - service_s, cycle_s=cycle_s)
        ack = ack._replace(delay_s=back_s)
        return InEvents((visit,), (ack,), together, late_s, soon_s, held, trip_s - base_s)

    def _stations(self) -> dict[int, tuple[anchors.Station, bool]]:
        """Return the link of each wire, and whether the wire is its direction up."""
        return {
            wire: (station, bool(up))
            for station, *wires in self.anchored.values()
            for up, wire in enumerate(wires)
        }

    def _until_anchors(self, visits: Visits, first: float, load: float) -> Visits:
        """Return visits with the waits for the next anchor points of their links.

        Args:
            visits: visits of a way.
            first: wait at the first link: 0.5 for a random time, 1 for a whole interval, 0 for none.
            load: segments a second that come by chance.
        """
        found, share, links = [], first, self._stations()
        for visit in visits:
            if visit.pdus is None:
                found.append(visit)
                continue
            station, up = links[visit.index]
            wait_s = 2.0 * share * station.waits_s(visit.pdus, load, up=up)
            by_chance = 2.0 * wait_s if share == 0.5 else 0.0
            if load > 0.0:
                wait_s += station.beyond_wire_s(visit.pdus, load, visit.service_s, up=up)
            found.append(visit._replace(delay_s=visit.delay_s + max(wait_s, 0.0), cycle_s=by_chance))
            share = 0.5
        return tuple(found)


def _messages(own: Scenario, index: int, plan: FlowPlan) -> list[list[tuple[int, int]]]:
    """Return the user bytes and the number of segments of each message of this end of a session."""
    traffic, transport = own.traffic, own.transport
    if traffic.source != "request-reply":
        return []
    full = transport.centaurus_packet_bytes if transport.protocol == "centaurus" else transport.mss_bytes
    client = plan.reverse is not None and index < plan.reverse
    sizes = (traffic.request_bytes, traffic.goodbye_bytes) if client else (traffic.reply_bytes,)
    found = []
    for size in sizes:
        whole, rest = divmod(size, full)
        found.append([(part, n) for part, n in ((full, whole), (rest, 1)) if part and n])
    return found


def _answers(own: Scenario, messages: tuple[tuple[Piece, ...], ...], index: int, plan: FlowPlan) -> float:
    """Return the acknowledgements, or control messages, for each segment of a session."""
    segments = [sum(piece.count for piece in message) for message in messages]
    if not any(segments):
        return 0.0
    if own.transport.protocol == "centaurus":
        # PROCEED and ACK answer each object; the other end sends OBJ and DONE with its data; a client, NOPE
        client = plan.reverse is not None and index < plan.reverse
        objects = 2 if own.traffic.goodbye_bytes else 1
        return (2 + 2 * objects if client else 2 + 3 * objects) / sum(segments)
    every = own.transport.ack_every_segments if own.transport.delayed_ack else 1
    return sum(ceil(count / every) for count in segments) / sum(segments)


def _sizes(own: Scenario, scenario: Scenario, plan: FlowPlan) -> list[tuple[int, float]]:
    """Return the user bytes of the segments of a message, and the number of each."""
    traffic, transport = own.traffic, own.transport
    if transport.protocol == "tcp" and shares_segments(own):
        full, rest = divmod(traffic.message_bytes, transport.mss_bytes)
        return [
            (size, float(count)) for size, count in ((transport.mss_bytes, full), (rest, 1)) if count and size
        ]
    return [(size, float(count)) for size, count in segments_of(scenario, plan).sizes]


def _arrivals(own: Scenario, kilobits: float, number: float) -> tuple[float, float, float]:
    """Return segments offered a second, the chance that a message follows in a burst, segments of a message.

    A burst of an interrupted Bernoulli process has one message a slot: it counts as messages that come at
    once.
    """
    traffic = own.traffic
    if traffic.source == "greedy":
        return inf, 0.0, 1.0
    if traffic.source == "request-reply":
        return 0.0, 0.0, 1.0
    if traffic.source == "file":
        times, sizes = read_arrivals(traffic.arrival_file or "")
        load = sum(sizes) / 125.0 / (traffic.file_period_s or times[-1] or 1.0)
        return load / kilobits, 0.0, number
    load = traffic.load_kbps / kilobits
    return load, more_of(traffic, load / number), number


def more_of(traffic: Any, rate: float) -> float:
    """Return the chance that a message follows at once, in a burst, at a rate of messages (1/s)."""
    if traffic.source != "ibp":
        return 0.0
    per_slot = min(rate * SLOT_S, 1.0)
    return max(1.0 - (1.0 - per_slot) * 2.0 * (1.0 - per_slot) / (traffic.scv + 1.0 - per_slot), 0.0)


def _price(s: Scenario, states: tuple[State, ...], size: float) -> float:
    """Return the tokens (bits) of a segment of `size` bytes above L2CAP."""
    pdu = size + s.link.l2cap_header_bytes
    if s.flow_control.charge != "payload":
        return pdu * 8.0
    ber = sum(state.share * (state.ber or 0.0) for state in states)
    return sum(kind.payload_bytes for kind in kinds_of(s.link, s.radio.bits, int(pdu), ber, 255.0)) * 8.0
