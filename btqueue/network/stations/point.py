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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.stations import acknowledgements, sessions, token_buckets, transport
from btqueue.network.stations.air import Mixed
from btqueue.network.stations.laws import CROWDED, Laws
from btqueue.network.stations.network import Network
from btqueue.network.stations.own_queue import Tail
from btqueue.network.stations.turns import binding

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

PASSES, SWEEPS = 90, 100
"""Most turns of all laws, and of the waits at full resources in one of them."""
SETTLED = 1e-8
"""Relative change of rates and round trips from one turn to the next at which a point is found."""
FINE = 1e-10
"""The same from a point a small step away, as derivatives are differences of both."""
ROUGH = 1e-4
"""The same where only the flows whose load is carried are looked for."""
NEAR, CLOSE = 0.3, 1e-2
"""Change below which a step uses the turn before, and above which laws of losses are rough."""
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
        own: law of the waits `own_stray`: a function of the window (segments) and of the round trip without
            these waits (s).
        gather: part of `base` that comes from shared acknowledgements (s).
        found: laws of connections with losses, by their numbers.
        counted: connections whose window overflows a buffer, by number, and whether their law is well known.
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
) -> tuple[Vector, Vector, float]:
    """Return rates of flows, waits at resources, and the largest deviation of a full one from capacity.

    A flow has the rate ``min(load, window / (base + waits))``; a resource has a wait only if it is full.
    First each full resource is filled by its wait alone, one after the other from any `start`; this shows the
    resources with a wait. Then Newton's steps of all these waits together follow, as long as the deviation
    falls. If a wait of the start belongs to a resource that is not full, the search begins anew without it.
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
        if np.abs(used @ (wait - before)).max(initial=0.0) < WAITS_SETTLED * longest:
            break
    if off > WAITS_SETTLED and np.any(start):  # other resources are full than at the start
        return settle(window, load, base, service)
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
    if free < 0.0:  # below the root, by Jensen's inequality; the root itself of equal round trips
        wait = max(wait, -float(work.sum()) / free - float(work @ rest) / float(work.sum()))
    for _ in range(SWEEPS):
        use = work / (rest + wait)
        step = (float(use.sum()) + free) / float((use / (rest + wait)).sum())
        if not step > 1e-15 * wait:
            break
        wait += step
    return wait


def operating_point(
    network: Network, start: Point | None = None, *, refuses: bool = False, within: float = SETTLED
) -> Point:
    """Return the fixed point of rates and waits.

    Where the loads fill a station, only windows hold sources back at first. This shows the flows whose load
    is not carried: they are the same as sources that always have data. The waits of the other flows are then
    queueing delays of random arrivals.

    Args:
        network: stations and flows.
        start: a point of the same flows with other numbers: from there fewer iterations are needed, as long
            as the same loads are carried at the same stations.
        refuses: whether packets are lost if a bridge has no room for them.
        within: relative change at which a point is found from `start`.
    """
    laws = Laws(network, refuses=refuses)
    load = np.array([flow.load for flow in network.flows])
    if start is not None and start.links.names == laws.names:
        laws.go_on(start.links)
        point = _settled(network, laws, start.rate, within)
        if (point.carried == start.carried).all() and point.converged:
            return point
        laws = Laws(network, refuses=refuses)
    endless = np.isinf(load)
    if not (load[~endless] > 0.0).any():
        return _settled(network, laws, np.zeros(len(load)))
    if not endless.any() and laws.use(load).max(initial=0.0) < CROWDED:
        point = _settled(network, laws, load, least=HARDLY)
        if not point.waits.any() and (point.rate >= CARRIED * load).all():
            return point
        laws = Laws(network, refuses=refuses)
    laws.links.endless[:] = endless | (load > 0.0)
    fluid = _settled(network, laws, np.where(endless, 0.0, load), ROUGH)
    # datagrams are held back only by a full station, not by a window
    held = (laws.windows < inf) | (fluid.waits > 0.0)
    laws.links.endless[:] = endless | ((load > 0.0) & held & (fluid.rate < CARRIED * load))
    return _settled(laws.network, laws, fluid.rate)


def _settled(
    network: Network, laws: Laws, rate: Vector, within: float = SETTLED, least: float = 0.0
) -> Point:
    """Return the point to which rates settle.

    Args:
        network: stations and flows.
        laws: of its stations.
        rate: where to begin (1/s), (flows,).
        within: relative change from one turn to the next at which the point is found.
        least: a point that carries less than this part of a load is a rough one.
    """
    search, steps = Search(network, laws, rate), Steps(len(rate), within)
    for number in range(PASSES):
        here = search.turn(number)
        enough = ROUGH if least and (here.point.rate < least * search.load).any() else within
        if steps.is_found(here, number, enough, laws):
            break
        search.rate = steps.next(here, number, laws)
        if steps.between:
            break
    return search.point(here, steps)


class Turn(NamedTuple):
    """All laws at given rates, and the rates that windows and loads allow with them.

    Attributes:
        begun: uses of the links and round trips that the laws began with.
        begin: rates that they began with.
        point: all that the laws gave; its rates follow from them.
        moved: largest relative change of a round trip without waits at full resources since the turn before.
        held, offered: most segments under way by windows, and most rate by loads and losses, (flows,).
        same: whether the same resources are full as in the turn before.
    """

    begun: Vector
    begin: Vector
    point: Point
    moved: float
    held: Vector
    offered: Vector
    same: bool


class Search:
    """All laws at rates that come closer to the rates that the laws allow.

    Attributes:
        network: the stations, with the losses that depend on waits.
        laws: of the stations; they keep what a turn takes over from the turn before.
        rate: at which the laws are asked next (1/s).
        load: of the sources; of sessions by their times in the last turn.
        sent, full, wait, expiries, lone: as found in the last turn (`Turn`, `Point`).
    """

    def __init__(self, network: Network, laws: Laws, rate: Vector) -> None:
        flows = network.flows
        self.network, self.laws, self.rate = network, laws, rate
        self.load = np.array([flow.load for flow in flows])
        self.window = np.array([transport.window_of(network, flow) for flow in flows])
        self.sent, self.full, self.wait, self.lone = laws.begin
        self.expiries = np.zeros(len(flows))
        self.service = np.zeros((len(flows), len(laws.names)))
        self.asking = [f for f, flow in enumerate(flows) if flow.messages and f < (flow.reverse or 0)]
        # sessions alone never saturate a station: a client waits for its answer
        self.fills = np.array([not flow.messages for flow in flows]) @ laws.uses > 0.0
        laws.change = inf

    def turn(self, number: int) -> Turn:
        """Return the laws at the rates, and the rates that follow.

        Args:
            number: of turns before.

        Raises:
            FloatingPointError: a rate or a time is no number.
        """
        laws, rate, load = self.laws, self.rate, self.load
        begun = np.append(laws.links.utilisation, laws.round_s)
        laws.update(rate, self.sent, self.full)
        forth, back = laws.service()
        queued = laws.turns.update(rate, self.sent, laws.alone, laws.comes)
        self._acknowledge(forth)
        if not np.isfinite(rate).all():
            raise FloatingPointError("the rate of a flow is no number")
        there, base, gather = self._lone_trips(forth)
        others, own, own_waits, sure, tails = self._waits(forth, back, base)
        laws.round_s = base + others + own_waits
        self.service = forth * laws.comes[0] * self.sent[:, None] + back * laws.comes[1] * laws.alone[:, None]
        self.network = laws.network
        flows = self.network.flows
        laws.filled_s = self.wait
        talks = sessions.sessions_of(laws, self.asking, rate, self.service)
        for f, talk in talks.items():
            for one in sessions.pair_of(flows, f):
                load[one] = flows[one].segments / talk.cycle_s
        base = base + gather
        endless = laws.links.endless
        whole = np.where(endless, laws.within_visits(self.window, self.service, self.full), np.inf)
        others = np.minimum(others, whole - base)
        lone_before, self.lone = self.lone, base + others
        most, self.sent, _ = transport.caps(
            self.network, laws, rate, self.sent, self.lone, self.service, every=False
        )
        held, offered = np.minimum(self.window, self._limits(base)), np.minimum(load, most)
        bound = binding(self.service, laws.turns, queued)
        new, self.wait, _ = settle(held, offered, self.lone - self._late_s(), bound, self.wait)
        if laws.refuses:
            laws.refuse(new * self.sent)
        before = self.full
        # sources that send all of their load do not fill a station: their queue has a law up to its capacity
        held_back = (new < CARRIED * load) @ (self.service > 0.0) > 0.0
        self.full = np.where((new @ self.service > CROWDED) & self.fills & held_back, 1.0, 0.0)
        moved = np.abs(self.lone - lone_before) / np.maximum(self.lone, 1e-9)
        point = Point(
            rate=new,
            sent=self.sent,
            wait=self.wait[: len(laws.names)],
            service=self.service,
            base=base,
            there=there,
            stray=others,
            own_stray=own_waits,
            own=own,
            token_s=sure,
            token_tails=tails,
            links=laws,
            expiries=self.expiries,
            sessions=talks,
            gather=gather,
            turns_s=(queued > 0.0) @ self.wait[len(laws.names) :],
            carried=new >= CARRIED * load,
        )
        same = bool((self.full == before).all())
        return Turn(begun, rate, point, float(np.max(moved, initial=0.0)), held, offered, same)

    def point(self, here: Turn, steps: Steps) -> Point:
        """Return the point of the last turn, with the laws of connections that lose segments."""
        point, rate = here.point, self.rate
        if steps.between and steps.at_a_jump:  # no more than a window is under way
            held = (point.rate < CARRIED * here.offered) & (rate > 0.0)
            trip = np.divide(here.held, rate, out=np.full(len(rate), inf), where=rate > 0.0)
            rest = trip - point.base - point.waits
            point.rate, point.stray = rate, np.where(held, rest, np.minimum(point.stray, rest))
            point.carried = rate >= CARRIED * self.load
        point.converged, point.residual, point.between = steps.change < 1e-2, steps.change, steps.between
        point.token_s = point.token_s + [tail.between(0.0, inf) for tail in point.token_tails]
        *_, point.found = transport.caps(
            self.network, self.laws, rate, self.sent, self.lone, self.service, every=True
        )
        self.laws.ended = self.sent, self.full, self.wait, self.lone
        return point

    def _acknowledge(self, forth: Matrix) -> None:
        """Set how receivers acknowledge; `forth`: service of segments (s)."""
        laws, rate, load = self.laws, self.rate, self.load
        for f in laws.firsts:
            laws.answers[f] = acknowledgements.answers_of(
                self.network.flows[f],
                laws.queues[f]._replace(rate=float(rate[f]), service_s=float(forth[f].max(initial=0.0))),
                *laws.against(f, rate),
                carried=bool(rate[f] > CARRIED * load[f]),
            )
            laws.receiver(f, float(rate[f]), carried=bool(rate[f] > max(CARRIED * load[f], 0.0)))
        laws.answer([laws.answers[f] for f in laws.like])
        laws.timed = laws.timed[laws.like]

    def _lone_trips(self, forth: Matrix) -> tuple[Vector, Vector, Vector]:
        """Return the way forth, the round trip of a lone segment, and its wait for others to be acknowledged.

        The last is not in the round trip. All in seconds, shape (flows,).
        """
        laws, flows = self.laws, self.network.flows
        own, trips = laws.own_loads(self.rate, self.sent), np.zeros((len(flows), 2))
        for f in laws.firsts:
            trips[f] = laws.trip(f, flows[f], own[f], float(self.rate[f]))
            trips[f] += flows[f].relays_s
        trips = trips[laws.like]
        base, gather = trips.sum(axis=1), np.zeros(len(flows))
        for f in laws.firsts:
            flow, answers = flows[f], laws.answers[f]
            base[f] += answers.wait_s
            if answers.carried and flow.reverse is not None:
                base[f] += answers.carried * (trips[flow.reverse, 0] - trips[f, 1])
            # the law of losses includes it
            if laws.links.endless[f] and not flow.loss and not flow.ack_loss and answers.alone:
                gather[f] = transport.gather_s(flow, float(forth[f].max(initial=0.0)))
            base[f] += laws.bunched_s(f, float(base[f] + gather[f]))
        base, gather = base[laws.like], gather[laws.like]
        if not np.isfinite(base).all():
            raise FloatingPointError("a segment is under way for ever")
        return trips[:, 0], base, gather

    def _waits(
        self, forth: Matrix, back: Matrix, base: Vector
    ) -> tuple[Vector, list[Any], Vector, Vector, tuple[Tail, ...]]:
        """Return waits where no resource is full.

        Args:
            forth: service of segments (s).
            back: service of their acknowledgements (s).
            base: round trips without these waits (s).

        Returns:
            Waits for other traffic (s); the laws of waits behind own segments, and these waits if windows let
            all segments out (s); sure waits for tokens (s), and the laws of the random ones.
        """
        laws, rate, sent, full = self.laws, self.rate, self.sent, self.full
        others, mine, queues = laws.strays(rate, sent, forth, back, full, base)
        quiet = full[: len(self.network.ports)].max(initial=0.0) == 0.0
        faded, self.expiries = laws.fades(rate, sent, forth, base, waits=quiet)
        others = others + faded
        tokens, sure, turns = token_buckets.waits(laws, rate, sent, forth, back, full)
        if self.network.buckets:
            others = (
                others + sure + [token_buckets.back_s(laws, f, tail) for f, (_, tail) in enumerate(tokens)]
            )
        own = [
            laws.waits_of(f, float(mine[f]), queues.get(f), tokens[f][0], float(turns[f]))
            for f in laws.like.tolist()
        ]
        own_waits = np.zeros(len(rate))
        for f in laws.firsts:
            own_waits[f] = own[f](inf, float(base[f]))
        laws.ports, laws.waits = queues, laws.waits + sure
        return others, own, own_waits[laws.like], sure, tuple(tail for tail, _ in tokens)

    def _late_s(self) -> Vector:
        """Return the waits of acknowledgements that are for further segments (s).

        A full window does not wait for them.
        """
        laws = self.laws
        late = [
            max(one.wait_s - queue.service_s, 0.0)
            for one, queue in zip(laws.answers, laws.queues, strict=True)
        ]
        waiting = laws.windows < 2.0  # for the acknowledgement of the only segment
        return np.where(np.isinf(self.load) | waiting, 0.0, late)

    def _limits(self, base: Vector) -> Vector:
        """Return the windows that connections open to, and keep where they rest; `base`: round trips (s)."""
        laws, limits = self.laws, np.zeros(len(base))
        for f in laws.firsts:
            laws.rests[f], limits[f] = laws.rest(
                f, self.network.flows[f], float(self.rate[f]), float(base[f])
            )
        laws.rests = [laws.rests[f] for f in laws.like]
        return limits[laws.like]


class Steps:
    """The rates of the next turn: mixtures of the last two turns, or steps that shrink where rates oscillate.

    Attributes:
        change: largest relative change of a rate in the last turn.
        between: whether the search ends without a fixed point: the rates jump between two values, or the
            number of turns is used up.
        at_a_jump: whether the jump is the reason: the means of the last turns have settled, and single turns
            have not, because the laws are discontinuous where a station becomes full.
    """

    def __init__(self, flows: int, within: float) -> None:
        self.within = within
        self.step, self.before, self.turned = np.ones(flows), np.zeros(flows), np.zeros(flows)
        self.rates, self.hidden = Mixed(), Mixed()
        self.off, self.offs, self.smooth = inf, [], 0
        self.change, self.between, self.at_a_jump = inf, False, False

    def is_found(self, here: Turn, number: int, enough: float, laws: Laws) -> bool:
        """Return whether rates and round trips have settled.

        Args:
            here: the turn.
            number: of turns before.
            enough: relative change at which they have.
            laws: with the change of rates in the turn before.
        """
        self.mixed = self.rates.of(here.begin, here.point.rate, 1.0 / np.maximum(here.point.rate, 1e-9))
        self.change = self.rates.farthest
        before, self.off = self.off, max(self.change, here.moved)
        # as much as all further turns will move it, if each moves it by the same part of the turn before
        ahead = self.off * self.off / (before - self.off) if self.off < before < inf else inf
        known = (here.same and ahead < enough) or (self.off < enough and number > 1)
        return known and (laws.change < CLOSE or not laws.chains)

    def next(self, here: Turn, number: int, laws: Laws) -> Vector:
        """Return the rates of the next turn (1/s); of links and round trips `laws` takes mixtures, too."""
        move = here.point.rate - here.begin
        nearer, laws.change = self.change < laws.change < NEAR, self.change
        late, over = number >= LATE, number >= PASSES // 2  # second half of the turns: steps only shrink
        turns_back = move * self.before < 0.0
        self.turned = self.turned + (late & turns_back)
        grow = np.where(self.step < LEAST_STEP, 1.5, 1.0 if over else 1.2) if late else 1.3
        shortest = 0.0 if late else LEAST_STEP
        # the first turn begins far away, with idle stations
        shorter = np.maximum(self.step / 2.0, shortest)
        self.step = np.where(turns_back & (number > 1), shorter, np.minimum(self.step * grow, 1.0))
        following = here.begin + self.step * move
        self.smooth = self.smooth + 1 if nearer else 0
        if nearer and not over and (self.smooth >= SMOOTH or not late):
            following = np.maximum(self.mixed, 0.5 * here.begin)
        self._mix_links(here, laws, late=late)
        self.before = move
        self._judge(here, following, number)
        return following

    def _mix_links(self, here: Turn, laws: Laws, *, late: bool) -> None:
        """Mix uses of links and round trips, found from those of the turn before, where rates hardly move."""
        found = np.append(laws.links.utilisation, laws.round_s)
        mixed = self.hidden.of(here.begun, found, 1.0 / np.maximum(found, 1e-9))
        mixed, flows = np.maximum(mixed, 0.5 * here.begun), len(here.point.rate)
        if self.hidden.farthest < self.hidden.farther < NEAR and not late:
            laws.links.utilisation = np.minimum(mixed[:-flows], 1.0)
            laws.round_s = mixed[-flows:]

    def _judge(self, here: Turn, following: Vector, number: int) -> None:
        """Find out whether rates are at a jump of the laws: they hardly move, and fit the round trips."""
        last, off = number == PASSES - 1, self.off
        moved = np.max(np.abs(following - here.begin) / np.maximum(following, 1e-9), initial=0.0)
        most_moved, often = (AT_A_JUMP, 1.0) if last else (self.within, OFTEN)
        settled = (np.abs(self.before) <= most_moved * np.maximum(here.point.rate, 1e-9)) | (
            self.turned > often
        )
        self.at_a_jump = bool(
            moved < most_moved
            and settled.all()
            and (last or off > NO_NEARER * min(self.offs[-2 * OFTEN : -OFTEN], default=0.0))
        )
        self.offs.append(off)
        self.between = last or (number >= LATE and self.at_a_jump)
        if self.between and self.at_a_jump:
            self.change = float(moved)
