"""Results from the packets of pcap and pcapng files.

The capture must be taken at one host. Flows that this host sends give goodput, throughput, round trips,
retransmissions, timeouts and fast retransmits (`tcp_sender`); flows that it only receives give the goodput.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from btqueue.captures.files import frames
from btqueue.captures.packets import End, Malformed, Packet, tcp_packet
from btqueue.scenario import Scenario
from btqueue.study.check.results import BadResults, ForeignResults, Quantity, Series
from btqueue.study.check.tcp_sender import SenderLog, SenderObserver

REACTION_S = 0.005
"""Longest time that a host takes to answer an acknowledgement, besides the delays of the scenario."""
SIMULATED_CLOCK_S = 1e7
"""Time stamps below this are times since the start of a simulation, not since 1970."""
STEPS = 200
"""Values in the series of the goodput."""
MOST_BACK_S = 1.0
"""Most by which stamps may be out of order (s), if several cores took the packets."""
LEAST_SHARE = 0.05
"""Flows with less of the largest one's bytes are no flows of data."""


def read_capture(path: Path, scenario: Scenario, *, flow: int | None = None) -> ForeignResults:
    """Read a capture and measure its flows as the scenario's simulation would be measured.

    The scenario's warm-up is left out if the capture is longer than that.

    Args:
        path: pcap or pcapng file.
        scenario: gives warm-up and delays of a host.
        flow: number of the scenario's flow that the captured one is; the first by default.

    Raises:
        BadCapture: the file is damaged.
        BadResults: no TCP flow in it carries data.
    """
    notes: list[str] = []
    packets = list(captured_packets(path, notes))
    if not packets:
        raise BadResults(f"{path.name}: has no TCP packets")
    clock = packets[0].time if packets[0].time > SIMULATED_CLOCK_S else 0.0
    packets = [packet._replace(time=packet.time - clock) for packet in packets]
    logs = _observed(packets, scenario, path.name)
    host = _host(packets)
    begin, end, cut, of_time = _measured_time(packets, scenario, path.name)
    notes += of_time
    near = [log for (sender, _), log in logs.items() if (log.near if host is None else sender[0] == host)]
    chosen = near or list(logs.values())
    found = [_measures(log, begin, end, near=bool(near)) for log in chosen]
    names = [name for name in found[0] if all(name in one for one in found)]
    quantities = {name: Quantity(name, float(np.mean([one[name] for one in found]))) for name in names}
    if probes := sum(begin < time <= end for log in near for time in log.probes):
        notes.append(f"{probes} tail loss probes (RFC 8985) are retransmissions, and no timeouts")
    if unseen := sum(log.unseen_bytes for log in chosen):
        notes.append(f"{unseen} acknowledged bytes are not in the capture, which has missed packets")
    if not near:
        notes.append("captured at the receiver: only the goodput can be told")
    return ForeignResults(
        path.name,
        "packet capture",
        quantities,
        (_goodput_series(chosen, begin, end),),
        duration_s=end - begin,
        measured_from_start=not cut,
        flow=(flow or 1) if len(chosen) == 1 else None,
        backoff_gaps=tuple(gaps for log in near for gaps in log.backoff_gaps),
        notes=tuple(notes),
    )


def captured_packets(path: Path, notes: list[str]) -> Iterator[Packet]:
    """Yield the TCP packets of a file, and note unreadable packets."""
    latest, bad_options = -math.inf, []
    for number, frame in enumerate(frames(path, notes), 1):
        if frame.time < latest - MOST_BACK_S:
            raise BadResults(
                f"{path.name}: packet {number} is stamped {latest - frame.time:g} s earlier than one before "
                f"it, so a stamp is damaged; {MOST_BACK_S:g} s are allowed"
            )
        latest = max(latest, frame.time)
        try:
            packet, well = tcp_packet(frame, path.name, number)
        except Malformed:
            raise BadResults(f"{path.name}: is damaged after {number - 1} packets") from None
        if packet is not None:
            yield packet
        if not well:
            bad_options.append(number)
    if bad_options:
        notes.append(
            f"{len(bad_options)} packets, the first of them packet {bad_options[0]}, have damaged TCP "
            "options, which were left out"
        )


def _host(packets: list[Packet]) -> bytes | None:
    """Return the address that all packets come from or go to; None where two have that in common."""
    common = {packets[0].source[0], packets[0].target[0]}
    for packet in packets:
        common &= {packet.source[0], packet.target[0]}
    return common.pop() if len(common) == 1 else None


def _observed(packets: list[Packet], scenario: Scenario, source: str) -> dict[tuple[End, End], SenderLog]:
    """Return the logs of all directions that carry data, in the order in which they begin."""
    carried: Counter[tuple[End, End]] = Counter()
    between: dict[frozenset[End], list[Packet]] = defaultdict(list)
    for packet in packets:
        carried[packet.source, packet.target] += packet.length
        between[frozenset((packet.source, packet.target))].append(packet)
    most = max(carried.values())
    if most == 0:
        raise BadResults(f"{source}: no TCP flow carries data")
    transport = scenario.transport
    reaction_s = REACTION_S + scenario.run.jitter_s + transport.tcp_delay_s + transport.ip_delay_s
    reaction_s += scenario.link.l2cap_delay_s
    ways = [way for way, count in carried.items() if count > LEAST_SHARE * most]
    return {way: SenderObserver(*way, reaction_s).follow(between[frozenset(way)]) for way in ways}


def _measured_time(
    packets: list[Packet], scenario: Scenario, source: str
) -> tuple[float, float, bool, list[str]]:
    """Return begin and end of the measurement (s), whether a warm-up was cut off, and notes on it."""
    begin, end = packets[0].time, packets[-1].time
    start = begin if begin > 0.1 * end else 0.0
    if end <= start:
        raise BadResults(f"{source}: the capture is too short to measure anything")
    run = scenario.run
    warmup_s = 0.0 if isinstance(run.warmup_s, str) else run.warmup_s
    planned = start + warmup_s + run.duration_s
    silence = max(after.time - before.time for before, after in pairwise(packets))
    if end < planned <= end + max(silence, 0.02 * end):  # the run was silent at its very end
        end = planned
    if warmup_s and end - start > 2 * warmup_s:
        return start + warmup_s, end, True, [f"the first {warmup_s:g} s, run.warmup_s, were left out"]
    if warmup_s:
        note = f"too short to leave run.warmup_s = {warmup_s:g} out: measured from the start"
        return start, end, False, [note]
    return start, end, False, []


def _measures(log: SenderLog, begin: float, end: float, *, near: bool) -> dict[str, float]:
    """Return the metrics of one flow between two times (s)."""
    seconds = end - begin

    def total(pairs: list[tuple[float, int]]) -> int:
        return sum(value for time, value in pairs if begin < time <= end)

    def rate(times: list[float]) -> float:
        return sum(begin < time <= end for time in times) / seconds

    found = {"goodput_kbps": total(log.acknowledged) * 8 / 1000 / seconds}
    if not near:
        return found
    found |= {
        "throughput_kbps": total(log.sent) * 8 / 1000 / seconds,
        "timeouts_per_s": rate(log.timeouts),
        "fast_retransmits_per_s": rate(log.fast_retransmits),
        "retransmissions_per_s": rate(log.retransmissions),
    }
    samples = np.array([value for time, value in log.round_trips if begin < time <= end])
    if len(samples):
        found |= {"rtt_s": float(samples.mean()), "rtt_sd_s": float(samples.std())}
    return found


def _goodput_series(logs: list[SenderLog], begin: float, end: float) -> Series:
    """Return the goodput over time, mean over flows."""
    edges = np.linspace(begin, end, STEPS + 1)
    pairs = [pair for log in logs for pair in log.acknowledged]
    times, counts = np.array(pairs, float).reshape(-1, 2).T
    bits = np.histogram(times, edges, weights=counts)[0] * 8 / 1000
    return Series("goodput_kbps", edges[1:], bits / np.diff(edges) / len(logs))
