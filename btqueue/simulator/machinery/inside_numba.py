"""The only file of the simulator that depends on internals of numba.

numba gives no guarantee for these names. `pyproject.toml` therefore bounds its version from above. With a new
version this file is to be checked: `validation/simulator/machinery/test_inside_numba.py` lists the names
that are missing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba import types
from numba.core import cgutils as cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.typing import templates
from numba.core.typing.templates import AbstractTemplate as AbstractTemplate
from numba.core.typing.templates import AttributeTemplate as AttributeTemplate
from numba.core.typing.templates import signature as signature
from numba.np.arrayobj import make_array as make_array
from numba.np.arrayobj import populate_array as populate_array

from btqueue.caches import not_kept, say_once

infer_global: Any = templates.infer_global


class PartLibrary(JITCodeLibrary):
    """The LLVM code of a part as it was written: not yet linked, optimised, or made executable.

    numba would link and optimise every function alone, with all functions that it calls, many times over:
    half of the time that the simulator would take to compile.
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
        """Link in every part once, then the libraries of numba for functions that are not ours."""
        libraries = list(self._linking_libraries)
        for library in libraries:  # grows on the way
            if isinstance(library, PartLibrary):
                libraries += [called for called in library._linking_libraries if called not in libraries]
        # From numba's own libraries the linker takes only functions that are called: they come last.
        self._linking_libraries = sorted(libraries, key=lambda one: not isinstance(one, PartLibrary))
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise the whole; functions copied into all their callers, or never called, disappear.

        LLVM would copy any function back into its only caller: it takes twice as long for the larger ones.
        numba optimises twice, for counts of references that were copied in first. There are none here.
        """
        for library in self._linking_libraries:
            if isinstance(library, PartLibrary):
                for function in library.get_defined_functions():
                    own = self._final_module.get_function(function.name)
                    own.linkage = "internal"
                    if not any(b"alwaysinline" in attributes for attributes in own.attributes):
                        own.add_function_attribute("noinline")
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class PartCompiler(Compiler):
    """Compile a function that only compiled code calls, without separate machine code and wrapper."""

    def define_pipelines(self) -> list[Any]:
        """Set the flags and the library before the passes begin."""
        state: Any = self.state
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class WholeCompiler(Compiler):
    """Compile a function that Python calls, with all its parts."""

    def compile_extra(self, func: Any) -> Any:
        """Compile without garbage collection: it takes long, and frees hardly any of the many objects."""
        enabled = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if enabled:
                gc.enable()

    def define_pipelines(self) -> list[Any]:
        """Set the library before the passes begin."""
        state: Any = self.state
        state.library = WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class OnlyThere(CompileResultCacheImpl):
    """The place of machine code: the folder that is set, as numba's next choice is beside the sources."""

    _locator_classes = [UserProvidedCacheLocator]  # noqa: RUF012 (numba's)


class KeptCode(FunctionCache):
    """The machine code of an entry point on disk. Without it the simulator is compiled again, and says so."""

    _impl_class = OnlyThere

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return machine code for arguments of these types, None if none can be read."""
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
        """Write machine code for arguments of these types."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            not_kept(Path(self.cache_path), error)


def only_for_compiled_code(dispatcher: Any) -> None:
    """Let a function that `PartCompiler` compiles be called by compiled functions."""
    find = dispatcher.get_call_template

    def get_call_template(arguments: Any, keywords: Any) -> Any:
        # A constant is a number like others: a version for each would be a quarter of all code.
        return find(tuple(map(types.unliteral, arguments)), keywords)

    def add_overload(result: Any) -> None:
        # Callers find the function by a unique key, as it has no address.
        key = object()
        dispatcher.targetctx.insert_user_function(key, result.fndesc, [result.library])
        dispatcher.overloads[tuple(result.signature.args)] = result._replace(entry_point=key)

    dispatcher.get_call_template = get_call_template
    dispatcher.add_overload = add_overload


def keep_code(dispatcher: Any) -> None:
    """Let the machine code of an entry point be kept in the folder that numba's settings name now."""
    dispatcher._cache = KeptCode(dispatcher.py_func)


@contextmanager
def separate_roundings() -> Iterator[None]:
    """While the block runs, kernels are compiled to round after every operation, as the CPU does.

    By default NVVM merges a multiplication and an addition into one operation with one rounding, whose result
    can differ in the last digit. numba has no setting for that option.
    """
    from numba.cuda.cudadrv import nvvm

    library: Any = nvvm
    before = library.compile_ir

    def compile_ir(modules: Any, **options: Any) -> Any:
        return before(modules, **options, fma=False)

    library.compile_ir = compile_ir
    try:
        yield
    finally:
        library.compile_ir = before
