"""Closed-form TCP throughput laws as sympy expressions: square root, PFTK, and PFTK in short.

All give the *send* rate in segments per second; multiplied by (1 - loss) it is the goodput. They suppose that
losses come in bursts that end with the round (PFTK) or once in 1/p segments (square root), a Reno sender, and
no slow start. The catalogue (`btqueue formula`) makes functions of numbers of them.

Against the exact chain for a receive window of 8 segments (round-trip time 0.1 s, timeout 1 s, independent
losses from 0.001 to 0.4) the full model errs by -12 % to +17 %; the short one falls to -68 % at a loss of
0.4, and the square-root law is at twice the rate of NewReno already at a loss of 0.05.

Sources: Mathis, Semke, Mahdavi & Ott, Computer Communication Review 27(3), 1997; Padhye, Firoiu, Towsley &
Kurose, IEEE/ACM Transactions on Networking 8(2), 2000.
"""

import sympy as sp

LOSS = sp.Symbol("p", positive=True)
RTT = sp.Symbol("RTT", positive=True)
RTO = sp.Symbol("T_0", positive=True)
WINDOW = sp.Symbol("W_m", positive=True)
SEGMENTS_PER_ACK = sp.Symbol("b", positive=True)


def square_root_law() -> sp.Expr:
    """Square-root law.

    Example:
        >>> from btqueue.transport.closed_forms import square_root_law
        >>> print(square_root_law())
        sqrt(6)/(2*RTT*sqrt(b)*sqrt(p))
    """
    return sp.sqrt(sp.Rational(3, 2) / (SEGMENTS_PER_ACK * LOSS)) / RTT


def pftk_short_law() -> sp.Expr:
    """Short form of PFTK.

    Example:
        >>> from btqueue.transport.closed_forms import LOSS, RTO, RTT, SEGMENTS_PER_ACK, WINDOW
        >>> from btqueue.transport.closed_forms import pftk_short_law
        >>> values = {LOSS: 0.01, RTT: 0.1, RTO: 1.0, WINDOW: 20, SEGMENTS_PER_ACK: 1}
        >>> round(float(pftk_short_law().subs(values)), 3)
        99.92
    """
    b, p = SEGMENTS_PER_ACK, LOSS
    recovery = RTT * sp.sqrt(2 * b * p / 3)
    timeouts = RTO * sp.Min(1, 3 * sp.sqrt(3 * b * p / 8)) * p * (1 + 32 * p**2)
    return sp.Min(WINDOW / RTT, 1 / (recovery + timeouts))


def pftk_law() -> sp.Expr:
    """Full PFTK model, piecewise in whether losses or the receive window limit the sender.

    Example:
        >>> from btqueue.transport.closed_forms import LOSS, RTO, RTT, SEGMENTS_PER_ACK, WINDOW, pftk_law
        >>> values = {LOSS: 0.01, RTT: 0.1, RTO: 1.0, WINDOW: 20, SEGMENTS_PER_ACK: 1}
        >>> round(float(pftk_law().subs(values)), 3)
        98.829
    """
    b, p = SEGMENTS_PER_ACK, LOSS
    unlimited = unlimited_window()
    by_losses = _pftk_branch(unlimited, b * unlimited / 2 + 1)
    by_receiver = _pftk_branch(WINDOW, b * WINDOW / 8 + (1 - p) / (p * WINDOW) + 2)
    return sp.Piecewise((by_losses, unlimited < WINDOW), (by_receiver, True))


def unlimited_window() -> sp.Expr:
    """E[W_u]: mean window at a loss indication where only losses limit it.

    Example:
        >>> from btqueue.transport.closed_forms import LOSS, SEGMENTS_PER_ACK, unlimited_window
        >>> round(float(unlimited_window().subs({LOSS: 0.01, SEGMENTS_PER_ACK: 1})), 3)
        17.279
    """
    b, p = SEGMENTS_PER_ACK, LOSS
    offset = (2 + b) / (3 * b)
    return offset + sp.sqrt(8 * (1 - p) / (3 * b * p) + offset**2)


def timeout_probability(window: sp.Expr) -> sp.Expr:
    """Q-hat: probability that a loss in a window ends in a timeout.

    Example:
        >>> from btqueue.transport.closed_forms import LOSS, WINDOW, timeout_probability
        >>> round(float(timeout_probability(WINDOW).subs({LOSS: 0.01, WINDOW: 8})), 4)
        0.4027
    """
    through = 1 - LOSS
    return sp.Min(
        1, (1 - through**3) * (1 + through**3 * (1 - through ** (window - 3))) / (1 - through**window)
    )


def _pftk_branch(window: sp.Expr, rounds: sp.Expr) -> sp.Expr:
    p = LOSS
    backoff = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    timeout = timeout_probability(window) / (1 - p)
    return ((1 - p) / p + window + timeout) / (RTT * rounds + timeout * RTO * backoff)
