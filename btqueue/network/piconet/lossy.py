"""A piconet without repetition on the link whose connections radio errors hold back, as one fixed point.

TCP's rounds (`rounds`) say what a connection does to the network if it always has data: its traffic on the
air, the acknowledgements that it makes its receiver send, the wait and the losses that its data cause to
acknowledgements in its token bucket, and its timeout. These are the unknowns, by class of flows. With a load
that radio and buffers could carry twice, a connection works half of the time: everything that it gives is in
proportion.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from btqueue.network.piconet.bucket import missing
from btqueue.network.piconet.exchange import Exchange
from btqueue.network.piconet.rounds import Radio, Rounds, Tokens, Turns, after_idling, rounds
from btqueue.network.piconet.structure import Inputs
from btqueue.network.piconet.tails import TINY, Tail, longest
from btqueue.network.piconet.trains import Packets, failure_rates
from btqueue.queueing.fixed_point import Acceleration, accelerated_step, start_acceleration
from btqueue.queueing.implicit import Evaluated, at_root, unevaluated
from btqueue.transport.round_law import FORGOTTEN, RoundLaw, three_of
from btqueue.transport.round_structure import RoundStructure, round_structure

TOLERANCE = 1e-5
"""Mismatch of an answer; its last step makes it smaller by an order of magnitude or more."""
SETTLING = 4
"""Times that levels follow each other's changes before the flows are found again."""
FEW_STEPS = 16
"""Steps within which that arrives, unless buffers refuse segments and levels decide on the flows."""
EXTRAPOLATED, SETTLED, MOST_ITERATIONS = 100, 130, 240
"""Steps up to which they are extrapolated, up to which levels settle within each, and in all."""
SHARE = 0.4
"""Of a step that is taken after that."""
MOST_BUSY = 0.95
"""Share of the air up to which the others may use it."""
OF_EXPONENTIAL = 2.0 / np.e
"""Mean deviation of an exponential variable, in means: what others add to a round trip is taken as one."""
MEMORY_OF_DEVIATION = 0.25
"""Weight of the latest sample in TCP's estimate of the deviation (RFC 6298)."""
FREE_RATE, FREE_DEPTH, FREE_PLACES = 1e15, 1e9, 1e6
"""Tokens (bytes/s, bytes) and places (packets) that hold nothing back."""

FURTHER = 40
"""Expiries of a timer after the first one that are counted."""

CONSTANT, SINGLE, PAIR, SAME, SHORT_VISITS, LONE = range(6)
"""Channels that a segment meets: none that changes, that of one link, those of two links, one for both hops,
the same with a visit after each packet, and the same with both hops at once."""


Numbers = Array | np.ndarray


class Path(NamedTuple):
    """A class of flows.

    Attributes:
        flows: number of flows of the class.
        exchange: its turns on the air.
        acks_before: (K,) flows of each class whose acknowledgements take tokens where its data do.
        data_before: (K,) other flows of each class whose data take tokens there.
        tokens_of_acks: (K,) flows of each class whose data take tokens where its acknowledgements do.
        up: 1 if its data begin their way up.
    """

    flows: Numbers
    exchange: Exchange
    acks_before: Numbers
    data_before: Numbers
    tokens_of_acks: Numbers
    up: Numbers


class Network(NamedTuple):
    """A piconet without repetition.

    Attributes:
        inputs: numbers that may be varied, tokens without end as very many.
        data, ack: packets of a segment and of an acknowledgement.
        slot_s: time of a slot.
        kilobits: of a segment, without headers.
        data_through, ack_through: (N, 2) probability that a packet gets over one hop, by channel state.
    """

    inputs: Inputs
    data: Packets
    ack: Packets
    slot_s: Array
    kilobits: Array
    data_through: Array
    ack_through: Array


class Given(NamedTuple):
    """What a flow of each class gives to the others, (K,); `level` and `before` (K, S) are its own.

    Attributes:
        data, acks: segments and acknowledgements on the air, as shares of what the air carries.
        wait: of an acknowledgement for its token, in the time of the least timeout.
        refused: chance that a token buffer refuses it.
        rto: timeout, in least timeouts.
        level: missing tokens at the starts of rounds, in tokens of a segment.
        before: segments of the round before.
    """

    data: Array
    acks: Array
    wait: Array
    refused: Array
    rto: Array
    level: Array
    before: Array


class Calm(NamedTuple):
    """What becomes of a load that is carried.

    Attributes:
        busy: share of the messages that find the connection busy with earlier ones.
        timeouts, fast_retransmits: a second.
        cleared: segments sent from one timeout to the next while it is busy.
    """

    busy: Array
    timeouts: Array
    fast_retransmits: Array
    cleared: Array


class Found(NamedTuple):
    """A class of flows at the solution.

    Attributes:
        rounds: of a flow that always has data.
        duty: share of the time that it needs for its load.
        calm: what becomes of its load.
        rtt_s: mean round trip of a flow that always has data.
        idle_rtt_s, busy_rtt_s: the same of messages that no timeout holds up, and of those that one does.
        sends, on_air, received: segments a second that a flow sends, that its bucket lets through, and that
            its receiver gets.
        refused: segments a second of which its bucket refuses a packet.
        backlog_s, full: mean wait of a packet that comes to its bucket, and share of the time without a
            place.
        waiting: mean packets that wait for tokens.
        timeout: without doublings.
        through: probability that a lone segment and its acknowledgement get through.
        others: share of the air that others use.
        turns: on the air.
    """

    rounds: Rounds
    duty: Array
    calm: Calm
    rtt_s: Array
    idle_rtt_s: Array
    busy_rtt_s: Array
    sends: Array
    on_air: Array
    received: Array
    refused: Array
    backlog_s: Array
    full: Array
    waiting: Array
    timeout: Array
    through: Array
    others: Array
    turns: Turns


def network_of(inputs: Inputs, data: Packets, ack: Packets, slot_s: Array, kilobits: Array) -> Network:
    """Return a network where its numbers have these values."""
    radio = inputs.radio
    inputs = inputs._replace(
        token_rate=jnp.minimum(inputs.token_rate, FREE_RATE),
        bucket_bytes=jnp.minimum(inputs.bucket_bytes, FREE_DEPTH),
        buffer=jnp.minimum(inputs.buffer, FREE_PLACES),
    )

    def through(packets: Packets) -> Array:
        given = jnp.isfinite(radio.per)
        by_state = failure_rates(packets, jnp.stack([radio.ber_good, radio.ber_bad]))
        return 1.0 - jnp.where(given, jnp.where(given, radio.per, 0.0), by_state).T

    return Network(inputs, data, ack, slot_s, kilobits, through(data), through(ack))


def transition(good_s: Array, bad_s: Array, time: Array) -> Array:
    """(...) times (s) -> (..., 2, 2) transition matrices of one link's channel."""
    bad = bad_s / (good_s + bad_s)
    forgotten = -jnp.expm1(-jnp.minimum(time, FORGOTTEN) * (1.0 / good_s + 1.0 / bad_s))
    to_bad, to_good = bad * forgotten, (1.0 - bad) * forgotten
    good = jnp.stack([1.0 - to_bad, to_bad], axis=-1)
    return jnp.stack([good, jnp.stack([to_good, 1.0 - to_good], axis=-1)], axis=-2)


def paired(one: Array, other: Array) -> Array:
    """(..., 2, 2) matrices of two links -> (..., 3, 3) of the number of them that are bad.

    Which of the two is bad is as likely the one as the other.
    """
    both = one[..., :, None, :, None] * other[..., None, :, None, :]  # (..., i, j, k, l)
    by_start = jnp.stack([both[..., 0, 0, :, :], 0.5 * (both[..., 0, 1, :, :] + both[..., 1, 0, :, :]),
                          both[..., 1, 1, :, :]], axis=-3)  # fmt: skip
    return jnp.stack(
        [by_start[..., 0, 0], by_start[..., 0, 1] + by_start[..., 1, 0], by_start[..., 1, 1]], axis=-1
    )


def radio_of(kind: int, path: Path, net: Network, turns: Turns, stretch: Array, refused: Array) -> Radio:
    """Return the channels of a class.

    Data go over one hop or two, the acknowledgement back over the same. A segment's fate and the state after
    it are taken jointly; its acknowledgement meets the channels as they are likely to be then, but its own
    fate tells nothing more of them.
    """
    exchange = path.exchange
    move = partial(transition, net.inputs.radio.good_s, net.inputs.radio.bad_s)
    slot = net.slot_s
    if kind == CONSTANT:
        through = jnp.prod(net.data_through[:, 0]) ** exchange.hops
        back = jnp.prod(net.ack_through[:, 0]) ** exchange.hops * (1.0 - refused)

        def constant(later: Array) -> Array:
            fates = jnp.stack([1.0 - through, through * back, through * (1.0 - back)])
            return jnp.broadcast_to(fates.reshape(3, *(1,) * (later.ndim + 1)), (3, *later.shape[:-1], 1, 1))

        return Radio(lambda time: jnp.ones((*jnp.shape(time), 1, 1)), constant, 1.0 - through)

    def hop(slots: Array, through: Array) -> Array:
        return move(slots * slot) * through[:, None, :]

    data, ack = hop(net.data.slots, net.data_through), hop(net.ack.slots, net.ack_through)
    gaps = jnp.asarray(exchange.gaps) * slot
    back = ack[0]
    for place in range(ack.shape[0] - 1):
        back = back @ move(exchange.ack_gaps[place] * slot) @ ack[place + 1]
    if kind in (SAME, SHORT_VISITS, LONE):
        back = back @ move(exchange.ack_hops * slot) @ back
    own = move(turns.answer + exchange.ack_own * slot * stretch) @ back
    following = move(turns.answer) @ back
    between = jnp.maximum(exchange.way - 2.0 * exchange.train, 0.0) * slot
    rest = data[-1]  # when the last packet has gone up, it comes down
    up = 2.0 * net.data.slots.sum() - net.data.slots[-1] if kind == LONE else exchange.train
    if kind == LONE:  # what goes up comes down in the next frame, beside the packet that goes up then
        data, gaps = jnp.concatenate([data[:-1] @ data[:-1], data[-1:]]), 0.0 * gaps
    if kind == SHORT_VISITS:  # each comes down before the next goes up
        data = jnp.concatenate([data[:-1] @ data[:-1], data[-1:]])
        gaps = jnp.maximum(gaps - net.data.slots[:-1] * slot, 0.0)

    def fates(later: Array) -> Array:
        through = jnp.broadcast_to(data[0], (*later.shape[:-1], 2, 2))
        for place in range(later.shape[-1]):
            through = through @ (move(gaps[place] + later[..., place]) @ data[place + 1])
        along = move(up * slot + later.sum(axis=-1))
        heard = following.sum(axis=1) * (1.0 - refused)
        if kind == PAIR:
            answered = paired(through * own.sum(axis=1) * (1.0 - refused), through * following.sum(axis=1))
            through, along = paired(through, through), paired(along, along)
        elif kind == SINGLE:
            answered = through * heard
        else:  # a following segment goes up meanwhile: it knows no more than the state before
            down = move(between) @ through if kind == SAME else rest
            arrives, answers = down.sum(axis=-1), down @ heard
            through, answered = through * arrives[..., None, :], through * answers[..., None, :]
        return jnp.stack([along - through, answered, through - answered])

    def both(time: Array) -> Array:
        return paired(moved := move(time), moved)

    onward = both if kind == PAIR else move
    likely = onward(jnp.asarray(FORGOTTEN))[0]
    return Radio(onward, fates, likely @ fates(jnp.zeros(gaps.shape))[0].sum(axis=1))


def share_of_air(paths: tuple[Path, ...], net: Network, sent: Array, flows: Array) -> Array:
    """Return the share of the air that packets use, with the empty slots beside them.

    A packet replaces an empty slot of POLL or NULL; its answer is an empty slot, too, as long as nothing goes
    the other way. Flows between stations go both ways, as often as the share itself says.

    Args:
        paths: classes.
        net: network.
        sent: (K, 2) segments and acknowledgements a second of a flow.
        flows: (K,) that count.
    """
    each = flows * net.slot_s
    busy = each @ jnp.stack([sent[k] @ path.exchange.busy for k, path in enumerate(paths)])
    beside = jnp.stack([sent[k] @ path.exchange.beside for k, path in enumerate(paths)])
    both_ways = jnp.stack([path.exchange.hops - 1.0 for path in paths])
    return (busy + each @ beside) / (1.0 + each @ (beside * both_ways))


def turns_of(exchange: Exchange, net: Network, others: Array) -> tuple[Turns, Array]:
    """Return the turns of a class beside others that use a share of the air, and how much that stretches."""
    stretch = 1.0 / (1.0 - jnp.minimum(others, MOST_BUSY))
    slot = net.slot_s * stretch
    answer = net.inputs.jitter_s / 2.0 + exchange.answer * slot
    sizes = net.data.slots[1:]
    steps = (jnp.asarray(exchange.gaps) + sizes * (1.0 + exchange.lone)) * net.slot_s
    spacing = exchange.spacing * slot
    return Turns(
        lone=jnp.asarray(exchange.lone),
        alone=net.inputs.jitter_s / 2.0 + exchange.round_trip * slot + answer,
        head=exchange.head * slot,
        behind=exchange.behind * slot,
        spacing=spacing,
        apart=jnp.where(exchange.apart > 0.0, exchange.apart * net.slot_s, spacing),
        train=exchange.train * net.slot_s,
        answer=answer,
        steps=steps,
    ), stretch


def expected_timeout(rtt: Array, deviation: Array, least: Array, most: Array) -> Array:
    """Return the mean of a timeout (s) that has a floor, by RFC 6298: mean and four mean deviations.

    What TCP knows of the deviation is an average over the last few samples. With weight a for the latest, its
    variance is a / (2 - a) times that of a sample; the deviation of one sample is about as variable as
    exponential. So the timeout spreads around its mean, and the floor cuts it off; the normal law is used.
    """
    mean = rtt + 4.0 * deviation
    spread = 4.0 * deviation * np.sqrt(MEMORY_OF_DEVIATION / (2.0 - MEMORY_OF_DEVIATION))
    some = spread > 0.0
    z = (mean - least) / jnp.where(some, spread, 1.0)
    above = z * jax.scipy.stats.norm.cdf(z) + jax.scipy.stats.norm.pdf(z)
    return jnp.minimum(jnp.where(some, least + spread * above, jnp.maximum(mean, least)), most)


class Stall(NamedTuple):
    """What the loss of a lone segment comes to: expiries, and messages that they hold up."""

    expiries: Array
    held_up: Array


def stall(window: int, lost: Array, coming: Array, longer: Array) -> Stall:
    """Return what a lost message comes to that found the connection idle.

    A loss leaves such a connection a window of two segments, which grows by one in as many acknowledgements.
    Messages of the time of a timer go out behind the lost one as far as that window allows; if three of them
    send duplicates, they repair it. What goes beyond the window waits for the timer, as do all during the
    further timers of retransmissions that are lost.

    Args:
        window: receive window (segments).
        lost: chance that a message, or its acknowledgement, is lost.
        coming: mean messages, of a Poisson process, in the time of a timer.
        longer: (FURTHER,) how much longer each further timer is.
    """
    sizes = jnp.arange(min(2, window), window + 1.0)
    reached = (1.0 - lost) ** (jnp.cumsum(sizes) - sizes)
    share = -jnp.diff(reached, append=0.0)
    behind = np.arange(window)  # segments
    chance = jax.scipy.stats.poisson.pmf(behind, coming)
    too_few = 1.0 - three_of(window - 1, lost)
    # (windows, segments that come): what is beyond the window stays
    within = jnp.asarray(behind)[None, :] < sizes[:, None] - 1.0
    full = too_few[sizes.astype(int) - 1]
    fewer = (within * chance * too_few).sum(axis=1)
    expires = fewer + full * (1.0 - (within * chance).sum(axis=1))
    missing = (within * chance * (sizes[:, None] - 1.0 - behind)).sum(axis=1)
    beyond = full * (coming - (sizes - 1.0) + missing)
    expires, beyond = share @ expires, share @ beyond
    further = longer @ lost ** np.arange(1, FURTHER + 1)
    return Stall(expires / (1.0 - lost), beyond + expires * coming * further)


def carried(window: int, law: RoundLaw, load: Array, lost: Array, timer: tuple[Array, Array, Array]) -> Calm:
    """Return how a connection carries a load.

    A message that finds it idle goes alone; `stall` says what its loss holds up. The connection clears that
    away at the rate that it has when it is busy, and those who come meanwhile find it busy: with s held up by
    a message, and a rate X when busy, busy is the share b = l b / X + (1 - b) s of the messages. At full load
    these are all.

    Args:
        window: receive window (segments).
        law: of the connection if it always has data.
        load: messages a second.
        lost: chance that a lone message, or its acknowledgement, is lost.
        timer: timeout without doublings and its cap (s), and factor of each expiry.
    """
    load = jnp.minimum(load, law.goodput)
    duty = load / law.goodput
    first, most, backoff = timer
    longer = jnp.minimum(backoff ** np.arange(1, FURTHER + 1), most / first)
    each = stall(window, lost, load * first, longer)
    stalled = lost * each.held_up
    busy = jnp.where(duty >= 1.0, 1.0, stalled / jnp.maximum(1.0 - duty + stalled, 1e-12))
    alone = load * (1.0 - busy) * lost
    timeouts = alone * each.expiries + busy * duty * law.timeouts
    repaired = jnp.maximum(1.0 - each.expiries * (1.0 - lost), 0.0)
    fast = alone * repaired + busy * duty * law.fast_retransmits
    return Calm(busy, timeouts, fast, load * busy / jnp.maximum(timeouts, 1e-100))


def busy_round_trip(window: int, seen: Rounds, calm: Calm, tokens: Tokens, turns: Turns) -> Array:
    """Return the mean round trip of messages that find the connection busy.

    The number of segments until the backlog behind a timeout is cleared away is taken as geometric, with the
    right mean. A connection that is always busy meets all of its rounds.
    """
    clearing = after_idling(window, tokens, turns, calm.cleared / (1.0 + calm.cleared))
    always = (seen.law.samples * seen.own.trip).sum() / seen.law.samples.sum()
    return calm.busy * always + (1.0 - calm.busy) * clearing


def idle_wait_s(
    window: int,
    net: Network,
    path: Path,
    turns: Turns,
    others: Array,
    rates: tuple[Numbers, Numbers],
    work: Array,
) -> Array:
    """Return the mean wait of messages that no timeout holds up: for tokens and other messages.

    A segment of others may be under way when a segment comes, as in an M/G/1 queue
    (`btqueue.network.piconet.air`); an acknowledgement comes out of a visit, so that none is. A round trip is
    no longer than the window takes. Left out is the wait of relayed acknowledgements behind data.

    Args:
        window: receive window (segments).
        net: network.
        path: the class.
        turns: of its flows on the air.
        others: share of the air that others use.
        rates: segments and acknowledgements a second that take tokens where this flow's data do.
        work: mean time that a segment of others takes of the air, with its acknowledgement.
    """
    inputs, prices, price = net.inputs, net.data.prices, net.data.tokens
    # the first packets of a segment go ahead while the last one waits
    needed = jnp.maximum(price / prices.size, price - turns.train * inputs.token_rate)
    after_s, room_s = inputs.bucket_bytes - needed, inputs.buffer * prices.mean()
    tokens = missing(jnp.stack(rates), jnp.stack([price, net.ack.tokens]) / inputs.token_rate)
    waits = tokens.beyond(after_s / inputs.token_rate, room_s / inputs.token_rate)
    load = jnp.minimum(rates[0] * turns.spacing, MOST_BUSY)
    port = Tail.of(load, 0.5 * load * turns.spacing / (1.0 - load))
    others = jnp.minimum(others, MOST_BUSY)
    under_way = 0.5 * others * work * path.exchange.visit / (1.0 - others)
    turn = jnp.maximum(turns.spacing, price / inputs.token_rate)
    most = jnp.maximum(window * turn - turns.alone - under_way, 0.0)
    return longest(port, waits, most) + under_way


def scale_of(net: Network, path: Path) -> Array:
    """Return the segments a second that the air carries of a lone flow of a class."""
    return 1.0 / (path.exchange.busy.sum() * net.slot_s)


@partial(jax.jit, static_argnums=(0, 1))
def respond(
    kinds: tuple[int, ...],
    window: int,
    paths: tuple[Path, ...],
    net: Network,
    given: Given,
    further: Array | None = None,
) -> tuple[Given, tuple[Found, ...]]:
    """Return what the classes give to each other, given that; see `rounds` for the last argument."""
    structure, inputs = round_structure(window), net.inputs
    most = jnp.stack([scale_of(net, path) for path in paths])
    data, acks = given.data * most, given.acks * most
    sent = jnp.stack([data, acks], axis=1)
    flows = jnp.stack([path.flows for path in paths])
    price = net.data.tokens
    found = []
    for k, (kind, path) in enumerate(zip(kinds, paths, strict=True)):
        count = flows - (np.arange(len(paths)) == k)
        others = share_of_air(paths, net, sent, count)
        turns, stretch = turns_of(path.exchange, net, others)
        taken = path.acks_before @ acks * net.ack.tokens + path.data_before @ data * price
        rate = jnp.maximum(
            inputs.token_rate - taken, inputs.token_rate / 2
        )  # while the fixed point is sought
        tokens = Tokens(rate, net.data.prices, inputs.bucket_bytes, inputs.buffer)
        turns = turns._replace(alone=turns.alone + given.wait[k] * inputs.min_rto_s)
        radio = radio_of(kind, path, net, turns, stretch, given.refused[k])
        rto = given.rto[k] * inputs.min_rto_s
        timer = rto, jnp.maximum(inputs.max_rto_s, rto), inputs.backoff
        likely = radio.move(jnp.asarray(FORGOTTEN))[0]
        lone = 1.0 - likely @ radio.fates(jnp.zeros(net.data.prices.size - 1))[1].sum(axis=1)
        seen = rounds(
            structure, tokens, turns, radio, given.level[k] * price, given.before[k], timer, further
        )
        rates = path.data_before @ data + data[k], path.acks_before @ acks
        work = others / jnp.maximum(count @ data, TINY)
        waiting = idle_wait_s(structure.window, net, path, turns, others, rates, work)
        found.append(
            _found(structure, lone, seen, tokens, radio, turns, others, inputs.load[k], timer, waiting)
        )
    answer = Given(
        data=jnp.stack([one.on_air for one in found]) / most,
        acks=jnp.stack([one.received for one in found]) / most,
        wait=jnp.stack([_met(p.tokens_of_acks, [_queued(f) * f.backlog_s for f in found]) for p in paths])
        / inputs.min_rto_s,
        refused=jnp.stack([_met(p.tokens_of_acks, [_queued(f) * f.full for f in found]) for p in paths]),
        rto=jnp.stack([_timeout(f, net) for f in found]) / inputs.min_rto_s,
        level=jnp.stack([one.rounds.level for one in found]) / price,
        before=jnp.stack([one.rounds.before for one in found]),
    )
    return answer, tuple(found)


def _queued(found: Found) -> Array:
    """Return the share of the time in which as much waits for tokens as in a connection that is always busy.

    What is cleared behind a timeout begins with a full bucket: less waits, as round trips are shorter.
    """
    always = jnp.maximum(found.rtt_s - found.turns.alone, TINY)
    return found.calm.busy * jnp.clip((found.busy_rtt_s - found.turns.alone) / always, 0.0, 1.0)


def _met(flows: Numbers, values: list[Array]) -> Array:
    return jnp.asarray(flows) @ jnp.stack(values)


def _timeout(found: Found, net: Network) -> Array:
    weights = found.rounds.law.samples / found.rounds.law.samples.sum()
    busy, alone = found.calm.busy, found.idle_rtt_s
    mean = busy * found.busy_rtt_s + (1.0 - busy) * alone
    deviation = (weights * jnp.abs(found.rounds.own.trip - found.rtt_s)).sum()
    deviation = busy * (deviation + jnp.abs(found.busy_rtt_s - mean)) + (1.0 - busy) * jnp.abs(alone - mean)
    by_others = OF_EXPONENTIAL * found.others * found.turns.alone
    return expected_timeout(
        mean, jnp.sqrt(deviation**2 + by_others**2 + 1e-24), net.inputs.min_rto_s, net.inputs.max_rto_s
    )


def _found(
    structure: RoundStructure,
    lone_loss: Array,
    seen: Rounds,
    tokens: Tokens,
    radio: Radio,
    turns: Turns,
    others: Array,
    load: Array,
    timer: tuple[Array, Array, Array],
    waiting_s: Array,
) -> Found:
    law = seen.law
    # segments by the level that they find: those of rounds, late ones, and those sent again after duplicates
    number = jnp.concatenate([law.sent.ravel(), law.late, law.again])
    level = jnp.concatenate([seen.own.level.ravel(), seen.late.level[:, 0], seen.again_level])
    refused = jnp.concatenate([seen.own.refused.ravel(), tokens.refuses(level[seen.own.level.size :])])
    whole = number * (1.0 - refused)
    wait = tokens.wait(level + tokens.price)
    own = jnp.minimum(wait, tokens.price / tokens.rate)  # for so long its own tokens are what all wait for
    no_place = tokens.wait(level + tokens.price + tokens.packet - tokens.top)
    through = (1.0 - radio.lost) * (1.0 - tokens.refuses(level[seen.own.level.size :]))
    received = (law.sent - law.lost).sum() + number[seen.own.level.size :] @ through
    sends = number.sum()
    duty = jnp.minimum(load, law.goodput) / law.goodput  # a load may be infinite
    calm = carried(structure.window, law, load, lone_loss, timer)

    def mixed(alone: Array, always: Array) -> Array:
        """Return a rate: for a segment that goes alone, so many; those of a flow that is always busy."""
        return duty * ((1.0 - calm.busy) * law.goodput * alone + calm.busy * always)

    # late segments are means: no more is delivered than comes
    rounding = jnp.maximum(1.0, law.goodput / received)
    return Found(
        rounds=seen,
        duty=duty,
        calm=calm,
        rtt_s=(law.samples * seen.own.trip).sum() / law.samples.sum(),
        idle_rtt_s=turns.alone + waiting_s,
        busy_rtt_s=busy_round_trip(structure.window, seen, calm, tokens, turns),
        sends=mixed(1.0 / (1.0 - lone_loss), sends * rounding),
        on_air=mixed(1.0 / (1.0 - lone_loss), whole.sum()),
        refused=mixed(jnp.zeros(()), number @ refused),
        received=mixed((1.0 - radio.lost) / (1.0 - lone_loss), received * rounding),
        backlog_s=(backlog := (whole * own * (wait - own / 2)).sum()),
        full=(whole * jnp.minimum(no_place, own)).sum(),
        waiting=backlog * tokens.rate / tokens.packet,
        timeout=timer[0],
        through=1.0 - lone_loss,
        others=others,
        turns=turns,
    )


class Root(NamedTuple):
    """The fixed point, and the steps to it: an unknown on which nothing depends."""

    given: Given
    steps: Array


Question = tuple[tuple[Path, ...], Network, Array]


def solve(
    kinds: tuple[int, ...],
    window: int,
    paths: tuple[Path, ...],
    net: Network,
    tolerance: Array | float = TOLERANCE,
) -> tuple[Given, tuple[Found, ...], Array, Array]:
    """Return the fixed point, the classes there, its mismatch and the steps to it.

    Differentiable in `net`. The mismatch at which the search stops is `tolerance`.
    """
    question = paths, net, jnp.asarray(tolerance)
    return at_root(partial(_at, kinds, window), partial(_search, kinds, window), question)[0]


def _at(
    kinds: tuple[int, ...], window: int, root: Root, question: Question, further: Array | None = None
) -> tuple[Any, Root]:
    """Return what `solve` does where classes are given this, and the changes; `further`: see `rounds`."""
    given, steps = root
    better, found = respond(kinds, window, *question[:2], given, further)
    outcome = given, found, mismatch(given, better, found), jax.lax.stop_gradient(steps)
    return outcome, Root(jax.tree.map(jnp.subtract, better, given), steps - jax.lax.stop_gradient(steps))


class _Searched(NamedTuple):
    """The state of the search: where it goes on; the last point, its mismatch, and whether that ends it."""

    now: Acceleration
    last: Evaluated
    gap: Array
    ended: Array


def _search(kinds: tuple[int, ...], window: int, question: Question) -> Evaluated:
    """Search the fixed point: with levels that settle at each step, else, where buffers refuse, damped.

    Extrapolation is the quicker one; where it goes astray, a share of each step is what settles. The last
    turn settles no levels and moves nothing: it is the value at the root.
    """
    paths, net, tolerance = question
    inputs, structure, price = net.inputs, round_structure(window), net.data.tokens
    ones = jnp.ones(len(kinds))
    level = jnp.broadcast_to(-inputs.bucket_bytes / price, (ones.size, structure.states))
    before = jnp.broadcast_to(jnp.maximum(jnp.asarray(structure.size, float) - 0.5, 1.0), level.shape)
    some = 0.1 * ones / sum(path.flows for path in paths)
    begin = Root(Given(some, some, 0.0 * ones, 0.0 * ones, ones, level, before), jnp.zeros(()))
    start, unravel = ravel_pytree(begin.given)

    def inside(given: Given) -> Given:
        most = (inputs.buffer + 1.0) / net.data.prices.size + window
        return given._replace(
            data=jnp.clip(given.data, 0.0, 1.0),
            acks=jnp.clip(given.acks, 0.0, 1.0),
            wait=jnp.clip(given.wait, 0.0, 10.0),
            refused=jnp.clip(given.refused, 0.0, MOST_BUSY),
            rto=jnp.clip(given.rto, 1.0, inputs.max_rto_s / inputs.min_rto_s),
            level=jnp.clip(given.level, -inputs.bucket_bytes / price, most),
            before=jnp.clip(given.before, 1.0, window),
        )

    def either(first: Array, one: Any, other: Any) -> Any:
        return jax.tree.map(partial(jnp.where, first), one, other)

    def advance(state: _Searched) -> _Searched:
        count = state.now.iterations
        ended = (state.gap <= tolerance) | (count >= MOST_ITERATIONS)
        afresh = start_acceleration(start)._replace(iterations=count)
        now = either((count == FEW_STEPS) | (count == EXTRAPOLATED), afresh, state.now)
        astray = count >= EXTRAPOLATED
        quick = jnp.where(astray, count < SETTLED, count < FEW_STEPS)
        given = either(ended, unravel(state.now.vector), inside(unravel(now.vector)))
        root = Root(given, count.astype(float))
        found = _at(kinds, window, root, question, jnp.where(quick & ~ended, SETTLING, 0))
        # begun afresh, it may have an answer
        gap = jnp.nan_to_num(found[0][2], nan=jnp.inf)
        better = jax.tree.map(jnp.add, given, found[1].given)
        better = better._replace(level=jnp.where(quick, better.level, 0.5 * (given.level + better.level)))
        slower = now.vector + SHARE * (ravel_pytree(better)[0] - now.vector)
        now = accelerated_step(lambda _: ravel_pytree(better)[0], now)
        now = now._replace(vector=jnp.where(astray, slower, now.vector))
        return _Searched(now, (root, found), gap, ended)

    far, some_at = jnp.asarray(jnp.inf), unevaluated(partial(_at, kinds, window), begin, question)
    begun = _Searched(start_acceleration(start), some_at, far, jnp.asarray(False))
    return jax.lax.while_loop(lambda state: ~state.ended, advance, begun).last


def mismatch(given: Given, better: Given, found: tuple[Found, ...]) -> Array:
    """Return by how much the classes give other than they are given: rates relative, levels as met."""
    rates = [jnp.abs(getattr(better, name) / getattr(given, name) - 1.0) for name in ("data", "acks", "rto")]
    others = [jnp.abs(getattr(better, name) - getattr(given, name)) for name in ("wait", "refused")]
    often = jnp.stack([one.calm.busy * one.rounds.law.law.sum(axis=1) for one in found])
    levels = (often * jnp.abs(better.level - given.level)).sum(axis=1)
    return jnp.max(jnp.stack([*rates, *others, levels]))


def metrics_of(
    paths: tuple[Path, ...], net: Network, given: Given, found: tuple[Found, ...]
) -> dict[str, Array]:
    """Return metrics by class (K,), and of the network ()."""
    most = jnp.stack([scale_of(net, path) for path in paths])
    sent = jnp.stack([given.data, given.acks], axis=1) * most[:, None]
    flows = jnp.stack([path.flows for path in paths])
    used = share_of_air(paths, net, sent, flows)
    busy = jnp.stack([path.exchange.busy for path in paths])

    def each(value: Callable[[Found], Array]) -> Array:
        return jnp.stack([value(one) for one in found])

    shared = each(lambda one: one.calm.busy)
    waiting = each(lambda one: _queued(one) * one.waiting)
    up = jnp.stack([path.up for path in paths])
    return {
        "goodput_kbps": jnp.minimum(net.inputs.load, each(lambda one: one.rounds.law.goodput)) * net.kilobits,
        "throughput_kbps": each(lambda one: one.sends) * net.kilobits,
        "rtt_s": shared * each(lambda one: one.busy_rtt_s)
        + (1.0 - shared) * each(lambda one: one.idle_rtt_s),
        "timeouts_per_s": each(lambda one: one.calm.timeouts),
        "fast_retransmits_per_s": each(lambda one: one.calm.fast_retransmits),
        "segment_loss": 1.0 - each(lambda one: one.received) / each(lambda one: one.sends),
        "token_buffer": (flows * up) @ waiting / paths[0].exchange.stations,
        "cycle_s": 2.0 * paths[0].exchange.stations * net.slot_s / jnp.maximum(1.0 - used, 1e-3),
        "slot_utilisation": flows @ (sent * busy).sum(axis=1) * net.slot_s,
    }
