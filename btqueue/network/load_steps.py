"""A load that changes in steps: the steady state of every step, weighted by the time that it lasts.

Quasi-stationary: each step is taken as long against the time that the network takes to settle. So the
approach to a new steady state does not count, nor the backlog that an overloaded step leaves for the next one
(with a warning).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from btqueue.network.answers import Answer
from btqueue.network.bounds import law_of
from btqueue.scenario import Scenario
from btqueue.scenario.topology import FlowPlan, topology
from btqueue.scenario.traits import shares_segments

PER_SEGMENT = ("rtt_s", "delay_s", "cwnd_segments", "window_segments", "acknowledged_delay_s")
PER_PACKET = ("segment_loss", "loss_")
OVER_TIME = (
    *("goodput_kbps", "throughput_kbps", "queue_packets", "slot_utilisation"),
    *("timeouts_per_s", "fast_retransmits_per_s", "retransmissions_per_s", "polls_per_s"),
)
"""Metrics by the weight of their means: segments delivered, packets sent, or time. Cycles are counted.
Quantiles are left out: no mean over the steps gives them."""

CARRIED = 0.98
"""Share of the offered load below which a step counts as overloaded."""


class Step(NamedTuple):
    """A load (kbit/s per flow), the seconds of the measurement for which it lasts, and if it is the first.

    Before the first change a flow with an individual load keeps it; a change applies to every flow.
    """

    load_kbps: float
    seconds: float
    opening: bool = False


def steps_of(scenario: Scenario) -> list[Step]:
    """Return the steps within the measurement, which begins at the end of the warm-up."""
    warmup = scenario.run.warmup_s
    begin = 0.0 if warmup == "auto" else float(warmup)
    end = begin + scenario.run.duration_s
    loads = [scenario.traffic.load_kbps, *(step.load_kbps for step in scenario.traffic.load_schedule)]
    times = [0.0, *(step.at_s for step in scenario.traffic.load_schedule), np.inf]
    lasting = [min(late, end) - max(early, begin) for early, late in pairwise(times)]
    return [
        Step(load, time, opening=number == 0)
        for number, (load, time) in enumerate(zip(loads, lasting, strict=True))
        if time > 0
    ]


def in_step(scenario: Scenario, step: Step) -> Scenario:
    """Return the scenario with the load of a step for ever."""
    changes: dict[str, Any] = {"traffic.load_kbps": step.load_kbps, "traffic.load_schedule": []}
    flows = scenario.network.flows
    if not (step.opening or isinstance(flows, str)):
        changes["network.flows"] = [
            flow.model_dump(by_alias=True, exclude_none=True, exclude={"load_kbps"}) for flow in flows
        ]
    return scenario.changed(changes)


def offered_kbps(scenario: Scenario, flow: FlowPlan, step: Step) -> float:
    """Return the load of a flow in the step (kbit/s); infinite where its source has none."""
    if law_of(scenario, flow) not in ("poisson", "ibp", "periodic"):
        return np.inf
    return (flow.spec.own.get("load_kbps") if flow.spec and step.opening else None) or step.load_kbps


def answer_in_steps(scenario: Scenario, answer: Callable[[Scenario], Answer]) -> Answer:
    """Return metrics and notes of a scenario with a `traffic.load_schedule`, from the answers of its steps.

    Raises:
        NoConvergence: a step has no answer.
    """
    steps = steps_of(scenario)
    answers = [answer(in_step(scenario, step)) for step in steps]
    every = [metrics for metrics, _ in answers]
    names = [name for name in every[0] if all(name in metrics for metrics in every)]
    time = np.array([step.seconds for step in steps])
    metrics: dict[str, Any] = {}
    for name in names:
        if (weights := _weights(name, time, every)) is None:
            continue
        if name == "queue_packets":
            queues = [q for q in every[0][name] if all(q in one[name] for one in every)]
            metrics[name] = {q: _mean([one[name][q] for one in every], weights) for q in queues}
        else:
            metrics[name] = _mean([one[name] for one in every], weights)
    return metrics, _notes(scenario, steps, answers)


def _weights(name: str, time: np.ndarray, every: list[Any]) -> np.ndarray | None:
    """Return the weights of the steps in the mean of a metric, shape (steps, ...)."""

    def times(key: str) -> np.ndarray:
        rate = np.array([one[key] for one in every], dtype=float)
        return rate * time.reshape(-1, *[1] * (rate.ndim - 1))

    if name in OVER_TIME:
        return time
    if name == "cycle_s":
        return time / np.array([one["cycle_s"] for one in every])
    if name in PER_SEGMENT:
        return times("goodput_kbps")
    if name.startswith(PER_PACKET):
        return times("throughput_kbps" if "throughput_kbps" in every[0] else "goodput_kbps")
    return None


def _mean(values: list[Any], weights: np.ndarray) -> Any:
    """Return the weighted mean over the steps; values and weights may be for each flow or for all.

    A step without weight, in which nothing was carried, needs no value; without any weight there is no mean.
    """
    array = np.array(values, dtype=float)
    trailing = max(array.ndim, weights.ndim)
    shaped = (x.reshape(*x.shape, *[1] * (trailing - x.ndim)) for x in (array, weights))
    array, weights = np.broadcast_arrays(*shaped)
    counted, total = np.where(weights == 0, 0.0, array * weights).sum(axis=0), weights.sum(axis=0)
    mean = np.divide(counted, total, out=np.full(np.shape(total), np.nan), where=total != 0)
    return float(mean) if mean.ndim == 0 else mean


def _notes(scenario: Scenario, steps: list[Step], answers: list[Answer]) -> dict[str, Any]:
    """Return how the steps were answered: the worst residual, all iterations, every warning with its load.

    Doubts about the mean over the steps are apart, too.
    """
    notes = [note for _, note in answers]
    warnings = [
        f"at a load of {step.load_kbps:g} kbit/s: {warning}"
        for step, note in zip(steps, notes, strict=True)
        for warning in note["warnings"]
    ]
    doubts = []
    for step, (metrics, _) in zip(steps[:-1], answers[:-1], strict=True):
        offered = np.array([offered_kbps(scenario, flow, step) for flow in topology(scenario).flows])
        short = np.isfinite(offered) & (metrics["goodput_kbps"] < CARRIED * offered)
        beyond = offered[short]
        if beyond.size:
            doubts.append(
                f"a load of {beyond.max():g} kbit/s is more than is carried; the backlog that it leaves for "
                "the next step is left out"
            )
    views = (scenario.of_flow(flow.spec) for flow in topology(scenario).flows)
    if len(steps) > 1 and any(shares_segments(one) and one.transport.nagle is not False for one in views):
        doubts.append(
            "round trips are weighed by the bytes of each step: messages that share segments (Nagle's "
            "algorithm) have fewer round trips at high loads"
        )
    methods = dict.fromkeys(note["method"] for note in notes)
    counts = [note["iterations"] for note in notes if "iterations" in note]
    loads = ", ".join(f"{step.load_kbps:g} for {step.seconds:g} s" for step in steps)
    return {
        **notes[-1],
        "method": f"quasi-stationary, loads {loads}: " + "; ".join(methods),
        "converged": all(note["converged"] for note in notes),
        **({"sampled": True} if any(note.get("sampled") for note in notes) else {}),
        "residual": max(note["residual"] for note in notes),
        **({"iterations": sum(counts)} if counts else {}),
        "warnings": [*warnings, *doubts],
        "doubts": doubts,
    }
