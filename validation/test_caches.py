"""Cache folders: whose they are, what is removed, and what happens where none can be used."""

import os
import stat
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from commands import full_disk

from btqueue import caches
from btqueue.caches import KEEP_S, MARK, TAG, VARIABLE, cache_folder, keep
from btqueue.simulator.machinery import code_cache, numba_cache
from btqueue.study.evaluate import environment

HERE, OTHER = "0123456789abcdef", "fedcba9876543210"
LONG_AGO = time.time() - 2 * KEEP_S


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Let the caches lie in an empty folder; return the folder of all caches, which is not made yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    caches.say_once.cache_clear()
    return tmp_path / "btqueue-cache"


def age(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def test_unused_folders_of_ours_are_removed_and_used_ones_stay(place):
    old, used, recent = (cache_folder("points", f"{name}-{HERE}") for name in ("old", "used", "recent"))
    for folder in (old, used, recent):
        keep(folder / "answer.json", b"{}")
    age(old, old / TAG, used, used / TAG, recent)
    assert cache_folder("points", f"used-{HERE}") == used
    cache_folder("points", f"another-{HERE}")
    assert sorted(os.listdir(place / "points")) == [
        f"{name}-{HERE}" for name in ("another", "recent", "used")
    ]
    assert (used / "answer.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    "mark", [None, b"", MARK + b"# and mine", b"Signature: 8a477f597d28d172789f06e28a8cef5c\n"]
)
def test_a_folder_without_our_mark_stays(place, mark):
    cache_folder("simulator", HERE)
    theirs = place / "simulator" / OTHER
    theirs.mkdir(0o700)
    if mark is not None:
        (theirs / TAG).write_bytes(mark)
        age(theirs / TAG)
    (theirs / "mine").write_text("")
    age(theirs)
    cache_folder("simulator", HERE)
    assert (theirs / "mine").exists()
    assert cache_folder("simulator", OTHER) == theirs  # it may be used, and stays theirs
    age(theirs, *theirs.iterdir())
    cache_folder("simulator", HERE)
    assert (theirs / "mine").exists()


@pytest.mark.parametrize("name", ["notes", "0123456789ABCDEF", "0123456789abcde", f"{HERE}.old", "solve"])
def test_a_folder_of_another_name_stays_though_it_is_marked(place, name):
    theirs = cache_folder("simulator", name)
    age(theirs, theirs / TAG)
    cache_folder("simulator", HERE)
    assert (theirs / TAG).exists()


def test_no_link_is_followed(place, tmp_path):
    cache_folder("simulator", HERE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / TAG).write_bytes(MARK)
    (place / "simulator" / OTHER).symlink_to(elsewhere)
    marked_by_a_link = place / "simulator" / ("0" * 16)
    marked_by_a_link.mkdir(0o700)
    (marked_by_a_link / TAG).symlink_to(elsewhere / TAG)
    age(elsewhere / TAG, elsewhere, marked_by_a_link / TAG)
    cache_folder("simulator", HERE)
    assert (elsewhere / TAG).exists() and marked_by_a_link.exists()


def test_folders_are_private(place, monkeypatch):
    before = os.umask(0)
    try:
        folder = cache_folder("simulator", HERE)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (place, folder.parent, folder)] == [0o700] * 3
    place.chmod(0o755)  # as older versions left it
    assert cache_folder("simulator", HERE) == folder
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def elsewhere(place: Path) -> Path:
    return place.rename(place.with_name("moved"))


CASES = {
    "writable by the group": (lambda place: place.chmod(0o770), "others may write to"),
    "writable by all below": (
        lambda place: [folder.chmod(0o707) for folder in place.glob("simulator/*")],
        "others may write to",
    ),
    "replaceable": (lambda place: place.parent.chmod(0o777), "everybody may replace the folders in"),
    "a link": (lambda place: place.symlink_to(elsewhere(place)), "is a link or a file"),
    "no folder": (lambda place: [elsewhere(place), place.write_text("mine")], "is a link or a file"),
}


@pytest.mark.parametrize(("prepare", "words"), CASES.values(), ids=CASES)
def test_a_folder_that_a_stranger_may_have_prepared_is_not_used(place, caplog, prepare, words):
    folder = cache_folder("simulator", HERE)
    (folder / "planted.nbi").write_text("")
    prepare(place)
    for _ in range(2):
        other = cache_folder("simulator", HERE)
        assert os.listdir(other) == [TAG]
        assert not other.is_relative_to(place.parent)
        assert [stat.S_IMODE(one.stat().st_mode) for one in (other, *other.parents[:3])] == [0o700] * 4
    (line,) = caplog.messages
    assert words in line and str(place.parent) in line and "\n" not in line
    assert environment().get(VARIABLE, os.environ[VARIABLE]) == str(other.parents[2])  # workers use the same


def test_a_folder_of_another_user_is_not_used(place, monkeypatch, caplog):
    cache_folder("simulator", HERE)
    owner = os.geteuid()
    users = iter([owner + 1, *[owner] * 9])
    monkeypatch.setattr("btqueue.caches.os.geteuid", lambda: next(users))
    assert not cache_folder("simulator", HERE).is_relative_to(place)
    assert "belongs to somebody else" in caplog.text and len(caplog.messages) == 1


def test_on_a_full_disk_nothing_is_kept_and_that_is_said_once(place, tmp_path, caplog):
    folder = cache_folder("simulator", HERE)
    with full_disk(0):
        keep(folder / "answer.json", b"{}")
        keep(folder / "another.json", b"{}")
    assert os.listdir(folder) == [TAG]
    (line,) = caplog.messages
    assert str(folder) in line and "not kept" in line


def test_without_any_folder_there_is_no_cache(place, caplog):
    with full_disk(0):
        folder = cache_folder("simulator", HERE)
        keep(folder / "answer.json", b"{}")
    assert not folder.exists() and not place.joinpath("simulator", HERE, TAG).exists()
    (line,) = caplog.messages
    assert "nor a temporary one" in line and "not kept" in line
    assert cache_folder("simulator", HERE) == folder  # from now on, here and in workers


@pytest.fixture
def function(tmp_path, monkeypatch):
    """A function in a file of its own."""
    file = tmp_path / "sources" / "twice.py"
    file.parent.mkdir()
    file.write_text("def twice(number):\n    return 2 * number\n")
    monkeypatch.syspath_prepend(file.parent)
    monkeypatch.delitem(sys.modules, "twice", raising=False)
    return import_module("twice").twice


def machine_code(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.o"))


def test_machine_code_is_kept_in_the_cache(place, function, monkeypatch):
    assert numba_cache.entry_point(function)(21) == 42
    assert len(machine_code(place)) == 1
    monkeypatch.setattr("btqueue.simulator.machinery.inside_numba.machine_code", None)
    assert numba_cache.entry_point(function)(21) == 42


@pytest.mark.parametrize(("prepare", "_"), CASES.values(), ids=CASES)
def test_numba_never_writes_beside_the_sources(place, tmp_path, function, prepare, _):
    code_cache.code_folder()
    prepare(place)
    assert numba_cache.entry_point(function)(21) == 42
    assert machine_code(tmp_path) == []


def test_a_disk_that_becomes_full_costs_only_the_cache(place, function, caplog):
    compiled = numba_cache.entry_point(function)
    with full_disk(0):
        assert compiled(21) == 42
    assert machine_code(place) == []
    (line,) = caplog.messages
    assert "not kept" in line


@pytest.mark.parametrize(
    "damage",
    [
        lambda code: b"",
        lambda code: code[:-1],
        lambda code: code + b"\0",
        lambda code: code[:-1] + bytes([code[-1] ^ 1]),
    ],
)
def test_damaged_machine_code_is_made_again(place, function, caplog, damage):
    numba_cache.entry_point(function)(21)
    (file,) = machine_code(place)
    file.write_bytes(damage(before := file.read_bytes()))
    assert numba_cache.entry_point(function)(21) == 42
    (line,) = caplog.messages
    assert "is damaged and is made again" in line
    assert len(file.read_bytes()) == len(before)


def test_machine_code_takes_no_real_number_for_a_whole_one():
    assert numba_cache.passed(np.int64(3)) == ("int", 3)
    with pytest.raises(TypeError):
        numba_cache.passed(2.7)


def test_an_exception_in_machine_code_is_not_taken_for_a_result(place, function, monkeypatch):
    compiled = numba_cache.entry_point(function)
    monkeypatch.setattr(numba_cache, "FAILED", 42)
    with pytest.raises(RuntimeError, match="compiled code of twice failed"):
        compiled(21)
