r"""A radio that fades under repetition on the link: what its two states do to round trips and timers.

The rates of a piconet need the mean error rate only, for every transmission is tried until it succeeds. Round
trips need more: in a bad state segments pile up that are gone only some time after it.

**Own port.** Its work is that of a queue whose server has two speeds (`queueing.single.two_speed_server`): a
segment a service time D_j in state j. Where all links of the piconet fade at once, all its ports pile up at
once, and are one such queue with the capacity of the slots in each state. A window bounds what piles up in
the network; the rest waits at its sender, and is in no round trip. What this wait is longer than that at the
mean error rate is added to the round trip.

**Own crossing.** The time Y_j of a lone segment in state j is work, too: from the state in which it begins it
takes on average c_j (1 - e^-k) longer than at the mean speed (k and c_j as there, with speeds 1 / Y_j).

**Others**, if each link fades by itself: a share phi_j of their segments is served in state j, which the same
queue knows, so that the trains that they send are a mixture of those of both states. The variance that comes
with the state shrinks where the state changes while a train is sent, by 2 (x - 1 + e^-x) / x^2 with the
number x of changes, which is the variance of an integral of a two-state process.

**Timers.** If no acknowledgement comes for a timeout, TCP sends nothing more: the share of segments that
would have come later in the bad state is not in the network. The number of timeouts is that of bad states
that last as long.

Sources: those of `two_speed_server`; the page of this model has the errors.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaincc

from btqueue.network.piconet.air import FULL, Passage, passage
from btqueue.network.piconet.coupling import Network, Seen
from btqueue.network.piconet.lone import lone_ways
from btqueue.network.piconet.saturation import saturated_slots
from btqueue.network.piconet.structure import FOLLOWED, Class
from btqueue.network.piconet.trains import Packets, Sent, beside_neighbours, failure_rates, transmissions
from btqueue.queueing.implicit import Evaluated, at_root, unevaluated
from btqueue.queueing.single.two_speed_server import TwoSpeedServer, two_speed_server

NEVER = 1.0 - 1e-9
"""Error rate of a radio that lets nothing through."""
SETTLED = 1e-9
"""Change by one more turn of how service follows the states that ends the search."""
MOST_TURNS = 60
EXPIRIES = 7
"""Expiries of one timer that are counted: the last one comes after 127 timeouts."""
ENDLESS = 1e9
"""Segments that stand for no window."""
LOADED = 0.999
"""Load of a port, at most."""


class Trains(NamedTuple):
    """Transmissions of a segment and of an acknowledgement in each state.

    Attributes:
        sent: in the good and in the bad state, the latter cut at `FOLLOWED`.
        beyond: by how much the bad one is farther from the good one than where it is cut (1 if it is not).
        mean: (2, 2) mean number, by state and kind, not cut.
    """

    sent: tuple[tuple[Sent, Sent], tuple[Sent, Sent]]
    beyond: Array
    mean: Array


class Faded(NamedTuple):
    """What a flow of a class sees of a radio that fades, and its timeouts a second."""

    seen: Seen
    timeouts: Array


def trains_of(network: Network) -> Trains:
    """Return the transmissions in each state."""
    structure, radio = network.structure, network.inputs.radio
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), structure.data, structure.ack)
    # (state, kind, K)
    errors = beside_neighbours(both, failure_rates(both, jnp.stack([radio.ber_good, radio.ber_bad])[:, None]))
    mean = (both.there / (1.0 - jnp.minimum(errors, NEVER))).sum(-1)
    size = structure.transmissions_in_state

    def followed(packets: Packets, error: Array) -> Sent:
        return transmissions(packets, error, jnp.asarray(jnp.inf), structure.limit, size)

    laws = jax.vmap(jax.vmap(followed), (None, 0))(both, jnp.minimum(errors, FOLLOWED))
    sent = _of_state(laws, 0), _of_state(laws, 1)
    good, bad = (sent[state][0].mean for state in range(2))
    return Trains(sent, jnp.maximum((mean[1, 0] - good) / jnp.maximum(bad - good, 1e-9), 1.0), mean)


def _of_state(laws: Sent, state: int) -> tuple[Sent, Sent]:
    data, ack = (jax.tree.map(lambda leaf, kind=kind: leaf[state, kind], laws) for kind in range(2))
    return data, ack


def faded(network: Network, offered: Array) -> Faded:
    """Return what the classes see, (C,), if (C,) flows offer so many segments a second."""
    asked = _Asked(network, trains_of(network), network.structure.class_of @ offered)
    if network.structure.fading == "piconet":
        return asked.among(network.sent)[0]
    found, change = at_root(_outcome, _search, asked)
    unsettled = jnp.maximum(found.seen.residual, jnp.abs(jnp.append(*change)).max())
    return found._replace(seen=found.seen._replace(residual=unsettled))


class _Asked(NamedTuple):
    """What is asked: a network, its trains, and (F,) segments a second that flows offer."""

    network: Network
    trains: Trains
    offered: Array

    def among(self, sent: tuple[Sent, Sent]) -> tuple[Faded, tuple[Array, Array]]:
        """Return what the classes see among such trains of others, and what `_one` tells of the states."""
        see = partial(_one, self.network, self.trains, sent, self.offered)
        return jax.vmap(see)(self.network.structure.classes)

    def turn(self, served: Array, kept: Array) -> tuple[Faded, tuple[Array, Array]]:
        """Return what the classes see, and the mean of the states over the segments, which they make."""
        seen, states = self.among(_mixed(self.trains, self.network.sent, served, kept))
        of_classes = self.network.structure.class_of.T @ self.offered
        weight = of_classes / of_classes.sum()
        return seen, (weight @ states[0], weight @ states[1])


def _outcome(state: tuple[Array, Array], asked: _Asked) -> tuple[Faded, tuple[Array, Array]]:
    seen, better = asked.turn(*state)
    return seen, (better[0] - state[0], better[1] - state[1])


def _search(asked: _Asked) -> Evaluated:
    # at first as if the state changed fast
    radio = asked.network.inputs.radio
    fast = jnp.stack([radio.good_s, radio.bad_s]) / asked.trains.mean[:, 0]
    begin = (fast / fast.sum(), jnp.zeros(()))

    def unfinished(state: tuple[Any, Evaluated, Array]) -> Array:
        _, (_, (_, change)), count = state
        return (count == 0) | ((jnp.abs(jnp.append(*change)).max() > SETTLED) & (count < MOST_TURNS))

    def turn(state: tuple[Any, Evaluated, Array]) -> tuple[Any, Evaluated, Array]:
        last, _, count = state
        found = _outcome(last, asked)
        return jax.tree.map(jnp.add, last, found[1]), (last, found), count + 1

    state = begin, unevaluated(_outcome, begin, asked), jnp.zeros((), int)
    return jax.lax.while_loop(unfinished, turn, state)[1]


def _mixed(trains: Trains, fast: tuple[Sent, Sent], served: Array, kept: Array) -> tuple[Sent, Sent]:
    """Return the trains of others, of which shares are served in each state.

    Args:
        trains: in each state.
        fast: trains if the state changes fast.
        served: (2,) share of the segments that is served in each state.
        kept: share of the variance between the states that remains in the mean over a segment's service.
    """
    found = []
    for kind, fast_sent in enumerate(fast):
        good, bad = (trains.sent[state][kind] for state in range(2))
        slow = jax.tree.map(lambda g, b: served[0] * g + served[1] * (g + trains.beyond * (b - g)), good, bad)
        mean = served @ trains.mean[:, kind]

        def between(at_once: Array, by_state: Array) -> Array:
            return at_once + kept * (by_state - at_once)

        def for_each(name: str, slow: Sent = slow, fast_sent: Sent = fast_sent, mean: Array = mean) -> Array:
            """What grows with the number of transmissions, of which datagrams' answers have none."""
            at_once, by_state = (
                getattr(sent, name) / jnp.where(sent.mean > 0.0, sent.mean, 1.0) for sent in (fast_sent, slow)
            )
            return mean * between(at_once, by_state)

        spread = kept * jnp.maximum(slow.squares - fast_sent.squares, 0.0)
        found.append(
            fast_sent._replace(
                mean=mean,
                variance=fast_sent.variance + fast_sent.mean**2 + spread - mean**2,
                squares=fast_sent.squares + spread,
                visits=for_each("visits"),
                full_visits=for_each("full_visits"),
                fills_last=between(
                    fast_sent.fills_last, served @ jnp.stack([good.fills_last, bad.fills_last])
                ),
            )
        )
    return found[0], found[1]


def shrinkage(changes: Array) -> Array:
    """Return the variance of a two-state process averaged over some changes, as a share of its own."""
    x = jnp.minimum(changes, 1e9)
    small = x < 1e-3
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1.0 - x / 3.0, 2.0 * (safe - 1.0 + jnp.exp(-safe)) / safe**2)


def _one(
    network: Network, trains: Trains, among: tuple[Sent, Sent], offered: Array, one: Class
) -> tuple[Faded, tuple[Array, Array]]:
    """Return what a flow of a class sees, its segments' shares by state of service, and the variance kept.

    Args:
        network: that fades.
        trains: transmissions in each state.
        among: of others, if links fade on their own.
        offered: (F,) segments a second.
        one: the class.
    """
    structure, inputs = network.structure, network.inputs
    radio, slot_s = inputs.radio, structure.slot_s
    moves = jnp.stack([1.0 / radio.good_s, 1.0 / radio.bad_s])
    together = structure.fading == "piconet"
    window = network.of(inputs.window, one) if structure.answered else jnp.full((), jnp.inf)
    own = (network.sent, *trains.sent)

    def seen(sent: tuple[Sent, Sent], others: tuple[Sent, Sent]) -> tuple[Passage, Array]:
        ack = sent[1] if structure.answered else None
        ways = lone_ways(one.route, sent[0], ack, structure.idle, structure.limit)
        return passage(network.question(offered, one, ways, window)._replace(sent=others))

    others = own if together else (among,) * 3
    size = max(sent[0].law.size for sent in own)
    passages, cycles = jax.vmap(seen)(
        *(jax.tree.map(_stacked, *(_of_size(one, size) for one in sent)) for sent in (own, others))
    )
    mean = jax.tree.map(lambda leaf: leaf[0], passages)
    if not together:
        mean = _at_mean_rate(mean, network.sent[0], among[0])
    crossing_s = (passages.delay + passages.answer)[1:] * slot_s
    crossing_s = crossing_s.at[1].set(crossing_s[0] + trains.beyond * (crossing_s[1] - crossing_s[0]))
    # seconds that each segment adds to the backlog, segments a second that come, segments that windows allow
    if together:
        flows, arrivals = structure.class_of.sum(), offered.sum()
        each_s = _backlog_s(network, trains, offered)
        spacing_s, allowed = flows * each_s[1], flows * window
    else:
        arrivals = mean.load / mean.service / slot_s
        each_s = mean.service * slot_s * trains.mean[:, 0] / network.sent[0].mean
        spacing_s, allowed = each_s[1], window / mean.share
    allowed = jnp.minimum(allowed, ENDLESS)
    size = (1.0 + network.sent[0].variance / network.sent[0].mean ** 2) / 2.0
    queue = two_speed_server(arrivals, 1.0 / jnp.maximum(each_s, crossing_s / allowed), moves, size)
    waits, before = queue.waits(allowed - 1.0), _waits_at_mean_speed(queue, arrivals, size, allowed - 1.0)
    # the way of the segment itself
    alone = queue._replace(speeds=1.0 / crossing_s, mean_speed=queue.share @ (1.0 / crossing_s))
    bad = queue.bad_at_service()
    longer = jnp.stack([1.0 - bad, bad]) @ alone.excess() * -jnp.expm1(-alone.forgetting)
    rate = one.member @ offered
    silent, expiries = _timer(network, spacing_s, moves[1], rate, crossing_s[0], window)
    missing = silent * (jnp.maximum(waits[1] - queue.share[1] * before, 0.0) + longer)
    found = network.put_together(offered, one, mean, cycles[0], waits.sum() - before, longer - missing)
    # what no window lets in waits at its sender: the message is delayed, no round trip is longer
    outside = queue.waits(ENDLESS).sum() - _waits_at_mean_speed(queue, arrivals, size, jnp.asarray(ENDLESS))
    delay_s = network.put_together(offered, one, mean, cycles[0], outside, longer).delay_s
    return Faded(found._replace(delay_s=delay_s), expiries), (queue.served(), shrinkage(queue.forgetting))


def _stacked(*leaves: Array) -> Array:
    return jnp.stack(leaves)


def _of_size(sent: tuple[Sent, Sent], size: int) -> tuple[Sent, Sent]:
    """Return trains whose laws of transmissions are padded to a size."""
    data, ack = (one._replace(law=jnp.pad(one.law, (0, size - one.law.size))) for one in sent)
    return data, ack


def _at_mean_rate(seen: Passage, own: Sent, among: Sent) -> Passage:
    """Return what a flow sees whose own transmissions are those at the mean error rate, not of others."""
    ratio = own.mean / among.mean
    load = jnp.minimum(seen.load * ratio, FULL)
    squares = ratio**2 * (1.0 + own.variance / own.mean**2) / (1.0 + among.variance / among.mean**2)
    message = seen.fixed * seen.service  # ahead in it
    wait = (seen.wait - message) * squares * (1.0 - seen.load) / (1.0 - load) + message * ratio
    return seen._replace(service=seen.service * ratio, load=load, wait=wait)


def _backlog_s(network: Network, trains: Trains, offered: Array) -> Array:
    """(2,) seconds of a segment in each state where all ports are backlogged and flows send in proportion."""
    direction = offered / offered.sum()

    acks = network.answers(offered).share

    def capacity(sent: tuple[Sent, Sent], mean: Array) -> Array:
        data, ack = (one._replace(mean=mean[kind]) for kind, one in enumerate(sent))
        none = jnp.zeros_like(direction)
        return saturated_slots(network.structure, (data, ack), direction, none, acks, none).capacity

    by_state = jax.tree.map(_stacked, *trains.sent)
    return 1.0 / jax.vmap(capacity)(by_state, trains.mean)


def _waits_at_mean_speed(queue: TwoSpeedServer, arrivals: Array, size: Array, most: Array) -> Array:
    """Return the mean wait if the state changes fast: that of an M/G/1 queue, of which `most` are seen."""
    load = jnp.minimum(arrivals / queue.mean_speed, LOADED)
    rate = (1.0 - load) / size
    return load / rate * -jnp.expm1(-rate * most) / queue.mean_speed


def _timer(
    network: Network, spacing_s: Array, leaves: Array, rate: Array, crossing_s: Array, window: Array
) -> tuple[Array, Array]:
    """Return the share of the segments that a silent sender keeps in a bad state, and its timeouts a second.

    Between acknowledgements in a bad state are as many exponential times as a segment has packets. Of what
    windows allow not more comes in the time of the timer.

    Args:
        network: that fades.
        spacing_s: mean time between two acknowledgements in the bad state.
        leaves: rate at which the bad state ends.
        rate: segments a second of the flow.
        crossing_s: time of a lone segment in the good state.
        window: of the flow (segments).
    """
    structure, inputs = network.structure, network.inputs
    if not structure.answered:
        return jnp.zeros(()), jnp.zeros(())
    rto, packets = jnp.maximum(inputs.min_rto_s, crossing_s), structure.data.count
    none_yet = gammaincc(packets, packets * rto / spacing_s)
    age = gammaincc(packets + 1.0, packets * rto / spacing_s) - rto / spacing_s * none_yet
    lasts = jnp.exp(-leaves * rto)
    silent = lasts * jnp.maximum(age, 0.0) * gammaincc(window, rate * rto)
    radio = network.inputs.radio
    busy = jnp.minimum(rate * crossing_s, 1.0)
    busy = busy + (1.0 - busy) * rate / (rate + leaves)  # or a segment comes before the state is over
    again = jnp.exp(-leaves * rto * (2.0 ** jnp.arange(1, EXPIRIES + 1) - 2.0)).sum()
    late = jnp.exp(-leaves * jnp.maximum(rto - crossing_s, 0.0))
    return silent, busy * late * none_yet * again / (radio.good_s + radio.bad_s)
