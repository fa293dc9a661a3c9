"""The work of `btqueue dimension`, and its output: tables for people, or a JSON object."""

import math
from collections import Counter
from typing import Any

from rich.table import Table

from btqueue.cli.engines import keep_compiled_models, prepare_simulator
from btqueue.cli.files import write_json
from btqueue.cli.tables import Screen, heading, new_table
from btqueue.progress_bars import bars
from btqueue.scenario import Scenario
from btqueue.scenario.expressions import Linear
from btqueue.study.dimensioning import DimensioningInterrupted, dimension
from btqueue.study.dimensioning.confirmation import CONFIDENCE, Confirmation, Simulated, in_words, nothing_for
from btqueue.study.dimensioning.optimum import MOST_ROWS, Dimensioning, as_table, as_values, points_table
from btqueue.study.dimensioning.search import NAMES
from btqueue.study.provenance import as_document
from btqueue.study.summary import Estimate
from btqueue.study.tables import number, with_interval

ANSWERED = {"solve": "solved", "simulate": "simulated"}
"""Participle for a point's answer, by engine."""
WRITERS = {
    ".json": lambda path, found: write_json(path, document(found)),
    ".csv": lambda path, found: as_table(found).to_csv(path, index=False),
}
"""Of the whole result, and of the table of points, by suffix."""
MOST_REASONS = 5
"""Reasons for failures that are shown."""


def run(base: Scenario, wanted: dict[str, Any], *, quiet: bool) -> Dimensioning:
    """Search, and confirm by simulation, with progress; after Ctrl-C return the result up to then."""
    keep_compiled_models()

    def simulator(scenario: Scenario) -> Any:
        from btqueue.simulator import simulate

        prepare_simulator(scenario, quiet=quiet)
        return simulate(scenario, threads=wanted["workers"])

    if wanted["engine"] == "simulate":
        prepare_simulator(base, quiet=quiet)
    try:
        with bars(quiet=quiet) as bar:
            return dimension(
                base, simulator=simulator, progress=bar("points"), simulating=bar("confirming"), **wanted
            )
    except DimensioningInterrupted as interruption:
        if interruption.partial is None:
            raise
        return interruption.partial


def document(found: Dimensioning, **more: Any) -> dict[str, Any]:
    """Return the JSON object of a dimensioning."""
    return as_document(found.task.base, dimension=as_values(found), **more)


def print_report(name: str, found: Dimensioning, wall_s: float) -> None:
    """Print the best point and the runners-up with the left sides of the bounds, and the simulation."""
    screen = Screen()
    screen.show(heading(name, found.task.base), _points_table(found), *_how_found(found, wall_s))
    if found.best is not None:
        who = NAMES["simulate" if found.best.answered_by == "simulation" else found.engine]
        warned: dict[str, list[str]] = {}
        for number_, point in enumerate(found.front or [found.best], start=1):
            for warning in point.warnings:
                warned.setdefault(warning, []).append(f"{number_}.")
        for warning, rows in warned.items():
            where = f"{', '.join(rows)} of the front" if found.front else "the best point"
            screen.say(f"{who} warns of {where}: {warning}", style="yellow")
    failed = (point for point in found.candidates if point.failure and not point.unserved)
    reasons = Counter(str(point.failure) for point in failed).most_common(MOST_REASONS)
    screen.say(*(f"failed: {count:,} x {reason}" for reason, count in reasons), style="yellow")
    if (played := found.confirmation) is not None:
        screen.show("", _simulation_table(found, played), *_simulation_lines(found, played))
        screen.say(*(f"warning: {warning}" for warning in played.warnings), style="yellow")


def _points_table(found: Dimensioning) -> Table:
    plain = points_table(found)
    table = new_table(*plain.columns, left=1 + len(found.task.choices))
    for row in plain.rows:
        table.add_row(*row, style="bold" if row[0] == "best" else None)
    return table


def _how_found(found: Dimensioning, wall_s: float) -> list[str]:
    """Return how sure the answer is, in sentences."""
    proved, solved, size = found.outcome == "proved", len(found.candidates), found.task.size
    points = f"{solved:,} points {ANSWERED[found.engine]} in {wall_s:.1f} s all told"
    lines = [f"{points}; {found.feasible:,} meet all bounds"]
    simulated = sum(one.answered_by == "simulation" and one.failure is None for one in found.candidates)
    if simulated and found.engine == "solve":
        picked = "" if found.confirmation is None else ", or the point may be the best"
        lines.append(
            f"{simulated:,} of the points simulated: theory does not stand there or lacks a metric{picked}"
        )
    if found.interrupted:
        lines.append("interrupted: the best of the points solved by then")
    elif proved:
        by = "these answers" if simulated else NAMES[found.engine]
        lines.append(f"all combinations were looked at: by {by}, nothing is better")
    else:
        total = "a continuous range" if size is None else f"{size:,} combinations"
        why = "; the budget is spent" if found.outcome == "spent" else ""
        lines.append(f"found by search in {total}: not proved to be the best{why}")
    if found.without_effect:
        keys, have = ", ".join(found.without_effect), "has" if len(found.without_effect) == 1 else "have"
        where = "" if proved else " at any point that was solved"
        lines.append(f"{keys} {have} no effect on the answer{where}")
    if unserved := sum(candidate.unserved > 0 for candidate in found.candidates):
        lines.append(f"at {unserved:,} of the points some flow gets nothing: they are left out")
    if found.best is None and found.nearest is not None and found.nearest.unserved:
        lines.append(f"{nothing_for(found.nearest.unserved)} at the nearest point")
    if found.front:
        count, (first, last) = len(found.front), found.task.aims
        if count == 1:
            return [*lines, "one point is best in both: there is nothing to choose"]
        shown = f"; {MOST_ROWS} are shown" if count > MOST_ROWS else ""
        ends = f"the best {first.text} first, {last.text} last"
        return [*lines, f"no point beats any of these {count} in both: {ends}{shown}"]
    if found.ties:
        other = "1 other point is" if found.ties == 1 else f"{found.ties:,} other points are"
        lines.append(f"{other} as good: the first in the order of the values is shown")
    if found.at_end:
        lines.append(f"at an end of its range: {', '.join(found.at_end)}; beyond it may be better")
    return lines


def _simulation_table(found: Dimensioning, confirmation: Confirmation) -> Table:
    task = found.task
    columns = [
        task.objective.text,
        "model",
        *(c.text for c in task.constraints),
        "winner better by",
        "this point is",
    ]
    if found.front:
        del columns[-2]
    table = new_table("simulated", *columns)
    for point in confirmation.points:
        sides = [
            _value(c.expression, side) + ("" if bound == "met" else f" {bound}")
            for c, side, bound in zip(task.constraints, point.estimates[1:], point.bounds, strict=True)
        ]
        ahead = "" if point.verdict == "winner" else _value(task.objective.expression, point.difference)
        better = [] if found.front else [ahead]
        table.add_row(
            point.role,
            _value(task.objective.expression, point.estimates[0]),
            number(math.nan if point.model is None else point.model.objective),
            *sides,
            *better,
            str(point.failure) if point.failure else _verdict(point),
        )
    return table


def _value(expression: Linear, found: Estimate) -> str:
    """Return a simulated value with its interval; values of keys alone have none."""
    return with_interval(found) if expression.metrics else number(found.mean)


def _verdict(point: Simulated) -> str:
    """Return the verdict in words; a better objective is worth nothing where a bound is violated."""
    words = [point.verdict or "", *([nothing_for(point.unserved)] if point.unserved else [])]
    return ", ".join(filter(None, words)) + (", but violates a bound" if point.worthless else "")


def _simulation_lines(found: Dimensioning, confirmation: Confirmation) -> list[str]:
    verdicts = (
        f"; verdicts hold together with {CONFIDENCE:.0%} confidence (paired differences, Holm), "
        "so that an interval without 0 alone tells no point apart"
    )
    lines = [
        f"simulation: {confirmation.replications} replications with common random numbers; {CONFIDENCE:.0%} "
        f"intervals{'' if found.front else verdicts}"
    ]
    lines += [
        f"{point.role}: {constraint.text} is open; {in_words(needed)}"
        for point in confirmation.points[0 if found.front else 1 :]
        for constraint, needed in zip(found.task.constraints, point.needed, strict=True)
        if not math.isnan(needed)
    ]
    if not found.front and not found.task.objective.expression.metrics:
        lines.append(
            f"{found.task.objective.text} is known beforehand: the simulation judges the bounds alone"
        )
    return lines
