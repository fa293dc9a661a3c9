"""Compiled loops are what Python computes, are kept on disk, and are loaded without numba."""

import importlib.util
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from btqueue.transport import compilation
from btqueue.transport.machine_code import flatten

SOURCE = """
from math import log
from typing import NamedTuple
from btqueue.transport.compilation import compiled, part

class Pair(NamedTuple):
    array: object
    factor: float

@part
def scaled(value, factor):
    return log(value) * factor

@compiled()
def fill(result, pair, rows, upward):
    for i in range(rows):
        for j in range(result.shape[1]):
            result[i, j] = scaled(pair.array[j].length, pair.factor) if upward else -1.0
        pair.array[0].times += i
"""

RECORD = np.dtype([("length", float), ("times", np.int64)])


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module with a compiled loop and an empty cache."""
    monkeypatch.setenv("BTQUEUE_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "loops.py"
    file.write_text(SOURCE)
    specification = importlib.util.spec_from_file_location("loops", file)
    assert specification is not None and specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


def arguments(module):
    records = np.zeros(3, RECORD).view(np.recarray)
    records["length"] = 2.0, 3.0, 5.0
    return np.zeros((2, 3)), module.Pair(records, 0.5)


def test_computes_what_python_does(module):
    result, pair = arguments(module)
    expected, other = arguments(module)
    module.fill(result, pair, np.int64(2), True)
    module.fill.function(expected, other, 2, True)
    np.testing.assert_array_equal(result, expected)
    assert pair.array["times"][0] == other.array["times"][0] == 1


def test_arguments_can_be_taken_apart_once_for_several_calls(module):
    result, pair = arguments(module)
    again = compilation.bound(module.fill, result, pair)
    for rows in (1, 2):
        again(rows, True)
    other, expected = arguments(module)
    for rows in (1, 2):
        module.fill(other, expected, rows, True)
    assert np.array_equal(result, other)
    assert np.array_equal(pair.array, expected.array)


def test_each_kind_of_arguments_has_its_own_code(module, tmp_path):
    result, pair = arguments(module)
    module.fill(result, pair, 2, False)
    module.fill(result, pair, 1, True)
    assert len(list(tmp_path.rglob("fill-*.o"))) == 1
    module.fill(result, pair._replace(factor=2), 2, True)  # a whole number
    assert len(list(tmp_path.rglob("fill-*.o"))) == 2


def test_a_second_process_needs_no_numba(module, tmp_path):
    module.fill(*arguments(module), 2, True)
    program = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import numpy as np, loops
        records = np.zeros(3, {RECORD.descr!r}).view(np.recarray)
        records["length"] = 2.0, 3.0, 5.0
        result = np.zeros((2, 3))
        loops.fill(result, loops.Pair(records, 0.5), 2, True)
        print(result[1, 2], "numba" in sys.modules)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [str(np.log(5.0) * 0.5), "False"]


def test_a_damaged_file_is_compiled_again(module, tmp_path):
    result, pair = arguments(module)
    module.fill(result, pair, 2, True)
    (file,) = tmp_path.rglob("fill-*.o")
    damaged = file.read_bytes()[:-100]
    file.write_bytes(damaged)
    again = compilation.Loop(module.fill.function, module.fill.sources)
    again(result, pair, 2, True)
    assert file.stat().st_size > len(damaged)
    np.testing.assert_allclose(result[0], np.log([2.0, 3.0, 5.0]) * 0.5)


def test_a_changed_source_starts_an_empty_cache(module, tmp_path):
    before = compilation.code_folder(module.fill.sources)
    (tmp_path / "loops.py").write_text(SOURCE + "\n")
    assert compilation.code_folder(module.fill.sources) != before


@pytest.mark.parametrize("wrong", ["text", None, np.zeros((4, 4))[:, 1], [1.0]])
def test_what_a_loop_cannot_take(wrong):
    with pytest.raises(TypeError, match="a compiled loop takes"):
        flatten((wrong,))
