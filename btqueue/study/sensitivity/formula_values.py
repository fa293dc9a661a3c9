"""The numbers of a scenario for the symbols of the closed forms, and the forms that apply to it.

A number comes straight from a key, from the packets that segments are cut into, or from the solver (the loss
and the round-trip time that TCP's laws take).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType

from btqueue.baseband import PACKET_TYPES, SLOT_S, TCP_PDU_OVERHEAD_BYTES, PacketType, segment
from btqueue.network.repetition import mean_error_rate
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology
from btqueue.scenario.traits import in_tables
from btqueue.study.evaluate import evaluate


@dataclass(frozen=True)
class Number:
    """The value of a symbol and where it comes from: a key, or words."""

    value: float
    source: str


Numbers = Mapping[str, Number]
"""By the name of the symbol."""


class Setting:
    """A scenario as the formulas see it: its packets, and the solver's answer about TCP."""

    def __init__(self, scenario: Scenario) -> None:
        """Take a scenario; it is solved only if a formula asks."""
        self.scenario = in_tables(scenario)

    @property
    def packets(self) -> list[PacketType]:
        """The packet types that segments may be cut into."""
        link = self.scenario.link
        names = link.packets if link.adaptation == "fixed" else link.adaptation_packets
        return [PACKET_TYPES[name] for name in names if name in PACKET_TYPES]

    def cut(self, size: int) -> list[tuple[PacketType, int]]:
        """Return type and tokens of each packet of `size` bytes."""
        link, control = self.scenario.link, self.scenario.flow_control
        types = [PACKET_TYPES[name] for name in link.packets]
        full = control.charge == "payload"
        fragments = segment(size, types, link.segmentation)
        return [(f.packet, f.packet.payload_bytes if full else f.carried_bytes) for f in fragments]

    @property
    def data(self) -> list[tuple[PacketType, int]]:
        """The packets of a data segment."""
        return self.cut(self.scenario.traffic.message_bytes + TCP_PDU_OVERHEAD_BYTES)

    @property
    def ack(self) -> list[tuple[PacketType, int]]:
        """The packets of an acknowledgement."""
        return self.cut(TCP_PDU_OVERHEAD_BYTES)

    def on_air(self, *, repeated: bool, ring: bool) -> float:
        """Return the slots of a segment and its acknowledgement where all stations always send.

        Each packet is repeated until it is there, if `repeated`. In a star the acknowledgement takes the
        place of an empty half of a frame, and the other half of a segment's frames is empty.
        """
        other = 0 if ring else 1
        found = 0.0
        for packets, more in ((self.data, other), (self.ack, -other)):
            for kind, _ in packets:
                error = mean_error_rate(self.scenario.radio, kind) if repeated else 0.0
                found += (kind.slots + more) / (1.0 - error) if error < 1.0 else math.inf
        return found

    @property
    def rate(self) -> Number:
        """The segments a second that a flow offers."""
        traffic = self.scenario.traffic
        found = traffic.load_kbps * 125.0 / traffic.message_bytes
        return Number(found, "segments a second: traffic.load_kbps over traffic.message_bytes")

    @property
    def token_rate(self) -> Number:
        """The tokens of a bucket in byte/s."""
        rate_kbps = self.scenario.flow_control.token_rate_kbps
        return Number(rate_kbps * 125.0, "flow_control.token_rate_kbps, in byte/s")

    @cached_property
    def solved(self) -> Mapping[str, float]:
        """The metrics by the solver; empty if it has no answer."""
        return evaluate(self.scenario).means


def applicable(setting: Setting) -> Mapping[str, Numbers]:
    """Return the closed forms that apply to a scenario, with the numbers of all their symbols.

    The mapping's keys are names in `btqueue.study.closed_forms.closed_forms`. Numbers outside the domain of a
    formula (a loss of 0 in TCP's laws) are left out.
    """
    found: dict[str, Numbers] = {}
    for name, numbers in chain(*(rule(setting).items() for rule in RULES)):
        if all(math.isfinite(number.value) for number in numbers.values()):
            found[name] = numbers  # noqa: PERF403
    return MappingProxyType(found)


def _constant_radio(setting: Setting) -> dict[str, Numbers]:
    radio = setting.scenario.radio
    if radio.model != "constant" or radio.per is not None or radio.ber == 0:
        return {}
    error = {"b": Number(radio.ber, "radio.ber")}
    bits = "payload" if radio.bits == "payload" else "on air"
    found: dict[str, Numbers] = {}
    for packet in setting.packets:
        found[f"packet error rate, {packet.name} {bits}"] = error
        if setting.scenario.link.arq == "unlimited":
            found[f"goodput, {packet.name}"] = error
    if any(packet.coded for packet in setting.packets):
        found["success of a coded block"] = error
    return found


def _ring(setting: Setting) -> dict[str, Numbers]:
    network = setting.scenario.network
    if network.topology != "piconet" or network.flows != "ring":
        return {}
    return {
        "capacity of a ring, each flow": {
            "N": Number(network.peripherals, "network.peripherals"),
            "D": Number(sum(packet.slots for packet, _ in setting.data), "packets of a segment"),
            "A": Number(sum(packet.slots for packet, _ in setting.ack), "packets of an acknowledgement"),
            "T_s": Number(SLOT_S, "slot"),
        }
    }


WAYS = {"uplink": "up a star", "downlink": "down a star", "ring": "in a ring"}
"""Patterns of flows of a piconet, in the names of its formulas."""


def of_piconet(setting: Setting) -> dict[str, Numbers]:
    """Stars and rings: lone and carried round trips, capacities."""
    scenario, data, ack = setting.scenario, setting.data, setting.ack
    where = WAYS.get(scenario.network.flows) if isinstance(scenario.network.flows, str) else None
    if scenario.network.topology != "piconet" or where is None or not ack:
        return {}
    ring, limit, frames, short = where == "in a ring", scenario.polling.limit, len(data), len(ack)
    full, alone = int(frames % limit == 0), int(short % limit == 0)
    behind = alone if full else int(frames % limit + short == limit)  # where data is before it in its visit
    slots = sum(kind.slots for kind, _ in data), sum(kind.slots for kind, _ in ack)
    error = 1 - setting.on_air(repeated=False, ring=ring) / setting.on_air(repeated=True, ring=ring)
    control, words = scenario.flow_control, ("packets of a segment", "packets of an acknowledgement")
    at = "polling.limit"
    found = {
        "N": Number(scenario.network.peripherals, "network.peripherals"), "F": Number(frames, words[0]),
        "D": Number(slots[0] + frames, words[0]), "K": Number(short, words[1]),
        "A": Number(slots[1] + short, words[1]), "M": Number(limit, at),
        "v": Number(math.ceil(frames / limit), at), "f": Number(full, at), "k": Number(alone, at),
        "V": Number((2 if ring else 1) * (frames // limit) + alone + ring * behind, at),
        "T_s": Number(SLOT_S, "slot"), "p": Number(error, "radio"), "h": Number(2, "hops"),
        "lambda": setting.rate,
    }  # fmt: skip
    kind = "ring" if ring else "star"
    names: dict[str, Numbers] = {} if ring else {f"capacity of a {kind}, each flow": found}
    if ring:
        packets = {"D": Number(slots[0], words[0]), "A": Number(slots[1], words[1])}
        names = {"capacity of a ring under ARQ": found | packets}
    if scenario.traffic.source == "greedy":
        one = scenario.transport.receive_window_segments == 1 and not ring
        return names | ({"window of one in a star, each flow": found} if one else {})
    names[f"carried by a {kind}, each flow"] = next(iter(names.values()))
    if not control.enabled:
        return names | {f"round trip, {one} {where}": found for one in ("lone segment", "carried")}
    tokens = {
        "tau": setting.token_rate,
        "beta": Number(control.bucket_bytes, "flow_control.bucket_bytes"),
        "g": Number(sum(price for _, price in data), "tokens of a segment"),
        "g_A": Number(sum(price for _, price in ack), "tokens of an acknowledgement"),
    }
    return names | {f"round trip, carried {where} behind tokens": found | tokens}


def of_path(setting: Setting) -> dict[str, Numbers]:
    """One flow that always has data, over outside links alone."""
    scenario, plan = setting.scenario, topology(setting.scenario)
    route = plan.route(plan.flows[0].source, plan.flows[0].target) if len(plan.flows) == 1 else ()
    if not route or any(hop.kind != "outside" for hop in route) or scenario.traffic.source != "greedy":
        return {}
    links = [plan.outside[hop.index].link for hop in route]
    header = scenario.transport.header_bytes
    sizes = scenario.traffic.message_bytes + header, header
    takes = [[(size + link.header_bytes) * 8e-3 / link.rate_kbps for link in links] for size in sizes]
    trip = sum(map(sum, takes)) + 2 * sum(link.delay_s for link in links)
    slowest = max(range(len(links)), key=lambda one: takes[0][one])
    rate = {"s": Number(takes[0][slowest], f"network.outside_links, {links[slowest].name}")}
    rate["R"] = Number(trip, "network.outside_links")
    window = Number(scenario.transport.receive_window_segments, "transport.receive_window_segments")
    buffer = Number(links[slowest].buffer_packets, f"buffer_packets of {links[slowest].name}")
    saws = window.value > trip / rate["s"].value + buffer.value
    return {"saw over a path": rate | {"B": buffer}} if saws else {"window over a path": rate | {"W": window}}


def _token_bucket(setting: Setting) -> dict[str, Numbers]:
    control, traffic = setting.scenario.flow_control, setting.scenario.traffic
    if not control.enabled or setting.scenario.network.topology not in ("piconet", "scatternet"):
        return {}
    acknowledges = setting.scenario.transport.ack_path == "queued"
    pieces = [*setting.data, *(setting.ack if acknowledges else [])]
    return {
        "capacity, token bucket": {
            "tau": setting.token_rate,
            "a": Number(traffic.message_bytes, "traffic.message_bytes"),
            "g": Number(sum(price for _, price in pieces), "tokens of a segment and its acknowledgement"),
        }
    }


def _tcp(setting: Setting) -> dict[str, Numbers]:
    transport = setting.scenario.transport
    if transport.protocol != "tcp":
        return {}
    loss, rtt = (setting.solved.get(name, math.nan) for name in ("segment_loss", "rtt_s"))
    if not (0 < loss < 1 and rtt > 0):
        return {}
    every = transport.ack_every_segments if transport.delayed_ack else 1
    root = {
        "p": Number(loss, "segment_loss, solved"),
        "RTT": Number(rtt, "rtt_s, solved"),
        "b": Number(every, "transport.ack_every_segments" if transport.delayed_ack else "every segment"),
    }
    timed = root | {
        "T_0": Number(max(transport.min_rto_s, rtt), "the larger of transport.min_rto_s and rtt_s"),
        "W_m": Number(transport.receive_window_segments, "transport.receive_window_segments"),
    }
    return {f"send rate, {law}": timed for law in ("PFTK short", "PFTK")} | {
        "send rate, square-root law": root
    }


RULES: tuple[Callable[[Setting], dict[str, Numbers]], ...] = (
    _constant_radio,
    _ring,
    of_piconet,
    of_path,
    _token_bucket,
    _tcp,
)
"""Each gives the formulas of one subject that apply."""
