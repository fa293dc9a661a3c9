"""The two engines as the checks of claims see them: ask for a scenario, get samples of its metrics.

Checks are written once, for an engine: the simulator answers with one value for each replication, a model
with a single one. Each scenario is answered once, however many claims ask for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import xarray as xr

from btqueue.scenario import NotBuiltYet, Scenario
from btqueue.scenario.metrics import Results


class NoAnswer(Exception):
    """The engine has no answer; the message says why."""


class Answer:
    """The metrics of a scenario, by name: dimensions (replication, flow), or fewer."""

    def __init__(self, dataset: Results | xr.Dataset) -> None:
        """Wrap a dataset."""
        self._dataset = dataset

    def __getitem__(self, metric: str) -> xr.DataArray:
        """Return a metric.

        Raises:
            NoAnswer: the engine does not give it for this scenario.
        """
        if metric not in self._dataset:
            raise NoAnswer(f"the model of this network gives no {metric}")
        return self._dataset[metric]

    def mean_over_flows(self, metric: str) -> np.ndarray:
        """Return the metric's mean over flows in each replication."""
        values = self[metric]
        return (values.mean("flow") if "flow" in values.dims else values).values


class Engine(ABC):
    """Answers scenarios, and remembers the questions."""

    name: str
    is_simulator: bool

    def __init__(self) -> None:
        """Begin with no answers."""
        self._answers: dict[Scenario, Results | xr.Dataset | NoAnswer] = {}
        self.asked = set[Scenario]()

    @abstractmethod
    def run(self, scenario: Scenario) -> Results | xr.Dataset:
        """Return the metrics with a dimension of replications."""

    def __call__(self, scenario: Scenario) -> Answer:
        """Answer a scenario.

        Raises:
            NoAnswer: the engine cannot.
        """
        self.asked.add(scenario)
        if scenario not in self._answers:
            try:
                self._answers[scenario] = self.run(scenario)
            except NoAnswer as reason:
                self._answers[scenario] = reason
        answer = self._answers[scenario]
        if isinstance(answer, NoAnswer):
            raise answer
        return Answer(answer)

    def sample(self, scenario: Scenario, metric: str, **changes: Any) -> np.ndarray:
        """Return the metric's mean over flows in each replication."""
        return self(scenario.with_(**changes)).mean_over_flows(metric)

    def only_simulated(self, quantity: str) -> None:
        """Declare that a check reads single runs of the simulator, for this quantity.

        Raises:
            NoAnswer: this is a model.
        """
        if not self.is_simulator:
            raise NoAnswer(f"a model has no {quantity}")

    def forget(self) -> None:
        """Drop all answers: another publication asks about other scenarios."""
        self._answers.clear()
        self.asked.clear()


class Simulator(Engine):
    """The event-driven simulator."""

    name, is_simulator = "simulate", True

    def __init__(self, *, threads: int | None = None) -> None:
        """Simulate on a number of threads."""
        super().__init__()
        self.threads = threads

    def run(self, scenario: Scenario) -> Results | xr.Dataset:
        """Simulate."""
        from btqueue.simulator import simulate

        return simulate(scenario, threads=self.threads)


class Model(Engine):
    """Theory, the Markov chains and queueing models: one replication, no interval."""

    name, is_simulator = "solve", False

    def run(self, scenario: Scenario) -> Results | xr.Dataset:
        """Solve.

        Raises:
            NoAnswer: no model covers the scenario, its equations have no consistent solution, or its answer
                breaks a law that every network keeps.
        """
        from btqueue.network import ImpossibleAnswer, NoConvergence, solve

        kinds = {
            NotBuiltYet: "",
            NoConvergence: "no operating point: ",
            ImpossibleAnswer: "impossible answer: ",
        }
        try:
            solved = solve(scenario)
        except tuple(kinds) as error:
            kind = next(words for known, words in kinds.items() if isinstance(error, known))
            raise NoAnswer(kind + in_one_line(str(error))) from None
        return solved.expand_dims("replication")


def in_one_line(message: str) -> str:
    """Return an error of the scenario's checks as one line, without the count of its problems."""
    lines = [line.strip().removeprefix("- ") for line in message.splitlines()]
    if len(lines) > 1 and lines[0].endswith("problems:"):
        lines = lines[1:]
    return "; ".join(lines)
