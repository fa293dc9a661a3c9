"""From terse findings to sentences: the key, the value given, the values allowed, the likely right one."""

from __future__ import annotations

import difflib
import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from btqueue.scenario.errors import Problem, ScenarioError, bad_value, bracketed, shown
from btqueue.scenario.metrics import unit_of

SYNONYMS = {
    "S": "flow_control.buffer_packets",
    "L": "flow_control.baseband_packets",
    "M": "polling.limit",
    "n": "network.peripherals",
    "tb": "flow_control.token_rate_kbps",
    "slaves": "network.peripherals",
    "load": "traffic.load_kbps",
    "rwnd": "transport.receive_window_segments",
    "mss": "transport.mss_bytes",
    "window": "transport.receive_window_segments",
    "ssthresh": "transport.initial_ssthresh_segments",
    "scheduler": "polling.discipline",
    "network.flows.source": "network.flows.law",
    "network.outside_links.rtt_s": "network.outside_links.delay_s",
    "traffic.period_s": "traffic.load_kbps",
    "traffic.interval_s": "traffic.load_kbps",
}
"""Symbols and words of the papers, and other words, for keys of the scenario."""

MOST_NAMES = 14
"""Keys of a table that a message lists."""

UNITS: Mapping[str, Mapping[str, float]] = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0},
    "kbit/s": {"kbit/s": 1.0, "kbps": 1.0, "bit/s": 1e-3, "bps": 1e-3, "Mbit/s": 1e3, "Mbps": 1e3},
    "1": {"%": 0.01},
    "mA": {"mA": 1.0, "uA": 1e-3, "µA": 1e-3},
    "1/s": {"1/s": 1.0, "/s": 1.0, "1/min": 1 / 60, "/min": 1 / 60},
    "packet": {"packets": 1.0, "packet": 1.0},
    "segment": {"segments": 1.0, "segment": 1.0},
    "byte": {"bytes": 1.0, "byte": 1.0, "B": 1.0, "kB": 1e3},
}
"""Units that people write after a number, by the unit of metrics and keys that they are converted to."""

NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
"""A number without a sign, as a pattern that takes time by its length."""

WITH_UNIT = re.compile(rf"([-+]?{NUMBER})\s*([^\W\d_].*|[%/].*)", re.DOTALL)
"""A number with a unit or other text after it."""

ENTRY = re.compile(r"\[\d{1,9}\]", re.ASCII)
"""The number of an entry of a list in a dotted key; no list has more than 100,000 of them."""

BOUNDS = {"ge": "of at least", "gt": "above", "le": "at most", "lt": "below"}
"""Bounds of numbers in words, as pydantic names them."""


def closest(word: str, options: Iterable[str]) -> str | None:
    """Return the option nearest to an unknown *word*, ``None`` if none is near."""
    by_lower = {option.lower(): option for option in options if option != word}
    matches = difflib.get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def _range(metadata: Sequence[Any]) -> str:
    """Return the bounds of a number in words, with a leading space, or nothing."""
    bounds = {words: getattr(m, name) for name, words in BOUNDS.items() for m in metadata if hasattr(m, name)}
    told = (f"{words} {x:,}" if isinstance(x, int) else f"{words} {x:g}" for words, x in bounds.items())
    return " " + " and ".join(told) if bounds else ""


def allowed_values(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """Return in words the values that a key of this type accepts."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = [
            m for extra in args[1:] for m in (extra.metadata if isinstance(extra, FieldInfo) else [extra])
        ]
        return allowed_values(args[0], [*metadata, *inner])
    if origin in (Union, types.UnionType):
        return ", or ".join(allowed_values(arg, metadata) for arg in args if arg is not type(None))
    if origin is Literal:
        return ("one of " if len(args) > 1 else "") + ", ".join(f'"{arg}"' for arg in args)
    if origin is tuple:
        return f"a list, each entry {allowed_values(args[0])}"
    if _is_table(annotation):
        names = key_names(annotation)
        more = [] if len(names) <= MOST_NAMES else ["..."]
        return "a table { " + ", ".join(names[:MOST_NAMES] + more) + " }"
    words = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a text"}
    text = words.get(annotation, "a value of another kind")
    return text + (_range(metadata) if annotation in (int, float) else "")


def key_names(table: type[BaseModel]) -> list[str]:
    """Return the keys of *table* as they are written in a file."""
    return [field.serialization_alias or name for name, field in table.model_fields.items()]


def parts_of(annotation: Any) -> Iterator[Any]:
    """Yield a type, and all types that it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from parts_of(part)


def _is_table(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def table_inside(annotation: Any) -> type[BaseModel] | None:
    """Return the table type that *annotation* is or holds, if any."""
    return next(filter(_is_table, parts_of(annotation)), None)


def _entry_type(annotation: Any) -> Any:
    """Return the type of the entries of the list that *annotation* is or holds."""
    return next((get_args(part)[0] for part in parts_of(annotation) if get_origin(part) is tuple), None)


@cache
def fields_of(root: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return tables and their keys by dotted names, as a file has them; entries of lists have number 1."""

    def inside(table: type[BaseModel], place: str) -> Iterator[tuple[str, FieldInfo]]:
        for name, field in zip(key_names(table), table.model_fields.values(), strict=True):
            yield place + name, field
            if (within := table_inside(field.annotation)) is not None:
                yield from inside(within, place + name + ("[1]." if entry_table(field) else "."))

    return dict(inside(root, ""))


def _field(root: type[BaseModel], key: str) -> FieldInfo | None:
    return fields_of(root).get(ENTRY.sub("[1]", key))


def field_at(root: type[BaseModel], key: str) -> FieldInfo | None:
    """Return the field of a dotted key, ``table.key`` or ``table.list[1].key``; None if there is none."""
    field = _field(root, key)
    return None if field is None or ("." not in key and table_inside(field.annotation)) else field


def known_field(root: type[BaseModel], key: str) -> FieldInfo:
    """Return the field of a dotted key.

    Raises:
        ScenarioError: there is none.
    """
    if (field := field_at(root, key)) is None:
        raise ScenarioError(unknown_key(root, key))
    return field


def all_keys(root: type[BaseModel]) -> list[str]:
    """Return all keys of tables, as ``table.key``."""
    return [key for key in fields_of(root) if key.count(".") == 1]


def entry_table(field: FieldInfo) -> type[BaseModel] | None:
    """Return the table of an entry of a list; None where a field is no list of tables."""
    entry = _entry_type(field.annotation)
    return None if entry is None else table_inside(entry)


def unknown_key(root: type[BaseModel], key: str, value: object = None) -> Problem:
    """Describe a key (dotted) that no table has, and suggest the nearest known key."""
    said, guess = _about_unknown(root, key)
    quoted = shown(key).replace('"', "'")
    return Problem(f"unknown key {quoted}: {said}", key, value, guess)


def _about_unknown(root: type[BaseModel], key: str) -> tuple[str, str | None]:
    """Return advice about an unknown key, and the key that was probably meant."""
    if field_at(root, key) is not None:  # quotes in TOML, and names in Python, keep dots together
        return f"a name has no dot in it; write {bracketed(key)}", None
    known = {name.replace("[1]", ""): name for name in fields_of(root) if name != key}
    plain = re.sub(r"\[[^.]*|\.\d+(?=\.)", "", key)  # without the number of an entry
    place, _, last = plain.rpartition(".")
    beside = {name.rpartition(".")[2]: name for name in known if name.rpartition(".")[0] == place}
    by_last = {name.rpartition(".")[2]: name for name in reversed(all_keys(root))}
    meant = plain if plain in known else SYNONYMS.get(plain) or SYNONYMS.get(last)
    meant = beside.get((meant or "").rpartition(".")[2], meant)  # the entry's own key of that name
    meant = meant or beside.get(f"{last}s") or beside.get(last.removesuffix("s"))
    if meant is None and place == "network.flows" and (of_link := f"radio.links.{last}") in known:
        return f"did you mean '{known[of_link]}', the radio of a link?", known[of_link]
    meant = meant or by_last.get("" if "." in place else last)
    if meant is None and (near := closest(last, beside) if place else None):
        meant = beside[near]
    if meant is None and ("." not in place or not beside):
        meant = closest(plain, known) or by_last.get(closest(last, by_last) or "")
    if meant is not None:
        number = re.search(r"[\[.]([1-9]\d{0,8})\b", key, re.ASCII)
        guess = known.get(meant, meant).replace("[1]", f"[{number[1] if number else 1}]")
        return f"did you mean '{guess}'?", guess
    if beside and place:
        return f"{bracketed(place) if '.' in place else f'[{place}]'} has the keys {', '.join(beside)}", None
    return f"the tables are {', '.join(name for name in root.model_fields if name != 'title')}", None


def _locate(root: type[BaseModel], data: object, loc: Sequence[str | int]) -> tuple[str, object]:
    """Follow a location of the checker through the data, and return the dotted key with its value.

    The checker mixes names of union members into its locations; they are no keys of the data and are skipped.
    """
    key, value = "", data
    for part in loc:
        place = f"{key}.{part}" if key else str(part)
        if isinstance(part, int) and isinstance(value, list | tuple) and part < len(value):
            key, value = f"{key}[{part + 1}]", value[part]
        elif isinstance(part, str) and isinstance(value, dict) and (part in value or _field(root, place)):
            key, value = place, value.get(part)
    return key, value


def problems_of(error: ValidationError, root: type[BaseModel], data: object) -> list[Problem]:
    """Translate the findings on *data*, one problem for each key, in the order of the tables."""
    found: dict[str, Problem] = {}
    extra: list[Problem] = []
    alike: dict[str, list[str]] = {}  # an unknown key of several entries is named once
    for item in error.errors(include_url=False, include_input=False):
        cause = item.get("ctx", {}).get("error")
        if isinstance(cause, ScenarioError):
            extra += cause.problems
            continue
        if item["type"] == "default_factory_not_called":  # follows from another finding on the same table
            continue
        key, value = _locate(root, data, item["loc"])
        if item["type"] == "extra_forbidden":
            same = alike.setdefault(ENTRY.sub("[]", key), [])
            same.append(key)
            found.setdefault(same[0], unknown_key(root, key, value))
        elif item["type"] == "missing":
            found[key] = Problem(f"{key} is missing", key=key)
        elif item["type"] == "too_long" and isinstance(value, list | tuple):
            most = item.get("ctx", {}).get("max_length", 0)
            message = f"{bracketed(key)}: a list of {len(value):,}; it may have at most {most:,} entries"
            found[key] = Problem(message, key, value)
        elif key not in found:
            of_entry = key.endswith("]")
            field = _field(root, key.rpartition("[")[0] if of_entry else key)
            found[key] = wrong_value(key, field, value, of_entry=of_entry)
    for first, *more in alike.values():
        if more:
            message = f"{found[first].message} ({1 + len(more)} entries have this key)"
            found[first] = replace(found[first], message=message)
    kept = [
        problem
        for key, problem in found.items()
        if not any(other.startswith((f"{key}.", f"{key}[")) for other in found)
    ]
    return kept + extra or [Problem(f"the scenario is not valid: {error.error_count()} findings")]


def without_unit(key: str, text: str) -> str:
    """Return how to write a number that something is written after; "" if *text* is none."""
    if (found := WITH_UNIT.fullmatch(text.strip())) is None:
        return ""
    own, (number, unit) = unit_of(key), found.groups()
    advice = "write the number without a unit" + (f", in {own}" if own else "")
    meant = float(number) * UNITS.get(own or "1", {}).get(unit, math.nan)
    return f"{advice}: {meant:.12g}" if math.isfinite(meant) else advice


def wrong_value(key: str, field: FieldInfo | None, value: object, *, of_entry: bool = False) -> Problem:
    """Describe a value that the type of a key refuses.

    Args:
        key: dotted.
        field: field of the key, or of the list; None if no table has the key.
        value: the value that was given.
        of_entry: whether the value is an entry of the list.
    """
    if field is None:
        return bad_value(key or "scenario", value, "a table")
    annotation = field.annotation
    if of_entry:
        allowed = allowed_values(_entry_type(annotation))
    else:
        allowed = allowed_values(annotation, field.metadata)
    fixed = (get_args(part) for part in parts_of(annotation) if get_origin(part) is Literal)
    words = [word for some in fixed for word in some if isinstance(word, str)]
    guess = closest(value, words) if isinstance(value, str) else None
    problem = bad_value(key, value, allowed, guess=guess)
    note = f" ({field.description})" if field.description else ""
    if isinstance(value, str) and "number" in allowed:
        advice = without_unit(key, value) or ("" if words else "write numbers without quotes")
        if ".." in value or re.fullmatch(r"[\d.]+ *[-:–] *[\d.]+", value):
            advice = "a range has LOW..HIGH or LOW..HIGH:STEP, numbers without units"
        note += f"; {advice}" if advice else ""
    return Problem(problem.message + note, key=key, value=value, guess=guess)
