"""A piconet: its metrics, from queues (`piconet.coupling`).

The rates come from loads, windows and radio errors; round trips, losses and queues from the polled pairs and
token buckets at these rates. Approximations, with their measured errors, are on the documentation's page of
this model.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.piconet.coupling import LOAD, WINDOW
from btqueue.network.piconet.covers import (
    given_up_late,
    is_lossy,
    is_plain_ring,
    not_in_law,
)
from btqueue.network.piconet.doubts import is_queue, unknown_losses, warnings_of
from btqueue.network.piconet.metrics import RARE, Findings, metrics_of_many
from btqueue.network.piconet.plan import Plan, law_of, windows_fit
from btqueue.network.regime import FREQUENT
from btqueue.network.stations.network import network_of
from btqueue.network.stations.tagged import tagged as sampled
from btqueue.queueing._precision import in_float64
from btqueue.scenario import Scenario
from btqueue.scenario.errors import bracketed, shown
from btqueue.transport.tcp_law import longest_window


def tagged(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes of one tagged connection of a ring."""
    return sampled(scenario, network_of(scenario))


NOTHING = 1e-9
"""Probability of an exchange below which nothing moves."""
UNEVEN = ("lwrr", "prc-lwrr", "slq", "ldq")
"""Disciplines of which the way of the data alone is too short, and that of the acknowledgement too long."""
OFTEN = 0.02
"""Share of the segments that buffers damage from which there is no answer where TCP's is not known."""
FLUSHED_AFTER = 7.0
"""Mean times of a segment after which next to none is under way."""
FLUSHED = float(np.exp(-FLUSHED_AFTER))
CARRIED = ("goodput_kbps", "throughput_kbps", "slot_utilisation")
"""What is known of a load that packets carry of which one fills a gap of voice links."""
CONVERGED = 1e-6
"""Relative change of a rate in the last iteration up to which an answer stands."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: nothing gets through, rates never settled, or flows live by a full buffer's losses.
    """
    if not has_closed_forms(scenario):
        return tagged(scenario)
    plan = Plan(scenario, apart=False)
    return answer_at(plan, *jax.tree.map(np.asarray, plan.with_findings()))


AT_ONCE = 32
"""Scenarios that are solved together: always as many, so that one program is compiled for a structure."""


def answers(scenarios: Sequence[Scenario]) -> list[tuple[dict, dict] | NoConvergence]:
    """Return what `answer` returns, or raises, for each scenario; those alike are solved together."""
    plans = {k: Plan(s, apart=False) for k, s in enumerate(scenarios) if has_closed_forms(s)}
    alike: dict[Any, list[int]] = {}
    for number, plan in plans.items():
        leaves, tree = jax.tree.flatten(plan.system({}))
        alike.setdefault((tree, *(np.shape(leaf) for leaf in leaves)), []).append(number)
    solved: dict[int, tuple[dict[str, Any], Findings]] = {}
    for numbers in alike.values():
        for begin in range(0, len(numbers), AT_ONCE):
            some = numbers[begin : begin + AT_ONCE]
            solved |= zip(some, _together([plans[k] for k in some]), strict=True)

    def found(number: int) -> tuple[dict, dict] | NoConvergence:
        try:
            if number in plans:
                return answer_at(plans[number], *solved[number])
            return tagged(scenarios[number])
        except NoConvergence as error:
            return error

    return [found(number) for number in range(len(scenarios))]


@in_float64
def _together(plans: Sequence[Plan]) -> list[tuple[dict[str, Any], Findings]]:
    """Return metrics and findings of plans with arrays of the same shapes."""
    systems = [plan.system({}) for plan in [*plans, *[plans[-1]] * (AT_ONCE - len(plans))]]
    stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *systems)
    metrics, findings = metrics_of_many(stacked)
    return [
        (
            plan.of_flows({name: value[k] for name, value in metrics.items()}),
            Findings(*(one[k] for one in findings)),
        )
        for k, plan in enumerate(plans)
    ]


def has_closed_forms(scenario: Scenario) -> bool:
    """Return whether queues and TCP's law are asked at all: not of a ring whose radio loses segments.

    On 24 rings with constant errors TCP's law at the mean loss had round trips 12 % off in the median, and
    the tagged connection 2 %.
    """
    return not (is_lossy(scenario) and is_plain_ring(scenario))


def answer_at(plan: Plan, metrics: dict[str, np.ndarray], findings: Findings) -> tuple[dict, dict]:
    """Return metrics and notes of what was found, or of one tagged connection of a ring that overflows.

    Raises:
        NoConvergence: nothing gets through, rates never settled, or flows live by a full buffer's losses.
    """
    if not is_plain_ring(plan.scenario):
        return _of_queues(plan, metrics, findings)
    if not has_closed_forms(plan.scenario) or _overflows(plan, findings):
        return tagged(plan.scenario)
    try:
        return _of_queues(plan, metrics, findings)
    except NoConvergence:  # which the tagged connection raises again where nothing moves
        return tagged(plan.scenario)


def _overflows(plan: Plan, findings: Findings) -> bool:
    """Return whether connections of a ring overflow buffers so often that this decides on their rates."""
    net, lost = plan.piconet, findings.lost
    assert net.ack is not None
    often = findings.rates * lost / np.maximum(1.0 - lost, NOTHING) > FREQUENT
    # the closed forms take it that acknowledgements of others need no room beside a full window
    packets = len(net.data.packets) + len(net.ack.packets)
    outgrown = np.isfinite(net.token_rate) and net.buffer < net.senders[0].window * packets
    return bool(often.any() or (outgrown and (findings.limited == WINDOW).any()))


def _of_queues(plan: Plan, metrics: dict[str, np.ndarray], findings: Findings) -> tuple[dict, dict]:
    """Return metrics and notes of the queues.

    Raises:
        NoConvergence: nothing gets through, rates never settled, or flows live by a full buffer's losses.
    """
    if (findings.success < NOTHING).any():
        raise NoConvergence("no segment gets through: the flows never move")
    if not findings.residual <= CONVERGED:
        raise NoConvergence(
            "no rates of this piconet's flows were found that fit the delays they cause (relative residual "
            f"{float(findings.residual):.1g})"
        )
    # there goodput was measured to be 15 % off in the median, and 140 % in the worst of 100 rings:
    # connections overflow the buffer in a fixed rhythm, which decides between fast retransmits and timeouts
    if (findings.relayed & (findings.limited == WINDOW) & findings.outgrown).any():
        raise NoConvergence(
            "connections through the central are held back by a full buffer, whose losses this model does "
            "not know: give their windows room (transport.receive_window_segments, "
            "flow_control.buffer_packets), or lower traffic.load_kbps"
        )
    discipline = plan.scenario.polling.discipline
    if discipline == "fep" and plan.piconet.ack is None and findings.overload.any():
        raise NoConvergence(
            '[polling] discipline = "fep": the turns of queues of datagrams that are always full are not '
            "known; lower traffic.load_kbps to what is carried"
        )
    _require_law(plan, metrics)
    if (findings.limited != LOAD).any() and findings.success.min() < 1.0 - RARE:
        for unknown in not_in_law(plan.scenario):
            if unknown.key.endswith(("variant", "limited_transmit")):  # 40 to 65 % of goodput off
                raise NoConvergence(
                    f"{bracketed(unknown.key)} = {shown(unknown.value)} is not in TCP's law, and decides "
                    f"where losses on the radio hold connections back; available: {unknown.available}"
                )
    if findings.lost.max() > OFTEN and (unknown := unknown_losses(plan, findings)):
        raise NoConvergence(unknown)
    known: dict[str, Any] = {name: value for name, value in metrics.items() if not np.isnan(value).any()}
    if plan.piconet.ack is not None and discipline in UNEVEN:
        known.pop("delay_s", None)
    if discipline == "fep":  # how often idle stations are polled depends on the others
        known.pop("cycle_s", None)
    _require_no_flush(plan.scenario, metrics)
    method = "queueing: polled ports, token buckets and TCP's rate in one fixed point"
    if plan.piconet.fills_gaps and (findings.limited == LOAD).any():
        known = {name: value for name, value in known.items() if name in CARRIED}
        method += "; when packets that fill a gap of voice links get their turn is not known: no round trips"
    if "token_buffer" in known:
        known["queue_packets"] = {"token_buffer": known.pop("token_buffer")}
    notes = {
        "method": method,
        "converged": True,
        "residual": float(findings.residual),
        # one queue is exact at any load: nothing of it is in doubt
        **({} if is_queue(plan.piconet) else {"utilisation": float(findings.room.max())}),
        "warnings": warnings_of(plan, findings),
    }
    return known, notes


def _require_no_flush(scenario: Scenario, metrics: dict[str, np.ndarray]) -> None:
    """Make sure that next to no segment is older than the flush timeout.

    What has waited so long is given up at its next failure. The time of a segment is exponential where
    services are, and more regular with more regular ones: its tail is below that of an exponential law.

    Raises:
        NoConvergence: some are.
    """
    flush_s = scenario.link.flush_timeout_s
    if flush_s is None or not given_up_late(scenario):
        return
    in_network = metrics.get("rtt_s", metrics["delay_s"])
    mean_s = np.where(np.isnan(metrics["delay_s"]), in_network, metrics["delay_s"]).max()
    late = float(np.exp(-flush_s / mean_s))
    if not late < FLUSHED:
        raise NoConvergence(
            f"[link] flush_timeout_s = {flush_s:g}: up to {late:.1g} of the segments, which take "
            f"{mean_s:.3g} s on average, would be given up; available: leaving it out, or at least "
            f"{FLUSHED_AFTER:g} times as long as segments take"
        )


def _require_law(plan: Plan, metrics: dict[str, np.ndarray]) -> None:
    """Make sure that windows beyond those of TCP's tables would make no difference.

    Raises:
        NoConvergence: they would.
    """
    if plan.law is None:
        return
    transport = plan.scenario.transport
    variant, asked = law_of(transport.variant), transport.receive_window_segments
    longest = longest_window(variant)
    if not windows_fit(asked, metrics["window_segments"], longest):
        raise NoConvergence(
            f'transport.receive_window_segments = {asked}: the law of "{variant}" with losses is known to '
            f"windows of {longest} segments, and these connections would use more"
        )
