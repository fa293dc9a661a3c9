"""Greedy TCP over a path with a bottleneck: outside links, and at most one piconet under ARQ.

No segment is lost at random: the orbit of windows and queues (`bulk_transfer.orbit`), which is that of a
closed network as long as the windows fit the buffers, and a sawtooth of overflow and recovery beyond.
Request-reply sessions may share the path.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence, uncertain_ends
from btqueue.network.bulk_transfer.averages import Followed, follow_from_starts
from btqueue.network.bulk_transfer.orbit import Orbit
from btqueue.network.bulk_transfer.path import FlowPath, OutsidePort, Paths, paths_of
from btqueue.network.bulk_transfer.quantiles import QUANTILES, quantiles
from btqueue.scenario import Scenario

SESSION_QUANTILES = [name.replace("rtt", "session_time") for name in QUANTILES]
LONG_JITTER_S = 0.1
"""Processing delay up to which a regular sequence stands for a random one: round trips 4 % off."""
DISTINCT = 0.05
"""Orbits from several starts whose round trips differ by more than this share are different limit cycles."""
LARGEST_ERROR_RATE = 0.9
"""Of packets on the air; beyond, what is followed is too short for the rare segments that get through."""
UNSETTLED = 0.01
"""Relative difference between two halves of an orbit from which on it does not repeat."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: hardly anything gets through the radio.
    """
    paths = paths_of(scenario)
    if (worst := max((_error_rate(paths, path) for path in paths.flows), default=0.0)) > LARGEST_ERROR_RATE:
        raise NoConvergence(
            f"packets arrive damaged with probability {worst:.3g}: the model of bulk transfers follows "
            f"segments up to {LARGEST_ERROR_RATE:g}, beyond it hardly any gets through"
        )
    return _answer_by_orbit(scenario, paths)


def _answer_by_orbit(scenario: Scenario, paths: Paths) -> tuple[dict, dict]:
    found = follow_from_starts(lambda phase: Orbit(paths, scenario.transport, phase))
    elapsed = sum(one.elapsed for one in found)

    def total(name: str) -> np.ndarray:
        return sum((one.of(name) for one in found), np.zeros(len(paths.flows)))

    acks = np.maximum(total("acknowledgements"), 1.0)
    metrics: dict[str, Any] = {
        "goodput_kbps": total("delivered_bytes") * 8e-3 / elapsed,
        "throughput_kbps": (total("delivered_bytes") + total("repeated_bytes")) * 8e-3 / elapsed,
        "cwnd_segments": total("cwnd_sum") / acks,
        "window_segments": total("window_sum") / acks,
        "timeouts_per_s": total("timeouts") / elapsed,
        "fast_retransmits_per_s": total("fast_retransmits") / elapsed,
        "segment_loss": _lost(paths, total),
    }
    metrics |= _round_trips(paths, found)
    if any(path.session is not None for path in paths.flows):
        metrics |= _sessions(found, elapsed)
    if paths.members:
        metrics["cycle_s"] = elapsed * paths.members / max(1, sum(one.visits for one in found))
        metrics["slot_utilisation"] = sum(one.data_slots for one in found) * SLOT_S / elapsed
    losing = bool(total("lost").any())
    notes = {
        "method": "orbit of windows and queues: "
        + ("drop-tail sawtooth" if losing else "closed network, nothing lost"),
        "converged": True,
        "residual": max(max(one.residual, _ends(paths, one)) for one in found),
        "iterations": len(found),
        "warnings": _warnings(found, paths.jitter_s),
        "errors": "goodput 1 %, round trips 2 %, timeouts 5 % at the median, a factor 3 at four flows",
    }
    return metrics, notes


def _ends(paths: Paths, found: Followed) -> float:
    """Return the relative error for where counting began and ended.

    Several flows take turns in bursts of up to a window, of which one may just be over, or about to begin;
    so may the largest segment of a message.
    """
    several = len(paths.flows) > 1
    sizes = [[layout.user_bytes for layout in path.layouts] for path in paths.flows]
    largest = np.array([max(of_flow) / np.mean(of_flow) for of_flow in sizes])
    bursts = largest * [path.window if several else 1.0 for path in paths.flows]
    return uncertain_ends(float((found.of("ended") / bursts).min()))


def _lost(paths: Paths, total: Callable[[str], np.ndarray]) -> np.ndarray:
    """Return the share of each flow's segments that is lost; in the long run each of them is sent again.

    Where all segments are alike, those lost whose repetition has not been seen are left out: what arrives is
    then never less than what is delivered.
    """
    lost = total("lost") / np.maximum(total("ended"), 1.0)
    again = total("repeated_bytes")
    repeated = again / np.maximum(total("delivered_bytes") + again, 1.0)
    alike = [len({layout.user_bytes for layout in flow.layouts}) == 1 for flow in paths.flows]
    return np.where(alike, np.minimum(lost, repeated), lost)


def _sessions(found: list[Followed], elapsed: float) -> dict[str, np.ndarray]:
    """Return rate, mean, deviation and quantiles of the sessions of each flow (s); not a number without."""
    names = ("sessions_per_s", "session_time_s", "session_time_sd_s", *SESSION_QUANTILES)
    rows = []
    for index in range(len(found[0].sessions)):
        times = np.concatenate([one.sessions[index] for one in found])
        some = [times.size / elapsed, times.mean(), times.std(), *quantiles(times, 0.0)] if times.size else []
        rows.append(some or [np.nan] * len(names))
    return dict(zip(names, np.array(rows).T, strict=True))


def _warnings(found: list[Followed], jitter_s: float) -> list[str]:
    warnings = []
    if jitter_s > LONG_JITTER_S:
        warnings.append(
            f"run.jitter_s = {jitter_s:g} is a regular sequence here: round trips come out up to 22 % long "
            "at 0.2 s"
        )
    trips = [np.concatenate(one.rtts) for one in found]
    means = [float(some.mean()) for some in trips if some.size]
    if not means:
        warnings.append(
            "no segment gets through: buffers on the way hold less than one, or timers expire first"
        )
    elif max(means) - min(means) >= DISTINCT * max(means):
        warnings.append(
            f"several limit cycles: flows in and out of step, with round trips from {min(means):.3f} to "
            f"{max(means):.3f} s; their average is given, a run may stay in one of them"
        )
    if (residual := max(one.residual for one in found)) > UNSETTLED:
        warnings.append(
            f"the orbit does not repeat: two halves of it differ by {residual:.1%} in rate or round trip, "
            "and its averages are as uncertain"
        )
    return warnings


def _round_trips(paths: Paths, found: list[Followed]) -> dict[str, np.ndarray]:
    """Return mean, deviation and quantiles of the round trips of each flow (s)."""
    cycle = sum(one.elapsed for one in found) * paths.members / max(1, sum(one.visits for one in found))
    rows = []
    for index, path in enumerate(paths.flows):
        trips = np.concatenate([one.rtts[index] for one in found])
        if not trips.size:  # no segment gets through
            rows.append([np.nan] * (2 + len(QUANTILES)))
            continue
        spread = _spread_of_arq(paths, path, cycle)
        sd = sqrt(trips.var() + spread * trips.mean())
        rows.append([trips.mean(), sd, *quantiles(trips, spread)])
    return dict(zip(("rtt_s", "rtt_sd_s", *QUANTILES), np.array(rows).T, strict=True))


def _spread_of_arq(paths: Paths, path: FlowPath, cycle_s: float) -> float:
    """Return the variance (s) that ARQ adds to a second of service.

    A packet with error rate e takes a geometric number of cycles, of variance e/(1 - e)^2 around 1/(1 - e):
    for each second of uninterrupted service that is cycle e/(1 - e), by the renewal theorem.
    """
    worst = _error_rate(paths, path)
    return cycle_s * worst / (1.0 - worst)


def _error_rate(paths: Paths, path: FlowPath) -> float:
    """Return the mean error rate of the packets of a segment, on the worst radio link of its way."""
    rates = [
        np.mean([port.error_rates[kind] for kind, _ in path.layouts[0].packets])
        for port in (paths.ports[number] for number in path.forth)
        if not isinstance(port, OutsidePort)
    ]
    return float(max(rates, default=0.0))
