"""Reading other simulators' files: values by hand, and files of ns-3 (data/make_ns3_files.py made them)."""

import math
import struct
from pathlib import Path

import pytest
from capture_files import DATA, as_pcapng, unpacked
from thesis import thesis

from btqueue.captures.files import frames
from btqueue.scenario import Scenario, load
from btqueue.scenario.expressions import parse_metric
from btqueue.scenario.topology import topology
from btqueue.simulator.traces.trace_files import record
from btqueue.study.check import BadResults, read_results
from btqueue.study.check.agreement import compared_metrics
from btqueue.study.check.facts import compare_facts
from btqueue.study.check.results import checked_map
from btqueue.study.check.verdicts import compared_flows

MONITOR, SCALARS = DATA / "ns3_flowmon.xml", DATA / "omnet.sca"
SCENARIO = thesis()
NS3 = load(str(DATA / "ns3.toml"))
"""What data/make_ns3_files.py simulates."""


def written(tmp_path: Path, text: str, name: str = "theirs.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def test_intervals_of_either_kind_and_decimal_commas_where_semicolons_part_the_columns(tmp_path):
    header = "metric;value;ci95;low;high;replications\n"
    rows = "goodput_kbps;150;2,5;;;8\nrtt_s;0,25;;2,0e-1;0,3;\ntimeouts_per_s;0.1;;;;\n"
    found = read_results(written(tmp_path, header + rows), SCENARIO).quantities
    assert (found["goodput_kbps"].half_width, found["goodput_kbps"].replications) == (2.5, 8)
    assert found["rtt_s"].half_width == pytest.approx(0.05)
    assert (found["rtt_s"].value, found["rtt_s"].replications) == (0.25, None)
    assert found["timeouts_per_s"].value == 0.1 and math.isnan(found["timeouts_per_s"].half_width)


def test_times_are_averaged_and_then_flows_and_then_replications(tmp_path):
    rows = [f"goodput_kbps;{10 * t};;;{t}" for t in range(5)]
    rows += ["rtt_s;1;0;1;", "rtt_s;3;0;2;", "rtt_s;4;1;1;", "rtt_s;6;1;2;", "rtt_s;;2;1;"]
    path = written(tmp_path, "\n".join(["metric;value;replication;flow;t", *rows]))
    found = read_results(path, SCENARIO)
    rtt = found.quantities["rtt_s"]
    assert (rtt.samples, rtt.value, found.value("goodput_kbps")) == ((2.0, 5.0), 3.5, 20.0)
    # Student's 97.5 % quantile with one degree of freedom, times the standard error 1.5
    assert rtt.shown_half_width == pytest.approx(12.7062 * 1.5, rel=1e-5)


WEAK = {"node": "p1.3", "model": "constant", "per": 0.1}
UNLIKE = Scenario.from_dict({"network": {"peripherals": 3, "flows": "uplink"}, "radio": {"links": [WEAK]}})
"""Of three uploads, the third over a weak link."""


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("metric,flow,value", ("goodput_kbps,1,90", "goodput_kbps,2,110", "goodput_kbps,p1.3>c1,40")),
        ("metric,group,value", ("goodput_kbps,p1.1>c1 and 1 alike,100", "goodput_kbps,p1.3>c1,40")),
    ],
)
def test_groups_of_flows_that_differ_are_not_averaged(header, rows, tmp_path):
    """Two flows that were exchanged have the same mean over all flows."""
    found = read_results(written(tmp_path, "\n".join((header, *rows))), UNLIKE)
    assert found.groups == ("p1.1>c1 and 1 alike", "p1.3>c1")
    compared = {name: one.value for name, one in compared_metrics(found).items()}
    assert compared == {"goodput_kbps[p1.1>c1 and 1 alike]": 100.0, "goodput_kbps[p1.3>c1]": 40.0}
    assert [parse_metric(name, "theirs", UNLIKE).places for name in compared] == [(1, 2), (3,)]
    assert compared_flows(found, UNLIKE).endswith("p1.1>c1 and 1 alike, p1.3>c1")
    alike = UNLIKE.with_(radio__links=[])
    if "flow" in header:
        assert compared_metrics(read_results(tmp_path / "theirs.csv", alike)).keys() == {"goodput_kbps"}


@pytest.mark.parametrize(
    ("header", "rows", "whole"),
    [
        ("metric,group,value", ("goodput_kbps,p1.3>c1,400", "rtt_s,p1.1>c1 and 1 alike,1"), None),
        ("metric,flow,value", ("goodput_kbps,3,400", "rtt_s,1,1"), None),
        ("metric,flow,value", ("goodput_kbps,1,40", "goodput_kbps,p1.2>c1,50", "goodput_kbps,3,60"), 50.0),
        ("metric,flow,value", ("goodput_kbps,1,40", "goodput_kbps,3,60", "goodput_kbps,,45"), 45.0),
        ("metric,flow,t,value", ("goodput_kbps,3,1,40", "goodput_kbps,3,2,60", "rtt_s,1,1,1"), None),
    ],
)
def test_a_mean_over_all_flows_is_taken_only_of_rows_that_give_it(header, rows, whole, tmp_path):
    """The goodput of one upload may be above the mean share of a radio that it does not share equally."""
    found = read_results(written(tmp_path, "\n".join((header, *rows))), UNLIKE)
    assert found.value("goodput_kbps") == pytest.approx(math.nan if whole is None else whole, nan_ok=True)
    assert "goodput_kbps[p1.3>c1]" in found.quantities


def test_a_group_in_the_column_of_flows_is_refused_with_the_right_column(tmp_path):
    for name, hint in (("p1.1>c1 and 1 alike", True), ("p1.9>c1", False)):
        with pytest.raises(BadResults) as error:
            read_results(written(tmp_path, f"metric,flow,value\ngoodput_kbps,{name},100\n"), UNLIKE)
        assert ("a group stands in a column group" in str(error.value)) == hint


def test_missing_values_and_interrupted_simulations_are_told(tmp_path):
    text = "metric,value,interrupted\ngoodput_kbps,,25 of 2000\nrtt_s,3.4,25 of 2000\n"
    notes = read_results(written(tmp_path, text), SCENARIO).notes
    assert notes[0] == "without a value in 1 rows, left out: goodput_kbps (line 2)"
    assert notes[1] == "the simulation in the file was interrupted: 25 of 2000"
    with pytest.raises(BadResults, match='"half_widht"; did you mean "half_width"'):
        read_results(written(tmp_path, "metric,value,half_widht\nrtt_s,1,1\n"), SCENARIO)


def test_what_spreadsheets_leave_behind_does_no_harm(tmp_path):
    plain = "metric,value,ci95\ngoodput_kbps,150,2.5\nrtt_s,0.25,\n"
    path = written(tmp_path, plain)
    whole = read_results(path, SCENARIO)
    for line, left in (("\n", ",,\n"), ("2.5\n", "2.5,,,\n"), ("\n", "\r\n"), ("\n", "\r")):
        assert read_results(written(tmp_path, plain.replace(line, left)), SCENARIO) == whole
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):  # with their byte order marks
        path.write_bytes(plain.replace(",", "\t").encode(encoding))
        assert read_results(path, SCENARIO).quantities == whole.quantities


def test_the_addresses_of_a_capture_of_ours_tell_the_flow(tmp_path):
    """Of captures of other programs it is the first flow, which the report says at its top."""
    short = UNLIKE.with_(run__duration_s=20, run__warmup_s=1, traffic__source="greedy")
    record(short, pcap=tmp_path / "weak.pcap", at="p1.3")
    found = read_results(tmp_path / "weak.pcap", short)
    assert (found.flow, found.flow_assumed) == (3, False)
    assert compared_flows(found, short) == "compared with flow 3 (p1.3>c1)"
    theirs = read_results(unpacked("ns3_sender.pcap", tmp_path), short)
    assert (theirs.flow, theirs.flow_assumed) == (1, True)
    assert compared_flows(theirs, short).endswith("and --flow takes another")
    record(short, pcap=tmp_path / "all.pcap", at="c1")
    assert read_results(tmp_path / "all.pcap", short).groups == ("p1.1>c1 and 1 alike", "p1.3>c1")
    assert read_results(tmp_path / "all.pcap", short, flow=2).flow == 2


def test_a_flow_monitor_file_of_ns3():
    found = read_results(MONITOR, NS3)
    assert (found.kind, found.flow, found.measured_from_start) == ("FlowMonitor", None, True)
    counts = [found.value(f"packets_{what}") for what in ("sent", "delivered", "lost", "in_flight")]
    assert counts[0] == sum(counts[1:])
    # the sink of ns-3 counted 89.9 to 94.1 kbit/s of user bytes over 60 s
    assert "goodput_kbps" not in found.quantities  # copies that arrive twice are in what arrived
    assert 89 < found.value("arrived_kbps") < 95
    assert found.value("throughput_kbps") > found.value("arrived_kbps")
    # at least two crossings of both links, at most the window's service as well
    assert 2 * 0.051 < found.value("rtt_s") < 2 * 0.051 + 4 * 1502 * 8 / 100_000 + 0.01


def test_a_capture_of_ns3_tells_the_same_rates(tmp_path):
    capture = read_results(unpacked("ns3_sender.pcap", tmp_path), NS3)
    monitor = read_results(MONITOR, NS3)
    assert capture.value("throughput_kbps") == pytest.approx(monitor.value("throughput_kbps"), rel=0.02)
    assert capture.value("goodput_kbps") <= monitor.value("arrived_kbps") * 1.001
    assert capture.value("goodput_kbps") == pytest.approx(monitor.value("arrived_kbps"), rel=0.02)
    # FlowMonitor's mean delays weigh every packet, round trips leave out what was sent again
    assert capture.value("rtt_s") == pytest.approx(monitor.value("rtt_s"), rel=0.03)


def test_scalars_and_vectors_of_omnet_by_their_usual_names():
    vectors, found = (read_results(path, SCENARIO) for path in (DATA / "omnet.vec", SCALARS))
    # 2 and 3 segments of 1460 bytes
    told = [vectors.value(name) for name in ("rtt_s", "cwnd_segments", "timeouts_per_s")]
    assert told == pytest.approx([0.24, 2.5, 0.2])
    assert found.duration_s == 100.0
    assert found.quantities["goodput_kbps"].samples == pytest.approx((159.2, 160.16))
    assert found.quantities["rtt_s"].samples == (0.262, 0.266)
    assert found.value("queue_packets[uplink]") == pytest.approx(6.85)
    assert found.value("arrivals_per_s[uplink]") == pytest.approx(100.5)
    assert any("droppedPacketsQueueOverflow" in note for note in found.notes)


def test_at_a_receiver_only_the_goodput_is_told(tmp_path):
    scenario = SCENARIO.with_(run__duration_s=20, run__warmup_s=5, network__active_flows=1)
    record(scenario, pcap=tmp_path / "far.pcap", at="p1.2")
    record(scenario, pcap=tmp_path / "near.pcap", at="p1.1")
    far, near = read_results(tmp_path / "far.pcap", scenario), read_results(tmp_path / "near.pcap", scenario)
    assert set(far.quantities) == {"goodput_kbps"}
    assert "rtt_s" in near.quantities
    assert far.value("goodput_kbps") == pytest.approx(near.value("goodput_kbps"), rel=0.05)


def in_acl(packet: bytes, number: int, *, sent: bool) -> list[bytes]:
    """Return ACL packets of at most 339 bytes: a frame of L2CAP with BNEP, of each type in turn."""
    kind, addresses = ((0, 12), (2, 0), (3, 6), (4, 6))[number % 4]
    extension = b"\x00\x02ab" if number % 3 == 0 else b""
    bnep = bytes([kind | 0x80 * bool(extension)]) + bytes(addresses) + b"\x08\x00" + extension + packet
    frame = struct.pack("<HH", len(bnep), 0x41) + bnep
    pieces = [frame[place : place + 339] for place in range(0, len(frame), 339)]
    begins = 0 if sent else 2
    return [
        struct.pack("<HH", 0x0B | (1 if place else begins) << 12, len(one)) + one
        for place, one in enumerate(pieces)
    ]


def hci_log(packets: list[tuple[float, bytes]], sender: bytes, link: int) -> bytes:
    """Return a btsnoop file, or a pcap file of link type 201, with these packets and others between."""
    event = (4, b"\x13\x05\x01\x0b\x00\x01\x00", False)
    other = (2, struct.pack("<HHHH", 0x200B, 8, 4, 0x43) + b"\x09\xff\x01\x5c", False)  # RFCOMM
    written = b"btsnoop\0" + struct.pack(">II", 1, link)
    if link == 201:
        written = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 201)
    for number, (time, packet) in enumerate(packets):
        sent = packet[12:16] == sender
        acl = [(2, one, sent) for one in in_acl(packet, number, sent=sent)]
        for kind, content, out in (event, other, *acl):
            if link == 201:
                body = struct.pack(">I", not out) + bytes([kind]) + content
                seconds, rest = divmod(round(time * 1e9), 10**9)
                written += struct.pack("<4I", seconds, rest, len(body), len(body)) + body
                continue
            flags = (not out) | 2 * (kind == 4)
            if link == 2001:
                flags = 4 + (not out) if kind == 2 else 3
            body = content if link != 1002 else bytes([kind]) + content
            stamp = 0x00DCDDB30F2F8000 + round(time * 1e6)
            written += struct.pack(">4Iq", len(body), len(body), flags, 0, stamp) + body
    return written


@pytest.mark.parametrize("link", [None, 1001, 1002, 2001, 201])
def test_pcapng_and_the_log_of_a_bluetooth_host_say_the_same_as_the_packets_in_them(tmp_path, link):
    plain, other = unpacked("ns3_sender.pcap", tmp_path), tmp_path / "btsnoop_hci.log"
    if link is None:
        other.write_bytes(as_pcapng(plain.read_bytes()))
    else:
        whole = [(one.time, one.raw[2:]) for one in frames(plain, [])]
        # 64 bytes were kept
        ip = [(time, raw.ljust(int.from_bytes(raw[2:4], "big"), b"\0")) for time, raw in whole]
        other.write_bytes(hci_log(ip, ip[0][1][12:16], link))
    first, second = read_results(plain, NS3), read_results(other, NS3)
    assert first.quantities.keys() == second.quantities.keys() and len(first.quantities) > 5
    for name in first.quantities:
        assert second.value(name) == pytest.approx(first.value(name), rel=1e-4, abs=1e-6), name
    assert second.facts[0].segment_bytes == 1460


LEAST_CSV = """\
flow,metric,value,half_width,warmup_s
1,goodput_kbps,171.2,3.1,60
1,rtt_s,0.231,0.004,60
1,timeouts_per_s,0.02,0.01,60
1,loss_token_buffer,0.011,0.002,60
"""
"""As docs/how-to/check-a-simulator.md has it."""


def test_the_least_csv_of_the_how_to(tmp_path):
    page = Path(__file__).parents[3] / "docs" / "how-to" / "check-a-simulator.md"
    assert LEAST_CSV in page.read_text("utf-8")
    found = read_results(written(tmp_path, LEAST_CSV), SCENARIO)
    assert (found.flow, found.warmup_s, found.measured_from_start) == (1, 60.0, False)
    assert (found.value("rtt_s"), found.quantities["rtt_s"].half_width) == (0.231, 0.004)


def test_a_warm_up_that_the_file_names_is_compared_with_the_scenarios(tmp_path):
    scenario = SCENARIO.with_(run__warmup_s=60)
    for warmup, told in ((60, "passed"), (0, "the file says 0, the scenario 60"), (5, "the file says 5")):
        path = written(tmp_path, LEAST_CSV.replace(",60\n", f",{warmup}\n"))
        found = read_results(path, scenario)
        assert found.measured_from_start == (warmup == 0)
        (one,) = compare_facts(found, scenario)
        assert told == one.status or told in one.sentence
        assert one.check == ("facts" if warmup == 60 else "run.warmup_s")


def test_a_file_of_one_flow_is_about_this_flow_by_its_number_or_name(tmp_path):
    rows = "flow,metric,value\n{0},goodput_kbps,80\n{0},rtt_s,0.2\n,queue_packets[uplink],1\n"
    for label in ("2", topology(SCENARIO).flow_names[1]):
        assert read_results(written(tmp_path, rows.format(label)), SCENARIO).flow == 2
    both = "flow,metric,value,ci95\n1,goodput_kbps,80,2\n2,goodput_kbps,90,4\n"
    found = read_results(written(tmp_path, both), SCENARIO)
    goodput = found.quantities["goodput_kbps"]
    assert (found.flow, goodput.value, goodput.half_width) == (None, 85, 3)


def test_their_names_can_be_mapped_and_a_queue_is_no_uplinks_where_there_are_outside_links(tmp_path):
    path = written(tmp_path, "metric,value\nThroughput (kbps),150\n")
    found = read_results(path, SCENARIO, renamed=checked_map(["Throughput (kbps)=goodput_kbps"]))
    assert found.value("goodput_kbps") == 150.0
    place = "PiconetTcp.host[1].link.queue queueLength:timeavg"
    found = read_results(SCALARS, SCENARIO, renamed=checked_map([f"{place}=queue_packets[token_buffer]"]))
    assert found.value("queue_packets[token_buffer]") == pytest.approx(6.85)
    found = read_results(SCALARS, NS3)
    assert not any("uplink" in name for name in found.quantities)
    assert any(f'give --map "{place}=queue_packets[uplink]": queueLength' in note for note in found.notes)
    mapped = read_results(SCALARS, NS3, renamed=checked_map([f"{place}=queue_packets[outside]"]))
    assert mapped.value("queue_packets[outside]") == pytest.approx(6.85)


def test_scalars_that_are_cut_off_are_warned_of(tmp_path):
    text = SCALARS.read_text("utf-8")
    middle = written(tmp_path, text[: text.rindex("1994000") + 3], "theirs.sca")  # 199 of 1994000
    notes = " ".join(read_results(middle, SCENARIO).notes)
    assert "theirs.sca ends in the middle of line 41, which was left out" in notes
    assert "run General-1-20260101-10:00:00-4712 has 1 scalars, and another one 7: it may be cut off" in notes
    assert read_results(middle, SCENARIO).quantities["goodput_kbps"].samples[1] == pytest.approx(160.8)
    assert not any("cut off" in note for note in read_results(DATA / "omnet.vec", SCENARIO).notes)


def opp_export() -> str:
    """Return the scalars of `omnet.sca` as `opp_scavetool export -F CSV-R` writes them, and a vector."""
    rows = [["run", "type", "module", "name", "attrname", "attrvalue", "value", "count", "mean", "vectime"]]
    rows[0].append("vecvalue")
    run, place = "", []
    for line in SCALARS.read_text("utf-8").splitlines():
        kind, *words = line.split(maxsplit=3) or [""]
        if kind == "run":
            run = words[0]
        elif kind == "config":
            rows.append([run, "config", "", "", words[0], words[1], "", "", "", "", ""])
        elif kind == "scalar":
            rows.append([run, "scalar", words[0], words[1], "", "", words[2], "", "", "", ""])
        elif kind == "statistic":
            place = words
        elif kind == "field" and words[0] == "mean":
            rows.append([run, "histogram", *place, "", "", "", "1366", words[1], "", ""])
    rows.append([run, "vector", "net", "cwnd:vector", "", "", "", "", "", "0.5 3.5", "2920 4380"])
    return "".join(",".join(f'"{cell}"' if " " in cell else cell for cell in row) + "\n" for row in rows)


def test_an_export_of_opp_scavetool_says_the_same_as_the_scalars(tmp_path):
    found, scalars = read_results(written(tmp_path, opp_export()), SCENARIO), read_results(SCALARS, SCENARIO)
    assert (found.kind, found.duration_s) == ("OMNeT++", 100.0)
    assert found.value("cwnd_segments") == pytest.approx(2.5)
    assert {**found.quantities, **scalars.quantities} == found.quantities


def test_of_a_file_that_names_its_flows_the_flow_that_was_asked_for_is_read(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("flow,metric,value\n1,rtt_s,1\n2,rtt_s,3\n,fairness,0.8\n")
    scenario = load("venugopal-2006/piconet")
    both, second = read_results(path, scenario), read_results(path, scenario, flow=2)
    assert (both.value("rtt_s"), both.flow) == (2, None)
    assert (second.value("rtt_s"), second.value("fairness"), second.flow) == (3, 0.8, 2)
    path.write_text("flow,metric,value\n1,rtt_s,1\n")
    with pytest.raises(BadResults, match=r"--flow 2: no row is about 2 or p1\.2>p1\.1; the file has 1"):
        read_results(path, scenario, flow=2)
