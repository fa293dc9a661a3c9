"""Solve against simulate over a grid around every scenario: the error tables of the documentation.

    python tools/model_against_simulation.py [GRID ...] [--solve-again | --afresh]

writes docs/explanation/model-against-simulation.md and, point by point, the .csv beside it, and the measured
errors that answers carry, btqueue/network/measured_errors.csv. The points of each grid stand in `grids`; a
point that theory refuses has no errors and is left out. Each other point is kept in the .csv as soon as it
is answered; one that stands there with the same scenario is not asked again, so a run that was stopped goes
on. `--solve-again` asks the solver again and keeps what was simulated, after a change of a model (stopped,
it is to be begun again); `--afresh` forgets both.
"""

import hashlib
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import recorded_rows
from grids import modules, points_of

import btqueue as bt
from btqueue.network.measured_errors import IN_DOUBT, THEORY
from btqueue.reproduction.report import markdown
from btqueue.scenario import METRICS, NotBuiltYet, Scenario
from btqueue.study.summary import partial_times

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "model-against-simulation.md"
ERRORS = Path(__file__).parents[1] / "btqueue" / "network" / "measured_errors.csv"
ALWAYS = ("goodput_kbps", "rtt_s", "rtt_p90_s", "delay_s", "session_time_s", "session_time_p90_s")
LEAST = {
    **dict.fromkeys((*ALWAYS, "window_segments"), 0.0),
    **{"timeouts_per_s": 0.01, "fast_retransmits_per_s": 0.01, "segment_loss": 0.001, "cycle_s": 0.0},
}
"""The metrics compared, and the simulated value from which on a relative error means something."""
AIMS = {
    "goodput_kbps": (0.03, 0.10),
    "rtt_s": (0.05, 0.15),
    "rtt_p90_s": (0.10, None),
    "timeouts_per_s": (0.10, None),
}
"""What is wanted of a system: median and 95th percentile of the relative error."""


class Row(NamedTuple):
    """One metric at one point.

    Attributes:
        scenario: a digest of what was asked.
        answers: of theory, whether they stand or are in doubt.
        system, regime: the kind of the scenario (`btqueue.network.measured_errors`).
    """

    grid: str
    point: str
    scenario: str
    answers: str
    system: str
    regime: str
    metric: str
    solved: float
    simulated: float
    ci95: float

    @property
    def error(self) -> float:
        """The relative error of the model."""
        return self.solved / self.simulated - 1.0


class Task(NamedTuple):
    """A point to be answered."""

    grid: str
    point: str
    scenario: Scenario

    @property
    def digest(self) -> str:
        """A short digest of the scenario as the simulator sees it; keys with their defaults are left out."""
        content = self.scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if name := content.get("radio", {}).get("trace_file"):
            content["radio"]["trace_file"] = Path(name).name  # wherever this checkout lies
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


Simulated = dict[str, tuple[float, float]]
"""Mean and half-width of a 95 % interval, by metric."""


def answered(task: Task, known: Simulated) -> list[Row]:
    """Solve a point, and simulate it if nothing is known; return the metrics that both sides give."""
    try:
        solved = bt.solve(task.scenario)
    except (NotBuiltYet, bt.network.NoConvergence, bt.network.ImpossibleAnswer) as refusal:
        print(f"\r{task.grid}: {task.point}: {refusal}", file=sys.stderr)
        return []
    known = known or simulated(task.scenario)
    about, partial = solved.attrs, partial_times(solved, task.scenario)
    common = task.grid, task.point, task.digest, about["errors_of"], about["system"], about["regime"]
    return [
        Row(*common, name, float(solved[name].mean()), *known[name])
        for name in LEAST
        if name in solved and name in known and name not in partial  # means over other flows
    ]


def simulated(scenario: Scenario) -> Simulated:
    """Simulate a point; return the metrics that are compared."""
    from btqueue.study.summary import summarise

    found = summarise(bt.simulate(scenario, threads=1))
    return {name: (found[name].mean, found[name].ci95) for name in LEAST if name in found}


def kept() -> list[Row]:
    """Return what stands in the file."""
    return recorded_rows.read(PAGE.with_suffix(".csv"), Row)


def keep(rows: Iterable[Row]) -> None:
    """Write all rows to the file."""
    recorded_rows.write(PAGE.with_suffix(".csv"), Row._fields, rows)


def run(tasks: list[Task], rows: list[Row], *, solve_again: bool) -> list[Row]:
    """Answer the tasks that no row answers, on two processes; return all rows."""
    wanted = {(task.grid, task.point): task.digest for task in tasks}
    grids = {task.grid for task in tasks}
    others = [row for row in rows if row.grid not in grids]  # points that are no longer asked are dropped
    known: dict[str, Simulated] = {}
    before: dict[tuple[str, str], list[Row]] = {}  # what was simulated is not lost when a run is stopped
    for row in rows:
        known.setdefault(row.scenario, {})[row.metric] = (row.simulated, row.ci95)
        if wanted.get((row.grid, row.point)) == row.scenario:
            before.setdefault((row.grid, row.point), []).append(row)
    found = {} if solve_again else dict(before)
    left = [task for task in tasks if (task.grid, task.point) not in found]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        answers = pool.map(answered, left, [known.get(task.digest, {}) for task in left])
        for done, (task, new) in enumerate(zip(left, answers, strict=True), start=1):
            found[task.grid, task.point] = new
            keep([*others, *chain.from_iterable((before | found).values())])
            print(f"\r{done} of {len(left)} points", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [*others, *chain.from_iterable(found.values())]


def table(rows: Iterable[Row]) -> list[str]:
    """Return a Markdown table of the relative errors of these rows, a line for each metric."""
    lines = []
    for name, (count, median, high, worst) in errors_of(list(rows)).items():
        least = LEAST[name]
        heading = METRICS[name].long_name + (f", where above {least:g}" if least else "")
        sizes = f"{count}", f"{median:.1%}", f"{high:.0%}", f"{worst.error:+.0%}"
        lines.append((heading, *sizes, worst.point, verdict(name, median, high)))
    return markdown.table(
        ("metric", "points", "median", "95th percentile", "worst", "worst at", "aim"), lines
    )


def errors_of(rows: list[Row]) -> dict[str, tuple[int, float, float, Row]]:
    """Return points, median and 95th percentile of the relative errors, and the worst point, by metric."""
    found = {}
    for name, least in LEAST.items():
        if counted := [row for row in rows if row.metric == name and row.simulated > least]:
            errors = np.abs([row.error for row in counted])
            sizes = float(np.median(errors)), float(np.quantile(errors, 0.95))
            found[name] = (len(counted), *sizes, counted[int(errors.argmax())])
    return found


def keep_errors(rows: list[Row]) -> None:
    """Write the errors of every metric by answers, system and regime, and of all regimes of a system."""
    classes: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        for regime in ("", row.regime):
            classes.setdefault((row.answers, row.system, regime), []).append(row)
    columns = "answers", "system", "regime", "metric", "points", "median", "high", "worst"
    found = []
    for key in sorted(classes):
        for name, (count, *shares, worst) in errors_of(classes[key]).items():
            found.append((*key, name, count, *shares, worst.error))
    recorded_rows.write(ERRORS, columns, found, digits=4)


def verdict(name: str, median: float, high: float) -> str:
    """Return whether the errors are as small as wanted, in words."""
    if name not in AIMS:
        return ""
    wanted = [(limit, value) for limit, value in zip(AIMS[name], (median, high), strict=True) if limit]
    text = " and ".join(f"{limit:.0%}" for limit, _ in wanted)
    return f"{text}: {'met' if all(value <= limit for limit, value in wanted) else 'missed'}"


def by_kind(rows: list[Row]) -> list[str]:
    """Return a table of goodput, round trip (session time) and timeouts by system, regime and answers."""
    lines = []
    for system, regime, answers in sorted({(row.system, row.regime, row.answers) for row in rows}):
        own = [row for row in rows if (row.system, row.regime, row.answers) == (system, regime, answers)]
        errors = errors_of(own)
        cells = [
            next((f"{errors[n][1]:.1%}, {errors[n][2]:.0%}" for n in names if n in errors), "")
            for names in (("goodput_kbps",), ("rtt_s", "session_time_s"), ("timeouts_per_s",))
        ]
        points = len({(row.grid, row.point) for row in own})
        lines.append((system, regime, answers, f"{points}", *cells))
    names = "system", "regime", "answers", "points", "goodput", "round trip or session", "timeouts"
    return markdown.table(names, lines)


def page(rows: list[Row]) -> str:
    """Return the page of the documentation: errors by kind, and by grid."""
    parts = [INTRODUCTION, "\n".join(by_kind(rows)) + "\n", GRIDS]
    for grid in modules():
        own = [row for row in rows if row.grid == grid]
        parts += [f"## {grid.replace('_', ' ').capitalize()}\n", answers_of(own), "", *table(own), ""]
    return "\n".join(parts).rstrip() + "\n"


def answers_of(rows: list[Row]) -> str:
    """Say how many answers stand, and how many are in doubt."""
    stand, in_doubt = (
        len({row.point for row in rows if row.answers == answers}) for answers in (THEORY, IN_DOUBT)
    )
    return f"{stand + in_doubt} points: {stand} answers stand, {in_doubt} are in doubt."


INTRODUCTION = """\
# Theory against simulation

Points around every scenario of `models/` were solved and simulated. This page is written by `python
tools/model_against_simulation.py`. The values at each point stand in [a separate
file](model-against-simulation.csv).

The table gives the relative error of `solve`: median and 95th percentile over the points, by system, by
regime (errors of the radio or of links, and whether every flow's load is carried) and by whether the answer
stands or is in doubt. Answers quote these numbers.
"""
GRIDS = """\
Each table below gives the errors of one grid of points, of answers that stand and answers in doubt together.
Its column *aim* has the largest median and the largest 95th percentile that we want.
"""


def main(arguments: list[str]) -> None:
    """Answer what is not answered yet and write the page."""
    afresh, solve_again = "--afresh" in arguments, "--solve-again" in arguments
    names = [name for name in arguments if not name.startswith("--")] or list(modules())
    tasks = [Task(name, *point) for name in names for point in points_of(name)]
    rows = kept()
    if afresh:
        rows = [row for row in rows if row.grid not in names]
    rows = run(tasks, rows, solve_again=solve_again)
    keep(rows)
    PAGE.write_text(page(rows), encoding="utf-8")
    keep_errors(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
