"""Compiled programs that are kept between processes."""

import os
import subprocess
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from btqueue.network.programs import Kept

from btqueue.network import programs


@pytest.fixture
def kept(tmp_path, monkeypatch) -> tuple[Callable[[], Kept], list[int]]:
    """Wraps a function anew, as another process does, and counts how often it is traced."""
    monkeypatch.setattr(programs, "cache_folder", lambda *names: tmp_path)
    traced: list[int] = []

    def again() -> Kept:
        def double(tree):  # another function each time, of which JAX remembers nothing
            traced.append(1)
            return {"sum": sum(jax.tree.leaves(tree)) * 2.0}, (tree["b"],)

        return Kept(double)

    return again, traced


def test_a_later_process_traces_nothing(kept):
    again, traced = kept
    tree = {"a": np.float32(1.5), "b": np.float32(2.0)}
    first, second = again()(tree), again()(tree)
    assert traced == [1]
    assert float(first[0]["sum"]) == float(second[0]["sum"]) == 7.0


def test_shapes_have_programs_of_their_own_and_values_do_not(kept):
    again, traced = kept
    function = again()
    for values in (np.zeros(3, np.float32), np.ones(3, np.float32), np.zeros(4, np.float32)):
        function({"a": values, "b": values})
    assert traced == [1, 1]


def test_a_damaged_file_is_written_again(kept, tmp_path):
    again, traced = kept
    tree = {"a": np.float32(1.0), "b": np.float32(2.0)}
    again()(tree)
    (file,) = tmp_path.iterdir()
    for content in (b"", b"nonsense", file.read_bytes()[:1000]):
        file.write_bytes(content)
        assert float(again()(tree)[0]["sum"]) == 6.0
    assert traced == [1, 1, 1, 1]
    again()(tree)
    assert traced == [1, 1, 1, 1]


def test_a_program_that_fails_when_it_runs_is_written_again(kept, monkeypatch):
    """So does one that JAX had taken from its own cache: it is written without its parts."""
    again, traced = kept
    tree = {"a": np.float32(1.0), "b": np.float32(2.0)}
    again()(tree)

    def without_parts(*stored):
        def program(leaves):
            raise jax.errors.JaxRuntimeError("NOT_FOUND: Function wrapped_floor not found")

        return program

    monkeypatch.setattr(programs, "deserialize_and_load", without_parts)
    assert float(again()(tree)[0]["sum"]) == 6.0 and traced == [1, 1]


def test_where_jax_traces_it_has_derivatives(kept):
    again, _ = kept
    function = again()
    slope = jax.grad(lambda value: function({"a": value, "b": jnp.float32(1.0)})[0]["sum"])(1.0)
    assert float(slope) == 2.0


SOLVES = """
import numpy as np, jax.numpy as jnp
from btqueue.network.programs import Kept

solve = Kept(lambda tree: {"x": jnp.linalg.solve(tree["a"], tree["b"])})
print(solve({"a": np.eye(3, dtype=np.float32) * 2.0, "b": np.ones(3, np.float32)})["x"][0])
"""


def test_a_later_process_finds_linear_algebra(tmp_path):
    environment = {**os.environ, "BTQUEUE_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", SOLVES], env=environment, capture_output=True, text=True, check=False
        )
        assert (run.returncode, run.stdout.strip()) == (0, "0.5"), run.stderr
