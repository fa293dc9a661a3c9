"""Derivatives of metrics by continuous keys for two further solves each, where the answer is smooth.

Keys without a trait (`btqueue.scenario.description`) have no effect, and are not asked about.

The answers of theory are smooth in most keys, to the tolerance of their iterations: there a central
difference with a small step is as good as a derivative, and the slopes on the two sides say how good. Between
them lies the derivative of every function that bends one way within the step. Where they differ the key goes
through the longer study of `btqueue.study.sensitivity.local`, and where the answer itself is simulated a
parabola is fitted (`btqueue.study.sensitivity.fitted`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from btqueue.scenario import Problem, Scenario, ScenarioError
from btqueue.scenario.description import description, is_trait
from btqueue.study.evaluate import Failure
from btqueue.study.sensitivity.differences import CLOSE, NOTHING, Derivative, floor_of
from btqueue.study.sensitivity.factors import Factor, factors
from btqueue.study.sensitivity.fitted import fitted_derivatives
from btqueue.study.sensitivity.local import derivatives_of, most_telling
from btqueue.study.sensitivity.local_result import Local, Row
from btqueue.study.sensitivity.solving import Progress, Solver, chosen_metrics

FLAT = Derivative("flat", 0.0, NOTHING, 0.0, 0.0)

STEP = 3e-4
"""Step, in units of the key: short for what bends, long for iterations that stop at 1e-8."""


def gradient(
    scenario: Scenario,
    metrics: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Local:
    """Return the derivatives of metrics by continuous keys, from the solver.

    A smooth metric costs two solves a key, besides the scenario's own. Means are over flows.

    Args:
        scenario: the operating point.
        metrics: names; by default goodput, round-trip time, segment loss and timeouts.
        keys: dotted names; by default every key that holds a real number, but those of `[run]`.
        workers: processes; by default this one alone, or all cores where there is much to do.
        progress: called with the points done and needed so far.

    Raises:
        ScenarioError: a key or a metric is wrong, or the solver has no model of the scenario.
        NoConvergence: there is no operating point.
    """
    varied = _continuous(scenario, keys)
    solver = Solver(scenario, workers, progress)
    names = chosen_metrics(metrics, solver.answer.metrics)
    idle = _without_trait(varied, names, scenario)
    others = [factor for factor in varied if factor.key not in idle]
    solver.solve_all(change for factor in others for change in _pair(factor))
    failed = {factor.key: failures for factor in others if (failures := _failures(factor, solver))}
    found = idle | {
        factor.key: _at_once(factor, names, solver) for factor in others if factor.key not in failed
    }
    if solver.simulated:
        moved = [f for f in varied if f.key in found and not _is_flat(found[f.key])]
        found |= fitted_derivatives(moved, names, solver)
    else:
        open_ = [f for f in varied if f.key in found and None in found[f.key].values()]
        found |= derivatives_of(open_, names, solver)
    rows, quiet = [], []
    for factor in varied:
        here = found.get(factor.key, {})
        if here and _is_flat(here):
            quiet.append(factor.key)
            continue
        for name, derivative in here.items():
            assert derivative is not None
            rows.append(Row(factor, name, solver.answer.means[name], derivative, math.nan, math.nan))
    base = {name: solver.answer.means[name] for name in names}
    reasons = {key: most_telling(failures) for key, failures in failed.items()}
    return Local(scenario, base, tuple(rows), tuple(quiet), reasons, solver.solved, solver.about, "gradient")


def _without_trait(
    varied: Sequence[Factor], names: Sequence[str], scenario: Scenario
) -> dict[str, dict[str, Derivative | None]]:
    """Return the derivatives by keys that make no difference to the scenario."""
    there = {one.kind for one in description(scenario).traits}
    quiet = [factor.key for factor in varied if is_trait(factor.key) and factor.key not in there]
    return {key: dict.fromkeys(names, FLAT) for key in quiet}


def _continuous(scenario: Scenario, keys: Sequence[str] | None) -> list[Factor]:
    """Return the keys that take real numbers.

    Raises:
        ScenarioError: a key was asked for that takes whole numbers only, or one that cannot be varied.
    """
    found = factors(scenario, keys)
    whole = next((factor for factor in found if factor.whole), None)
    if keys is not None and whole is not None:
        words = f"{whole.key}: takes whole numbers only and has no derivative; a local study shows one step"
        raise ScenarioError(Problem(words, whole.key, whole.value))
    return [factor for factor in found if not factor.whole]


def _pair(factor: Factor) -> list[dict[str, float]]:
    """Return the changes to one step below and above."""
    return [{factor.key: factor.value + sign * STEP * factor.unit} for sign in (-1, 1)]


def _failures(factor: Factor, solver: Solver) -> list[Failure]:
    """Return why there is no answer on either side; empty if there is one."""
    failures = [solver.at(change).failure for change in _pair(factor)]
    return [failure for failure in failures if failure is not None] if None not in failures else []


def _is_flat(derivatives: Mapping[str, Derivative | None]) -> bool:
    """Whether a key changes no metric."""
    return all(found is not None and found.kind == "flat" for found in derivatives.values())


def _at_once(factor: Factor, names: Sequence[str], solver: Solver) -> dict[str, Derivative | None]:
    """Return, by metric, the derivative that the pair of solves settles, None for one that it does not."""
    below, above = (solver.at(change) for change in _pair(factor))
    return {
        name: central(
            (below.mean(name), solver.answer.mean(name), above.mean(name)), STEP * factor.unit, factor.unit
        )
        for name in names
    }


def central(values: tuple[float, float, float], step: float, unit: float) -> Derivative | None:
    """Return the central difference of three values if the slopes on both sides agree, else None."""
    down, centre, up = values
    left, right = (centre - down) / step, (up - centre) / step
    floor = floor_of(values, unit)
    if not abs(right - left) <= CLOSE * max(abs(left), abs(right)) + floor:
        return None  # also where one is not a number
    slope = (left + right) / 2
    if abs(slope) <= max(floor, NOTHING):
        return Derivative("flat", 0.0, floor, 0.0, 0.0)
    return Derivative("smooth", slope, abs(right - left) / 2, left, right)
