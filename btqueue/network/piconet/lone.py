"""How a lone segment and its acknowledgement cross an idle piconet, slot by slot on average.

The central visits its stations in turn. A frame is a packet or POLL and a packet or NULL; a visit ends with
its limit of frames, or with a frame that was empty. With nobody else sending, every step follows from this
order but for the moment in the cycle at which the segment comes, which is evenly distributed. Two rules
decide whether an acknowledgement just misses a visit: a station answers a packet with a packet that it had
before, and the central has decided on the next frame when a packet ends.

A segment crosses up to four ports: one or two with the data, one or two with the acknowledgement.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from btqueue.network.piconet.trains import Sent

EMPTY_FRAME = 2.0
"""POLL and NULL (slots)."""
DATA, DATA_ON, BACK, BACK_ON = range(4)
"""The crossings of a flow: of data and of acknowledgements, at the first station and at the second."""


class Waits(NamedTuple):
    """A way as others' traffic finds it: (4,) by crossing.

    Attributes:
        slots: until the visits that are waited for, with the own frames before each.
        visits: of each other station in these slots.
        rest: own frames after the last wait (slots).
    """

    slots: Array
    visits: Array
    rest: Array


class Route(NamedTuple):
    """Where a flow goes; flags are 0 or 1.

    Attributes:
        relayed: whether between two stations.
        up: whether the acknowledgement begins its way up.
        between: (2,) stations visited between the two, on the way of the data and of the acknowledgement.
    """

    relayed: Array
    up: Array
    between: Array


class Idle(NamedTuple):
    """An idle piconet: stations, and whether the central puts trains together (0 or 1)."""

    stations: Array
    whole: Array


class _Way:
    """Adds up steps: own frames are pending until a wait, which holds up all that is pending."""

    def __init__(self, idle: Idle) -> None:
        self.idle = idle
        self.away = EMPTY_FRAME * (idle.stations - 1.0)  # slots of the other stations' empty visits
        self.slots = self.visits = jnp.zeros(4)
        self.pending = jnp.zeros(())

    def send(self, slots: Array) -> None:
        self.pending = self.pending + slots

    def wait(self, at: int, slots: Array, visits: Array, probability: Array) -> None:
        """Wait for a visit of the port of a crossing, with a probability."""
        self.slots = self.slots.at[at].add(probability * (slots + self.pending))
        self.visits = self.visits.at[at].add(probability * visits)
        self.pending = self.pending * (1.0 - probability)

    def hop(self, at: int, sent: Sent, hops: Array, away: Array, happens: Array) -> None:
        """Send a train from the first visit on: visits before the last one, then the last one."""
        visits = sent.visits
        frames = sent.mean * (sent.mean_slots + 1.0)  # each with an empty other half
        more = visits - 1.0
        self.send(happens * hops * frames * more / visits)
        waits = jnp.maximum(more, 1.0)
        self.wait(at, waits * away, waits, happens * jnp.minimum(more, 1.0))
        self.send(happens * (frames / visits - 1.0))

    def train(self, at: int, sent: Sent, relayed: Array, between: Array) -> None:
        """Go from the first frame of a train on its first port to its end on the last."""
        n, whole = self.idle.stations, self.idle.whole
        alone = relayed * (n == 1)  # up and down on one link: each packet goes down while the next comes up
        on = relayed * (n > 1)
        packets = on * (1.0 - whole)  # go up in a visit, and down later in the same cycle
        away = self.away - EMPTY_FRAME * packets
        self.hop(at, sent, 1.0 + packets, away, 1.0 - alone)
        self.send(alone * (2.0 * sent.mean * sent.mean_slots - 1.0))
        closing = EMPTY_FRAME * (1.0 - sent.fills_last)
        self.wait(at + 1, EMPTY_FRAME * between + closing, between / jnp.maximum(n - 1.0, 1.0), on)
        self.hop(at + 1, sent, jnp.ones(()), self.away, on * whole)
        visits = sent.visits
        self.send(packets * (sent.mean * (sent.mean_slots + 1.0) / visits - 1.0))

    def turn(self, data: Sent, up: Array) -> None:
        """Wait from the end of the data for the first chance of the acknowledgement."""
        n, full = self.idle.stations, data.fills_last
        cycle = EMPTY_FRAME * n
        # down: the frame that follows is empty, and ends the visit unless the limit did
        next_visit = full * jnp.where(n > 1, self.away, EMPTY_FRAME) + (1.0 - full) * cycle
        self.wait(BACK, next_visit, jnp.ones(()), 1.0 - up)
        self.send(up * EMPTY_FRAME * jnp.where(n > 1, 1.0 - full, 1.0))
        self.wait(BACK, cycle, jnp.ones(()), up * full * (n > 1))

    @property
    def waits(self) -> Waits:
        return Waits(self.slots, self.visits, self.pending)


def lone_way(route: Route, data: Sent, ack: Sent | None, idle: Idle) -> tuple[Waits, Waits]:
    """Return the way of a lone segment to its receiver, and with that of its acknowledgement."""
    way = _Way(idle)
    way.wait(DATA, idle.stations, jnp.full((), 0.5), jnp.ones(()))  # half a cycle of empty frames
    way.train(DATA, data, route.relayed, route.between[0])
    there = way.waits
    if ack is not None:
        way.turn(data, route.up)
        way.train(BACK, ack, route.relayed, route.between[1])
    return there, way.waits
