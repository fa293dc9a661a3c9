r"""Symbolic twins of the channel formulas, for printing (``sympy.latex``), differentiating and ``lambdify``.

SymPy is imported when a function is first called, never with the package.  Symbols, the same in every
function so that expressions can be combined and substituted: ``b``, ``b_G``, ``b_B`` bit error rates,
``rho_G``, ``rho_B`` mean sojourns in seconds; bits, blocks, packets and hops are arguments, numbers or
symbols.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from btqueue.baseband.closed_forms import block_success, formula
from btqueue.baseband.packets import HEADER_BITS, SLOT_NS, SYNC_WORD_BITS, PacketType
from btqueue.channel.error_rates import SYNC_THRESHOLD, Bits

if TYPE_CHECKING:
    import sympy


def uncoded_error_rate(n_bits: "int | sympy.Expr") -> "sympy.Expr":
    """1 - (1-b)^n, in ``b``."""
    import sympy

    b = sympy.Symbol("b", nonnegative=True)
    return 1 - (1 - b) ** sympy.sympify(n_bits)


def coded_error_rate(n_blocks: "int | sympy.Expr") -> "sympy.Expr":
    """1 - q(b)^N, in ``b``."""
    import sympy

    return 1 - block_success() ** sympy.sympify(n_blocks)


def payload_error_rate(packet: PacketType) -> "sympy.Expr":
    """Error rate of the user payload of one type, in ``b``."""
    if packet.coded:
        return coded_error_rate(packet.payload_fec_blocks)
    return uncoded_error_rate(packet.payload_bits)


def on_air_error_rate(packet: PacketType) -> "sympy.Expr":
    """Error rate of a whole packet on air, in ``b``: 1 - (access code)(header)(body)."""
    return 1 - _heard() * _body_success(packet)


def independent_success(packets: Sequence[PacketType], *, hops: "int | sympy.Expr" = 1) -> "sympy.Expr":
    """Success of a packet train over independent hops when every packet draws its own state.

    prod_k [pi_G (1 - P_k(b_G)) + pi_B (1 - P_k(b_B))]^hops, payload bits only, in ``b_G``, ``b_B``, ``rho_G``
    and ``rho_B``: the formula of Venugopal's thesis (2006, section 5.3), ``observation="published"`` of
    :func:`btqueue.channel.packet_trains.train_success`.  For segment and ACK, the train holds both.
    """
    import sympy

    success = sympy.Integer(1)
    for packet in packets:
        success *= mean_error_rate(1 - payload_error_rate(packet))
    return success ** sympy.sympify(hops)


def mean_error_rate(form: "sympy.Expr") -> "sympy.Expr":
    """Mean over the two states, (rho_G P(b_G) + rho_B P(b_B)) / (rho_G + rho_B), of a chance P in ``b``."""
    import sympy

    b, b_good, b_bad = sympy.symbols("b b_G b_B", nonnegative=True)
    good, bad = sympy.symbols("rho_G rho_B", positive=True)
    return (good * form.subs(b, b_good) + bad * form.subs(b, b_bad)) / (good + bad)


expected_attempts = partial(formula, "1/(h*s) + (1 - r)/(h*r)")
"""Attempts until the acknowledgement arrives.

``h`` a packet is detected, ``s`` its body is intact, ``r`` the answer is decoded.  Once delivered, a
repeated packet need only be detected to be acknowledged again.
"""

delivered_within = partial(formula, "1 - (1 - h*s)**R")
"""Probability that at most ``R`` attempts deliver, in ``h`` and ``s``."""


def goodput(
    packet: PacketType,
    *,
    bits: Bits = "on-air",
    reply_slots: int = 1,
) -> "sympy.Expr":
    """User bits delivered by a saturated sender in kbit/s, in ``b``: the rate over the expected attempts.

    Args:
        packet: the packet type.
        bits: the bits that errors can hit; on air, acknowledgements are lost too.
        reply_slots: slots of the answer, ``packet.slots`` for the same type in both directions.
    """
    import sympy

    rate_kbps = sympy.Rational(packet.payload_bits * 10**6, SLOT_NS * (packet.slots + reply_slots))
    if bits == "payload":
        return rate_kbps * (1 - payload_error_rate(packet))
    heard, intact = _heard(), _body_success(packet)
    # the rate over `expected_attempts` with r = h, cleared of fractions: sympy would multiply them out
    return rate_kbps * heard**2 * intact / (heard + intact * (1 - heard))


def threshold_equation(
    fast: PacketType,
    robust: PacketType,
    *,
    bits: Bits = "on-air",
    same_type_reply: bool = False,
) -> "sympy.Expr":
    """Difference of the goodputs (kbit/s) in ``b``: zero where the robust type starts to carry more.

    Args:
        fast: the type that is better without errors.
        robust: the type that is better with many.
        bits: the bits that errors can hit.
        same_type_reply: whether both directions use the same type; else the answer takes one slot.
    """
    first, second = (
        goodput(packet, bits=bits, reply_slots=packet.slots if same_type_reply else 1)
        for packet in (fast, robust)
    )
    return first - second


def threshold(equation: "sympy.Expr", *, low: float = 1e-7, high: float = 0.05) -> float:
    """The bit error rate in ``low..high`` that solves a `threshold_equation` without other symbols.

    Raises:
        ValueError: the equation does not change its sign between the two.
    """
    import sympy
    from scipy.optimize import root_scalar

    difference = sympy.lambdify(sympy.Symbol("b", nonnegative=True), equation)
    if difference(low) * difference(high) >= 0:
        raise ValueError(f"the two types do not change places between {low} and {high}")
    return float(root_scalar(difference, bracket=(low, high), method="brentq", xtol=1e-16).root)


def derivative(expression: "sympy.Expr", symbol: "sympy.Symbol") -> "sympy.Expr":
    """Derivative of one of these expressions.

    The symbols are replaced by symbols without a sign. For symbols with a sign, sympy multiplies out powers
    of thousands of factors to find the sign of the derivative, which takes hours.
    """
    import sympy

    plain = {known: sympy.Symbol(str(known)) for known in expression.free_symbols}
    signless = sympy.diff(expression.xreplace(plain), plain.get(symbol, symbol))
    return cast("sympy.Expr", signless.xreplace({bare: known for known, bare in plain.items()}))


def _heard() -> "sympy.Expr":
    """Success of access code and header, in ``b``."""
    import sympy

    b = sympy.Symbol("b", nonnegative=True)
    few = (
        sympy.binomial(SYNC_WORD_BITS, k) * b**k * (1 - b) ** (SYNC_WORD_BITS - k)
        for k in range(SYNC_THRESHOLD + 1)
    )
    return sympy.Add(*few) * ((1 - b) ** 3 + 3 * b * (1 - b) ** 2) ** HEADER_BITS


def _body_success(packet: PacketType) -> "sympy.Expr":
    if packet.coded:
        return 1 - coded_error_rate(packet.body_fec_blocks)
    return 1 - uncoded_error_rate(packet.body_bits)
