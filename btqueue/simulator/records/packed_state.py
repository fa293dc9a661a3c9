"""A state in one block of memory, so that a single copy takes it to another memory and back."""

from typing import Any, NamedTuple

import numpy as np

from btqueue.simulator.records.arrays import FIELDS, State

ALIGNMENT = 16
"""Every array begins at a multiple of this many bytes, more than any of its fields needs."""


class Packed(NamedTuple):
    """A state's bytes, shape (bytes,), in the memory of the CPU or of a GPU, and where its arrays lie.

    Offset (bytes) and shape of each array, in the order of `FIELDS`.
    """

    block: Any
    offsets: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]


def pack(sim: State) -> Packed:
    """Copy the arrays of a state one behind the other into a block of memory of their own."""
    sizes = [-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in sim]
    ends = np.cumsum(sizes)
    offsets = (0, *(int(end) for end in ends[:-1]))
    packed = Packed(np.zeros(int(ends[-1]), np.uint8), offsets, tuple(array.shape for array in sim))
    for copy, array in zip(unpack(packed), sim, strict=True):
        copy[...] = array
    return packed


def unpack(packed: Packed) -> State:
    """Return the state whose arrays are views into the block."""
    arrays = {}
    for (name, (dtype, _)), offset, shape in zip(FIELDS.items(), packed.offsets, packed.shapes, strict=True):
        array = np.ndarray(shape, dtype, packed.block, offset)
        arrays[name] = array.view(np.recarray) if dtype.names else array
    return State(**arrays)
