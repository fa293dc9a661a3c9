"""Damaged, empty and foreign files: exit code 2, one sentence that names the place, nothing written."""

import io
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from btqueue.cli import exits
from btqueue.cli.check import register
from btqueue.scenario import Scenario
from btqueue.study.check import BadResults, read_results

DATA = Path(__file__).parents[1] / "unit" / "data"
FLOW_MONITOR, SCALARS, VECTORS = (DATA / name for name in ("ns3_flowmon.xml", "omnet.sca", "omnet.vec"))
NAME = "venugopal-2006/piconet"


def failure(path: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the command, which must end with exit code 2 before anything is simulated; return its message."""
    monkeypatch.setattr(exits, "NOT_BUILT", ())
    app = typer.Typer(cls=exits.Commands)
    register(app)
    app.command("other")(lambda: None)
    result = CliRunner().invoke(app, ["check", str(path), "--scenario", NAME, *arguments])
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


BAD_FILES = {
    "empty.csv": (b"", "empty.csv: is empty"),
    "blank.csv": (b"\n\n", "is empty; a CSV file needs the columns metric and value"),
    "header.csv": (b"metric,value\n", "has a header and no rows"),
    "column.csv": (
        b"metric,valeu\nrtt_s,1\n",
        'the column "value" is missing; did you mean the column "valeu"?',
    ),
    "extra.csv": (b"metric,value,ci96\nrtt_s,1,1\n", 'unknown column "ci96"; did you mean "ci95"?'),
    "name.csv": (
        b"metric,value\ngoodput_kpbs,1\n",
        '"goodput_kpbs" is no metric; did you mean "goodput_kbps"?',
    ),
    "unit.csv": (b"metric,value\nrtt,1\n", 'line 2: "rtt" is no metric; did you mean "rtt_s"?'),
    "number.csv": (b"metric,value\nrtt_s,1\nrtt_s,abc\n", 'line 3: value = "abc": must be a number'),
    "nan.csv": (b"metric,value\nrtt_s,nan\n", 'value = "nan": must be finite'),
    "negative.csv": (b"metric,value,ci95\nrtt_s,1,-2\n", "a half-width cannot be negative"),
    "ends.csv": (b"metric,value,low,high\nrtt_s,1,2,3\n", "is not between low = 2 and high = 3"),
    "fields.csv": (b"metric,value\nrtt_s,1,5\n", "line 2: has more fields than the header"),
    "once.csv": (b"metric,value,ci95,replications\nrtt_s,1,1,1\n", "an interval needs at least 2"),
    "bracket.csv": (b"metric,value\nqueue_packets[up,1\n", "the bracket of a queue is not closed"),
    "binary.csv": (b"\xff\xfe\x00\x01" * 9, "is no text"),
    "nothing.dat": (b"hello\n", "its format is unknown; give --format"),
    "garbage.pcap": (b"hello, this is no capture at all", "is no pcap or pcapng file"),
    "half.xml": (FLOW_MONITOR.read_bytes()[:1500], "is no complete XML file"),
    "other.xml": (b"<a><b/></a>", "is no FlowMonitor file: <a>"),
    "missing.xml": (FLOW_MONITOR.read_bytes().replace(b"rxBytes", b"received"), "rxBytes is missing"),
    "half.sca": (SCALARS.read_bytes().split(b" 2000000")[0], "line 14: is cut off after scalar"),
    "other.sca": (b"version 3\nhello world\n", 'line 2: "hello" begins no line'),
    "unknown.sca": (
        b'version 3\nrun a\nscalar net "weight" 3\n',
        'no known name in it (it has weight); give --map "NAME=METRIC"',
    ),
    "quote.sca": (b'version 3\nrun a\nscalar net "wei 3\n', "quotation mark is not closed"),
    "undeclared.vec": (VECTORS.read_bytes() + b"7\t1\t2\n", "vector 7 was not declared"),
    "half.vec": (VECTORS.read_bytes()[:-3], "values for the columns ETV of vector 2"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_in_a_sentence(name, tmp_path, monkeypatch):
    content, words = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert words in failure(path, monkeypatch=monkeypatch)


def capture(packets: int = 20) -> bytes:
    """A capture of a flow whose segments are acknowledged one by one."""
    dpkt = pytest.importorskip("dpkt", reason="captures are read with dpkt")
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, linktype=dpkt.pcap.DLT_RAW)
    for number in range(packets):
        for back in (False, True):
            ends = {"sport": 2, "dport": 1} if back else {"sport": 1, "dport": 2}
            sequence, acknowledged = (1, 1001 + 1000 * number) if back else (1 + 1000 * number, 1)
            data = b"" if back else bytes(1000)
            segment = dpkt.tcp.TCP(**ends, seq=sequence, ack=acknowledged, flags=dpkt.tcp.TH_ACK, data=data)
            there = {"src": b"\n\0\0\1", "dst": b"\n\0\0\2"}
            addresses = {"src": there["dst"], "dst": there["src"]} if back else there
            packet = dpkt.ip.IP(**addresses, p=dpkt.ip.IP_PROTO_TCP, data=segment)
            writer.writepkt(bytes(packet), number + 0.1 * back)
    return file.getvalue()


def test_captures_cut_anywhere_are_refused_or_read(tmp_path):
    # cut between two packets a capture is complete, only shorter; anywhere else it is damaged
    whole = capture()
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole)
    assert read_results(path, Scenario()).value("rtt_s") == pytest.approx(0.1)
    outcomes = set()
    for length in np.random.default_rng(1).integers(1, len(whole) - 1, 60):
        path.write_bytes(whole[:length])
        try:
            read_results(path, Scenario())
            outcomes.add("read")
        except BadResults as error:
            assert "cut.pcap" in str(error) or "capture" in str(error)
            outcomes.add("refused")
    assert "refused" in outcomes


def test_a_capture_without_data_is_refused(tmp_path, monkeypatch):
    dpkt = pytest.importorskip("dpkt", reason="captures are read with dpkt")
    path = tmp_path / "udp.pcap"
    with path.open("wb") as file:
        dpkt.pcap.Writer(file)
    assert "has no TCP packets" in failure(path, monkeypatch=monkeypatch)


@pytest.mark.parametrize("source", [FLOW_MONITOR, SCALARS, VECTORS])
def test_damaged_text_never_ends_in_a_trace(source, tmp_path):
    # 40 random changes of each file: it is read, or refused by BadResults, and nothing else happens
    generator = np.random.default_rng(7)
    content = source.read_bytes()
    for _ in range(40):
        damaged = bytearray(content)
        for place in generator.integers(0, len(content), 5):
            damaged[place] = generator.integers(32, 127)
        path = tmp_path / source.name
        path.write_bytes(bytes(damaged[: generator.integers(20, len(content))]))
        try:
            read_results(path, Scenario())
        except BadResults as error:
            assert str(error)


def test_arguments_are_checked_first(tmp_path, monkeypatch):
    path = tmp_path / "theirs.csv"
    path.write_text("metric,value\nrtt_s,0.2\n", "utf-8")

    def told(*arguments: str) -> str:
        return failure(path, *arguments, monkeypatch=monkeypatch)

    assert "--confidence 2: must be at least 0.5" in told("--confidence", "2")
    assert 'did you mean "goodput_kbps"' in told("--map", "x=goodput")
    assert "--map x: must be THEIRS=METRIC" in told("--map", "x")
    assert "the scenario has flows 1 to 2" in told("--flow", "3")
    assert "must end in .json (JSON) or .csv" in told("--out", str(tmp_path / "report.txt"))
    assert "must end in .png" in told("--plot", str(tmp_path / "report.txt"))
    assert "polling.limit" in told("--set", "polling.limt=3")
    assert not list(tmp_path.glob("report*"))


def test_a_file_that_is_not_there(tmp_path, monkeypatch):
    assert "cannot be read (No such file" in failure(tmp_path / "none.csv", monkeypatch=monkeypatch)
    assert "cannot be read (Is a directory" in failure(tmp_path, monkeypatch=monkeypatch)
