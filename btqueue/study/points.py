"""The points of a study: keys of the scenario over grids, lists, ranges, samples or the rows of a file.

They are all combinations of the values of some keys (`grid`), or chosen combinations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from btqueue.files import UnusableFile, read_bytes
from btqueue.scenario import Problem, ScenarioError
from btqueue.study.value_ranges import (
    MOST_VALUES,
    Interval,
    checked_value,
    keyed_values,
    known_key,
    label,
    parse_one,
    parse_values,
    values_of,
)
from btqueue.text_files import BadText, decoded, read_table

Changes = dict[str, Any]
"""Changes of a point to the scenario, by dotted key, as `Scenario.changed` takes them."""

MOST_POINTS = 10_000_000  # more are surely a slip


@dataclass(frozen=True)
class Points:
    """The points of a study, numbered from 0.

    Attributes:
        keys: that they change.
        columns: values of each key.
        listed: whether they are chosen combinations, one value of each key a point, with one dimension
            "point"; else they are all combinations, each key is a dimension, and the last varies fastest.
    """

    keys: tuple[str, ...]
    columns: tuple[tuple[Any, ...], ...]
    listed: bool = False

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return ("point",) if self.listed else self.keys

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        lengths = tuple(map(len, self.columns))
        return (lengths or (0,))[:1] if self.listed else lengths

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, number: int) -> Changes:
        """Return the changes of point *number*, 0 to len - 1."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        places = [number] * len(self.keys) if self.listed else np.unravel_index(number, self.shape)
        every = zip(self.keys, self.columns, places, strict=True)
        return {key: column[place] for key, column, place in every}

    def coordinates(self) -> dict[str, tuple[str, np.ndarray]]:
        """Return the labels along each dimension, or the number of each point and its value of each key."""
        numbers = {"point": ("point", np.arange(len(self)))} if self.listed else {}
        every = zip(self.keys, self.columns, strict=True)
        return numbers | {key: ("point" if self.listed else key, as_labels(column)) for key, column in every}


Listing = partial(Points, listed=True)
"""Makes chosen points."""


def grid(over: Mapping[str, Any] | Iterable[str]) -> Points:
    """Return every combination of the values of some keys.

    Args:
        over: values by dotted key: a list, a `range`, an array, or a text such as ``"1..25"``, ``"5,10,20"``,
            ``"lin(0,1,11)"`` or ``"log(1e-6,1e-3,7)"``; or texts of the form ``key=values``, as on the
            command line.

    Raises:
        ScenarioError: a key is unknown or given twice, values cannot be read or are none for the key, or
            there are too many points.
    """
    axes = {key: values_of(key, spread) for key, spread in _spreads(over)}
    if not axes:
        raise ScenarioError(Problem("there is nothing to go over: name a key and its values"))
    found = Points(tuple(axes), tuple(axes.values()))
    if len(found) > MOST_POINTS:
        sizes = " x ".join(str(size) for size in found.shape)
        raise ScenarioError(
            Problem(f"{sizes} = {len(found):,} points are too many (at most {MOST_POINTS:,})")
        )
    return found


def latin_hypercube(over: Mapping[str, Any] | Iterable[str], count: int, seed: int) -> Points:
    """Return *count* points that fill the ranges of some keys evenly (McKay, Beckman and Conover 1979).

    Of each key, every one of *count* equally likely parts of its range holds exactly one point.

    Args:
        over: by dotted key, a range ``"a..b"`` or ``"lin(a,b)"`` (uniform), ``"log(a,b)"`` (uniform in the
            logarithm), or a list of values, equally likely. Keys that take whole numbers get
            whole numbers.
        count: number of points.
        seed: of the random numbers.

    Raises:
        ScenarioError: as `grid`, or *count* is not at least 1.
    """
    from scipy.stats import qmc

    if not 1 <= count <= MOST_VALUES:
        raise ScenarioError(Problem(f"a sample of {count} points: give 1 to {MOST_VALUES:,}"))
    spreads = [
        (key, spread if _is_open(spread) else values_of(key, spread)) for key, spread in _spreads(over)
    ]
    if not spreads:
        raise ScenarioError(Problem("there is nothing to sample: name a key and its range"))
    shares = qmc.LatinHypercube(len(spreads), rng=seed).random(count)
    columns = [
        tuple(checked_value(key, spread.at(share)) for share in column)
        if isinstance(spread, Interval)
        else tuple(spread[int(share * len(spread))] for share in column)
        for (key, spread), column in zip(spreads, shares.T, strict=True)
    ]
    return Listing(tuple(key for key, _ in spreads), tuple(columns))


def listing(rows: Sequence[Mapping[str, Any]]) -> Points:
    """Return chosen points, each a mapping from the same dotted keys to values.

    Raises:
        ScenarioError: there are none, they do not have the same keys, or a key or value is wrong.
    """
    if not rows:
        raise ScenarioError(Problem("there are no points"))
    keys = tuple(known_key(key) for key in rows[0])
    if not keys:
        raise ScenarioError(Problem("the points change no key"))
    for number, row in enumerate(rows):
        if set(row) != set(keys):
            difference = ", ".join(sorted(set(row) ^ set(keys)))
            raise ScenarioError(Problem(f"point {number} has not the same keys as point 0: {difference}"))
    return Listing(keys, tuple(tuple(checked_value(key, row[key]) for row in rows) for key in keys))


def read_points(path: Path) -> Points:
    """Return the points of a CSV file: a heading of dotted keys, then one row a point.

    Values are written as after ``--set key=``.

    Raises:
        ScenarioError: the file cannot be read, or a key or value in it is wrong (with the line).
    """
    try:
        keys, lines = read_table(decoded(read_bytes(path)))
    except UnusableFile as error:
        raise ScenarioError(Problem(f"points {path}: {error}")) from None
    except BadText as error:
        raise ScenarioError(Problem(f"points {path}: cannot be read as CSV ({error})")) from None
    if not lines:
        raise ScenarioError(
            Problem(f"points {path}: write a heading of keys (polling.limit,...), then one row a point")
        )
    rows = []
    for line, cells in lines:
        try:
            rows.append(_row(keys, cells))
        except ScenarioError as error:
            raise ScenarioError(
                [Problem(f"points {path}, line {line}: {p.message}", p.key, p.value) for p in error.problems]
            ) from None
    return Listing(tuple(keys), tuple(zip(*rows, strict=True)))


def _row(keys: list[str], cells: list[str]) -> tuple[Any, ...]:
    if len(cells) != len(keys):
        raise ScenarioError(Problem(f"{len(cells)} values for {len(keys)} keys"))
    if empty := [key for key, cell in zip(keys, cells, strict=True) if not cell.strip()]:
        raise ScenarioError(Problem(f"there is no value of {empty[0]}", key=empty[0]))
    texts = [parse_one(known_key(key), cell) for key, cell in zip(keys, cells, strict=True)]
    return tuple(checked_value(key, value) for key, value in zip(keys, texts, strict=True))


def _spreads(over: Mapping[str, Any] | Iterable[str]) -> list[tuple[str, Any]]:
    """Return keys with an `Interval` or a tuple of values, checked."""
    return [(key, parse_values(key, values)) for key, values in keyed_values(over)]


def _is_open(spread: Any) -> bool:
    """Whether a range means all values between its ends."""
    return isinstance(spread, Interval) and spread.count is None and spread.step is None


def as_labels(values: Sequence[Any]) -> np.ndarray:
    """Return the values of a key as labels: numbers, truths, or texts if they are of several kinds."""
    if all(isinstance(value, bool) for value in values):
        return np.array(values, bool)
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return np.array(values, np.int64)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values, float)
    return np.array([label(value) for value in values])
