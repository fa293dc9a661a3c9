"""How compiled code sees a world: as a pointer to a table of the addresses and lengths of its arrays.

A tuple of arrays would be passed by value, some two hundred numbers at every call, each array with counts of
its references. Only what compiles the loop imports this module.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from numba import cfunc, types
from numba.extending import intrinsic, overload_attribute

from btqueue.network.compilation import OPTIONS, code_folder, kept, tell_numba_of_parts
from btqueue.network.followed.loop import play
from btqueue.network.followed.world import FIELDS

carray: Any = import_module("numba").carray  # type checkers do not see that it is exported
with_attribute: Any = overload_attribute  # nor the options that it hands on

TABLE = types.CPointer(types.int64)
"""The type of a world: rows of an address and a length."""


def to_pointer(typing_context: Any, address: Any) -> Any:
    """Type and compile the pointer with an address."""
    if not isinstance(address, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.voidptr(address), generate


at_address: Any = intrinsic(to_pointer)


def _declare(name: str, place: int, kind: Any) -> None:
    """Give a world's type the attribute of this name: the array in this row of the table."""

    @with_attribute(types.CPointer, name, inline="never", jit_options={"forceinline": True})
    def attribute(world: Any) -> Callable[..., Any]:
        def array(world: Any) -> Any:
            address: Any = world[2 * place]
            return carray(at_address(address), (world[2 * place + 1],), kind)

        return array


for _place, (_name, _kind) in enumerate(FIELDS.items()):
    _declare(_name, _place, _kind)


def enter(world, segments, end):
    """Play a world that is given by its table."""
    play(world, segments, end)


_in_memory: list[Any] = []
"""Compiled functions, which have to stay in memory while their addresses are known."""


@cache
def program() -> Callable[..., None]:
    """Return the loop as machine code, whose arguments are the address of a table, and those of `play`."""
    signature = types.void(TABLE, types.int64, types.float64)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_double)

    def make(keep: bool) -> Callable[..., None]:
        compiled: Any = cfunc(signature, **OPTIONS, cache=keep)(enter)
        _in_memory.append(compiled)
        return call(compiled.address)

    tell_numba_of_parts()
    return kept(make, code_folder("followed", Path(__file__).parent.glob("*.py")))
