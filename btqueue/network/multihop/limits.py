"""What a network of piconets does at both ends of the loads, exactly: alone, beside one other, and saturated.

As loads fall, a segment meets none, or one other. So its round trip is R_f + sum_g rate_g S_fg + ..., where
S_fg is the integral of what a segment of flow g adds to one of flow f, over all times at which it may come
(M. Reiman and B. Simon, Operations Research 37, 1989). As loads rise, all windows are full: W segments of a
flow are always under way, so that its round trip is W over what it gets (J. Little 1961).

All three are plays of the order of polls, bridges and packets. The times at which segments come follow
sequences of irrational steps; which transmissions fail, where there are errors, one fixed row of numbers.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from btqueue.network.compilation import compiled, part
from btqueue.network.multihop.routes import ACK, DATA, DOWN, NONE, Routes

LONE, BESIDE, REPEATED = 256, 512, 4
"""Plays of each flow, alone and with another segment; so many times more where transmissions fail."""
GAP = 97.0
"""Mean slots between plays; the next one finds bridges where the last one has left them."""
GOLDEN, SILVER = (sqrt(5.0) - 1.0) / 2.0, sqrt(2.0) - 1.0
FACTOR, MODULUS = 16807.0, 2147483647.0
"""Of the numbers that decide which transmissions fail (S. Park and K. Miller, Comm. ACM 31, 1988)."""
NEVER = 1e18
IDLE = 4000.0
"""Slots for which the idle network is played."""
SATURATED, STARTS = 20, 4
"""Windows of each flow that are played where all are full, of which the first half is left out, and from how
many states of the idle network: saturated networks have several rhythms, and some are unfair."""


class Limits(NamedTuple):
    """Round trips in light traffic (slots), and what saturated flows get.

    Attributes:
        lone: (F,) of a lone segment.
        slopes: (F, F) what a segment of another flow a slot adds to it.
        most: (F,) segments a slot, if the windows of all flows are full.
        cycles: (2, A) of each piconet a slot, in the idle network and in the saturated one.
    """

    lone: np.ndarray
    slopes: np.ndarray
    most: np.ndarray
    cycles: np.ndarray


class Saturated(NamedTuple):
    """What a network does with all windows full.

    Attributes:
        most: (F,) segments a slot.
        cycles: (A,) of each piconet a slot.
        rhythms: largest difference of what a flow gets from one start to another, over the mean of all flows.
    """

    most: np.ndarray
    cycles: np.ndarray
    rhythms: float


class Network(NamedTuple):
    """A network without its loads.

    Attributes:
        routes: of the network.
        slots: of each packet of a segment, and of an acknowledgement.
        errors: error rates of these; packets are repeated until they are there.
        window: most segments of a flow under way.
        initial: with how many it starts.
        whole: whether relays send on whole trains only.
    """

    routes: Routes
    slots: Sequence[np.ndarray]
    errors: Sequence[np.ndarray]
    window: int
    initial: int
    whole: bool = False


class Order(NamedTuple):
    """What decides on the order of events; A piconets, L links, B bridges, F flows, P hops of a train.

    Attributes:
        first: (A + 1,) first link of each piconet.
        limit, bridge: (L,) frames of a visit; bridge, or `NONE`.
        places: (B, 2) links of a bridge; `NONE` for the piconet that it is the central of.
        airs: (B, 2) piconets of these.
        central: (A,) bridge that the central is, or `NONE`.
        hops: (F, 2) of each train.
        begin, crossing: (2 L + 1,) and (H, 3) flow, kind and number of the hops of each port, 2 link + way.
        slots, errors: (2, K) of each packet of a segment, and of an acknowledgement.
        packets: (2,) of them.
        whole: whether only whole trains are sent on.
    """

    first: np.ndarray
    limit: np.ndarray
    bridge: np.ndarray
    places: np.ndarray
    airs: np.ndarray
    central: np.ndarray
    hops: np.ndarray
    begin: np.ndarray
    crossing: np.ndarray
    slots: np.ndarray
    errors: np.ndarray
    packets: np.ndarray
    whole: np.ndarray


class State(NamedTuple):
    """Where a play stands.

    Attributes:
        time: (A,) at which the next frame of a piconet begins; `NEVER` while its central is away.
        station, frame: (A,) that is visited next, and frames of this visit; -1 before the probe of a bridge.
        at: (B,) place at which a bridge is.
        since, origin: (B,) since when, and the piconet that it came from.
        came: (F, 2, P + 1, N) when the last packets came to a hop; beyond the last one to their target.
        sent: (F, 2, P + 1) packets that have come to a hop so far.
        trip, ended: (F,) last round trip, and segments that are acknowledged.
        waiting: (F,) segments that come as soon as others are acknowledged.
        growing: (F,) segments by which the window of a slow start has yet to grow.
        cycles: (A,) that have ended.
        drawn: (1,) last of the numbers that decide which transmissions fail.
    """

    time: np.ndarray
    station: np.ndarray
    frame: np.ndarray
    at: np.ndarray
    since: np.ndarray
    origin: np.ndarray
    came: np.ndarray
    sent: np.ndarray
    trip: np.ndarray
    ended: np.ndarray
    waiting: np.ndarray
    growing: np.ndarray
    cycles: np.ndarray
    drawn: np.ndarray


@compiled()
def play(order, state, flows, offsets, gaps, trips):
    """Play pairs of segments one after another, and write the round trips of the first ones.

    Args:
        order: see `Order`.
        state: see `State`.
        flows: (N, 2) of the segments of each play; the second may be `NONE`.
        offsets: (N,) slots by which the second comes later.
        gaps: (N,) slots from the end of the play before.
        trips: (N,) to be written.
    """
    for number in range(len(flows)):
        first, second = flows[number, 0], flows[number, 1]
        begin = state.time[next_air(state)] + gaps[number]
        mine, other = begin - min(offsets[number], 0.0), begin + max(offsets[number], 0.0)
        earlier = first == second and other < mine  # of one flow they are in order
        release(order, state, first, other if earlier else mine)
        if second != NONE:
            release(order, state, second, mine if earlier else other)
        trip, wanted, before = 0.0, 2 if earlier else 1, state.ended[first]
        other_before = 0 if second == NONE else state.ended[second]
        mine_all = 2 if first == second else 1
        while state.ended[first] < before + mine_all or (
            second != NONE and state.ended[second] < other_before + 1
        ):
            seen = state.ended[first]
            follow(order, state)
            if seen < before + wanted <= state.ended[first]:
                trip = state.trip[first]
        trips[number] = trip


@compiled()
def saturate(order, state, window, initial, segments, done, cycles):
    """Keep all windows full until so many segments are acknowledged, and let the network run empty.

    Windows grow by slow start (RFC 5681, section 3.1), by a segment for each that is acknowledged.

    Args:
        order: see `Order`.
        state: see `State`.
        window: segments of each flow.
        initial: with how many it starts.
        segments: of all flows together.
        done: (F + 1,) segments of each flow in the second half, and the slots of that, to be added to.
        cycles: (A,) of each piconet in the second half, to be added to.
    """
    flows = len(done) - 1
    begun = state.time[next_air(state)]
    for flow in range(flows):
        state.waiting[flow], state.growing[flow] = segments, window - initial
        for _ in range(initial):
            release(order, state, flow, begun)
    for part_of in range(3):
        goal = segments // 2 if part_of == 0 else segments - segments // 2
        state.ended[:] = 0
        state.cycles[:] = 0.0
        while state.ended.sum() < (goal if part_of < 2 else window * flows):
            follow(order, state)
        now = state.time[next_air(state)]
        if part_of == 0:
            begun = now
        elif part_of == 1:
            for flow in range(flows):
                done[flow] += state.ended[flow]
                state.waiting[flow] = 0
                state.growing[flow] = 0
            done[flows] += now - begun
            for air in range(len(cycles)):
                cycles[air] += state.cycles[air]


@compiled()
def rest(order, state, slots):
    """Let the idle network run for so long."""
    until = state.time[next_air(state)] + slots
    while state.time[next_air(state)] < until:
        follow(order, state)


@part
def next_air(state):
    """Return the piconet of the next frame."""
    air = 0
    for other in range(1, len(state.time)):
        if state.time[other] < state.time[air]:
            air = other
    return air


@part
def release(order, state, flow, time):
    """Let a segment come to its host."""
    for _ in range(order.packets[DATA]):
        come(state, flow, DATA, 0, time)


@part
def come(state, flow, kind, hop, time):
    """Let a packet come to a hop."""
    number = state.sent[flow, kind, hop]
    state.came[flow, kind, hop, number % state.came.shape[3]] = time
    state.sent[flow, kind, hop] = number + 1


@part
def follow(order, state):
    """Play the next frame."""
    air = next_air(state)
    advance(order, state, air, state.time[air])


@part
def advance(order, state, air, now):
    """Play a frame, or the probe of a bridge."""
    link = order.first[air] + state.station[air]
    bridge = order.bridge[link]
    if bridge != NONE and state.frame[air] < 0:
        state.time[air] = now + 2.0
        here = order.places[bridge, state.at[bridge]] == link
        # at the same time the piconet of the lower number is first
        in_time = state.since[bridge] < now or (state.since[bridge] == now and state.origin[bridge] < air)
        if here and in_time:
            state.frame[air] = 0
        else:
            next_station(order, state, air, now + 2.0)
        return
    down = oldest(order, state, 2 * link + DOWN, now)
    middle = now + 1.0
    if down != NONE:
        middle = now + slots_of(order, state, down)
        cross(order, state, down, middle)
    up = oldest(order, state, 2 * link + 1 - DOWN, middle)
    end = middle + 1.0
    if up != NONE:
        end = middle + slots_of(order, state, up)
        cross(order, state, up, end)
    state.time[air] = end
    state.frame[air] += 1
    if state.frame[air] >= order.limit[link] or (down == NONE and up == NONE):
        if bridge != NONE:
            move_on(order, state, bridge, air, end)
        next_station(order, state, air, end)


@part
def oldest(order, state, port, now):
    """Return the crossing of which a packet has waited longest at a port; `NONE` if there is none.

    A packet that ends at this very time comes too late.
    """
    best, chosen = now, NONE
    for number in range(order.begin[port], order.begin[port + 1]):
        flow, kind, hop = order.crossing[number]
        packet = state.sent[flow, kind, hop + 1]
        gate = packet
        if order.whole[0]:
            gate += order.packets[kind] - 1 - packet % order.packets[kind]
        if gate < state.sent[flow, kind, hop]:
            ready = state.came[flow, kind, hop, gate % state.came.shape[3]]
            if ready < best:
                best, chosen = ready, number
    return chosen


@part
def slots_of(order, state, number):
    """Return the slots of the next packet of a crossing."""
    flow, kind, hop = order.crossing[number]
    return order.slots[kind, state.sent[flow, kind, hop + 1] % order.packets[kind]]


@part
def cross(order, state, number, time):
    """Let the next packet of a crossing come to the next hop, unless its transmission fails."""
    flow, kind, hop = order.crossing[number]
    error = order.errors[kind, state.sent[flow, kind, hop + 1] % order.packets[kind]]
    if error > 0.0:
        state.drawn[0] = state.drawn[0] * FACTOR % MODULUS
        if state.drawn[0] / MODULUS < error:
            return
    come(state, flow, kind, hop + 1, time)
    there = state.sent[flow, kind, hop + 1]
    if hop + 1 < order.hops[flow, kind] or there % order.packets[kind] != 0:
        return
    if kind == DATA:
        for _ in range(order.packets[ACK]):
            come(state, flow, ACK, 0, time)
        return
    begun = (there // order.packets[ACK] - 1) * order.packets[DATA]
    state.ended[flow] += 1
    state.trip[flow] = time - state.came[flow, DATA, 0, begun % state.came.shape[3]]
    if state.waiting[flow] > 0:
        state.waiting[flow] -= 1
        release(order, state, flow, time)
        if state.growing[flow] > 0:
            state.growing[flow] -= 1
            release(order, state, flow, time)


@part
def next_station(order, state, air, now):
    """Go on to the next member; at the end of its cycle a central that is a bridge leaves."""
    state.station[air] += 1
    state.frame[air] = -1
    if state.station[air] == order.first[air + 1] - order.first[air]:
        state.station[air] = 0
        state.cycles[air] += 1.0
        if order.central[air] != NONE:
            state.time[air] = NEVER
            move_on(order, state, order.central[air], air, now)
    # an ordinary member needs no probe
    if order.bridge[order.first[air] + state.station[air]] == NONE:
        state.frame[air] = 0


@part
def move_on(order, state, bridge, air, now):
    """Send a bridge to its other piconet; one that it is the central of goes on."""
    state.at[bridge] = 1 - state.at[bridge]
    state.since[bridge], state.origin[bridge] = now, air
    if order.places[bridge, state.at[bridge]] == NONE:
        state.time[order.airs[bridge, state.at[bridge]]] = now


def limits_of(network: Network) -> Limits:
    """Return round trips in light traffic, and what saturated flows get."""
    order = _order(network)
    state, flows = _start(order, network.window), order.hops.shape[0]
    times = REPEATED if order.errors.any() else 1

    def trips(pairs: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        number, found = np.arange(1, len(pairs) + 1), np.zeros(len(pairs))
        play(order, state, pairs, offsets, 2.0 * GAP * (number * GOLDEN % 1.0), found)
        return found

    rest(order, state, IDLE)
    idle = state.cycles / IDLE
    flow = np.repeat(np.arange(flows), times * LONE)
    alone = np.stack([flow, np.full(flow.size, NONE)], axis=1)
    lone = trips(alone, np.zeros(flow.size)).reshape(flows, -1).mean(axis=1)
    # beyond this offset the two do not meet
    far = 1.5 * lone.max()
    each = times * -(-BESIDE // flows)
    first, second = np.repeat(np.arange(flows), flows * each), np.tile(np.arange(flows), flows * each)
    offsets = far * (2.0 * (np.arange(1, first.size + 1) * SILVER % 1.0) - 1.0)
    more = trips(np.stack([first, second], axis=1), offsets) - lone[first]
    slopes = 2.0 * far * more.reshape(flows, each, flows).mean(axis=1)
    if network.window == 1:
        np.fill_diagonal(slopes, 0.0)  # a segment waits at its host until the one before is acknowledged
    full = saturated(network)
    return Limits(lone, slopes, full.most, np.stack([idle, full.cycles]))


def saturated(network: Network) -> Saturated:
    """Return what flows get that always have data, on average over several starts."""
    order, window = _order(network), network.window
    state, flows = _start(order, window), order.hops.shape[0]
    segments = (REPEATED if order.errors.any() else 1) * SATURATED * window * flows
    done, cycles = np.zeros((STARTS, flows + 1)), np.zeros(order.central.size)
    for number, one in enumerate(done):
        saturate(order, state, window, min(network.initial, window), segments, one, cycles)
        rest(order, state, 2.0 * GAP * ((number + 1) * GOLDEN % 1.0))
    each, total = done[:, :-1] / done[:, -1:], done.sum(axis=0)
    most = total[:-1] / total[-1]
    return Saturated(most, cycles / total[-1], float(np.ptp(each, axis=0).max() / most.mean()))


def _order(network: Network) -> Order:
    routes = network.routes
    links, hops = routes.links, routes.hops
    flow, kind = hops.flow.astype(int), hops.kind.astype(int)
    flows = int(flow.max()) + 1
    count = np.zeros((flows, 2), int)
    np.add.at(count, (flow, kind), 1)
    at_port: list[list[tuple[int, int, int]]] = [[] for _ in range(2 * links.air.size)]
    place = np.zeros((flows, 2), int)
    for number in range(flow.size):
        port = 2 * int(hops.link[number]) + int(hops.way[number])
        at = flow[number], kind[number]
        at_port[port].append((*at, int(place[at])))
        place[at] += 1
    places, airs = [], []
    for first, second, own in zip(*routes.bridges, strict=True):
        places.append((first, second) if own == NONE else (NONE, first))
        airs.append((links.air[first], links.air[second]) if own == NONE else (own, links.air[first]))

    def table(rows: Sequence[np.ndarray]) -> np.ndarray:
        most = max(map(len, rows))
        return np.array([np.r_[row, np.zeros(most - len(row))] for row in rows])

    return Order(
        first=np.searchsorted(links.air, np.arange(routes.members.size + 1)).astype(np.int64),
        limit=links.limit.astype(np.int64),
        bridge=links.bridge.astype(np.int64),
        places=np.array(places, np.int64).reshape(-1, 2),
        airs=np.array(airs, np.int64).reshape(-1, 2),
        central=routes.away.astype(np.int64),
        hops=count.astype(np.int64),
        begin=np.cumsum([0, *map(len, at_port)]).astype(np.int64),
        crossing=np.array([one for port in at_port for one in port], np.int64),
        slots=table(network.slots),
        errors=table(network.errors),
        packets=np.array([len(own) for own in network.slots], np.int64),
        whole=np.array([network.whole]),
    )


def _start(order: Order, window: int) -> State:
    """Return an idle network; bridges that are centrals are in their own piconets."""
    airs, bridges, flows = order.central.size, order.places.shape[0], order.hops.shape[0]
    probes = np.where(order.bridge[order.first[:-1]] == NONE, 0, -1)
    hops, room = int(order.hops.max()), int((max(window, 2) + 1) * order.packets.max())
    return State(
        time=2.0 * np.arange(airs),
        station=np.zeros(airs, np.int64),
        frame=probes.astype(np.int64),
        at=np.zeros(bridges, np.int64),
        since=np.full(bridges, -1.0),
        origin=np.zeros(bridges, np.int64),
        came=np.full((flows, 2, hops + 1, room), NEVER),
        sent=np.zeros((flows, 2, hops + 1), np.int64),
        trip=np.zeros(flows),
        ended=np.zeros(flows, np.int64),
        waiting=np.zeros(flows, np.int64),
        growing=np.zeros(flows, np.int64),
        cycles=np.zeros(airs),
        drawn=np.ones(1),
    )
