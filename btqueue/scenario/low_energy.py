"""Bluetooth Low Energy: the tables ``[le]`` and ``[energy]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from btqueue.baseband import low_energy as air
from btqueue.scenario.fields import BitErrorRate, Condition, Table, Window, conditions, effective, key, listed

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario
    from btqueue.scenario.transport import Transport

LE: Condition = {"link.bearer": ("le",)}
COC: Condition = {"le.transfer": ("coc",)}
NOTIFICATIONS: Condition = {"le.transfer": ("notifications",)}

SHORTEST_USUAL_S, USUAL_STEP_S, SHORT_STEP_S = 0.0075, 0.00125, 0.000125
"""Grids of the interval (Core Specification, 6, B, 4.5.1): from 7.5 ms on, and below."""


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
        "ideal", "whose habits the next four keys have by default, as they were measured"
    )
    event_overhead_s: float = key(
        0.0,
        "end of an event's window that carries nothing",
        said="0; nordic-sdc and ti 0.0015, softdevice 0.0013, zephyr 0.0005, esp32 0.005",
        ge=0,
        le=0.05,
    )
    event_admission: Literal["fits", "largest"] = key(
        "fits",
        "an exchange starts if it ends in the window, or if the largest one both ways would",
        said='`"fits"`; softdevice `"largest"`',
    )
    event_length_s: Length | None = key(
        None,
        "time that a central reserves for each event of a link; unset: the interval, enough for one link",
        said="–; macos 0.00625",
    )
    event_extension: bool = key(
        True,
        "an event with more data goes on beyond event_length_s, until another link's begins",
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
        "spaced",
        "when links of a central have their first events: one event_length_s after the other, or at random",
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
    credits: Window = key(10, "K-frames that a sender may send before the receiver returns credits", COC)
    credits_returned_every: Window = key(1, "K-frames after which the receiver returns credits", COC)
    att_mtu_bytes: int = key(
        247, "most bytes of a notification, its header of 3 included", NOTIFICATIONS, ge=23, le=517
    )
    acl_buffers: int | None = key(
        None,
        "most data PDUs of a link in an event: its host adds more between events only; unset: no limit",
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
    chosen = {("link.bearer", scenario.link.bearer)}
    if scenario.link.bearer == "le":
        chosen.add(("le.transfer", scenario.le.transfer))
    possible = set(effective(type(scenario), frozenset(chosen)))
    return tuple(key for key in conditions(type(scenario)) if key not in possible)


def with_headers(le: LowEnergy, transport: Transport) -> Transport:
    """Return a transport whose `header_bytes`, unless they are written, are the bytes that IP and it take."""
    size = air.IPHC_BYTES - 1 + air.UDP_BYTES
    if transport.protocol == "tcp":
        size = air.IPHC_BYTES + transport.header_bytes - 20
    return transport.default(header_bytes=0 if le.ip == "none" else size)
