"""The transport protocol at both ends: the table ``[transport]``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from btqueue.scenario.fields import Count, PositiveSeconds, Seconds, Table


class Transport(Table):
    """TCP (RFC 793, 2988, 3782, 7323 and their variants), CentaurusComm, or bare messages."""

    protocol: Literal["tcp", "centaurus", "none"] = Field(default="tcp", description="transport protocol")
    variant: Literal["tahoe", "reno", "newreno", "sack", "vegas"] = Field(
        default="newreno", description="kind of TCP sender"
    )
    mss_bytes: int = Field(default=1460, ge=1, le=65_495, description="application bytes of a full segment")
    header_bytes: int = Field(
        default=40, ge=0, le=1000, description="TCP and IP headers of a segment and of an acknowledgement"
    )
    receive_window_segments: int = Field(default=8, ge=1, le=64, description="advertised window")
    initial_window_segments: int = Field(default=1, ge=1, le=64, description="congestion window at the start")
    initial_ssthresh_segments: int = Field(
        default=64, ge=2, le=1_000_000, description="slow-start threshold at the start"
    )
    initial_rto_s: PositiveSeconds = Field(
        default=3.0, description="retransmission timeout before the first RTT sample"
    )
    min_rto_s: PositiveSeconds = Field(default=1.0, description="smallest retransmission timeout")
    max_rto_s: PositiveSeconds = Field(
        default=64.0, description="largest retransmission timeout, back-off included"
    )
    rto_backoff: bool = Field(default=True, description="the timeout doubles on each expiry")
    delayed_ack: bool = Field(
        default=False, description="acknowledge every ack_every_segments, or when the ACK clock says so"
    )
    ack_every_segments: int = Field(
        default=2, ge=1, le=64, description="segments that force a delayed acknowledgement out"
    )
    ack_clock: Literal["timer", "tick"] = Field(
        default="timer",
        description="delayed ACK: ack_delay_s after the segment, or at the tick of a free-running clock",
    )
    ack_delay_s: PositiveSeconds = Field(
        default=0.2, description="longest wait of a delayed ACK, or period of the tick"
    )
    piggyback: bool = Field(
        default=False, description="data segments of the opposite flow carry acknowledgements"
    )
    timestamps: bool = Field(default=True, description="RTT by time stamps (RFC 7323); false: Karn's rule")
    ack_path: Literal["queued", "direct"] = Field(
        default="queued",
        description="ACKs share tokens, buffers and radio with data, or arrive without delay and loss",
    )
    alpha: float = Field(
        default=1.0, ge=0, le=1000, description="Vegas: fewer extra segments in flight open the window"
    )
    beta: float = Field(
        default=3.0, ge=0, le=1000, description="Vegas: more extra segments in flight close the window"
    )
    tcp_delay_s: Seconds = Field(default=0.0, description="processing time of a segment in TCP, at each end")
    ip_delay_s: Seconds = Field(default=0.0, description="processing time of a segment in IP, at each end")
    centaurus_packet_bytes: int = Field(
        default=64, ge=1, le=65_000, description="CentaurusComm: payload of a data packet"
    )
    centaurus_header_bytes: int = Field(
        default=6, ge=0, le=100, description="CentaurusComm: header of a data packet"
    )
    centaurus_control_bytes: int = Field(
        default=16, ge=1, le=1000, description="CentaurusComm: size of a control packet"
    )
    centaurus_watchdog_s: PositiveSeconds = Field(
        default=30.0,
        description="CentaurusComm: a session that hears nothing for this long is given up and repeated",
    )
    centaurus_early_data: bool = Field(
        default=False, description="CentaurusComm: send data before the receiver has agreed"
    )
    send_buffer_segments: Count | None = Field(
        default=None, description="segments the sender may hold; unset: no limit"
    )
