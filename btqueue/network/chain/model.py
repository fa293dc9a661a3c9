"""A chain of Bluetooth hops under repetition, with a greedy TCP connection from end to end.

Every piconet has a central and two neighbours; a gateway between two piconets is a peripheral of both and
walks in. Nothing is lost on the radio, so the air carries all it can, and TCP is felt in the window alone:

1. `chain.radio`, `chain.link`: the states of the radio, and what a segment costs on a hop in each.
2. One piconet (one or two hops): the sawtooth of the window is deterministic (`chain.orbit`).
3. Several piconets: bridges limit the rate (`chain.bridges`), and the window piles up at random in front of
   them until a node overflows (`chain.window`).

A radio of several states is quasi-stationary: each state is answered as if it lasted, rates are averaged over
time and round trips over the segments delivered. Where the states change within a round trip, the mean round
trip is still the mean window over the mean rate (Little's law), but its quantiles see an average.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.chain.bridges import WAITING_TOLERANCE, bridge_round
from btqueue.network.chain.link import HopService
from btqueue.network.chain.orbit import Line, Pace, Rounds, Tally, TimedSender, follow
from btqueue.network.chain.quantiles import quantile
from btqueue.network.chain.radio import RadioState, felt, radio_course
from btqueue.network.chain.sawtooth import sawtooth
from btqueue.network.chain.window import loop_of
from btqueue.scenario import Scenario

QUANTILES = {"rtt_p50_s": 0.5, "rtt_p90_s": 0.9, "rtt_p95_s": 0.95, "rtt_p99_s": 0.99}
RARE_TIMEOUTS = 1e-3
"""Timeouts per second from which on a warning says how rough they are."""
ERRORS = {
    True: "one piconet: goodput within 1 % and round trips 1 % in the median, 4 % and 5 % at most; timeouts "
    "up to a factor of ten low",
    False: "several piconets: goodput 1 % and round trips 1 % in the median, 6 % and 18 % at most, 26 % for "
    "three hops without errors; fast retransmits 20 %, segment loss a factor of two",
}
STALL_S = 10.0
"""Time of a segment on a hop from which on a warning says that the connection hardly moves."""


@dataclass(frozen=True)
class Flow:
    """What a connection gets in one state of the radio; rates per second, windows in segments.

    `rtts` are the means of the round trips in the phases of the sawtooth, with their deviations and weights.
    """

    goodput: float
    sends: float
    window: float
    cwnd: float | None
    fast_retransmits: float
    timeouts: float | None
    losses: float
    rtts: NDArray[np.float64]
    iterations: int
    residual: float

    @property
    def rtt(self) -> float:
        """Mean round trip (s)."""
        return float(np.average(self.rtts[0], weights=self.rtts[2]))


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    course = radio_course(scenario)
    states = course.states
    flows = [_flow(scenario, state.service) for state in states]
    shares = np.array([state.share for state in states])
    kilobits = min(scenario.transport.mss_bytes, scenario.traffic.message_bytes) * 8 / 1000
    rate = _over_time([flow.goodput for flow in flows], shares)
    sends = _over_time([flow.sends for flow in flows], shares)
    delivered = shares * [flow.goodput for flow in flows]
    mean = float(np.average([flow.rtt for flow in flows], weights=delivered))
    left = felt(course, [flow.rtt for flow in flows], mean)
    rtts = np.concatenate(
        [_seen(flow, mean, left, weight) for flow, weight in zip(flows, delivered, strict=True)], axis=1
    )
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
    return metrics, _notes(scenario, states, flows, left)


def _over_time(values: Sequence[float], shares: NDArray[np.float64]) -> float:
    return float(np.dot(values, shares))


def _flow(scenario: Scenario, service: HopService) -> Flow:
    """Answer one state of the radio."""
    if scenario.network.hops <= 2:
        return _in_one_piconet(scenario, service)
    return _over_bridges(scenario, service)


def _capacity(scenario: Scenario) -> float:
    """Segments that a node holds."""
    buffer = scenario.link.node_buffer_bytes
    if buffer is None:
        return inf
    transport = scenario.transport
    payload = min(transport.mss_bytes, scenario.traffic.message_bytes)
    return buffer // (payload + transport.header_bytes + scenario.link.l2cap_header_bytes)


def _in_one_piconet(scenario: Scenario, service: HopService) -> Flow:
    """The orbit, with and without expiries of the timer in recoveries, mixed by their chance."""
    pace = Pace(service, scenario.network.hops)
    plain = _orbit(scenario, pace, expires=False)
    chance = min(1.0, plain.expiries / plain.recoveries) if plain.recoveries else 0.0
    tallies = [(1.0 - chance, plain)]
    if chance > 0.0:
        tallies.append((chance, _orbit(scenario, pace, expires=True)))

    def total(name: str) -> float:
        """Sum over a period, of both kinds by their shares."""
        return sum(share * getattr(tally, name) / max(1, tally.recoveries) for share, tally in tallies)

    elapsed, seen = total("elapsed"), total("acknowledgements")
    rtts = np.concatenate(
        [_phases(tally, pace, share / max(1, tally.recoveries)) for share, tally in tallies], 1
    )
    return Flow(
        goodput=total("delivered") / elapsed,
        sends=total("sent") / elapsed,
        window=total("windows") / seen,
        cwnd=total("cwnds") / seen,
        fast_retransmits=(1.0 if plain.recoveries else 0.0) / elapsed,
        timeouts=chance / elapsed,
        losses=total("lost") / elapsed,
        rtts=rtts,
        iterations=plain.acknowledgements,
        residual=0.0,
    )


def _orbit(scenario: Scenario, pace: Pace, *, expires: bool) -> Tally:
    transport = scenario.transport
    sender = TimedSender(
        receive_window=transport.receive_window_segments,
        ssthresh=float(transport.initial_ssthresh_segments),
        min_rto=transport.min_rto_s,
        max_rto=transport.max_rto_s,
        rto=transport.initial_rto_s,
        backoff=transport.rto_backoff,
        cwnd=float(transport.initial_window_segments),
        noise=pace.noise,
    )
    pipe = (Line if pace.hops == 1 else Rounds)(pace, _capacity(scenario))
    return follow(sender, pipe, pace, expires=expires)


def _phases(tally: Tally, pace: Pace, share: float) -> NDArray[np.float64]:
    """Round trips of the orbit, the deviation that repetitions give each, and a common weight."""
    means, segments = np.array(tally.rtts).T
    return np.stack([means, np.sqrt(segments * pace.variance), np.full(len(means), share)])


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
        capacity=_capacity(scenario),
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
        rtts=np.stack([means, deviations, delivered]),
        iterations=found.iterations + wave.passes,
        residual=max(found.residual, wave.residual),
    )


def _seen(flow: Flow, mean: float, left: float, weight: float) -> NDArray[np.float64]:
    """Round trips of a state, drawn towards the mean of all by what they see of the other states."""
    means, deviations, weights = flow.rtts
    drawn = means * (mean + left * (flow.rtt - mean)) / flow.rtt
    return np.stack([drawn, deviations, weights / weights.sum() * weight])


def _notes(scenario: Scenario, states: tuple[RadioState, ...], flows: list[Flow], left: float) -> dict:
    method = {1: "one hop: orbit of the window", 2: "one piconet: orbit of rounds"}.get(
        scenario.network.hops, "several piconets: bridges' rounds and the window in front of them"
    )
    warnings = []
    if len(states) > 1:
        method += f"; {len(states)} states of the radio, of which a round trip sees {left:.0%}"
    if max(state.service.segment_slots for state in states) * SLOT_S > STALL_S:
        warnings.append(
            "a segment takes longer than ten seconds on a hop in the worst state of the radio: the "
            "connection stalls there, and expiries of its timer, which repeat what is under way, are left out"
        )
    if scenario.network.hops > 2 and scenario.transport.receive_window_segments < 12:
        warnings.append("the window is too small to keep the bridges busy: the goodput comes out low")
    if len(flows) == 1 and flows[0].timeouts and flows[0].timeouts > RARE_TIMEOUTS:
        warnings.append(
            "recoveries last about as long as the timer: the rate of timeouts is a rough estimate"
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
