"""One entry of the catalogue of closed forms: an expression with the units of its symbols."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from btqueue.channel import closed_forms as channel
from btqueue.study.notation import Notation
from btqueue.text_table import TextTable

if TYPE_CHECKING:
    import sympy


@dataclass(frozen=True)
class ClosedForm:
    """One closed form.

    Attributes:
        name: what it gives.
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
        """The expression in LaTeX."""
        import sympy

        return sympy.latex(self.expression)

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
        return channel.derivative(self.expression, self.symbol(name))

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
