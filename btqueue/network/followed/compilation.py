"""The follower's loop as machine code, compiled once by numba's public interface.

What is compiled gets plain pointers: an array that numba knows nothing but the address of costs no reference
counts when it is passed on, and small parts are copied into their callers. numba's cache does not see a
change of a function that is called, so its folder is named after a digest of all sources here. With
`NUMBA_DISABLE_JIT=1` everything stays plain Python.
"""

import ctypes
import hashlib
import os
import shutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from btqueue.caches import cache_folder, not_kept, say_once

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
"""Divisors are positive by construction, so no check for zero is compiled in."""

_parts: list[tuple[Callable[..., Any], bool]] = []
"""Parts that numba has not been told of yet, and whether they are copied into their callers."""


_kept: list[Any] = []
"""Compiled functions, which have to stay in memory while their addresses are known."""


def part(function: Function) -> Function:
    """Let compiled functions copy this one into themselves; for Python it stays a plain function."""
    _parts.append((function, True))
    return function


def subroutine(function: Function) -> Function:
    """Let compiled functions call this one, a large one or one that is seldom needed."""
    _parts.append((function, False))
    return function


def interpreted() -> bool:
    """Return whether compilation is switched off."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def code_folder() -> Path:
    """Return the cache folder of what is compiled from the sources in this folder."""
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {version('numpy')}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return cache_folder("followed", digest.hexdigest()[:16])


@cache
def program() -> Callable[..., None]:
    """Return the loop as machine code: loaded, or compiled and kept.

    Its arguments are the address of the table of a world (`entry`), and those of `play`.
    """
    folder = code_folder()
    try:
        return _compiled(str(folder))
    except OSError as error:
        not_kept(folder, error)
    except Exception as error:  # a damaged pickle may raise anything
        if not any(folder.iterdir()):
            raise
        say_once(f"the compiled code in {folder} is damaged and is made again: {error!r}")
        shutil.rmtree(folder)
    return _compiled("")


def _compiled(folder: str) -> Callable[..., None]:
    """Return the loop, kept in this folder; an empty name: not kept."""
    from numba import cfunc, types
    from numba.extending import register_jitable

    from btqueue.network.followed.entry import TABLE, enter

    while _parts:
        function, copied = _parts.pop()
        register_jitable(**OPTIONS, forceinline=copied)(function)
    signature = types.void(TABLE, types.int64, types.float64, types.int64)
    settings: Any = import_module("numba").config  # whose names appear only at run time
    before = settings.CACHE_DIR
    settings.CACHE_DIR = folder or before  # numba reads it when a function is decorated
    try:
        compiled: Any = cfunc(signature, **OPTIONS, cache=bool(folder))(enter)
    finally:
        settings.CACHE_DIR = before
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_double, ctypes.c_longlong)
    _kept.append(compiled)
    return call(compiled.address)
