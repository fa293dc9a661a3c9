"""Linear expressions of metrics and scenario keys, as an objective or a bound is written.

    expression := ["-"] term (("+" | "-") term)*
    term       := number [unit] | number "*" quantity | quantity ["*" number | "/" number]
    quantity   := metric | metric "[" place "]" | key | ("mean" | "min" | "max") "(" metric ")"

A metric stands for its mean over flows (or links, or queues), with a place for the value of one of them: the
first is `goodput_kbps[1]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol

from btqueue.scenario import METRICS, Problem, Scenario, ScenarioError
from btqueue.scenario.errors import shown
from btqueue.scenario.problems import ENTRY, NUMBER, SYNONYMS, UNITS, all_keys, closest, field_at, unit_of

Aggregate = Literal["mean", "min", "max"]
AGGREGATES: Mapping[str, Aggregate] = {"mean": "mean", "min": "min", "max": "max"}
"""By the name that an expression calls them."""

NAME = re.compile(r"[A-Za-z_](?:[\w.]|\[\d+\])*")
UNIT = re.compile(
    "(?:"
    + "|".join(re.escape(unit) for unit in sorted({u for of in UNITS.values() for u in of}, key=len)[::-1])
    + r")(?![\w.(/])"
)
WORD = re.compile(r"[^\s*+()<>=-]+")


class Estimated(Protocol):
    """The value of a metric."""

    @property
    def mean(self) -> float:
        """Over flows, links or queues."""
        ...

    @property
    def means(self) -> tuple[float, ...]:
        """Of each flow, link or queue; empty for a metric of the whole network."""
        ...


@dataclass(frozen=True)
class Quantity:
    """A metric of an answer, or a key of the scenario.

    Attributes:
        name: of the metric, or the dotted key.
        aggregate: over flows (links, queues); means nothing for a key.
        place: of the flow (link, queue) whose value is meant, from 1; None for all of them.
    """

    name: str
    aggregate: Aggregate = "mean"
    place: int | None = None

    @property
    def is_key(self) -> bool:
        """Whether it is a key, which is known before anything is solved."""
        return self.name not in METRICS

    @property
    def unit(self) -> str:
        """Its unit; "" for a key whose name does not say."""
        return unit_of(self.name) if self.is_key else METRICS[self.name].unit

    def of(self, value: Estimated) -> float:
        """Return the aggregate of a metric's value, or the value in its place; NaN if there is none."""
        if self.place is not None:
            return value.means[self.place - 1] if self.place <= len(value.means) else math.nan
        parts = [mean for mean in value.means if not math.isnan(mean)]
        if self.aggregate == "mean" or not parts:
            return value.mean
        return min(parts) if self.aggregate == "min" else max(parts)

    def __str__(self) -> str:
        if self.place is not None:
            return f"{self.name}[{self.place}]"
        return self.name if self.aggregate == "mean" else f"{self.aggregate}({self.name})"


@dataclass(frozen=True)
class Linear:
    """A linear combination of quantities and a constant, in the units of the vocabulary.

    Attributes:
        terms: factor and quantity; each quantity once.
        constant: the added number.
    """

    terms: tuple[tuple[float, Quantity], ...]
    constant: float = 0.0

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics in it."""
        return tuple(quantity.name for _, quantity in self.terms if not quantity.is_key)

    @property
    def keys(self) -> tuple[str, ...]:
        """The scenario keys in it."""
        return tuple(quantity.name for _, quantity in self.terms if quantity.is_key)

    def value(self, metrics: Mapping[str, Estimated], keys: Mapping[str, Any]) -> float:
        """Return its value at a point; NaN if the point has no value of one of the metrics."""
        total = self.constant
        for factor, quantity in self.terms:
            if quantity.is_key:
                total += factor * keys[quantity.name]
            elif quantity.name in metrics:
                total += factor * quantity.of(metrics[quantity.name])
            else:
                return math.nan
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
        return Linear(terms, self.constant - other.constant)

    def times(self, factor: float) -> Linear:
        """Return the expression multiplied by a number."""
        return Linear(tuple((factor * f, quantity) for f, quantity in self.terms), factor * self.constant)


@dataclass(frozen=True)
class Parsed:
    """An expression as read, with the units that were written after numbers, to go to `check_units`."""

    linear: Linear
    units: tuple[tuple[str, str], ...]
    """Each as written, and the unit of the vocabulary that it belongs to."""


def parse_expression(text: str, what: str) -> Parsed:
    """Return a linear expression.

    Args:
        text: the expression.
        what: its option, with which messages begin ("--maximize").

    Raises:
        ScenarioError: it cannot be read, or a name is no metric and no key; the message suggests the
            nearest.
    """
    return _Reader(text, what).read()


def parse_quantity(text: str, what: str) -> Linear:
    """Return a linear expression that stands alone.

    Args:
        text: the expression.
        what: its option, with which messages begin ("--maximize").

    Raises:
        ScenarioError: as `parse_expression`; or it names no metric and no key, or a unit does not go with it.
    """
    parsed = parse_expression(text, what)
    if not parsed.linear.terms:
        raise ScenarioError(Problem(f"{what} {shown(text.strip())}: names no metric and no key", value=text))
    check_units(parsed.linear, parsed.units, f"{what} {shown(text.strip())}")
    return parsed.linear


def precision_keys(text: str) -> dict[str, Any]:
    """Return the keys that a precision sets, as in "max(delay_p95_s) to 5 %".

    Raises:
        ScenarioError: it cannot be read.
    """
    written = re.fullmatch(rf"\s*(\S.*?)\s+to\s+({NUMBER})\s*%\s*", text, re.DOTALL)
    if written is None:
        how = "write QUANTITY to NUMBER %, as in delay_p95_s to 5 %"
        raise ScenarioError(Problem(f"--until {shown(text)}: {how}", value=text))
    return {"run.precision_of": written[1], "run.precision": float(written[2]) / 100}


def check_units(linear: Linear, units: Sequence[tuple[str, str]], what: str) -> None:
    """Make sure that each unit written in an expression belongs to a quantity in it.

    Raises:
        ScenarioError: one is not.
    """
    there = {quantity.unit for _, quantity in linear.terms}
    for written, base in units:
        if base not in there:
            of = ", ".join(f"{quantity} is in {quantity.unit or 'no unit'}" for _, quantity in linear.terms)
            raise ScenarioError(Problem(f"{what}: {written} does not go with it: {of}", value=written))


def number_of_key(scenario: Scenario, key: str, what: str) -> float:
    """Return the number that a key in an expression has.

    Raises:
        ScenarioError: its value is no number.
    """
    value = scenario.value_of(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScenarioError(Problem(f"{what}: {key} is {shown(value)}, which is no number", key, value))
    return float(value)


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str, what: str) -> None:
        self.text, self.what, self.place = text, what, 0
        self.units: list[tuple[str, str]] = []

    def read(self) -> Parsed:
        if not self.text.strip():
            raise ScenarioError(Problem(f"{self.what}: there is nothing to read; name a metric"))
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
                return Parsed(linear, tuple(self.units))

    def term(self) -> Linear:
        if (value := self.number()) is not None:
            if self.accept("*"):
                return Linear(((value, self.quantity()),))
            return Linear((), value * self.unit())
        quantity = self.quantity()
        if self.accept("*"):
            return Linear(((self.factor(), quantity),))
        if self.accept("/"):
            divisor = self.factor()
            if divisor == 0:
                self.fail("there is a division by 0")
            if math.isinf(1 / divisor):
                self.fail("a divisor is too close to 0")
            return Linear(((1 / divisor, quantity),))
        return Linear(((1.0, quantity),))

    def factor(self) -> float:
        if (number := self.number()) is None:
            self.fail("a metric or key can be multiplied by a number, or divided by one, not by another one")
        return number

    def number(self) -> float | None:
        """Return the number that comes next, None if there is none."""
        if (written := self.match(re.compile(NUMBER))) is None:
            return None
        if math.isinf(number := float(written)):
            self.fail(f"{shown(written).strip(chr(34))} is too large a number")
        if number == 0 and re.match(r"[0.]*[1-9]", written):
            self.fail(f"{shown(written).strip(chr(34))} is too close to 0")
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
        if not self.accept("("):
            entry = ENTRY.fullmatch(name)
            if entry is None or entry[1] not in METRICS:
                return Quantity(_known(name, self.what))
            if (place := int(entry[2])) == 0:
                self.fail(f"flows, links and queues are numbered from 1: {entry[1]}[1] is the first one's")
            return Quantity(entry[1], place=place)
        if name not in AGGREGATES:
            guess = closest(name, AGGREGATES)
            hint = f"did you mean {guess}?" if guess else "write mean(...), min(...) or max(...) over flows"
            self.fail(f"there is no function {shown(name)}; {hint}")
        inner = self.match(NAME)
        if inner is None or not self.accept(")"):
            self.fail(f"{name}(...) takes the name of one metric, as in {name}(goodput_kbps)")
        quantity = Quantity(_known(inner, self.what), AGGREGATES[name])
        if quantity.is_key:
            self.fail(f"{inner} is a key of the scenario: it has one value, not one for each flow")
        return quantity

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
        raise ScenarioError(Problem(f"{self.what} {shown(self.text.strip())}: {why}", value=self.text))


def _known(name: str, what: str) -> str:
    """Return the name of a metric or a key.

    Raises:
        ScenarioError: it is neither.
    """
    if name in METRICS or ("." in name and field_at(Scenario, name) is not None):
        return name
    guess = SYNONYMS.get(name) or closest(name, [*METRICS, *all_keys(Scenario)])
    hint = f"did you mean {guess}?" if guess else f"the metrics are {', '.join(METRICS)}"
    raise ScenarioError(
        Problem(f"{what}: {shown(name)} is no metric and no key of a scenario; {hint}", name, guess=guess)
    )
