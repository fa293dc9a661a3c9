"""Files of others are read with care; our own are whole, replace nothing unasked, and cost no answer."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btqueue import files
from btqueue.files import (
    UnusableFile,
    open_ours,
    printable,
    read_bytes,
    require_regular,
    written_whole,
)
from btqueue.scenario import ScenarioError
from btqueue.scenario.radio import Radio
from btqueue.scenario.recordings import read_arrivals, read_trace

SECRET = "root:$6$salt$hash:19000:0:99999:7:::"


@pytest.mark.parametrize("read", [read_bytes, require_regular])
def test_pipes_and_devices_are_refused_and_nobody_waits_for_them(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(UnusableFile, match="is no regular file"):
            read(path)


def test_a_file_that_becomes_a_pipe_after_it_was_looked_at_is_refused_all_the_same(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    regular = os.stat(__file__)
    monkeypatch.setattr(os, "stat", lambda path, **_: regular)
    with pytest.raises(UnusableFile, match="is no regular file"):
        read_bytes(tmp_path / "pipe")


def test_the_limit_of_the_size_is_exact(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert len(read_bytes(path, 1000)) == 1000
    with pytest.raises(UnusableFile, match="is too large: more than 999 bytes"):
        read_bytes(path, 999)


def test_a_file_that_tells_no_size_is_limited_too():
    """Files of /proc are regular and say that they are empty."""
    path = Path("/proc/self/environ")
    if not path.exists():
        pytest.skip("there is no /proc here")
    assert path.stat().st_size == 0 and len(read_bytes(path)) > 10
    with pytest.raises(UnusableFile, match="too large"):
        read_bytes(path, 10)


@pytest.mark.parametrize("name", ["missing", "folder", "zero\0byte", "long" * 2000])
def test_what_cannot_be_read_is_said_in_words(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnusableFile, match="cannot be read"):
        read_bytes(tmp_path / name)


@pytest.mark.parametrize(
    "read", [lambda name: read_trace(Radio(model="trace", trace_file=name)), read_arrivals]
)
def test_a_scenario_may_name_anything(tmp_path, read):
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.touch()
    os.truncate(large, files.LARGEST_BYTES + 1)  # without taking room on the disk
    for name in map(str, (pipe, "/dev/zero", large, tmp_path, tmp_path / "missing")):
        with pytest.raises(ScenarioError, match=r"file .* (is|cannot be read)") as refused:
            read(name)
        assert name in str(refused.value)


@pytest.mark.parametrize(
    "line", [SECRET, "PRIVATE KEY", "1e-5 secret", "0.1 1000 secret", "secret 5", "-1 -1"]
)
@pytest.mark.parametrize(
    ("read", "good"),
    [(lambda name: read_trace(Radio(model="trace", trace_file=name)), "1e-5"), (read_arrivals, "0 100")],
)
def test_the_message_about_a_wrong_line_has_its_number_and_nothing_of_it(tmp_path, read, good, line):
    path, said = tmp_path / "file", []
    for wrong in (line, "x"):
        path.write_text(f"# a comment\n\n{good}\n{wrong}\n")
        with pytest.raises(ScenarioError, match="line 4: must be") as refused:
            read(str(path))
        said.append((str(refused.value), refused.value.problems))
    assert said[0] == said[1]


@given(st.text())
def test_what_is_printed_steers_no_terminal(text):
    shown = printable(text)
    assert all(c in "\n\t" or not 0 <= ord(c) < 32 for c in shown)
    assert not any(0x7F <= ord(c) < 0xA0 or c in "\u200e\u200f\u202a\u202e\u2066\u2069" for c in shown)
    assert printable(shown) == shown


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M", "Zs"])))
def test_what_can_be_seen_is_shown_as_it_is(text):
    assert printable(text) == text


def entries(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_is_whole_or_not_there(tmp_path, replace):
    for error in (KeyboardInterrupt, OSError, ValueError):
        with pytest.raises(error), written_whole(tmp_path / "file", replace=replace) as part:
            part.write_text("half")
            raise error
        assert entries(tmp_path) == {}
    with written_whole(tmp_path / "file", replace=replace) as part:
        part.write_text("all")
        assert not (tmp_path / "file").exists()
    assert entries(tmp_path) == {"file": "all"}


@pytest.mark.parametrize("at_the_last_moment", [False, True])
def test_what_appears_while_a_file_is_written_is_not_replaced(tmp_path, monkeypatch, at_the_last_moment):
    if at_the_last_moment:  # looked, and it was not there yet
        monkeypatch.setattr(files.os.path, "lexists", lambda path: False)
    with pytest.raises(FileExistsError), written_whole(tmp_path / "file", replace=False) as part:
        part.write_text("ours")
        (tmp_path / "file").write_text("theirs")
    assert entries(tmp_path) == {"file": "theirs"}


def test_a_file_system_without_links_is_written_to(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", refuse)
    with written_whole(tmp_path / "file", replace=False) as part:
        part.write_text("ours")
    assert entries(tmp_path) == {"file": "ours"}


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("theirs"), Path.mkdir])
def test_nothing_but_a_regular_file_is_replaced(tmp_path, make):
    with (
        pytest.raises(OSError, match=r"is a (link|pipe|folder)"),
        written_whole(tmp_path / "x", replace=True) as part,
    ):
        part.write_text("ours")
        make(tmp_path / "x")
        before = (tmp_path / "x").lstat()
    assert (tmp_path / "x").lstat() == before and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("theirs")])
def test_what_becomes_a_pipe_or_a_link_after_it_was_looked_at_is_not_added_to(tmp_path, monkeypatch, make):
    (tmp_path / "theirs").write_text("theirs")
    make(tmp_path / "x")
    regular = (tmp_path / "theirs").lstat()
    monkeypatch.setattr(os, "stat", lambda path, **_: regular)
    with pytest.raises((UnusableFile, OSError), match=r"is no regular file|symbolic link"):
        open_ours(tmp_path / "x")
