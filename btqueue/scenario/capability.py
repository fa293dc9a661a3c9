"""What the two engines can run. The vocabulary of scenarios is larger; the rest is refused by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from btqueue.scenario.errors import NotBuiltYet, Problem, bracketed, shown
from btqueue.scenario.scenario import Scenario

Engine = Literal["solve", "simulate"]

SOLVE_VALUES: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "network.topology": ("piconet",),
        "network.flows": ("ring",),
        "network.relay": ("packet",),
        "radio.model": ("perfect", "constant", "gilbert-elliott"),
        "radio.per": (None,),
        "radio.links": ((),),
        "radio.interferers": (0,),
        "radio.colocated": (False,),
        "link.arq": ("none",),
        "link.arq_feedback": ("reliable",),
        "link.adaptation": ("fixed",),
        "link.quality_memory_s": (0,),
        "link.node_buffer_bytes": (None,),
        "link.l2cap_header_bytes": (4,),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
        "flow_control.central_buffer_packets": (None,),
        "polling.discipline": ("e-limited", "1-limited", "exhaustive"),
        "polling.bridge_patience_s": (0,),
        "voice.packet": ("none",),
        "traffic.source": ("poisson", "greedy"),
        "traffic.two_way": (False,),
        "traffic.start_s": (0,),
        "traffic.load_schedule": ((),),
        "traffic.application_timeout_s": (None,),
        "transport.protocol": ("tcp",),
        "transport.variant": ("newreno",),
        "transport.header_bytes": (40,),
        "transport.clock_granularity_s": (0,),
        "transport.limited_transmit": (False,),
        "transport.rate_reduction": (False,),
        "transport.window_limited_growth": (False,),
        "transport.hold_ssthresh": (False,),
        "transport.sack_blocks": (3,),
        "transport.handshake": (False,),
        "transport.connection_per_session": (False,),
        "transport.delayed_ack": (False,),
        "transport.piggyback": (False,),
        "transport.timestamps": (True,),
        "transport.ack_path": ("queued",),
        "transport.gamma": (1,),
        "transport.vegas_adjustment": ("per-ack",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "transport.centaurus_start": ("peer",),
        "transport.centaurus_worker_s": (0,),
        "transport.send_buffer_segments": (None,),
    }
)
"""For each key with values that the model does not cover yet: those that it does."""

SIMULATE_VALUES: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {"polling.bridge_schedule": ("walk-in", "sniff", "pcss")}
)
"""For each key with values that the simulator cannot run yet: those that it can."""

VALUES: Mapping[Engine, Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {"solve": SOLVE_VALUES, "simulate": SIMULATE_VALUES}
)
NAMES: Mapping[Engine, str] = MappingProxyType({"solve": "the model", "simulate": "the simulator"})

LARGEST_WINDOW_SOLVED = 64
MOST_PICONETS_OF_A_DEVICE = 8
"""Most piconets that a simulated device can belong to."""


def require_built(scenario: Scenario, engine: Engine = "solve") -> None:
    """Make sure that *engine* can run *scenario*.

    Raises:
        NotBuiltYet: naming each key, its value, and what is available today.
    """
    if problems := list(not_built(scenario, engine)):
        raise NotBuiltYet(problems)


def not_built(scenario: Scenario, engine: Engine = "solve") -> Iterator[Problem]:
    """Yield a problem for each part of *scenario* that *engine* cannot run."""
    for key, available in VALUES[engine].items():
        table, _, name = key.partition(".")
        value = getattr(getattr(scenario, table), name)
        if value not in available:
            yield _problem(engine, key, value, _listed(available))
    yield from (_unsolved if engine == "solve" else _unsimulated)(scenario)


def _unsolved(s: Scenario) -> Iterator[Problem]:
    """Yield what the model does not cover, and no list of values can say."""
    network, traffic, transport = s.network, s.traffic, s.transport
    if network.active_flows not in ("all", network.peripherals) and network.topology == "piconet":
        yield _problem("solve", "network.active_flows", network.active_flows, '"all"')
    if network.outside_links:
        names = ", ".join(link.name for link in network.outside_links)
        yield _problem("solve", "network.outside_links", names, "no outside links")
    if traffic.message_bytes > transport.mss_bytes:
        available = f"at most transport.mss_bytes = {transport.mss_bytes}, one segment for each message"
        yield _problem("solve", "traffic.message_bytes", traffic.message_bytes, available)
    for key in ("receive_window_segments", "initial_window_segments"):
        if getattr(transport, key) > LARGEST_WINDOW_SOLVED:
            available = f"at most {LARGEST_WINDOW_SOLVED}"
            yield _problem("solve", f"transport.{key}", getattr(transport, key), available)


def _unsimulated(s: Scenario) -> Iterator[Problem]:
    """Yield what the simulator cannot run, and no list of values can say."""
    memberships = Counter(name for p in s.network.piconet_names for name in (p.central, *p.members))
    for name, count in memberships.items():
        if count > MOST_PICONETS_OF_A_DEVICE:
            available = f"a device in at most {MOST_PICONETS_OF_A_DEVICE} piconets, not in {count}"
            yield _problem("simulate", "network.piconet_list", name, available)


def _listed(values: tuple[object, ...]) -> str:
    return " or ".join("leaving it out" if value is None or value == () else shown(value) for value in values)


def _problem(engine: Engine, key: str, value: object, available: str) -> Problem:
    given = f"a list of {len(value)}" if isinstance(value, tuple) else shown(value)
    message = f"{bracketed(key)} = {given}: valid, but not built yet in {NAMES[engine]}; "
    return Problem(f"{message}available today: {available}", key=key, value=value, allowed=available)
