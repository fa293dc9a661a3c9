"""A scatternet followed with a constant number of segments inside, for ever larger numbers.

Norton's theorem of queueing networks: what `scatternet.server` needs to know of a network is its throughput
X(k) with k segments inside, each replaced at once when it leaves. The replacement is of a random flow, by an
irregular sequence that is always the same, so that the segments divide among the flows as the network makes
them. The network itself is followed exactly.
"""

from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf

import numpy as np

from btqueue.network.scatternet.air import Air, Piconet
from btqueue.network.scatternet.network import PICONETS, Scatternet
from btqueue.network.scatternet.peripheral import GOLDEN_RATIO, Flow, Peripheral, Segment
from btqueue.network.scatternet.server import Level, Population

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Segments in the network at which it is followed."""
PAUSE_PERIODS = 2
"""Longest pause of a source, in periods of the idle bridge; chosen among 1 to 8 against the simulator."""
SETTLING_ROUND_TRIPS = 5
LEAST_SAMPLES = 300
"""Round trips measured for each population, at least."""
FULL = 0.02
"""Growth of the throughput below which larger populations are no faster."""
IDLE_STAYS = 60
"""Stays of the bridge over which the empty network is averaged."""
NO_LIMIT = 1 << 30


def populations(net: Scatternet, window: int) -> Population:
    """Follow the scatternet with ever more segments inside, until it is no faster or the windows are full."""
    largest = net.flows * window
    net = without_limits(net)
    levels: list[Level] = []
    for size in [size for size in SIZES if size < largest] + [largest]:
        levels.append(follow_level(net, size, window))
        if size > 2 * net.flows and levels[-1].throughput < (1 + FULL) * levels[-2].throughput:
            break
    return Population(tuple(levels), idle_cycles(net, window), largest)


def idle_cycles(net: Scatternet, window: int) -> float:
    """Return the polling cycles a second of the empty network."""
    _, air = _closed(net, window)
    for _ in range(IDLE_STAYS):
        air.step()
    return sum(piconet.cycles / piconet.now for piconet in air.piconets) / PICONETS


def without_limits(net: Scatternet) -> Scatternet:
    """Return the scatternet with room for everything and tokens for everyone."""
    ring = replace(net.ring, buffer=NO_LIMIT, baseband=NO_LIMIT, token_rate=inf)
    return replace(net, ring=ring)


@dataclass
class Pool:
    """A constant number of segments; whoever's turn it is sends the next when one is acknowledged.

    The turns are an irregular sequence without memory of who is served: so the segments divide among the
    flows as the network makes them, which is what the aggregation asks for.

    Attributes:
        window: most segments of a flow.
        pause_s: longest pause between the end of a round trip and the next segment.
        members: the senders of both piconets, each with its piconet.
        count: segments sent so far.
        rtts: samples of the round-trip time (s).
    """

    window: int
    pause_s: float
    members: list[tuple["PoolEnd", Piconet]] = field(default_factory=list)
    count: int = 0
    rtts: list[float] = field(default_factory=list)

    def launch(self, now: float) -> None:
        """Let the sender that the quadratic Weyl sequence names, or the next one with room, send a segment.

        The other piconet may have been followed further than this one: then it sends later.
        """
        self.count += 1
        place = int(len(self.members) * (self.count**2 * GOLDEN_RATIO % 1.0))
        while self.members[place][0].outstanding >= self.window:
            place = (place + 1) % len(self.members)
        end, piconet = self.members[place]
        end.outstanding += 1
        pause = self.pause_s * (self.count * GOLDEN_RATIO % 1.0)
        heappush(end.due, max(now + pause, piconet.now))


@dataclass
class PoolEnd:
    """A sender of the pool, which also acknowledges the data that come to it."""

    pool: Pool
    flow: Flow
    opposite: Flow
    data: int
    ack: int
    outstanding: int = 0
    due: list[float] = field(default_factory=list)

    @property
    def deadline(self) -> float:
        """When the next segment is due (s)."""
        return self.due[0] if self.due else inf

    def expire(self, now: float) -> list[Segment]:
        """Send the segment that is due."""
        heappop(self.due)
        return [Segment(self.flow, True, 0, now, self.data)]

    def receive(self, segment: Segment, now: float) -> list[Segment]:
        """Acknowledge data; an acknowledgement lets the pool send its next segment."""
        if segment.is_data:
            return [Segment(self.opposite, False, 0, segment.stamp, self.ack)]
        self.outstanding -= 1
        self.pool.rtts.append(now - segment.stamp)
        self.pool.launch(now)
        return []


def alone_with(net: Scatternet, most: int) -> list[Level]:
    """Follow a lone connection with 1 to `most` segments in flight."""
    net = without_limits(net)
    return [follow_level(net, size, size, active=1) for size in range(1, most + 1)]


def follow_level(net: Scatternet, size: int, window: int, active: int | None = None) -> Level:
    """Follow the network with `size` segments in flight, of the first `active` flows, none of them ever lost.

    Before a segment goes, its source pauses for up to some periods of the idle bridge, evenly spread. Without
    that a lone segment would always find the bridge at the same place, and several would keep their distance.
    """
    pool, air = _closed(net, window)
    pool.members = pool.members[:active]
    for _ in range(size):
        pool.launch(0.0)

    def play(round_trips: int) -> None:
        wanted = len(pool.rtts) + round_trips
        while len(pool.rtts) < wanted:
            air.step()

    play(SETTLING_ROUND_TRIPS * size)
    start = air.now
    pool.rtts = []
    for piconet in air.piconets:
        piconet.forget()
    play(max(LEAST_SAMPLES, 2 * size))
    rtts, elapsed = np.array(pool.rtts), air.now - start
    cycles = sum(piconet.cycles for piconet in air.piconets) / PICONETS
    return Level(rtts.sum() / elapsed, rtts.size / elapsed, cycles / elapsed, rtts)


def _closed(net: Scatternet, window: int) -> tuple[Pool, Air]:
    """Return the pool and the air."""
    pool = Pool(window, PAUSE_PERIODS * net.idle_period_s)
    flows = [[Flow(pair) for pair in range(net.peripherals)] for _ in range(PICONETS)]
    piconets = []
    for here in range(PICONETS):
        ends = [
            PoolEnd(pool, flow, opposite, len(net.ring.data), len(net.ring.ack))
            for flow, opposite in zip(flows[here], flows[1 - here], strict=True)
        ]
        piconets.append(Piconet(net, [Peripheral(net.ring, end) for end in ends]))
        pool.members += [(end, piconets[-1]) for end in ends]
    return pool, Air(tuple(piconets))
