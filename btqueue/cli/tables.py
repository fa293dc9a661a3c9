"""The tables that commands print for people."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from btqueue.files import printable
from btqueue.scenario.metrics import METRICS

if TYPE_CHECKING:
    from btqueue.cli.engines import Answer
    from btqueue.scenario import Scenario
    from btqueue.scenario.metrics import Results
    from btqueue.study import Estimate

GROUPS = ("goodput_kbps", "session_time_s", "cwnd_segments", "segment_loss", "queue_packets")
"""First metric of each group of rows: flows, their sessions, TCP, losses, links and queues."""

DETAILS = frozenset(
    {
        "rtt_min_s",
        "rtt_max_s",
        "rtt_sd_s",
        *(metric for metric in METRICS if re.search(r"_p\d+_s$", metric)),
        "delay_scv",
        "acknowledged_delay_scv",
        "session_time_sd_s",
        "retransmissions_per_s",
        "piggybacked_acks",
        "polls_per_s",
        "slot_share",
    }
)
"""Metrics that tables show with `--all` only."""

ROUNDING = 1e-12
"""Relative half-width of an interval that is nothing but rounding."""

CLOSE = 0.01
"""Relative difference that matters to nobody, however narrow the interval is."""

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
        """Yield the pieces of what is to be printed."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text), piece.style)

    def say(self, line: str, style: str = "") -> None:
        """Print a line of text, which the terminal breaks where it likes."""
        self.print(Text(line, style=style), soft_wrap=True)


def heading(name: str, scenario: Scenario) -> str:
    """Return a scenario's name and its title, in one line."""
    return f"{name}: {' '.join(scenario.title.split())}" if scenario.title else name


def solved_table(heading: str, solved: Answer, *, every: bool = False) -> None:
    """Print the metrics of a solution."""
    footer = [_model_line(solved), *_warnings("model", solved)]
    _print(heading, _metric_table(solved.results, "value", every), footer)


def simulated_table(heading: str, scenario: Scenario, simulated: Answer, *, every: bool = False) -> None:
    """Print the metrics of a simulation with their intervals."""
    table = _metric_table(simulated.results, "mean ± 95 % interval", every)
    _print(heading, table, [_simulation_line(scenario, simulated), *_warnings("simulation", simulated)])


def comparison_table(
    heading: str, scenario: Scenario, solved: Answer, simulated: Answer, *, every: bool = False
) -> None:
    """Print model and simulation side by side."""
    from btqueue.study import Estimate, side_by_side

    comparison = side_by_side(scenario, solved.results, simulated.results)
    table = _table("metric", "unit", "model", "simulation ± 95 %", "difference", "interval")
    for name in _shown(list(comparison["metric"].values), every, table):
        row = comparison.sel(metric=name)
        model, mean, ci95, difference = (
            float(row[key]) for key in ("model", "simulation", "ci95", "relative_difference")
        )
        table.add_row(
            str(row["long_name"].item()),
            str(row["units"].item()),
            number(model),
            with_interval(Estimate(mean, ci95)),
            "–" if math.isnan(difference) else f"{difference:+.1%}",
            _verdict(model, mean, ci95, bool(row["inside"])),
        )
    lines = [_simulation_line(scenario, simulated), *_warnings("simulation", simulated)]
    _print(heading, table, [*lines, _model_line(solved), *_warnings("model", solved)])


def recordings_table(heading: str, written: Mapping[str, Mapping[str, object]]) -> None:
    """Print which files were written."""
    table = _table("file", "what is in it")
    for column in table.columns:
        column.justify = "left"
    words = {"trace": "{events:,} events", "pcap": "segments of {host}", "series": "{steps:,} steps"}
    for name, facts in written.items():
        table.add_row(Text(str(facts["path"])), words[name].format(**facts))
    _print(heading, table, [])


def number(value: float) -> str:
    """Return *value* with four significant digits; a dash for NaN."""
    if math.isnan(value):
        return "–"
    return "0" if value == 0 else f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def with_interval(estimate: Estimate) -> str:
    """Return mean ± half-width, the latter with two significant digits, the mean to match.

    Values that are all equal have no interval: a half-width of zero would claim a precision.
    """
    mean, ci95 = estimate.mean, estimate.ci95
    if not (math.isfinite(mean) and math.isfinite(ci95)):
        return number(mean)
    if ci95 <= ROUNDING * abs(mean):
        return f"{number(mean)} (no spread)"
    decimals = max(0, 1 - math.floor(math.log10(ci95)))
    if decimals > 6:
        return f"{number(mean)} ± {ci95:.1e}"
    return f"{mean:.{decimals}f} ± {ci95:.{decimals}f}"


def _verdict(model: float, mean: float, ci95: float, inside: bool) -> Text:
    if math.isnan(model):
        return Text("no model", style="dim")
    if math.isnan(mean):
        return Text("not simulated", style="dim")
    if math.isnan(ci95):
        return Text("no interval", style="dim")
    if not inside and ci95 <= ROUNDING * abs(mean):
        return Text("no spread", style="dim")
    if inside:
        return Text("✓ inside", style="green")
    if abs(model - mean) <= CLOSE * abs(mean):
        return Text(f"within {CLOSE:.0%}", style="green")
    return Text("outside", style="yellow")


def _metric_table(results: Results, column: str, every: bool) -> Table:
    from btqueue.study.comparison import long_name, rows_of

    table = _table("metric", "unit", column)
    rows = rows_of(results)
    for name in _shown(list(rows), every, table):
        table.add_row(long_name(name), METRICS[name.partition("[")[0]].unit, with_interval(rows[name]))
    return table


def _shown(rows: list[str], every: bool, table: Table) -> Iterator[str]:
    """Yield the rows to be shown, and put a gap into the table before each group but the first."""
    group = ""
    for row in rows:
        metric = row.partition("[")[0]
        if not every and metric in DETAILS:
            continue
        begun = next((first for first in reversed(GROUPS) if _order(first) <= _order(metric)), "")
        if group and begun != group:
            table.add_row()
        group = begun
        yield row


def _order(metric: str) -> int:
    return list(METRICS).index(metric)


def _model_line(solved: Answer) -> str:
    attrs = solved.results.attrs
    state = "converged" if attrs["converged"] else "NOT converged"
    count = f" in {attrs['iterations']} iterations" if "iterations" in attrs else ""
    steps = f"{state}{count}, residual {attrs['residual']:.1g}"
    line = f"model: {attrs['method']}; {steps}; {_seconds(solved.wall_s)}"
    line += f"\nsolver: {attrs['solver']}, {attrs['solver_reason']}"
    return f"{line}\nmeasured errors {attrs['measured_errors']}" if "measured_errors" in attrs else line


def _simulation_line(scenario: Scenario, simulated: Answer) -> str:
    """Return how the simulation was made: how much of it, after which warm-up, at what cost."""
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
    return f"simulation: {runs} after {warmup_s:g} s{found}; {cost}"


def _warnings(side: str, answer: Answer) -> list[str]:
    return [f"{side} warns: {warning}" for warning in answer.results.attrs.get("warnings", ())]


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < 2 else "right")
    return table


def _print(heading: str, table: Table, footer: list[str]) -> None:
    screen = Screen()
    if heading:
        screen.say(heading, "bold")
    screen.print(table)
    for line in footer:
        screen.say(line, "dim")
