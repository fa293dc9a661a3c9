"""Agreement of a file's numbers with the simulator's, and with the model's within its measured error.

Metric by metric the means are compared by Welch's test (Biometrika 34, 1947); a single run without an
interval by the prediction interval of one more replication. The p-values are judged together by Holm's
procedure (Scand. J. Statistics 6, 1979): the probability that any metric of a correct simulator is called
different is at most one minus the confidence. A difference that is significant and too small to matter is
called negligible. If neither side varies from run to run, as in a scenario without random parts, any larger
difference counts as real.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
import xarray as xr
from scipy import stats

from btqueue.network.measured_errors import MeasuredError
from btqueue.scenario import METRICS, Scenario
from btqueue.scenario.expressions import parse_metric
from btqueue.scenario.metrics import Results
from btqueue.study.check.results import HELPERS, ForeignResults, Quantity
from btqueue.study.comparison import long_name, metric_name, metric_of
from btqueue.study.summary import holm, partial_times, student_half_width

NEGLIGIBLE = 0.01
"""Relative difference that does not matter, unless a tolerance is given."""
TOLERANCE = 0.03
"""The same where nothing is random: programs round and take turns differently."""
NEGLIGIBLE_SHARE = 0.001
"""Difference of a loss or another share that does not matter."""
CLOCK_S = 1e-6
"""Difference of a time (s) that does not matter: captures stamp packets to a microsecond."""
NEGLIGIBLE_RATE = 0.01
"""Difference of a rate of events (1/s) that does not matter; in short runs two events."""
UNMEASURED = 0.5
"""Relative error of the model taken for a metric that was never measured against simulation, or for a model
that was not: no model of ours should be a factor of two off."""
Verdict = Literal["agrees", "negligible", "cannot tell", "differs", "not compared"]


@dataclass(frozen=True)
class Rules:
    """How numbers are compared.

    Attributes:
        confidence: one minus the probability that any metric of a correct simulator is called different.
        runs: replications behind an interval whose file does not say how many.
        seconds: simulated time of one run.
        tolerance: relative difference that does not matter.
        random: whether chance explains differences; if not, the range of our runs is used.
    """

    confidence: float = 0.99
    runs: int = 10
    seconds: float = 480.0
    tolerance: float = NEGLIGIBLE
    random: bool = True


@dataclass(frozen=True)
class Agreement:
    """One metric of the file beside the simulator and the model.

    Attributes:
        metric: name, of a queue with its bracket.
        theirs: value in the file, and `theirs_ci95`, NaN without an interval.
        simulation: our mean over replications, and `simulation_ci95`; NaN if it was not simulated.
        model: the model's answer, NaN if it gives none; `model_error` is its relative error, that 95 % of the
            points of its grid keep, or `UNMEASURED`.
        p_value: of the comparison with the simulation, NaN if there was none, or if nothing is random.
        away: absolute difference from the simulation's mean, where nothing is random from its range, and from
            the model where nothing was simulated.
        limit: the part of it that does not matter.
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
    away: float
    limit: float
    verdict: Verdict
    sentence: str

    @property
    def reference(self) -> float:
        """Our number: the simulation's, or the model's where nothing was simulated."""
        return self.model if math.isnan(self.simulation) else self.simulation


def reference_samples(
    simulated: Results | xr.Dataset, results: ForeignResults, scenario: Scenario
) -> dict[str, np.ndarray]:
    """Return one value a replication of each metric: of the file's flow, or the mean over flows.

    Queues stand apart, as `queue_packets[uplink]`, and so do the quantities of single flows and groups in the
    file, as `goodput_kbps[download]`; replications without an observation are left out.

    Raises:
        ScenarioError: the scenario has no flow and no group of such a name.
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
        if "flow" in values.dims and results.flow is not None:
            values = values.isel(flow=results.flow - 1)
        found[name] = values.mean([dim for dim in values.dims if dim != "replication"]).values
    for name in results.quantities:
        metric = metric_name(name)
        if name != metric and metric in METRICS and metric != "queue_packets":
            quantity = parse_metric(name, results.source, scenario)
            if metric in simulated:
                found[name] = quantity.over(simulated[metric].transpose("replication", ...).values)
    kept = {name: values[np.isfinite(values)] for name, values in found.items()}
    return {name: values for name, values in kept.items() if len(values)}


def model_values(
    solved: Results | xr.Dataset, results: ForeignResults, scenario: Scenario
) -> dict[str, float]:
    """Return the model's answers by the same names, without times that it gives for some flows only."""
    samples = reference_samples(solved.expand_dims("replication"), results, scenario)
    partial = partial_times(solved, scenario) if results.flow is None else set()
    return {name: float(values[0]) for name, values in samples.items() if metric_name(name) not in partial}


def compare_all(
    results: ForeignResults,
    simulated: Mapping[str, np.ndarray],
    model: Mapping[str, float],
    rules: Rules,
    errors: Mapping[str, MeasuredError] = MappingProxyType({}),
) -> tuple[Agreement, ...]:
    """Return the agreement of every metric of the file, in the order of the vocabulary.

    Args:
        results: read from the file.
        simulated: samples of `reference_samples`; empty if nothing was simulated.
        model: answers of `model_values`; empty if there is no model.
        rules: how they are compared.
        errors: measured errors of the model, by metric.
    """
    p_values, level = tests_of(results, simulated, rules)
    different, found = holm(p_values, 1 - rules.confidence), []
    for name, theirs in compared_metrics(results).items():
        ours, answer, measured = simulated.get(name), model.get(name, math.nan), errors.get(name)
        p, width = p_values.get(name, math.nan), theirs.shown_half_width
        error = UNMEASURED if measured is None else measured.high
        mean = own_width = math.nan
        if ours is not None:
            mean, own_width = float(ours.mean()), student_half_width(ours)
        reference = answer if ours is None else mean
        limit = math.nan if math.isnan(reference) else negligible(name, reference, rules)
        away = abs(theirs.value - answer) if ours is None else distance(theirs.value, ours, rules)
        chance = width if math.isfinite(width) else 0.0
        near = abs(theirs.value - answer) <= max(limit, error * abs(theirs.value)) + chance
        if math.isnan(reference):
            verdict: Verdict = "not compared"
            sentence = "neither simulation nor model gives it here, so it was not compared"
        elif ours is None:
            verdict = "agrees" if near else "differs"
            sentence = _beside_model(theirs.value, answer, measured, near)
        elif math.isnan(p):
            verdict = "agrees" if away <= limit else "differs"
            sentence = _without_chance(theirs.value, ours, away, limit, rules)
        else:
            verdict, sentence = _by_chance(theirs, ours, p, level, rules, name in different, away > limit)
        if ours is not None and not math.isnan(answer):
            side = "does not contradict theirs" if near else "contradicts theirs"
            known = "error not measured" if measured is None else f"error at most {max(error, 0.01):.0%}"
            if verdict == "differs" and abs(mean - answer) < abs(theirs.value - answer):
                side = "is nearer to the simulation"
            sentence += f"; the model ({answer:.4g}, {known}) {side}"
        sentence = f"{long_name(name)}: {sentence}"
        found.append(
            Agreement(
                name, theirs.value, width, mean, own_width, answer, error, p, away, limit, verdict, sentence
            )
        )
    return tuple(found)


def compared_metrics(results: ForeignResults) -> dict[str, Quantity]:
    """Return the metrics of a file in the order of the vocabulary, without helpers and means over groups."""
    order = list(METRICS)
    grouped = {metric_name(name) for name in results.quantities if results.groups and "[" in name}
    metrics = [
        name for name in results.quantities if metric_name(name) not in HELPERS and name not in grouped
    ]
    names = sorted(metrics, key=lambda name: (order.index(metric_name(name)), name))
    return {name: results.quantities[name] for name in names}


def tests_of(
    results: ForeignResults, simulated: Mapping[str, np.ndarray], rules: Rules
) -> tuple[dict[str, float], float]:
    """Return the p-value of each metric, and the level that the smallest of them must be below."""
    if not rules.random:
        return {}, 0.0
    metrics = compared_metrics(results)
    found = {
        name: p_value(one, simulated[name], rules.runs) for name, one in metrics.items() if name in simulated
    }
    tests = sum(not math.isnan(p) for p in found.values())
    return found, (1 - rules.confidence) / max(1, tests)


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
    their logarithms, whichever gives the largest p-value: counts and times of single runs are skewed, and one
    run has no mean in which skewness averages out. Among the values of *ours* it is never below 2 / (n + 1).
    NaN if *ours* do not vary.
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
    if variance <= 1e-24 * difference**2:
        return math.nan
    return float(2 * stats.t.sf(difference / math.sqrt(variance), max(1.0, freedom)))


def negligible(name: str, reference: float, rules: Rules) -> float:
    """Return the absolute difference of a metric that does not matter."""
    least = 0.0
    metric = metric_of(name)
    if metric.unit == "1" and ("loss" in name or name in ("messages_refused", "sessions_lost")):
        least = NEGLIGIBLE_SHARE
    elif metric.unit == "1/s" and name not in ("polls_per_s", "sessions_per_s"):
        least = max(NEGLIGIBLE_RATE, 2 / rules.seconds)
    elif metric.unit == "s":
        least = CLOCK_S
    return max(least, rules.tolerance * abs(reference))


def distance(value: float, ours: np.ndarray, rules: Rules) -> float:
    """Return how far a value is from our mean, or, where nothing is random, from the range of our runs."""
    if rules.random:
        return abs(value - float(ours.mean()))
    return max(float(ours.min()) - value, value - float(ours.max()), 0.0)


def shows(theirs: Quantity, ours: np.ndarray, value: float, level: float, rules: Rules) -> bool:
    """Whether *value* in place of the file's value would be called different, at the level of one test."""
    if distance(value, ours, rules) <= negligible(theirs.name, float(ours.mean()), rules):
        return False
    if not rules.random:
        return True
    shift = value - theirs.value
    moved = replace(theirs, value=value, samples=tuple(sample + shift for sample in theirs.samples))
    return not p_value(moved, ours, rules.runs) >= level


def least_excess(theirs: Quantity, ours: np.ndarray, level: float, rules: Rules) -> float | None:
    """Return the least relative excess over our mean that would show; None if half or twice it would not."""
    mean = float(ours.mean())
    if not all(shows(theirs, ours, mean * factor, level, rules) for factor in (0.5, 2.0)):
        return None
    parts = 2**10
    first = bisect_left(
        range(1, parts), True, key=lambda part: shows(theirs, ours, mean * (1 + part / parts), level, rules)
    )
    return (first + 1) / parts


def _by_chance(
    theirs: Quantity, ours: np.ndarray, p: float, level: float, rules: Rules, different: bool, matters: bool
) -> tuple[Verdict, str]:
    mean = float(ours.mean())
    gap = f"{_gap(theirs.value, mean)} the simulation"
    if different and matters:
        return "differs", f"{gap}, more than chance explains (p = {p:.1g})"
    if different:
        return "negligible", f"{gap}, too small a difference to matter (p = {p:.1g})"
    explained = f"{gap}, which chance explains (p = {p:.2g}"
    if not mean:
        return "agrees", f"{explained})"
    if (excess := least_excess(theirs, ours, level, rules)) is None:
        return "cannot tell", f"{explained}), but half or twice as much would pass, too"
    return "agrees", f"{explained}; {excess:.1%} more would show)"


def _beside_model(theirs: float, model: float, measured: MeasuredError | None, near: bool) -> str:
    side = "within" if near else "beyond"
    known = f"the {UNMEASURED:.0%} allowed, for its error in this metric was never measured"
    if measured is not None:
        known = f"its measured error of {measured.high:.1%} (95 % of {measured.points} points keep it)"
    return (
        f"{_gap(theirs, model)} the model, {side} {known}; the model is approximate, so this is weak evidence"
    )


def _without_chance(theirs: float, ours: np.ndarray, away: float, limit: float, rules: Rules) -> str:
    """Return the verdict in words where nothing varies by chance."""
    mean, low, high = (float(x) for x in (ours.mean(), ours.min(), ours.max()))
    if theirs == mean:
        return "the same as the simulation"
    if away == 0:
        return f"within the range of our runs with jittered starts, {low:.4g} to {high:.4g}"
    size, most = f"{away:.2g}", f"{limit:.2g} that do not matter"
    if mean and limit <= rules.tolerance * abs(mean):
        size, most = f"{100 * away / abs(mean):.2g} %", f"tolerance of {100 * rules.tolerance:.2g} %"
    side = "within" if away <= limit else "beyond"
    spread = f"{low:.4g} to {high:.4g}" if low < high else f"always {mean:.4g}"
    return f"differs by {size}, {side} the {most} (chance explains nothing here; ours is {spread})"


def _gap(theirs: float, ours: float) -> str:
    if theirs == ours:
        return "the same as"
    if ours == 0:
        return f"{theirs:.3g} against 0 of"
    ratio = theirs / ours - 1
    if abs(ratio) >= 2:
        return f"{theirs / ours:.3g} times"
    return f"{abs(ratio):.1%} {'above' if theirs > ours else 'below'}"
