"""Compile the simulator's functions with numba, from a cache that notices every change of source.

numba's disk cache looks at the file of the cached function only, not at the functions that it calls. The
cache folder is therefore named after a digest of all the simulator's sources: any change starts an empty one.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from btqueue.caches import cache_folder
from btqueue.simulator.machinery.inside_numba import (
    PartCompiler,
    WholeCompiler,
    keep_code,
    only_for_compiled_code,
)

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Every divisor in the simulator is positive by construction, so no check for zero is compiled in. Without
numba's run-time memory management nothing can be allocated in the event loop, and passing the state from
function to function costs no reference counts; together with inlining this made the loop thirty times
faster."""


Function = TypeVar("Function", bound=Callable[..., Any])

settings: Any = vars(numba)["config"]
"""numba's settings, whose names appear only at run time."""

SOURCES = Path(__file__).parents[1]
"""The folder of the simulator's package."""


def source_digest() -> str:
    """Return a short digest of every source file of the simulator and of numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(SOURCES.rglob("*.py")):
        digest.update(source.relative_to(SOURCES).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def code_folder() -> Path:
    """Return the cache folder of the compiled code of these sources."""
    return cache_folder("simulator", source_digest())


def compiled(function: Function) -> Function:
    """Compile a function that is copied into the compiled functions that call it; nothing is kept on disk.

    Under `NUMBA_DISABLE_JIT=1` the function stays plain Python.
    """
    return part(function, forceinline=True)


def outlined(function: Function) -> Function:
    """Compile a function that is called from compiled code, not copied into it.

    For large functions and rare ones: they are compiled once and keep the event loop small.
    """
    return part(function, forceinline=False)


def part(function: Function, *, forceinline: bool) -> Function:
    """Compile a function for other compiled functions only."""
    dispatcher: Any = numba.njit(**OPTIONS, forceinline=forceinline, pipeline_class=PartCompiler)(function)
    if dispatcher is not function:  # it is with compilation switched off
        only_for_compiled_code(dispatcher)
    return cast(Function, dispatcher)


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls: releases the GIL, machine code kept in `code_folder()`."""
    dispatcher: Any = numba.njit(**OPTIONS, nogil=True, pipeline_class=WholeCompiler)(function)
    compiles = dispatcher is not function  # it is with compilation switched off
    if compiles and code_folder().is_dir():
        with cached_in_folder():
            keep_code(dispatcher)
    return cast(Function, dispatcher)


@contextmanager
def cached_in_folder() -> Iterator[None]:
    """While the block runs, numba keeps the code of decorated functions in `code_folder()`.

    numba reads its cache folder when a function is decorated, so the setting is changed only while the block
    runs, and a user's configuration stays as it was.
    """
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(code_folder())
    try:
        yield
    finally:
        settings.CACHE_DIR = before
