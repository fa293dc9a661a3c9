"""Python files that lie beside somebody's scenario are never run."""

import os
import subprocess
import sys
from pathlib import Path

from commands import DEADLINE_S

from btqueue import search_path
from btqueue.scenario.loading import models_folder
from btqueue.search_path import without_working_directory
from btqueue.study.evaluate import environment

COMMAND = [str(Path(sys.executable).with_name("btqueue"))]
OVER = "transport.receive_window_segments=5,6"


def test_the_command_runs_no_module_of_the_working_directory(tmp_path):
    scenario = models_folder() / "chen-2004" / "adaptive-1.toml"
    (tmp_path / "scenario.toml").write_text(scenario.read_text())
    for name in ("numpy", "pickle", "xarray", "sitecustomize", "queue", "btqueue"):
        mark = tmp_path / f"{name}-was-run"
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    words = [*COMMAND, "sweep", "scenario.toml", "--over", OVER, "--threads", "2", "--no-check"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S)
    assert list(tmp_path.glob("*-was-run")) == []
    assert done.returncode == 0, done.stderr


def test_the_working_directory_leaves_the_search_path(tmp_path, monkeypatch):
    here, link, library = tmp_path / "here", tmp_path / "link", tmp_path / "library"
    for folder in (here, library, here / "lib"):
        folder.mkdir()
    link.symlink_to(here)
    monkeypatch.chdir(here)
    monkeypatch.setattr(search_path, "PACKAGE_HOME", str(library))
    entries = ["", ".", "lib", str(here), f"{here}/", str(link), str(library), str(here / "lib")]
    assert without_working_directory(entries) == [str(library), str(here / "lib")]


def test_the_package_is_found_where_it_lies_in_the_working_directory(here, monkeypatch):
    monkeypatch.setattr(search_path, "PACKAGE_HOME", str(here))
    assert without_working_directory(["", str(here), "/library"]) == ["/library", str(here)]


def test_a_working_directory_that_was_deleted_is_nowhere(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(search_path, "PACKAGE_HOME", "/library")
    assert without_working_directory(["", "/library"]) == ["/library"]


def test_a_worker_is_given_a_search_path_without_the_working_directory(here, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", str(here), *sys.path])
    given = environment()
    assert not {"", str(here)} & set(given["PYTHONPATH"].split(os.pathsep))
    assert given["PYTHONSAFEPATH"] == "1"
