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

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from btqueue.scenario import Problem, Scenario, ScenarioError
from btqueue.study.dimensioning import confirmation
from btqueue.study.dimensioning.choices import Choices, Place
from btqueue.study.dimensioning.confirmation import Confirmation, Simulator
from btqueue.study.dimensioning.front import find_front, front_of, simulated_front
from btqueue.study.dimensioning.prices import Price, prices
from btqueue.study.dimensioning.problem import Task, task_of
from btqueue.study.dimensioning.search import Outcome, find_best
from btqueue.study.dimensioning.table import Candidate, NoAnswers, Progress, Solver, Table
from btqueue.study.evaluate import Engine

BUDGET = 2000
"""Points that are solved at most, if nothing else is said."""

DISTINCT = 0.01
"""Runners-up differ from each other and from the winner by this share of a continuous key's range."""


@dataclass(frozen=True, repr=False)
class Dimensioning:
    """The result of a dimensioning.

    Attributes:
        task: the problem.
        engine: whose answers were searched.
        outcome: how the search ended.
        candidates: all points that were solved, the best first.
        best: the winner; None if no point meets all bounds.
        ties: number of other points that are as good; the winner's values stand first in the choices.
        runners_up: the next best points that meet all bounds, distinct from each other.
        feasible: number of solved points that meet all bounds.
        failures: how many points failed, by reason.
        nearest: if nothing is feasible, the point that violates the bounds least.
        at_end: chosen keys whose value is the first or last of their values.
        without_effect: chosen keys that change neither the objective nor the left side of a bound at any
            point that was solved; runners-up and ties differ in the other keys.
        front: of two aims, the points that no other one beats in both; the best of the first aim first.
        prices: of each bound.
        confirmation: the winner and its neighbours, or points of the front, by simulation; None if it was
            not asked for.
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
    prices: tuple[Price, ...] = ()
    confirmation: Confirmation | None = None
    interrupted: bool = False

    def __repr__(self) -> str:
        """Return the aim and the best point in a line."""
        aims = [self.task.objective, *([] if self.task.second is None else [self.task.second])]
        best = "no point meets all bounds" if self.best is None else f"best {dict(self.best.changes)}"
        best = f"{len(self.front)} points of the front" if self.front else best
        points = f"{len(self.candidates)} points, {self.feasible} meet all bounds"
        return f"<Dimensioning {', '.join(f'{aim.sense} {aim.text}' for aim in aims)}: {points}; {best}>"

    def _repr_html_(self) -> str:
        """Return the table of the best points for a notebook."""
        from btqueue.study.dimensioning.results import points_table

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
        """Keep the partial result."""
        super().__init__("interrupted")
        self.partial = partial


def dimension(
    scenario: Scenario,
    *,
    maximize: str | None = None,
    minimize: str | None = None,
    pareto: str | Sequence[str] | None = None,
    subject_to: str | Sequence[str] = (),
    choose: Choices,
    top: int = 5,
    budget: int = BUDGET,
    confirm: bool = True,
    engine: Literal["auto", "solve", "simulate"] = "auto",
    workers: int | None = None,
    solver: Solver | None = None,
    simulator: Simulator | None = None,
    progress: Progress | None = None,
    simulating: Callable[[int, int], None] | None = None,
    notes: Callable[[str], None] | None = None,
) -> Dimensioning:
    """Choose keys so that an objective is best within bounds.

    All combinations are solved if they are no more than *budget*; by the engine, the best one is then proved
    to be best. Otherwise a search looks for it, and nothing is proved (`btqueue.study.dimensioning.search`).

    Args:
        scenario: with the keys to choose; its other keys stay.
        maximize: a linear expression of metrics and keys, such as ``"goodput_kbps"``; or
        minimize: another one; or
        pareto: two that compete, such as ``"goodput_kbps, p95(delay_s, sensors)"`` or a list: the answer is
            the front, the points that no other one beats in both. Goodput, throughput, sessions a second and
            fairness are maximised, all else is minimised.
        subject_to: bounds such as ``"rtt_s <= 400 ms"``, ``"min(goodput_kbps) >= 80"`` or
            ``"flow_control.token_rate_kbps <= 1.5 * goodput_kbps"``. A metric stands for its mean over flows.
        choose: values by key, as in a sweep; ``"100..400"`` for a key of real numbers is continuous.
        top: most runners-up.
        budget: most points to solve. Prices may take some more.
        confirm: simulate the winner, its neighbours and the runner-up with common random numbers.
        engine: "solve" (theory; a point at which that does not stand is simulated) or "simulate" all points;
            "auto" solves, and simulates all points where no point has an answer that way.
        workers: processes at once, all cores by default.
        solver: of points, in place of the engine's own.
        simulator: of one scenario; btqueue's own by default, with replications on all cores.
        progress: called with the number of points solved and the most that will be solved.
        simulating: called likewise for the points that are simulated.
        notes: called with a sentence if "auto" simulates.

    Raises:
        ScenarioError: an expression, bound or key cannot be read or is unknown, or no point can be solved.
        DimensioningInterrupted: by Ctrl-C; it holds the result up to then.
    """
    task = task_of(
        scenario, maximize=maximize, minimize=minimize, pareto=pareto, subject_to=subject_to, choose=choose
    )
    find = find_best if task.second is None else find_front
    if engine not in ("auto", "solve", "simulate"):
        raise ScenarioError(Problem(f'engine = "{engine}": must be auto, solve or simulate'))
    if budget < 1:
        raise ScenarioError(Problem(f"a budget of {budget} points: give at least 1"))
    if top < 0:
        raise ScenarioError(Problem(f"{top} runners-up: give 0 or more"))
    ask = partial(Table, task, budget, solver=solver, workers=workers, progress=progress)
    table = ask(engine="simulate" if engine == "simulate" else "solve")
    found: Dimensioning | None = None
    try:
        try:
            outcome = find(table)
        except NoAnswers as refusal:
            if engine != "auto" or solver is not None:
                raise
            if notes is not None:
                notes(f"the model: {refusal}; all points are simulated instead")
            table = ask(engine="simulate")
            outcome = find(table)
        found = _report(table, outcome, top)
        if found.best is None:
            return found
        winner = found.best
        if task.second is None:
            winner, costs = _priced(table, winner, outcome)
            if not outcome.proved:  # the searches for prices have come across further points
                found = _report(table, outcome, top)
            found = replace(found, prices=costs)
        if not confirm:
            return found
        models = {place: one for place, one in table.known.items() if one.answered_by == "theory"}
        play = simulator or _simulator()
        simulated = (
            confirmation.confirm(task, winner, found.runners_up, models, play, simulating)
            if task.second is None
            else simulated_front(task, found.front, models, play, simulating)
        )
        return replace(found, confirmation=simulated)
    except KeyboardInterrupt:
        if found is None and table.known:
            found = _report(table, Outcome("search", False, True, task.size), top)
        raise DimensioningInterrupted(None if found is None else replace(found, interrupted=True)) from None


def _simulator() -> Simulator:
    from btqueue.simulator import simulate

    return partial(simulate, threads=None)


def _report(table: Table, outcome: Outcome, top: int) -> Dimensioning:
    """Return the result that follows from the points of the table."""
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
    return Dimensioning(
        task, table.engine, outcome, ranked, best, max(len(ties) - 1, 0),
        _distinct(task, feasible, top, with_effect), len(feasible), dict(failures.most_common()),
        None if best or not answered else answered[0], _at_end(task, best, with_effect) if best else (), idle,
        () if task.second is None else front_of(task, feasible),
    )  # fmt: skip


def _without_effect(task: Task, solved: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the keys without effect: points that differ in the key alone always agree."""
    found = []
    for number, choice in enumerate(task.choices):
        alike: dict[Place, list[Any]] = {}
        for one in solved:
            others = (*one.place[:number], *one.place[number + 1 :])
            values = (f"{value:.9g}" for value in (one.objective, *one.sides))
            alike.setdefault(others, []).append((one.unserved, *values) if one.failure is None else None)
        compared = any(len(answers) > 1 and answers[0] is not None for answers in alike.values())
        if compared and all(len(set(answers)) == 1 for answers in alike.values()):
            found.append(choice.key)
    return tuple(found)


def _distinct(
    task: Task, feasible: Sequence[Candidate], top: int, numbers: Sequence[int]
) -> tuple[Candidate, ...]:
    """Return the next best candidates after the first, without near copies in these choices."""
    kept = list(feasible[:1])
    for candidate in feasible[1:]:
        if len(kept) > top:
            break
        if all(_differ(task, candidate, other, numbers) for other in kept):
            kept.append(candidate)
    return tuple(kept[1 : top + 1])


def _differ(task: Task, one: Candidate, other: Candidate, numbers: Sequence[int]) -> bool:
    return any(
        abs(one.place[number] - other.place[number]) >= (DISTINCT if task.choices[number].continuous else 0.5)
        for number in numbers
    )


def _at_end(task: Task, best: Candidate, numbers: Sequence[int]) -> tuple[str, ...]:
    """Return the keys at an end of their range: a wider one might do better."""
    return tuple(
        choice.key
        for choice, at in ((task.choices[number], best.place[number]) for number in numbers)
        if choice.ordered
        and (choice.continuous or len(choice.values) > 1)
        and at in (0, 1.0 if choice.continuous else len(choice.values) - 1)
    )


def _priced(table: Table, best: Candidate, outcome: Outcome) -> tuple[Candidate, tuple[Price, ...]]:
    """Return the best point and the prices there; once more if looking for prices finds a better one."""
    while True:
        costs = prices(table, best, outcome)
        now = table.best()
        if outcome.proved or now is None or now.place == best.place:
            return best, costs
        best = now
