"""Two piconets joined by a walk-in bridge, flows in pairs, without ARQ: metrics by the regime they are in.

1. Overloaded: windows or losses at the buffers decide; connections are followed to their orbit
   (`scatternet.orbit`).
2. Held back by radio errors: windows stay small (`scatternet.radio`).
3. Application limited: the load is below what 1 and 2 allow; the network is a server whose speed depends on
   the segments inside (`scatternet.population`), the token bucket a queue of Poisson batches.
"""

from dataclasses import fields

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.opening import new_sender
from btqueue.network.scatternet.bucket import data_loss, recovery, solve_bucket
from btqueue.network.scatternet.losses import packet_loss
from btqueue.network.scatternet.network import Scatternet, scatternet_of
from btqueue.network.scatternet.orbit import Orbit, follow
from btqueue.network.scatternet.population import alone_with, populations
from btqueue.network.scatternet.radio import RadioLimited, solve_radio_limited
from btqueue.network.scatternet.sender import Messages, PacedSender, Start
from btqueue.network.scatternet.server import Population
from btqueue.queueing.errors import ConvergenceError
from btqueue.scenario import Scenario
from btqueue.transport import NotConvergedError

NEAR = 0.8
"""Regimes whose rates are closer than this ratio are both at work: the answer then carries a warning."""
SPREAD = 0.03
"""Relative difference of goodput between ways to begin above which there are several limit cycles."""
CARRIED = 0.99
"""Share of the load that an orbit must deliver for the load to be what limits it."""
ALONE = 8
"""Largest window followed for a lone connection."""
SMALL_WINDOW = 3.0
"""Mean window up to which a constant round-trip time was found to be good enough."""
NEGLIGIBLE_LOSS = 1e-6
"""Segment loss below which nothing is worked out about recoveries."""
ERRORS = {
    "overloaded": "goodput and round trips 1 and 2 % in the median; several limit cycles: to 10 and 52 %",
    "application limited": "round trips 2 % in the median, 11 % at most; 90 % quantiles 3 % and 14 %",
    "radio limited": "small windows: goodput 2 % in the median, 6 % at most; round trips 3 % and 13 %",
}
"""Measured against the simulator, on the grid of validation/crosscheck."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    try:
        return _answer(scenario, scatternet_of(scenario))
    except (ConvergenceError, NotConvergedError) as error:
        raise NoConvergence(f"the model of this scatternet did not converge: {error}") from error


def _answer(scenario: Scenario, net: Scatternet) -> tuple[dict, dict]:
    """Return metrics and notes of the regime with the least rate."""
    traffic, window = scenario.traffic, scenario.transport.receive_window_segments
    kilobits = traffic.message_bytes * 8 / 1000
    offered = np.inf if traffic.source == "greedy" else traffic.load_kbps / kilobits
    lossy = packet_loss(scenario, net) if scenario.radio.model != "perfect" else 0.0
    population = radio = None
    if lossy > 0.0:
        population = populations(net, window)
        radio = solve_radio_limited(scenario, net, population, alone_with(net, min(max(window, 2), ALONE)))
    limit = radio.rates.goodput if radio else np.inf
    near = limit > NEAR * min(offered, net.air_capacity)
    orbit = overloaded(scenario, net, offered) if near else None
    decides = orbit is not None and orbit.goodput < min(limit, CARRIED * offered)
    if orbit and decides:
        metrics, notes = _of_orbit(orbit)
    elif radio and population and limit <= CARRIED * offered:
        metrics, notes = _of_radio(radio, net, population)
    else:
        population = population or populations(net, window)
        metrics, notes = _of_application(scenario, net, population, offered)
        if radio:
            _add_radio_losses(metrics, notes, radio)
    metrics["loss_radio"] = lossy
    metrics["goodput_kbps"] = metrics.pop("goodput") * kilobits
    metrics["throughput_kbps"] = metrics.pop("sends") * kilobits
    limits = sorted(rate for rate in (limit, orbit.goodput if orbit else np.inf, offered) if rate < np.inf)
    if radio and len(limits) > 1 and limits[0] > NEAR * limits[1]:
        notes["warnings"].append(
            f"two limits are close ({limits[0] * kilobits:.1f} and {limits[1] * kilobits:.1f} kbit/s): "
            "near such a knee round trips and losses of the model are least certain"
        )
    return metrics, notes


def overloaded(scenario: Scenario, net: Scatternet, offered: float) -> Orbit:
    """Follow connections with a perfect radio that are offered so many messages a second each."""
    greedy = not np.isfinite(offered)
    starts: tuple[Start, ...] = ("burst",) if greedy else ("burst", "even", "irregular")
    plain = new_sender(scenario)
    known = {item.name: getattr(plain, item.name) for item in fields(plain)}

    def new(messages: Messages) -> PacedSender:
        return PacedSender(**known, messages=messages)

    return follow(net, new, starts, 0.0 if greedy else 1.0 / offered)


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
    low, high = min(found.goodputs), max(found.goodputs)
    warnings = []
    if high > (1.0 + SPREAD) * low:
        warnings.append(
            f"several limit cycles: by how the windows are filled, each connection gets {low:.2f} to "
            f"{high:.2f} segments/s; their mean is given"
        )
    spread = high / low - 1.0 if low > 0.0 else 0.0
    return metrics, _notes(
        "overloaded: orbit of all connections", "overloaded", spread, len(found.goodputs), warnings
    )


def _of_radio(found: RadioLimited, net: Scatternet, population: Population) -> tuple[dict, dict]:
    rates = found.rates
    ring = net.ring
    acks = rates.sends * (1.0 - rates.segment_loss)
    use = (rates.sends * ring.data_slots + acks * ring.ack_slots) / (ring.data_slots + ring.ack_slots)
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
    warnings = []
    if rates.mean_window_found > SMALL_WINDOW:
        warnings.append(
            "radio errors leave windows of several segments: one constant round-trip time stands for all of "
            "them, and goodput comes out 15 to 30 % low"
        )
    method = "radio limited: lock-step chain with channel states"
    return metrics, _notes(method, "radio limited", found.residual, found.iterations, warnings)


def _of_application(
    scenario: Scenario, net: Scatternet, population: Population, rate: float
) -> tuple[dict, dict]:
    """Return the metrics of Poisson messages that the network carries, `rate` a second and flow."""
    bucket = solve_bucket(net.ring, rate)
    loss = data_loss(net.ring, bucket) if bucket else 0.0
    trips = population.round_trips(net.flows * rate)
    tokens = 2 * float(bucket.mean_token_wait) if bucket else 0.0
    rtt = trips.mean + tokens + net.ring.jitter_s
    window, per_timeout, per_fast = float(scenario.transport.receive_window_segments), 0.0, 0.0
    if loss > NEGLIGIBLE_LOSS:
        window, per_timeout, per_fast = recovery(scenario, rtt, loss)
    metrics = {
        "goodput": rate,
        "sends": rate / (1.0 - loss),
        "rtt_s": rtt,
        "rtt_p50_s": trips.quantile(0.5) + tokens + net.ring.jitter_s,
        "rtt_p90_s": trips.quantile(0.9) + tokens + net.ring.jitter_s,
        "window_segments": window,
        "timeouts_per_s": rate * per_timeout,
        "fast_retransmits_per_s": rate * per_fast,
        "segment_loss": loss,
        "loss_token_buffer": float(bucket.packet_loss) if bucket else 0.0,
        "loss_baseband_buffer": 0.0,
        "cycle_s": population.cycle(net.flows * rate),
        "slot_utilisation": rate / net.air_capacity,
    }
    method = "application limited: flow-equivalent server and token bucket"
    return metrics, _notes(method, "application limited", 0.0, len(population.levels), [])


def _add_radio_losses(metrics: dict, notes: dict, radio: RadioLimited) -> None:
    """Add the losses of the radio-limited chain to those of the queues; events go with the load."""
    rates, goodput = radio.rates, metrics["goodput"]
    loss = 1.0 - (1.0 - metrics["segment_loss"]) * (1.0 - rates.segment_loss)
    share = goodput / rates.goodput * loss / rates.segment_loss
    metrics |= {
        "sends": goodput / max(1e-9, 1.0 - loss),
        "timeouts_per_s": rates.timeouts * share,
        "fast_retransmits_per_s": rates.fast_retransmits * share,
        "segment_loss": loss,
        "window_segments": rates.mean_window_found,
    }
    notes["method"] += ", losses of the radio-limited chain"
    notes["warnings"].append("the load is below the radio's limit: its event rates are scaled with the load")


def _notes(method: str, regime: str, residual: float, iterations: int, warnings: list[str]) -> dict:
    return {
        "method": method,
        "converged": True,
        "residual": residual,
        "iterations": iterations,
        "warnings": warnings,
        "errors": ERRORS[regime],
    }
