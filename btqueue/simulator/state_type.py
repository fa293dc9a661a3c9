"""How compiled code sees the state: as one pointer to a table of its arrays.

numba would pass a tuple of arrays by value, some three hundred numbers at every call; compiling that takes
minutes. Here a compiled function gets the address of a table that holds the address and the shape of each
array, and `sim.ports` reads from it. Nothing changes for the source: uncompiled, the same functions get the
`State` itself.
"""

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import make_array, populate_array

from btqueue.simulator.records import FIELDS, State

WORDS = 3
"""Words of the table for each array: its address and up to two lengths."""


class StateType(types.Type):
    """numba's type of a `State`: which arrays it has is the same for every network."""

    def __init__(self) -> None:
        """Name the type; there is only one."""
        super().__init__(name="State")


STATE_TYPE = StateType()
ARRAY_TYPES = {
    name: numba.typeof(np.zeros((1,) * dimensions, dtype).view(np.recarray if dtype.names else np.ndarray))
    for name, (dtype, dimensions) in FIELDS.items()
}


def address_table(state: State) -> np.ndarray:
    """Return the addresses and shapes of the state's arrays, shape (fields * WORDS,).

    Raises:
        TypeError: an array is not of the type that compiled code expects.
    """
    table = np.zeros((len(state), WORDS), np.int64)
    for row, (array, (name, (dtype, dimensions))) in enumerate(zip(state, FIELDS.items(), strict=True)):
        if array.dtype != dtype or array.ndim != dimensions or not array.flags.c_contiguous:
            raise TypeError(f"State.{name} must be a contiguous array of {dimensions} dimensions of {dtype}")
        table[row, 0] = array.ctypes.data
        table[row, 1 : 1 + dimensions] = array.shape
    return table.reshape(-1)


@typeof_impl.register(State)
def _typeof_state(value: State, context: object) -> StateType:
    return STATE_TYPE


@register_model(StateType)
class StateModel(models.PrimitiveModel):
    """A pointer to the table."""

    def __init__(self, dmm: object, fe_type: StateType) -> None:
        """Tell numba what a value of the type is."""
        super().__init__(dmm, fe_type, ir.IntType(64).as_pointer())


@unbox(StateType)
def _unbox_state(typ: StateType, obj: object, c) -> NativeValue:
    """Make the table and keep it until the call is over."""
    module = c.pyapi.unserialize(c.pyapi.serialize_object(address_table))
    table = c.pyapi.call_function_objargs(module, (obj,))
    c.pyapi.decref(module)
    failed = cgutils.is_null(c.builder, table)
    pointer = cgutils.alloca_once_value(c.builder, ir.Constant(ir.IntType(64).as_pointer(), None))
    with c.builder.if_then(c.builder.not_(failed)):
        array_type = types.Array(types.int64, 1, "C")
        native = c.context.make_helper(c.builder, array_type, c.unbox(array_type, table).value)
        c.builder.store(native.data, pointer)

    def release() -> None:
        c.pyapi.decref(table)

    return NativeValue(c.builder.load(pointer), is_error=failed, cleanup=release)


@infer_getattr
class StateAttributes(AttributeTemplate):
    """The type of each array."""

    key = StateType

    def generic_resolve(self, typ: StateType, attr: str) -> types.Type | None:
        """Return the type of `sim.attr`."""
        return ARRAY_TYPES.get(attr)


@lower_getattr_generic(StateType)
def _lower_attribute(context, builder, typ, value, attr):
    """Read an array from the table; what the table says does not change while compiled code runs."""
    array_type = ARRAY_TYPES[attr]
    first = list(FIELDS).index(attr) * WORDS
    invariant = builder.module.add_metadata([])

    def word(offset: int) -> ir.Value:
        place = builder.gep(value, [ir.Constant(ir.IntType(64), first + offset)])
        loaded = builder.load(place)
        loaded.set_metadata("invariant.load", invariant)
        return loaded

    item = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    shape = [word(1 + axis) for axis in range(array_type.ndim)]
    strides = [ir.Constant(ir.IntType(64), item)]
    if array_type.ndim == 2:
        strides = [builder.mul(shape[1], strides[0]), strides[0]]
    array = make_array(array_type)(context, builder)
    data = builder.inttoptr(word(0), context.get_data_type(array_type.dtype).as_pointer())
    populate_array(
        array,
        data=data,
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=ir.Constant(ir.IntType(64), item),
        meminfo=None,
    )
    return array._getvalue()
