"""Which keys a metric's spread comes from while all keys vary over their ranges at once (Sobol, Morris)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from btqueue.scenario import Problem, Scenario, ScenarioError
from btqueue.study.evaluate import Answer
from btqueue.study.many_points import map_points
from btqueue.study.sensitivity.factors import SHARE, Factor, coordinates, factors, require_spreads
from btqueue.study.sensitivity.local import active_factors
from btqueue.study.sensitivity.solving import Progress, Solver
from btqueue.study.sensitivity.variance import (
    morris_effects,
    morris_points,
    sobol_indices,
    sobol_points,
)

Method = Literal["sobol", "morris"]

SAMPLES: Mapping[Method, int] = {"sobol": 256, "morris": 20}
"""Blocks or trajectories by default."""

MOST_POINTS = 1_000_000
"""A study of more points is surely a slip."""


def global_sensitivity(
    scenario: Scenario,
    method: Method = "sobol",
    metrics: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    spread: Mapping[str, Any] | None = None,
    *,
    samples: int | None = None,
    pairs: bool = False,
    seed: int = 1,
    share: float = SHARE,
    workers: int | None = None,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Return Sobol's indices or Morris's effects of metrics by keys, from the solver.

    All keys vary at once and independently, evenly over their spreads (whole numbers: each equally likely).

    Points without an answer are counted, with their reasons; a Sobol block or Morris trajectory that has one
    is left out, so the indices then hold for the part of the ranges that can be solved.

    Args:
        scenario: gives the keys that do not vary, and the middle of the default spreads.
        method: "sobol" or "morris".
        metrics: as in `btqueue.study.sensitivity.local.local_sensitivity`, like *keys*, *spread* and *share*.
            By default all keys with an effect within their spread.
        keys: see there.
        spread: see there; ``log(a,b)`` is even in the logarithm.
        samples: blocks or trajectories; by default `SAMPLES`.
        pairs: for Sobol also interactions of two keys, ``pair`` with dimensions (metric, key, other), from
            about twice the points.
        seed: of the points and of the intervals' bootstrap.
        share: see there.
        workers: processes; all cores by default.
        progress: called with the points done and needed.

    Returns:
        Indices (see `btqueue.study.sensitivity.variance`) with dimensions (metric, key), ranges of the
        keys; in the attributes how many points there were, how many had no answer, and why; how many had
        warnings, with one of them; how many were simulated, because theory does not stand there; and how
        the scenario itself was answered.

    Raises:
        ScenarioError: a key, a range or a metric is wrong, or the solver has no model of the scenario.
        NoConvergence: the scenario itself has no operating point.
        TooFewPoints: too many points have no answer.
        MissingPackage: SALib is not installed.
    """
    samples = SAMPLES[method] if samples is None else samples
    if samples < 2:
        raise ScenarioError(Problem(f"{samples} samples: give 2 or more"))
    if pairs and method != "sobol":
        raise ScenarioError(Problem(f"pairs go with Sobol's method, not {method}"))
    varied = factors(scenario, keys, spread, share)
    solver = Solver(scenario, metrics, workers, progress)
    names = solver.names
    if keys is None:
        varied = [f for f in active_factors(varied, names, solver) if f.spread and _answers(f, solver)]
    if not varied:
        raise ScenarioError(Problem("no key changes a metric within its spread: give wider spreads"))
    require_spreads(varied)
    inputs = len(varied)
    points = sobol_points(inputs, samples, pairs) if method == "sobol" else morris_points(inputs, samples)
    if points > MOST_POINTS:
        raise ScenarioError(Problem(f"{points:,} points are too many: take fewer samples (--samples)"))
    answers: list[Answer] = []

    def values(shares: np.ndarray) -> np.ndarray:
        """Return the metrics, shape (points, metrics), at shares of the spreads, shape (points, keys)."""
        spreads = [(factor.key, factor.spread) for factor in varied if factor.spread is not None]
        places = [
            {key: spread.at(share) for (key, spread), share in zip(spreads, row, strict=True)}
            for row in shares.tolist()
        ]
        found = {}
        for done, result in enumerate(map_points(scenario, places, workers=workers), 1):
            found[result.number] = solver.extended(result.answers["solve"])
            if progress is not None:
                progress(done, len(places))
        answers.extend(found[number] for number in range(len(places)))
        return np.array([[answer.mean(name) for name in names] for answer in answers])

    known = [factor.key for factor in varied]
    if method == "sobol":
        found = sobol_indices(values, known, samples, seed, pairs=pairs)
    else:
        found = morris_effects(values, known, samples, seed)
    reasons = Counter(str(answer.failure) for answer in answers if answer.failure is not None)
    doubts = [answer.notes["warnings"][0] for answer in answers if answer.notes.get("warnings")]
    attrs = {
        "study": method, "points": found.points, "groups": found.groups, "samples": samples, "seed": seed,
        "failed": sum(reasons.values()), "reasons": dict(reasons.most_common(5)),
        **solver.about, "doubted": len(doubts), "doubt": doubts[0] if doubts else "",
        "simulated": sum(answer.notes.get("answered_by") == "simulation" for answer in answers),
    }  # fmt: skip
    labels = coordinates(names, varied, missing=found.missing, kept=found.kept)
    if "pair" in found.values:
        labels["other"] = labels["key"]
    dims = ("metric", "key", "other")
    return xr.Dataset({name: (dims[: v.ndim], v) for name, v in found.values.items()}, labels, attrs)


def _answers(factor: Factor, solver: Solver) -> bool:
    """Whether both ends of the spread have an answer: elsewhere a default range would mostly fail."""
    return all(solver.at({factor.key: end}).failure is None for end in factor.ends)
