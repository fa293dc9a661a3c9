"""The journal of a sweep: lines with checksums that survive what happens to processes and disks."""

import fcntl
import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.study.evaluate import Answer, Failure, PointResult
from btqueue.study.summary import Estimate
from btqueue.study.sweep_store import MAGIC, Journal, StoreError, from_plain, to_plain

DEFINITION = {"format": 1, "scenario": {"polling": {"limit": 5}}, "engines": ["solve"]}


def result(number: int) -> PointResult:
    value = Estimate(1 / (number + 3), math.nan, "flow", (0.1 * number, math.inf), ())
    return PointResult(
        number, {"solve": Answer({"rtt_s": value}, {"flow": ("a>ü", "b\nc")}, {"residual": 1e-300})}
    )


def plain(results) -> list[str]:
    """Return results as text: NaN is not equal to itself."""
    return [json.dumps(to_plain(one)) for one in results]


numbers = st.floats(width=64) | st.sampled_from([math.nan, math.inf, -0.0, 5e-324])


@given(numbers, numbers, st.text(), st.integers(0, 10**7))
def test_points_keep_every_bit(mean, ci95, text, number):
    answer = Answer(
        {"rtt_s": Estimate(mean, ci95, "flow", (mean, ci95), (ci95, mean))}, {"flow": (text,)}, {text: mean}
    )
    there = PointResult(number, {"solve": answer, "simulate": Answer(failure=Failure("error", text))})
    back = from_plain(json.loads(json.dumps(to_plain(there))))
    assert repr(back) == repr(there)


def kept(path: Path, *numbers: int) -> bytes:
    """Add points to a journal; return its bytes."""
    with Journal(path, DEFINITION) as journal:
        for number in numbers:
            journal.add(result(number))
    return path.read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    return kept(tmp_path_factory.mktemp("whole") / "x", 0, 1, 2)


def test_a_journal_cut_off_anywhere_keeps_all_complete_lines(whole, tmp_path):
    path = tmp_path / "x"
    for length in range(len(MAGIC), len(whole)):  # the magic line is there at once, or not at all
        path.write_bytes(whole[:length])
        complete = whole[:length].count(b"\n")
        with Journal(path, DEFINITION) as journal:
            assert journal.done == set(range(complete - 2))
            torn = whole[length - 1 : length] != b"\n"
            assert len(journal.notes) == torn
            journal.add(result(7))
            assert plain(journal.results()) == plain([*map(result, range(complete - 2)), result(7)])


@given(st.data())
@settings(max_examples=150)
def test_a_changed_byte_is_never_read_as_a_point(whole, tmp_path_factory, data):
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    damaged = whole[:place] + bytes([changed]) + whole[place + 1 :]
    path = tmp_path_factory.mktemp("damaged") / "x"
    path.write_bytes(damaged)
    line = whole[:place].count(b"\n")
    if line == 0:
        with pytest.raises(StoreError, match=r"does not begin.*or is damaged there"):
            Journal(path, DEFINITION, anew=True)
        assert path.read_bytes() == damaged
        return
    bad = {line, line + 1} if whole[place] == ord("\n") else {line}  # two lines become one
    good = [number for number in range(3) if number + 2 not in bad]
    with Journal(path, DEFINITION) as journal:
        assert journal.done == set(good) and len(journal.notes) == 1
        assert plain(journal.results()) == plain(map(result, good))
    kept(path, *({0, 1, 2} - set(good)))
    with Journal(path, DEFINITION) as journal:
        assert sorted(plain(journal.results())) == sorted(plain(map(result, range(3))))


def test_a_point_that_is_damaged_while_the_sweep_runs_is_not_left_out_in_silence(tmp_path):
    path = tmp_path / "x"
    kept(path, 0, 1, 2)
    with Journal(path, DEFINITION) as journal:
        path.write_bytes(path.read_bytes().replace(b'"number":1', b'"number":7'))
        with pytest.raises(StoreError, match="1 points were damaged meanwhile"):
            list(journal.results())


def test_a_journal_has_one_writer_and_what_replaced_it_meanwhile_is_left_alone(tmp_path):
    with Journal(tmp_path / "x", DEFINITION) as journal:
        for anew in (False, True):
            with pytest.raises(StoreError, match="x: another process is writing this sweep"):
                Journal(tmp_path / "x", DEFINITION, anew=anew)
        (tmp_path / "x").unlink()
        (tmp_path / "x").write_text("mine")
        journal.add(result(1))
        assert plain(journal.results()) == plain([result(1)])
        journal.remove()
    assert (tmp_path / "x").read_text() == "mine"


def test_a_journal_that_its_last_writer_removes_at_the_last_moment_is_begun_anew(tmp_path, monkeypatch):
    path, flock, removed = tmp_path / "x", fcntl.flock, []
    kept(path, 1)

    def late(file, how):
        if not removed:
            removed.append(path.unlink())
        return flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with Journal(path, DEFINITION) as journal:
        assert removed and journal.done == set() and path.read_bytes().startswith(MAGIC)


def test_a_full_disk_takes_back_the_line_that_did_not_fit(tmp_path, monkeypatch):
    path = tmp_path / "x"
    before, write = kept(path, 0), os.write
    with Journal(path, DEFINITION) as journal:

        def full(file, content):
            if len(content) > 10:
                return write(file, bytes(content[:10]))
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("btqueue.study.sweep_store.os.write", full)
        with pytest.raises(StoreError, match=r"No space left on device.*1 finished points are kept"):
            journal.add(result(1))
        monkeypatch.undo()
        assert path.read_bytes() == before
    with Journal(path, DEFINITION) as journal:
        assert journal.done == {0} and journal.notes == []


def test_a_point_that_is_written_when_ctrl_c_comes_is_counted(tmp_path, monkeypatch):
    written = os.write

    def write_and_be_interrupted(*work):
        written(*work)
        raise KeyboardInterrupt

    kept(tmp_path / "x", 0)
    with Journal(tmp_path / "x", DEFINITION) as journal:
        monkeypatch.setattr(os, "write", write_and_be_interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.add(result(1))
        monkeypatch.undo()
        assert journal.done == {0, 1} == {one.number for one in journal.results()}
