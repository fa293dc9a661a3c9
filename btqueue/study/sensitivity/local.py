"""How metrics react to a small change of each key: derivatives and elasticities at one operating point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from btqueue.network.variation import Plan
from btqueue.scenario import Scenario
from btqueue.scenario.traits import is_trait, traits
from btqueue.study.evaluate import Failure
from btqueue.study.sensitivity.derivatives import (
    FLAT,
    Derivative,
    of_simulations,
    of_steps,
    of_theory,
    of_zero,
)
from btqueue.study.sensitivity.factors import SHARE, Factor, factors
from btqueue.study.sensitivity.local_result import Local, Row
from btqueue.study.sensitivity.solving import Progress, Solver

NOTHING = 1e-12
"""A metric this small is 0, whatever its unit."""

STEP = 0.1
"""Of theory for a key that is 0, in units of the key (`Factor.unit`)."""

MANY = 20
"""Value of a whole number from which one step may do little, as of bytes."""


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
    """Return derivatives and elasticities of metrics by keys.

    Where theory stands they are its derivatives (`btqueue.network.variation.Plan`), or the reason why there
    is none; whole numbers get the differences of one step. Elsewhere they are secants of simulations, from a
    tenth of the key below to a tenth above, with a 95 % interval. A metric stands for its mean over flows.

    Args:
        scenario: the operating point.
        metrics: names, or quantities such as ``"p95(delay_s, sensors)"``; by default goodput, round-trip
            time, message delay (of a source with a load), segment loss and timeouts.
        keys: as in `btqueue.study.sensitivity.factors.factors`, like *spread* and *share*.
        spread: by key, the range in which it may plausibly lie; its ends are answered, too.
        share: width of the other ranges.
        workers: processes; by default this one alone, or all cores where there is much to do.
        progress: called with the points done and the points known to be needed.

    Raises:
        ScenarioError: a key, a range or a metric is wrong, or theory and simulation have no model of the
            scenario.
        NoConvergence: there is no operating point, and the scenario cannot be simulated.
    """
    varied = factors(scenario, keys, spread, share)
    solver = Solver(scenario, metrics, workers, progress)
    names = solver.names
    base = {name: solver.answer.metrics[name].mean for name in names}
    there = {one.kind for one in traits(scenario)}
    given = set(spread or ())  # which may reach to where a key without effect has one
    known = [f for f in varied if not f.value or not is_trait(f.key) or f.key in there | given]
    active = active_factors(known, names, solver)
    found = (_by_simulation if solver.simulated else _by_theory)(active, names, solver)
    rows, failed = [], {}
    for factor in active:
        failures = _failures(factor, solver)
        ends = {
            name: (_end(factor, 0, name, base[name], solver), _end(factor, 1, name, base[name], solver))
            for name in names
        }
        none = all(derivative.kind == "none" for derivative in found[factor.key].values())
        if none and np.isnan(list(ends.values())).all():
            failed[factor.key] = most_telling([failure for _, failure in failures])
            continue
        note = _note(failures) or none * f"no derivative: there is no answer close to {factor.value:g}"
        for name, (low, high) in ends.items():
            rows.append(Row(factor, name, base[name], found[factor.key][name], low, high, note))
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
    return list(factor.ends) or [factor.value + factor.unit]


def _is_idle(factor: Factor, solver: Solver, base: Mapping[str, float]) -> bool:
    """Whether no metric changes at any value that was tried, and at least one had an answer."""
    answers = [solver.at(_change(factor, value)) for value in _probes(factor)]
    means = [answer.means for answer in answers if answer.failure is None]
    return bool(means) and all(
        math.isclose(mean.get(name, math.nan), base[name], rel_tol=FLAT, abs_tol=NOTHING)
        for mean in means
        for name in base
    )


Found = dict[str, dict[str, Derivative]]
"""Derivatives by key and metric."""


def _by_theory(active: Sequence[Factor], names: Sequence[str], solver: Solver) -> Found:
    """Return theory's derivatives; of whole numbers, and of keys that a plan does not vary, by steps."""
    plan = Plan(solver.scenario)
    smooth = [factor for factor in active if not factor.whole and factor.key in plan.parameters]
    stepped = [factor for factor in active if factor not in smooth]
    solver.solve_all(_change(f, f.value + side * d) for f in stepped for side in (-1, 1) for d in _steps(f))
    found: Found = {}
    for factor in stepped:
        below, above = (
            [solver.at(_change(factor, factor.value + side * d)) for d in _steps(factor)] for side in (-1, 1)
        )
        for name in names:
            down, up = ([answer.mean(name) for answer in way] for way in (below, above))
            step = of_steps(solver.answer.mean(name), down, up, _steps(factor)[0])
            found.setdefault(factor.key, {})[name] = step if factor.whole else of_zero(step)
    solver.expect(len(smooth))
    for factor in smooth:
        found[factor.key] = {n: of_theory(sides) for n, sides in plan.sides(names, factor.key).items()}
        solver.tell()
    return found


def _steps(factor: Factor) -> tuple[float, ...]:
    """Return the steps by which theory is asked: a second one where one may do little."""
    if not factor.whole:
        return (STEP * factor.unit,)
    return (1, 2) if factor.unit >= MANY else (1,)


def _by_simulation(active: Sequence[Factor], names: Sequence[str], solver: Solver) -> Found:
    """Return the secants of simulations over `SHARE` of each key to both sides."""
    solver.solve_all(_change(f, f.value + offset) for f in active for offset in _offsets(f))

    def samples(answer: Any, name: str) -> tuple[float, ...]:
        return answer.metrics[name].samples if name in answer.metrics else ()

    found: Found = {}
    for factor in active:
        offsets = _offsets(factor)
        below, above = (solver.at(_change(factor, factor.value + offset)) for offset in offsets)
        found[factor.key] = {
            name: of_simulations(
                samples(below, name), samples(solver.answer, name), samples(above, name), offsets
            )
            for name in names
        }
    return found


def _offsets(factor: Factor) -> tuple[float, float]:
    """Return how far from the scenario a key is simulated, below and above."""
    step = SHARE * factor.unit if factor.value else factor.unit
    step = max(1, round(step)) if factor.whole else step
    return -step, step


def _end(factor: Factor, place: int, metric: str, base: float, solver: Solver) -> float:
    """Return the metric at the low (0) or high (1) end of the spread."""
    if factor.spread is None:
        return math.nan
    end = (factor.spread.low, factor.spread.high)[place]
    return base if end == factor.value else solver.at(_change(factor, end)).mean(metric)


def _failures(factor: Factor, solver: Solver) -> list[tuple[str, Failure]]:
    """Return where ("below", "above") there is no answer, and why."""
    found: dict[str, Failure] = {}
    for value, failure in solver.failures(factor.key):
        found.setdefault("below" if value < factor.value else "above", failure)
    return sorted(found.items(), reverse=True)


def _note(failures: Sequence[tuple[str, Failure]]) -> str:
    """Say on which sides answers are missing; that the key cannot have a value needs no explanation."""
    parts = []
    for side, failure in failures:
        why = "not allowed" if failure.kind == "scenario" else " ".join(failure.message.split())
        parts.append(f"nothing {side}: {why}")
    return "; ".join(parts)


def most_telling(failures: Sequence[Failure]) -> str:
    """Return the most informative failure's message; a refused value informs least."""
    if not failures:
        return "the metrics have no value beside the scenario"
    telling = [failure for failure in failures if failure.kind != "scenario"] or failures
    return " ".join(telling[-1].message.split())
