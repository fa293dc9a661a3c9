"""Some points of a sweep that theory answered are checked by simulation, spread over the ranges.

Each other point belongs to the nearest checked point. Points that belong to a point that is not confirmed are
simulated, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from btqueue.study.checked_answers import NAMES, Check, percent
from btqueue.study.evaluate import Answer, Engine, Numbered, PointResult

SHARE, LEAST = 1 / 20, 5
"""Share of the points of theory that is checked, and how many at least."""

Evaluator = Callable[..., Generator[PointResult]]
"""`btqueue.study.many_points.map_points` of the sweep, asked for `numbers` by `engines`."""


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
        at = ", ".join(f"{key}={value}" for key, value in one["at"].items())
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
    owners = [numbers[chosen[place]] for place in nearest]
    around = [number for number, owner in zip(numbers, owners, strict=True) if owner in wrong]
    if not around:
        return CheckedPoints(checks, replaced, 0)
    notes(f"simulating {len(around):,} points near those where theory is not confirmed")
    simulated = 0
    owner_of = dict(zip(numbers, owners, strict=True))
    for one in evaluator(numbers=around, engines=("precise",)):
        answer, owner = one.answers["precise"], owner_of[one.number]
        if answer.failure is None:
            why = (
                str(checks[owner])
                if owner == one.number
                else f"at the nearest point checked: {checks[owner]}"
            )
            kept = replaced.get(one.number, known[one.number]).answers["solve"].notes.get("check", "")
            replaced[one.number] = _noted(PointResult(one.number, {"solve": answer}), why=[why], check=kept)
            simulated += 1
    return CheckedPoints(checks, replaced, simulated)


def _noted(result: PointResult, **notes: Any) -> PointResult:
    """Return a point with further notes, such as the verdict of its check."""
    answer = result.answers["solve"]
    noted: dict[Engine, Answer] = {"solve": replace(answer, notes={**answer.notes, **notes})}
    return PointResult(result.number, noted)


def places_of(changes: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return where points lie in their ranges, shape (points, keys): 0 for the first value, 1 for the last.

    Only the order of values counts: the values of a key lie in equal steps, numbers by size, others as they
    come.
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
