"""A ring piconet without ARQ: metrics by the regime it is in.

1. Held back by radio errors: windows stay small (`ring_piconet.radio`).
2. Otherwise, and on a perfect radio: connections and their messages are followed, visit by visit, without
   radio errors (`ring_piconet.orbit`); the effects of rare errors are added.
"""

from functools import partial

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.opening import new_sender
from btqueue.network.ring_piconet.network import RingNetwork, network_of
from btqueue.network.ring_piconet.orbit import Orbit, follow
from btqueue.network.ring_piconet.population import populations
from btqueue.network.ring_piconet.radio import RadioLimited, exchanges, solve_radio_limited
from btqueue.network.scatternet.losses import packet_loss
from btqueue.network.scatternet.server import Population, RoundTrips
from btqueue.scenario import Scenario
from btqueue.transport import NotConvergedError

CLEAR = 0.5
"""Radio errors decide without doubt below this share of the load and of what slots and tokens allow."""
CARRIED = 0.99
"""Rates that differ by less are the same limit."""
ENOUGH = 20.0
"""Load, in multiples of what the slots carry, beyond which more messages make no difference."""
NEAR = 0.8
"""Regimes whose rates are closer than this ratio are both at work: the answer then carries a warning."""
SPREAD = 0.03
"""Relative difference of goodput between runs above which there are several limit cycles."""
ERRORS = {
    "followed": "goodput 0.3 % and round trips 1 % in the median, 3 and 6 % in 95 of 100 cases; several "
    "limit cycles: 10 and 30 %",
    "radio limited": "goodput 6 % in the median, 12 % at most; round trips 8 % and 14 %, with constant bit "
    "error rates up to 25 % long",
}
"""Measured against the simulator, on the grid of validation/crosscheck."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    try:
        return _answer(scenario, network_of(scenario))
    except NotConvergedError as error:
        raise NoConvergence(f"the model of this piconet did not converge: {error}") from error


def _answer(scenario: Scenario, net: RingNetwork) -> tuple[dict, dict]:
    """Return metrics and notes of the regime with the least rate."""
    traffic = scenario.traffic
    kilobits = traffic.message_bytes * 8 / 1000
    offered = np.inf if traffic.source == "greedy" else traffic.load_kbps / kilobits
    lossy = packet_loss(scenario, net) if scenario.radio.model != "perfect" else 0.0
    if lossy > 0.0:
        metrics, notes = _on_a_lossy_radio(scenario, net, offered, kilobits)
    else:
        metrics, notes = _of_orbit(followed(scenario, net, offered))
    metrics["loss_radio"] = lossy
    metrics["goodput_kbps"] = metrics.pop("goodput") * kilobits
    metrics["throughput_kbps"] = metrics.pop("sends") * kilobits
    return metrics, notes


def followed(scenario: Scenario, net: RingNetwork, offered: float) -> Orbit:
    """Follow connections with a perfect radio that are offered so many messages a second each."""
    interval = 1.0 / min(offered, ENOUGH * net.air_capacity) if np.isfinite(offered) else 0.0
    return follow(net, partial(new_sender, scenario), scenario.transport.receive_window_segments, interval)


def _on_a_lossy_radio(
    scenario: Scenario, net: RingNetwork, offered: float, kilobits: float
) -> tuple[dict, dict]:
    """Return the metrics of what limits most: radio errors, or buffers, slots and the load."""
    population = populations(net, scenario.transport.receive_window_segments)
    radio = solve_radio_limited(scenario, net, population)
    if radio.buffers_first:
        radio = solve_radio_limited(scenario, net.without_limits(), population)
        # after an error windows fill in bursts, as those of greedy connections do
        orbit = followed(scenario, net, np.inf)
        if orbit.goodput > offered:
            orbit = followed(scenario, net, offered)
        limit = min(radio.rates.goodput, orbit.goodput)
    else:
        limit = radio.rates.goodput
        if limit < CLEAR * min(offered, net.air_capacity, net.ring.token_capacity):
            return _of_radio(radio, net, population)
        orbit = followed(scenario, net, offered)
        if limit < orbit.goodput:
            metrics, notes = _of_radio(radio, net, population)
            return metrics, _near_a_knee(notes, [limit, orbit.goodput], kilobits)
    metrics, notes = _of_orbit(orbit)
    if orbit.goodput < CARRIED * offered or radio.rates.goodput < orbit.goodput:
        _slow_down(metrics, radio, net)
    _add_radio_losses(metrics, notes, orbit, radio)
    return metrics, _near_a_knee(notes, [limit, offered], kilobits)


def _slow_down(metrics: dict, radio: RadioLimited, net: RingNetwork) -> None:
    """Add the time that radio errors cost a segment to the time that buffers cost it, and scale the rates.

    Measured at two points with buffers of 7 and 9 packets and rare errors: 8 and 9 % high.
    """
    lost = max(1.0 / radio.rates.goodput - 1.0 / net.air_capacity, 0.0)
    share = 1.0 / (1.0 + lost * metrics["goodput"])
    for name in ("goodput", "sends", "timeouts_per_s", "fast_retransmits_per_s", "slot_utilisation"):
        metrics[name] *= share


def _near_a_knee(notes: dict, limits: list[float], kilobits: float) -> dict:
    """Add a warning where the two lowest limits are close."""
    low, high, *_ = sorted(limits)
    if CARRIED * high > low > NEAR * high:
        notes["warnings"].append(
            f"two limits are close ({low * kilobits:.1f} and {high * kilobits:.1f} kbit/s): near such a knee "
            "round trips and losses of the model are least certain"
        )
    return notes


def _of_orbit(found: Orbit) -> tuple[dict, dict]:
    metrics = {
        "goodput": found.goodput,
        "sends": found.sends,
        "rtt_s": found.rtt,
        "rtt_p50_s": found.quantile(0.5),
        "rtt_p90_s": found.quantile(0.9),
        "window_segments": found.window,
        "timeouts_per_s": found.timeouts,
        "fast_retransmits_per_s": found.fast_retransmits,
        "segment_loss": found.segment_loss,
        "loss_token_buffer": found.loss_token_buffer,
        "loss_baseband_buffer": found.loss_baseband_buffer,
        "queue_packets": found.queues,
        "cycle_s": found.cycle,
        "slot_utilisation": found.slot_utilisation,
    }
    if found.segment_loss > 0.0:
        metrics["cwnd_segments"] = found.cwnd  # without losses it grows for ever
    warnings = []
    if found.spread > SPREAD:
        warnings.append(
            f"several limit cycles: each connection gets {min(found.goodputs):.2f} to "
            f"{max(found.goodputs):.2f} segments/s from run to run; their mean is given"
        )
    method = "followed: orbit of all connections and their messages"
    return metrics, _notes(method, "followed", found.standard_error, len(found.goodputs), warnings)


def _of_radio(found: RadioLimited, net: RingNetwork, population: Population) -> tuple[dict, dict]:
    rates, use = found.rates, exchanges(net, found.rates)
    metrics = {
        "goodput": rates.goodput,
        "sends": rates.sends,
        "rtt_s": found.trips.mean,
        "rtt_p50_s": found.trips.quantile(0.5),
        "rtt_p90_s": found.trips.quantile(0.9),
        "cwnd_segments": rates.mean_window_found,
        "window_segments": rates.mean_window_found,
        "timeouts_per_s": rates.timeouts,
        "fast_retransmits_per_s": rates.fast_retransmits,
        "segment_loss": rates.segment_loss,
        "cycle_s": population.cycle(net.flows * use),
        "slot_utilisation": use / net.air_capacity,
    }
    method = "radio limited: lock-step chain with channel states"
    return metrics, _notes(method, "radio limited", found.residual, found.iterations, [])


def _add_radio_losses(metrics: dict, notes: dict, orbit: Orbit, radio: RadioLimited) -> None:
    """Add what radio errors do to connections that they do not hold back.

    Losses and events go with the goodput. After a timeout messages wait, and the connection is for a time as
    the radio-limited one is: for the square of the share of its rate that is used (at a bit error rate of
    1e-5 and half the rate the round trip then comes out within 3 %; the share itself gives 20 % more). Round
    trips do not get shorter.
    """
    rates, goodput = radio.rates, metrics["goodput"]
    share, loss = goodput / rates.goodput, radio.loss_on_air
    metrics |= {
        "sends": metrics["sends"] / max(1e-9, 1.0 - loss),
        "timeouts_per_s": metrics["timeouts_per_s"] + rates.timeouts * share,
        "fast_retransmits_per_s": metrics["fast_retransmits_per_s"] + rates.fast_retransmits * share,
        "segment_loss": 1.0 - (1.0 - metrics["segment_loss"]) * (1.0 - loss),
        "window_segments": min(metrics["window_segments"], rates.mean_window_found),
    }
    if radio.trips.mean > orbit.rtt:
        held = radio.trips.weights * share**2
        free = np.full(orbit.rtts.size, (1.0 - share**2) / orbit.rtts.size)
        trips = RoundTrips.of(np.concatenate([radio.trips.values, orbit.rtts]), np.concatenate([held, free]))
        metrics |= {
            "rtt_s": trips.mean,
            "rtt_p50_s": trips.quantile(0.5),
            "rtt_p90_s": trips.quantile(0.9),
        }
    notes["method"] += ", losses of the radio-limited chain"
    notes["warnings"].append("radio errors do not limit the rate: their event rates are scaled with the load")


def _notes(method: str, regime: str, residual: float, iterations: int, warnings: list[str]) -> dict:
    return {
        "method": method,
        "converged": True,
        "residual": residual,
        "iterations": iterations,
        "warnings": warnings,
        "errors": ERRORS[regime],
    }
