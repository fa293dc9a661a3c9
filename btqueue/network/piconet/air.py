r"""The polled air at given rates, in closed form: processor sharing with a queue at every port.

**Work.** A train of k frames of l slots takes k (l + 1) slots, less two for every visit that it fills: an
empty frame would have gone there. Packets of both ports of a station that share a frame save two slots
more. So the share rho of the slots is known beyond the empty frame of every visit; the cycle is 2 n / (1 -
rho).

**Others.** While a segment waits for a visit the others are served; work that comes for them while its own
frames are sent is served before its next visit. So all but the frames after its last wait takes 1 / (1 -
rho') times as long as in an idle piconet (`lone`), with rho' the work of all other ports: processor sharing
(L. Kleinrock, Queueing Systems II, 1976, section 4.4). A train of work w may be under way elsewhere when
the segment comes: as in M/G/1 that adds sum(x w^2) / (2 (1 - rho')), for visits that are not always full. A
visit serves at most M frames: no more of a station's work is served during a wait than its visits hold
(`bounded`), so that light flows do not wait for the backlog of a saturated station.

**Own port.** A train that waits behind others of its port goes a time D = (k (l + 1) + 2 (n - 1) k / M) /
(1 - rho') later for each of them: its frames, and its share of a cycle of M frames. So the port is an M/G/1
queue with this service.

Nothing is fitted. For equal stations under exhaustive service the sum is the mean wait of the pseudo-
conservation law (O. Boxma and W. Groenendijk, J. Appl. Prob. 24, 1987), but for n / (1 - rho') in the place
of n (1 - rho_1) / (1 - rho) with the work rho_1 of one station. The page of this model has the errors.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.network.piconet.lone import BACK, DATA, EMPTY_FRAME, Ways
from btqueue.network.piconet.sources import Batch, growth, within
from btqueue.network.piconet.structure import Class, Structure
from btqueue.network.piconet.trains import Sent
from btqueue.queueing.implicit import at_root, distance

FULL = 0.985
"""Share of the time that is used at most; keeps what an overloaded piconet would need finite."""
TOLERANCE = 1e-11
"""Sum of the changes of all that is unknown in the last iteration."""
MOST_ITERATIONS = 300
UNIT = 100.0
"""Slots in which the iteration measures times."""
TINY = 1e-300
FIRST = np.array([1.0, 0.0])
"""Of both kinds of trains, data."""
SUBSTITUTIONS = 4
KINDS = np.array([0, 0, 1, 1])
"""Kind of train at each crossing: data or acknowledgement."""


class Passage(NamedTuple):
    """What a flow sees; times in slots.

    Attributes:
        delay: mean time from the writing of a segment to its arrival, but for the wait behind others of its
            port.
        answer: mean time from there to the arrival of the acknowledgement.
        wait: mean wait behind others of its first port.
        fixed: segments of its own message that are ahead in it.
        bursty: whether segments come in bursts (0 or 1).
        service: by how much each segment of its own before it adds to that wait.
        share: of that wait that is behind its own segments.
        load: of its first port.
        residual: change of all that is unknown by one more iteration.
    """

    delay: Array
    answer: Array
    wait: Array
    fixed: Array
    bursty: Array
    service: Array
    share: Array
    load: Array
    residual: Array

    def wait_inside(self, window: Array) -> Array:
        """Return the wait of segments that a window has let out; the others wait at their sender.

        The number of own segments at the port is taken as geometric from the first on, with the right mean,
        but for those of the same message. Of a burst as many are elsewhere as go round while one is served.
        A window that is shorter than a round trip lets the next segment out no sooner.
        """
        turn = jnp.maximum(self.service, (self.delay + self.answer) / window)
        elsewhere = (self.delay + self.answer) / self.service - 1.0
        room = jnp.maximum(window - jnp.maximum(elsewhere, 0.0), 1.0)
        window, turn = (jnp.where(self.bursty > 0.0, a, b) for a, b in ((room, window), (self.service, turn)))
        wait = self.wait - self.fixed * self.service
        waiting = self.load * wait / self.service
        more = waiting / jnp.maximum(self.load + waiting, TINY)
        beyond = jnp.where(jnp.isinf(window), 0.0, more ** jnp.where(jnp.isinf(window), 1.0, window))
        inside = jnp.maximum((turn + wait) * (1.0 - beyond) - turn, 0.0)
        inside = inside + within(self.fixed, window) * self.service
        inside = jnp.where(jnp.isinf(window), self.wait, inside)
        return (1.0 - self.share) * self.wait + self.share * inside


class Air(NamedTuple):
    """The polled air at given rates; times in slots, arrays by station (N,) or port (N, 2).

    Attributes:
        rate: (F, 2) segments and acknowledgements of each flow a slot.
        sent: transmissions of a segment and of an acknowledgement.
        by_kind: (N, 2, 2) trains a slot, by port and kind.
        in_batches: the same, each counted with those of its batch.
        work: (2,) slots that a train takes beyond what empty frames would have, data and acknowledgement.
        work_in: (N, 2) such slots a slot.
        work_at: (N,) the same, less what shared frames save.
        saved: (N,) slots that shared frames save.
        full_visit: (N,) slots of a visit of M frames.
        cycle: mean time from visit to visit.
        works: (F,) slots of work of each flow a slot.
        service: (N, 2, 2) slots by which a train makes the next one of its port later, by port and kind.
        load: (N, 2) of the ports.
    """

    rate: Array
    sent: tuple[Sent, Sent]
    by_kind: Array
    in_batches: Array
    work: Array
    work_in: Array
    work_at: Array
    saved: Array
    full_visit: Array
    cycle: Array
    works: Array
    service: Array
    load: Array


class Unknown(NamedTuple):
    """What the iteration finds; times in `UNIT`.

    Attributes:
        present: (N, 2) probability that a packet is at a port when its visit begins.
        service: (N, 2, 2) as in `Air`.
        waits: (7,) half a cycle of the first port; waits on the way to the receiver, and there and back.
        beside: share of the own segments that are under way beside one.
    """

    present: Array
    service: Array
    waits: Array
    beside: Array


class Question(NamedTuple):
    """What is asked.

    Attributes:
        structure: the piconet.
        sent: transmissions of a segment and of an acknowledgement.
        offered: (F,) segments a second of each flow.
        acks: (F,) acknowledgements a segment.
        batch: in which the segments of each flow come, (F,).
        regular: (F,) 1 for periodic sources.
        one: the class.
        ways: of a lone segment of that class.
        clocked: share of its acknowledgements that come at any time.
        window: most segments that a flow has under way.
    """

    structure: Structure
    sent: tuple[Sent, Sent]
    offered: Array
    acks: Array
    batch: Batch
    regular: Array
    one: Class
    ways: Ways
    clocked: Array
    window: Array


def passage(question: Question) -> tuple[Passage, Array]:
    """Return what a flow of a class sees, and the mean time from visit to visit (slots)."""
    (seen, cycle), residual = at_root(_outcome, _iterate, question)
    largest = jnp.stack([jnp.abs(leaf).max() for leaf in residual])
    return seen._replace(residual=largest.max()), cycle


def _iterate(question: Question) -> Unknown:
    """Improve all that is unknown until nothing moves."""
    ports = question.structure.at_port.shape[-1]
    start = Unknown(jnp.zeros((ports // 2, 2)), jnp.ones((ports // 2, 2, 2)), jnp.ones(7), jnp.ones(()))

    def unfinished(state: tuple[Unknown, Array, Array]) -> Array:
        _, moved, count = state
        return (moved > TOLERANCE) & (count < MOST_ITERATIONS)

    def improve(state: tuple[Unknown, Array, Array]) -> tuple[Unknown, Array, Array]:
        last, _, count = state
        better = _sweep(question, last)[0]
        return better, distance(better, last), count + 1

    return jax.lax.while_loop(unfinished, improve, (start, jnp.full((), jnp.inf), jnp.zeros((), int)))[0]


def _outcome(unknown: Unknown, question: Question) -> tuple[tuple[Passage, Array], Unknown]:
    better, seen, air = _sweep(question, unknown)
    return (seen, air.cycle), Unknown(*(new - last for new, last in zip(better, unknown, strict=True)))


def _sweep(question: Question, unknown: Unknown) -> tuple[Unknown, Passage, Air]:
    """Return better values of the unknown ones, and what these say."""
    structure, one = question.structure, question.one
    service, found, air = _air(question, unknown)
    there, at_once, later = question.ways
    back = jax.tree.map(lambda a, b: a + question.clocked * (b - a), at_once, later)
    others = _others(structure, air, one, unknown.beside)  # (4, N)
    begotten = jnp.full((), jnp.nan)
    if structure.regular:  # of the others' streams, in the place of Poisson streams
        begotten = growth(air.works * (1.0 - one.member), question.regular)
        others = others * _ratio(1.0 - 1.0 / begotten, (air.works * (1.0 - one.member)).sum())
    waits = UNIT * unknown.waits
    slots = jnp.concatenate([structure.stations[None], there.slots[:2], back.slots])
    visits = jnp.concatenate([jnp.full(1, 0.5), there.visits[:2], back.visits])
    better = _stretched(
        waits, slots, visits, jnp.concatenate([others[:1], others[:2], others]), air.full_visit
    )
    seen = _seen(question, air, (there.rest, back.rest), waits, unknown.beside, begotten)
    beside = jnp.ones(())  # all others, which do not come in the way of flows of one hop
    if structure.relays:
        mean = (one.member @ air.rate[:, 0]) * (seen.delay + seen.answer + seen.wait_inside(question.window))
        # the number under way as geometric
        open_ended = jnp.isinf(question.window)
        more = (mean / (1.0 + mean)) ** jnp.where(open_ended, 1.0, question.window - 1.0)
        beside = jnp.where(open_ended, 1.0, 1.0 - more)
        beside = jnp.where(one.member @ question.regular > 0.0, jnp.clip(mean - 1.0, 0.0, 1.0), beside)
    return Unknown(found, service / UNIT, better / UNIT, beside), seen, air


def _air(question: Question, unknown: Unknown) -> tuple[Array, Array, Air]:
    """Return better values of services, (N, 2, 2), and of the probabilities of a packet, (N, 2), and the air.

    The port with fewer frames shares as many as find a packet at the other one: a packet is there if the
    port's queue is busy, or if one came while the port was not visited.
    """
    structure, sent = question.structure, question.sent
    rate = (
        question.offered[:, None]
        * structure.slot_s
        * jnp.stack([jnp.ones_like(question.acks), question.acks], 1)
    )
    frames = jnp.stack([one.mean for one in sent])
    filled = jnp.stack([one.full_visits for one in sent])
    slots = frames * jnp.stack([one.mean_slots + 1.0 for one in sent])
    by_kind = jnp.einsum("fk,fkp->pk", rate, structure.kind_at_port).reshape(-1, 2, 2)  # station, way, kind
    batched = rate.at[:, 0].multiply(1.0 + 2.0 * question.batch.ahead)
    in_batches = jnp.einsum("fk,fkp->pk", batched, structure.kind_at_port).reshape(-1, 2, 2)
    if structure.closes:  # each visit with data: trains that come in a cycle share one
        filled = jnp.ones(2) * _alone(structure, by_kind, slots)
    work = slots - EMPTY_FRAME * filled + structure.idle.polling.interleaved * EMPTY_FRAME * FIRST
    frames_in, work_in = by_kind @ frames, by_kind @ work  # (N, 2)
    fuller = jnp.where(frames_in[:, 1] > frames_in[:, 0], unknown.present[:, 1], unknown.present[:, 0])
    shared = frames_in.min(axis=1) * fuller
    saved = EMPTY_FRAME * shared * (1.0 - _ratio(by_kind @ filled, frames_in).mean(axis=1))
    work_at = work_in.sum(axis=1) - saved
    full_visit = structure.limit * _ratio(work_at, frames_in.sum(axis=1) - shared)
    cycle = EMPTY_FRAME * structure.stations / (1.0 - jnp.minimum(work_at.sum(), FULL))
    # a train waits for its frames, and for its share of a cycle of M frames
    visits = frames / structure.limit
    alone = slots + EMPTY_FRAME * (structure.stations - 1.0) * visits
    own = jnp.eye(work_at.size)[:, None, :] * work_in[:, :, None]  # (station, way, station)
    service = UNIT * unknown.service
    works = (rate * work * structure.kind_at_port.sum(-1)).sum(-1)
    others = (work_at - own)[:, :, None, :]
    if structure.regular:
        elsewhere = works * (1.0 - structure.at_port.max(axis=1).T)  # (P, F)
        kept = _ratio(1.0 - 1.0 / growth(elsewhere, question.regular), elsewhere.sum(-1))
        others = others * kept.reshape(-1, 2, 1, 1)
    better = _stretched(service, alone, visits, others, full_visit)
    load = (by_kind * service).sum(-1)
    while_away = -jnp.expm1(-by_kind.sum(-1) * cycle / 2.0)
    present = 1.0 - (1.0 - jnp.minimum(load, 1.0)) * (1.0 - while_away)
    air = Air(
        rate,
        sent,
        by_kind,
        in_batches,
        work,
        work_in,
        work_at,
        saved,
        full_visit,
        cycle,
        works,
        service,
        load,
    )
    return better, present, air


def _stretched(taken: Array, slots: Array, visits: Array, work: Array, full_visit: Array) -> Array:
    """Return a better value of how long waits take while others are served: a step of Newton's method.

    What is served grows ever more slowly with the time that it takes, so there is one solution.

    Args:
        taken: (...,) the last value.
        slots: (...,) that they take alone.
        visits: (...,) of each other station meanwhile.
        work: (..., N) slots of work that come for others in a slot.
        full_visit: (N,) slots of a visit of M frames.
    """
    work = jnp.maximum(work, 0.0)
    served, slope = bounded(taken[..., None] * work, visits[..., None] * full_visit)
    excess = slots + served.sum(-1) - taken
    # where the work of others grows faster than time, the bounds of their visits end that
    bound = slots + (visits[..., None] * full_visit).sum(-1)
    gain = (slope * work).sum(-1)
    return jnp.where(gain < 1.0, taken + excess / jnp.where(gain < 1.0, 1.0 - gain, 1.0), bound)


def bounded(work: Array, most: Array) -> tuple[Array, Array]:
    """Return the smaller of work and its bound, if there is one, rounded off where they meet, and its slope.

    With the power 4 work of half the bound is 1.5 % less than itself.
    """
    below = (1.0 + _ratio(work, most) ** 4) ** -0.25
    return work * below, below**5


def _alone(structure: Structure, by_kind: Array, slots: Array) -> Array:
    """Share of trains that have a visit of their own where a visit takes all that has come in a cycle."""
    trains = by_kind.sum((1, 2))
    share = jnp.ones_like(trains)
    for _ in range(SUBSTITUTIONS):
        work = ((by_kind @ slots).sum(axis=1) - EMPTY_FRAME * trains * share).sum()
        in_cycle = trains * EMPTY_FRAME * structure.stations / (1.0 - jnp.minimum(work, FULL))
        share = jnp.where(in_cycle > 0.0, _ratio(-jnp.expm1(-in_cycle), in_cycle), 1.0)
    return _ratio(trains @ share, trains.sum())


def _seen(
    question: Question, air: Air, rest: tuple[Array, Array], waits: Array, beside: Array, begotten: Array
) -> Passage:
    """Return what a flow sees.

    Args:
        question: what is asked.
        air: that it crosses.
        rest: own frames after the last wait, on the way to the receiver and there and back.
        waits: see `Unknown`.
        beside: see `Unknown`.
        begotten: growth of the others' work, where sources are periodic.
    """
    structure, one = question.structure, question.one
    grown = waits[0] / structure.stations
    if structure.regular:
        grown = _ratio(begotten - 1.0, (air.works * (1.0 - one.member)).sum())
    under_way = _under_way(structure, air, one, beside) / 2.0 * grown
    down = one.route.up * (1.0 - one.route.relayed)
    if structure.interleaved:
        free = 1.0 - jnp.minimum(_others(structure, air, one, beside)[DATA].sum(), FULL)
        under_way = (1.0 - down) * under_way + 0.5 * (1.0 + down) * rest[0] * (1.0 / free - 1.0)
    delay = under_way + rest[0] + waits[1:3].sum()
    whole = under_way * (1.0 + question.clocked) + rest[1] + waits[3:].sum()
    port = one.ports[DATA].reshape(-1, 2)
    service = (port * air.service[..., DATA]).sum()
    load = jnp.minimum((port * air.load).sum(), FULL)
    rate = one.member @ air.rate[:, 0]
    behind = (port * _behind(air)).sum()
    if structure.regular:
        behind = _behind_regular(question, air)
    behind = behind + structure.idle.polling.closes * load * air.cycle
    return Passage(
        delay=delay,
        answer=whole - delay + _later_waits(air, one),
        wait=behind + (one.member @ question.batch.ahead) * service,
        fixed=one.member @ question.batch.fixed,
        bursty=jnp.where(one.member @ question.batch.ahead > 0.0, 1.0, 0.0),
        service=service,
        share=jnp.where(load > 0.0, rate * service / jnp.maximum(load, TINY), 1.0),
        load=load,
        residual=jnp.zeros(()),
    )


def _others(structure: Structure, air: Air, one: Class, beside: Array) -> Array:
    """(4, N) work a slot of the others while a flow waits for a visit of the port of a crossing.

    The acknowledgements of a flow that begins or ends at the central go with the frames of its own segments,
    so they are not among the others. A flow between two stations meets its own other segments at the ports
    that it has crossed or will cross, if they are under way: `beside` of all there would be.
    """
    ports = one.ports.reshape(4, -1, 2)
    own_work = (one.member @ air.rate * air.work)[KINDS]  # (4,) of the own flow at its crossings
    there = air.work_at - (ports * air.work_in).sum(-1)
    opposite = ports[:, :, ::-1]
    all_back = (opposite * air.work_in).sum((1, 2))
    own_back = (opposite.reshape(4, -1) @ one.ports.T) @ own_work  # at the other port of the station
    saved = (ports.sum(-1) * air.saved).sum(-1)
    single = there - ports.sum(-1) * ((all_back - saved) * _ratio(own_back, all_back))[:, None]
    if not structure.relays:
        return single
    elsewhere = (1.0 - one.ports @ one.ports.T) * own_work  # of the own flow at other ports
    relayed = there - (1.0 - beside) * (elsewhere @ ports.sum(-1))
    return jnp.where(one.route.relayed > 0.0, relayed, single)


def _squares(air: Air) -> Array:
    """(N, 2, 2) second moments of the services of a port, by kind."""
    scv = jnp.stack([_ratio(one.variance, one.mean**2) for one in air.sent])
    return air.service**2 * (1.0 + scv)


def _behind(air: Air) -> Array:
    """(N, 2) mean waits behind the trains of a port: Pollaczek and Khinchin's formula."""
    return (air.in_batches * _squares(air)).sum(-1) / (2.0 * (1.0 - jnp.minimum(air.load, FULL)))


def _behind_regular(question: Question, air: Air) -> Array:
    """Mean wait behind the streams of the first port, where some are periodic: not itself, if it is."""
    structure, one = question.structure, question.one
    there = (structure.kind_at_port @ one.ports[DATA]) * (1.0 - one.member * question.regular)[
        :, None
    ]  # (F, 2)
    service = (one.ports[DATA].reshape(-1, 2)[..., None] * air.service).sum((0, 1))
    square = (one.ports[DATA].reshape(-1, 2)[..., None] * _squares(air)).sum((0, 1))
    works = (there * air.rate * service).sum(-1)
    batched = air.rate.at[:, 0].multiply(1.0 + 2.0 * question.batch.ahead)
    found = (there * batched * square).sum()
    return found / 2.0 * _ratio(growth(works, question.regular) - 1.0, works.sum())


def _later_waits(air: Air, one: Class) -> Array:
    """Waits behind other flows at later ports; a flow's own segments come there one by one."""
    rate = (one.member @ air.rate)[KINDS]
    own = jnp.einsum("k,jp,kp,pk->j", rate, one.ports, one.ports, _squares(air).reshape(-1, 2)[:, KINDS])
    there = (air.by_kind * _squares(air)).sum(-1).ravel()
    free = 1.0 - jnp.minimum(one.ports @ air.load.ravel(), FULL)
    return (one.later * (one.ports @ there - own) / (2.0 * free)).sum()


def _under_way(structure: Structure, air: Air, one: Class, beside: Array) -> Array:
    """Sum over others' trains of their rates times the squares of their work.

    A station that fills all its visits makes every cycle longer by the same, and none longer than others:
    each counts by the share of its visits that it does not fill.
    Data that go down and their acknowledgement are one train unless the visit was full in between.
    """
    idle = jnp.clip(1.0 - _ratio(air.work_at * air.cycle, air.full_visit), 0.0, 1.0)
    idle_at = structure.at_port.reshape(*structure.at_port.shape[:2], -1, 2).sum(-1) @ idle  # (F, 4)
    square = air.work**2 + jnp.stack([sent.variance * (sent.mean_slots + 1.0) ** 2 for sent in air.sent])
    each = (air.rate * square)[:, KINDS] * idle_at * one.meets
    each = each * jnp.where(one.member[:, None] > 0.0, beside, 1.0)
    together = 2.0 * air.work[0] * air.work[1] * (1.0 - air.sent[0].fills_last)
    return each.sum() + together * (one.pairs * air.rate[:, 1] * idle_at[:, BACK]).sum()


def _ratio(part: Array, whole: Array) -> Array:
    """Return a ratio, 0 where there is nothing."""
    some = whole > 0.0
    return jnp.where(some, part, 0.0) / jnp.where(some, whole, 1.0)
