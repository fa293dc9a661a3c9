"""Loops as machine code, compiled once by numba's public interface, and kept.

numba's cache does not see a change of a function that is called, so the folder of a program is named after a
digest of the sources that it is made from. numba is imported when a program is first asked for. With
`NUMBA_DISABLE_JIT=1` everything stays plain Python.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable
from functools import update_wrapper
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from btqueue.caches import cache_folder, interpreted, not_kept, say_once
from btqueue.interrupts import interrupt_held

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
"""Divisors are positive by construction, so no check for zero is compiled in."""

_parts: list[tuple[Callable[..., Any], bool]] = []
"""Parts that numba has not been told of yet, and whether they are copied into their callers."""


def part(function: Function) -> Function:
    """Let compiled functions copy this one into themselves; for Python it stays a plain function."""
    _parts.append((function, True))
    return function


def subroutine(function: Function) -> Function:
    """Let compiled functions call this function, which is large or seldom needed."""
    _parts.append((function, False))
    return function


def tell_numba_of_parts() -> None:
    """Register all parts that were defined meanwhile."""
    from numba.extending import register_jitable

    while _parts:
        function, copied = _parts.pop()
        register_jitable(**OPTIONS, forceinline=copied)(function)


def code_folder(name: str, sources: Iterable[Path]) -> Path:
    """Return the cache folder of the code that is compiled from these files."""
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {version('numpy')}".encode())
    for source in sorted({*sources, Path(__file__)}):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return cache_folder(name, digest.hexdigest()[:16])


def kept(make: Callable[[bool], Function], folder: Path) -> Function:
    """Return the function that `make` compiles, its code kept in a folder if the folder is usable.

    Args:
        make: compiles, or loads; its argument says whether the code is to be kept.
        folder: where.

    Raises:
        KeyboardInterrupt: by Ctrl-C, once the code is made.
    """
    with interrupt_held():
        try:
            return _in_folder(make, str(folder))
        except OSError as error:
            not_kept(folder, error)
        except Exception as error:  # a damaged pickle may raise anything
            if not folder.is_dir() or not any(folder.iterdir()):
                raise
            say_once(f"the compiled code in {folder} is damaged and is made again: {error!r}")
            shutil.rmtree(folder)
        return _in_folder(make, "")


def _in_folder(make: Callable[[bool], Function], folder: str) -> Function:
    settings: Any = import_module("numba").config  # whose names appear only at run time
    before = settings.CACHE_DIR
    settings.CACHE_DIR = folder or before  # numba reads it when a function is decorated
    try:
        return make(bool(folder))
    finally:
        settings.CACHE_DIR = before


def compiled(*sources: str) -> Callable[[Callable[..., Any]], "Loop"]:
    """Return a decorator that compiles a function, which Python calls with the same types each time.

    Arguments are arrays, numbers and tuples of both.

    Args:
        sources: files of the parts that it calls, besides its own.
    """
    return lambda function: Loop(function, [Path(function.__code__.co_filename), *map(Path, sources)])


class Loop:
    """A function that is compiled when it is first called."""

    compiling_s = 0.0
    """Time (s) that this process has spent on numba's import and on compiling loops, or loading them."""

    def __init__(self, function: Callable[..., Any], sources: Iterable[Path]) -> None:
        self.function, self._sources = function, sources
        self._program = function if interpreted() else None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code."""
        if self._program is None:
            begin = time.perf_counter()
            self._program = self._compiled(arguments)
            Loop.compiling_s += time.perf_counter() - begin
        return self._program(*arguments)

    def _compiled(self, arguments: tuple) -> Callable[..., Any]:
        from numba import njit, typeof

        def make(keep: bool) -> Callable[..., Any]:
            program: Any = njit(**OPTIONS, cache=keep)(self.function)
            program.compile(tuple(map(typeof, arguments)))
            return program

        tell_numba_of_parts()
        return kept(make, code_folder("loops", self._sources))
