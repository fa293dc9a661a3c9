"""Closed forms for sources, token buckets, delayed answers and shares.

Plain arithmetic as in `closed_forms`: numbers give numbers, sympy symbols the formula, which
`closed_forms.formula` does by name.

The interrupted Bernoulli process has gaps of generating function ``z [(1 - p) + p q z / (1 - (1 - q) z)]``
with ``p`` to stop and ``q`` to go; its moments give the first four functions. An answer's delay is the least
of a timer and an exponential time; its moments give the next six. Source of the fairness index: Jain, Chiu &
Hawe, DEC-TR-301 (1984).
"""

import math
from collections.abc import Sequence
from typing import Any


def _exp(value: Any) -> Any:
    """The exponential function of the kind of number that is given."""
    if hasattr(value, "free_symbols"):
        import sympy

        return sympy.exp(value)
    if hasattr(value, "__array_namespace__"):
        return value.__array_namespace__().exp(value)
    return math.exp(value)


def token_bucket_capacity(token_rate: Any, payload: Any, charge: Any) -> Any:
    """Most payload a unit of time that a token bucket lets through: tokens, at ``charge`` for ``payload``.

    Example:
        >>> from btqueue.queueing.traffic_forms import token_bucket_capacity
        >>> token_bucket_capacity(15000, 1000, 1530)
        9803.921568627451
    """
    return token_rate * payload / charge


def interrupted_stop(rate: Any, scv: Any) -> Any:
    """Probability that an active slot of an interrupted Bernoulli process is followed by an idle one.

    ``rate`` is packets a slot, ``scv`` the squared coefficient of variation of the slots between packets.

    Example:
        >>> from btqueue.queueing.traffic_forms import interrupted_stop
        >>> round(interrupted_stop(0.2, 5), 4)
        0.2207
    """
    return 2 * (1 - rate) ** 2 / (scv + 1 - rate)


def interrupted_go(rate: Any, scv: Any) -> Any:
    """Probability that an idle slot of an interrupted Bernoulli process is followed by an active one.

    Example:
        >>> from btqueue.queueing.traffic_forms import interrupted_go
        >>> round(interrupted_go(0.2, 5), 4)
        0.0552
    """
    return 2 * rate * (1 - rate) / (scv + 1 - rate)


def interrupted_rate(stop: Any, go: Any) -> Any:
    """Packets a slot of an interrupted Bernoulli process.

    Example:
        >>> from btqueue.queueing.traffic_forms import interrupted_rate
        >>> interrupted_rate(0.2, 0.1)
        0.3333333333333333
    """
    return go / (stop + go)


def interrupted_scv(stop: Any, go: Any) -> Any:
    """Squared coefficient of variation of the slots between packets of an interrupted Bernoulli process.

    Example:
        >>> from btqueue.queueing.traffic_forms import interrupted_scv
        >>> round(interrupted_scv(0.2, 0.1), 4)
        3.7778
    """
    return stop * (2 - stop - go) / (stop + go) ** 2


def tick_delay(rate: Any, timer: Any) -> Any:
    """Mean delay of an answer that rides on the next packet or goes alone at the next tick of a clock.

    Packets to ride on are Poisson with ``rate``; ticks are ``timer`` apart, at any phase.

    Example:
        >>> from btqueue.queueing.traffic_forms import tick_delay
        >>> import sympy
        >>> round(float(tick_delay(10, sympy.Float(0.5))), 4)
        0.0801
    """
    return (1 - tick_alone(rate, timer)) / rate


def tick_delay_second(rate: Any, timer: Any) -> Any:
    """Mean square of the delay of `tick_delay`.

    Example:
        >>> from btqueue.queueing.traffic_forms import tick_delay_second
        >>> import sympy
        >>> round(float(tick_delay_second(10, sympy.Float(0.5))), 4)
        0.0122
    """
    return 2 / rate**2 * (1 - 2 * tick_alone(rate, timer) + _exp(-rate * timer))


def tick_alone(rate: Any, timer: Any) -> Any:
    """Probability that the answer of `tick_delay` goes alone.

    Example:
        >>> from btqueue.queueing.traffic_forms import tick_alone
        >>> import sympy
        >>> round(float(tick_alone(10, sympy.Float(0.5))), 4)
        0.1987
    """
    return (1 - _exp(-rate * timer)) / (rate * timer)


def timer_delay(rate: Any, timer: Any) -> Any:
    """Mean delay of an answer that rides on the next packet or goes alone ``timer`` after it was due.

    Example:
        >>> from btqueue.queueing.traffic_forms import timer_delay
        >>> import sympy
        >>> round(float(timer_delay(10, sympy.Float(0.5))), 4)
        0.0993
    """
    return (1 - _exp(-rate * timer)) / rate


def timer_delay_second(rate: Any, timer: Any) -> Any:
    """Mean square of the delay of `timer_delay`.

    Example:
        >>> from btqueue.queueing.traffic_forms import timer_delay_second
        >>> import sympy
        >>> round(float(timer_delay_second(10, sympy.Float(0.5))), 4)
        0.0192
    """
    return 2 * (1 - _exp(-rate * timer) * (1 + rate * timer)) / rate**2


def timer_alone(rate: Any, timer: Any) -> Any:
    """Probability that the answer of `timer_delay` goes alone.

    Example:
        >>> from btqueue.queueing.traffic_forms import timer_alone
        >>> import sympy
        >>> round(float(timer_alone(10, sympy.Float(0.5))), 4)
        0.0067
    """
    return _exp(-rate * timer)


def fairness(shares: Sequence[Any]) -> Any:
    """Jain's index: 1 where all shares are equal, ``1/n`` where one of ``n`` has all.

    Example:
        >>> from btqueue.queueing.traffic_forms import fairness
        >>> fairness([100, 100, 40])
        0.8888888888888888
    """
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
