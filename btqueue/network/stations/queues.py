r"""Waits at the ports of piconets without bridges: processor sharing with a queue at every port.

**Work.** A train of k frames of l slots takes k (l + 1) slots, less two for every visit that it fills, as it
saves the empty frame at the end of the visit. Packets of both ports of a link that share a frame save two
slots more.

**Others.** While a segment waits for a visit the other links are served. Segments that arrive for them while
its frames are sent are served before its next visit. So a wait of s slots in an idle piconet, with v visits
to each other link, takes

.. math:: t = s + \sum_j \min(\rho_j t, v F_j)

with the work :math:`\rho_j` of the other links and the work :math:`F_j` of a full visit: processor sharing
(L. Kleinrock, Queueing Systems II, 1976, section 4.4). A train of work w may be under way elsewhere when the
segment comes: :math:`\sum x w^2 / 2`, stretched alike.

Trains of hosts that go the other way on the link are sent in the visit for which a segment waits. They do not
delay it, but its frames are longer beside them. Of 95 random stars with datagrams both ways three quarters of
the delays were within 5 % of the simulator, and 1.1 and 2 % off in the median.

**Own port.** A train behind another one at its port is delayed by three parts: the frames of the other train,
the share of these frames in a cycle of M frames, and the work of the other train at its further ports. This
delay is stretched by the work that this port does not cause. So the port is the M/G/1 queue with vacations in
which each service has its share of the vacations: Pollaczek and Khinchine's wait, after half a cycle. With
visits of one train it is the mean wait of the pseudo-conservation law (O. Boxma and W. Groenendijk, J. Appl.
Prob. 24, 1987). Where visits are seldom full, that law itself is used (`Queues._conserve`). Else a visit that
ends within a train lets trains of other links overtake its last frames: without this wait delays of stars of
four stations (segments of three and five frames, limits of 1 to 20) were up to 3.7 % too short at 0.35 of the
capacity and 7.4 % at 0.6, with it they are within 2.6 % and 5 %.

**Further ports.** Trains that the central relays arrive in the cycle in which they are served. They wait for
trains that share their visits and this cycle (`Queues._share_visits`). An acknowledgement comes at the end of
a train, and waits behind others of its first port only if a train beside this one left them.

No number is fitted. Four conditions were chosen by simulations: a train longer than a visit is not overtaken
more than alone (88 stars); trains whose packets go one by one do not wait for trains that share a visit (23
rings); trains that the central relays still count as a delay of trains the other way, and acknowledgements of
relayed data find only trains that a visit has left (67 rings, pairs and stars: delays 3.7 % off in the root
mean square with the rules of trains from hosts, 3.2 % without).
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from math import ceil, floor, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import nbdtr

from btqueue.baseband import SLOT_S
from btqueue.network.stations.air import Links, as_share
from btqueue.network.stations.network import EMPTY, ENDLESS, Network, Piconet, Train
from btqueue.network.stations.own_queue import Own
from btqueue.network.stations.transport import let_out
from btqueue.queueing.vacations import Time

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MOST_LOAD = 0.985
"""Highest utilisation of a port, or of the air, in formulas of waits."""
CYCLIC = ("e-limited", "1-limited", "round-robin", "exhaustive")
LONGEST_LAW = 2000
"""Frames of a train up to which the law of their number is used; beyond, their mean is taken."""
SAME = 1e-9
"""Difference up to which two numbers of frames are equal."""
MOST_FRAMES = 1e5
"""Frames of a train at most: they last for minutes, in which a connection stands still anyway."""
LEAST_AWAY = 0.01
"""Slots after which a server that has found an empty queue polls it again."""
TURNS, SETTLED = 20, 1e-7
"""Most turns in which the chances of a packet at the ports settle, and their change at which they have."""
MOST_DAMPED = 0.9
"""Largest weight of the chances of the turn before, which keeps them from swinging (J. Wegstein,
Communications of the ACM 1, 1958)."""
ROOM = 3.0
"""Trains that have room in a visit, from which on visits are seldom full, and the law of conserved work is
better than the law of shares: round trips of 59 of 71 random stars were within 5 %, with the latter 42."""
SOME = 4
"""Turns in which a queue and the ends of visits within it settle."""
ALWAYS = 1e9
"""Work of links whose visits are full."""
MOST_PLACES = 1000
"""Places of a message's trains in visits that are told apart; of more, each is as likely as the others."""
RUN = np.arange(1.0, 41.0)
"""Trains that follow each other at a port; trains of longer runs fill as many visits as of these."""
NODES, WEIGHTS = np.polynomial.laguerre.laggauss(8)


class Sent(NamedTuple):
    """The frames of a train in visits of at most M of them.

    Attributes:
        law: law of their number, on 0, 1, ...
        full_visits: mean visits that a lone train fills.
        fills_last: chance that it fills the last of its visits.
        chunks: sum of the squares of the frames of its visits, over the square of all its frames.
        turns: Fourier transform of the law of their number modulo M, (M,); empty without a limit.
    """

    law: Vector
    full_visits: float
    fills_last: float
    chunks: float
    turns: NDArray[np.complex128]


@lru_cache(maxsize=4096)
def sent_of(packets: float, frames: float, limit: int) -> Sent:
    """Return the frames of a train: packets, each repeated a geometric number of times."""
    count, frames = round(packets), min(frames, MOST_FRAMES)
    extra = frames - count
    longest = int(frames + 10.0 * (max(extra, 0.0) * frames / max(count, 1)) ** 0.5) + 12
    if extra > 1e-6 and count > 0 and longest < LONGEST_LAW:
        below = nbdtr(np.arange(longest - count, dtype=float), count, count / frames)
        law = np.r_[np.zeros(count), below[0], np.diff(below)]
    else:
        law = np.zeros(floor(frames) + 2)
        law[floor(frames)], law[floor(frames) + 1] = 1.0 - frames % 1.0, frames % 1.0
    law = law / law.sum()
    number = np.arange(law.size)
    squares = law @ (number // limit * float(limit) ** 2 + (number % limit) ** 2)
    wrapped = np.bincount(number % limit, law, limit) if limit < ENDLESS else np.zeros(0)
    return Sent(
        law,
        float(law @ (number // limit)),
        float(law @ ((number > 0) & (number % limit == 0))),
        float(squares / max(law @ number**2, 1e-12)),
        np.fft.fft(wrapped) if limit < ENDLESS else wrapped.astype(complex),
    )


@lru_cache(maxsize=4096)
def run_fills(packets: float, frames: float, limit: int, answered: float, later: float) -> Vector:
    """Return the visits that runs of 1, 2, ... trains fill, shape (RUN,).

    `answered`: further frames of any run; `later`: further frames of a run of several trains.
    """
    more, number = answered + later * (RUN > 1.0), np.arange(limit)
    shift = np.exp(-2j * np.pi / limit * more[:, None] * number)
    rests = np.fft.ifft(sent_of(packets, frames, limit).turns ** RUN[:, None] * shift).real @ number
    return (RUN * frames + more - rests) / limit


def met_squared(grown: float, room: Vector, own: float, visits: Vector) -> Vector:
    """Return the mean square of the trains that another one meets between two visits, over theirs.

    A visit has a geometric number of trains, cut off at its room. A train that takes several visits is met in
    parts: its share while the other one goes on, at any time of both, counts for each of the other's visits.

    Args:
        grown: mean square over mean of the number of trains, without a limit of visits.
        room: trains that have room in a visit.
        own: visits of the train that meets them.
        visits: visits of each of them.
    """
    again = (grown - 1.0) / (grown + 1.0)
    number = grown - 2.0 * room * again**room / (1.0 - again**room)
    few, apart = np.minimum(own, visits), abs(own - visits) + 1.0
    return number * (apart * few**2 + few * (few - 1.0) * (2.0 * few - 1.0) / 3.0) / (own * visits**2)


def fills_after(first: Sent, second: Sent, limit: int) -> float:
    """Return the chance that a train fills the visit that the train before it has begun to fill."""
    if limit >= ENDLESS:
        return 0.0
    rests = np.bincount(np.arange(first.law.size) % limit, first.law, limit)
    missing = (limit - np.arange(second.law.size) % limit) % limit
    return float(second.law @ np.where(missing > 0, rests[missing], 0.0))


class Order(NamedTuple):
    """The polls of a discipline in an idle piconet with one busy link (slots).

    Attributes:
        first: mean slots until the first packet of an idle link is sent, POLL included; for both directions,
            down and up.
        polls: visits to each idle link between two visits to a busy link; for packets down and up.
        closes: whether a visit ends with the last packet that it found.
        missed_up: slots until an acknowledgement goes up, if the data ended their visit.
        missed_down: slots until an acknowledgement goes down, if the data did not end their visit, and if
            they did.
        passed: visits of another link during the first wait, during the wait of an acknowledgement up, and
            down; large where other queues go first.
        interleaved: whether busy links take turns frame by frame.
        plain: whether links are visited in cyclic order, each until a frame is empty or the limit is reached.
    """

    first: tuple[float, float]
    polls: tuple[float, float]
    closes: float
    missed_up: float
    missed_down: tuple[float, float]
    passed: tuple[float, float, float]
    interleaved: bool = False
    plain: bool = True


def order_of(piconet: Piconet, flows: int, train: float) -> Order:
    """Return the numbers of a discipline.

    * *limited, exhaustive*: cyclic order for ever.
    * *gated*: a visit ends with the last packet that it found. A packet that arrives during its poll goes
      alone.
    * *lwrr*: an idle link is visited in one of `max_weight` cycles.
    * *prc-lwrr*: an idle link is left out for as many idle cycles, unless all are. So a shorter train is sent
      without a pause. A visit that ends with the last packet of a train is repeated at once, too early for
      the answer.
    * *fep*: only links with data, or not yet found without, are visited, a frame at a time.
    * *slq*: the longest queue of both ways, *ldq*: the longest queue of the way down; ties in cyclic order.

    Args:
        piconet: with the discipline.
        flows: flows of the piconet.
        train: slots of the frames of a segment.
    """
    n, name = float(piconet.members), piconet.discipline
    away, cycle = EMPTY * (n - 1.0), EMPTY * n
    cyclic = Order((n, n), (1.0, 1.0), 0.0, cycle, (cycle, away if n > 1.0 else EMPTY), (0.5, 1.0, 1.0))
    if n == 1.0 or name in CYCLIC:
        return cyclic
    cyclic = cyclic._replace(plain=False)
    if name == "gated":
        return cyclic._replace(first=(n, n + (n - 1.0) / n), closes=1.0)
    if name == "fep":  # idle rounds begin behind the link that was busy last; the rest of one is polled too
        rest, soon = n * (1.0 - 1.0 / max(flows, 1)), 1.0 + (n - 1.0) * (2.0 * n - 1.0) / (3.0 * n)
        return cyclic._replace(
            first=(soon, n + rest), missed_up=EMPTY, missed_down=(EMPTY, EMPTY), interleaved=True
        )
    many, down = float(ENDLESS), 1.0 + EMPTY / n  # one of n links has just been polled: another goes first
    if name == "slq":
        return Order((down, 2.0), (0.0, 0.0), 0.0, EMPTY, (EMPTY, EMPTY), (many, many, many), plain=False)
    if name == "ldq":
        return Order((down, n), (0.0, 1.0), 0.0, cycle, (EMPTY, EMPTY), (0.5, many, 0.5), plain=False)
    polls = piconet.idle_polls
    repeated = (1.0 - polls) ** (n - 1.0) * EMPTY + polls * away
    if name == "prc-lwrr":  # the idle links were polled one after the other before the train
        since, weight = train + EMPTY * np.arange(1, int(n)), 1.0 / polls
        polls = float(np.mean(since >= cycle * (weight - 1.0)))
        sooner = float(np.sum(since > cycle * (weight - 2.0)))
        repeated = (1.0 - polls) * EMPTY * (1.0 + sooner) + polls * away
    later = EMPTY + polls * away
    return cyclic._replace(polls=(polls, polls), missed_up=later, missed_down=(later, repeated))


def stretched(slots: Vector, visits: Vector, work: Matrix, full_visit: Vector) -> Vector:
    """Return how long waits take while others are served (slots): t = s + sum of min(work t, v F).

    The work served is concave in the time: Newton's method from above ends after a few steps.

    Args:
        slots: (K,) that they take alone.
        visits: (K,) of each other link meanwhile.
        work: (K, N) or (1, N) slots of work that come for others in a slot.
        full_visit: (N,) slots of work of a full visit.
    """
    most = np.where(work > 0.0, visits[:, None] * full_visit, 0.0)
    time = slots + most.sum(axis=1)
    for _ in range(len(full_visit) + 1):
        below = time[:, None] * work < most
        free = np.maximum(1.0 - (work * below).sum(axis=1), 1.0 - MOST_LOAD)
        new = np.minimum((slots + (most * ~below).sum(axis=1)) / free, time)
        if not (new < time * (1.0 - 1e-9)).any():
            break
        time = new
    return time


def stretch(slots: float, visits: float, work: list[tuple[float, float]], *, once: bool = False) -> float:
    """Return how long one wait takes (`stretched`), with pairs (work, full visit) of the links with work.

    Where the longest queue is served first, a queue behind links that are always full grows until it is as
    long as their queues: then they take turns, and each of them is visited `once`.
    """
    in_turn = min(visits, 1.0) if once else visits
    most = [(rate, (in_turn if rate >= ALWAYS else visits) * full) for rate, full in work]
    time = slots + sum(full for _, full in most)
    for _ in range(len(most) + 1):
        taken, slope = slots, 0.0
        for rate, full in most:
            if time * rate < full:
                slope += rate
            else:
                taken += full
        new = min(taken / max(1.0 - slope, 1.0 - MOST_LOAD), time)
        if new >= time * (1.0 - 1e-9):
            break
        time = new
    return time


def growth(works: Vector, regular: Vector) -> float:
    """Return the work that a unit of waiting causes, directly and in turn, itself included.

    In an nD/D/1 queue of streams with loads r_i it is the integral of exp(-t) prod(1 + r_i t), since each
    stream brings one message a period (for equal streams: A. E. Eckberg, IEEE Trans. Commun. 27, 1979).

    Args:
        works: (F,) loads of the streams.
        regular: (F,) 1 for periodic ones; the others are Poisson.
    """
    free = 1.0 - min(float(works @ (1.0 - regular)), MOST_LOAD)
    each = 1.0 + (works * regular)[:, None] * NODES / free
    return float(np.prod(each, axis=0) @ WEIGHTS) / free


def _ratio(part: NDArray, whole: NDArray) -> NDArray:
    """Return the quotients; 0 where the whole is."""
    return part / np.where(whole > 0.0, whole, inf)


class Queues:
    """The ports of piconets without bridges, as trains cross them; times in slots of their piconet.

    A *crossing* is a train at a port: of the data or of the acknowledgements of a flow. C of them, P ports,
    N links, F flows.

    Attributes:
        number: crossing of each visit of a flow: (flow, back, place on the way).
        at_random: a crossing of the sessions of a lone client at a port, by the number of the port.
        slot_s: mean time of a slot that voice leaves, (C,) (s).
        others: (C, N) work a slot of the others while a train waits for a visit of its port.
        full_visit: (N,) work of a full visit.
        service: (C,) delay of the next train of the port by a train.
        under_way: (C,) residual work of trains elsewhere, before it is stretched.
        saved: (C,) slots that others save a train that share its frames.
        later: (C,) wait behind other flows at further ports, where segments of these flows come from hosts.
        with_others: (C,) more slots of a train as it shares visits and cycles with others.
        on_way: of each crossing: work and full visits of links served while a relayed train goes on.
        behind: (P,) mean wait behind the trains of a port.
        apart: (P, N) work a slot of the other links that a port does not cause.
        fullest: (N,) work of a full visit, as windows let it be.
        alone, brought: (C,) slots of a train, idle polls and its further trains included; share of the
            latter.
        first: (C,) mean wait for a visit, where the law of conserved work is used; 0 elsewhere.
        grown: (C,) delay of the next train over `alone`.
        behind_one: (C,) chance that a train finds another one at its port.
    """

    def __init__(self, network: Network, links: Links) -> None:
        self.network, self.links = network, links
        bridged = {p for bridge in network.bridges for p in bridge.piconets}
        bridged |= {p for p, one in enumerate(network.piconets) if one.members == 1}
        self.number: dict[tuple[int, int, int], int] = {}
        self.ways: dict[tuple[int, int], list[int]] = defaultdict(list)  # crossings by flow and way
        names: list[tuple[int, int, int, int, bool, Train]] = []  # of each crossing
        for f, flow in enumerate(network.flows):
            before = -1
            for back, visits in enumerate((flow.forth, flow.back)):
                host = True
                for place, visit in enumerate(visits):
                    if visit.kind == "bucket":
                        continue
                    port = network.ports[visit.index] if visit.kind == "port" else None
                    if port is None or port.piconet in bridged or visit.train.frames <= 0.0:
                        before, host = -1, True
                        continue
                    if before >= 0 and network.ports[names[before][3]].piconet != port.piconet:
                        before, host = -1, True
                    self.number[f, back, place] = len(names)
                    self.ways[f, back].append(len(names))
                    names.append((f, back, before, visit.index, host, visit.train))
                    before, host = len(names) - 1, False
        # flows of whose acknowledgements the first crossing is known, behind a bucket at most
        self.answers_known = {f for f, back, stop in self.number if back and stop < 2}
        self.count = len(names)
        self.way_of = [(int(one[1]), one[0], one[3]) for one in names]
        self.comes = np.ones(len(names))  # share of the trains that losses let come to the port
        self.flow = np.array([one[0] for one in names], int)
        self.back = np.array([one[1] for one in names], bool)
        self.prev = np.array([one[2] for one in names], int)
        self.port = np.array([one[3] for one in names], int)
        self.host = np.array([one[4] for one in names], bool)
        self.orders = {}
        for p, one in enumerate(network.piconets):
            crossing = [
                [visit.train for visit in flow.forth if visit.kind == "port"
                 and network.ports[visit.index].piconet == p]
                for flow in network.flows
            ]  # fmt: skip
            trains = [here[0] for here in crossing if here]
            slots = trains[0].air + trains[0].frames if trains else 0.0
            self.orders[p] = order_of(one, len(trains), slots)
        talks = [bool(flow.messages) for flow in network.flows]  # of several clients see `sessions`
        self.at_random = {one[3]: c for c, one in enumerate(names) if talks[one[0]] and sum(talks) == 2}
        if not names:
            return
        trains = [one[5] for one in names]
        self.link = links.port_link[self.port]
        self.up = links.up[self.port]
        piconet = links.piconet[self.link]
        self.piconet = piconet
        self.slot_s = SLOT_S / links.share[self.link]
        self.members = links.members[self.link]
        used = np.array([len(set(self.link[piconet == at].tolist())) for at in piconet])
        polls = np.array(
            [self.orders[p].polls[up] for p, up in zip(piconet, self.up.astype(int), strict=True)]
        )
        # polls between two visits of a train: links without flows are left out of some cycles
        self.polls = used - 1.0 + (self.members - used) * polls
        self.most = np.minimum(links.limit, float(ENDLESS))  # frames of a visit, (N,)
        for link, at in enumerate(links.piconet):
            if self.orders[int(at)].interleaved:  # links take turns frame by frame until they are empty
                self.most[link] = ENDLESS
        self.limit = self.most[self.link].astype(int)
        self.frames = np.array([train.frames for train in trains])
        self.slots = np.array([train.air + train.frames for train in trains])
        each = self.slots / self.frames
        spread = np.array([train.spread for train in trains])
        self.varies = 1.0 + spread / self.frames**2
        self.spread = spread * each**2
        sizes = [
            (train.packets, train.frames, limit)
            for train, limit in zip(trains, self.limit.tolist(), strict=True)
        ]
        self.sent = sent = [sent_of(*size) for size in sizes]
        self.full_visits = np.array([one.full_visits for one in sent])
        self.fills_last = np.array([one.fills_last for one in sent])
        self.chunks = np.array([one.chunks for one in sent])
        # the same of whole messages, whose trains come together, over the squares of their trains
        batch = np.array([max(network.flows[f].batch, 1.0) for f in self.flow])
        whole, limits = np.where(self.back, 1.0, batch) * self.frames, np.maximum(self.limit, 1)
        together = (whole // limits * limits**2 + (whole % limits) ** 2) / (whole * self.frames)
        self.visits_squared = np.where((batch > 1.0) & ~self.back, together, self.chunks)
        at_a_time = self.visits_squared / self.chunks  # trains of a message in a visit
        self.at_a_time = at_a_time[np.maximum(self.prev, 0)]
        batches = [flow.batch > 1.0 or flow.more > 0.0 for flow in network.flows]
        jumbled = {int(piconet[c]) for c in range(self.count) if batches[self.flow[c]]}
        # random trains go one way on each link, none is passed on, and visits are seldom full
        data = {int(self.port[c]) for c in range(self.count) if not self.back[c]}
        other = jumbled | {
            int(piconet[c])
            for c in range(self.count)
            if network.flows[self.flow[c]].source != "poisson"
            or network.flows[self.flow[c]].short  # which acknowledgements let out
            or ROOM * self.frames[c] >= self.limit[c]
            or (not self.back[c] and (not self.host[c] or int(links.opposite[self.port[c]]) in data))
        }
        self.simple = np.array([int(p) not in other for p in links.piconet[links.port_link]])
        self.in_order = np.array([self.orders[int(p)].plain for p in piconet])
        self.plain = self.in_order & [int(p) not in jumbled for p in piconet]
        self.closes = np.array([self.orders[int(p)].closes for p in piconet])
        self.interleaved = np.array([self.orders[int(p)].interleaved for p in piconet])
        # an acknowledgement that goes up on the link on which its data have come down follows them at once
        self.partner = np.maximum(self.prev, 0)  # the data of an acknowledgement, or the crossing before
        self.answers = (self.prev >= 0) & self.back & ~self.back[self.partner]
        self.answers &= self.link == self.link[self.partner]
        self.turns_up = self.answers & self.up & self.in_order
        self.joint_visits = self.full_visits.copy()
        for c in np.flatnonzero(self.turns_up):
            first, second = sent[self.prev[c]], sent[c]
            joint = fills_after(first, second, int(self.limit[c]))
            self.joint_visits[c] = joint + first.fills_last * second.full_visits
        ports, count = len(network.ports), len(links.names)
        self._pair_up(sizes)
        self.at_port = (self.port[None, :] == np.arange(ports)[:, None]).astype(float)
        self.at_link = (self.link[None, :] == np.arange(count)[:, None]).astype(float)
        same = links.piconet[links.port_link][:, None] == links.piconet[None, :]
        self.same = same.astype(float)  # (P, N)
        self.cyclic = np.ones(ports, bool)
        self.cyclic[self.port] = self.plain
        # work at further ports: visits are full while the port is busy, acknowledgements share frames
        empty = np.where(self.back, self.frames, self.frames / self.limit)
        self.taken = self.slots - EMPTY * empty
        self.own_link = (links.port_link[:, None] == np.arange(count)[None, :]).astype(float)
        self.own_here, self.same_here = self.own_link[self.port], self.same[self.port]
        order = np.arange(self.count)
        mine = self.flow[:, None] == self.flow
        together = mine & (piconet[:, None] == piconet)
        self.further = (together & (order[:, None] < order)).astype(float)  # [c, d]: d comes after c
        self.brings = self.further * (self.port[:, None] != self.port)
        self.mine = mine
        self.opposite, self.there = links.opposite, links.there
        self.at = self.port[:, None] == self.port
        self.facing = np.where(self.there, self.opposite, 0)[self.port]
        self.against = mine & (self.port == self.facing[:, None]) & self.there[self.port][:, None]
        # segments of the same flow are elsewhere, except segments that followed it in the same visit: half of
        # a cycle's, none behind a train that fills its visit
        first = np.searchsorted(self.flow, self.flow)
        follow = (self.limit >= 2.0 * self.frames[first]) & (order != first)
        self.follows = np.where(self.link == self.link[first], 0.5 * follow, 1.0)
        self.others_at = self.at & ~mine & self.host
        self.waiting = self.others_at & self.back
        before_hosts = self.partner[(self.waiting & self.host[:, None]).any(axis=0)]
        known = (mine & self.at & (order < order[:, None])).any(axis=1)
        self.is_further = ~known & (self.back | ~self.host)
        self.after = self.back & self.host & self.in_order & (self.prev >= 0)
        self.goes_on = 1.0 - (self.fills_last * self.chunks)[self.partner]
        self.one_by_one = (self.limit == 1) & (self.frames > 1.0 + SAME)  # no visit is for two trains
        # trains that may be under way elsewhere when a segment comes from a host, and the trains before them
        self.meets = ((piconet[:, None] == piconet) & ~self.at & ~mine).astype(float)
        # trains that go the other way on the link are sent in the same visit
        self.from_hosts, self.there_here = self.host & ~self.back, self.there[self.port]
        opposite = (self.facing[:, None] == self.port) & self.there_here[:, None]
        self.meets_apart = self.meets * ~(opposite & self.from_hosts[:, None] & self.from_hosts)
        self.own_elsewhere, self.fresh = mine & ~self.at, ~mine & self.from_hosts
        place = np.zeros(count)
        place[links.port_link] = [port.link for port in network.ports]
        self._pass_on(place, packets=network.relay == "packet")
        # crossings whose chance to end a visit makes others longer
        longer = ~self.back & np.where(self.host, self.waiting.any(axis=1), self.earlier.any(axis=1))
        self.asked = sorted({*before_hosts.tolist(), *np.flatnonzero(longer).tolist()})
        self.relayed = np.bincount(self.flow[~self.host], minlength=len(network.flows)) > 0
        self.window = np.array([min(let_out(flow), flow.together, float(ENDLESS)) for flow in network.flows])
        self.regular = np.array([float(flow.source == "periodic") for flow in network.flows])
        self.ahead = np.zeros((2, len(network.flows)))  # drawn in a burst, and of the same message
        self.uneven = np.ones(len(network.flows))
        for f, flow in enumerate(network.flows):
            if flow.load < np.inf:
                count = max(flow.batch, 1.0)
                self.ahead[:, f] = flow.more / (1.0 - flow.more) * count, (count - 1.0) / 2.0
                self.uneven[f] = flow.uneven
        # products of the works of two segments of a batch, the later one of a message may be its short end
        self.pairs_of = self.ahead[0] + self.ahead[1] * [flow.pairs for flow in network.flows]
        flows = len(network.flows)
        self.uses, self.pass_by = np.zeros((flows, len(links.names))), np.ones((ports, flows))
        self.uses[self.flow, self.link], self.pass_by[self.port, self.flow] = 1.0, 0.0
        self.transforms: dict[tuple, Any] = {}  # by crossing; they do not depend on rates
        self.given: list[bytes] = []  # the numbers that settled queues were found for
        self.beside = np.zeros(0)  # as the last update had it
        self.service = self.slots.copy()
        self.first, self.grown = np.zeros(self.count), np.ones(self.count)
        self.present, self.widened = np.zeros(ports), np.zeros(self.count)
        self.away = self.varied = np.zeros(0)  # between visits; not known before the first update

    def _pair_up(self, sizes: list[tuple[float, float, int]]) -> None:
        """Set which trains may share frames, and the visits filled by trains that follow each other.

        `sizes` are packets and frames of the trains, and the limits of their visits.
        """
        c, before = np.arange(self.count), self.partner
        self.data, self.ends_at = self.port[before], self.fills_last[before]
        related = self.answers[:, None] & (before[:, None] == c)
        apart = (self.link[:, None] == self.link) & self.up[:, None] & ~self.up & ~related & ~related.T
        # answers that go up come behind their data; the queue of other flows' data has their meetings
        apart &= ~(self.answers & self.up)[:, None]
        # a train that comes while the other one is sent shares half of its frames
        self.joins = (self.host[:, None] * self.slots + self.host * self.slots[:, None]) / 2.0
        self.meeting = np.where(apart, np.minimum(self.frames[:, None], self.frames), 0.0)
        relayed = (self.prev >= 0) & ~self.host & (self.link != self.link[before])
        visit = np.minimum(self.frames, self.limit) * self.slots / self.frames
        # a relayed train comes behind the visit in which it went up
        self.joins = self.joins + np.where(relayed, visit[before], 0.0)
        self.in_visits = np.where(relayed, np.ceil(self.frames / self.limit - SAME) - 1.0, self.full_visits)
        answered = np.bincount(before[self.turns_up], minlength=self.count) > 0
        # two frames behind their data
        self.late = self.answers & ~self.up & (self.frames[before] < 1.0 + SAME)
        late = self.late & (self.limit > 1)
        self.breaks = np.maximum(np.ceil(self.frames / self.limit - SAME) - 1.0, 0.0)
        two = np.bincount(before[late], minlength=self.count) > 0
        self.run_fills = np.zeros((len(RUN), self.count))
        for one in np.flatnonzero(self.limit < ENDLESS):
            self.run_fills[:, one] = run_fills(*sizes[one], float(answered[one]), 2.0 * float(two[one]))

    def _pass_on(self, place: Vector, *, packets: bool) -> None:
        """Set which trains and links a train meets that the central passes on, and trains before others.

        Args:
            place: of each link in the polling order, (N,).
            packets: whether packets are passed on one by one.
        """
        known, first, number = self.prev >= 0, self.partner, np.arange(len(place))
        start, end, members = self.link[first], self.link, self.members
        after = (place - place[start][:, None]) % members[:, None]
        apart = (place[end] - place[start]) % members
        self.passed = (after > 0.0) & (after < apart[:, None])
        self.ends = (number == start[:, None]) | (number == end[:, None])
        # [c, d]: d crosses both ports of c; d has come to the port of c in the cycle in which c comes
        before = np.where(known, self.port[first], -1)
        self.along = self.at & (before[:, None] == before)
        since = np.where(self.host, 0.0, (place[start] - place[end]) % members)
        behind = (since[:, None] == since) & self.back[:, None] & ~self.back
        # an acknowledgement of data that end their visit is at the head of the next one
        first_one = 1.0 - self.fills_last[first[first]][:, None]
        earlier = np.where(behind, first_one, since[:, None] > since)
        self.earlier = np.where(self.at & ~self.mine & (since > 0.0), earlier, 0.0)
        # data that find others on their way in the opposite direction may not fit into the rest of the visit;
        # data up go with the frame that is under way down
        rest = self.limit - (self.frames - 1.0) % self.limit - ~self.up
        beyond = as_share(1.0 - rest[:, None] / np.minimum(self.frames, self.limit))
        facing = self.opposite[self.port][:, None] == self.port
        self.midst = beyond * (facing & (self.host & ~self.back)[:, None] & ~self.back)
        # trains before those that may be under way when a segment comes
        relayed, turns = self.back == self.back[first], ~self.up[first] & (start == end)
        soon = ((place[end][:, None] - place[start]) % members > apart) & (apart > 0.0) & packets
        joined = np.where(relayed, soon * self.chunks[first], turns * (1.0 - self.fills_last[first]))
        apart_from = self.host[:, None] & known & (self.port[first] != self.port[:, None])
        self.joined = joined * apart_from * self.meets

    def update(
        self,
        sends: Vector,
        acks: Vector,
        apart: Vector,
        timed: Vector,
        held_s: Vector,
        beside: Vector,
        full: NDArray[np.bool_],
        steady: NDArray[np.bool_],
    ) -> None:
        """Take the rates (1/s), (F,) each.

        Args:
            sends: segments a second.
            acks: acknowledgements a second.
            apart: share of the acknowledgements that hosts hold back until a random time in a cycle.
            timed: share of the acknowledgements that a timer sends.
            held_s: time for which hosts hold acknowledgements back (s).
            beside: share of a flow's own segments that are under way beside one of them.
            full: links with a queue that never runs empty, (N,).
            steady: flows that always have data.
        """
        clocked = np.maximum(apart, timed)
        flow, at_once = self.flow, 1.0 - clocked[self.flow]
        given = [
            one.tobytes() for one in (sends, acks, self.comes, clocked, timed, full, steady, self.links.visit)
        ]
        known = given == self.given
        if not self.count or (known and (beside == self.beside).all()):
            return
        self.beside = beside
        if not known:
            rate = np.where(self.back, acks[flow], sends[flow]) * self.comes * self.slot_s
            filled = self.full_visits + self.turns_up * at_once * (self.joint_visits - self.full_visits)
            for p, order in self.orders.items():
                here = self.piconet == p
                if order.closes:
                    filled = np.where(here, self._alone(rate * here, self.members[here][0]), filled)
            works = self.slots - EMPTY * filled + EMPTY * self.interleaved * ~self.back
            at_port = self.at_port * rate
            self.inflow = at_port @ self.frames, at_port @ filled, at_port @ works
            self.rate, self.works, self.filled_of = rate, works, filled
            # links kept full by flows that do not cross the port themselves, (P, N)
            self.filled = (self.pass_by @ (self.uses * steady[:, None]) > 0.0) & full & (self.own_link == 0.0)
            self.given = given if self._serve(at_once) else []
        self._meet(clocked, timed, held_s, beside, steady)

    def _alone(self, rate: Vector, members: float) -> float:
        """Return the share of trains that are alone in their visit, where a visit takes all packets found.

        Args:
            rate: rate of the trains of one piconet, (C,) a slot.
            members: members of the piconet.
        """
        trains, share = self.at_link @ rate, np.ones(len(self.links.names))
        for _ in range(4):
            work = float(rate @ self.slots - EMPTY * trains @ share)
            in_cycle = trains * EMPTY * members / (1.0 - min(work, MOST_LOAD))
            share = np.where(in_cycle > 0.0, _ratio(-np.expm1(-in_cycle), in_cycle), 1.0)
        return float(trains @ share / max(trains.sum(), 1e-12))

    def _serve(self, at_once: Vector) -> bool:
        r"""Find the delay of the next train of a port by each train, and how often ports have packets.

        A train leaves no other behind at its port with the chance :math:`(1 - P q) E(1 - e^{-\lambda V}) /
        (\lambda C)`: a port that runs empty stays empty until the next train of a time V without visits, in a
        cycle C, unless the visit was full (P) and left some (q). V is taken as gamma distributed. Trains that
        came in a cycle are served in the next one, so that the variance of cycles is :math:`C \sum \lambda_j
        w_j^2 / (1 - \rho^2)`. Trains follow each other with the complement of that chance, in runs of
        geometric numbers. An acknowledgement shares its frame with the train behind its data, or, if it waits
        for the next visit, with one that comes meanwhile.

        Two trains meet if they come to both ports of a link between two visits. A train that the central
        relays comes after the visit in which it went up: during this time, too, another train may come to the
        opposite port.

        Args:
            at_once: share of the acknowledgements that follow their data at once, (C,).

        Returns:
            Whether the chances of packets have settled.
        """
        links, rate, works = self.links, self.rate, self.works
        frames_in, _, work_in = self.inflow
        facing = [np.where(self.there, values[self.opposite], 0.0) for values in self.inflow]
        frames_by, work_by = links.by_link(frames_in), links.by_link(work_in)
        visits, taken = self.frames / self.limit, self.taken
        brought = np.where(self.plain, _ratio(self.further @ (rate * taken), rate), 0.0)
        trains = self.at_port @ rate
        squares = self.at_link @ (rate * works**2 + 2.0 * rate * works * works[self.partner] * self.answers)
        filled_of, own = self.filled_of, self.own_link
        broken = self.at_port @ (rate * self.breaks)
        spread = ((self.same - own) * ~self.filled) @ squares  # visits to full links do not vary
        settled, shared = False, frames_by
        asked = found = self.present
        quiet = self._none_comes(trains) if len(self.away) else trains
        for _ in range(TURNS):
            shared, fills, alone_then = self._meetings(rate, at_once, quiet)
            self.save = EMPTY * (shared + self.at_link @ (rate * fills))
            self.work_at = work_by - self.save
            free = 1.0 - np.minimum(self.same @ self.work_at, MOST_LOAD)
            self.cycle = EMPTY * links.members[links.port_link] / free  # (P,)
            before = self.present
            away = np.maximum(self.cycle * (1.0 - own @ self.work_at), EMPTY)
            varies = self.cycle * _ratio(spread, 1.0 - (1.0 - free) ** 2) / away**2
            self.away, self.varied = away, np.maximum(varies, 1e-6)
            quiet = self._none_comes(trains)
            part = np.minimum(_ratio(1.0 - quiet, trains * self.cycle) + (trains == 0.0), 1.0)
            ended = self.at_port @ (rate * np.maximum(filled_of + fills - self.breaks, 0.0)) * self.cycle
            under = broken * self.cycle
            none = part * np.maximum(1.0 - under, 0.0) + alone_then
            self.present = np.clip((1.0 - none) / (1.0 - part * np.minimum(ended, MOST_LOAD)), 0.0, MOST_LOAD)
            if settled := bool(np.abs(self.present - before).max() < SETTLED):
                break
            slope = np.sign(before - asked) * _ratio(self.present - found, np.abs(before - asked))
            asked, found = before, self.present
            damp = np.clip(slope / np.minimum(slope - 1.0, -1.0), 0.0, MOST_DAMPED)  # where they swing
            self.present = damp * before + (1.0 - damp) * found
        whole = _ratio(self.work_at, frames_by - shared)
        self.full_visit = np.where(self.most >= ENDLESS, self.most, links.visit) * whole
        driven = (self.at_port @ (self.brings * (rate * works))) @ self.at_link.T
        paired, elsewhere = facing[2] - EMPTY * (facing[0] - facing[1]), 1.0 - own
        share = own * _ratio(paired, facing[2])[:, None] + elsewhere * _ratio(self.work_at, work_by)
        busy = own * paired[:, None] + elsewhere * self.work_at - share * driven
        others = np.where(self.cyclic[:, None], busy, self.work_at - own * work_in[:, None])
        if self.regular.any():
            others = others * self._kept(self.at_port)[:, None]
        self.apart = np.where(self.filled, ALWAYS, np.maximum(others, 0.0)) * self.same
        self._conserve(rate, visits, brought)
        self.brought = brought / np.maximum(self.alone, 1e-9)
        self.with_it = self.service + (1.0 - self.plain) * _ratio(self.further @ (rate * taken), rate)
        return settled

    def _conserve(self, rate: Vector, visits: Vector, brought: Vector) -> None:
        r"""Find the delay of the next train of a port by each train, and the wait for a visit if it is known.

        Where random trains go one way, their waits follow from the law of conserved work (O. Boxma and W.
        Groenendijk, J. Appl. Prob. 24, 1987). For n equal ports it is

        .. math:: W = \frac{n \lambda b^2}{2 (1 - \rho)} + C \left(\frac{1 - \rho_1}{2} + x\right)

        with the cycle C and the x visits that end while a train waits, but for the first one. Behind j trains
        of k frames a train ends in the visit of number ceil((j + 1) k / M); the number ahead is taken as
        geometric, with the mean of Little's law. Acknowledgements of the last train of a visit go alone:
        their frames are as good as polls, and no work that a train brings.

        Args:
            rate: rate of the trains, (C,) a slot.
            visits: that their frames fill, (C,).
            brought: work of a train at further ports, (C,).
        """
        port = self.port
        simple = self.simple & self.cyclic & ~self.filled.any(axis=1)
        brings = np.where(self.back, self.taken, self.slots - EMPTY * self.full_each)
        each = np.where(self.same.T @ simple > 0.0, self.at_link @ (rate * brings), self.work_at)
        each = np.minimum(_ratio(each, self.work_at), 1.0)  # share of the work that every train brings
        self.apart = np.where(simple[:, None], self.apart * each, self.apart)
        idle = self.cycle * (1.0 - np.minimum(self.same @ (self.work_at * each), MOST_LOAD))
        simple, part = simple[port], visits
        idle = np.where(simple, idle[port], EMPTY * (self.polls + 1.0))
        own = self.slots - EMPTY * np.where(simple, self.full_each, visits) + brought
        busy, trains = (self.at_port @ (rate * own))[port], (self.at_port @ rate)[port]
        ends = np.ceil(RUN[:, None] * self.frames / self.limit - SAME)
        ends = ends - ends[0]
        # trains that a visit under way has sent: half of a geometric run, as a random time meets it
        gone = (self.present / (1.0 - self.present))[port]
        gone = busy * np.minimum(gone, np.maximum(self.limit / self.frames - 1.0, 0.0) / 2.0)
        for _ in range(SOME if simple.any() else 1):
            self.alone = own + idle * part
            self.service = stretched(
                self.alone, np.where(simple, 1.0, visits), self.apart[port], self.full_visit
            )
            self.grown = self.service / self.alone
            load = np.minimum(self.at_port @ (rate * self.service), MOST_LOAD)[port]
            longer = np.maximum(1.0 - part, 0.0) * np.maximum(load - busy, 0.0) / (1.0 - load)
            self.first = np.where(simple & ~self.back, idle / 2.0 * self.grown * (1.0 + longer), 0.0)
            wait = (self.at_port @ (rate * self.service**2 * self.varies))[port] / 2.0 / (1.0 - load)
            ahead = trains * (wait + self.first) + busy
            often = np.vander((ahead + gone) / (1.0 + ahead + gone), len(RUN), increasing=True).T
            found = _ratio((ends * often).sum(axis=0) / often.sum(axis=0), ahead)
            part = np.where(simple & (ahead > 0.0), found, visits)

    def vacations(self, port: int, frame: float, limit: int) -> list[Time]:
        r"""Return the times between visits of 0, 1, ... limit frames to a port of a host (slots).

        The visits to other links serve all segments that came for them since the last visit; a long visit is
        followed by a long absence. Its variance, behind a given visit, is :math:`C \sum \lambda w^2 / ((1 -
        \rho_o) (1 - \rho_1))`, with the cycle C and the loads of the others and of the own link: by the mean
        waits of equal links with exhaustive visits (H. Takagi, ACM Computing Surveys 20, 1988), without the
        part that own visits cause. With a limit of visits see `met_squared`, less the square of the mean.

        Args:
            port: number of the port.
            frame: slots of a frame with its answer.
            limit: frames of a visit.
        """
        here = (self.port == port) & self.host & ~self.back
        link, piconet = self.links.port_link[port], self.piconet[here][0]
        frames, rate = np.arange(limit + 1.0), self.rate * here
        own = frames * frame + EMPTY * (frames < limit)
        brings = float(rate @ (self.brought * self.alone)) / max(float(rate @ self.frames), 1e-12)
        away = EMPTY * (float(self.members[here][0]) - 1.0)
        alone = own + away + frames * brings
        time = stretched(alone, np.ones(limit + 1), self.apart[None, port], self.full_visit)
        filled = self.filled[port]  # visits to links that always have data do not vary
        others = (self.piconet == piconet) & (self.link != link) & ~filled[self.link]
        work = min(float(self.work_at[link]), MOST_LOAD)
        beside = min(float((self.same[port] * ~filled) @ self.work_at) - work, MOST_LOAD)
        visits, grown = 1.0 + float(self.breaks[here].max()), 1.0 / (1.0 - beside) / (1.0 - work)
        others &= ~self.mine[here].any(axis=0)
        each = np.zeros(len(self.regular))
        np.maximum.at(each, self.flow[others], self.rate[others])
        train = _ratio(self._by_flow(others * self.rate * self.works), each) * (1.0 + 2.0 * self.pairs_of)
        met = met_squared(grown, np.maximum(self.limit / self.frames, 1.0), visits, 1.0 + self.breaks)
        met = met * (1.0 - np.minimum(self.inflow[0][self.port] * self.cycle[port] / self.limit, MOST_LOAD))
        squares = float((self.rate * (self.works * train[self.flow] + self.spread) * met)[others].sum())
        mean = np.maximum(time - own, LEAST_AWAY) + EMPTY * (frames < limit)
        return [Time(a, b) for a, b in zip(mean.tolist(), (squares * time / mean**2).tolist(), strict=True)]

    def answers_late(self, piconet: int) -> bool:
        """Return whether acknowledgements of one-frame segments go down, too late for the next frame."""
        return bool(self.count) and bool((self.late & (self.piconet == piconet)).any())

    def _none_comes(self, trains: Vector) -> Vector:
        """Return the chance that no train comes between two visits, at rates of `trains` a slot, (P,)."""
        return np.exp(-np.log1p(np.maximum(trains, 0.0) * self.away * self.varied) / self.varied)

    def _meetings(self, rate: Vector, at_once: Vector, quiet: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the frames a slot that trains share on each link, (N,), and visits that runs fill, (C,).

        Args:
            rate: rate of the trains, (C,) a slot.
            at_once: share of the acknowledgements that follow their data at once, (C,).
            quiet: chance that no train comes to a port between two visits, (P,).
        """
        self.full_each = self.filled_of
        if not len(self.away):
            return np.zeros(len(self.links.names)), np.zeros(self.count), np.zeros(len(self.there))
        goes_on, comes = self.present[self.data], 1.0 - quiet[self.data]
        seldom = np.where(self.late, self.ends_at + (1.0 - self.ends_at) * goes_on, 1.0)
        behind = goes_on * seldom + (1.0 - goes_on) * np.where(self.up, self.ends_at, 1.0) * comes
        behind = self.answers * (at_once * behind + (1.0 - at_once) * comes)
        # other flows' trains at both ports
        number, more = rate * self.away[self.port], 1.0 + self.varied[self.port]
        longer = rate * (self.in_visits * self.cycle[self.port] + self.joins)
        met = self.meeting * (number * more + longer) / (1.0 + more * (number[:, None] + number) / 2.0)
        each = self.filled_of / self.frames
        met = np.minimum(met / self.frames[:, None], 1.0)
        longer = self.slots / self.frames - EMPTY  # a frame beside one of these
        self.widened = _ratio((rate * self.frames * longer) @ met, rate) + self.frames * (met @ longer)
        meets = self.frames * (1.0 - np.prod(1.0 - met, axis=1))
        part = _ratio(meets, self.frames * met.sum(axis=1))
        less = part * self.frames * (met * np.minimum(each[:, None], each)).sum(axis=1)
        shared = self.at_link @ (rate * (self.frames * behind + meets))
        run = self.present[self.port]
        often = np.vander(run, len(RUN), increasing=True).T
        mean = (often * self.run_fills).sum(axis=0) / (RUN @ often)
        self.full_each = mean
        fills = (mean - self.run_fills[0]) * ~self.back
        # a visit of one frame that both share counts once
        twice = behind - at_once * goes_on * (self.answers & self.up)
        fills -= twice * (self.limit == 1) * self.filled_of
        # data that arrive beside an answer find no train ahead, and the visit goes on; in short visits the
        # last two answers up of a run are alone
        often = (self.answers & self.up) * (1.0 - behind)
        often += 2.0 * (self.late & (self.limit > 1)) * goes_on * (1.0 - goes_on)
        alone = np.bincount(self.data, rate * self.slots * often, len(self.there)).astype(float)
        return shared, fills - less, alone

    def _by_flow(self, values: Vector) -> Vector:
        """Return the sums of values of crossings by flow, (F,)."""
        found = np.zeros(len(self.regular))
        np.add.at(found, self.flow, values)
        return found

    def _kept(self, ports: Matrix) -> Vector:
        """Return the share of other flows' work at ports that causes more work, with periodic sources, (K,).

        Args:
            ports: (K, C) 1 at crossings of the port; the work of their flows is left out.
        """
        works = self._by_flow(self.rate * self.works)
        found = np.ones(len(ports))
        for k, here in enumerate(ports):
            away = works.copy()
            away[self.flow[here > 0.0]] = 0.0
            if away.sum() > 0.0:
                found[k] = (1.0 - 1.0 / growth(away, self.regular)) / away.sum()
        return found

    def _meet(
        self, clocked: Vector, timed: Vector, held_s: Vector, beside: Vector, steady: NDArray[np.bool_]
    ) -> None:
        """Find work and queues that a train of each crossing meets; arguments as in `update`.

        `clocked` is the share of acknowledgements that come at a random time.
        """
        rate, works, flow, prev = self.rate, self.works, self.flow, self.partner
        frames_in, filled_in, work_in = self.inflow
        own_link, facing, there, same = self.own_here, self.facing, self.there_here, self.same_here
        # others' work while a train waits for a visit: acknowledgements of the same flow go with its data
        work = self.work_at - own_link * work_in[self.port][:, None]
        against = self.against
        own_back = against @ (rate * works)
        all_back = np.where(there, work_in[facing], 0.0)
        mine_there = _ratio(own_back, all_back)
        relayed = self.relayed[flow]
        save = self.save[self.link]
        single = work - own_link * ((all_back - save) * mine_there)[:, None]
        elsewhere = self.own_elsewhere * (rate * works)
        part = np.where(steady[flow], 1.0, 1.0 - beside[flow] * self.follows)
        apart = work - part[:, None] * (elsewhere @ self.at_link.T)
        others = np.maximum(np.where(relayed[:, None], apart, single), 0.0) * same
        if self.regular.any():
            others = others * self._kept(self.mine.astype(float))[:, None]
        # trains from hosts that go the other way on the link are sent in the visit that a train waits for
        ways = self.from_hosts
        from_hosts = np.where(
            there & ways, _ratio(self.at_port @ (rate * works * ways), work_in)[facing], 0.0
        )
        others = others * (1.0 - own_link * from_hosts[:, None])
        self.others = np.where(self.filled[self.port], ALWAYS * same, others)
        self.fullest = self.full_visit * np.minimum(self.links.visit / self.most, 1.0)  # as windows let them
        # while a train goes from link to link, only hosts bring work to these two
        fresh = (self.fresh * (rate * works)) @ self.at_link.T
        on_way = np.where(self.ends, np.minimum(fresh, self.others), self.others * self.passed)
        on_way = np.where(self.one_by_one[:, None], self.others, on_way)  # between all its visits
        full = self.fullest.tolist()
        self.pairs, self.on_way = (
            [[pair for pair in zip(row, full, strict=True) if pair[0] > 0.0] for row in work.tolist()]
            for work in (self.others, on_way)
        )
        # packets of others that go the other way share the frames of a train
        own_there = against @ (rate * self.frames)
        all_there = np.where(there, frames_in[facing], 0.0)
        alien = (1.0 - _ratio(own_there, all_there)) * (
            1.0 - _ratio(np.where(there, filled_in[facing], 0.0), all_there)
        )
        present = np.where(there, self.present[facing], 0.0)
        self.saved = EMPTY * self.frames * present * alien * self.in_order * (1.0 - from_hosts)
        # trains under way elsewhere; each visit of at most M frames is one, as are trains that follow at once
        cycle = self.cycle[self.port]
        idle = as_share(1.0 - _ratio((self.work_at[self.link] * cycle), self.full_visit[self.link]))
        turn = np.where(self.back & self.host, 1.0 - clocked[flow], 1.0)
        joined = self.joined * turn
        before = np.zeros_like(joined)
        for _ in range(3):
            before = joined * (works[prev] + before[:, prev])
        squares = (works**2 + self.spread) * self.visits_squared + 2.0 * works * before * self.at_a_time
        # full links have no random train under way: a cycle has a full visit to them
        meets = self.meets_apart * ~self.filled[np.ix_(self.port, self.link)]
        self.under_way = (meets * squares) @ (rate * idle) / 2.0
        # queues of the ports
        random = np.where(steady[flow], 0.0, 1.0)
        load = np.minimum(self.at_port @ (rate * self.service * random), MOST_LOAD)
        ahead = np.where(self.back, 0.0, self.pairs_of[flow])
        residual = rate * (1.0 + 2.0 * ahead) * self.service**2 * self.varies / 2.0
        self.behind = ((self.at_port @ residual) / (1.0 - load))[self.port]
        let = np.where(self.back, 0.0, np.minimum(self.pairs_of, self.window - 1.0)[flow])
        residual = residual * (1.0 + 2.0 * let) / (1.0 + 2.0 * ahead)
        alien = self.others_at @ residual / (1.0 - load[self.port])
        most = self.others_at @ (self.window[flow] * self.service * (rate > 0.0))
        alien = np.where(alien > 0.0, -alien * np.expm1(-most / np.maximum(alien, 1e-12)), 0.0)
        # an acknowledgement comes when a train goes on, and finds others only if this one left another
        # or if another one has come while its host held it back
        stay = _ratio(self.others_at @ (rate * self.service), self.others_at @ rate)
        met = -np.expm1(-_ratio(held_s[flow] / self.slot_s, stay))
        met = np.maximum(np.minimum(met, clocked[flow]), timed[flow])
        after, used, goes_on = self.after * (1.0 - met) * random, load[self.port], self.goes_on
        # behind a train whose packets go one by one it comes at any time; trains that came between the same
        # visits as its data have left with these, and trains that came during a visit have left in part
        visit = (self.slots / self.service)[prev]
        left = np.where(
            self.host[prev], 1.0 - self.chunks[prev] * (1.0 - used) * (1.0 - visit**2), used * goes_on
        )
        finds = np.where(self.one_by_one[prev], 1.0 - (1.0 - goes_on) * used * (1.0 - used), left)
        self.later = np.where(self.is_further, alien, 0.0) * (1.0 - after * (1.0 - finds))
        if self.regular.any():
            self._behind_regular(residual)
        mine = self.regular[flow] * rate * self.service  # no train of a periodic flow comes in its own visit
        self.behind = self.behind + self.closes * (load[self.port] - mine) * self.cycle[self.port]
        self.load_of = load[self.port]
        self.behind_one = np.where(self.first > 0.0, self.present[self.port], self.load_of)
        if self.first.any():  # in the place of half a cycle, and of the growth of work elsewhere
            half = stretched(self.members, np.full(self.count, 0.5), self.others, self.full_visit)
            self.behind += np.where(self.first > 0.0, self.first - half, 0.0)
            self.under_way *= np.where(self.first > 0.0, self.grown * self.members / half, 1.0)
        for c in map(int, np.flatnonzero(self.host & ~self.back & (self.first == 0.0))):
            # trains of other links overtake the last frames of a train that is cut
            visit = float(self.limit[c] * self.slots[c] / self.frames[c])
            alone = visit + EMPTY * (float(self.members[c]) - 1.0)
            self.behind[c] += self.sent_before(c, 1) * (stretch(alone, 1.0, self.pairs[c]) - alone)
        self._share_visits(random)

    def _share_visits(self, random: Vector) -> None:
        """Find how much longer a train takes as it shares visits and cycles with others (slots).

        * Its frames are longer beside other trains. A train that the central relays waits for the trains
          behind it in its visit, and on its next link for the trains ahead that go the same way.
        * Acknowledgements that wait for the visit of data, or data that go the other way when a train comes,
          take frames of its visit. If its last frame would have ended this visit, it waits for another one.
        * A relayed train waits for the trains that have come to its port in the same cycle.

        Delays of 22 rings of 2, 3, 4 and 7 stations (segments of five frames, limits of 3 to 25) that fill up
        to 0.75 of the air were 5.8 % too short to 7 % too long, round trips 3.3 % and 7 %.

        Args:
            random: 0 for trains of flows that always have data, else 1, (C,).
        """
        rate, prev, relayed = self.rate, self.partner, ~self.host & ~self.back
        follow = self.present[self.port[prev]] * np.maximum(1.0 - self.frames[prev] / self.limit[prev], 0.0)
        same_way = _ratio(self.along @ rate, (self.at_port @ rate)[self.port[prev]])
        found = np.where(relayed, follow * (1.0 + same_way) * self.slots[prev], 0.0)
        found += np.where(relayed | ~self.relayed[self.flow], self.widened, 0.0)
        # until the next visit behind a train, as long visits are followed by long absences
        again = (self.away * (1.0 + self.varied))[self.port]
        ends = np.zeros(self.count)
        ends[self.asked] = [self.ends_visit(c) for c in self.asked]
        ahead = np.where(self.host[:, None], self.waiting * ends[self.partner], self.earlier)
        cycle = again + self.back * self.slots[self.partner[prev]]
        found += cycle * (ahead @ (rate * self.slots))
        found += cycle * again * ends * ~self.back * (ahead @ (rate * self.back))
        found += again * (self.midst @ (rate * self.slots))
        known = self.in_order & ~(self.host & self.back) & ~self.one_by_one
        alone = self.one_by_one & ~self.relayed[self.flow] & ~(self.host & self.back)
        self.with_others = np.where(known, found, np.where(alone, self.widened, 0.0)) * random

    def _behind_regular(self, residual: Vector) -> None:
        """Replace waits behind Poisson streams by waits behind periodic ones, the own stream left out."""
        for c in np.flatnonzero(self.host):
            here = (self.port == self.port[c]) & ~(self.mine[c] & (self.regular[self.flow] > 0.0))
            works = self._by_flow(here * self.rate * self.service)
            grown = (growth(works, self.regular) - 1.0) / works.sum() if works.sum() > 0.0 else 0.0
            self.behind[c] = float(here @ residual) * grown

    def _at_begins(self, c: int, values: NDArray[np.complex128], least: int = 0) -> float:
        """Return the mean of a value over the frames of its visit that are used when a train begins.

        The first of the messages that follow each other begins a visit. The number of messages ahead is taken
        as geometric, and each train of a message is as likely.

        Args:
            c: crossing of a train from a host.
            values: transform of the value times the transforms of the trains and messages surely ahead.
            least: messages ahead from which on trains count.
        """
        load, (message, _) = min(max(float(self.behind_one[c]), 0.0), MOST_LOAD), self._message(c)
        return (1.0 - load) * load**least * float((values / (1.0 - load * message)).sum().real)

    def _message(self, c: int) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Return the transforms of the frames of a message, and of those ahead of a train in it."""
        if (c,) not in self.transforms:
            turns, count = self.sent[c].turns, round(2.0 * float(self.ahead[1, self.flow[c]])) + 1  # trains
            apart = np.abs(1.0 - turns) > SAME  # else every train of the message begins at the same place
            ahead = np.where(apart, (1.0 - turns**count) / np.where(apart, 1.0 - turns, 1.0) / count, 1.0)
            self.transforms[c,] = turns**count, ahead
        return self.transforms[c,]

    def sent_before(self, c: int, least: int = 0) -> float:
        """Return the mean part of a train that is sent before a visit ends within the train.

        Behind other trains of its port a train may be cut by the end of a visit that it would not fill alone.
        A longer train is cut wherever it begins.

        Args:
            c: crossing of a train from a host.
            least: messages ahead from which on trains count.
        """
        limit, (law, *_, turns) = int(self.limit[c]), self.sent[c]
        if not (self.plain if least else self.in_order)[c] or limit >= ENDLESS or self.frames[c] > limit:
            return 0.0
        alone = self.behind_one[c] <= 0.0 and self.ahead[1, self.flow[c]] == 0.0
        if alone or np.abs(1.0 - turns).max() <= SAME:  # every train begins a visit
            return 0.0
        if (place := (c, "cut", least)) not in self.transforms:
            number, (message, ahead) = np.arange(1, law.size), self._message(c)
            each = np.append(np.cumsum((law[1:] / number)[::-1])[::-1], np.zeros(limit))  # 1 / frames, beyond
            room = np.arange(limit, 0, -1)  # of a visit, by its used frames
            parts = np.where(room < limit, room * each[room], 0.0)
            self.transforms[place] = np.fft.ifft(parts) * ahead * message**least
        return self._at_begins(c, self.transforms[place], least)

    def ends_visit(self, c: int, left: int = 0) -> float:
        """Return the chance that the last frame of a train is the last of its visit, or leaves some frames.

        Args:
            c: crossing of a train from a host.
            left: frames that the visit has left.
        """
        limit = int(self.limit[c])
        if limit >= ENDLESS:
            return 0.0
        if (place := (c, "end", left)) not in self.transforms:
            shift = np.exp(-2j * np.pi * left * np.arange(limit) / limit)
            self.transforms[place] = self._message(c)[1] * self.sent[c].turns * shift / limit
        return self._at_begins(c, self.transforms[place])

    def visit_of(self, c: int) -> float:
        """Return the mean slots of a visit with trains, where the law of conserved work is used; else 0."""
        if self.first[c] <= 0.0:
            return 0.0
        longest = float(self.limit[c] * self.slots[c] / self.frames[c])
        return min(float(self.slots[c]) / (1.0 - float(self.present[self.port[c]])), longest)

    def next_one(self, c: int) -> tuple[float, float]:
        """Return the chance that a segment leaves another one at its port, and the slots of that one's frame.

        Args:
            c: crossing of its acknowledgement; -1 if it is not known.
        """
        d = int(self.prev[c]) if c >= 0 else -1
        if (
            d < 0
            or not self.host[d]
            or self.back[d]
            or self.window[self.flow[d]] <= 1.0
            or not self.in_order[d]
        ):
            return 0.0, 0.0
        drawn, fixed = self.ahead[:, self.flow[d]].tolist()
        none = (1.0 - float(self.behind_one[d])) / (1.0 + drawn + 2.0 * fixed)
        some = (1.0 - none) * (1.0 - float(self.regular[self.flow[d]]))
        some *= self.network.flows[self.flow[d]].meets  # short segments do not meet (Nagle's algorithm)
        return some, float(self.slots[d] / self.frames[d])

    def further_data(self, c: int) -> float:
        """Return the chance that an acknowledgement finds data at its own port, or relayed data opposite."""
        d, here = int(self.prev[c]), (self.port == self.port[c]) & ~self.back
        relayed = 0.0 if d < 0 or self.host[d] else float(self.present[self.port[d]])
        return 1.0 - (1.0 - relayed) * (1.0 - min(float((self.rate * self.works)[here].sum()), 1.0))

    def elsewhere(self, c: int, slots: float) -> float:
        """Return the time (slots) that trains elsewhere still take when a segment comes from a host.

        Args:
            c: its crossing.
            slots: slots of the segment's frames behind its last wait.
        """
        order, piconet = self.orders[int(self.piconet[c])], int(self.piconet[c])
        up = bool(self.up[c])
        if self.regular.any():
            works = self._by_flow((self.piconet == piconet) * self.rate * self.works)
            works[self.flow[c]] = 0.0
            grown = (growth(works, self.regular) - 1.0) / works.sum() if works.sum() > 0.0 else 1.0
        else:
            first, pairs = order.first[up], [pair for pair in self.pairs[c] if pair[0] < ALWAYS]
            grown = stretch(first, order.passed[0], pairs) / first
        found = float(self.under_way[c]) * grown
        if order.interleaved:
            free = 1.0 - min(sum(work for work, _ in self.pairs[c] if work < ALWAYS), MOST_LOAD)
            down = float(not up)
            found = (1.0 - down) * found + 0.5 * (1.0 + down) * slots * (1.0 / free - 1.0)
        return found

    def at_hosts(self, f: int) -> list[int]:
        """Return the crossings at which segments of a flow come from hosts."""
        return [c for c in self.ways[f, 0] if self.host[c]]

    def following_s(self, f: int) -> float:
        """Return the delay of the next segment of a message by a segment, at a port of its hosts (s)."""
        return max((float(self.with_it[c] * self.slot_s[c]) for c in self.at_hosts(f)), default=0.0)

    def own(self, f: int, trip_s: float, quiet: NDArray[np.bool_]) -> Own | None:
        """Return the queue at the port of a flow's hosts where it waits longest, None if it waits at none.

        Args:
            f: number of the flow.
            trip_s: its round trip without waits (s).
            quiet: resources that are not full, ports first.
        """
        mine = [c for c in self.at_hosts(f) if quiet[self.port[c]]]
        if not mine:
            return None
        c = max(mine, key=lambda one: self.behind[one] * self.slot_s[one])
        slot_s, service = float(self.slot_s[c]), float(self.service[c])
        data = (self.port == self.port[c]) & ~self.back
        rate = float(self.rate[c])
        turn = float((self.rate * self.service)[data].sum()) / rate if rate > 0.0 else service
        drawn, fixed = self.ahead[:, f].tolist()
        load, used = float(self.behind_one[c]), float(self.load_of[c])
        # acknowledgements of the segments ahead go beside their followers, in the place of NULL or POLL
        beside = sum(
            float(self.slots[one] - EMPTY * self.frames[one])
            for one in self.ways[f, 1]
            if self.link[one] == self.link[c]
        )
        beside *= min(self.network.flows[f].acks, 1.0)
        of_message = self._of_message(c, fixed, float(self.uneven[f])) + fixed * beside
        rest = sum(self.behind[one] * self.slot_s[one] for one in mine if one != c)
        wait = float(self.behind[c]) + drawn * (service + beside) + of_message
        return Own(
            load, wait * slot_s, service * slot_s, turn * slot_s, fixed, of_message * slot_s,
            drawn + fixed > 0.0, rate * service / used if used > 0.0 else 1.0, trip_s, float(rest),
            rate / slot_s,
        )  # fmt: skip

    def _of_message(self, c: int, ahead: float, uneven: float) -> float:
        """Return the wait of a train behind the trains of its message, which come with it (slots).

        They leave in one visit up to its limit. Between two visits trains of other links are sent that have
        come since the last visits there. In other than cyclic order each train has its mean delay.

        Args:
            c: crossing of the trains.
            ahead: mean number of these trains ahead of it.
            uneven: slots of a train ahead over the mean slots of a train.
        """
        limit, slots, frames = int(self.limit[c]), float(self.slots[c]), float(self.frames[c])
        if ahead <= 0.0 or not self.in_order[c]:
            return ahead * uneven * float(self.service[c])
        count = round(2.0 * ahead) + 1
        more = ahead * frames / limit * (limit < ENDLESS)  # visits behind the first one
        if count <= MOST_PLACES and self.spread[c] == 0.0 and abs(frames - round(frames)) < SAME:
            visits = [ceil((k + 1) * frames / limit - SAME) for k in range(count)]
            more = sum(visits) / count - visits[0]
        visit, away = min(limit, count * frames) * slots / frames, EMPTY * (float(self.members[c]) - 1.0)
        return ahead * uneven * slots + more * (stretch(visit + away, 1.0, self.pairs[c]) - visit)
