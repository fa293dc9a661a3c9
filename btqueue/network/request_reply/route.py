"""The way between client and server, and what travels on it: plain descriptions.

`request_reply.way` says when what arrives.
"""

from dataclasses import dataclass
from typing import NamedTuple

FREE = -1
"""No medium, no port."""


class Chain(NamedTuple):
    """What is random on the longest path so far: number of processing delays, and of each radio frame."""

    delays: int = 0
    frames: tuple[tuple[float, int], ...] = ()

    @property
    def repeated_slots(self) -> float:
        """Mean slots that repeated frames take: a geometric number of times for each of them."""
        return sum(slots * failing / (1.0 - failing) for failing, slots in self.frames)


class Form(NamedTuple):
    """A size of segment: for each hop of its route how long it takes, or its fragments; how likely lost.

    Attributes:
        times_ns: for each medium, the transmission time.
        fragments: for the polled hop, (slots, probability that a transmission fails) of each packet.
        losses: for each direction and hop, the probability of loss.
    """

    times_ns: tuple[int, ...]
    fragments: tuple[tuple[int, float], ...]
    losses: tuple[tuple[float, ...], tuple[float, ...]]


class Hop(NamedTuple):
    """One hop of the route in one direction: medium, its port, buffer (packets), delay after transmission."""

    medium: int
    port: int
    buffer: int
    delay_ns: int


@dataclass(frozen=True)
class Way:
    """The description of the way.

    Attributes:
        routes: hops from the client to the server, and back.
        turns: for each medium its ports in the order of their turns.
        ports: number of ports.
        polled: the medium that is a Bluetooth hop, or `FREE`; its first port is the downlink.
        slot_ns: a slot.
        pause_slots: slots that the central spends with its other peripherals between two frames.
        processing_ns: mean of the processing delay of a segment at its sender.
    """

    routes: tuple[tuple[Hop, ...], tuple[Hop, ...]]
    turns: tuple[tuple[int, ...], ...]
    ports: int
    polled: int = FREE
    slot_ns: int = 625_000
    pause_slots: int = 0
    processing_ns: int = 0
