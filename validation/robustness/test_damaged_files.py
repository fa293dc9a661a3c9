"""Files of every format, damaged at random by seed: each is read or refused, in bounded time and memory.

What is read from a damaged text is not looked at: 0.2 may have become 0.3.
"""

import io
import json
import lzma
import random
import re
import resource
import signal
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from types import FrameType

import pytest
from capture_files import DATA, as_pcapng
from typer.main import get_command

from btqueue.cli import app
from btqueue.scenario import ScenarioError
from btqueue.scenario.radio import Radio
from btqueue.scenario.recordings import read_arrivals, read_trace

DEADLINE_S, MEMORY = 300, 2**30
"""A file has so long, and may take so much more memory (bytes)."""
BATCH = 50

NUMBER = re.compile(rb"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
STRANGE_NUMBERS = [*b"nan inf -inf 1e308 -1e308 1e400 1e-320 -1 0 -0.0 1_0 0x10 1,5 1e +-1".split(), b""]
STRANGE_NUMBERS += [b"9" * 400, b"18446744073709551616", b"4294967296", "١٢".encode()]
STRANGE_TEXTS = [bytes([code]) for code in b"\"'\\,;\t\n<&#[]\0\r\x1b\x85"]
STRANGE_TEXTS += [b"\x1b[2J\x1b]0;x\x07", b"&a9;", b",,,,", b"\xef\xbb\xbf", b"\xff\xfe"]
STRANGE_TEXTS += [b"x" * 100, b"x" * 200_000, b"<a>" * 5000]
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-32-be", "utf-8-sig", "latin-1", "big5", "cp037", "utf-7")


def damaged(content: bytes, seed: int) -> bytes:
    """Return *content* with one to four damages; the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        content = chance.choice(DAMAGES)(content, chance)
    return content


def place_in(content: bytes, chance: random.Random) -> int:
    """Return a place, of two in the first bytes: formats have their headers there."""
    return chance.randrange(min(len(content), chance.choice((64, len(content) + 1))) + 1)


def bits(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 8, 64)) if content else 0):
        changed[min(place_in(content, chance), len(content) - 1)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: place_in(content, chance)]


def replaced(content: bytes, chance: random.Random) -> bytes:
    """Return the bytes with a piece that is missing, repeated or overwritten."""
    begin = place_in(content, chance)
    end = min(len(content), begin + chance.choice((1, 2, 4, 16, 100, 1000)))
    piece = content[begin:end]
    new = chance.choice((b"", piece * 2, piece * 50, bytes(len(piece)), chance.randbytes(len(piece))))
    return content[:begin] + new + content[end:]


def inserted(content: bytes, chance: random.Random) -> bytes:
    place = place_in(content, chance)
    return content[:place] + chance.choice(STRANGE_TEXTS) + content[place:]


def renumbered(content: bytes, chance: random.Random) -> bytes:
    if not (found := list(NUMBER.finditer(content))):
        return content
    one = chance.choice(found)
    return content[: one.start()] + chance.choice(STRANGE_NUMBERS) + content[one.end() :]


def rearranged(content: bytes, chance: random.Random) -> bytes:
    """Return the lines with one of them in another place, which it takes or shares."""
    lines = content.splitlines(keepends=True) or [b""]
    at = chance.randrange(len(lines))
    lines[at : at + chance.choice((0, 1))] = [chance.choice(lines)]
    return b"".join(lines)


def recoded(content: bytes, chance: random.Random) -> bytes:
    return content.decode("latin-1").encode(chance.choice(ENCODINGS), "replace")


DAMAGES = (bits, bits, cut, cut, renumbered, renumbered, inserted, inserted, replaced, rearranged, recoded)

TABLE = """metric,unit,replication,flow,queue,value,ci95,replications
goodput_kbps,kbit/s,0,1,,99.5,,
goodput_kbps,kbit/s,0,2,,101.25,,
goodput_kbps,kbit/s,1,1,,100,,
goodput_kbps,kbit/s,1,2,,,,
rtt_s,s,,,,0.25,1e-2,10
queue_packets,packet,,,uplink,1.5,0.125,8
fairness,1,,,,0.9999,,
"""
SERIES = "metric;t;value\n" + "".join(f"cwnd_segments;{n / 2};{n % 7 + 1}\n" for n in range(60))
TRACE = "# bit error rates\n" + "".join(f"{n % 5}e-4\n" for n in range(40))
ARRIVALS = "# time, size\n" + "".join(f"{n / 8} {100 * n + 1}\n" for n in range(40))


class Hang(BaseException):
    """A reader did not come back; no handler of exceptions takes it."""


@contextmanager
def bounded() -> Iterator[None]:
    """Let a block take so much time and memory, no more."""

    def too_long(number: int, frame: FrameType | None) -> None:
        raise Hang

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_S)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@cache
def capture() -> bytes:
    """The first 300 packets of ns-3's capture."""
    dpkt = pytest.importorskip("dpkt", reason="another writer of captures")
    source = dpkt.pcap.Reader(io.BytesIO(lzma.decompress((DATA / "ns3_sender.pcap.xz").read_bytes())))
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, snaplen=source.snaplen, linktype=source.datalink())
    for (time, raw), _ in zip(source, range(300), strict=False):
        writer.writepkt(raw, float(time))
    return file.getvalue()


THEIRS: dict[str, Callable[[], bytes]] = {
    "table.csv": TABLE.encode,
    "series.csv": SERIES.encode,
    "capture.pcap": capture,
    "capture.pcapng": cache(lambda: as_pcapng(capture())),
    "monitor.xml": (DATA / "ns3_flowmon.xml").read_bytes,
    "scalars.sca": (DATA / "omnet.sca").read_bytes,
    "vectors.vec": (DATA / "omnet.vec").read_bytes,
}
"""Files that `btqueue check` reads."""


@cache
def command() -> Callable[[list[str]], None]:
    """The command line; making it takes longer than a check."""
    return get_command(app)


def check(name: str, seed: int, folder: Path) -> None:
    """Give a damaged file to `btqueue check`."""
    path = folder / name
    path.write_bytes(damaged(THEIRS[name](), seed))
    scenario = str(DATA / "ns3.toml")
    arguments = ["check", str(path), "--scenario", scenario, "--json", "--quiet"]
    out, told = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(told), pytest.raises(SystemExit) as end:
        command()(arguments)
    if not end.value.code:
        json.loads(out.getvalue(), parse_constant=pytest.fail)
    else:
        assert end.value.code == 2 and out.getvalue() == ""
        assert told.getvalue().startswith("btqueue: ") and told.getvalue().count("\n") == 1
        assert name in told.getvalue() and len(told.getvalue()) < 1000


READERS: dict[str, tuple[str, Callable[[Path], Sized]]] = {
    "trace.txt": (TRACE, lambda path: read_trace(Radio(model="trace", trace_file=str(path)))),
    "arrivals.txt": (ARRIVALS, lambda path: list(zip(*read_arrivals(str(path)), strict=True))),
}
"""Files that scenarios name, and what reads them."""


def read(name: str, seed: int, folder: Path) -> None:
    """Read a damaged file that a scenario names."""
    content, reader = READERS[name]
    path = folder / name
    path.write_bytes(damaged(content.encode(), seed))
    try:
        assert len(reader(path)) > 0
    except ScenarioError as error:
        assert name in str(error) and len(str(error)) < 1000


CASES: tuple[Callable[[int, Path], None], ...] = (
    *(partial(check, name) for name in THEIRS),
    *(partial(read, name) for name in READERS),
)


@pytest.mark.parametrize(
    "first", [pytest.param(n, marks=pytest.mark.long if n >= 100 else ()) for n in range(0, 10_000, BATCH)]
)
def test_a_damaged_file_is_read_or_refused(engines, tmp_path, first):
    for seed in range(first, first + BATCH):
        own = tmp_path / str(seed)
        own.mkdir()
        with bounded():
            try:
                CASES[seed % len(CASES)](seed, own)
            except (Exception, Hang) as error:
                raise AssertionError(f"seed {seed}: {error!r}") from error
