"""All records of one replication, gathered in a `State`: one array for each kind of entity."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from btqueue.simulator.records.connections import (
    backlog_dtype,
    connection_dtype,
    flow_statistics_dtype,
    session_dtype,
)
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


class Arrays(NamedTuple):
    """One replication: arrays of records, one array for each kind of entity.

    `routes`: ports of all paths, each path ended by NOTHING. `patterns`: layouts of a flow's segments,
    repeated cyclically. `islands`: where in `heap` the timers of each part of the network begin that nothing
    connects to the rest. `error_rates` [level, type]: packet error rates, the last column for POLL and NULL.
    `type_for_level`, `type_for_quality`: the packet type that adaptation chooses. `out_of_order`,
    `scoreboard`, `sent_at`, `starts` [flow, segment number modulo their length]: what receiver and sender
    remember of segments. Histograms are [flow, bin]. `looks`: when a measurement begins and what waits is
    looked at (ns), NEVER behind the last; `seen` [look, flow or kind of queue]: what waited; `halfway`: the
    statistics of the flows in the middle.
    """

    clock: np.recarray
    settings: np.recarray
    timers: np.recarray
    heap: np.ndarray
    islands: np.ndarray
    streams: np.recarray
    packet_types: np.recarray
    layouts: np.recarray
    routes: np.ndarray
    packets: Any
    segments: Any
    messages: Any
    queues: np.recarray
    queue_statistics: np.recarray
    buckets: np.recarray
    nodes: np.recarray
    lines: np.recarray
    ports: np.recarray
    media: np.recarray
    channels: np.recarray
    error_rates: np.ndarray
    trace_levels: np.ndarray
    level_quality: np.ndarray
    type_for_level: np.ndarray
    type_for_quality: np.ndarray
    piconets: np.recarray
    links: np.recarray
    bridges: np.recarray
    connections: np.recarray
    backlogs: np.recarray
    patterns: np.ndarray
    schedules: np.ndarray
    out_of_order: np.ndarray
    scoreboard: np.ndarray
    sent_at: np.ndarray
    starts: np.ndarray
    sessions: np.recarray
    flow_statistics: np.recarray
    rtt_histogram: np.ndarray
    delay_histogram: np.ndarray
    looks: np.ndarray
    seen: np.ndarray
    halfway: np.recarray
    log: np.recarray


FIELDS: dict[str, tuple[np.dtype, int]] = {
    "clock": (clock_dtype, 1),
    "settings": (settings_dtype, 1),
    "timers": (timer_dtype, 1),
    "heap": (np.dtype(np.int64), 1),
    "islands": (np.dtype(np.int64), 1),
    "streams": (stream_dtype, 1),
    "packet_types": (packet_type_dtype, 1),
    "layouts": (layout_dtype, 1),
    "routes": (np.dtype(np.int64), 1),
    "packets": (packet_dtype, 1),
    "segments": (segment_dtype, 1),
    "messages": (message_dtype, 1),
    "queues": (queue_dtype, 1),
    "queue_statistics": (queue_statistics_dtype, 1),
    "buckets": (bucket_dtype, 1),
    "nodes": (node_dtype, 1),
    "lines": (line_dtype, 1),
    "ports": (port_dtype, 1),
    "media": (medium_dtype, 1),
    "channels": (channel_dtype, 1),
    "error_rates": (np.dtype(np.float64), 2),
    "trace_levels": (np.dtype(np.int64), 1),
    "level_quality": (np.dtype(np.float64), 1),
    "type_for_level": (np.dtype(np.int64), 1),
    "type_for_quality": (np.dtype(np.int64), 1),
    "piconets": (piconet_dtype, 1),
    "links": (link_dtype, 1),
    "bridges": (bridge_dtype, 1),
    "connections": (connection_dtype, 1),
    "backlogs": (backlog_dtype, 1),
    "patterns": (np.dtype(np.int64), 1),
    "schedules": (np.dtype(np.int64), 1),
    "out_of_order": (np.dtype(np.uint8), 2),
    "scoreboard": (np.dtype(np.uint8), 2),
    "sent_at": (np.dtype(np.int64), 2),
    "starts": (np.dtype(np.int64), 2),
    "sessions": (session_dtype, 1),
    "flow_statistics": (flow_statistics_dtype, 1),
    "rtt_histogram": (np.dtype(np.int64), 2),
    "delay_histogram": (np.dtype(np.int64), 2),
    "looks": (np.dtype(np.int64), 1),
    "seen": (np.dtype(np.int64), 2),
    "halfway": (flow_statistics_dtype, 1),
    "log": (log_dtype, 1),
}
"""Type of the entries and number of dimensions of each array of a `State`."""

WORDS = 3
"""Words of `State.addresses` for each array: its address and up to two lengths."""
# ndarray's own attributes: those of a record array first look whether they are the name of a field.
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
