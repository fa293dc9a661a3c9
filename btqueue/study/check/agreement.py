"""Agreement of a file's numbers with the simulator's, and with the model's within its measured error.

Metric by metric the means are compared by Welch's test (Biometrika 34, 1947); a single run without an
interval by the prediction interval of one more replication. The p-values are judged together by Holm's
procedure (Scand. J. Statistics 6, 1979): the probability that any metric of a correct simulator is called
different is at most one minus the confidence. A difference that is significant and too small to matter is
called negligible. If neither side varies from run to run, as in a scenario without random parts, any larger
difference counts as real.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import xarray as xr
from scipy import stats

from btqueue.scenario import METRICS, Scenario, expressions
from btqueue.scenario.metrics import Results
from btqueue.study.check.results import HELPERS, ForeignResults, Quantity
from btqueue.study.comparison import long_name, metric_name, metric_of
from btqueue.study.summary import holm, student_half_width

if TYPE_CHECKING:
    from btqueue.network.measured_errors import MeasuredError

NEGLIGIBLE = 0.01
"""Relative difference that does not matter."""
NEGLIGIBLE_SHARE = 0.001
"""Difference of a loss or another share that does not matter."""
CLOCK_S = 1e-6
"""Difference of a time (s) that does not matter: captures stamp packets to a microsecond."""
NEGLIGIBLE_RATE = 0.01
"""Difference of a rate of events (1/s) that does not matter; in short runs two events."""

UNMEASURED = 0.5
"""Relative error of the model taken for a metric that was never measured against simulation, or for a model
that was not: no model of ours should be a factor of two off."""

Asked = Mapping[str, expressions.Quantity]
"""Quantities of single flows and groups in a file, by name."""

NONE_ASKED: Final[Asked] = MappingProxyType({})

NONE_MEASURED: Final[Mapping[str, MeasuredError]] = MappingProxyType({})

Verdict = Literal["agrees", "negligible", "differs", "not compared"]


@dataclass(frozen=True)
class Agreement:
    """One metric of the file beside the simulator and the model.

    Attributes:
        metric: name, of a queue with its bracket.
        theirs: value in the file, and `theirs_ci95`, NaN without an interval.
        simulation: our mean over replications, and `simulation_ci95`; NaN if it was not simulated.
        model: the model's answer, NaN if it gives none; `model_error` is its relative error, that 95 % of the
            points of its grid keep, or `UNMEASURED`.
        p_value: of the comparison with the simulation, NaN if there was none, or if neither side varies.
        limit: absolute difference from the simulation, or the model, that does not matter.
        verdict: against the simulation, or, without one, against the model.
        sentence: why.
    """

    metric: str
    theirs: float
    theirs_ci95: float
    simulation: float
    simulation_ci95: float
    model: float
    model_error: float
    p_value: float
    limit: float
    verdict: Verdict
    sentence: str


def asked_quantities(results: ForeignResults, scenario: Scenario) -> Asked:
    """Return the quantities of single flows and groups in a file, as `goodput_kbps[download]`, by name.

    Raises:
        ScenarioError: the scenario has no flow and no group of a name.
    """
    return {
        name: expressions.parse_metric(name, results.source, scenario)
        for name in results.quantities
        if name != metric_name(name) and metric_name(name) in METRICS and "queue_packets" not in name
    }


def reference_samples(
    simulated: Results | xr.Dataset,
    flow: int | None,
    asked: Asked = NONE_ASKED,
) -> dict[str, np.ndarray]:
    """Return one value a replication of each metric: of one flow (from 1), or the mean over flows.

    Queues stand apart, as `queue_packets[uplink]`, and so do the quantities that are `asked` for;
    replications without an observation are left out.
    """
    found: dict[str, np.ndarray] = {}
    for name in METRICS:
        if name not in simulated:
            continue
        values = simulated[name]
        if "queue" in values.dims:
            for queue in values["queue"].values:
                found[f"{name}[{queue}]"] = values.sel(queue=queue).values
            continue
        if "flow" in values.dims and flow is not None:
            values = values.isel(flow=flow - 1)
        found[name] = values.mean([dim for dim in values.dims if dim != "replication"]).values
    for name, quantity in asked.items():
        if quantity.name in simulated:
            found[name] = quantity.over(simulated[quantity.name].transpose("replication", ...).values)
    kept = {name: values[np.isfinite(values)] for name, values in found.items()}
    return {name: values for name, values in kept.items() if len(values)}


def model_values(
    solved: Results | xr.Dataset,
    flow: int | None,
    asked: Asked = NONE_ASKED,
) -> dict[str, float]:
    """Return the model's answers in the same way."""
    samples = reference_samples(solved.expand_dims("replication"), flow, asked)
    return {name: float(values[0]) for name, values in samples.items()}


def compare_all(
    results: ForeignResults,
    simulated: Mapping[str, np.ndarray],
    model: Mapping[str, float],
    *,
    confidence: float,
    runs: int,
    seconds: float,
    errors: Mapping[str, MeasuredError] = NONE_MEASURED,
) -> tuple[Agreement, ...]:
    """Return the agreement of every metric of the file, in the order of the vocabulary.

    Args:
        results: read from the file.
        simulated: samples of `reference_samples`; empty if nothing was simulated.
        model: answers of `model_values`; empty if there is no model.
        confidence: one minus the probability that any metric of a correct simulator is called different.
        runs: replications behind an interval whose file does not say how many.
        seconds: simulated time of one run.
        errors: measured errors of the model, by metric.
    """
    metrics = {name: q for name, q in results.quantities.items() if metric_name(name) not in HELPERS}
    order = list(METRICS)
    names = sorted(metrics, key=lambda name: (order.index(metric_name(name)), name))
    p_values = {name: p_value(metrics[name], simulated[name], runs) for name in names if name in simulated}
    different = holm(p_values, 1 - confidence)
    return tuple(
        _judged(metrics[name], simulated.get(name), model.get(name, math.nan), errors.get(name),
                p_values.get(name, math.nan), name in different, seconds)
        for name in names
    )  # fmt: skip


def p_value(theirs: Quantity, ours: np.ndarray, runs: int) -> float:
    """Return the p-value of the hypothesis that both have the same mean; NaN if neither side varies.

    Args:
        theirs: with replications, an interval or neither (then it is one run like one of ours).
        ours: one value a replication, shape (n,).
        runs: replications behind an interval whose file does not say how many.
    """
    spread, n = theirs.spread(runs), len(ours)
    if spread is None:
        return prediction_p_value(theirs.value, ours)
    errors = [spread[0] / spread[1], float(ours.var(ddof=1)) / n if n > 1 else 0.0]
    squares = errors[0] ** 2 / max(1, spread[1] - 1) + errors[1] ** 2 / max(1, n - 1)
    difference, total = abs(theirs.value - float(ours.mean())), sum(errors)
    return _tail(difference, total, total**2 / squares if squares > 0 else 1)


def prediction_p_value(value: float, ours: np.ndarray) -> float:
    """Return the p-value of *value* as one more replication beside *ours*, shape (n,).

    By the prediction interval of normal samples, on the scale of the values, of their square roots and of
    their logarithms, whichever accuses least: counts and times of single runs are skewed, and one run gives
    no mean over which that would even out. Among the values of *ours* it is never below 2 / (n + 1). NaN if
    *ours* do not vary.
    """
    n = len(ours)
    if n > 1 and np.ptp(ours) == 0:
        return math.nan
    scales = [np.positive, np.sqrt]
    if value > 0 and np.all(ours > 0):
        scales.append(np.log)
    if value < 0:
        scales = [np.positive]
    p_values = []
    for scale in scales:
        ours_scaled, value_scaled = scale(ours), float(scale(value))
        variance = float(ours_scaled.var(ddof=1)) if n > 1 else 0.0
        difference = abs(value_scaled - float(ours_scaled.mean()))
        p_values.append(_tail(difference, variance * (1 + 1 / n), n - 1))
    if ours.min() <= value <= ours.max():
        p_values.append(2 / (n + 1))
    return max(p_values)


def _tail(difference: float, variance: float, freedom: float) -> float:
    """Return Student's two-sided tail, NaN without any variance."""
    if variance <= 1e-24 * difference**2:
        return math.nan
    return float(2 * stats.t.sf(difference / math.sqrt(variance), max(1.0, freedom)))


def negligible(name: str, reference: float, seconds: float) -> float:
    """Return the absolute difference of a metric that does not matter."""
    least = 0.0
    metric = metric_of(name)
    if metric.unit == "1" and ("loss" in name or name in ("messages_refused", "sessions_lost")):
        least = NEGLIGIBLE_SHARE
    elif metric.unit == "1/s" and name not in ("polls_per_s", "sessions_per_s"):
        least = max(NEGLIGIBLE_RATE, 2 / seconds)
    elif metric.unit == "s":
        least = CLOCK_S
    return max(least, NEGLIGIBLE * abs(reference))


def _judged(
    theirs: Quantity,
    ours: np.ndarray | None,
    model: float,
    measured: MeasuredError | None,
    p: float,
    different: bool,
    seconds: float,
) -> Agreement:
    name, width = theirs.name, theirs.shown_half_width
    error = UNMEASURED if measured is None else measured.high
    mean, own_width = math.nan, math.nan
    reference = model
    if ours is not None:
        reference = mean = float(ours.mean())
        own_width = student_half_width(ours)
    limit = negligible(name, reference, seconds) if not math.isnan(reference) else math.nan
    chance = width if math.isfinite(width) else 0.0
    near = abs(theirs.value - model) <= max(limit, error * abs(theirs.value)) + chance
    verdict: Verdict
    if math.isnan(reference):
        verdict = "not compared"
    elif ours is None:
        verdict = "agrees" if near else "differs"
    elif math.isnan(p):
        verdict = "agrees" if abs(theirs.value - reference) <= limit else "differs"
    elif not different:
        verdict = "agrees"
    else:
        verdict = "negligible" if abs(theirs.value - reference) <= limit else "differs"
    sentence = _sentence(name, theirs.value, mean, model, measured, p, limit, verdict, near)
    return Agreement(name, theirs.value, width, mean, own_width, model, error, p, limit, verdict, sentence)


def _sentence(
    name: str,
    theirs: float,
    mean: float,
    model: float,
    measured: MeasuredError | None,
    p: float,
    limit: float,
    verdict: Verdict,
    near: bool,
) -> str:
    """Return the verdict in a sentence, with the model's value."""
    what = long_name(name)
    if verdict == "not compared":
        return f"{what}: neither simulation nor model gives it here, so it was not compared"
    if math.isnan(mean):
        side = "within" if near else "beyond"
        known = f"the {UNMEASURED:.0%} allowed, for its error in this metric was never measured"
        if measured is not None:
            known = f"its measured error of {measured.high:.1%} (95 % of {measured.points} points keep it)"
        return (
            f"{what}: {_gap(theirs, model)} the model, {side} {known}; the model is approximate, so this is "
            "weak evidence"
        )
    witness = ""
    if not math.isnan(model):
        witness = (
            f"; the model, which is approximate, is {'near' if near else 'far from'} theirs ({model:.4g})"
        )
    gap = _gap(theirs, mean)
    if math.isnan(p):
        side = "within" if verdict == "agrees" else "beyond"
        return (
            f"{what}: {gap} the simulation, {side} the tolerance of {limit:.2g} (neither varies from "
            f"run to run, so that chance explains nothing){witness}"
        )
    if verdict == "agrees":
        return f"{what}: {gap} the simulation, which chance explains (p = {p:.2g}){witness}"
    if verdict == "negligible":
        return f"{what}: {gap} the simulation, too small a difference to matter (p = {p:.1g}){witness}"
    return f"{what}: {gap} the simulation, more than chance explains (p = {p:.1g}){witness}"


def _gap(theirs: float, ours: float) -> str:
    if theirs == ours:
        return "the same as"
    if ours == 0:
        return f"{theirs:.3g} against 0 of"
    ratio = theirs / ours - 1
    size = f"{abs(ratio):.1%}" if abs(ratio) < 2 else f"{theirs / ours:.3g} times"
    if abs(ratio) >= 2:
        return size
    return f"{size} {'above' if theirs > ours else 'below'}"
