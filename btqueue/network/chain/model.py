"""A chain of Bluetooth hops under repetition, with a greedy TCP connection from end to end.

Every piconet has a central and two neighbours; a gateway between two piconets is a peripheral of both and
walks in. Nothing is lost on the radio, so the air carries all it can, and TCP is felt in the window alone:

1. `chain.radio`, `chain.link`: the states of the radio, and what a segment costs on a hop in each.
2. The rate: in one piconet that of the air, over several that of the slowest bridge (`chain.bridges`).
3. The window grows until a node overflows (`chain.window`); round trips follow from both by Little's law.

A radio of several states is quasi-stationary: each is answered as if it lasted, and rates are averaged over
time. Round trips go through the course of the radio (`radio.stretched`); their mean is the mean window over
the mean rate however fast the states change.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.chain.bridges import POLL, bridge_round
from btqueue.network.chain.covers import exchange_frames
from btqueue.network.chain.link import Hop
from btqueue.network.chain.radio import radio_course, stretched
from btqueue.network.chain.window import Queues, Sawtooth, in_one_piconet, over_bridges
from btqueue.network.mixtures import mixture
from btqueue.network.repetition import layers_s, segment_bytes
from btqueue.scenario import Scenario

KNEE = 4.0
"""Windows, in multiples of what is on its way in an idle chain, below which queues empty now and then."""
DEVIATIONS = 4.0
"""Deviations of a wait from its mean within which the timer may expire."""
FILLED = 1.4
"""Packets that wait for an exchange, in multiples of its frames, from which on it is filled."""
BRIEF = 3
"""Frames of an exchange that takes hardly longer than the polls around it."""
CROWDED = 1.5
"""Windows, in multiples of a node's buffer, beyond which other nodes than the first overflow as well."""
STALL_S = 10.0
"""Time of a segment on a hop from which on the connection hardly moves."""


class Flow(NamedTuple):
    """What the connection gets in a state of the radio: rates a second, times in seconds.

    Attributes:
        rate: segments delivered.
        wave: of the window.
        trips: round trips of the flights of `wave`.
        iterations, residual: of the waits of bridges.
    """

    rate: float
    wave: Sawtooth
    trips: np.ndarray
    iterations: int
    residual: float


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    course, hops = radio_course(scenario), scenario.network.hops
    shares = course.shares
    solve = _in_one_piconet if hops <= 2 else _over_bridges
    flows = [solve(scenario, hop) for hop in course.hops]
    rates = np.array([flow.rate for flow in flows])
    rate = float(shares @ rates)
    recoveries = np.array([flow.rate / flow.wave.delivered for flow in flows])
    lost = float(shares @ (recoveries * [flow.wave.losses for flow in flows]))
    means = np.array([np.average(flow.trips, weights=flow.wave.weights) for flow in flows])
    mean = float(shares @ (rates * means)) / rate
    state, times, often = stretched(course, [(flow.trips, flow.wave.weights) for flow in flows], rates)
    times = times * (mean / np.average(times, weights=often))
    spreads = np.array([hop.variance for hop in course.hops]) * (hops * SLOT_S**2)
    own = np.array([flow.trips.max() / flow.wave.flights.max() for flow in flows])
    swiftest = np.array([hop.least / hop.time for hop in course.hops])[state] * times
    rtt = mixture([(often, swiftest, times, spreads[state] * times / own[state])])
    kilobits = segment_bytes(scenario) * 8e-3
    carried = 2.0 * rates * [hop.carried for hop in course.hops]
    metrics = {
        "goodput_kbps": rate * kilobits,
        "throughput_kbps": (rate + lost) * kilobits,
        **rtt.metrics("rtt"),
        "rtt_s": mean,
        "window_segments": float(np.average([flow.wave.window for flow in flows], weights=shares * rates)),
        "fast_retransmits_per_s": float(shares @ recoveries),
        "segment_loss": lost / (rate + lost),
        "slot_utilisation": float(shares @ carried) * SLOT_S * hops / (2 * ((hops + 1) // 2)),
    }
    if not (expires := _may_expire(scenario, course.hops, flows)):
        metrics["timeouts_per_s"] = 0.0
    notes = {
        "method": "one piconet: rate of the air, sawtooth of the window"
        if hops <= 2
        else "several piconets: rounds of the bridges, and the window in front of them",
        "converged": True,
        "residual": max(flow.residual for flow in flows),
        "iterations": sum(flow.iterations for flow in flows),
        "warnings": _warnings(scenario, course.hops, flows, expires=expires),
    }
    return metrics, notes


def node_capacity(scenario: Scenario, passed: float = 0.0) -> float:
    """Return the segments that a node holds, and so many that it has passed on."""
    buffer = scenario.link.node_buffer_bytes
    if buffer is None:
        return inf
    headers = scenario.transport.header_bytes + scenario.link.l2cap_header_bytes
    return (buffer / (segment_bytes(scenario) + headers) + passed) // 1.0


def idle_trip_s(scenario: Scenario, hop: Hop) -> float:
    """Mean round trip (s) of a segment with nothing else in the chain.

    Every hop takes the frames of the segment and of its acknowledgement. Polls of an idle cycle of two
    members come every 2 POLL: a host waits for half of that, a bridge on its way up as well, and then answers
    a poll before its packets. A segment at the central waits for half of an idle turn of the bridge, which
    polls and is polled in vain once in each piconet, and for its first poll.
    """
    hops = scenario.network.hops
    bridges = (hops - 1) // 2
    turn = 2 * (POLL + 2 * POLL)
    each_way = POLL * (2 - hops % 2) + bridges * ((POLL + POLL) + (turn / 2 + POLL))
    return (hops * hop.alone + (2.0 * each_way if hops > 1 else 0.0)) * SLOT_S + 2.0 * layers_s(scenario)


def _in_one_piconet(scenario: Scenario, hop: Hop) -> Flow:
    """One or two hops: the air is never idle, but for the polls that end a visit under exhaustive service."""
    hops, limit = scenario.network.hops, scenario.transport.receive_window_segments
    segment = hops * hop.time * SLOT_S
    # what passes while an acknowledgement is in the layers of the hosts is in no node's buffer
    wave = in_one_piconet(hops, node_capacity(scenario, 2.0 * layers_s(scenario) / segment), limit)
    polls = 0.0
    if hops == 2 and scenario.polling.discipline == "exhaustive":
        # two visits: each ends with a poll in vain, its last acknowledgement is alone in its frames, and the
        # answers to what comes last are late by the layers' time
        polls = 2.0 * (POLL + 2.0 * min(hop.ack.frames, hop.data.frames)) * SLOT_S + 2.0 * layers_s(scenario)
    flight = float(np.average(wave.flights, weights=wave.weights))
    crossed = 1.0 + (wave.losses / wave.delivered / 2.0 if hops == 2 else 0.0)  # a lost one has crossed half
    each = max(segment * crossed + polls / flight, idle_trip_s(scenario, hop) / flight)
    return Flow(1.0 / each, wave, wave.flights * each, 0, 0.0)


def _over_bridges(scenario: Scenario, hop: Hop) -> Flow:
    """Several piconets: the rate of the slowest bridge, and the window in front of the bridges."""
    hops, limit = scenario.network.hops, scenario.transport.receive_window_segments
    bridges, frames = (hops - 1) // 2, exchange_frames(scenario)
    last = "none" if hops % 2 else "end"
    kinds = {
        ("end" if bridge == 0 else "bridge", last if bridge == bridges - 1 else "bridge")
        for bridge in range(bridges)
    }
    visit = scenario.polling.limit if scenario.polling.discipline == "e-limited" else inf
    turns = max((bridge_round(hop, frames, kind, visit) for kind in sorted(kinds)), key=lambda one: one.slots)
    packets = len(hop.data.packets)
    queues = Queues(
        count=2 * bridges,
        packets=packets,
        frames=frames,
        success=packets / hop.data.frames,
        rounds=2.0 * bridges + (1.0 - hops % 2),
        capacity=node_capacity(scenario),
    )
    idle = idle_trip_s(scenario, hop)
    wave = over_bridges(queues, limit)
    at_best = queues.mean / (turns.slots * SLOT_S)
    rates = np.array([min(at_best * queues.busy(flight), flight / idle) for flight in wave.flights])
    rate = float(wave.weights.sum() / (wave.weights / rates).sum())
    return Flow(rate, wave, wave.flights / rates, turns.iterations, turns.residual)


def _may_expire(scenario: Scenario, hops: tuple[Hop, ...], flows: list[Flow]) -> bool:
    """Whether the wait for a new acknowledgement may come to last as long as the least timeout.

    It is that of the next segment; over two hops that of a window, which goes as one; and where one has been
    lost in one piconet, of the window behind it and its repetition. Over bridges a repetition takes a round
    trip and a round, and the timer, of four deviations more, has time.
    """
    for hop, flow in zip(hops, flows, strict=True):
        whole = scenario.network.hops == 2 or (flow.wave.losses and scenario.network.hops == 1)
        passed = float(flow.wave.flights.max()) + 1.0 if whole else 1.0
        spread = (passed * hop.variance * scenario.network.hops) ** 0.5 * SLOT_S
        if passed / flow.rate + DEVIATIONS * spread > scenario.transport.min_rto_s:
            return True
    return False


def _warnings(scenario: Scenario, hops: tuple[Hop, ...], flows: list[Flow], *, expires: bool) -> list[str]:
    """Return in words where errors were measured to be larger than elsewhere."""
    found, several = [], scenario.network.hops > 2
    if max(hop.time for hop in hops) * SLOT_S > STALL_S:
        found.append(
            "a segment takes longer than ten seconds on a hop in the worst state of the radio: the "
            "connection stalls there, and expiries of its timer, which repeat what is under way, are left out"
        )
    elif expires and scenario.network.hops > 1:
        found.append(
            "waits for acknowledgements may last as long as the timer: its expiries are not in the model; "
            "goodput was up to 4 % too high"
        )
    limit, frames = scenario.transport.receive_window_segments, exchange_frames(scenario)
    if several and frames <= BRIEF:
        found.append(
            f"[polling] bridge_limit, limit = {frames}: polls in vain take much of a round of so few frames; "
            "goodput came out 4 to 19 % high"
        )
    overflowing = [flow for flow in flows if flow.wave.losses]
    if several and overflowing and limit > CROWDED * node_capacity(scenario):
        found.append(
            f"[link] node_buffer_bytes = {scenario.link.node_buffer_bytes} holds far less than the window: "
            "how its nodes overflow in turn is not in the model; round trips came out up to 35 % long"
        )
    idle = max(flow.rate * idle_trip_s(scenario, hop) for hop, flow in zip(hops, flows, strict=True))
    if several and limit < KNEE * idle:
        found.append(
            f"[transport] receive_window_segments = {limit} is {limit / idle:.2g} times what is on its way "
            f"in an idle chain: below {KNEE:g} times queues empty now and then, which is not in the model"
        )
    waiting = (
        limit * min(len(hop.data.packets) for hop in hops) / (scenario.network.hops - 2) if several else 0.0
    )
    if several and frames * FILLED > waiting:
        found.append(
            f"[polling] bridge_limit, limit = {frames}, with {waiting:.3g} packets of the window for each "
            "queue: exchanges end early, which the model does not see"
        )
    return found
