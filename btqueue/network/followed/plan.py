"""A scenario as the arrays of a network at rest (`followed.world`)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from btqueue.baseband import PACKET_TYPES, SLOT_S, PacketType, segment
from btqueue.baseband.voice import VoiceLinks
from btqueue.channel import packet_error_rate
from btqueue.channel.interference import spared_by_neighbour
from btqueue.network.followed import air, bridges, radio, sender, sources, stream
from btqueue.network.followed.world import (
    BRIDGE,
    CHANNEL,
    CLOCK,
    EVENT,
    FATES,
    FLOW,
    ITEM,
    LAYOUT,
    LINK,
    MEDIUM,
    MOST_BLOCKS,
    MOST_PICONETS,
    NEVER,
    NODE,
    NONE,
    PACKET,
    PICONET,
    PIECE,
    PORT,
    SENT,
    UNLIMITED,
    World,
    chained,
    records,
)
from btqueue.network.whole_segments import cut_of
from btqueue.scenario import Scenario
from btqueue.scenario.network import OutsideLink
from btqueue.scenario.radio import Radio
from btqueue.scenario.topology import FlowPlan, topology
from btqueue.scenario.traffic import Traffic
from btqueue.scenario.transport import Transport

ITEMS = 256
"""Items that there is room for at first: at least."""
ITEMS_A_STEP = 4
"""The same, in multiples of what a step can bring."""
ROUND_TRIPS, LEAST_TRIPS = 1 << 15, 1 << 9
"""Round trips kept of all flows together, and of each: at least."""
RANDOM = 1 << 15
"""Random numbers that are drawn at a time."""
LEAST_RATE = 1e-100
"""Bytes a slot below which tokens never come."""
DISCIPLINES = {
    "e-limited": air.E_LIMITED, "1-limited": air.E_LIMITED, "round-robin": air.E_LIMITED,
    "exhaustive": air.EXHAUSTIVE, "gated": air.GATED, "fep": air.FEP, "lwrr": air.LWRR, "slq": air.SLQ,
    "ldq": air.LDQ,
}  # fmt: skip
SINGLE = ("1-limited", "round-robin")
SCHEDULES = {"walk-in": bridges.WALK_IN, "sniff": bridges.SNIFF, "pcss": bridges.PSEUDO_RANDOM}
STAYS = {"visit": bridges.VISIT, "cycle": bridges.CYCLE, "complete": bridges.COMPLETE}
VARIANTS = {
    "tahoe": sender.TAHOE, "reno": sender.RENO, "newreno": sender.NEWRENO, "sack": sender.SACK,
    "vegas": sender.VEGAS,
}  # fmt: skip
NAGLES = {False: stream.NO_NAGLE, True: stream.NAGLE, "minshall": stream.MINSHALL}
LAWS = {
    "greedy": sources.GREEDY, "poisson": sources.POISSON, "ibp": sources.BERNOULLI,
    "periodic": sources.PERIODIC,
}  # fmt: skip


class Spec(NamedTuple):
    """What a flow sends, and how."""

    traffic: Traffic
    transport: Transport


def slots(seconds: float) -> float:
    """Return a time in slots."""
    return seconds / SLOT_S


class Plan:
    """A network that can be followed.

    Attributes:
        scenario, topology: what it is made of.
        specs: of each flow.
        in_flight: how many segments of each flow may be outstanding.
        kind_of: number of each flow's class: flows of a class go the same way through the network, but for
            their places in the polling cycles, and send the same.
        random: whether anything is left to chance.
        phases: whether all chance is in how things begin.
    """

    def __init__(self, scenario: Scenario) -> None:
        """Read a scenario that is covered (`followed.covers`)."""
        self.scenario, self.topology = scenario, topology(scenario)
        views = [scenario.of_flow(flow.spec) for flow in self.topology.flows]
        self.specs = [Spec(own.traffic, own.transport) for own in views]
        messages = [self._messages(number, spec) for number, spec in enumerate(self.specs)]
        self.in_flight = [most_in_flight(*one) for one in zip(messages, self.specs, strict=True)]
        self._layouts: dict[tuple[int, ...], int] = {}
        self._layout_rows: list[tuple[int, int, int, int, int]] = []
        self._piece_rows: list[tuple[int, int, int, int]] = []
        self._types = [PACKET_TYPES[name] for name in scenario.link.packets]
        self._radios: list[Radio] = [scenario.radio]
        self._radio_of = self._own_radios()
        self.port_of: dict[tuple[int, int], int] = {}
        self._channel_keys: dict[tuple, int] = {}
        self._media_keys: dict[tuple, int] = {}
        self.ports = self._ports()
        self.routes, self._starts = self._routes()
        self.kind_of = self._kinds()
        self.random, self.phases = self._chance()

    def world(self, seed: int) -> World:
        """Return the network at rest; connections begin as the scenario says.

        Args:
            seed: of all that is left to chance.
        """
        scenario = self.scenario
        chance = np.random.default_rng(seed)
        flows = self._flows(chance)
        most = max(self.in_flight)
        width, burst = 1 << most.bit_length(), 2 * most + 8
        layouts, pieces = filled(self._layout_rows, LAYOUT), filled(self._piece_rows, PIECE)
        kept = max(ROUND_TRIPS // len(flows), LEAST_TRIPS)
        kept = 1 << (kept.bit_length() - 1)
        places = max(ITEMS, ITEMS_A_STEP * burst)
        links, piconets = self._piconets()
        media, media_ports = self._media()
        bridge_rows, bridge_places = self._bridges(chance)
        for place, bridge in enumerate(bridge_rows):
            if bridge["schedule"] == bridges.WALK_IN:
                for k in range(bridge["count"]):
                    piconet, link = bridge_places[2 * (place * MOST_PICONETS + k) :][:2]
                    if link == NONE and k != bridge["current"]:
                        piconets["away"][piconet] = 1
        sizes = np.array(
            [width, len(self._types), kept, burst, scenario.network.relay == "segment"], np.int64
        )
        return World(
            clock=records(1, CLOCK),
            events=records(places + 8 * (len(flows) + len(self.ports) + len(piconets)), EVENT),
            items=chained(records(places, ITEM)),
            packets=chained(records(places * max(int(layouts["pieces"].max()), 1), PACKET)),
            reports=np.zeros(2 * MOST_BLOCKS * places, np.int64),
            flows=flows,
            sent=records(width * len(flows), SENT),
            early=np.zeros(2 * width * len(flows), np.int64),
            ports=self.ports.copy(),
            links=links,
            piconets=piconets,
            bridges=bridge_rows,
            places=bridge_places,
            media=media,
            media_ports=media_ports,
            nodes=self._nodes(),
            channels=self._channels(),
            random=np.zeros(RANDOM),
            trips=np.zeros(kept * len(flows)),
            layouts=layouts,
            pieces=pieces,
            routes=self.routes,
            errors=self._errors(),
            sizes=sizes,
            fates=np.zeros(FATES * len(flows), np.int64),
        )

    # ---------------------------------------------------------------------------------------------- flows

    def _lay_out(self, sizes: tuple[int, ...]) -> int:
        """Lay out segments with so many user bytes, side by side; return the number of the first layout."""
        if sizes in self._layouts:
            return self._layouts[sizes]
        link, headers = self.scenario.link, self.scenario.transport.header_bytes
        full = self.scenario.flow_control.charge == "payload"
        self._layouts[sizes] = len(self._layout_rows)
        for size in sizes:
            first, frame = len(self._piece_rows), size + headers + link.l2cap_header_bytes
            cut = segment(frame, self._types, link.segmentation) if self.topology.piconets else []
            for piece in cut:
                price = piece.packet.payload_bytes if full else piece.carried_bytes
                kind = self._types.index(piece.packet)
                self._piece_rows.append((kind, piece.packet.slots, piece.carried_bytes, price))
            self._layout_rows.append((size, size + headers, frame, first, len(cut)))
        return self._layouts[sizes]

    def _flows(self, chance: np.random.Generator) -> np.recarray:
        t = self.scenario.transport
        self._layouts, self._layout_rows, self._piece_rows = {}, [], []
        rows = records(len(self.specs), FLOW)
        ack = self._lay_out((0,))
        for number, (spec, flow) in enumerate(zip(self.specs, self.topology.flows, strict=True)):
            own = rows[number]
            sizes = self._messages(number, spec)
            grain = grain_of(sizes, spec.transport)
            shared = range(grain, t.mss_bytes + 1, grain)
            cut = segments_of(sizes, t.mss_bytes) if grain == t.mss_bytes else shared
            own["unit"], own["grain"] = t.mss_bytes // grain, grain
            own["first_layout"], own["layouts"] = self._lay_out(tuple(cut)), len(cut)
            own["ack_layout"] = ack
            own["source"], own["target"] = flow.source, flow.target
            own["forth"], own["back"] = self._starts[number]
            own["variant"] = VARIANTS[spec.transport.variant]
            own["window"] = spec.transport.receive_window_segments
            own["nagle"] = NAGLES[spec.transport.nagle]
            self._application(own, number, spec, flow, sizes, chance)
        rows["cwnd"], rows["ssthresh"] = t.initial_window_segments, t.initial_ssthresh_segments
        rows["rto"], rows["min_rto"] = slots(t.initial_rto_s), slots(t.min_rto_s)
        rows["max_rto"], rows["granularity"] = slots(t.max_rto_s), slots(t.clock_granularity_s)
        rows["smoothed"], rows["recover"] = -1.0, -1
        rows["last_short"] = -1
        rows["deadline"] = rows["alarm"] = rows["ack_deadline"] = rows["ack_alarm"] = NEVER
        rows["alpha"], rows["beta"], rows["gamma"] = t.alpha, t.beta, t.gamma
        rows["per_round"] = t.vegas_adjustment == "per-rtt"
        rows["timestamps"], rows["backoff"] = t.timestamps, t.rto_backoff
        rows["limited_transmit"], rows["hold_ssthresh"] = t.limited_transmit, t.hold_ssthresh
        rows["window_limited"], rows["most_blocks"] = t.window_limited_growth, t.sack_blocks
        rows["every"] = t.ack_every_segments if t.delayed_ack else 0
        rows["ack_delay"], rows["tick"] = slots(t.ack_delay_s), t.ack_clock == "tick"
        rows["tick_phase"] = chance.random(len(rows)) * slots(t.ack_delay_s)
        return rows

    def _messages(self, number: int, spec: Spec) -> list[int]:
        """Return the sizes of the messages of a flow, in turn."""
        traffic, flow = self.scenario.traffic, self.topology.flows[number]
        if spec.traffic.source != "request-reply":
            return [spec.traffic.message_bytes]
        if flow.reverse is not None and flow.reverse < number:
            return [traffic.reply_bytes]
        return [traffic.request_bytes, *([traffic.goodbye_bytes] if traffic.goodbye_bytes else [])]

    def _application(
        self,
        own: np.record,
        number: int,
        spec: Spec,
        flow: FlowPlan,
        sizes: list[int],
        chance: np.random.Generator,
    ) -> None:
        traffic, grain = self.scenario.traffic, int(own["grain"])
        own["client"] = NONE
        own["due"] = own["message"] = NEVER
        own["length"] = math.ceil(sizes[0] / grain)
        start = slots(spec.traffic.start_s)
        own["start"] = start
        if spec.traffic.source == "request-reply":
            assert flow.reverse is not None
            own["client"], own["server"] = min(number, flow.reverse), max(number, flow.reverse)
            own["law"] = sources.CLIENT if number < flow.reverse else sources.SERVER
            replies = grain_of([traffic.reply_bytes], spec.transport)
            own["request"] = math.ceil(traffic.request_bytes / grain)
            own["goodbye"] = math.ceil(traffic.goodbye_bytes / grain)
            own["reply"] = math.ceil(traffic.reply_bytes / replies)
            own["pause"] = slots(traffic.pause_s)
            return
        own["law"] = LAWS[spec.traffic.source]
        if spec.traffic.source == "greedy":
            own["message"] = start
            return
        gap = spec.traffic.message_bytes * 8 / (spec.traffic.load_kbps * 1000) / SLOT_S
        own["gap"] = gap
        if spec.traffic.source == "ibp":
            own["leave_active"], own["leave_idle"] = bernoulli(1.0 / gap, traffic.scv)
        first = {"poisson": -math.log(1.0 - chance.random()), "ibp": -math.log(1.0 - chance.random())}
        aligned = 0.0 if traffic.phase == "aligned" else chance.random()
        own["message"] = start + gap * first.get(spec.traffic.source, aligned)

    # ------------------------------------------------------------------------------------- ports and routes

    def _routes(self) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Return the ports of all ways, NONE behind each, and where the two ways of each flow begin."""
        row, starts = [], []
        for flow in self.topology.flows:
            begin = []
            for source, target in ((flow.source, flow.target), (flow.target, flow.source)):
                begin.append(len(row))
                route = self.topology.route(source, target)
                row += [self.port_of[hop.source, hop.target] for hop in route] + [NONE]
                hops = route if self.scenario.network.relay == "segment" else route[:1]
                for hop in hops:
                    self._shape(self.port_of[hop.source, hop.target])
            starts.append((begin[0], begin[1]))
        return np.array(row, np.int64), starts

    def _shape(self, number: int) -> None:
        """Put a token bucket in front of a port that whole items enter."""
        control, port = self.scenario.flow_control, self.ports[number]
        if port["outside"]:
            return
        port["whole"] = control.drop == "segment"
        if not control.enabled:
            return
        port["shaped"] = 1
        port["tokens"] = port["depth"] = control.bucket_bytes
        port["rate"] = max(control.token_rate_kbps * 125.0 * SLOT_S, LEAST_RATE)
        port["buffer"] = control.buffer_packets

    def _ports(self) -> np.recarray:
        scenario, plan = self.scenario, self.topology
        rows: list[dict] = []
        bridge_nodes, control, polling = plan.bridge_nodes, scenario.flow_control, scenario.polling
        arq = scenario.link.arq
        most = {"none": 0, "unlimited": UNLIMITED}.get(arq, 0) if isinstance(arq, str) else arq
        flush = scenario.link.flush_timeout_s
        for index, piconet in enumerate(plan.piconets):
            ordinary = max(1, sum(member not in bridge_nodes for member in piconet.members))
            bridge_room = polling.bridge_buffer_packets or ordinary * polling.limit
            for member in piconet.members:
                for down in (True, False):
                    own_room = control.baseband_packets or UNLIMITED
                    room = bridge_room if member in bridge_nodes else own_room
                    if down:
                        room = control.central_buffer_packets or UNLIMITED
                    ends = (piconet.central, member) if down else (member, piconet.central)
                    self.port_of[ends] = len(rows)
                    rows.append(
                        {
                            "node": ends[0],
                            "piconet": index,
                            "limit": room,
                            "most": most,
                            "flush": NEVER if flush is None else slots(flush),
                            "delay": slots(scenario.link.baseband_delay_s),
                            "channel": self._channel(index, member, down),
                            "medium": NONE,
                        }
                    )
        for index, outside in enumerate(plan.outside):
            link = outside.link
            for back in (False, True):
                ends = (outside.target, outside.source) if back else (outside.source, outside.target)
                loss = link.loss_back if back and link.loss_back is not None else link.loss
                self.port_of[ends] = len(rows)
                rows.append(
                    {
                        "outside": 1,
                        "node": ends[0],
                        "piconet": NONE,
                        "limit": link.buffer_packets,
                        "delay": slots(link.delay_s),
                        "jitter": slots(link.jitter_s),
                        "loss": loss,
                        "loss_block": link.loss_block_bytes or 0,
                        "medium": self._medium_key(index, back),
                        "channel": NONE,
                    }
                )
        ports = records(len(rows), PORT)
        for number, row in enumerate(rows):
            for name, value in row.items():
                ports[name][number] = value
        return ports

    def _medium_key(self, index: int, back: bool) -> int:
        link = self.topology.outside[index].link
        alone = (index,) if link.half_duplex else (index, back)
        key = alone if link.medium is None else ("shared", link.medium)
        return self._media_keys.setdefault(key, len(self._media_keys))

    def _media(self) -> tuple[np.recarray, np.ndarray]:
        """Return the media, and their ports side by side."""
        ports_of: dict[int, list[int]] = {}
        link_of: dict[int, OutsideLink] = {}
        for outside in self.topology.outside:
            for ends in ((outside.source, outside.target), (outside.target, outside.source)):
                port = self.port_of[ends]
                medium = int(self.ports["medium"][port])
                ports_of.setdefault(medium, []).append(port)
                link_of.setdefault(medium, outside.link)
        rows = records(len(ports_of), MEDIUM)
        place = 0
        for row, medium in zip(rows, sorted(ports_of), strict=True):
            link, count = link_of[medium], len(ports_of[medium])
            row["rate"] = link.rate_kbps * 125.0 * SLOT_S
            row["header"], row["first_port"], row["ports"] = link.header_bytes, place, count
            row["serving"], row["up_mean"], row["down_mean"] = NONE, slots(link.up_s), slots(link.down_s)
            place += count
        return rows, np.array([port for medium in sorted(ports_of) for port in ports_of[medium]], np.int64)

    # ------------------------------------------------------------------------------------ piconets, bridges

    def _piconets(self) -> tuple[np.recarray, np.recarray]:
        """Return the links and the piconets."""
        scenario, plan, polling = self.scenario, self.topology, self.scenario.polling
        links = records(sum(len(piconet.members) for piconet in plan.piconets), LINK)
        piconets = records(len(plan.piconets), PICONET)
        bridge_of = {bridge.node: index for index, bridge in enumerate(plan.bridges)}
        single = polling.discipline in SINGLE
        limit, first = 1 if single else polling.limit, 0
        period, reserved = 0, 0
        if scenario.voice.packet != "none":
            voice = VoiceLinks(packet=scenario.voice.packet, links=scenario.voice.links)
            period, reserved = (voice.period, voice.reserved) if scenario.voice.links else (0, 0)
        for own, piconet in zip(piconets, plan.piconets, strict=True):
            ordinary = max(1, sum(member not in bridge_of for member in piconet.members))
            bridge_limit = polling.bridge_limit or (1 if single else ordinary * polling.limit)
            for place, member in enumerate(piconet.members):
                link = links[first + place]
                link["down"] = self.port_of[piconet.central, member]
                link["up"] = self.port_of[member, piconet.central]
                link["bridge"] = bridge_of.get(member, NONE)
                link["limit"] = bridge_limit
            has_bridges = any(member in bridge_of for member in (piconet.central, *piconet.members))
            own["first_link"], own["links"] = first, len(piconet.members)
            # a discipline that cannot be followed is no trait of a piconet that no flow crosses
            own["discipline"] = DISCIPLINES.get(polling.discipline, air.E_LIMITED)
            own["limit"] = limit
            own["max_weight"], own["period"], own["reserved"] = polling.max_weight, period, reserved
            own["bridge"] = bridge_of.get(piconet.central, NONE)
            own["windows"] = has_bridges and polling.bridge_schedule != "walk-in"
            own["can_sleep"] = not has_bridges and own["discipline"] <= air.GATED
            own["down_packet"] = own["up_packet"] = NONE
            own["phase"] = air.VISIT
            first += len(piconet.members)
        links["active"], links["weight"] = 1, polling.max_weight
        return links, piconets

    def _bridges(self, chance: np.random.Generator) -> tuple[np.recarray, np.ndarray]:
        plan, polling = self.topology, self.scenario.polling
        rows = records(len(plan.bridges), BRIDGE)
        places = np.full(2 * MOST_PICONETS * max(len(plan.bridges), 1), NONE, np.int64)
        number = {(p, m): n for n, (p, m) in enumerate(
            (index, member) for index, piconet in enumerate(plan.piconets) for member in piconet.members
        )}  # fmt: skip
        for place, (row, bridge) in enumerate(zip(rows, plan.bridges, strict=True)):
            count = len(bridge.piconets)
            for k, piconet in enumerate(bridge.piconets):
                spot = 2 * (place * MOST_PICONETS + k)
                places[spot] = piconet
                places[spot + 1] = number.get((piconet, bridge.node), NONE)
            own = [k for k, p in enumerate(bridge.piconets) if plan.piconets[p].central == bridge.node]
            row["schedule"], row["stay"] = SCHEDULES[polling.bridge_schedule], STAYS[polling.residence]
            row["stay_cycles"], row["count"] = polling.residence_cycles, count
            row["current"], row["switches"] = own[0] if own else 0, polling.switch_delay
            row["window"] = max(4, round(polling.rendezvous_s / count / SLOT_S))
            row["offset"] = chance.integers(1 << 30)
        return rows, places

    # ----------------------------------------------------------------------------------------- radio, hosts

    def _own_radios(self) -> dict[tuple[int, bool], int]:
        """Return which radio a direction of a member's links has, where it is one of its own."""
        own, number = {}, {name: place for place, name in enumerate(self.topology.nodes)}
        for link in self.scenario.radio.links:
            of_link = link.applied_to(self.scenario.radio)
            if of_link not in self._radios:
                self._radios.append(of_link)
            for down in (True, False):
                if link.direction in ("both", "down" if down else "up"):
                    own[number[link.node], down] = self._radios.index(of_link)
        return own

    def _channel(self, piconet: int, member: int, down: bool) -> int:
        """Return the channel of a direction of a link; both directions share one if their radio is one."""
        number = self._radio_of.get((member, down), 0)
        shared = number == 0 and self.scenario.radio.fading == "per-piconet"
        key = (number, piconet) if shared else (number, piconet, member)
        return self._channel_keys.setdefault(key, len(self._channel_keys))

    def _channels(self) -> np.recarray:
        rows = records(len(self._channel_keys), CHANNEL)
        rates = self._errors().reshape(len(self._radios), -1)
        for row, key in zip(rows, self._channel_keys, strict=True):
            own = self._radios[key[0]]
            row["radio"], row["looked"] = key[0], radio.LONG_AGO
            if not rates[key[0]].any():
                row["model"] = radio.PERFECT
            elif own.model == "gilbert-elliott":
                row["model"] = radio.TWO_STATES
                row["relaxation"] = (1.0 / own.good_s + 1.0 / own.bad_s) * SLOT_S
                row["bad_share"] = own.bad_s / (own.good_s + own.bad_s)
            elif own.model == "alternating":
                row["model"], row["relaxation"] = radio.ALTERNATING, slots(own.period_s)
            else:
                row["model"] = radio.CONSTANT
        return rows

    def _errors(self) -> np.ndarray:
        """Return packet error rates, [radio, kind of packet, bad]."""
        found = np.zeros((len(self._radios), len(self._types), 2))
        for number, own in enumerate(self._radios):
            for kind, packet in enumerate(self._types):
                alone = packet_rates(own, packet)
                hit = 1.0 - spared_by_neighbour(packet.air_time_us) ** own.interferers
                found[number, kind] = alone + hit - alone * hit
        return found.ravel()

    def _nodes(self) -> np.recarray:
        scenario, t = self.scenario, self.scenario.transport
        rows = records(len(self.topology.nodes), NODE)
        tcp, ip = slots(t.tcp_delay_s), slots(t.ip_delay_s)
        l2cap, baseband = slots(scenario.link.l2cap_delay_s), slots(scenario.link.baseband_delay_s)
        rows["delay"], rows["first_s"], rows["second_s"] = tcp, ip, l2cap
        rows["jitter"] = slots(scenario.run.jitter_s)
        rows["up_delay"], rows["up_first"], rows["up_second"] = tcp + baseband, l2cap, ip
        rows["room"] = scenario.link.node_buffer_bytes or UNLIMITED
        return rows

    # ------------------------------------------------------------------------------------------ properties

    def _kinds(self) -> list[int]:
        numbers: dict[tuple, int] = {}
        specs = {spec: number for number, spec in enumerate(dict.fromkeys(self.specs))}
        company: dict[int, list[tuple[int, bool]]] = {}  # of each node: what begins there, and what ends
        for flow, spec in zip(self.topology.flows, self.specs, strict=True):
            company.setdefault(flow.source, []).append((specs[spec], True))
            company.setdefault(flow.target, []).append((specs[spec], False))
        central = {piconet.central for piconet in self.topology.piconets}
        found = []
        for flow, spec in zip(self.topology.flows, self.specs, strict=True):
            beside = [tuple(sorted(company[end])) for end in (flow.source, flow.target) if end not in central]
            ways = [self._key(self.topology.route(a, b)) for a, b in (
                (flow.source, flow.target), (flow.target, flow.source)
            )]  # fmt: skip
            role = 0 if spec.traffic.source != "request-reply" else 1 + (flow.reverse or flow.source < 0)
            found.append(numbers.setdefault((spec, role, *ways, *beside), len(numbers)))
        return found

    def _key(self, route: tuple) -> tuple:
        """Return what the hops of a way have in common with those of flows alike."""
        key = []
        for hop in route:
            if hop.kind == "outside":
                key.append(("outside", hop.index, hop.source))
                continue
            central = self.topology.piconets[hop.index].central
            down = hop.source == central
            member = hop.target if down else hop.source
            shared = member if member in self.topology.bridge_nodes else NONE
            key.append((hop.index, down, shared, self._radio_of.get((member, down), 0)))
        return tuple(key)

    def _chance(self) -> tuple[bool, bool]:
        """Return whether anything is left to chance while connections are followed, or only at first."""
        s, laws = self.scenario, {spec.traffic.source for spec in self.specs}
        ports = self.ports[sorted(set(self.routes.tolist()) - {NONE})]
        always = (
            bool({"poisson", "ibp"} & laws)
            or s.run.jitter_s > 0.0
            or bool(self._errors().any())
            or bool((ports["loss"] > 0.0).any() or (ports["outside"] * ports["jitter"] > 0.0).any())
            or any(outside.link.down_s > 0.0 for outside in self.topology.outside)
            or (len(self.topology.bridges) > 0 and s.polling.switch_delay)
            or (len(self.topology.bridges) > 0 and s.polling.bridge_schedule == "pcss")
        )
        first = ("periodic" in laws and s.traffic.phase == "random") or (
            s.transport.delayed_ack and s.transport.ack_clock == "tick"
        )
        return always or first, first and not always


def filled(rows: list[tuple], kind: np.dtype) -> np.recarray:
    """Return records with these rows."""
    return np.array(rows, kind).view(np.recarray)


def grain_of(messages: Sequence[int], transport: Transport) -> int:
    """Return the bytes of a grain (`followed.stream`): a full segment, unless messages share segments."""
    if transport.windows == "bytes":
        return math.gcd(transport.mss_bytes, *messages)
    return transport.mss_bytes


def segments_of(messages: Sequence[int], most: int) -> list[int]:
    """Return the user bytes of the segments of messages that share none; once, if all are alike."""
    cut = [size for message in messages for size in cut_of(message, most)]
    return cut[:1] if len(set(cut)) == 1 else cut


def most_in_flight(messages: Sequence[int], spec: Spec) -> int:
    """Return how many segments may be outstanding: full ones, and a short one at the end of each message."""
    window, mss = spec.transport.receive_window_segments, spec.transport.mss_bytes
    if grain_of(messages, spec.transport) == mss:
        return window
    short = 1 if spec.transport.nagle else math.ceil(window * mss / min(messages))
    return window + short + 1


def packet_rates(own: Radio, packet: PacketType) -> np.ndarray:
    """Return the error rates of a packet in the two states of a radio, by its own noise."""
    if own.model == "perfect":
        return np.zeros(2)
    if own.model == "constant" and own.per is not None:
        return np.full(2, own.per)
    bers = [own.ber, own.ber] if own.model == "constant" else [own.ber_good, own.ber_bad]
    return packet_error_rate(packet, np.array(bers), bits=own.bits)


def bernoulli(rate: float, scv: float) -> tuple[float, float]:
    """Return the chances of leaving the active and the idle state in a slot of a source of this rate."""
    both = 2.0 * (1.0 - rate) / (scv + 1.0 - rate)
    return min((1.0 - rate) * both, 1.0), min(rate * both, 1.0)
