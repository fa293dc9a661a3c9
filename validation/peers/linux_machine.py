"""The simulator's sender on the acknowledgements of a record: does it send the packets that the kernel sent?

What the receiver of the record held back, and what its link did, is then out of the comparison.
"""

from typing import Any

import numpy as np
from linux_replay import HEADERS, Story, scenario_of

from btqueue.simulator.construction.state import new_state
from btqueue.simulator.records.connections import SACKED
from btqueue.simulator.records.conventions import NOTHING, SECOND
from btqueue.simulator.records.packets import ACK, SACK_BLOCKS, segment_dtype

HANDSHAKE_BYTES = 60
LATE_S = 0.0004
"""What the recorder's link adds to a round trip."""


class Machine:
    """The sender of a flow that has written all of a record's segments; times in ns.

    Its connection starts with the round trip of the handshake (s).
    """

    def __init__(
        self, plain: Any, record: dict[str, Any], transport: dict[str, Any], round_trip_s: float
    ) -> None:
        self.sender, self.timer = plain.sender, plain.retransmission_timer
        sim = new_state(scenario_of(record, transport), 0)
        self.conn, self.statistics = sim.connections[0], sim.flow_statistics[0]
        self.board, self.sent_at = sim.scoreboard[0], sim.sent_at[0]
        self.starts, self.histogram = sim.starts[0], sim.rtt_histogram[0]
        self.sent: list[tuple[float, int]] = []
        self.conn.written = record["segments"] * (self.conn.unit if self.conn.unit > 1 else 1)
        self.conn.least_rtt = round(round_trip_s * SECOND)
        self.timer.measure(self.conn, int(self.conn.least_rtt))
        self.send(0)

    def send(self, now: int) -> None:
        while True:
            number = self.sender.next_segment(
                self.conn, self.board, self.sent_at, self.starts, self.statistics, now
            )
            if number == NOTHING:
                return
            self.sent.append((now / SECOND, int(number)))

    def blocks(self, arrived: list[int]) -> list[tuple[int, int]]:
        """Return at most as many blocks as fit into an acknowledgement, those with news first."""
        blocks: list[list[int]] = []
        for number in sorted(arrived):
            if blocks and blocks[-1][1] == number:
                blocks[-1][1] = number + 1
            else:
                blocks.append([number, number + 1])
        ring = len(self.board) - 1
        blocks.sort(key=lambda block: all(self.board[number & ring] & SACKED for number in range(*block)))
        return sorted((start, end) for start, end in blocks[:SACK_BLOCKS])

    def acknowledge(self, now: int, ack: int, arrived: list[int], echo: int) -> None:
        segment = np.zeros(1, segment_dtype).view(np.recarray)[0]
        segment.kind, segment.ack, segment.echo = ACK, ack, echo
        blocks = self.blocks(arrived) if self.conn.sack else []
        segment.blocks = len(blocks)
        for place, (start, end) in enumerate(blocks):
            segment.block_start[place], segment.block_end[place] = start, end
        rings = self.board, self.sent_at, self.starts
        self.sender.on_ack(self.conn, *rings, self.statistics, self.histogram, segment, now)
        self.send(now)

    def fire_until(self, now: int) -> None:
        """Let the timer fire that is due by then."""
        while (due := int(self.timer.fires_at(self.conn))) <= now:
            expired = self.sender.on_order_timer if self.conn.awaits_order else self.sender.on_timeout
            expired(self.conn, self.board, self.sent_at, self.starts, self.statistics, due)
            self.send(due)


def follow(plain: Any, record: dict[str, Any], transport: dict[str, Any]) -> Story:
    """Return what the sender with these keys of `transport` sends on the record's acknowledgements."""
    mss, delay, byte_s = record["mss"], record["delay_ms"] / 1000, 8 / (record["rate_kbps"] * 1000)
    machine = Machine(plain, record, transport, HANDSHAKE_BYTES * byte_s + 2 * delay + LATE_S)
    on_the_way, busy = [], 0.0
    for time_us, offset, size, fate in record["data"]:
        if fate == "sent":
            busy = max(busy, time_us / 1e6) + (size + HEADERS) * byte_s
            on_the_way.append((busy + delay, offset // mss, time_us))
    on_the_way.reverse()
    arrived: dict[int, int] = {}
    for time_us, offset, *_ in record["acks"]:
        while on_the_way and on_the_way[-1][0] <= time_us / 1e6 - delay:
            _, number, sent_us = on_the_way.pop()
            arrived[number] = sent_us
        ack = offset // mss
        machine.fire_until(time_us * 1000)
        echo = arrived.get(int(machine.conn.snd_una), 0) * 1000
        machine.acknowledge(time_us * 1000, ack, [number for number in arrived if number >= ack], echo)
    machine.fire_until(record["data"][-1][0] * 1000 + SECOND // 100)
    statistics = machine.statistics
    return Story(
        [(number * mss, mss) for _, number in machine.sent],
        [time for time, _ in machine.sent],
        int(statistics.fast_retransmits),
        int(statistics.timeouts),
        0,
    )
