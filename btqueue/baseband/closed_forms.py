"""Symbolic twins of the baseband formulas, for printing (``sympy.latex``), differentiating and ``lambdify``.

SymPy is imported when a function is first called, never with the package.  Shared symbols (all real):
``b`` bit error rate, ``u`` payload in bytes, ``n`` slots of the packet, ``T_s`` slot length in seconds.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sympy


def formula(text: str, *, positive: bool = True) -> "sympy.Expr":
    """Return a formula whose symbols stand for positive numbers, or for numbers that are not negative."""
    import sympy

    names = set(re.findall(r"[A-Za-z_]+", text)) - {"floor"}
    kind = {"positive": True} if positive else {"nonnegative": True}
    return sympy.parse_expr(text, {name: sympy.Symbol(name, **kind) for name in names})


Form = Callable[[], "sympy.Expr"]

asymmetric_rate: Form = partial(formula, "8*u/((n + 1)*T_s)")
"""User rate in bit/s when every packet is answered in one slot."""

symmetric_rate: Form = partial(formula, "4*u/(n*T_s)")
"""User rate in bit/s, each way, when both directions use the same type."""

block_success: Form = partial(formula, "(1 - b)**15 + 15*b*(1 - b)**14", positive=False)
"""Success q(b) of a (15,10) block; see :func:`btqueue.baseband.fec.block_success_rate`."""

voice_data_rate: Form = partial(formula, "8*u*floor(g/(n + m))/(P*T_s)")
"""User rate of data beside voice links, in bit/s.

``g`` slots of every ``P`` are free in one piece; a packet of ``n`` slots and its answer of ``m`` must fit
into them.  See :func:`btqueue.baseband.voice.data_capacity_kbps`.
"""

ring_capacity: Form = partial(formula, "1/(2*N*(D + A)*T_s)")
"""Segments per second of each flow of a saturated ring of ``N`` peripherals.

Each segment takes ``D`` slots and its acknowledgement ``A``, on both hops.  POLL and NULL are left out: all
slots carry data.
"""
