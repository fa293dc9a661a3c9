"""Answers at many changes of one scenario: each asked for once, in this process or in several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from btqueue.scenario import METRICS, Scenario, ScenarioError
from btqueue.scenario.expressions import Quantity, parse_metric
from btqueue.scenario.topology import topology
from btqueue.study.evaluate import FIRST, Answer, Engine, Failure, answer_of, evaluate, theory_or_simulation
from btqueue.study.many_points import map_points
from btqueue.study.summary import Estimate

DEFAULT_METRICS = ("goodput_kbps", "rtt_s", "delay_s", "segment_loss", "timeouts_per_s")
"""Metrics studied by default, if they have a value; the message delay only of a source with a load."""

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

    def __init__(
        self,
        scenario: Scenario,
        metrics: Sequence[str] | None,
        workers: int | None,
        progress: Progress | None,
    ) -> None:
        """Answer the scenario itself.

        Raises:
            ScenarioError: as `chosen_metrics`.
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
        self.quantities = chosen_metrics(metrics, self.answer.metrics, scenario)
        self.answer = self.extended(self.answer)
        self._workers, self._progress = workers, progress
        self._known: dict[tuple[tuple[str, Any], ...], Answer] = {(): self.answer}
        self._asked = self._done = 0

    def extended(self, answer: Answer) -> Answer:
        """Return an answer with the quantities to study among its metrics."""
        return replace(answer, metrics=with_quantities(answer.metrics, self.quantities))

    @property
    def simulated(self) -> bool:
        """Whether answers are simulated, and so smooth to their standard error only."""
        return self.engine == "simulate"

    @property
    def about(self) -> dict[str, Any]:
        """How the scenario itself was answered: answered_by, why and warnings.

        Another warning says at which of the other points theory does not stand, although it does here.
        """
        found = {name: self.answer.notes[name] for name in ("answered_by", "why", "warnings")}
        doubted = [(dict(place), why) for place, one in self._known.items() if (why := one.notes.get("why"))]
        if doubted and not found["why"]:
            at = ", ".join(f"{key} = {value:g}" for key, value in doubted[0][0].items())
            count = f"{len(doubted)} of {self.solved} points, such as {at}"
            found["warnings"] = [*found["warnings"], f"theory does not stand at {count}: {doubted[0][1][0]}"]
        return found

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
            self._known[places[result.number]] = self.extended(result.answers[self.engine])
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


def chosen_metrics(
    metrics: Sequence[str] | None, given: Iterable[str], scenario: Scenario
) -> dict[str, Quantity]:
    """Return the metrics to study, by name.

    Args:
        metrics: asked for, as `goodput_kbps` or `p95(delay_s, sensors)`; by default the members of
            `DEFAULT_METRICS` that are given.
        given: metrics that the engine gives for this scenario.
        scenario: whose flows and groups they may name.

    Raises:
        ScenarioError: one is unknown (the message suggests the nearest name), or is not given.
    """
    there = [name for name in METRICS if name in set(given)]
    if metrics is None:
        sources = {scenario.of_flow(flow.spec).traffic.source for flow in topology(scenario).flows}
        loads = sources - {"greedy", "request-reply"}
        wanted = [name for name in DEFAULT_METRICS if name in there and (loads or name != "delay_s")]
        return {name: Quantity(name) for name in wanted or there[:4]}
    found = [parse_metric(text, "--metric", scenario) for text in dict.fromkeys(metrics)]
    if missing := [one.name for one in found if one.name not in there]:
        why = f"the answer gives no value here, only {', '.join(there)}"
        raise ScenarioError(f"{missing[0]}: {why}", missing[0])
    return {str(one): one for one in found}


def with_quantities(
    metrics: Mapping[str, Estimate], quantities: Mapping[str, Quantity]
) -> dict[str, Estimate]:
    """Return the estimates of metrics, and of quantities of them by the names of these."""
    found = dict(metrics)
    for name, quantity in quantities.items():
        if name not in found and (value := metrics.get(quantity.name)) is not None:
            samples = () if value.each is None else tuple(quantity.over(value.each).tolist())
            found[name] = Estimate(quantity.of(value), samples=samples)
    return found
