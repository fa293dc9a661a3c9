"""Losses at buffers: windows that outgrow them, random sources that find them full, datagrams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial, wraps
from math import inf
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.stations import transport
from btqueue.network.stations.laws import CROWDED
from btqueue.network.stations.network import EMPTY, ENDLESS, Flow, Network, Visit, least_s
from btqueue.network.stations.point import CARRIED, WAITING, Point
from btqueue.network.stations.queues import CYCLIC
from btqueue.queueing.vacations import Time, VacationQueue, vacation_queue

Vector = NDArray[np.float64]
Found = TypeVar("Found")

RARE = 1e-3
"""Share of the segments that find a buffer full, up to which losses make no difference."""
OFTEN = 0.01
"""Overflows a second from which on they make a difference, even if their share is small."""
MOST_PLACES = 200
"""Largest buffer (packets) whose queue is solved; a larger one that overflows is taken as equally full."""
VARIES = 0.01
"""Squared coefficient of variation of services above which the queue at a loss is not known."""
SELDOM = 0.1
"""Utilisation of a station up to which messages hardly ever meet before it."""
SELDOM_FULL = 0.01
"""Share of a round trip that segments would wait beyond a buffer with `LEAST_ROOM`, up to which its losses
make no difference: chosen on 60 random piconets; of 40 that were drawn afterwards all were right."""
HELD = 0.03
"""Share of a round trip that windows hold back before a buffer, up to which it is known well enough."""
NEARLY_FULL = 0.7
"""Utilisation of a station by windows that are always open, above which their bursts fill its buffer."""
LEAST_ROOM = 4
"""Segments: one lost and three behind it; with room for fewer, losses are repaired only by timeouts."""
MANY_SEGMENTS = 15.0
"""Segments in a buffer from which on losses at random, not this buffer, decide about a lone window: chosen on
132 random gateways; of 53 that were drawn afterwards all were right."""
PASSES = 4
"""Turns between buffers whose visits shorten each other's cycles."""
LEAST_AWAY = 0.01
"""Services after which a server that has found an empty queue polls it again."""
SHORTEST, MANY = 8, 25.0
"""Messages, and multiples of the mean, for which a queue without limit has room in formulas."""
NEARLY_AS_SLOW = 0.9
"""Utilisation of a station from which on a part of a window waits there, and not at the full station."""
MANY_PAIRS = 10
"""Acknowledgements of the segments in a buffer, from which on it hardly matters that they are of pairs and
that wires or hosts are between them: with fewer, round trips were up to 14 % off in 6 of 9 random
connections."""
HOSTS = 0.02
"""Share of the segments with room that are at hosts, up to which a buffer before a radio link is known to
overflow: of 98 random lone windows 12 were wrong, up to 15 times in goodput, all with a larger share (chosen
after these)."""
SELDOM_WHOLE = 0.01
"""Share of datagrams that come whole, below which too few do in a run for its mean to be known."""
LONGEST_VISIT = 200
"""Packets of a visit at most; visits without a limit hardly ever have as many."""
BEHIND = {"port": "a radio link", "wire": "an outside link", "bucket": "a token bucket"}
"""What stands behind a buffer, in words, by its kind."""


class Buffer(NamedTuple):
    """A buffer of limited room before a station; all in packets.

    Attributes:
        kind: kind of the station.
        places: packets that it holds, without the part `sent` of the first segment.
        sent: packets of the first segment that are taken as sent.
        most: packets that windows let wait there.
        queue: mean packets waiting there or at other full stations, if the station is full.
        refused: chance that a datagram finds no room for all its packets, where the station is not full; 1
            for a window that is always open and may overflow it.
        rate: segments a second that come.
        segment: packets of a segment.
        tcp: whether any of these segments are of TCP connections.
    """

    kind: str
    places: float
    sent: float
    most: float
    queue: float
    refused: float
    rate: float
    segment: float
    tcp: bool

    @property
    def overflows(self) -> bool:
        """Whether losses there make a difference."""
        if self.most <= self.places + self.sent:
            return False
        rare = self.refused < RARE or self.refused * self.rate < OFTEN
        full = self.queue > (0.999 * self.places if self.tcp else 0.0)  # datagrams come all the same
        return full or not rare


class Stop(NamedTuple):
    """A visit of a flow to a buffer.

    Attributes:
        f, flow: number of the flow, and the flow.
        visit: to the station.
        packets: packets of a segment, or of its acknowledgements.
        back: whether it is a visit of acknowledgements.
        station: its number; all ports of a node that share places have the number of its first port.
    """

    f: int
    flow: Flow
    visit: Visit
    packets: float
    back: bool
    station: int


def stops(network: Network, point: Point) -> Iterator[Stop]:
    """Yield every visit of every flow."""
    first: dict[int, int] = {}
    for f, flow in enumerate(network.flows):
        for back, visits in enumerate((flow.forth, flow.back)):
            for visit in visits:
                station = point.links.number[visit.kind, visit.index]
                if visit.node >= 0 and not back:  # its places are in bytes: an acknowledgement takes few
                    station = first.setdefault(visit.node, station)
                packets = max(visit.train.packets, 1.0) * (flow.acks if back else 1.0)
                yield Stop(f, flow, visit, packets, bool(back), station)


def once(law: Callable[..., Found]) -> Callable[..., Found]:
    """Return a function of a network and its point that computes each result once."""

    @wraps(law)
    def kept(network: Network, point: Point, *more: int) -> Found:
        if network is not point.links.network:
            return law(network, point, *more)
        if (place := (law, *more)) not in point.kept:
            point.kept[place] = law(network, point, *more)
        return point.kept[place]

    return kept


@once
def buffers(network: Network, point: Point) -> dict[int, Buffer]:
    """Return the buffers of limited room, by the numbers of their stations."""
    laws = point.links
    count = len(laws.names)
    used = point.rate @ point.service
    waits = point.waits + point.gather
    places, segment = np.full(count, inf), np.zeros(count)
    most, queue, rate, tcp = np.zeros((4, count))
    users: dict[int, list[tuple[int, Flow, Visit, float]]] = {}
    for f, flow, visit, packets, back, r in stops(network, point):
        used[r] = max(used[r], used[laws.number[visit.kind, visit.index]])
        places[r] = min(places[r], visit.places * max(visit.train.packets, 1.0))
        # while a window of segments waits for tokens, at most one of its acknowledgements does
        several = 1.0 if back and visit.kind == "bucket" else min(flow.window, ENDLESS)
        most[r] += several * packets * (not flow.messages)  # sessions have another law
        queue[r] += point.rate[f] * waits[f] * packets
        if not back:
            rate[r] += point.rate[f]
            tcp[r] += flow.protocol == "tcp"
            segment[r] = max(segment[r], packets)
            if (flow.protocol == "none" or not laws.links.endless[f]) and not flow.messages:
                users.setdefault(r, []).append((f, flow, visit, packets))
    found = {}
    for r in map(int, np.flatnonzero(np.isfinite(places) & (rate > 0.0))):
        kind = laws.names[r][0]
        full, sent = bool(used[r] > CROWDED and queue[r] > 0.0), segment[r] / 2.0 if kind == "port" else 0.0
        refused = 0.0
        if not full and most[r] > places[r] + sent and not _brings(network, r):
            small = not tcp[r] or (kind == "port" and places[r] < LEAST_ROOM * segment[r])
            one = _queue(network, point, r, users[r]) if r in users and small else None
            refused = 1.0 - filled(one)[0] if one else float(r not in users and used[r] > NEARLY_FULL)
        found[r] = Buffer(
            kind, float(places[r]), float(sent), float(most[r]), float(queue[r]) if full else 0.0, refused,
            float(rate[r]), float(segment[r]), bool(tcp[r]),
        )  # fmt: skip
    return found


def _brings(network: Network, r: int) -> bool:
    """Whether a bridge brings packets to a station: no more than it has room for (`bridge_buffers`)."""
    return r < len(network.ports) and network.ports[r].up and network.ports[r].bridge >= 0


def saws(network: Network, point: Point) -> dict[int, transport.Law]:
    """Return the law of each connection whose window overflows the buffer of a full station, by its number.

    Each connection has a share of a buffer in proportion to the packets that it sends. When its window
    exceeds this share and the path, a segment is lost (`btqueue.transport.window_cycles`). The connections
    that share a buffer find it full at about the same time, so that their windows grow and shrink together;
    while one of these windows is small the others still fill the station, which idles only if all are small
    at once. Between two and eight connections over a wire round trips were 6 % short to 2 % long, losses up
    to 10 % too many.
    """
    known, found, used = buffers(network, point), {}, point.rate @ point.service
    links, sent = point.links.links, np.zeros(len(point.links.names))
    alone = len(network.flows) == 1
    of_flows: dict[int, list[Stop]] = {}
    for stop in stops(network, point):
        sent[stop.station] += point.rate[stop.f] * stop.packets
        if not stop.back and stop.flow.protocol == "tcp":
            of_flows.setdefault(stop.f, []).append(stop)
    for f, own in of_flows.items():
        flow, lone, rate, room, share = (
            network.flows[f], float(point.base[f] - point.gather[f] + point.stray[f]), float(point.rate[f]),
            inf, 1.0,
        )  # fmt: skip
        ports = [visit.index for visit in flow.forth if visit.kind == "port"]
        if sum(links.is_filled(links.port_link[port]) for port in ports) > 1:
            continue  # segments wander between bridges
        full, fits, held_at, packets, in_turn = [], False, None, 1.0, False
        for stop in own:
            if stop.visit.kind == "port" and _brings(network, stop.visit.index):
                continue
            if used[stop.station] > CROWDED:
                full.append(stop.visit)
            one = known.get(stop.station)
            if one is None or one.most <= one.places + one.sent:
                continue
            if one.queue == 0.0:  # losses hold the window back, and their law includes the buffer
                here = (one.places + (stop.packets if stop.visit.node >= 0 else one.sent)) / stop.packets
                held_back = alone and bool(links.endless[f]) and f in point.found
                if held_back and _losses_decide(flow, here, here + lone * rate):
                    found[f] = point.found[f]._replace(known=True)
                continue
            others = rate * stop.packets < sent[stop.station]
            if not one.overflows and (others or flow.transport.variant == "vegas"):
                continue  # on average all of the windows find room, and windows of Vegas do not grow
            # the buffer of a node has an extra place for one segment
            more = stop.packets if stop.visit.node >= 0 else one.sent
            if (held := (one.places + more) * rate / sent[stop.station]) < room:
                room, share = held, rate * stop.packets / sent[stop.station]
                held_at, packets = stop.visit, 1.0 if stop.visit.node >= 0 else stop.packets
                fits = flow.window * stop.packets <= one.places + one.sent  # but for the packets of others
                in_turn = stop.visit.node >= 0
        if held_at is None:
            continue
        batch, here = _moves_whole(network, point, full), room
        room += 1.0 if batch else _elsewhere(network, flow, held_at, rate, lone)
        if held_at.kind == "port" and network.ports[held_at.index].limit >= ENDLESS:
            lone = min(lone, room / rate)  # whole windows go in turn: while one waits, others fill the air
        room = max(room, 2.0) if fits else room
        if in_turn:
            room *= 4.0 / (3.0 + share)
        comes = max(float(point.links.comes[0, f, point.links.number[held_at[:2]]]), RARE)
        each_s, radio = 1.0 / (rate * float(point.sent[f]) * comes), transport.radio_of(network, flow)
        law = partial(transport.chain_of, flow, lone, each_s, room, radio, comes=comes)
        plain, holds = flow.loss == flow.ack_loss == 0.0 and share == 1.0, flow.window <= int(room + 1e-9)
        # else segments leave hosts apart, and how many find room depends on polls
        prompt = held_at.kind != "port" or rate * (4.0 * flow.host_s + flow.jitter_s) < HOSTS * room
        if plain and holds:
            surely = len(ports) == 1 and all(_is_even(flow, stop) for stop in flow.forth)
            surely = surely and (held_at.train.packets != 1.0 or held_at.train.spread == 0.0)  # it may lag
            found[f] = law()._replace(known=surely and prompt and flow.window <= room - _grain(held_at))
        elif plain and room >= 1.0:
            part = room if held_at.kind == "port" else here
            in_vain = int(packets * part + 1e-6) % packets / packets
            varies_s = _varies(network, flow, held_at, room) / rate
            if alone and len(flow.forth) == len(ports) == 1:  # an empty link: it waits for one poll
                lone = min(lone, least_s((*flow.forth, *flow.back)) + EMPTY * SLOT_S + 4.0 * flow.host_s)
            saw = transport.saw(flow, lone, 1.0 / rate, int(room + 1e-9), in_vain, varies_s, batch=batch)
            beside = [used[r] for r in np.flatnonzero(point.service[f]) if used[r] <= CROWDED]
            sure = prompt and max(beside, default=0.0) < NEARLY_AS_SLOW
            sure = sure and (room >= transport.DUPLICATES or here >= 2.0 - 1e-9)  # whole segments
            at_once = _outside_s(flow) == 0.0 and room >= LEAST_ROOM
            sure = sure and (flow.acks == 1.0 or at_once or here * flow.acks >= MANY_PAIRS)
            sure = sure and _is_sure(network, flow, held_at, room, here + rate * _outside_s(flow), rate)
            # a link that is empty after a loss: waits of the next segment for polls are known on average
            idle = 1.0 - saw.goodput / rate * (1.0 + in_vain * (saw.transmissions - 1.0))
            sure = sure and idle * (1.0 - _outside_s(flow) / lone) < HELD
            goodput = min(saw.goodput, law().goodput) if saw.timeouts and room >= 2.0 else saw.goodput
            found[f] = saw._replace(goodput=goodput, known=saw.known and sure)
        else:
            idle = max(1.0 - law().goodput / rate, 0.0)
            repaired = alone and _losses_decide(flow, here, room)
            found[f] = law()._replace(goodput=rate * (1.0 - idle ** (1.0 / share)), known=repaired)
    return found


def _losses_decide(flow: Flow, here: float, room: float) -> bool:
    """Return whether losses on wires keep a window so small that it seldom overflows a buffer on its way.

    Its room must be many segments, and less than the window by those that show a loss.

    Args:
        flow: the connection.
        here: segments that the buffer holds.
        room: segments that it holds with the path.
    """
    wires = flow.loss >= RARE and len(flow.forth) > 1 and not any(stop.train.loss for stop in flow.forth)
    repaired = flow.transport.variant != "reno" and flow.window >= room + transport.DUPLICATES
    return wires and repaired and here >= MANY_SEGMENTS


@once
def held(network: Network, point: Point) -> set[int]:
    """Return the numbers of connections of random sources whose segments may find a buffer full.

    Their losses keep their windows small. Theory has no law for these windows, so the answers are in doubt.
    """
    found: set[int] = set()
    for f, flow in enumerate(network.flows):
        open_ = flow.protocol == "tcp" and not flow.messages and point.rate[f] >= CARRIED * flow.load > 0.0
        port, rate = point.links.ports.get(f), float(point.rate[f])
        service_s = port.turn if port else point.links.queues[f].service_s
        if not open_ or service_s <= 0.0:
            continue
        lone, room, seldom = float(point.base[f] + point.stray[f]), inf, SELDOM_FULL
        slowest = 0.5 * float(point.service[f].max())  # a station twice as fast has hardly any wait
        for visit in flow.forth:
            here = float(point.service[f, point.links.number[visit.kind, visit.index]])
            brought = visit.kind == "port" and _brings(network, visit.index)
            if visit.places < inf and here >= slowest and not brought:
                users = [g for g, one in enumerate(network.flows) if any(map(visit.shares_places, one.forth))]
                share = rate / float(point.rate[users].sum())
                own = (visit.places + (1.0 if visit.node >= 0 else 0.5 * (visit.kind == "port"))) * share
                seldom = seldom if own >= LEAST_ROOM else RARE
                room = min(room, own + _elsewhere(network, flow, visit, 1.0 / service_s, lone))
        if room >= point.links.rests[f].window:
            continue
        if point.own[f](inf, lone) - point.own[f](room, lone) >= seldom * lone:
            found.add(f)
    return found


def _elsewhere(network: Network, flow: Flow, visit: Visit, rate: float, lone_s: float) -> float:
    """Return the segments of a full window that are under way outside the queue of a full station.

    A port keeps the packet that it sends in its queue, and sends none while the acknowledgement waits for a
    poll: of a lone link it sends one, before the frame that brings the acknowledgement. A receiver that
    acknowledges several segments at once holds the others.

    Segments of one packet, and their acknowledgements of one, fill the frames of both directions. A failed
    acknowledgement lets one more segment go before it, until a segment fails: with chances a and s of these
    the number is geometric, with the ratio r = a (1 - s) / s (1 - a) and the mean r / (1 - r).

    Args:
        network: the stations.
        flow: the connection.
        visit: to the full station.
        rate: segments a second.
        lone_s: round trip of a lone segment.
    """
    if visit.kind != "port":
        return rate * lone_s
    outside = _outside_s(flow)
    links = sum(one.kind == "port" for one in flow.forth)
    # packets that fail make no room before the acknowledgement, at least for one segment of a window; nor do
    # their bytes in a node, without a wire behind (so in six simulations)
    none = (1.0 - visit.train.packets / visit.train.frames) * visit.places > 1.0
    none = none or (visit.node >= 0 and outside == 0.0)
    ahead = 0.0 if none else max(_ahead(network, flow, visit), 0.0)
    here = ahead / max(visit.train.packets, 1.0)
    if links == ahead == visit.train.packets == flow.acks == 1.0:
        odds = _lags(flow, visit)
        here += min(odds / (1.0 - odds), flow.window) if odds < 1.0 else flow.window
    return rate * (outside + max(lone_s - outside, 0.0) * (1.0 - 1.0 / links)) + here


def _lags(flow: Flow, visit: Visit) -> float:
    """Return the ratio of the chances that acknowledgements lag behind by one more segment."""
    back = next((one.train for one in flow.back if one.kind == "port"), visit.train)
    fails, answer_fails = (1.0 - 1.0 / max(train.frames, 1.0) for train in (visit.train, back))
    return answer_fails * (1.0 - fails) / max(fails * (1.0 - answer_fails), 1e-12)


def _outside_s(flow: Flow) -> float:
    """Return the part of a round trip on wires and at hosts (s)."""
    wires = [one for one in (*flow.forth, *flow.back) if one.kind == "wire"]
    times = sum(one.service_s + one.delay_s + one.jitter_s for one in wires)
    return times + 4.0 * flow.host_s + flow.jitter_s


def _is_sure(network: Network, flow: Flow, visit: Visit, room: float, least: float, rate: float) -> bool:
    """Return whether the number of segments with room before a full station is certain.

    A packet sent meanwhile, at some places in a visit, may make room for one more segment. So may segments on
    the air while a bucket or a wire is full: how many depends on polls.

    Args:
        network: the stations.
        flow: the connection.
        visit: to the full station.
        room: segments that path and buffer hold.
        least: the same without segments on the air.
        rate: segments a second.
    """
    if len(flow.forth) > 1 and any(stop.train.slow > stop.train.fast for stop in flow.forth):
        return False  # while the radio is bad the queue is elsewhere
    ports = [network.ports[one.index] for one in flow.forth if one.kind == "port"]
    if any(one[:2] == visit[:2] for one in flow.back):
        return False  # its acknowledgements take turns with segments
    known = (*CYCLIC, "slq", "fep", "lwrr") if len(network.flows) == 1 else CYCLIC  # the others are empty
    if not {network.piconets[port.piconet].discipline for port in ports} <= set(known):
        return False
    train = visit.train
    even = _is_even(flow, visit)
    polled = visit.kind == "port" and not _without_others(network, visit)
    trains = [stop.train for stop in flow.forth if stop.train.frames]
    failing = max((1.0 - one.packets / one.frames for one in trains), default=0.0)
    # a second loss of a window, at another place of a visit or after a failure: segments that the inflated
    # window lets out show it, and it takes a quarter of the window
    shown = min((room + 1.0) // 2.0 - 2.0, flow.window - room - 1.0) >= transport.DUPLICATES
    often = room * failing > 4.0 * HELD or ((failing > 0.0 or polled) and not shown)
    if (flow.transport.variant == "reno" and often) or (failing > 0.0 and room < transport.DUPLICATES + 1.0):
        return False
    # half of the window would leave visits short, so that polls or other links take the time
    half = int((room + 1.0) / 2.0) * train.packets
    if polled and half < network.ports[visit.index].limit < ENDLESS:
        return False
    if visit.kind != "port" and int(room + 1e-9) - int(least + 1e-9) > HELD * room:
        return False
    # packets of one size leave whole; a wire is between two segments that are sent at once
    apart = rate * sum(stop.service_s for stop in flow.forth if stop.kind == "wire")
    early, later = (_grain(visit), _grain(visit) + apart) if _outside_s(flow) else (0.0, _grain(visit) / 3.0)
    if visit.node >= 0 and int(room + later) - int(room - early) > HELD * room:
        return False
    if visit.kind != "port" or visit.node >= 0:
        # after a loss a queue shorter than the path runs empty, and random services keep it so
        return even or room < 2.0 * visit.places
    direct = all(stop.kind != "wire" for stop in flow.forth) and len(ports) == 1
    lags = _lags(flow, visit) ** (room / 2.0) if train.packets == flow.acks == 1.0 else 0.0
    return direct and even and _ahead(network, flow, visit) >= 0.0 and lags < HELD  # they fit into the half


def _is_even(flow: Flow, visit: Visit) -> bool:
    """Whether segments are alike: a shorter one leaves too little room for the next."""
    train = visit.train
    return visit.kind != "port" or (train.spread < VARIES * train.frames**2 and flow.uneven == 1.0)


def _grain(visit: Visit) -> float:
    """Return the part of a segment to which its room is certain: packets leave whole."""
    return 1.5 / max(visit.train.packets, 1.0)


def _without_others(network: Network, visit: Visit) -> bool:
    """Whether no other link is polled while this one has data."""
    piconet = network.piconets[network.ports[visit.index].piconet]
    return piconet.members == 1 or (len(network.flows) == 1 and piconet.idle_polls == 0.0)


def _ahead(network: Network, flow: Flow, visit: Visit) -> float:
    """Return the packets that are sent between the end of a segment and its acknowledgement; -1: not known.

    It is a frame for each packet of the acknowledgement, and one less at the end of a visit. Where visits are
    of whole segments, a loss moves the ends of segments to other places in a visit, where they stay.
    """
    port = network.ports[visit.index]
    answer = max((one.train.packets for one in flow.back if one.kind == "port"), default=1.0)
    if port.limit >= ENDLESS or _without_others(network, visit):
        return answer
    if port.limit == 1:
        return answer - 1.0
    return answer if port.limit % visit.train.packets == 0.0 else -1.0


def _varies(network: Network, flow: Flow, visit: Visit, room: float) -> float:
    """Return by how many services the repair of an overflow varies: by a visit, and two deviations."""
    if visit.kind != "port":
        return 1.0
    train, limit = visit.train, network.ports[visit.index].limit
    visits = 0.0 if _without_others(network, visit) else limit / train.frames
    return visits + 2.0 * float(np.sqrt(room * train.spread)) / train.frames


def _moves_whole(network: Network, point: Point, full: list[Visit]) -> bool:
    """Return whether a window goes from link to link as a whole: several full links, exhaustive visits."""
    links = point.links.links
    at = {links.port_link[visit.index] for visit in full if visit.kind == "port"}
    piconets = {network.ports[visit.index].piconet for visit in full if visit.kind == "port"}
    return len(at) > 1 and all(network.piconets[one].discipline == "exhaustive" for one in piconets)


def whole(network: Network, point: Point) -> Vector:
    """Return the share of the datagrams of each flow that find room for all their packets, (flows,).

    A visit to a link that always has packets ends early where the buffer holds fewer than the limit, which
    makes the cycles of other links shorter. A full buffer refuses the last packets of segments first: where
    these are shorter the mean packet that it accepts is longer.
    """
    found, laws = np.ones(len(network.flows)), point.links
    at: dict[int, list[tuple[int, Flow, Visit, float]]] = {}
    for f, flow, visit, packets, back, _ in stops(network, point):
        if not back and visit.places < inf and flow.protocol == "none" and flow.load < inf:
            at.setdefault(laws.number[visit.kind, visit.index], []).append((f, flow, visit, packets))
    queues = {r: queue for r, users in at.items() if (queue := _queue(network, point, r, users))}
    full = {r for r in queues if r < len(network.ports) and point.rate @ point.service[:, r] > CROWDED}
    kept, spared, longer = dict.fromkeys(queues, 1.0), dict.fromkeys(queues, 0.0), dict.fromkeys(queues, 1.0)
    for _ in range(PASSES if full else 1):
        before, factor = dict(spared), dict(longer)
        for r, queue in queues.items():
            beside = full & {r} and {
                n for n in full - {r} if network.ports[n].piconet == network.ports[r].piconet
            }
            others = sum(factor[n] for n in beside) / len(beside) if beside else 1.0
            kept[r], spared[r], longer[r] = filled(
                queue.longer(factor[r], others).shorter(sum(before[n] for n in beside))
            )
    for r, one in kept.items():
        for f, *_ in at[r]:
            found[f] *= one
    return found


class Queue(NamedTuple):
    """A queue of packets of limited room, with vacations (`btqueue.queueing.vacations`); times in s.

    Attributes:
        rate: messages a second, at random.
        packets: packets of a segment.
        segments: segments of a message.
        places: packets that find room, the packet in service included.
        service: service of a packet.
        limit: packets of a visit.
        vacations: times between visits, one law or a law for each number of packets of a visit.
        probe: frame without a packet, which ends a visit.
        repeats: chance that a packet has to be sent again.
        last: service of the last packet of a segment over the mean.
    """

    rate: float
    packets: int
    segments: int
    places: int
    service: float
    limit: int
    vacations: tuple[Time, ...]
    probe: float
    repeats: float = 0.0
    last: float = 1.0

    def longer(self, own: float, others: float) -> Queue:
        """Return the queue with services that are longer by the factor `own`, and vacations by `others`."""
        laws = tuple(one._replace(mean=one.mean * others) for one in self.vacations)
        return self._replace(service=self.service * own, vacations=laws)

    def shorter(self, by: float) -> Queue:
        """Return the queue with vacations that are shorter by `by` seconds."""
        least = LEAST_AWAY * self.service
        laws = tuple(one._replace(mean=max(one.mean - by, least)) for one in self.vacations)
        return self._replace(vacations=laws)


def _queue(
    network: Network, point: Point, r: int, users: list[tuple[int, Flow, Visit, float]]
) -> Queue | None:
    """Return the queue before a station, None if its room is large."""
    laws = point.links
    sent = np.array([_arrive(point, f, flow, visit) for f, flow, visit, _ in users])
    used = float(sent @ [point.service[f, r] for f, *_ in users])
    comes = np.array([laws.comes[0, f, r] for f, *_ in users])
    rate = sent * comes
    if not rate.any():
        return None
    share = rate / rate.sum()
    packets = float(share @ [one[3] for one in users])
    places = min(visit.places * count for _, _, visit, count in users)
    kind, index = laws.names[r]
    each_s = [point.service[f, r] / point.sent[f] for f, *_ in users] / np.maximum(comes, RARE)
    service = float(share @ each_s) / packets
    if kind == "port":  # half of a segment counts as sent (`Visit.places`)
        places += packets / 2.0
    elif kind == "bucket":  # the tokens of a full bucket are used at once, and come back at the token rate
        places += network.buckets[index].depth / network.buckets[index].rate / service
    if places > MOST_PLACES:
        if used <= 1.0:
            return None
        places = MOST_PLACES  # a larger buffer that overflows is equally full
    batch = max(round(float(share @ [min(flow.batch, flow.window) for _, flow, *_ in users])), 1)
    room = max(int(places + 1e-6), 1)
    messages_s = float(f"{float(rate.sum()) / batch:.9g}")  # so that equal flows are solved once
    found = Queue(messages_s, max(round(packets), 1), batch, room, float(f"{service:.9g}"), 1, (), 0.0)
    if kind != "port":
        return found
    last = float(share @ [visit.train.last for _, _, visit, _ in users])
    return at_port(point, index, users, found._replace(last=last), used)


def _arrive(point: Point, f: int, flow: Flow, visit: Visit) -> float:
    """Return the segments a second that come to a station; other stations may refuse datagrams."""
    if flow.protocol != "none":
        return float(point.rate[f])
    before, used = flow.forth[: flow.forth.index(visit)], point.rate @ point.service
    full = max((float(used[point.links.number[one[:2]]]) for one in before), default=0.0)
    return min(flow.load, float(point.rate[f]) / full if full else inf)


def at_port(
    point: Point, p: int, users: list[tuple[int, Flow, Visit, float]], queue: Queue, used: float
) -> Queue:
    """Return the queue of a port with its visits.

    The vacation after a visit to a port that is always full is the rest of the cycle. Else the visits to
    other links take the packets that came for them (`queues.Queues.vacations`).

    Args:
        point: the operating point.
        p: number of the port.
        users: the flows that cross it: number, flow, visit, packets of a segment.
        queue: without visits; its service is the time of the port for a packet.
        used: use of the port.
    """
    laws = point.links
    link, trains = laws.links.port_link[p], [visit.train for _, _, visit, _ in users]
    rate = np.array([point.rate[f] * point.sent[f] for f, *_ in users])
    share = rate / rate.sum() if rate.any() else np.full(len(rate), 1.0 / len(rate))
    tries = float(share @ [train.frames / train.packets for train in trains])
    polled, each = laws.polled, float(laws.links.frame[p])
    if used <= CROWDED and (polled.port[polled.host & ~polled.back] == p).any():
        each = float(share @ [(train.air + train.frames) / train.frames for train in trains])
        slot_s = SLOT_S / float(laws.links.share[link])
        limit = int(min(laws.links.limit[link], LONGEST_VISIT))
        if (place := (at_port, p, each, limit)) not in point.kept:
            point.kept[place] = tuple(
                Time(float(f"{one.mean * slot_s:.9g}"), float(f"{one.scv:.9g}"))
                for one in polled.vacations(p, each, limit)
            )
        service, probe, repeats = each * slot_s, EMPTY * slot_s, max(1.0 - 1.0 / tries, 0.0)
        away = point.kept[place]
        return queue._replace(
            service=float(f"{service:.9g}"), limit=limit, vacations=away, probe=probe, repeats=repeats
        )
    limit = int(min(max(round(laws.links.visit[link] / tries), 1), LONGEST_VISIT))
    away = limit * max(queue.service - each * tries * SLOT_S, 0.0)
    service, probe = queue.service - away / limit, EMPTY * SLOT_S
    away = max(float(f"{away:.9g}"), LEAST_AWAY * service)
    rows = (*(Time(away + probe),) * limit, Time(away))
    return queue._replace(service=float(f"{service:.9g}"), limit=limit, vacations=rows, probe=probe)


@once
def unlimited(network: Network, point: Point, p: int) -> Queue:
    """Return the queue of a port of hosts with unlimited room, with its visits."""
    users = [
        (f, flow, visit, max(visit.train.packets, 1.0))
        for f, flow in enumerate(network.flows)
        for visit in flow.forth
        if visit.kind == "port" and visit.index == p and point.rate[f] > 0.0
    ]
    rate = np.array([point.rate[f] for f, *_ in users])
    share = rate / rate.sum()
    packets = float(share @ [one[3] for one in users])
    size = max(round(packets), 1)
    segments = max(round(float(share @ [min(flow.batch, flow.window) for _, flow, *_ in users])), 1)
    messages = float(f"{rate.sum() * packets / (size * segments):.9g}")
    found = at_port(point, p, users, Queue(messages, size, segments, 1, 1.0, 1, (), 0.0), 0.0)
    polled = point.links.polled
    here = np.flatnonzero((polled.port == p) & polled.host & ~polled.back)
    waits = float(polled.behind[here].max() + polled.service[here].max()) * float(polled.slot_s[here[0]])
    waiting = float(rate.sum()) * packets * waits  # packets there in the mean
    places = max(SHORTEST * size * segments, int(MANY * waiting))
    return found._replace(places=int(min(places, MOST_PLACES)))


def refused(network: Network, point: Point) -> Vector:
    """Return the share of a flow's packets that find the queue of its uplink full, behind a bucket, (flows,).

    The share is 0 where windows never exceed the room. It is not a number where there is no bucket, for
    periodic sources and sources in bursts, and for connections whose windows are limited by frequent losses.
    """
    found, flows = np.full(len(network.flows), np.nan), network.flows
    for f in point.links.firsts:
        flow, way = flows[f], flows[f].forth
        if len(way) < 2 or (way[0].kind, way[1].kind) != ("bucket", "port") or flow.messages:
            continue
        visit = way[1]
        users = [
            (g, one, stop, max(stop.train.packets, 1.0))
            for g, one in enumerate(flows)
            for stop in one.forth
            if (stop.kind, stop.index) == ("port", visit.index)
        ]
        tcp = all(one.protocol == "tcp" for _, one, *_ in users)
        room = visit.places * users[0][3] + 0.5 * users[0][3]  # half of a segment counts as sent
        if tcp and sum(one.window * size for _, one, _, size in users) <= room:
            found[f] = 0.0
            continue
        if network.bridges or any(
            point.links.links.endless[g] or not _at_random(one) for g, one, *_ in users
        ):
            continue
        queue = _queue(network, point, visit.index, users)
        share = 0.0 if queue is None else solved(queue).packet_loss
        if flow.protocol == "none" or share * point.rate[f] < OFTEN:
            found[f] = share
    return found[point.links.like]


def _at_random(flow: Flow) -> bool:
    """Whether messages of a flow come as a Poisson process."""
    return flow.more == 0.0 and flow.source != "periodic" and not flow.messages


def waiting(network: Network, point: Point) -> dict[str, float]:
    """Return the mean number of packets in an uplink and in a downlink queue; empty if not known.

    It is known for piconets of several links without bridges, if no source always has data, and if packet
    types are fixed. At a host packets wait in the queue with vacations (`unlimited`), at most a window of
    them. A packet that the central relays waits for the end of the visit in which it came, and for the visit
    to its next link. Little's law gives the number of relayed packets, and of acknowledgements.
    """
    laws, flows = point.links, network.flows
    polled = laws.polled
    cut_on_air = any(one.kind == "link.adaptation" and one.value != "fixed" for one in network.traits)
    known = polled.count and not network.bridges and not laws.links.endless.any() and not cut_on_air
    known = known and all(p.members > 1 and p.discipline in CYCLIC for p in network.piconets)
    if not known or any(flow.short or not _at_random(flow) for flow in flows):
        return {}
    total = np.zeros(2)  # down, up
    like = {  # of ports, by symmetry
        visit.index: first.index
        for flow, f in zip(flows, laws.like, strict=True)
        for visit, first in zip(flow.forth, flows[f].forth, strict=True)
        if visit.kind == "port"
    }
    for p in sorted(set(polled.port[polled.host & ~polled.back & (polled.rate > 0.0)].tolist())):
        queue = unlimited(network, point, like[p])
        law = solved(queue).occupancy
        here = [(flow, stop) for flow in flows for stop in flow.forth if stop[:2] == ("port", p)]
        most = sum(flow.window for flow, _ in here) * queue.packets
        most = min(most, *(stop.places * queue.packets for _, stop in here))
        total[int(laws.links.up[p])] += float(law @ np.minimum(np.arange(len(law)), most))
    for f in laws.firsts:
        for c, train, stay in laws.stays(f):
            if polled.back[c] or not polled.host[c]:
                rate = float(polled.rate[c]) * int((laws.like == f).sum())
                total[int(polled.up[c])] += rate * train.packets * stay
    links = sum(piconet.members for piconet in network.piconets)
    return {"uplink": float(total[1]) / links, "downlink": float(total[0]) / links}


@lru_cache(maxsize=512)
def solved(queue: Queue) -> VacationQueue:
    """Return the steady state of a queue; a message comes at once, and takes the room that is left."""
    return vacation_queue(
        rate=queue.rate,
        service=Time(queue.service),
        vacations=queue.vacations or None,
        capacity=queue.places,
        batch=queue.packets * queue.segments,
        limit=queue.limit if queue.vacations else None,
        repeats=queue.repeats,
    )


def filled(queue: Queue) -> tuple[float, float, float]:
    """Return the share of segments that find room for all their packets, and how this changes visits.

    The segments of a message come at once, and find room one after the other.

    Returns:
        The share, the time by which visits are short (s), and the mean service of the packets that find room
        over the mean of all packets.
    """
    found = solved(queue)
    below = np.cumsum(found.occupancy)
    rooms = queue.places - np.arange(1, queue.packets * queue.segments + 1)
    fits = np.where(rooms >= 0, below[np.maximum(rooms, 0)], 0.0)
    lasts = fits[queue.packets - 1 :: queue.packets]
    more = (queue.packets * lasts.sum() / max(fits.sum(), 1e-9) - 1.0) * (queue.last - 1.0)
    early = 1.0 - float(found.served[-1]) if len(found.served) else 0.0
    short = (queue.limit - found.mean_served) * queue.service - early * queue.probe
    return float(lasts.mean()), short, 1.0 + float(more) / max(queue.packets - 1, 1)


def doubts(network: Network, point: Point) -> list[str]:
    """Return doubts about buffers that overflow, or may overflow."""
    found, lost = [], held(network, point)
    for r, one in buffers(network, point).items():
        users = np.flatnonzero(point.service[:, r] > 0.0)
        counted = point.counted.get(int(users[0])) if len(users) == 1 else None
        if counted:
            continue  # its losses are well known
        before = point.wait @ (point.service[users] > 0.0).T * point.rate[users]
        windows = np.array([network.flows[f].window for f in users])
        elsewhere = point.links.links.endless[users].all() and (before > WAITING * windows).all()
        # a window that opens first waits for tokens
        elsewhere = elsewhere and not (one.tcp and one.kind == "bucket")
        # acknowledgements that wait behind data let whole windows out over a wire
        elsewhere = elsewhere and not (one.kind == "wire" and _in_bursts(network, point, r, one))
        if one.queue == 0.0 and elsewhere and not network.bridges:
            continue  # windows wait before another station: four of four random scenarios were right
        if one.most > one.places + one.sent and lost & set(users.tolist()):
            found.append(
                f"sources at random may overflow a buffer of {one.places + one.sent:.3g} packets before "
                f"{BEHIND[one.kind]}, and losses, which theory leaves out, keep windows small: round trips "
                "were 14 % off in the median, and up to three times as long"
            )
            continue
        # between two visits to a full link without relaying the whole window is at its port
        links = point.links.links
        waiting = one.kind == "port" and links.members[links.port_link[r]] > 1 and one.queue > 0.0
        waiting = waiting and all(len(network.flows[f].forth) == 1 for f in users)
        # air carries several acknowledgements at a time, and a bucket serves acknowledgements of other
        # connections
        nearly = counted is not None or (one.kind != "wire" and (waiting or one.queue > 0.6 * one.places))
        nearly &= one.most > one.places + one.sent
        # messages that meet before a bucket with room for hardly more than a message
        small = one.kind == "bucket" and LEAST_ROOM * one.segment > one.places < one.most
        nearly |= small and float(point.rate @ point.service[:, r]) > SELDOM
        nearly |= _in_bursts(network, point, r, one)
        if (one.overflows or nearly) and one.tcp:
            places = one.places + one.sent
            few = places < LEAST_ROOM * one.segment
            off = "by a factor of 5, as were round trips" if few else "by 20 %, round trips by 100 %"
            found.append(
                f"windows of {one.most:.0f} packets may overflow a buffer of {places:.3g} before "
                f"{BEHIND[one.kind]}: theory knows mean windows, not the times at which they halve; goodput "
                f"was off {off}"
            )
        elif one.overflows and not all(_is_exact(network, point, int(f), r) for f in users):
            found.append(
                f"datagrams overflow a buffer of {one.places + one.sent:.3g} packets before "
                f"{BEHIND[one.kind]}: goodput was up to 10 % off on a radio with errors, and "
                "many times too high behind a bucket or from periodic sources"
            )
    return found[:1]


def _is_exact(network: Network, point: Point, f: int, r: int) -> bool:
    """Return whether the law of datagrams that come whole (`whole`) is exact but for the means of visits.

    It is the queue of a port with visits in turn, and of segments at random. Segments of one packet need not
    be at random: a port that is always full, or a bucket, sends as many as it can.
    """
    flow = network.flows[f]
    first, train = flow.forth[0], flow.forth[-1].train
    plain = flow.batch <= 1.0 and flow.more == 0.0 and flow.reverse is None
    if point.links.names[r] != (first.kind, first.index) or not plain:
        return False
    if first.kind != "port" or len(flow.forth) > 1:
        return first.kind == "bucket" and train.packets <= 1.0
    piconet = network.piconets[network.ports[first.index].piconet]
    alone = piconet.members == 1 or train.frames <= train.packets
    whole_ones = alone and _at_random(flow) and whole(network, point)[f] > SELDOM_WHOLE
    return piconet.discipline in CYCLIC and (train.packets <= 1.0 or whole_ones)


def _in_bursts(network: Network, point: Point, r: int, buffer: Buffer) -> bool:
    """Return whether a window that is always open sends more segments at once than a buffer has room for."""
    return any(
        min(_at_once(network.flows[f], point), network.flows[f].window)
        > _segments_held(network, point, f, r, buffer)
        # one acknowledgement lets the whole window out, to an empty buffer
        or (
            network.flows[f].window * network.flows[f].acks <= 1.0
            and buffer.most > buffer.places + buffer.sent
        )
        for f in map(int, np.flatnonzero(point.service[:, r] > 0.0))
        if point.links.links.endless[f]
        and network.flows[f].protocol == "tcp"
        and not network.flows[f].messages
    )


def _at_once(flow: Flow, point: Point) -> float:
    """Return the most segments that an open window sends at once.

    An acknowledgement of several segments lets as many leave, and one more while the window grows. In slow
    start, which follows timeouts, the window doubles while the station serves half of it (M. Allman et al.,
    RFC 5681, section 3.1), so that the other half waits. Acknowledgements that wait behind data of the other
    direction leave together, and a whole window follows them (L. Zhang, S. Shenker and D. D. Clark, SIGCOMM
    1991).
    """
    if any(point.wait[point.links.number[visit[:2]]] > 0.0 for visit in flow.back):
        return flow.window
    together = 1.0 / max(flow.acks, 0.1) + 1.0
    return max(together, flow.window / 2.0) if flow.loss > 0.0 or flow.ack_loss > 0.0 else together


def _segments_held(network: Network, point: Point, f: int, r: int, buffer: Buffer) -> float:
    """Return the segments that may come at once: one in service, or a full bucket's tokens' worth."""
    kind, index = point.links.names[r]
    at_once = 1.0
    if kind == "bucket":
        at_once = network.buckets[index].depth / network.buckets[index].rate / float(point.service[f, r])
    return (buffer.places + 2.0 * buffer.sent) / max(buffer.segment, 1.0) + at_once
