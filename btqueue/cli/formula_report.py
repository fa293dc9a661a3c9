"""The output of `btqueue sensitivity` on closed forms: tables, expressions and LaTeX, or a JSON object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from btqueue.cli.errors import put_json
from btqueue.cli.tables import Screen, new_table
from btqueue.scenario import Scenario
from btqueue.study.provenance import as_document, plain
from btqueue.study.sensitivity.formulas import Evaluated
from btqueue.study.tables import number

LONGEST_LATEX = 600
"""Characters of an expression, or of its LaTeX, that are printed for people."""


def print_formulas(heading: str, found: Sequence[Evaluated]) -> None:
    """Print the formulas that apply to a scenario, with their values and elasticities."""
    screen = Screen()
    screen.say(heading, "bold")
    table = new_table("formula", "value", "unit", "elasticity by")
    for column in table.columns[2:]:
        column.justify = "left"
    for entry in found:
        shares = ", ".join(
            f"{d.symbol}: {d.elasticity:.3g}" for d in entry.derivatives if math.isfinite(d.elasticity)
        )
        style, told = ("yellow", "does not hold here, see below") if entry.doubt else (None, shares)
        table.add_row(entry.form.name, number(entry.value), entry.form.unit, told, style=style)
    screen.print(table)
    for entry in found:
        if entry.doubt:
            screen.say(f"{entry.form.name}: {entry.doubt}", "yellow")
    sources: dict[str, str] = {}
    for entry in found:
        for symbol, given in entry.numbers.items():
            meaning = entry.form.symbols.get(symbol, ("", ""))[1]
            if meaning:
                sources[f"{symbol} {meaning}"] = f"{number(given.value)} ({given.source})"
    for symbol, source in sources.items():
        screen.say(f"{symbol}: {source}", "dim")


def print_formula(entry: Evaluated) -> None:
    """Print a formula with the numbers of its symbols, its derivatives, and LaTeX."""
    screen = Screen()
    form = entry.form
    screen.say(form.name, "bold")
    screen.say(str(form.expression))
    screen.say(f"LaTeX: {_short(form.latex())}", "dim")
    table = new_table("symbol", "meaning", "unit", "value", "derivative", "elasticity")
    for column in table.columns[1:3]:
        column.justify = "left"
    for derivative in entry.derivatives:
        unit, meaning = form.symbols[derivative.symbol]
        given = entry.numbers.get(derivative.symbol)
        source = "" if given is None or given.source == "given" else f": {given.source}"
        table.add_row(
            derivative.symbol, meaning + source, unit, "–" if given is None else number(given.value),
            number(derivative.value),
            "–" if math.isnan(derivative.elasticity) else f"{derivative.elasticity:.4g}",
        )  # fmt: skip
    screen.print(table)
    for derivative in entry.derivatives:
        screen.say(f"d/d{derivative.symbol}: {_short(str(derivative.expression))}")
        screen.say(f"LaTeX: {_short(derivative.latex)}", "dim")
    if entry.missing:
        hint = " ".join(f"--at {symbol}=..." for symbol in entry.missing)
        screen.say(f"no value without {', '.join(entry.missing)}: {hint}")
    else:
        unit = "" if form.unit == "1" else f" {form.unit}"
        screen.say(f"value: {number(entry.value)}{unit}", "bold")
    if entry.doubt:
        screen.say(f"warning: {entry.doubt}", "yellow")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LATEX else f"{len(text):,} characters, printed with --json"


def print_formulas_json(base: Scenario | None, found: Sequence[Evaluated]) -> None:
    """Print formulas, derivatives and numbers as one JSON object."""
    formulas = {entry.form.name: _formula(entry) for entry in found}
    put_json(plain({"formulas": formulas}) if base is None else as_document(base, formulas=formulas))


def _formula(entry: Evaluated) -> dict[str, Any]:
    symbols = {}
    for one in entry.derivatives:
        given = entry.numbers.get(one.symbol)
        unit, meaning = entry.form.symbols[one.symbol]
        symbols[one.symbol] = {
            "unit": unit, "meaning": meaning,
            "value": None if given is None else given.value,
            "source": None if given is None else given.source,
            "derivative": one.value, "elasticity": one.elasticity,
            "expression": str(one.expression), "latex": one.latex,
        }  # fmt: skip
    return {
        "unit": entry.form.unit, "value": entry.value, "holds": not entry.doubt,
        "doubt": entry.doubt, "expression": str(entry.form.expression),
        "latex": entry.form.latex(), "symbols": symbols,
    }  # fmt: skip
