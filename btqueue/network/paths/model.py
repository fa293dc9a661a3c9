"""Greedy TCP over outside links and at most one piconet, solved.

1. Nothing is lost: a closed network of windows (`stations.shares`).
2. A lone flow, its window larger than way and buffer, or with random losses: the renewal chain of the window
   (`btqueue.transport.window_cycles`), which overflow ends as a loss does. Flows that share a way with random
   losses see the others' segments as load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import floor, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.paths.routes import AIR, Way, Ways, segments_held, ways_of
from btqueue.network.stations.shares import NotSettled, waits
from btqueue.scenario import Scenario
from btqueue.transport.recovery import LossyPath
from btqueue.transport.window_cycles import LossyRates, lossy_rates, window_rates

Vector = NDArray[np.float64]

OFTEN_LOST = 0.1
"""Segments lost from which on timers expire in rows: goodput is 2 % too high there, 7 to 19 % at 0.24."""
FREQUENT_LOSS = 0.02
"""Loss from which on delayed acknowledgements of segments that are alone cost more than the chain says."""
LARGEST_CHAIN = 256
"""Segments of a window that random losses cut; states and steps of its chain grow with its cube."""
LONG_JITTER_S = 0.1
NEAR_TIMEOUT = 0.9
"""Round trips above this share of the least timeout are close to it."""
BUSY = 0.7
"""Use of a resource by flows with random losses, beyond which they are not independent."""
FULL_WIRE, FULL_AIR = 1.1, 2.0
"""Windows over a resource's share of the empty round trip, from which on its queues do not run empty."""
FREE_WIRE, FREE_AIR = 0.7, 0.3
"""The same, up to which bursts of several flows rarely meet."""
PART_OF_ROOM = 0.1
"""Of a node's room, that holds no whole segment."""
SWEEPS, SETTLED = 30, 1e-6


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: hardly anything gets through, windows grow too large, or no rates fit each other.
    """
    ways = ways_of(scenario)
    if len(ways.ways) == 1:
        (way,) = ways.ways
        path = _path(scenario, way)
        found = [_lone(path)]
        doubts = list(_doubts_of_a_way(scenario, way, path))
    elif any(way.loss or way.ack_loss for way in ways.ways):
        found, doubts = _beside_each_other(scenario, ways)
    else:
        found, doubts = _closed(scenario, ways)
    if scenario.run.jitter_s > LONG_JITTER_S:
        doubts.append(
            f"run.jitter_s = {scenario.run.jitter_s:g} is longer than {LONG_JITTER_S:g}: only its mean is in "
            "the model, and round trips have been 20 % too long"
        )
    return _metrics(ways, found), {
        "method": _method(ways, found),
        "converged": True,
        "residual": max(one.residual for one in found),
        "warnings": doubts,
    }


def _path(scenario: Scenario, way: Way, wait_s: float = 0.0, service_s: float | None = None) -> LossyPath:
    """Return what the window of a flow meets, with others' load on its way."""
    transport = scenario.transport
    shared = way.segments_per_ack > 1
    return LossyPath(
        loss=way.loss,
        segments_per_ack=way.segments_per_ack / (1.0 - way.ack_loss),
        window=way.window,
        room=way.room,
        base_s=way.base_s + wait_s,
        service_s=service_s or 1.0 / way.rate,
        variant=way.variant,
        min_rto_s=transport.min_rto_s,
        max_rto_s=transport.max_rto_s,
        backoff=transport.rto_backoff,
        ack_delay_s=transport.ack_delay_s if shared else 0.0,
        gathered=way.segments_per_ack,
        ack_loss=way.ack_loss,
    )


def _lone(path: LossyPath) -> LossyRates:
    """Return the rates of a flow on its own.

    Raises:
        NoConvergence: windows grow too large.
    """
    if path.loss == 0.0 and path.window <= path.room:
        return window_rates(path)
    if path.loss > 0.0 and (top := min(path.window, path.room)) > LARGEST_CHAIN:
        raise NoConvergence(
            f"windows may open to {top:.0f} segments, and lose some at random: their chain is solved up to "
            f"{LARGEST_CHAIN}"
        )
    return lossy_rates(path)


def _closed(scenario: Scenario, ways: Ways) -> tuple[list[LossyRates], list[str]]:
    """Return the rates of several flows of which nothing is lost."""
    windows = np.array([float(way.window) for way in ways.ways])
    service = np.array([way.service_s for way in ways.ways])
    empty = np.array([_empty_s(_path(scenario, way)) for way in ways.ways])
    try:
        waiting = waits(windows, empty, service)
    except NotSettled as error:
        raise NoConvergence("waits at several full resources were not found") from error
    trips = empty + (service > 0.0) @ waiting
    found = [
        LossyRates(window / trip, 0.0, 0.0, 0.0, window, np.array([trip]), np.ones(1), 0.0, 1)
        for window, trip in zip(windows, trips, strict=True)
    ]
    return found, list(_doubts_of_sharing(ways, windows / trips, trips, waiting))


def _empty_s(path: LossyPath) -> float:
    """Return the round trip of a window that meets no full resource, waits for delayed ACKs included."""
    return path.window / window_rates(replace(path, service_s=path.base_s * 1e-6)).goodput


def _beside_each_other(scenario: Scenario, ways: Ways) -> tuple[list[LossyRates], list[str]]:
    """Return the rates of several flows with random losses: each finds the others as a load on its way.

    Poisson arrivals and constant service are supposed of the others: a resource that they use to a share u
    takes s / (1 - u) for a segment, which waits u s / 2 (1 - u) for theirs (Pollaczek & Khinchine).
    """
    service = np.array([way.service_s for way in ways.ways])
    rates = np.zeros(len(ways.ways))
    found: list[LossyRates] = []
    for sweep in range(SWEEPS):
        before, known = rates, {}
        use = rates @ service
        found = []
        for way, own, rate in zip(ways.ways, service, rates, strict=True):
            others = np.minimum(use - rate * own, 0.95)
            stretched = own / (1.0 - others)
            wait = float((others * own / (2.0 * (1.0 - others))).sum())
            path = _path(scenario, way, wait, float(stretched.max()))
            if path not in known:
                known[path] = _lone(path)
            found.append(known[path])
        now = np.array([one.goodput / (1.0 - one.losses) for one in found])
        rates = now if sweep == 0 else (now + before) / 2.0
        if np.abs(rates - before).max() <= SETTLED * rates.max():
            break
    else:
        raise NoConvergence("flows with random losses found no rates that fit each other")
    doubts = list(_doubts_of_a_way(scenario, ways.ways[0], _path(scenario, ways.ways[0])))
    if (busiest := float((rates @ service).max())) > BUSY:
        doubts.append(
            f"flows with random losses fill a shared resource to {busiest:.0%}: above {BUSY:.0%} they are "
            "not independent"
        )
    return found, doubts


# --------------------------------------------------------------------------------------------------- doubts


def _doubts_of_a_way(scenario: Scenario, way: Way, path: LossyPath) -> Iterator[str]:
    """Yield what makes a lone flow's answer uncertain."""
    losing = way.loss > 0.0 or way.ack_loss > 0.0 or path.window > path.room
    if not losing:
        return
    if path.base_s > NEAR_TIMEOUT * path.min_rto_s:
        yield (
            f"the round trip of the empty path, {path.base_s:.2f} s, is close to the least timeout, "
            f"{path.min_rto_s:g} s: timers expire too soon, and their rate is least certain"
        )
    if path.loss > OFTEN_LOST:
        yield (
            f"{path.loss:.2g} of the segments are lost: timers expire in rows, and goodput comes out 2 to "
            "19 % too high"
        )
    if path.ack_delay_s > path.base_s and path.loss >= FREQUENT_LOSS:
        yield (
            f"{path.loss:.2g} of the segments are lost, and acknowledgements of those that are alone wait "
            "longer than a round trip: goodput comes out up to 20 % too high"
        )
    if way.loss > 0.0 and min(path.window, path.room) * path.service_s > path.min_rto_s:
        yield (
            "round trips grow longer than the least timeout: which timers expire in a recovery depends on "
            "how round trips have just deviated, and their rate is least certain"
        )
    if path.ack_delay_s > 0.0 and scenario.transport.ack_every_segments > 2:
        yield (
            f"every {scenario.transport.ack_every_segments} segments share an acknowledgement: the waits of "
            "those left over are those of two, and round trips and goodput up to 10 % low"
        )
    if path.window > path.room and way.in_packets:
        yield (
            "the queue that overflows counts packets: of segments that find no place in part, the rest is "
            "carried in vain, which is not in the model"
        )
    fit = segments_held(scenario, way.kilobits * 125.0)
    overflows = path.window > path.room and fit < inf and way.places[way.bottleneck] == floor(fit) - 0.5
    if overflows and fit % 1.0 > PART_OF_ROOM * fit:
        given = f"link.node_buffer_bytes = {scenario.link.node_buffer_bytes}"
        yield (
            f"{given} has room for {fit:.2f} segments, whose part is of use while another one is sent: that "
            "is not in the model; round trips were 24 % short with room for 3.95 segments, 15 % with 7.90"
        )
    # slow start lets out two segments at each acknowledgement until the window is half of the largest
    half = min(path.window, path.room) / 2.0
    with np.errstate(divide="ignore"):
        queue = half * (1.0 - path.service_s / (2.0 * way.service_s))
    if ((queue > way.places) & (way.service_s > 0.0)).any():
        yield (
            f"slow starts after timeouts let {queue.max():.0f} segments pile up, more than a buffer on the "
            "way holds: what that loses is not in the model"
        )
    others = np.delete(way.service_s, way.bottleneck)
    if path.window > path.room and (others > (1.0 - 2.0 / path.room) * path.service_s).any():
        yield (
            "two resources are nearly as slow as each other: segments wait before both, and the buffer "
            "of the slower one overflows later than the model says"
        )


def _doubts_of_sharing(ways: Ways, rates: Vector, trips: Vector, waiting: Vector) -> Iterator[str]:
    """Yield what makes shares of resources uncertain."""
    yield from _doubts_of_the_knee(ways, waiting)
    for number in np.flatnonzero(waiting):
        sharing = [n for n, way in enumerate(ways.ways) if way.service_s[number] > 0.0]
        places = min(ways.ways[n].places[number] for n in sharing)
        queue = float(sum(rates[n] * waiting[number] for n in sharing))
        if queue > places:
            yield (
                f"windows overflow a buffer together: {queue:.0f} segments would wait in {places:.0f} "
                "and flows lose in or out of step"
            )
        ports = {ways.ways[n].ports[number] for n in sharing}
        alike = np.ptp(rates[sharing]) <= 1e-6 * rates[sharing].max()
        if len(ports) > 1 and not (alike and np.ptp(trips[sharing]) <= 1e-6 * trips[sharing].max()):
            yield "unlike flows share a full resource from several queues, which are served in turn"


def _doubts_of_the_knee(ways: Ways, waiting: Vector) -> Iterator[str]:
    """Yield what is neither full nor free: there bursts of several flows meet, or miss each other."""
    loads = np.sum([way.window / way.base_s * way.service_s for way in ways.ways], axis=0)
    full = bool(waiting.any())
    slowest = int(np.argmax(waiting if full else loads))
    air = ways.resources[slowest] == AIR
    if full and loads[slowest] < (least := FULL_AIR if air else FULL_WIRE):
        yield (
            f"windows load {ways.resources[slowest]} to {loads[slowest]:.2g} of its rate: below {least:g} "
            "queues run empty while bursts of several flows meet, and goodput has been up to 20 % too high"
        )
    for number, load in enumerate(loads):
        most = FREE_AIR if ways.resources[number] == AIR else FREE_WIRE
        if not full and load > most:
            yield (
                f"windows load {ways.resources[number]} to {load:.2g} of its rate: above {most:g} bursts "
                "of several flows meet, and goodput has been up to 15 % too high"
            )


# -------------------------------------------------------------------------------------------------- metrics

QUANTILES = {"rtt_p50_s": 0.5, "rtt_p90_s": 0.9, "rtt_p95_s": 0.95, "rtt_p99_s": 0.99}
SPREAD = ndtri((np.arange(20) + 0.5) / 20.0)
"""A normal variable at the middles of twenty equal shares of chance."""


def _metrics(ways: Ways, found: list[LossyRates]) -> dict[str, Any]:
    kilobits = np.array([way.kilobits for way in ways.ways])
    goodput, losses = (np.array([getattr(one, name) for one in found]) for name in ("goodput", "losses"))
    trips = [_round_trips(one, way.arq_s) for one, way in zip(found, ways.ways, strict=True)]
    metrics: dict[str, Any] = {
        "goodput_kbps": goodput * kilobits,
        "throughput_kbps": goodput / (1.0 - losses) * kilobits,
        "window_segments": np.array([one.window for one in found]),
        "timeouts_per_s": np.array([one.timeouts for one in found]),
        "fast_retransmits_per_s": np.array([one.fast_retransmits for one in found]),
        "segment_loss": losses,
    }
    metrics |= dict(zip(("rtt_s", "rtt_sd_s", *QUANTILES), np.array(trips).T, strict=True))
    if AIR in ways.resources:
        sent = goodput / (1.0 - losses)
        metrics["slot_utilisation"] = float(sent @ [use.filled for use in ways.air]) * SLOT_S
        if ways.one_frame:
            visits = float(sent @ [use.exchanges for use in ways.air])
            idle = 1.0 - float(sent @ [use.slots for use in ways.air]) * SLOT_S
            metrics["cycle_s"] = ways.members / (visits + max(idle, 0.0) / (2.0 * SLOT_S))
    return metrics


def _round_trips(found: LossyRates, arq_s: float) -> list[float]:
    """Return mean, deviation and quantiles of the round trips (s); ARQ gives each a normal spread."""
    spread = np.sqrt(arq_s * found.rtts)
    trips = (found.rtts[:, None] + spread[:, None] * SPREAD).ravel()
    weights = np.repeat(found.weights / found.weights.sum(), len(SPREAD)) / len(SPREAD)
    mean = float(found.rtts @ found.weights / found.weights.sum())
    deviation = float(np.sqrt(np.maximum(weights @ (trips - mean) ** 2, 0.0)))
    order = np.argsort(trips)
    below = np.cumsum(weights[order]) - 0.5 * weights[order]
    return [mean, deviation, *np.interp(list(QUANTILES.values()), below, trips[order])]


def _method(ways: Ways, found: list[LossyRates]) -> str:
    if any(way.loss or way.ack_loss for way in ways.ways):
        return "random loss: renewal chain of the window"
    losing = any(one.losses for one in found)
    return "drop-tail sawtooth: renewal chain of the window" if losing else "closed network, nothing lost"
