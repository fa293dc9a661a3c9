"""All records of one replication, gathered in a `State`: one array for each kind of entity."""

from functools import cache, cached_property
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from btqueue.simulator.records.connections import (
    backlog_dtype,
    connection_dtype,
    flow_statistics_dtype,
    session_dtype,
)
from btqueue.simulator.records.le_links import le_link_dtype
from btqueue.simulator.records.nodes import (
    bucket_dtype,
    channel_dtype,
    line_dtype,
    medium_dtype,
    node_dtype,
    port_dtype,
    queue_dtype,
    queue_statistics_dtype,
)
from btqueue.simulator.records.packets import (
    layout_dtype,
    message_dtype,
    packet_dtype,
    packet_type_dtype,
    segment_dtype,
)
from btqueue.simulator.records.piconets import bridge_dtype, link_dtype, piconet_dtype
from btqueue.simulator.records.run import clock_dtype, log_dtype, settings_dtype, stream_dtype, timer_dtype

# Array, type of its entries, and number of its dimensions.
Integers = Annotated[np.ndarray, np.dtype(np.int64), 1]
Reals = Annotated[np.ndarray, np.dtype(np.float64), 1]
IntegerRows = Annotated[np.ndarray, np.dtype(np.int64), 2]
RealRows = Annotated[np.ndarray, np.dtype(np.float64), 2]
ByteRows = Annotated[np.ndarray, np.dtype(np.uint8), 2]


@cache
def record_type(dtype: np.dtype) -> np.dtype:
    """Return the type with which a view as a record array costs nothing: the view itself would make it."""
    return np.dtype((np.record, dtype))


@cache
def empty_row(dtype: np.dtype) -> dict[str, Any]:
    """Return a record of zeros by field; not to be changed."""
    return dict(zip(dtype.names or (), np.zeros((), dtype).item(), strict=True))


def columns(records: np.ndarray) -> Any:
    """Return the fields of records as attributes of a plain object.

    A record array has them too, but looks for each ten times as long.
    """
    plain = records.view(np.ndarray)
    return SimpleNamespace(**{name: plain[name] for name in plain.dtype.names or ()})


class Arrays(NamedTuple):
    """One replication: arrays of records, one array for each kind of entity.

    `routes`: ports of all paths, each path ended by NOTHING. `patterns`: layouts of a flow's segments,
    repeated cyclically. `islands`: where in `heap` the timers of each island begin, a part of the network
    that no path connects to the rest. `error_rates` [level, type]: packet error rates, the last column for
    POLL and NULL, or for an empty PDU. `type_for_level`, `type_for_quality`: the packet type that adaptation
    chooses. `le_neighbours`: of each link of Bluetooth Low Energy the links that share a node with it;
    `le_channels`: how many channels each class has.
    `out_of_order`, `scoreboard`, `sent_at`, `starts` [flow, segment number modulo their length]: the memory
    of receiver and sender for segments. Histograms are [flow, bin]. `looks`: when a measurement begins and
    backlogs are counted (ns), NEVER behind the last; `seen` [look, flow or kind of queue]: the backlogs;
    `halfway`: the statistics of the flows in the middle.
    """

    clock: Annotated[np.recarray, clock_dtype, 1]
    settings: Annotated[np.recarray, settings_dtype, 1]
    timers: Annotated[np.recarray, timer_dtype, 1]
    heap: Integers
    islands: Integers
    streams: Annotated[np.recarray, stream_dtype, 1]
    packet_types: Annotated[np.recarray, packet_type_dtype, 1]
    layouts: Annotated[np.recarray, layout_dtype, 1]
    routes: Integers
    packets: Annotated[Any, packet_dtype, 1]
    segments: Annotated[Any, segment_dtype, 1]
    messages: Annotated[Any, message_dtype, 1]
    queues: Annotated[np.recarray, queue_dtype, 1]
    queue_statistics: Annotated[np.recarray, queue_statistics_dtype, 1]
    buckets: Annotated[np.recarray, bucket_dtype, 1]
    nodes: Annotated[np.recarray, node_dtype, 1]
    lines: Annotated[np.recarray, line_dtype, 1]
    ports: Annotated[np.recarray, port_dtype, 1]
    media: Annotated[np.recarray, medium_dtype, 1]
    channels: Annotated[np.recarray, channel_dtype, 1]
    error_rates: RealRows
    trace_levels: Integers
    level_quality: Reals
    type_for_level: Integers
    type_for_quality: Integers
    piconets: Annotated[np.recarray, piconet_dtype, 1]
    links: Annotated[np.recarray, link_dtype, 1]
    bridges: Annotated[np.recarray, bridge_dtype, 1]
    le_links: Annotated[np.recarray, le_link_dtype, 1]
    le_neighbours: Integers
    le_channels: Integers
    connections: Annotated[np.recarray, connection_dtype, 1]
    backlogs: Annotated[np.recarray, backlog_dtype, 1]
    patterns: Integers
    schedules: Integers
    out_of_order: ByteRows
    scoreboard: ByteRows
    sent_at: IntegerRows
    starts: IntegerRows
    sessions: Annotated[np.recarray, session_dtype, 1]
    flow_statistics: Annotated[np.recarray, flow_statistics_dtype, 1]
    rtt_histogram: IntegerRows
    delay_histogram: IntegerRows
    looks: Integers
    seen: IntegerRows
    halfway: Annotated[np.recarray, flow_statistics_dtype, 1]
    log: Annotated[np.recarray, log_dtype, 1]


FIELDS: dict[str, tuple[np.dtype, int]] = {
    name: kind.__metadata__ for name, kind in get_type_hints(Arrays, include_extras=True).items()
}
"""Type of the entries and number of dimensions of each array of a `State`."""

WORDS = 3
"""Words of `State.addresses` for each array: its address and up to two lengths."""
# ndarray's own attributes: a record array first looks for a field of the name.
DTYPE, SHAPE, FLAGS, CTYPES = (
    getattr(np.ndarray, name).__get__ for name in ("dtype", "shape", "flags", "ctypes")
)


class State(Arrays):
    """One replication, whose arrays may change but not move: compiled code keeps their addresses."""

    @cached_property
    def addresses(self) -> np.ndarray:
        """Addresses and shapes of the arrays, shape (fields * WORDS,).

        Raises:
            TypeError: an array is not of the type that compiled code expects.
        """
        words: list[int] = []
        for array, (name, (dtype, dimensions)) in zip(self, FIELDS.items(), strict=True):
            shape = SHAPE(array)
            if DTYPE(array) != dtype or len(shape) != dimensions or not FLAGS(array).c_contiguous:
                raise TypeError(f"State.{name} must be an array of {dimensions} dimensions of {dtype}")
            words += [CTYPES(array).data, *shape, *[0] * (WORDS - 1 - dimensions)]
        return np.array(words, np.int64)
