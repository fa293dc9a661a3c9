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
from thesis import over_wires

from btqueue.captures.packets import Packet
from btqueue.scenario import Scenario
from btqueue.study.check import read_results
from btqueue.study.check.consistency import check_consistency
from btqueue.study.check.facts import AT_SENDER, compare_facts, facts_of
from btqueue.study.check.packet_capture import captured_packets
from btqueue.study.check.tcp_sender import SenderLog, SenderObserver

with tarfile.open(
    fileobj=io.BytesIO(lzma.decompress((Path(__file__).parent / "captures" / "captures.tar.xz").read_bytes()))
) as archive:
    FILES = {one.name: file.read() for one in archive if (file := archive.extractfile(one))}
CAPTURES = json.loads(FILES["counters.json"])["captures"]
COUNTERS = {name: one["counters"] for name, one in CAPTURES.items()}
LINKS = {name: one["link"] for name, one in CAPTURES.items()}
WITHOUT_CHUNKS = [name for name, link in LINKS.items() if "chunk" not in link]
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


@pytest.mark.parametrize("name", COUNTERS)
def test_events_are_those_that_the_kernel_counted(name, tmp_path):
    """Stamps of 10 ms are enough, and if the opening is missing, it is seen from the rest."""
    packets, counters = packets_of(name, tmp_path), COUNTERS[name]
    assert_counted(log_of(packets), counters)
    assert_counted(log_of([one._replace(time=round(one.time, 2)) for one in packets]), counters)
    # where single segments wait for a timer before any round trip is known, timeouts and probes look alike
    if name in WITHOUT_CHUNKS:
        assert_counted(log_of([one for one in packets if not one.opens]), counters)


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


@pytest.mark.parametrize("warmup_s", [0, 1])
@pytest.mark.parametrize("name", WITHOUT_CHUNKS)
def test_a_right_scenario_is_contradicted_by_no_fact_and_no_balance(name, warmup_s, tmp_path):
    """Whole files; on that link acknowledgements take no time but its delay, which is shortened for it."""
    link, path = LINKS[name], tmp_path / f"{name}.pcap"
    path.write_bytes(FILES[path.name])
    options = 12 * bool(link.get("ts", 1))
    ack_s = 8e-3 * (40 + options) / link["rate"]
    wire = {"name": "far", "from": "a", "to": "b", "kind": "other", "header_bytes": 0}
    wire |= {"rate_kbps": link["rate"], "delay_s": link["delay"] / 1e3 - ack_s / 2}
    keys = {"preset": "linux", "mss_bytes": 1460 - options, "header_bytes": 40 + options}
    keys |= {"timestamps": bool(options), "sack": bool(link.get("sack", 1))}
    scenario = Scenario.from_dict(
        {
            "network": over_wires(wire),
            "traffic": {"source": "greedy"},
            "transport": keys,
            "run": {"duration_s": 60, "warmup_s": warmup_s},
        }
    )
    found = read_results(path, scenario)
    findings = compare_facts(found, scenario) + check_consistency(found, scenario)
    assert [one for one in findings if one.status != "passed"] == []
    assert len(findings) > 3
