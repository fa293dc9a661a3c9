"""Symbolic twins of the baseband formulas, for printing (``sympy.latex``), differentiating and ``lambdify``.

SymPy is imported when a function is first called, never with the package.  Shared symbols (all real):
``b`` bit error rate, ``u`` payload in bytes, ``n`` slots of the packet, ``T_s`` slot length in seconds.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sympy


def asymmetric_rate() -> "sympy.Expr":
    """User rate 8 u / ((n + 1) T_s) in bit/s when every packet is answered in one slot."""
    import sympy

    u, n, slot = sympy.symbols("u n T_s", positive=True)
    return 8 * u / ((n + 1) * slot)


def symmetric_rate() -> "sympy.Expr":
    """User rate 8 u / (2 n T_s) in bit/s, each way, when both directions use the same type."""
    import sympy

    u, n, slot = sympy.symbols("u n T_s", positive=True)
    return 4 * u / (n * slot)


def block_success() -> "sympy.Expr":
    """Success q(b) of a (15,10) block in ``b``; see :func:`btqueue.baseband.fec.block_success_rate`."""
    import sympy

    b = sympy.Symbol("b", nonnegative=True)
    return (1 - b) ** 15 + 15 * b * (1 - b) ** 14


def voice_data_rate() -> "sympy.Expr":
    """User rate of data beside voice links, in bit/s: 8 u floor(g / (n + m)) / (P T_s).

    ``g`` slots of every ``P`` are free in one piece; a packet of ``n`` slots and its answer of ``m`` must fit
    into them.  See :func:`btqueue.baseband.voice.data_capacity_kbps`.
    """
    import sympy

    u, n, m, gap, period, slot = sympy.symbols("u n m g P T_s", positive=True)
    return 8 * u * sympy.floor(gap / (n + m)) / (period * slot)


def ring_capacity() -> "sympy.Expr":
    """Segments per second of each flow of a saturated ring of ``N`` peripherals: 1 / (2 N (D + A) T_s).

    Each segment takes ``D`` slots and its acknowledgement ``A``, on both hops.  POLL and NULL are left out:
    all slots carry data.
    """
    import sympy

    peripherals, data, ack, slot = sympy.symbols("N D A T_s", positive=True)
    return 1 / (2 * peripherals * (data + ack) * slot)
