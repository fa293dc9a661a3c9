"""The transport protocol at both ends: the table ``[transport]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from btqueue.baseband.packets import SLOT_S
from btqueue.scenario.fields import ALWAYS, Condition, Count, PositiveSeconds, Seconds, Table, Window, key

Variant = Literal["tahoe", "reno", "newreno", "sack", "vegas", "cubic"]

LARGEST_PLAIN_WINDOW_BYTES = 65_535
"""The largest window that a TCP header can advertise without window scaling (RFC 793, 3.1)."""

SHARED = {"transport.protocol": ("tcp",), "messages share segments": (True,)}
SACK = ({"transport.variant": ("sack",)}, {"transport.sack": (True,)})
VEGAS = {"transport.variant": ("vegas",)}
DELAYED = {"transport.delayed_ack": (True,)}
CENTAURUS = {"transport.protocol": ("centaurus",), "traffic.source": ("request-reply",)}


class Transport(Table):
    """TCP (RFC 793, 2988, 3782, 7323 and their variants), CentaurusComm, or bare messages."""

    CHOICES: ClassVar[tuple[str, ...]] = ("preset",)
    WHEN: ClassVar[Condition] = {"transport.protocol": ("tcp",)}
    gamma: ClassVar[float] = 1.0
    """More extra segments in flight end the slow start of Vegas."""
    centaurus_header_bytes: ClassVar[int] = 6
    """The header of a data packet of CentaurusComm (Avancha 2002, section 3.4.3)."""
    centaurus_control_bytes: ClassVar[int] = 16
    """The size of a control packet of CentaurusComm."""

    preset: Literal["rfc", "linux", "ns3", "thesis"] = key(
        "rfc",
        "TCP: the defaults of the other keys, as the RFCs recommend (the defaults of this page), "
        "as Linux or ns-3's NewReno has them, or as simulators had them in 2006",
    )
    protocol: Literal["tcp", "centaurus", "none"] = key("tcp", "transport protocol", ALWAYS)
    variant: Variant = key("sack", "kind of TCP sender")
    mss_bytes: int = key(
        1460, "application bytes of a full segment", {"transport.protocol": ("tcp", "none")}, ge=1, le=65_495
    )
    header_bytes: int = key(
        lambda data: 40 if data.get("protocol", "tcp") == "tcp" else 28,
        "headers of IP and TCP, or of IP and UDP without TCP, in every segment; with TCP at "
        "least 1 where link.l2cap_header_bytes = 0",
        ALWAYS,
        said="40; 28 without TCP",
        ge=0,
        le=1000,
    )
    windows: Literal["bytes", "segments"] = key(
        "bytes",
        "TCP: windows count bytes, and messages share segments; or windows count segments, and "
        "no two messages share a segment, as in many simulators",
        SHARED,
    )
    nagle: bool | Literal["minshall"] = key(
        True,
        "windows of bytes: a segment that is not full waits while data is unacknowledged (RFC "
        '1122, 4.2.3.4), or as in Linux, "minshall", while another segment that was not full is; for '
        "messages below a segment, written one at a time, both are the same",
        SHARED,
    )
    receive_window_segments: Window = key(
        lambda data: max(1, LARGEST_PLAIN_WINDOW_BYTES // data.get("mss_bytes", 1460)),
        "advertised window, in segments of mss_bytes; unset: the segments in 64 KiB",
        said="the segments in 64 KiB: 44 of 1,460 bytes",
    )
    initial_window_segments: int = key(
        lambda data: min(10, max(2, 14_600 // data.get("mss_bytes", 1460))),  # RFC 6928, section 2
        "congestion window at the start; unset: as in RFC 6928, at most receive_window_segments",
        said="10; of segments above 1,460 bytes fewer (RFC 6928); at most the receive window",
        ge=1,
        le=1000,
    )
    initial_ssthresh_segments: int = key(1_000_000, "slow-start threshold at the start", ge=2, le=1_000_000)
    initial_rto_s: PositiveSeconds = key(1.0, "retransmission timeout before the first RTT sample")
    min_rto_s: PositiveSeconds = key(1.0, "smallest retransmission timeout")
    max_rto_s: PositiveSeconds = key(64.0, "largest retransmission timeout, back-off included")
    rto_backoff: bool = key(True, "the timeout doubles on each expiry")
    clock_granularity_s: Seconds = key(0.0, "G of RFC 6298, the least share of the variation in the timeout")
    limited_transmit: bool = key(True, "the first two duplicate ACKs let new segments out (RFC 3042)")
    rate_reduction: bool = key(False, "proportional rate reduction during recovery (RFC 6937)")
    window_limited_growth: bool = key(
        True, "cwnd grows only while the sender uses all of it (RFC 7661, section 3)"
    )
    hold_ssthresh: bool = key(
        True, "a second timeout of the same segment leaves ssthresh as it is (RFC 5681)"
    )
    sack: bool = key(
        False,
        "selective acknowledgements (RFC 2018, RFC 6675) also of NewReno, CUBIC, per-rtt Vegas",
        {"transport.variant": ("newreno", "cubic", "vegas")},
    )
    retransmit_only_lost: bool = key(
        False,
        "SACK: a recovery retransmits only segments that count as lost (ns-3, Linux), none that "
        "may be lost (rules 3 and 4 of RFC 6675)",
        SACK,
    )
    loss_detection: Literal["duplicates", "rack"] = key(
        "duplicates",
        "a segment counts as lost when enough above it has arrived (RFC 6675), or when one "
        "sent later has arrived and it is late by a round trip and a reordering window (RFC 8985, as in "
        "Linux, which counts duplicates without SACK; newreno, sack and cubic only; without effect are then "
        "retransmit_only_lost, limited_transmit, hold_ssthresh)",
        {"transport.variant": ("newreno", "sack", "cubic")},
    )
    loss_probes: bool = key(
        False,
        "RACK with SACK: a segment is sent two round trips after the last, so that a lost tail "
        "shows before the timer expires (tail loss probes, RFC 8985, section 7)",
    )
    frto: bool = key(
        False,
        "RACK: after a timeout new data goes first; if data sent before the timeout arrives, the "
        "timeout is undone (F-RTO, RFC 5682)",
    )
    rto_variation: Literal["smoothed", "largest"] = key(
        "smoothed",
        "the timer's variation of round trips: smoothed (RFC 6298), or the largest of a round "
        "trip, at least min_rto_s, which falls slowly (Linux)",
    )
    buffers: Literal["fixed", "tuned"] = key(
        "fixed",
        "RACK: buffers of a fixed size (receive_window_segments, send_buffer_segments), or send "
        "and receive buffers that grow with the connection as in Linux: a sender waits for its application, "
        "and a receiver acknowledges at once while its window grows",
    )
    hystart: bool = key(
        False,
        "CUBIC leaves slow start when acknowledgements come in a row for half a round trip, or "
        "round trips have grown by an eighth, before a loss says so (HyStart, as in Linux)",
    )
    timer_tick_s: Seconds = key(
        0.0,
        "the sender's timers fire at multiples of this, long ones at multiples of eight times this and more "
        "(Linux with 250 ticks a second: 0.004)",
    )
    ssthresh_rule: Literal["flight", "window", "pipe", "one-less"] = key(
        "flight",
        "quantity from which a loss computes ssthresh: the data in flight (RFC 5681), cwnd "
        "(Linux), the estimated data in the network (ns-3), or cwnd less one segment (ns-3's Vegas)",
    )
    byte_counting: bool = key(
        False, "the window grows with segments acknowledged, not with ACKs, in whole segments (Linux)"
    )
    recovery_exit_grows: bool = key(
        False,
        "the acknowledgement that ends a recovery opens the window, too (ns-3)",
        {"transport.variant": ("reno", "newreno", "sack", "vegas", "cubic")},
    )
    timeout_exit_holds: bool = key(
        False,
        "the acknowledgement that ends the slow start after a timeout opens the window only for "
        "data sent after the timeout (ns-3)",
    )
    inflate_by_one: bool = key(
        False,
        "without SACK the third duplicate ACK inflates cwnd by one segment, not three (ns-3)",
        ({"transport.variant": ("reno",)}, {"transport.sack": (False,)}),
    )
    ack_ends_backoff: bool = key(
        False, "every new ACK ends the timer's back-off, also one without an RTT (ns-3, Linux)"
    )
    impatient_timer: bool = key(
        False,
        "in a recovery the timer restarts at the first partial ACK only (RFC 6582, section 4)",
        {"transport.variant": ("newreno", "sack", "vegas", "cubic")},
    )
    vegas_on_srtt: bool = key(False, "Vegas is given the smoothed round-trip time (ns-3)", VEGAS)
    sack_blocks: int = key(
        3, "SACK: most blocks that an acknowledgement reports", SACK, neutral=(3, 4), ge=1, le=4
    )
    handshake: bool = key(
        False,
        "a connection opens with SYN and SYN-ACK when its source first writes, and their round "
        "trip is the first that is measured; false: it is open from the start",
    )
    connection_per_session: bool = key(
        False,
        "every request-reply session opens a new connection",
        {"transport.protocol": ("tcp",), "traffic.source": ("request-reply",)},
    )
    delayed_ack: bool = key(True, "acknowledge every ack_every_segments, or when the ACK clock says so")
    ack_every_segments: int = key(
        2, "segments that force a delayed acknowledgement out", DELAYED, ge=1, le=64
    )
    ack_clock: Literal["timer", "tick", "adaptive"] = key(
        "timer",
        "delayed ACK: ack_delay_s after the segment, at the tick of a free-running clock, or as Linux adapts "
        "the wait to the gaps between segments, from ack_delay_s on",
        DELAYED,
    )
    ack_delay_s: PositiveSeconds = key(0.2, "longest wait of a delayed ACK, or period of the tick", DELAYED)
    quick_acks: int = key(
        0,
        "delayed ACK: segments acknowledged at once at the start and after one that came twice (Linux: 16)",
        DELAYED,
        ge=0,
        le=1000,
    )
    piggyback: bool = key(
        False,
        "data segments of the opposite flow carry acknowledgements",
        {"transport.protocol": ("tcp",), "both ways": (True,)},
    )
    timestamps: bool = key(True, "RTT by time stamps (RFC 7323); false: Karn's rule")
    ack_path: Literal["queued", "direct"] = key(
        "queued", "ACKs share tokens, buffers and radio with data, or arrive without delay and loss"
    )
    alpha: float = key(1.0, "Vegas: fewer extra segments in flight open the window", VEGAS, ge=0, le=1000)
    beta: float = key(3.0, "Vegas: more extra segments in flight close the window", VEGAS, ge=0, le=1000)
    vegas_adjustment: Literal["per-ack", "per-rtt"] = key(
        "per-ack",
        "Vegas: the window moves by a part of a segment at each ACK, or by a segment once in a round trip; "
        "per-ack compares this fractional window with the whole segments sent, and stays small after losses",
        VEGAS,
    )
    tcp_delay_s: Seconds = key(0.0, "processing time of a segment in TCP, at each end", ALWAYS)
    ip_delay_s: Seconds = key(0.0, "processing time of a segment in IP, at each end", ALWAYS)
    centaurus_packet_bytes: int = key(
        64, "CentaurusComm: payload of a data packet", CENTAURUS, ge=1, le=65_000
    )
    centaurus_watchdog_s: float = key(
        30.0,
        "CentaurusComm: a session that hears nothing for this long is given up and repeated",
        CENTAURUS,
        ge=SLOT_S,
        le=1e6,
    )
    centaurus_early_data: bool = key(
        False, "CentaurusComm: send data before the receiver has agreed", CENTAURUS
    )
    centaurus_worker_s: Seconds = key(
        0.0, "CentaurusComm: period at which the worker is called; 0: at once", CENTAURUS
    )
    send_buffer_segments: Count | None = key(
        None, "segments the sender may hold, those under way included; unset: no limit"
    )

    def chosen(self) -> Mapping[str, Any]:
        """Return the values of the preset: it is one of TCP."""
        return super().chosen() if self.protocol == "tcp" else {}

    @model_validator(mode="after")
    def _start_within_the_receive_window(self) -> Self:
        if "initial_window_segments" not in self.model_fields_set:
            most = min(self.initial_window_segments, self.receive_window_segments)
            vars(self)["initial_window_segments"] = most
        return self
