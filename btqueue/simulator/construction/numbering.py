"""Give out places in the arrays of a state that is being built: rows, timers and random streams."""

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType, SimpleNamespace

import numpy as np

from btqueue.scenario.fields import Table
from btqueue.simulator.machinery.timers import LARGEST_SCAN
from btqueue.simulator.records.arrays import FIELDS, empty_row, record_type
from btqueue.simulator.records.conventions import NEVER, NOTHING, nanoseconds

NO_FIELDS: dict[str, object] = {}
"""Fields that a row has in common with other rows: none."""
NOT_RUNNING: dict[str, object] = {"due": NEVER}


def from_keys(
    table: Table, dtype: np.dtype, words: Mapping[str, Sequence[object]] = MappingProxyType({})
) -> dict[str, object]:
    """Return the fields of a record that have the names of keys of a table, if these are set.

    A time is in ns, and its field is named without `_s`; a word is its place among `words`.
    """
    found: dict[str, object] = {}
    for key, value in table:
        name = key.removesuffix("_s")
        if value is not None and name in (dtype.names or ()):
            given = words[key].index(value) if key in words else value
            found[name] = given if name == key else nanoseconds(value)
    return found


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
        if not self.rows:
            return np.zeros(0, record_type(self.dtype))
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


class Draft(SimpleNamespace):
    """A state that is being built: `Rows` for each of its arrays of records, lists for tables of numbers.

    `port_of`: the port from one node to another; `stream_count`: random streams that were given out.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        records = {name: Rows(dtype) for name, (dtype, _) in FIELDS.items() if dtype.names}
        tables = ("routes", "patterns", "schedules", "le_neighbours")
        super().__init__(**records, **{name: [] for name in tables}, port_of={}, timer_nodes=[])
        self.stream_count = 0

    def add_stream(self) -> int:
        """Give out a random stream and return its index."""
        self.stream_count += 1
        return self.stream_count - 1

    def add_timer(self, kind: int, owner: int, node: int) -> int:
        """Add a timer that is not running, of something at this node, and return its number.

        Timers due at the same time fire in the order of their numbers.
        """
        self.timer_nodes.append(node)
        return self.timers.add(NOT_RUNNING, kind=kind, owner=owner)

    def arrays(self, islands: list[int]) -> dict[str, np.ndarray]:
        """Return the arrays of records and the tables.

        Args:
            islands: for each node the number of its island, from 0.
        """
        found = {name: np.array(own, np.int64) for name, own in vars(self).items() if isinstance(own, list)}
        found |= {name: own.array() for name, own in vars(self).items() if isinstance(own, Rows)}
        heap, beginnings = heaps(found["timers"], np.array(islands)[found.pop("timer_nodes")])
        return found | {"heap": heap, "islands": beginnings, "channels": self.channels}


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
