"""A catalogue of the closed forms of the package: to list, print, differentiate and evaluate.

    >>> from btqueue.study.closed_forms import closed_forms
    >>> wait = closed_forms()["wait, M/G/1"]
    >>> print(wait.expression, "in", wait.unit)
    (b*(k - 1) + b_2*lambda)/(-2*b*lambda + 2) in slots
    >>> print(wait.function("lambda", "b", "b_2", "k")(0.125, 6, 36, 1))
    9.0

Every entry names its *twin*: the function of the package, or the method, that computes the same number
in another way, against which it is tested. SymPy is imported when an expression is first asked for.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from btqueue.baseband import PACKET_TYPES
from btqueue.channel import closed_forms as channel
from btqueue.network.closed_forms import Steps
from btqueue.queueing import closed_forms as queueing
from btqueue.text_files import table_beside
from btqueue.text_table import TextTable

if TYPE_CHECKING:
    import sympy

Notation = Mapping[str, tuple[str, str]]
"""Name of a symbol -> (unit, meaning)."""

LONG = 300
"""Characters of LaTeX; a longer form is shown in parts."""

NOTATIONS: dict[str, dict[str, tuple[str, str]]] = {}
"""Unit and meaning of each symbol, by the part of the catalogue."""
PARAMETERS: dict[str, list[str]] = {}
"""The symbols of each parameter of the queueing functions; several of a sequence, which the catalogue shows
for two queues, or three shares."""
for _row in table_beside("btqueue.study", "symbols.csv"):
    NOTATIONS.setdefault(_row["subject"], {})[_row["symbol"]] = _row["unit"], _row["meaning"]
    for _parameter in _row["parameters"].split():
        PARAMETERS.setdefault(_parameter, []).append(_row["symbol"])


@dataclass(frozen=True)
class ClosedForm:
    """One closed form.

    Attributes:
        name: name of the quantity that it gives.
        unit: unit of the value.
        notation: unit and meaning of the symbols it may contain.
        build: gives the expression.
        twin: the numerical twin, its full name (or in words, where the package has none).
    """

    name: str
    unit: str
    notation: Notation
    build: Callable[[], Any]
    twin: str

    @cached_property
    def expression(self) -> sympy.Expr:
        """The formula as a sympy expression."""
        built = self._built
        return built.whole() if isinstance(built, Steps) else built

    @cached_property
    def _built(self) -> Any:
        return self.build()

    @property
    def symbols(self) -> dict[str, tuple[str, str]]:
        """Unit and meaning of each symbol in the expression, by name."""
        return {name: self.notation[name] for name in sorted(map(str, self.expression.free_symbols))}

    def symbol(self, name: str) -> sympy.Symbol:
        """The symbol of that name.

        Raises:
            ValueError: there is none in the expression.
        """
        symbols: Any = self.expression.free_symbols
        for symbol in symbols:
            if symbol.name == name:
                return symbol
        raise ValueError(f"{self.name!r} has no symbol {name!r}, only {', '.join(self.symbols)}")

    def latex(self) -> str:
        """The expression in LaTeX; of one in steps the result, then each of its parts."""
        import sympy

        steps = isinstance(self._built, Steps)
        return r",\quad ".join(self.lines()) if steps else sympy.latex(self._built)

    def lines(self) -> list[str]:
        """The expression in LaTeX, in lines that fit a page: the result, then the parts of a long form."""
        import sympy

        built = self._built
        if not isinstance(built, Steps):
            whole = sympy.latex(built)
            if len(whole) <= LONG:
                return [whole]
            found: Any = sympy.cse(built, symbols=sympy.numbered_symbols("c_", start=1))
            built = Steps(found[1][0], tuple(found[0]))
        parts = [f"{sympy.latex(symbol)} = {sympy.latex(part)}" for symbol, part in built.parts]
        return [sympy.latex(built.result), *parts]

    def table(self) -> TextTable:
        """Return the symbols with their units and meanings, as a table."""
        rows = tuple((name, *about) for name, about in self.symbols.items())
        return TextTable(f"{self.name} ({self.unit})", ("symbol", "unit", "meaning"), rows)

    def _repr_latex_(self) -> str:
        """Show the formula in a notebook."""
        return f"$\\displaystyle {self.latex()}$"

    def derivative(self, name: str) -> sympy.Expr:
        """Derivative with respect to the symbol of that name.

        Raises:
            ValueError: there is none in the expression.
        """
        symbol, built = self.symbol(name), self._built
        if not isinstance(built, Steps):
            return channel.derivative(built, symbol)
        known: dict[Any, Any] = {}
        slopes: dict[Any, Any] = {}

        def slope(part: Any) -> Any:
            """Return its derivative by the chain rule: small steps take far less time than the whole."""
            free = part.free_symbols
            direct: Any = channel.derivative(part, symbol).xreplace(known) if symbol in free else 0
            ways = [(one, by) for one, by in slopes.items() if one in free and by != 0]
            return direct + sum(channel.derivative(part, one).xreplace(known) * by for one, by in ways)

        for one, part in built.parts:
            slopes[one], known[one] = slope(part), part.xreplace(known)
        return slope(built.result)

    def function(self, *names: str, modules: Any = "numpy") -> Callable[..., Any]:
        """The expression as a function of the symbols of these names, in this order (``sympy.lambdify``).

        Args:
            *names: all symbols of the expression.
            modules: ``"numpy"``, ``"jax"``, ``"mpmath"`` or whatever else sympy writes code for.

        Raises:
            ValueError: a symbol is left out or unknown.
        """
        import sympy

        missing = set(self.symbols) - set(names)
        if missing:
            raise ValueError(f"{self.name!r} needs a place for {', '.join(sorted(missing))} too")
        return sympy.lambdify([self.symbol(name) for name in names], self.expression, modules)


def _expression(form: str, arguments: str, symbols: Notation) -> Any:
    """Return the expression of a function of the package.

    Args:
        form: its name, behind one of `MODULES`.
        arguments: ``name=value`` of arguments other than the symbols of `PARAMETERS`; values may be symbols.
        symbols: symbols of the subject.
    """
    module, _, name = form.partition(".")
    function = getattr(import_module(MODULES[module]), name)  # the laws of TCP load SymPy
    given: dict[str, Any] = {}
    for key, _, value in (argument.partition("=") for argument in arguments.split()):
        given[key] = _symbol(value) if value in symbols else VALUES.get(value, value)
    if module not in ("queueing", "traffic"):
        return function(**given)
    for key in inspect.signature(function).parameters.keys() & PARAMETERS.keys() - given.keys():
        known = list(map(_symbol, PARAMETERS[key]))
        given[key] = known if len(known) > 1 else known[0]
    return queueing.formula(function, **given)


MODULES = {
    "queueing": "btqueue.queueing.closed_forms",
    "traffic": "btqueue.queueing.traffic_forms",
    "baseband": "btqueue.baseband.closed_forms",
    "piconet": "btqueue.network.closed_forms",
    "tcp": "btqueue.transport.closed_forms",
}
"""Of functions that give expressions, by their names in `forms.csv`."""
VALUES: Mapping[str, Any] = {"true": True, "4": 4}
"""Of arguments that are no texts."""


def _symbol(name: str) -> sympy.Symbol:
    import sympy

    return sympy.Symbol(name, positive=True)


Row = tuple[str, str, Callable[[], Any], str]
"""Name, unit, the function that builds the expression, and the twin."""

RADIO = "Bit errors and packet errors"
"""The subject whose forms `_radio_rows` gives; `forms.csv` has all others."""
TWINS = {
    "chain": "its Markov chain, solved in numbers",
    "conservation": "btqueue.queueing.polling.conservation.conservation_law",
    "cycle": "btqueue.queueing.polling.model.PollingModel.mean_cycle",
    "polling": "btqueue.queueing.polling.polling.solve_polling",
    "vacations": "btqueue.queueing.vacations.vacation_queue",
}
"""Twins of several forms, by their names in `forms.csv`."""
TRAINS = "btqueue.channel.packet_trains.train_success"
CROSSING = "btqueue.channel.packet_adaptation.goodput_crossing"


def _radio_rows() -> list[Row]:
    """Return the forms of bit errors: of each packet type, and of some packets together."""

    def mean_of_states() -> Any:
        return channel.mean_error_rate(channel.payload_error_rate(dh5))

    rows: list[Row] = []
    for packet in PACKET_TYPES.values():
        for bits, form in (("payload", channel.payload_error_rate), ("on air", channel.on_air_error_rate)):
            twin = f"btqueue.channel.error_rates.{form.__name__}"
            rows.append((f"packet error rate, {packet.name} {bits}", "1", partial(form, packet), twin))
        rows.append((f"goodput, {packet.name}", "kbit/s", partial(channel.goodput, packet), "chain"))
    dh5, dh3 = PACKET_TYPES["DH5"], PACKET_TYPES["DH3"]
    delivered = partial(channel.independent_success, [dh5] * 4 + [dh3] * 2, hops=2)
    rows += [
        ("mean packet error rate, DH5 on two states", "1", mean_of_states, TRAINS),
        ("success of a segment and its acknowledgement, two hops", "1", delivered, TRAINS),
        ("attempts", "1", channel.expected_attempts, "chain"),
        ("delivered within R attempts", "1", channel.delivered_within, "chain"),
    ]
    for fast, robust in itertools.pairwise(PACKET_TYPES[name] for name in ("DH5", "DM5", "DM3", "DM1")):
        build = partial(channel.threshold_equation, fast, robust, bits="payload")
        rows.append((f"threshold {fast.name} to {robust.name}, zero of", "kbit/s", build, CROSSING))
    return rows


@cache
def closed_forms() -> Mapping[str, ClosedForm]:
    """All closed forms by name."""
    return MappingProxyType({entry.name: entry for subject in SUBJECTS for entry in entries(subject)})


SUBJECTS = tuple(NOTATIONS)
"""The parts of the catalogue."""


def entries(subject: str) -> list[ClosedForm]:
    """Return the forms of a part of the catalogue."""
    notation = NOTATIONS[subject]
    rows = _radio_rows() if subject == RADIO else [
        (row["name"], row["unit"], partial(_expression, row["form"], row["arguments"], notation), row["twin"])
        for row in table_beside("btqueue.study", "forms.csv")
        if row["subject"] == subject
    ]  # fmt: skip
    return [
        ClosedForm(name, unit, notation, build, TWINS.get(twin, twin)) for name, unit, build, twin in rows
    ]
