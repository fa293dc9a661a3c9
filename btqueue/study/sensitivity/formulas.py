"""Closed forms at a point, with the numbers put in, and the assumptions of each that do not hold there.

A number comes straight from a key, from the packets that segments are cut into, or from the solver (the loss
and the round-trip time that TCP's laws take). A formula is right only where its assumptions hold. Each is
checked with the scenario's numbers. A sentence names each broken assumption with two numbers: the formula's
and the scenario's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from btqueue.baseband import PACKET_TYPES, SLOT_S, PacketType, segment
from btqueue.network.bounds import capacity
from btqueue.network.repetition import mean_error_rate
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.errors import shown
from btqueue.scenario.problems import closest
from btqueue.scenario.topology import topology
from btqueue.scenario.traits import in_tables
from btqueue.study.closed_forms import ClosedForm, closed_forms
from btqueue.study.evaluate import evaluate
from btqueue.study.points import label
from btqueue.study.tables import number
from btqueue.text_files import table_beside

if TYPE_CHECKING:
    import sympy


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
        fragments = segment(size, types, link.segmentation) if size else ()
        return [(f.packet, f.packet.payload_bytes if full else f.carried_bytes) for f in fragments]

    @property
    def header_bytes(self) -> int:
        """The bytes that L2CAP, IP and the transport add to a segment."""
        return self.scenario.link.l2cap_header_bytes + self.scenario.transport.header_bytes

    @property
    def data(self) -> list[tuple[PacketType, int]]:
        """The packets of a data segment."""
        return self.cut(self.scenario.traffic.message_bytes + self.header_bytes)

    @property
    def ack(self) -> list[tuple[PacketType, int]]:
        """The packets of an acknowledgement."""
        return self.cut(self.header_bytes)

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
    found = {
        name: numbers
        for name, numbers in chain(*(rule(setting).items() for rule in RULES))
        if all(math.isfinite(number.value) for number in numbers.values())
    }
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


WAYS = {"uplink": "up a star", "downlink": "down a star", "ring": "in a ring"}
"""Patterns of flows of a piconet, in the names of its formulas."""


def of_piconet(setting: Setting) -> dict[str, Numbers]:
    """Stars and rings: lone and carried round trips, capacities."""
    scenario, data, ack = setting.scenario, setting.data, setting.ack
    where = WAYS.get(scenario.network.flows) if isinstance(scenario.network.flows, str) else None
    if scenario.network.topology != "piconet" or where is None:
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
    names: dict[str, Numbers] = {f"capacity of a {kind}, each flow": found}
    if ring:
        packets = found | {"D": Number(slots[0], words[0]), "A": Number(slots[1], words[1])}
        names = dict.fromkeys(("capacity of a ring, each flow", "capacity of a ring under ARQ"), packets)
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
    found: dict[str, Numbers] = {"send rate, square-root law": root}
    return found | {f"send rate, {law}": timed for law in ("PFTK short", "PFTK")}


RULES: tuple[Callable[[Setting], dict[str, Numbers]], ...] = (
    _constant_radio,
    of_piconet,
    of_path,
    _token_bucket,
    _tcp,
)
"""Each gives the formulas of one subject that apply."""


def _values(numbers: Numbers) -> dict[str, float]:
    return {symbol: number.value for symbol, number in numbers.items()}


def _gives(name: str, at: Mapping[str, float]) -> float:
    """Return what a formula gives at numbers, of which some may be of other symbols."""
    form = closed_forms()[name]
    return float(form.function(*form.symbols)(*(at[symbol] for symbol in form.symbols)))


def _fails(found: str, assumption: str) -> str:
    return f"{found}: its assumption that {assumption} does not hold here"


def _losses_limit(point: Evaluated) -> Iterator[str]:
    """Yield the limits that carry fewer segments than a law of losses gives: radio, tokens, or source."""
    scenario, gives = point.at.scenario, f"it gives {number(point.value)} segments/s"
    kilobits = scenario.traffic.message_bytes * 8e-3
    carried = [("the radio carries", "the radio", capacity(scenario).most_kbps() / kilobits)]
    for name, in_segments, carries, what in (
        ("capacity of a ring, each flow", 1.0, "the radio carries", "the radio"),
        ("capacity, token bucket", 8e-3 / kilobits, "tokens carry", "tokens"),
    ):
        if numbers := applicable(point.at).get(name):
            carried.append((carries, what, in_segments * _gives(name, _values(numbers))))
    carry, limit, most = min(carried, key=lambda one: one[-1])
    if point.value > most:
        yield _fails(f"{gives}; {carry} at most {number(most)}", f"losses and not {limit} limit the rate")
    offered = scenario.traffic.load_kbps / kilobits
    if scenario.traffic.source != "greedy" and point.value > offered:
        yield _fails(f"{gives}; the source offers {number(offered)}", "the sender always has data")


def _like_flows(point: Evaluated) -> Iterator[str]:
    kinds = dict.fromkeys(topology(point.at.scenario).kinds)
    if len(kinds) > 1:
        found = f"loss and round trip are means over unlike flows ({', '.join(kinds)})"
        yield _fails(found, "all flows are alike (--at p=... --at RTT=... takes the numbers of one)")


def _no_window(point: Evaluated) -> Iterator[str]:
    window, rtt_s = point.at.scenario.transport.receive_window_segments, point.numbers["RTT"].value
    if point.value > (most := window / rtt_s):
        found = f"it gives {number(point.value)} segments/s; the receive window allows {number(most)}"
        yield _fails(found, "losses and not the receive window limit the rate")


def _no_timeouts(point: Evaluated) -> Iterator[str]:
    timeouts, fast = (point.at.solved.get(f"{name}_per_s", 0.0) for name in ("timeouts", "fast_retransmits"))
    if timeouts > fast:
        found = f"{number(timeouts)} timeouts a second are solved, and {number(fast)} fast retransmits"
        yield _fails(found, "losses end in fast retransmits")


def _rare_losses(point: Evaluated) -> Iterator[str]:
    loss, every = point.numbers["p"].value, point.numbers["b"].value
    if (share := 3.0 * math.sqrt(3.0 * every * loss / 8.0)) > 1.0:
        found = f"at a loss of {number(loss)} a loss would end in a timeout with probability {number(share)}"
        yield _fails(found, "losses are rare")


def _nothing_damaged(point: Evaluated) -> Iterator[str]:
    scenario = point.at.scenario
    errors = {packet.name: mean_error_rate(scenario.radio, packet) for packet in point.at.packets}
    if errors and (worst := max(errors.values())) > 0.0:
        name = max(errors, key=lambda one: errors[one])
        yield _fails(f"of {name} packets {worst:.3g} are damaged, not 0", "no packet is damaged")


def _one_link(point: Evaluated) -> Iterator[str]:
    scenario = point.at.scenario
    if (links := sum(len(one.members) for one in topology(scenario).piconets)) > 1:
        yield _fails(f"{links} links are there, not 1", "one link has all slots")
    offered = scenario.traffic.load_kbps
    if scenario.traffic.source != "greedy" and point.value > offered:
        found = f"it gives {number(point.value)} kbit/s; the source offers {number(offered)}"
        yield _fails(found, "the sender always has packets")


ALONE = 0.05
"""Segments under way up to which one is alone."""
FEWEST = 6
"""Segments that path and buffer hold from which on sums over a saw are near their integrals."""
MOST_CARRIED = 0.6
"""Share of the capacity up to which carried round trips were compared with simulations."""
HELD = 0.01
"""Share of the segments that find the window full, from which on some of the wait is at the sender."""
LATE = 1e-4
"""Chance that a wait for tokens reaches the timeout, from which on timeouts matter."""
WANTED = table_beside("btqueue.study.sensitivity", "assumptions.csv")
"""Keys with the values that formulas take for granted, in words, and the groups of formulas that do."""


def _as_wanted(point: Evaluated, group: str) -> Iterator[str]:
    """Yield the keys with other values; nothing is repeated without errors, nor acknowledged without TCP."""
    scenario = point.at.scenario
    for row in (row for row in WANTED if group in row["of"].split()):
        key, found = row["key"], label(scenario.value_of(row["key"]))
        idle = (key.startswith("link.arq") and point.numbers["p"].value == 0.0) or (
            group == "at-once" and scenario.transport.protocol != "tcp"
        )
        if found != row["value"] and not idle:
            yield _fails(f"{key} is {found}, not {row['value']}", row["assumption"])


def _polled(point: Evaluated) -> Iterator[str]:
    """Yield broken assumptions: acknowledgements of one packet, and buffers that hold all windows."""
    scenario, at = point.at.scenario, point.numbers
    if at["K"].value != 1:
        yield _fails(f"link.packets: acknowledgements take {at['K'].value:g} packets, not 1", "they take one")
    most = scenario.transport.receive_window_segments * (at["F"].value + at["K"].value)
    keys = ("baseband_packets", "central_buffer_packets", "buffer_packets")
    for key in keys if scenario.flow_control.enabled else keys[:2]:
        places = getattr(scenario.flow_control, key)
        if places is not None and places < most:
            yield _fails(f"flow_control.{key} is {places}, and windows let out {most:g}", "buffers hold them")


def _saturated(point: Evaluated) -> Iterator[str]:
    scenario = point.at.scenario
    window, at = scenario.transport.receive_window_segments, point.numbers
    least = 2.0
    if scenario.network.flows == "ring":  # two queues of a link are never empty at once
        least = max(16.0 if at["p"].value else 4.0, 3.0 * at["M"].value / at["F"].value)
    if window < least and "carried" not in point.form.name:
        found = f"transport.receive_window_segments is {window}, not at least {number(least)}"
        yield _fails(found, "ports always have packets")
    if scenario.flow_control.enabled:
        yield _fails("flow_control.enabled is true, not false", "packets wait for no tokens")


def _one_frame_to_spare(point: Evaluated) -> Iterator[str]:
    limit, frames = point.numbers["M"].value, point.numbers["F"].value + point.numbers["K"].value
    if limit <= frames:
        yield _fails(f"polling.limit is {limit:g}, not above {frames:g}", "a visit has a frame left")


def _carried(point: Evaluated) -> Iterator[str]:
    """Yield broken assumptions: segments come one at a time, and are carried."""
    scenario, at = point.at.scenario, point.numbers
    traffic, transport = scenario.traffic, scenario.transport
    if traffic.message_bytes > transport.mss_bytes or (
        transport.nagle and traffic.message_bytes < transport.mss_bytes
    ):
        found = f"traffic.message_bytes is {traffic.message_bytes}, transport.mss_bytes {transport.mss_bytes}"
        yield _fails(found, "a message is a segment")
    load, ring = at["lambda"].value, scenario.network.flows == "ring"
    air = {"D": at["D"].value - at["F"].value, "A": at["A"].value - at["K"].value} if ring else {}
    capacity_of = "capacity of a ring under ARQ" if ring else "capacity of a star, each flow"
    most = _gives(capacity_of, _values(at) | air)
    if load > MOST_CARRIED * most:
        found = f"traffic.load_kbps gives {number(load)} segments/s, {load / most:.0%} of the capacity"
        yield _fails(found, f"the load is at most {MOST_CARRIED:.0%} of it")
    share = load * at["N"].value * point.value
    if point.form.name.startswith("round trip, lone") and share > ALONE:
        found = f"traffic.load_kbps: {number(share)} segments are under way"
        yield _fails(found, f"hardly any is ({ALONE:g})")
    window = transport.receive_window_segments
    held = load * point.value
    if (held / (1.0 + held)) ** window > HELD:  # a geometric number is under way
        found = f"transport.receive_window_segments is {window}, and {number(held)} segments are under way"
        yield _fails(found, "windows hold hardly any segment back")


def _tokens_in_time(point: Evaluated) -> Iterator[str]:
    """Yield broken assumptions: tokens suffice for the load, and no timer expires in the wait for tokens."""
    if "tau" not in point.numbers:
        return
    at = _values(point.numbers)
    timeout_s, beyond = point.at.scenario.transport.min_rto_s, (at["beta"] - at["g"]) / at["tau"]
    ring = point.at.scenario.network.flows == "ring"
    if (use := at["lambda"] * (at["g"] + ring * at["g_A"]) / at["tau"]) >= 1.0:
        yield _fails(f"flow_control.token_rate_kbps: {use:.0%} of the tokens are asked for", "tokens suffice")
        return
    form = closed_forms()[point.form.name]
    steps = form.steps.put_in({form.symbol(name): at[name] for name in form.symbols})
    parts = {symbol.name: value for symbol, value in steps.items()}
    late = float(parts["C"]) * math.exp(-float(parts["theta"]) * (beyond + timeout_s))
    if beyond < 0.0:
        yield _fails("flow_control.bucket_bytes is less than a segment costs", "a full bucket suffices")
    if late > LATE:
        found = f"flow_control.token_rate_kbps: {late:.2g} of all waits reach transport.min_rto_s"
        yield _fails(found, f"at most {LATE:g} do")


def _plain_path(point: Evaluated) -> Iterator[str]:
    """Yield broken assumptions: wires without losses, both ways at once."""
    for link in point.at.scenario.network.outside_links:
        for key in ("half_duplex", "loss", "loss_back", "jitter_s", "down_s"):
            if value := getattr(link, key):
                found = f"network.outside_links: {key} of {link.name} is {shown(value)}"
                yield _fails(found, "links lose and delay nothing at random, and send both ways at once")


def _saw_without_timeouts(point: Evaluated) -> Iterator[str]:
    """Yield broken assumptions of the sawtooth: Reno or NewReno, a path of several segments, no timeouts."""
    transport, at = point.at.scenario.transport, point.numbers
    if transport.variant not in ("reno", "newreno"):
        yield _fails(f"transport.variant is {transport.variant}", "it is reno or newreno")
    held = at["R"].value / at["s"].value + at["B"].value
    if held < FEWEST:
        yield _fails(f"path and buffer hold {number(held)} segments", f"they hold at least {FEWEST:g}")
    if (drain_s := (held + 4.0) * at["s"].value) > transport.min_rto_s:
        found = f"transport.min_rto_s is {transport.min_rto_s:g}, and a full path takes {number(drain_s)} s"
        yield _fails(found, "no timer expires")


Check = Callable[["Evaluated"], Iterator[str]] | str
"""A function, or a group of `WANTED`."""

SATURATED = ("capacity of a star", "capacity of a ring under ARQ", "carried by")
CHECKS: tuple[tuple[str | tuple[str, ...], tuple[Check, ...]], ...] = (
    ("send rate", (_like_flows, _losses_limit)),
    ("send rate, square-root law", (_no_window, _no_timeouts)),
    ("send rate, PFTK short", (_rare_losses,)),
    ("goodput", (_one_link, "whole-air")),
    ("capacity of a ring, each flow", (_nothing_damaged, "whole-air")),
    ("capacity", ("at-once",)),
    (SATURATED, ("polled", _polled, _saturated)),
    ("window of one", ("polled", _polled, _one_frame_to_spare, _nothing_damaged, "in-time")),
    ("round trip", ("polled", _polled, _tokens_in_time, "at-random", _nothing_damaged, _carried)),
    ("window over a path", ("path", _plain_path)),
    ("saw over a path", ("path", _plain_path, _saw_without_timeouts)),
)
"""Assumptions by the beginning of a formula's name; other formulas are laws of the scenario's own numbers."""


@dataclass(frozen=True)
class SymbolDerivative:
    """The derivative of a formula by one of its symbols; numbers are NaN where the point gives none."""

    symbol: str
    expression: sympy.Expr
    value: float
    elasticity: float

    @property
    def latex(self) -> str:
        """The derivative in LaTeX."""
        import sympy

        return sympy.latex(self.expression)


@dataclass(frozen=True)
class Evaluated:
    """A closed form with the numbers of some or all of its symbols.

    Attributes:
        form: the formula.
        numbers: by symbol; there may be more than it has.
        setting: the scenario whose numbers these are; None if they are of none.
    """

    form: ClosedForm
    numbers: Mapping[str, Number]
    setting: Setting | None = None

    @property
    def at(self) -> Setting:
        """The scenario of the formula; only for a formula that has one."""
        assert self.setting is not None
        return self.setting

    @property
    def missing(self) -> list[str]:
        """Symbols without a number."""
        return [name for name in self.form.symbols if name not in self.numbers]

    @cached_property
    def value(self) -> float:
        """The value in the formula's unit; NaN where numbers are missing or outside its domain."""
        steps = self.form.steps
        return math.nan if self.missing else _number(steps.result.xreplace(steps.put_in(self._point)))

    @cached_property
    def doubt(self) -> str:
        """An assumption of the formula that does not hold in the scenario, in words; empty if all hold."""
        if self.setting is None or self.missing:
            return ""
        for names, checks in CHECKS:
            for check in checks if self.form.name.startswith(names) else ():
                found = _as_wanted(self, check) if isinstance(check, str) else check(self)
                if words := next(found, ""):
                    return words
        return ""

    @cached_property
    def derivatives(self) -> tuple[SymbolDerivative, ...]:
        """The derivatives by all symbols, in alphabetical order; without numbers where there is a `doubt`."""
        return tuple(self._derivative(name) for name in self.form.symbols)

    def _derivative(self, name: str) -> SymbolDerivative:
        expression = self.form.derivative(name)
        unknown = self.missing or self.doubt
        value = math.nan if unknown else _number(expression.xreplace(self._point))
        known = name in self.numbers and self.value != 0
        elasticity = value * self.numbers[name].value / self.value if known else math.nan
        return SymbolDerivative(name, expression, value, elasticity)

    @cached_property
    def _point(self) -> dict[Any, Any]:
        """The numbers with digits to spare: error rates are differences of nearly equal numbers."""
        import sympy

        symbols = self.form.symbols
        return {self.form.symbol(name): sympy.Float(self.numbers[name].value, 40) for name in symbols}


def _number(expression: Any) -> float:
    import sympy

    value = sympy.N(expression, 20)
    return float(value) if value.is_real and value.is_finite else math.nan


def formula(name: str, at: Mapping[str, float] | None = None, scenario: Scenario | None = None) -> Evaluated:
    """Return a closed form with numbers.

    Args:
        name: in the catalogue, `btqueue.study.closed_forms.closed_forms`.
        at: numbers by symbol.
        scenario: gives the others, where it has them.

    Raises:
        ScenarioError: the formula or the symbol is unknown.
    """
    known = closed_forms()
    if name not in known:
        guess, alike = closest(name, known), "; ".join(entry for entry in known if entry.startswith(name))
        subjects = ", ".join(dict.fromkeys(entry.partition(",")[0] for entry in known))
        begin = f"there are {alike}" if name and alike else f"names begin with {subjects}"
        hint = f'did you mean "{guess}"?' if guess else begin
        raise ScenarioError(f"there is no formula {shown(name)}; {hint}", name, guess=guess)
    form = known[name]
    for symbol in at or {}:
        if symbol not in form.symbols:
            symbols = ", ".join(f"{s} ({words})" for s, (_, words) in form.symbols.items())
            raise ScenarioError(f'"{name}" has no symbol {symbol}, only {symbols}', symbol)
    setting = None if scenario is None else Setting(scenario)
    numbers = {} if setting is None else dict(applicable(setting).get(name, {}))
    given = {symbol: Number(value, "given") for symbol, value in (at or {}).items()}
    return Evaluated(form, numbers | given, setting if numbers else None)


def formulas_of(scenario: Scenario) -> list[Evaluated]:
    """Return the closed forms that apply to a scenario, with its numbers put in."""
    setting = Setting(scenario)
    return [
        Evaluated(closed_forms()[name], numbers, setting) for name, numbers in applicable(setting).items()
    ]


def parse_at(texts: Iterable[str]) -> dict[str, float]:
    """Read numbers of the form ``symbol=value``.

    Raises:
        ScenarioError: one cannot be read.
    """
    found = {}
    for text in texts:
        symbol, equals, value = text.partition("=")
        try:
            number = float(value) if equals else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            message = f"{shown(text)} cannot be read: write symbol=number, as in b=1e-4"
            raise ScenarioError(message, symbol, value)
        found[symbol.strip()] = number
    return found
