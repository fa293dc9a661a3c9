"""The points of a study: keys of the scenario over lists and ranges.

The values of a key are read, and checked by the key's own type. Points are all combinations of the values of
some keys (`grid`).
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.errors import all_read, shown
from btqueue.scenario.low_energy import USUAL_STEP_S
from btqueue.scenario.overrides import parse_sets
from btqueue.scenario.problems import NUMBER, known_field, parts_of, without_unit, wrong_value

SIGNED = rf"[-+]?{NUMBER}"
RANGE = re.compile(rf"({SIGNED}?)\.\.({SIGNED})(?::({SIGNED}))?")
"""``a..b`` or ``a..b:step``."""
CALL = re.compile(r"(lin|log)\s*\((.*)\)")
"""``lin(a,b,n)`` or ``log(a,b,n)``."""
MOST_VALUES = 1_000_000
"""Of one key."""
GRID = {"le.interval_s": USUAL_STEP_S}
"""Keys of real numbers with a grid, and its step."""
HOW = "write 1..25, 1..25:2, 5,10,20, lin(a,b,n) or log(a,b,n)"

ARRAY_OF_LISTS = re.compile(r"\[\s*(\[.*\])\s*\]", re.DOTALL)
"""``[["DH5"],["DH3","DH5"]]``."""
HOW_LISTS = "the values are lists: write A,[A,B] for the lists of A alone and of A and B"


@dataclass(frozen=True)
class Interval:
    """The values of a key between two ends.

    Attributes:
        low: least value.
        high: greatest value.
        scale: whether the values are evenly spaced, or their logarithms are.
        count: how many values a grid takes, None if the range does not say.
        step: distance of two values, None if the range does not say: then it is 1 between whole ends.
        whole: whether the key takes whole numbers only.
    """

    low: float
    high: float
    scale: Literal["lin", "log"] = "lin"
    count: int | None = None
    step: float | None = None
    whole: bool = False

    @property
    def open(self) -> bool:
        """Whether all values between the ends are meant."""
        return self.count is None and self.step is None

    def at(self, share: float) -> float:
        """Return the quantile at *share* (0 to 1) of a random value."""
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
        if self.scale == "log":
            low, high = (max(low, 0.5), high) if self.whole else (low, high)
            value = low * (high / low) ** share
        else:
            value = low + (high - low) * share
        return int(min(max(round(value), self.low), self.high)) if self.whole else value


def known_key(key: Any) -> str:
    """Return *key* if a scenario has it.

    Raises:
        ScenarioError: no scenario has it; the message suggests the nearest key.
    """
    if not isinstance(key, str):
        raise ScenarioError(f"keys must be texts, not {shown(key)}")
    parse_sets(Scenario, [f"{key}=0"])
    if "." not in key:
        raise ScenarioError(f"{key} is no key of a table: a study goes over keys such as polling.limit")
    return key


def keyed_values(over: Mapping[str, Any] | Iterable[str], option: str = "") -> list[tuple[str, Any]]:
    """Return keys and their values, given as a mapping or as texts ``key=values``.

    Args:
        over: keys and values.
        option: option of the command line that they come from, to begin messages with.

    Raises:
        ScenarioError: a text cannot be read, or a key is unknown or given twice.
    """
    pairs: list[tuple[str, Any]] = list(over.items()) if isinstance(over, Mapping) else []
    if not isinstance(over, Mapping):
        for text in [over] if isinstance(over, str) else over:
            key, equals, values = text.partition("=")
            if not equals:
                message = (
                    f"{option} {shown(text)} cannot be read: write KEY=VALUES, as in polling.limit=1..25"
                )
                raise ScenarioError(message.strip(), key, text)
            pairs.append((key.strip(), values.strip()))
    names = all_read(partial(known_key, key) for key, _ in pairs)
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise ScenarioError(f"{twice[0]} is given twice: list all of its values once", twice[0])
    return pairs


def parse_one(key: str, text: str) -> Any:
    """Return the value that ``key=text`` sets, None if it unsets the key."""
    return parse_sets(Scenario, [f"{key}={text}"])[key]


def parse_values(key: str, values: Any) -> Interval | tuple[Any, ...]:
    """Return the values of a key, given as a text or as a collection, checked by the key's own type.

    Raises:
        ScenarioError: they cannot be read, there are none, or one is none for the key.
    """
    if isinstance(values, str):
        spread = _parse_text(key, values.strip())
        if isinstance(spread, Interval):
            for end in (spread.low, spread.high):
                checked_value(key, int(end) if spread.whole and float(end).is_integer() else end)
            return spread
        values = spread
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise ScenarioError(f"{key}: {shown(values)} is no collection of values; {HOW}", key, values)
    found = tuple(checked_value(key, value) for value in values)
    if not found:
        raise ScenarioError(f"{key}: there are no values; {HOW}", key)
    labels = [label(value) for value in found]
    if len(set(labels)) < len(labels):
        again = next(text for place, text in enumerate(labels) if text in labels[:place])
        raise ScenarioError(f"{key}: the value {again} is given twice", key, again)
    return found


def values_of(key: str, spread: Interval | tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a key that a grid takes.

    Raises:
        ScenarioError: the range does not say how many they are, or they are too many.
    """
    if isinstance(spread, tuple):
        return spread
    low, high, step = spread.low, spread.high, spread.step
    if step is None and isinstance(low, int) and isinstance(high, int):
        step = 1
    if step is None and spread.scale == "lin":
        step = GRID.get(key)
    count = spread.count
    if count is None and (spread.scale == "log" or step is None):
        example = f"{spread.scale}({low:g},{high:g},11)"
        raise ScenarioError(f"{key}: the range does not say how many values: write {example}", key)
    step = step or 1
    if (count or (high - low) / step + 1) >= MOST_VALUES + 1:
        raise ScenarioError(f"{key}: more than {MOST_VALUES:,} values are too many", key)
    if count is not None:
        numbers = (np.linspace if spread.scale == "lin" else np.geomspace)(low, high, count).tolist()
    else:
        numbers = [low + place * step for place in range(math.floor((high - low) / step + 1e-9) + 1)]
        numbers = [number if isinstance(number, int) else float(f"{number:.12g}") for number in numbers]
    whole = spread.whole or all(isinstance(end, int) for end in (low, high, step))
    if whole and spread.count is None and any(number != round(number) for number in numbers):
        raise ScenarioError(f"{key}: takes whole numbers, so a range needs whole steps", key)
    if whole and (spread.whole or spread.count is None):
        numbers = list(dict.fromkeys(round(number) for number in numbers))
    return tuple(checked_value(key, number) for number in numbers)


def _parse_text(key: str, text: str) -> Interval | list[Any]:
    if get_origin(known_field(Scenario, key).annotation) is tuple:
        return _parse_lists(key, text)
    if match := RANGE.fullmatch(text):
        low, high, step = (None if part is None else _number(key, part) for part in match.groups())
        return _interval(key, text, low, high, step=step)
    if match := CALL.fullmatch(text):
        parts = [part.strip() for part in match[2].split(",")]
        if len(parts) not in (2, 3):
            raise ScenarioError(f"{key}: {shown(text)} needs two ends and a number of values", key, text)
        low, high, *count = (_number(key, part) for part in parts)
        low, high = float(low), float(high)  # whole ends of a..b would mean steps of 1
        if count and not (isinstance(count[0], int) and count[0] >= 2):
            raise ScenarioError(f"{key}: {shown(text)}: give two values or more", key, text)
        scale: Any = match[1]
        return _interval(key, text, low, high, scale=scale, count=int(count[0]) if count else None)
    if re.search(r"\b(lin|log)\(", text):
        raise ScenarioError(f"{key}: {shown(text)}: lin(...) and log(...) stand alone; {HOW}", key, text)
    return [parse_one(key, part) for part in split(text) if part.strip()]


def _parse_lists(key: str, text: str) -> list[Any]:
    """Return the lists that a text gives: a value without brackets is a list of one entry."""
    inside = match[1] if (match := ARRAY_OF_LISTS.fullmatch(text)) else text
    values = [parse_one(key, part) for part in split(inside) if part.strip()]
    ranges = RANGE.fullmatch(text) or CALL.fullmatch(text)
    entries = [entry for value in values for entry in value]
    if ranges or any(isinstance(entry, str) and re.search(r"[][]", entry) for entry in entries):
        raise ScenarioError(f"{key}: {shown(text)} cannot be read; {HOW_LISTS}", key, text)
    return values


def _interval(key: str, text: str, low: Any, high: Any, **options: Any) -> Interval:
    if low >= high:
        raise ScenarioError(f"{key}: {shown(text)}: the first end must be the smaller one", key, text)
    if options.get("scale") == "log" and low <= 0:
        raise ScenarioError(f"{key}: {shown(text)}: a range of logarithms starts above 0", key, text)
    if (step := options.get("step")) is not None and step <= 0:
        raise ScenarioError(f"{key}: {shown(text)}: the step must be above 0", key, text)
    return Interval(low, high, whole=takes_whole_numbers(key), **options)


def _number(key: str, text: str) -> float:
    if not re.fullmatch(SIGNED, text):
        why = f"is no number; {without_unit(key, text) or HOW}"
    elif not math.isfinite(value := float(text)):
        why = "is too large a number"
    else:  # int() refuses texts of thousands of digits, leading zeros included
        return int(Decimal(text)) if re.fullmatch(r"[-+]?\d+", text) else value
    raise ScenarioError(f"{key}: {shown(text)} {why}", key, text)


def split(text: str) -> list[str]:
    """Split at commas that are not inside brackets, braces or quotes."""
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += sign
    return parts


def is_number(value: object) -> bool:
    """Whether a value is a number; `True` and `False` are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def takes_whole_numbers(key: str) -> bool:
    """Whether the numbers that a key takes are whole: its type says so, whatever its bounds."""
    parts = list(parts_of(known_field(Scenario, key).annotation))
    return int in parts and float not in parts


def checked_value(key: str, value: Any) -> Any:
    """Return *value* as the scenario holds it: real keys get real numbers, lists stay lists.

    Only the key's own type is asked: a value that does not go with other keys is found when its point is
    evaluated, and concerns that point alone.

    Raises:
        ScenarioError: no scenario can have this value.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        parse_one(key, "none")
        return None
    try:
        _checker(key).validate_python(value)
    except ValidationError:
        if "[" not in key:
            Scenario().changed({key: value})  # names the entry of a list that is wrong
        raise ScenarioError(wrong_value(key, known_field(Scenario, key), value)) from None
    if isinstance(value, int) and not isinstance(value, bool) and not takes_whole_numbers(key):
        return float(value)
    return list(value) if isinstance(value, tuple) else value


@lru_cache
def _checker(key: str) -> TypeAdapter[Any]:
    """Return the check of a key's own type."""
    field = known_field(Scenario, key)
    annotation: Any = field.annotation
    is_table = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    config = None if is_table else ConfigDict(strict=True, allow_inf_nan=False)
    for constraint in field.metadata:  # without the default, which may depend on other keys
        annotation = Annotated[annotation, constraint]
    return TypeAdapter(annotation, config=config)


def scenario_with(scenario: Scenario, changes: Mapping[str, Any]) -> Scenario | None:
    """Return the scenario with some keys changed; None if it cannot have these values."""
    try:
        return scenario.changed(changes)
    except ScenarioError:
        return None


def label(value: Any) -> str:
    """Return a value as a user would write it."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return json.dumps(value, default=lambda table: table.model_dump(mode="json", exclude_unset=True))


Changes = dict[str, Any]
"""Changes of a point to the scenario, by dotted key, as `Scenario.changed` takes them."""
Over = Mapping[str, Any] | Iterable[str]
"""Values by key, or texts ``key=values``; see `grid`."""
Progress = Callable[[int, int], None]
"""Called with the number of points that are finished, and of all that are known to be needed."""
MOST_POINTS = 10_000_000  # more are surely a slip


@dataclass(frozen=True)
class Points:
    """The points of a study, numbered from 0: all combinations, of which the last key varies fastest.

    Attributes:
        keys: that they change; each is a dimension.
        columns: values of each key.
    """

    keys: tuple[str, ...]
    columns: tuple[tuple[Any, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return tuple(map(len, self.columns))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, number: int) -> Changes:
        """Return the changes of point *number*, 0 to len - 1."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        places = np.unravel_index(number, self.shape)
        return {
            key: column[place] for key, column, place in zip(self.keys, self.columns, places, strict=True)
        }

    def coordinates(self) -> dict[str, tuple[str, np.ndarray]]:
        """Return the labels along each dimension: numbers, truths, or texts of values of several kinds."""
        found = {}
        for key, values in zip(self.keys, self.columns, strict=True):
            alike = all(map(is_number, values)) or all(isinstance(value, bool) for value in values)
            found[key] = key, np.array(values if alike else list(map(label, values)))
        return found


Numbered = Points | Sequence[Changes]
"""Changes of a scenario, numbered from 0."""


def grid(over: Over) -> Points:
    """Return every combination of the values of some keys.

    Args:
        over: values by dotted key: a list, a `range`, an array, or a text such as ``"1..25"``, ``"5,10,20"``,
            ``"lin(0,1,11)"`` or ``"log(1e-6,1e-3,7)"``; or texts of the form ``key=values``, as on the
            command line.

    Raises:
        ScenarioError: a key is unknown or given twice, values cannot be read or are none for the key, or
            there are too many points.
    """
    pairs = keyed_values(over)
    read = all_read(partial(parse_values, *pair) for pair in pairs)
    axes = {key: values_of(key, spread) for (key, _), spread in zip(pairs, read, strict=True)}
    if not axes:
        raise ScenarioError("there is nothing to go over: name a key and its values")
    found = Points(tuple(axes), tuple(axes.values()))
    if len(found) > MOST_POINTS:
        sizes = " x ".join(str(size) for size in found.shape)
        raise ScenarioError(f"{sizes} = {len(found):,} points are too many (at most {MOST_POINTS:,})")
    return found
