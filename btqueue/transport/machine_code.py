"""Call machine code that numba made, without numba: arguments as numba passes them, and LLVM's linker.

numba passes an array as its parts: owner and parent (none here), number and size of its items, address,
lengths and strides; a tuple as its items; a number as itself. Before them stand two addresses, for the result
and for an exception. See "Notes on numba's calling convention" in numba's developer manual.
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding as llvm

NUMBERS: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, np.floating),
}
TYPES = {bool: ctypes.c_uint8, int: ctypes.c_int64, float: ctypes.c_double}
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
"""numpy's flags of an array."""

FINE = (0, -2)
"""What numba's functions return if no exception was raised: a value, or nothing."""

LONG_NAMES = "-non-global-value-max-name-size=1000000"
"""Names of inlined variables carry the types of all arguments; LLVM would refuse what it wrote itself."""

_engines: list[Any] = []
"""They own the machine code."""


class Flat(NamedTuple):
    """Arguments as numba passes them.

    Attributes:
        kinds: of each argument, what the compiler has to know of it; hashable.
        values: the parts of all.
    """

    kinds: tuple
    values: list[Any]


def flatten(arguments: tuple) -> Flat:
    """Take arguments apart.

    Raises:
        TypeError: an argument that is no contiguous array, number or tuple of these.
    """
    values: list[Any] = []
    return Flat(tuple([_take_apart(argument, values) for argument in arguments]), values)


def _take_apart(value: Any, values: list[Any]) -> Any:
    """Add the parts of a value; return its kind."""
    if isinstance(value, np.ndarray):
        array = np.asarray(value)  # attributes of records are slow to look up
        flags = array.flags.num
        if not flags & CONTIGUOUS:
            raise TypeError("a compiled loop takes contiguous arrays only")
        address = array.ctypes.data
        values += (None, None, array.size, array.itemsize, address, *array.shape, *array.strides)
        return type(value), array.dtype, array.ndim, flags & (ALIGNED | WRITEABLE)
    if isinstance(value, tuple):
        return type(value), tuple([_take_apart(item, values) for item in value])
    for kind, numbers in NUMBERS.items():
        if isinstance(value, numbers):
            values.append(kind(value))
            return kind
    raise TypeError(f"a compiled loop takes arrays, numbers and tuples, not {type(value).__name__}")


def types_of(kind: Any) -> list[Any]:
    """Return the types in C of the parts of a value of this kind."""
    if kind in TYPES:
        return [TYPES[kind]]
    if isinstance(kind[1], tuple):
        return [type_ for item in kind[1] for type_ in types_of(item)]
    length, address = ctypes.c_int64, ctypes.c_void_p
    return [address, address, length, length, address] + [length] * (2 * kind[2])


def plain(value: Any) -> Any:
    """Return a value with Python's numbers for numpy's."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, tuple):
        return value
    items = [plain(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


class Native:
    """A function in memory."""

    def __init__(self, address: int, types: list[Any]) -> None:
        pointer = ctypes.POINTER(ctypes.c_void_p)
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, *types)(address)

    def __call__(self, values: list[Any]) -> None:
        """Call it, without Python's lock.

        Raises:
            RuntimeError: it raised an exception, of which nothing more is known here.
        """
        nothing, exception = ctypes.c_void_p(), ctypes.c_void_p()
        status = self._call(ctypes.byref(nothing), ctypes.byref(exception), *values)
        if status not in FINE:
            raise RuntimeError(f"a compiled loop failed (status {status}); NUMBA_DISABLE_JIT=1 shows where")


def assemble(source: str) -> bytes:
    """Return the machine code of LLVM's representation of a module, which is optimised already."""
    llvm.set_option("", LONG_NAMES)
    return _machine().emit_object(llvm.parse_assembly(source))


def link(symbol: str, machine_code: bytes, types: list[Any]) -> Native:
    """Put machine code into memory and return the function of this name."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    _engines.append(engine)
    return Native(engine.get_function_address(symbol), types)


@cache
def _machine() -> Any:
    """Return the processor that this runs on, as LLVM sees it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
        codemodel="jitdefault",
    )
