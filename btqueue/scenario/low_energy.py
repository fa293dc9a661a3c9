"""Bluetooth Low Energy: the tables ``[le]`` and ``[energy]``, and rules between their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isclose
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from btqueue.baseband import low_energy as air
from btqueue.scenario.errors import Problem, conflict
from btqueue.scenario.fields import BitErrorRate, Condition, Table, Window, excluded, key, listed

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario
    from btqueue.scenario.transport import Transport

LE: Condition = {"link.bearer": ("le",)}
COC: Condition = {"le.transfer": ("coc",)}
NOTIFICATIONS: Condition = {"le.transfer": ("notifications",)}

CONTROLLERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "ideal": {},
        "nordic-sdc": {"event_overhead_s": 0.0015},
        "softdevice": {"event_overhead_s": 0.0013, "event_admission": "largest"},
        "zephyr": {"event_overhead_s": 0.0005},
        "ti": {"event_overhead_s": 0.0015},
        "esp32": {"event_overhead_s": 0.005},
        "macos": {"event_length_s": 0.00625, "event_extension": False},
    }
)
"""For each controller the keys whose defaults it changes, as measured throughputs tell them."""

SHORTEST_USUAL_S, USUAL_STEP_S, SHORT_STEP_S = 0.0075, 0.00125, 0.000125
"""Grids of the interval (Core Specification, 6, B, 4.5.1): from 7.5 ms on, and below."""


def _of_controller(name: str, default: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda data: CONTROLLERS.get(data.get("controller", "ideal"), {}).get(name, default)


class ChannelClass(Table):
    """Channels that are equally good."""

    channels: int = key(..., "how many", ge=1, le=air.CHANNELS)
    ber: BitErrorRate = key(..., "bit error rate on them, beside the errors of `[radio]`")


Length = Annotated[float, Field(ge=0.0003, le=4)]


class LowEnergy(Table):
    """Connections of Bluetooth Low Energy."""

    CHOICES: ClassVar[tuple[str, ...]] = ("controller",)
    WHEN: ClassVar[Condition] = LE

    controller: Literal["ideal", "nordic-sdc", "softdevice", "zephyr", "ti", "esp32", "macos"] = key(
        "ideal", "the defaults of the next four keys, as controllers that people measured have them"
    )
    event_overhead_s: float = key(
        _of_controller("event_overhead_s", 0.0),
        "end of an event's window that carries nothing",
        said="0; nordic-sdc and ti 0.0015, softdevice 0.0013, zephyr 0.0005, esp32 0.005",
        ge=0,
        le=0.05,
    )
    event_admission: Literal["fits", "largest"] = key(
        _of_controller("event_admission", "fits"),
        "an exchange starts if it ends in the window, or if the largest one both ways would",
        said='`"fits"`; softdevice `"largest"`',
    )
    event_length_s: Length | None = key(
        _of_controller("event_length_s", None),
        "time that the node reserves for an event; unset: the interval",
        said="–; macos 0.00625",
    )
    event_extension: bool = key(
        _of_controller("event_extension", True),
        "an event may go on until the next reservation of the node",
        said="`true`; macos `false`",
    )
    event_packets: int | None = key(None, "most exchanges of an event; unset: no limit", ge=1, le=1000)
    phy: air.PhyName = key("1M", "modulation and coding of all packets")
    payload_bytes: int = key(251, "most payload of a data PDU", ge=27, le=251)
    encrypted: bool = key(False, "PDUs that are not empty carry a message integrity check of 4 bytes")
    interval_s: float = key(
        0.05,
        "connection interval: a multiple of 1.25 ms from 7.5 ms on, below a multiple of 125 us",
        ge=0.000375,
        le=4,
    )
    interval_spread_s: float = key(
        0.0,
        "each link draws its own interval, up to this much shorter or longer, on the same grid",
        ge=0,
        le=1,
    )
    frame_space_s: float = key(150e-6, "T_IFS, the time between two PDUs", ge=0, le=0.01)
    latency: int = key(0, "events that a peripheral may skip while it has nothing to send", ge=0, le=499)
    subrate: int = key(1, "every event is used, or every second, third, ...", ge=1, le=500)
    supervision_timeout_s: float = key(
        20.0, "silence after which the connection is lost, and made anew at once", ge=0.1, le=32
    )
    anchors: Literal["spaced", "random"] = key(
        "spaced", "first anchors of a node's links: one event length after the other, or anywhere"
    )
    clock_ppm: float = key(0.0, "the clock of each device is wrong by up to this", ge=0, le=500)
    transfer: Literal["coc", "notifications"] = key(
        "coc", "data go by credit-based channels of L2CAP, or as notifications of the attribute protocol"
    )
    sdu_bytes: int | None = key(
        None, "most bytes of an SDU; unset: a segment", COC, said="a segment", ge=23, le=65_535
    )
    mps_bytes: int | None = key(
        None,
        "most bytes of a K-frame's payload, the SDU length of its first included; unset: payload_bytes - 4",
        COC,
        said="payload_bytes - 4",
        ge=23,
        le=65_535,
    )
    credits: Window = key(10, "K-frames that a sender may have sent beyond those returned", COC)
    credits_returned_every: Window = key(1, "K-frames after which the receiver returns credits", COC)
    att_mtu_bytes: int = key(
        247, "most bytes of a notification, its header of 3 included", NOTIFICATIONS, ge=23, le=517
    )
    acl_buffers: int | None = key(
        None,
        "PDUs of a link that its controller holds; they are refilled after the event; unset: no limit",
        ge=1,
        le=1000,
    )
    ip: Literal["6lowpan", "none"] = key(
        "6lowpan",
        "IPv6 with compressed headers (RFC 7668, RFC 6282), or messages alone "
        '(with transport.protocol = "none")',
    )
    iso_interval_s: float = key(0.0, "period of isochronous time, which is taken first", ge=0, le=1)
    iso_length_s: float = key(0.0, "isochronous time in each of its periods", ge=0, le=1)
    channel_classes: tuple[ChannelClass, ...] = listed(
        (), "channels that are not equally good, 37 in all; an event has one channel", most=air.CHANNELS
    )

    @property
    def reserved_s(self) -> float:
        """The time that an event reserves."""
        return self.interval_s if self.event_length_s is None else self.event_length_s

    @property
    def frame_bytes(self) -> int:
        """The most bytes of a K-frame's payload."""
        return self.payload_bytes - air.FRAME_HEADER_BYTES if self.mps_bytes is None else self.mps_bytes


class Energy(Table):
    """Currents of a peripheral of Bluetooth Low Energy."""

    WHEN: ClassVar[Condition] = LE

    tx_ma: float = key(5.3, "while it sends", ge=0, le=1000)
    rx_ma: float = key(5.4, "while it listens", ge=0, le=1000)
    idle_ma: float = key(1.0, "during the frame spaces of an event", ge=0, le=1000)
    event_uc: float = key(3.0, "charge (uC) of waking up for an event", ge=0, le=10_000)
    sleep_ua: float = key(2.0, "current (uA) that flows always", ge=0, le=1_000_000)
    supply_v: float = key(3.0, "voltage of the supply", gt=0, le=100)


def without_effect(scenario: Scenario) -> tuple[str, ...]:
    """Return the keys that cannot be written beside `link.bearer`, or beside `le.transfer`."""
    chosen = [("link.bearer", scenario.link.bearer)]
    if scenario.link.bearer == "le":
        chosen.append(("le.transfer", scenario.le.transfer))
    return excluded(type(scenario), *chosen)


def with_headers(le: LowEnergy, transport: Transport) -> Transport:
    """Return a transport whose `header_bytes`, unless they are written, are the bytes that IP and it take."""
    size = air.IPHC_BYTES - 1 + air.UDP_BYTES
    if transport.protocol == "tcp":
        size = air.IPHC_BYTES + transport.header_bytes - 20
    return transport.default(header_bytes=0 if le.ip == "none" else size)


def problems(s: Scenario) -> Iterator[Problem]:
    """Refuse keys that do not go with the bearer, and connections that cannot be."""
    le = s.le
    for place in without_effect(s):
        name, _, written = place.partition(".")
        table: Any = getattr(s, name)
        if written in table.model_fields_set:
            yield conflict(place, getattr(table, written), *_why(s, name))
    if s.link.bearer != "le":
        return
    if not _on_grid(le.interval_s):
        why = "a connection interval is a multiple of 1.25 ms from 7.5 ms on, and of 125 us below"
        yield conflict("le.interval_s", le.interval_s, why, allowed="a multiple of 0.00125, or of 0.000125")
    if le.interval_spread_s >= le.interval_s:
        why = f"no interval is left: it must be smaller than interval_s = {le.interval_s:g}"
        yield conflict("le.interval_spread_s", le.interval_spread_s, why)
    if le.transfer == "coc" and le.credits_returned_every > le.credits:
        why = f"the sender stops before credits return: it has {le.credits}"
        yield conflict(
            "le.credits_returned_every", le.credits_returned_every, why, allowed=f"at most {le.credits}"
        )
    length = le.event_length_s
    if length is not None and length > le.interval_s:
        why = f"an event cannot be longer than the interval of {le.interval_s:g} s"
        yield conflict("le.event_length_s", length, why, allowed=f"at most {le.interval_s:g}")
    silent = 2.0 * (1 + le.latency) * le.subrate * (le.interval_s + le.interval_spread_s)
    if le.supervision_timeout_s <= silent:
        why = f"must be above 2 (1 + latency) subrate times the interval, {silent:g} s"
        yield conflict("le.supervision_timeout_s", le.supervision_timeout_s, why, allowed=f"above {silent:g}")
    if le.channel_classes and (count := sum(one.channels for one in le.channel_classes)) != air.CHANNELS:
        why = f"there are {air.CHANNELS} data channels, and these are {count}"
        yield conflict("le.channel_classes", [one.channels for one in le.channel_classes], why)
    if le.ip == "none" and s.transport.protocol != "none":
        why = 'without IP there are messages alone; set transport.protocol = "none"'
        yield conflict("le.ip", le.ip, why, allowed='"6lowpan"')
    yield from _isochronous(le)


def _isochronous(le: LowEnergy) -> Iterator[Problem]:
    if (le.iso_interval_s > 0) != (le.iso_length_s > 0):
        zero = "iso_interval_s" if le.iso_length_s > 0 else "iso_length_s"
        yield conflict(f"le.{zero}", 0, "isochronous time needs both iso_interval_s and iso_length_s above 0")
        return
    exchange_us = air.exchange_us(
        le.phy, le.payload_bytes, 0, frame_space_us=1e6 * le.frame_space_s, encrypted=le.encrypted
    )
    least_s = 1e-6 * exchange_us
    if le.iso_length_s > 0 and le.iso_interval_s - le.iso_length_s < least_s:
        why = f"isochronous time leaves no room for an exchange of {least_s:g} s in {le.iso_interval_s:g} s"
        yield conflict("le.iso_length_s", le.iso_length_s, why)


def _why(s: Scenario, table: str) -> tuple[str]:
    if s.link.bearer != "le":
        return ('says something about Bluetooth Low Energy alone; set link.bearer = "le"',)
    if table == "le":
        return (f'does not go with le.transfer = "{s.le.transfer}"',)
    return ('has no meaning with link.bearer = "le"',)


def _on_grid(interval_s: float) -> bool:
    step = USUAL_STEP_S if interval_s >= SHORTEST_USUAL_S - 1e-12 else SHORT_STEP_S
    return isclose(interval_s / step, round(interval_s / step), abs_tol=1e-6)
