"""A piconet without repetition on the link whose connections radio errors hold back, as one fixed point.

TCP's rounds (`rounds`) say what a connection does to the network if it always has data: its traffic on the
air, the acknowledgements that it makes its receiver send, the wait and the losses that its data cause to
acknowledgements in its token bucket, and its timeout. These are the unknowns, by class of flows. With a load
that radio and buffers could carry twice, a connection works half of the time: everything that it gives is in
proportion.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.baseband import SLOT_S
from btqueue.network.piconet.exchange import Exchange
from btqueue.network.piconet.rounds import Rounds, Tokens, Turns, rounds
from btqueue.queueing.fixed_point import implicit_fixed_point
from btqueue.transport.round_law import FORGOTTEN
from btqueue.transport.round_structure import round_structure

TOLERANCE = 1e-7
MOST_ITERATIONS = 80
MOST_BUSY = 0.95
"""Share of the air up to which the others may use it."""
OF_EXPONENTIAL = 2.0 / np.e
"""Mean deviation of an exponential variable, in means: what others add to a round trip is taken as one."""
MEMORY_OF_DEVIATION = 0.25
"""Weight of the latest sample in TCP's estimate of the deviation (RFC 6298)."""
FREE_RATE, FREE_DEPTH = 1e15, 1e9
"""Tokens (bytes/s, bytes) that hold nothing back."""

CONSTANT, SINGLE, PAIR, SAME, SHORT_VISITS, LONE = range(6)
"""Channels that a segment meets: none that changes, that of one link, those of two links, one for both hops, one
for both hops with a visit after each packet, one for both hops at once."""


class Path(NamedTuple):
    """What is discrete about a class of flows.

    Attributes:
        kind: channels that a segment meets, see `CONSTANT`.
        flows: number of flows of the class.
        exchange: its turns on the air.
        acks_before: (K,) flows of each class whose acknowledgements take tokens where its data do.
        data_before: (K,) other flows of each class whose data take tokens there.
        tokens_of_acks: (K,) flows of each class whose data take tokens where its acknowledgements do.
    """

    kind: int
    flows: int
    exchange: Exchange
    acks_before: tuple[float, ...]
    data_before: tuple[float, ...]
    tokens_of_acks: tuple[float, ...]


class Network(NamedTuple):
    """What may be varied.

    Attributes:
        load: (K,) segments a second of a flow of each class.
        prices, ack_price: tokens of the packets of a segment, and of an acknowledgement (bytes).
        token_rate, depth, places: of a token bucket (bytes/s, bytes, packets).
        jitter_s: largest processing delay.
        min_rto, max_rto, backoff: of TCP.
        slot_s: time of a slot.
        data_slots, ack_slots: of the packets.
        data_through, ack_through: (N, 2) probability that a packet gets over one hop, by channel state.
        good_s, bad_s: mean stays there.
    """

    load: Array
    prices: Array
    ack_price: Array
    token_rate: Array
    depth: Array
    places: Array
    jitter_s: Array
    min_rto: Array
    max_rto: Array
    backoff: Array
    slot_s: Array
    data_slots: Array
    ack_slots: Array
    data_through: Array
    ack_through: Array
    good_s: Array
    bad_s: Array


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


class Found(NamedTuple):
    """A class of flows at the solution.

    Attributes:
        rounds: of a flow that always has data.
        duty: share of the time that it needs for its load.
        busy: share of the messages that find it busy with others.
        rtt_s: mean round trip of a busy flow.
        sends, on_air, received: segments a second of a busy flow that it sends, that its bucket lets through, and
            that its receiver gets.
        backlog_s, full: mean wait of a packet that comes to its bucket, and share of the time without a place.
        others: share of the air that others use.
        turns: on the air.
    """

    rounds: Rounds
    duty: Array
    busy: Array
    rtt_s: Array
    sends: Array
    on_air: Array
    received: Array
    backlog_s: Array
    full: Array
    others: Array
    turns: Turns


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
    return jnp.stack([by_start[..., 0, 0], by_start[..., 0, 1] + by_start[..., 1, 0], by_start[..., 1, 1]], axis=-1)


class Radio(NamedTuple):
    """What the segments of a class meet: `move` and `fates` as `rounds.rounds` wants them."""

    move: Any
    fates: Any


def radio_of(path: Path, net: Network, turns: Turns, stretch: Array, refused: Array) -> Radio:
    """Return the channels of a class.

    Data go over one hop or two, the acknowledgement back over the same. A segment's fate and the state after it
    are taken jointly; its acknowledgement meets the channels as they are likely to be then, but its own fate
    tells nothing more of them.
    """
    exchange, kind = path.exchange, path.kind
    move = partial(transition, net.good_s, net.bad_s)
    slot = net.slot_s
    if kind == CONSTANT:
        hops = 1 if exchange.ack_hops == 0.0 and exchange.behind == 0.0 and not exchange.lone else 2
        through = jnp.prod(net.data_through[:, 0]) ** hops
        back = jnp.prod(net.ack_through[:, 0]) ** hops * (1.0 - refused)

        def constant(later: Array) -> Array:
            fates = jnp.stack([1.0 - through, through * back, through * (1.0 - back)])
            return jnp.broadcast_to(fates.reshape(3, *(1,) * (later.ndim + 1)), (3, *later.shape[:-1], 1, 1))

        return Radio(lambda time: jnp.ones((*jnp.shape(time), 1, 1)), constant)

    def hop(slots: Array, through: Array) -> Array:
        return move(slots * slot) * through[:, None, :]

    data, ack = hop(net.data_slots, net.data_through), hop(net.ack_slots, net.ack_through)
    gaps = jnp.asarray(exchange.gaps) * slot
    back = ack[0]
    for place, gap in enumerate(exchange.ack_gaps):
        back = back @ move(jnp.asarray(gap * slot)) @ ack[place + 1]
    if kind in (SAME, SHORT_VISITS, LONE):
        back = back @ move(jnp.asarray(exchange.ack_hops * slot)) @ back
    own = move(turns.answer + exchange.ack_own * slot * stretch) @ back
    following = move(turns.answer) @ back
    between = jnp.maximum(exchange.way - 2.0 * exchange.train, 0.0) * slot
    if kind == LONE:  # what goes up comes down in the next frame, beside the packet that goes up then
        data, gaps = data @ data, 0.0 * gaps
    if kind == SHORT_VISITS:  # each comes down before the next goes up
        data, gaps = data @ data, jnp.maximum(gaps - net.data_slots[1:] * slot, 0.0)
    length = (exchange.way if kind in (SAME, SHORT_VISITS, LONE) else exchange.train) * slot

    def fates(later: Array) -> Array:
        through = jnp.broadcast_to(data[0], (*later.shape[:-1], 2, 2))
        for place in range(later.shape[-1]):
            through = through @ (move(gaps[place] + later[..., place]) @ data[place + 1])
        if kind == SAME:
            through = through @ move(between) @ through
        along = move(length + later.sum(axis=-1))
        answered = through * following.sum(axis=1) * (1.0 - refused)
        if kind == PAIR:
            answered = paired(through * own.sum(axis=1), through * following.sum(axis=1)) * (1.0 - refused)
            through, along = paired(through, through), paired(along, along)
        return jnp.stack([along - through, answered, through - answered])

    return Radio((lambda time: paired(move(time), move(time))) if kind == PAIR else move, fates)


def share_of_air(busy: Array, beside: Array) -> Array:
    """Return the share of the air that packets use, with the empty slots beside them.

    A packet replaces an empty slot of POLL or NULL; its answer is an empty slot, too, as long as nothing goes
    the other way, which the share itself says how often it does.
    """
    return (busy + beside) / (1.0 + beside)


def turns_of(exchange: Exchange, net: Network, others: Array) -> tuple[Turns, Array]:
    """Return the turns of a class beside others that use a share of the air, and how much longer they make them."""
    stretch = 1.0 / (1.0 - jnp.minimum(others, MOST_BUSY))
    slot = net.slot_s * stretch
    answer = net.jitter_s / 2.0 + exchange.answer * slot
    sizes = net.data_slots[1:]
    steps = (jnp.asarray(exchange.gaps) + sizes * (2.0 if exchange.lone else 1.0)) * net.slot_s
    spacing = exchange.spacing * slot
    return Turns(
        lone=jnp.asarray(float(exchange.lone)),
        alone=net.jitter_s / 2.0 + exchange.round_trip * slot + answer,
        head=exchange.head * slot,
        behind=exchange.behind * slot,
        spacing=spacing,
        apart=exchange.apart * net.slot_s if exchange.apart else spacing,
        train=jnp.asarray(exchange.train * net.slot_s),
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


def busy_share(duty: Array, silent: Array) -> Array:
    """Return the share of the messages that find the connection busy with earlier ones.

    A timeout of length t lets the load times t messages pile up, which the connection clears away at the rate
    that it has between timeouts; those who come meanwhile find it busy. At full load these are all.

    Args:
        duty: share of the time that the connection needs.
        silent: share of the time that it waits for timeouts when it always has data.
    """
    silent = jnp.minimum(silent, 1.0)
    return jnp.where(duty >= 1.0, 1.0, duty * silent / jnp.maximum(1.0 - duty * (1.0 - silent), 1e-12))


def scale_of(net: Network, path: Path) -> Array:
    """Return the segments a second that the air carries of a lone flow of a class."""
    return 1.0 / (sum(path.exchange.busy) * net.slot_s)


def respond(paths: tuple[Path, ...], window: int, net: Network, given: Given) -> tuple[Given, tuple[Found, ...]]:
    """Return what the classes give to each other, given that."""
    structure = round_structure(window)
    most = jnp.stack([scale_of(net, path) for path in paths])
    data, acks = given.data * most, given.acks * most
    busy = jnp.stack([d * p.exchange.busy[0] + a * p.exchange.busy[1] for p, d, a in zip(paths, data, acks, strict=True)])
    beside = jnp.stack(
        [d * p.exchange.beside[0] + a * p.exchange.beside[1] for p, d, a in zip(paths, data, acks, strict=True)]
    )
    flows = np.array([path.flows for path in paths], float)
    price = net.prices.sum()
    found = []
    for k, path in enumerate(paths):
        count = flows - (np.arange(len(paths)) == k)
        others = share_of_air((count @ busy) * net.slot_s, (count @ beside) * net.slot_s)
        turns, stretch = turns_of(path.exchange, net, others)
        taken = np.array(path.acks_before) @ acks * net.ack_price + np.array(path.data_before) @ data * price
        rate = jnp.maximum(net.token_rate - taken, net.token_rate / 2)  # while the fixed point is sought
        tokens = Tokens(rate, net.prices, net.depth, net.places)
        turns = turns._replace(alone=turns.alone + given.wait[k] * net.min_rto)
        radio = radio_of(path, net, turns, stretch, given.refused[k])
        rto = given.rto[k] * net.min_rto
        timer = rto, jnp.maximum(net.max_rto, rto), net.backoff
        seen = rounds(structure, tokens, turns, radio.fates, radio.move, given.level[k] * price, given.before[k], timer)
        found.append(_found(seen, tokens, net, turns, others, net.load[k], rto))
    answer = Given(
        data=jnp.stack([one.duty * one.on_air for one in found]) / most,
        acks=jnp.stack([one.duty * one.received for one in found]) / most,
        wait=jnp.stack([_met(p.tokens_of_acks, [f.busy * f.backlog_s for f in found]) for p in paths]) / net.min_rto,
        refused=jnp.stack([_met(p.tokens_of_acks, [f.busy * f.full for f in found]) for p in paths]),
        rto=jnp.stack([_timeout(f, net) for f in found]) / net.min_rto,
        level=jnp.stack([one.rounds.level for one in found]) / price,
        before=jnp.stack([one.rounds.before for one in found]),
    )
    return answer, tuple(found)


def _met(flows: tuple[float, ...], values: list[Array]) -> Array:
    return jnp.asarray(np.array(flows)) @ jnp.stack(values)


def _timeout(found: Found, net: Network) -> Array:
    weights = found.rounds.law.samples / found.rounds.law.samples.sum()
    deviation = (weights * jnp.abs(found.rounds.own.trip - found.rtt_s)).sum()
    by_others = OF_EXPONENTIAL * found.others * found.turns.alone
    return expected_timeout(
        found.rtt_s, jnp.sqrt(deviation**2 + by_others**2), net.min_rto, net.max_rto
    )


def _found(
    seen: Rounds, tokens: Tokens, net: Network, turns: Turns, others: Array, load: Array, rto: Array
) -> Found:
    law = seen.law
    # segments by the level that they find: those of rounds, late ones, and those sent again after duplicates
    number = jnp.concatenate([law.sent.ravel(), law.late, law.again])
    level = jnp.concatenate([seen.own.level.ravel(), seen.late.level[:, 0], seen.again_level])
    part = tokens.taken(level) / tokens.price
    whole = number * (1.0 - tokens.refuses(level))
    wait = tokens.wait(level + tokens.price)
    own = jnp.minimum(wait, tokens.price / tokens.rate)  # for so long its own tokens are what all wait for
    no_place = tokens.wait(level + tokens.price + tokens.packet - tokens.top)
    lost_share = law.lost.sum() / law.sent.sum()
    sends = number.sum()
    duty = jnp.minimum(1.0, load / law.goodput)
    weights = law.samples / law.samples.sum()
    return Found(
        rounds=seen,
        duty=duty,
        busy=busy_share(duty, law.timeouts * rto),
        rtt_s=(weights * seen.own.trip).sum(),
        sends=sends,
        on_air=(number * part).sum(),
        received=sends * (1.0 - lost_share),
        backlog_s=(whole * own * (wait - own / 2)).sum(),
        full=(whole * jnp.minimum(no_place, own)).sum(),
        others=others,
        turns=turns,
    )


@partial(jax.jit, static_argnames=("paths", "window"))
def solve(paths: tuple[Path, ...], window: int, net: Network) -> tuple[Given, tuple[Found, ...], Array, Array]:
    """Return the fixed point, the classes there, its residual and the iterations."""
    structure = round_structure(window)
    kinds = len(paths)
    ones = jnp.ones(kinds)
    level = jnp.full((kinds, structure.states), -1.0) * net.depth / net.prices.sum()
    before = jnp.broadcast_to(jnp.maximum(jnp.asarray(structure.size, float) - 0.5, 1.0), level.shape)
    flows = np.array([path.flows for path in paths], float).sum()
    start = Given(0.1 * ones / flows, 0.1 * ones / flows, 0.0 * ones, 0.0 * ones, ones, level, before)

    def improve(given: Given) -> Given:
        given = given._replace(
            data=jnp.clip(given.data, 0.0, 1.0), acks=jnp.clip(given.acks, 0.0, 1.0),
            wait=jnp.maximum(given.wait, 0.0), refused=jnp.clip(given.refused, 0.0, 1.0),
            rto=jnp.maximum(given.rto, 1.0), before=jnp.maximum(given.before, 1.0),
        )  # fmt: skip
        return respond(paths, window, net, given)[0]

    given, residual, iterations = implicit_fixed_point(
        improve, start, tolerance=TOLERANCE, max_iterations=MOST_ITERATIONS
    )
    return given, respond(paths, window, net, given)[1], residual, iterations
