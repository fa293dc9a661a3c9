"""The journal of a sweep: lines with checksums that survive what happens to processes and disks."""

import json
import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.study.evaluate import Answer, Failure, PointResult
from btqueue.study.summary import Estimate
from btqueue.study.sweep_store import Journal, StoreError, from_plain, journal_folder, to_plain

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


def test_a_journal_gives_back_what_was_added(tmp_path):
    folder = journal_folder(tmp_path / "result.nc")
    assert folder.name == "result.nc.partial"
    with Journal(folder, DEFINITION) as journal:
        for number in (3, 1):
            journal.add(result(number))
        assert plain(journal.results()) == plain([result(3), result(1)])
    with Journal(folder, DEFINITION) as journal:
        assert journal.done == {1, 3} and journal.notes == []
        journal.add(result(0))
    with Journal(folder, DEFINITION) as journal:
        assert plain(journal.results()) == plain([result(3), result(1), result(0)])
        journal.remove()
    assert os.listdir(tmp_path) == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("whole") / "x.partial"
    with Journal(folder, DEFINITION) as journal:
        for number in range(3):
            journal.add(result(number))
    return (folder / "journal").read_bytes()


def test_a_journal_cut_off_anywhere_keeps_all_complete_lines(whole, tmp_path):
    folder = tmp_path / "x.partial"
    folder.mkdir()
    for length in range(len(whole)):
        (folder / "journal").write_bytes(whole[:length])
        complete = whole[:length].count(b"\n")
        with Journal(folder, DEFINITION) as journal:
            assert journal.done == set(range(complete - 1))
            torn = length > 0 and whole[length - 1 : length] != b"\n"
            assert len(journal.notes) == torn
            journal.add(result(7))
            assert plain(journal.results()) == plain([*map(result, range(complete - 1)), result(7)])


@given(st.data())
@settings(max_examples=150)
def test_a_changed_byte_is_never_read_as_a_point(whole, tmp_path_factory, data):
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    damaged = whole[:place] + bytes([changed]) + whole[place + 1 :]
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "journal").write_bytes(damaged)
    line = whole[:place].count(b"\n")
    bad = {line, line + 1} if whole[place] == ord("\n") else {line}  # two lines become one
    good = [number for number in range(3) if number + 1 not in bad]
    with Journal(folder, DEFINITION) as journal:
        assert journal.done == set(good) and len(journal.notes) == 1
        assert plain(journal.results()) == plain(map(result, good))
        for number in {0, 1, 2} - journal.done:
            journal.add(result(number))
    with Journal(folder, DEFINITION) as journal:
        assert sorted(plain(journal.results())) == sorted(plain(map(result, range(3))))


def test_a_point_that_is_damaged_while_the_sweep_runs_is_not_left_out_in_silence(tmp_path):
    with Journal(tmp_path / "x", DEFINITION) as journal:
        for number in range(3):
            journal.add(result(number))
        path = tmp_path / "x" / "journal"
        path.write_bytes(path.read_bytes().replace(b'"number":1', b'"number":7'))
        with pytest.raises(StoreError, match="1 points were damaged meanwhile"):
            list(journal.results())


def test_a_journal_has_one_writer_and_the_lock_of_a_process_that_is_gone_is_stale(tmp_path):
    with (
        Journal(tmp_path / "x", DEFINITION),
        pytest.raises(StoreError, match=f"another process is writing this sweep .process {os.getpid()} on"),
    ):
        Journal(tmp_path / "x", DEFINITION)
    (tmp_path / "x" / "lock").write_text("process 1 on elsewhere\n")
    with Journal(tmp_path / "x", DEFINITION):
        assert f"process {os.getpid()} on" in (tmp_path / "x" / "lock").read_text()


def test_a_journal_of_another_sweep_is_refused_with_what_differs(tmp_path):
    with Journal(tmp_path / "x", DEFINITION) as journal:
        journal.add(result(0))
    before = (tmp_path / "x" / "journal").read_bytes()
    other = DEFINITION | {"scenario": {"polling": {"limit": 6, "discipline": "gated"}}}
    with pytest.raises(StoreError) as refused:
        Journal(tmp_path / "x", other)
    assert "scenario.polling.limit is 5 there and 6 here" in str(refused.value)
    assert 'scenario.polling.discipline is unset there and "gated" here' in str(refused.value)
    assert (tmp_path / "x" / "journal").read_bytes() == before
    with Journal(tmp_path / "x", DEFINITION) as journal:
        assert journal.done == {0}


def test_a_full_disk_takes_back_the_line_that_did_not_fit(tmp_path, monkeypatch):
    with Journal(tmp_path / "x", DEFINITION) as journal:
        journal.add(result(0))
        before = (tmp_path / "x" / "journal").read_bytes()
        write = os.write

        def full(file, content):
            if len(content) > 10:
                return write(file, bytes(content[:10]))
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("btqueue.study.sweep_store.os.write", full)
        with pytest.raises(StoreError, match=r"No space left on device.*1 finished points are kept"):
            journal.add(result(1))
        monkeypatch.undo()
        assert (tmp_path / "x" / "journal").read_bytes() == before
    with Journal(tmp_path / "x", DEFINITION) as journal:
        assert journal.done == {0} and journal.notes == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be written"):
        Journal(tmp_path / "x", DEFINITION)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(StoreError, match="cannot be written"):
        Journal(tmp_path / "x", DEFINITION)
    assert (tmp_path / "x").read_text() == "mine"
