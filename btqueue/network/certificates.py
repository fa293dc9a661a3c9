"""Certificates: inequalities that every answer must satisfy, whichever model gave it.

They read the scenario and the labelled answer, and no model. Each is an inequality with a proof, so that a
violation is a fault of the answer, not of the certificate. An answer that violates one is refused.

- *Goodput and throughput.* Only segments that were sent are delivered: goodput <= throughput, and where all
  segments have one size, <= throughput (1 - segment loss). In the long run first transmissions are at most
  the offered load: goodput <= load, throughput <= load + retransmissions, each of a full segment at most.
- *Windows*, *devices and links*: `btqueue.network.bounds` has the derivations.
- *Little's law.* Where every segment is acknowledged at once and none is lost, each is outstanding for its
  round-trip sample: rate x mean round trip <= window. A queue holds no more than its places. The sessions of
  a connection, and the pauses behind them, do not overlap.
- *Losses.* A lost segment has lost a packet somewhere. Where the answer has all places at which packets can
  be lost, the packets lost there are at least as many as the lost segments. A receiver sends acknowledgements
  for no more segments than arrive.
- *Shares* lie between 0 and 1, everything else is no less than 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btqueue.network.bounds import capacity, packets_of, segments_of, window_kbps, window_of
from btqueue.network.load_steps import offered_kbps, steps_of
from btqueue.scenario import METRICS, Scenario
from btqueue.scenario.metrics import PERCENTILE_OF, Results
from btqueue.scenario.topology import Topology, topology

if TYPE_CHECKING:
    import xarray as xr

ROUNDING = 1e-6
"""Relative error that an answer may have beyond the error that it states."""
DEVIATIONS = 5.0
"""Standard errors by which a sampled answer may be off: one in a million is further off by chance."""
NO_SHARES = frozenset(
    {"delay_scv", "acknowledged_delay_scv", "transmissions_per_packet", "exchanges_per_event"}
)
"""Metrics without unit that may be above 1."""

Metrics = Mapping[Any, Any]
"""Metrics of an answer and labels, by name: a `Variable` each."""


class ImpossibleAnswer(RuntimeError):
    """An answer breaks a law that every network keeps; the message has the numbers."""


class Certificate(NamedTuple):
    """One inequality, as text and numbers: `value` is at most `bound`."""

    value: float
    bound: float
    sentence: str


def certify(scenario: Scenario, answer: Results | xr.Dataset) -> None:
    """Make sure that an answer keeps all certificates.

    The tolerance is its residual; of a sampled answer, whose residual is a standard error, five of them.

    Raises:
        ImpossibleAnswer: the answer breaks one of them.
    """
    errors = DEVIATIONS if answer.attrs.get("sampled") else 1.0
    slack = ROUNDING + errors * float(answer.attrs.get("residual", 0.0))
    broken = [one for one in certificates(scenario, answer) if is_broken(one, slack)]
    if broken:
        worst = max(broken, key=lambda one: one.value / one.bound if one.bound > 0 else np.inf)
        more = f"; {len(broken) - 1} more laws are broken" if len(broken) > 1 else ""
        raise ImpossibleAnswer(f"{answer.attrs.get('model', 'the model')}: {worst.sentence}{more}")


def is_broken(one: Certificate, slack: float) -> bool:
    """Return whether the value exceeds the bound by more than `slack`, a share of the bound."""
    return one.value > one.bound + slack * abs(one.bound) + ROUNDING * slack


def certificates(scenario: Scenario, answer: Results | xr.Dataset) -> Iterator[Certificate]:
    """Yield every certificate that the answer has the numbers for.

    Args:
        scenario: the scenario that was answered.
        answer: metrics of shape (flow,), (queue,) or none, as `solve` returns them; of a simulation,
            their means over replications.
    """
    metrics = answer.variables
    plan = topology(scenario)
    names = plan.flow_names
    yield from _ranges(metrics)
    if "goodput_kbps" not in metrics:
        return
    goodput, offered = metrics["goodput_kbps"].values, _offered(scenario, plan)
    of_flows = {
        "is sent": _sent(scenario, plan, metrics),
        "is offered": offered,
        "its window allows": window_kbps(scenario),
    }
    for words, most in of_flows.items():
        for name, value, bound in zip(names, goodput.tolist(), most.tolist(), strict=True):
            yield Certificate(
                value, bound, f"the goodput of {name} is {value:.6g} kbit/s, more than {words}: {bound:.6g}"
            )
    views = [scenario.of_flow(flow.spec) for flow in plan.flows]
    yield from _first_sends(views, offered, names, metrics)
    room = capacity(scenario)
    for name, used in zip(room.names, room.used(np.nan_to_num(goodput)).tolist(), strict=True):
        yield Certificate(used, 1.0, f"the goodputs would keep {name} busy for {used:.6g} times its time")
    yield from _little(scenario, plan, views, metrics)
    yield from _losses(scenario, plan, names, metrics)


def _ranges(metrics: Metrics) -> Iterator[Certificate]:
    for name in metrics:
        if name not in METRICS or name in PERCENTILE_OF.values():  # these are computed when they are read
            continue
        share = METRICS[name].unit == "1" and name not in NO_SHARES
        for value in metrics[name].values.ravel().tolist():
            yield Certificate(-value, 0.0, f"{name} is {value:.6g}, below 0")
            if share:
                yield Certificate(value, 1.0, f"{name} is {value:.6g}, above 1")


def _sent(scenario: Scenario, plan: Topology, metrics: Metrics) -> np.ndarray:
    """Return the throughput of each flow, less the losses that are known (kbit/s)."""
    if "throughput_kbps" not in metrics:
        return np.full(len(plan.flows), np.inf)
    sent = metrics["throughput_kbps"].values
    if "segment_loss" not in metrics:
        return sent
    alike = np.array([segments_of(scenario, flow).alike for flow in plan.flows])
    return np.where(alike, sent * (1.0 - np.clip(metrics["segment_loss"].values, 0.0, 1.0)), sent)


def _offered(scenario: Scenario, plan: Topology) -> np.ndarray:
    """Return the load of each flow (kbit/s), the mean over a schedule; infinite where there is none."""
    steps = steps_of(scenario)
    loads = np.array([[offered_kbps(scenario, flow, step) for step in steps] for flow in plan.flows])
    seconds = np.array([step.seconds for step in steps])
    return loads @ seconds / seconds.sum()


def _first_sends(
    views: list[Scenario], offered: np.ndarray, names: list[str], metrics: Metrics
) -> Iterator[Certificate]:
    """Yield the certificate that first transmissions are at most the offered load."""
    if "throughput_kbps" not in metrics:
        return
    if "retransmissions_per_s" in metrics:
        again = np.broadcast_to(metrics["retransmissions_per_s"].values, len(names))
    else:
        again = np.array([0.0 if own.transport.protocol == "none" else np.inf for own in views])
    most = offered + again * np.array([own.transport.mss_bytes for own in views]) * 8 / 1000
    for name, value, bound in zip(names, metrics["throughput_kbps"].values, most, strict=True):
        yield Certificate(
            value, bound,
            f"the throughput of {name} is {value:.6g} kbit/s, over load and repetitions: {bound:.6g}",
        )  # fmt: skip


def _little(
    scenario: Scenario, plan: Topology, views: list[Scenario], metrics: Metrics
) -> Iterator[Certificate]:
    names = plan.flow_names
    lossless = "segment_loss" in metrics and not any(
        (metrics[name].values > 0.0).any()
        for name in metrics
        if name == "timeouts_per_s" or "loss" in str(name)
    )
    if lossless and "rtt_s" in metrics:
        for flow, own, name, rate, trip in zip(
            plan.flows, views, names, metrics["goodput_kbps"].values, metrics["rtt_s"].values, strict=True
        ):
            if own.transport.protocol != "tcp" or own.transport.delayed_ack:
                continue
            sent, window = segments_of(scenario, flow), window_of(scenario, flow)
            value = rate * trip * sent.number / sent.kilobits
            yield Certificate(
                value, window,
                f"{rate:.6g} kbit/s of {name}, each segment under way for {trip:.6g} s, are {value:.6g} "
                f"segments under way, and the window is {window}",
            )  # fmt: skip
    if "sessions_per_s" in metrics and "session_time_s" in metrics:
        for own, name, rate, time in zip(
            views, names, metrics["sessions_per_s"].values, metrics["session_time_s"].values, strict=True
        ):
            yield Certificate(
                rate * (time + own.traffic.pause_s), 1.0,
                f"{rate:.6g} sessions a second of {name}, one after the other, of {time:.6g} s, do not fit",
            )  # fmt: skip
    if "queue_packets" in metrics:
        places = _places(scenario, plan)
        for queue, value in zip(metrics["queue"].values, metrics["queue_packets"].values, strict=True):
            bound = places.get(str(queue), np.inf)
            yield Certificate(value, bound, f"{value:.6g} packets in a queue ({queue}) of {bound:g} places")


def _places(scenario: Scenario, plan: Topology) -> dict[str, float]:
    """Return the most packets that a queue of each kind can hold."""
    control, polling, network = scenario.flow_control, scenario.polling, scenario.network
    members = max((len(piconet.members) for piconet in plan.piconets), default=0)
    down, up = control.places
    at_bridge = polling.bridge_buffer_packets or members * polling.limit
    bridges = bool(plan.bridges)
    return {
        "token_buffer": control.buffer_packets,
        "uplink": max(up, at_bridge) if bridges else up,
        "downlink": np.inf if bridges else down,
        "outside": 1 + max((link.buffer_packets for link in network.outside_links), default=0),
    }


def _losses(scenario: Scenario, plan: Topology, names: list[str], metrics: Metrics) -> Iterator[Certificate]:
    """Yield that lost segments have lost packets, where all places that can lose some are given."""
    lossy = [name for name in _losing(scenario, plan) if name != "segment_loss"]
    if "segment_loss" not in metrics or any(name not in metrics for name in lossy):
        return
    lost = sum((np.broadcast_to(metrics[name].values, len(names)) for name in lossy), np.zeros(len(names)))
    for flow, name, value, share in zip(plan.flows, names, metrics["segment_loss"].values, lost, strict=True):
        packets = packets_of(scenario, flow)
        hops = len(plan.route(flow.source, flow.target)) if scenario.network.relay == "segment" else 1
        if not (np.isfinite(packets) and np.isfinite(share)):
            continue
        yield Certificate(
            value, packets * hops * share,
            f"a share of {value:.6g} of the segments of {name} is lost, but {share:.3g} of their packets, of "
            f"which a segment and its acknowledgement have {packets:g}",
        )  # fmt: skip


def _losing(scenario: Scenario, plan: Topology) -> Iterator[str]:
    """Yield the metrics of the places at which a packet can be lost."""
    control, link, radio, network = (
        scenario.flow_control, scenario.link, scenario.radio, scenario.network,
    )  # fmt: skip
    if control.enabled or control.drop == "segment":  # offered packets are counted there
        yield "loss_token_buffer"
    yield "loss_baseband_buffer"
    if link.arq == "none" and (radio.model != "perfect" or radio.links or radio.interferers):
        yield "loss_radio"
    if link.arq not in ("none", "unlimited") or (link.arq != "none" and link.flush_timeout_s is not None):
        yield "loss_arq"
    if link.node_buffer_bytes is not None:
        yield "loss_node_buffer"
    if plan.bridges or network.outside_links or control.central_buffer_packets is not None:
        yield "loss_relay"
    if any(outside.loss or outside.loss_back for outside in network.outside_links):
        yield "loss_outside"
