"""The whole check: consistency first, then agreement, then likely causes, and one summary."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from btqueue.network.measured_errors import Kind, MeasuredError, measured_errors
from btqueue.scenario import NotBuiltYet, Scenario
from btqueue.scenario.metrics import NOT_OF_FLOWS, Results
from btqueue.scenario.topology import topology
from btqueue.study.check.agreement import (
    NEGLIGIBLE,
    TOLERANCE,
    Agreement,
    Rules,
    compare_all,
    compared_metrics,
    model_values,
    reference_samples,
)
from btqueue.study.check.causes import Cause, likely_causes, other_units, unseen_keys
from btqueue.study.check.consistency import (
    check_consistency,
    check_spread,
    copies,
    is_random,
    shared_streams,
    telling_samples,
    unused_window,
)
from btqueue.study.check.facts import compare_facts
from btqueue.study.check.reading import read_results
from btqueue.study.check.results import BadResults, Finding, ForeignResults

REPLICATIONS_FOR_ONE = 30
"""Least replications of ours beside a single run of theirs, whose variance must come from ours."""
REPLICATIONS_FOR_COPIES = 100
"""Replications of ours beside a file in which replications are equal, to see whether ours are, too."""
JITTERED = 16
"""Runs with jittered starts where nothing is random."""
JITTER = 0.01
"""Longest delay of a packet at its sender in these runs, as a share of the round trip (or message delay)."""
MOST_TIMES = 100
"""Most that the time in a file may be of the scenario's."""
Engine = Callable[[Scenario], Results | xr.Dataset]


@dataclass(frozen=True, repr=False)
class Beside:
    """A file compared with our engines: the common part of the results of a check and of a fit.

    Attributes:
        results: read from the file.
        scenario: the scenario that was simulated, over the time that the file covers.
        findings: findings of internal consistency, and facts of the file that contradict the scenario.
        agreements: metric by metric beside the simulation.
        notes: how the file was read; checks that were left out, and why; the meaning of the numbers.
    """

    results: ForeignResults
    scenario: Scenario
    findings: tuple[Finding, ...]
    agreements: tuple[Agreement, ...]
    notes: tuple[str, ...]

    @property
    def differing(self) -> tuple[Agreement, ...]:
        """Return the metrics that differ."""
        return tuple(one for one in self.agreements if one.verdict == "differs")

    @property
    def compared(self) -> str:
        """The flows that were compared, in words; "" where there is one flow only."""
        return compared_flows(self.results, self.scenario)


@dataclass(frozen=True, repr=False)
class Report(Beside):
    """The result of a check.

    Attributes:
        causes: neighbours of the scenario that fit, the best first; `tried` of them were simulated.
        unseen: keys that may be half or twice as large without a difference in these metrics, by the model.
        rules: rules of the comparison; one minus their confidence is the probability of any false alarm.
    """

    causes: tuple[Cause, ...]
    tried: int
    unseen: tuple[str, ...]
    rules: Rules

    def __repr__(self) -> str:
        return f"<Report {self.summary}>"

    @property
    def inconsistent(self) -> tuple[Finding, ...]:
        """Return the checks of consistency that failed."""
        return tuple(one for one in self.findings if one.status == "failed")

    @property
    def agrees(self) -> bool:
        """Whether nothing failed and nothing differs."""
        return not self.inconsistent and not self.differing

    @property
    def summary(self) -> str:
        """Return the result in a sentence."""
        count = sum(one.verdict != "not compared" for one in self.agreements)
        blind = sum(one.verdict == "cannot tell" for one in self.agreements)
        alarm = "against the model alone"
        if any(not math.isnan(one.p_value) for one in self.agreements):
            alarm = f"chance of any false alarm {1 - self.rules.confidence:.2g}"
        elif any(not math.isnan(one.simulation) for one in self.agreements):
            alarm = f"nothing is random: tolerance {100 * self.rules.tolerance:.2g} %"
        if self.agrees:
            told = f"agrees: {count - blind} of {count} metrics" + (f", {blind} cannot tell" if blind else "")
            told += ", nothing inconsistent"
            if blind and blind == count:
                told = "cannot tell: half or twice as much would pass in every metric"
            doubts = sum(one.status == "doubtful" for one in self.findings)
            return f"{told}{f', {doubts} doubtful' if doubts else ''} ({alarm})"
        failed, differing, parts = len(self.inconsistent), len(self.differing), []
        if failed:
            parts.append(f"{failed} check{'s' if failed > 1 else ''} of consistency failed")
        if differing:
            parts.append(f"{differing} of {count} metrics differ{'s' if differing == 1 else ''}")
        return f"does not agree: {' and '.join(parts)} ({alarm})"


def check(
    results: str | Path | ForeignResults,
    scenario: Scenario,
    *,
    confidence: float = 0.99,
    tolerance: float | None = None,
    flow: int | None = None,
    simulate: Engine | bool | None = True,
    solve: Engine | bool | None = True,
) -> Report:
    """Check another simulator's output of a scenario.

    Args:
        results: a file, or the result of `read_results`.
        scenario: the scenario that was simulated there.
        confidence: one minus the probability that a correct simulator fails in any metric or test.
        tolerance: relative difference that does not matter; default: 0.03 where nothing in the scenario is
            random, else 0.01.
        flow: the flow, from 1, that the file is about; see `read_results`.
        simulate: True for our simulator, another function in its place, or None to leave it out.
        solve: the same for the model.

    Raises:
        BadResults: the file cannot be used.
        ValueError: the confidence is not between 0 and 1, or the tolerance is below 0 or not below 1.
        NotBuiltYet: neither engine can answer the scenario.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence:g}: must be between 0 and 1")
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ValueError(f"tolerance = {tolerance:g}: must be at least 0 and below 1")
    found = results_of(results, scenario, flow)
    reference = reference_scenario(found, scenario)
    rules = rules_of(scenario, reference.run.duration_s, confidence, tolerance)
    simulator, solver = engine_of("simulate", simulate), engine_of("solve", solve)
    model, errors, notes = modelled(scenario, found, solver)
    samples: dict[str, np.ndarray] = {}
    many = samples
    if simulator:
        simulator = simulator if rules.random else jittered(simulator)
        samples = many = reference_samples(simulator(reference), found, scenario)
        if rules.random and copies(zip(*telling_samples(found).values(), strict=True)):
            more = reference.changed({"run.replications": REPLICATIONS_FOR_COPIES})
            many = reference_samples(simulator(more), found, scenario)
    elif not model:
        raise NotBuiltYet(
            f"there is nothing to compare with: {'; '.join(notes) or 'no engine was asked for'}"
        )
    findings = (
        *compare_facts(found, scenario),
        *check_consistency(found, scenario),
        *shared_streams(found, scenario, many),
        *check_spread(found, samples, rules),
    )
    agreements = compare_all(found, samples, model, rules=rules, errors=errors)
    differing = [one for one in agreements if one.verdict == "differs"]
    run, assumed = scenario.run, []  # where the file is silent
    if any(not math.isnan(q.half_width) and q.replications is None for q in found.quantities.values()):
        assumed.append(
            f"the file does not say how many replications its intervals are of: taken as {run.replications}"
        )
    if found.duration_s is None:
        length = f"{run.duration_s:g} s"
        assumed.append(f"the file does not say how long a run is: taken as run.duration_s = {length}")
    if differing:
        notes = unused_window(found, scenario) + notes
    causes, tried, unseen = (), 0, ()
    units = other_units(agreements)
    if simulator and len(differing) > len(units):
        causes, tried = likely_causes(reference, found, simulator, agreements, rules)
    elif simulator and solver and model and not differing:
        unseen = unseen_keys(scenario, found, solver, model, samples, rules)
    told = (*found.notes, *assumed, *notes)
    return Report(found, reference, findings, agreements, told, units + causes, tried, unseen, rules)


def rules_of(
    scenario: Scenario, seconds: float, confidence: float = 0.99, tolerance: float | None = None
) -> Rules:
    """Return the rules of a comparison with a scenario whose runs last `seconds`; see `check`."""
    random = is_random(scenario.changed({"run.jitter_s": 0.0}))
    usual = NEGLIGIBLE if random else TOLERANCE
    allowed = usual if tolerance is None else tolerance
    return Rules(confidence, scenario.run.replications, seconds, allowed, random)


def compared_flows(results: ForeignResults, scenario: Scenario) -> str:
    """Return in words the flows whose metrics are compared; "" where the scenario has one flow only."""
    names = topology(scenario).flow_names
    if len(names) == 1:
        return ""
    if results.flow is not None:
        unsure = "; the file does not say which flow it is of, and --flow takes another"
        taken = f"compared with flow {results.flow} ({names[results.flow - 1]})"
        return taken + (unsure if results.flow_assumed else "")
    if results.groups:
        return f"compared by groups, for flows differ: {', '.join(results.groups)}"
    means = any("[" not in name and name not in NOT_OF_FLOWS for name in compared_metrics(results))
    return f"compared with means over all {len(names)} flows" if means else ""


def results_of(results: str | Path | ForeignResults, scenario: Scenario, flow: int | None) -> ForeignResults:
    """Return results that were read already, or read a file of results."""
    return results if isinstance(results, ForeignResults) else read_results(results, scenario, flow=flow)


def jittered(simulate: Engine) -> Engine:
    """Return a simulator that plays a scenario as it is and, after that, with random delays of packets.

    A network without random parts settles in one of several limit cycles. With a small random delay of
    packets at their senders it comes into other cycles, too.
    """

    def both(scenario: Scenario) -> xr.Dataset:
        exact = simulate(scenario.changed({"run.replications": 1}))
        times = [float(exact[name].mean()) for name in ("rtt_s", "delay_s") if name in exact]
        longest = JITTER * next((time for time in times if time > 0), 0.1)
        changes = {"run.jitter_s": scenario.run.jitter_s or min(longest, 1.0), "run.replications": JITTERED}
        parts = [exact, simulate(scenario.changed(changes))]
        parts = [one.to_dataset() if isinstance(one, Results) else one for one in parts]
        return xr.concat(parts, "replication", data_vars="minimal", coords="minimal", compat="override")

    return both


def reference_scenario(results: ForeignResults, scenario: Scenario) -> Scenario:
    """Return the scenario as it has to be simulated to be compared: over the time that the file covers.

    Raises:
        BadResults: the file covers so much more time than the scenario that a simulation would take too long.
    """
    changes: dict[str, Any] = {"run.precision": None}
    if results.duration_s is not None:
        planned = scenario.run.duration_s
        if results.duration_s > planned * MOST_TIMES:
            raise BadResults(
                f"{results.source}: covers {results.duration_s:g} s, more than {MOST_TIMES} times "
                f"run.duration_s = {planned:g}: if that is no damage, give --set run.duration_s="
                f"{results.duration_s:g}"
            )
        changes["run.duration_s"] = results.duration_s
    if results.measured_from_start:
        changes["run.warmup_s"] = 0.0
    single = any(math.isnan(q.shown_half_width) for q in results.quantities.values())
    least = REPLICATIONS_FOR_ONE if single else 2
    changes["run.replications"] = max(scenario.run.replications, least)
    return scenario.changed(changes)


def modelled(
    scenario: Scenario, results: ForeignResults, solver: Engine | None
) -> tuple[dict[str, float], Mapping[str, MeasuredError], list[str]]:
    """Return the model's answers, its measured errors and notes on them.

    There are none if no model covers the scenario, or none has an answer.
    """
    if solver is None:
        return {}, {}, []
    from btqueue.network import ImpossibleAnswer, NoConvergence

    try:
        solved = solver(scenario)
    except (NotBuiltYet, NoConvergence, ImpossibleAnswer) as error:
        return {}, {}, [f"no model: {error}"]
    errors: Mapping[str, MeasuredError] = {}
    if (answers := solved.attrs.get("errors_of")) is not None:
        errors = measured_errors(answers, Kind(solved.attrs["system"], solved.attrs["regime"]))
    text = "the model is approximate: a difference within its usual error says nothing against the file"
    doubts = [f"the model doubts its answer: {doubt}" for doubt in solved.attrs.get("why", ())]
    values = model_values(solved, results, scenario)
    return values, errors, [text, *doubts]


def engine_of(name: Literal["simulate", "solve"], given: Engine | bool | None) -> Engine | None:
    """Return the engine that an argument means: ours for True, none for False or None, else the function."""
    if given is not True:
        return given or None
    if name == "solve":
        from btqueue.network import solve  # loads JAX

        return solve
    from btqueue.simulator import simulate  # loads numba

    return simulate
