"""The answers of both engines as commands print them: tables for people, or a JSON object."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from btqueue.cli.engines import Answer
from btqueue.files import printable
from btqueue.scenario import Scenario
from btqueue.scenario.errors import Problem
from btqueue.scenario.metrics import Results
from btqueue.study.provenance import as_document
from btqueue.study.summary import Estimate, by_group, by_queue, labels_of, summarise
from btqueue.study.tables import CLOSE_BY, INSIDE, OUTSIDE, limit_lines, table, with_interval

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.cli.engines import Answer
    from btqueue.scenario import Scenario
    from btqueue.scenario.metrics import Results
    from btqueue.study.checked_answers import Check

STYLES = {INSIDE: "green", CLOSE_BY: "green", OUTSIDE: "yellow"}
"""Of verdicts; others are dim."""

LOADING_S = 3.0
"""Longest time (s) that loading compiled code takes. Code that takes longer was compiled."""
PIPE_WIDTH = 200
"""Characters a line where nobody says how wide the paper is."""


class Screen(Console):
    """Standard output for tables: as wide as the terminal, or wide enough where there is none.

    Texts are shown as they are, without marks of style in them, and unseen characters as escapes.
    """

    def __init__(self) -> None:
        """Look for the width."""
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        super().__init__(width=width, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of the output, unseen characters of the text escaped."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text), piece.style)

    def say(self, *lines: str, style: str = "") -> None:
        """Print lines of text, which the terminal breaks where it likes."""
        for line in lines:
            self.print(Text(line, style=style), soft_wrap=True)

    def show(self, heading: str, table: Table, *lines: str) -> None:
        """Print a heading, a table and lines about it."""
        if heading:
            self.say(heading, style="bold")
        self.print(table)
        self.say(*lines, style="dim")


def heading(name: str, scenario: Scenario) -> str:
    """Return a scenario's name and its title, in one line."""
    return f"{name}: {' '.join(scenario.title.split())}" if scenario.title else name


def new_table(*columns: str, left: int = 1, rows: Iterable[Iterable[str | Text]] = ()) -> Table:
    """Return a table; the first `left` columns are aligned to the left, the others to the right."""
    table = Table(box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if place < left else "right")
    for row in rows:
        table.add_row(*row)
    return table


def solved_table(heading: str, solved: Answer, *, every: bool = False) -> None:
    """Print the metrics of a solution; `check_lines` come after it."""
    lines = [*limit_lines(solved.results), _model_line(solved), *_warnings("model", solved)]
    Screen().show(heading, _table(solved.results, every), *lines)
    sys.stdout.flush()


def check_lines(solved: Answer, checked: Check | str | None) -> None:
    """Print the verdict of a check; without a check the usual error, and the reason for no check."""
    lines = _usual_error(solved) if checked is None or isinstance(checked, str) else []
    Screen().say(*lines, *([str(checked)] if checked else []), style="dim")


def simulated_table(heading: str, scenario: Scenario, simulated: Answer, *, every: bool = False) -> None:
    """Print the metrics of a simulation with their intervals."""
    limits, warnings = limit_lines(simulated.results), _warnings("simulation", simulated)
    lines = [*limits, *_simulation_lines(scenario, simulated), *warnings]
    Screen().show(heading, _table(simulated.results, every), *lines)


def comparison_table(
    heading: str,
    scenario: Scenario,
    comparison: xr.Dataset,
    solved: Answer,
    simulated: Answer,
    *,
    every: bool,
) -> None:
    """Print model and simulation side by side."""
    lines = limit_lines(simulated.results)
    lines += [*_simulation_lines(scenario, simulated), *_warnings("simulation", simulated)]
    lines += [_model_line(solved), *_usual_error(solved), *_warnings("model", solved)]
    Screen().show(heading, _table(comparison, every), *lines)


def recordings_table(heading: str, written: Mapping[str, Mapping[str, object]]) -> None:
    """Print which files were written."""
    words = {"trace": "{events:,} events", "pcap": "segments of {host}", "series": "{steps:,} steps"}
    rows = [(str(facts["path"]), words[name].format(**facts)) for name, facts in written.items()]
    Screen().show(heading, new_table("file", "content", left=2, rows=rows))


def _table(found: Results | xr.Dataset, every: bool) -> Table:
    """Return the table of an answer or a comparison, with the verdicts of intervals in colours."""
    plain = table(found, every=every)
    rows = (
        [Text(c, STYLES.get(c, "dim")) if name == "interval" else c for name, c in zip(plain.columns, row)]  # noqa: B905
        for row in plain.rows
    )
    return new_table(*plain.columns, left=2, rows=rows)


def _model_line(solved: Answer) -> str:
    """Return how theory answered, and whether its answer stands."""
    attrs = solved.results.attrs
    state = "converged" if attrs["converged"] else f"NOT converged, residual {attrs['residual']:.1g}"
    doubt = "no doubt about the answer" if attrs["stands"] else "the answer is in doubt (warnings)"
    once = f", compiled in {_seconds(solved.compiling_s)}, once" if solved.compiling_s > LOADING_S else ""
    return f"model: queues and chains, {state} in {_seconds(solved.wall_s)}{once}; {doubt}"


def _usual_error(solved: Answer) -> list[str]:
    """Return how far off theory was in similar scenarios, where that was measured."""
    attrs = solved.results.attrs
    return [f"usual error: {attrs['measured_errors']}"] if "measured_errors" in attrs else []


def _simulation_lines(scenario: Scenario, simulated: Answer) -> list[str]:
    """Return how the simulation was made: simulated time, warm-up, events and seconds; its precision."""
    attrs, run = simulated.results.attrs, scenario.run
    count = simulated.results.sizes["replication"]
    if attrs.get("intervals") == "batch-means":
        length_s = float(simulated.results.variables["measured_s"].values.sum())
        runs = f"1 replication of {length_s:g} s in {count} batches"
    else:
        runs = f"{count} replication{'s' if count > 1 else ''} of {run.duration_s:g} s"
    if simulated.interrupted:
        runs = f"INTERRUPTED, {simulated.interrupted}"
    warmup_s = attrs.get("warmup_s", run.warmup_s)
    found = " (found by MSER-5)" if run.warmup_s == "auto" else ""
    cost = f"{attrs['events']:,} events in {_seconds(simulated.wall_s)}"
    lines = [f"simulation: {runs} after {warmup_s:g} s{found}; {cost}"]
    if {"precision", "precision_of", "limit_cpu_s"} & run.model_fields_set and "precision_of" in attrs:
        known = with_interval(Estimate(attrs["estimate"], attrs["half_width"]))
        width = attrs["relative_half_width"]
        share = f" ({100 * width:.2g} %)" if math.isfinite(width) else ""
        lines.append(f"known with 95 % confidence: {attrs['precision_of']} = {known}{share}")
    return lines


def _warnings(side: str, answer: Answer) -> list[str]:
    return [f"{side} warns: {warning}" for warning in answer.results.attrs.get("warnings", ())]


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


ABOUT_THE_MODEL = ("answered_by", "model", "system", "regime", "measured_errors")


def document(
    scenario: Scenario,
    *,
    hints: Iterable[Problem] = (),
    solved: Answer | None = None,
    checked: Check | str | None = None,
    simulated: Answer | None = None,
    files: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return scenario, results and provenance as plain values; only the parts that were run, NaN as None."""
    parts: dict[str, Any] = {"hints": [{"key": hint.key, "message": hint.message} for hint in hints]}
    if solved is not None:
        parts["solve"] = _solution(solved.results)
    if checked is not None:
        parts["solve"]["check"] = _check(checked)
    if simulated is not None:
        parts["simulate"] = _simulation(simulated)
    if files is not None:
        parts["files"] = dict(files)
    return as_document(scenario, **parts)


def _solution(results: Results) -> dict[str, Any]:
    attrs = results.attrs
    return {
        "converged": bool(attrs["converged"]),
        "residual": float(attrs["residual"]),
        **({"iterations": int(attrs["iterations"])} if "iterations" in attrs else {}),
        "method": str(attrs["method"]),
        "warnings": [str(warning) for warning in attrs["warnings"]],
        "stands": bool(attrs["stands"]),
        "why": list(attrs["why"]),
        **{key: str(attrs[key]) for key in ABOUT_THE_MODEL if key in attrs},
        **_names(results),
        "metrics": _metrics(results, interval=False),
    }


def _check(checked: Check | str) -> dict[str, Any]:
    """Return the verdict of a check, the line that tables show, and each metric's relative difference."""
    if isinstance(checked, str):
        return {"verdict": "not checked", "line": checked, "metrics": {}}
    metrics = {
        one.metric: {"difference": one.value, "half_width": one.half_width, "verdict": one.verdict}
        for one in checked.differences
    }
    return {"verdict": checked.verdict, "line": str(checked), "metrics": metrics}


def _simulation(simulated: Answer) -> dict[str, Any]:
    """Return a simulation for JSON: replications or batches, events, warnings and metrics."""
    results, attrs = simulated.results, simulated.results.attrs
    entries = results.sizes["replication"]
    content: dict[str, Any] = {"complete": not simulated.interrupted}
    if simulated.interrupted:
        content["interrupted"] = simulated.interrupted
    if attrs.get("intervals") == "batch-means":
        content |= {"replications": 1, "batches": entries, "autocorrelation": attrs["autocorrelation"]}
    else:
        content["replications"] = entries
    content |= {"events": int(attrs["events"]), "warmup_s": attrs.get("warmup_s")}
    if "precision_of" in attrs:
        content["precision"] = {
            "of": attrs["precision_of"],
            "mean": float(attrs["estimate"]),
            "ci95": float(attrs["half_width"]),
            "relative": float(attrs["relative_half_width"]),
        }
    content["warnings"] = list(attrs.get("warnings", ()))
    return {**content, **_names(results), "metrics": _metrics(results, interval=True)}


def _names(results: Results) -> dict[str, list[Any]]:
    """Return the names of flows and links, the group of each flow where flows differ, and their limits."""
    kinds = {"flows": "flow_name", "groups": "group", "links": "link_name"}
    there = {kind: name for kind, name in kinds.items() if name in results.variables}
    limits = {key: results.attrs[key] for key in ("limited_by",) if key in results.attrs}
    return {kind: list(labels_of(results, name)) for kind, name in there.items()} | limits


def _metrics(results: Results, *, interval: bool) -> dict[str, Any]:
    return {name: _metric(results, found, interval) for name, found in summarise(results).items()}


def _metric(results: Results, found: Estimate, interval: bool) -> dict[str, Any]:
    values: dict[str, Any] = _estimate(found, interval)
    if queues := by_queue(results, found):
        values["per_queue"] = {queue: _estimate(one, interval) for queue, one in queues.items()}
    elif found.part:
        values[f"per_{found.part}"] = list(found.means)
    if groups := by_group(results, found):
        values["per_group"] = {group: _estimate(one, interval) for group, one in groups.items()}
    return values


def _estimate(estimate: Estimate, interval: bool) -> dict[str, float]:
    return {"mean": estimate.mean, "ci95": estimate.ci95} if interval else {"mean": estimate.mean}
