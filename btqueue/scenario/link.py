"""From segments to radio packets: the tables ``[link]`` and ``[flow_control]``."""

from __future__ import annotations

from math import inf
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from btqueue.baseband.packets import PACKET_TYPES
from btqueue.scenario.fields import (
    BitErrorRate,
    Bytes,
    Count,
    Name,
    PositiveRate,
    PositiveSeconds,
    Seconds,
    Table,
    listed,
)

PACKETS_OF_RATE = {
    "basic": ("DH5", "DH3", "DH1"),
    "edr2": ("2-DH5", "2-DH3", "2-DH1"),
    "edr3": ("3-DH5", "3-DH3", "3-DH1"),
}
"""The packet types of a link at 1, 2 or 3 Mbit/s, of five, three and one slots."""


class Link(Table):
    """Packet types, segmentation, link-level repair and per-layer delays."""

    CHOICES: ClassVar[tuple[str, ...]] = ("rate",)

    rate: Literal["basic", "edr2", "edr3"] = Field(
        default="basic",
        description="basic rate of 1 Mbit/s, or enhanced of 2 or 3 Mbit/s: the packet types, unless given",
    )
    packets: tuple[Name, ...] = Field(
        default_factory=lambda data: PACKETS_OF_RATE[data.get("rate", "basic")],
        strict=False,
        min_length=1,
        max_length=32,
        description="packet types that segments may be cut into; unset: the DH packets of the rate that fit "
        f"beside voice links. They are {', '.join(PACKET_TYPES)}",
    )
    segmentation: Literal["osu", "best-fit"] = Field(
        default="osu", description="optimum slot utilisation (fewest packets), or best fit (least padding)"
    )
    arq: Literal["none", "unlimited"] | Annotated[int, Field(ge=1, le=10_000)] = Field(
        default="unlimited",
        description="link-level repetition: none, unlimited, or the most transmissions of a packet",
    )
    arq_feedback: Literal["reliable", "lossy"] = Field(
        default="reliable",
        description="the acknowledgement bit always arrives, or is lost with the packet that carries it",
    )
    flush_timeout_s: PositiveSeconds | None = Field(
        default=None, description="a packet older than this is given up"
    )
    adaptation: Literal["fixed", "best", "thresholds"] = Field(
        default="fixed",
        description="packet type by segmentation alone, the best one for the error rate, or by thresholds",
    )
    adaptation_packets: tuple[Name, ...] = listed(
        ("DH5", "DM5", "DM3", "DM1"), "packet types from the quietest to the noisiest radio", least=1, most=32
    )
    adaptation_thresholds: tuple[BitErrorRate, ...] = listed(
        (0.0001529, 0.0060795, 0.0157813),
        "bit error rates at which the next of adaptation_packets is used",
        most=31,
    )
    adaptation_estimate: Literal["true-rate", "link-quality"] = Field(
        default="true-rate",
        description="input of the adaptation: the true error rate, or the quantised link quality",
    )
    quality_memory_s: Seconds = Field(
        default=0.0, description="time constant of the averaged link quality; 0: the present one"
    )
    l2cap_header_bytes: int = Field(default=4, ge=0, le=100, description="L2CAP header of each segment")
    l2cap_delay_s: Seconds = Field(
        default=0.0, description="processing time of a segment in L2CAP, at each end"
    )
    baseband_delay_s: Seconds = Field(
        default=0.0, description="processing time of a packet in the baseband, at each end"
    )
    node_buffer_bytes: Bytes | None = Field(
        default=None, description="bytes a node can hold below IP; unset: no limit"
    )


class FlowControl(Table):
    """The L2CAP token bucket and the queues around it."""

    enabled: bool = Field(
        default=False, description="a token bucket; false: segments go to the baseband queue at once"
    )
    token_rate_kbps: PositiveRate = Field(default=250.0, description="rate at which tokens arrive")
    bucket_bytes: Bytes = Field(
        default=3000, description="most tokens that can be saved; the bucket starts full"
    )
    buffer_packets: Count = Field(default=25, description="S, packets that may wait for tokens")
    baseband_packets: Count | None = Field(
        default=None, description="L, packets that may wait in the uplink baseband queue; unset: no limit"
    )
    drop: Literal["packet", "segment"] = Field(
        default="packet", description="a full token buffer drops single packets, or refuses the whole segment"
    )
    charge: Literal["payload", "actual"] = Field(
        default="payload",
        description="tokens for a packet: the full payload of its type, or the bytes it carries",
    )
    central_buffer_packets: Count | None = Field(
        default=None, description="packets a central may hold for each peripheral; unset: no limit"
    )

    @property
    def places(self) -> tuple[float, float]:
        """Most packets in the queues of a radio link, towards the peripheral and towards the central."""
        limits = self.central_buffer_packets, self.baseband_packets
        down, up = (inf if limit is None else float(limit) for limit in limits)
        return down, up
