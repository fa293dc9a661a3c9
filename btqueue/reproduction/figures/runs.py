"""The events of a single run as arrays, for pictures of one connection over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from btqueue.scenario import Scenario


@dataclass(frozen=True)
class Events:
    """Events of a run in order of time; every array has shape (events,).

    Attributes:
        time_s: when.
        event: kind, a name in `btqueue.simulator.traces.trace.EVENT_NAMES`.
        node: where, by name.
        flow: number of the flow, from 1.
        segment: number of the segment, -1 where there is none.
        acknowledged: the next segment that an acknowledgement asks for, -1 where there is none.
        backward: whether a segment travels against the data of its flow.
        packet_type: as "DH5", empty where there is no packet.
        message: name of a CentaurusComm control message, else empty.
    """

    time_s: np.ndarray
    event: np.ndarray
    node: np.ndarray
    flow: np.ndarray
    segment: np.ndarray
    acknowledged: np.ndarray
    backward: np.ndarray
    packet_type: np.ndarray
    message: np.ndarray

    def where(self, chosen: np.ndarray) -> Events:
        """Return the events that a mask, shape (events,), chooses."""
        return Events(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def of(self, *names: str, node: str | None = None, flow: int | None = None) -> Events:
        """Return the events of these names, at a node, of a flow."""
        chosen = np.isin(self.event, names) if names else np.ones(len(self.event), bool)
        if node is not None:
            chosen = chosen & (self.node == node)
        if flow is not None:
            chosen = chosen & (self.flow == flow)
        return self.where(chosen)


def events(scenario: Scenario, replication: int = 0, only: Sequence[str] = ()) -> Events:
    """Return the events of one replication, warm-up included, from the empty network on.

    Args:
        scenario: to simulate.
        replication: its number; the same number and seed give the same run as `simulate`.
        only: names of the events to keep; all by default.

    Raises:
        ScenarioError: the simulator cannot run it.
        ValueError: no event has this name.
    """
    from btqueue.simulator.records.conventions import NOTHING, SECOND
    from btqueue.simulator.records.packets import CONTROL
    from btqueue.simulator.records.run import log_dtype
    from btqueue.simulator.traces.trace import EVENT_NAMES
    from btqueue.simulator.traces.trace_files import (
        CONTROL_NAMES,
        node_names,
        packet_type_names,
        record,
    )

    if unknown := set(only) - set(EVENT_NAMES):
        raise ValueError(f"there are no events {', '.join(sorted(unknown))}")
    wanted = [EVENT_NAMES.index(name) for name in only] or list(range(len(EVENT_NAMES)))
    kept: list[np.ndarray] = []

    def keep(log: np.ndarray) -> None:
        kept.append(np.array(log[np.isin(log["event"], wanted)]))

    record(scenario, replication, more=[keep])
    log = np.concatenate(kept) if kept else np.zeros(0, log_dtype)
    is_segment = log["kind"] != NOTHING
    message = np.where(log["kind"] == CONTROL, log["message"], NOTHING)
    return Events(
        time_s=log["time"] / SECOND,
        event=_named(log["event"], EVENT_NAMES, NOTHING),
        node=_named(log["node"], node_names(scenario), NOTHING),
        flow=log["flow"] + 1,
        segment=np.where(is_segment & (log["number"] != NOTHING), log["number"], -1),
        acknowledged=np.where(is_segment & log["acknowledges"], log["ack"], -1),
        backward=np.asarray(log["backward"], bool),
        packet_type=_named(log["packet_type"], packet_type_names(scenario), NOTHING),
        message=_named(message, CONTROL_NAMES, NOTHING),
    )


def again(sent: Events) -> np.ndarray:
    """Return whether each segment of a flow had been sent before, shape (events,)."""
    first = np.unique(sent.segment, return_index=True)[1]
    return ~np.isin(np.arange(len(sent.segment)), first)


def duplicate(heard: Events) -> np.ndarray:
    """Return whether each acknowledgement of a flow asks for nothing new, shape (events,)."""
    before = np.maximum.accumulate(np.concatenate(([0], heard.acknowledged[:-1])))
    return heard.acknowledged <= before


def _named(numbers: np.ndarray, names: Sequence[str], nothing: int) -> np.ndarray:
    """Return names for numbers, empty for *nothing*."""
    known = np.array([*names, ""], dtype=str)
    return known[np.where(numbers == nothing, len(names), numbers).astype(int)]
