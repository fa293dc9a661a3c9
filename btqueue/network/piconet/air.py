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

**Own port.** A train that waits behind another of its port goes later by the frames of that one, by its share
of a cycle of M frames, (k (l + 1) + 2 (n - 1) k / M), and by all that it brings with it on its further ports,
over 1 - rho'' with rho'' the work of all that this port does not bring about. While it is busy its visits are
full, and packets of the other way share its frames. So the port is an M/G/1 queue with this service.

**Blocks.** Relayed data go up at a station and down at the next one in the polling order at once, and an
acknowledgement follows its data. So they are one train to a segment that comes meanwhile, unless its own
station is visited in between; each visit of at most M frames is a train of its own.

**Further ports.** Trains that the central relays come in the cycle in which they are served: nothing waits
behind them there. An acknowledgement waits behind the segments of its first port. At the end of a visit that
its data have filled it finds that queue just after a service.

Nothing is fitted. For equal stations under exhaustive service the sum is the mean wait of the pseudo-
conservation law (O. Boxma and W. Groenendijk, J. Appl. Prob. 24, 1987), but for n / (1 - rho') in the place
of n (1 - rho_1) / (1 - rho) with the work rho_1 of one station. The page of this model has the errors.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.network.piconet.lone import BACK, DATA, DATA_ON, EMPTY_FRAME, Ways
from btqueue.network.piconet.ports import UP
from btqueue.network.piconet.sources import Batch, growth, within
from btqueue.network.piconet.structure import Class, Structure
from btqueue.network.piconet.tails import NONE, Tail, longest
from btqueue.network.piconet.trains import Sent, fills_after
from btqueue.queueing.implicit import Evaluated, at_root, unevaluated

FULL = 0.985
"""Share of the time that is used at most; keeps what an overloaded piconet would need finite."""
TOLERANCE = 1e-11
"""Sum of the changes of all that is unknown in the last iteration."""
MOST_ITERATIONS = 300
UNIT = 100.0
"""Slots in which the iteration measures times."""
TINY = 1e-300
FIRST = np.array([1.0, 1.0, 0.0, 0.0])
"""1 at crossings of data."""
SUBSTITUTIONS = 4
CORNER = 8.0
"""Power with which a minimum is rounded off: at the corner it is 8 % below."""
KINDS = np.array([0, 0, 1, 1])
"""Kind of train at each crossing: data or acknowledgement."""
HOSTS = np.array([1.0, 0.0, 1.0, 0.0])
"""1 at crossings to which trains come from a host, 0 where the central relays them."""
FURTHER = np.triu(np.ones((4, 4)), 1)
"""1 at crossings that come after another one of the same flow."""


class Passage(NamedTuple):
    """What a flow sees; times in slots.

    Attributes:
        delay: mean time from the writing of a segment to its arrival, but for `wait`.
        answer: mean time from there to the arrival of the acknowledgement, but for `wait_back`.
        wait: mean wait behind others of its first port.
        load: of that port.
        service: by how much each segment of its own before it adds to that wait.
        bare: the same, if that one is not answered.
        turn: time of that port for each of its segments while it is busy.
        fixed: segments of its own message that are ahead in it.
        bursty: whether segments come in bursts (0 or 1).
        share: of that wait that is behind its own segments.
        frame: time from frame to frame of its first port while that is busy.
        wait_back: mean wait of the acknowledgement behind trains of its own first port.
        load_back: of that port.
        residual: change of all that is unknown by one more iteration.
    """

    delay: Array
    answer: Array
    wait: Array
    load: Array
    service: Array
    bare: Array
    turn: Array
    fixed: Array
    bursty: Array
    share: Array
    frame: Array
    wait_back: Array
    load_back: Array
    residual: Array

    def under_way(self, rate: Array, window: Array) -> Array:
        """Return the mean number of segments under way."""
        alone = self.delay + self.answer
        most = self.longest(alone, self.turn, window)
        back = longest(Tail.of(self.load_back, self.wait_back), NONE, most - alone)
        wait = longest(Tail.of(self.load, self.wait), NONE, most - alone - back)
        return rate * (alone + back + jnp.where(self.bursty > 0.0, self.wait_in_bursts(window), wait))

    def longest(self, alone: Array, turn: Array, window: Array) -> Array:
        """Return the longest round trip: segments of a full window go round one after the other.

        Args:
            alone: round trip without waits at ports of hosts.
            turn: time from segment to segment.
            window: most segments under way.
        """
        endless = jnp.isinf(window) | (self.bursty > 0.0)
        return jnp.where(endless, jnp.inf, jnp.maximum(jnp.where(endless, 1.0, window) * turn, alone))

    def wait_in_bursts(self, window: Array) -> Array:
        """Return the wait of segments of bursts that a window has let out; the others wait at their sender.

        The number of own segments of earlier messages at the port is taken as geometric from the first on,
        with the right mean. Of a burst as many are elsewhere as go round while one is served. Those of
        earlier messages and of its own that are ahead of a segment are less than a window.
        """
        elsewhere = (self.delay + self.answer + self.wait_back) / self.service - 1.0
        window = jnp.maximum(window - jnp.maximum(elsewhere, 0.0), 1.0)
        wait = self.wait - self.fixed * self.service
        waiting = self.load * wait / self.service
        more = waiting / jnp.maximum(self.load + waiting, TINY)
        endless, size = jnp.isinf(window), 2.0 * self.fixed + 1.0
        free = jnp.where(endless, size, window - 1.0)
        letting = jnp.minimum(size, free)  # segments of a message that a window may let out at once
        beyond = more ** (free - letting + 1.0) * (1.0 - more**letting) / (1.0 - more) + size - letting
        inside = wait * (1.0 - beyond / size) + within(self.fixed, window) * self.service
        inside = jnp.where(endless, self.wait, inside)
        return (1.0 - self.share) * self.wait + self.share * inside


class Air(NamedTuple):
    """The polled air at given rates; times in slots, arrays by station (N,) or port (N, 2).

    Attributes:
        rate: (F, 4) trains of each flow a slot, by crossing.
        sent: transmissions of a segment and of an acknowledgement.
        works: (F, 4) slots that a train takes beyond what empty frames would have, by crossing.
        frames_in, filled_in: (N, 2) frames, and visits that they fill, a slot.
        work_in: (N, 2) slots of `works` a slot.
        work_at: (N,) the same, less what shared frames save.
        saved: (N,) slots that shared frames save.
        full_visit: (N,) slots of a visit of M frames.
        cycle: mean time from visit to visit.
        present: (N, 2) probability that a packet is at a port when its visit begins.
        service: (F, 4) slots by which a train makes the next one of its port later, by crossing.
        brought: (F, 4) share of that which it brings with it on further ports.
        load: (N, 2) of the ports.
    """

    rate: Array
    sent: tuple[Sent, Sent]
    works: Array
    frames_in: Array
    filled_in: Array
    work_in: Array
    work_at: Array
    saved: Array
    full_visit: Array
    cycle: Array
    present: Array
    service: Array
    brought: Array
    load: Array


class Unknown(NamedTuple):
    """What the iteration finds; times in `UNIT`.

    Attributes:
        present: (N, 2) probability that a packet is at a port when its visit begins.
        service: (F, 4) as in `Air`.
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
        clocked: (F,) share of the acknowledgements that come at any time.
        regular: (F,) 1 for periodic sources.
        one: the class.
        ways: of a lone segment of that class.
        window: most segments that a flow has under way.
    """

    structure: Structure
    sent: tuple[Sent, Sent]
    offered: Array
    acks: Array
    batch: Batch
    clocked: Array
    regular: Array
    one: Class
    ways: Ways
    window: Array


def passage(question: Question) -> tuple[Passage, Array]:
    """Return what a flow of a class sees, and the mean time from visit to visit (slots)."""
    (seen, cycle), residual = at_root(_outcome, _iterate, question)
    largest = jnp.stack([jnp.abs(leaf).max() for leaf in residual])
    return seen._replace(residual=largest.max()), cycle


def _iterate(question: Question) -> Evaluated:
    """Improve all that is unknown until nothing moves."""
    flows, crossings, ports = question.structure.at_port.shape
    start = Unknown(jnp.zeros((ports // 2, 2)), jnp.ones((flows, crossings)), jnp.ones(7), jnp.ones(()))

    def unfinished(state: tuple[Unknown, Evaluated, Array]) -> Array:
        _, (_, (_, change)), count = state
        moved = jax.tree.reduce(jnp.add, jax.tree.map(lambda leaf: jnp.abs(leaf).sum(), change))
        return (count == 0) | ((moved > TOLERANCE) & (count < MOST_ITERATIONS))

    def improve(state: tuple[Unknown, Evaluated, Array]) -> tuple[Unknown, Evaluated, Array]:
        last, _, count = state
        outcome, change = _outcome(last, question)
        return jax.tree.map(jnp.add, last, change), (last, (outcome, change)), count + 1

    state = start, unevaluated(_outcome, start, question), jnp.zeros((), int)
    return jax.lax.while_loop(unfinished, improve, state)[1]


def _outcome(unknown: Unknown, question: Question) -> tuple[tuple[Passage, Array], Unknown]:
    better, seen, air = _sweep(question, unknown)
    return (seen, air.cycle), Unknown(*(new - last for new, last in zip(better, unknown, strict=True)))


def _sweep(question: Question, unknown: Unknown) -> tuple[Unknown, Passage, Air]:
    """Return better values of the unknown ones, and what these say."""
    structure, one = question.structure, question.one
    service, found, air = _air(question, unknown)
    there, at_once, later = question.ways
    clocked = one.member @ question.clocked
    back = jax.tree.map(lambda a, b: a + clocked * (b - a), at_once, later)
    others = _others(structure, air, one, unknown.beside)  # (4, N)
    begotten = jnp.full((), jnp.nan)
    if structure.regular:  # of the others' streams, in the place of Poisson streams
        works = _works(structure, air) * (1.0 - one.member)
        begotten = growth(works, question.regular)
        others = others * _ratio(1.0 - 1.0 / begotten, works.sum())
    waits = UNIT * unknown.waits
    slots = jnp.concatenate([structure.stations[None], there.slots[:2], back.slots])
    visits = jnp.concatenate([jnp.full(1, 0.5), there.visits[:2], back.visits])
    better = _stretched(
        waits, slots, visits, jnp.concatenate([others[:1], others[:2], others]), air.full_visit
    )
    seen = _seen(question, air, (there.rest, back.rest), waits, unknown.beside, begotten)
    beside = jnp.ones(())  # all others, which do not come in the way of flows of one hop
    if structure.relays:
        mean = seen.under_way(one.member @ air.rate[:, DATA], question.window)
        # the number under way as geometric
        open_ended = jnp.isinf(question.window)
        more = (mean / (1.0 + mean)) ** jnp.where(open_ended, 1.0, question.window - 1.0)
        beside = jnp.where(open_ended, 1.0, 1.0 - more)
        beside = jnp.where(one.member @ question.regular > 0.0, jnp.clip(mean - 1.0, 0.0, 1.0), beside)
    return Unknown(found, service / UNIT, better / UNIT, beside), seen, air


def _air(question: Question, unknown: Unknown) -> tuple[Array, Array, Air]:
    """Return better values of services, (F, 4), and of the probabilities of a packet, (N, 2), and the air.

    The port with fewer frames shares as many as find a packet at the other one: a packet is there if the
    port's queue is busy, or if one came while the port was not visited.
    """
    structure, sent = question.structure, question.sent
    of_kind = jnp.stack([jnp.ones_like(question.acks), question.acks], axis=1)
    rate = question.offered[:, None] * structure.slot_s * of_kind[:, KINDS]
    frames, slots = _of_kinds(sent)

    def at_ports(values: Array) -> Array:
        return jnp.einsum("fc,fc,fcp->p", rate, values, structure.at_port).reshape(-1, 2)

    filled = _filled(question)
    if structure.closes:  # each visit with data: trains that come in a cycle share one
        trains, taken = (
            at_ports(jnp.broadcast_to(values, filled.shape)).sum(1) for values in (1.0, slots[KINDS])
        )
        filled = jnp.full_like(filled, _alone(structure, trains, taken))
    works = slots[KINDS] - EMPTY_FRAME * filled
    works = works + structure.idle.polling.interleaved * EMPTY_FRAME * FIRST
    frames_in, filled_in, work_in = (
        at_ports(jnp.broadcast_to(values, filled.shape)) for values in (frames[KINDS], filled, works)
    )
    fuller = jnp.where(frames_in[:, 1] > frames_in[:, 0], unknown.present[:, 1], unknown.present[:, 0])
    shared = frames_in.min(axis=1) * fuller
    saved = EMPTY_FRAME * shared * (1.0 - _ratio(filled_in, frames_in).mean(axis=1))
    work_at = work_in.sum(axis=1) - saved
    full_visit = structure.limit * _ratio(work_at, frames_in.sum(axis=1) - shared)
    cycle = EMPTY_FRAME * structure.stations / (1.0 - jnp.minimum(work_at.sum(), FULL))
    service = UNIT * unknown.service
    # a train waits for its frames, for its share of a cycle of M frames, and for what it brings with it
    visits = frames / structure.limit
    busy = slots[0] - EMPTY_FRAME * visits[0]  # its visits are full while the port is busy
    paired = slots[1] - EMPTY_FRAME * frames[1]  # an acknowledgement goes in the frames of data
    further = structure.at_port.sum(-1) * of_kind[:, KINDS] * jnp.stack([busy, busy, paired, paired])
    per_train = jnp.maximum(of_kind[:, KINDS], TINY)
    # known for single segments and plain polling: else frames are shared as they are at any time
    plain = structure.idle.polling.plain * jnp.where(question.batch.ahead.max() > 0.0, 0.0, 1.0)
    brought = plain * (further @ FURTHER.T) / per_train
    own = (slots + EMPTY_FRAME * (structure.stations - 1.0) * visits)[KINDS]
    alone = own + brought
    load = at_ports(service)
    while_away = -jnp.expm1(-at_ports(jnp.ones_like(filled)) * cycle / 2.0)
    present = 1.0 - (1.0 - jnp.minimum(load, 1.0)) * (1.0 - while_away)
    air = Air(
        rate, sent, works, frames_in, filled_in, work_in, work_at, saved, full_visit, cycle, unknown.present,
        service, brought / alone, load,
    )  # fmt: skip
    others = _while_busy(structure, air, plain)  # (P, N)
    if structure.regular:
        elsewhere = _works(structure, air) * (1.0 - structure.at_port.max(axis=1).T)  # (P, F)
        kept = _ratio(1.0 - 1.0 / growth(elsewhere, question.regular), elsewhere.sum(-1))
        others = others * kept[:, None]
    better = _stretched(
        service,
        alone,
        jnp.broadcast_to(visits[KINDS], alone.shape),
        jnp.einsum("fcp,pn->fcn", structure.at_port, others),
        full_visit,
    )
    return better, present, air


def _of_kinds(sent: tuple[Sent, Sent]) -> tuple[Array, Array]:
    """Return mean frames of data and of acknowledgements, and their slots with empty other halves, (2,)."""
    frames = jnp.stack([one.mean for one in sent])
    return frames, frames * jnp.stack([one.mean_slots + 1.0 for one in sent])


def _filled(question: Question) -> Array:
    """(F, 4) visits that a lone train fills. An acknowledgement that goes up may fill one that data began."""
    structure, (data, ack) = question.structure, question.sent
    both = fills_after(data, ack, structure.limit) + data.fills_last * ack.full_visits
    up = structure.at_port[:, BACK, UP::2].sum(-1) * (1.0 - question.clocked) * structure.idle.polling.plain
    full = jnp.stack([data.full_visits, data.full_visits, ack.full_visits, ack.full_visits])
    return full + jnp.outer(up * (both - ack.full_visits), jnp.eye(4)[BACK])


def _works(structure: Structure, air: Air) -> Array:
    """(F,) slots of work of each flow a slot."""
    return (air.rate * air.works * structure.at_port.sum(-1)).sum(-1)


def _while_busy(structure: Structure, air: Air, plain: Array) -> Array:
    """(P, N) work a slot of others while the queue of a port is busy.

    Packets of the other way all share its frames. What its trains bring with them is not among the others.
    Unless `plain`, frames are shared as they are at any time.
    """
    at_station = structure.at_port.reshape(*structure.at_port.shape[:2], -1, 2).sum(-1)  # (F, 4, N)
    alike = jnp.einsum("fcp,fdp->fcd", structure.at_port, structure.at_port)
    brings = FURTHER * (1.0 - alike) * (air.rate * air.works)[:, None, :]
    driven = jnp.einsum("fcp,fcd,fdn->pn", structure.at_port, brings, at_station)
    own = jnp.repeat(jnp.eye(air.work_at.size), 2, axis=0)  # (P, N) 1 at the station of a port
    other_way = air.work_in[:, ::-1].ravel()
    paired = other_way - EMPTY_FRAME * (air.frames_in - air.filled_in)[:, ::-1].ravel()
    share = own * _ratio(paired, other_way)[:, None] + (1.0 - own) * _ratio(air.work_at, air.work_in.sum(1))
    busy = own * paired[:, None] + (1.0 - own) * air.work_at - share * driven
    return jnp.where(plain > 0.0, busy, air.work_at - own * air.work_in.reshape(-1, 1))


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

    In the long run visits serve all that comes, up to M frames each: only the corner is rounded, for
    derivatives.
    """
    below = (1.0 + _ratio(work, most) ** CORNER) ** (-1.0 / CORNER)
    return work * below, below ** (CORNER + 1.0)


def _alone(structure: Structure, trains: Array, taken: Array) -> Array:
    """Share of trains that have a visit of their own where a visit takes all that has come in a cycle.

    Args:
        structure: the piconet.
        trains: (N,) at each station a slot.
        taken: (N,) slots that they take, with empty other halves of frames, a slot.
    """
    share = jnp.ones_like(trains)
    for _ in range(SUBSTITUTIONS):
        work = (taken - EMPTY_FRAME * trains * share).sum()
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
    clocked = one.member @ question.clocked
    grown = waits[0] / structure.stations
    if structure.regular:
        grown = _ratio(begotten - 1.0, (_works(structure, air) * (1.0 - one.member)).sum())
    under_way = _under_way(question, air) / 2.0 * grown
    down = one.route.up * (1.0 - one.route.relayed)
    if structure.interleaved:
        free = 1.0 - jnp.minimum(_others(structure, air, one, beside)[DATA].sum(), FULL)
        under_way = (1.0 - down) * under_way + 0.5 * (1.0 + down) * rest[0] * (1.0 / free - 1.0)
    saved = _shared(air, one) * structure.idle.polling.plain
    delay = under_way + rest[0] + waits[1:3].sum() - saved[:2].sum()
    whole = under_way * (1.0 + clocked) + rest[1] + waits[3:].sum() - saved.sum()
    port = one.ports[DATA].reshape(-1, 2)
    load = (port * air.load).sum()
    some_load = jnp.minimum(load, FULL)
    rate, service = one.member @ air.rate[:, DATA], one.member @ air.service[:, DATA]
    behind = (port * _behind(question, air)).sum()
    if structure.regular:
        behind = _behind_regular(question, air)
    behind = behind + structure.idle.polling.closes * some_load * air.cycle
    later = _later_waits(question, air)
    segments = air.rate[:, DATA] * (structure.at_port[:, DATA] @ one.ports[DATA])  # of all flows of the port
    return Passage(
        delay=delay,
        answer=whole - delay + later.sum() - later[BACK] + _beside_next(question, some_load),
        wait=behind + (one.member @ question.batch.ahead) * service,
        load=some_load,
        service=service,
        bare=service * (1.0 - one.member @ air.brought[:, DATA]),
        turn=jnp.where(rate > 0.0, _ratio(segments @ air.service[:, DATA], rate), service),
        fixed=one.member @ question.batch.fixed,
        bursty=jnp.where(one.member @ question.batch.ahead > 0.0, 1.0, 0.0),
        share=jnp.where(load > 0.0, rate * service / jnp.maximum(some_load, TINY), 1.0),
        frame=_ratio(load, (port * air.frames_in).sum()),
        wait_back=later[BACK],
        load_back=jnp.minimum((one.ports[BACK].reshape(-1, 2) * air.load).sum(), FULL),
        residual=jnp.zeros(()),
    )


def _beside_next(question: Question, load: Array) -> Array:
    """Slots that an acknowledgement on the only link waits for the data that share its frame.

    Segments leave none at their port as often as batches find none there; those of a periodic source always
    leave none. The first packet of the next one takes the place of POLL, or NULL.
    """
    structure, one, batch = question.structure, question.one, question.batch
    size = 1.0 + one.member @ (batch.drawn + 2.0 * batch.fixed)  # of a batch, in segments
    next_one = (1.0 - (1.0 - load) / size) * (1.0 - one.member @ question.regular)
    lone = (structure.stations == 1.0) & (question.one.route.relayed == 0.0) & (question.window > 1.0)
    return jnp.where(lone, next_one * (structure.data.slots[0] - 1.0), 0.0)


def _shared(air: Air, one: Class) -> Array:
    """(4,) slots that a train of a flow saves: packets of others that go the other way share its frames."""
    frames, _ = _of_kinds(air.sent)
    opposite = one.ports.reshape(4, -1, 2)[:, :, ::-1].reshape(4, -1)
    own = (opposite @ one.ports.T) @ ((one.member @ air.rate) * frames[KINDS])
    there = opposite @ air.frames_in.ravel()
    others = (1.0 - _ratio(own, there)) * (1.0 - _ratio(opposite @ air.filled_in.ravel(), there))
    return EMPTY_FRAME * frames[KINDS] * (opposite @ air.present.ravel()) * others


def _others(structure: Structure, air: Air, one: Class, beside: Array) -> Array:
    """(4, N) work a slot of the others while a flow waits for a visit of the port of a crossing.

    The acknowledgements of a flow that begins or ends at the central go with the frames of its own segments,
    so they are not among the others. A flow between two stations meets its own other segments at its second
    station, if they are under way: `beside` of all there would be. At its first one they are before it in the
    queue, with all that they bring, or wait behind it.
    """
    ports = one.ports.reshape(4, -1, 2)
    own_work = one.member @ (air.rate * air.works)  # (4,) of the own flow at its crossings
    there = air.work_at - (ports * air.work_in).sum(-1)
    opposite = ports[:, :, ::-1]
    all_back = (opposite * air.work_in).sum((1, 2))
    own_back = (opposite.reshape(4, -1) @ one.ports.T) @ own_work  # at the other port of the station
    saved = (ports.sum(-1) * air.saved).sum(-1)
    single = there - ports.sum(-1) * ((all_back - saved) * _ratio(own_back, all_back))[:, None]
    if not structure.relays:
        return single
    elsewhere = (1.0 - one.ports @ one.ports.T) * own_work  # of the own flow at other ports
    at_first = ports.sum(-1) @ ports[DATA].sum(-1)  # (4,) 1 at the first station
    relayed = there - (1.0 - beside * (1.0 - at_first))[:, None] * (elsewhere @ ports.sum(-1))
    return jnp.where(one.route.relayed > 0.0, relayed, single)


def _squares(air: Air) -> Array:
    """(F, 4) second moments of services."""
    scv = jnp.stack([_ratio(one.variance, one.mean**2) for one in air.sent])
    return air.service**2 * (1.0 + scv[KINDS])


def _in_batches(question: Question, air: Air) -> Array:
    """(F, 4) trains a slot, each counted with those of its batch, which come from a host at once."""
    return air.rate.at[:, DATA].multiply(1.0 + 2.0 * question.batch.ahead)


def _behind(question: Question, air: Air) -> Array:
    """(N, 2) mean waits behind the trains of a port: Pollaczek and Khinchin's formula."""
    residual = jnp.einsum(
        "fc,fc,fcp->p", _in_batches(question, air), _squares(air), question.structure.at_port
    ).reshape(-1, 2)
    return residual / (2.0 * (1.0 - jnp.minimum(air.load, FULL)))


def _behind_regular(question: Question, air: Air) -> Array:
    """Mean wait behind the streams of the first port, where some are periodic: not itself, if it is."""
    one = question.one
    there = question.structure.at_port @ one.ports[DATA]  # (F, 4)
    there = there * (1.0 - one.member * question.regular)[:, None]
    works = (there * air.rate * air.service).sum(-1)
    found = (there * _in_batches(question, air) * _squares(air)).sum()
    return found / 2.0 * _ratio(growth(works, question.regular) - 1.0, works.sum())


def _later_waits(question: Question, air: Air) -> Array:
    """(4,) waits behind other flows at later ports, where they come from a host."""
    structure, one = question.structure, question.one
    rate = _in_batches(question, air) * (1.0 - one.member)[:, None]
    residual = jnp.einsum("fc,fc,fcp->p", rate, _squares(air) * HOSTS, structure.at_port)
    load = jnp.minimum(one.ports @ air.load.ravel(), FULL)
    waits = one.later * (one.ports @ residual) / (2.0 * (1.0 - load))
    # after a visit that its data have filled an acknowledgement finds the queue just after a service
    data, plain = air.sent[0], structure.idle.polling.plain
    at_once = plain * (1.0 - one.member @ question.clocked)
    after = at_once * data.fills_last * data.chunks * jnp.eye(4)[BACK]
    return waits * (1.0 - after * load * (1.0 - load))


def _under_way(question: Question, air: Air) -> Array:
    """Sum over others' trains of their rates times the squares of their work.

    A station that fills all its visits makes every cycle longer by the same, and none longer than others:
    each counts by the share of its visits that it does not fill. Each visit of a train counts by itself;
    trains that follow at once are one.
    """
    structure, one = question.structure, question.one
    idle = jnp.clip(1.0 - _ratio(air.work_at * air.cycle, air.full_visit), 0.0, 1.0)
    idle_at = structure.at_port.reshape(*structure.at_port.shape[:2], -1, 2).sum(-1) @ idle  # (F, 4)
    chunks = jnp.stack([sent.chunks for sent in air.sent])
    spread = jnp.stack([sent.variance * (sent.mean_slots + 1.0) ** 2 for sent in air.sent])
    squares = (air.works**2 + spread[KINDS]) * chunks[KINDS] * one.meets
    hop, turn, back = (one.joined * jnp.stack([chunks[0], 1.0 - air.sent[0].fills_last, chunks[1]])).T
    turn = turn * (1.0 - question.clocked)
    relayed = structure.at_port[:, DATA_ON].sum(-1)
    before = (  # (F,) work that goes before at once, by crossing
        jnp.zeros_like(hop),
        hop * air.works[:, DATA],
        turn * jnp.where(relayed > 0.0, air.works[:, DATA_ON] + hop * air.works[:, DATA], air.works[:, DATA]),
    )
    before = (*before, back * (air.works[:, BACK] + before[BACK]))
    squares = squares + 2.0 * air.works * jnp.stack(before, axis=1)
    return (air.rate * squares * idle_at).sum()


def _ratio(part: Array, whole: Array) -> Array:
    """Return a ratio, 0 where there is nothing."""
    some = whole > 0.0
    return jnp.where(some, part, 0.0) / jnp.where(some, whole, 1.0)
