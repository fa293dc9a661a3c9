"""How long a segment and its acknowledgement take over several piconets; times in slots.

Each hop is frames, and waits before them: for the own visit, or for a bridge, or with the bridge for a poll.
All but the frames takes 1 / (1 - w) times as long as in an idle piconet, with the work w of all others in
that piconet: processor sharing, as in one piconet (`btqueue.network.piconet.air`).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from btqueue.network.multihop.airs import FULL, Network, Turns
from btqueue.network.multihop.routes import ACK, DATA
from btqueue.network.piconet.lone import EMPTY_FRAME
from btqueue.network.piconet.tails import TINY


class Steps(NamedTuple):
    """The hops of all flows, (F, 2, P): see `routes.Hops`; `there` is 1 where there is one."""

    there: Array
    link: Array
    way: Array
    idle: Array
    wraps: Array
    before: Array
    before_air: Array
    cycle: Array
    turn: Array
    arrives: Array
    leaves: Array
    meets: Array
    anytime: Array
    ends: Array
    first: Array


class Journey(NamedTuple):
    """Times of the flows, (F,).

    Attributes:
        there, back: of a segment to its receiver, and of its acknowledgement, without queues.
        behind, behind_back: waits behind others at the own port.
        load, load_back: of that port.
        at_bridge, at_bridge_back: longest wait for further visits of a bridge.
    """

    there: Array
    back: Array
    behind: Array
    behind_back: Array
    load: Array
    load_back: Array
    at_bridge: Array
    at_bridge_back: Array


def journey(network: Network, steps: Steps, seen: Turns, beside: Array) -> Journey:
    """Return the times of all flows."""
    sent, flows = network.sent, steps.there.shape[0]
    air_of = jnp.argmax(network.air_of_link, axis=-1)  # (L,)
    air, link = air_of[steps.link], steps.link
    is_bridge = network.bridge_of_link.sum(-1)[link]
    kinds = jnp.broadcast_to(jnp.arange(2)[None, :, None], link.shape)
    frames = jnp.stack([one.mean for one in sent])[kinds]
    slots = jnp.stack([one.mean_slots + 1.0 for one in sent])[kinds]
    varies = jnp.stack([one.variance for one in sent])[kinds] * slots**2
    rate = network.rate.reshape(link.shape)
    limit = network.limit[link]
    use = network.air_of_link.T @ seen.work  # (A,)

    # without the own ones, (F, A)
    number = jnp.arange(flows)[:, None, None]
    alone = (1.0 - beside)[:, None]
    own = jnp.zeros((flows, use.size)).at[number, air].add(rate * frames * slots) * alone
    square = rate * ((frames * slots) ** 2 + varies)
    own_squares = jnp.zeros((flows, use.size)).at[number, air].add(square) * alone

    def in_air(values: Array, airs: Array) -> Array:
        return values[number, airs]

    # what goes over the same link is before it in its queue, or goes in its frames
    own_here = jnp.zeros((flows, network.limit.size)).at[number, link].add(rate * frames * slots) * alone
    own_else = jnp.maximum(in_air(own, air) - own_here[number, link], 0.0)
    others = jnp.clip(use[air] - seen.work[link] - own_else, 0.0, FULL)
    here, absence = 1.0 / (1.0 - others), seen.absence[air]
    # while frames are sent trains come, but no bridge is polled
    in_data = network.air_of_link.T @ seen.data
    trains = jnp.clip(in_data[air] - seen.data[link] - own_else, 0.0, FULL)
    squares = jnp.maximum(seen.squares[air] - in_air(own_squares, air) - seen.by_link[link], 0.0)
    under_way = squares / 2.0 * here
    members = network.members[air]
    half = (EMPTY_FRAME * members + absence) / 2.0
    # waits of the bridge for a poll, and away
    poll = (half + network.tie[link] + squares / 2.0) * here
    gone = jnp.maximum(seen.turn[link] - seen.stay[link], TINY)
    turn = jnp.maximum(seen.turn[link], 1.0)

    law = jnp.stack([one.law for one in sent])  # (2, S)
    count = jnp.arange(law.shape[-1])
    visits = jnp.einsum("fkps,ks->fkp", jnp.ceil(count / limit[..., None]), law)
    full = jnp.einsum("fkps,ks->fkp", ((count > 0) & (count % limit[..., None] == 0)) * 1.0, law)
    visits = jnp.where(steps.there > 0.0, visits, 1.0)
    more = visits - 1.0
    again = jnp.where(is_bridge > 0.0, turn, (EMPTY_FRAME * (members - 1.0)) * here + absence)
    taken = frames * slots / visits  # in its last visit
    before = jnp.where(steps.first > 0.0, 0.0, _last(taken))
    closing = jnp.where(steps.first > 0.0, 0.0, EMPTY_FRAME * (1.0 - _last(full)))
    came_full = jnp.take_along_axis(
        full[:, 0], (steps.there[:, 0].sum(-1) - 1.0).astype(int)[:, None], axis=-1
    )[:, :, None]
    missed = EMPTY_FRAME * (1.0 - came_full)

    # a bridge that is polled has had time to come back
    time = before + closing + steps.idle * here
    burst, bursts = seen.burst[link], seen.bursts[link]
    none = jnp.exp(-bursts)
    some = jnp.maximum(1.0 - none, TINY)
    left = gone - bursts * burst - time  # of an absence without trains
    mean = bursts * burst / some  # of trains, if there are some
    square = bursts * (1.0 + bursts) * burst**2 / some
    even, uneven = jnp.maximum(left, 0.0), jnp.maximum(left + mean, 0.0)
    spread = jnp.where(uneven > 0.0, square - mean**2, 0.0)
    chance = (none * even + some * uneven) / turn
    absent = (none * even**2 + some * (uneven**2 + spread)) / (2.0 * turn) + chance * poll
    longer = 1.0 + seen.turn_varies[link] / turn**2  # a turn in which something comes
    anytime = turn * longer / 2.0 - EMPTY_FRAME
    # others in the exchange: before it in the turn that brings it, and while its own frames last
    way = steps.way.astype(int)
    missing = rate * alone[..., None]
    port_work = network.at_ports((frames * slots).reshape(-1))
    same = port_work[link, way] - missing * frames * slots
    other_own = jnp.zeros((flows, *port_work.shape)).at[number, link, way].add(missing * frames * slots)
    opposite = port_work[link, 1 - way] - other_own[number, link, 1 - way]
    arrives = steps.arrives > 0.0
    gathered = turn * longer
    grows = 1.0 / (1.0 - jnp.clip(seen.data[link], 0.0, FULL))  # what comes in an exchange is exchanged
    # what the bridge brings has made this turn longer, in both piconets
    squares_at = network.at_ports(((frames * slots) ** 2).reshape(-1))
    brought = 2.0 * _ratio(squares_at, port_work)[link, 1 - way]
    count_at = network.at_ports(frames.reshape(-1))
    trains_at = network.at_ports(jnp.ones(frames.size))
    frames_of = _ratio(count_at, trains_at)[link, 1 - way]
    # packets of the other way share frames
    shared = jnp.minimum(_ratio(frames, frames_of), 1.0) * EMPTY_FRAME / slots
    of_others = jnp.maximum(same, 0.0) * jnp.where(arrives, 0.5 * gathered, gathered + frames * slots * grows)
    of_opposite = (
        jnp.maximum(opposite, 0.0)
        * (1.0 - shared)
        * jnp.where(arrives, gathered + before * grows, gathered + brought + frames * slots * grows)
    )
    in_exchange = of_others + of_opposite
    # stations that are polled in between have work since their last visit
    polled = steps.idle / jnp.maximum(EMPTY_FRAME * (members - 1.0), EMPTY_FRAME)
    come = others * seen.cycle[air] + trains * before
    between = steps.idle + polled * come / (1.0 - others * polled)
    last_air = steps.before_air.astype(int)
    in_last = steps.before / jnp.maximum(EMPTY_FRAME * (network.members[last_air] - 1.0), EMPTY_FRAME)
    in_cycle = jnp.clip(use[last_air] - in_air(own, last_air), 0.0, FULL) * seen.cycle[last_air]
    in_frames = jnp.clip(in_data[last_air] - in_air(own, last_air), 0.0, FULL) * before
    remaining = steps.before + in_last * (in_cycle + in_frames)
    data_frames = taken[:, :1].max(-1, keepdims=True)
    wait = (
        between
        + (1.0 - steps.first) * closing
        + steps.wraps * absence
        + remaining
        + steps.cycle * (half * here + under_way)
        + steps.turn * ((EMPTY_FRAME * (members - 1.0) + missed + data_frames * trains) * here + absence)
        + steps.arrives * poll
        + steps.leaves * (gone + poll + missed)
        + steps.meets * jnp.where(steps.anytime > 0.0, anytime, absent)
        + is_bridge * (EMPTY_FRAME + in_exchange)
        + more * again
    )
    times = steps.there * (wait + frames * slots - steps.ends * (1.0 - steps.way))
    totals = times.sum(-1)
    answered_down = (steps.there * steps.ends * (1.0 - steps.way))[:, 0].sum(-1)

    # own port: a queue of trains
    polls = frames / limit * (EMPTY_FRAME * (members - 1.0) + absence)
    stretch = 1.0 / (1.0 - jnp.clip(use[air] - seen.work[link], 0.0, FULL))
    stretched = 1.0 + jnp.clip(in_data[air] - seen.data[link], 0.0, FULL) * stretch
    service = frames * slots * stretched + polls * stretch
    ports = network.at_ports(service.reshape(-1))[link, way] - missing * service
    residual = network.at_ports(service.reshape(-1) ** 2)[link, way] - missing * service**2
    load = jnp.clip(ports, 0.0, FULL)
    at_host = (1.0 - is_bridge) * steps.first * steps.there
    behind = (at_host * residual / (2.0 * (1.0 - load))).sum(-1)
    enters = is_bridge * (1.0 - steps.arrives * (steps.before_air == air)) * steps.there
    queued = (seen.more[link, way] * turn * enters).max(-1)
    loads = (at_host * load).sum(-1)
    return Journey(
        there=totals[:, DATA],
        back=totals[:, ACK] + answered_down,
        behind=behind[:, DATA],
        behind_back=behind[:, ACK],
        load=loads[:, DATA],
        load_back=loads[:, ACK],
        at_bridge=queued[:, DATA],
        at_bridge_back=queued[:, ACK],
    )


def _last(values: Array) -> Array:
    """Return the values of the hop before."""
    return jnp.concatenate([jnp.zeros_like(values[..., :1]), values[..., :-1]], axis=-1)


def _ratio(part: Array, whole: Array) -> Array:
    some = whole > 0.0
    return jnp.where(some, part, 0.0) / jnp.where(some, whole, 1.0)
