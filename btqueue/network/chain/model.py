"""A chain of Bluetooth hops under repetition, with a greedy TCP connection from end to end.

Every piconet has a central and two neighbours; a gateway between two piconets is a peripheral of both and
walks in. Nothing is lost on the radio, so the air carries all it can, and TCP is felt in the window alone:

1. `chain.radio`, `chain.link`: the states of the radio, and what a segment costs on a hop in each.
2. One piconet (one or two hops): the sawtooth of the window is deterministic (`chain.orbit`).
3. Several piconets: bridges limit the rate (`chain.bridges`), and the window piles up at random in front of
   them until a node overflows (`chain.window`).

A radio of several states is quasi-stationary: each state is answered as if it lasted, and rates are averaged
over time. Round trips go through the course of the radio (`radio.stretched`), so that their mean is the mean
window over the mean rate (Little's law) however fast the states change.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.chain.bridges import WAITING_TOLERANCE, bridge_round
from btqueue.network.chain.flow import Flow, capacity
from btqueue.network.chain.link import HopService
from btqueue.network.chain.one_piconet import flows_in_one_piconet
from btqueue.network.chain.quantiles import quantile
from btqueue.network.chain.radio import RadioState, radio_course, stretched
from btqueue.network.chain.sawtooth import sawtooth
from btqueue.network.chain.window import loop_of
from btqueue.scenario import Scenario

QUANTILES = {"rtt_p50_s": 0.5, "rtt_p90_s": 0.9, "rtt_p95_s": 0.95, "rtt_p99_s": 0.99}
RARE_TIMEOUTS = 1e-3
"""Timeouts per second from which on a warning says how rough they are."""
ERRORS = {
    True: "one piconet: goodput and round trips within 0.1 % in the median, 2 % and 5 % at most; timeouts "
    "12 % in the median, 30 % at most",
    False: "several piconets: goodput and round trips 1.5 % in the median, 5 % at most; "
    "fast retransmits 6 % in the median, segment loss 20 %",
}
STEADY = 0.98
"""Share of the packets that get through from which on hardly anything is random in front of a bridge."""
LOPSIDED, OVERFLOWING, RANDOMLY_OVERFLOWING, SEVERAL_BRIDGES = 1.2, 1.25, 1.5, 1.7
"""Windows, in multiples of a node's buffer, beyond which overflows are not a random walk's: with one bridge
on a radio that hardly fails (three hops, or a segment of a whole exchange; else), on one that fails, and with
several bridges."""
FILLED = 1.4
"""Packets that wait for an exchange, in multiples of its frames, from which on it is filled."""
STALL_S = 10.0
"""Time of a segment on a hop from which on a warning says that the connection hardly moves."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    course = radio_course(scenario)
    states = course.states
    if scenario.network.hops <= 2:
        flows = flows_in_one_piconet(scenario, course)
    else:
        flows = [_over_bridges(scenario, state.service) for state in states]
    shares = np.array([state.share for state in states])
    kilobits = min(scenario.transport.mss_bytes, scenario.traffic.message_bytes) * 8 / 1000
    rate = _over_time([flow.goodput for flow in flows], shares)
    sends = _over_time([flow.sends for flow in flows], shares)
    delivered = shares * [flow.goodput for flow in flows]
    rtts = stretched(course, [flow.rtts for flow in flows], [flow.goodput for flow in flows])
    mean = _mean_trip(flows, shares)
    rtts = rtts * np.array([[mean / np.average(rtts[0], weights=rtts[2])]] * 2 + [[1.0]])
    carried = [
        2 * flow.goodput * state.service.carried_slots for flow, state in zip(flows, states, strict=True)
    ]
    hops, piconets = scenario.network.hops, (scenario.network.hops + 1) // 2
    metrics = {
        "goodput_kbps": rate * kilobits,
        "throughput_kbps": sends * kilobits,
        "rtt_s": mean,
        "rtt_sd_s": sqrt(float(np.average(rtts[1] ** 2 + (rtts[0] - mean) ** 2, weights=rtts[2]))),
        **{name: quantile(rtts, level) for name, level in QUANTILES.items()},
        "window_segments": float(np.average([flow.window for flow in flows], weights=delivered)),
        "fast_retransmits_per_s": _over_time([flow.fast_retransmits for flow in flows], shares),
        "segment_loss": _over_time([flow.losses for flow in flows], shares) / sends,
        "slot_utilisation": _over_time(carried, shares) * SLOT_S * hops / (2 * piconets),
    }
    for name in ("timeouts", "cwnd"):
        values = [getattr(flow, name) for flow in flows]
        if None not in values:
            metrics[{"timeouts": "timeouts_per_s", "cwnd": "cwnd_segments"}[name]] = _over_time(
                values, shares
            )
    return metrics, _notes(scenario, states, flows)


def _mean_trip(flows: Sequence[Flow], shares: NDArray[np.float64]) -> float:
    """Return the mean round trip (s): that of each state, as often as segments are delivered in it.

    It is the mean window over the mean rate, and exact; the steps of the radio's course are too coarse for
    that by some 1e-5.
    """
    delivered = shares * [flow.goodput for flow in flows]
    means = [float(np.average(flow.rtts[0], weights=flow.rtts[2])) for flow in flows]
    return float(np.average(means, weights=delivered))


def _over_time(values: Sequence[float], shares: NDArray[np.float64]) -> float:
    return float(np.dot(values, shares))


def _over_bridges(scenario: Scenario, service: HopService) -> Flow:
    """The rate of the slowest bridge, and the window in front of the bridges."""
    hops = scenario.network.hops
    bridges = (hops - 1) // 2
    frames = scenario.polling.bridge_limit or scenario.polling.limit
    last = "none" if hops % 2 else "end"
    kinds = {
        ("end" if bridge == 0 else "bridge", last if bridge == bridges - 1 else "bridge")
        for bridge in range(bridges)
    }
    found = max((bridge_round(service, frames, kind) for kind in sorted(kinds)), key=lambda one: one.slots)
    if found.residual > WAITING_TOLERANCE:
        raise NoConvergence(
            f"the waits of a bridge did not settle in {found.iterations} iterations, "
            f"residual {found.residual:.1e}"
        )
    success = len(service.data) / service.data_frames
    loop = loop_of(
        pieces=len(service.data),
        success=success,
        frames=frames,
        queues=2 * bridges,
        rounds=2.0 * bridges + (1.0 - hops % 2),
        capacity=capacity(scenario),
        limit=scenario.transport.receive_window_segments,
    )
    wave = sawtooth(loop)
    seconds = found.slots * SLOT_S * loop.merged
    seen = wave.delivered > 0.0
    delivered, windows = wave.delivered[seen], wave.windows[seen]
    means = windows * wave.time[seen] / delivered * seconds
    deviations = means * np.sqrt((1.0 - success) / (len(service.data) * windows))
    return Flow(
        goodput=delivered.sum() / seconds,
        sends=(delivered.sum() + wave.losses) / seconds,
        window=float(np.average(windows, weights=delivered)),
        cwnd=None,
        fast_retransmits=wave.recoveries / seconds,
        timeouts=None,
        losses=wave.losses / seconds,
        rtts=np.stack([means, deviations, wave.timed[seen]]),
        iterations=found.iterations + wave.passes,
        residual=max(found.residual, wave.residual),
    )


def _exchanges(scenario: Scenario, states: tuple[RadioState, ...]) -> list[str]:
    """Return a warning where a visit of a bridge takes a single frame, or more than wait for it."""
    polling, hops = scenario.polling, scenario.network.hops
    frames = polling.bridge_limit or polling.limit
    key = "polling.limit" if polling.bridge_limit is None else "polling.bridge_limit"
    if frames == 1:
        return [f"{key} = 1: a bridge changes piconet after each frame; goodput comes out 9 to 19 % high"]
    pieces = min(len(state.service.data) for state in states)
    waiting = scenario.transport.receive_window_segments * pieces / (hops - 2)
    if frames * FILLED <= waiting:
        return []
    return [
        f"{key} = {frames}, with {waiting:.3g} packets of the window for each queue: exchanges end early, "
        "which the model does not see; goodput was 24 % too low to 84 % too high"
    ]


def _overflow(scenario: Scenario, states: tuple[RadioState, ...]) -> list[str]:
    """Return a warning where losses in front of the bridges are not those of a random walk."""
    hops, places = scenario.network.hops, capacity(scenario)
    window = scenario.transport.receive_window_segments
    services = [state.service for state in states]
    steady = max(len(service.data) / service.data_frames for service in services) > STEADY
    whole = max(len(service.data) for service in services) >= (
        scenario.polling.bridge_limit or scenario.polling.limit
    )
    limit = RANDOMLY_OVERFLOWING if not steady else LOPSIDED if hops == 3 or whole else OVERFLOWING
    if window <= places * (SEVERAL_BRIDGES if hops > 4 else limit):
        return []
    return [
        f"a window of {window} segments is {window / places:.2f} times the {places:g} that fit into "
        f"link.node_buffer_bytes = {scenario.link.node_buffer_bytes}: nodes overflow more often than the "
        "model says, up to a hundred times where the radio hardly fails; round trips come out up to 38 % "
        "long at 1.3 times, 67 % at 1.7 and 145 % at 2.5"
    ]


def _notes(scenario: Scenario, states: tuple[RadioState, ...], flows: list[Flow]) -> dict:
    method = {1: "one hop: orbit of the window", 2: "one piconet: orbit of rounds"}.get(
        scenario.network.hops, "several piconets: bridges' rounds and the window in front of them"
    )
    warnings = []
    if len(states) > 1:
        method += f"; {len(states)} states of the radio"
    if max(state.service.segment_slots for state in states) * SLOT_S > STALL_S:
        warnings.append(
            "a segment takes longer than ten seconds on a hop in the worst state of the radio: the "
            "connection stalls there, and expiries of its timer, which repeat what is under way, are left out"
        )
    if scenario.network.hops > 2 and scenario.transport.receive_window_segments < 12:
        warnings.append("the window is too small to keep the bridges busy: the goodput comes out low")
    if scenario.network.hops > 2:
        warnings += _exchanges(scenario, states) + _overflow(scenario, states)
    if any(flow.timeouts and flow.timeouts > RARE_TIMEOUTS for flow in flows):
        warnings.append(
            "waits for acknowledgements last about as long as the timer: timeouts are 3 to 30 % off"
        )
    residual = max(flow.residual for flow in flows)
    return {
        "method": method,
        "converged": residual <= WAITING_TOLERANCE,
        "residual": residual,
        "iterations": sum(flow.iterations for flow in flows),
        "warnings": warnings,
        "errors": ERRORS[scenario.network.hops <= 2],
    }
