"""The winner of a dimensioning and its neighbours, simulated with common random numbers.

All points share the scenario's seed, so that the difference between two points is less noisy than each of
them: comparisons are of pairs of replications with the same number (Law 2015, chapters 10 and 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btqueue.scenario import Scenario
from btqueue.study.dimensioning.choices import Choice, Place
from btqueue.study.dimensioning.paired import (
    Bound,
    bound_verdict,
    different,
    estimate,
    paired_p_value,
    samples_of,
)
from btqueue.study.dimensioning.problem import Task
from btqueue.study.dimensioning.table import Candidate
from btqueue.study.evaluate import Failure, failure_of
from btqueue.study.summary import Estimate, flows_without_goodput
from btqueue.study.value_ranges import label

if TYPE_CHECKING:
    import xarray as xr

STEP_SHARE = 0.05
"""A step along a continuous key, as a share of its range."""

Simulator = Callable[[Scenario], "xr.Dataset"]
"""Simulates a scenario; the result has a dimension `replication`."""

Verdict = Literal["winner", "worse", "better", "cannot be told apart", "equal", "no comparison"]


NOTHING = Estimate(math.nan)
"""Where there is no value."""


@dataclass(frozen=True)
class Rival:
    """A point to be simulated, and its role beside the winner."""

    role: str
    place: Place


@dataclass(frozen=True)
class Simulated:
    """A point by simulation.

    Attributes:
        role: "winner", "runner-up", or which key is a step away.
        changes: values of the chosen keys.
        objective: mean over replications with its interval.
        sides: the left side of each constraint likewise.
        bounds: of each constraint, whether the whole interval meets it or violates it, or neither ("open").
        model: the model's answer, None if it has none.
        difference: how much better the winner's objective is, over pairs of replications.
        p_value: of the difference being nothing; NaN if there are no pairs.
        verdict: the objective against the winner's, all comparisons taken together.
        failure: why it could not be simulated.
        unserved: number of flows that get nothing, in each replication at least.
    """

    role: str
    changes: Mapping[str, Any]
    objective: Estimate
    sides: tuple[Estimate, ...]
    bounds: tuple[Bound, ...]
    model: Candidate | None
    difference: Estimate = NOTHING
    p_value: float = math.nan
    verdict: Verdict = "no comparison"
    failure: Failure | None = None
    unserved: int = 0

    @property
    def worthless(self) -> bool:
        """Whether its objective is better than the winner's, and a bound is violated for it."""
        return self.verdict == "better" and "violated" in self.bounds


@dataclass(frozen=True)
class Confirmation:
    """The simulated points, the winner first, and warnings about the model's choice."""

    points: tuple[Simulated, ...]
    warnings: tuple[str, ...]
    replications: int

    @property
    def winner(self) -> Simulated:
        """The point that the model chose."""
        return self.points[0]


def rivals(task: Task, winner: Place, runner_up: Place | None) -> tuple[Rival, ...]:
    """Return the winner, each key a step either way (or at its other values), and the runner-up."""
    found = [Rival("winner", winner)]
    for number, choice in enumerate(task.choices):
        for at in _steps(choice, winner[number]):
            place = (*winner[:number], at, *winner[number + 1 :])
            changes = task.changes(place)
            if not task.rules_out(changes):
                found.append(Rival(_named(task, place, [number]), place))
    if runner_up is not None:
        known = [rival for rival in found if rival.place == runner_up]
        if known:
            found[found.index(known[0])] = Rival(f"runner-up, {known[0].role}", runner_up)
        else:
            differing = [n for n, (a, b) in enumerate(zip(winner, runner_up, strict=True)) if a != b]
            found.append(Rival(f"runner-up, {_named(task, runner_up, differing)}", runner_up))
    return tuple(found)


def _steps(choice: Choice, at: float) -> list[float]:
    if not choice.ordered:
        return [float(number) for number in range(len(choice.values)) if number != at]
    last, step = (1.0, STEP_SHARE) if choice.continuous else (len(choice.values) - 1.0, 1.0)
    there = [min(max(at + way * step, 0.0), last) for way in (-1, 1)]
    return [round(place, 12) for place in there if place != at]


def _named(task: Task, place: Place, numbers: Sequence[int]) -> str:
    """Return the values of some of the choices at a place, as in ``polling.limit = 6``."""
    chosen = [(task.choices[number], place[number]) for number in numbers]
    return ", ".join(f"{choice.key} = {_shown(choice.at(at))}" for choice, at in chosen)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else label(value)


@dataclass(frozen=True)
class _Samples:
    """Values by replication."""

    objective: np.ndarray
    sides: tuple[np.ndarray, ...]
    unserved: int


def confirm(
    task: Task,
    wanted: Sequence[Rival],
    models: Mapping[Place, Candidate],
    simulator: Simulator,
    progress: Callable[[int, int], None] | None = None,
) -> Confirmation:
    """Simulate the winner and its rivals, and compare.

    Args:
        task: the problem.
        wanted: the points, the winner first.
        models: the model's answers, by place.
        simulator: of one scenario.
        progress: called with the number of points simulated and of all.

    Returns:
        The points, and warnings: bounds that the simulated winner violates, errors of the model larger than
        the margins it decided on, rivals that are better.
    """
    samples: list[_Samples | Failure] = []
    for number, rival in enumerate(wanted):
        samples.append(_simulated(task, task.changes(rival.place), simulator))
        if progress is not None:
            progress(number + 1, len(wanted))
    winner = samples[0]
    points = [
        _point(task, rival, models.get(rival.place), found, winner)
        for rival, found in zip(wanted, samples, strict=True)
    ]
    points = [replace(points[0], verdict="winner"), *judged(points[0], points[1:])]
    count = 0 if isinstance(winner, Failure) else len(winner.objective)
    return Confirmation(tuple(points), tuple(_warnings(task, points)), count)


def _simulated(task: Task, changes: Mapping[str, Any], simulator: Simulator) -> _Samples | Failure:
    try:
        scenario = task.base.changed(changes)
        dataset = simulator(scenario)
        keys = task.keys(changes)
        return _Samples(
            samples_of(task.objective.expression, dataset, keys),
            tuple(samples_of(c.expression, dataset, keys) for c in task.constraints),
            flows_without_goodput(dataset, scenario),
        )
    except Exception as error:
        return failure_of(error)


def _point(
    task: Task, rival: Rival, model: Candidate | None, found: _Samples | Failure, winner: _Samples | Failure
) -> Simulated:
    changes = task.changes(rival.place)
    if isinstance(found, Failure):
        count = len(task.constraints)
        unknown: tuple[Bound, ...] = ("unknown",) * count
        return Simulated(rival.role, changes, NOTHING, (NOTHING,) * count, unknown, model, failure=found)
    sides = tuple(estimate(side) for side in found.sides)
    bounds: tuple[Bound, ...] = tuple(
        bound_verdict(constraint.slack(side.mean), side.ci95)
        for constraint, side in zip(task.constraints, sides, strict=True)
    )
    objective = estimate(found.objective)
    point = Simulated(rival.role, changes, objective, sides, bounds, model, unserved=found.unserved)
    if isinstance(winner, Failure) or winner is found:
        return point
    pairs = min(len(winner.objective), len(found.objective))
    better = winner.objective[:pairs] - found.objective[:pairs]
    better = better if task.objective.sense == "maximize" else -better
    return replace(point, difference=estimate(better), p_value=paired_p_value(better))


def judged(winner: Simulated, points: Sequence[Simulated]) -> list[Simulated]:
    """Return the points with verdicts, all comparisons taken together (`different`).

    A point is worse, whatever its objective, if more of its flows get nothing than of the winner's.
    """
    found = different([point.p_value for point in points])
    return [replace(point, verdict=_verdict(winner, point, n in found)) for n, point in enumerate(points)]


def _verdict(winner: Simulated, point: Simulated, different: bool) -> Verdict:
    if winner.failure is None and point.failure is None and point.unserved != winner.unserved:
        return "worse" if point.unserved > winner.unserved else "better"
    if math.isnan(point.p_value):
        return "no comparison"
    if different:
        return "worse" if point.difference.mean > 0 else "better"
    return "equal" if point.difference.mean == 0 and point.difference.ci95 == 0 else "cannot be told apart"


def _warnings(task: Task, points: Sequence[Simulated]) -> list[str]:
    winner, found = points[0], []
    if winner.failure is not None:
        return [f"the winner could not be simulated: {winner.failure}"]
    for number, constraint in enumerate(task.constraints):
        side, bound = winner.sides[number], winner.bounds[number]
        by = f"{side.mean:.4g} ± {side.ci95:.2g} by simulation"
        if bound == "violated":
            found.append(f"the winner violates {constraint.text}: {by}")
        elif bound == "open":
            found.append(f"the winner may violate {constraint.text}: {by}")
        elif bound == "unknown":
            found.append(f"{constraint.text} cannot be checked: the simulation gives no value")
        if winner.model is not None and not constraint.of_keys_only and bound == "met":
            error = abs(winner.model.sides[number] - side.mean)
            margin = constraint.slack(winner.model.sides[number])
            if error > margin:
                found.append(
                    f"{constraint.text}: the model errs by {error:.3g} here, more than the margin of "
                    f"{margin:.3g} that it decided on"
                )
    found += _objective_warnings(task, points)
    if winner.unserved:
        found.append(f"by simulation {nothing_for(winner.unserved)} at the winner")
    for point in points[1:]:
        if point.verdict == "better" and not point.worthless:
            by = f"by {-point.difference.mean:.3g} ± {point.difference.ci95:.2g}"
            if point.unserved < winner.unserved:
                by = nothing_for(point.unserved) if point.unserved else "all flows get something"
            found.append(f"{point.role} is better by simulation, {by}")
    if math.isnan(winner.objective.ci95):
        found.append("one replication gives no intervals: nothing can be told apart")
    return found


def _objective_warnings(task: Task, points: Sequence[Simulated]) -> list[str]:
    """Return a warning if the model's error exceeds the gap between the winner and the runner-up.

    Not where they are equal anyhow, or where the simulation has decided for the winner.
    """
    winner = points[0]
    runner_up = next((point for point in points[1:] if point.role.startswith("runner-up")), None)
    if winner.model is None or runner_up is None or runner_up.model is None:
        return []
    if runner_up.verdict in ("equal", "worse"):
        return []
    margin = task.objective.gain(winner.model.objective, runner_up.model.objective)
    error = abs(winner.model.objective - winner.objective.mean)
    if not error > margin:
        return []
    return [
        f"the model errs by {error:.3g} in {task.objective.text} here, more than the {margin:.3g} "
        "between the winner and the runner-up"
    ]


def nothing_for(count: int) -> str:
    """Return in words that `count` flows get nothing."""
    return "1 flow gets nothing" if count == 1 else f"{count} flows get nothing"


def confirm_winner(
    task: Task,
    winner: Candidate,
    runners_up: Sequence[Candidate],
    models: Mapping[Place, Candidate],
    simulator: Simulator,
    progress: Callable[[int, int], None] | None = None,
) -> Confirmation:
    """Simulate the winner, each of its keys a step either way, and the first runner-up; see `confirm`."""
    runner_up = runners_up[0].place if runners_up else None
    return confirm(task, rivals(task, winner.place, runner_up), models, simulator, progress)
