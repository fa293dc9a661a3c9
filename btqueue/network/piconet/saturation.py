"""What a class of flows can carry at most, and what its windows make of that.

Saturated stations use all M frames of their visits. The others have an empty frame in every cycle, and the
slots that their traffic takes. So the cycle, and what a saturated flow sends in it, follow in closed form. A
window that is bounded by a full buffer goes up and down between half of what fits and all of it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.network.piconet.lone import EMPTY_FRAME
from btqueue.network.piconet.structure import Class, Inputs, Structure
from btqueue.network.piconet.trains import Sent

LEAST_LEFT = 1e-3
"""Share of the slots, or of the tokens, that the others leave at least."""
ALIKE = 1e-9
"""Relative difference of the frames of two stations that are equally busy."""
HALVINGS = 50
"""Bisections: 2 to the power of -50 is below the rounding of a number near 1."""


class Window(NamedTuple):
    """How many segments a flow has under way when nothing else limits it.

    Attributes:
        mean: on average.
        loss: share of the segments that a full buffer damages; 0 if the window fits into it.
    """

    mean: Array
    loss: Array


def window(receive_window: Array, room: Array) -> Window:
    """Return the window of a greedy flow with room for so many segments.

    Between two losses it grows by one a round trip, from half to all of what fits (M. Mathis et al., 1997);
    one segment more is lost, and a window of segments passes while that is found and repaired.
    """
    fits = receive_window <= room
    room = jnp.maximum(jnp.where(fits, receive_window, room), 1.0)
    largest = room + 1.0
    mean, loss = jnp.maximum(0.75 * room, 1.0), 1.0 / (0.375 * largest**2 + largest)
    return Window(jnp.where(fits, receive_window, mean), jnp.where(fits, 0.0, loss))


def vegas_window(base_s: Array, service_s: Array, alpha: Array, beta: Array, gamma: Array) -> Array:
    """Return the window that TCP Vegas holds where it alone decides (L. Brakmo and L. Peterson, 1995).

    In a full pipe a window w has w - base / service segments waiting. Slow start doubles it until more than
    gamma wait; then alpha to beta of them are let be.

    Args:
        base_s: round trip without queueing.
        service_s: time from segment to segment of the flow.
        alpha: least segments that wait.
        beta: most.
        gamma: most in slow start.
    """
    pipe = base_s / service_s
    doubled = jnp.exp2(jnp.maximum(jnp.floor(jnp.log2(pipe + gamma) + ALIKE) + 1.0, 0.0))
    return jnp.clip(doubled, pipe + alpha, pipe + beta)


class Slots(NamedTuple):
    """A piconet with some saturated flows.

    Attributes:
        capacity: segments a second of a flow with share 1.
        cycle_s: mean polling cycle (s).
    """

    capacity: Array
    cycle_s: Array


class _Use(NamedTuple):
    """(N, 2) frames, slots, and visits that lone trains fill, in a slot."""

    frames: Array
    slots: Array
    filled: Array


def saturated_slots(
    structure: Structure, sent: tuple[Sent, Sent], shares: Array, others: Array, acks: Array, turns: Array
) -> Slots:
    """Return what the slots carry of a flow with share 1 when all flows that have a share are saturated.

    The fullest station uses all M frames of its visits; packets of its two ports share frames. The other
    stations have an empty frame in every cycle in which the limit does not end their visit, as their trains
    do that come one by one.

    A flow whose window is answered as a whole sends nothing until it hears of that. Then no packets share
    frames, and each exchange ends with an empty one.

    Args:
        structure: the piconet.
        sent: transmissions of a segment and of an acknowledgement.
        shares: (F,) of what a saturated port sends; 0 for flows that are not saturated.
        others: (F,) segments a second of those.
        acks: (F,) acknowledgements a segment.
        turns: (F,) exchanges a segment of flows that wait for the answer to a whole window; 0 for others.
    """
    frames = jnp.stack([one.mean for one in sent])
    slots = frames * jnp.stack([one.mean_slots for one in sent])
    filled = jnp.stack([one.full_visits for one in sent])
    there = jnp.arange(structure.at_port.shape[-1] // 2) < structure.stations

    def used(rates: Array) -> _Use:
        of_kind = rates[:, None] * structure.slot_s * jnp.stack([jnp.ones_like(acks), acks], axis=1)
        by_kind = jnp.einsum("fk,fkp->pk", of_kind, structure.kind_at_port).reshape(-1, 2, 2)
        return _Use(by_kind @ frames, by_kind @ slots, by_kind @ filled)

    of_saturated, of_others = used(shares), used(others)
    at_station = structure.at_port[:, 0].reshape(shares.size, -1, 2).sum(-1)
    turned = (shares * turns * structure.slot_s) @ at_station  # (N,)

    def excess(rate: Array, saturated: _Use, rest: _Use) -> tuple[Array, Array]:
        """Return the slots wanted in a slot, less one, and the cycle in slots."""
        both = _Use(*(rate * one + other for one, other in zip(saturated, rest, strict=True)))
        station = both.frames.max(axis=1)
        apart = jnp.abs(both.frames[:, 0] - both.frames[:, 1])
        waits = turned > 0.0
        apart = jnp.where(waits, both.frames.sum(axis=1) + EMPTY_FRAME * rate * turned, apart)
        taken = both.slots.sum(axis=1) + apart
        cycle = structure.limit / station.max()
        light = there & ~waits & (station < station.max() * (1.0 - ALIKE))
        ended = jnp.maximum(1.0 / cycle - rest.filled.max(axis=1), 0.0)  # visits that nothing fills
        return taken.sum() + EMPTY_FRAME * (light * ended).sum() - 1.0, cycle

    least = LEAST_LEFT / of_saturated.slots.sum()
    fixed = jax.lax.stop_gradient((of_saturated, of_others))

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        above = excess(middle, *fixed)[0] >= 0.0
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    bracket = jax.lax.stop_gradient((least, least * (1.0 + ALIKE) / LEAST_LEFT))
    low, high = jax.lax.fori_loop(0, HALVINGS, halve, bracket)
    rate = 0.5 * (low + high)
    # between two kinks the slots are linear in the rate: one step of Newton's method has the derivatives
    _, slope = jax.jvp(lambda tried: excess(tried, *fixed)[0], (rate,), (jnp.ones_like(rate),))
    rate = rate - excess(rate, of_saturated, of_others)[0] / slope
    nothing_left = excess(least, *fixed)[0] >= 0.0
    rate = jnp.where(nothing_left, least, rate)
    return Slots(rate, excess(rate, of_saturated, of_others)[1] * structure.slot_s)


def token_capacity(structure: Structure, inputs: Inputs, one: Class, others: Array, acks: Array) -> Array:
    """Return the segments a second of each flow of a class that the tokens of its port pay for.

    Args:
        structure: the piconet.
        inputs: its numbers.
        one: the class.
        others: (F,) segments a second of the others.
        acks: (F,) acknowledgements a segment.
    """
    if not structure.tokens:
        return jnp.full((), jnp.inf)
    data, ack = structure.at_port[:, 0] @ one.ports[0], structure.at_port[:, 2] @ one.ports[0]
    price = data * structure.data.tokens + ack * acks * structure.ack.tokens
    left = jnp.maximum(inputs.token_rate - price @ others, LEAST_LEFT * inputs.token_rate)
    return left / (price @ one.flows)


def closed_rate(population: Array, bottleneck_s: Array, elsewhere_s: Array, most: int) -> Array:
    """Return the throughput of so many customers, one station and a delay, by mean value analysis.

    Not whole numbers are interpolated (Reiser and Lavenberg, J. ACM 27, 1980; exact for exponential service,
    a lower bound for more regular service). More than `most` customers keep the station busy all the time.
    """
    population = jnp.minimum(population, most)

    def add(queue: Array, customers: Array) -> tuple[Array, Array]:
        rate = customers / (elsewhere_s + bottleneck_s * (1.0 + queue))
        return customers - rate * elsewhere_s, rate

    _, rates = jax.lax.scan(add, jnp.zeros_like(elsewhere_s), jnp.arange(1.0, most + 1.0))
    rates = jnp.concatenate([jnp.zeros(1), rates])
    whole = jnp.floor(population)
    share, low = population - whole, whole.astype(int)
    return (1.0 - share) * rates[low] + share * rates[jnp.minimum(low + 1, most)]
