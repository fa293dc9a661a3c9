"""What closed forms take for granted, and whether a scenario grants it.

A formula is right only where its assumptions hold. Each is checked with the scenario's numbers, and what does
not hold is said with both numbers: what the formula gives or takes, and what the scenario has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from btqueue.baseband import PACKET_TYPES, SLOT_S
from btqueue.network.overload import CARRIED
from btqueue.network.repetition import mean_error_rate
from btqueue.scenario.bounds import capacity
from btqueue.scenario.topology import topology
from btqueue.study.closed_forms import closed_forms
from btqueue.study.sensitivity.formula_values import Numbers, Setting, applicable
from btqueue.study.tables import number


class Point(NamedTuple):
    """A formula at a scenario: its name, its value, the numbers of its symbols, and the scenario."""

    name: str
    value: float
    numbers: Numbers
    setting: Setting


def broken(point: Point) -> str:
    """Return in words the first assumption of a formula that its scenario does not grant; empty if none."""
    found = (words for prefix, check in CHECKS if point.name.startswith(prefix) for words in check(point))
    return next(found, "")


def _fails(found: str, assumption: str) -> str:
    return f"{found}: its assumption that {assumption} does not hold here"


def _losses_limit(point: Point) -> Iterator[str]:
    """Yield what carries fewer segments than a law of losses gives: the radio, tokens, or the source."""
    scenario, gives = point.setting.scenario, f"it gives {number(point.value)} segments/s"
    kilobits = scenario.traffic.message_bytes * 8e-3
    carried = [("the radio carries", "the radio", capacity(scenario).most_kbps() / kilobits)]
    for name, in_segments, carries, what in (
        ("capacity of a ring, each flow", 1.0, "the radio carries", "the radio"),
        ("capacity, token bucket", 8e-3 / kilobits, "tokens carry", "tokens"),
    ):
        if numbers := applicable(point.setting).get(name):
            form = closed_forms()[name].function(*numbers)
            most = in_segments * float(form(*(one.value for one in numbers.values())))
            carried.append((carries, what, most))
    carry, limit, most = min(carried, key=lambda one: one[-1])
    if point.value > most:
        yield _fails(f"{gives}; {carry} at most {number(most)}", f"losses and not {limit} limit the rate")
    offered = scenario.traffic.load_kbps / kilobits
    if scenario.traffic.source != "greedy" and point.value > offered:
        yield _fails(f"{gives}; the source offers {number(offered)}", "the sender always has data")


def _no_window(point: Point) -> Iterator[str]:
    window, rtt_s = point.setting.scenario.transport.receive_window_segments, point.numbers["RTT"].value
    if point.value > (most := window / rtt_s):
        found = f"it gives {number(point.value)} segments/s; the receive window allows {number(most)}"
        yield _fails(found, "losses and not the receive window limit the rate")


def _no_timeouts(point: Point) -> Iterator[str]:
    timeouts, fast = (
        point.setting.solved.get(f"{name}_per_s", 0.0) for name in ("timeouts", "fast_retransmits")
    )
    if timeouts > fast:
        found = f"{number(timeouts)} timeouts a second are solved, and {number(fast)} fast retransmits"
        yield _fails(found, "losses end in fast retransmits")


def _rare_losses(point: Point) -> Iterator[str]:
    loss, every = point.numbers["p"].value, point.numbers["b"].value
    if (share := 3.0 * math.sqrt(3.0 * every * loss / 8.0)) > 1.0:
        found = f"at a loss of {number(loss)} a loss would end in a timeout with probability {number(share)}"
        yield _fails(found, "losses are rare")


def _nothing_damaged(point: Point) -> Iterator[str]:
    scenario = point.setting.scenario
    errors = {packet.name: mean_error_rate(scenario.radio, packet) for packet in point.setting.packets}
    if errors and (worst := max(errors.values())) > 0.0:
        name = max(errors, key=lambda one: errors[one])
        yield _fails(f"of {name} packets {worst:.3g} are damaged, not 0", "no packet is damaged")


def _one_link(point: Point) -> Iterator[str]:
    scenario = point.setting.scenario
    if (links := sum(len(one.members) for one in topology(scenario).piconets)) > 1:
        yield _fails(f"{links} links are there, not 1", "one link has all slots")
    offered = scenario.traffic.load_kbps
    if scenario.traffic.source != "greedy" and point.value > offered:
        found = f"it gives {number(point.value)} kbit/s; the source offers {number(offered)}"
        yield _fails(found, "the sender always has packets")


def _acknowledged_at_once(point: Point) -> Iterator[str]:
    transport = point.setting.scenario.transport
    if transport.protocol == "tcp" and transport.delayed_ack:
        found = f"an acknowledgement answers up to {transport.ack_every_segments} segments, not 1"
        yield _fails(found, "every segment is acknowledged at once")


def _no_voice(point: Point) -> Iterator[str]:
    voice = point.setting.scenario.voice
    if voice.packet != "none" and voice.links:
        yield _fails(f"voice links are {voice.links}, not 0", "data has all slots")


def _one_state(point: Point) -> Iterator[str]:
    packet_s = PACKET_TYPES["DH5"].slots * SLOT_S
    shortest_s = min(point.numbers["rho_G"].value, point.numbers["rho_B"].value)
    if shortest_s < packet_s:
        found = f"a packet lasts {number(packet_s)} s, and a state of the radio {number(shortest_s)} s"
        yield _fails(found, "a packet meets one state of the radio")


def _independent(point: Point) -> Iterator[str]:
    slots = sum(packet.slots for packet, _ in (*point.setting.data, *point.setting.ack))
    longest_s = max(point.numbers["rho_G"].value, point.numbers["rho_B"].value)
    if longest_s > (train_s := slots * SLOT_S):
        found = f"a state of the radio lasts {number(longest_s)} s, and all packets {number(train_s)} s"
        yield _fails(found, "every packet meets a state of its own")


def _carried(point: Point) -> Iterator[str]:
    load, goodput = (
        point.setting.scenario.traffic.load_kbps,
        point.setting.solved.get("goodput_kbps", math.nan),
    )
    if goodput < CARRIED * load:
        found = f"the load is {number(load)} kbit/s, and {number(goodput)} are solved to be carried"
        yield _fails(found, "packets to ride on come as they are offered")


Check = Callable[[Point], Iterator[str]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("send rate", _losses_limit),
    ("send rate, square-root law", _no_window),
    ("send rate, square-root law", _no_timeouts),
    ("send rate, PFTK short", _rare_losses),
    ("rate", _nothing_damaged),
    ("goodput", _one_link),
    ("goodput", _no_voice),
    ("capacity of a ring", _nothing_damaged),
    ("capacity of a ring", _no_voice),
    ("capacity", _acknowledged_at_once),
    ("mean packet error rate", _one_state),
    ("success of a segment", _independent),
    ("delay of an answer", _carried),
    ("answers alone", _carried),
)
"""By the beginning of a formula's name what it assumes; the others are laws of the scenario's own numbers."""
