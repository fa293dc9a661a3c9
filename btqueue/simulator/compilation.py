"""Compile the simulator's functions with numba, from a cache that notices every change of source.

numba's disk cache looks at the file of the cached function only, not at the functions that it calls. The
cache folder is therefore named after a digest of all sources of this package: any change starts an empty one.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config
from numba.core.compiler import Compiler

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Every divisor in the simulator is positive by construction, so no check for zero is compiled in. Without
numba's run-time memory management nothing can be allocated in the event loop, and passing the state from
function to function costs no reference counts; together with inlining this made the loop thirty times
faster."""


class PartCompiler(Compiler):
    """Compile a function that only compiled code calls: no machine code and no wrapper of its own.

    It is linked into the entry points, which are the only ones that are made executable. That halves the time
    that the simulator takes to compile.
    """

    def define_pipelines(self) -> list[Any]:
        """Set the flags before the passes begin."""
        flags: Any = self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return super().define_pipelines()


Function = TypeVar("Function", bound=Callable[..., Any])

settings: Any = config
"""numba's settings, whose names appear only at run time."""

KEEP_CACHES_S = 30 * 24 * 3600
"""Folders of other digests that were not used for this long (seconds) are removed."""


def source_digest() -> str:
    """Return a short digest of every source file of the simulator and of numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return the folder of the compiled code: `$BTQUEUE_CACHE_DIR` or the user's cache folder, by digest."""
    root = os.environ.get("BTQUEUE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root else Path.home() / ".cache"
    return base / "btqueue" / "simulator" / source_digest()


def remove_stale_caches(folder: Path) -> None:
    """Delete the neighbours of `folder` that no process has used for `KEEP_CACHES_S`."""
    if not folder.parent.is_dir():
        return
    for other in folder.parent.iterdir():
        if other != folder and time.time() - other.stat().st_mtime > KEEP_CACHES_S:
            shutil.rmtree(other, ignore_errors=True)


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

        def add_overload(result: Any) -> None:
            # Callers find the function by a key of its own instead of the address that it does not have.
            key = object()
            dispatcher.targetctx.insert_user_function(key, result.fndesc, [result.library])
            dispatcher.overloads[tuple(result.signature.args)] = result._replace(entry_point=key)

        dispatcher.add_overload = add_overload
    return cast(Function, dispatcher)


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls: releases the GIL, machine code kept in `cache_folder()`."""
    with cached_in_folder():
        return cast(Function, numba.njit(**OPTIONS, cache=True, nogil=True)(function))


@contextmanager
def cached_in_folder() -> Iterator[None]:
    """While the block runs, functions are decorated such that numba keeps their code in `cache_folder()`.

    numba reads its cache folder when a function is decorated, so the setting is changed for that moment only
    and a user's own configuration stays as it was.
    """
    folder = cache_folder()
    remove_stale_caches(folder)
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        settings.CACHE_DIR = before
