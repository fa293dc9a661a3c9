"""What holds for all records: their units, what stands for "none" and "never", and how they lie in memory."""

from typing import Any

import numpy as np

NOTHING = -1
NEVER = np.int64(2**62)
"""A time that no run reaches (ns); the due time of a timer that is not running."""
UNLIMITED = 2**62

SECOND = 1_000_000_000
SLOT = 625_000
"""Length of a slot (ns)."""


def nanoseconds(seconds: float) -> int:
    """Return a time of a scenario in ns; one above 0 takes at least 1, for no step of time may be 0."""
    return max(1, round(seconds * SECOND)) if seconds > 0 else 0


def record_type(fields: list[Any]) -> np.dtype:
    """Return the type of a record whose fields lie where a processor reads them fastest."""
    return np.dtype(fields, align=True)
