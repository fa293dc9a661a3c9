"""Every key of a scenario, from the tables' own fields, and scenarios of all kinds: what a key changes there.

A key is tried with values that clearly matter somewhere (`CHANGES`, or what its type offers), beside the
values of other keys that its declaration asks for.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

from any_scenario import OWN, needed, vocabulary

import btqueue as bt
from btqueue.network.answers import NoConvergence
from btqueue.network.certificates import ImpossibleAnswer
from btqueue.scenario import Scenario, ScenarioError

LONG_LINK = {
    "name": "satellite", "from": "ground", "to": "far", "kind": "other", "half_duplex": False,
    "delay_s": 0.25, "loss": 0.01, "loss_back": 0,
}  # fmt: skip
ACCESS_POINT = {
    "network.topology": "piconet",
    "network.flows": "downlink",
    "network.peripherals": 3,
    "link.arq": "unlimited",
    "flow_control.enabled": False,
    "flow_control.baseband_packets": 200,
    "traffic.load_kbps": 110.0,
}
FLOWS = [{"from": "c1", "to": "p1.1", "load_kbps": 100.0}, {"from": "p1.2", "to": "c1", "load_kbps": 60.0}]

BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "lossy ring": ("venugopal-2006/piconet-errors", {}),
    "chain": ("chen-2004/adaptive-4", {}),
    "one hop": ("chen-2004/regular-1", {}),
    "wire and piconet": ("suliman-2005/one-of-seven", {}),
    "wire with losses": (
        "avancha-2002/satellite",
        {"network.outside_links": [LONG_LINK], "transport.receive_window_segments": 16},
    ),
    "sessions": ("avancha-2002/cdpd-tcp", {}),
    "sessions in a piconet": ("avancha-2002/bluetooth-tcp", {}),
    "CentaurusComm": ("avancha-2002/cdpd-centaurus", {}),
    "link": ("johansson-2000/smooth", {}),
    "busy link": ("johansson-2000/symmetric", {"radio.per": 0.1}),
    "access point": ("venugopal-2006/piconet", ACCESS_POINT),
    "stations": (
        "venugopal-2006/piconet",
        ACCESS_POINT | {"network.flows": FLOWS, "flow_control.enabled": True},
    ),
}
"""A shipped scenario, and what is changed in it."""

CHANGES: dict[str, tuple[Any, ...]] = {
    "network.peripherals": (3, 5),
    "network.piconets": (3,),
    "network.flows": ("ring", "downlink", "uplink", "end-to-end"),
    "network.active_flows": (1,),
    "network.hops": (1, 3),
    "radio.ber": (1e-5, 1e-4),
    "radio.per": (0.02, 0.3),
    "radio.ber_good": (0.0, 5e-5),
    "radio.ber_bad": (3e-4, 1e-2),
    "radio.interferers": (10,),
    "link.packets": (("DH1",), ("DM5", "DM3"), ("3-DH5", "DH1")),
    "link.arq": ("none", "unlimited", 2),
    "link.adaptation_packets": (("DM5", "DM3", "DM1", "DH1"),),
    "link.adaptation_thresholds": ((1e-5, 1e-4, 1e-3),),
    "link.node_buffer_bytes": (6000,),
    "polling.bridge_limit": (1, 20),
    "voice.packet": ("HV3", "2-EV3"),
    "voice.links": (2,),
    "voice.retransmission_slots": (0, 4),
    "traffic.start_s": (1.0,),
    "traffic.load_schedule": ([{"at_s": 100.0, "load_kbps": 30.0}],),
    "traffic.pause_s": (1.0,),
    "transport.header_bytes": (0, 80),
    "transport.initial_rto_s": (1.0, 20.0),
    "transport.min_rto_s": (0.2, 2.9),
    "transport.max_rto_s": (4.0,),
    "transport.clock_granularity_s": (0.5,),
    "transport.sack_blocks": (1,),
    "transport.quick_acks": (16,),
    "transport.ack_every_segments": (1, 4, 16),
    "run.jitter_s": (0.02, 0.2),
    "radio.links": ([{"node": "p1.1", "model": "constant", "ber": 1e-4}],),
    "network.flows[].law": ("greedy", "ibp"),
    "network.flows[].load_kbps": (20.0,),
    "network.flows[].message_bytes": (100,),
    "network.flows[].receive_window_segments": (2,),
    "network.flows[].start_s": (1.0,),
    "network.outside_links[].buffer_packets": (1, 4),
    "network.outside_links[].header_bytes": (200,),
    "network.outside_links[].down_s": (0.5,),
}
"""Values to try where others would not clearly matter."""

NOT_TRIED = (
    *("network.topology", "network.piconet_list"),  # of another network, with its flows, nodes, piconets
    *(f"{entry}[].{end}" for entry in ("network.flows", "network.outside_links") for end in ("from", "to")),
    *("network.outside_links[].name", "network.outside_links[].medium"),
    "network.outside_links[].up_s",  # interruptions begin with their length
    *("traffic.arrival_file", "traffic.file_period_s", "radio.trace_file"),  # refused without the file
    *("le.", "energy."),  # asked about by rows of measured and calculated values
    *("radio.links[].", "traffic.load_schedule[]."),  # asked about as a whole
)
"""Beginnings of keys that are not tried one by one."""

FROM_NOTHING = {"_s": 0.02, "_packets": 8, "_segments": 3, "_bytes": 500, "loss": 0.05, "loss_back": 0.1}
"""Values to try of numbers that are 0 or not set, by the ends of their names."""

OF_NOBODY = {
    "title": "a name",
    "run.duration_s": "the long run is solved",
    "run.warmup_s": "the long run is solved",
    "run.replications": "of the simulation",
    "run.seed": "of the simulation",
    "run.precision": "of the simulation",
    "run.precision_of": "of the simulation",
    "run.limit_cpu_s": "of the simulation",
}
"""Keys about the run, which theory does not read; but the steps of a load schedule last as long."""


def keys() -> Iterator[str]:
    """Yield every key that a scenario can have; of a flow's own, `OWN`."""
    known = {"from", "to", "law", *OWN}
    for key in vocabulary():
        entry, _, own = key.partition("[].")
        if not key.endswith("[]") and (entry != "network.flows" or not own or own in known):
            yield key


def values_of(key: str, now: Any) -> tuple[Any, ...]:
    """Return values to try for a key, other than the present one."""
    if key.startswith(NOT_TRIED):
        return ()
    if key in CHANGES:
        return tuple(value for value in CHANGES[key] if value != now)
    found: list[Any] = []
    for kind in vocabulary()[key]:
        if get_origin(kind.type) is Literal:
            found += [value for value in get_args(kind.type) if value != now]
        elif kind.type is bool:
            found.append(not now)
        elif kind.type in (int, float) and not now:
            found += [kind.type(value) for end, value in FROM_NOTHING.items() if key.endswith(end)]
        elif kind.type in (int, float) and not isinstance(now, str | bool):
            found += [kind.type(now * 4), kind.type(now / 4)]
    return tuple(found)


@cache
def base(name: str) -> Scenario:
    """Return a scenario with its changes."""
    shipped, changes = BASES[name]
    return bt.load(shipped).changed({"run.duration_s": 200.0, **changes})


class Change(NamedTuple):
    """A key with a value: the scenario without and with it."""

    key: str
    value: Any
    before: Scenario
    after: Scenario


def changes_of(name: str) -> Iterator[Change]:
    """Yield what every key and value makes of a base; values that contradict other keys are left out."""
    start = base(name)
    for key in keys():
        if key in OF_NOBODY:
            continue
        try:
            changes = needed(key, start)
            before = start.changed({one.replace("[]", "[1]"): value for one, value in changes.items()})
        except ScenarioError:  # the key is not read in such a network at all
            continue
        now = value_of(before, key)
        for value in values_of(key, now):
            try:
                after = with_value(before, key, value)
            except ScenarioError:
                continue
            if after != before:
                yield Change(key, value, before, after)


def value_of(scenario: Scenario, key: str) -> Any:
    """Return the value of a key; of a list's entries that of the first, None if there is none."""
    try:
        return scenario.value_of(key.replace("[]", "[1]"))
    except ScenarioError:
        return None


def with_value(scenario: Scenario, key: str, value: Any) -> Scenario:
    """Return the scenario with another value; of a list's entries in the first one."""
    return scenario.changed({key.replace("[]", "[1]"): value})


@cache
def solved(scenario_toml: str) -> tuple[Any, tuple[str, ...]] | str:
    """Return the answer and its warnings, or why there is none; equal scenarios are solved once."""
    import tomllib

    try:
        answer = bt.solve(Scenario.from_dict(tomllib.loads(scenario_toml)))
    except (NoConvergence, ImpossibleAnswer) as error:
        return str(error)
    return answer, tuple(answer.attrs["warnings"])
