"""Answers of theory beside short simulations: `check_answer` of one scenario, `check_points` of a sweep.

The rule is the same for all scenarios. For each metric of `TOLERANCES` the simulation gives a 95 % interval
of theory's relative error, of the mean over each group of flows, or over all flows where they are alike. The
group that speaks most against theory counts. Flows for which one side has no value are left out. The
tolerance is the error of a right answer: 3 % of goodput, 5 % of round trip and session time, 10 % of timeouts
where there are more than 0.01 a second.

- not confirmed: the interval of a metric lies outside its tolerance;
- confirmed: no interval does, and no interval reaches beyond 10 % (`WRONG`);
- undecided: neither; the simulation is too short to tell.

Timeouts are too rare to be known to 10 % after a short run. So they can refute an answer, and an answer can
be confirmed without them.

Of a sweep some points that theory answered are checked, spread over the ranges. Each other point belongs to
the nearest checked point. Points that belong to a point that is not confirmed are simulated, too.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btqueue.network.measured_errors import IN_WORDS as NAMES
from btqueue.scenario import Scenario
from btqueue.scenario.topology import own_length, topology
from btqueue.study.points import Numbered, label
from btqueue.study.summary import Estimate, of_groups, of_same_flows, summarise

if TYPE_CHECKING:
    from btqueue.study.evaluate import Answer, Engine, PointResult

Verdict = Literal["confirmed", "not confirmed", "undecided"]

TIMEOUTS = "timeouts_per_s"
TOLERANCES: Mapping[str, float] = {
    "goodput_kbps": 0.03,
    "rtt_s": 0.05,
    "session_time_s": 0.05,
    TIMEOUTS: 0.10,
}
"""Relative error of a right answer, beside the half-width of the simulation's interval."""
LEAST_TIMEOUTS = 0.01
"""Timeouts a second from which on they are compared."""
WRONG = 0.10
"""Relative error that the interval of a confirmed answer excludes."""
NOTHING = "gives no interval of goodput or times"
"""Where there is nothing to compare with, as of runs that must be longer than a check can be."""
CPU_S = 0.2
"""CPU time (s) of a check, about. Pilot runs come on top, and loading the simulator, once a process."""
EVENTS = 2_400_000
"""Events of a check whose result must not depend on the speed of the machine: about as many."""
FIRST_SHARE = 0.25
"""Share of the first round in a check. The second round takes what is left, if the first does not decide."""
REPLICATIONS = 8
"""Of each round. More have narrower intervals, and more time of theirs is warm-up."""
WARMUP_SHARE = 0.25
"""Warm-up, as a share of each replication."""
FEWEST = 4
"""Replications of a scenario whose runs must have their own length."""
PLAIN = {"run.precision": None, "run.limit_cpu_s": None}
"""Runs whose length nothing changes but the check."""
PILOT_S, PILOT_EVENTS = 10.0, 20_000
"""Length (s) of the first pilot run of a single flow, and events that a pilot run should have."""


@dataclass(frozen=True)
class Difference:
    """One metric of theory beside the simulation.

    Attributes:
        metric: a key of `TOLERANCES`.
        value: (theory - simulation) / simulation, of means over flows; infinite where the simulation's is
            0 and theory's is not.
        half_width: half width of its 95 % interval.
        group: group of the flows, "" if all are alike.
    """

    metric: str
    value: float
    half_width: float
    group: str = ""

    @property
    def least(self) -> float:
        """The smallest absolute error within the interval."""
        return max(abs(self.value) - self.half_width, 0.0)

    @property
    def verdict(self) -> Verdict:
        """The verdict of the interval."""
        if self.least > TOLERANCES[self.metric]:
            return "not confirmed"
        return "confirmed" if abs(self.value) + self.half_width <= WRONG else "undecided"

    def against(self) -> tuple[int, float]:
        """Return how much it speaks against theory: its verdict, and its size, to be sorted by."""
        verdicts = ("confirmed", "undecided", "not confirmed")
        return verdicts.index(self.verdict), abs(self.value)

    def __str__(self) -> str:
        """Return name and value in words: "round trip of sensors -18 %"."""
        return f"{NAMES[self.metric]}{self.group and f' of {self.group}'} {percent(self.value)}"


def percent(value: float) -> str:
    """Return a relative difference in words, with a decimal below 1 %; infinite beside a simulated 0."""
    decimals = 0 if abs(value) >= 0.01 else 1
    return "against a simulated 0" if math.isinf(value) else f"{100 * value:+.{decimals}f} %"


@dataclass(frozen=True)
class Check:
    """The differences of an answer of theory from a short simulation.

    Attributes:
        differences: differences of the metrics that both sides give, each of the worst group.
        events: measured events, without events of the warm-up and of pilot runs.
    """

    differences: tuple[Difference, ...] = ()
    events: int = 0

    @property
    def verdict(self) -> Verdict:
        """The verdict of all metrics together."""
        if any(one.verdict == "not confirmed" for one in self.differences):
            return "not confirmed"
        judged = {one.verdict for one in self.differences if one.metric != TIMEOUTS}
        return "confirmed" if judged == {"confirmed"} else "undecided"

    @property
    def sure(self) -> bool:
        """Whether a longer simulation would hardly have another verdict."""
        return self.verdict == "confirmed" or any(one.least > WRONG for one in self.differences)

    def __str__(self) -> str:
        """Return the verdict in one line."""
        told = [one for one in self.differences if one.verdict == self.verdict]
        listed = ", ".join(map(str, told))
        if self.verdict == "confirmed":
            return f"confirmed: {listed} of the simulation"
        if self.verdict == "not confirmed":
            return f"not confirmed: {listed}: simulate"
        known = ", ".join(
            f"{NAMES[one.metric]} to {100 * one.half_width:.2g} %" for one in told if one.metric != TIMEOUTS
        )
        return f"undecided: the simulation {f'knows {known} only' if known else NOTHING}"


def check_answer(
    scenario: Scenario,
    theory: Mapping[str, Estimate],
    *,
    events: int | None = None,
    threads: int | None = None,
) -> Check:
    """Simulate *scenario* for a moment, and say whether theory's answer is confirmed.

    Pilot runs count the events of a simulated second. If a first round does not decide, a second one takes
    the remaining time. Their runs are as long as the time allows, not as long as `run` says. Where loads
    change with time, flows begin late or recordings are played, the runs are as `run` says.

    Args:
        scenario: that was solved.
        theory: its answer, by metric, as `btqueue.study.summarise` returns it.
        events: to simulate, so that the check does not depend on the speed of the machine; by default as many
            as `CPU_S` seconds of CPU take.
        threads: replications run at once; the number of cores by default. The check does not depend on it.

    Raises:
        ScenarioError: the simulator cannot run it.
        InvariantViolated: the simulator's counts are inconsistent (a bug).
    """
    seconds = (events or EVENTS) / _events_per_second(scenario)
    own_s = own_length(scenario)
    if own_s * FEWEST > seconds:
        return Check()
    first_s = max(FIRST_SHARE * seconds, FEWEST * own_s)
    began = time.process_time()
    first = _round(scenario, theory, first_s, threads)
    if events is None:
        seconds = first_s * CPU_S / (time.process_time() - began)
    left_s = seconds - first_s
    return first if first.sure or left_s < first_s else _round(scenario, theory, left_s, threads)


def _round(scenario: Scenario, theory: Mapping[str, Estimate], seconds: float, threads: int | None) -> Check:
    """Check by runs that last `seconds` of simulated time together."""
    from btqueue.simulator import simulate

    changes: dict[str, Any] = dict(PLAIN)
    if own_s := own_length(scenario):
        changes["run.replications"] = int(seconds / own_s)
    else:
        length_s = seconds / REPLICATIONS
        changes |= {
            "run.replications": REPLICATIONS,
            "run.duration_s": length_s * (1.0 - WARMUP_SHARE),
            "run.warmup_s": length_s * WARMUP_SHARE,
        }
    short = scenario.changed(changes)
    simulated = simulate(short, threads=threads)
    found = summarise(simulated)
    silent = "goodput_kbps" in found and 0.0 in found["goodput_kbps"].means
    groups, differences = topology(scenario).kinds, list[Difference]()
    for metric in theory.keys() & found.keys() & (TOLERANCES.keys() - ({TIMEOUTS} if silent else set())):
        ours, theirs = of_same_flows(theory[metric], found[metric])
        sides = [of_groups(one, groups) if len(set(groups)) > 1 else {} for one in (ours, theirs)]
        ours, theirs = (side or {"": one} for side, one in zip(sides, (ours, theirs), strict=True))
        every = [
            _difference(metric, ours[group].mean, theirs[group], short.run.duration_s, group)
            for group in ours.keys() & theirs.keys()
        ]
        differences += sorted((one for one in every if one is not None), key=Difference.against)[-1:]
    differences.sort(key=lambda one: list(TOLERANCES).index(one.metric))
    return Check(tuple(differences), int(simulated.attrs["events"]))


def _events_per_second(scenario: Scenario) -> float:
    """Return the events of a simulated second, by pilot runs, each ten times as long as the last."""
    from btqueue.simulator import simulate

    longest_s = scenario.run.duration_s
    length_s = min(PILOT_S / len(topology(scenario).flows), longest_s)
    once = {**PLAIN, "run.replications": 1}
    while True:
        pilot = scenario.changed({**once, "run.duration_s": length_s, "run.warmup_s": 0.0})
        events = int(simulate(pilot, threads=1).attrs["events"])
        if events >= PILOT_EVENTS or length_s >= longest_s:
            return max(events, 1) / length_s
        length_s = min(10.0 * length_s, longest_s)


def _difference(
    metric: str, theory: float, simulated: Estimate, duration_s: float, group: str
) -> Difference | None:
    """Return the relative difference; None where there is none to be judged.

    Timeouts are a count, which is known to one in a run. They are left out by the caller if a flow gets
    nothing: its timer backs off for minutes before its timeouts are as rare as in the long run.
    """
    mean, half_width = simulated.mean, simulated.ci95
    if metric == TIMEOUTS:
        half_width += 1.0 / duration_s
        if mean <= LEAST_TIMEOUTS:
            return None
    if not math.isfinite(theory) or not math.isfinite(half_width):
        return None
    if mean == 0.0:
        return Difference(metric, 0.0 if theory == 0.0 else math.inf, 0.0, group)
    return Difference(metric, theory / mean - 1.0, half_width / mean, group)


SHARE, LEAST = 1 / 20, 5
"""Share of the points of theory that is checked, and how many at least."""
Evaluator = Callable[..., Generator[Any]]
"""`btqueue.study.many_points.map_points` of the sweep, asked for `numbers` by `engines`: yields
`PointResult`."""


@dataclass(frozen=True)
class CheckedPoints:
    """The checks of a sweep, and the points simulated because of them.

    Attributes:
        checks: by number of the point; None for a check that could not be made.
        results: results of all points that were checked or simulated in place of theory, by number.
        simulated: how many points were simulated because a check did not confirm theory near them.
    """

    checks: Mapping[int, Check | None]
    results: Mapping[int, PointResult]
    simulated: int

    def summary(self, points: Numbered) -> dict[str, Any]:
        """Return plain values: how many checks ended how, and how far off theory was, and where."""
        counts = Counter("not checked" if one is None else one.verdict for one in self.checks.values())
        found: dict[str, list[tuple[float, int]]] = {}
        for number, check in self.checks.items():
            for one in () if check is None else check.differences:
                if math.isfinite(one.value):
                    found.setdefault(one.metric, []).append((one.value, number))
        metrics = {
            metric: {
                "median": float(np.median([abs(value) for value, _ in values])),
                "worst": (worst := max(values, key=lambda one: abs(one[0])))[0],
                "at": dict(points[worst[1]]),
            }
            for metric, values in found.items()
        }
        verdicts = {name.replace(" ", "_"): counts[name] for name in sorted(counts)}
        return {"points": len(self.checks), **verdicts, "simulated": self.simulated, "metrics": metrics}


def in_words(summary: Mapping[str, Any], theory: int) -> list[str]:
    """Return the findings of the checks as lines of text.

    Args:
        summary: as `CheckedPoints.summary` returns it.
        theory: number of the points that theory answered.
    """
    verdicts = ("confirmed", "not_confirmed", "undecided", "not_checked")
    told = ", ".join(f"{summary[name]:,} {name.replace('_', ' ')}" for name in verdicts if name in summary)
    lines = [f"checked by simulation: {summary['points']:,} of {theory:,} points of theory: {told}"]
    for metric, one in summary["metrics"].items():
        at = ", ".join(f"{key}={label(value)}" for key, value in one["at"].items())
        off = f"{100 * one['median']:.1f} % in the median, at worst {percent(one['worst'])} at {at}"
        lines.append(f"{NAMES[metric]} off by {off}")
    if summary["simulated"]:
        lines.append(f"{summary['simulated']:,} points near those that are not confirmed were simulated")
    return lines


def check_points(
    points: Numbered, results: Iterable[PointResult], evaluator: Evaluator, notes: Callable[[str], None]
) -> CheckedPoints:
    """Check theory at some points, and simulate all points around a point that is not confirmed.

    Args:
        points: points of the sweep.
        results: all of them, answered by theory where that stands.
        evaluator: evaluator of points by number.
        notes: called with a message before points are checked or simulated.
    """
    known = {one.number: one for one in results if one.answers["solve"].notes.get("answered_by") == "theory"}
    numbers = sorted(known)
    count = min(len(numbers), max(LEAST, math.ceil(SHARE * len(numbers))))
    if not count:
        return CheckedPoints({}, {}, 0)
    chosen, nearest = spread_out(places_of([points[number] for number in numbers]), count)
    notes(f"checking {len(chosen):,} of {len(numbers):,} points of theory by simulation")
    checks: dict[int, Check | None] = {}
    for one in evaluator(numbers=[numbers[place] for place in chosen], engines=("check",)):
        checks[one.number] = one.answers["check"].notes.get("check")
    checks = dict(sorted(checks.items()))
    replaced = {number: _noted(known[number], check=str(check)) for number, check in checks.items() if check}
    wrong = {number for number, check in checks.items() if check and check.verdict == "not confirmed"}
    owner_of = {number: numbers[chosen[place]] for number, place in zip(numbers, nearest, strict=True)}
    around = [number for number in numbers if owner_of[number] in wrong]
    if not around:
        return CheckedPoints(checks, replaced, 0)
    notes(f"simulating {len(around):,} points near those where theory is not confirmed")
    simulated = 0
    for one in evaluator(numbers=around, engines=("precise",)):
        answer, owner = one.answers["precise"], owner_of[one.number]
        if answer.failure is None:
            why = f"{'' if owner == one.number else 'at the nearest point checked: '}{checks[owner]}"
            kept = replaced.get(one.number, known[one.number]).answers["solve"].notes.get("check", "")
            replaced[one.number] = _noted(replace(one, answers={"solve": answer}), why=[why], check=kept)
            simulated += 1
    return CheckedPoints(checks, replaced, simulated)


def _noted(result: PointResult, **notes: Any) -> PointResult:
    """Return a point with further notes, such as the verdict of its check."""
    answer = result.answers["solve"]
    noted: dict[Engine, Answer] = {"solve": replace(answer, notes={**answer.notes, **notes})}
    return replace(result, answers=noted)


def places_of(changes: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return where points lie in their ranges, shape (points, keys): 0 for the first value, 1 for the last.

    Only the order of values counts: the values of a key lie in equal steps, numbers by size, other values in
    the given order.
    """
    columns = []
    for key in changes[0]:
        values = [point[key] for point in changes]
        numeric = all(isinstance(value, int | float) for value in values)
        distinct = sorted(set(values)) if numeric else list(dict.fromkeys(map(str, values)))
        rank = {value: place / max(len(distinct) - 1, 1) for place, value in enumerate(distinct)}
        columns.append([rank[value if numeric else str(value)] for value in values])
    return np.array(columns).reshape(len(columns), len(changes)).T


def spread_out(places: np.ndarray, count: int) -> tuple[list[int], np.ndarray]:
    """Choose points far from each other: the middle point, then always the point farthest from all chosen.

    Args:
        places: shape (points, keys).
        count: how many, at most all.

    Returns:
        The chosen points, and for each point the place of the nearest in that list, shape (points,).
    """
    chosen = [int(np.argmin(((places - 0.5) ** 2).sum(axis=1)))]
    distance = ((places - places[chosen[0]]) ** 2).sum(axis=1)
    nearest = np.zeros(len(places), int)
    while len(chosen) < count and distance.max() > 0.0:
        farthest = int(distance.argmax())
        to_it = ((places - places[farthest]) ** 2).sum(axis=1)
        nearest[to_it < distance] = len(chosen)
        distance = np.minimum(distance, to_it)
        chosen.append(farthest)
    return chosen, nearest
