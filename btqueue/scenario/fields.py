"""Ground rules of every scenario table: frozen, strict, no unknown keys, finite numbers, lists as tuples."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, create_model


class Table(BaseModel):
    """A frozen table of a scenario.

    Strict: ``"5"`` is not 5, ``true`` is not 1 and 5.0 is not a whole number; a whole number is taken where
    a real one is asked for. Infinities and NaN are refused, and so is every key that is not declared.

    Tables are equal if their values are, whichever of them were written and whichever are defaults.
    """

    CHOICES: ClassVar[tuple[str, ...]] = ()
    """Keys without an effect: they choose the values of other keys, or are only read in old files."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
    )

    def __eq__(self, other: object) -> bool:
        """Whether all values are equal."""
        return isinstance(other, Table) and type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        """Return a number that equal tables have in common."""
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


def listed(default: Any, description: str, *, least: int = 0, most: int = 1000, **options: Any) -> Any:
    """Declare a key that holds a list in TOML and a tuple in Python."""
    return Field(
        default, description=description, strict=False, min_length=least, max_length=most, **options
    )  # not strict: TOML and JSON have lists, a frozen table needs tuples


def with_own_keys(
    base: type[Table], *tables: type[Table], but: Container[str] = (), renamed: Mapping[str, str]
) -> type[Table]:
    """Return `base` with all keys of `tables` as well, each of which may be left out.

    Args:
        base: model of an entry in a list, which may override keys of these tables.
        tables: models of the tables; no two have a key of the same name.
        but: keys that an entry cannot override.
        renamed: keys that have another name in an entry.
    """
    own: dict[str, Any] = {}
    for table in tables:
        for key, field in table.model_fields.items():
            kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            said = f"{table.__name__.lower()}.{key} of this flow"
            if key not in but:
                own[renamed.get(key, key)] = (kind | None, Field(default=None, description=said))
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
