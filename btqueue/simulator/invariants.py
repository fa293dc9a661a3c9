"""What must hold after every run, whatever the scenario: conservation of packets and Little's law."""

import numpy as np

from btqueue.simulator.records import QUEUE_KINDS, State
from btqueue.simulator.state import packets_inside


class InvariantViolated(RuntimeError):
    """The simulator has lost count: its numbers must not be used. Please report the scenario and the seed."""


def check_invariants(sim: State) -> None:
    """Raise `InvariantViolated` unless packets are conserved and Little's law holds exactly.

    For each flow: inside at the start + sent = delivered + refused + inside now. For each queue: inside at
    the start + offered = refused + served + inside now, and the area under the queue length is the sum of the
    times spent in the queue, of those served and of those still inside (whole nanoseconds, so equality is
    exact).
    """
    _check_flows(sim)
    _check_queues(sim)
    _check_pools(sim)


def _check_flows(sim: State) -> None:
    flow = sim.flow_statistics
    entered = flow.inside_at_start + flow.packets_sent
    accounted = (
        flow.packets_delivered + flow.refused_at_token_buffer + flow.refused_at_baseband + packets_inside(sim)
    )
    _require(entered, accounted, "packets of flow {} are not conserved")


def _check_queues(sim: State) -> None:
    count = sim.queue_statistics
    _require(
        count.inside_at_start + count.offered,
        count.refused + count.served + sim.queues.length,
        "packets of queue {} are not conserved",
    )
    now = sim.clock[0].now
    area = count.area + sim.queues.length * (now - count.changed_at)
    _require(area, count.sojourn + _sojourn_inside(sim), "Little's law fails in queue {}")


def _sojourn_inside(sim: State) -> np.ndarray:
    """Return the time (ns) that the packets inside each queue have spent there since the statistics began."""
    now, since = sim.clock[0].now, sim.clock[0].statistics_since
    spent = np.zeros(len(sim.queues), np.int64)
    for index, line in enumerate(sim.queues):
        packet = line.head
        for _ in range(line.length):
            spent[index] += now - max(sim.packets[packet].enqueued_at, since)
            packet = sim.packets[packet].next
    return spent


def _check_pools(sim: State) -> None:
    in_use = len(sim.packets) - sim.clock[0].free_packets
    _require(
        np.array([in_use]), np.array([sim.queues.length.sum()]), "packets are lost from the pool (part {})"
    )


def _require(left: np.ndarray, right: np.ndarray, message: str) -> None:
    wrong = np.flatnonzero(left != right)
    if wrong.size:
        index = int(wrong[0])
        kinds = f"(kinds: {', '.join(QUEUE_KINDS)})" if "queue" in message else ""
        raise InvariantViolated(f"{message.format(index)} {kinds}: {left[index]} is not {right[index]}")
