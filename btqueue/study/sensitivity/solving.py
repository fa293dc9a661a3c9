"""Answers at many changes of one scenario: each asked for once, in this process or in several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from btqueue.scenario import METRICS, Problem, Scenario, ScenarioError
from btqueue.study.comparison import require_metrics
from btqueue.study.evaluate import FIRST, Answer, Engine, Failure, answer_of, evaluate, theory_or_simulation
from btqueue.study.many_points import map_points

DEFAULT_METRICS = ("goodput_kbps", "rtt_s", "segment_loss", "timeouts_per_s")
"""Metrics studied by default, if they have a value."""

Progress = Callable[[int, int], None]
"""Called with the points finished and the points known to be needed."""

Changes = Mapping[str, Any]


def pinned(scenario: Scenario, answer: Answer) -> tuple[Engine, Scenario]:
    """Return the engine of an answer, and the scenario with which further answers are comparable to it.

    A difference between two answers is a slope only if both come from theory, or both from the same number
    of replications with the same random numbers: `FIRST` at least, for intervals of the differences.
    """
    if answer.notes["answered_by"] == "theory":
        return "theory", scenario
    batches = answer.notes.get("intervals") == "batch-means"
    count = max(scenario.run.replications if batches else answer.notes["replications"], FIRST)
    changes = {"run.precision": None, "run.replications": count, "run.intervals": "replications"}
    return "simulate", scenario.changed(changes)


class Solver:
    """Answers for a scenario with some keys changed, kept by change.

    All are theory's if its answer of the scenario itself stands, else all are simulated.
    """

    def __init__(self, scenario: Scenario, workers: int | None, progress: Progress | None) -> None:
        """Answer the scenario itself.

        Raises:
            NotBuiltYet: theory has no model for it, and it cannot be simulated.
            NoConvergence: theory found no operating point, and it cannot be simulated.
        """
        self.answer = answer_of(theory_or_simulation(scenario))
        self.engine: Engine
        self.engine, self.scenario = pinned(scenario, self.answer)
        notes, run = self.answer.notes, self.scenario.run
        alike = notes.get("intervals") != "batch-means" and notes.get("replications") == run.replications
        if self.simulated and not alike:
            again = evaluate(self.scenario, "simulate", threads=None)
            self.answer = replace(again, notes={**notes, **again.notes, "why": notes["why"]})
        self._workers, self._progress = workers, progress
        self._known: dict[tuple[tuple[str, Any], ...], Answer] = {(): self.answer}
        self._asked = self._done = 0

    @property
    def simulated(self) -> bool:
        """Whether answers are simulated, and so smooth to their standard error only."""
        return self.engine == "simulate"

    @property
    def about(self) -> dict[str, Any]:
        """How the scenario itself was answered: answered_by, why and warnings."""
        return {name: self.answer.notes[name] for name in ("answered_by", "why", "warnings")}

    @property
    def solved(self) -> int:
        """How many points were solved, the scenario itself included."""
        return len(self._known)

    def at(self, changes: Changes) -> Answer:
        """Return the answer at changes that `solve_all` was given."""
        return self._known[_place(changes)]

    def failures(self, key: str) -> list[tuple[float, Failure]]:
        """Return the values of a key alone that have no answer, and why."""
        alone = ((dict(place), answer) for place, answer in self._known.items() if len(place) == 1)
        return [(at[key], one.failure) for at, one in alone if key in at and one.failure is not None]

    def solve_all(self, points: Iterable[Changes]) -> None:
        """Solve all points that are not known yet."""
        missing = {place: dict(place) for place in map(_place, points) if place not in self._known}
        places, wanted = list(missing), list(missing.values())
        self.expect(len(wanted))
        results = map_points(self.scenario, wanted, engines=(self.engine,), workers=self._workers)
        for result in results:
            self._known[places[result.number]] = result.answers[self.engine]
            self.tell()

    def expect(self, points: int) -> None:
        """Count points that are going to be answered."""
        self._asked += points

    def tell(self) -> None:
        """Tell that a further point is answered."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._asked)


def _place(changes: Changes) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(changes.items()))


def chosen_metrics(metrics: Sequence[str] | None, given: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics to study.

    Args:
        metrics: names asked for; by default the members of `DEFAULT_METRICS` that are given.
        given: metrics that the engine gives for this scenario.

    Raises:
        ScenarioError: one is unknown (the message suggests the nearest name), or is not given.
    """
    there = [name for name in METRICS if name in set(given)]
    if metrics is None:
        return tuple(name for name in DEFAULT_METRICS if name in there) or tuple(there[:4])
    names = require_metrics(metrics)
    if missing := [name for name in names if name not in there]:
        why = f"the answer gives no value here, only {', '.join(there)}"
        raise ScenarioError(Problem(f"{missing[0]}: {why}", missing[0]))
    return names
