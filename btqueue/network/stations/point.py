r"""The operating point: rates of the flows and waits at the stations as a fixed point of their laws.

**Polled air.** A link that always has frames is visited once in a busy cycle

.. math:: C_l = M f_l + 2 P_l + \sum_{j \ne l} \min(M f_j, \rho_j C_l),

with M frames of f slots a visit, P polls of idle links of two slots, and the loads of the other links, which
take no more than a full visit. So its frames take C_l / M each: capacity and service (`air.Links`).

**Windows.** A connection with a window of W has W segments under way: its rate is W over its round trip, or
the offered load. Resources have a wait only if they are full; rates and waits are as in a closed network of
queues with constant service: rates maximise ``sum W log x - R x`` within the capacities (Mo & Walrand,
IEEE/ACM Transactions on Networking 8(5), 2000).

**Losses.** With random losses, or where a window overflows a buffer, the rate follows from the renewal chain
of the congestion window (`btqueue.transport.window_cycles`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from btqueue.network.stations import sessions, transport
from btqueue.network.stations.air import Mixed
from btqueue.network.stations.laws import CROWDED, Laws
from btqueue.network.stations.network import Network
from btqueue.network.stations.queues import Tail
from btqueue.network.stations.turns import binding

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

PASSES, SWEEPS = 90, 100
"""Most turns of all laws, and of the waits at full resources in one of them."""
FLUSHES = 20
"""Passes after which the losses by flush timeouts stay."""
SETTLED = 1e-8
"""Relative change of rates and round trips from one turn to the next at which a point is found."""
ROUGH = 1e-4
"""The same where only the flows whose load is carried are looked for."""
NEAR, CLOSE = 0.3, 1e-2
"""Change below which a step uses the turn before, and above which no point is found in a turn."""
WAITS_SETTLED = 1e-10
"""The same for waits at full resources, at given rates of flows that pass no full resource."""
FILLED = 1e-13
"""Largest deviation of the use of a full resource from its capacity."""
LEAST_STEP = 0.02
LATE = 20
"""Turns after which steps shrink, towards a jump of the laws."""
SMOOTH = 3
"""Turns with ever smaller changes after which late steps use the turn before, too."""
OFTEN = 5
"""Changes of direction in late turns that indicate a jump."""
NO_NEARER = 0.9
"""Part of the change, twice as many turns ago, that remains at a jump."""
AT_A_JUMP = 0.01
"""Most relative change of rates in a turn, where they alternate at a jump of the laws."""
CARRIED = 0.999
"""Share of the load above which it is carried."""
HARDLY = 0.99
"""The same for a rough point."""
WAITING = 0.4
"""Share of a round trip spent waiting at full stations, from which on rates follow from the capacities of the
stations, and round trips from Little's law. It was so in all 56 answers from which the bound was taken; 45 of
them were random."""


@dataclass
class Point:
    """Rates and waits; arrays over flows, links, or (flows, resources).

    Attributes:
        rate: segments delivered a second.
        sent: transmissions of a delivered segment.
        wait: at each full resource (s).
        service: service of each resource for a segment of each flow with its acknowledgement (s).
        base: round trip of a lone segment among the others (s).
        stray: waits beside it, where no resource is full (s).
        own_stray: waits behind segments of the flow, and others of its port, if windows let all of them out
            (s).
        token_s: waits for tokens of segments, if windows let all of them out (s).
        token_tails: laws of the random part of these waits.
        own: law of the waits `own_stray`: function of the window (segments) and the round trip without them
            (s).
        gather: part of `base` that comes from shared acknowledgements (s).
        found: laws of connections with losses, by their numbers.
        counted: connections whose window overflows a buffer, by number, and whether the law is known well.
        kept: results that were found from the point, by function and further arguments (`buffers.once`).
        turns_s: waits of each flow at full queues of media that take turns (s).
        between: whether rates, or segments or losses that follow from them, still changed in the last turn.
        expiries: timeouts a second by states of the radio in which hardly anything comes through.
        carried: flows whose load is carried.
    """

    rate: Vector
    sent: Vector
    wait: Vector
    service: Matrix
    base: Vector
    there: Vector
    stray: Vector
    own_stray: Vector
    own: list[Any]
    token_s: Vector
    token_tails: tuple[Tail, ...]
    links: Any
    converged: bool = True
    residual: float = 0.0
    found: dict[int, Any] = field(default_factory=dict)
    expiries: Vector = field(default_factory=lambda: np.zeros(0))
    sessions: dict[int, Any] = field(default_factory=dict)
    gather: Vector = field(default_factory=lambda: np.zeros(0))
    counted: dict[int, bool] = field(default_factory=dict)
    kept: dict[tuple, Any] = field(default_factory=dict)
    between: bool = False
    turns_s: Vector = field(default_factory=lambda: np.zeros(0))
    carried: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))

    @property
    def waits(self) -> Vector:
        """Waits of each flow at full stations (s), (flows,)."""
        return (self.service > 0.0) @ self.wait + self.turns_s


def settle(
    window: Vector,
    load: Vector,
    base: Vector,
    service: Matrix,
    start: Vector | float = 0.0,
    within: float = WAITS_SETTLED,
) -> tuple[Vector, Vector, float]:
    """Return rates of flows, waits at resources, and the largest deviation of a full one from capacity.

    A flow has the rate ``min(load, window / (base + waits))``; a resource has a wait only if it is full.
    First each full resource is filled by its wait alone, one after the other from any `start`; this shows the
    resources with a wait. Then Newton's steps of all these waits together follow, as long as the deviation
    falls.
    """
    rate = np.minimum(load, window / base)
    if not np.any(start) and (rate @ service <= 1.0).all():
        return rate, np.zeros(service.shape[1]), 0.0
    used = (service > 0.0).astype(float)
    # a resource with at least the service of another for every flow fills first: the other has no wait
    least = np.all(service[:, :, None] <= service[:, None, :], axis=0)
    equal = least & least.T
    behind = np.any(least & ~equal, axis=1) | np.any(np.tril(equal, -1), axis=1)
    wait = np.where(behind, 0.0, start)
    longest = max(base.max(initial=0.0), 1e-12)

    def at(wait: Vector) -> tuple[Vector, Vector, float]:
        """Return round trips, how much more than full resources are, and the most that they are off."""
        trip = base + used @ wait
        over = np.minimum(load, window / trip) @ service - 1.0
        return trip, over, float(np.where(wait > 0.0, np.abs(over), over)[~behind].max(initial=0.0))

    trip, over, off = at(wait)
    for _ in range(SWEEPS):
        if off < FILLED:
            break
        before = wait.copy()
        for r in np.flatnonzero(~behind & ((over > 0.0) | (wait > 0.0))):
            mine = used[:, r] > 0.0
            rest = base[mine] + used[mine] @ wait - wait[r]
            wait[r] = _wait_of(window[mine], load[mine], rest, service[mine, r])
        trip, over, off = at(wait)
        while off >= FILLED and (wait > 0.0).any():
            mine, rate = wait > 0.0, window / trip
            slope = np.where(rate < load, rate / trip, 0.0)
            jacobian = service[:, mine].T @ (slope[:, None] * used[:, mine])
            new = wait.copy()
            new[mine] += np.linalg.lstsq(jacobian, over[mine], rcond=None)[0]
            nearer = at(np.maximum(new, 0.0))
            if not nearer[2] < off / 2.0:
                break
            wait, (trip, over, off) = np.maximum(new, 0.0), nearer
        # any division of a wait among equally full resources is equivalent
        if np.abs(used @ (wait - before)).max(initial=0.0) < within * longest:
            break
    return np.minimum(load, window / trip), wait, off


def _wait_of(window: Vector, load: Vector, rest: Vector, service: Vector) -> float:
    """Return the wait at one resource with which it is full, or 0 if it is not full without.

    The use is convex in the wait beyond the last wait at which a window begins to hold its source back with
    the resource still more than full. There Newton's steps reach the root from below.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        begin = np.where(load > 0.0, np.maximum(window / load - rest, 0.0), inf)
    places = np.append(begin[begin < inf], 0.0)
    over = np.minimum(load, window / (rest + places[:, None])) @ service - 1.0
    if not (over > 0.0).any():
        return 0.0
    wait = float(places[over > 0.0].max())
    held = begin <= wait
    free = float(load[~held] @ service[~held]) - 1.0
    work, rest = (window * service)[held], rest[held]
    for _ in range(SWEEPS):
        use = work / (rest + wait)
        step = (float(use.sum()) + free) / float((use / (rest + wait)).sum())
        if not step > 1e-15 * wait:
            break
        wait += step
    return wait


def operating_point(network: Network, start: Point | None = None, *, refuses: bool = False) -> Point:
    """Return the fixed point of rates and waits.

    Where the loads fill a station, only windows hold sources back at first. This shows the flows whose load
    is not carried: they are the same as sources that always have data. The waits of the other flows are then
    queueing delays of random arrivals.

    Args:
        network: stations and flows.
        start: a point of the same stations and flows with other numbers: from there fewer iterations are
            needed, as long as the same loads are carried.
        refuses: whether packets are lost if a bridge has no room for them.
    """
    laws = Laws(network, refuses=refuses)
    load = np.array([flow.load for flow in network.flows])
    if start is not None:
        laws.go_on(start.links)
        point = _iterated(network, laws, start.rate)
        if (point.carried == start.carried).all() and point.converged:
            return point
        laws = Laws(network, refuses=refuses)
    endless = np.isinf(load)
    if not (load[~endless] > 0.0).any():
        return _iterated(network, laws, np.zeros(len(load)))
    if not endless.any() and laws.use(load).max(initial=0.0) < CROWDED:
        point = _iterated(network, laws, load, least=HARDLY)
        if not point.waits.any() and (point.rate >= CARRIED * load).all():
            return point
        laws = Laws(network, refuses=refuses)
    laws.links.endless[:] = endless | (load > 0.0)
    fluid = _iterated(network, laws, np.where(endless, 0.0, load), ROUGH)
    # datagrams are held back only by a full station, not by a window
    held = (laws.windows < inf) | (fluid.waits > 0.0)
    laws.links.endless[:] = endless | ((load > 0.0) & held & (fluid.rate < CARRIED * load))
    return _iterated(laws.network, laws, fluid.rate)


def _iterated(
    network: Network, laws: Laws, rate: Vector, within: float = SETTLED, least: float = 0.0
) -> Point:
    """Return the point to which rates settle; a rate that oscillates takes smaller steps.

    A point that carries less than the part `least` of a load is a rough one.
    """
    flows = network.flows
    load = np.array([flow.load for flow in flows])
    window = np.array([transport.window_of(network, flow) for flow in flows])
    count = len(laws.names)
    (sent, full, wait), service = laws.begin, np.zeros((len(flows), count))
    step, before, turned = np.ones(len(flows)), np.zeros(len(flows)), np.zeros(len(flows))
    expiries, lone, smooth, offs = np.zeros(len(flows)), np.zeros(len(flows)), 0, []
    rates, hidden, off = Mixed(), Mixed(), inf
    sure = np.zeros(len(flows))  # waits for tokens that a full bucket does not hold
    laws.change = inf
    flushes = any(visit.flush_s < inf for flow in flows for visit in flow.forth)
    asking = [f for f, flow in enumerate(flows) if flow.messages and f < (flow.reverse or 0)]
    talks: dict[int, Any] = {}
    # sessions alone never saturate a station: a client waits for its answer
    plain = np.array([not flow.messages for flow in flows]) @ laws.uses > 0.0
    between = False
    for turn in range(PASSES):
        begun = np.append(laws.links.utilisation, laws.round_s)
        laws.update(rate, sent, full)
        forth, back = laws.service()
        queues_of = laws.turns.update(rate, sent, laws.alone)
        for f in laws.firsts:
            laws.answers[f] = transport.answers_of(
                flows[f],
                laws.queues[f]._replace(rate=float(rate[f]), service_s=float(forth[f].max(initial=0.0))),
                *laws.against(f, rate),
                carried=bool(rate[f] > CARRIED * load[f]),
            )
            laws.receiver(f, float(rate[f]), carried=bool(rate[f] > max(CARRIED * load[f], 0.0)))
        laws.answers, laws.timed = [laws.answers[f] for f in laws.like], laws.timed[laws.like]
        own = laws.own_loads(rate, sent)
        if not np.isfinite(rate).all():
            raise FloatingPointError("the rate of a flow is no number")
        trips = np.zeros((len(flows), 2))
        for f in laws.firsts:
            trips[f] = laws.trip(f, flows[f], own[f], float(rate[f]))
        trips = trips[laws.like]
        base, gather = trips.sum(axis=1), np.zeros(len(flows))
        for f in laws.firsts:
            flow = flows[f]
            base[f] += laws.answers[f].wait_s
            if laws.answers[f].carried and flow.reverse is not None:
                base[f] += laws.answers[f].carried * (trips[flow.reverse, 0] - trips[f, 1])
            # the law of losses includes it
            if laws.links.endless[f] and not flow.loss and not flow.ack_loss and laws.answers[f].alone:
                gather[f] = transport.gather_s(flow, float(base[f]), float(forth[f].max(initial=0.0)))
        base, gather = base[laws.like], gather[laws.like]
        if not np.isfinite(base).all():
            raise FloatingPointError("a segment is under way for ever")
        others, mine, queues = laws.strays(rate, sent, forth, back, full, base)
        quiet = full[: len(network.ports)].max(initial=0.0) == 0.0
        faded, expiries = laws.fades(rate, sent, forth, base, waits=quiet)
        others = others + faded
        tokens, sure, turns = laws.tokens(rate, sent, forth, back, full)
        others = others + sure + [laws.tokens_back(f, tail) for f, (_, tail) in enumerate(tokens)]
        waits = [
            laws.waits_of(f, float(mine[f]), queues.get(f), tokens[f][0], float(turns[f]))
            for f in laws.like.tolist()
        ]
        own_waits = np.zeros(len(flows))
        for f in laws.firsts:
            own_waits[f] = waits[f](inf, float(base[f]))
        own_waits = own_waits[laws.like]
        laws.ports, laws.waits = queues, laws.waits + sure
        laws.round_s = base + others + own_waits
        service = laws.starved(rate, forth * sent[:, None] + back * laws.alone[:, None])
        if flushes and turn < FLUSHES:
            laws.flush(rate, sent, forth, trips[:, 0], own_waits + others, full)
        if laws.refuses:
            laws.refuse(rate, sent)
        network, flows = laws.network, laws.network.flows
        talks = sessions.sessions_of(laws, asking, rate, service)
        for f, talk in talks.items():
            for one in sessions.pair_of(flows, f):
                load[one] = flows[one].segments / talk.cycle_s
        base = base + gather
        # a full window does not wait for acknowledgements that are for further segments
        late = [
            max(one.wait_s - queue.service_s, 0.0)
            for one, queue in zip(laws.answers, laws.queues, strict=True)
        ]
        waiting = laws.windows < 2.0  # for the acknowledgement of the only segment
        late = np.where(np.isinf(load) | waiting, 0.0, late)
        longest = laws.within_visits(window, service, full)
        others = np.minimum(others, longest - base)
        lone_before, lone = lone, base + others
        most, sent, _ = transport.caps(network, laws, rate, sent, lone, service, every=False)
        limits = np.zeros(len(flows))
        for f in laws.firsts:
            laws.rests[f], limits[f] = laws.rest(f, flows[f], float(rate[f]), float(base[f]))
        laws.rests, limits = [laws.rests[f] for f in laws.like], limits[laws.like]
        closer = WAITS_SETTLED if laws.change < CLOSE else ROUGH  # no point is found in a rough turn
        held_by, offered = np.minimum(window, limits), np.minimum(load, most)
        bound = binding(service, laws.turns, queues_of)
        new, wait, _ = settle(held_by, offered, lone - late, bound, wait, closer)
        full_before, full = full, np.where((new @ service > CROWDED) & plain, 1.0, 0.0)
        move = new - rate
        mixed = rates.of(rate, new, 1.0 / np.maximum(new, 1e-9))
        change = rates.farthest
        drift = float(np.max(np.abs(lone - lone_before) / np.maximum(lone, 1e-9), initial=0.0))
        off_before, off = off, max(change, drift)
        enough = ROUGH if least and (new < least * load).any() else within
        # as much as all further turns will move it, if each moves it by the same part of the turn before
        ahead = off * off / max(off_before - off, 1e-300) if off < off_before else inf
        known = ((full == full_before).all() and ahead < enough) or (off < enough and turn > 1)
        if known and laws.change < CLOSE:
            break
        nearer, laws.change = change < laws.change < NEAR, change
        late, over = turn >= LATE, turn >= PASSES // 2  # second half of the turns: steps only shrink
        turned = turned + (late & (move * before < 0.0))
        grow = np.where(step < LEAST_STEP, 1.5, 1.0 if over else 1.2) if late else 1.3
        shortest = 0.0 if late else LEAST_STEP
        # the first turn begins far away, with idle stations
        back_again = (move * before < 0.0) & (turn > 1)
        step = np.where(back_again, np.maximum(step / 2.0, shortest), np.minimum(step * grow, 1.0))
        following = rate + step * move
        smooth = smooth + 1 if nearer else 0
        if nearer and not over and (smooth >= SMOOTH or not late):
            following = np.maximum(mixed, 0.5 * rate)
        # uses and round trips, which this turn has found from the turn before, where rates hardly move
        found = np.append(laws.links.utilisation, laws.round_s)
        mixed = np.maximum(hidden.of(begun, found, 1.0 / np.maximum(found, 1e-9)), 0.5 * begun)
        if hidden.farthest < hidden.farther < NEAR and not late:
            laws.links.utilisation = np.minimum(mixed[: -len(rate)], 1.0)
            laws.round_s = mixed[-len(rate) :]
        # laws jump where a resource fills: rates that hardly move are at a jump, and fit round trips
        last = turn == PASSES - 1
        moved = np.max(np.abs(following - rate) / np.maximum(following, 1e-9), initial=0.0)
        before, rate = move, following
        most_moved, often = (AT_A_JUMP, 1.0) if last else (within, OFTEN)
        settled = (np.abs(move) <= most_moved * np.maximum(new, 1e-9)) | (turned > often)
        at_a_jump = bool(
            moved < most_moved
            and settled.all()
            and (last or off > NO_NEARER * min(offs[-2 * OFTEN : -OFTEN], default=0.0))
        )
        offs.append(off)
        between = last or (late and at_a_jump)
        if between and at_a_jump:
            held = (new < CARRIED * np.minimum(load, most)) & (rate > 0.0)
            trip = np.divide(np.minimum(window, limits), rate, out=np.full(len(flows), inf), where=rate > 0.0)
            rest = trip - base - (bound > 0.0) @ wait  # no more than a window is under way
            others = np.where(held, rest, np.minimum(others, rest))
            new, change = rate, float(moved)
        if between:
            break
    *_, found = transport.caps(network, laws, rate, sent, lone, service, every=True)
    laws.ended = sent, full, wait
    return Point(
        new,
        sent,
        wait[:count],
        service,
        base,
        trips[:, 0],
        others,
        own_waits,
        waits,
        sure + [tail.between(0.0, inf) for tail, _ in tokens],
        tuple(tail for tail, _ in tokens),
        laws,
        change < 1e-2,
        change,
        found,
        expiries,
        talks,
        gather=gather,
        between=between,
        turns_s=(queues_of > 0.0) @ wait[count:],
        carried=new >= CARRIED * load,
    )
