"""One entry of the catalogue of closed forms: an expression with the units of its symbols."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from btqueue.channel import closed_forms as channel
from btqueue.network.closed_forms import Steps
from btqueue.study.notation import Notation
from btqueue.text_table import TextTable

if TYPE_CHECKING:
    import sympy

LONG = 300
"""Characters of LaTeX; a longer form is shown in parts."""


@dataclass(frozen=True)
class ClosedForm:
    """One closed form.

    Attributes:
        name: of the quantity that it gives.
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
    def expression(self) -> "sympy.Expr":
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

    def symbol(self, name: str) -> "sympy.Symbol":
        """The symbol of that name.

        Raises:
            ValueError: there is none in the expression.
        """
        import sympy

        for symbol in self.expression.free_symbols:
            if isinstance(symbol, sympy.Symbol) and symbol.name == name:
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

    def derivative(self, name: str) -> "sympy.Expr":
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
