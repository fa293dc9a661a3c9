"""Write the reference of all scenario keys and metrics, from the definitions themselves.

python docs/generate_reference.py            writes docs/reference/scenario-keys.md
python docs/generate_reference.py --check    exits with 1 if the page is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from btqueue.network.models import MODELS
from btqueue.scenario import METRICS, Flow, LoadStep, OutsideLink, Piconet, RadioLink, Scenario
from btqueue.scenario.problems import allowed_values

PAGE = Path(__file__).parent / "reference" / "scenario-keys.md"

INTRODUCTION = """\
<!-- Written by docs/generate_reference.py: change the definitions in btqueue/scenario, not this page. -->

# Scenario keys and metrics

Every key of every table of a scenario file. Units stand in the names: `_s` seconds, `_kbps` kilobits (1,000
bits) a second, `_bytes` bytes; windows are in segments of `transport.mss_bytes`, buffers in packets. A dash
as default means that the key is not set. The last column says what the model (`solve`) can run today, where
that is less than what a scenario may say; the rest is refused by name. The simulator runs everything, but a
device in at most 8 piconets. The same definitions as JSON Schema: `btqueue models --schema`.

Above all tables stands `title`, one line that says what the scenario is.
"""

DEFAULTS_THAT_FOLLOW = {
    "network.piconets": "1; 2 in a scatternet",
    "network.flows": '`"ring"`; `"pairs"` in a scatternet, `"end-to-end"` in a chain',
    "network.relay": '`"packet"`; `"segment"` in a chain, with outside links, or with `link.adaptation`',
    "voice.links": "0; 1 with a voice packet",
    "transport.header_bytes": "40; 28 without TCP",
    "outside_links.rate_kbps": "10,000 (wired), 4,000 (wlan), 19.2 (cdpd), 1,000 (other)",
    "outside_links.half_duplex": "`true` for wlan, cdpd and a shared medium, else `false`",
}
"""Defaults that depend on another key, in words; the definitions hold functions."""

LIST_ENTRIES: dict[str, type[BaseModel]] = {
    "network.flows": Flow,
    "network.piconet_list": Piconet,
    "network.outside_links": OutsideLink,
    "radio.links": RadioLink,
    "traffic.load_schedule": LoadStep,
}
"""Lists whose entries are tables."""


def page() -> str:
    """Return the reference page as Markdown."""
    parts = [INTRODUCTION]
    for name, field in Scenario.model_fields.items():
        table = field.annotation
        if isinstance(table, type) and issubclass(table, BaseModel):
            parts.append(section(f"## `[{name}]`", name, table, with_limits=True))
    parts.append("## Entries of lists\n")
    for key, entry in LIST_ENTRIES.items():
        parts.append(section(f"### An entry of `{key}`", key.rpartition(".")[2], entry, with_limits=False))
    parts.append(metrics())
    return "\n".join(parts)


def section(heading: str, table_name: str, table: type[BaseModel], *, with_limits: bool) -> str:
    """Return heading, first sentence and key table of one scenario table."""
    columns = ["key", "allowed", "default", "meaning", *(["solve"] if with_limits else [])]
    rows = []
    for name, field in table.model_fields.items():
        key = f"{table_name}.{name}"
        cells = [
            f"`{field.serialization_alias or name}`",
            allowed(field),
            default(key, field),
            meaning(field),
        ]
        if with_limits:
            cells.append(today(key, solve_values()))
        rows.append(cells)
    summary = (table.__doc__ or "").strip().split("\n")[0].replace("``", "`")
    return "\n".join([heading, "", summary, "", *markdown_table(columns, rows), ""])


def allowed(field: FieldInfo) -> str:
    """Return in words what a key accepts, with fixed words as code."""
    text = allowed_values(field.annotation, field.metadata)
    return " ".join(
        f"`{word.rstrip(',')}`{',' * word.endswith(',')}" if '"' in word else word for word in text.split()
    )


def default(key: str, field: FieldInfo) -> str:
    """Return the default of a key."""
    if key in DEFAULTS_THAT_FOLLOW:
        return DEFAULTS_THAT_FOLLOW[key]
    if field.is_required():
        return "required"
    if field.default is PydanticUndefined:
        raise ValueError(f"say in DEFAULTS_THAT_FOLLOW what the default of {key} is")
    return as_toml(field.default)


def as_toml(value: Any) -> str:
    """Return a value as it is written in a scenario file; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, tuple):
        return f"`[{', '.join(as_toml(entry).strip('`') for entry in value)}]`"
    return f"`{value}`"


def meaning(field: FieldInfo) -> str:
    """Return the description of a key."""
    return field.description or ""


def solve_values() -> dict[str, tuple[object, ...]]:
    """Return the values that some model covers, for each key of which no model covers all."""
    tables = [scope.values for scope in MODELS.values()]
    keys = [key for key in tables[0] if all(key in table for table in tables)]
    return {key: tuple(dict.fromkeys(v for table in tables for v in table[key])) for key in keys}


def today(key: str, available: Mapping[str, tuple[object, ...]]) -> str:
    """Return what an engine can run of a key, where that is not everything."""
    if key not in available:
        return ""
    values = (as_toml(value) if value not in (None, ()) else "unset" for value in available[key])
    return "only " + ", ".join(values)


def metrics() -> str:
    """Return the section on metrics."""
    rows = [[f"`{name}`", m.long_name, m.unit, m.description] for name, m in METRICS.items()]
    text = (
        "Names, units and meanings are the same from both engines, in files and in tables. "
        "Units 1 are shares. A metric that one side cannot give is absent, never zero."
    )
    return "\n".join(
        ["## Metrics", "", text, "", *markdown_table(["name", "heading", "unit", "meaning"], rows), ""]
    )


def markdown_table(columns: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def main() -> int:
    """Write the page, or with `--check` compare it; return the exit code."""
    if "--check" in sys.argv[1:]:
        if PAGE.read_text("utf-8") == page():
            return 0
        print(f"{PAGE} is not up to date: run python docs/generate_reference.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
