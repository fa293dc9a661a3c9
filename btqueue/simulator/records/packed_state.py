"""A state in one block of memory, so that a single copy takes it to another memory and back."""

from typing import Any, NamedTuple

import numpy as np

from btqueue.simulator.records.arrays import FIELDS, WORDS, State

ALIGNMENT = 16
"""Every array begins at a multiple of this many bytes, more than any of its fields needs."""

# One object for each type: numba recognises an object that it has seen, and need not inspect it again.
ENTRIES = [
    (np.recarray, np.zeros(0, dtype).view(np.recarray).dtype) if dtype.names else (np.ndarray, dtype)
    for dtype, _ in FIELDS.values()
]
"""Kind and entries of each array, in the order of `FIELDS`."""


class Packed(NamedTuple):
    """A state's bytes, shape (bytes,), in the memory of the CPU or of a GPU, and where its arrays lie.

    Offset (bytes) and shape of each array, in the order of `FIELDS`.
    """

    block: Any
    offsets: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]


def pack(sim: State) -> Packed:
    """Copy the arrays of a state one behind the other into a new block of memory."""
    sizes = [-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in sim]
    ends = np.cumsum(sizes)
    offsets = (0, *(int(end) for end in ends[:-1]))
    block = np.zeros(int(ends[-1]), np.uint8)
    for begin, array in zip(offsets, sim, strict=True):  # bytes: NumPy would copy records field by field
        block[begin : begin + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    return Packed(block, offsets, tuple(array.shape for array in sim))


def unpack(packed: Packed) -> State:
    """Return the state whose arrays are views into the block."""
    arrays: Any = (
        np.ndarray.__new__(kind, shape, dtype, packed.block, offset)
        for (kind, dtype), offset, shape in zip(ENTRIES, packed.offsets, packed.shapes, strict=True)
    )
    sim = State(*arrays)
    begin = packed.block.ctypes.data
    table = [(begin + at, *shape, 0)[:WORDS] for at, shape in zip(packed.offsets, packed.shapes, strict=True)]
    sim.addresses = np.array(table, np.int64).ravel()
    return sim
