"""Wireshark's analysis of a captured run, from the bytes alone, against the simulator's own counts."""

import shutil
import subprocess
from decimal import Decimal

import numpy as np
import pytest
from thesis import thesis

from btqueue.simulator.construction.state import new_state
from btqueue.simulator.traces.pcap import FIRST_CLIENT_PORT, PcapWriter
from btqueue.simulator.traces.trace import FAST_RETRANSMIT
from btqueue.simulator.traces.trace_files import play

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

ANY_RETRANSMISSION = (
    *("tcp.analysis.retransmission", "tcp.analysis.fast_retransmission"),
    *("tcp.analysis.spurious_retransmission", "tcp.analysis.out_of_order"),
)
"""A retransmission that follows other data within 3 ms is out of order for tshark. At its sender nothing can
be out of order, so all of these are retransmissions."""
FAST_RETRANSMISSION = "tcp.analysis.fast_retransmission"
DUPLICATE_ACK = "tcp.analysis.duplicate_ack"
ZERO_WINDOW = "tcp.analysis.zero_window"
LOST = "tcp.analysis.lost_segment"
"""A gap in what a host sends: there is none where it is captured."""
MALFORMED = "_ws.malformed"
CHECKSUMS = ("ip.checksum.status", "tcp.checksum.status", "udp.checksum.status")
GOOD_OR_ABSENT = ("1", "")
PORTS = ("tcp.srcport", "tcp.dstport")
TIME = "frame.time_epoch"
BLOCKS = ("tcp.options.sack_le", "tcp.options.sack_re")
FIELDS = (*ANY_RETRANSMISSION, DUPLICATE_ACK, ZERO_WINDOW, LOST, MALFORMED, *CHECKSUMS, *PORTS, TIME, *BLOCKS)

RUN = {"run__warmup_s": 0, "run__duration_s": 60, "run__seed": 4}
RUN |= {"radio__model": "constant", "radio__ber": 1e-6, "traffic__source": "greedy"}
SEGMENT_BYTES = 1460
SCENARIOS = {
    "newreno": {},
    "reno": {"transport__variant": "reno"},
    "tahoe": {"transport__variant": "tahoe"},
    "sack": {"transport__variant": "sack"},
    "vegas": {"transport__variant": "vegas"},
    "sack with timestamps": {"transport__variant": "sack", "transport__timestamps": True},
    "delayed acknowledgements": {"transport__delayed_ack": True},
    "window beyond 65 535 bytes": {"transport__receive_window_segments": 60},
}


def analysed(path):
    """Return, for each packet of the capture, what tshark says of it, with all checksums checked."""
    options = [word for layer in ("ip", "tcp", "udp") for word in ("-o", f"{layer}.check_checksum:TRUE")]
    columns = [word for field in FIELDS for word in ("-e", field)]
    command = ["tshark", "-r", str(path), "-n", *options, "-T", "fields", *columns]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]


def times(packets):
    """Return when the packets were captured (ns)."""
    return [round(Decimal(packet[TIME]) * 10**9) for packet in packets]


def duplicates_with_news(acknowledgements):
    """Return how many duplicates report data beyond a gap that nothing has reported before."""
    reported, count = set(), 0
    for packet in acknowledgements:
        lefts, rights = (packet[field].split(",") if packet[field] else [] for field in BLOCKS)
        here = {
            start
            for left, right in zip(lefts, rights, strict=True)
            for start in range(int(left), int(right), SEGMENT_BYTES)
        }
        count += bool(here - reported) and bool(packet[DUPLICATE_ACK])
        reported |= here
    return count


def capture(scenario, path):
    """Capture at the source of the first flow; return its counts, and when it entered fast recovery (ns)."""
    entries = []

    def note_fast_retransmits(log):
        entries.extend(log.time[(log.event == FAST_RETRANSMIT) & (log.flow == 0)].tolist())

    with np.errstate(over="ignore"), path.open("wb") as file:
        sim = new_state(scenario, 0, logging=True)
        writer = PcapWriter(file, sim, int(sim.connections[0].source))
        play(sim, scenario.run.duration_s, [writer.write, note_fast_retransmits])
    return sim.flow_statistics[0], entries


@pytest.mark.parametrize("name", SCENARIOS)
def test_tshark_counts_the_same_recoveries(name, tmp_path):
    scenario = thesis().with_(**{**RUN, **SCENARIOS[name]})
    flow, entries = capture(scenario, tmp_path / "run.pcap")
    packets = analysed(tmp_path / "run.pcap")
    # the host is also the receiver of the second flow, a connection of its own
    sent = [packet for packet in packets if packet["tcp.srcport"] == str(FIRST_CLIENT_PORT)]
    received = [packet for packet in packets if packet["tcp.dstport"] == str(FIRST_CLIENT_PORT)]
    assert len(sent) == flow.segments_sent
    assert flow.segments_retransmitted > 10
    duplicates = sum(bool(packet[DUPLICATE_ACK]) for packet in received)
    again = [packet for packet in sent if any(map(packet.get, ANY_RETRANSMISSION))]
    assert len(again) == flow.segments_retransmitted
    assert len(entries) == flow.fast_retransmits > 0
    if scenario.transport.variant == "sack":
        # For tshark three duplicates make a fast retransmission. RFC 6675 enters recovery at the first if two
        # segments beyond the hole were reported before, and fills other holes without entering it anew.
        assert set(entries) <= set(times(again))
        # For RFC 6675 a duplicate reports news; one that acknowledges new data, or repeats what the sender
        # forgot at a timeout, may be one, too. None goes without a block.
        assert duplicates_with_news(received) <= flow.duplicate_acks_received
        assert flow.duplicate_acks_received <= sum(bool(packet[BLOCKS[0]]) for packet in received)
    else:
        assert entries == times(packet for packet in again if packet[FAST_RETRANSMISSION])
        assert duplicates == flow.duplicate_acks_received
    assert not any(packet[LOST] for packet in sent)
    assert not any(packet[ZERO_WINDOW] or packet[MALFORMED] for packet in packets)
    assert all(packet[status] in GOOD_OR_ABSENT for packet in packets for status in CHECKSUMS)


def test_tshark_notices_a_wrong_checksum(tmp_path):
    path = tmp_path / "run.pcap"
    capture(thesis().with_(**{**RUN, "run__duration_s": 1}), path)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 0xFF  # in the payload or the options of the last segment
    path.write_bytes(raw)
    assert [packet["tcp.checksum.status"] for packet in analysed(path)].count("0") == 1
