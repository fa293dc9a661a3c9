"""The state in compiled code: one pointer to a table of its arrays.

numba would pass a tuple of arrays by value, some three hundred numbers at every call; compiling that takes
minutes. Here a compiled function gets the address of a table that holds the address and the shape of each
array, and `sim.ports[i]` reads from it. Nothing changes for the source: uncompiled, the same functions get
the `State` itself.
"""

import operator
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import extending, types

from btqueue.simulator.machinery import inside_numba as internals
from btqueue.simulator.records.arrays import FIELDS, WORDS, State

WORD = ir.IntType(64)


class StateType(types.Type):
    """numba's type of a `State`: which arrays it has is the same for every network."""

    def __init__(self) -> None:
        """Name the type; there is only one."""
        super().__init__(name="State")


class ArrayOfState(types.Type):
    """numba's type of one array of a `State`: it knows the array's place in the table and its entries.

    Unlike in numba's own arrays, negative indices do not count from the end.
    """

    def __init__(self, field: str) -> None:
        """Name the type after the field."""
        dtype, self.dimensions = FIELDS[field]
        self.array: Any = numba.typeof(
            np.zeros((1,) * self.dimensions, dtype).view(np.recarray if dtype.names else np.ndarray)
        )
        self.entry, self.size = self.array.dtype, dtype.itemsize
        self.first_word = list(FIELDS).index(field) * WORDS
        super().__init__(name=f"State.{field}")


STATE_TYPE = StateType()
ARRAY_TYPES = {field: ArrayOfState(field) for field in FIELDS}


def type_of(argument: object) -> types.Type:
    """Return numba's type of an argument of an entry point: a state, an array, or else a whole number."""
    if isinstance(argument, State):
        return STATE_TYPE
    return numba.typeof(argument if isinstance(argument, np.ndarray) else 0)


# ------------------------------------------------------------------------------- values of the two types


@extending.register_model(StateType)
@extending.register_model(ArrayOfState)
class TableModel(extending.models.PrimitiveModel):
    """A pointer to the table."""

    def __init__(self, dmm: object, fe_type: types.Type) -> None:
        """Tell numba the representation of a value of the type."""
        super().__init__(dmm, fe_type, WORD.as_pointer())


# --------------------------------------------------------------------------------- sim.ports, len


@extending.infer_getattr
class StateAttributes(internals.AttributeTemplate):
    """The type of `sim.ports`."""

    key = StateType

    def generic_resolve(self, typ: StateType, attr: str) -> types.Type | None:
        """Return the type of the array."""
        return ARRAY_TYPES.get(attr)


@extending.lower_getattr_generic(StateType)
def _lower_attribute(context, builder, typ, value, attr):
    return value


def _word(builder, array_type: ArrayOfState, table, offset: int):
    """Read a word of an array's row; the table does not change while compiled code runs."""
    loaded = builder.load(builder.gep(table, [ir.Constant(WORD, array_type.first_word + offset)]))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


@internals.infer_global(len)
class LengthOfArray(internals.AbstractTemplate):
    """The type of `len(sim.ports)`."""

    def generic(self, args, kws):
        """Return the signature."""
        if len(args) == 1 and isinstance(args[0], ArrayOfState):
            return internals.signature(types.intp, args[0])
        return None


@extending.lower_builtin(len, ArrayOfState)
def _lower_len(context, builder, sig, args):
    return _word(builder, sig.args[0], args[0], 1)


# ------------------------------------------------------------------------------------------- entries and rows


@internals.infer_global(operator.getitem)
class EntryOfArray(internals.AbstractTemplate):
    """The type of `sim.ports[i]`: a record or a number, or a row of a two-dimensional array."""

    def generic(self, args, kws):
        """Return the signature."""
        array, index = args
        if not isinstance(array, ArrayOfState):
            return None
        if isinstance(index, types.BaseTuple):
            return internals.signature(array.entry, array, types.UniTuple(types.intp, 2))
        if array.dimensions == 2:
            return internals.signature(types.Array(array.entry, 1, "C"), array, types.intp)
        return internals.signature(array.entry, array, types.intp)


def _address(context, builder, array_type: ArrayOfState, table, place):
    """Return a pointer to the entry at this place, counted through all rows."""
    entry = context.get_data_type(array_type.entry)
    start = builder.inttoptr(_word(builder, array_type, table, 0), ir.IntType(8).as_pointer())
    offset = builder.mul(place, ir.Constant(WORD, array_type.size), flags=["nsw"])
    return builder.bitcast(builder.gep(start, [offset], inbounds=True), entry.as_pointer())


def _load(context, builder, array_type: ArrayOfState, address):
    if isinstance(array_type.entry, types.Record):
        return builder.bitcast(address, context.get_value_type(array_type.entry))
    return context.unpack_value(builder, array_type.entry, address)


@extending.lower_builtin(operator.getitem, ArrayOfState, types.intp)
def _lower_getitem(context, builder, sig, args):
    array_type = sig.args[0]
    table, place = args
    if array_type.dimensions == 1:
        return _load(context, builder, array_type, _address(context, builder, array_type, table, place))
    length = _word(builder, array_type, table, 2)
    address = _address(context, builder, array_type, table, builder.mul(place, length))
    size = ir.Constant(WORD, array_type.size)
    row = internals.make_array(sig.return_type)(context, builder)
    internals.populate_array(row, data=address, shape=[length], strides=[size], itemsize=size, meminfo=None)
    return row._getvalue()


@extending.lower_builtin(operator.getitem, ArrayOfState, types.UniTuple)
def _lower_getitem_of_row(context, builder, sig, args):
    array_type = sig.args[0]
    row, column = internals.cgutils.unpack_tuple(builder, args[1], 2)
    place = builder.add(builder.mul(row, _word(builder, array_type, args[0], 2)), column)
    return _load(context, builder, array_type, _address(context, builder, array_type, args[0], place))


@internals.infer_global(operator.setitem)
class SetEntryOfArray(internals.AbstractTemplate):
    """The type of `sim.heap[i] = timer`, of `sim.a[i] = sim.b[j]`, copies of records of one type.

    Also of `sim.a[:] = 0` and `sim.a[:] = sim.b`, of one shape.
    """

    def generic(self, args, kws):
        """Return the signature."""
        array, index, value = args
        if not isinstance(array, ArrayOfState):
            return None
        if isinstance(index, types.SliceType):
            same = isinstance(value, ArrayOfState) and value.array == array.array
            nothing = isinstance(value, types.IntegerLiteral) and value.literal_value == 0
            return internals.signature(types.none, array, index, value) if same or nothing else None
        one = array.dimensions == 1 and (value == array.entry or not isinstance(value, types.Record))
        return internals.signature(types.none, array, types.intp, array.entry) if one else None


@extending.lower_builtin(operator.setitem, ArrayOfState, types.intp, types.Record)
def _lower_copy_of_record(context, builder, sig, args):
    address = _address(context, builder, sig.args[0], args[0], args[1])
    internals.cgutils.raw_memcpy(builder, address, args[2], ir.Constant(WORD, sig.args[0].size), 1)
    return context.get_dummy_value()


@extending.lower_builtin(operator.setitem, ArrayOfState, types.intp, types.Any)
def _lower_setitem(context, builder, sig, args):
    address = _address(context, builder, sig.args[0], args[0], args[1])
    context.pack_value(builder, sig.args[0].entry, args[2], address)
    return context.get_dummy_value()


def _begin_and_size(context, builder, array_type: ArrayOfState, table):
    """Return a pointer to the first byte of an array, and its number of bytes; indices have to be `[:]`."""
    size = ir.Constant(WORD, array_type.size)
    for axis in range(array_type.dimensions):
        size = builder.mul(size, _word(builder, array_type, table, 1 + axis))
    return builder.inttoptr(_word(builder, array_type, table, 0), ir.IntType(8).as_pointer()), size


@extending.lower_builtin(operator.setitem, ArrayOfState, types.SliceType, types.IntegerLiteral)
def _lower_clear(context, builder, sig, args):
    begin, size = _begin_and_size(context, builder, sig.args[0], args[0])
    internals.cgutils.memset(builder, begin, size, 0)
    return context.get_dummy_value()


@extending.lower_builtin(operator.setitem, ArrayOfState, types.SliceType, ArrayOfState)
def _lower_copy(context, builder, sig, args):
    begin, size = _begin_and_size(context, builder, sig.args[0], args[0])
    source, _ = _begin_and_size(context, builder, sig.args[2], args[2])
    internals.cgutils.raw_memcpy(builder, begin, source, size, 1)
    return context.get_dummy_value()
