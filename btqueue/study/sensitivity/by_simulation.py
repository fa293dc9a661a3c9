"""Derivatives from pairs of simulations with common random numbers, beside the solver's.

Both simulations of a pair have the same seeds, so that the same arrivals and errors happen as far as the two
scenarios allow. Differences of their replications vary less than the replications do. Student's interval of
the differences gives the interval of the slope (Glasserman and Yao, Management Science 38, 1992).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from btqueue.scenario import METRICS, Problem, Scenario, ScenarioError
from btqueue.simulator import simulate
from btqueue.study.evaluate import evaluate
from btqueue.study.sensitivity.factors import SHARE, Factor, coordinates, factors, require_spreads
from btqueue.study.sensitivity.local import local_sensitivity
from btqueue.study.sensitivity.solving import Progress, chosen_metrics, with_quantities
from btqueue.study.summary import student_half_width, summarise

COLUMNS = ("simulated", "ci95", "solved", "inside", "gain")

MOST_KEYS = 5
"""Keys that are simulated where none are named."""


def simulated_slopes(
    scenario: Scenario,
    keys: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    spread: Mapping[str, Any] | None = None,
    *,
    share: float = SHARE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Return the slopes of metrics between the ends of each key's spread, simulated and solved.

    Both are slopes of the same line, between the same two points, so they agree up to the model's error and
    the interval, however the metric bends in between.

    Args:
        scenario: says how to simulate, too; it needs two replications or more.
        keys: dotted; each costs two simulations. By default the `MOST_KEYS` with the largest effect on the
            first metric, by the solver.
        metrics: as in `btqueue.study.sensitivity.local.local_sensitivity`.
        spread: as in `btqueue.study.sensitivity.factors.factors`, like *share*.
        share: width of the other spreads.
        threads: replications at once; the result does not depend on it.
        progress: called with the simulations done and needed.

    Returns:
        With dimensions (metric, key): ``simulated`` and the half-width ``ci95`` of its 95 % interval,
        ``solved`` (NaN where theory has no answer), ``inside`` (1 if that lies in the interval, NaN if there
        is nothing to compare), ``gain`` (how many times more replications
        independent seeds would take for the same interval). Of a correct model, 5 % of the entries are
        outside by chance. The attribute warnings has the solver's warnings, by key.

    Raises:
        ScenarioError: a key, a range or a metric is wrong, or an end of a spread cannot be simulated.
    """
    if scenario.run.replications < 2:
        key = "run.replications"
        raise ScenarioError(Problem("[run] replications = 1: an interval takes two or more", key))
    quantities = chosen_metrics(metrics or None, METRICS, scenario)
    names = tuple(quantities)
    if keys is None:
        keys = _leading_keys(scenario, names, spread, share)
    varied = factors(scenario, keys, spread, share)
    require_spreads(varied)
    paired = scenario.changed({"run.precision": None, "run.intervals": "replications"})
    shape = (len(names), len(varied))
    columns = {name: np.full(shape, math.nan) for name in COLUMNS}
    warnings: list[str] = []
    for place, factor in enumerate(varied):
        assert factor.spread is not None
        width = factor.spread.high - factor.spread.low
        ends = [paired.changed({factor.key: end}) for end in (factor.spread.low, factor.spread.high)]
        solved = [evaluate(end, "theory") for end in ends]
        theory = [with_quantities(answer.metrics, quantities) for answer in solved]
        every = (words for answer in solved for words in answer.notes.get("warnings", ()))
        warnings += [f"{factor.key}: {words}" for words in dict.fromkeys(every)]
        samples = []
        for count, end in enumerate(ends):
            samples.append(with_quantities(summarise(simulate(end, threads=threads)), quantities))
            if progress is not None:
                progress(2 * place + count + 1, 2 * len(varied))
        for row, name in enumerate(names):
            both = all(name in one for one in samples)
            below, above = (np.array(one[name].samples if both else ()) for one in samples)
            found = _slope(below, above, width)
            low, high = (one[name].mean if name in one else math.nan for one in theory)
            found["solved"] = (high - low) / width
            found["inside"] = _covers(found["simulated"], found["ci95"], found["solved"])
            for column, value in found.items():
                columns[column][row, place] = value
    return _dataset(columns, names, varied, scenario).assign_attrs(warnings=warnings)


def _leading_keys(
    scenario: Scenario, metrics: Sequence[str], spread: Mapping[str, Any] | None, share: float
) -> list[str]:
    solved = local_sensitivity(scenario, spread=spread, share=share)
    first = next((name for name in metrics if name in solved.metrics), None)
    ranked = solved.ranked(first) if first is not None else []
    keys = [row.factor.key for row in ranked if row.effect > 0 and math.isfinite(row.at_low + row.at_high)]
    if not keys:
        raise ScenarioError(Problem("by the solver no key has an effect: name keys to simulate"))
    return keys[:MOST_KEYS]


def _slope(low: np.ndarray, high: np.ndarray, width: float) -> dict[str, float]:
    """Return slope, interval and gain of the common random numbers, from paired replications."""
    paired = ~(np.isnan(low) | np.isnan(high))
    low, high = low[paired], high[paired]
    if len(low) < 2:
        return {"simulated": math.nan, "ci95": math.nan, "gain": math.nan}
    differences = (high - low) / width
    together = float(np.var(differences, ddof=1))
    apart = float(np.var(low, ddof=1) + np.var(high, ddof=1)) / width**2
    gain = apart / together if together > 0 else math.nan
    return {"simulated": float(differences.mean()), "ci95": student_half_width(differences), "gain": gain}


def _covers(slope: float, ci95: float, solved: float) -> float:
    if math.isnan(solved) or math.isnan(ci95):
        return math.nan
    rounding = 1e-9 * max(abs(slope), abs(solved))
    return float(abs(slope - solved) <= ci95 + rounding)


def _dataset(
    columns: Mapping[str, np.ndarray], metrics: Sequence[str], varied: Sequence[Factor], scenario: Scenario
) -> xr.Dataset:
    attrs = {"study": "simulate", "replications": scenario.run.replications, "seed": scenario.run.seed}
    variables = {name: (("metric", "key"), values) for name, values in columns.items()}
    return xr.Dataset(variables, coordinates(metrics, varied), attrs)
