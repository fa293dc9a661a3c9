"""Compiled loops are what Python computes, and are kept on disk."""

import ctypes
import importlib.util
import signal

import numpy as np
import pytest

from btqueue.network.numba_cache import compiled, kept

SOURCE = """
from math import log
from typing import NamedTuple
from btqueue.network.numba_cache import compiled, part

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


def test_the_code_computes_what_python_does_is_kept_and_is_made_again_when_it_is_damaged(
    module, tmp_path, caplog
):
    result, pair = arguments(module)
    expected, other = arguments(module)
    module.fill(result, pair, np.int64(2), True)
    module.fill.function(expected, other, 2, True)
    np.testing.assert_array_equal(result, expected)
    assert pair.array["times"][0] == other.array["times"][0] == 1
    kept = sorted(tmp_path.rglob("*.nbc"))
    assert len(kept) == 1
    compiled()(module.fill.function)(result, pair, 2, True)
    assert sorted(tmp_path.rglob("*.nbc")) == kept and not caplog.text
    for file in tmp_path.rglob("*.nb?"):
        file.write_bytes(b"damaged")
    again, pair = arguments(module)
    compiled()(module.fill.function)(again, pair, 2, True)
    np.testing.assert_array_equal(again, expected)
    assert "is damaged and is made again" in caplog.text


def test_ctrl_c_while_the_compiler_calls_back_is_heard_when_the_code_is_made(tmp_path):
    made = []

    def make(keep: bool):
        # as LLVM does: what is raised in such a call is lost
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
        made.append(keep)
        return make

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        kept(make, tmp_path)
    assert made == [True]
    assert signal.getsignal(signal.SIGINT) is before
