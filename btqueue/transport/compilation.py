"""Compile the models' inner loops with numba, from a cache that notices every change of their sources.

numba's disk cache looks at the file of the cached function only, not at the functions that it calls. The
cache folder is therefore named after a digest of all sources that the function is compiled from: any change
starts an empty one. With `NUMBA_DISABLE_JIT=1` everything stays plain Python.
"""

import hashlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import numba
from numba.core import config
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "forceinline": True}
"""Divisors are positive by construction, so no check for zero is compiled in. Without numba's run-time memory
management nothing can be allocated in a loop, and passing arrays on costs no reference counts; with inlining
that made the ring's loop fifteen times faster."""

settings: Any = config
"""numba's settings, whose names appear only at run time."""


def cache_folder(sources: list[Path]) -> Path:
    """Return the folder of what is compiled from these files: in `$BTQUEUE_CACHE_DIR` or the user's cache."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sources:
        digest.update(source.read_bytes())
    root = os.environ.get("BTQUEUE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root else Path.home() / ".cache"
    return base / "btqueue" / "models" / digest.hexdigest()[:16]


def part(function: Function) -> Function:
    """Let compiled functions call this one, which stays a plain function for Python: without wrappers."""
    return register_jitable(**OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def compiled(*parts: ModuleType) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function which Python calls.

    Args:
        parts: the modules, besides its own, whose `part`s it calls, however indirectly.
    """

    def decorate(function: Function) -> Function:
        files = [__file__, inspect.getfile(function), *(str(part.__file__) for part in parts)]
        before = settings.CACHE_DIR  # numba reads it when a function is decorated
        settings.CACHE_DIR = str(cache_folder([Path(file) for file in files]))
        try:
            return cast(Function, numba.njit(**OPTIONS, cache=True, nogil=True)(function))
        finally:
            settings.CACHE_DIR = before

    return decorate
