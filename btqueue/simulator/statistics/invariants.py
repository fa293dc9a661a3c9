"""Invariants of every run of any scenario: conservation and Little's law."""

import numpy as np

from btqueue.simulator.records.arrays import State, columns
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.nodes import QUEUE_KINDS
from btqueue.simulator.statistics.census import Census, packets_lost, take_census


class InvariantViolated(RuntimeError):
    """The simulator's counts are inconsistent: do not use its numbers; report the scenario and the seed."""


def check_invariants(sim: State) -> None:
    """Raise `InvariantViolated` unless packets are conserved and Little's law holds exactly.

    For each flow: inside at the start + sent = delivered + lost (by every cause) + inside now. For each
    queue: inside at the start + offered = refused + served + inside now, and the area under the queue length
    is the sum of the times spent in the queue by packets served and packets still inside (whole nanoseconds,
    so equality is exact). Every packet, segment and message in use is in some queue, line or list.
    """
    census = take_census(sim)
    check_flows(sim, census)
    check_queues(sim, census)
    check_piconets(sim)
    check_pools(sim, census)


def check_flows(sim: State, census: Census) -> None:
    """Check that no flow gains or loses packets."""
    flow = columns(sim.flow_statistics)
    require(
        flow.inside_at_start + flow.packets_sent,
        flow.packets_delivered + packets_lost(flow) + census.packets,
        "packets of flow {} are not conserved",
    )


def check_queues(sim: State, census: Census) -> None:
    """Check conservation and Little's law in every queue."""
    count, length = columns(sim.queue_statistics), columns(sim.queues).length
    require(
        count.inside_at_start + count.offered,
        count.refused + count.served + length,
        "packets of queue {} are not conserved",
    )
    area = count.area + length * (int(sim.clock[0].now) - count.changed_at)
    require(area, count.sojourn + census.sojourn, "Little's law fails in queue {}")


def check_piconets(sim: State) -> None:
    """Check that every central's count of waiting packets equals the packets in its queues."""
    waiting = np.zeros(len(sim.piconets), np.int64)
    piconet = columns(sim.ports).piconet
    radio = np.flatnonzero(piconet != NOTHING)
    np.add.at(waiting, piconet[radio], columns(sim.queues).length[radio])
    require(columns(sim.piconets).waiting, waiting, "piconet {} has a wrong count of its waiting packets")


def check_pools(sim: State, census: Census) -> None:
    """Check that nothing in use has been lost: packets and their segments, segments in lines, messages."""
    clock = sim.clock[0]
    require_number(len(sim.packets) - clock.free_packets, int(columns(sim.queues).length.sum()), "packets")
    require_number(len(sim.segments) - clock.free_segments, int(census.segments.sum()), "segments")
    require_number(len(sim.messages) - clock.free_messages, int(census.messages.sum()), "messages")


def require(left: np.ndarray, right: np.ndarray, message: str) -> None:
    """Raise unless both sides are equal everywhere."""
    wrong = left != right
    if wrong.any():
        index = int(np.argmax(wrong))
        kinds = f"(kinds: {', '.join(QUEUE_KINDS)})" if "queue" in message else ""
        raise InvariantViolated(f"{message.format(index)} {kinds}: {left[index]} is not {right[index]}")


def require_number(in_use: int, found: int, what: str) -> None:
    """Raise unless every entry in use was found."""
    if in_use != found:
        raise InvariantViolated(f"{in_use} {what} are in use, but only {found} were found in the network")
