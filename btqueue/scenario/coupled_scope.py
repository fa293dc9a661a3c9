"""What the coupled model of the ring covers: TCP's exact chain in a fixed point with queues and radio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.baseband import PACKET_TYPES, TCP_PDU_OVERHEAD_BYTES, segment
from btqueue.scenario.scope import Limit
from btqueue.scenario.unrepeated_scope import UNREPEATED, not_plain_segments

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

LARGEST_RECEIVE_WINDOW = 8
"""Beyond it the exact chain has too many states."""

LEAST_STAY_S = 1e-9
"""Mean stay of the radio in a state, far below the time of a bit."""

SEGMENTS_IN_UPLINK = 2
"""Segments for which the queue behind the token bucket must have places: the model never finds it full."""

COUPLED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **UNREPEATED,
        "network.topology": ("piconet",),
        "network.flows": ("ring",),
        "radio.model": ("constant", "gilbert-elliott"),
        "flow_control.enabled": (True,),
    }
)
"""Ring piconet whose connections radio errors hold back (Venugopal 2006, chapter 6)."""


def not_coupled(s: Scenario) -> Iterator[Limit]:
    """Yield what the model does not cover, and no list of values can say."""
    network, radio = s.network, s.radio
    if network.active_flows not in ("all", network.peripherals) and network.topology == "piconet":
        yield Limit("network.active_flows", network.active_flows, '"all"')
    if radio.model == "constant" and radio.ber == 0:
        yield Limit("radio.ber", radio.ber, "a bit error rate above 0")
    for key in ("good_s", "bad_s") if radio.model == "gilbert-elliott" else ():
        if getattr(radio, key) < LEAST_STAY_S:
            yield Limit(f"radio.{key}", getattr(radio, key), f"at least {LEAST_STAY_S:g}")
    if s.transport.receive_window_segments > LARGEST_RECEIVE_WINDOW:
        available = f"at most {LARGEST_RECEIVE_WINDOW}"
        yield Limit("transport.receive_window_segments", s.transport.receive_window_segments, available)
    packets = len(
        segment(_data_bytes(s), [PACKET_TYPES[name] for name in s.link.packets], s.link.segmentation)
    )
    if s.flow_control.baseband_packets < SEGMENTS_IN_UPLINK * packets:
        available = (
            f"at least {SEGMENTS_IN_UPLINK * packets}, {SEGMENTS_IN_UPLINK} segments of {packets} packets"
        )
        yield Limit("flow_control.baseband_packets", s.flow_control.baseband_packets, available)
    yield from not_plain_segments(s)


def _data_bytes(s: Scenario) -> int:
    return s.traffic.message_bytes + TCP_PDU_OVERHEAD_BYTES
