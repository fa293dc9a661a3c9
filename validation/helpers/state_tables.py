"""Tables of the simulator's records, for tests that build only the part of its state that they look at."""

from types import SimpleNamespace

import numpy as np

NOTHING = -1
NEVER = 2**62


def zeros(dtype, length):
    """Return a zeroed table of so many records of this type."""
    return np.zeros(length, dtype).view(np.recarray)


def tables(records, **lengths):
    """Return zeroed tables by the names that the state has for them: `tables(records, clock=1, links=3)`."""
    return SimpleNamespace(**{name: table(records, name, length) for name, length in lengths.items()})


def table(records, name, length):
    """Return a zeroed table of so many records; that of `links` has records of `link_dtype`."""
    singular = name if hasattr(records, f"{name}_dtype") else name.removesuffix("s")
    return zeros(getattr(records, f"{singular}_dtype"), length)


def one(records, name, **fields):
    """Return a record of this type with these fields: `one(records, "connection", unit=1)`."""
    record = table(records, name, 1)[0]
    for field, value in fields.items():
        record[field] = value
    return record


def pool(records, name, length):
    """Return a table all of whose records are free, each with the number of the next free one."""
    free = table(records, name, length)
    free.next = [*range(1, length), NOTHING]
    return free
