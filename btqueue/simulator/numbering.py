"""Give out places in the arrays of a state that is being built: rows, timers and random streams."""

import numpy as np

from btqueue.simulator.records import NEVER, timer_dtype


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
        """Return the rows as a record array."""
        table = np.zeros(len(self.rows), self.dtype)
        for name in sorted({name for row in self.rows for name in row}):
            default = np.zeros(1, self.dtype)[name][0]
            table[name] = np.array([row.get(name, default) for row in self.rows]).reshape(table[name].shape)
        return table.view(np.recarray)


class Timers:
    """The timers of a network, in the order in which those due at the same time fire."""

    def __init__(self) -> None:
        """Start without timers."""
        self.kinds: list[int] = []
        self.owners: list[int] = []

    def add(self, kind: int, owner: int) -> int:
        """Add a timer that is not running and return its number."""
        self.kinds.append(kind)
        self.owners.append(owner)
        return len(self.kinds) - 1

    def arrays(self) -> tuple[np.recarray, np.ndarray]:
        """Return the timers and the heap that holds them."""
        table = np.zeros(len(self.kinds), timer_dtype).view(np.recarray)
        heap = np.arange(len(self.kinds))
        table.kind, table.owner = self.kinds, self.owners
        table.due, table.place = NEVER, heap
        return table, heap


class Streams:
    """The random streams of a replication, counted."""

    def __init__(self, count: int = 0) -> None:
        """Start with `count` streams given out."""
        self.count = count

    def add(self, how_many: int = 1) -> int:
        """Give out streams and return the index of the first."""
        self.count += how_many
        return self.count - how_many
