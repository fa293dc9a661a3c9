"""TCP between the central and one peripheral, with ARQ: nothing is lost, packets are late.

1. Greedy sources: the cycle of the window on a link that is always busy (`two_way_link.greedy`).
2. Else, below what 1 carries: a queue beside a neighbour that shares the slots, with delayed and piggybacked
   acknowledgements (`two_way_link.open`). A load beyond that is the first regime, with a backlog that grows.
"""

from collections.abc import Callable

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.mixtures import Mixture, Part, mixture
from btqueue.network.repetition import segment_bytes
from btqueue.network.two_way_link.air import Air, air_of
from btqueue.network.two_way_link.coupled_processors import Overloaded
from btqueue.network.two_way_link.greedy import saturated
from btqueue.network.two_way_link.open import Operating, operating_points, sources_of
from btqueue.network.two_way_link.times import delay_parts, round_trip_parts
from btqueue.scenario import Scenario

NEAR, CROWDED = 0.8, 0.85
"""Shares of what a window carries both ways: delays are less certain, and not known."""
SLOW_LAYERS_S = {True: 0.006, False: 0.015}
"""Time in the layers of both hosts up to which Vegas was measured, both ways and one way."""
SLOW_CLOCK_S = 0.2
"""Shortest period of the clock of delayed acknowledgements for which Vegas was measured both ways."""
CONSISTENT = 0.01
"""Largest change of shares, or relative change of BaseRTT, that counts as settled."""
LIKELY = 0.02
"""Windows with a smaller share are passed over when buffers are looked at."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    if scenario.traffic.source == "greedy":
        return _greedy(scenario)
    try:
        points = operating_points(scenario)
    except Overloaded:
        return _greedy(scenario)
    for _, at in points:
        if at.residual > CONSISTENT:
            raise NoConvergence(
                f"acknowledgements and blocked time of a window of {at.window} did not settle in "
                f"{at.iterations} steps from an open window: the last change is {at.residual:.2g}"
            )
    return _open(scenario, points)


def _overflow(scenario: Scenario, windows: dict[int, float], air: Air) -> list[str]:
    """Return a warning where a window that Vegas takes does not fit a buffer: the model loses nothing."""
    largest = max(w for w, share in windows.items() if share > LIKELY)
    limits = []
    node = scenario.link.node_buffer_bytes
    if node is not None:
        headers = scenario.transport.header_bytes + scenario.link.l2cap_header_bytes
        limits.append(node // (scenario.traffic.message_bytes + headers))
    if scenario.traffic.two_way or scenario.network.flows == "uplink":
        limits.append(scenario.flow_control.places[1] // len(air.data.packets))
    if not limits or largest <= min(limits):
        return []
    return [f"a window of {largest} segments overflows a buffer of {min(limits):g}: losses are not modelled"]


def _greedy(scenario: Scenario) -> tuple[dict, dict]:
    full = saturated(scenario)
    rtt, rate, warnings = full.rtt, full.rate, []
    if scenario.traffic.source != "greedy" and (offered := sources_of(scenario).rate) <= rate:
        rate = offered
        warnings.append(
            f"{offered:.3g} segments a second are more than the smallest of the windows carries: delays grow "
            "while it lasts, and goodput came out up to 4 % high"
        )
    metrics = _metrics(scenario, full.air, rate, rtt, full.acks, 1.0 if full.acks == 0.0 else 0.0)
    metrics["window_segments"] = sum(w * share for w, share in full.windows.items())
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
        "warnings": warnings + _overflow(scenario, full.windows, full.air) + _vegas_apart(scenario, full.air),
    }
    return metrics, notes


def _metrics(
    scenario: Scenario, air: Air, rate: float, rtt: Mixture, acks: float, carried: float
) -> dict[str, float]:
    """Return what both regimes have.

    Args:
        scenario: that is answered.
        air: of the link.
        rate: segments a second of a direction.
        rtt: law of the round trips.
        acks: separate acknowledgements a segment.
        carried: share of the acknowledgements that segments carry.
    """
    kbps, slots = rate * segment_bytes(scenario) * 8e-3, air.data.slots + acks * air.ack.slots
    return {
        "goodput_kbps": kbps,
        "throughput_kbps": kbps,
        **rtt.metrics("rtt"),
        "timeouts_per_s": 0.0,
        "fast_retransmits_per_s": 0.0,
        "piggybacked_acks": carried,
        "segment_loss": 0.0,
        "slot_utilisation": min(1.0, rate * slots * SLOT_S * (1 + scenario.traffic.two_way)),
    }


def _vegas_apart(scenario: Scenario, air: Air) -> list[str]:
    """Return a warning where greedy Vegas has keys far from those at which its window was measured."""
    transport, two_way = scenario.transport, scenario.traffic.two_way
    if transport.variant != "vegas":
        return []
    apart = []
    faultless = not any(error for _, error in air.data.packets)
    if faultless and (transport.alpha == transport.beta or max(transport.alpha, transport.gamma) > 1.0):
        apart.append(f"alpha, beta, gamma = {transport.alpha:g}, {transport.beta:g}, {transport.gamma:g}")
    if air.layers_s > SLOW_LAYERS_S[two_way]:
        apart.append(f"{1000 * air.layers_s:.3g} ms in the layers of the hosts")
    if len(air.data.packets) == 1:
        apart.append("segments of one packet")
    if not faultless and not transport.delayed_ack:
        apart.append("radio errors and an acknowledgement for each segment")
    quick = transport.ack_clock == "timer" or transport.ack_delay_s < SLOW_CLOCK_S
    if two_way and transport.delayed_ack and quick:
        apart.append(f"acknowledgements by the {transport.ack_clock} of {transport.ack_delay_s:g} s")
    if not apart:
        return []
    return [
        f"the window of Vegas was measured with other keys ({'; '.join(apart)}): there round trips were 15 "
        "to 45 % off, 74 % with a slow start that ends late, and goodput up to 25 %"
    ]


def _open(scenario: Scenario, points: list[tuple[float, Operating]]) -> tuple[dict, dict]:
    sources, air = sources_of(scenario), air_of(scenario)

    def mean(value: Callable[[Operating], float]) -> float:
        return sum(share * value(at) for share, at in points)

    def law(parts: Callable[[Scenario, Air, Operating], list[Part]]) -> Mixture:
        return mixture(
            [(share * part[0], *part[1:]) for share, at in points for part in parts(scenario, air, at)]
        )

    delay, rtt = law(delay_parts), law(round_trip_parts)
    acknowledged = delay.mean + mean(lambda at: (1.0 - at.blocked) * at.acks.wait)
    waited = mean(lambda at: (1.0 - at.blocked) * at.acks.square)
    spread = delay.sd**2 + max(waited - (acknowledged - delay.mean) ** 2, 0.0)
    carried = mean(lambda at: at.carried) if scenario.traffic.two_way else 0.0
    metrics = _metrics(scenario, air, sources.rate, rtt, mean(lambda at: at.separate), carried)
    warnings = []
    used = max(sources.rate * at.cycles.more.period for _, at in points)
    crowded = scenario.traffic.two_way and sources.batch == 1.0 and used > CROWDED
    if crowded:
        warnings.append(
            f"the load is {used:.2f} of what a window carries both ways: message delays, which depend on how "
            "long which window lasts, are left out, and round trips came out up to 20 % short"
        )
    else:
        metrics |= {
            "delay_s": delay.mean,
            "delay_scv": (delay.sd / delay.mean) ** 2,
            **{f"delay_{name}_s": value for name, value in delay.quantiles().items()},
            "acknowledged_delay_s": acknowledged,
            "acknowledged_delay_scv": spread / acknowledged**2,
        }
        if scenario.traffic.two_way and used > NEAR:
            warnings.append(
                f"the load is {used:.2f} of what a window carries both ways: message delays may be 20 % off"
            )
    notes = {
        "method": "below saturation: queue in slots beside the other direction, delayed acknowledgements",
        "converged": True,
        "residual": max(at.residual for _, at in points),
        "iterations": max(at.iterations for _, at in points),
        "warnings": warnings + _overflow(scenario, {at.window: share for share, at in points}, air),
    }
    return metrics, notes
