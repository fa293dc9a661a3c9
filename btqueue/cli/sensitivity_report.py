"""The output of `btqueue sensitivity`: tables for people (formulas with their LaTeX), or a JSON object."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from rich.table import Table
from rich.text import Text

from btqueue.cli.engines import keep_compiled_models
from btqueue.cli.errors import BadInput, put_json
from btqueue.cli.options import fraction
from btqueue.cli.tables import Screen, new_table
from btqueue.files import write_rows
from btqueue.progress_bars import bars
from btqueue.scenario import Scenario
from btqueue.study.comparison import axis_label, long_name
from btqueue.study.provenance import as_document, plain
from btqueue.study.sensitivity import formula as evaluated
from btqueue.study.sensitivity import formulas_of, sensitivity
from btqueue.study.sensitivity.factors import SHARE
from btqueue.study.sensitivity.formulas import Evaluated, parse_at
from btqueue.study.sensitivity.local import bends
from btqueue.study.tables import number

LEAST_SHARE = 5e-4
"""Share of the variance below which a key is left out of the table."""
MOST_REASONS = 4
"""Keys without an answer for which the reasons are printed."""
Row = dict[str, Any]
"""Numbers and words of a key in the study of a metric, by name."""
WORDS = {
    "kink": "kink: {left} below, {right} above",
    "jump": "jumps here",
    "jump below": "jumps below, {right} above",
    "jump above": "{left} below, jumps above",
    "secant": "{value} ± {error}",
    "uncertain": "uncertain: {value} ± {error}",
    "one-sided": "{value} (one side)",
    "step": "{value} a step",
    "steps": "{left} below, {right} above, a step",
    "none": "–",
}
"""Text of a derivative in the table, by kind."""


def run(
    base: Scenario, method: Literal["local", "sobol"], wanted: dict[str, Any], *, quiet: bool
) -> xr.Dataset:
    """Run a study with progress."""
    keep_compiled_models()
    with bars(quiet=quiet) as bar:
        return sensitivity(base, method, progress=bar("points"), **wanted)


def spreads(texts: Sequence[str]) -> tuple[dict[str, str], float]:
    """Return ranges by key, and the share that holds for the other keys."""
    ranges, share = {}, SHARE
    for text in texts:
        key, equals, values = text.partition("=")
        if equals:
            ranges[key.strip()] = values.strip()
            continue
        share = fraction(text)
        if not 0 < share < 1 or "%" not in text:
            raise BadInput(f"--spread {text}: write KEY=LOW..HIGH, or a share such as 20%")
    return ranges, share


def show_formulas(
    base: Scenario | None, title: str, formula: str | None, at: list[str] | None, *, as_json: bool
) -> None:
    """Print the formulas of a scenario, or a formula at some numbers."""
    if formula is not None:
        found = [evaluated(formula, parse_at(at or ()), base)]
    else:
        assert base is not None
        found = formulas_of(base)
    if as_json:
        formulas = {entry.form.name: _formula(entry) for entry in found}
        put_json(plain({"formulas": formulas}) if base is None else as_document(base, formulas=formulas))
    elif formula is not None:
        print_formula(found[0])
    else:
        print_formulas(title, found)


def print_tables(title: str, found: xr.Dataset) -> None:
    """Print a table for each metric, then remarks about the study."""
    screen, attrs, notes = Screen(), found.attrs, dict[str, None]()
    screen.say(title, style="bold")
    for metric in found["metric"].values.tolist():
        rows = _rows(found.sel(metric=metric))
        table = (_sobol if attrs["study"] == "sobol" else _local)(rows)
        base = f" = {number(float(found['base'].sel(metric=metric)))}" if "base" in found.coords else ""
        screen.say(f"\n{axis_label(metric)}{base}", style="bold")
        unknown = attrs.get("failed") and not found.sizes["key"]
        nothing = "no other value has an answer" if unknown else "no key has an effect"
        screen.print(table if table.row_count else Text(f"  {nothing}", style="dim"))
        if attrs["study"] == "local":
            idle = [row["key"] for row in rows if not _shown(row)]
            if idle and table.row_count:
                screen.say(f"  no effect on {long_name(metric)}: {', '.join(idle)}", style="dim")
            told = (row for row in rows if _shown(row) and row["note"])
            notes |= {f"{r['key']}: {r['note']}": None for r in told if not r["note"].endswith("not allowed")}
    answered = [f"answered by {attrs['answered_by']}"] if "answered_by" in attrs else []
    answered += [f"theory does not stand: {why}" for why in attrs.get("why", ())]
    screen.say(*notes, *_footer(found), *answered, style="dim")
    who = "simulation" if attrs.get("answered_by") == "simulation" else "model"
    screen.say(*(f"{who} warns: {warning}" for warning in attrs["warnings"]), style="yellow")


def _rows(one: xr.Dataset) -> list[Row]:
    """Return the numbers and words of each key in the study of a metric."""
    return one.to_dataframe().reset_index().to_dict("records")


def _local(rows: list[Row]) -> Table:
    """Return the keys with an effect, the largest first."""
    table = new_table("key", "value", "derivative", "elasticity", "low..high", "metric there")
    for row in sorted(rows, key=lambda row: (-row["effect"], -np.nan_to_num(abs(row["derivative"])))):
        if _shown(row):
            ends = f"{number(row['at_low'])}..{number(row['at_high'])}"
            cells = (number(row["value"]), _derivative(row), _elasticity(row), _range(row), ends)
            table.add_row(row["key"], *cells)
    return table


def _range(row: Row) -> str:
    """Return the spread of a key; a dash if it is not known."""
    return "–" if math.isnan(row["low"]) else f"{number(row['low'])}..{number(row['high'])}"


def _shown(row: Row) -> bool:
    """Whether a key changes the metric at all."""
    changes = [row["derivative"], row["left"], row["right"]]
    changes += [row["at_low"] - row["base"], row["at_high"] - row["base"]]
    return bool(np.nan_to_num(np.abs(changes)).max() > 0.0) or row["kind"] == "jump"


def _kind(row: Row) -> str:
    """Return the kind of a derivative; "steps" if a step below and one above differ much."""
    kind, left, right = row["kind"], row["left"], row["right"]
    if kind == "jump" and row["value"] and not (math.isnan(left) and math.isnan(right)):
        return "jump below" if math.isnan(left) else "jump above"
    return "steps" if kind == "step" and bends(left, right) else kind


def _derivative(row: Row) -> str:
    numbers = {name: number(row[name]) for name in ("left", "right", "error")}
    return WORDS.get(_kind(row), "{value}").format(value=number(row["derivative"]), **numbers)


def _elasticity(row: Row) -> str:
    kind, base, value = _kind(row), row["base"], row["value"]
    if kind == "kink" and base and value:
        return " | ".join(f"{row[side] * value / base:.3g}" for side in ("left", "right"))
    return "–" if math.isnan(row["elasticity"]) else f"{row['elasticity']:.3g}"


def _sobol(rows: list[Row]) -> Table:
    """Return the keys, the largest share first."""
    table = new_table("key", "low..high", "alone", "with interactions")
    for row in sorted(rows, key=lambda row: -np.nan_to_num(row["total"])):
        if row["total"] > LEAST_SHARE:
            shares = (f"{row[name]:.3f} ± {row[f'{name}_ci95']:.3f}" for name in ("first", "total"))
            table.add_row(row["key"], _range(row), *shares)
    return table


def _footer(found: xr.Dataset) -> list[str]:
    attrs = found.attrs
    if attrs["study"] == "local":
        lines = [f"{attrs['solved']} points solved; ranked by the largest change of the metric in low..high"]
        if attrs["without_effect"]:
            lines.append("without effect: " + ", ".join(attrs["without_effect"]))
        if attrs["without_range"]:
            keys = ", ".join(attrs["without_range"])
            lines.append("left out: keys that hold no number, as link.rate (sweep and dimension take them)")
            lines.append(f"left out because they are 0 and have no range (--spread KEY=LOW..HIGH): {keys}")
        if attrs["not_varied"]:
            lines.append(f"not varied, in entries of lists (--key): {', '.join(attrs['not_varied'])}")
        failed = attrs["failed"]
        if len(failed) > MOST_REASONS:
            return [
                *lines,
                f"other values of these keys cannot be solved (--json has the reasons): {', '.join(failed)}",
            ]
        return lines + [f"another value of {key} cannot be solved: {why}" for key, why in failed.items()]
    lines = [f"{attrs['points']:,} points in {attrs['groups']} blocks, seed {attrs['seed']}"]
    if attrs["failed"]:
        left_out = attrs["groups"] - int(found["kept"].min())
        lines.append(f"{attrs['failed']:,} points have no answer; {left_out} blocks were left out with them")
        lines += [f"  {count:,} x {reason}" for reason, count in attrs["reasons"].items()]
    if attrs["simulated"]:
        lines.append(f"{attrs['simulated']:,} of the points simulated: theory does not stand there")
    if attrs["doubted"]:
        lines.append(f"there are warnings at {attrs['doubted']:,} points, as of: {attrs['doubt']}")
    return lines


def print_json(base: Scenario, found: xr.Dataset) -> None:
    """Print the JSON object of a study: one entry for each metric, in it one for each key."""
    per_key = ["value", "low", "high", *map(str, found.data_vars)]
    metrics = {}
    for metric in found["metric"].values.tolist():
        one = found.sel(metric=metric)
        about = {
            str(name): coordinate.item()
            for name, coordinate in one.coords.items()
            if coordinate.ndim == 0 and name != "metric"
        }
        keys = {row["key"]: {name: row[name] for name in per_key} for row in _rows(one)}
        metrics[metric] = {**about, "keys": keys}
    about = {name: value for name, value in found.attrs.items() if name != "study"}
    method = found.attrs["study"]
    put_json(as_document(base, sensitivity={"method": method, **about, "metrics": metrics}))


LONGEST_LATEX = 600
"""Characters of an expression, or of its LaTeX, that are printed for people."""


def print_formulas(title: str, found: Sequence[Evaluated]) -> None:
    """Print the formulas that apply to a scenario, with their values and elasticities."""
    screen, sources = Screen(), dict[str, str]()
    if not found:
        screen.say(f"{title}: no closed form applies; --formula NAME --at SYMBOL=NUMBER evaluates one")
        return
    table = new_table("formula", "value", "unit", "elasticity by")
    for column in table.columns[2:]:
        column.justify = "left"
    for entry in found:
        shares = ", ".join(
            f"{d.symbol}: {d.elasticity:.3g}" for d in entry.derivatives if math.isfinite(d.elasticity)
        )
        style, told = ("yellow", "does not hold here, see below") if entry.doubt else (None, shares)
        table.add_row(entry.form.name, number(entry.value), entry.form.unit, told, style=style)
        for symbol, given in entry.numbers.items():
            if meaning := entry.form.symbols.get(symbol, ("", ""))[1]:
                sources[f"{symbol} {meaning}"] = f"{number(given.value)} ({given.source})"
    screen.show(title, table)
    screen.say(*(f"{entry.form.name}: {entry.doubt}" for entry in found if entry.doubt), style="yellow")
    screen.say(*(f"{symbol}: {source}" for symbol, source in sources.items()), style="dim")


def print_formula(entry: Evaluated) -> None:
    """Print a formula with the numbers of its symbols, its derivatives, and LaTeX."""
    screen, told = Screen(), _formula(entry)
    screen.say(entry.form.name, style="bold")
    screen.say(entry.form.about)
    whole = told["expression"]
    screen.say(*([whole] if len(whole) <= LONGEST_LATEX else entry.form.text.strip().splitlines()))
    screen.say(f"LaTeX: {_short(told['latex'])}", style="dim")
    rows = (
        [
            symbol,
            one["meaning"] + (f": {one['source']}" if one["source"] not in (None, "given") else ""),
            one["unit"],
            number(one["value"]),
            number(one["derivative"]),
            "–" if math.isnan(one["elasticity"]) else f"{one['elasticity']:.4g}",
        ]
        for symbol, one in told["symbols"].items()
    )
    table = new_table("symbol", "meaning", "unit", "value", "derivative", "elasticity", rows=rows)
    for column in table.columns[1:3]:
        column.justify = "left"
    screen.print(table)
    for symbol, one in told["symbols"].items():
        screen.say(f"d/d{symbol}: {_short(one['expression'])}")
        screen.say(f"LaTeX: {_short(one['latex'])}", style="dim")
    if entry.missing:
        hint = " ".join(f"--at {symbol}=..." for symbol in entry.missing)
        screen.say(f"no value without {', '.join(entry.missing)}: {hint}")
    else:
        unit = "" if entry.form.unit == "1" else f" {entry.form.unit}"
        screen.say(f"value: {number(entry.value)}{unit}", style="bold")
    if entry.doubt:
        screen.say(f"warning: {entry.doubt}", style="yellow")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LATEX else f"{len(text):,} characters, printed with --json"


def _formula(entry: Evaluated) -> dict[str, Any]:
    symbols = {}
    for one in entry.derivatives:
        given = entry.numbers.get(one.symbol)
        unit, meaning = entry.form.symbols[one.symbol]
        symbols[one.symbol] = {
            "unit": unit, "meaning": meaning,
            "value": math.nan if given is None else given.value,
            "source": None if given is None else given.source,
            "derivative": one.value, "elasticity": one.elasticity,
            "expression": str(one.expression), "latex": one.latex,
        }  # fmt: skip
    return {
        "unit": entry.form.unit, "value": entry.value, "holds": not entry.doubt,
        "doubt": entry.doubt, "expression": str(entry.form.expression),
        "latex": entry.form.latex(), "symbols": symbols,
    }  # fmt: skip


def write_csv(path: Path, found: xr.Dataset, base: Scenario) -> None:
    """Write a row for each metric and key."""
    columns = ["metric", "units", "key", "value", "low", "high", *map(str, found.data_vars)]
    rows = found.to_dataframe(["metric", "key"]).reset_index()[columns]
    write_rows(path, [["unit" if one == "units" else one for one in columns], *rows.itertuples(index=False)])
