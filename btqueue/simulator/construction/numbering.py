"""Give out places in the arrays of a state that is being built: rows, timers and random streams."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from btqueue.scenario.fields import Table
from btqueue.simulator.machinery.timers import LARGEST_SCAN
from btqueue.simulator.records.arrays import FIELDS, empty_row, plain, record_type
from btqueue.simulator.records.conventions import NEVER, NOTHING, nanoseconds

Numbers = dict[Hashable, dict[str, object]]
"""Fields that rows have in common with other rows, by the name of their group: all that follows from numbers
of the scenario."""
CONSTANT: Numbers = {
    None: {},
    "timer": {"due": NEVER},
    "clock": dict.fromkeys(("arrived", "entering", "sending", "acknowledging"), NOTHING),
    "empty": {"head": NOTHING, "tail": NOTHING},
    "no bucket": {"queue": NOTHING, "timer": NOTHING},
    "no radio": dict.fromkeys(("piconet", "link", "channel", "line"), NOTHING),
}
"""The same for groups that are alike in all scenarios."""


def from_keys(
    table: Table, dtype: np.dtype, words: Mapping[str, Sequence[object]] = MappingProxyType({})
) -> dict[str, object]:
    """Return the fields of a record that have the same names as keys of a table, if the keys have values.

    The field of a time is in ns, and its name lacks `_s`. The field of a word is the place of this word among
    `words`.
    """
    found: dict[str, object] = {}
    for key, name in _fields_of(type(table), dtype):
        if (value := getattr(table, key)) is not None:
            given = words[key].index(value) if key in words else value
            found[name] = given if name == key else nanoseconds(value)
    return found


@cache
def _fields_of(table: type[Table], dtype: np.dtype) -> list[tuple[str, str]]:
    """Return keys of a table and the fields that have their names."""
    names = dtype.names or ()
    return [(key, key.removesuffix("_s")) for key in table.model_fields if key.removesuffix("_s") in names]


class Rows:
    """Rows of one record type, added one by one with named fields; fields not named are 0 or False.

    A row may be one of a group of rows, with more fields.
    """

    def __init__(self, dtype: np.dtype) -> None:
        """Start without rows."""
        self.dtype = dtype
        self.rows: list[dict] = []
        self.groups: list[Hashable] = []

    def add(self, group: Hashable = None, **fields: object) -> int:
        """Add a row of a group and return its index."""
        self.rows.append(fields)
        self.groups.append(group)
        return len(self.rows) - 1

    def __getitem__(self, index: int) -> dict:
        """Return the named fields of a row, except the fields of its group, to be changed in place."""
        return self.rows[index]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def array(self, numbers: Numbers) -> np.ndarray:
        """Return the rows as an array.

        Raises:
            KeyError: a row names a field that records of this type do not have.
        """
        if not self.rows:
            return np.zeros(0, record_type(self.dtype))
        dtype, defaults = record_type(self.dtype), empty_row(self.dtype)
        names, kinds = dict.fromkeys(chain.from_iterable(self.rows)), self.members
        if not (names.keys() | set().union(*(numbers[group] for group in kinds))) <= defaults.keys():
            raise KeyError(f"records have the fields {list(defaults)}, not all of {list(names)}")
        table = np.zeros(len(self.rows), dtype)
        whole = table.view(f"V{dtype.itemsize}")
        for group, members in kinds.items():
            one = np.array([tuple((defaults | numbers[group]).values())], dtype).view(whole.dtype)
            whole[members] = one
        for name in names:
            try:
                table[name] = [row[name] for row in self.rows]
            except KeyError:
                having = [index for index, row in enumerate(self.rows) if name in row]
                table[name][having] = [self.rows[index][name] for index in having]
        return table

    @cached_property
    def members(self) -> dict[Hashable, list[int]]:
        """The rows of each group, once all were added."""
        found: dict[Hashable, list[int]] = {}
        for place, group in enumerate(self.groups):
            found.setdefault(group, []).append(place)
        return found


def write(table: np.ndarray, rows: list[int], before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Write the changed fields of a group of rows into an array of records."""
    defaults = empty_row(table.dtype)
    for name in before.keys() | now.keys():
        value = now.get(name, defaults[name])
        if value != before.get(name, defaults[name]):
            plain(table)[name][rows] = value


class Draft(SimpleNamespace):
    """A state that is being built: `Rows` for each of its arrays of records, lists for tables of numbers.

    `port_of`: the port from one node to another; `stream_count`: random streams that were given out.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        records = {name: Rows(dtype) for name, (dtype, _) in FIELDS.items() if dtype.names}
        super().__init__(**records, routes=[], le_neighbours=[], port_of={}, timer_nodes=[], channel_of=[])
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
        return self.timers.add("timer", kind=kind, owner=owner)

    def arrays(self, islands: list[int], numbers: Numbers) -> dict[str, np.ndarray]:
        """Return the arrays of records, of routes and of neighbours.

        Args:
            islands: for each node the number of its island, from 0.
            numbers: of all groups.
        """
        found = {name: np.array(getattr(self, name), np.int64) for name in ("routes", "le_neighbours")}
        found |= {name: own.array(numbers) for name, own in self.records.items()}
        heap, beginnings = heaps(found["timers"], np.array(islands)[self.timer_nodes])
        return found | {"heap": heap, "islands": beginnings}

    @property
    def records(self) -> dict[str, Rows]:
        """The rows of each array of records."""
        return {name: own for name, own in vars(self).items() if isinstance(own, Rows)}

    def members(self) -> dict[Hashable, list[tuple[str, list[int]]]]:
        """Return the rows of each group, with the names of their arrays."""
        found: dict[Hashable, list[tuple[str, list[int]]]] = {}
        for name, own in self.records.items():
            for group, rows in own.members.items():
                found.setdefault(group, []).append((name, rows))
        return found


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
