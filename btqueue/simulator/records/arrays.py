"""All records of one replication, gathered in a `State`: one array for each kind of entity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, cached_property
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from btqueue.simulator.records import connections, nodes, packets, run
from btqueue.simulator.records.le_links import le_link_dtype
from btqueue.simulator.records.piconets import bridge_dtype, link_dtype, piconet_dtype

INTEGER, REAL, BYTE = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.uint8)
FIELDS: dict[str, tuple[np.dtype, int]] = {
    # what counts and metrics are read from
    "clock": (run.clock_dtype, 1),
    "queues": (nodes.queue_dtype, 1),
    "queue_statistics": (nodes.queue_statistics_dtype, 1),
    "piconets": (piconet_dtype, 1),
    "links": (link_dtype, 1),
    "le_links": (le_link_dtype, 1),
    "flow_statistics": (connections.flow_statistics_dtype, 1),
    "seen": (INTEGER, 2),
    "halfway": (connections.flow_statistics_dtype, 1),
    # everything else
    "settings": (run.settings_dtype, 1),
    "pools": (run.pool_dtype, 1),
    "timers": (run.timer_dtype, 1),
    "heap": (INTEGER, 1),
    "islands": (INTEGER, 1),
    "streams": (run.stream_dtype, 1),
    "packet_types": (packets.packet_type_dtype, 1),
    "layouts": (packets.layout_dtype, 1),
    "routes": (INTEGER, 1),
    "packets": (packets.packet_dtype, 1),
    "segments": (packets.segment_dtype, 1),
    "messages": (packets.message_dtype, 1),
    "buckets": (nodes.bucket_dtype, 1),
    "nodes": (nodes.node_dtype, 1),
    "lines": (nodes.line_dtype, 1),
    "ports": (nodes.port_dtype, 1),
    "media": (nodes.medium_dtype, 1),
    "channels": (nodes.channel_dtype, 1),
    "error_rates": (REAL, 2),
    "trace_levels": (INTEGER, 1),
    "level_quality": (REAL, 1),
    "type_for_level": (INTEGER, 1),
    "type_for_quality": (INTEGER, 1),
    "bridges": (bridge_dtype, 1),
    "le_neighbours": (INTEGER, 1),
    "le_channels": (INTEGER, 1),
    "connections": (connections.connection_dtype, 1),
    "fresh": (connections.connection_dtype, 1),
    "backlogs": (connections.backlog_dtype, 1),
    "patterns": (INTEGER, 1),
    "schedules": (INTEGER, 1),
    "sessions": (connections.session_dtype, 1),
    "looks": (INTEGER, 1),
    "log": (run.log_dtype, 1),
    # zeros before the first event
    "out_of_order": (BYTE, 2),
    "scoreboard": (BYTE, 2),
    "sent_at": (INTEGER, 2),
    "starts": (INTEGER, 2),
    "rtt_histogram": (INTEGER, 2),
    "delay_histogram": (INTEGER, 2),
}
"""Type of the entries and number of dimensions of each array of a `State`."""
COUNTED = tuple(FIELDS)[:9]
"""The arrays that counts and metrics are read from."""
ZEROS = tuple(FIELDS)[-6:]
"""The arrays that hold zeros before the first event, three quarters of a network's memory."""


@cache
def record_type(dtype: np.dtype) -> np.dtype:
    """Return the type of a record array, kept because each view would otherwise make it again."""
    return np.dtype((np.record, dtype))


@cache
def empty_row(dtype: np.dtype) -> dict[str, Any]:
    """Return a record of zeros by field; not to be changed."""
    return dict(zip(dtype.names or (), np.zeros((), dtype).item(), strict=True))


def plain(records: np.ndarray) -> np.ndarray:
    """Return records as an array whose fields are read by `[name]`, in a tenth of a record array's time."""
    return records.view(np.ndarray)


class Columns:
    """The fields of records as attributes: a view of each when it is asked for."""

    def __init__(self, records: np.ndarray) -> None:
        """Take the records."""
        self._records = plain(records)

    def __getattr__(self, name: str) -> Any:
        return self._records[name]


def first_of(records: np.ndarray) -> Any:
    """Return the values of the first record as attributes; NumPy would take a microsecond for each."""
    return SimpleNamespace(**dict(zip(records.dtype.names or (), plain(records)[0].item(), strict=True)))


class Packed(NamedTuple):
    """The bytes of a state's arrays, one array behind the other, so that a single copy takes them anywhere.

    `block`: shape (bytes,), in the memory of the CPU or of a GPU; `table`: for each array its first byte and
    up to two lengths, shape (fields, WORDS).
    """

    block: Any
    table: np.ndarray

    def copy(self) -> Packed:
        """Return a copy, with zeros in the place of `ZEROS`."""
        block, end = np.zeros(len(self.block), np.uint8), self.table[PLACES[ZEROS[0]], 0]
        block[:end] = self.block[:end]
        return self._replace(block=block)

    def written(self, arrays: Mapping[str, np.ndarray]) -> Packed:
        """Write arrays of the same shapes in the place of some and return self.

        Raises:
            TypeError: an array is not of the type that compiled code expects.
        """
        for name, array in arrays.items():
            require_type(name, array)
            begin = self.table[PLACES[name], 0]  # NumPy would copy records field by field
            self.block[begin : begin + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        return self


class State:
    """One replication: arrays of records, one array for each kind of entity.

    The arrays are views into a block of memory, made when they are asked for, unless they are given apart.
    They may change but not move: compiled code keeps their addresses.

    `routes`: ports of all paths, each path ended by NOTHING. `patterns`: layouts of a flow's segments,
    repeated cyclically. `islands`: where in `heap` the timers of each island begin, a part of the network
    that no path connects to the rest. `error_rates` [level, 1 + type]: packet error rates, in the first
    column of POLL and NULL, or of an empty PDU. `type_for_level`, `type_for_quality`: the packet type that
    adaptation chooses. `le_neighbours`: of each link of Bluetooth Low Energy the links that share a node with
    it; `le_channels`: how many channels each class has. `fresh`: the connections of sessions, as they begin
    anew.
    `out_of_order`, `scoreboard`, `sent_at`, `starts` [flow, segment number modulo their length]: the memory
    of receiver and sender for segments. Histograms are [flow, bin]. `looks`: when a measurement begins and
    backlogs are counted (ns), NEVER behind the last; `seen` [look, flow or kind of queue]: the backlogs;
    `halfway`: the statistics of the flows in the middle.
    """

    def __init__(self, packed: Packed, apart: Mapping[str, np.ndarray] = MappingProxyType({})) -> None:
        """Take the arrays of a block, and others in the place of some of them."""
        self.packed, self.apart = packed, apart

    def __getattr__(self, name: str) -> Any:
        """Make the view of an array."""
        if name not in PLACES or "apart" not in vars(self):
            raise AttributeError(name)
        kind, dtype, dimensions = ENTRIES[PLACES[name]]
        if name in self.apart:
            view = self.apart[name].view(kind)
        else:
            begin, *shape = self.packed.table[PLACES[name]].tolist()
            view = np.ndarray.__new__(kind, tuple(shape[:dimensions]), dtype, self.packed.block, begin)
        vars(self)[name] = view
        return view

    @cached_property
    def addresses(self) -> np.ndarray:
        """Addresses and shapes of the arrays, shape (fields * WORDS,)."""
        table = self.packed.table.copy()
        table[:, 0] += self.packed.block.ctypes.data
        for name, array in self.apart.items():
            table[PLACES[name], : 1 + array.ndim] = array.ctypes.data, *array.shape
        return table.ravel()

    @cached_property
    def address(self) -> int:
        """The address of `addresses`, which compiled code gets."""
        return self.addresses.ctypes.data

    def length(self, name: str) -> int:
        """Return the length of an array, of which no view is made."""
        return len(self.apart[name]) if name in self.apart else self.packed.table[PLACES[name], 1]

    def counted(self) -> State:
        """Return a copy of the state with the arrays `COUNTED` only."""
        end = self.packed.table[len(COUNTED), 0]
        apart = {name: array.copy() for name, array in self.apart.items() if name in COUNTED}
        return State(self.packed._replace(block=self.packed.block[:end].copy()), apart)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name."""
        return {name: getattr(self, name) for name in FIELDS}

    def replaced(self, **arrays: np.ndarray) -> State:
        """Return the state with other arrays in the place of some; the rest it has in common with this one.

        Raises:
            TypeError: an array is not of the type that compiled code expects.
        """
        for name, array in arrays.items():
            require_type(name, array)
        return State(self.packed, {**self.apart, **arrays})


PLACES = {name: place for place, name in enumerate(FIELDS)}
WORDS = 3
"""Words of `State.addresses` for each array: its address and up to two lengths."""
ALIGNMENT = 16
"""Every array begins at a multiple of this many bytes, more than any of its fields needs."""
ENTRIES = [
    (np.recarray, record_type(dtype), dimensions) if dtype.names else (np.ndarray, dtype, dimensions)
    for dtype, dimensions in FIELDS.values()
]
"""Kind and entries of the view of each array, and the number of its dimensions."""


# ndarray's own attributes: a record array first looks for a field of the name.
DTYPE, SHAPE = (getattr(np.ndarray, name).__get__ for name in ("dtype", "shape"))


def require_type(name: str, array: np.ndarray) -> None:
    """Make sure that an array is of the type that compiled code expects of the state's array of this name.

    Raises:
        TypeError: it is not.
    """
    dtype, dimensions = FIELDS[name]
    if DTYPE(array) != dtype or len(SHAPE(array)) != dimensions or not array.flags.c_contiguous:
        raise TypeError(f"State.{name} must be an array of {dimensions} dimensions of {dtype}")


def pack(arrays: Mapping[str, np.ndarray | tuple[int, ...]]) -> Packed:
    """Copy arrays into a new block of memory; a shape in the place of an array stands for zeros.

    Raises:
        TypeError: an array is not of the type that compiled code expects.
    """
    table, size = [], 0
    for name, (dtype, dimensions) in FIELDS.items():
        shape = array if isinstance(array := arrays[name], tuple) else SHAPE(array)
        table.append([size, *shape, *[0] * (WORDS - 1 - dimensions)])
        size += -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    packed = Packed(np.zeros(size, np.uint8), np.array(table, np.int64))
    return packed.written({name: array for name, array in arrays.items() if not isinstance(array, tuple)})
