"""What the present engines can run. The vocabulary of scenarios is larger; the rest is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

from btqueue.scenario.errors import NotBuiltYet, Problem, bracketed, shown
from btqueue.scenario.scenario import Scenario

AVAILABLE_VALUES: dict[str, tuple[object, ...]] = {
    "network.topology": ("piconet",),
    "network.flows": ("ring",),
    "radio.model": ("perfect", "constant", "gilbert-elliott"),
    "radio.per": (None,),
    "link.arq": ("none",),
    "link.adaptation": ("fixed",),
    "link.node_buffer_bytes": (None,),
    "link.l2cap_header_bytes": (4,),
    "link.l2cap_delay_s": (0,),
    "link.baseband_delay_s": (0,),
    "flow_control.central_buffer_packets": (None,),
    "polling.discipline": ("e-limited", "1-limited", "exhaustive"),
    "voice.packet": ("none",),
    "traffic.source": ("poisson", "greedy"),
    "traffic.load_schedule": ((),),
    "transport.protocol": ("tcp",),
    "transport.variant": ("newreno",),
    "transport.header_bytes": (40,),
    "transport.delayed_ack": (False,),
    "transport.piggyback": (False,),
    "transport.timestamps": (True,),
    "transport.ack_path": ("queued",),
    "transport.tcp_delay_s": (0,),
    "transport.ip_delay_s": (0,),
    "transport.send_buffer_segments": (None,),
}
"""For each key with values that are not built yet: those that are."""


def require_built(scenario: Scenario) -> None:
    """Make sure that the present engines can run *scenario*.

    Raises:
        NotBuiltYet: naming each key, its value, and what is available today.
    """
    if problems := list(not_built(scenario)):
        raise NotBuiltYet(problems)


def not_built(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each part of *scenario* that the present engines cannot run."""
    for key, available in AVAILABLE_VALUES.items():
        table, _, name = key.partition(".")
        value = getattr(getattr(scenario, table), name)
        if value not in available:
            yield _problem(key, value, _listed(available))
    network = scenario.network
    if network.active_flows not in ("all", network.peripherals) and network.topology == "piconet":
        yield _problem("network.active_flows", network.active_flows, '"all"')
    if network.outside_links:
        names = ", ".join(link.name for link in network.outside_links)
        yield _problem("network.outside_links", names, "no outside links")
    traffic, transport = scenario.traffic, scenario.transport
    if traffic.message_bytes > transport.mss_bytes:
        available = f"at most transport.mss_bytes = {transport.mss_bytes}, one segment for each message"
        yield _problem("traffic.message_bytes", traffic.message_bytes, available)


def _listed(values: tuple[object, ...]) -> str:
    return " or ".join("leaving it out" if value is None or value == () else shown(value) for value in values)


def _problem(key: str, value: object, available: str) -> Problem:
    given = f"a list of {len(value)}" if isinstance(value, tuple) else shown(value)
    message = f"{bracketed(key)} = {given}: valid, but not built yet; available today: {available}"
    return Problem(message, key=key, value=value, allowed=available)
