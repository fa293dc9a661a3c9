"""Checks of the network and its flows that need more than one key, or all names at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from btqueue.scenario.errors import Problem, bad_value, conflict
from btqueue.scenario.network import MOST_OF_LE, MOST_PERIPHERALS, Flow, Network, OutsideLink
from btqueue.scenario.problems import closest

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

TOPOLOGIES_OF_PATTERN = {
    "ring": ("piconet", "scatternet"),
    "pairs": ("piconet", "scatternet"),
    "downlink": ("piconet", "scatternet"),
    "uplink": ("piconet", "scatternet"),
    "end-to-end": ("chain",),
}
"""Where each pattern of flows makes sense."""

SAME_ON_A_MEDIUM = ("rate_kbps", "header_bytes", "up_s", "down_s")
"""Keys that all links on one medium must agree on."""


def network(s: Scenario) -> Iterator[Problem]:
    """Check the shape of the network."""
    n = s.network
    most = MOST_OF_LE if s.link.bearer == "le" else MOST_PERIPHERALS
    if n.topology in ("piconet", "scatternet") and n.peripherals > most:
        why = f"a piconet of Bluetooth Classic has at most {most} active peripherals"
        yield conflict("network.peripherals", n.peripherals, why, allowed=f"at most {most}")
    for p in n.piconet_list:
        if len(p.peripherals) > most:
            yield conflict("network.piconet_list", p.name, f"a piconet has at most {most} active peripherals")
    if n.topology == "piconet" and n.piconets != 1:
        why = 'a piconet is one piconet; use topology = "scatternet" for several'
        yield conflict("network.piconets", n.piconets, why)
    if n.topology == "scatternet":
        yield from _scatternet(n, most)
    if n.topology == "custom" and not n.piconet_list:
        yield conflict("network.topology", n.topology, "a custom network needs a piconet_list")
    if n.topology != "custom" and n.piconet_list:
        yield conflict("network.topology", n.topology, 'a piconet_list goes with topology = "custom"')
    yield from _custom(n)
    yield from _outside(n)
    if n.relay == "packet" and n.outside_links:
        why = 'outside links carry whole segments; use relay = "segment"'
        yield conflict("network.relay", n.relay, why, allowed='"segment"')
    if n.relay == "packet" and s.link.adaptation != "fixed":
        why = (
            f'link.adaptation = "{s.link.adaptation}" cuts segments anew on each link; use relay = "segment"'
        )
        yield conflict("network.relay", n.relay, why, allowed='"segment"')


def _scatternet(n: Network, most: int) -> Iterator[Problem]:
    if n.piconets < 2:
        yield conflict("network.piconets", n.piconets, "a scatternet has at least 2 piconets")
    bridges = 1 if n.piconets == 2 or n.bridge == "MS" else 2
    if n.peripherals <= most < n.peripherals + bridges:
        among = "1 of them is a bridge" if bridges == 1 else f"{bridges} of them are bridges"
        why = f"a piconet has at most {most} active peripherals, and {among} here"
        yield conflict("network.peripherals", n.peripherals, why)


def _custom(n: Network) -> Iterator[Problem]:
    key = "network.piconet_list"
    for name in _repeated(p.name for p in n.piconet_list):
        yield conflict(key, name, "two piconets have this name")
    for name in _repeated(p.central for p in n.piconet_list):
        yield conflict(key, name, "a device can be the central of one piconet only; a peripheral of others")
    joined: set[frozenset[str]] = set()
    for p in n.piconet_list:
        members = [p.central, *p.peripherals]
        if len(set(members)) != len(members):
            yield conflict(key, p.name, "a device is listed twice in this piconet")
            continue
        for name in p.peripherals:
            if frozenset((p.central, name)) in joined:
                why = f'"{p.central}" and "{name}" are joined in another piconet already, the other way round'
                yield conflict(key, p.name, why)
            joined.add(frozenset((p.central, name)))


def _outside(n: Network) -> Iterator[Problem]:
    key = "network.outside_links"
    for name in _repeated(x.name for x in n.outside_links):
        yield conflict(key, name, "two links have this name")
    joined = {frozenset((p.central, name)) for p in n.piconet_names for name in p.members}
    first_on_medium: dict[str, OutsideLink] = {}
    for x in n.outside_links:
        ends = frozenset((x.source, x.target))
        if x.source == x.target:
            yield conflict(key, x.name, "the link ends where it starts")
        elif ends in joined:
            why = f'"{x.source}" and "{x.target}" are joined already; one of the two ways would never be used'
            yield conflict(key, x.name, why)
        joined.add(ends)
        if (x.up_s > 0) != (x.down_s > 0):
            yield conflict(key, x.name, "interruptions need both up_s and down_s above 0")
        if x.medium is None:
            continue
        if not x.half_duplex:
            why = f'the medium "{x.medium}" is shared by both directions, so half_duplex cannot be false'
            yield conflict(key, x.name, why)
        first = first_on_medium.setdefault(x.medium, x)
        for name in SAME_ON_A_MEDIUM:
            here, there = getattr(x, name), getattr(first, name)
            if here != there:
                why = f'{name} = {here:g}: must be {there:g} as in "{first.name}" on the same medium'
                yield conflict(key, x.name, why)


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def flows(s: Scenario) -> Iterator[Problem]:
    """Check the flows' senders and receivers, and the keys that single flows override."""
    n = s.network
    if n.topology == "custom" and not n.piconet_list:  # reported already; no name can be known
        return
    if isinstance(n.flows, str):
        wants = TOPOLOGIES_OF_PATTERN[n.flows]
        if n.topology == "custom":
            why = "a custom network needs its flows as a list of { from, to }"
            yield conflict("network.flows", n.flows, why)
        elif n.topology not in wants:
            where = " or ".join(f'"{shape}"' for shape in wants)
            yield conflict("network.flows", n.flows, f'goes with topology = {where}, not "{n.topology}"')
        elif n.flows == "pairs" and n.topology == "piconet" and n.peripherals < 2:
            yield conflict("network.flows", n.flows, "a pair needs at least 2 peripherals")
        elif n.topology == "chain" and isinstance(n.active_flows, int) and n.active_flows > 1:
            yield conflict("network.active_flows", n.active_flows, "a chain has one flow, end to end")
        return
    names = n.node_names
    known = frozenset(names)
    for i, flow in enumerate(n.flows, start=1):
        for side, name in (("from", flow.source), ("to", flow.target)):
            if name not in known:
                some = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
                key = f"network.flows[{i}].{side}"
                yield bad_value(key, name, f"a node of the network ({some})", guess=closest(name, names))
        if flow.source == flow.target:
            yield conflict(f"network.flows[{i}].to", flow.target, "a flow cannot end where it starts")
    yield from _names(n.flows)
    if isinstance(n.active_flows, int) and n.active_flows > len(n.flows):
        yield conflict("network.active_flows", n.active_flows, f"there are only {len(n.flows)} flows")


def _names(flows: Iterable[Flow]) -> Iterator[Problem]:
    """Check that expressions can tell the names of flows and groups apart."""
    flows = tuple(flows)
    called = Counter(flow.label for flow in flows)
    for i, flow in enumerate(flows, start=1):
        for side in ("name", "group"):
            if (name := getattr(flow, side)) and (name.isdigit() or re.search(r"[\[\](),\"']|^\s|\s$", name)):
                allowed = "a text without brackets, commas and quotes that is no whole number"
                yield bad_value(f"network.flows[{i}].{side}", name, allowed)
        if flow.name and called[flow.name] > 1:
            yield conflict(f"network.flows[{i}].name", flow.name, "another flow has this name")
        if flow.group and flow.group in called:
            yield conflict(f"network.flows[{i}].group", flow.group, "a flow has this name")
