"""A lone bulk transfer that loses segments at random: the chain of its window on the path that it takes.

The path is measured by its own orbit, without loss and with unlimited buffers: a window of one segment gives
the round trip of an empty path, a wide one the rate of its bottleneck.
"""

from dataclasses import replace

import numpy as np

from btqueue.network.answers import uncertain_ends
from btqueue.network.bulk_transfer.loss import lossy_rates
from btqueue.network.bulk_transfer.orbit import Orbit
from btqueue.network.bulk_transfer.path import FlowPath, OutsidePort, Paths, RadioPort
from btqueue.network.bulk_transfer.quantiles import QUANTILES, weighted_quantiles
from btqueue.network.bulk_transfer.records import ROUND_TRIP
from btqueue.network.bulk_transfer.recovery import LossyPath
from btqueue.scenario import Scenario

WIDE = 256
"""Window that is taken to fill every path (segments)."""
ALONE, WARM_UP, MEASURED = 100, 600, 1000
"""Segments sent to measure an empty path, and a full one."""
LEAST_LOSS = 1e-9
RENO_LOSS = 0.01
"""Loss from which on more of Reno's recoveries end by the timer than the chain says."""
NEAR_TIMEOUT = 0.9
"""Round trips above this share of the least timeout are close to it."""


def answer_with_loss(scenario: Scenario, paths: Paths) -> tuple[dict, dict]:
    """Return metrics and notes of a flow over links that lose packets."""
    path = lossy_path(scenario, paths)
    found = lossy_rates(path)
    kilobits = paths.flows[0].layouts[0].user_bytes * 8e-3
    metrics = {
        "goodput_kbps": found.goodput * kilobits,
        "throughput_kbps": found.goodput / (1.0 - found.losses) * kilobits,
        "rtt_s": float(found.rtts @ found.weights),
        "window_segments": found.window,
        "timeouts_per_s": found.timeouts,
        "fast_retransmits_per_s": found.fast_retransmits,
        "segment_loss": found.losses,
    }
    rows = weighted_quantiles(found.rtts, found.weights)
    notes = {
        "method": "random loss: renewal chain of the window",
        "converged": True,
        "residual": max(found.residual, uncertain_ends(MEASURED)),
        "iterations": 1,
        "warnings": _warnings(scenario, path),
        "errors": "goodput 1 %, round trips 0.5 %, timeouts 12 % at the median; 3, 6 and 27 % at worst",
    }
    return metrics | dict(zip(QUANTILES, rows, strict=True)), notes


def _warnings(scenario: Scenario, path: LossyPath) -> list[str]:
    warnings = []
    if path.base_s > NEAR_TIMEOUT * path.min_rto_s:
        warnings.append(
            f"the round trip of the empty path, {path.base_s:.2f} s, is close to the least timeout, "
            f"{path.min_rto_s:g} s: timers expire too soon, and their rate is least certain"
        )
    if path.ack_delay_s > 0.0 and scenario.transport.ack_every_segments > 2:
        warnings.append(
            f"every {scenario.transport.ack_every_segments} segments share an acknowledgement: the waits of "
            "those left over are those of two, and round trips and goodput up to 10 % low"
        )
    if path.variant == "reno" and path.loss >= RENO_LOSS:
        warnings.append(
            f'transport.variant = "reno" with {path.loss:.2g} of the segments lost: timeouts come out 20 to '
            "66 % too few and goodput up to 13 % too high"
        )
    return warnings


def lossy_path(scenario: Scenario, paths: Paths) -> LossyPath:
    """Measure the path of the only flow."""
    transport, (flow,) = scenario.transport, paths.flows
    free = paths.without_limits()
    empty = _orbit(scenario, free, window=1)
    empty.play(ALONE, np.inf)
    base_s = float(empty.samples(ROUND_TRIP, 0).mean())
    full = _orbit(scenario, free, window=WIDE)
    full.play(WARM_UP, np.inf)
    start, before = full.now, full.ended
    full.play(MEASURED, np.inf)
    rate = (full.ended - before) / (full.now - start)
    covered = transport.ack_every_segments if transport.delayed_ack else 1
    # At the pace of the bottleneck the timer may let fewer segments gather.
    covered = min(covered, 1 + int(transport.ack_delay_s * rate))
    return LossyPath(
        loss=max(LEAST_LOSS, _loss_along(paths, flow.forth, flow.layouts[0].ip_bytes)),
        segments_per_ack=covered / (1.0 - _loss_along(paths, flow.back, paths.ack.ip_bytes)),
        window=flow.window,
        room=_places(paths, flow) + base_s * rate,
        base_s=base_s,
        service_s=1.0 / rate,
        variant=flow.variant,
        min_rto_s=transport.min_rto_s,
        max_rto_s=transport.max_rto_s,
        backoff=transport.rto_backoff,
        ack_delay_s=transport.ack_delay_s if covered > 1 else 0.0,
    )


def _orbit(scenario: Scenario, paths: Paths, window: int) -> Orbit:
    """Return the orbit of a sender with a constant window; a lone segment is acknowledged at once."""
    flows = tuple(replace(flow, window=window) for flow in paths.flows)
    orbit = Orbit(replace(paths, flows=flows), scenario.transport)
    senders, receivers = orbit.state.senders, orbit.state.receivers
    senders["cwnd"] = window
    senders["rto"] = senders["min_rto"] = senders["max_rto"] = np.inf
    if window == 1:
        receivers["every"] = 1
    return orbit


def _places(paths: Paths, flow: FlowPath) -> float:
    """Return how many segments the smallest buffer on the way holds."""
    layout = flow.layouts[0]
    places = []
    for port in (paths.ports[number] for number in flow.forth):
        if isinstance(port, OutsidePort):
            places.append(float(port.places))
            continue
        places.append(np.inf if port.places is None else port.places / len(layout.packets))
        if paths.node_bytes is not None:
            places.append(float(paths.node_bytes // layout.frame_bytes))
    return min(places)


def _loss_along(paths: Paths, ports: tuple[int, ...], ip_bytes: int) -> float:
    """Return the probability that a packet of this size is lost on one of these ports."""
    through = 1.0
    for port in (paths.ports[number] for number in ports):
        if not isinstance(port, RadioPort):
            through *= 1.0 - port.loss_of(ip_bytes + paths.media[port.medium].header_bytes)
    return 1.0 - through
