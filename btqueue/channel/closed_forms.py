r"""Symbolic twins of the channel formulas, for printing (``sympy.latex``), differentiating and ``lambdify``.

SymPy is imported when a function is first called, never with the package.  Symbols, the same in every
function so that expressions can be combined and substituted: ``b``, ``b_G``, ``b_B`` bit error rates,
``rho_G``, ``rho_B`` mean sojourns and ``t`` a time, all in seconds; bits, blocks, packets and hops are
arguments, numbers or symbols.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from btqueue.baseband.closed_forms import block_success
from btqueue.baseband.packets import HEADER_BITS, SYNC_WORD_BITS, PacketType
from btqueue.channel.error_rates import SYNC_THRESHOLD

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


def on_air_error_rate(packet: PacketType, *, sync_threshold: int = SYNC_THRESHOLD) -> "sympy.Expr":
    """Error rate of a whole packet on air, in ``b``: 1 - (access code)(header)(body)."""
    import sympy

    b = sympy.Symbol("b", nonnegative=True)
    access = sympy.Add(
        *(
            sympy.binomial(SYNC_WORD_BITS, k) * b**k * (1 - b) ** (SYNC_WORD_BITS - k)
            for k in range(sync_threshold + 1)
        )
    )
    header = ((1 - b) ** 3 + 3 * b * (1 - b) ** 2) ** HEADER_BITS
    if packet.coded:
        body = 1 - coded_error_rate(packet.body_fec_blocks)
    else:
        body = 1 - uncoded_error_rate(packet.body_bits)
    return 1 - access * header * body


def transition_matrix() -> "sympy.Matrix":
    """e^{Qt} of the two-state channel, 2 x 2, in ``rho_G``, ``rho_B`` and ``t``."""
    import sympy

    good, bad, t = sympy.symbols("rho_G rho_B t", positive=True)
    forgotten = sympy.Matrix([[good, bad], [good, bad]]) / (good + bad)
    return forgotten + sympy.exp(-t * (1 / good + 1 / bad)) * (sympy.eye(2) - forgotten)


def independent_success(packets: Sequence[PacketType], *, hops: "int | sympy.Expr" = 1) -> "sympy.Expr":
    """Success of a packet train over independent hops when every packet draws its own state.

    prod_k [pi_G (1 - P_k(b_G)) + pi_B (1 - P_k(b_B))]^hops, payload bits only, in ``b_G``, ``b_B``, ``rho_G``
    and ``rho_B``: the formula of Venugopal's thesis (2006, section 5.3), ``observation="published"`` of
    :func:`btqueue.channel.packet_trains.train_success`.  For segment and ACK, the train holds both.
    """
    import sympy

    b, b_good, b_bad = sympy.symbols("b b_G b_B", nonnegative=True)
    good, bad = sympy.symbols("rho_G rho_B", positive=True)
    success = sympy.Integer(1)
    for packet in packets:
        received = 1 - payload_error_rate(packet)
        success *= (good * received.subs(b, b_good) + bad * received.subs(b, b_bad)) / (good + bad)
    return success ** sympy.sympify(hops)
