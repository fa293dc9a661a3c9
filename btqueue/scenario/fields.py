"""Ground rules of every scenario table: frozen, strict, no unknown keys, finite numbers, lists as tuples."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Container, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from operator import itemgetter
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from pydantic.fields import FieldInfo

Condition = Mapping[str, tuple[object, ...]]
"""Values of other keys, by dotted names, or facts (`btqueue.scenario.traits`); all of them hold."""

ALWAYS: Condition = {}
"""The condition of a key that has an effect everywhere, whatever the condition of its table."""

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    tomllib.loads(files("btqueue.scenario").joinpath("presets.toml").read_text("utf-8"))
)
"""For each choice the keys of its table whose defaults it changes."""


class Table(BaseModel):
    """A frozen table of a scenario.

    Strict: ``"5"`` is not 5, ``true`` is not 1 and 5.0 is not a whole number; a whole number is taken where
    a real one is asked for. Infinities and NaN are refused, and so is every key that is not declared.

    Tables are equal if their values are, whichever of them were written and whichever are defaults.
    """

    CHOICES: ClassVar[tuple[str, ...]] = ()
    """Keys without an effect: they choose the values of other keys, or are only read in old files."""

    WHEN: ClassVar[Condition] = ALWAYS
    """The condition of keys that declare none."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
    )

    def chosen(self) -> Mapping[str, Any]:
        """Return the defaults of keys that follow from the choice of a preset."""
        return PRESETS.get(getattr(self, self.CHOICES[0]), {}) if self.CHOICES else {}

    @model_validator(mode="after")
    def _take_preset(self) -> Self:
        more = {name: value for name, value in self.chosen().items() if name not in self.model_fields_set}
        vars(self).update(more)  # the table is frozen for others only
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        """Return the values that decide an answer."""
        return _reader(type(self))(vars(self))

    def default(self, **values: Any) -> Self:
        """Return a copy in which keys that were not written have these values, and stay not written."""
        unwritten = values.keys() - self.model_fields_set
        copy = self.model_copy(update={name: values[name] for name in unwritten})
        copy.model_fields_set.difference_update(unwritten)
        return copy


@cache
def _reader(table: type[Table]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    return itemgetter(*(name for name in table.model_fields if name not in table.CHOICES))


def key(
    default: Any,
    description: str,
    when: Condition | tuple[Condition, ...] = (),
    *,
    neutral: tuple[Any, ...] = (),
    said: str = "",
    **bounds: Any,
) -> Any:
    """Declare a key.

    Args:
        default: its value where nobody writes one, or a function of the values of the keys before it; `...`
            for a key that must be written.
        description: description of its meaning.
        when: the condition under which it has an effect, or several conditions: any of them is enough. Each
            key named there must have an effect, too.
        neutral: values at which it changes nothing, if not the default alone.
        said: the default in words, where another key decides it.
        bounds: bounds of numbers, as `pydantic.Field` takes them.
    """
    options: dict[str, Any] = {"description": description, **bounds}
    more: dict[str, Any] = {"neutral": neutral} if neutral else {}
    if when != ():
        more["when"] = when if isinstance(when, tuple) else (when,)
    if said:
        more["default_in_words"] = said
    if more:
        options["json_schema_extra"] = more
    if callable(default):
        return Field(default_factory=default, **options)
    return Field(default, **options)


def cases_of(table: type[Table], name: str) -> tuple[Condition, ...]:
    """Return the conditions of a key of a table: it has an effect where any of them holds."""
    return declared(table.model_fields[name], "when") or (table.WHEN,)


@cache
def conditions(root: type[Table]) -> Mapping[str, tuple[Condition, ...]]:
    """Return the conditions of all keys of tables, by dotted name."""
    tables: dict[str, Any] = {name: field.annotation for name, field in root.model_fields.items()}
    return {
        f"{name}.{key}": cases_of(table, key)
        for name, table in tables.items()
        for key in getattr(table, "model_fields", ())
    }


@lru_cache(maxsize=1024)
def effective(
    root: type[Table], given: frozenset[tuple[str, object]], begins: tuple[str, ...] = ("",)
) -> tuple[str, ...]:
    """Return the keys that may have an effect.

    Args:
        root: the scenario.
        given: dotted names of keys, or facts, with their values; all others may have any value.
        begins: beginnings of the names of the keys that are asked for.
    """
    every, values = conditions(root), dict(given)
    known: dict[int, bool] = {}  # cases, by identity: most keys of a table share theirs

    def holds(case: Condition) -> bool:
        if id(case) not in known:
            effects = [(key not in values or values[key] in of) and matters(key) for key, of in case.items()]
            known[id(case)] = all(effects)
        return known[id(case)]

    def matters(key: str) -> bool:
        return key not in every or any(map(holds, every[key]))

    return tuple(key for key in every if key.startswith(begins) and matters(key))


def declared(field: FieldInfo, name: str) -> Any:
    """Return "when", "neutral" or "default_in_words" of a key's declaration; None if it has none."""
    extra = field.json_schema_extra
    return extra.get(name) if isinstance(extra, dict) else None


def listed(default: Any, description: str, *, least: int = 0, most: int = 1000, **options: Any) -> Any:
    """Declare a key that holds a list in TOML and a tuple in Python."""
    return key(
        default, description, strict=False, min_length=least, max_length=most, **options
    )  # not strict: TOML and JSON have lists, a frozen table needs tuples


def with_own_keys(
    base: type[Table],
    *tables: type[Table],
    said: str,
    but: Container[str] = (),
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> type[Table]:
    """Return `base` with all keys of `tables` as well, each of which may be left out.

    Args:
        base: model of an entry in a list, which may override keys of these tables.
        tables: models of the tables; no two have a key of the same name.
        said: description of these keys, with {table} and {name}.
        but: keys that an entry cannot override.
        renamed: keys that have another name in an entry.
    """
    own: dict[str, Any] = {}
    for table in tables:
        for name, field in table.model_fields.items():
            kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            text = said.format(table=table.__name__.lower(), name=name)
            if name not in but:
                own[renamed.get(name, name)] = (kind | None, key(None, text))
    return create_model(base.__name__, __base__=base, **own)


# Kinds of numbers. The upper bounds only catch slips of the keyboard and units: they lie far beyond any
# Bluetooth network, and well inside what 64-bit integers and nanosecond clocks can hold.
Probability = Annotated[float, Field(ge=0, le=1)]
BitErrorRate = Annotated[float, Field(ge=0, le=0.5)]
PositiveSeconds = Annotated[float, Field(gt=0, le=1e6)]
Seconds = Annotated[float, Field(ge=0, le=1e6)]
PositiveRate = Annotated[float, Field(gt=0, le=1e7)]
Window = Annotated[int, Field(ge=1, le=65_535)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Bytes = Annotated[int, Field(ge=1, le=1_000_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
