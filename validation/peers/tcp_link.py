"""One TCP flow over one point-to-point link: the set-up that the ns-3 peer results were made with.

Both directions have the same rate and delay and a drop-tail queue of packets that does not count the one on
the wire. Data packets are lost independently at the far end; acknowledgements only in a full queue. All
protocol behaviour is the simulator's own: this file moves packets.
"""

from typing import NamedTuple

import numpy as np

from btqueue.simulator.machinery.compilation import entry_point, outlined
from btqueue.simulator.machinery.random_streams import make_streams, uniform
from btqueue.simulator.records.connections import (
    HALF_PIPE,
    HALF_WINDOW,
    NEWRENO,
    ONE_LESS,
    PER_RTT,
    SACK,
    VEGAS,
    connection_dtype,
    flow_statistics_dtype,
)
from btqueue.simulator.records.conventions import NEVER, NOTHING, SECOND, UNLIMITED
from btqueue.simulator.records.packets import ACK, SACK_BLOCKS, segment_dtype
from btqueue.simulator.statistics import histograms
from btqueue.simulator.tcp import receiver, sender
from btqueue.simulator.tcp.retransmission_timer import measure

SEED = 20260101
DURATION_S = 1000
DATA_BYTES, ACK_BYTES, USER_BYTES = 1502, 42, 1460
UNLIMITED_WINDOW = 4_194_304 // USER_BYTES
RING = 4096
PACKETS = 8192
"""Places for packets in one direction, more than the windows and queues let in."""


class Wire(NamedTuple):
    """One direction: when each of its packets leaves the sender (ns), and the segment in it.

    `count`: [packets that entered, packets that arrived, packets refused].
    """

    leaves_at: np.ndarray
    segments: np.recarray
    count: np.ndarray


def new_wire() -> Wire:
    """Return an empty direction."""
    return Wire(
        np.zeros(PACKETS, np.int64),
        np.zeros(PACKETS, segment_dtype).view(np.recarray),
        np.zeros(3, np.int64),
    )


@outlined
def enter(wire, size, rate, queue, now):
    """Return the place of a packet of `size` bytes that enters now, or NOTHING if the queue is full."""
    entered, arrived = wire.count[0], wire.count[1]
    inside = 0
    place = entered
    while place > arrived and wire.leaves_at[(place - 1) % PACKETS] > now:
        place -= 1
        inside += 1
    if inside > queue:
        wire.count[2] += 1
        return NOTHING
    begins = now
    if inside > 0:
        begins = wire.leaves_at[(entered - 1) % PACKETS]
    wire.count[0] += 1
    wire.leaves_at[entered % PACKETS] = begins + (size * 8 * SECOND) // rate
    return entered % PACKETS


@outlined
def send_all(conn, board, sent_at, starts, statistics, forward, rate, queue, now):
    """Send what the sender may send now."""
    while True:
        number = sender.next_segment(conn, board, sent_at, starts, statistics, now)
        if number == NOTHING:
            return
        statistics.segments_sent += 1
        place = enter(forward, DATA_BYTES, rate, queue, now)
        if place != NOTHING:
            forward.segments[place].number = number


@outlined
def acknowledge(conn, out_of_order, starts, back, rate, queue, now):
    """Send an acknowledgement, whose SACK option is padded to whole words of four bytes."""
    segment = back.segments[back.count[0] % PACKETS]
    receiver.fill_acknowledgement(conn, out_of_order, starts, segment, now)
    segment.kind = ACK
    size = ACK_BYTES
    if segment.blocks > 0:
        size += 4 * ((2 + 8 * segment.blocks + 3) // 4)
    enter(back, size, rate, queue, now)


@entry_point
def play(
    conn, board, sent_at, starts, out_of_order, statistics, histogram, forward, back, stream, link, loss
):
    """Play the flow until the end; `link`: rate (bit/s), delay (ns), queue (packets), end (ns)."""
    rate, delay, queue, end = link[0], link[1], link[2], link[3]
    now = 2 * delay + (2 * ACK_BYTES * 8 * SECOND) // rate
    measure(conn, now)
    send_all(conn, board, sent_at, starts, statistics, forward, rate, queue, now)
    while True:
        data_at, ack_at = NEVER, NEVER
        if forward.count[1] < forward.count[0]:
            data_at = forward.leaves_at[forward.count[1] % PACKETS] + delay
        if back.count[1] < back.count[0]:
            ack_at = back.leaves_at[back.count[1] % PACKETS] + delay
        now = min(data_at, ack_at, conn.rto_deadline)
        if now > end:
            return
        if now == data_at:
            place = forward.count[1] % PACKETS
            forward.count[1] += 1
            if loss > 0.0 and uniform(stream) < loss:
                continue
            segment = forward.segments[place]
            statistics.delivered_in_order += receiver.on_segment(
                conn, out_of_order, starts, statistics, segment, now
            )
            acknowledge(conn, out_of_order, starts, back, rate, queue, now)
        elif now == ack_at:
            segment = back.segments[back.count[1] % PACKETS]
            back.count[1] += 1
            sender.on_ack(conn, board, sent_at, starts, statistics, histogram, segment, now)
            send_all(conn, board, sent_at, starts, statistics, forward, rate, queue, now)
        else:
            sender.on_timeout(conn, board, sent_at, starts, statistics, now)
            send_all(conn, board, sent_at, starts, statistics, forward, rate, queue, now)


def run(row: dict, replication: int, **options: object) -> dict[str, float]:
    """Return what one run of a row of the peer results gives: goodput (bit/s) and counts.

    Args:
        row: the set-up: rate, delay_ms, queue, per, rwnd, variant, sack, prr, lt.
        replication: number of the run; each draws other losses.
        options: fields of the connection to change.
    """
    conn = np.zeros(1, connection_dtype).view(np.recarray)[0]
    for name, value in (connection(row) | options).items():
        setattr(conn, name, value)
    statistics = np.zeros(1, flow_statistics_dtype).view(np.recarray)[0]
    forward, back = new_wire(), new_wire()
    delay = row["delay_ms"] * SECOND // 1000
    link = np.array([row["rate"], delay, row["queue"], DURATION_S * SECOND], np.int64)
    kinds = (np.uint8, np.int64, np.int64, np.uint8)
    board, sent_at, starts, out_of_order = (np.zeros(RING, dtype) for dtype in kinds)
    histogram = np.zeros(histograms.BINS, np.int64)
    stream = make_streams(SEED, replication, 1)[0]
    loss = float(row["per"])
    play(conn, board, sent_at, starts, out_of_order, statistics, histogram, forward, back, stream, link, loss)
    return {
        "goodput_bps": float(statistics.delivered_in_order) * USER_BYTES * 8 / DURATION_S,
        "retransmissions": float(statistics.segments_retransmitted),
        "queue_drops": float(forward.count[2]),
    }


def connection(row: dict) -> dict[str, object]:
    """Return the fields of a connection with the settings of the row and the rules of the RFCs."""
    fields: dict[str, object] = {
        "variant": SACK if row["sack"] else NEWRENO,
        "unit": 1,
        "written": UNLIMITED,
        "cwnd": 2.0,
        "ssthresh": float(2**31),
        "rwnd": row["rwnd"] or UNLIMITED_WINDOW,
        "recover": NOTHING,
        "sack": bool(row["sack"]),
        "sack_blocks": SACK_BLOCKS,
        "limited_transmit": bool(row["lt"]),
        "rate_reduction": bool(row["prr"]),
        "rto": SECOND,
        "min_rto": SECOND,
        "max_rto": 60 * SECOND,
        "granularity": SECOND // 1000,
        "backoff": True,
        "rto_deadline": NEVER,
    }
    if row["variant"] == "Vegas":
        fields |= {"variant": VEGAS, "adjustment": PER_RTT}
        fields |= {"alpha": 2.0, "beta": 4.0, "gamma": 1.0}
    return fields


def rules_of_ns3(row: dict) -> dict[str, object]:
    """Return the options in which ns-3 differs from the RFCs (README.md), for this row."""
    rules: dict[str, object] = {
        "ack_ends_backoff": True,
        "impatient": True,
        "exit_grows": True,
        "inflate_by_one": True,
        "reduction": HALF_PIPE,
    }
    if row["variant"] == "Vegas":
        rules |= {"vegas_on_srtt": True, "reduction": ONE_LESS}
    if row["variant"] == "LinuxReno":
        rules |= {"byte_counting": True, "window_limited_growth": True}
        rules |= {"reduction": HALF_WINDOW}
    return rules
