"""A closed form at a point: expression, derivatives and LaTeX, with the numbers put in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from btqueue.scenario import Problem, Scenario, ScenarioError
from btqueue.scenario.errors import shown
from btqueue.scenario.problems import closest
from btqueue.study.closed_form import ClosedForm
from btqueue.study.closed_forms import closed_forms
from btqueue.study.sensitivity.assumptions import Point, broken
from btqueue.study.sensitivity.formula_values import Number, Setting, applicable

if TYPE_CHECKING:
    import sympy


@dataclass(frozen=True)
class SymbolDerivative:
    """The derivative of a formula by one of its symbols; numbers are NaN where the point gives none."""

    symbol: str
    expression: sympy.Expr
    value: float
    elasticity: float

    @property
    def latex(self) -> str:
        """The derivative in LaTeX."""
        import sympy

        return sympy.latex(self.expression)


@dataclass(frozen=True)
class Evaluated:
    """A closed form with the numbers of some or all of its symbols.

    Attributes:
        form: the formula.
        numbers: by symbol; there may be more than it has.
        setting: the scenario whose numbers these are; None if they are of none.
    """

    form: ClosedForm
    numbers: Mapping[str, Number]
    setting: Setting | None = None

    @property
    def missing(self) -> list[str]:
        """Symbols without a number."""
        return [name for name in self.form.symbols if name not in self.numbers]

    @cached_property
    def value(self) -> float:
        """The value in the formula's unit; NaN where numbers are missing or outside its domain."""
        return self._number(self.form.expression)

    @cached_property
    def doubt(self) -> str:
        """An assumption of the formula that does not hold in the scenario, in words; empty if all hold."""
        if self.setting is None or self.missing:
            return ""
        return broken(Point(self.form.name, self.value, self.numbers, self.setting))

    @cached_property
    def derivatives(self) -> tuple[SymbolDerivative, ...]:
        """The derivatives by all symbols, in alphabetical order; without numbers where there is a `doubt`."""
        return tuple(self._derivative(name) for name in self.form.symbols)

    def _derivative(self, name: str) -> SymbolDerivative:
        expression = self.form.derivative(name)
        value = math.nan if self.doubt else self._number(expression)
        known = name in self.numbers and self.value != 0
        elasticity = value * self.numbers[name].value / self.value if known else math.nan
        return SymbolDerivative(name, expression, value, elasticity)

    def _number(self, expression: Any) -> float:
        """Put the numbers in, with digits to spare: error rates are differences of nearly equal numbers."""
        import sympy

        if self.missing:
            return math.nan
        point = {
            self.form.symbol(name): sympy.Float(self.numbers[name].value, 40) for name in self.form.symbols
        }
        value = sympy.N(expression.xreplace(point), 20)
        return float(value) if value.is_real and value.is_finite else math.nan


def formula(name: str, at: Mapping[str, float] | None = None, scenario: Scenario | None = None) -> Evaluated:
    """Return a closed form with numbers.

    Args:
        name: in the catalogue, `btqueue.study.closed_forms.closed_forms`.
        at: numbers by symbol.
        scenario: gives the others, where it has them.

    Raises:
        ScenarioError: the formula or the symbol is unknown.
    """
    known = closed_forms()
    if name not in known:
        guess = closest(name, known)
        subjects = ", ".join(dict.fromkeys(entry.partition(",")[0] for entry in known))
        hint = f'did you mean "{guess}"?' if guess else f"there are {subjects}"
        raise ScenarioError(Problem(f"there is no formula {shown(name)}; {hint}", name, guess=guess))
    form = known[name]
    for symbol in at or {}:
        if symbol not in form.symbols:
            symbols = ", ".join(f"{s} ({words})" for s, (_, words) in form.symbols.items())
            raise ScenarioError(Problem(f'"{name}" has no symbol {symbol}, only {symbols}', symbol))
    setting = None if scenario is None else Setting(scenario)
    numbers = {} if setting is None else dict(applicable(setting).get(name, {}))
    given = {symbol: Number(value, "given") for symbol, value in (at or {}).items()}
    return Evaluated(form, numbers | given, setting if numbers else None)


def formulas_of(scenario: Scenario) -> list[Evaluated]:
    """Return the closed forms that apply to a scenario, with its numbers put in."""
    setting = Setting(scenario)
    return [
        Evaluated(closed_forms()[name], numbers, setting) for name, numbers in applicable(setting).items()
    ]


def parse_at(texts: Iterable[str]) -> dict[str, float]:
    """Read numbers of the form ``symbol=value``.

    Raises:
        ScenarioError: one cannot be read.
    """
    found = {}
    for text in texts:
        symbol, equals, value = text.partition("=")
        try:
            number = float(value) if equals else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            message = f"{shown(text)} cannot be read: write symbol=number, as in b=1e-4"
            raise ScenarioError(Problem(message, symbol, value))
        found[symbol.strip()] = number
    return found
