"""Metrics of a piconet at its fixed point, as compiled programs: one answer, many at once, derivatives."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import betainc, gammaincc

from btqueue.network.piconet.coupling import (
    AT_MOST,
    LOAD,
    RADIO,
    WINDOW,
    Network,
    Point,
    Seen,
    System,
    lost_in_buffers,
    network_of,
    short_of,
    solve_rates,
)
from btqueue.network.piconet.fading import faded
from btqueue.network.piconet.structure import Class, Inputs
from btqueue.network.programs import Kept
from btqueue.queueing.implicit import slopes_at_root

ENDLESSLY = ("links", "piconet")
"""Radios whose two states repetition bridges."""
DUPLICATES = 3.0
"""Acknowledgements of segments behind a lost one that begin a fast retransmit."""
LARGEST = 64
"""Segments of a window that losses halve."""
TINY = 1e-12
ROUNDING = 1e-9
"""Segments of a window that are no segment."""
SELDOM = 0.02
"""Loss in a short queue above which the delay of what gets through is not known."""
LITTLE = 1e-3
"""Share of the segments that buffers damage above which messages wait for their repetition at the sender."""
RARE = 1e-6
"""Loss below which nothing is said of its kind."""


class Findings(NamedTuple):
    """What warnings are about, by class (C,).

    Attributes:
        limited: what decides the rate.
        rates: segments a second that a flow delivers.
        offered: that it sends, with what TCP repeats.
        window: that is under way if nothing else decides (segments).
        room: share of the rate that slots, tokens and windows would allow.
        outgrown: whether windows outgrow a buffer.
        lost: share of the segments that buffers damage.
        overload: whether more is offered than slots and tokens carry.
        relayed: whether flows go from station to station.
        success: probability that a segment gets over the radio.
        expiries: timeouts a second in bad states of the radio.
        residual: largest relative change of a rate by one more iteration, and of an iteration inside.
    """

    limited: Array
    rates: Array
    offered: Array
    window: Array
    room: Array
    outgrown: Array
    lost: Array
    overload: Array
    relayed: Array
    success: Array
    expiries: Array
    residual: Array


@Kept
def metrics_of(system: System) -> tuple[dict[str, Array], Findings]:
    """Return metrics, by class (C,) or of the network (), NaN where the model has none, and findings."""
    structure, _, inputs = system
    network, point, residual = solve_rates(system)
    metrics, seen, expiries = _metrics_at(network, point)
    limits = point.limits
    findings = Findings(
        limited=point.limited,
        rates=point.rates,
        offered=point.offered,
        window=limits.window.mean,
        room=point.rates / (limits.rate * network.wanted),
        outgrown=limits.window.loss > 0.0,
        lost=jnp.where(
            point.limited == WINDOW, limits.window.loss, lost_in_buffers(limits, seen, point.limited)
        ),
        overload=inputs.load >= limits.capacity,
        relayed=structure.classes.route.relayed > 0.0,
        success=network.success,
        expiries=expiries,
        residual=jnp.maximum(residual, seen.residual.max()),
    )
    return metrics, findings


def _metrics_at(network: Network, point: Point) -> tuple[dict[str, Array], Seen, Array]:
    """Return the metrics where a network stands, what flows see there, and timeouts in bad states."""
    structure = network.structure
    expiries = jnp.zeros_like(point.rates)
    if structure.fading in ENDLESSLY:
        seen, expiries = faded(network, point.offered)
        point = point._replace(seen=seen)
    metrics = jax.vmap(partial(_metrics_of_class, network, point))(
        jnp.arange(network.inputs.load.size), structure.classes
    )
    if structure.answered:
        metrics["timeouts_per_s"] = metrics["timeouts_per_s"] + expiries
    return metrics | _of_the_network(network, point), point.seen, expiries


@Kept
def metrics_of_many(systems: System) -> tuple[dict[str, Array], Findings]:
    """Return the same for systems of one structure, stacked."""
    return jax.vmap(metrics_of)(systems)


@Kept
def slopes_of(point: tuple[System, Array]) -> dict[str, tuple[Array, ...]]:
    """Return the derivatives of all metrics by all numbers, in the order of the leaves of `Inputs`.

    Args:
        point: what is solved, and the logarithms of the rates that classes deliver and offer there, (2C,).
    """
    (structure, law, inputs), root = point

    def at(logs: Array, inputs: Inputs) -> tuple[dict[str, Array], Array]:
        network = network_of(structure, law, inputs)
        there, residual = short_of(logs, network)
        return _metrics_at(network, there)[0], residual

    return slopes_at_root(at, root, inputs)


def _metrics_of_class(network: Network, at: Point, number: Array, one: Class) -> dict[str, Array]:
    """Return the metrics of a flow of a class."""
    structure, inputs = network.structure, network.inputs
    seen, limits, rate, _, why = jax.tree.map(lambda leaf: leaf[number], at)
    success = network.success[number]
    kilobits = structure.data_kilobits
    none = jnp.full((), jnp.nan)
    if not structure.answered:
        kept = (1.0 - seen.overflow) * (1.0 - seen.refused) * success
        load = inputs.load[number]
        goodput = jnp.minimum(load * kept, limits.capacity * success) * kilobits
        below = load < limits.capacity
        places = network.places(one)
        if structure.queues:
            # a queue that is always full damages as many segments however large it is
            full = (load >= AT_MOST * limits.capacity) & jnp.isfinite(load) & jnp.isfinite(places)
            full &= limits.by_tokens == 0.0
            kept_then = (1.0 - network.refused(one, limits)) * success
            goodput = jnp.where(full, jnp.where(full, load, 0.0) * kept_then * kilobits, goodput)
        bounded = jnp.isfinite(load) & (below | jnp.isfinite(places))
        offered = jnp.where(jnp.isfinite(load), load, 1.0) * kilobits
        return {
            "goodput_kbps": goodput,
            "throughput_kbps": jnp.where(bounded, offered, none),
            "segment_loss": jnp.where(bounded, jnp.where(below, 1.0 - kept, 1.0 - goodput / offered), none),
            "delay_s": jnp.where(below & (seen.overflow < SELDOM), seen.delay_s, none),
        }
    lost = jnp.where(why == WINDOW, limits.window.loss, lost_in_buffers(limits, seen, why))
    loss = 1.0 - (1.0 - lost) * success
    every = structure.ack_every  # sampled is the first segment of an acknowledgement
    mean = limits.window.mean
    whole = jnp.where(mean <= every, mean, every * jnp.ceil(mean / every - ROUNDING))
    longest = whole / rate + jnp.where(why == LOAD, seen.held_s, 0.0)
    rtt = jnp.where(
        why == WINDOW, longest, jnp.where(why == LOAD, jnp.minimum(seen.rtt_s, longest), seen.rtt_s)
    )
    metrics = {
        "goodput_kbps": rate * kilobits,
        "throughput_kbps": rate * kilobits / (1.0 - loss),
        "rtt_s": rtt,
        "segment_loss": loss,
        "delay_s": jnp.where((why == LOAD) & (lost < LITTLE), seen.delay_s, none),
    }
    known = lost <= RARE
    if not structure.lossy:
        zero = jnp.where(known, 0.0, none)
        window = jnp.where(known, inputs.window[number], none)
        return metrics | {"window_segments": window, "timeouts_per_s": zero, "fast_retransmits_per_s": zero}
    tcp = network.tcp(rtt - seen.held_s, seen.spacing_s, success, network.ack_success[number])
    share = rate / tcp.rates.goodput
    # a fast retransmit needs as many segments behind the lost one before its timer expires
    alone = gammaincc(DUPLICATES, rate * jnp.maximum(inputs.min_rto_s, rtt))
    expiries = tcp.expiries + jnp.maximum(1.0 - share, 0.0) * jnp.maximum(
        expiries_of_light_flows(success, network.ack_success[number], inputs.window[number]) - tcp.expiries,
        0.0,
    )
    further = expiries - tcp.expiries + jnp.maximum((1.0 - success) / success - expiries, 0.0) * alone
    further = jnp.where(why == LOAD, rate * further, 0.0)
    behind = network.behind_stalls_s(seen, tcp, rate)
    # how long a receiver holds acknowledgements of a window that losses make is not known
    in_rounds_s = none if structure.ack_clock else tcp.rtt_s
    piled_up = jnp.where(why == RADIO, in_rounds_s, jnp.minimum(rtt + behind, longest))
    metrics["rtt_s"] = jnp.where(why == WINDOW, rtt, piled_up)
    # messages wait for timers at their sender, too, which is in no round trip
    metrics["delay_s"] = jnp.where(success < 1.0 - RARE, none, metrics["delay_s"])
    return metrics | {
        "window_segments": jnp.where(known, tcp.rates.window, none),
        "timeouts_per_s": jnp.where(known, tcp.rates.timeouts * share + further, none),
        "fast_retransmits_per_s": jnp.where(
            known, jnp.maximum(tcp.rates.fast_retransmits * share - further, 0.0), none
        ),
    }


def expiries_of_light_flows(success: Array, ack_success: Array, receive_window: Array) -> Array:
    """Return the timeouts of a delivered segment of a flow that has few segments under way.

    A loss halves what is under way, not the window: it begins again with two segments, and grows by one in as
    many acknowledgements. Of the segments that it lets out after a lost one three must be acknowledged, and
    then the retransmission must arrive.
    """
    answered = success * ack_success
    windows = jnp.arange(2.0, LARGEST + 1.0)
    before = jnp.cumsum(windows) - windows  # acknowledgements until a window has this size
    reached = success**before
    share = jnp.diff(1.0 - reached, append=1.0)  # of the losses, with that window
    # tables hold for one receive window, so that there is no derivative by it; betainc has none by its shapes
    window = jnp.minimum(windows, jax.lax.stop_gradient(receive_window))
    too_few = 1.0 - betainc(DUPLICATES, jnp.maximum(window - 1.0 - DUPLICATES + 1.0, TINY), answered)
    too_few = jnp.where(window > DUPLICATES, too_few, 1.0)
    expires = 1.0 - answered * (1.0 - share @ too_few)
    return (1.0 - success) / success * expires / answered


def _of_the_network(network: Network, point: Point) -> dict[str, Array]:
    """Return what the air and its queues come to, averaged over the stations."""
    structure, limits, limited = network.structure, point.limits, point.limited
    none = jnp.full((), jnp.nan)
    flows = structure.class_of.sum(axis=0)  # (C,)
    offered = jnp.where(limited == WINDOW, point.rates / network.wanted, point.offered)
    data, ack = network.sent
    of_flows = structure.class_of @ offered
    slots = network.crossed(data.mean * data.mean_slots, ack.mean * ack.mean_slots, network.answers(of_flows))
    full = (limits.by_tokens == 0.0) & ((limited == WINDOW) | (network.inputs.load >= limits.capacity))
    real = flows > 0.0
    lone_class = real.sum() == 1
    some_full = (full & real).any()
    cycle = jnp.where(some_full, jnp.where(lone_class, limits.cycle_s[0], none), point.seen.cycle_s[0])
    metrics = {"slot_utilisation": of_flows @ slots * structure.slot_s, "cycle_s": cycle}
    waiting = network.waiting_for_tokens(point.offered) if structure.tokens else jnp.zeros(())
    known = ~some_full & ~((limited == WINDOW) & real).any()
    return metrics | {"token_buffer": jnp.where(known, waiting, none)}
