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
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from btqueue.caches import cache_folder, not_kept, say_once

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


class OnlyThere(CompileResultCacheImpl):
    """Where machine code lies: in `code_folder()`, for numba's next choice is beside the sources."""

    _locator_classes = [UserProvidedCacheLocator]  # noqa: RUF012 (numba's)


class KeptCode(FunctionCache):
    """The machine code of an entry point on disk. Without it the simulator is compiled again, and says so."""

    _impl_class = OnlyThere

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return machine code for such arguments, None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle may raise anything
            say_once(f"the compiled code in {self.cache_path} is damaged and is made again: {error!r}")
            try:
                self.flush()
            except OSError:
                self.disable()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code for such arguments."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            not_kept(Path(self.cache_path), error)


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
    """Compile a function that Python calls: releases the GIL, machine code kept in `code_folder()`."""
    dispatcher: Any = numba.njit(**OPTIONS, nogil=True, pipeline_class=WholeCompiler)(function)
    compiles = dispatcher is not function  # it is with compilation switched off
    if compiles and code_folder().is_dir():
        with cached_in_folder():
            dispatcher._cache = KeptCode(function)
    return cast(Function, dispatcher)


@contextmanager
def cached_in_folder() -> Iterator[None]:
    """While the block runs, functions are decorated such that numba keeps their code in `code_folder()`.

    numba reads its cache folder when a function is decorated, so the setting is changed for that moment only
    and a user's own configuration stays as it was.
    """
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(code_folder())
    try:
        yield
    finally:
        settings.CACHE_DIR = before
