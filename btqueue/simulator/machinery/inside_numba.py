"""The only file of the simulator that depends on internals of numba.

numba gives no guarantee for these names. `pyproject.toml` therefore bounds its version from above. With a new
version this file is to be checked: `validation/simulator/machinery/test_inside_numba.py` lists the names
that are missing.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils as cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.typing import templates
from numba.core.typing.templates import AbstractTemplate as AbstractTemplate
from numba.core.typing.templates import AttributeTemplate as AttributeTemplate
from numba.core.typing.templates import signature as signature
from numba.np.arrayobj import make_array as make_array
from numba.np.arrayobj import populate_array as populate_array

Parts = list[tuple[Callable[..., Any], bool]]
"""Functions, and whether they are copied into their callers."""
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Every divisor in the simulator is positive by construction, so no check for zero is compiled in. Without
numba's run-time memory management nothing can be allocated in the event loop, and passing the state from
function to function costs no reference counts; together with inlining this made the loop thirty times
faster."""
WORD = ir.IntType(64)
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

    def _finalize_final_module(self) -> None:
        """Declare the library complete: its machine code is not for this process alone."""
        self._finalized = True

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


class WholeCompiler(PartCompiler):
    """Compile a function that Python calls, with all its parts."""

    def define_pipelines(self) -> list[Any]:
        """Set the library before the passes begin."""
        pipelines, state = super().define_pipelines(), self.state
        state.library = WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return pipelines


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


known: dict[Callable[..., Any], Any] = {}
"""The dispatcher of each part that numba was told of."""


def tell_numba_of(parts: Parts) -> None:
    """Let compiled code call parts by the plain functions that modules name; the list is emptied."""
    names: Any = cpu_target.typing_context
    while parts:
        part, copied = parts.pop()
        known[part] = numba.njit(**OPTIONS, forceinline=copied, pipeline_class=PartCompiler)(part)
        only_for_compiled_code(known[part])
        names.insert_global(part, types.Dispatcher(known[part]))


def for_numba(function: Callable[..., Any], parts: Parts) -> Any:
    """Return the dispatcher of a function that Python calls, which numba knows with all its parts."""
    tell_numba_of(parts)
    dispatcher = numba.njit(**OPTIONS, pipeline_class=WholeCompiler)(function)
    only_for_compiled_code(dispatcher)
    return dispatcher


@global_compiler_lock
def machine_code(dispatcher: Any, kinds: Sequence[types.Type], name: str, failed: int) -> bytes:
    """Compile a function for arguments of these types; return object code with a function of this name.

    There is no garbage collection meanwhile: it takes long, and frees hardly any of the many objects.

    Args:
        dispatcher: of the function (`for_numba`).
        kinds: numba's types of the arguments.
        name: of the function in the object code.
        failed: its result if the code has raised an exception.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        dispatcher.compile(tuple(kinds))
        (result,) = dispatcher.overloads.values()
        library = result.library
        library.add_ir_module(caller(result, name, failed))
        library.finalize()
        return library._codegen._tm.emit_object(library._final_module)
    finally:
        if collects:
            gc.enable()


def caller(result: Any, name: str, failed: int) -> ir.Module:
    """Return a function that gets a word for each argument, and returns a word."""
    answers, kinds, context = result.signature.return_type, result.signature.args, result.target_context
    assert answers in (types.int64, types.none)
    module = result.library.create_ir_module(name)
    outer = ir.Function(module, ir.FunctionType(WORD, [WORD] * len(kinds)), name)
    builder = ir.IRBuilder(outer.append_basic_block())
    passed = []
    for kind, word in zip(kinds, outer.args, strict=True):
        if isinstance(kind, types.Array):
            passed.append(array_at(context, builder, kind, word))
        else:
            passed.append(word if kind == types.int64 else builder.inttoptr(word, WORD.as_pointer()))
    inner = context.declare_function(module, result.fndesc)
    status, answer = context.call_conv.call_function(builder, inner, answers, kinds, passed)
    answer = answer if answers == types.int64 else ir.Constant(WORD, 0)
    builder.ret(builder.select(status.is_error, ir.Constant(WORD, failed), answer))
    return module


def array_at(context: Any, builder: Any, kind: types.Array, word: ir.Value) -> Any:
    """Return the array whose object of NumPy lies at this address.

    An object of NumPy has, behind its head as an object of Python, the address of its data, the number of its
    dimensions, and the addresses of its lengths and of its strides (NumPy's C interface, `PyArrayObject`).
    Asking NumPy for these numbers takes several times as long as a short call.
    """

    def load(address: ir.Value, place: int) -> ir.Value:
        words = builder.inttoptr(address, WORD.as_pointer())
        return builder.load(builder.gep(words, [ir.Constant(WORD, place)]))

    data, _, *tables = (load(word, object.__basicsize__ // 8 + place) for place in range(4))
    shape, strides = ([load(table, axis) for axis in range(kind.ndim)] for table in tables)
    entry, found = context.get_data_type(kind.dtype), make_array(kind)(context, builder)
    size = ir.Constant(WORD, context.get_abi_sizeof(entry))
    pointer = builder.inttoptr(data, entry.as_pointer())
    populate_array(found, data=pointer, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return found._getvalue()


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
