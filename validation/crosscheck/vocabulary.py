"""Every key of a scenario with the types and bounds of its values, read from the tables' own fields.

A new key is there by itself.
"""

from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from btqueue.scenario import Scenario


OWN = ("source", "load_kbps", "message_bytes", "start_s", "variant", "receive_window_segments")
"""Keys of tables that are tried as keys of a flow, too: they all reach it in the same way."""


class Kind(NamedTuple):
    """A type that a key can have.

    Attributes:
        type: a class, a `Literal`, or a tuple.
        bounds: of a number, by the names `ge`, `gt`, `le`, `lt`.
        default: of the key.
    """

    type: Any
    bounds: dict[str, float]
    default: Any


@cache
def vocabulary() -> dict[str, list[Kind]]:
    """Return every key by its dotted name, as a file writes it; `[]` stands for an entry of a list."""
    found: dict[str, list[Kind]] = {}
    for key, kind in _kinds(Scenario, [], "", None):
        found.setdefault(key, []).append(kind)
    return found


def _kinds(annotation: Any, metadata: list[Any], key: str, default: Any) -> Iterator[tuple[str, Kind]]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = [m for one in arguments[1:] for m in (one.metadata if isinstance(one, FieldInfo) else [one])]
        yield from _kinds(arguments[0], [*metadata, *inner], key, default)
    elif origin in (Union, UnionType):
        for argument in arguments:
            yield from _kinds(argument, metadata, key, default)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            inside = f"{key}.{field.serialization_alias or name}".lstrip(".")
            yield from _kinds(field.annotation, field.metadata, inside, field.default)
    elif annotation is not NoneType:
        bounds = {n: getattr(m, n) for m in metadata for n in ("ge", "gt", "le", "lt") if hasattr(m, n)}
        yield key, Kind(annotation, bounds, default)
        if origin is tuple:
            yield from _kinds(arguments[0], [], f"{key}[]", None)
