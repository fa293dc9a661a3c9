"""Give out places in the arrays of a state that is being built: rows, timers and random streams."""

from itertools import chain

import numpy as np

from btqueue.simulator.machinery.timers import LARGEST_SCAN
from btqueue.simulator.records.arrays import empty_row, record_type
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.records.run import timer_dtype

NO_FIELDS: dict[str, object] = {}
"""Fields that a row has in common with other rows: none."""


class Rows:
    """Rows of one record type, added one by one with named fields; fields not named are 0 or False."""

    def __init__(self, dtype: np.dtype) -> None:
        """Start without rows."""
        self.dtype = dtype
        self.rows: list[dict] = []
        self.alike: list[dict[str, object]] = []

    def add(self, alike: dict[str, object] = NO_FIELDS, **fields: object) -> int:
        """Add a row and return its index; *alike* are fields that it has in common with other rows."""
        self.rows.append(fields)
        self.alike.append(alike)
        return len(self.rows) - 1

    def __getitem__(self, index: int) -> dict:
        """Return the named fields of a row, but for common ones, to be changed in place."""
        return self.rows[index]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def array(self) -> np.ndarray:
        """Return the rows as an array.

        Raises:
            KeyError: a row names a field that records of this type do not have.
        """
        dtype, defaults = record_type(self.dtype), empty_row(self.dtype)
        names = dict.fromkeys(chain.from_iterable(self.rows))
        kinds = {id(common): common for common in self.alike}
        members: dict[int, list[int]] = {number: [] for number in kinds}
        for place, common in enumerate(self.alike):
            members[id(common)].append(place)
        if not (names.keys() | set().union(*kinds.values())) <= defaults.keys():
            raise KeyError(f"records have the fields {list(defaults)}, not all of {list(names)}")
        table = np.zeros(len(self.rows), dtype)
        whole = table.view(f"V{dtype.itemsize}")
        for number, common in kinds.items():
            one = np.array([tuple((defaults | common).values())], dtype).view(whole.dtype)
            whole[members[number]] = one
        for name in names:
            try:
                table[name] = [row[name] for row in self.rows]
            except KeyError:
                having = [index for index, row in enumerate(self.rows) if name in row]
                table[name][having] = [self.rows[index][name] for index in having]
        return table


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

    def arrays(self, island_of: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the timers, the heaps that hold them, and where each island's heap begins.

        Args:
            island_of: for each node the number of its island, from 0.
        """
        table = np.zeros(len(self.kinds), record_type(timer_dtype))
        table["kind"], table["owner"], table["due"] = self.kinds, self.owners, NEVER
        return table, *heaps(table, island_of[self.nodes])


def heaps(
    timers: np.ndarray, island: np.ndarray, largest_scan: int = LARGEST_SCAN
) -> tuple[np.ndarray, np.ndarray]:
    """Put timers that are not running into the heaps of these islands; return heaps and their beginnings."""
    heap = np.argsort(island, kind="stable")
    numbers, starts, counts = np.unique(island[heap], return_index=True, return_counts=True)
    own = np.searchsorted(numbers, island)
    timers["place"][heap] = np.where(counts[own[heap]] > largest_scan, np.arange(len(heap)), NOTHING)
    timers["root"], timers["end"] = starts[own], (starts + counts)[own]
    return heap, starts


class Streams:
    """The random streams of a replication, counted."""

    count = 0

    def add(self) -> int:
        """Give out a stream and return its index."""
        self.count += 1
        return self.count - 1
