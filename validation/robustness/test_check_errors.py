"""Damaged, empty and foreign files: exit code 2, one sentence that names the place, nothing written."""

import io
import re
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from capture_files import DATA, as_pcapng
from command_line import failure

from btqueue.scenario import Scenario
from btqueue.study.check import BadResults, read_results

MONITOR, SCALARS, VECTORS = (
    (DATA / name).read_bytes() for name in ("ns3_flowmon.xml", "omnet.sca", "omnet.vec")
)
VECTOR = b"run,type,module,name,attrname,attrvalue,value,vectime,vecvalue\na,vector,net,rtt:vector,,,,1 2,3\n"
NAME = "venugopal-2006/piconet"


def refused(path: Path) -> str:
    """Return the message with which the file is refused before anything is simulated."""
    return failure("check", path, "--scenario", NAME)


BAD_FILES = {
    "empty.csv": (b"", "empty.csv: is empty"),
    "header.csv": (b"metric,value\n", "has a header and no rows"),
    "column.csv": (b"metric,valeu\nrtt_s,1\n", 'column "value" is missing; did you mean the column "valeu"?'),
    "name.csv": (b"metric,value\ngoodput_kpbs,1\n", '"goodput_kpbs" is no metric; did you mean "goodput'),
    "number.csv": (b"metric,value\nrtt_s,1\nrtt_s,abc\n", 'line 3: value = "abc": must be a number'),
    "negative.csv": (b"metric,value,ci95\nrtt_s,1,-2\n", "line 2: half-width -2: cannot be negative"),
    "fields.csv": (b"metric,value\nrtt_s,1,5\n", "line 2: has more fields than the header"),
    "bracket.csv": (b"metric,value\nqueue_packets[up,1\n", "the bracket of a queue or flow is not closed"),
    "twice.csv": (b"metric,value,value\nrtt_s,1,1\nrtt_s,1,2\n", 'columns 2 and 3 are both called "value"'),
    "long.csv": (b"metric,value\nrtt_s,1\n" + b"x" * 200_000 + b",1\n", "line 3: a field is longer than"),
    "columns.csv": (  # a reader that compares each column, or row, with every column takes an hour
        ",".join(["metric,value", *map("c{}".format, range(100_000))]).encode() + b"\nrtt_s,1" * 100_000,
        'unknown column "c0"',
    ),
    "quote.csv": (b'metric,value\nrtt_s,1\n"delay_s,2\nrtt_s,3\n', "line 4: a quotation mark is not closed"),
    "zero.csv": (b"metric,value\nrtt_s,\x001\n", "line 2: has a zero byte"),
    "latin.csv": ("metric,value\nrtt_s,1\n# größe\n".encode("latin-1"), "is no text in UTF-8 (byte 26)"),
    "ours.nc": (b"\x89HDF\r\n\x1a\n" + bytes(90), "is netCDF, which is not read here; write CSV with --out"),
    "garbage.pcap": (b"hello, this is no capture at all", "is no pcap, pcapng or btsnoop file"),
    "btsnoop_hci.log": (
        b"btsnoop\0" + struct.pack(">2I4Iq", 1, 1003, 1, 1, 0, 0, 0) + b"\0",
        "btsnoop_hci.log: type of link 1003 of btsnoop is unknown",
    ),
    "cut.log": (b"btsnoop\0" + struct.pack(">II", 1, 1002) + bytes(10), "cut off in its first packet"),
    "half.xml": (MONITOR[:1500], "is no complete XML file"),
    "missing.xml": (MONITOR.replace(b"rxBytes", b"received"), "rxBytes is missing"),
    "encoding.xml": (b'<?xml version="1.0" encoding="big5"?><a b="\xff"/>', "is no text in UTF-8 (byte 44)"),
    "bomb.xml": (b'<!DOCTYPE a [<!ENTITY a "aa">]><FlowMonitor>&a;</FlowMonitor>', "has a DOCTYPE"),
    "twice.xml": (MONITOR.replace(b'Flow flowId="2" t', b'Flow flowId="1" t'), "flow 1 is there 2 times"),
    "negative.xml": (MONITOR.replace(b'lostPackets="4"', b'lostPackets="-4"'), "flow 1: lostPackets = -4"),
    "columns.vec": (b"version 3\nrun a\nvector 0 net rtt:vector ET\n0\t1\t2\n", 'line 3: columns "ET"'),
    "long.sca": (SCALARS.replace(b"limit 100s", b"limit 1e9s"), "more than 100 times run.duration_s = 480"),
    "half.sca": (SCALARS.split(b" 2000000")[0] + b"\n", "line 14: is cut off after scalar"),
    "other.db": (b"SQLite format 3\0" + bytes(100), "is SQLite, which is not read here; write CSV"),
    "CSV-S.csv": (b"File,Run,Module,Name,Value\n", "missing; export results of OMNeT++ with -F CSV-R"),
    "CSV-R.csv": (b"run,type,module,name,value\n", "the column attrname is missing; export it with -F CSV-R"),
    "vector.csv": (VECTOR, "line 2: 2 times for 1 values of a vector"),
    "flow.csv": (b"flow;metric;value\n3;rtt_s;1\n", 'line 2: flow = "3": the scenario has flows 1 to 2'),
    "wide.csv": (b"goodput_kbps,rtt_s\n99,0.1\n", 'the column "metric" is missing; write a row metric,value'),
    "warm-up.csv": (b"metric,value,warmup_s\nrtt_s,1,5\ndelay_s,1,6\n", "warmup_s = 5 and 6: must be one"),
    "again.csv": (b"flow,metric,value\n1,rtt_s,1\n1,rtt_s,2\n", 'line 3: "rtt_s" stands in line 2 already'),
    "unknown.sca": (b'version 3\nrun a\nscalar net "weight" 3\n', 'it has weight); give --map "NAME=METRIC"'),
    "undeclared.vec": (VECTORS + b"7\t1\t2\n", "vector 7 was not declared"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_in_a_sentence(name, tmp_path):
    content, words = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert words in refused(path)


def capture(packets: int = 20, options: bytes = b"") -> bytes:
    """A capture of a flow whose segments, with TCP options, are acknowledged one by one."""
    dpkt = pytest.importorskip("dpkt", reason="another writer of captures")
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, linktype=dpkt.pcap.DLT_RAW)
    for number in range(packets):
        for back in (False, True):
            source, target = (2, 1) if back else (1, 2)
            sequence, acknowledged = (1, 1001 + 1000 * number) if back else (1 + 1000 * number, 1)
            segment = dpkt.tcp.TCP(sport=source, dport=target, seq=sequence, ack=acknowledged)
            segment.flags, segment.data = dpkt.tcp.TH_ACK, b"" if back else bytes(1000)
            if options and not back:
                segment.opts, segment.off = options, 5 + len(options) // 4
            ends = {"src": bytes([10, 0, 0, source]), "dst": bytes([10, 0, 0, target])}
            packet = dpkt.ip.IP(**ends, p=dpkt.ip.IP_PROTO_TCP, data=segment)
            writer.writepkt(bytes(packet), number + 0.1 * back)
    return file.getvalue()


@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
def test_a_capture_cut_off_anywhere_is_read_up_to_there(tmp_path, suffix):
    whole = capture() if suffix == ".pcap" else as_pcapng(capture())
    header, packets = (24, 40) if suffix == ".pcap" else (48, 40)
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(whole)
    complete = read_results(path, Scenario())
    assert complete.value("rtt_s") == pytest.approx(0.1) and not any("ends in" in n for n in complete.notes)
    # cut between two packets a capture is complete, only shorter; anywhere else the last packet is missing
    lengths = packet_ends(whole, suffix)
    assert len(lengths) == packets and lengths[-1] == len(whole)
    for length in np.random.default_rng(1).integers(1, len(whole) - 1, 60):
        path.write_bytes(whole[:length])
        before = sum(end <= length for end in lengths)
        try:
            notes = " ".join(read_results(path, Scenario()).notes)
        except BadResults as error:
            assert before < 3 and path.name in str(error)  # too few for any measurement
            continue
        cut = f"ends in the middle of packet {before + 1} (it is cut off"
        assert (cut in notes) == (length not in [header, *lengths])
    path.write_bytes(whole[: lengths[30] + 20])
    short = read_results(path, Scenario())
    path.write_bytes(whole[: lengths[30]])
    assert read_results(path, Scenario()).quantities == short.quantities


def packet_ends(content: bytes, suffix: str) -> list[int]:
    """Where each packet of a little-endian pcapng, or of a pcap of this machine, ends."""
    place, ends = (24, []) if suffix == ".pcap" else (0, [])
    while place < len(content):
        kind = int.from_bytes(content[place : place + 4], "little")
        if suffix == ".pcap":
            place += 16 + int.from_bytes(content[place + 8 : place + 12], sys.byteorder)
        else:
            place += int.from_bytes(content[place + 4 : place + 8], "little")
        ends += [place] if suffix == ".pcap" or kind == 6 else []
    return ends


@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
def test_a_damaged_length_is_no_end_of_the_file(tmp_path, suffix):
    whole = capture() if suffix == ".pcap" else as_pcapng(capture())
    end = packet_ends(whole, suffix)[9]
    place = end + (11 if suffix == ".pcap" and sys.byteorder == "little" else 7)
    path = tmp_path / f"length{suffix}"
    path.write_bytes(whole[:place] + b"\x7f" + whole[place + 1 :])  # 2 GB long
    assert "is damaged after 10 packets" in refused(path)


def test_a_stamp_that_goes_back_is_refused(tmp_path):
    whole = bytearray(capture())
    place = packet_ends(bytes(whole), ".pcap")[9]
    whole[place : place + 4] = (2**20).to_bytes(4, sys.byteorder)
    path = tmp_path / "stamp.pcap"
    path.write_bytes(whole)
    told = refused(path)
    assert "packet 12 is stamped 1.04857e+06 s earlier than one before it, so a stamp is damaged" in told


def test_a_damaged_tcp_option_is_left_out_and_the_packet_counts(tmp_path):
    path = tmp_path / "options.pcap"
    path.write_bytes(capture())
    whole = read_results(path, Scenario())
    path.write_bytes(capture(options=b"\x01\x01\x01\x08"))  # a time stamp without a length
    damaged = read_results(path, Scenario())
    assert damaged.quantities == whole.quantities
    assert any("20 packets, the first of them packet 1, have damaged TCP options" in n for n in damaged.notes)


def test_data_that_come_with_a_syn_alone_are_no_flow(tmp_path):
    path = tmp_path / "syn.pcap"
    path.write_bytes(re.sub(rb"(\x00\x01\x00\x02.{8}\x50)\x10", b"\\1\x02", capture(), flags=re.DOTALL))
    assert "no TCP flow carries data" in refused(path)
