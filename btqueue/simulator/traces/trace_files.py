"""Run one replication with its log on and write it: all events as Parquet, one host's segments as pcap."""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology
from btqueue.simulator.construction.radio_tables import types_of
from btqueue.simulator.construction.state import grow, network_of, new_state
from btqueue.simulator.engine import REACHED, advance
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import NOTHING, SECOND
from btqueue.simulator.records.nodes import QUEUE_KINDS
from btqueue.simulator.records.packets import CONTROL
from btqueue.simulator.traces.extras import require
from btqueue.simulator.traces.pcap import PcapWriter
from btqueue.simulator.traces.trace import EVENT_NAMES

CHUNK_S = 5.0
"""Simulated seconds between two reports of progress."""
KIND_NAMES = ("data", "ack", "syn", "syn-ack", "datagram", "control")
CONTROL_NAMES = ("OBJ", "PROCEED", "REJ", "NOPE", "DONE", "ACK")
"""Names of the `message` of a control segment, in the order of `btqueue.simulator.records.connections`."""

Sink = Callable[[Any], None]
"""Takes the log's records, in order of time; they are overwritten afterwards."""


def record(
    scenario: Scenario,
    replication: int = 0,
    *,
    parquet: str | Path | None = None,
    pcap: str | Path | None = None,
    at: str | None = None,
    progress: Callable[[float], None] | None = None,
    more: Sequence[Sink] = (),
) -> int:
    """Run one replication, warm-up included, and write its events; return the number of events written.

    A run that is interrupted leaves files that are valid up to the interruption.

    Args:
        scenario: the scenario to simulate.
        replication: its number; the same number and seed give the same run as `simulate`.
        parquet: file for all events.
        pcap: file for the segments that one host sends and receives.
        at: name of that host; the source of the first flow by default.
        progress: called with the share of the run that was finished since the last call.
        more: called with the records of all events, in order of time.

    Raises:
        MissingPackage: `parquet` needs pyarrow, which is not installed.
        ValueError: there is no node `at`.
    """
    with ExitStack() as files:
        sim = new_state(scenario, replication, logging=True)
        sinks = list(more)
        if parquet is not None:
            sinks.append(files.enter_context(ParquetSink(Path(parquet), sim, scenario)).write)
        if pcap is not None:
            node = int(sim.connections[0].source) if at is None else node_number(scenario, at)
            sinks.append(PcapWriter(files.enter_context(Path(pcap).open("wb")), sim, node).write)
        return play(sim, length_s(scenario), sinks, progress)


def node_names(scenario: Scenario) -> list[str]:
    """Return the names of all nodes."""
    return list(topology(scenario).nodes)


def port_names(sim: State, scenario: Scenario) -> list[str]:
    """Return the names of all ports: the sending and the receiving node, as `p1.1>c1`."""
    nodes = node_names(scenario)
    return [f"{nodes[port.node]}>{nodes[port.peer]}" for port in sim.ports]


def queue_names(sim: State, scenario: Scenario) -> list[str]:
    """Return the names of all queues: the port that they belong to and their kind, as `p1.1>c1 uplink`."""
    ports = port_names(sim, scenario)
    owners = dict(enumerate(ports))
    owners |= dict(zip(sim.buckets.queue.tolist(), ports, strict=True))
    owners.pop(NOTHING, None)
    return [f"{owners[number]} {QUEUE_KINDS[queue.kind]}" for number, queue in enumerate(sim.queues)]


def packet_type_names(scenario: Scenario) -> list[str]:
    """Return the names of the packet types of the link, of Bluetooth Low Energy the payloads of PDUs."""
    if scenario.link.bearer == "le":
        return [f"{kind.payload} bytes" for kind in network_of(scenario).packet_types]
    return [kind.name for kind in types_of(scenario.link)]


def node_number(scenario: Scenario, name: str) -> int:
    """Return the number of a node; a ValueError lists the names there are."""
    names = node_names(scenario)
    if name not in names:
        raise ValueError(f"there is no node {name!r}; nodes are {', '.join(names[:20])}")
    return names.index(name)


def length_s(scenario: Scenario) -> float:
    """Return how long a run is (s), without an automatic warm-up."""
    warmup = scenario.run.warmup_s
    return scenario.run.duration_s + (warmup if not isinstance(warmup, str) else 0.0)


def play(sim: State, end_s: float, sinks: list[Sink], progress: Callable[[float], None] | None = None) -> int:
    """Advance to `end_s` and hand the log's records to every sink; return how many there were."""
    chunks = max(1, math.ceil(end_s / CHUNK_S))
    written = 0
    try:
        for chunk in range(1, chunks + 1):
            while advance(sim, round(end_s * chunk / chunks * SECOND)) != REACHED:
                if sim.clock[0].log_length > 0:
                    written += drain(sim, sinks)
                else:
                    sim = grow(sim)
            if progress is not None:
                progress(1 / chunks)
    finally:
        written += drain(sim, sinks)
    return written


def drain(sim: State, sinks: list[Sink]) -> int:
    """Hand the log's records to every sink and empty the log; return how many there were.

    Raises:
        OverflowError: the log was too short and lost records (a bug).
    """
    clock = sim.clock[0]
    length = int(clock.log_length)
    clock.log_length = 0
    if length > len(sim.log):
        raise OverflowError(f"{length - len(sim.log)} events did not fit into the log")
    if length:
        for sink in sinks:
            sink(sim.log[:length])
    return length


class ParquetSink:
    """Writes the log as one table, a row group for each part that it is given."""

    def __init__(self, path: Path, sim: State, scenario: Scenario) -> None:
        """Open the file; names are taken from the scenario.

        Raises:
            ImportError: pyarrow is not installed.
        """
        self.pyarrow: Any = require("pyarrow", "Parquet files")
        self.names = {
            "event": EVENT_NAMES,
            "node": node_names(scenario),
            "port": port_names(sim, scenario),
            "kind": KIND_NAMES,
            "packet_type": packet_type_names(scenario),
            "message": CONTROL_NAMES,
        }
        schema = self.table(sim.log[:0]).schema
        self.file = require("pyarrow.parquet", "Parquet files").ParquetWriter(path, schema)

    def __enter__(self) -> "ParquetSink":
        """Return the sink itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Complete the file."""
        self.file.close()

    def write(self, log: Any) -> None:
        """Append the log's records."""
        self.file.write_table(self.table(log))

    def table(self, log: Any) -> Any:
        """Return the records as an Arrow table, with names for numbers and nulls where no value applies."""
        segment = log.kind != NOTHING
        acknowledges = segment & log.acknowledges
        columns = {
            "time_s": self.values(log.time / SECOND),
            **{name: self.named(name, log[name]) for name in ("event", "node", "port", "kind")},
            "flow": self.values(log.flow + 1),
            "incarnation": self.values(log.incarnation),
            "backward": self.values(log.backward, segment),
            "segment": self.values(log.number, segment & (log.number != NOTHING)),
            "acknowledged_segments": self.values(log.ack, acknowledges),
            "sack_blocks": self.blocks(log),
            "message": self.named("message", np.where(log.kind == CONTROL, log.message, NOTHING)),
            "size_bytes": self.values(log.bytes, segment),
            "application_bytes": self.values(log.application, segment),
            "packet_type": self.named("packet_type", log.packet_type),
            "timestamp_s": self.values(log.timestamp / SECOND, segment),
            "echo_s": self.values(log.echo / SECOND, acknowledges),
            "cwnd_segments": self.values(log.cwnd),
            "ssthresh_segments": self.values(log.ssthresh),
        }
        return self.pyarrow.table(columns)

    def values(self, values: np.ndarray, valid: np.ndarray | None = None) -> Any:
        """Return a column, null where it is not valid."""
        mask = None if valid is None else ~np.asarray(valid)
        return self.pyarrow.array(np.ascontiguousarray(values), mask=mask)

    def named(self, column: str, numbers: np.ndarray) -> Any:
        """Return a column of names for numbers, null for NOTHING."""
        numbers = np.asarray(numbers)
        places = self.pyarrow.array(numbers.astype(np.int32), mask=numbers == NOTHING)
        names = self.pyarrow.array(self.names[column], self.pyarrow.string())
        return self.pyarrow.DictionaryArray.from_arrays(places, names)

    def blocks(self, log: Any) -> Any:
        """Return the selective acknowledgements: lists of `start`, `end` (segments, end not included)."""
        reported = np.arange(log.block_start.shape[1]) < log.blocks[:, None]
        offsets = np.concatenate([[0], np.cumsum(log.blocks)]).astype(np.int32)
        edges = [self.pyarrow.array(edge[reported]) for edge in (log.block_start, log.block_end)]
        pairs = self.pyarrow.StructArray.from_arrays(edges, names=["start", "end"])
        return self.pyarrow.ListArray.from_arrays(self.pyarrow.array(offsets), pairs)
