"""Give out places in the arrays of a state that is being built: rows, timers and random streams."""

import numpy as np

from btqueue.simulator.machinery.timers import LARGEST_SCAN
from btqueue.simulator.records.arrays import empty_row, record_type
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.records.run import timer_dtype


class Rows:
    """Rows of one record type, added one by one with named fields; fields not named are 0 or False."""

    def __init__(self, dtype: np.dtype) -> None:
        """Start without rows."""
        self.dtype = dtype
        self.rows: list[dict] = []

    def add(self, **fields: object) -> int:
        """Add a row and return its index."""
        self.rows.append(fields)
        return len(self.rows) - 1

    def __getitem__(self, index: int) -> dict:
        """Return the named fields of a row, to be changed in place."""
        return self.rows[index]

    def __setitem__(self, index: int, fields: dict) -> None:
        """Replace the named fields of a row."""
        self.rows[index] = fields

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def array(self) -> np.recarray:
        """Return the rows as a record array.

        Raises:
            KeyError: a row names a field that records of this type do not have.
        """
        defaults = empty_row(self.dtype)
        for row in self.rows:
            if not row.keys() <= defaults.keys():
                raise KeyError(f"no fields {sorted(row.keys() - defaults.keys())}")
        rows = [tuple((defaults | row).values()) for row in self.rows]
        return np.array(rows, record_type(self.dtype)).view(np.recarray)


class Timers:
    """The timers of a network, in the order in which timers due at the same time fire."""

    def __init__(self) -> None:
        """Start without timers."""
        self.kinds: list[int] = []
        self.owners: list[int] = []
        self.nodes: list[int] = []

    def add(self, kind: int, owner: int, node: int) -> int:
        """Add a timer that is not running, of something at this node, and return its number."""
        self.kinds.append(kind)
        self.owners.append(owner)
        self.nodes.append(node)
        return len(self.kinds) - 1

    def arrays(self, island_of: np.ndarray) -> tuple[np.recarray, np.ndarray, np.ndarray]:
        """Return the timers, the heaps that hold them, and where each island's heap begins.

        Args:
            island_of: for each node the number of its island, from 0.
        """
        table = np.zeros(len(self.kinds), record_type(timer_dtype)).view(np.recarray)
        table.kind, table.owner, table.due = self.kinds, self.owners, NEVER
        return table, *heaps(table, island_of[self.nodes])


def heaps(
    timers: np.recarray, island: np.ndarray, largest_scan: int = LARGEST_SCAN
) -> tuple[np.ndarray, np.ndarray]:
    """Put timers that are not running into the heaps of these islands; return heaps and their beginnings."""
    heap = np.argsort(island, kind="stable")
    numbers, starts, counts = np.unique(island[heap], return_index=True, return_counts=True)
    own = np.searchsorted(numbers, island)
    timers.place[heap] = np.where(counts[own[heap]] > largest_scan, np.arange(len(heap)), NOTHING)
    timers.root, timers.end = starts[own], (starts + counts)[own]
    return heap, starts


class Streams:
    """The random streams of a replication, counted."""

    count = 0

    def add(self) -> int:
        """Give out a stream and return its index."""
        self.count += 1
        return self.count - 1
