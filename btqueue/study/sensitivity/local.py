"""How metrics react to a small change of each key: derivatives and elasticities at one operating point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from btqueue.scenario import Scenario
from btqueue.study.evaluate import Failure
from btqueue.study.sensitivity.differences import (
    FLAT,
    NOTHING,
    STEPS,
    Derivative,
    Slopes,
    Stencil,
    best_of,
    floor_of,
    judge,
    slopes,
    step_difference,
)
from btqueue.study.sensitivity.factors import SHARE, Factor, factors
from btqueue.study.sensitivity.fitted import fitted_derivatives, places
from btqueue.study.sensitivity.local_result import Local, Row
from btqueue.study.sensitivity.solving import Progress, Solver, chosen_metrics

UNCHANGED = 1e-9
"""Relative change of a metric that is none."""


def local_sensitivity(
    scenario: Scenario,
    metrics: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    spread: Mapping[str, Any] | None = None,
    *,
    share: float = SHARE,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Local:
    """Return derivatives and elasticities of metrics by keys, from the solver.

    Keys that take real numbers get the derivative, by extrapolated differences with an estimated error, or
    the reason why there is none (see `btqueue.study.sensitivity.differences`); where answers are simulated,
    by a fit with a 95 % interval (see `btqueue.study.sensitivity.fitted`). Keys that take whole numbers get
    the differences of one step. Metrics are means over flows.

    Args:
        scenario: the operating point.
        metrics: names; by default goodput, round-trip time, segment loss and timeouts.
        keys: as in `btqueue.study.sensitivity.factors.factors`, like *spread* and *share*.
        spread: by key, the range in which it may plausibly lie; its ends are solved, too.
        share: width of the other ranges.
        workers: processes; by default this one alone, or all cores where there is much to do.
        progress: called with the points done and needed so far.

    Raises:
        ScenarioError: a key, a range or a metric is wrong, or the solver has no model of the scenario.
        NoConvergence: there is no operating point.
    """
    varied = factors(scenario, keys, spread, share)
    solver = Solver(scenario, workers, progress)
    names = chosen_metrics(metrics, solver.answer.metrics)
    base = {name: solver.answer.metrics[name].mean for name in names}
    active = active_factors(varied, names, solver)
    real = [factor for factor in active if not factor.whole]
    slopes_found = (fitted_derivatives if solver.simulated else derivatives_of)(real, names, solver)
    rows, failed = [], {}
    for factor in active:
        derivatives = _steps(factor, names, solver) if factor.whole else slopes_found[factor.key]
        if all(derivative.kind == "none" for derivative in derivatives.values()):
            failed[factor.key] = most_telling([failure for _, failure in _failures(factor, solver)])
            continue
        note = _note(factor, solver)
        for name in names:
            low, high = (_end(factor, end, name, base[name], solver) for end in (0, 1))
            rows.append(Row(factor, name, base[name], derivatives[name], low, high, note))
    quiet = tuple(factor.key for factor in varied if factor not in active)
    return Local(scenario, base, tuple(rows), quiet, failed, solver.solved, solver.about)


def active_factors(varied: Sequence[Factor], metrics: Sequence[str], solver: Solver) -> list[Factor]:
    """Return the keys that change a metric somewhere within their spread, or that have no answer there."""
    base = {name: solver.answer.metrics[name].mean for name in metrics}
    solver.solve_all(_change(factor, value) for factor in varied for value in _probes(factor))
    return [factor for factor in varied if not _is_idle(factor, solver, base)]


def _change(factor: Factor, value: float) -> dict[str, float]:
    return {factor.key: value}


def _probes(factor: Factor) -> list[float]:
    """Return the values that show whether a key has any effect."""
    ends = list(factor.ends) or [factor.value + factor.unit]
    return [*ends, factor.value - 1, factor.value + 1] if factor.whole else ends


def _is_idle(factor: Factor, solver: Solver, base: Mapping[str, float]) -> bool:
    """Whether no metric changes at any value that was tried, and at least one had an answer."""
    answers = [solver.at(_change(factor, value)) for value in _probes(factor)]
    means = [answer.means for answer in answers if answer.failure is None]
    return bool(means) and all(
        math.isclose(mean.get(name, math.nan), base[name], rel_tol=UNCHANGED, abs_tol=NOTHING)
        for mean in means
        for name in base
    )


def derivatives_of(
    active: Sequence[Factor], metrics: Sequence[str], solver: Solver
) -> dict[str, dict[str, Derivative]]:
    """Return derivatives by key and metric, with shorter steps for those keys that are not settled yet."""
    found: dict[str, dict[str, list[Slopes]]] = {f.key: {m: [] for m in metrics} for f in active}
    settled: dict[str, dict[str, Derivative]] = {f.key: {} for f in active}
    for relative in STEPS:
        open_ = [factor for factor in active if len(settled[factor.key]) < len(metrics)]
        solver.solve_all(_change(f, f.value + offset) for f in open_ for offset in _offsets(f, relative))
        for factor in open_:
            for metric in set(metrics) - set(settled[factor.key]):
                stencil = _stencil(factor, relative, metric, solver)
                found[factor.key][metric].append(slopes(stencil))
                floor, jump = _floors(factor, metric, stencil)
                if derivative := judge(found[factor.key][metric], floor, jump):
                    settled[factor.key][metric] = derivative
    for factor in active:
        for metric in set(metrics) - set(settled[factor.key]):
            floor, _ = _floors(factor, metric, _stencil(factor, STEPS[0], metric, solver))
            settled[factor.key][metric] = best_of(found[factor.key][metric], floor)
    return settled


def _offsets(factor: Factor, relative: float) -> list[float]:
    step = relative * factor.unit
    return [-step, -step / 2, step / 2, step]


def _stencil(factor: Factor, relative: float, metric: str, solver: Solver) -> Stencil:
    down, down_half, up_half, up = (
        solver.at(_change(factor, factor.value + offset)).mean(metric)
        for offset in _offsets(factor, relative)
    )
    return Stencil(
        relative * factor.unit, solver.answer.metrics[metric].mean, (down, down_half), (up, up_half)
    )


def _floors(factor: Factor, metric: str, stencil: Stencil) -> tuple[float, float]:
    """Return the least slope, and the least jump, that are more than noise."""
    values = [stencil.centre, *stencil.below, *stencil.above]
    floor = floor_of(values, factor.unit)
    return floor, max(FLAT * float(np.nanmax(np.abs(values))), NOTHING)


def _steps(factor: Factor, metrics: Sequence[str], solver: Solver) -> dict[str, Derivative]:
    down, up = (solver.at(_change(factor, factor.value + step)) for step in (-1, 1))
    return {
        metric: step_difference(down.mean(metric), solver.answer.mean(metric), up.mean(metric))
        for metric in metrics
    }


def _end(factor: Factor, place: int, metric: str, base: float, solver: Solver) -> float:
    """Return the metric at the low (0) or high (1) end of the spread."""
    if factor.spread is None:
        return math.nan
    end = (factor.spread.low, factor.spread.high)[place]
    return base if end == factor.value else solver.at(_change(factor, end)).mean(metric)


def _failures(factor: Factor, solver: Solver) -> list[tuple[str, Failure]]:
    """Return where ("below", "above") there is no answer near the scenario or at an end, and why."""
    values = _near(factor, solver) + list(factor.ends)
    found: dict[str, Failure] = {}
    for value in values:
        failure = solver.at(_change(factor, value)).failure
        if failure is not None:
            found.setdefault("below" if value < factor.value else "above", failure)
    return sorted(found.items(), reverse=True)


def _note(factor: Factor, solver: Solver) -> str:
    """Say on which sides answers are missing; that the key cannot have a value needs no explanation."""
    parts = []
    for side, failure in _failures(factor, solver):
        why = "not allowed" if failure.kind == "scenario" else " ".join(failure.message.split())
        parts.append(f"nothing {side}: {why}")
    return "; ".join(parts)


def _near(factor: Factor, solver: Solver) -> list[float]:
    """Return the values around the scenario's own that were solved."""
    if factor.whole:
        return [factor.value - 1, factor.value + 1]
    if solver.simulated:
        return places(factor)
    return [factor.value + offset for offset in _offsets(factor, STEPS[0])]


def most_telling(failures: Sequence[Failure]) -> str:
    """Return the words of the failure that says most: that a value is not allowed says least."""
    if not failures:
        return "the metrics have no value beside the scenario"
    telling = [failure for failure in failures if failure.kind != "scenario"] or failures
    return " ".join(telling[-1].message.split())
