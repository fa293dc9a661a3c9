"""Doubts about a simulation's intervals: no randomness, gaps, trends, long memories, short runs."""

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.metrics import METRICS, Results
from btqueue.scenario.topology import topology
from btqueue.simulator.statistics.measurement import mean_of_known
from btqueue.simulator.statistics.student import student_half_width, student_quantile

LARGEST_AUTOCORRELATION = 0.2
"""Largest correlation of the two halves of a replication."""
WATCHED_METRICS = ("goodput_kbps", "rtt_s", "delay_s")
"""Metrics whose halves of replications are tested."""
FLOWING_METRICS = ("goodput_kbps", "rtt_s")
"""Metrics that show the present state of a network; a delay may only reflect an old backlog."""
RATIOS = ("rtt_s", "delay_s")
"""Means over a random number of observations: they are biased, the more the shorter a run is."""
FALSE_ALARMS = 0.01
"""Share of answers with a warning although their runs are long enough (false alarms), over all tests."""
TOLERABLE_BIAS = 0.25
"""Tolerable bias as a share of the half-width: with it an interval of 95 % still covers the mean in 92 %."""
VISIBLE_ENDS = 0.01
"""Share of a flow's goodput sent before a run, and not balanced at its end, that is reported without a
test, if it is above the tolerable bias."""
NEGLIGIBLE = 1e-3
"""Share of a mean that no interval has to resolve."""


class TooShort(str):
    """A doubt that longer runs, with a longer warm-up, may remove."""


def doubts(
    results: Results, scenario: Scenario, halves: Mapping[str, np.ndarray], drained: np.ndarray
) -> list[str]:
    """Return the doubts about the intervals, as sentences.

    They are answers without randomness, phases that last for a whole run, and runs that are too short for
    their metrics (`TooShort`). The tests on the data together are wrong in at most `FALSE_ALARMS` of the
    answers with long runs. No test can see a state that no replication was in.

    Args:
        results: metrics of the replications.
        scenario: the simulated scenario.
        halves: the watched metrics in first and second halves, shape (2, replications).
        drained: data delivered that had been sent before the measurement, less the data under way at its end,
            in kbit/s, shape (replications, flows).
    """
    backs_off = look_for_backoff(results, scenario)
    if fixed := without_randomness(results):
        found = [look_for_ends(results, drained, NEGLIGIBLE), backs_off]
        return [fixed, *(TooShort(doubt) for doubt in found if doubt)]
    names = [name for name in WATCHED_METRICS if name in results.metrics and name in halves]
    whole = {name: mean_of_known(results.metrics[name].values) for name in names}
    pairs = {name: halves[name] for name in names}
    tests = [look_for_trends, look_for_biases, *([] if has_phases(scenario) else [look_for_memory])]
    if scenario.traffic.load_schedule:
        tests.remove(look_for_trends)  # there is one, by design
    alarms = FALSE_ALARMS / (len(tests) * len(names) + 1)
    certain = 0.0 if scenario.traffic.load_schedule else alarms
    phases = look_for_phases(results) if has_phases(scenario) else ""
    found = [
        look_for_ends(results, drained, VISIBLE_ENDS, certain),
        look_for_gaps(results),
        backs_off,
        *(test(pairs, whole, alarms) for test in tests),
    ]
    return [*([phases] if phases else []), *(TooShort(doubt) for doubt in found if doubt)]


def has_phases(scenario: Scenario) -> bool:
    """Whether replications differ for ever, because periodic sources keep the phase that was drawn."""
    sources = (scenario.of_flow(flow.spec).traffic for flow in topology(scenario).flows)
    return any(own.source == "periodic" and own.phase == "random" for own in sources)


def look_for_phases(results: Results) -> str:
    """Look for flows whose delays differ more between replications, with constant phases, than in one."""
    if "delay_p50_s" not in results.metrics:
        return ""
    half, most = (results.metrics[f"delay_p{percent}_s"].values for percent in (50, 95))
    within = np.maximum(most - half, half / 10.0).mean(axis=0)  # at least some bins of the histograms
    if not (np.ptp(half, axis=0) > within).any():
        return ""
    return (
        "a periodic source keeps its phase for a whole run: quantiles of delays are means of the runs' "
        f"quantiles, not quantiles of all messages (delay_p95_s was up to {np.nanmax(most):.3g} s in one run)"
    )


def without_randomness(results: Results) -> str:
    """Warn if no event was random: all replications are equal."""
    count = results.sizes["replication"]
    every = [one.values for one in results.metrics.values()]
    if count > 1 and all(
        np.array_equal(values, np.broadcast_to(values[0], values.shape), equal_nan=True) for values in every
    ):
        return (
            f"all {count} replications are identical: nothing random happened in them, and their intervals "
            "are no measure of precision"
        )
    return ""


def look_for_gaps(results: Results) -> str:
    """Look for replications without a value for a flow that has one in others."""
    found = []
    for name in WATCHED_METRICS:
        if name in results.metrics:
            known = ~np.isnan(results.metrics[name].values)
            short = int((~known & known.any(axis=0)).any(axis=1).sum())
            found += [f"{name} in {short} of {results.sizes['replication']}"] if short else []
    return about(
        found,
        "replications in which a flow has no observation ({}) do not count in the mean: simulate longer",
    )


def look_for_backoff(results: Results, scenario: Scenario) -> str:
    """Look for flows that get nothing in any replication, and whose timers may still double when they end.

    A timer has doubled to `max_rto_s` within twice this time; until then timeouts become ever rarer.
    """
    if scenario.run.warmup_s == "auto" or "timeouts_per_s" not in results.metrics:
        return ""
    goodput, timeouts = (results.metrics[name].values for name in ("goodput_kbps", "timeouts_per_s"))
    silent = np.flatnonzero(((goodput == 0.0) & (timeouts > 0.0)).all(axis=0))
    flows = topology(scenario).flows
    senders = [scenario.of_flow(flows[number].spec).transport for number in silent]
    end_s = 2.0 * max((one.max_rto_s for one in senders if one.rto_backoff), default=0.0)
    if scenario.run.warmup_s >= end_s:
        return ""
    return (
        f"a flow gets nothing, and its timer doubles for up to {end_s:g} s, longer than the warm-up: its "
        "timeouts are rarer in the long run"
    )


def look_for_ends(results: Results, drained: np.ndarray, visible: float, alarms: float = 0.0) -> str:
    """Look for flows of which more was delivered than sent, on average over the replications.

    In the steady state as much is under way when the measurement begins as when it ends: a window of TCP, or
    a message of CentaurusComm, which counts as a whole when it is complete. A difference matters above the
    `visible` share of the goodput and the tolerable bias, or if it exceeds this bias by Student's test, where
    `alarms` is the probability of a false alarm.
    """
    goodputs = results.metrics["goodput_kbps"].values
    goodput, surplus = goodputs.mean(axis=0), drained.mean(axis=0)
    bounds = np.array([tolerable(each) for each in goodputs.T])
    # one replication has no interval, and so no tolerable bias
    matters = surplus > np.maximum(visible * goodput, np.where(np.isfinite(bounds), bounds, 0.0))
    if alarms > 0.0:
        for flow in np.flatnonzero(surplus > 0.0):
            matters[flow] |= surely_exceeds(drained[:, flow], bounds[flow], alarms / len(surplus))
    if not matters.any():
        return ""
    most = int(np.argmax(np.where(matters, surplus, 0.0)))
    return (
        f"of a flow's goodput of {goodput[most]:.4g} kbit/s, {surplus[most]:.2g} were sent before the "
        "measurement began, and less is under way at its end: the warm-up or the runs are too short"
    )


Pairs = Mapping[str, np.ndarray]
"""Values of each metric in first and second halves, shape (2, n)."""
Whole = Mapping[str, np.ndarray]
"""Values of each metric in whole replications, shape (n,)."""


def look_for_trends(pairs: Pairs, whole: Whole, alarms: float) -> str:
    """Look for metrics that differ between first and second halves, by Student's test of the differences.

    Half the difference, the error of the mean, has to exceed the tolerable bias.
    """
    found = []
    for name, both in pairs.items():
        first, second = _known(both)
        if surely_exceeds((second - first) / 2, tolerable((first + second) / 2), alarms):
            change = f"{first.mean():.4g} to {second.mean():.4g} {METRICS[name].unit}"
            found.append(f"{name} from {change}")
    return about(
        found,
        "means over flows change between the halves of the runs ({}): the warm-up is too short, or there is "
        "no steady state",
    )


def look_for_memory(pairs: Pairs, whole: Whole, alarms: float) -> str:
    """Look for metrics whose means over the two halves of a replication are correlated, by Fisher's test.

    A metric is named if its correlation is surely above `LARGEST_AUTOCORRELATION`: then the network stays in
    one state for longer than a run.
    """
    found = []
    for name in FLOWING_METRICS:
        first, second = _known(pairs[name]) if name in pairs else np.zeros((2, 0))
        if len(first) < 4 or np.ptp(first) == 0 or np.ptp(second) == 0:
            continue
        correlation = float(np.clip(np.corrcoef(first, second)[0, 1], -1 + 1e-12, 1 - 1e-12))
        excess = math.atanh(correlation) - math.atanh(LARGEST_AUTOCORRELATION)
        if NormalDist().cdf(-excess * math.sqrt(len(first) - 3)) < alarms:
            found.append(f"{name} {correlation:.2f}")
    return about(
        found,
        "the halves of a replication are alike (correlation of {}): each replication stays in one state for "
        "its whole length, and there may be states that no replication was in: simulate longer, or add "
        "run.jitter_s",
    )


def look_for_biases(pairs: Pairs, whole: Whole, alarms: float) -> str:
    """Look for metrics that differ between whole runs and their halves, by Student's test of the differences.

    A mean over a random number of observations has a bias that is inversely proportional to the length of the
    run. Half a run has twice the bias of the whole run, so the difference of both means is the bias of the
    whole run (Quenouille, Biometrika 43, 1956). A mean over time has no such bias.
    """
    found = []
    for name in RATIOS:
        if name in pairs:
            first, second, mean = _known(np.array([*pairs[name], whole[name]]))
            bias = (first + second) / 2 - mean
            if surely_exceeds(bias, tolerable(mean), alarms):
                found.append(f"{name} {(mean + bias).mean():.4g} in place of {mean.mean():.4g}")
    return about(
        found,
        "runs of half the length have other means ({}), so the means of the whole runs are biased, too: "
        "simulate longer",
    )


def about(found: list[str], doubt: str) -> str:
    """Return a doubt about the metrics found, "" if there are none."""
    return doubt.format(", ".join(found)) if found else ""


def surely_exceeds(differences: np.ndarray, bound: float, alarms: float) -> bool:
    """Whether the mean of these differences, shape (n,), exceeds the bound, by Student's test."""
    if len(differences) < 3:
        return False
    excess = abs(float(differences.mean())) - bound
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return excess > -student_quantile(len(differences) - 1, alarms / 2) * error


def tolerable(means: np.ndarray) -> float:
    """Return the tolerable bias of the mean of these values, shape (n,), for its interval."""
    if len(means) < 2:
        return math.inf
    return float(max(TOLERABLE_BIAS * student_half_width(means), NEGLIGIBLE * abs(means.mean())))


def _known(values: np.ndarray) -> np.ndarray:
    """Return the columns that contain only numbers."""
    return values[:, ~np.isnan(values).any(axis=0)]
