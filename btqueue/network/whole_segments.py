"""Streams of bytes that are cut into whole segments: what theory knows of windows that count bytes.

Models count segments, one or several a message. Where every message fills its segments that is the same.
The rest of a message that does not is sent at once if no other such rest of the connection is under way, and
else waits for its acknowledgement (RFC 1122, 4.2.3.4, with Minshall's change of it as in Linux); all that was
written by then goes together. Messages that come at random, at rate a, with a constant round trip R, so have
rounds: the first message of a busy period goes at once, what comes within R goes with the next round, and a
round is the last with probability exp(-a R). A busy period has exp(a R) rounds on average and an idle one
lasts 1/a, hence (`Round`)

- share that waits: b = a R e / (1 + a R e) with e = exp(a R), each for half a round on average;
- messages a round: k = a R + exp(-a R).

The models are asked for messages of k times the size, at most a full segment, and R is their answer: a
fixed point. The rest of a longer message goes with the next message, if that comes first: it is taken not to
wait. A receiver that delays acknowledgements sees one short segment at a time, so each waits for its timer: R
is a round trip without delay and `transport.ack_delay_s`. What is neglected: that R varies, the closure is a
mean; and that segments which wait for each other do not meet in queues. So it stands where few messages wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from btqueue.network.overload import CARRIED, offered_loads
from btqueue.scenario.bounds import shares_segments
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit
from btqueue.scenario.topology import topology

Answer = tuple[dict[str, Any], dict[str, Any]]

ROUNDS, CLOSE = 12, 0.01
"""Most answers of a model on the way to the fixed point, and by how much sizes still change at its end."""

WAITING = 0.08
"""Share of messages that wait above which the answer is in doubt: up to it round trips of 50 networks were at
most 4 % off and delays 7 %, up to 0.15 of 65 networks 8 %, up to 0.3 of 76 networks 17 %."""

LOSING = 0.005
"""Share of segments lost above which the answer is in doubt."""

MEANS = ("delay_s", "acknowledged_delay_s")
"""Delays of messages."""


def in_segments(scenario: Scenario) -> Scenario:
    """Return the scenario as models read it: in segments, where that is the same or `in_rounds` knows more.

    A greedy source whose windows count bytes always has data: the size of its messages makes no difference,
    but the models read it, so they are full segments. Windows of open loads whose messages do not fill their
    segments count segments.
    """
    full = of_full_segments(scenario)
    views = [scenario.of_flow(flow.spec) for flow in topology(scenario).flows]
    if not any(map(_lasting, views)):
        return full
    at_once = {"transport.delayed_ack": False} if all(map(_acknowledged_alone, views)) else {}
    return full.changed({"transport.windows": "segments", **at_once})


def _lasting(scenario: Scenario) -> bool:
    """Whether a flow is an open load whose messages do not fill their segments, and `in_rounds` knows it."""
    traffic, transport = scenario.traffic, scenario.transport
    if transport.buffers == "tuned":  # which needs windows of bytes
        return False
    known = ("poisson", "periodic") if transport.nagle else ("poisson", "periodic", "ibp")
    waits_for_itself = transport.nagle is True and traffic.message_bytes > transport.mss_bytes
    return shares_segments(scenario) and traffic.source in known and not waits_for_itself


def _acknowledged_alone(scenario: Scenario) -> bool:
    """Whether each segment of a flow is alone at a receiver that delays acknowledgements."""
    transport = scenario.transport
    alone = transport.nagle is not False and scenario.traffic.message_bytes < transport.mss_bytes
    return _lasting(scenario) and transport.delayed_ack and alone


def in_rounds_at_all(scenario: Scenario) -> bool:
    """Whether messages of a flow may wait for each other's acknowledgement."""
    views = (scenario.of_flow(flow.spec) for flow in topology(scenario).flows)
    return any(_lasting(view) and view.transport.nagle is not False for view in views)


def of_full_segments(scenario: Scenario) -> Scenario:
    """Return the scenario with messages of full segments for greedy sources whose windows count bytes."""
    flows = scenario.network.flows
    if isinstance(flows, str):
        full = scenario.transport.mss_bytes
        return scenario.changed({"traffic.message_bytes": full}) if _other_messages(scenario) else scenario
    seen = [scenario.of_flow(flow) for flow in flows]
    if not any(map(_other_messages, seen)):
        return scenario
    own = [flow.model_dump(by_alias=True, exclude_unset=True) for flow in flows]
    for flow, view in zip(own, seen, strict=True):
        if view.traffic.source == "greedy":
            flow["message_bytes"] = view.transport.mss_bytes
    alike = {(view.traffic.source, view.transport.mss_bytes) for view in seen}
    common = {"traffic.message_bytes": seen[0].transport.mss_bytes} if len(alike) == 1 else {}
    return scenario.changed({"network.flows": own} | common)


def _other_messages(scenario: Scenario) -> bool:
    """Whether windows count bytes and a greedy source is said to write messages of another size."""
    traffic, transport = scenario.traffic, scenario.transport
    in_bytes = transport.protocol == "tcp" and transport.windows == "bytes"
    return in_bytes and traffic.source == "greedy" and traffic.message_bytes != transport.mss_bytes


class Round(NamedTuple):
    """What Nagle's algorithm does to a flow: messages a round, and the share that waits.

    Attributes:
        messages: that go together, on average.
        waiting: share of messages that wait for the acknowledgement of an earlier one.
        mean_s: how long these wait on average.
    """

    messages: float
    waiting: float
    mean_s: float


def round_of(scenario: Scenario, rtt_s: float) -> Round:
    """Return the rounds of a flow with a mean round trip.

    Args:
        scenario: as the flow sees it.
        rtt_s: from sending a segment to its acknowledgement, a delayed one included.
    """
    if not (_lasting(scenario) and scenario.transport.nagle and math.isfinite(rtt_s)):
        return Round(1.0, 0.0, 0.0)
    traffic = scenario.traffic
    per_round = 1000.0 * traffic.load_kbps / (8.0 * traffic.message_bytes) * rtt_s
    most = max(1.0, scenario.transport.mss_bytes / traffic.message_bytes)
    if traffic.source == "periodic":
        messages, waiting = max(1.0, per_round), float(per_round >= 1.0)
    else:
        messages = per_round + math.exp(-per_round)
        waiting = 1.0 / (1.0 + math.exp(-per_round) / per_round)
    filled_s = (
        rtt_s * (most - 1.0) / (2.0 * per_round)
    )  # until a full segment is together, which does not wait
    return Round(min(messages, most), waiting, min(rtt_s / 2.0, filled_s))


def in_rounds(scenario: Scenario, ask: Callable[[Scenario], Answer]) -> Answer:
    """Return the answer of a model to a scenario whose windows may count bytes.

    Args:
        scenario: as the user wrote it.
        ask: the model, of a scenario `in_segments`.
    """
    plain = in_segments(scenario)
    metrics, notes = ask(plain)
    views = [scenario.of_flow(flow.spec) for flow in topology(scenario).flows]
    if not any(map(_lasting, views)):
        return metrics, notes
    late_s = scenario.transport.ack_delay_s if all(map(_acknowledged_alone, views)) else 0.0
    messages, settled = [1.0] * len(views), False
    for _ in range(ROUNDS):
        rtt_s = np.broadcast_to(np.asarray(metrics.get("rtt_s", np.nan), float), (len(views),))
        rounds = [round_of(view, float(rtt) + late_s) for view, rtt in zip(views, rtt_s, strict=True)]
        wanted = [one.messages for one in rounds]
        settled = all(abs(a - b) <= CLOSE * b for a, b in zip(wanted, messages, strict=True))
        if settled:
            break
        messages = [math.sqrt(a * b) for a, b in zip(wanted, messages, strict=True)]
        metrics, notes = ask(_with_sizes(plain, messages))
    doubts = list(notes["warnings"])
    if (most := max(one.waiting for one in rounds)) > WAITING:
        doubts.append(
            f"{most:.0%} of the messages of a flow wait for the acknowledgement of an earlier short segment "
            "(Nagle's algorithm): how many share a segment is known on average only"
        )
    if np.any(metrics.get("goodput_kbps", np.inf) < CARRIED * offered_loads(scenario)):
        doubts.append("more is offered than carried: messages that pile up are sent in full segments")
    if not settled:
        doubts.append("the number of messages that share a segment did not settle")
    if not late_s and any(_lasting(view) and view.transport.delayed_ack for view in views):
        doubts.append("the last segment of a message is not full: its acknowledgement is delayed for longer")
    if np.max(metrics.get("segment_loss", 0.0)) > LOSING:
        doubts.append("short segments are lost: messages wait behind them, and share segments later")
    waits_s = np.array([one.waiting * one.mean_s for one in rounds])
    added = {"rtt_s": late_s, **dict.fromkeys(MEANS, waits_s)}
    late = {name: metrics[name] + extra for name, extra in added.items() if name in metrics}
    return {**metrics, **late}, {**notes, "warnings": doubts}


def _with_sizes(scenario: Scenario, messages: Sequence[float]) -> Scenario:
    """Return the scenario with so many messages of each flow in one."""
    flows, mean = scenario.network.flows, float(np.mean(messages))
    common = {"traffic.message_bytes": round(scenario.traffic.message_bytes * mean)}
    if isinstance(flows, str):
        return scenario.changed(common)
    own = [flow.model_dump(by_alias=True, exclude_unset=True) for flow in flows]
    for flow, count in zip(own, messages, strict=False):
        if "message_bytes" in flow:
            flow["message_bytes"] = round(flow["message_bytes"] * count)
    return scenario.changed({"network.flows": own} | common)


def not_whole_segments(scenario: Scenario) -> Iterator[Limit]:
    """Yield messages that share segments: no model covers them."""
    for flow in topology(scenario).flows:
        own = scenario.of_flow(flow.spec)
        if shares_segments(own):
            whole = f"a multiple of transport.mss_bytes = {own.transport.mss_bytes}"
            available = f'{whole}, or transport.windows = "segments"'
            yield Limit("traffic.message_bytes", own.traffic.message_bytes, available)
