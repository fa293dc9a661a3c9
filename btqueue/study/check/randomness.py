"""Statistics of the output: a visible warm-up, intervals too narrow, random streams in common."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import numpy as np
from scipy import stats

from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology
from btqueue.simulator.statistics.batch_means import interval
from btqueue.simulator.statistics.doubts import autocorrelation
from btqueue.simulator.statistics.warmup import BATCH, FEWEST_BATCHES, find_warm_up
from btqueue.study.check.agreement import Rules
from btqueue.study.check.results import Finding, ForeignResults

LATE_BATCHES = 8
"""Batches of the second half of a series, from which its variance is estimated."""
BATCHES = 20
"""Of a series, whose means give its variance."""
NEGLIGIBLE = 0.01
"""Relative bias of a mean by the warm-up that does not matter."""
FEWEST_FOR_CORRELATION = 8
"""Samples that a test of correlation needs."""
PERMUTATIONS = 9_999
"""Of a permutation test: its smallest probability is one in 10,000."""
CONTINUOUS = (
    "rtt",
    "delay",
    "acknowledged_delay",
    "session_time",
    "cwnd",
    "window",
    "queue",
    "cycle",
    "slot",
)
"""Beginnings of the names of metrics that do not come out alike by chance, as counts of events do."""
LEAST_RATIO = 3.0
"""Ours must be this many times as wide, for the file need not have the scenario's run length."""
WATCHED = ("goodput_kbps", "throughput_kbps", "rtt_s", "window_segments", "cycle_s", "slot_utilisation")
"""Metrics whose replications are nearly normal, as the test wants them."""


def check_randomness(
    results: ForeignResults,
    scenario: Scenario,
    alpha: float,
    simulated: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Return the findings on series and replications.

    Args:
        results: read from the file.
        scenario: tells whether anything is random at all.
        alpha: probability of a false alarm of each kind of check, over all metrics.
        simulated: our samples; where ours come out alike, theirs may.
    """
    return (
        *_warm_up(results, alpha),
        *_optimistic(results, alpha),
        *_shared_streams(results, scenario, simulated),
        *_correlated(results, alpha),
    )


def initial_bias(values: np.ndarray) -> float:
    """Return the p-value of the test of Schruben, Singh and Tierney (Operations Research 31, 1983).

    It weighs the differences between the mean of all values and the means of the first k, small k most.
    Without a bias the statistic follows Student's law with the degrees of freedom of the variance. The
    variance is estimated from the second half, by batch means or by a first-order autoregression, whichever
    is larger: batch means give too little where values are correlated over longer than a batch. A trend of
    the second half is removed first; it would raise the variance and so hide the bias. Two-sided.

    Args:
        values: observations at equal distances, shape (n,).
    """
    n = len(values)
    late = values[n // 2 :]
    trend = np.polynomial.Polynomial.fit(np.arange(len(late)), late, 1)
    variance = long_run_variance(late - trend(np.arange(len(late))))
    k = np.arange(1, n + 1)
    differences = values.mean() - np.cumsum(values) / k
    statistic = math.sqrt(45) * float(np.sum(k * (1 - k / n) * differences)) / n**1.5
    if variance == 0:
        return 1.0 if abs(statistic) < 1e-9 * abs(values.mean()) else 0.0
    return float(2 * stats.t.sf(abs(statistic) / math.sqrt(variance), LATE_BATCHES - 1))


def long_run_variance(values: np.ndarray) -> float:
    """Return n times the variance of the mean of n correlated values, shape (n,)."""
    size = len(values) // LATE_BATCHES
    means = values[len(values) - size * LATE_BATCHES :].reshape(LATE_BATCHES, size).mean(axis=1)
    by_batches = size * float(means.var(ddof=1))
    centred = values - values.mean()
    power = float(np.sum(centred**2))
    if power == 0:
        return by_batches
    correlation = min(float(np.sum(centred[1:] * centred[:-1])) / power + 1 / len(values), 0.99)
    return max(by_batches, power / len(values) * (1 + correlation) / (1 - correlation))


def _warm_up(results: ForeignResults, alpha: float) -> Iterator[Finding]:
    by_name = _mean_series(results)
    for name, (times, values) in by_name.items():
        busy = np.concatenate(([-1], np.flatnonzero(values), [len(values)]))
        silence = int(np.diff(busy).max()) - 1  # the greatest number of zeros in a row
        if len(values) < BATCH * FEWEST_BATCHES or silence > len(values) // (2 * LATE_BATCHES):
            continue  # of too few observations, or with pauses as long as the batches that it is judged by
        cut, whole = find_warm_up(values, float(np.median(np.diff(times)))), float(values.mean())
        length, status = f"{times[-1] - times[0]:.4g} s", "failed"
        if initial_bias(values) >= alpha / len(by_name):
            status, text = "passed", f"{name} shows no warm-up over its {length}"
        elif cut.end_s is None:
            text = f"{name} has not become stationary in its {length}: the run is too short"
        elif abs(cut.mean - whole) > NEGLIGIBLE * abs(cut.mean):
            text = (
                f"the warm-up is still in {name}: MSER-5 leaves the first {cut.end_s:.3g} s out, and "
                f"the mean goes from {whole:.4g} to {cut.mean:.4g}"
            )
        else:
            change = f"{cut.mean / whole - 1:+.2%}"
            status, text = "passed", f"a trace of the warm-up is in {name}, too small to matter ({change})"
        yield Finding("warm-up", status, text)


def _mean_series(results: ForeignResults) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return one series a metric: the mean over its replications (Welch 1983) with the same times."""
    of_name = defaultdict(list)
    for one in results.series:
        of_name[one.name].append(one)
    found = {}
    for name, runs in of_name.items():
        same = [run for run in runs if np.array_equal(run.times, runs[0].times)]
        found[name] = (runs[0].times, np.mean([run.values for run in same], axis=0))
    return found


def _optimistic(results: ForeignResults, alpha: float) -> Iterator[Finding]:
    """Compare the interval that the file gives for a mean with the interval by batch means of its series."""
    by_name = _mean_series(results)
    for name, (_, values) in by_name.items():
        quantity = results.quantities.get(name)
        if quantity is None or math.isnan(quantity.half_width) or len(values) < 2 * BATCHES:
            continue
        own = float(interval(values, BATCHES, quantity.confidence).half_width)
        claimed = quantity.half_width
        # the variance of the mean that is claimed, and the estimate of it: chi-squared if the claim is true
        claimed_variance = (claimed / stats.norm.ppf(0.5 + quantity.confidence / 2)) ** 2
        estimate = (own / stats.t.ppf(0.5 + quantity.confidence / 2, BATCHES - 1)) ** 2
        excess = math.inf if claimed_variance == 0 else (BATCHES - 1) * estimate / claimed_variance
        status, text = "passed", f"the interval of {name} allows for the correlation of its series"
        if estimate > 0 and stats.chi2.sf(excess, BATCHES - 1) < alpha / len(by_name):
            status = "failed"
            text = (
                f"the interval of {name} is too optimistic: ± {claimed:.3g} is given, batch means of "
                f"the series give ± {own:.3g}, for values next to each other are correlated "
                f"({autocorrelation(values):.2f})"
            )
        yield Finding("intervals", status, text)


def is_random(scenario: Scenario) -> bool:
    """Whether two runs with different seeds can differ at all."""
    sources = (scenario.of_flow(flow.spec).traffic for flow in topology(scenario).flows)
    fixed = all(
        own.source in ("greedy", "file") or (own.source == "periodic" and own.phase == "aligned")
        for own in sources
    )
    links, radio = scenario.network.outside_links, scenario.radio
    quiet = not any(x.loss or x.loss_back or x.jitter_s or x.up_s for x in links) and not radio.interferers
    perfect = all(one.model in (None, "perfect") for one in (radio, *radio.links))
    return not (fixed and quiet and perfect and scenario.run.jitter_s == 0)


def _shared_streams(
    results: ForeignResults, scenario: Scenario, simulated: Mapping[str, np.ndarray]
) -> Iterator[Finding]:
    """Look for replications that are copies of each other."""
    if not is_random(scenario):
        return
    count = max((len(q.samples) for q in results.quantities.values()), default=0)
    telling = {
        name: q.samples
        for name, q in results.quantities.items()
        if len(q.samples) == count > 1 and any(q.samples) and name.startswith((*CONTINUOUS, "good", "thr"))
    }
    varying = {name: samples for name, samples in telling.items() if len(set(samples)) > 1}
    if telling and not varying:
        text = (
            f"all {count} replications are identical: they share one random stream (the seed does not "
            "change), so there is one replication and no interval"
        )
        yield Finding("replications", "failed", text)
    if len(varying) < 2 or not any(name.startswith(CONTINUOUS) for name in varying):
        return
    rows = list(zip(*varying.values(), strict=True))
    copies = [(a + 1, b + 1) for a, b in combinations(range(count), 2) if rows[a] == rows[b]]
    status, text = "passed", f"no two of {count} replications are copies"
    if copies and _alike({name: simulated[name] for name in varying if name in simulated}, varying):
        text = "some replications are alike, as some of ours are"
    elif copies:
        (a, b), more = copies[0], f" (and {len(copies) - 1} more pairs)" if len(copies) > 1 else ""
        status = "failed"
        text = (
            f"replications {a} and {b}{more} are identical in {len(varying)} metrics: they share a "
            "random stream"
        )
    yield Finding("replications", status, text)


def _alike(ours: Mapping[str, np.ndarray], theirs: Mapping[str, Sequence[float]]) -> bool:
    """Whether two of our replications are equal in the digits that theirs have."""
    digits = {
        name: max(len(f"{x:.15e}".split("e")[0].rstrip("0")) - 1 for x in theirs[name]) for name in ours
    }
    rounded = ([f"{x:.{digits[name]}g}" for x in values] for name, values in ours.items())
    rows = list(zip(*rounded, strict=True))
    return len(set(rows)) < len(rows)


def _correlated(results: ForeignResults, alpha: float) -> Iterator[Finding]:
    """Look whether neighbouring replications are alike: streams overlap, or batches are too short."""
    tested = {
        name: np.array(q.samples)
        for name, q in results.quantities.items()
        if len(q.samples) >= FEWEST_FOR_CORRELATION and len(set(q.samples)) == len(q.samples)
    }
    for name, samples in tested.items():
        p = neighbours_alike(samples)
        if p < alpha / len(tested):
            text = (
                f"neighbouring replications are alike in {name} (correlation {autocorrelation(samples):.2f}, "
                f"p = {p:.1g}): their random streams overlap, or they are batches that are too short"
            )
            yield Finding("replications", "doubtful", text)


def neighbours_alike(samples: np.ndarray) -> float:
    """Return the p-value of a permutation test of the correlation of neighbours, shape (n,), one-sided."""
    generator = np.random.default_rng(1)
    centred = samples - samples.mean()
    shuffled = generator.permuted(np.tile(centred, (PERMUTATIONS, 1)), axis=1)
    own = np.sum(centred[1:] * centred[:-1])
    at_least = np.sum(np.sum(shuffled[:, 1:] * shuffled[:, :-1], axis=1) >= own)
    return float((1 + at_least) / (1 + PERMUTATIONS))


def check_spread(
    results: ForeignResults, simulated: Mapping[str, np.ndarray], alpha: float, rules: Rules
) -> tuple[Finding, ...]:
    """Compare the variance between their replications with ours by Fisher's F test, one-sided.

    Args:
        results: read from the file.
        simulated: our samples.
        alpha: probability of a false alarm over all metrics.
        rules: how long our runs are; where nothing is random, narrow intervals are right.
    """
    if not rules.random:
        return ()
    narrow = {}
    for name in WATCHED:
        ours, quantity = simulated.get(name), results.quantities.get(name)
        if quantity is None or ours is None or len(ours) < 2:
            continue
        if math.isclose(ours.min(), ours.max(), rel_tol=1e-9):  # nothing in the scenario is random
            continue
        if (own := quantity.spread(rules.runs)) is None:
            continue
        variance, count = own
        ratio = math.inf if variance == 0 else float(ours.var(ddof=1)) / variance
        p = stats.f.sf(ratio, len(ours) - 1, max(1, count - 1))
        if ratio > LEAST_RATIO**2 and p < alpha / len(WATCHED):
            narrow[name] = math.sqrt(ratio)
    if not narrow:
        return ()
    shown = ", ".join(f"{name} {ratio:.3g} times" for name, ratio in narrow.items())
    text = (
        f"replications vary less than ours of {rules.seconds:g} s ({shown}): unless their runs are far "
        "longer, the intervals are too optimistic, as intervals from correlated values or a shared "
        "random stream are"
    )
    return (Finding("intervals", "doubtful", text),)
