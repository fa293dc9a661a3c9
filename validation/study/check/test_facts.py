"""Facts of captures against the scenario: our own captures, BBR of a Linux kernel, packets moved by hand.

`data/linux_bbr.pcap.xz` holds the first 240 packets of a transfer by BBR of Linux 6.18, which
`validation/peers/linux/record.py --pcap` made over 400 kbit/s and 40 ms each way, without losses.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from capture_files import unpacked
from thesis import over_wires, thesis

from btqueue.captures.files import CaptureWriter, frames
from btqueue.captures.packets import ACK, Packet, ip_packet, tcp_segment
from btqueue.captures.packets import TCP as TCP_NUMBER
from btqueue.scenario import Scenario
from btqueue.simulator.traces.trace_files import record
from btqueue.study.check import read_results
from btqueue.study.check.facts import Facts, compare_facts, facts_of
from btqueue.study.check.packet_capture import captured_packets
from btqueue.study.check.results import ForeignResults
from btqueue.study.check.tcp_sender import SenderObserver

LINK = {"name": "far", "from": "sender", "to": "receiver", "kind": "other", "rate_kbps": 200, "delay_s": 0.03}
TCP = {
    "preset": "rfc", "variant": "newreno", "sack": True, "mss_bytes": 536, "handshake": True,
    "delayed_ack": False, "receive_window_segments": 20, "initial_window_segments": 4,
}  # fmt: skip


def scenario(link: dict = LINK, **transport: object) -> Scenario:
    return thesis(
        network=over_wires(link),
        traffic={"source": "greedy"},
        transport=TCP | transport,
        run={"duration_s": 20, "warmup_s": 2, "jitter_s": 0},
    )


@pytest.fixture(scope="module")
def captured(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("facts") / "run.pcap"
    record(scenario(), pcap=path)
    return path


def told(path: Path, against: Scenario) -> dict[str, tuple[str, str]]:
    found = read_results(path, against)
    return {one.check: (one.status, one.sentence) for one in compare_facts(found, against)}


def test_all_facts_of_a_capture_are_those_of_its_scenario(captured):
    (fact,) = read_results(captured, scenario()).facts
    assert fact.place == "at the sender" and not fact.paces
    assert (fact.segment_bytes, fact.mss_bytes, fact.option_bytes) == (536, 536, 12)  # the SYN says 548
    assert (fact.sack, fact.timestamps, fact.initial_window_segments) == (True, True, 4)
    assert fact.window_bytes == 20 * 536 == fact.under_way_bytes
    bits = 8 * (536 + 40), 8 * 40
    assert fact.least_round_trip_s == pytest.approx(0.06 + sum(bits) / 200e3, abs=1e-3)
    assert fact.segments_per_s == pytest.approx(200e3 / bits[0], rel=0.01)
    assert told(captured, scenario()).keys() == {"facts"}


MSS, SACK, WINDOW, INITIAL = (
    f"transport.{name}"
    for name in ("mss_bytes", "sack", "receive_window_segments", "initial_window_segments")
)
RATE = "network.outside_links[1].rate_kbps"
BEHIND = "captured behind the queue of a link: only the goodput"


@pytest.mark.parametrize(
    ("key", "against", "words"),
    [
        (MSS, scenario(mss_bytes=533), "the capture says 536, the scenario 533"),
        (MSS, scenario(mss_bytes=548), "the capture says 536, the scenario 548"),
        (SACK, scenario(variant="reno", sack=False), "the capture says true, the scenario false"),
        (SACK, scenario(sack=False), "the capture says true, the scenario false"),
        ("transport.timestamps", scenario(timestamps=False), "the capture says true, the scenario false"),
        (WINDOW, scenario(receive_window_segments=21), "the capture says 20, the scenario 21"),
        (WINDOW, scenario(receive_window_segments=19), "20 segments under way at once, the scenario at most"),
        (INITIAL, scenario(initial_window_segments=3), "the capture says 4, the scenario 3"),
        (RATE, scenario(LINK | {"rate_kbps": 210}), "the capture says 200, the scenario 210"),
        ("least round trip", scenario(LINK | {"delay_s": 0.06}), "delays and rates allow no less than 0.14"),
    ],
)
def test_a_fact_that_contradicts_the_scenario_is_named_with_its_key(captured, key, against, words):
    found = told(captured, against)
    assert found.keys() == {key}
    status, sentence = found[key]
    assert status == "failed" and words in sentence


def test_a_sender_that_paces_is_named_as_unknown(tmp_path):
    path = unpacked("linux_bbr.pcap", tmp_path)
    tuned = {"initial_window_segments": 10, "receive_window_segments": 2048, "buffers": "tuned"}
    linux = scenario(LINK | {"rate_kbps": 400, "delay_s": 0.04}, preset="linux", mss_bytes=1448, **tuned)
    status, sentence = told(path, linux)["transport.variant"]
    assert status == "doubtful"
    assert "not explained by NewReno, CUBIC or Vegas (BBR paces" in sentence
    assert told(path, linux).keys() == {"transport.variant"}


def test_segments_that_messages_do_not_fill_say_nothing_against_an_mss_that_was_agreed_on(captured):
    (fact,) = read_results(captured, scenario()).facts
    small = replace(fact, segment_bytes=100, under_way_bytes=500)
    messages = scenario().with_(traffic__source="poisson")

    def sizes(one: Facts, mss: int) -> list[str]:
        against = messages.with_(transport__mss_bytes=mss, transport__receive_window_segments=20)
        of = ForeignResults("run.pcap", "packet capture", {}, flow=1, facts=(one,))
        return [each.sentence for each in compare_facts(of, against) if "mss" in each.check]

    assert sizes(small, 536) == sizes(fact, 536) == sizes(small, 548) == []
    assert sizes(small, 500) == ["the capture says 536, the scenario 500"]
    assert sizes(fact, 548) == ["the capture says 536, the scenario 548"]
    assert sizes(replace(small, mss_bytes=None), 500) == []
    assert sizes(replace(fact, mss_bytes=None), 500) == ["the capture says 536, the scenario 500"]


@cache
def ns3_packets(folder: Path) -> tuple[Packet, ...]:
    return tuple(captured_packets(unpacked("ns3_sender.pcap", folder), []))


def facts(packets: Sequence[Packet]) -> Facts:
    forth = next(one for one in packets if one.length)
    log = SenderObserver(forth.source, forth.target, 0.005).follow(packets)
    return facts_of(packets, forth.source, log, 0.005)


@pytest.mark.parametrize(
    ("share", "place"), [(0, "at the sender"), (0.5, "on the way"), (1, "at the receiver")]
)
def test_the_place_of_a_capture_follows_from_the_opening(tmp_path, share, place):
    packets = ns3_packets(tmp_path)
    sender = next(one for one in packets if one.length).source
    shift = 0.051 * share  # of the delay of one way
    moved = (one._replace(time=one.time + (shift if one.source == sender else -shift)) for one in packets)
    assert facts(sorted(moved, key=lambda one: one.time)).place == place


def rewritten(path: Path, content: Iterable[tuple[float, bytes]]) -> Path:
    """Write a capture of these times and packets."""
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        for time, raw in content:
            writer.write(raw, round(time * 1e9))
    return path


def behind_a_link(packets: Sequence[Packet], rate_kbps: float) -> list[float]:
    """Return when the packets leave a link's queue without a limit at the sender."""
    sender = next(one for one in packets if one.length).source
    free, times = 0.0, []
    for one in packets:
        if one.source == sender:
            free = max(free, one.time) + (one.length + one.option_bytes + 40) * 8e-3 / rate_kbps
        times.append(free if one.source == sender else one.time)
    return times


def test_behind_the_queue_of_a_link_round_trips_and_losses_are_withheld(captured, tmp_path):
    packets, raws = list(captured_packets(captured, [])), [frame.raw for frame in frames(captured, [])]
    moved = sorted(zip(behind_a_link(packets, 200), range(len(packets)), strict=True))
    assert facts(packets).place == "at the sender"
    behind = [packets[number]._replace(time=time) for time, number in moved]
    assert facts(behind).place == "behind the queue of a link"
    path = rewritten(tmp_path / "behind.pcap", [(time, raws[number]) for time, number in moved])
    found: ForeignResults = read_results(path, scenario())
    assert set(found.quantities) == {"goodput_kbps"}
    assert any(note.startswith(BEHIND) for note in found.notes)


def test_a_flow_is_measured_while_its_sender_sends(captured, tmp_path):
    """The transfer ends after 12 s; one packet of another connection comes 60 s later."""
    packets = list(captured_packets(captured, []))
    sender = next(one for one in packets if one.length).source
    last = max(one.acknowledged for one in packets if one.source != sender and one.time < 12)
    other = tcp_segment((7, 8), 1, 1, ACK, 1000, b"", b"")
    content = [
        (frame.time, frame.raw)
        for frame, one in zip(frames(captured, []), packets, strict=True)
        if (one.acknowledged <= last if one.source != sender else not one.length or one.sequence < last)
    ]
    content.append((72.0, ip_packet(sender[0], b"\x0a\x00\x00\x09", TCP_NUMBER, other)))
    path = rewritten(tmp_path / "ends.pcap", content)
    found = read_results(path, scenario().with_(run__warmup_s=0, run__duration_s=300))
    whole = read_results(captured, scenario().with_(run__warmup_s=0))
    assert found.duration_s == pytest.approx(12, abs=0.2)
    assert found.value("goodput_kbps") == pytest.approx(whole.value("goodput_kbps"), rel=0.03)
    assert any("the last 60" in note for note in found.notes)
