"""The tables that commands print for people."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from btqueue.files import printable
from btqueue.study.summary import Estimate
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


def answer_table(
    heading: str,
    scenario: Scenario,
    found: Results | xr.Dataset,
    *,
    solved: Answer | None,
    simulated: Answer | None,
    every: bool,
) -> None:
    """Print the answer: a solution, a simulation, or both side by side; `check_lines` come after."""
    lines = limit_lines(*(answer.results for answer in (simulated, solved) if answer is not None))
    if simulated is not None:
        lines += [*_simulation_lines(scenario, simulated), *_warnings("simulation", simulated)]
    if solved is not None:
        lines += [
            _model_line(solved),
            *(_usual_error(solved) if simulated else []),
            *_warnings("model", solved),
        ]
    Screen().show(heading, _table(found, every), *lines)
    sys.stdout.flush()


def check_lines(solved: Answer, checked: Check | str | None) -> None:
    """Print the verdict of a check; without a check the usual error, and the reason for no check."""
    lines = _usual_error(solved) if checked is None or isinstance(checked, str) else []
    told = str(checked or "")
    if not solved.results.attrs["stands"] and told.startswith("confirmed: "):
        told = told.replace("confirmed:", "theory doubts this answer, a short simulation confirms it:")
    Screen().say(*lines, *([told] if told else []), style="dim")


def recordings_table(heading: str, written: Mapping[str, Mapping[str, object]]) -> None:
    """Print which files were written."""
    words = {"trace": "{events:,} events", "pcap": "segments of {host}", "series": "{steps:,} steps"}
    rows = [(str(facts["path"]), words[name].format(**facts)) for name, facts in written.items()]
    Screen().show(heading, new_table("file", "content", left=2, rows=rows))


def _table(found: Results | xr.Dataset, every: bool) -> Table:
    """Return the table of an answer or a comparison, with the verdicts of intervals in colours."""
    plain = table(found, every=every)

    def coloured(row: tuple[str, ...]) -> list[str | Text]:
        cells = zip(plain.columns, row, strict=True) if row else ()  # an empty row separates groups
        return [Text(c, STYLES.get(c, "dim")) if name == "interval" else c for name, c in cells]

    return new_table(*plain.columns, left=2, rows=map(coloured, plain.rows))


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
    length_s = run.duration_s
    if run.precision is not None:
        length_s = float(simulated.results.coords["measured_s"].values[0])
    runs = f"{count} replication{'s' if count > 1 else ''} of {length_s:g} s"
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
