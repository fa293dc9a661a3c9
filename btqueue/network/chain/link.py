"""One hop of a chain under repetition: how a segment and its acknowledgement share the air.

A frame is a packet down and one up; the side without data sends POLL or NULL of one slot. An acknowledgement
goes the other way in the frames of the segments that follow. So a segment costs the slots of its own packets,
those of the acknowledgement's, and one slot for each frame in which the other side is silent. Exact in the
mean for reliable feedback.
"""

from functools import cached_property
from typing import NamedTuple

from btqueue.network.repetition import Train, segment_bytes, train_of
from btqueue.scenario import Scenario


class _Trains(NamedTuple):
    data: Train
    ack: Train


class Hop(_Trains):
    """What a segment and its acknowledgement need on one hop; times in slots."""

    @cached_property
    def carried(self) -> float:
        """Mean slots of the packets of both, repetitions included."""
        return self.data.slots + self.ack.slots

    @cached_property
    def time(self) -> float:
        """Mean time for a segment and an acknowledgement while neither waits for the other."""
        return self.carried + abs(self.data.frames - self.ack.frames)

    @cached_property
    def alone(self) -> float:
        """Mean time for a segment and then its acknowledgement, with nothing else to send."""
        return self.data.time() + self.ack.time()

    @cached_property
    def least(self) -> float:
        """Time of both without an error."""
        data, ack = len(self.data.packets), len(self.ack.packets)
        return self.data.least(0.0) + self.ack.least(0.0) + abs(data - ack)

    @cached_property
    def variance(self) -> float:
        """Variance of `time`: an acknowledgement's further attempt takes the place of a silent slot."""
        return self.data.variance() + self.ack.variance(-1.0)


def hop_of(scenario: Scenario, ber: float, quality: float) -> Hop:
    """Return the service on a hop whose radio has this bit error rate and link quality."""
    return Hop(*(train_of(scenario, size, ber, quality) for size in (segment_bytes(scenario), 0)))
