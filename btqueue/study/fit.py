"""Values of a scenario's keys that the results of a testbed point to: `fit(file, scenario, keys)`.

The measured metrics are held against theory by weighted least squares, with theory's gradients. Theory is
approximate, so each round simulates the latest values and corrects theory by the ratio of the two (Bandler
et al., IEEE Trans. Microwave Theory Tech. 42, 1994: space mapping): the last round compares measured numbers
with simulated ones. The replications, each as long as the file's run, also give the spread of the metrics
and their correlations, and so the weights and Student's intervals. Nothing is fitted that packets state
themselves.

A direction in the space of the free keys is flat where its 95 % interval is wider than half their ranges: a
factor of ten, where none are given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import least_squares

from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError
from btqueue.scenario.radio import KEYS_OF_MODEL
from btqueue.study.check.agreement import (
    UNMEASURED,
    Rules,
    compare_all,
    compared_metrics,
    negligible,
    reference_samples,
)
from btqueue.study.check.causes import misfit
from btqueue.study.check.facts import compare_facts
from btqueue.study.check.results import BadResults, Finding, ForeignResults
from btqueue.study.check.verdicts import (
    Beside,
    Engine,
    compared_flows,
    engine_of,
    modelled,
    reference_scenario,
    results_of,
    rules_of,
)
from btqueue.study.points import Interval, scenario_with
from btqueue.study.sensitivity.factors import Factor, factors

TOLD = 0.5
"""Half-width of an interval, in half ranges, from which on it tells nothing."""
RANGE = 10.0
"""Factor from a key's value to either end of its range, where none is given."""
ROUNDS = 6
"""Most simulations."""
SETTLED = 0.25
"""Standard errors by which the values of the last two rounds may differ."""
STEP = 0.02
"""Of theory's gradients, as a share of half the range."""
HOLD = 0.1
"""Weight of the scenario's values over half the ranges: it matters in flat directions alone."""
FIRST_ERROR = 0.1
"""Relative error of theory taken before the first simulation."""
SHARE = 0.2
"""Least share of a key in a flat direction that is said."""
EVEN = 0.25
"""Difference of two shares in a flat direction up to which their product, ratio, sum or difference shows."""
APART = 0.05
"""Distance of two minima, in half ranges."""
MOST_MINIMA = 3
"""That are tried, until a simulation confirms one."""
MOST_STEPS = 40
"""Of one search with theory."""
FLAT = 1e-6
"""Relative change of theory's answer that is none."""
AT_THE_END = 0.995
"""Half ranges from the middle from which on a value is at an end."""
NO_ANSWER = 1e3
"""Residual where theory has no answer."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """A free key and the value that was found for it.

    Attributes:
        key: its dotted name.
        before: value in the scenario.
        value: value that was found.
        low, high: 95 % interval of the value; NaN if packets state the value, or the file cannot tell it.
        verdict: "fitted"; "stated": packets of the file state the value; "cannot be told": the interval is
            wider than half the range; or "at the end": the best value in the range is at one of its ends.
    """

    key: str
    before: float
    value: float
    low: float = math.nan
    high: float = math.nan
    verdict: str = "stated"


@dataclass(frozen=True, repr=False)
class Fit(Beside):
    """The result of a fit; its scenario has the values found, and those of keys that the file states.

    Attributes:
        keys: the free keys.
        flat: a sentence for each combination of keys that the file does not determine.
        used: metrics that were fitted.
        doubts: doubts of theory at the values found, although the fit uses its gradients only; and a doubt if
            the search has not settled.
    """

    keys: tuple[Fitted, ...]
    flat: tuple[str, ...]
    used: tuple[str, ...]
    doubts: tuple[str, ...]

    def __repr__(self) -> str:
        values = ", ".join(f"{one.key} = {one.value:.4g}" for one in self.keys)
        return f"<Fit {values}; {self.summary}>"

    @property
    def confirmed(self) -> bool:
        """Whether no metric differs from the simulation at the values found."""
        return not self.differing

    @property
    def summary(self) -> str:
        """Return the verdict of the simulation in a sentence."""
        compared = [one for one in self.agreements if one.verdict in ("agrees", "negligible", "differs")]
        if self.confirmed:
            return f"confirmed by simulation: {len(compared)} of {len(compared)} metrics agree"
        differing = [one.metric for one in self.differing]
        return f"not confirmed: {', '.join(differing)} of {len(compared)} metrics differ from the simulation"


def fit(
    results: str | Path | ForeignResults,
    scenario: Scenario,
    free: Sequence[str] | Mapping[str, str | Interval | None],
    *,
    flow: int | None = None,
    simulate: Engine | bool = True,
) -> Fit:
    """Find the values of keys for which a scenario gives the metrics of a file.

    Args:
        results: a file that `check` reads, or the result of `read_results`.
        scenario: that was measured, with a first value for each free key.
        free: keys that are not known, or a mapping from them to their ranges, as
            ``{"radio.ber": "1e-6..1e-4"}``; by default from a tenth to ten times the scenario's value.
        flow: the flow, from 1, that the file is about; see `read_results`.
        simulate: True for our simulator, or another function in its place.

    Raises:
        BadResults: the file cannot be used, has fewer metrics than there are free keys, or none that depends
            on a free key.
        ScenarioError: a free key is unknown (the message suggests the nearest), unset or no number.
        NotBuiltYet: theory has no answer at the scenario.
        ValueError: `simulate` is False.
    """
    ranges = free if isinstance(free, Mapping) else dict.fromkeys([free] if isinstance(free, str) else free)
    unknown = _unknowns(scenario, ranges)
    found = results_of(results, scenario, flow)
    if (simulator := engine_of("simulate", simulate)) is None:
        raise ValueError("simulate = False: values are fitted beside simulations; give True or a function")
    findings, scenario, stated = _with_facts(found, scenario, unknown)
    unknown = [one for one in unknown if one.key not in stated]
    keys = {key: Fitted(key, before, value) for key, (before, value) in stated.items()}
    first = _Search(found, reference_scenario(found, scenario), unknown, simulator)
    tried: list[tuple[Fit, _Search]] = []
    flat: tuple[str, ...] = ()

    def far(one: tuple[Fit, _Search]) -> float:
        return misfit(one[0].agreements, tried[0][0].agreements)

    def answer(search: _Search) -> bool:
        found_keys = [keys[key] for key in ranges]
        tried.append((search.answer(tuple(found_keys), findings, flat), search))
        return tried[-1][0].confirmed

    for place in first.minima() if unknown else [first.place]:
        search = first.at(place)
        fitted, flat = search.run() if unknown else ([], ())
        keys |= {one.key: one for one in fitted}
        if answer(search):
            return tried[-1][0]
    best, search = min(tried, key=far)
    flat, before = best.flat, {one.key: one for one in best.keys}
    for key, beside in search.beside():  # counts: theory need not tell one from the next
        keys = before | {key: replace(before[key], value=beside.value_of(key))}
        if answer(beside):
            break
    return min(tried, key=far)[0]


def _unknowns(scenario: Scenario, ranges: Mapping[str, str | Interval | None]) -> list[Factor]:
    """Return the free keys with their ranges: of logarithms above 0, no further than the scenario allows."""
    if not ranges:
        raise ScenarioError("there is no free key: name one or more, such as radio.ber")
    given = {key: spread for key, spread in ranges.items() if spread is not None}
    found = []
    for key in ranges:
        _require_read(scenario, key)
    for one in factors(scenario, list(ranges), given):
        spread = one.spread
        if one.key not in given and one.value <= 0:
            example = f"{one.key}={'1e-6..1e-3' if one.value == 0 else '-10..10'}"
            why = f"{one.key} = {one.value:g}: give its range, as in --free {example}"
            raise ScenarioError(why, one.key)
        if one.key not in given:
            low, high = _end(scenario, one, 1 / RANGE), _end(scenario, one, RANGE)
            spread = Interval(low, high, whole=one.whole)
        assert spread is not None
        found.append(replace(one, spread=replace(spread, scale="log" if spread.low > 0 else "lin")))
    return found


def _require_read(scenario: Scenario, key: str) -> None:
    """Make sure that the radio's model reads a key of [radio]."""
    name, radio = key.removeprefix("radio."), scenario.radio
    if name in KEYS_OF_MODEL[radio.model] or not any(name in keys for keys in KEYS_OF_MODEL.values()):
        return
    links = (
        f"radio.links[{k}].{name}" for k, one in enumerate(radio.links, 1) if getattr(one, name) is not None
    )
    hint = f": did you mean {own}?" if (own := next(links, None)) else "; set a model that does"
    raise ScenarioError(f'{key}: radio.model = "{radio.model}" does not read it{hint}', key)


def _end(scenario: Scenario, one: Factor, factor: float) -> float:
    """Return the end of a key's range: the value times a factor, or nearer where the scenario says no."""
    for _ in range(8):
        end = max(1, round(one.value * factor)) if one.whole else one.value * factor
        if scenario_with(scenario, {one.key: end}) is not None:
            return end
        factor = math.sqrt(factor)
    return one.value


def _with_facts(
    found: ForeignResults, scenario: Scenario, unknown: Sequence[Factor]
) -> tuple[tuple[Finding, ...], Scenario, dict[str, tuple[float, float]]]:
    """Return the facts that contradict the scenario, it with their values, and the stated free keys.

    Of a free key the scenario is asked at both ends of its range, one of which the packets contradict.
    """

    def facts(of: Scenario) -> tuple[Finding, ...]:
        return tuple(one for one in compare_facts(found, of) if one.status != "passed")

    findings, stated = facts(scenario), {}
    for one in unknown:
        ends = [facts(scenario.changed({one.key: end})) for end in one.ends]
        values = [said.value for said in sum(ends, ()) if said.check == one.key and said.status == "failed"]
        if values and isinstance(values[0], int | float):
            stated[one.key] = (one.value, values[0])
    wanted = {one.check: one.value for one in findings if one.status == "failed" and one.value is not None}
    for key, value in (wanted | {key: value for key, (_, value) in stated.items()}).items():
        scenario = scenario_with(scenario, {key: value}) or scenario  # else the finding is told
    return findings, scenario, stated


class _Search:
    """The search for the values; a place is in half ranges from the middle of each, from -1 to 1."""

    def __init__(
        self, found: ForeignResults, scenario: Scenario, unknown: Sequence[Factor], simulator: Engine
    ) -> None:
        self.found, self.scenario, self.unknown, self.simulator = found, scenario, unknown, simulator
        self.solver = engine_of("solve", True)
        self.ranges = [replace(one.spread or Interval(0, 1), whole=False) for one in unknown]
        shares = [_share(spread, one.value) for spread, one in zip(self.ranges, unknown, strict=True)]
        self.place = self.start = np.clip(np.array(shares) * 2 - 1, -0.999, 0.999)
        self._known: dict[tuple[float, ...], Mapping[str, float]] = {}
        self._said: Sequence[str] = ()
        self.left_out: list[str] = []
        self.settled = True
        self._keep(list(compared_metrics(found)))

    def _keep(self, names: Sequence[str], ratio: Numbers | None = None) -> None:
        """Keep metrics, with the ratio of the simulation to theory, and see to it that there are enough."""
        if len(names) < len(self.unknown):
            keys = ", ".join(one.key for one in self.unknown)
            raise BadResults(
                f"{self.found.source}: {len(self.unknown)} free keys ({keys}) and only {len(names)} "
                f"metrics that can tell them ({', '.join(names) or 'none'}): free fewer keys"
            )
        self.names, rules = tuple(names), Rules(seconds=self.scenario.run.duration_s)
        self.measured = np.array([self.found.value(name) for name in names])
        self.ratio = np.ones(len(names)) if ratio is None else ratio
        limits = [negligible(name, value, rules) for name, value in zip(names, self.measured, strict=True)]
        self.limits = np.array(limits)

    def _values(self, place: Numbers) -> tuple[float, ...]:
        """Return the values of the keys at a place, whole ones unrounded."""
        return tuple(spread.at((share + 1) / 2) for spread, share in zip(self.ranges, place, strict=True))

    def beside(self) -> Iterator[tuple[str, _Search]]:
        """Yield each key that is a count, with the search at the next lower and the next higher value."""
        best = self.rounded(self.place)
        for number, (one, spread) in enumerate(zip(self.unknown, self.ranges, strict=True)):
            for value in (best[number] - 1, best[number] + 1) if one.whole else ():
                if spread.low <= value <= spread.high:
                    place = self.place.copy()
                    place[number] = 2 * _share(spread, value) - 1
                    other = self.at(place)
                    other.left_out = self.left_out
                    yield one.key, other

    def value_of(self, key: str) -> float:
        return float(self.rounded(self.place)[[one.key for one in self.unknown].index(key)])

    def rounded(self, place: Numbers) -> tuple[float, ...]:
        """Return the nearest values that the keys take."""
        values = zip(self.unknown, self._values(place), strict=True)
        return tuple(round(x) if one.whole else x for one, x in values)

    def changed(self, values: Sequence[float]) -> Scenario:
        return self.scenario.changed({one.key: x for one, x in zip(self.unknown, values, strict=True)})

    def simulated(self, scenario: Scenario) -> dict[str, Numbers]:
        return reference_samples(self.simulator(scenario), self.found, scenario)

    def _theory(self, place: Numbers) -> Numbers:
        """Return theory's metrics, between whole values of a key along a straight line; NaN for none."""
        corners = []
        for one, x in zip(self.unknown, self._values(place), strict=True):
            low = math.floor(x)
            both = [(low, 1 - (x - low)), (low + 1, x - low)] if one.whole else [(x, 1.0)]
            corners.append([corner for corner in both if corner[1] > 0])
        answers = (
            math.prod(share for _, share in corner) * self._solved(tuple(x for x, _ in corner))
            for corner in product(*corners)
        )
        return np.sum(list(answers), axis=0)

    def _solved(self, values: tuple[float, ...]) -> Numbers:
        if values not in self._known:
            try:
                self._known[values], _, self._said = modelled(self.changed(values), self.found, self.solver)
            except ScenarioError as error:
                self._known[values], self._said = {}, (str(error),)
        return np.array([self._known[values].get(name, math.nan) for name in self.names])

    def minima(self) -> list[Numbers]:
        """Return the places where theory comes nearest to the file, the best first."""
        at_start = self._theory(self.start)
        if not np.isfinite(at_start).any():
            raise NotBuiltYet(f"theory gives no metric of {self.found.source}: {'; '.join(self._said)}")
        self._keep([name for name, value in zip(self.names, at_start, strict=True) if math.isfinite(value)])
        flows = compared_flows(self.found, self.scenario)
        for number, (one, spread) in enumerate(zip(self.unknown, self.ranges, strict=True)):
            places = np.tile(self.start, (5, 1))
            places[:, number] = np.linspace(-1, 1, 5)
            answers = np.array([self._theory(place) for place in places])
            if not np.any(np.ptp(answers, axis=0) > FLAT * np.abs(answers[0])):
                raise BadResults(
                    f"{self.found.source}: none of its metrics ({', '.join(self.names)}) depends on "
                    f"{one.key} from {spread.low:g} to {spread.high:g}" + (flows and f"; {flows}")
                )
        weights = 1 / np.hypot(FIRST_ERROR * self.measured, self.limits)
        steps = [unit * x for unit in np.eye(len(self.start)) for x in (-0.5, 0.5)]
        found: list[tuple[float, Numbers]] = []
        for step in [np.zeros(len(self.start)), *steps]:
            place = self._least(self.start + step, weights)
            if all(np.max(np.abs(place - other)) > APART for _, other in found):
                found.append((float(np.sum(self._residuals(place, weights) ** 2)), place))
        return [place for _, place in sorted(found, key=lambda one: one[0])[:MOST_MINIMA]]

    def at(self, place: Numbers) -> _Search:
        other = copy(self)
        other.place, other.left_out = place, []
        return other

    def answer(self, keys: tuple[Fitted, ...], findings: tuple[Finding, ...], flat: tuple[str, ...]) -> Fit:
        """Simulate the values of the place, and compare as `check` does."""
        final = self.changed(self.rounded(self.place))
        model, errors, said = modelled(final, self.found, self.solver)
        rules = rules_of(final, final.run.duration_s)
        agreements = compare_all(self.found, self.simulated(final), model, rules, errors)
        doubts = [one for one in said if "doubts" in one or one.startswith("no model")]
        if self.left_out:
            names = ", ".join(self.left_out)
            doubts.append(f"theory misses {names} by more than {UNMEASURED:.0%}: not fitted")
        if not self.settled:
            doubts.append(f"the values have not settled after {ROUNDS} simulations")
        used, notes = self.names if self.unknown else (), self.found.notes
        return Fit(self.found, final, findings, agreements, notes, keys, flat, used, tuple(doubts))

    def run(self) -> tuple[list[Fitted], tuple[str, ...]]:
        """Search from the place; return the keys with intervals, and a sentence for each flat direction."""
        for _ in range(ROUNDS):
            values, here = self.rounded(self.place), self.place
            samples = self._corrected(values, self.simulated(self.changed(values)))
            spread, runs = self._spread(samples)
            weights = 1 / np.sqrt(np.diag(spread))
            self.place = self._least(here, weights)
            cover = self._cover(weights, spread)
            sizes, ways = np.linalg.eigh(cover)
            errors = np.sqrt(np.maximum(sizes, np.finfo(float).eps * sizes[-1]))  # below it rounding decides
            told = stats.t.ppf(0.975, runs - 1) * errors < TOLD
            moved = np.abs((self.place - here) @ ways)
            self.settled = bool(np.all(moved[told] < SETTLED * errors[told]))
            if self.settled:
                break
        return self._intervals(cover, float(stats.t.ppf(0.975, runs - 1)))

    def _residuals(self, place: Numbers, weights: Numbers) -> Numbers:
        found = weights * (self.ratio * self._theory(place) - self.measured)
        held = HOLD * (place - self.start)
        return np.concatenate([np.where(np.isfinite(found), found, NO_ANSWER), held])

    def _slopes(self, place: Numbers, weights: Numbers) -> Numbers:
        """Return the derivatives of the residuals by the place, shape (residuals, keys)."""
        columns = []
        for unit in np.eye(len(place)):
            ends = [np.clip(place + step * unit, -1, 1) for step in (-STEP, STEP)]
            low, high = (self._residuals(end, weights) for end in ends)
            columns.append((high - low) / ((ends[1] - ends[0]) @ unit))
        return np.stack(columns, axis=1)

    def _least(self, place: Numbers, weights: Numbers) -> Numbers:
        """Return the place of least squares; shifted, for the first step is as long as the beginning."""
        found = least_squares(
            lambda at: self._residuals(at - 2, weights),
            np.clip(place, -0.999, 0.999) + 2,
            lambda at: self._slopes(at - 2, weights),  # type: ignore[arg-type] (scipy's hints know names)
            (1, 3),
            xtol=1e-4,
            ftol=1e-6,
            max_nfev=MOST_STEPS,
        )
        return found.x - 2

    def _corrected(self, values: tuple[float, ...], samples: Mapping[str, Numbers]) -> Numbers:
        """Correct theory by a simulation at these values; return its metrics, shape (replications, metrics).

        Metrics that theory misses by more than `UNMEASURED` are left out: its gradients mean nothing there.
        """
        runs = max(map(len, samples.values()))
        kept, ratios = [], []
        for name, theory, limit in zip(self.names, self._solved(values), self.limits, strict=True):
            ours = samples.get(name, np.zeros(0))
            if len(ours) < runs or not math.isfinite(theory):
                continue
            mean = float(ours.mean())
            ratio = mean / theory if theory else 0.0
            if not 1 - UNMEASURED <= ratio <= 1 / (1 - UNMEASURED):
                if abs(mean - theory) > limit:
                    self.left_out.append(name)
                    continue
                ratio = 1.0
            kept.append(name)
            ratios.append(ratio)
        self._keep(kept, np.array(ratios))
        return np.stack([samples[name] for name in kept], axis=1)

    def _spread(self, samples: Numbers) -> tuple[Numbers, int]:
        """Return the covariance of the measured less the simulated metrics, and the replications behind it.

        The correlations are the simulation's, and so are the variances where the file shows none.
        """
        runs = len(samples)
        own = np.atleast_2d(np.cov(samples, rowvar=False))
        theirs = [self.found.quantities[name].spread(self.scenario.run.replications) for name in self.names]
        variances = np.array([own[k, k] if one is None else one[0] / one[1] for k, one in enumerate(theirs)])
        sizes = np.sqrt(variances / np.where(np.diag(own) > 0, np.diag(own), 1.0))
        return np.outer(sizes, sizes) * own + own / runs + np.diag((self.limits / 2) ** 2), runs

    def _cover(self, weights: Numbers, spread: Numbers) -> Numbers:
        """Return the covariance of the place, whatever the weights are, scaled up to the residuals."""
        count = len(self.names)
        slopes = self._slopes(self.place, weights)[:count]
        left, singular, right = np.linalg.svd(slopes, full_matrices=False)
        noise = np.outer(weights, weights) * spread
        rest = np.eye(count) - left @ left.T
        residuals = self._residuals(self.place, weights)[:count]
        scale = 1.0
        if count > len(self.place):
            expected = float(np.trace(rest @ noise @ rest))
            scale = max(scale, float(np.sum((rest @ residuals) ** 2)) / expected)
        inverse = right.T @ np.diag(1 / np.maximum(singular, 1e-6)) @ left.T
        return scale * inverse @ noise @ inverse.T

    def _intervals(self, cover: Numbers, quantile: float) -> tuple[list[Fitted], tuple[str, ...]]:
        half = quantile * np.sqrt(np.diag(cover))
        told = half < TOLD
        low, high = (self._values(self.place + sign * np.where(told, half, 0)) for sign in (-1, 1))
        best, fitted = self.rounded(self.place), []
        for k, one in enumerate(self.unknown):
            ends = (math.floor(low[k]), math.ceil(high[k])) if one.whole else (low[k], high[k])
            verdict = "at the end" if abs(self.place[k]) > AT_THE_END else "fitted"
            if not told[k]:
                ends, verdict = (math.nan, math.nan), "cannot be told"
            fitted.append(Fitted(one.key, one.value, float(best[k]), float(ends[0]), float(ends[1]), verdict))
        sizes, ways = np.linalg.eigh(cover)
        flat = ways.T[quantile * np.sqrt(np.abs(sizes)) >= TOLD]
        return fitted, tuple(self._sentence(way) for way in flat)

    def _sentence(self, way: Numbers) -> str:
        medium = "capture" if self.found.facts else "file"
        there = [k for k in range(len(way)) if abs(way[k]) > SHARE]
        keys = [self.unknown[k].key for k in there]
        if len(keys) == 1:
            return f"{keys[0]} cannot be told from this {medium}"
        shows = "a combination of them"
        if len(keys) == 2 and all(self.ranges[k].scale == "log" for k in there):
            widths = [math.log(self.ranges[k].high / self.ranges[k].low) for k in there]
            first, second = (way[k] * width for k, width in zip(there, widths, strict=True))
            one, other = (self._values(self.place)[k] for k in there)
            alike = len({key.rpartition(".")[2] for key in keys}) == 1
            if alike and abs(abs(first * one / (second * other)) - 1) < EVEN:
                shows = "their sum" if first * second < 0 else "their difference"
            elif abs(abs(first / second) - 1) < EVEN:
                shows = "their product" if first * second < 0 else "their ratio"
        return f"{' and '.join(keys)} cannot be told apart from this {medium}: only {shows} shows"


def _share(spread: Interval, value: float) -> float:
    if spread.scale == "log":
        return math.log(max(value, spread.low) / spread.low) / math.log(spread.high / spread.low)
    return (value - spread.low) / (spread.high - spread.low)
