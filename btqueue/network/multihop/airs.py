"""Cycles of the piconets and turns of the bridges, at given rates; times in slots.

**Cycle.** Every member costs an empty frame a cycle, a bridge the probe that it may miss. What trains take
beyond that is the work w of the piconet, so that its cycle is C = (2 m + A) / (1 - w), with the absence A
of a central that is a bridge, in each cycle.

**Turn.** A bridge waits R to be polled and exchanges X in one piconet, then in the other: T is their sum.
Polls find it at an age that has nothing to do with their cycle: R is half a cycle, and what is under way. A
bridge that is a central stays for one cycle of its own piconet: then T is that cycle.

**Exchange.** What came in a turn is taken, up to M frames: the number left behind is the maximum of a random
walk, (Q + A - M)+ at each visit, of which the Wiener-Hopf factor is known from the coefficients of log(1 -
E z^(A - M)) on a circle (F. Pollaczek 1957; A. Janssen and J. van Leeuwaarden, Queueing Systems 50, 2005).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.network.piconet.lone import EMPTY_FRAME
from btqueue.network.piconet.trains import Sent
from btqueue.queueing.implicit import stationary_state

FULL = 0.97
"""Share of the time, or of the frames of a visit, that is used at most; beyond there is no answer."""
POINTS = 256
"""Of the transforms: packets of a law."""
TOLERANCE = 1e-9
MOST_ITERATIONS = 2000


class Network(NamedTuple):
    """A network at given rates; L links, J of them to bridges, A piconets, B bridges, H hops, F flows.

    All are padded to powers of two, with links, piconets and hops that carry nothing, so that few programs
    serve all networks.

    Attributes:
        members: (A,) of each piconet.
        air_of_link: (L, A) 1 at the piconet of each link.
        bridge_of_link: (L, B) 1 at its bridge.
        joined: (J,) links to bridges; L or more where there is none.
        limit, tie: (L,) see `routes.Links`.
        other_stay: (L, L) 1 at the link of the other piconet of its bridge.
        other_air: (L, A) 1 at that piconet, if the bridge is its central.
        own_air: (B, A) 1 at the piconet that the bridge is the central of.
        link, way, kind: (H,) of each hop: where it goes, and what train.
        rate: (H,) trains a slot; 0 at places without a hop.
        sent: transmissions of a segment and of an acknowledgement.
        filled: (H,) visits that a lone train fills.
    """

    members: Array
    air_of_link: Array
    bridge_of_link: Array
    joined: Array
    limit: Array
    tie: Array
    other_stay: Array
    other_air: Array
    own_air: Array
    link: Array
    way: Array
    kind: Array
    rate: Array
    sent: tuple[Sent, Sent]
    filled: Array

    def at_ports(self, values: Array) -> Array:
        """Return the sums of values a train over the trains of each port in a slot, (L, 2, ...)."""
        weighted = self.rate.reshape(-1, *(1,) * (values.ndim - 1)) * values
        ports = jnp.zeros((*self.limit.shape, 2, *values.shape[1:]))
        return ports.at[self.link, self.way].add(weighted)


class Turns(NamedTuple):
    """Cycles and turns.

    Attributes:
        cycle: (A,) from visit to visit.
        absence: (A,) of the central in a cycle.
        stay: (L,) slots from the arrival of a bridge until it leaves.
        wait: (L,) of these, until it is polled.
        turn: (L,) from exchange to exchange of its bridge.
        work: (L,) share of the slots beyond polls that found nothing.
        data: (L,) the same without the empty frames that end exchanges.
        burst, bursts: (L,) slots of the trains that a bridge exchanges, or serves, while it is away, and how
            many of them there are in a turn.
        turn_varies: (L,) variance of the turn.
        left: (L, 2) mean packets that a full visit leaves behind, by way.
        more: (L, 2) mean further visits for the last packet of a segment, since others are before it.
        use: (L, 2) frames that come in a turn, over the limit.
        squares: (A,) sum of rates times the squares of trains, a slot.
        by_link: (L,) the same of the trains of one link.
    """

    cycle: Array
    absence: Array
    stay: Array
    wait: Array
    turn: Array
    work: Array
    data: Array
    burst: Array
    bursts: Array
    turn_varies: Array
    left: Array
    more: Array
    use: Array
    squares: Array
    by_link: Array


class _Unknown(NamedTuple):
    """What is iterated: (A,) cycles, (L,) waits of bridges and slots of exchanges without the probe."""

    cycle: Array
    wait: Array
    exchange: Array


def turns(network: Network) -> tuple[Turns, Array]:
    """Return cycles and turns, and by how much one more iteration would change them."""
    start = _Unknown(
        EMPTY_FRAME * network.members,
        EMPTY_FRAME * network.air_of_link @ network.members / 2.0,
        jnp.full(network.limit.shape, EMPTY_FRAME),
    )
    found, _ = stationary_state(_again, network, start, TOLERANCE, MOST_ITERATIONS)
    seen, again = _step(found, network)
    change = jax.tree.map(
        lambda a, b: jnp.abs(a - b).max() / jnp.maximum(jnp.abs(b).max(), 1.0), again, found
    )
    return seen, jax.tree.reduce(jnp.maximum, change)


def _again(unknown: _Unknown, network: Network) -> _Unknown:
    """Return a step: more of one is more of all, so that from below they rise to the solution."""
    return _step(unknown, network)[1]


def _step(unknown: _Unknown, network: Network) -> tuple[Turns, _Unknown]:
    frames = jnp.stack([one.mean for one in network.sent])[network.kind]
    slots = jnp.stack([one.mean_slots + 1.0 for one in network.sent])[network.kind]
    bridged = network.bridge_of_link.sum(-1)
    at_ports = network.at_ports

    # turns
    stay = bridged * (unknown.wait + EMPTY_FRAME + unknown.exchange)
    absence = network.own_air.T @ (network.bridge_of_link.T @ stay)
    by_central = network.other_air @ (unknown.cycle - absence)
    away = jnp.where(network.other_air.sum(-1) > 0.0, by_central, network.other_stay @ stay)
    turn = bridged * (stay + away)

    # ordinary members: as in one piconet
    filled = network.filled
    works = frames * slots - EMPTY_FRAME * filled
    work_in = at_ports(works)
    frames_in, filled_in = at_ports(frames), at_ports(filled)
    cycle_of_link = network.air_of_link @ unknown.cycle
    present = -jnp.expm1(-at_ports(jnp.ones_like(frames)) * cycle_of_link[:, None] / 2.0)
    load = jnp.minimum(frames_in * cycle_of_link[:, None] / network.limit[:, None], 1.0)
    present = 1.0 - (1.0 - load) * (1.0 - present)
    fuller = jnp.where(frames_in[:, 1] > frames_in[:, 0], present[:, 1], present[:, 0])
    unfilled = 1.0 - _ratio(filled_in, frames_in).mean(axis=1)
    of_members = work_in.sum(axis=1) - EMPTY_FRAME * frames_in.min(axis=1) * fuller * unfilled

    # bridges: what came in a turn is taken at a visit
    exchange = _exchange(network, turn)
    of_bridges = (exchange.slots) / jnp.maximum(turn, 1.0)
    work = jnp.where(bridged > 0.0, of_bridges, of_members)

    use = jnp.minimum(network.air_of_link.T @ work, FULL)
    cycle = (EMPTY_FRAME * network.members + absence) / (1.0 - use)
    square = (frames * slots) ** 2 + jnp.stack(
        [one.variance * (one.mean_slots + 1.0) ** 2 for one in network.sent]
    )[network.kind]
    data = jnp.where(bridged > 0.0, exchange.data / jnp.maximum(turn, 1.0), of_members)
    of_trains = at_ports(square).sum(-1)
    by_link = of_trains + bridged * data**2 * turn  # an exchange is one visit

    def elsewhere(values: Array) -> Array:
        return network.other_air @ (network.air_of_link.T @ values) + network.other_stay @ values

    burst = _ratio(elsewhere(of_trains), elsewhere(data))
    bursts = _ratio(elsewhere(data), burst) * turn
    # a train takes its time in both stays
    turn_varies = 2.0 * (of_trains + elsewhere(of_trains)) * turn
    squares = network.air_of_link.T @ by_link
    others = network.air_of_link @ use - work
    idle = network.air_of_link @ (EMPTY_FRAME * network.members + absence) / 2.0 + network.tie
    under_way = (network.air_of_link @ squares - by_link) / 2.0
    wait = (idle + under_way) / (1.0 - jnp.minimum(others, FULL))
    seen = Turns(
        cycle=unknown.cycle,
        absence=absence,
        stay=stay,
        wait=unknown.wait,
        turn=turn,
        work=work,
        data=data,
        burst=burst,
        bursts=bursts,
        turn_varies=turn_varies,
        left=exchange.left,
        more=exchange.more,
        use=jnp.where(bridged[:, None] > 0.0, exchange.use, load),
        squares=squares,
        by_link=by_link,
    )
    return seen, _Unknown(cycle, bridged * wait, bridged * exchange.slots)


class _Exchange(NamedTuple):
    slots: Array
    data: Array
    left: Array
    more: Array
    use: Array


def _exchange(network: Network, turn: Array) -> _Exchange:
    """Return what an exchange is like: its slots but for the probe, with the empty frame that may end it."""
    number = jnp.arange(POINTS)
    angle = jnp.exp(-2j * jnp.pi * number / POINTS)
    everywhere = network.limit.shape[0]
    rate, limit = network.at_ports(jnp.eye(2)[network.kind])[network.joined], network.limit[network.joined]
    turn = turn[network.joined]
    # a turn takes no more than it can: beyond there is no law
    size = jnp.stack([one.mean for one in network.sent])
    frames = (rate @ size) * turn[:, None]
    limit = limit[:, None]
    use = frames / limit
    rate = rate * jnp.minimum(1.0, FULL / jnp.maximum(use, 1e-9))[..., None]
    laws = jnp.stack([_padded(one.law) for one in network.sent])  # (2, POINTS)
    # radius between 1 and that at which the walk would not come down: near the minimum of its transform
    slack = jnp.maximum(limit - jnp.minimum(frames, FULL * limit), 1e-3)
    spread = jnp.maximum(
        (rate @ jnp.stack([o.variance + o.mean**2 for o in network.sent])) * turn[:, None], 0.05
    )
    log_radius = jax.lax.stop_gradient(jnp.minimum(slack / spread, 0.25))
    radius = jnp.exp(log_radius)
    powers = radius[..., None] ** number  # (J, 2, P)
    of_trains = jnp.fft.fft(laws[None, None] * powers[:, :, None, :], axis=-1)  # E z^K on the circle
    arrivals = jnp.exp(turn[:, None, None] * jnp.einsum("lwk,lwkp->lwp", rate, of_trains - 1.0))
    walk = arrivals * (radius[..., None] * angle) ** (-limit[..., None])
    logs = jnp.fft.ifft(-jnp.log1p(-walk), axis=-1)  # coefficients of z^k, as angle = e^(-i)
    positive = (number >= 1) & (number < POINTS // 2)
    coefficients = jnp.where(positive, jnp.real(logs) / powers, 0.0)
    left = coefficients @ number
    unit = jnp.fft.fft(coefficients, axis=-1)
    behind = jnp.exp(unit - coefficients.sum(-1, keepdims=True))  # E z^Q on the unit circle
    of_trains = jnp.fft.fft(laws, axis=-1)
    comes = jnp.exp(turn[:, None, None] * jnp.einsum("lwk,kp->lwp", rate, of_trains - 1.0))
    found = jnp.real(jnp.fft.ifft(behind * comes, axis=-1))  # packets at a visit
    below = jnp.cumsum(found, axis=-1)
    taken_below = jnp.where(number < limit[..., None], below, 1.0)
    both = taken_below[:, 0] * taken_below[:, 1]
    longer = (1.0 - both).sum(-1)  # mean frames: the larger of two
    full = 1.0 - jnp.where(number == limit - 1.0, both, 0.0).sum(-1)
    # each packet takes its slots; a half frame without one takes a slot
    kept = (rate @ size) * turn[:, None]
    mean_slots = jnp.stack([one.mean_slots for one in network.sent])
    data_slots = ((rate * size) @ mean_slots * turn[:, None]).sum(-1)
    data = data_slots + 2.0 * longer - kept.sum(-1)
    slots = data + EMPTY_FRAME * (1.0 - full)
    # a segment that comes at any time finds what came since the last visit, and what that left
    half = jnp.exp(0.5 * turn[:, None, None] * jnp.einsum("lwk,kp->lwp", rate, of_trains - 1.0))
    last = jnp.real(jnp.fft.ifft(behind * half * of_trains[0], axis=-1))
    beyond = jnp.floor(jnp.maximum(number - 1.0, 0.0) / limit[..., None])
    alone = jnp.real(jnp.fft.ifft(jnp.broadcast_to(of_trains[0], behind.shape), axis=-1))
    more = ((last - alone) * beyond).sum(-1)
    found_there = _Exchange(slots, data, left, jnp.maximum(more, 0.0), use)
    # places without a link are out of range, and left out
    return jax.tree.map(
        lambda a: jnp.zeros((everywhere, *a.shape[1:])).at[network.joined].set(a), found_there
    )


def _padded(law: Array) -> Array:
    return jnp.zeros(POINTS).at[: min(law.size, POINTS)].set(law[:POINTS])


def _ratio(part: Array, whole: Array) -> Array:
    some = whole > 0.0
    return jnp.where(some, part, 0.0) / jnp.where(some, whole, 1.0)
