"""The keys of a scenario that a sensitivity study varies, and how far."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from btqueue.scenario import Scenario, ScenarioError
from btqueue.study.comparison import metric_of
from btqueue.study.points import (
    Interval,
    checked_value,
    is_number,
    known_key,
    label,
    parse_values,
    scenario_with,
    takes_whole_numbers,
)

SHARE = 0.1
"""How far keys are varied by default, as a share of their value."""
OF_THE_MODEL = "run.jitter_s"
"""The one key of `[run]` that describes the network and not how it is simulated."""
LINKS = ("radio.links[", "network.outside_links[")
"""Lists of links. They have few entries, on which flows often depend; lists of flows may have many."""
UNITS = {"_s": 1e-3, "ber": 1e-6, "per": 1e-3, "loss": 1e-3}
"""By the end of a key's name: a small change of a key that is 0."""


@dataclass(frozen=True)
class Factor:
    """A key that takes numbers.

    Attributes:
        key: dotted.
        value: its value in the scenario.
        whole: whether it takes whole numbers only.
        spread: its plausible range, None if the value is 0.
    """

    key: str
    value: float
    whole: bool
    spread: Interval | None

    @property
    def ends(self) -> tuple[float, ...]:
        """Ends of the spread, without the value itself."""
        if self.spread is None:
            return ()
        return tuple(end for end in (self.spread.low, self.spread.high) if end != self.value)

    @property
    def unit(self) -> float:
        """Unit of small changes of the key: its value, or a small number if the value is 0."""
        if self.value:
            return abs(self.value)
        return next((unit for end, unit in UNITS.items() if self.key.endswith(end)), 1 if self.whole else 1.0)


def factors(
    scenario: Scenario,
    keys: Sequence[str] | None = None,
    spread: Mapping[str, str | Interval] | None = None,
    share: float = SHARE,
) -> list[Factor]:
    """Return the keys to vary, in the order of the scenario's tables or as they are named.

    Args:
        scenario: gives their values.
        keys: dotted names; by default every key of a table that holds a number, but none of `[run]`, and
            the numbers in entries of `LINKS`.
        spread: by key, the range in which it may lie, as ``"200..400"`` or ``"log(1e-6,1e-4)"``.
        share: width of the other ranges: the value less and plus this share of it, whole numbers at least by
            one, and not beyond the limits of the key.

    Raises:
        ScenarioError: a key is unknown, holds no number, belongs to `[run]` or has no meaning in the
            scenario; or a range cannot be read.
    """
    if not 0 < share < 1:
        raise ScenarioError(f"a spread of {share:.0%}: give more than 0 % and less than 100 %")
    ranges = {key: _range(key, given) for key, given in (spread or {}).items()}
    wanted = list(numeric_keys(scenario)) if keys is None else list(dict.fromkeys([*keys, *ranges]))
    values = {key: _number(scenario, key) for key in [*wanted, *ranges]}
    for key in (*(keys or ()), *ranges):
        scenario.changed({key: values[key]})  # refuses a key that says nothing about the scenario
    return [_factor(scenario, key, values[key], ranges.get(key), share) for key in wanted]


def coordinates(metrics: Iterable[str], varied: Iterable[Factor], **more: Iterable[Any]) -> dict[str, Any]:
    """Return the coordinates of a study's dataset; *more* are further coordinates along the metrics."""
    names, factors = list(metrics), list(varied)
    nowhere = Interval(math.nan, math.nan)
    spreads = [nowhere if factor.spread is None else factor.spread for factor in factors]
    return {
        "metric": names,
        "units": ("metric", [metric_of(name).unit for name in names]),
        **{name: ("metric", list(values)) for name, values in more.items()},
        "key": [factor.key for factor in factors],
        "value": ("key", [float(factor.value) for factor in factors]),
        "low": ("key", [float(spread.low) for spread in spreads]),
        "high": ("key", [float(spread.high) for spread in spreads]),
    }


def numeric_keys(scenario: Scenario) -> dict[str, float]:
    """Return the value of every key that is varied by default, by dotted key."""
    tables = {name: table for name, table in scenario.to_dict().items() if isinstance(table, dict)}
    values = {f"{name}.{key}": value for name, table in tables.items() for key, value in table.items()}
    values |= {key: scenario.value_of(key) for key in keys_in_lists(scenario) if key.startswith(LINKS)}
    return {key: value for key, value in values.items() if is_number(value) and not _only_runs(key)}


def keys_in_lists(scenario: Scenario) -> list[str]:
    """Return the keys that hold a number in an entry of a list, as `radio.links[1].ber`."""
    tables = {name: table for name, table in scenario.to_dict().items() if isinstance(table, dict)}
    return [
        f"{name}.{key}[{number}].{inner}"
        for name, table in tables.items()
        for key, entries in table.items()
        if isinstance(entries, list | tuple)
        for number, entry in enumerate(entries, 1)
        if isinstance(entry, dict)
        for inner, value in entry.items()
        if is_number(value)
    ]


def _only_runs(key: str) -> bool:
    return key.startswith("run.") and key != OF_THE_MODEL


def _number(scenario: Scenario, key: str) -> float:
    value = scenario.value_of(known_key(key))
    if _only_runs(key):
        why = f"{key}: says how to simulate, and is no property of the network"
    elif value is None:
        why = f"{key}: is unset in this scenario: set it, with --set {key}=..."
    elif not is_number(value):
        why = f"{key} = {label(value)}: only keys that hold a number can be varied"
    else:
        return value
    raise ScenarioError(why, key)


def _range(key: str, given: str | Interval) -> Interval:
    found = given if isinstance(given, Interval) else parse_values(known_key(key), given)
    if isinstance(found, Interval) and found.open:
        whole = takes_whole_numbers(key)
        low, high = (
            checked_value(key, int(end) if whole and float(end).is_integer() else end)
            for end in (found.low, found.high)
        )
        return replace(found, low=low, high=high, whole=whole)
    raise ScenarioError(f"{key}: a spread is a range: write low..high or log(low,high)", key, given)


def _factor(scenario: Scenario, key: str, value: float, spread: Interval | None, share: float) -> Factor:
    whole = takes_whole_numbers(key)
    if spread is None and (value or whole):
        width = max(1, round(share * abs(value))) if whole else share * abs(value)
        low, high = (
            value if scenario_with(scenario, {key: end}) is None else end
            for end in (value - width, value + width)
        )
        spread = Interval(low, high, whole=whole) if low < high else None
    return Factor(key, value, whole, spread)
