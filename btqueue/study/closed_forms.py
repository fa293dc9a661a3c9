"""A catalogue of the closed forms of the package: to list, print, differentiate and evaluate.

    >>> from btqueue.study.closed_forms import closed_forms
    >>> wait = closed_forms()["wait, M/G/1"]
    >>> print(wait.expression, "in", wait.unit)
    (b*(k - 1) + b_2*lambda)/(-2*b*lambda + 2) in slots
    >>> print(wait.function("lambda", "b", "b_2", "k")(0.125, 6, 36, 1))
    9.0

`closed_forms.toml` has their texts. Every entry names its *twin*: the function of the package, or the method,
that computes the same number in another way, against which it is tested. SymPy is imported when an expression
is first asked for.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from btqueue.baseband import PACKET_TYPES, PacketType
from btqueue.baseband.packets import HEADER_BITS, SLOT_NS, SYNC_WORD_BITS
from btqueue.channel.error_rates import SYNC_THRESHOLD
from btqueue.text_table import TextTable

if TYPE_CHECKING:
    import sympy

Notation = Mapping[str, tuple[str, str]]
"""Name of a symbol -> (unit, meaning)."""
CATALOGUE = tomllib.loads(files("btqueue.study").joinpath("closed_forms.toml").read_text("utf-8"))
"""By subject the symbols, and the forms with their texts."""
SUBJECTS = tuple(CATALOGUE)
"""The parts of the catalogue."""
FUNCTIONS = frozenset({"sqrt", "exp", "log", "floor", "Min", "Max", "Piecewise", "True"})
"""Names in the text of a form that are no symbols."""


class Steps(NamedTuple):
    """A formula in steps, to be read a line at a time.

    Attributes:
        result: in the symbols of the parts and others.
        parts: symbol and expression of each, in the order in which they build on each other.
    """

    result: sympy.Expr
    parts: tuple[tuple[sympy.Symbol, sympy.Expr], ...]

    @property
    def free(self) -> set[str]:
        """Names of the symbols that are no parts."""
        every: set[Any] = self.result.free_symbols.union(*(part.free_symbols for _, part in self.parts))
        return {symbol.name for symbol in every} - {symbol.name for symbol, _ in self.parts}

    def put_in(self, known: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return the known values of symbols, and each part with these and the parts before it put in."""
        found = dict(known)
        for symbol, part in self.parts:
            found[symbol] = part.xreplace(found)
        return found

    def whole(self) -> sympy.Expr:
        """Return the formula with all parts put in."""
        whole: Any = self.result.xreplace(self.put_in({}))
        return whole


def steps_of(text: str) -> Steps:
    """Return the steps of a text: ``name = expression`` in each line but the last. Symbols are positive."""
    import sympy

    text = re.sub(r"\blambda\b", "lambda_", text)  # a word of Python
    names = set(re.findall(r"[A-Za-z]\w*", text)) - FUNCTIONS
    symbols = {name: sympy.Symbol(name.removesuffix("_"), positive=True) for name in names}
    *lines, result = text.strip().splitlines()
    parts = (line.split(" = ") for line in lines)
    return Steps(
        sympy.parse_expr(result, symbols),
        tuple((symbols[name], sympy.parse_expr(part, symbols)) for name, part in parts),
    )


@dataclass(frozen=True)
class ClosedForm:
    """One closed form.

    Attributes:
        name: name of the quantity that it gives.
        unit: unit of the value.
        notation: unit and meaning of the symbols it may contain.
        text: its steps, see `steps_of`.
        twin: the numerical twin, its full name (or in words, where the package has none).
        about: system, idea and source.
    """

    name: str
    unit: str
    notation: Notation
    text: str
    twin: str
    about: str

    @cached_property
    def steps(self) -> Steps:
        """The formula in steps."""
        return steps_of(self.text)

    @cached_property
    def expression(self) -> sympy.Expr:
        """The formula as a sympy expression."""
        return self.steps.whole()

    @cached_property
    def symbols(self) -> dict[str, tuple[str, str]]:
        """Unit and meaning of each symbol in the expression, by name."""
        return {name: self.notation[name] for name in sorted(self.steps.free)}

    def symbol(self, name: str) -> sympy.Symbol:
        """The symbol of that name.

        Raises:
            ValueError: there is none in the expression.
        """
        import sympy

        if name in self.symbols:
            return sympy.Symbol(name, positive=True)
        raise ValueError(f"{self.name!r} has no symbol {name!r}, only {', '.join(self.symbols)}")

    def latex(self) -> str:
        """The result in LaTeX, then each of its parts."""
        return r",\quad ".join(self.lines())

    def lines(self) -> list[str]:
        """The expression in LaTeX, in lines: the result, then its parts."""
        import sympy

        parts = [f"{sympy.latex(symbol)} = {sympy.latex(part)}" for symbol, part in self.steps.parts]
        return [sympy.latex(self.steps.result), *parts]

    def table(self) -> TextTable:
        """Return the symbols with their units and meanings, as a table."""
        rows = tuple((name, *about) for name, about in self.symbols.items())
        return TextTable(f"{self.name} ({self.unit})", ("symbol", "unit", "meaning"), rows)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def derivative(self, name: str) -> sympy.Expr:
        """Derivative with respect to the symbol of that name.

        Raises:
            ValueError: there is none in the expression.
        """
        symbol = self.symbol(name)
        known: dict[Any, Any] = {}
        slopes: dict[Any, Any] = {}

        def slope(part: Any) -> Any:
            """Return its derivative by the chain rule: small steps take far less time than the whole."""
            free = part.free_symbols
            direct: Any = _derivative(part, symbol).xreplace(known) if symbol in free else 0
            ways = [(one, by) for one, by in slopes.items() if one in free and by != 0]
            return direct + sum(_derivative(part, one).xreplace(known) * by for one, by in ways)

        for one, part in self.steps.parts:
            slopes[one], known[one] = slope(part), part.xreplace(known)
        return slope(self.steps.result)

    def function(self, *names: str, modules: Any = "numpy") -> Callable[..., Any]:
        """The expression as a function of the symbols of these names, in this order (``sympy.lambdify``).

        Args:
            *names: all symbols of the expression.
            modules: ``"numpy"``, ``"jax"``, ``"mpmath"`` or another target of sympy's `lambdify`.

        Raises:
            ValueError: a symbol is left out or unknown.
        """
        import sympy

        missing = set(self.symbols) - set(names)
        if missing:
            raise ValueError(f"{self.name!r} needs a place for {', '.join(sorted(missing))} too")
        return sympy.lambdify([self.symbol(name) for name in names], self.expression, modules)


def _derivative(expression: Any, symbol: Any) -> Any:
    """Return a derivative, found with symbols without a sign.

    For symbols with a sign, sympy multiplies out powers of thousands of factors to find the sign of the
    derivative, which takes hours.
    """
    import sympy

    plain = {known: sympy.Symbol(known.name) for known in expression.free_symbols}
    signless = sympy.diff(expression.xreplace(plain), plain.get(symbol, symbol))
    return signless.xreplace({bare: known for known, bare in plain.items()})


BLOCK = "((1 - b)**15 + 15*b*(1 - b)**14)"
"""Success of a block of the (15,10) code."""


def _texts(packet: PacketType) -> SimpleNamespace:
    """Return texts of a packet type: its rate in kbit/s, and the chances that payload and body are intact."""
    rate = f"({packet.payload_bits * 10**6}/{SLOT_NS * (packet.slots + 1)})"
    sizes = (packet.payload_fec_blocks, packet.body_fec_blocks) if packet.coded else (
        packet.payload_bits, packet.body_bits
    )  # fmt: skip
    payload, body = (f"{BLOCK if packet.coded else '(1 - b)'}**{size}" for size in sizes)
    bits = packet.payload_bits
    return SimpleNamespace(name=packet.name, bits=bits, rate=rate, payload=payload, body=body)


def _heard() -> str:
    """Return the text of the success of access code and header."""
    few = (
        f"{math.comb(SYNC_WORD_BITS, k)}*b**{k}*(1 - b)**{SYNC_WORD_BITS - k}"
        for k in range(SYNC_THRESHOLD + 1)
    )
    return f"({' + '.join(few)})*((1 - b)**3 + 3*b*(1 - b)**2)**{HEADER_BITS}"


def entries(subject: str) -> list[ClosedForm]:
    """Return the forms of a part of the catalogue; a form of packets stands once for each packet type."""
    symbols, forms = CATALOGUE[subject]["symbols"], CATALOGUE[subject]["forms"]
    notation = {name: (unit, meaning) for name, (unit, meaning) in symbols.items()}
    texts = {name: _texts(packet) for name, packet in PACKET_TYPES.items()}
    found: dict[str, ClosedForm] = {}
    for form in forms:
        before = found[form["after"]].text.rpartition("\n")[0] if "after" in form else ""
        for packet in texts.values() if "{packet" in form["name"] else (None,):
            fields = {"heard": _heard(), "packet": packet}
            name, text = form["name"].format(packet=packet), form["text"].format(**fields, **texts)
            about = " ".join(form["about"].split())
            found[name] = ClosedForm(
                name, form["unit"], notation, f"{before}\n{text}".strip(), form["twin"], about
            )
    return list(found.values())


@cache
def closed_forms() -> Mapping[str, ClosedForm]:
    """All closed forms by name."""
    return MappingProxyType({entry.name: entry for subject in SUBJECTS for entry in entries(subject)})
