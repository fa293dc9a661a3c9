"""The cache of compiled code: any change of any source has to start an empty one."""

import shutil

import pytest

from btqueue.simulator.machinery import compilation


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the simulator's sources."""
    copy = shutil.copytree(compilation.SOURCES, tmp_path / "simulator")
    before = compilation.source_digest()
    monkeypatch.setattr(compilation, "SOURCES", copy)
    assert compilation.source_digest() == before, "it depends on where the package lies"
    return copy


def test_the_sources_are_those_of_the_simulator():
    assert (compilation.SOURCES / "engine.py").is_file()


@pytest.mark.parametrize("name", ["engine.py", "tcp/sender.py"])
def test_a_changed_source_changes_the_digest(sources, name):
    before = compilation.source_digest()
    with (sources / name).open("a") as source:
        source.write("\n")
    assert compilation.source_digest() != before


def test_a_moved_source_changes_the_digest(sources):
    before = compilation.source_digest()
    (sources / "tcp" / "vegas.py").rename(sources / "hosts" / "vegas.py")
    assert compilation.source_digest() != before
