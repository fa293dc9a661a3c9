"""Changes on top of a scenario: ``table.key`` from Python, ``table.key=value`` from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from btqueue.scenario.errors import Problem, ScenarioError, shown
from btqueue.scenario.problems import key_names, unknown_key


def _tables(root: type[BaseModel]) -> dict[str, type[BaseModel]]:
    return {
        name: field.annotation
        for name, field in root.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }


def _known(root: type[BaseModel], key: str) -> bool:
    table, dot, name = key.partition(".")
    if not dot:
        return key in root.model_fields and key not in _tables(root)
    return table in _tables(root) and name in key_names(_tables(root)[table])


def merged(root: type[BaseModel], data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of *data* with dotted keys replaced; a value of ``None`` removes the key.

    Raises:
        ScenarioError: for every key that no table has.
    """
    if unknown := [unknown_key(root, key, value) for key, value in changes.items() if not _known(root, key)]:
        raise ScenarioError(unknown)
    result = {key: dict(value) if isinstance(value, Mapping) else value for key, value in data.items()}
    for key, value in changes.items():
        table, dot, name = key.partition(".")
        place = result.setdefault(table, {}) if dot else result
        if value is None:
            place.pop(name or key, None)
        else:
            place[name or key] = value
    return result


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
            problems.append(Problem(message, key=key, value=setting, allowed="table.key=value"))
        elif key in _tables(root):
            message = (
                f"{key} is a table: set one of its keys, as in {key}.{key_names(_tables(root)[key])[0]}=..."
            )
            problems.append(Problem(message, key=key, value=text, allowed="table.key=value"))
        elif not _known(root, key):
            problems.append(unknown_key(root, key, text))
        else:
            changes[key] = _read(_field(root, key), text.strip())
    if problems:
        raise ScenarioError(problems)
    return changes


def _field(root: type[BaseModel], key: str) -> FieldInfo:
    table, dot, name = key.partition(".")
    fields = _tables(root)[table].model_fields if dot else root.model_fields
    return fields[name or key]


def _read(field: FieldInfo, text: str) -> Any:
    """Return what *text* sets a key to; None if it unsets the key."""
    if text.lower() == "none" and field.default is None:
        return None
    is_list = get_origin(field.annotation) is tuple
    return _value(f"[{text}]" if is_list and text and not text.startswith("[") else text)


def _value(text: str) -> Any:
    """Read one TOML value; what is no TOML value is a text, or a list of texts when in brackets."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (
        ValueError,
        RecursionError,
    ):  # no TOML, or a number too long for Python: the check of the key says so
        document = {}
    if set(document) == {"value"}:
        return document["value"]
    if text.startswith("[") and text.endswith("]"):
        return [_value(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    return text
