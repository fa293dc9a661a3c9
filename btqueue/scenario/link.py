"""From segments to radio packets: the tables ``[link]`` and ``[flow_control]``."""

from __future__ import annotations

from typing import Annotated, Literal

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


class Link(Table):
    """Packet types, segmentation, link-level repair and per-layer delays."""

    packets: tuple[Name, ...] = listed(
        ("DH5", "DH3"),
        f"packet types that segments may be cut into: some of {', '.join(PACKET_TYPES)}",
        least=1,
        most=32,
    )
    segmentation: Literal["osu", "best-fit"] = Field(
        default="osu", description="optimum slot utilisation (fewest packets), or best fit (least padding)"
    )
    arq: Literal["none", "unlimited"] | Annotated[int, Field(ge=1, le=10_000)] = Field(
        default="none",
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
        description="what adaptation knows: the true error rate, or the quantised link quality",
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
        default=None, description="bytes a node can hold below IP; unset: no such limit"
    )


class FlowControl(Table):
    """The L2CAP token bucket and the queues around it."""

    enabled: bool = Field(default=True, description="false: segments go to the baseband queue at once")
    token_rate_kbps: PositiveRate = Field(default=250.0, description="rate at which tokens arrive")
    bucket_bytes: Bytes = Field(
        default=3000, description="most tokens that can be saved; the bucket starts full"
    )
    buffer_packets: Count = Field(default=25, description="S, packets that may wait for tokens")
    baseband_packets: Count = Field(
        default=20, description="L, packets that may wait in the uplink baseband queue"
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
