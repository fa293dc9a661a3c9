"""Changes on top of a scenario: ``table.key`` from Python, ``table.key=value`` from the command line.

A key of an entry of a list is written with the entry's number: ``network.outside_links[1].rate_kbps``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from btqueue.scenario.errors import Problem, ScenarioError, shown
from btqueue.scenario.problems import field_at, key_names, table_inside, unknown_key
from btqueue.text_files import BadToml, parse_toml

REMOVED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "link.quality_memory_s": (0.0,),
        "polling.bridge_patience_s": (0.0,),
        "polling.max_weight": (5,),
        "radio.colocated": (False,),
        "run.intervals": ("auto", "replications"),
        "run.solver": ("auto", "analytic", "followed"),
        "transport.forward_ack": (False,),
        "transport.gamma": (1.0,),
        "transport.centaurus_start": ("peer",),
        "transport.centaurus_header_bytes": (6,),
        "transport.centaurus_control_bytes": (16,),
    }
)
"""Keys that tables had once, and the values that they had by default: with these they are still read."""


def without_removed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a scenario without the keys that are `REMOVED` and have their old defaults."""
    kept = dict(data)
    for place, defaults in REMOVED.items():
        table, _, name = place.partition(".")
        keys = kept.get(table)
        if isinstance(keys, Mapping) and name in keys and keys[name] in defaults:
            kept[table] = {key: value for key, value in keys.items() if key != name}
    return kept


def merged(
    root: type[BaseModel] | None, data: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a copy of *data* with dotted keys replaced; a value of ``None`` removes the key.

    Raises:
        ScenarioError: for every key that no table has.
    """
    if root is not None and (
        unknown := [
            unknown_key(root, key, value)
            for key, value in changes.items()
            if field_at(root, key) is None and value not in REMOVED.get(key, ())
        ]
    ):
        raise ScenarioError(unknown)
    result = copied(data)
    for key, value in changes.items():
        *way, last = key.split(".")
        place = result
        for part in way:
            name, bracket, number = part.removesuffix("]").partition("[")
            place = entry_of(place.get(name, ()), number, key) if bracket else place.setdefault(name, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return result


def copied(data: Any) -> Any:
    """Return a copy of tables and lists; values are shared."""
    if isinstance(data, Mapping):
        return {key: copied(value) for key, value in data.items()}
    return [copied(value) for value in data] if isinstance(data, list | tuple) else data


def entry_of(entries: Any, number: str, key: str) -> Any:
    """Return the entry of a list with this number, counted from 1.

    Raises:
        ScenarioError: the list is shorter, or there is none, as where flows follow a pattern.
    """
    entries = entries if isinstance(entries, list | tuple) else ()
    if not 1 <= int(number) <= len(entries):
        there = f"[1] to [{len(entries)}]" if entries else "no entry"
        raise ScenarioError(f"{key}: {key.partition('[')[0]} has {there}", key)
    return entries[int(number) - 1]


def parse_sets(root: type[BaseModel], sets: Iterable[str]) -> dict[str, Any]:
    """Read settings of the form ``table.key=value``.

    Values are TOML (``10``, ``0.5``, ``true``, ``["DH5", "DH3"]``); a text needs no quotes, a list no
    brackets (``DH5,3-DH3``), and ``none`` unsets a key that may be unset.

    Raises:
        ScenarioError: if a setting has no ``=``, or its key is unknown.
    """
    problems, changes = [], {}
    for setting in sets:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals:
            message = (
                f"setting {shown(setting)} cannot be read: write table.key=value, as in polling.limit=10"
            )
            problems.append(Problem(message, key=key, value=setting))
        elif key in root.model_fields and (table := table_inside(root.model_fields[key].annotation)):
            message = f"{key} is a table: set one of its keys, as in {key}.{key_names(table)[0]}=..."
            problems.append(Problem(message, key=key, value=text))
        elif (field := field_at(root, key)) is None:
            problems.append(unknown_key(root, key, text))
        else:
            changes[key] = _read(field, text.strip())
    if problems:
        raise ScenarioError(problems)
    return changes


def _read(field: FieldInfo, text: str) -> Any:
    """Return the value to which *text*, TOML or bare strings, sets a key; None if it unsets the key."""
    if text.lower() == "none" and field.default is None:
        return None
    if get_origin(field.annotation) is tuple and text and not text.startswith("["):
        text = f"[{text}]"
    found = _toml_value(text)
    if found is None and text.startswith("[") and text.endswith("]"):
        parts = [part.strip() for part in text[1:-1].split(",")]
        return [part if (value := _toml_value(part)) is None else value for part in parts if part]
    return text if found is None else found


def _toml_value(text: str) -> Any:
    """Return the TOML value of a text, None if it has none: then the check of the key reports the fault."""
    try:
        document = parse_toml(f"value = {text}")
    except BadToml:
        return None
    return document["value"] if set(document) == {"value"} else None
