"""The simulator's functions as machine code: compiled by numba once, kept, loaded and called without numba.

numba takes as long to import as everything else that a simulation needs. Besides, its disk cache does not
look at the functions that a kept function calls. Here LLVM alone loads the code, from the folder that
`code_cache` names after all the simulator's sources.
"""

import hashlib
import threading
from collections.abc import Callable
from contextlib import suppress
from ctypes import CFUNCTYPE, c_int64
from functools import cache, update_wrapper
from operator import index
from typing import Any, TypeVar, cast

import numpy as np

from btqueue.caches import interpreted, keep, say_once
from btqueue.simulator.machinery.code_cache import code_file, digest_at_start
from btqueue.simulator.records.arrays import State

Function = TypeVar("Function", bound=Callable[..., Any])

parts: list[tuple[Callable[..., Any], bool]] = []
"""Functions that numba has not been told of yet, and whether they are copied into their callers."""
_one_thread = threading.Lock()
"""Held while code is compiled or loaded."""
FAILED = -(2**63)
"""What machine code returns that has raised an exception."""
DIGEST = hashlib.sha256
DIGEST_BYTES = DIGEST().digest_size


def compiled(function: Function) -> Function:
    """Let compiled functions copy this one into themselves; for Python it stays a plain function."""
    parts.append((function, True))
    return function


def outlined(function: Function) -> Function:
    """Let compiled functions call this one, not copy it; for Python it stays a plain function.

    For large functions and rare ones: they are compiled once and keep the event loop small.
    """
    parts.append((function, False))
    return function


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls; under `NUMBA_DISABLE_JIT=1` it stays plain Python."""
    if interpreted():  # and NumPy warns of random numbers
        return np.errstate(over="ignore")(function)
    return cast(Function, EntryPoint(function))


class EntryPoint:
    """A function that Python calls as machine code, which runs without the GIL and is kept in a cache folder.

    Arguments are states, whole numbers and arrays of numbers; there is machine code for each kind of
    arguments. The result is a whole number, 0 in the place of None.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Keep the function; code is loaded or compiled by the first call."""
        self.function, self._programs = function, dict[tuple, Callable[..., int]]()
        digest_at_start()  # of the sources as they are imported now
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> int:
        """Call the machine code."""
        kinds, words = zip(*map(passed, arguments), strict=True)
        program = self._programs.get(kinds)
        if program is None:
            with _one_thread:
                program = self._programs.get(kinds) or self._loaded(kinds, arguments)
                self._programs[kinds] = program
        result = program(*words)
        if result == FAILED:
            name = self.function.__qualname__
            raise RuntimeError(f"compiled code of {name} failed: NUMBA_DISABLE_JIT=1 shows where")
        return result

    def _loaded(self, kinds: tuple, arguments: tuple) -> Callable[..., int]:
        file = code_file(f"{self.function.__module__}.{self.function.__qualname__}", str(kinds))
        kept = None
        with suppress(OSError):  # not there, or not readable
            kept = file.read_bytes()
        code = (kept or b"")[DIGEST_BYTES:]
        if kept is None or kept[:DIGEST_BYTES] != DIGEST(code).digest():
            if kept is not None:
                say_once(f"the compiled code in {file} is damaged and is made again")
            from btqueue.simulator.machinery.inside_numba import for_numba, machine_code
            from btqueue.simulator.machinery.state_type import type_of

            kinds_for_numba = [type_of(argument) for argument in arguments]
            code = machine_code(for_numba(self.function, parts), kinds_for_numba, file.stem, FAILED)
            keep(file, DIGEST(code).digest() + code)
        return CFUNCTYPE(c_int64, *[c_int64] * len(arguments))(address_of(file.stem, code))


def passed(argument: Any) -> tuple[Any, int]:
    """Return the kind of an argument, and the word that machine code gets: a number, or where it lies."""
    if isinstance(argument, State):
        return "State", argument.address
    if isinstance(argument, np.ndarray):
        return (argument.dtype.char, argument.ndim, argument.flags.c_contiguous), id(argument)
    return "int", index(argument)


def address_of(name: str, code: bytes) -> int:
    """Return the address of a function of object code, which stays in memory while the process lasts."""
    import llvmlite.binding as llvm

    engine = llvm_engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(name)


@cache
def llvm_engine() -> Any:
    """Return the part of LLVM that loads object code."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
