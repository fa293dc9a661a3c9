"""The cache of compiled code: any change of any source has to start an empty one."""

import os
import shutil
import sys

import pytest

from btqueue.simulator.machinery import code_cache


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the simulator's sources."""
    copy = shutil.copytree(code_cache.SOURCES, tmp_path / "simulator")
    before = code_cache.source_digest()
    monkeypatch.setattr(code_cache, "SOURCES", copy)
    assert code_cache.source_digest() == before, "it depends on where the package lies"
    return copy


def test_changed_and_moved_sources_change_the_digest(sources):
    digests = [code_cache.source_digest()]
    for name in ("engine.py", "tcp/sender.py"):
        with (sources / name).open("a") as source:
            source.write("\n")
        digests.append(code_cache.source_digest())
    (sources / "tcp" / "vegas.py").rename(sources / "hosts" / "vegas.py")
    digests.append(code_cache.source_digest())
    assert len(set(digests)) == 4


def test_another_python_has_another_folder(monkeypatch):
    """Its machine code cannot be used here, so the simulator would be called compiled and is not."""
    before = code_cache.source_digest()
    monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-399")
    assert code_cache.source_digest() != before


def test_another_installation_has_another_folder(tmp_path, monkeypatch):
    """The first command after an installation counted the time of compiling as time of simulating."""
    monkeypatch.setenv("BTQUEUE_CACHE_DIR", str(tmp_path))
    folders = [code_cache.code_folder()]
    copy = shutil.copytree(code_cache.SOURCES, tmp_path / "elsewhere" / "simulator")
    monkeypatch.setattr(code_cache, "SOURCES", copy)
    folders.append(code_cache.code_folder())
    os.utime(copy / "engine.py", (1.0, 1.0))
    folders.append(code_cache.code_folder())
    assert len({folder.name for folder in folders}) == 3 and code_cache.code_folder() == folders[2]
