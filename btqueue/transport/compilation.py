"""Compile the models' inner loops with numba, once: later processes load the machine code without numba.

Importing numba and making it ready takes longer than a whole answer. So what is compiled is kept as an object
file, which LLVM's linker alone puts into memory, and numba is imported only to compile. The folder of
the object files is named after a digest of all sources that a loop is compiled from, of numba's version and
of the processor: any change starts an empty one. With `NUMBA_DISABLE_JIT=1` everything stays plain Python.
"""

import hashlib
import inspect
import os
import re
from collections.abc import Callable
from functools import cache, partial, update_wrapper
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from llvmlite import binding as llvm

from btqueue.caches import cache_folder, keep
from btqueue.transport.machine_code import Native, assemble, flatten, link, plain, types_of

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Divisors are positive by construction, so no check for zero is compiled in. Without numba's run-time memory
management nothing can be allocated in a loop, and passing arrays on costs no reference counts; with inlining
that made the ring's loop fifteen times faster."""

HOW = [Path(__file__), Path(__file__).with_name("whole_program.py")]
"""The sources of the compilation itself."""

DECLARED = re.compile(r"^declare [^@]*@\"?([\w.$]+)", re.MULTILINE)
OF_NUMBA = ("numba_", "NRT_", "Py", "_Py")
"""What machine code without numba cannot call."""

_parts: list[tuple[Callable[..., Any], bool]] = []
"""Parts that numba has not been told of yet, and whether they are copied into their callers."""


def interpreted() -> bool:
    """Return whether compilation is switched off."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def code_folder(sources: list[Path]) -> Path:
    """Return the cache folder of what is compiled from these files."""
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {_processor()}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    return cache_folder("loops", digest.hexdigest()[:16])


@cache
def _processor() -> str:
    return f"{llvm.get_default_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def part(function: Function) -> Function:
    """Let compiled functions copy this one into themselves; for Python it stays a plain function."""
    _parts.append((function, True))
    return function


def subroutine(function: Function) -> Function:
    """Let compiled functions call this one, a large one that several places call: it is compiled once."""
    _parts.append((function, False))
    return function


def compiled(*parts: ModuleType) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that compiles a function which Python calls.

    The function returns nothing: what it finds it writes into its arrays. Its arguments are arrays, numbers,
    and tuples of both (see `btqueue.transport.machine_code`).

    Args:
        parts: the modules, besides its own, whose `part`s it calls, however indirectly.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        if interpreted():
            return function
        files = [inspect.getfile(function), *(str(part.__file__) for part in parts)]
        return Loop(function, [*HOW, *map(Path, files)])

    return decorate


def bound(loop: Callable[..., None], *first: Any) -> Callable[..., None]:
    """Return a compiled function of its other arguments, for calls with the same first ones."""
    return loop.bound(*first) if isinstance(loop, Loop) else partial(loop, *first)


class Loop:
    """A function that is compiled, or loaded, for each kind of arguments when they first come."""

    def __init__(self, function: Callable[..., None], sources: list[Path]) -> None:
        self.function, self.sources = function, sources
        self._natives: dict[tuple, Native] = {}
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> None:
        """Call the machine code.

        Raises:
            TypeError: an argument that a compiled loop cannot take.
        """
        flat = flatten(arguments)
        self._native(flat.kinds, arguments)(flat.values)

    def bound(self, *first: Any) -> Callable[..., None]:
        """Return a function of the other arguments; these are taken apart but once.

        Raises:
            TypeError: an argument that a compiled loop cannot take.
        """
        before = flatten(first)

        def call(*others: Any) -> None:
            flat = flatten(others)
            self._native(before.kinds + flat.kinds, (*first, *others))(before.values + flat.values)

        return call

    def _native(self, kinds: tuple, arguments: tuple) -> Native:
        """Return the machine code for such arguments."""
        native = self._natives.get(kinds)
        if native is None:
            native = self._natives[kinds] = self._found(kinds, arguments)
        return native

    def _found(self, kinds: tuple, arguments: tuple) -> Native:
        """Return the machine code from its file; write that first if there is none."""
        name = hashlib.sha256(repr(kinds).encode()).hexdigest()[:16]
        file = code_folder(self.sources) / f"{self.function.__name__}-{name}.o"
        code = _read(file)
        if code is None:
            code = _compile(self.function, plain(arguments))
            keep(file, hashlib.sha256(code).hexdigest().encode() + b"\n" + code)
        symbol, _, machine_code = code.partition(b"\n")
        return link(symbol.decode(), machine_code, [type_ for kind in kinds for type_ in types_of(kind)])


def _compile(function: Callable[..., None], arguments: tuple) -> bytes:
    """Return the symbol of a function compiled for these arguments, a line feed, and its machine code."""
    from numba.extending import register_jitable

    from btqueue.transport.whole_program import PartCompiler, translated

    while _parts:
        called, copied = _parts.pop()
        register_jitable(**OPTIONS, forceinline=copied, pipeline_class=PartCompiler)(called)
    symbol, source = translated(function, arguments, {**OPTIONS, "nogil": True})
    if foreign := [name for name in DECLARED.findall(source) if name.startswith(OF_NUMBA)]:
        raise NotImplementedError(
            f"{function.__qualname__} calls {', '.join(foreign)} of numba's run-time library"
        )
    return symbol.encode() + b"\n" + assemble(source)


def _read(file: Path) -> bytes | None:
    """Return the content of a file behind its digest; None if it is not there or not whole."""
    try:
        digest, _, content = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if digest == hashlib.sha256(content).hexdigest().encode() else None
