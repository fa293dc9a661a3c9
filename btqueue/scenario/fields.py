"""Ground rules of every scenario table: frozen, strict, no unknown keys, finite numbers, lists as tuples."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


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
