"""Let numba translate functions to LLVM's code, and optimise an entry point with all that it calls, once.

numba would link, optimise and turn into machine code every function on its own, each time with all that it
calls: most of the time that a loop of many functions would take.
"""

from collections.abc import Callable
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class PartLibrary(JITCodeLibrary):
    """The LLVM code of one function as it was written: nothing linked in, optimised or executable yet."""

    def finalize(self) -> None:
        """Declare the function complete."""
        self._raise_if_finalized()
        self._finalized = True

    def whole(self, symbol: str) -> str:
        """Link in all that is called, optimise it together, and return it; only `symbol` can be called."""
        libraries: list[Any] = [self]
        for library in libraries:  # grows on the way
            if isinstance(library, PartLibrary):
                called = dict.fromkeys(library._linking_libraries)
                libraries += [one for one in called if one not in libraries]
        # Of numba's own libraries the linker takes only what has been asked for: they come last.
        for library in sorted(libraries[1:], key=lambda one: not isinstance(one, PartLibrary)):
            own = isinstance(library, PartLibrary)
            module = library._final_module if own else library._get_module_for_linking()
            self._final_module.link_in(module, preserve=True)
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != symbol:
                function.linkage = "internal"
        self._optimize_final_module()
        return str(self._final_module)


class PartCompiler(Compiler):
    """Translate a function to a `PartLibrary`; no machine code."""

    def define_pipelines(self) -> list[Any]:
        """Set the flags and the library before the passes begin."""
        state: Any = self.state
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Let callers find the function by a key of its own instead of the address that it does not have."""
        result = super().compile_extra(func)
        key = [].append  # of a new list, so equal to no other; numba insists on a built-in function
        result.target_context.insert_user_function(key, result.fndesc, [result.library])
        return result._replace(entry_point=key)


def translated(function: Callable[..., None], arguments: tuple, options: dict[str, Any]) -> tuple[str, str]:
    """Return the symbol of a function for these arguments, and its LLVM code with all that it calls."""
    dispatcher: Any = numba.njit(**options, pipeline_class=PartCompiler)(function)
    result = dispatcher.get_compile_result(numba.void(*map(numba.typeof, arguments)))
    symbol = result.fndesc.llvm_func_name
    return symbol, result.library.whole(symbol)
