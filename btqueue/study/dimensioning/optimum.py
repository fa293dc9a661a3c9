"""`dimension`: choose keys of a scenario so that a metric is best within bounds, and confirm the choice.

>>> from btqueue import load
>>> from btqueue.study.dimensioning import dimension
>>> found = dimension(
...     load("chen-2004/adaptive-1"),
...     maximize="goodput_kbps",
...     subject_to=["rtt_s <= 0.1"],
...     choose={"transport.receive_window_segments": range(2, 21)},
...     confirm=False,
... )
>>> found.best.changes
{'transport.receive_window_segments': 2}
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from btqueue.scenario import Scenario, ScenarioError
from btqueue.study.dimensioning import confirmation
from btqueue.study.dimensioning.confirmation import (
    Confirmation,
    Simulated,
    Simulator,
    find_front,
    front_of,
    simulated_front,
    spread,
)
from btqueue.study.dimensioning.problem import STEP_SHARE, Choice, Place, Task, task_of
from btqueue.study.dimensioning.search import Candidate, Outcome, Table, find_best
from btqueue.study.evaluate import Engine
from btqueue.study.points import Over, Progress, is_number, label, scenario_with
from btqueue.study.provenance import plain
from btqueue.study.summary import Estimate
from btqueue.study.tables import number
from btqueue.text_table import TextTable

if TYPE_CHECKING:
    import pandas as pd

BUDGET = 2000
"""Points that are solved at most, if nothing else is said."""


@dataclass(frozen=True, repr=False)
class Dimensioning:
    """The result of a dimensioning.

    Attributes:
        task: the problem.
        engine: whose answers were searched.
        outcome: how the search ended.
        candidates: all points that were solved, the best first.
        best: the winner, picked by simulation if that was asked for; None if no point meets all bounds.
        ties: number of other points that are as good; the winner's values stand first in the choices.
        runners_up: the next best points that meet all bounds, distinct from each other.
        feasible: number of solved points that meet all bounds.
        failures: how many points failed, by reason.
        nearest: if nothing is feasible, the point that violates the bounds least.
        at_end: chosen keys whose value is the first or last of their values.
        without_effect: chosen keys that change neither the objective nor the left side of a bound at any
            point that was solved; runners-up and ties differ in the other keys.
        front: front of two aims, the points that no other point beats in both; best of the first aim first.
        confirmation: the points simulated to pick the winner, or points of the front; None if it was not
            asked for.
        interrupted: whether Ctrl-C ended the search early.
    """

    task: Task
    engine: Engine
    outcome: Outcome
    candidates: tuple[Candidate, ...]
    best: Candidate | None
    ties: int
    runners_up: tuple[Candidate, ...]
    feasible: int
    failures: dict[str, int]
    nearest: Candidate | None
    at_end: tuple[str, ...]
    without_effect: tuple[str, ...] = ()
    front: tuple[Candidate, ...] = ()
    confirmation: Confirmation | None = None
    interrupted: bool = False

    def __repr__(self) -> str:
        best = "no point meets all bounds" if self.best is None else f"best {dict(self.best.changes)}"
        best = f"{len(self.front)} points of the front" if self.front else best
        points = f"{len(self.candidates)} points, {self.feasible} meet all bounds"
        aims = ", ".join(f"{aim.sense} {aim.text}" for aim in self.task.aims)
        return f"<Dimensioning {aims}: {points}; {best}>"

    def _repr_html_(self) -> str:
        return points_table(self)._repr_html_()

    @property
    def scenario(self) -> Scenario:
        """The scenario with the chosen values.

        Raises:
            ValueError: nothing is feasible.
        """
        if self.best is None:
            raise ValueError("no point meets all bounds")
        return self.task.base.changed(self.best.changes)


class DimensioningInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a dimensioning.

    Attributes:
        partial: the result up to then, None without any solved point.
    """

    def __init__(self, partial: Dimensioning | None) -> None:
        super().__init__("interrupted")
        self.partial = partial


def dimension(
    scenario: Scenario,
    *,
    maximize: str | None = None,
    minimize: str | None = None,
    pareto: str | Sequence[str] | None = None,
    subject_to: str | Sequence[str] = (),
    choose: Over,
    top: int = 5,
    budget: int = BUDGET,
    confirm: bool = True,
    engine: Literal["auto", "simulate"] = "auto",
    workers: int | None = None,
    simulator: Simulator | None = None,
    progress: Progress | None = None,
    simulating: Progress | None = None,
) -> Dimensioning:
    """Choose keys so that an objective is best within bounds.

    If there are at most *budget* combinations, the engine answers all of them, and the best is proved.
    Otherwise a search looks for the best, and proves nothing (`btqueue.study.dimensioning.search`).

    Args:
        scenario: with the keys to choose; its other keys stay.
        maximize: a linear expression of metrics and keys, such as ``"goodput_kbps"``; or
        minimize: another one; or
        pareto: two expressions that compete, such as ``"goodput_kbps, p95(delay_s, sensors)"`` or a list: the
            answer is the front, the points that no other point beats in both. Goodput, throughput, sessions a
            second and fairness are maximised, all else is minimised.
        subject_to: bounds such as ``"rtt_s <= 400 ms"``, ``"min(goodput_kbps) >= 80"`` or
            ``"flow_control.token_rate_kbps <= 1.5 * goodput_kbps"``. A metric stands for its mean over flows.
        choose: values by key, as in a sweep; ``"100..400"`` for a key of real numbers is continuous.
        top: most runners-up.
        budget: most points to solve.
        confirm: simulate the best points and their neighbours with common random numbers, and pick by that.
        engine: "auto" (theory; a point at which that does not stand, or gives a metric no value, is
            simulated) or "simulate".
        workers: processes at once, all cores by default.
        simulator: simulator of one scenario; btqueue's own by default, with replications on all cores.
        progress: called with the number of points solved and the most that will be solved.
        simulating: called likewise for the points that are simulated.

    Raises:
        ScenarioError: an expression, bound or key cannot be read or is unknown, or no point can be solved.
        DimensioningInterrupted: by Ctrl-C; it holds the result up to then.
    """
    task = task_of(
        scenario, maximize=maximize, minimize=minimize, pareto=pareto, subject_to=subject_to, choose=choose
    )
    find = find_best if task.second is None else find_front
    if engine not in ("auto", "simulate"):
        raise ScenarioError(f'engine = "{engine}": must be auto or simulate')
    if budget < 1:
        raise ScenarioError(f"a budget of {budget} points: give at least 1")
    if top < 0:
        raise ScenarioError(f"{top} runners-up: give 0 or more")
    table = Table(
        task,
        budget,
        engine="simulate" if engine == "simulate" else "solve",
        workers=workers,
        progress=progress,
    )
    found: Dimensioning | None = None
    try:
        outcome = find(table)
        found = _report(table, outcome, top)
        if confirm and confirmation.is_near(task, table.ranked()[0]):
            models = {place: one for place, one in table.known.items() if one.answered_by == "theory"}
            if simulator is None:
                from btqueue.simulator import simulate

                simulator = partial(simulate, threads=None)
            if task.second is not None:
                played = simulated_front(task, found.front, models, simulator, simulating)
            else:
                idle = found.without_effect
                played = confirmation.confirm(table, models, simulator, simulating, without_effect=idle)
                found = _report(table, outcome, top)
            if found.best is not None:
                found = replace(found, confirmation=played)
        return found
    except KeyboardInterrupt:
        if found is None and table.known:
            found = _report(table, "spent", top)
        raise DimensioningInterrupted(None if found is None else replace(found, interrupted=True)) from None


def _report(table: Table, outcome: Outcome, top: int) -> Dimensioning:
    task, ranked = table.task, tuple(table.ranked())
    feasible = [candidate for candidate in ranked if candidate.feasible(task)]
    best = feasible[0] if feasible else None
    answered = [candidate for candidate in ranked if candidate.failure is None]
    failures = Counter(str(candidate.failure) for candidate in ranked if candidate.failure is not None)
    idle = _without_effect(task, ranked)
    with_effect = [number for number, choice in enumerate(task.choices) if choice.key not in idle]
    ties = {
        tuple(c.place[number] for number in with_effect)
        for c in feasible
        if c.rank(task)[:-1] == feasible[0].rank(task)[:-1]
    }
    at_end = []  # where a wider range might do better
    for choice, at in ((task.choices[n], best.place[n]) for n in with_effect if best):
        last = 1.0 if choice.continuous else len(choice.values) - 1
        if choice.ordered and last and at in (0, last) and _goes_on(task, best, choice, at):
            at_end.append(choice.key)
    return Dimensioning(
        task, table.engine, outcome, ranked, best, max(len(ties) - 1, 0),
        _distinct(task, feasible, top, with_effect), len(feasible), dict(failures.most_common()),
        None if best or not answered else answered[0], tuple(at_end), idle,
        () if task.second is None else front_of(task, feasible),
    )  # fmt: skip


def _goes_on(task: Task, best: Candidate | None, choice: Choice, at: float) -> bool:
    """Return whether a scenario may have a value a step beyond the end of a range."""
    end, inside = choice.at(at), choice.at(choice.steps(at, STEP_SHARE)[0])
    beyond = {**(best.changes if best else {}), choice.key: 2 * end - inside}
    return scenario_with(task.base, beyond) is not None


def _without_effect(task: Task, solved: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the keys without effect: points that differ in the key alone always agree.

    Confirmed points are compared with each other only, like the others.
    """
    found = []
    for nth, choice in enumerate(task.choices):
        alike: dict[Place, list[Any]] = {}
        for one in solved:
            others = (one.confirmed, *one.place[:nth], *one.place[nth + 1 :])
            values = (f"{value:.9g}" for value in (one.objective, *one.sides))
            alike.setdefault(others, []).append((one.unserved, *values) if one.failure is None else None)
        compared = any(len(answers) > 1 and answers[0] is not None for answers in alike.values())
        if compared and all(len(set(answers)) == 1 for answers in alike.values()):
            found.append(choice.key)
    return tuple(found)


def _distinct(
    task: Task, feasible: Sequence[Candidate], top: int, numbers: Sequence[int]
) -> tuple[Candidate, ...]:
    """Return the next best candidates after the first, without near copies in these choices.

    They stand in the order of the objective, whether theory or simulation has answered.
    """
    kept = list(feasible[:1])
    for candidate in sorted(feasible[1:], key=lambda one: (task.objective.loss(one.objective), one.place)):
        if len(kept) <= top and all(task.apart(candidate.place, one.place, numbers) for one in kept):
            kept.append(candidate)
    return tuple(kept[1:])


def as_table(found: Dimensioning) -> pd.DataFrame:
    """Return the solved points, the best first, a row each.

    Returns:
        Columns: the chosen keys; `objective`; `slack of` each bound, negative where it is violated;
        `feasible`, `flows_without_goodput` (their number), `failure` and `warnings` of the engine,
        `answered_by` ("theory" or "simulation"); for two objectives `second_objective` and `on_front`; where
        points were simulated `simulated`, `simulated_ci95`, `verdict` and `role`.
    """
    import pandas as pd

    task, points = found.task, () if found.confirmation is None else found.confirmation.points
    rows = []
    for point in found.candidates:
        known, played = point.failure is None, next((p for p in points if p.changes == point.changes), None)
        row: dict[str, Any] = {
            **{key: value if is_number(value) else label(value) for key, value in point.changes.items()},
            "objective": point.objective if known else math.nan,
            **{f"slack of {c.text}": c.slack(x) for c, x in zip(task.bounds, point.sides, strict=False)},
            "feasible": point.feasible(task),
            "flows_without_goodput": point.unserved,
            "failure": "" if known else str(point.failure),
            "warnings": "; ".join(point.warnings),
            "answered_by": point.answered_by if known else "",
        }
        if task.second is not None:
            row |= {"second_objective": point.sides[-1], "on_front": point in found.front}
        if played is not None:
            row |= {"simulated": played.objective, "simulated_ci95": played.estimates[0].ci95}
            row |= {"verdict": played.verdict, "role": played.role}
        rows.append(row)
    return pd.DataFrame(rows)


def as_values(found: Dimensioning) -> dict[str, Any]:
    """Return the dimensioning as plain values, None where there is no number."""
    task, proved = found.task, found.outcome == "proved"
    content = {
        "objective": {"sense": task.objective.sense, "expression": task.objective.text},
        "subject_to": [constraint.text for constraint in task.bounds],
        "choose": {
            choice.key: list(choice.values)
            if choice.interval is None
            else {"low": choice.interval.low, "high": choice.interval.high, "scale": choice.interval.scale}
            for choice in task.choices
        },
        "engine": found.engine,
        "method": "enumeration" if proved else "search",
        "proved": proved,
        "budget_spent": found.outcome == "spent",
        "interrupted": found.interrupted,
        "combinations": task.size,
        "solved": len(found.candidates),
        "feasible": found.feasible,
        "failures": found.failures,
        "best": _candidate(found, found.best),
        "ties": found.ties,
        "runners_up": [_candidate(found, candidate) for candidate in found.runners_up],
        "nearest": _candidate(found, found.nearest),
        "at_end_of_range": list(found.at_end),
        "keys_without_effect": list(found.without_effect),
        "confirmation": None
        if (played := found.confirmation) is None
        else {
            "replications": played.replications,
            "warnings": list(played.warnings),
            "points": [_simulated(point) for point in played.points],
        },
    }
    if task.second is not None:
        content["second_objective"] = {"sense": task.second.sense, "expression": task.second.text}
        content["front"] = [_candidate(found, candidate) for candidate in found.front]
    return plain(content)


def _candidate(found: Dimensioning, candidate: Candidate | None) -> dict[str, Any] | None:
    if candidate is None:
        return None
    bounds = zip(found.task.bounds, candidate.sides, strict=False)
    second = {} if found.task.second is None else {"second_objective": candidate.sides[-1]}
    return {
        "keys": dict(candidate.changes),
        "flows_without_goodput": candidate.unserved,
        "objective": candidate.objective,
        **second,
        "slack": {constraint.text: constraint.slack(side) for constraint, side in bounds},
        "warnings": list(candidate.warnings),
        "answered_by": candidate.answered_by,
    }


def _simulated(point: Simulated) -> dict[str, Any]:
    return {
        "role": point.role,
        "keys": dict(point.changes),
        "flows_without_goodput": point.unserved,
        "objective": _estimate(point.estimates[0]),
        "model_objective": None if point.model is None else point.model.objective,
        "constraints": [
            {**_estimate(side), "verdict": bound, "replications_to_decide": needed}
            for side, bound, needed in zip(point.estimates[1:], point.bounds, point.needed, strict=True)
        ],
        "winner_better_by": _estimate(point.difference),
        "p_value": point.p_value,
        "verdict": point.verdict,
        "failure": None if point.failure is None else str(point.failure),
    }


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"mean": estimate.mean, "ci95": estimate.ci95}


MOST_ROWS = 20
"""Points of a front that the table shows, the ends among them."""


def points_table(found: Dimensioning) -> TextTable:
    """Return the best point and the runners-up, or points of the front, or the nearest point, as a table."""
    task = found.task
    keys = [choice.key for choice in task.choices]
    heading = [] if task.objective.text in keys else [task.objective.text]
    if found.best is None:
        rows = [] if found.nearest is None else [("nearest", found.nearest)]
    elif found.front:
        rows = [(f"{n + 1}.", found.front[n]) for n in spread(len(found.front), MOST_ROWS)]
    else:
        rows = [("best", found.best), *((f"{n}.", c) for n, c in enumerate(found.runners_up, 2))]
    columns = ("", *keys, *heading, *(c.text for c in task.constraints))
    cells = []
    for name, one in rows:
        chosen = [choice.shown(one.changes[choice.key]) for choice in task.choices]
        sides = [
            number(side) + (f" (fails by {number(-c.slack(side))})" if c.violation(side) > 0 else "")
            for c, side in zip(task.constraints, one.sides, strict=True)
        ]
        cells.append((name, *chosen, *([number(one.objective)] if heading else []), *sides))
    return TextTable(task.base.title, columns, tuple(cells))
