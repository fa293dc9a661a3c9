"""Linear expressions of metrics and scenario keys, as an objective or a bound is written.

    expression := ["-"] term (("+" | "-") term)*
    term       := number (("*" | "/") number)* [unit] | factor (("*" | "/") factor)*
    factor     := number | quantity                    with one quantity in a term, which divides nothing
    quantity   := metric | metric "[" who "]" | key | function "(" metric ["," who] ")"
    function   := "mean" | "min" | "max" | "sum" | "p50" | "p90" | "p95" | "p99"
    who        := name of a flow or a group | place

A metric stands for its mean over flows (or links, or queues), `goodput_kbps[download]` for the value of the
flow of this name, or for the mean of a group. A place is the number of a flow, link or queue: the first is
`goodput_kbps[1]`. Of a metric of links, a flow or a group names the links of its peripherals. A percentile is
the percentile of the worst flow: `p95(delay_s, sensors)` is `max(delay_p95_s, sensors)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, Protocol

import numpy as np

from btqueue.scenario import METRICS, Scenario, ScenarioError
from btqueue.scenario.errors import shown
from btqueue.scenario.metrics import LINK_METRICS, NOT_OF_FLOWS, PERCENTILE_OF, PERCENTILES, unit_of
from btqueue.scenario.problems import NUMBER, SYNONYMS, UNITS, all_keys, closest, field_at

Aggregate = Literal["mean", "min", "max", "sum"]
AGGREGATES: Mapping[str, Aggregate] = {
    **{"mean": "mean", "min": "min", "max": "max", "sum": "sum"},
    **{f"p{percent}": "max" for percent in PERCENTILES},
}
"""By the name that an expression calls them; a percentile is taken of the flow where it is greatest."""
MOST_NAMES = 12
"""Names of flows that a message lists."""

NAME = re.compile(r"[A-Za-z_](?:[\w.]|\[\d+\])*")
UNIT = re.compile(
    "(?:"
    + "|".join(re.escape(unit) for unit in sorted({u for of in UNITS.values() for u in of}, key=len)[::-1])
    + r")(?![\w.(/])"
)
WORD = re.compile(r"[^\s*+()<>=/-][^\s*+()<>=-]*")


@dataclass(frozen=True)
class Quantity:
    """A metric of an answer, or a key of the scenario.

    Attributes:
        name: name of the metric, or the dotted key.
        aggregate: over flows (links, queues); means nothing for a key.
        places: places of the flows (links, queues) whose values are meant, from 1; empty for all of them.
        who: how the expression calls them, "" for all of them.
    """

    name: str
    aggregate: Aggregate = "mean"
    places: tuple[int, ...] = ()
    who: str = ""

    @property
    def is_key(self) -> bool:
        """Whether it is a key, which is known before anything is solved."""
        return self.name not in METRICS

    @property
    def unit(self) -> str:
        """Its unit; "" for a key whose name does not say."""
        return METRICS[self.name].unit if self.name in METRICS else unit_of(self.name)

    def of(self, value: Any) -> float:
        """Return the aggregate over the parts that are meant; NaN if there is none.

        Args:
            value: estimate of the metric, with its `mean`, and the `means` of its parts if it has some.
        """
        if not self.places and (self.aggregate == "mean" or not value.means):
            return value.mean
        return float(self.over(np.array([value.means]))[0])

    def over(self, values: np.ndarray) -> np.ndarray:
        """Return the aggregate in each replication, shape (replications,), NaN where there is no value.

        `min` and `max` take the part that is least or greatest in the mean over the replications: the least
        of each replication would be smaller by chance alone.

        Args:
            values: values of each part, shape (replications, parts).
        """
        if self.places:
            values = values[:, [place - 1 for place in self.places if place <= values.shape[1]]]
        there = ~np.isnan(values)
        found = np.full(len(values), np.nan)
        if self.aggregate in ("mean", "sum"):
            counts = there.sum(axis=1)
            shares = counts if self.aggregate == "mean" else np.minimum(counts, 1)
            total = np.where(there, values, 0.0).sum(axis=1)
            return np.divide(total, shares, out=found, where=counts > 0)
        values = values[:, there.any(axis=0)]
        if not values.shape[1]:
            return found
        means = np.nanmean(values, axis=0)
        return values[:, int(means.argmin() if self.aggregate == "min" else means.argmax())]

    def __str__(self) -> str:
        if self.aggregate == "mean":
            return f"{self.name}[{self.who}]" if self.who else self.name
        return f"{self.aggregate}({self.name}{self.who and f', {self.who}'})"


class Metrics(Protocol):
    """The metrics of replications, by name."""

    def get(self, name: str, /) -> np.ndarray | None:
        """Return a metric, shape (replications, ...); None if there is none of this name."""


@dataclass(frozen=True)
class Linear:
    """A linear combination of quantities and a constant, in the units of the vocabulary.

    Attributes:
        terms: factor and quantity; each quantity once.
        constant: the added number.
        units: the units that were written after numbers, with the units of the vocabulary.
    """

    terms: tuple[tuple[float, Quantity], ...]
    constant: float = 0.0
    units: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics in it."""
        return tuple(quantity.name for _, quantity in self.terms if not quantity.is_key)

    @property
    def keys(self) -> tuple[str, ...]:
        """The scenario keys in it."""
        return tuple(quantity.name for _, quantity in self.terms if quantity.is_key)

    def value(self, metrics: Mapping[str, Any], keys: Mapping[str, Any]) -> float:
        """Return its value at a point; NaN if the point has no value of one of the metrics."""

        def of(quantity: Quantity) -> float:
            return quantity.of(metrics[quantity.name]) if quantity.name in metrics else math.nan

        return self._total(self.constant, of, keys)

    def samples(self, values: Metrics, count: int, keys: Mapping[str, Any]) -> np.ndarray:
        """Return its value in each of `count` replications; NaN where there is none.

        Args:
            values: of the metrics, shape (count, ...).
            count: of replications.
            keys: numbers of the scenario keys in it.
        """

        def of(quantity: Quantity) -> np.ndarray | float:
            found = values.get(quantity.name)
            return math.nan if found is None else quantity.over(np.reshape(found, (count, -1)))

        return self._total(np.full(count, self.constant), of, keys)

    def _total(self, total: Any, of: Callable[[Quantity], Any], keys: Mapping[str, Any]) -> Any:
        for factor, quantity in self.terms:
            total = total + factor * (keys[quantity.name] if quantity.is_key else of(quantity))
        return total

    @property
    def is_finite(self) -> bool:
        """Whether no number in it is beyond the range of a float."""
        return all(map(math.isfinite, (self.constant, *(factor for factor, _ in self.terms))))

    def minus(self, other: Linear) -> Linear:
        """Return the difference of two expressions."""
        factors: dict[Quantity, float] = {}
        for sign, side in ((1.0, self), (-1.0, other)):
            for factor, quantity in side.terms:
                factors[quantity] = factors.get(quantity, 0.0) + sign * factor
        terms = tuple((factor, quantity) for quantity, factor in factors.items() if factor != 0)
        return Linear(terms, self.constant - other.constant, self.units + other.units)

    def times(self, factor: float) -> Linear:
        """Return the expression multiplied by a number."""
        terms = tuple((factor * f, quantity) for f, quantity in self.terms)
        return Linear(terms, factor * self.constant, self.units)


def parse_expression(text: str, option: str, scenario: Scenario | None = None) -> Linear:
    """Return a linear expression, for `check_units`.

    Args:
        text: the expression.
        option: the option that gave the text, with which messages begin ("--maximize").
        scenario: whose flows and groups it may name.

    Raises:
        ScenarioError: it cannot be read, or a name is no metric and no key; the message suggests the
            nearest.
    """
    return _Reader(text, option, scenario).read()


def parse_metric(text: str, option: str, scenario: Scenario) -> Quantity:
    """Return a metric, or a quantity made of one: `goodput_kbps[download]`, `min(goodput_kbps, sensors)`.

    Raises:
        ScenarioError: as `parse_expression`; or it is anything else.
    """
    reader = _Reader(text, option, scenario)
    quantity = reader.quantity()
    if quantity.is_key or reader.rest():
        reader.fail("must be a metric, as in goodput_kbps or min(goodput_kbps)")
    return quantity


def parse_quantity(text: str, option: str, scenario: Scenario | None = None) -> Linear:
    """Return a linear expression that stands alone; arguments as of `parse_expression`.

    Raises:
        ScenarioError: as `parse_expression`; or it names no metric and no key, or a unit does not go with it.
    """
    linear = parse_expression(text, option, scenario)
    if not linear.terms:
        raise ScenarioError(f"{option} {shown(text.strip())}: names no metric and no key", value=text)
    check_units(linear, f"{option} {shown(text.strip())}")
    return linear


def precision_keys(text: str) -> dict[str, Any]:
    """Return the keys that a precision sets, as in "max(delay_p95_s) to 5 %".

    Raises:
        ScenarioError: it cannot be read.
    """
    written = re.fullmatch(rf"\s*(\S.*?)\s+to\s+({NUMBER})\s*%\s*", text, re.DOTALL)
    if written is None:
        how = "write QUANTITY to NUMBER %, as in delay_p95_s to 5 %"
        raise ScenarioError(f"--until {shown(text)}: {how}", value=text)
    return {"run.precision_of": written[1], "run.precision": float(written[2]) / 100}


def check_units(linear: Linear, option: str) -> None:
    """Make sure that each unit written in an expression belongs to a quantity in it.

    Raises:
        ScenarioError: one is not.
    """
    there = {quantity.unit for _, quantity in linear.terms}
    for written, base in linear.units:
        if base not in there:
            of = ", ".join(f"{quantity} is in {quantity.unit or 'no unit'}" for _, quantity in linear.terms)
            raise ScenarioError(f"{option}: {written} does not go with it: {of}", value=written)


def number_of_key(scenario: Scenario, key: str, option: str) -> float:
    """Return the number that a key in an expression has.

    Raises:
        ScenarioError: its value is no number.
    """
    value = scenario.value_of(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScenarioError(f"{option}: {key} is {shown(value)}, which is no number", key, value)
    return float(value)


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str, option: str, scenario: Scenario | None) -> None:
        self.text, self.option, self.scenario, self.place = text, option, scenario, 0
        self.units: list[tuple[str, str]] = []

    def read(self) -> Linear:
        if not self.text.strip():
            raise ScenarioError(f"{self.option}: there is nothing to read; name a metric")
        linear, sign = Linear(()), -1.0 if self.accept("-") else 1.0
        while True:
            linear = linear.minus(self.term().times(-sign))
            if not linear.is_finite:
                self.fail("its numbers are too large together")
            if self.accept("+"):
                sign = 1.0
            elif self.accept("-"):
                sign = -1.0
            elif self.rest():
                rest = shown(self.rest())
                self.fail(f"{rest} cannot be read: write a linear expression, as in 2 * rtt_s + 0.1")
            else:
                return replace(linear, units=tuple(self.units))

    def term(self) -> Linear:
        value, quantity, sign = 1.0, None, "*"
        while sign:
            if (number := self.number()) is not None:
                if sign == "/" and (number == 0 or math.isinf(1 / number)):
                    self.fail("there is a division by 0, or by a number too close to it")
                value = value * number if sign == "*" else value / number
            elif quantity is None and sign == "*":
                quantity = self.quantity()
            else:
                self.fail("a metric or key can be multiplied or divided by a number, not by another one")
            sign = self.match(re.compile("[*/]"))
        return Linear((), value * self.unit()) if quantity is None else Linear(((value, quantity),))

    def number(self) -> float | None:
        """Return the number that comes next, None if there is none."""
        if (written := self.match(re.compile(NUMBER))) is None:
            return None
        if math.isinf(number := float(written)):
            self.fail(f"{shown(written).strip(chr(34))} is too large a number")
        return number

    def unit(self) -> float:
        """Return the factor of the unit behind a number."""
        if (written := self.match(UNIT)) is not None:
            base = next(base for base, units in UNITS.items() if written in units)
            self.units.append((written, base))
            return UNITS[base][written]
        if (word := self.match(WORD)) is not None:
            known = [unit for units in UNITS.values() for unit in units]
            guess = closest(word, known)
            if word in METRICS or "." in word or self.accept("("):
                self.fail(f"write a * between the number and {word}")
            units = f"did you mean {guess}?" if guess else f"units: {', '.join(known)}"
            self.fail(f"{shown(word)} is no unit; {units}")
        return 1.0

    def quantity(self) -> Quantity:
        name = self.match(NAME)
        if name is None:
            rest = self.rest()
            self.fail(f"a metric or key is missing {f'before {shown(rest)}' if rest else 'at the end'}")
        metric = name.partition("[")[0]
        if metric in METRICS:
            self.place -= len(name) - len(metric)
            return self.of_some(metric, "mean", "]") if self.accept("[") else Quantity(metric)
        if not self.accept("("):
            return Quantity(_known(name, self.option))
        if name not in AGGREGATES:
            guess = closest(name, AGGREGATES)
            hint = f"did you mean {guess}?" if guess else "write mean(...), min(...) or max(...) over flows"
            self.fail(f"there is no function {shown(name)}; {hint}")
        metric = _known(self.match(NAME) or f"{name}()", self.option)
        if metric not in METRICS:
            self.fail(f"{metric} is a key of the scenario: it has one value, not one for each flow")
        if name.startswith("p"):
            if (name, metric) not in PERCENTILE_OF:
                there = ", ".join(dict.fromkeys(of for _, of in PERCENTILE_OF))
                self.fail(f"{metric} has no percentiles; {there} have")
            metric = PERCENTILE_OF[name, metric]
        if self.accept(","):
            return self.of_some(metric, AGGREGATES[name], ")")
        if not self.accept(")"):
            self.fail(f"{name}(...) takes the name of one metric, as in {name}(goodput_kbps)")
        return Quantity(metric, AGGREGATES[name])

    def of_some(self, metric: str, aggregate: Aggregate, end: str) -> Quantity:
        """Return the quantity over the flow, group or place that is named up to a closing bracket."""
        who = (self.match(re.compile(rf"[^{re.escape('[]()')}]+")) or "").strip()
        if not self.accept(end):
            self.fail(f"the bracket after {metric} is not closed")
        if who.isascii() and who.isdigit() and len(who) < 10:
            if (place := int(who)) == 0:
                self.fail(f"flows, links and queues are numbered from 1: {metric}[1] is the first one's")
            return Quantity(metric, aggregate, (place,), str(place))
        return Quantity(metric, aggregate, self.members(metric, who), who)

    def members(self, metric: str, who: str) -> tuple[int, ...]:
        """Return the places of the flows of this name or group, or of the links of their peripherals."""
        from btqueue.scenario.topology import topology

        if metric in NOT_OF_FLOWS and metric not in LINK_METRICS:
            self.fail(f"{metric} has no value for each flow, so that {shown(who)} cannot choose one")
        if self.scenario is None:
            self.fail(f"{shown(who)} names a flow, and no scenario is known")
        plan = topology(self.scenario)
        found = plan.members(who)
        if links := plan.links_of(found) if metric in LINK_METRICS else found:
            return links
        if found:
            self.fail(f"no peripheral is an end of {shown(who)}, so that it has no links of its own")
        names, groups = list(dict.fromkeys(plan.flow_names)), plan.groups
        guess = closest(who, [*groups, *names])
        meant = f"; did you mean {shown(guess)}? " if guess else "; "
        more = ", ..." if len(names) > MOST_NAMES else ""
        there = [f"the flows are {', '.join(names[:MOST_NAMES])}{more}"]
        there[:0] = [f"the groups are {', '.join(groups)}"] if groups else []
        self.fail(f"there is no flow and no group {shown(who)}{meant}{'; '.join(there)}")

    def rest(self) -> str:
        return self.text[self.place :].strip()

    def match(self, pattern: re.Pattern[str]) -> str | None:
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1
        if (found := pattern.match(self.text, self.place)) is None:
            return None
        self.place = found.end()
        return found[0]

    def accept(self, sign: str) -> bool:
        return self.match(re.compile(re.escape(sign))) is not None

    def fail(self, why: str) -> NoReturn:
        raise ScenarioError(f"{self.option} {shown(self.text.strip())}: {why}", value=self.text)


def _known(name: str, option: str) -> str:
    """Return the name of a metric or a key.

    Raises:
        ScenarioError: it is neither.
    """
    if name in METRICS or ("." in name and field_at(Scenario, name) is not None):
        return name
    guess = SYNONYMS.get(name) or closest(name, [*METRICS, *all_keys(Scenario)])
    hint = f"did you mean {guess}?" if guess else f"the metrics are {', '.join(METRICS)}"
    why = f"{shown(name)} is no metric and no key of a scenario; {hint}"
    raise ScenarioError(f"{option}: {why}", name, guess=guess)
