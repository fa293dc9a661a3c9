"""The cache of compiled code: any change of any source has to start an empty one."""

import ast
import re
import shutil
import sys

import pytest

import btqueue as bt
from btqueue.caches import interpreted
from btqueue.cli.engines import is_compiled
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


def test_the_digest_is_of_the_sources_as_they_were_imported():
    """Sources that change between import and first call must not get the code of the old ones."""
    import btqueue.simulator.engine  # noqa: F401

    assert code_cache.digest_at_start.cache_info().currsize == 1


def test_another_python_has_another_folder(monkeypatch):
    """Its machine code cannot be used here, so the simulator would be called compiled and is not."""
    before = code_cache.source_digest()
    monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-399")
    assert code_cache.source_digest() != before


def test_another_processor_has_another_file(monkeypatch):
    """Its machine code may have instructions that this one does not know."""
    file = code_cache.code_file("advance", "int")
    assert code_cache.code_file("advance", "int") == file != code_cache.code_file("advance", "State")
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_name", lambda: "pentium")
    assert code_cache.code_file("advance", "int") != file


@pytest.mark.skipif(interpreted(), reason="nothing is compiled")
def test_the_command_line_finds_the_event_loop_that_a_simulation_has_compiled():
    bt.simulate(bt.load("practice/printer", {"run.duration_s": 1, "run.warmup_s": 0, "run.replications": 1}))
    assert is_compiled()


def test_nothing_is_compiled_in_from_a_file_without_a_digest():
    for source in code_cache.SOURCES.rglob("*.py"):
        text = source.read_text()
        if re.search(r"numba_cache import .*(compiled|outlined|entry_point)", text):
            imports = [
                one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Import | ast.ImportFrom)
            ]
            names = {getattr(one, "module", None) or alias.name for one in imports for alias in one.names}
            others = {name for name in names if re.match(r"btqueue(?!\.simulator)", name)}
            assert others <= {"btqueue.scenario.transport"}, source
