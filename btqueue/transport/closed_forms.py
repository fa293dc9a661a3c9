"""Closed-form TCP throughput laws: the square-root law and the PFTK model, full and short.

Plain functions of floats, NumPy arrays or JAX arrays (traced ones included); arguments broadcast. All give
the *send* rate in segments per second; multiplied by (1 - loss) it is the goodput. They suppose that losses
come in bursts that end with the round (PFTK) or once in 1/p segments (square root), a Reno sender, and no
slow start. `btqueue.transport.symbolic` has the same laws as sympy expressions.

Against the exact chain for a receive window of 8 segments (round-trip time 0.1 s, timeout 1 s, independent
losses from 0.001 to 0.4) the full model errs by -12 % to +17 %; the short one falls to -68 % at a loss of
0.4, and the square-root law is at twice the rate of NewReno already at a loss of 0.05.

Sources: Mathis, Semke, Mahdavi & Ott, Computer Communication Review 27(3), 1997; Padhye, Firoiu, Towsley &
Kurose, IEEE/ACM Transactions on Networking 8(2), 2000.
"""

from types import ModuleType
from typing import Any

import numpy as np

BACKOFF_COEFFICIENTS = (1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # f(p): six doublings of the timeout
NEGLIGIBLE_LOSS = 1e-18  # stands in for zero loss, where 0/0 would spoil values and derivatives


def square_root_rate(loss: Any, rtt: Any, *, segments_per_ack: Any = 1.0) -> Any:
    """Send rate by the square-root law, sqrt(3 / (2 b p)) / RTT.

    Args:
        loss: segment loss probability p in (0, 1); the rate is infinite at 0.
        rtt: round-trip time in seconds.
        segments_per_ack: b, 1 without and 2 with delayed ACKs.

    Raises:
        ValueError: an argument whose value is known is out of range.
    """
    _require_in_range(loss=loss, rtt=rtt, segments_per_ack=segments_per_ack)
    xp = _namespace(loss, rtt, segments_per_ack)
    with np.errstate(divide="ignore"):
        return xp.sqrt(xp.divide(1.5, segments_per_ack * loss)) / rtt


def pftk_short_rate(loss: Any, rtt: Any, *, window: Any, rto: Any, segments_per_ack: Any = 1.0) -> Any:
    """Send rate by the short form of the PFTK model.

    Args:
        loss: segment loss probability p in [0, 1).
        rtt: round-trip time in seconds.
        window: receive window in segments.
        rto: first retransmission timeout in seconds.
        segments_per_ack: b, 1 without and 2 with delayed ACKs.

    Raises:
        ValueError: an argument whose value is known is out of range.
    """
    _require_in_range(loss=loss, rtt=rtt, window=window, rto=rto, segments_per_ack=segments_per_ack)
    xp = _namespace(loss, rtt, window, rto, segments_per_ack)
    p = xp.maximum(loss, NEGLIGIBLE_LOSS)
    recovery = rtt * xp.sqrt(2.0 * segments_per_ack * p / 3.0)
    timeout_share = xp.minimum(1.0, 3.0 * xp.sqrt(3.0 * segments_per_ack * p / 8.0))
    timeouts = rto * timeout_share * p * (1.0 + 32.0 * p**2)
    # the least of two rates is the inverse of the larger of two times per segment, finite at zero loss
    return 1.0 / xp.maximum(rtt / window, recovery + timeouts)


def pftk_rate(loss: Any, rtt: Any, *, window: Any, rto: Any, segments_per_ack: Any = 1.0) -> Any:
    """Send rate by the full PFTK model.

    The model has two branches, by whether the window that losses alone would leave is below the receive
    window; the rate jumps by a few percent where they meet.

    Args:
        loss: segment loss probability p in [0, 1).
        rtt: round-trip time in seconds.
        window: receive window in segments.
        rto: first retransmission timeout in seconds.
        segments_per_ack: b, 1 without and 2 with delayed ACKs.

    Raises:
        ValueError: an argument whose value is known is out of range.
    """
    _require_in_range(loss=loss, rtt=rtt, window=window, rto=rto, segments_per_ack=segments_per_ack)
    xp = _namespace(loss, rtt, window, rto, segments_per_ack)
    b = segments_per_ack
    p = xp.maximum(loss, NEGLIGIBLE_LOSS)
    unlimited = unlimited_window(p, segments_per_ack=b)
    limited_by_losses = unlimited < window
    mean_window = xp.where(limited_by_losses, unlimited, window)
    rounds = xp.where(
        limited_by_losses,
        p * (b / 2.0 * mean_window + 1.0),
        p * (b / 8.0 * mean_window + 2.0) + (1.0 - p) / mean_window,
    )
    timeout = p * timeout_probability(p, mean_window) / (1.0 - p)
    backoff = sum(c * p**k for k, c in enumerate(BACKOFF_COEFFICIENTS))
    # numerator and denominator are per segment, p times those of the paper, and so finite at zero loss
    return ((1.0 - p) + p * mean_window + timeout) / (rtt * rounds + timeout * rto * backoff)


def unlimited_window(loss: Any, *, segments_per_ack: Any = 1.0) -> Any:
    """Mean window at a loss indication with no receive window, E[W_u] of PFTK, in segments."""
    xp = _namespace(loss, segments_per_ack)
    b = segments_per_ack
    offset = (2.0 + b) / (3.0 * b)
    return offset + xp.sqrt(8.0 * (1.0 - loss) / (3.0 * b * loss) + offset**2)


def timeout_probability(loss: Any, window: Any) -> Any:
    """Probability that a loss in a window of that many segments ends in a timeout (Q-hat), near 3/window."""
    xp = _namespace(loss, window)
    log_success = xp.log1p(-loss)

    def some_lost(segments: Any) -> Any:
        """1 - (1 - p)**segments without cancellation."""
        return -xp.expm1(segments * log_success)

    through = (1.0 - loss) ** 3
    return xp.minimum(1.0, some_lost(3.0) * (1.0 + through * some_lost(window - 3.0)) / some_lost(window))


def _namespace(*values: Any) -> ModuleType:
    """Return the array library of the values: NumPy, or JAX where one of them is a JAX array."""
    spaces = [v.__array_namespace__() for v in values if hasattr(v, "__array_namespace__")]
    return next((space for space in spaces if space is not np), np)


def _require_in_range(**values: Any) -> None:
    """Check that losses are in [0, 1) and everything else is positive; traced values pass.

    An argument is a loss if its name ends in "loss".

    Raises:
        ValueError: a value that is known is out of range or no number; the message names it.
    """
    for name, value in values.items():
        try:
            known = np.asarray(value, dtype=np.float64)
        except Exception as unknown:  # of a traced value: of a type that only JAX could name
            if hasattr(value, "aval"):
                continue
            raise ValueError(f"{name} must be a number, got {value!r}") from unknown
        is_loss = name.endswith("loss")
        inside = (known >= 0.0) & (known < 1.0) if is_loss else known > 0.0
        if not np.all(inside):
            raise ValueError(f"{name} must be {'in [0, 1)' if is_loss else 'positive'}, got {value}")
