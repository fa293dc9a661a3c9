"""One point of a study: a scenario through one engine or both, as plain numbers or as a failure.

Everything here is plain data that can be pickled and sent between processes. Sweeps, sensitivity and
dimensioning share it.
"""

from __future__ import annotations

import math
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from btqueue.caches import cache_folder
from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError
from btqueue.scenario.topology import own_length
from btqueue.search_path import without_working_directory
from btqueue.study.summary import PARTS, Estimate, flows_without_goodput, labels_of, partial_times, summarise

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario.expressions import Quantity
    from btqueue.scenario.metrics import Results

Engine = Literal["solve", "theory", "simulate", "precise", "check"]
"""Theory, with simulation where theory does not stand ("solve", for users "auto"); theory alone; simulation
alone, as `run` says or to `PRECISION` ("precise"); a check of theory, without metrics ("check")."""
ENGINES: tuple[Engine, ...] = ("solve", "simulate")
"""Engines of a study; "solve" beside "simulate" is theory alone, to be compared with simulation."""
PRECISION, TIMES, FIRST = 0.02, {"rtt_s": 0.05, "session_time_s": 0.05}, 4
"""Relative half-widths of the intervals of goodput and times at which a simulation in place of theory stops,
and the replications after which it first looks."""
MORE = 4
"""Factor of the length or the number of runs where the scenario's own `run` is not enough."""


@dataclass(frozen=True)
class Failure:
    """Why a point has no answer.

    Attributes:
        kind: "scenario" (not valid), "not built" (no engine for it yet), "no metric" (the engine never gives
            it), "no value" (not at this point), "no convergence", "impossible answer" (it breaks a law that
            every network keeps), "invariant" (the simulator lost count), "worker" (its process died), or
            "error" (anything else).
        message: for the user.
    """

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {' '.join(self.message.split())}"


@dataclass(frozen=True)
class Answer:
    """One engine's answer at one point.

    Attributes:
        metrics: by name, in the order of `METRICS`; empty after a failure.
        names: names of the flows, links and queues, by part.
        notes: how it was found (answered_by, "theory" or "simulation"; why: the doubts of theory, or why
            it has no answer; model, method, converged, residual, iterations, warnings; or events,
            replications, warmup_s, warnings, precision_of, half_width); `evaluate` adds how many flows get
            nothing (unserved).
        failure: why there is no answer, or None.
    """

    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    failure: Failure | None = None

    @property
    def means(self) -> dict[str, float]:
        """Mean of each metric."""
        return {name: value.mean for name, value in self.metrics.items()}

    def with_quantities(self, quantities: Iterable[Quantity]) -> Answer:
        """Return the answer with quantities among its metrics, named as an expression writes them."""
        there = [one for one in quantities if one.name in self.metrics and str(one) not in self.metrics]
        added = {str(one): self.metrics[one.name].of(one) for one in there}
        if (watched := self.notes.get("precision_of")) in added:  # its interval is as wide as `run.precision`
            half_width = max(added[watched].ci95, self.notes["half_width"])
            added[watched] = replace(added[watched], ci95=half_width)
        return replace(self, metrics={**self.metrics, **added})

    def mean(self, metric: str) -> float:
        """Return the mean of a metric; NaN if there is none."""
        return self.metrics[metric].mean if metric in self.metrics else math.nan

    @property
    def ci95(self) -> dict[str, float]:
        """Half-width of the 95 % interval of each metric that has one."""
        return {name: value.ci95 for name, value in self.metrics.items() if not math.isnan(value.ci95)}


@dataclass(frozen=True)
class PointResult:
    """The answers at one point, by engine."""

    number: int
    answers: Mapping[Engine, Answer]


def evaluate(
    scenario: Scenario, engine: Engine = "solve", *, threads: int | None = 1, metrics: Sequence[str] = ()
) -> Answer:
    """Solve or simulate a scenario; whatever goes wrong becomes the answer's failure.

    Args:
        scenario: the point.
        engine: "simulate", or "solve" for theory, with simulation where it does not stand
            (`theory_or_simulation`).
        threads: replications simulated at once, all cores if None; the answer does not depend on it.
        metrics: metrics that the answer needs; if theory lacks one, "solve" simulates.

    Raises:
        KeyboardInterrupt: by Ctrl-C; nothing of the point is kept.
    """
    try:
        if engine == "solve":
            results = theory_or_simulation(scenario, threads=threads, metrics=metrics)
        elif engine == "theory":
            from btqueue.network import solve

            results = solve(scenario)
        elif engine == "check":
            from btqueue.network import solve
            from btqueue.study.checked_answers import EVENTS, check_answer

            theory = summarise(solve(scenario))  # alike on every machine
            return Answer(notes={"check": check_answer(scenario, theory, events=EVENTS, threads=threads)})
        elif engine == "precise":
            results = simulated_to_precision(scenario, threads=threads)
        else:
            from btqueue.simulator import simulate

            results = simulate(scenario, threads=threads)
        answer = answer_of(results)
        return replace(answer, notes={**answer.notes, "unserved": flows_without_goodput(results, scenario)})
    except Exception as error:
        return Answer(failure=failure_of(error))


def theory_or_simulation(
    scenario: Scenario, *, threads: int | None = None, metrics: Sequence[str] = ()
) -> Results:
    """Return theory's answer where it stands and has all *metrics*, else the simulator's where it has one.

    A round trip or delay that theory gives for some flows only counts as lacking.

    The attribute `answered_by` names the engine, `why` gives the doubts about theory's answer, or the metrics
    that it lacks. The simulation is `simulated_to_precision`. If the simulator gives none of the metrics that
    theory lacks, an answer of theory that stands is returned all the same.

    Raises:
        NotBuiltYet: neither engine can answer; like the next two errors it has theory's message.
        NoConvergence: theory found no operating point, and the scenario cannot be simulated.
        ImpossibleAnswer: theory's answer breaks a law of every network, and the scenario cannot be simulated.
    """
    from btqueue.network import ImpossibleAnswer, NoConvergence, NotSampled, solve

    try:
        solved: Results | Exception = solve(scenario, sampling=False)  # a sampled answer would not stand
        why, lacking = solved.attrs["why"], set[str]()
        if solved.attrs["stands"]:
            lacking = set(metrics) - (summarise(solved).keys() - partial_times(solved, scenario))
            if not lacking:
                return solved
            why = (f"theory gives no {', '.join(sorted(lacking))} here",)
    except NotSampled as refusal:
        solved, why, lacking = refusal, refusal.args, set[str]()
    except (NotBuiltYet, NoConvergence, ImpossibleAnswer) as refusal:
        solved, why, lacking = refusal, (" ".join(str(refusal).split()),), set[str]()
    try:
        simulated = simulated_to_precision(scenario, threads=threads)
    except ScenarioError:  # which the simulator does not cover: theory's own words are told
        if isinstance(solved, NotSampled):
            return solve(scenario)
        if isinstance(solved, Exception):
            raise solved from None
        return solved
    if lacking and not isinstance(solved, Exception) and lacking.isdisjoint(summarise(simulated)):
        return solved
    simulated.attrs["why"] = why
    return simulated


def simulated_to_precision(scenario: Scenario, *, threads: int | None = None) -> Results:
    """Simulate until goodput is known to `PRECISION` and times to `TIMES`.

    Where the replications of `run` (or `FIRST`) are not enough, or its runs are too short by the simulator's
    tests, the scenario is simulated again, with warm-up and measurement `MORE` times as long, because more
    runs of the same length would repeat the error of their start. A warning says so. If loads change with
    time, flows begin late or arrivals are recorded, runs keep their length, and up to `MORE` times as many
    are simulated. If `run` asks for a precision, the scenario is simulated to this precision, whatever the
    precision of times.

    Raises:
        ScenarioError: the simulator does not cover the scenario.
    """
    from btqueue.simulator import simulate
    from btqueue.simulator.statistics.doubts import TooShort

    run, why = scenario.run, ""
    first = {
        "run.replications": min(FIRST, run.replications),
        "run.precision": max(PRECISION, run.precision or 0.0),
    }
    if run.precision is not None:
        return simulate(scenario.changed(first), threads=threads)
    fixed, again = own_length(scenario) > 0.0, first
    most = run.replications * MORE if fixed else max(run.replications, FIRST)
    while True:
        results = simulate(scenario.changed(again), threads=threads, most=most)
        attrs, done = results.attrs, int(results.sizes["replication"])
        wanted = replications_for_times(results)
        if attrs["finished"] < attrs["wanted"]:
            break
        if done < min(wanted, most):
            again = {**first, "run.replications": min(wanted, most)}
            continue
        doubt = next((one for one in attrs["warnings"] if isinstance(one, TooShort)), "")
        if why or fixed or not (doubt or wanted > done or attrs["relative_half_width"] > PRECISION):
            break
        again, why = first, doubt or f"{done} replications were not enough"
        warmup_s = run.warmup_s if run.warmup_s == "auto" else MORE * run.warmup_s
        scenario = scenario.changed({"run.duration_s": MORE * run.duration_s, "run.warmup_s": warmup_s})
    if why:
        attrs["warnings"].append(f"runs and warm-up are {MORE} times as long as run asks for: {why}")
    return results


def replications_for_times(results: Results) -> int:
    """Return how many replications should give the precision `TIMES`; the present number if it is enough."""
    from btqueue.simulator.statistics.precision import next_target

    found, targets = summarise(results), [int(results.sizes["replication"])]
    for name, wanted in TIMES.items():
        if name in found and found[name].ci95 > wanted * found[name].mean > 0:
            targets.append(next_target(targets[0], found[name].ci95 / found[name].mean, wanted))
    return max(targets)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def environment() -> dict[str, str]:
    """Return variables for a Python process that is to find the same modules and caches as this one.

    It does not look for modules in the working directory, which may hold a stranger's files.
    """
    cache_folder()  # if it cannot be used, the environment names another one from now on
    return {"PYTHONPATH": os.pathsep.join(without_working_directory(sys.path)), "PYTHONSAFEPATH": "1"}


def answer_of(results: Results | xr.Dataset) -> Answer:
    """Return the plain numbers of an engine's results."""
    names = {part: labels_of(results, part) for part in PARTS if part in results.sizes}
    attrs = results.attrs
    known: dict[str, Any] = {name: list(map(str, attrs.get(name, ()))) for name in ("warnings", "why")}
    kinds = dict.fromkeys(("method", "model", "answered_by"), str)
    kinds |= {
        "precision_of": str,
        "half_width": float,
        "converged": bool,
        "residual": float,
        "iterations": int,
        "events": int,
        "warmup_s": float,
    }
    known |= {name: kind(attrs[name]) for name, kind in kinds.items() if attrs.get(name) is not None}
    if "replication" in results.sizes:
        known["replications"] = int(results.sizes["replication"])
    return Answer(summarise(results), names, known)


def failure_of(error: Exception) -> Failure:
    """Return in words why a point failed; for an unexpected error, with the place where it was raised."""
    from btqueue.network import ImpossibleAnswer, NoConvergence
    from btqueue.simulator import InvariantViolated

    kinds = {
        NotBuiltYet: "not built",
        ScenarioError: "scenario",
        NoConvergence: "no convergence",
        ImpossibleAnswer: "impossible answer",
        InvariantViolated: "invariant",
    }
    for known, kind in kinds.items():
        if isinstance(error, known):
            return Failure(kind, str(error))
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return Failure("error", f"{type(error).__name__}: {error} ({where})")
