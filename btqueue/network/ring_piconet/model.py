"""A ring piconet without ARQ: its metrics, by the model of the regime that it is in.

1. Saturated by congestion: every connection greedy, buffers overflow (`saturation`).
2. Held back by radio errors: windows stay small (`radio_loss`).
3. Application limited: the load is below what 1 and 2 allow (`application_limited`).

The lesser of the three rates decides. Each answer carries its method, residual, iterations and warnings.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.ring_piconet.application_limited import ApplicationLimited, solve_application_limited
from btqueue.network.ring_piconet.radio_loss import (
    LARGEST_WINDOW,
    RadioFixedPointFailed,
    RadioLimited,
    packet_loss,
    solve_radio_limited,
)
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.network.ring_piconet.saturation import CONSISTENT, Saturated, cycle_s, solve_saturated
from btqueue.queueing.errors import ConvergenceError
from btqueue.scenario import Scenario
from btqueue.transport import NotConvergedError

NEAR = 0.8
"""Regimes whose rates are closer than this ratio are both at work: the answer then carries a warning."""


LOSSES = ("window_segments", "segment_loss", "loss_token_buffer", "loss_baseband_buffer")


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    ring = ring_of(scenario)
    try:
        return _answer(scenario, ring)
    except (ConvergenceError, NotConvergedError, RadioFixedPointFailed) as error:
        raise NoConvergence(f"the model of this piconet did not converge: {error}") from error


def _answer(scenario: Scenario, ring: Ring) -> tuple[dict, dict]:
    """Return metrics and notes of the regime with the least rate."""
    kilobits = scenario.traffic.message_bytes * 8 / 1000
    offered = np.inf if scenario.traffic.source == "greedy" else scenario.traffic.load_kbps / kilobits
    saturated = solve_saturated(scenario, ring)
    candidates: list[tuple[float, Callable[[], tuple[dict, dict]]]] = [
        (saturated.mean("goodput"), lambda: _of_saturated(saturated))
    ]
    lossy = packet_loss(scenario, ring) if scenario.radio.model != "perfect" else 0.0
    radio = solve_radio_limited(scenario, ring) if lossy > 0.0 else None
    if radio is not None:
        candidates.append((radio.rates.goodput, partial(_of_radio, radio, ring)))
    # An orbit of finite length can come out a few parts in ten thousand above what the slots carry.
    limits = sorted(min(rate, ring.air_capacity) for rate, _ in candidates)
    if offered < limits[0]:
        metrics, notes = _of_application(solve_application_limited(scenario, ring, offered), saturated)
        if radio is not None:
            metrics, notes = _with_radio_losses(metrics, notes, radio)
    else:
        _, answer = min(candidates, key=lambda pair: pair[0])
        metrics, notes = answer()
    metrics["loss_radio"] = lossy
    metrics["goodput_kbps"] = metrics.pop("goodput") * kilobits
    metrics["throughput_kbps"] = metrics.pop("sends") * kilobits
    rates = sorted([*limits, offered])
    if len(rates) > 1 and rates[0] > NEAR * rates[1]:
        notes["warnings"].append(
            f"two limits are close ({rates[0] * kilobits:.1f} and {rates[1] * kilobits:.1f} kbit/s): "
            "near such a knee round trips and losses of the model are least certain"
        )
    if scenario.transport.receive_window_segments > LARGEST_WINDOW and lossy > 0.0:
        notes["warnings"].append(f"the loss model follows windows of up to {LARGEST_WINDOW} segments")
    return metrics, notes


def _of_saturated(found: Saturated) -> tuple[dict, dict]:
    counts = [orbit.counts for orbit in found.orbits]
    elapsed = [orbit.elapsed for orbit in found.orbits]

    def share(refused: str, offered: str) -> float:
        return sum(getattr(c, refused) for c in counts) / max(1, sum(getattr(c, offered) for c in counts))

    queue = [
        float(np.mean([getattr(c, name) / t for c, t in zip(counts, elapsed, strict=True)]))
        for name in ("time_in_buffer", "time_in_baseband")
    ]
    metrics = {
        "goodput": found.mean("goodput"),
        "sends": found.mean("sends"),
        "rtt_s": found.mean("rtt"),
        "cwnd_segments": found.mean("cwnd"),
        "window_segments": found.mean("window"),
        "timeouts_per_s": found.mean("timeouts"),
        "fast_retransmits_per_s": found.mean("fast_retransmits"),
        "segment_loss": found.mean("segment_loss"),
        "loss_token_buffer": share("refused_at_buffer", "offered_to_buffer"),
        "loss_baseband_buffer": share("refused_at_baseband", "offered_to_baseband"),
        "queue_packets": dict(zip(("token_buffer", "uplink"), queue, strict=True)),
        "cycle_s": found.cycle,
        "slot_utilisation": found.slot_utilisation,
    }
    warnings = []
    if len(found.orbits) > 1:
        low, high = sorted(orbit.goodput for orbit in found.orbits)
        warnings.append(
            f"several limit cycles: the saturated ring jumps between {low:.2f} and {high:.2f} segments/s; "
            "their mean is given (see run.jitter_s)"
        )
    return metrics, _notes(
        "saturated: orbit of greedy connections", found.residual, found.iterations, warnings
    )


def _of_radio(found: RadioLimited, ring: Ring) -> tuple[dict, dict]:
    rates = found.rates
    used = rates.sends * ring.data_slots + rates.sends * (1 - rates.segment_loss) * ring.ack_slots
    air_rate = used / (ring.data_slots + ring.ack_slots)
    metrics = {
        "goodput": rates.goodput,
        "sends": rates.sends,
        "rtt_s": found.rtt,
        "cwnd_segments": rates.mean_window_found,
        "window_segments": rates.mean_window_found,
        "timeouts_per_s": rates.timeouts,
        "fast_retransmits_per_s": rates.fast_retransmits,
        "segment_loss": rates.segment_loss,
        "cycle_s": cycle_s(ring, air_rate),
        "slot_utilisation": air_rate / ring.air_capacity,
    }
    warnings = []
    if found.overflow > 0.05:
        warnings.append(
            f"buffers refuse {found.overflow:.0%} of the segments; the model spreads these losses evenly"
        )
    method = "radio limited: lock-step chain with channel state"
    return metrics, _notes(method, found.residual, found.iterations, warnings)


def _of_application(found: ApplicationLimited, saturated: Saturated) -> tuple[dict, dict]:
    """Return the queueing answer; its losses are bounded by those of saturation.

    Poisson batches do not know that a window bounds what can pile up, so close to saturation they lose more
    than greedy connections would. There the orbit's losses, events per segment and window are the better
    estimate.
    """
    metrics = {
        "goodput": found.rate,
        "sends": found.rate / max(1e-9, 1.0 - found.segment_loss),
        "rtt_s": found.rtt,
        "window_segments": found.window,
        "timeouts_per_s": found.timeouts,
        "fast_retransmits_per_s": found.fast_retransmits,
        "segment_loss": found.segment_loss,
        "loss_token_buffer": found.loss_token_buffer,
        "loss_baseband_buffer": found.loss_baseband_buffer,
        "queue_packets": {
            "token_buffer": found.token_buffer_packets,
            "uplink": found.uplink_packets,
            "downlink": found.downlink_packets,
        },
        "cycle_s": found.cycle,
        "slot_utilisation": found.slot_utilisation,
    }
    method = "application limited: token bucket and relay ring"
    if found.segment_loss > saturated.mean("segment_loss"):
        greedy = _of_saturated(saturated)[0]
        share = found.rate / greedy["goodput"]
        metrics |= {name: greedy[name] for name in LOSSES}
        metrics |= {
            name: greedy[name] * share for name in ("sends", "timeouts_per_s", "fast_retransmits_per_s")
        }
        method += ", losses bounded by the saturation orbit"
    return metrics, _notes(method, found.residual, found.iterations, [])


def _with_radio_losses(metrics: dict, notes: dict, radio: RadioLimited) -> tuple[dict, dict]:
    """Return the queueing answer with the losses, events and window of a connection that sees radio errors.

    The chain's losses without overflow, which is a matter of the load, join those of the queues. Events are
    in proportion to the segments lost; a sparse source has fewer duplicate acknowledgements than the greedy
    chain, so timeouts come out low and fast retransmits high.
    """
    rates, goodput = radio.rates, metrics["goodput"]
    on_the_radio = (rates.segment_loss - radio.overflow) / (1.0 - radio.overflow)
    loss = 1.0 - (1.0 - metrics["segment_loss"]) * (1.0 - on_the_radio)
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
    return metrics, notes


def _notes(method: str, residual: float, iterations: int, warnings: list[str]) -> dict:
    return {
        "method": method,
        "converged": residual <= CONSISTENT,
        "residual": residual,
        "iterations": iterations,
        "warnings": warnings,
    }
