"""The token bucket of a port: missing tokens and waiting packets as an M^X/D/1/K queue.

The chain of `btqueue.queueing.single.finite_queue`, for depths and buffers that are arrays. Embedded are the
ends of token times. Below its limit the chain of a finite queue is that of an infinite one, whose law follows
level by level from a sum of positive terms: the flow up through a level is the flow down. So one pass over K
levels serves every depth and buffer.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammainc

from btqueue.network.piconet.tails import Tail
from btqueue.network.piconet.trains import Packets

DOUBLINGS = 10
"""Of the cycles after which a queue that was full has forgotten that."""
TURNS = 16
"""Of the mean visit of polled queues: each halves its error, or better."""
MOST_LOAD = 1.2
"""Load of a queue at most: more is no answer, and its levels would overflow the numbers."""


NEARLY_ALL = 0.999
"""Share of the tokens that is spent at most: beyond, the missing ones have no law."""
STEPS = 8
"""Steps of each of the two iterations, which converge at second order."""


class Missing(NamedTuple):
    """Tokens that are missing in a bucket, in seconds: P(V > t) = share exp(-decay t) for large t."""

    share: Array
    decay: Array

    def beyond(self, depth_s: Array, room_s: Array) -> Tail:
        """Return the wait of those who come when the bucket is emptier than a depth."""
        share = jnp.minimum(self.share * jnp.exp(-self.decay * jnp.maximum(depth_s, 0.0)), 1.0)
        return Tail(share, 1.0 / self.decay, room_s)


def missing(rates: Array, prices: Array) -> Missing:
    """Return the tokens that are missing: the workload of an M/G/1 queue, as it decays.

    Cramer and Lundberg's law (W. Feller, An Introduction to Probability Theory II, 1971, section XII.5). The
    mean beyond a depth of one price is up to 9 % too large, beyond two within 1 %.

    Args:
        rates: (2,) trains a second.
        prices: (2,) seconds in which their tokens gather.
    """
    used = rates @ prices
    some = used > 0.0
    kept = rates * jnp.minimum(1.0, NEARLY_ALL / jnp.where(some, used, 1.0))
    rates = jnp.where(some, kept, 0.25 / prices.sum())
    free = 1.0 - rates @ prices
    largest = jnp.argmax(jnp.where(rates > 0.0, prices, 0.0))

    def improve(decay: Array, rates: Array, prices: Array) -> Array:  # Newton's method falls to the root
        grown = jnp.exp(decay * prices)
        return decay - (rates @ (grown - 1.0) - decay) / (rates @ (prices * grown) - 1.0)

    def search(rates: Array, prices: Array) -> Array:
        above = 2.0 * free / (rates @ prices**2)
        for _ in range(STEPS):  # no lower than the root for the largest price alone, which is larger
            above = jnp.minimum(above, jnp.log1p(above / rates[largest]) / prices[largest])
        return jax.lax.fori_loop(0, STEPS, lambda _, last: improve(last, rates, prices), above)

    decay = jax.lax.stop_gradient(search(*jax.lax.stop_gradient((rates, prices))))
    decay = improve(decay, rates, prices)  # with its derivatives
    share = free / (rates @ (prices * jnp.exp(decay * prices)) - 1.0)
    return Missing(jnp.where(some, share, 0.0), decay)


class Bucket(NamedTuple):
    """What a token bucket does to the trains of its port.

    Attributes:
        train_loss: share of the trains of which a packet finds no room.
        packets: mean number of packets that wait.
    """

    train_loss: Array
    packets: Array


class Control(NamedTuple):
    """Token rate (bytes/s), depth (bytes), buffer (packets) of every bucket."""

    rate: Array
    depth: Array
    buffer: Array


def bucket(
    control: Control, data: Packets, ack: Packets, data_rate: Array, ack_rate: Array, size: int
) -> Bucket:
    """Solve the bucket of a port.

    Packets have their mean price. For a depth between two whole packets losses are interpolated geometrically
    and what waits linearly.

    Args:
        control: the bucket.
        data: packets of a segment.
        ack: packets of an acknowledgement.
        data_rate: segments a second that come to the port from a host.
        ack_rate: acknowledgements a second that do.
        size: K, levels that are followed.
    """
    rate = data_rate + ack_rate
    used = rate > 0.0
    rate = jnp.where(used, rate, 1.0)
    of_data, of_ack = data_rate / rate, jnp.where(used, ack_rate / rate, 1.0)
    packets = of_data * data.count + of_ack * ack.count
    price = (of_data * data.tokens + of_ack * ack.tokens) / packets
    number = jnp.arange(data.there.size + 1)
    sizes = of_data * (number == data.count) + of_ack * (number == ack.count)
    token_time = price / control.rate
    law = levels(jnp.minimum(rate, MOST_LOAD / (packets * token_time)), sizes, token_time, size)
    depth = control.depth / price
    whole = jnp.floor(depth)
    room = jnp.floor(control.buffer)

    def geometric(values: Array, share: Array) -> Array:
        """(..., 2) -> (...,) between values; 0 if one is."""
        positive = (values > 0.0).all(axis=-1)
        values = jnp.where(positive[..., None], values, 1.0)
        return jnp.where(positive, values[..., 0] ** (1.0 - share) * values[..., 1] ** share, 0.0)

    def linear(values: Array, share: Array) -> Array:
        return (1.0 - share) * values[..., 0] + share * values[..., 1]

    both = jnp.arange(2.0)
    by_room = jax.vmap(jax.vmap(queue, (None, None, 0)), (None, 0, None))  # (depth, room)
    found = by_room(law, whole + both, room + both)
    lost, waiting = (
        between(between(values, control.buffer - room), depth - whole)
        for between, values in ((geometric, found.train_loss), (linear, found.packets))
    )
    return Bucket(jnp.where(used, lost, 0.0), jnp.where(used, waiting, 0.0))


def queue_loss(rate: Array, law: Array, service_s: Array, places: Array, size: int) -> Array:
    """Return the share of trains of which a queue refuses a packet.

    Every transmission is a packet of its own, and the one under way has a place: the queue of a port is a
    bucket for one packet whose tokens come in the time from frame to frame.

    Args:
        rate: trains a second, Poisson.
        law: of their transmissions, on 0, 1, ...
        service_s: time from frame to frame of the port while its queue is busy (s).
        places: packets that it holds.
        size: K, levels that are followed.
    """
    used = rate > 0.0
    mean = law @ jnp.arange(law.size)
    kept = jnp.minimum(jnp.where(used, rate, 1.0), MOST_LOAD / (mean * service_s))
    followed = levels(kept, law, service_s, size)
    rooms = jnp.floor(places) - 1.0 + jnp.arange(2.0)
    low, high = jax.vmap(queue, (None, None, 0))(followed, jnp.ones(()), rooms).train_loss
    return jnp.where(used, low + (places - jnp.floor(places)) * (high - low), 0.0)


class Polled(NamedTuple):
    """A queue that is polled as others like it are; times in slots.

    Attributes:
        rate: batches a slot, Poisson.
        law: of their packets, on 0, 1, ...
        frame: of a packet.
        empty: frame that ends a visit before its limit.
        limit: most packets of a visit.
        places: packets that it holds.
        away: from the end of a visit to the next, but for visits to queues like this one.
        alike: number of those.
    """

    rate: Array
    law: Array
    frame: Array
    empty: Array
    limit: Array
    places: Array
    away: Array
    alike: Array


def polled_loss(queue: Polled, *, size: int, frames: int) -> Array:
    """Return the share of batches of which a polled queue refuses a packet; the first ones get in.

    Embedded are the starts of frames. The time away is taken as constant: its mean, which the visits to the
    other queues make.

    Args:
        queue: that is polled.
        size: places that are followed.
        frames: of a visit that are followed.
    """
    number = jnp.arange(size + 1)
    most = jnp.minimum(queue.places, size)
    after = jnp.minimum(number[:, None] + jnp.arange(queue.law.size), most.astype(int))
    comes = jax.vmap(lambda to: jnp.zeros(size + 1).at[to].add(queue.law))(after)
    _, after_batches = jax.lax.scan(
        lambda now, _: (now @ comes, now), jnp.eye(size + 1), None, length=size + 2
    )
    batches = jnp.arange(size + 2.0)  # after so many every queue is full

    def lasting(slots: Array) -> Array:
        """Return what becomes of each content in such a time, and how long there is how much."""
        more = gammainc(batches + 1.0, queue.rate * slots)  # than so many batches
        exactly = -jnp.diff(more, prepend=1.0).at[-1].add(-more[-1])
        time = (more / queue.rate).at[-1].set(slots - more[:-1].sum() / queue.rate)
        return jnp.einsum("bij,tb->itj", after_batches, jnp.stack([exactly, time]))

    frame, empty = lasting(queue.frame), lasting(queue.empty)
    served = jnp.eye(size + 1)[jnp.maximum(number - 1, 0)]
    busy = (number > 0)[:, None, None]

    def play(state: tuple[Array, Array, Array], k: Array) -> tuple[tuple[Array, Array, Array], None]:
        here, left, spent = state  # (from, to)
        on = k < queue.limit
        sent, ended = (
            jnp.einsum("ij,jtk->tik", here, frame * busy),
            jnp.einsum("ij,jtk->tik", here, empty * ~busy),
        )
        spent = spent + jnp.where(on, sent[1] + ended[1], 0.0)
        return (jnp.where(on, sent[0] @ served, here), left + jnp.where(on, ended[0], 0.0), spent), None

    begin = (jnp.eye(size + 1), jnp.zeros_like(comes), jnp.zeros_like(comes))
    (here, left, spent), _ = jax.lax.scan(play, begin, jnp.arange(frames))
    visit = here + left

    def law_at(mean_visit: Array) -> tuple[Array, Array]:
        """Return contents at the starts of visits, and the shares of time with each."""
        gone = lasting(queue.away + queue.alike * mean_visit)
        cycles = jax.lax.fori_loop(0, DOUBLINGS, lambda _, step: step @ step, visit @ gone[:, 0])
        start = cycles[-1] / cycles[-1].sum()  # a kept program can hold no call of LAPACK
        time = start @ (spent + visit @ gone[:, 1])
        return start, time / time.sum()

    def again(mean_visit: Array, _: None) -> tuple[Array, None]:
        return 0.5 * (mean_visit + (law_at(mean_visit)[0] @ spent).sum()), None

    mean_visit, _ = jax.lax.scan(again, queue.frame * queue.limit, None, length=TURNS)
    _, time = law_at(mean_visit)
    refused = number[:, None] + jnp.arange(queue.law.size) > most
    return time @ refused @ queue.law


class Levels(NamedTuple):
    """The queue without limit, by level 0 to K - 1; not normalised.

    Attributes:
        rate, token_time: of the batches, and of a token.
        departures: sums of the law at the ends of token times.
        passed: batches that find room in so many places, times that time.
        below: sums of the sums of the time at each level, a batch or a token time.
    """

    rate: Array
    token_time: Array
    departures: Array
    passed: Array
    below: Array


def levels(rate: Array, sizes: Array, token_time: Array, size: int) -> Levels:
    """Follow the levels of a queue of Poisson batches, served one packet a token time."""
    mean = rate * token_time
    number = jnp.arange(sizes.size)
    none = jnp.exp(-mean)
    larger = 1.0 - jnp.cumsum(sizes)  # batches of more than k packets

    def panjer(last: Array, k: Array) -> tuple[Array, Array]:  # H. Panjer, ASTIN Bulletin 12, 1981
        new = mean / k * (last @ (number * sizes)[1:])
        return _shifted(last, new), new

    begin = jnp.zeros(sizes.size - 1).at[0].set(none)
    _, more = jax.lax.scan(panjer, begin, jnp.arange(1.0, size))
    arrive = jnp.concatenate([none[None], more])  # packets in a token time: (K,)
    beyond = 1.0 - jnp.cumsum(arrive)  # more than k come
    # the first batch after an idle time leaves more than m behind
    first = 1.0 - jnp.cumsum(_window(arrive, sizes))[1:]

    def next_level(
        state: tuple[Array, Array], at_first: Array
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Level m + 1: as often as the queue comes down from there, it goes up to there.

        pi_(m+1) a_0 = pi_0 P(a first batch leaves more) + sum of pi_j P(more than m + 1 - j come), j = 1..m
        """
        seen, last = state
        new = (seen[:-1] @ beyond[1:] + at_first) / none
        spent = new / rate - last @ larger[1:]
        return (_shifted(seen, new), _shifted(last, spent)), (new, spent)

    # the time at a level, and the batches that come from below and pass it, are as often as the ends above it
    start = (jnp.zeros(size), jnp.zeros(sizes.size - 1).at[0].set(1.0 / rate))
    _, (after, spent) = jax.lax.scan(next_level, start, first)
    occupancy = jnp.concatenate([1.0 / rate[None], spent])
    below = jnp.cumsum(occupancy)
    return Levels(
        rate=rate,
        token_time=token_time,
        departures=jnp.cumsum(jnp.concatenate([jnp.ones(1), after])),
        passed=below - _window(occupancy, larger),
        below=jnp.cumsum(below),
    )


def queue(law: Levels, depth: Array, buffer: Array) -> Bucket:
    """Cut the levels off at a capacity, of which the first packets of a batch that do not all fit get in."""
    most = law.departures.size - 1
    capacity = jnp.clip(depth + buffer, 1, most).astype(int)
    depth = jnp.minimum(depth, capacity).astype(int)

    def up_to(sums: Array, level: Array) -> Array:
        return jnp.where(level >= 0, sums[jnp.maximum(level, 0)], 0.0)

    total = law.departures[capacity - 1] * law.token_time + 1.0 / law.rate
    waiting = (capacity - depth) - (up_to(law.below, capacity - 1) - up_to(law.below, depth - 1)) / total
    return Bucket(
        train_loss=jnp.maximum(1.0 - law.passed[capacity] / total, 0.0), packets=jnp.maximum(waiting, 0.0)
    )


def _shifted(last: Array, new: Array) -> Array:
    return jnp.concatenate([new[None], last[:-1]])


def _window(values: Array, weights: Array) -> Array:
    """Return sums of the last values, weighted by how far back they are: a convolution with a short law."""
    padded = jnp.concatenate([jnp.zeros(weights.size - 1), values])
    shifted = [padded[weights.size - 1 - k :][: values.size] for k in range(weights.size)]
    return weights @ jnp.stack(shifted)
