"""Compile the simulator's functions with numba, from a cache that notices every change of source."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
import numpy as np

from btqueue.simulator.machinery import inside_numba as internals
from btqueue.simulator.machinery.code_cache import code_folder

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Every divisor in the simulator is positive by construction, so no check for zero is compiled in. Without
numba's run-time memory management nothing can be allocated in the event loop, and passing the state from
function to function costs no reference counts; together with inlining this made the loop thirty times
faster."""


Function = TypeVar("Function", bound=Callable[..., Any])

settings: Any = vars(numba)["config"]
"""numba's settings, whose names appear only at run time."""


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
    options = {"forceinline": forceinline, "pipeline_class": internals.PartCompiler}
    dispatcher: Any = numba.njit(**OPTIONS, **options)(function)
    if dispatcher is not function:  # it is with compilation switched off
        internals.only_for_compiled_code(dispatcher)
    return cast(Function, dispatcher)


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls: releases the GIL, machine code kept in `code_folder()`."""
    dispatcher: Any = numba.njit(**OPTIONS, nogil=True, pipeline_class=internals.WholeCompiler)(function)
    if dispatcher is function:  # compilation is switched off, and NumPy warns of random numbers
        return np.errstate(over="ignore")(function)
    if code_folder().is_dir():
        with cached_in_folder():
            internals.keep_code(dispatcher)
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
