"""The keys that may be chosen, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from btqueue.scenario import Problem, ScenarioError
from btqueue.scenario.polling import DISCIPLINES
from btqueue.study.value_ranges import Interval, keyed_values, label, parse_values, values_of

Place = tuple[float, ...]
"""A point of the search: of each choice the number of its value, or, if it is continuous, a share (0 to 1) of
its range."""

Choices = Mapping[str, Any] | Iterable[str]
"""Values by key, or texts ``key=values``."""


@dataclass(frozen=True)
class Choice:
    """A key and the values that it may have.

    Attributes:
        key: dotted key.
        values: to choose from; among equally good points the first value wins; empty for a continuous key.
        interval: of a continuous key.
    """

    key: str
    values: tuple[Any, ...] = ()
    interval: Interval | None = None

    @property
    def continuous(self) -> bool:
        """Whether any value of a range may be chosen."""
        return self.interval is not None

    @property
    def ordered(self) -> bool:
        """Whether it makes sense to go up and down: numbers, not names."""
        return self.continuous or all(
            isinstance(value, int | float) and not isinstance(value, bool) for value in self.values
        )

    def at(self, place: float) -> Any:
        """Return the value at a place."""
        if self.interval is None:
            return self.values[int(place)]
        if place in (0.0, 1.0):
            return float(self.interval.low if place == 0 else self.interval.high)
        return float(self.interval.at(place))

    def shown(self, value: Any) -> str:
        """Return a value as tables show it, a polling discipline with its plain name."""
        if isinstance(value, float):
            return f"{value:.6g}"
        if self.key == "polling.discipline":
            return f"{value} ({DISCIPLINES[value].plain})"
        return label(value)

    def __str__(self) -> str:
        if self.interval is not None:
            scale = " (logarithmic)" if self.interval.scale == "log" else ""
            return f"{self.key} from {self.interval.low:g} to {self.interval.high:g}{scale}"
        return f"{self.key}, {len(self.values)} values"


def parse_choices(choose: Choices) -> tuple[Choice, ...]:
    """Return the keys to choose and their values.

    Raises:
        ScenarioError: there are none, one is unknown or given twice, or its values cannot be read.
    """
    pairs = keyed_values(choose, "--choose")
    if not pairs:
        raise ScenarioError(
            Problem("there is nothing to choose: name a key, as in --choose polling.limit=1..25")
        )
    return tuple(parse_choice(key, values) for key, values in pairs)


def parse_choice(key: str, values: Any) -> Choice:
    """Return one key and its values."""
    spread = parse_values(key, values)
    if isinstance(spread, tuple):
        return Choice(key, spread)
    if not spread.whole and spread.count is None and spread.step is None:
        return Choice(key, interval=spread)
    if spread.scale == "lin" and spread.count is None and spread.step is None:
        spread = replace(spread, low=int(spread.low), high=int(spread.high))  # by steps of 1
    return Choice(key, values_of(key, spread))
