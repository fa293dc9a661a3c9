"""Ground rules of every scenario table: frozen, strict, no unknown keys, finite numbers, lists as tuples."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model


class Table(BaseModel):
    """A frozen table of a scenario.

    Strict: ``"5"`` is not 5, ``true`` is not 1 and 5.0 is not a whole number; a whole number is taken where
    a real one is asked for. Infinities and NaN are refused, and so is every key that is not declared.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
    )


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
        base: an entry of a list, which may have keys of these tables of its own.
        tables: whose keys these are; no two have one of the same name.
        but: keys that an entry cannot have of its own.
        renamed: keys that are called otherwise in an entry.
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
