"""Conventions of all records: units, the values of "none" and "never", and the layout in memory."""

from typing import Any

import numpy as np

NOTHING = -1
NEVER = np.int64(2**62)
"""A time that no run reaches (ns); the due time of a timer that is not running."""
UNLIMITED = 2**62

SECOND = 1_000_000_000
MILLISECOND = SECOND // 1000
NANOBITS_A_BYTE = 8 * SECOND
"""Tokens are counted in bits times nanoseconds a second, so that no rounding adds up."""
SLOT = 625_000
"""Length of a slot (ns)."""
SHORTEST_FRAME = 2 * SLOT
"""POLL and NULL (ns)."""
ROUND_SIZES = range(33, 129)
"""Sizes of records (bytes) that are made powers of two. Of smaller ones there may be millions."""


def nanoseconds(seconds: float) -> int:
    """Return a time of a scenario in ns; one above 0 takes at least 1, for no step of time may be 0."""
    return max(1, round(seconds * SECOND)) if seconds > 0 else 0


Fields = list[tuple[Any, ...]]
"""Name, type and shape of fields of a record."""


def integers(names: str, shape: int | tuple[()] = ()) -> Fields:
    """Return fields that hold a whole number, or an array of whole numbers of this shape."""
    return [(name, np.int64, shape) for name in names.split()]


def reals(names: str) -> Fields:
    """Return fields that hold a real number."""
    return [(name, np.float64) for name in names.split()]


def flags(names: str) -> Fields:
    """Return fields that hold a truth value."""
    return [(name, np.bool_) for name in names.split()]


def words(names: str) -> Fields:
    """Return fields that hold the bits of a random stream."""
    return [(name, np.uint64) for name in names.split()]


def record_type(*groups: Fields) -> np.dtype:
    """Return the type of a record whose fields lie where a processor reads them fastest.

    Sizes in `ROUND_SIZES` become powers of two: an index becomes an address by a shift.
    """
    dense = np.dtype([field for group in groups for field in group], align=True)
    if dense.itemsize not in ROUND_SIZES:
        return dense
    places: Any = dense.fields
    layout: Any = {
        "names": list(places),
        "formats": [place[0] for place in places.values()],
        "offsets": [place[1] for place in places.values()],
        "itemsize": 1 << (dense.itemsize - 1).bit_length(),
        "aligned": True,
    }
    return np.dtype(layout)
