"""Solvers and simulators of known functions, and questions put to them, for the tests of dimensioning."""

import io
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

import numpy as np
import xarray as xr

import btqueue as bt
from btqueue.cli.dimension_report import print_report
from btqueue.scenario import Scenario
from btqueue.study.dimensioning import dimension
from btqueue.study.evaluate import Answer, Failure, PointResult
from btqueue.study.summary import Estimate

Metrics = Callable[[Mapping], Mapping[str, float] | str | None]
"""Values of metrics at changes of keys; several for the flows; a text is the reason of a failure."""


class CountingSolver:
    """Answers with a function, in reverse order, and counts how often each point is asked for."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics, self.asked = metrics, list[str]()

    def __call__(self, base, points, **_) -> Iterator[PointResult]:
        for number in reversed(range(len(points))):
            self.asked.append(repr(sorted(points[number].items())))
            yield PointResult(number, {"solve": self.answer(points[number])})

    def answer(self, changes: Mapping) -> Answer:
        metrics = self.metrics(changes)
        if not isinstance(metrics, Mapping):
            return Answer(failure=Failure("no convergence", metrics or "it does not settle"))
        unserved = int((np.atleast_1d(metrics.get("goodput_kbps", np.nan)) == 0).sum())
        return Answer(
            {name: value_of(value) for name, value in metrics.items()}, notes={"unserved": unserved}
        )


def value_of(value) -> Estimate:
    if isinstance(value, int | float):
        return Estimate(float(value))
    return Estimate(float(np.mean(value)), part="flow", means=tuple(value))


def noisy_simulator(metrics: Metrics, *, common: float, own: float, seed: int, key: str):
    """Return a simulator whose goodputs have *common* noise, and their *own* at a value of *key*."""

    def simulate(scenario: Scenario) -> xr.Dataset:
        table, _, name = key.partition(".")
        at = getattr(getattr(scenario, table), name)
        runs, flows = scenario.run.replications, 2
        shared = np.random.default_rng([seed, 0]).normal(0, common, runs) if common else np.zeros(runs)
        owned = np.random.default_rng([seed, 1, int(at)]).normal(0, own, runs) if own else np.zeros(runs)
        values = metrics({key: at})
        assert isinstance(values, Mapping)
        variables = {}
        for metric, value in values.items():
            noise = shared + owned if metric == "goodput_kbps" else np.zeros(runs)
            means = np.broadcast_to(value, flows)
            variables[metric] = (("replication", "flow"), np.where(means == 0, 0, means + noise[:, None]))
        return xr.Dataset(variables, {"replication": np.arange(runs), "flow": np.arange(1, flows + 1)})

    return simulate


KEYS = (
    ("polling.limit", 1, 25),
    ("flow_control.buffer_packets", 5, 60),
    ("flow_control.baseband_packets", 2, 12),
)


def random_problem(seed: int) -> tuple[dict, Metrics]:
    """Return arguments of `dimension` and metrics with kinks, plateaus, ripples and points that fail."""
    random = np.random.default_rng([7, seed])
    keys = KEYS[: int(random.integers(2, 4))]
    names = [name for name, _, _ in keys]
    low, high = np.array([ends for _, *ends in keys]).T
    peaks, cuts = random.uniform(low, high), random.uniform(low, high)
    left, right = random.uniform(0.3, 3, len(keys)), random.uniform(0.3, 3, len(keys))
    ceiling, costs = random.uniform(80, 100), random.uniform(0.2, 2, len(keys)) / 100
    shape, ripple, gaps = random.integers(3), random.choice([0.0, 2.0]), random.random() < 0.3

    def metrics(changes: Mapping) -> Mapping[str, float] | None:
        x = np.array([changes[name] for name in names], float)
        if gaps and int(x.sum()) % 17 == 0:
            return None
        z = (x - peaks) / (high - low)
        away = np.where(z < 0, -z * left, z * right)
        goodput = [
            min(ceiling, 100 - 30 * away.sum()),
            min(100 - 30 * away.sum(), 60 + 30 * z.sum(), ceiling),
            100 - 40 * away.max(),
        ][shape]
        return {
            "goodput_kbps": float(goodput + ripple * math.sin(x.sum() / 3)),
            "rtt_s": float((costs * x).sum() + 0.2 * (x > cuts).sum()),
        }

    middle = {name: (a + b) // 2 + 1 for name, a, b in keys}
    while (values := metrics(middle)) is None:
        middle[names[0]] += 1
    bounds = [f"rtt_s <= {values['rtt_s'] * random.uniform(0.6, 1.4):.4f}"]
    if random.random() < 0.3:
        bounds.append(f"{names[0]} + {names[1]} >= {int(random.integers(10, 40))}")
    choose = {name: range(a, b + 1) for name, a, b in keys}
    return {"maximize": "goodput_kbps", "subject_to": bounds, "choose": choose}, metrics


BASE = bt.load("venugopal-2006/piconet").with_(run__replications=10)


def tent(changes):
    """Goodput 100 at M = 8, less by 2 for each step away; a round trip of M / 20."""
    limit = changes["polling.limit"]
    return {"goodput_kbps": 100.0 - 2 * abs(limit - 8), "rtt_s": limit / 20}


def dimension_by(solver, **options) -> Any:
    """Dimension with a solver in the place of the engine."""
    with patch("btqueue.study.dimensioning.search.map_points", solver):
        return dimension(BASE, **options)


def choose_limit(metrics=tent, solver=None, **options) -> Any:
    question = {"maximize": "goodput_kbps", "choose": "polling.limit=1..20", "confirm": False}
    return dimension_by(solver or CountingSolver(metrics), **{**question, **options})


def simulated(*, common=2.0, own=0.1, seed=1, truth=tent, **options) -> Any:
    play = noisy_simulator(truth, common=common, own=own, seed=seed, key="polling.limit")
    return choose_limit(confirm=True, simulator=play, **options)


def limits_of(points) -> list[int]:
    return [one.changes["polling.limit"] for one in points]


def printed(found) -> str:
    """Return what the command prints, in one line."""
    with redirect_stdout(io.StringIO()) as told:
        print_report("a piconet", found, 1.0)
    return " ".join(told.getvalue().split())
