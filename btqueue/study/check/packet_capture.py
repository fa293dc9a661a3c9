"""Results from packets: pcap and pcapng files, read with dpkt.

The capture must stand at one host. Of the flows that this host sends come goodput, throughput, round trips,
retransmissions, timeouts and fast retransmits (`tcp_sender`); of those that it only receives, the goodput.
"""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from btqueue.scenario import Scenario
from btqueue.simulator.traces.extras import require
from btqueue.study.check.results import BadResults, ForeignResults, Quantity, Series
from btqueue.study.check.tcp_sender import End, Packet, SenderLog, SenderObserver

REACTION_S = 0.005
"""Longest time that a host takes to answer an acknowledgement, besides the delays of the scenario."""
SIMULATED_CLOCK_S = 1e7
"""Time stamps below this are times since the start of a simulation, not since 1970."""
STEPS = 200
"""Values in the series of the goodput."""
ETHERNET, PPP, NULL, COOKED, RAW = 1, 9, 0, 113, (12, 14, 101, 228, 229)
LONGEST_PACKET, LONGEST_BLOCK = 2**18, 2**24
"""Bytes; beyond that libpcap takes the length of a packet, or of a block of pcapng, for damaged."""
MOST_BACK_S = 1.0
"""Stamps may be out of order by so much, if several cores took the packets."""
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
        BadResults: the file is damaged or empty, or no TCP flow in it carries data.
        MissingPackage: dpkt is not installed.
    """
    notes: list[str] = []
    packets = list(_packets(path, notes))
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


class _CutOff(Exception):
    """A file ends in the middle of a packet."""


class _Capture:
    """A file whose end and lengths are watched.

    dpkt takes half a packet for a whole one, and any length for true. It reads the header of a packet and the
    packet in turns; only before a header a file may end.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.longest, self.in_header = file, LONGEST_BLOCK, True

    def read(self, size: int) -> bytes:
        """Return exactly *size* bytes, or none at the end of the file.

        Raises:
            ValueError: so long is no packet.
            _CutOff: the file ends before.
        """
        if not 0 <= size <= self.longest:
            raise ValueError(f"{size} bytes")
        found = self.file.read(size)
        if len(found) < size and (found or not self.in_header):
            raise _CutOff
        self.in_header = not self.in_header
        return found

    def seek(self, place: int) -> None:
        """Go back."""
        self.file.seek(place)
        self.in_header = True


def _packets(path: Path, notes: list[str]) -> Iterator[Packet]:
    """Yield the TCP packets of a file, and note what could not be read."""
    dpkt = require("dpkt", "pcap files")
    count, latest, bad_options = 0, -math.inf, []
    with path.open("rb") as file:
        capture = _Capture(file)
        try:
            reader = dpkt.pcap.UniversalReader(capture)
            if isinstance(reader, dpkt.pcap.Reader):
                capture.longest = min(max(LONGEST_PACKET, reader.snaplen), LONGEST_BLOCK)
            capture.in_header = True
            link = reader.datalink()
            for stamp, raw in reader:
                count += 1
                time = float(stamp)
                if time < latest - MOST_BACK_S:
                    raise BadResults(
                        f"{path.name}: packet {count} is stamped {latest - time:g} s earlier than one before "
                        f"it, so a stamp is damaged; {MOST_BACK_S:g} s are allowed"
                    )
                latest = max(latest, time)
                network = _network_layer(raw, link, path.name)
                if network is None:
                    continue
                total = struct.unpack("!H", network[2:4])[0] if network[0] >> 4 == 4 else 0
                if len(network) < total and len(raw) < reader.snaplen:
                    raise BadResults(f"{path.name}: packet {count} is shorter than its IP header says")
                packet, well = _parsed(dpkt, time, network)
                if packet is not None:
                    yield packet
                if not well:
                    bad_options.append(count)
        except _CutOff:
            if not count:
                raise BadResults(f"{path.name}: is cut off in its first packet, or no capture") from None
            notes.append(
                f"{path.name} ends in the middle of packet {count + 1} (it is cut off, or a length in it is "
                f"damaged): only the {count} packets before were read"
            )
        except (dpkt.Error, ValueError, struct.error, IndexError) as error:
            if isinstance(error, BadResults):
                raise
            what = f"is damaged after {count} packets" if count else "is no pcap or pcapng file"
            raise BadResults(f"{path.name}: {what}") from None
    if bad_options:
        notes.append(
            f"{len(bad_options)} packets, the first of them packet {bad_options[0]}, have damaged TCP "
            "options, which were left out"
        )


def _network_layer(raw: bytes, link: int, source: str) -> bytes | None:
    """Return what follows the link's header if it is IP, None for anything else."""
    if link in RAW:
        found = raw
    elif link == ETHERNET:
        skip = 18 if raw[12:14] == b"\x81\x00" else 14
        found = raw[skip:] if raw[skip - 2 : skip] in (b"\x08\x00", b"\x86\xdd") else b""
    elif link == PPP:
        body = raw[2:] if raw[:2] == b"\xff\x03" else raw
        found = body[2:] if body[:2] in (b"\x00\x21", b"\x00\x57") else b""
    elif link == NULL:
        found = raw[4:]
    elif link == COOKED:
        found = raw[16:]
    else:
        raise BadResults(
            f"{source}: link type {link} of the capture is unknown: Ethernet, PPP and raw IP can be read"
        )
    return found if len(found) >= 20 and found[0] >> 4 in (4, 6) else None


def _parsed(dpkt: Any, time: float, network: bytes) -> tuple[Packet | None, bool]:
    """Return a TCP packet, and whether its options can be read.

    Its length is that of the IP header, for captures may leave payloads out.
    """
    ip: Any
    if network[0] >> 4 == 4:
        ip = dpkt.ip.IP(network)
        carried = (ip.len or len(network)) - ip.hl * 4
    else:
        ip = dpkt.ip6.IP6(network)
        carried = ip.plen
    tcp = ip.data
    if not isinstance(tcp, dpkt.tcp.TCP):
        return None, True
    stamp, echo = -1, -1
    options = dpkt.tcp.parse_opts(tcp.opts)
    well = None not in options
    for kind, data in options if well else ():
        if kind == dpkt.tcp.TCP_OPT_TIMESTAMP and len(data) == 8:
            stamp, echo = struct.unpack("!II", data)
    flags = tcp.flags
    packet = Packet(
        time,
        (ip.src, tcp.sport),
        (ip.dst, tcp.dport),
        tcp.seq,
        tcp.ack,
        bool(flags & dpkt.tcp.TH_ACK),
        bool(flags & (dpkt.tcp.TH_SYN | dpkt.tcp.TH_RST)),
        max(0, carried - tcp.off * 4),
        stamp,
        echo,
    )
    return packet, well


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
    """Return begin and end of the measurement (s), whether a warm-up was cut off, and what to say of it."""
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
