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


def test_changed_and_moved_sources_change_the_digest(sources):
    digests = [compilation.source_digest()]
    for name in ("engine.py", "tcp/sender.py"):
        with (sources / name).open("a") as source:
            source.write("\n")
        digests.append(compilation.source_digest())
    (sources / "tcp" / "vegas.py").rename(sources / "hosts" / "vegas.py")
    digests.append(compilation.source_digest())
    assert len(set(digests)) == 4
