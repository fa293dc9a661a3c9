"""TCP between the central and one peripheral, with ARQ: nothing is lost, packets are late.

1. Greedy sources: the cycle of the window on a link that is always busy (`two_way_link.greedy`).
2. Else, below what 1 carries: a queue beside a neighbour that shares the slots, with delayed and piggybacked
   acknowledgements (`two_way_link.open`). A load beyond that is the first regime, with a backlog that grows.
"""

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.two_way_link.air import Air
from btqueue.network.two_way_link.greedy import Saturated, saturated
from btqueue.network.two_way_link.jobs import Overloaded
from btqueue.network.two_way_link.laws import Mixture
from btqueue.network.two_way_link.open import (
    Operating,
    burstiness_warning,
    operating_point,
    sources_of,
)
from btqueue.network.two_way_link.times import delay_law, round_trips
from btqueue.scenario import Scenario

NEAR = 0.5
"""Share of the greedy goodput from which delays of the queue are uncertain."""
CONSISTENT = 0.01
"""Largest change of shares, or relative change of BaseRTT, that counts as settled."""
LIKELY = 0.02
"""Windows with a smaller share are passed over when buffers are looked at."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    full = saturated(scenario)
    if scenario.traffic.source == "greedy":
        return _greedy(scenario, full, [])
    sources = sources_of(scenario)
    try:
        at = operating_point(scenario, full) if sources.rate < full.rate else None
    except Overloaded:
        at = None
    if at is None:
        return _greedy(scenario, full, ["overload: the backlog grows; delays of messages have no limit"])
    if at.residual > CONSISTENT:
        raise NoConvergence(
            f"acknowledgements and blocked time did not settle in {at.iterations} damped steps "
            f"from an open window: the last change is {at.residual:.2g}"
        )
    return _open(scenario, full, at)


def _overflow(scenario: Scenario, windows: dict[int, float], air: Air) -> list[str]:
    """Return a warning where a window that Vegas takes does not fit a buffer: the model loses nothing."""
    largest = max(w for w, share in windows.items() if share > LIKELY)
    limits = []
    node = scenario.link.node_buffer_bytes
    if node is not None:
        headers = scenario.transport.header_bytes + scenario.link.l2cap_header_bytes
        limits.append(node // (scenario.traffic.message_bytes + headers))
    if scenario.traffic.two_way or scenario.network.flows == "uplink":
        limits.append(scenario.flow_control.baseband_packets // len(air.data.packets))
    if not limits or largest <= min(limits):
        return []
    return [f"a window of {largest} segments overflows a buffer of {min(limits)}: losses are not modelled"]


def _kilobits(scenario: Scenario) -> float:
    return min(scenario.traffic.message_bytes, scenario.transport.mss_bytes) * 8e-3


def _greedy(scenario: Scenario, full: Saturated, warnings: list[str]) -> tuple[dict, dict]:
    rtt = full.rtt
    slots = full.air.data.slots + full.acks * full.air.ack.slots
    metrics = {
        "goodput_kbps": full.rate * _kilobits(scenario),
        "throughput_kbps": full.rate * _kilobits(scenario),
        "rtt_s": rtt.mean,
        "rtt_sd_s": rtt.sd,
        **{f"rtt_{name}_s": value for name, value in rtt.quantiles().items()},
        "timeouts_per_s": 0.0,
        "fast_retransmits_per_s": 0.0,
        "piggybacked_acks": 1.0 if full.acks == 0.0 else 0.0,
        "segment_loss": 0.0,
        "slot_utilisation": min(1.0, full.rate * slots * SLOT_S * (1 + scenario.traffic.two_way)),
        "window_segments": sum(w * share for w, share in full.windows.items()),
    }
    residual, iterations = 0.0, 1
    if full.walk is not None:
        metrics["cwnd_segments"] = full.walk.cwnd
        metrics["window_segments"] = min(full.walk.cwnd, scenario.transport.receive_window_segments)
        residual, iterations = full.walk.residual, full.walk.iterations
    if residual > CONSISTENT:
        raise NoConvergence(
            f"the law of Vegas's window and its BaseRTT did not settle in {iterations} steps of half their "
            f"change, from the window that slow start leaves: the last change is {residual:.2g}"
        )
    notes = {
        "method": "greedy: cycle of the window on a busy link",
        "converged": residual <= CONSISTENT,
        "residual": residual,
        "iterations": iterations,
        "warnings": warnings + _overflow(scenario, full.windows, full.air),
    }
    return metrics, notes


def _open(scenario: Scenario, full: Saturated, at: Operating) -> tuple[dict, dict]:
    sources, air = sources_of(scenario), full.air
    delay: Mixture = delay_law(air, at)
    rtt = round_trips(scenario, full, at)
    acknowledged = delay.mean + (1.0 - at.blocked) * at.cycle.wait_of_a_segment
    waited = (1.0 - at.blocked) * at.cycle.square_of_a_segment
    spread = delay.sd**2 + max(waited - (acknowledged - delay.mean) ** 2, 0.0)
    directions = 1 + scenario.traffic.two_way
    metrics = {
        "goodput_kbps": sources.rate * _kilobits(scenario),
        "throughput_kbps": sources.rate * _kilobits(scenario),
        "rtt_s": rtt.mean,
        "rtt_sd_s": rtt.sd,
        **{f"rtt_{name}_s": value for name, value in rtt.quantiles().items()},
        "delay_s": delay.mean,
        "delay_scv": (delay.sd / delay.mean) ** 2,
        **{f"delay_{name}_s": value for name, value in delay.quantiles().items()},
        "acknowledged_delay_s": acknowledged,
        "acknowledged_delay_scv": spread / acknowledged**2,
        "timeouts_per_s": 0.0,
        "fast_retransmits_per_s": 0.0,
        "piggybacked_acks": at.carried if scenario.traffic.two_way else 0.0,
        "segment_loss": 0.0,
        "slot_utilisation": sources.rate
        * (air.data.slots + at.separate * air.ack.slots)
        * SLOT_S
        * directions,
    }
    warnings = burstiness_warning(sources)
    if sources.rate > NEAR * full.rate:
        warnings.append(
            f"the load is {sources.rate / full.rate:.2f} of what greedy connections carry: message delays "
            "come out 10 to 65 % too short there"
        )
    notes = {
        "method": "below saturation: queue in slots beside the other direction, delayed acknowledgements",
        "converged": at.residual <= CONSISTENT,
        "residual": at.residual,
        "iterations": at.iterations,
        "warnings": warnings + _overflow(scenario, at.window, air),
    }
    return metrics, notes
