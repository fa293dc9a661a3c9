"""Programs of JAX that are compiled once: later processes load them and trace nothing.

Tracing and compiling take longer than thousands of answers. So what XLA made of a function, for arrays of
given shapes, is kept in a cache folder. The folder is named after a digest of all sources that the function
can reach, of the versions of JAX and of the processor: any change starts an empty one.
"""

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache, update_wrapper
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from llvmlite import binding as llvm

from btqueue.caches import cache_folder, keep
from btqueue.queueing._compiled_programs import TO_CLEAR, give_back_memory

PACKAGE = Path(__file__).parents[1]
REACHED = ("baseband", "channel", "network/piconet", "queueing", "transport")
"""Folders of the package that a program can depend on, beside this file."""
DAMAGED = (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, AttributeError, RuntimeError)
"""What a file that is not whole, or that another version wrote, makes of loading it."""

Tree = Any


class Kept:
    """A function of one tree of arrays that is compiled for the shapes of its leaves, once for all processes.

    Its result must be made of dictionaries, tuples and arrays. JAX traces it like any other function.
    """

    def __init__(self, function: Callable[[Tree], Tree]) -> None:
        """Wrap a function."""
        self._function, self._programs = jax.jit(function), dict[str, Any]()
        self._name = f"{function.__module__}.{function.__qualname__}"
        update_wrapper(self, function)
        TO_CLEAR.append(self._programs.clear)

    def __call__(self, argument: Tree) -> Tree:
        """Return the function's value, in arrays of numpy unless JAX traces it."""
        leaves, tree = jax.tree.flatten(argument)
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return self._function(argument)
        leaves = [np.asarray(leaf) for leaf in leaves]
        key = f"{tree} {[(leaf.shape, leaf.dtype.str) for leaf in leaves]}"
        if key not in self._programs:
            self._programs[key] = self._loaded(key, tree, leaves)
        return jax.tree.map(np.asarray, self._programs[key](leaves))

    def _loaded(self, key: str, tree: Any, leaves: list[np.ndarray]) -> Callable[[list[np.ndarray]], Tree]:
        name = hashlib.sha256(f"{self._name} {key}".encode()).hexdigest()[:32]
        file = cache_folder("programs", digest()) / name
        # a file that is not there, or not whole, is written again
        with suppress(OSError, *DAMAGED):
            lapack, *stored = pickle.loads(file.read_bytes())
            if lapack:
                _know_linear_algebra()
            program = deserialize_and_load(*stored)
            jax.tree.map(np.asarray, program(leaves))  # one that lacks a part fails only when it runs
            return program

        def flat(leaves: list[np.ndarray]) -> Tree:
            return self._function(jax.tree.unflatten(tree, leaves))

        # a program that JAX takes from its own cache is not whole when it is written again: a name of its own
        flat.__name__ = f"kept_{digest()}_{name}"
        lowered = jax.jit(flat).lower(leaves)
        program = lowered.compile()
        keep(file, pickle.dumps(("@lapack_" in lowered.as_text(), *serialize(program))))
        give_back_memory()
        return program


@cache
def _know_linear_algebra() -> None:
    """Let JAX find LAPACK: it does so where it first compiles a call, and a program from a file has been.

    It takes as long as many a program to load, so that only those that call LAPACK wait for it.
    """
    jax.jit(jax.lax.linalg.cholesky).lower(np.eye(1))


@cache
def digest() -> str:
    """Return a short digest of the sources, of the versions of JAX and of the processor."""
    machine = (llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    found = hashlib.sha256(
        repr((version("jax"), version("jaxlib"), jax.default_backend(), *machine)).encode()
    )
    reached = (path for name in REACHED for path in sorted((PACKAGE / name).rglob("*.py")))
    for source in (Path(__file__), *reached):
        found.update(source.relative_to(PACKAGE).as_posix().encode())
        found.update(source.read_bytes())
    return found.hexdigest()[:16]
