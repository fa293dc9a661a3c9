"""Files of every format, damaged at random: each is read or refused, in bounded time and memory.

A seed chooses a format and damages a good file of it (`damage.damaged`). The default test takes two hundred
seeds, the long one 9,000. What is read from a damaged text is not looked at: 0.2 may have become 0.3. The
results of sweeps have checksums, and must be read as they were written, or not at all.
"""

import io
import json
import lzma
import os
import random
import resource
import signal
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import pytest
from capture_files import DATA, as_pcapng
from typer.main import get_command

from btqueue.cli import app
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.radio import Radio
from btqueue.scenario.recordings import read_arrivals, read_trace
from btqueue.study.sweep import SweepInterrupted, sweep
from btqueue.study.sweep_files import digest
from btqueue.study.sweep_store import StoreError

from .damage import damaged

DEADLINE_S, MEMORY = 300, 2**30
"""A file has so long, and may take so much more memory (bytes)."""
BATCH = 50
OVER = {"polling.limit": range(1, 9), "link.arq": ["none", "unlimited"]}

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


OURS: dict[str, tuple[str, Callable[[Path], Sized]]] = {
    "trace.txt": (TRACE, lambda path: read_trace(Radio(model="trace", trace_file=str(path)))),
    "arrivals.txt": (ARRIVALS, lambda path: list(zip(*read_arrivals(str(path)), strict=True))),
}
"""Files that scenarios and sweeps name, and what reads them."""


def read(name: str, seed: int, folder: Path) -> None:
    """Read a damaged file of ours."""
    content, reader = OURS[name]
    path = folder / name
    path.write_bytes(damaged(content.encode(), seed))
    try:
        assert len(reader(path)) > 0
    except ScenarioError as error:
        assert name in str(error) and len(str(error)) < 1000


@cache
def swept(suffix: str) -> tuple[dict[str, bytes], str]:
    """Return the files of a finished sweep, or of the journal of one that was interrupted, and the result."""

    def stop(done: int, total: int) -> None:
        if suffix == ".journal" and done == 12:
            raise KeyboardInterrupt

    with TemporaryDirectory() as name:
        folder = Path(name)
        target = folder / f"result{suffix if suffix != '.journal' else '.nc'}"
        with suppress(SweepInterrupted):
            sweep(Scenario(), OVER, out=target, workers=1, progress=stop)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}, digest(
            sweep(Scenario(), OVER, workers=1)
        )


def resume(suffix: str, seed: int, folder: Path) -> None:
    """Give the same command again beside a damaged result or journal: all is well, or nothing changes."""
    files, expected = swept(suffix)
    target = folder / f"result{suffix if suffix != '.journal' else '.nc'}"
    victim = random.Random(seed).choice(sorted(files))
    after = files | {victim: damaged(files[victim], seed)}
    for name, content in after.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    said: list[str] = []
    try:
        found = sweep(Scenario(), OVER, out=target, workers=1, notes=said.append)
    except StoreError as error:
        assert target.name in str(error) and "damaged" in str(error)
        assert all((folder / name).read_bytes() == after[name] for name in after)
        return
    assert digest(found) == expected
    if suffix == ".journal":
        assert os.listdir(folder) == [target.name]
    else:
        assert after == files, "damage went unnoticed"


CASES: tuple[Callable[[int, Path], None], ...] = (
    *(partial(check, name) for name in THEIRS),
    *(partial(read, name) for name in OURS),
    *(partial(resume, suffix) for suffix in (".journal", ".nc")),
)


def run_batch(first: int, folder: Path) -> None:
    for seed in range(first, first + BATCH):
        own = folder / str(seed)
        own.mkdir()
        with bounded():
            try:
                CASES[seed % len(CASES)](seed, own)
            except (Exception, Hang) as error:
                raise AssertionError(f"seed {seed}: {error!r}") from error


@pytest.mark.parametrize("first", range(0, 100, BATCH))
def test_a_damaged_file_is_read_or_refused(engines, tmp_path, first):
    run_batch(first, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("first", range(100, 10_000, BATCH))
def test_nine_thousand_damaged_files_are_read_or_refused(engines, tmp_path, first):
    run_batch(first, tmp_path)
