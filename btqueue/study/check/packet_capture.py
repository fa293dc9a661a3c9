"""Results from the packets of pcap, pcapng and btsnoop files.

Flows that are captured at their sender give goodput, throughput, round trips, retransmissions, timeouts and
fast retransmits (`tcp_sender`). A capture at the receiver, on the way, or behind the queue of a link shows
neither the sender's round trips nor the losses of that queue: then there is only the goodput.

Each flow is measured while its sender sends: to the last acknowledgement, or to the end of the capture if
data is still under way. `facts` holds the facts that its packets state.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from operator import and_
from pathlib import Path
from typing import NamedTuple

import numpy as np

from btqueue.captures.files import frames
from btqueue.captures.packets import End, Malformed, Packet, address, ip_frames, tcp_packet
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology
from btqueue.study.check.facts import AT_SENDER, Facts, facts_of
from btqueue.study.check.results import BadResults, ForeignResults, Quantity
from btqueue.study.check.tcp_sender import SenderLog, SenderObserver

REACTION_S = 0.005
"""Longest time that a host takes to answer an acknowledgement, besides the delays of the scenario."""
SIMULATED_CLOCK_S = 1e7
"""Time stamps below this are times since the start of a simulation, not since 1970."""
MOST_BACK_S = 1.0
"""Most by which stamps may be out of order (s), if several cores took the packets."""
LEAST_SHARE = 0.05
"""Flows with less of the largest one's bytes are no flows of data."""
LONG_REST = 0.02
"""Share of the capture without data, at its end or before a sender begins, that matters."""


def read_capture(path: Path, scenario: Scenario, *, flow: int | None = None) -> ForeignResults:
    """Read a capture and measure its flows as the scenario's simulation would be measured.

    The scenario's warm-up is left out if the capture is longer than that.

    Args:
        path: pcap, pcapng or btsnoop file.
        scenario: gives warm-up and delays of a host.
        flow: number of the scenario's flow that the captured one is. By default the addresses tell, if
            btqueue has written the capture; else it is the first.

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
    flows = _observed(packets, scenario, path.name)
    numbers = {} if clock else _numbers(scenario)
    if own_flow := [one for one in flows if flow is not None and numbers.get(one.ends) == flow]:
        flows = own_flow
    ends = reduce(and_, ({packet.source[0], packet.target[0]} for packet in packets))
    own = ends if len(ends) == 1 else {one.ends[0] for one in flows}  # of the host that has captured them
    near = [one for one in flows if one.facts.place == AT_SENDER and one.ends[0] in own]
    chosen = near or flows
    spans, cut, of_time = _measured_times(chosen, packets, scenario, path.name)
    notes += of_time
    found = [_measures(one.log, *span, near=bool(near)) for one, span in zip(chosen, spans, strict=True)]
    names = [name for name in found[0] if all(name in one for one in found)]
    quantities = {name: Quantity(name, float(np.mean([one[name] for one in found]))) for name in names}
    kinds = topology(scenario).kinds
    known = [numbers.get(one.ends, 0) for one in chosen]
    groups = [kinds[number - 1] for number in known] if all(known) and len(set(kinds)) > 1 else []
    groups = groups if len(chosen) > 1 else []
    for group in dict.fromkeys(groups):
        own_values = [one for one, its in zip(found, groups, strict=True) if its == group]
        for name in names:
            value = float(np.mean([one[name] for one in own_values]))
            quantities[f"{name}[{group}]"] = Quantity(f"{name}[{group}]", value)
    if probes := sum(len(one.log.probes) for one in near):
        notes.append(f"{probes} tail loss probes (RFC 8985) are retransmissions, and no timeouts")
    if unseen := sum(one.log.unseen_bytes for one in chosen):
        notes.append(f"{unseen} acknowledged bytes are not in the capture, which has missed packets")
    if not near:
        places = " or ".join(sorted({one.facts.place for one in chosen}))
        notes.append(
            f"captured {places}: only the goodput can be told, for round trips and losses as the sender sees "
            "them are not in it"
        )
    return ForeignResults(
        path.name,
        "packet capture",
        quantities,
        duration_s=max(end - begin for begin, end in spans),
        measured_from_start=not cut,
        flow=(flow or known[0] or 1) if len(chosen) == 1 else None,
        flow_assumed=len(chosen) == 1 and not flow and not known[0],
        groups=tuple(dict.fromkeys(groups)),
        backoff_gaps=tuple(gaps for one in near for gaps in one.log.backoff_gaps),
        facts=tuple(one.facts for one in chosen),
        notes=tuple(notes),
    )


def _numbers(scenario: Scenario) -> dict[tuple[bytes, bytes], int]:
    """Return the flows by the addresses of sender and receiver in captures that btqueue writes."""
    flows = topology(scenario).flows
    return {(address(one.source), address(one.target)): number for number, one in enumerate(flows, 1)}


def captured_packets(path: Path, notes: list[str]) -> Iterator[Packet]:
    """Yield the TCP packets of a file, and note unreadable packets."""
    latest, bad_options = -math.inf, []
    for number, frame in enumerate(ip_frames(frames(path, notes)), 1):
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


class _Flow(NamedTuple):
    """One direction of data: addresses of its ends, the sender's doings, and the facts of its packets."""

    ends: tuple[bytes, bytes]
    log: SenderLog
    facts: Facts


def _observed(packets: list[Packet], scenario: Scenario, source: str) -> list[_Flow]:
    """Return all directions that carry data, in the order in which they begin.

    Data that come with a SYN or RST are no part of the exchange.
    """
    carried: Counter[tuple[End, End]] = Counter()
    between: dict[frozenset[End], list[Packet]] = defaultdict(list)
    for packet in packets:
        carried[packet.source, packet.target] += 0 if packet.opens else packet.length
        between[frozenset((packet.source, packet.target))].append(packet)
    most = max(carried.values())
    if most == 0:
        raise BadResults(f"{source}: no TCP flow carries data")
    transport = scenario.transport
    reaction_s = REACTION_S + scenario.run.jitter_s + transport.tcp_delay_s + transport.ip_delay_s
    reaction_s += scenario.link.l2cap_delay_s
    flows = []
    for way in (way for way, count in carried.items() if count > LEAST_SHARE * most):
        both = between[frozenset(way)]
        log = SenderObserver(*way, reaction_s).follow(both)
        flows.append(_Flow((way[0][0], way[1][0]), log, facts_of(both, way[0], log, reaction_s)))
    return flows


def _measured_times(
    flows: list[_Flow], packets: list[Packet], scenario: Scenario, source: str
) -> tuple[list[tuple[float, float]], bool, list[str]]:
    """Return begin and end of the measurement of each flow (s), whether a warm-up was cut off, and notes.

    A flow is measured until all of its data is acknowledged, or until the capture ends. A capture that begins
    with the run, or ends a silence before the end of one, is measured over the run's time.
    """
    run = scenario.run
    warmup_s = 0.0 if isinstance(run.warmup_s, str) else run.warmup_s
    spans, notes, first = [], [], min(one.facts.begins_s for one in flows)
    for one in flows:
        idle = one.log.under_way[-1][1] == 0
        end = one.facts.ends_s if idle else packets[-1].time
        begin = one.facts.begins_s if one.facts.begins_s > first + LONG_REST * end else first
        begin = begin if begin > 0.1 * end else 0.0
        if end <= begin:
            raise BadResults(f"{source}: the capture is too short to measure anything")
        planned = begin + warmup_s + run.duration_s
        times = sorted(time for time, _ in (*one.log.sent, *one.log.acknowledged))
        silence = max((after - before for before, after in pairwise(times)), default=0.0)
        if end < planned <= end + max(silence, 0.02 * end):  # the run was silent at its very end
            end = planned
        spans.append((begin, end))
    if (rest := packets[-1].time - max(end for _, end in spans)) > LONG_REST * packets[-1].time:
        notes.append(f"measured while data is sent: the last {rest:.3g} s of the capture were left out")
    if not warmup_s:
        return spans, False, notes
    if all(end - begin > 2 * warmup_s for begin, end in spans):
        note = f"the first {warmup_s:g} s, run.warmup_s, were left out"
        return [(begin + warmup_s, end) for begin, end in spans], True, [*notes, note]
    note = f"too short to leave run.warmup_s = {warmup_s:g} out: measured from the start"
    return spans, False, [*notes, note]


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
    under_way = [next((v for t, v in reversed(log.under_way) if t <= time), 0) for time in (begin, end)]
    found |= {
        "throughput_kbps": total(log.sent) * 8 / 1000 / seconds,
        "repeated_kbps": total(log.repeated) * 8 / 1000 / seconds,
        "under_way_kbps": (under_way[1] - under_way[0]) * 8 / 1000 / seconds,
        "timeouts_per_s": rate(log.timeouts),
        "fast_retransmits_per_s": rate(log.fast_retransmits),
        "retransmissions_per_s": rate(log.retransmissions),
    }
    samples = np.array([value for time, value in log.round_trips if begin < time <= end])
    if len(samples):
        found |= {"rtt_s": float(samples.mean()), "rtt_sd_s": float(samples.std())}
    return found
