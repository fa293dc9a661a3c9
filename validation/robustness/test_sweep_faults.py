"""Sweeps that are killed, run out of disk, meet damaged files, other writers, and workers that die."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from command_line import run
from commands import COMMAND, DEADLINE_S, ENVIRONMENT, full_disk

from btqueue.cli import errors
from btqueue.scenario import Scenario, load
from btqueue.study.many_points import map_points
from btqueue.study.sweep import SweepInterrupted, failures, sweep
from btqueue.study.sweep_files import read_sweep
from btqueue.study.sweep_store import StoreError, journal_path

LIMIT = "polling.limit"
OVER = {LIMIT: range(1, 41)}
CHEAP = "chen-2004/adaptive-1"
"""Solved in milliseconds, without compilation."""
WINDOWS = {
    "transport.receive_window_segments": range(1, 31),
    "traffic.message_bytes": [400, 440, 480, 600],
}
"""120 points."""


def interrupted(after: int, out: Path | None = None, over=OVER, scenario: Scenario | None = None):
    """Press Ctrl-C when so many points of a sweep are finished; return what it raises."""

    def progress(done: int, total: int) -> None:
        if done == after:
            raise KeyboardInterrupt

    with pytest.raises(SweepInterrupted) as interruption:
        sweep(scenario or Scenario(), over, out=out, workers=1, progress=progress)
    return interruption.value


def undisturbed() -> xr.Dataset:
    """Return the sweep that nothing happened to."""
    return sweep(Scenario(), OVER, workers=1)


def asked_for(engines) -> list[int]:
    """Return a list that fills with the limits that are solved from now on."""
    asked, solve = [], engines.network.solve
    engines.network.solve = lambda scenario: asked.append(scenario.polling.limit) or solve(scenario)
    return asked


def lines(target: Path) -> int:
    """Return how many lines a journal has below the magic one."""
    try:
        return journal_path(target).read_bytes().count(b"\n") - 1
    except FileNotFoundError:
        return 0


def wait_for(what) -> None:
    """Wait until something is so; a machine that never gets there fails the test."""
    until = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    """Return the processes that all threads of a process have started; none if it has gone."""
    return [
        int(one) for file in Path(f"/proc/{pid}/task").glob("*/children") for one in file.read_text().split()
    ]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


OVER_TWO = ("--over", "transport.receive_window_segments=1..20", "--over", "traffic.message_bytes=400,440")
WORDS = ("sweep", CHEAP, "--quiet", "--no-check", *OVER_TWO)
SHORT = ("--set", "run.duration_s=2", "--set", "run.warmup_s=1", "--set", "run.replications=2")
"""A sweep of 40 points, and by the simulator, too."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def started(*words: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Start a command as a user does."""
    command, nowhere = [*COMMAND, *words], subprocess.DEVNULL
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=nowhere, stderr=stderr, text=True)


def swept(target: Path, workers: int, engine: str) -> subprocess.Popen[str]:
    """Start the sweep."""
    return started(*WORDS, *SHORT, "--engine", engine, "--threads", str(workers), "--out", str(target))


def undated(target: Path) -> bytes:
    """Return the bytes of a result without its date, and without its seal, a sum of all other bytes."""
    content, dates = re.subn(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", b"0000-00-00T00:00:00", target.read_bytes())
    assert dates == 1
    return re.sub(rb"btqueue-sha256:[0-9a-f]{64}", b"", content)


def killed(target: Path, chance: random.Random, signals: Sequence[signal.Signals], engine: str) -> bool:
    """Start the sweep, or let it go on, and end it at a random time; whether it had not ended by itself."""
    process = swept(target, chance.choice([1, 2]), engine)
    more = lines(target) + chance.randint(0, 12)  # points, or at once; beyond the last one nobody waits
    try:
        wait_for(lambda: lines(target) >= more or process.poll() is not None)
        time.sleep(chance.uniform(0, 0.5))
        process.send_signal(chance.choice(signals))
    finally:
        try:
            code = process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    terminated = 128 + signal.SIGTERM
    assert code in (0, errors.INTERRUPTED, terminated, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
    return code != 0


@pytest.mark.parametrize(
    ("signals", "wanted", "engine"),
    [
        (SIGNALS, 2, "auto"),
        pytest.param(SIGNALS[:1], 100, "both", marks=pytest.mark.long),
        pytest.param(SIGNALS, 50, "both", marks=pytest.mark.long),
    ],
)
def test_killed_again_and_again_the_result_is_the_same_to_the_last_bit(tmp_path, signals, wanted, engine):
    """Sweeps one after the other until there were so many kills; each of them ends with the same file."""
    assert swept(tmp_path / "undisturbed.nc", 2, engine).wait(DEADLINE_S) == 0
    expected = undated(tmp_path / "undisturbed.nc")
    chance, kills = random.Random(1), 0
    target = tmp_path / "result.nc"
    while kills < wanted:
        kills += killed(target, chance, signals, engine)
        if target.exists() or kills == wanted:
            assert swept(target, 2, engine).wait(DEADLINE_S) == 0
            assert undated(target) == expected
            assert sorted(os.listdir(tmp_path)) == ["result.nc", "undisturbed.nc"]
            target.unlink()


SOLVE = ("solve", CHEAP, "--set")
FOUR = "transport.receive_window_segments=1..4"
FEW = ("sweep", CHEAP, "--quiet", "--no-check", "--over", FOUR, "--threads", "1")
COMMANDS = {
    "result.nc": [FEW] * 2,
    "solved.csv": [(*SOLVE, f"transport.receive_window_segments={window}") for window in (12, 14)],
}


@pytest.mark.parametrize("name", ["result.nc", pytest.param("solved.csv", marks=pytest.mark.long)])
def test_two_commands_write_the_same_file_at_once(tmp_path, name):
    """The file is one of the two, whole: never a mixture; the later one is refused, or may find the file."""
    target, alone = tmp_path / name, [tmp_path / f"{number}-{name}" for number in (1, 2)]
    for words, own in zip(COMMANDS[name], alone, strict=True):
        run(*words, "--out", own)
    both = [started(*words, "--out", str(target)) for words in COMMANDS[name]]
    assert sorted(process.wait(DEADLINE_S) for process in both) in ([0, 0], [0, 2])
    read = undated if target.suffix == ".nc" else Path.read_bytes
    assert read(target) in [read(one) for one in alone]
    assert sorted(os.listdir(tmp_path)) == sorted([name, *(one.name for one in alone)])


def test_ctrl_c_without_a_file_gives_what_is_finished(engines):
    partial = interrupted(15).partial
    assert partial is not None and (partial.attrs["answered"], partial.attrs["failed"]) == (15, 25)
    assert failures(partial) == {"not evaluated": 25}


@pytest.mark.parametrize("after", [0, 1, 15, 39, 40])
def test_interrupted_again_and_again_it_goes_on_and_ends_the_same(engines, tmp_path, after):
    target, last = tmp_path / "result.nc", min(after + 20, 40)
    for stop in (after, after, last):
        interruption = interrupted(stop, target)
        assert interruption.finished == stop and interruption.partial is None
    asked = asked_for(engines)
    resumed = sweep(Scenario(), OVER, out=target, workers=1)
    assert asked == list(range(last + 1, 41))
    assert resumed.equals(undisturbed())


@pytest.mark.parametrize(("size", "kept"), [(5000, range(1, 40)), (25000, [40])])
def test_a_full_disk_ends_the_sweep_with_a_message_and_loses_nothing(engines, tmp_path, size, kept):
    # The journal has no room, or only the result.
    target = tmp_path / "result.nc"
    with full_disk(size), pytest.raises(StoreError, match=r"cannot be written.*kept"):
        sweep(Scenario(), OVER, out=target, workers=1)
    assert os.listdir(tmp_path) == ["result.nc.partial"]
    assert lines(target) - 1 in kept
    assert sweep(Scenario(), OVER, out=target, workers=1).equals(undisturbed())


def journal_with_a_flipped_bit(target: Path, place: float) -> tuple[Path, bytes]:
    """Interrupt a sweep after 20 points and damage its journal, so far from its beginning."""
    interrupted(20, target)
    journal = journal_path(target)
    content = bytearray(journal.read_bytes())
    content[int(place * len(content))] ^= 4
    journal.write_bytes(content)
    return journal, bytes(content)


@pytest.mark.parametrize("place", [0.01, 0.5, 0.99])
def test_of_a_damaged_journal_all_good_points_are_kept(engines, tmp_path, place):
    target, said = tmp_path / "result.nc", []
    _, content = journal_with_a_flipped_bit(target, place)
    line = content[: int(place * len(content))].count(b"\n") + 1  # the second is the definition
    asked = asked_for(engines)
    found = sweep(Scenario(), OVER, out=target, workers=1, notes=said.append)
    assert asked == [*([line - 2] if line > 2 else []), *range(21, 41)]
    kept = 20 if line == 2 else 19
    assert f"is damaged in line {line} (wrong checksum): {kept} good points are kept" in said[0]
    assert said[1] == f"{kept} of 40 points were finished before: going on from there"
    assert found.equals(undisturbed())


def test_points_of_another_sweep_are_not_taken_where_the_definition_is_damaged(engines, tmp_path):
    target = tmp_path / "result.nc"
    journal, content = journal_with_a_flipped_bit(target, 0.01)
    engines.network.solve = None  # nothing may be computed
    with pytest.raises(StoreError, match=r"damaged in line 2.*has no point of this one"):
        sweep(Scenario(run={"seed": 2}), OVER, out=target, workers=1)
    assert journal.read_bytes() == content and not target.exists()


DAMAGE = {
    "cut short": lambda content, place: content[:place],
    "empty": lambda content, place: b"",
    "other bytes": lambda content, place: b"not a result" * 100,
    "one bit": lambda content, place: content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_result_is_reported_never_overwritten_and_never_reaches_hdf5(
    engines, tmp_path, monkeypatch, damage
):
    """HDF5 follows some damaged addresses for ever, as measured with 2 of 6,000 files."""
    target, reached = tmp_path / "result.nc", []
    sweep(Scenario(), OVER, out=target, workers=1)
    whole = target.read_bytes()
    engines.network.solve = None  # nothing may be computed
    words = "it has changed since it was written" if damage == "one bit" else "it has "
    with monkeypatch.context() as patched:
        patched.setattr("btqueue.study.sweep_files.xr.open_dataset", lambda *_, **__: reached.append(1))
        for place in range(len(whole) // 100, len(whole), len(whole) // 50):
            left = DAMAGE[damage](whole, place)
            target.write_bytes(left)
            with pytest.raises(StoreError, match=rf"is damaged.*{words}"):
                read_sweep(target)
            with pytest.raises(StoreError, match=r"is damaged.*move it away"):
                sweep(Scenario(), OVER, out=target, workers=1)
            assert target.read_bytes() == left and os.listdir(tmp_path) == [target.name]
    assert not reached
    target.write_bytes(whole)
    assert read_sweep(target).sizes[LIMIT] == 40


REPETITIONS = {"link.arq": ["none", "unlimited"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"over": {LIMIT: range(1, 42)}}, "points.grid.polling.limit is"),
        # points are numbered in the order of the keys
        ({"over": REPETITIONS | {LIMIT: range(1, 41)}}, "points.keys is"),
        ({"engine": "both"}, 'engines is ["solve"] there and ["solve", "simulate"] here'),
        (
            {"scenario": Scenario(polling={"discipline": "1-limited"})},
            'scenario.polling.discipline is "e-limited" there and "1-limited" here',
        ),
        ({"scenario": Scenario(run={"precision": 0.1})}, "written.run.precision is unset there and 0.1 here"),
    ],
)
def test_a_journal_of_another_sweep_is_refused(engines, tmp_path, change, words):
    target, over = tmp_path / "result.nc", OVER | REPETITIONS
    interrupted(3, target, over)
    with pytest.raises(StoreError) as refused:
        sweep(**({"scenario": Scenario(), "over": over, "out": target, "workers": 1} | change))
    assert words in str(refused.value) and lines(target) == 4


@pytest.mark.parametrize("name", ["result.txt", "missing/result.nc", "folder.nc", "result"])
def test_a_target_that_cannot_be_is_refused_before_anything_is_computed(engines, tmp_path, name):
    (tmp_path / "folder.nc").mkdir()
    engines.network.solve = None
    with pytest.raises(StoreError):
        sweep(Scenario(), OVER, out=tmp_path / name, workers=1)
    assert os.listdir(tmp_path) == ["folder.nc"]


MORTAL = """
import os, signal, sys
from pathlib import Path
from btqueue.study import many_points
from btqueue.study.evaluate import Answer, PointResult
from btqueue.study.summary import Estimate

def mortal(question, number, changes, threads):
    mark = Path({folder!r}) / f"tried-{{number}}-{{os.getpid()}}"
    mark.touch()
    if number == 3 or (number == 5 and len(list(mark.parent.glob("tried-5-*"))) == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 7:
        os._exit(5)
    print("what anybody prints does no harm")
    return PointResult(number, {{"solve": Answer({{"rtt_s": Estimate(float(number))}})}})

many_points.Question.answer = mortal
many_points.serve()
"""
"""A worker that dies at point 3, at point 5 the first time, and that leaves at point 7."""


def test_a_point_whose_worker_dies_is_tried_once_more_and_then_kept_as_failed(tmp_path, monkeypatch):
    script = MORTAL.format(folder=str(tmp_path))
    monkeypatch.setattr("btqueue.study.many_points.COMMAND", (sys.executable, "-c", script))
    points = [{LIMIT: number + 1} for number in range(12)]
    results = list(map_points(Scenario(), points, workers=2))
    assert sorted(one.number for one in results) == list(range(12))
    found = {one.number: one.answers["solve"] for one in results}
    assert [number for number, answer in found.items() if answer.failure is not None] in ([3, 7], [7, 3])
    assert str(found[3].failure) == "worker: its process was ended by signal 9 (SIGKILL), 2 times in a row"
    assert str(found[7].failure) == "worker: its process ended with exit code 5, 2 times in a row"
    assert all(found[number].means == {"rtt_s": number} for number in found if number not in (3, 7))
    tried = [len(list(tmp_path.glob(f"tried-{number}-*"))) for number in range(12)]
    assert tried == [2 if number in (3, 5, 7) else 1 for number in range(12)]


ORPHANS = """
import sys
from btqueue.scenario import Scenario
from btqueue.study import many_points
endless = "import time; from btqueue.study import many_points as m; "
endless += "m.Question.answer = lambda *_, **__: time.sleep(3600); m.serve()"
many_points.COMMAND = (sys.executable, "-c", endless)
points = [{"polling.limit": number} for number in range(1, 9)]
list(many_points.map_points(Scenario(), points, workers=2))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_in_the_middle_of_a_point_when_their_parent_dies(how):
    command = [sys.executable, "-c", ORPHANS]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: len(children(process.pid)) == 2 or process.poll() is not None)
        workers = children(process.pid)
    finally:
        process.send_signal(how)
    _, said = process.communicate(timeout=DEADLINE_S)
    assert len(workers) == 2 and process.returncode == -how and said == ""
    wait_for(lambda: not any(running(pid) for pid in workers))


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_workers_and_keeps_their_points(tmp_path, how, code):
    target = tmp_path / "x.nc"
    words = ["sweep", CHEAP, "--over", "traffic.message_bytes=1..20000", "--threads", "2", "--out"]
    process = started(*words, str(target), stderr=subprocess.PIPE)
    try:
        wait_for(lambda: lines(target) > 10 or process.poll() is not None)
        workers = children(process.pid)
        process.send_signal(how)
        _, told = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert process.returncode == code and len(workers) == 2 and not any(map(running, workers))
    kept = re.search(r"([\d,]+) finished points are kept", told)
    assert kept is not None and lines(target) == int(kept[1].replace(",", "")) + 1
    assert os.listdir(tmp_path) == ["x.nc.partial"]


def test_a_cluster_gives_the_same_bits_also_if_a_worker_is_killed():
    distributed = pytest.importorskip("distributed")
    from distributed.deploy import subprocess as deploy

    killed: list[int] = []
    start: Any = deploy.SubprocessCluster
    with (
        closing(start(n_workers=2, threads_per_worker=1, dashboard_address=None)) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2)
        pids = client.run(os.getpid)
        assert len(set(pids.values())) == 2

        def kill_one(done: int, total: int) -> None:
            if done == 20:
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)

        found = sweep(load(CHEAP), WINDOWS, cluster=cluster.scheduler_address, progress=kill_one)
    assert killed and not running(killed[0])
    assert found.equals(sweep(load(CHEAP), WINDOWS, workers=1))


def test_a_cluster_that_is_not_there_is_refused():
    pytest.importorskip("distributed")
    from btqueue.study.many_points import ClusterError

    with pytest.raises(ClusterError, match=r"no dask scheduler answers there"):
        sweep(Scenario(), OVER, cluster="nonsense")
