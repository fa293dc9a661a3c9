"""Loads over outside links and a piconet, solved: the air by `network.piconet`, wires by queues in a row.

The piconet's model answers for flows that begin and end at the gateway. Wires add their delays, the time of
a segment and of its acknowledgement on each, and waits (`open_paths.waits`). A load that the way or the
window does not carry keeps the sender busy: it is a greedy one, which `network.paths` answers for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.open_paths.reduced import Reduced, reduced, routes_of
from btqueue.network.open_paths.waits import (
    Streams,
    Visits,
    crossed,
    in_a_row,
    loads,
    visits_of,
    waits,
    within_windows,
)
from btqueue.network.overload import offered_loads
from btqueue.network.paths import model as greedy_paths
from btqueue.network.paths.covers import PATHS, not_paths
from btqueue.network.piconet import model as piconet
from btqueue.network.piconet.sources import Answers, Source, answers_of, batches
from btqueue.queueing._precision import in_float64
from btqueue.scenario import Scenario
from btqueue.scenario.bounds import law_of, segments_of, window_of
from btqueue.scenario.scope import Scope, problems_of
from btqueue.scenario.topology import topology

Vector = NDArray[np.float64]

LIGHT = 1e-3
"""Share of the loads at which nothing waits."""
CARRIED = 0.995
"""Share of a load that is all of it."""
HOSTS_LAYERS = 2.0
"""Times that a segment passes a layer at a host: down and up."""
FULL = 0.98
"""Load of a medium from which on its queue is without end."""
SURELY = 1.1
"""Loads over a greedy sender's goodput from which on a sender is always busy."""
RARE = 1e-4
"""Share of the segments that overflow a buffer, from which on they count."""
MUCH = 0.1
"""Share of the waits that windows keep at senders, up to which how a window is filled makes no difference."""
DEVIATIONS = 4.0
"""Of round trips, that a timer waits beyond their mean (RFC 6298)."""
UNSTEADY = 0.2
"""Share of waits in a round trip up to which timers follow it closely."""


HUB = 0.2
"""Use of a piconet from which on several flows by one peripheral are less certain."""


class Air(NamedTuple):
    """What the air adds, shape (flows,): round trip, delay, and the waits of the round trip in both."""

    rtt_s: Vector
    delay_s: Vector
    wait_s: Vector
    metrics: dict[str, Any]
    warnings: list[str]
    utilisation: float


@in_float64
def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: the load is not carried, and greedy senders in its place have no answer.
    """
    visits, streams = visits_of(scenario), streams_of(scenario)
    flows = len(streams.rate)
    media = {str(name): float(loads(visits, streams)[visits.medium == name].sum()) for name in visits.medium}
    busiest = max(media.values())
    if busiest >= FULL:
        return _not_carried(scenario)
    air = _air(scenario, streams, visits.lone_s(flows))
    if air is None:
        return _not_carried(scenario)
    answered = scenario.transport.protocol == "tcp"
    by_stream, passing = waits(visits, streams), crossed(scenario, visits)
    windows = np.array([float(window_of(scenario, flow)) for flow in topology(scenario).flows])
    lone = air.rtt_s - air.wait_s + visits.lone_s(flows)
    in_network = within_windows(visits, streams, by_stream, windows, lone) if answered else by_stream
    waiting, before = (
        np.array(
            [
                in_a_row(visits, waited, (visits.flow == flow) & which, air.wait_s[flow], passing)
                for flow in range(flows)
            ]
        )
        for waited, which in ((in_network, np.ones_like(visits.back)), (by_stream, ~visits.back))
    )
    rtt = air.rtt_s + visits.lone_s(flows) + waiting
    mine = visits.flow[:, None] == np.arange(flows)
    cut = 1.0 - (in_network.sum(axis=1) @ mine) / np.maximum(by_stream.sum(axis=1) @ mine, 1e-12)
    if answered and (streams.rate * rtt >= windows).any():
        return _not_carried(scenario)
    delay_s = air.delay_s + visits.lone_s(flows, back=False) + before
    metrics: dict[str, Any] = {
        "goodput_kbps": offered_loads(scenario),
        "throughput_kbps": offered_loads(scenario),
        "delay_s": delay_s + (wait_for_window(streams.rate * rtt, windows) * rtt if answered else 0.0),
        "segment_loss": np.zeros(flows),
    } | {name: air.metrics[name] for name in ("slot_utilisation", "cycle_s") if name in air.metrics}
    if answered:
        metrics |= {"rtt_s": rtt} | {
            name: np.zeros(flows) for name in ("timeouts_per_s", "fast_retransmits_per_s")
        }
    return metrics, {
        "method": "queueing: media in a row before and behind a piconet of polled queues",
        "converged": True,
        "residual": 0.0,
        "utilisation": max(busiest, air.utilisation),
        "warnings": [*air.warnings, *_of_cuts(cut), *_doubts(scenario, visits, streams, rtt, lone)],
    }


def wait_for_window(under_way: Vector, window: Vector) -> Vector:
    """Return the mean wait for a window, in round trips: each of its segments is a server for one (M/D/W).

    Half of the wait of M/M/W (A. K. Erlang), which is exact for a window of one. The waits of a segment on
    its way do not become shorter here: message delays of a window of two, half used, are 5 % long.

    Args:
        under_way: mean segments, less than the window.
        window: segments.
    """
    below, blocked = pdtr(window - 1.0, under_way), pdtr(window, under_way)
    lost = 1.0 - below / blocked
    busy = lost / (1.0 - under_way / window * (1.0 - lost))
    return busy / 2.0 / (window - under_way)


def streams_of(scenario: Scenario) -> Streams:
    """Return what the flows of a scenario send, if their loads are carried."""
    plan, transport = topology(scenario), scenario.transport
    number = np.array([segments_of(scenario, flow).number for flow in plan.flows], float)
    kilobits = np.array([segments_of(scenario, flow).kilobits for flow in plan.flows])
    laws = np.array([law_of(scenario, flow) for flow in plan.flows])
    messages = offered_loads(scenario) / kilobits
    source = Source(
        *(jnp.asarray(one) for one in ((laws == "ibp") * 1.0, (laws == "periodic") * 1.0, number))
    )
    ahead = batches(source, jnp.asarray(scenario.traffic.scv), jnp.asarray(messages * SLOT_S)).ahead
    share = _answers(scenario, messages * number).share if transport.protocol == "tcp" else 0.0 * number
    return Streams(messages * number, np.asarray(share), np.asarray(ahead), np.asarray(source.regular))


def _answers(scenario: Scenario, rates: Vector) -> Answers:
    """Return what receivers make of so many segments a second, shape (flows,)."""
    transport = scenario.transport
    clock = transport.ack_clock if transport.delayed_ack else ""
    every, delay_s, own_s = (
        jnp.asarray(float(x)) for x in (transport.ack_every_segments, transport.ack_delay_s, 0.0)
    )
    number = [float(segments_of(scenario, flow).number) for flow in topology(scenario).flows]
    return answers_of(jnp.asarray(rates), jnp.asarray(number), every, delay_s, own_s, clock)


def _air(scenario: Scenario, streams: Streams, outside_s: Vector) -> Air | None:
    """Return what the air adds; None if it does not carry the loads.

    Args:
        scenario: with its outside links.
        streams: what its flows send.
        outside_s: that a lone segment and its acknowledgement take outside, shape (flows,).

    Raises:
        NoConvergence: the model of a piconet has no answer.
    """
    flows = len(streams.rate)
    held = np.asarray(_answers(scenario, streams.rate).wait_s)
    alone = reduced(scenario)
    if alone is None:
        jitter = np.full(flows, scenario.run.jitter_s)
        return Air(held + jitter, jitter / 2.0, np.zeros(flows), {}, [], 0.0)
    crossing, away_s = np.array(alone.flows), np.where(_ends_outside(scenario), outside_s, 0.0)
    found = {later_s: _on_air(alone, later_s) for later_s in dict.fromkeys(away_s[crossing].tolist())}
    metrics, _, notes = next(iter(found.values()))
    if (metrics["goodput_kbps"] < CARRIED * offered_loads(scenario)[crossing]).any():
        return None
    name = "rtt_s" if scenario.transport.protocol == "tcp" else "delay_s"
    rtt, wait = held + scenario.run.jitter_s, np.zeros(flows)
    delay = np.full(flows, scenario.run.jitter_s / 2.0)
    held_light = np.asarray(_answers(scenario, LIGHT * streams.rate).wait_s)
    for later_s, (loaded, unloaded, _) in found.items():
        if lacks := [one for one in (name, "delay_s") if one not in loaded or one not in unloaded]:
            raise NoConvergence(f"the model of a piconet has no {lacks[0]} here")
        chosen = away_s[crossing] == later_s
        kept = (held - held_light)[crossing] if name == "rtt_s" else 0.0
        waited = np.maximum(loaded[name] - unloaded[name] - kept, 0.0)
        round_trip, there = (
            loaded[name] - (2.0 if name == "rtt_s" else 1.0) * later_s,
            loaded["delay_s"] - later_s,
        )
        for values, new in ((rtt, round_trip), (delay, there), (wait, waited)):
            values[crossing[chosen]] = np.broadcast_to(new, crossing.shape)[chosen]
    use = float(notes.get("utilisation", 0.0))
    warnings = list(notes["warnings"])
    if _by_one_peripheral(alone.scenario) and use > HUB:
        warnings.append(
            f"several flows pass the central from or to the same peripheral: above {HUB:.0%} of what the "
            "piconet carries their round trips were up to 16 % off, since one hop spaces out what waits for "
            "the other"
        )
    return Air(rtt, delay, wait, metrics, warnings, use)


def _ends_outside(scenario: Scenario) -> NDArray[np.bool_]:
    """Return of which flows acknowledgements come to the piconet from outside, shape (flows,)."""
    return np.array([route[-1].kind == "outside" for route in routes_of(topology(scenario))])


def _on_air(alone: Reduced, later_s: float) -> tuple[dict, dict, dict]:
    """Return metrics of a piconet with its loads, and with light ones, and the notes of the first.

    `later_s`: so much later than their segments acknowledgements come, as if layers of both hosts held them.
    """
    answered = alone.scenario.transport.protocol == "tcp"
    held = {"transport.tcp_delay_s": later_s / HOSTS_LAYERS} if later_s and answered else {}
    metrics, notes = piconet.answer(alone.scenario.changed(held))
    unloaded, _ = piconet.answer(_light(alone).changed(held))
    return metrics, unloaded, notes


def _by_one_peripheral(scenario: Scenario) -> bool:
    """Whether several flows from station to station begin, or end, at the same peripheral."""
    plan = topology(scenario)
    relayed = [flow for flow in plan.flows if len(plan.route(flow.source, flow.target)) > 1]
    ends = [[flow.source for flow in relayed], [flow.target for flow in relayed]]
    return any(len(set(one)) < len(one) for one in ends)


def _light(alone: Reduced) -> Scenario:
    """Return a piconet in which single segments come so seldom that none waits."""
    scenario = alone.scenario
    flows = [
        flow.model_dump(by_alias=True, exclude_none=True) | {"law": "poisson", "load_kbps": LIGHT * load}
        for flow, load in zip(scenario.network.flows, offered_loads(scenario), strict=False)
        if not isinstance(flow, str)
    ]
    size = min(scenario.traffic.message_bytes, scenario.transport.mss_bytes)
    light = [flow | ({"message_bytes": size} if "message_bytes" in flow else {}) for flow in flows]
    changes = {"network.flows": light, "traffic.source": "poisson", "traffic.message_bytes": size}
    return scenario.changed(changes)


def _not_carried(scenario: Scenario) -> tuple[dict, dict]:
    """Return the answer for senders that always have data.

    Raises:
        NoConvergence: there is none.
    """
    if scenario.transport.protocol != "tcp":
        raise NoConvergence("more datagrams are offered than outside links and piconet carry")
    changes: dict[str, Any] = {"traffic.source": "greedy"}
    if not isinstance(scenario.network.flows, str):
        changes["network.flows"] = [
            flow.model_dump(by_alias=True, exclude_none=True) | ({"law": "greedy"} if flow.law else {})
            for flow in scenario.network.flows
        ]
    greedy = scenario.changed(changes)
    if lacks := problems_of(Scope("the model of paths over outside links", PATHS, not_paths), greedy):
        raise NoConvergence(
            f"the load is not carried, and for senders that always have data: {lacks[0].message}"
        )
    metrics, notes = greedy_paths.answer(greedy)
    doubts = list(notes["warnings"])
    if (offered_loads(scenario) < SURELY * metrics["goodput_kbps"]).any():
        doubts.append(
            f"loads are less than {SURELY:g} times as high as greedy senders' goodput: senders have nothing "
            "to send at times, which is not in the model"
        )
    metrics["goodput_kbps"], metrics["throughput_kbps"] = (
        np.minimum(metrics[name], offered_loads(scenario) if name == "goodput_kbps" else np.inf)
        for name in ("goodput_kbps", "throughput_kbps")
    )
    return metrics, {**notes, "warnings": doubts, "method": f"not carried, as greedy: {notes['method']}"}


def _of_cuts(cut: Vector) -> list[str]:
    """Return a doubt where windows keep much of the waits at the senders; shape (flows,)."""
    if not (most := float(cut.max(initial=0.0))) > MUCH:
        return []
    return [
        f"windows keep {most:.0%} of the waits for outside links at the senders: above {MUCH:.0%} round "
        "trips have been up to 35 % long"
    ]


def _doubts(scenario: Scenario, visits: Visits, streams: Streams, rtt: Vector, lone: Vector) -> list[str]:
    """Return what makes the answer uncertain."""
    found = []
    windows = np.array([window_of(scenario, flow) for flow in topology(scenario).flows])
    answered = scenario.transport.protocol == "tcp"
    most = np.inf if not answered else float(windows.sum())
    for name in np.unique(visits.medium):
        here = visits.medium == name
        load = float(loads(visits, streams)[here].sum())
        places, batch = float(visits.places[here].min()), float(streams.ahead[visits.flow[here]].max())
        # in heavy traffic the queue of M^X/D/1 is exponential, of mean rho (2 a + 1) / (2 (1 - rho))
        mean = load * (2.0 * batch + 1.0) / (2.0 * (1.0 - load)) + batch
        over = load * float(np.exp(-places / max(mean, 1e-12)))
        if most > places and over > RARE:
            found.append(
                f"a buffer of {places:.0f} packets before an outside link overflows, about {over:.1g} of the "
                "segments: what TCP makes of that is not in the model"
            )
        if (streams.regular[visits.flow[here]] > 0.0).any() and here.sum() > 1:
            found.append(
                "round trips depend on the phases in which periodic sources and others meet on an outside "
                "link, which stay as they are in a run; this is the mean over all phases"
            )
    if not answered:
        return list(dict.fromkeys(found))
    batches_of = 2.0 * streams.ahead + 1.0
    if (batches_of > np.maximum(windows, 1.0)).any():
        found.append(
            f"messages come in batches of {batches_of.max():.0f} segments, more than a window holds: round "
            "trips are least certain"
        )
    waiting, least = rtt - lone, scenario.transport.min_rto_s
    if ((rtt + DEVIATIONS * waiting > least) & (waiting > UNSTEADY * rtt)).any():
        found.append(
            f"waits of {waiting.max():.2g} s may outlast the least timeout, {least:g} s: timers that expire "
            "too early are not in the model"
        )
    return list(dict.fromkeys(found))
