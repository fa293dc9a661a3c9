"""The sender's events in captures of a Linux kernel, against the kernel's own counters.

Timeouts, recoveries and retransmissions must come within 10 %, or one, of the counters. The kernel counts
what a capture cannot show (a probe of the only segment, a recovery that begins at the end of another), so
that equality is no law; it holds for retransmissions, which are all in the packets.
"""

import io
import json
import lzma
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from btqueue.captures.packets import Packet
from btqueue.study.check.facts import AT_SENDER, facts_of
from btqueue.study.check.packet_capture import captured_packets
from btqueue.study.check.tcp_sender import SenderLog, SenderObserver

with tarfile.open(
    fileobj=io.BytesIO(lzma.decompress((Path(__file__).parent / "captures" / "captures.tar.xz").read_bytes()))
) as archive:
    FILES = {one.name: file.read() for one in archive if (file := archive.extractfile(one))}
CAPTURES = json.loads(FILES["counters.json"])["captures"]
COUNTERS = {name: one["counters"] for name, one in CAPTURES.items()}
LINKS = {name: one["link"] for name, one in CAPTURES.items()}
SHARE = 0.1


def near(seen: int, counted: int) -> bool:
    return abs(seen - counted) <= max(1, SHARE * counted)


def packets_of(name: str, folder: Path) -> list[Packet]:
    path = folder / f"{name}.pcap"
    path.write_bytes(FILES[path.name])
    return list(captured_packets(path, []))


def log_of(packets: list[Packet]) -> SenderLog:
    carried: Counter[tuple] = Counter()
    for packet in packets:
        carried[packet.source, packet.target] += packet.length
    return SenderObserver(*max(carried, key=carried.__getitem__), reaction_s=0.005).follow(packets)


def assert_counted(log: SenderLog, counters: dict[str, int]) -> None:
    recoveries = counters.get("TCPSackRecovery", 0) + counters.get("TCPRenoRecovery", 0)
    assert len(log.retransmissions) == counters["RetransSegs"]
    assert near(len(log.fast_retransmits), recoveries)
    assert near(len(log.timeouts), counters.get("TCPTimeouts", 0))
    assert near(len(log.probes), counters.get("TCPLossProbes", 0))  # those that repeat nothing are not seen


def test_there_are_enough_captures_of_each_kind():
    total = sum((Counter(one) for one in COUNTERS.values()), Counter())
    assert len(COUNTERS) >= 20
    assert min(total["TCPSackRecovery"], total["TCPRenoRecovery"]) > 20
    assert min(total["TCPTimeouts"], total["TCPLossProbes"]) > 10


@pytest.mark.parametrize("name", COUNTERS)
def test_events_are_those_that_the_kernel_counted(name, tmp_path):
    assert_counted(log_of(packets_of(name, tmp_path)), COUNTERS[name])


@pytest.mark.parametrize("name", COUNTERS)
def test_stamps_of_10_ms_are_enough(name, tmp_path):
    packets = [one._replace(time=round(one.time, 2)) for one in packets_of(name, tmp_path)]
    assert_counted(log_of(packets), COUNTERS[name])


@pytest.mark.parametrize("name", [name for name, link in LINKS.items() if "chunk" not in link])
def test_without_the_opening_it_is_seen_from_the_rest(name, tmp_path):
    # where single segments wait for a timer before any round trip is known, timeouts and probes look alike
    packets = [one for one in packets_of(name, tmp_path) if not one.opens]
    assert_counted(log_of(packets), COUNTERS[name])


@pytest.mark.parametrize("name", LINKS)
def test_facts_are_those_of_the_kernel_and_its_link(name, tmp_path):
    packets, link = packets_of(name, tmp_path), LINKS[name]
    sender = next(one for one in packets if one.length).source
    found = facts_of(packets, sender, log_of(packets), reaction_s=0.005)
    stamped = bool(link.get("ts", 1))
    assert (found.place, found.sack, found.timestamps) == (AT_SENDER, bool(link.get("sack", 1)), stamped)
    assert found.segment_bytes == found.mss_bytes == 1460 - 12 * stamped
    assert found.initial_window_segments == min(10, link.get("chunk", 10))
    least_s = 2e-3 * link["delay"] + 12 / link["rate"]
    assert found.least_round_trip_s is not None
    assert least_s < found.least_round_trip_s < least_s + 0.06  # a delayed acknowledgement at the most
    if found.segments_per_s is not None:
        assert found.segments_per_s == pytest.approx(link["rate"] / 12, rel=0.01)
    assert not found.paces or "chunk" in link
