"""A piconet: its metrics, from queues (`piconet.coupling`).

The rates come from loads, windows and radio errors; round trips, losses and queues from the polled pairs and
token buckets at these rates. Approximations, with their measured errors, are on the documentation's page of
this model.
"""

from typing import Any

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.channel import packet_error_rate
from btqueue.network.answers import NoConvergence
from btqueue.network.piconet.coupling import Coupling, Limits, Solved, overflow, solve_rates
from btqueue.network.piconet.ports import UP, Port, Train, piconet_of
from btqueue.network.piconet.tcp import Timing, tcp_rate
from btqueue.queueing.errors import ConvergenceError
from btqueue.scenario import Scenario

NEAR = 0.9
"""Share of the carried load above which a flow's round trip is least certain."""
NEAR_RELAYED = 0.7
"""The same for flows between two stations whose windows outgrow a buffer."""
NOTHING = 1e-9
"""Probability of an exchange below which nothing moves."""
STRETCHED = 2.0
"""Transmissions of a segment in the radio's bad state, in multiples of those in the good one, up to which the
queues see the mean of both: round trips are up to 8 % short."""
SHORT_FADE_S = 0.005
"""Mean bad state, about a segment's time on the air, that queues do not see either."""
RARE = 1e-6
"""Loss below which nothing is said of its kind."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    transport, net = scenario.transport, piconet_of(scenario)
    timing = Timing(transport.receive_window_segments, transport.min_rto_s, transport.max_rto_s)
    coupling = Coupling(net, timing)
    _require_passage(coupling)
    try:
        found = solve_rates(coupling)
    except ConvergenceError as error:
        raise NoConvergence(f"the queues of this piconet: {error}") from error
    _require_room(coupling, found)
    kilobits = scenario.traffic.message_bytes * 8 / 1000
    of_class = [_metrics(coupling, found, number, kilobits) for number in range(len(coupling.members))]
    names = [name for name in of_class[0] if all(name in one for one in of_class)]
    metrics: dict[str, Any] = {
        name: np.array([of_class[number][name] for number in coupling.class_of]) for name in names
    }
    metrics |= _of_the_network(coupling, found)
    notes = {
        "method": "queueing: polled ports, token buckets and TCP's rate in one fixed point",
        "converged": True,
        "residual": max(found.residual, found.state.air.residual),
        "iterations": found.evaluations,
        "warnings": _warnings(coupling, found) + not_modelled(scenario, coupling, found),
    }
    return metrics, notes


def _require_passage(coupling: Coupling) -> None:
    """Make sure that segments get through.

    Raises:
        NoConvergence: they do not.
    """
    if coupling.data.success * coupling.ack.success < NOTHING:
        raise NoConvergence("no segment gets through: the flows never move")


def _outgrown(coupling: Coupling, limits: Limits, number: int) -> bool:
    """Whether windows of a class of relayed flows outgrow the buffer in front of their bottleneck."""
    return len(coupling.members[number].data) > 1 and limits.window.loss > 0.0


def _require_room(coupling: Coupling, found: Solved) -> None:
    """Make sure that no relayed flows live by the losses of a full buffer.

    There goodput was measured to be 15 % off in the median, and 140 % in the worst of 100 rings: connections
    overflow the buffer in a fixed rhythm, which decides between fast retransmits and timeouts.

    Raises:
        NoConvergence: some do.
    """
    for number, (limits, why) in enumerate(zip(found.limits, found.limited, strict=True)):
        if why == "window" and _outgrown(coupling, limits, number):
            raise NoConvergence(
                "connections through the central are held back by a full buffer, whose losses this model "
                "does not know: give their windows room (transport.receive_window_segments, "
                "flow_control.buffer_packets), or lower traffic.load_kbps"
            )


def _metrics(coupling: Coupling, found: Solved, number: int, kilobits: float) -> dict[str, float]:
    """Return the metrics of a flow of a class."""
    rate, limits, why = found.rates[number], found.limits[number], found.limited[number]
    seen, net = found.state.seen[number], coupling.piconet
    on_radio = 1.0 - coupling.data.success
    if net.ack is None:
        return _without_transport(coupling, found, number, kilobits)
    lost = limits.window.loss if why == "window" else overflow(limits, seen)
    loss = 1.0 - (1.0 - lost) * (1.0 - on_radio)
    longest = limits.window.mean / rate
    metrics = {
        "goodput_kbps": rate * kilobits,
        "throughput_kbps": rate * kilobits / (1.0 - loss),
        "rtt_s": longest if why == "window" else min(seen.rtt_s, longest) if why == "load" else seen.rtt_s,
        "segment_loss": loss,
    }
    if lost > RARE:
        return metrics
    tcp = tcp_rate(coupling.timing, metrics["rtt_s"], on_radio, 1.0 - coupling.ack.success)
    share = rate / tcp.rate
    return metrics | {
        "window_segments": tcp.window,
        "timeouts_per_s": tcp.timeouts * share,
        "fast_retransmits_per_s": tcp.fast_retransmits * share,
    }


def _without_transport(coupling: Coupling, found: Solved, number: int, kilobits: float) -> dict[str, float]:
    """Return the metrics of messages that nobody repeats."""
    limits, seen = found.limits[number], found.state.seen[number]
    sender = coupling.members[number]
    carried = limits.capacity * coupling.data.success
    kept = (1.0 - seen.overflow) * (1.0 - seen.refused) * coupling.data.success
    goodput = min(sender.rate * kept, carried) * kilobits
    metrics = {"goodput_kbps": goodput}
    if sender.rate < limits.capacity:
        return metrics | {
            "throughput_kbps": sender.rate * kilobits,
            "segment_loss": 1.0 - kept,
            "delay_s": seen.delay_s,
        }
    if np.isfinite(sender.rate) and np.isfinite(coupling.piconet.places[sender.port.way]):
        offered = sender.rate * kilobits
        metrics |= {"throughput_kbps": offered, "segment_loss": 1.0 - goodput / offered}
    return metrics


def _of_the_network(coupling: Coupling, found: Solved) -> dict[str, Any]:
    """Return what the air and its queues come to, averaged over the stations."""
    air, net = found.state.air, coupling.piconet
    stations = range(net.stations)

    sent = [
        rate / coupling.data.success if why == "window" else float(offered)
        for rate, why, offered in zip(found.rates, found.limited, found.state.offered, strict=True)
    ]
    slots = sum(train.mean * train.mean_slots for train in (coupling.data, coupling.ack))
    metrics: dict[str, Any] = {"slot_utilisation": sum(sent[k] for k in coupling.class_of) * slots * SLOT_S}
    full = [
        not limits.by_tokens and (why == "window" or member.rate >= limits.capacity)
        for limits, why, member in zip(found.limits, found.limited, coupling.members, strict=True)
    ]
    if full == [True]:
        metrics["cycle_s"] = found.limits[0].cycle_s
    elif not any(full):
        metrics["cycle_s"] = air.cycle * net.slot_s
    if not any(full) and "window" not in found.limited:
        token_buffer = np.mean([found.state.buckets[Port(s, UP)].packets for s in stations])
        metrics["queue_packets"] = {"token_buffer": float(token_buffer)}
    return metrics


def _warnings(coupling: Coupling, found: Solved) -> list[str]:
    found_weak = []
    if coupling.piconet.ack is not None and coupling.data.success < 1.0 - RARE:
        found_weak.append(
            "segments are lost on the radio: messages wait for repetitions in bursts that are not in the "
            "round trip (too short by 8 % at a loss of 0.07, by 40 % at 0.3)"
        )
    if coupling.piconet.ack is None and any(
        member.rate >= limits.capacity for member, limits in zip(coupling.members, found.limits, strict=True)
    ):
        found_weak.append("more is offered than the piconet carries: queues grow without end or overflow")
    if any(
        why == "load" and _outgrown(coupling, limits, number) and rate > NEAR_RELAYED * limits.rate
        for number, (rate, limits, why) in enumerate(
            zip(found.rates, found.limits, found.limited, strict=True)
        )
    ):
        found_weak.append(
            f"the load is above {NEAR_RELAYED} of the rate at which windows overflow a buffer: goodput may "
            "be half of the load, and round trips several times as long"
        )
    near = any(
        why == "load" and rate > NEAR * limits.rate * coupling.data.success
        for rate, limits, why in zip(found.rates, found.limits, found.limited, strict=True)
    )
    if near:
        found_weak.append(
            "the load is close to what the piconet carries: round trips are least certain there"
        )
    return found_weak


def not_modelled(scenario: Scenario, coupling: Coupling, found: Solved) -> list[str]:
    """Return a warning for each key that matters more here than the model knows."""
    net, control, weak = coupling.piconet, scenario.flow_control, []
    if "load" in found.limited and (stretch := _stretch(scenario, net.data)) > STRETCHED:
        weak.append(
            f"the radio fades for radio.bad_s = {scenario.radio.bad_s:g} s at a time, in which a segment "
            f"takes {stretch:.3g} times as many transmissions: what piles up meanwhile, and timers that "
            "expire, are not modelled; round trips come out 11 to 60 % short, up to 83 % with long outages"
        )
    if net.ack is None:
        return weak
    if control.enabled and control.bucket_bytes < net.data.tokens:
        weak.append(
            f"flow_control.bucket_bytes = {control.bucket_bytes} is less than a segment is charged, "
            f"{net.data.tokens} bytes: its packets wait for tokens one by one; round trips come out up to "
            "32 % long"
        )
    full = [why == "window" for why in found.limited]
    if any(full) and coupling.timing.window == 1 and net.stations > 1:
        weak.append(
            "transport.receive_window_segments = 1: greedy flows leave slots unused; goodput comes out up to "
            "13 % off, and round trips of other flows up to 39 % long"
        )
    return weak


def _stretch(scenario: Scenario, train: Train) -> float:
    """Return how many times as many transmissions a segment takes in the radio's bad state as in the good."""
    radio, link = scenario.radio, scenario.link
    if radio.model != "gilbert-elliott" or radio.per is not None or link.arq == "none":
        return 1.0
    if radio.bad_s <= SHORT_FADE_S:
        return 1.0
    good, bad = (
        sum(
            1.0 / max(1.0 - float(packet_error_rate(packet, ber, bits=radio.bits)), 1e-3)
            for packet in train.packets
        )
        for ber in (radio.ber_good, radio.ber_bad)
    )
    return bad / good
