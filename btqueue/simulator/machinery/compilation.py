"""Compile the simulator's functions with numba, from a cache that notices every change of source.

numba's disk cache looks at the file of the cached function only, not at the functions that it calls. The
cache folder is therefore named after a digest of all the simulator's sources: any change starts an empty one.
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
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Every divisor in the simulator is positive by construction, so no check for zero is compiled in. Without
numba's run-time memory management nothing can be allocated in the event loop, and passing the state from
function to function costs no reference counts; together with inlining this made the loop thirty times
faster."""


class PartLibrary(JITCodeLibrary):
    """The LLVM code of a part as it was written: nothing linked in, optimised, or made executable yet.

    numba would do all that for every function on its own, with all that it calls, over and over again: half
    of the time that the simulator would take to compile.
    """

    def finalize(self) -> None:
        """Declare the part complete."""
        self._raise_if_finalized()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the code with the linkage that it has: it is linked into a library only once."""
        return self._final_module


class WholeLibrary(JITCodeLibrary):
    """The LLVM code of an entry point: all parts that it reaches are linked in and optimised together."""

    def finalize(self) -> None:
        """Link in every part once, then what numba made of the functions that are not ours."""
        libraries = list(self._linking_libraries)
        for library in libraries:  # grows on the way
            if isinstance(library, PartLibrary):
                libraries += [called for called in library._linking_libraries if called not in libraries]
        # Of numba's own libraries the linker takes only what has been asked for: they come last.
        self._linking_libraries = sorted(libraries, key=lambda one: not isinstance(one, PartLibrary))
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise the whole; what was copied into all its callers, or is never called, disappears."""
        for library in self._linking_libraries:
            if isinstance(library, PartLibrary):
                for function in library.get_defined_functions():
                    self._final_module.get_function(function.name).linkage = "internal"
        super()._optimize_final_module()


class PartCompiler(Compiler):
    """Compile a function that only compiled code calls: no machine code and no wrapper of its own."""

    def define_pipelines(self) -> list[Any]:
        """Set the flags and the library before the passes begin."""
        state: Any = self.state
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class WholeCompiler(Compiler):
    """Compile a function that Python calls, with all its parts."""

    def define_pipelines(self) -> list[Any]:
        """Set the library before the passes begin."""
        state: Any = self.state
        state.library = WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


Function = TypeVar("Function", bound=Callable[..., Any])

settings: Any = config
"""numba's settings, whose names appear only at run time."""

SOURCES = Path(__file__).parents[1]
"""The folder of the simulator's package."""
KEEP_CACHES_S = 30 * 24 * 3600
"""Folders of other digests that were not used for this long (seconds) are removed."""


def source_digest() -> str:
    """Return a short digest of every source file of the simulator and of numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(SOURCES.rglob("*.py")):
        digest.update(source.relative_to(SOURCES).as_posix().encode())
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
        options = {**OPTIONS, "cache": True, "nogil": True, "pipeline_class": WholeCompiler}
        return cast(Function, numba.njit(**options)(function))


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
