"""Play a record's transfer with the simulator's TCP over the same scripted link.

The scenario is a public one: a bulk transfer over an outside link. Only the link's script is applied from
here, between two steps of `advance`: packets are lost in front of the link by their ordinal, and the way back
takes no time but the delay. The delay is the record's, and the median of how late its link was.
"""

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from thesis import over_wires

from btqueue.scenario import Scenario
from btqueue.simulator.construction.state import grow, new_state
from btqueue.simulator.engine import LOG_RESERVE, REACHED, advance
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import NOTHING, SECOND
from btqueue.simulator.records.packets import DATA
from btqueue.simulator.traces.trace import SEGMENT_SENT

HEADERS = 52
"""Bytes of IP and TCP, timestamps included."""
LONGEST_S = 60.0
AT_ONCE = 1e15
"""A rate (bit/s) at which an acknowledgement takes no time."""


class Story(NamedTuple):
    """What a sender did: byte ranges in the order sent and when (s), and counts of what it decided."""

    ranges: list[tuple[int, int]]
    times: list[float]
    recoveries: int
    timeouts: int
    probes: int

    @property
    def retransmissions(self) -> int:
        """Packets of which every byte had been sent before."""
        top, again = 0, 0
        for offset, size in self.ranges:
            again += offset + size <= top
            top = max(top, offset + size)
        return again

    @property
    def last_new_byte_s(self) -> float:
        """When the last byte was sent for the first time."""
        end = max(offset + size for offset, size in self.ranges)
        return next(
            time for time, (offset, size) in zip(self.times, self.ranges, strict=True) if offset + size == end
        )


def told_by(record: dict[str, Any]) -> Story:
    """Return what the kernel did."""
    counters = record["counters"]
    return Story(
        [(offset, size) for _, offset, size, _ in record["data"]],
        [time / 1e6 for time, *_ in record["data"]],
        counters.get("TCPSackRecovery", 0) + counters.get("TCPRenoRecovery", 0),
        counters.get("TCPTimeouts", 0),
        counters.get("TCPLossProbes", 0),
    )


def scenario_of(record: dict[str, Any], transport: dict[str, Any]) -> Scenario:
    """Return the scenario: the record's link and transfer, and these keys of `transport`."""
    size = record["segments"] * record["mss"]
    # the link handed packets over late: so an ACK comes after the departure that falls on the same time
    delay_ms = record["delay_ms"] + record["lateness_ms"][0]
    # the record counts the packet on its way out, the simulator only those that wait
    link = {"name": "link", "from": "near", "to": "far", "buffer_packets": record["buffer_packets"] - 1}
    link |= {"rate_kbps": record["rate_kbps"], "delay_s": delay_ms / 1000}
    once = {"source": "periodic", "phase": "aligned", "message_bytes": size}
    return Scenario.model_validate(
        {
            "network": over_wires(link) | {"relay": "segment"},
            "flow_control": {"enabled": False},
            "polling": {"discipline": "round-robin"},
            "traffic": once | {"load_kbps": size * 8e-3 / (2 * LONGEST_S)},
            "transport": {"mss_bytes": record["mss"], "header_bytes": HEADERS, "timestamps": True}
            | transport,
            "run": {"duration_s": LONGEST_S, "warmup_s": 0, "replications": 1},
        }
    )


def replay(record: dict[str, Any], transport: dict[str, Any]) -> Story:
    """Return what the simulator's sender does with these keys of `transport`."""
    sim = new_state(scenario_of(record, transport), 0, logging=True)
    sim.media.rate[1] = AT_ONCE
    # With a log that is full after every entry, `advance` returns before each segment enters the link.
    sim = sim.replaced(log=sim.log[:LOG_RESERVE].copy())
    # The last segment of the handshake is on its way out when the first data come; it takes no place.
    sim.queues.limit += 1
    lost = set(record["lost"])
    ranges: list[tuple[int, int]] = []
    times: list[float] = []
    waits = True
    end = round(LONGEST_S * SECOND)
    size = record["segments"] * record["mss"]
    with np.errstate(over="ignore"):
        while advance(sim, int(sim.clock[0].now) if is_acknowledged(sim, size) else end) != REACHED:
            sent = read_log(sim, ranges, times, record["mss"])
            if sent and len(ranges) in lost:
                lose(sim)
            if waits and times and float(sim.clock[0].now) / SECOND > times[0]:
                sim.queues.limit -= 1
                waits = False
            sim = grow(sim)
    statistics = sim.flow_statistics[0]
    times = [time - times[0] for time in times]  # a handshake goes before
    return Story(
        ranges, times, int(statistics.fast_retransmits), int(statistics.timeouts), int(statistics.loss_probes)
    )


def read_log(sim: State, ranges: list[tuple[int, int]], times: list[float], mss: int) -> bool:
    """Take what the log says of data sent, empty it, and return whether there was any."""
    length = int(sim.clock[0].log_length)
    sim.clock[0].log_length = 0
    before = len(ranges)
    for entry in sim.log[:length]:
        if entry.event == SEGMENT_SENT and entry.kind == DATA:
            ranges.append((offset_of(sim, int(entry.number), mss), int(entry.application)))
            times.append(float(entry.time) / SECOND)
    return len(ranges) > before


def offset_of(sim: State, number: int, mss: int) -> int:
    """Return where in the stream a segment begins (bytes)."""
    if sim.connections[0].unit == 1:
        return number * mss
    return int(sim.starts[0][number & (sim.starts.shape[1] - 1)])


def is_acknowledged(sim: State, size: int) -> bool:
    """Return whether the whole transfer is."""
    connection = sim.connections[0]
    return offset_of(sim, int(connection.snd_una), int(connection.mss)) >= size


def lose(sim: State) -> None:
    """Take away the segment that is about to enter the link; its record is not used again."""
    assert sim.clock[0].entering != NOTHING
    sim.clock[0].entering = NOTHING


def first_difference(one: list[Any], other: list[Any]) -> int | None:
    """Return the place where two lists begin to differ, or None."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


def records() -> list[dict[str, Any]]:
    """Return all records."""
    with gzip.open(Path(__file__).parent / "linux" / "records.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]
