"""How a lone segment and its acknowledgement cross an idle piconet, slot by slot on average.

The central visits its stations in turn. A frame is a packet or POLL and a packet or NULL; a visit ends with
its limit of frames, or with a frame that was empty. With nobody else sending, every step follows from this
order but for the moment in the cycle at which the segment comes, which is evenly distributed. Two rules
decide whether an acknowledgement just misses a visit: a station answers a packet with a packet that it had
before, and the central has decided on the next frame when a packet ends.

A segment crosses up to four ports: one or two with the data, one or two with the acknowledgement.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.network.piconet.trains import Sent, fills_after

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


class Visits(NamedTuple):
    """The numbers of a polling discipline (`disciplines`).

    Attributes:
        first: (2,) mean slots until the first packet of an idle link is sent, POLL included; down, up.
        polls: (2,) visits of each idle station between two of a busy one, by way.
        closes: whether a visit ends with the last packet that it found (0 or 1).
        missed_up: slots until an acknowledgement goes up, if the data ended their visit.
        missed_down: slots until one goes down, if the data did not end their visit, and if they did.
        passed: (3,) visits of another station during the first wait, and during those of acknowledgements
            that go up and down; large where other queues go first.
        interleaved: whether busy stations take turns frame by frame (0 or 1).
        plain: whether stations are visited in cyclic order, each until a frame is empty or the limit is
            reached (0 or 1).
    """

    first: Array
    polls: Array
    closes: Array
    missed_up: Array
    missed_down: Array
    passed: Array
    interleaved: Array
    plain: Array


class Idle(NamedTuple):
    """An idle piconet: stations, whether the central puts trains together (0 or 1), and its polling."""

    stations: Array
    whole: Array
    polling: Visits


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

    def train(self, at: int, sent: Sent, relayed: Array, between: Array, up: Array, ends: Array) -> None:
        """Go from the first frame of a train on its first port to its end on the last.

        Args:
            at: crossing of the first port.
            sent: transmissions.
            relayed: whether there is a second port.
            between: stations visited between the two.
            up: whether the first port goes up.
            ends: probability that its last visit ends with its last packet, not an empty frame.
        """
        n, whole = self.idle.stations, self.idle.whole
        alone = relayed * (n == 1)  # up and down on one link: each packet goes down while the next comes up
        on = relayed * (n > 1)
        packets = on * (1.0 - whole)  # go up in a visit, and down later in the same cycle
        polls = jnp.stack([1.0 - up, up]) @ self.idle.polling.polls
        away = self.away * polls - EMPTY_FRAME * packets
        self.hop(at, sent, 1.0 + packets, away, 1.0 - alone)
        self.send(alone * (2.0 * sent.mean * sent.mean_slots - 1.0))
        closing = EMPTY_FRAME * (1.0 - ends)
        self.wait(at + 1, EMPTY_FRAME * between + closing, between / jnp.maximum(n - 1.0, 1.0), on)
        self.hop(at + 1, sent, jnp.ones(()), self.away * polls, on * whole)
        visits = sent.visits
        self.send(packets * (sent.mean * (sent.mean_slots + 1.0) / visits - 1.0))

    def turn(self, data: Sent, up: Array) -> None:
        """Wait from the end of the data for the first chance of the acknowledgement."""
        polling, several, full = self.idle.polling, self.idle.stations > 1, self.ends(data)
        # down: the frame that follows is empty, and ends the visit unless the limit did
        next_visit = jnp.stack([1.0 - full, full]) @ polling.missed_down
        self.send((1.0 - up) * polling.interleaved * next_visit)
        self.wait(BACK, next_visit, polling.passed[2], (1.0 - up) * (1.0 - polling.interleaved))
        self.send(up * EMPTY_FRAME * jnp.where(several, 1.0 - full, 1.0))
        self.wait(BACK, polling.missed_up, polling.passed[1], up * full * several)

    def ends(self, sent: Sent) -> Array:
        """Return the probability that a visit ends with the last packet of a train, not an empty frame."""
        return jnp.maximum(sent.fills_last, self.idle.polling.closes)

    @property
    def waits(self) -> Waits:
        return Waits(self.slots, self.visits, self.pending)


class Ways(NamedTuple):
    """The ways of a lone segment.

    Attributes:
        there: to its receiver.
        back: there and back, the acknowledgement coming at once.
        later: the same, the acknowledgement coming at any time; its own wait for that is left out.
    """

    there: Waits
    back: Waits
    later: Waits


def lone_ways(route: Route, data: Sent, ack: Sent | None, idle: Idle, limit: Array) -> Ways:
    """Return the ways of a lone segment and of its acknowledgement, if there is one."""
    way = _Way(idle)
    down = route.up * (1.0 - route.relayed)
    by_way = jnp.stack([down, 1.0 - down])
    # half a cycle of empty frames where it is cyclic
    way.wait(DATA, by_way @ idle.polling.first, idle.polling.passed[0], jnp.ones(()))
    way.train(DATA, data, route.relayed, route.between[0], 1.0 - down, way.ends(data))
    there = way.waits
    if ack is None:
        return Ways(there, there, there)
    later = _Way(idle)
    first = jnp.stack([1.0 - route.up, route.up]) @ idle.polling.first
    later.wait(BACK, first, idle.polling.passed[0], jnp.ones(()))
    # up, it goes on in the visit of the last frames of data, if the limit leaves a frame
    after = fills_after(data, ack, limit) + data.fills_last * ack.fills_last
    ends = jnp.where(route.up * idle.polling.plain > 0.0, after, way.ends(ack))
    way.turn(data, route.up)
    way.train(BACK, ack, route.relayed, route.between[1], route.up, ends)
    later.train(BACK, ack, route.relayed, route.between[1], route.up, later.ends(ack))
    return Ways(there, way.waits, jax.tree.map(jnp.add, there, later.waits))
