"""From segments to radio packets: the tables ``[link]`` and ``[flow_control]``."""

from __future__ import annotations

from math import inf
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from btqueue.baseband.packets import PACKET_TYPES
from btqueue.scenario.fields import (
    BitErrorRate,
    Bytes,
    Condition,
    Count,
    Name,
    PositiveRate,
    PositiveSeconds,
    Seconds,
    Table,
    key,
    listed,
)

PACKETS_OF_RATE = {
    "basic": ("DH5", "DH3", "DH1"),
    "edr2": ("2-DH5", "2-DH3", "2-DH1"),
    "edr3": ("3-DH5", "3-DH3", "3-DH1"),
}
"""The packet types of a link at 1, 2 or 3 Mbit/s, of five, three and one slots."""


CLASSIC = {"link.bearer": ("br-edr",)}
"""Keys of Bluetooth Classic."""
ERRORS = {"errors": (True,)}
ADAPTED = {"link.adaptation": ("best", "thresholds")}
TOKENS = {"flow_control.enabled": (True,)}


class Link(Table):
    """Packet types, segmentation, link-level repair and per-layer delays."""

    CHOICES: ClassVar[tuple[str, ...]] = ("rate",)

    bearer: Literal["br-edr", "le"] = key("br-edr", "Bluetooth Classic, or Bluetooth Low Energy: `[le]`")
    rate: Literal["basic", "edr2", "edr3"] = key(
        "basic",
        "basic rate of 1 Mbit/s, or enhanced of 2 or 3 Mbit/s: the packet types, unless given",
        CLASSIC,
    )
    packets: tuple[Name, ...] = key(
        lambda data: PACKETS_OF_RATE[data.get("rate", "basic")],
        "packet types that segments may be cut into; unset: the DH packets of the rate that fit "
        f"beside voice links. They are {', '.join(PACKET_TYPES)}",
        said="the DH packets of five, three and one slots of `link.rate` that fit beside voice links",
        when=CLASSIC,
        strict=False,
        min_length=1,
        max_length=32,
    )
    segmentation: Literal["osu", "best-fit"] = key(
        "osu", "optimum slot utilisation (fewest packets), or best fit (least padding)", CLASSIC
    )
    arq: Literal["none", "unlimited"] | Annotated[int, Field(ge=1, le=10_000)] = key(
        "unlimited",
        "link-level repetition: none, unlimited, or the most transmissions of a packet",
        {"packets are repeated": (True,), **CLASSIC},
    )
    arq_feedback: Literal["reliable", "lossy"] = key(
        "reliable",
        "the acknowledgement bit always arrives, or is lost with the packet that carries it",
        {"packets are repeated": (True,), "repetition": (True,), **CLASSIC},
    )
    flush_timeout_s: PositiveSeconds | None = key(
        None, "a packet older than this is given up", (ERRORS, {"link.bearer": ("le",)})
    )
    adaptation: Literal["fixed", "best", "thresholds"] = key(
        "fixed",
        "packet type by segmentation alone, the best one for the error rate, or by thresholds",
        CLASSIC,
    )
    adaptation_packets: tuple[Name, ...] = listed(
        ("DH5", "DM5", "DM3", "DM1"),
        "packet types from the quietest to the noisiest radio",
        when=ADAPTED,
        least=1,
        most=32,
    )
    adaptation_thresholds: tuple[BitErrorRate, ...] = listed(
        (0.0001529, 0.0060795, 0.0157813),
        "bit error rates at which the next of adaptation_packets is used",
        when={"link.adaptation": ("thresholds",)},
        most=31,
    )
    adaptation_estimate: Literal["true-rate", "link-quality"] = key(
        "true-rate", "input of the adaptation: the true error rate, or the quantised link quality", ADAPTED
    )
    l2cap_header_bytes: int = key(4, "L2CAP header of each segment", CLASSIC, ge=0, le=100)
    l2cap_delay_s: Seconds = key(0.0, "processing time of a segment in L2CAP, at each end")
    baseband_delay_s: Seconds = key(0.0, "processing time of a packet in the baseband, at each end")
    node_buffer_bytes: Bytes | None = key(None, "bytes a node can hold below IP; unset: no limit")


class FlowControl(Table):
    """The L2CAP token bucket and the queues around it."""

    WHEN: ClassVar[Condition] = CLASSIC

    enabled: bool = key(False, "a token bucket; false: segments go to the baseband queue at once")
    token_rate_kbps: PositiveRate = key(250.0, "rate at which tokens arrive", TOKENS)
    bucket_bytes: Bytes = key(3000, "most tokens that can be saved; the bucket starts full", TOKENS)
    buffer_packets: Count = key(25, "S, packets that may wait for tokens", TOKENS)
    baseband_packets: Count | None = key(
        None, "L, packets that may wait in the uplink baseband queue; unset: no limit"
    )
    drop: Literal["packet", "segment"] = key(
        "packet", "a full token buffer drops single packets, or refuses the whole segment"
    )
    charge: Literal["payload", "actual"] = key(
        "payload", "tokens for a packet: the full payload of its type, or the bytes it carries", TOKENS
    )
    central_buffer_packets: Count | None = key(
        None, "packets a central may hold for each peripheral; unset: no limit"
    )

    @property
    def places(self) -> tuple[float, float]:
        """Most packets in the queues of a radio link, towards the peripheral and towards the central."""
        limits = self.central_buffer_packets, self.baseband_packets
        down, up = (inf if limit is None else float(limit) for limit in limits)
        return down, up
