r"""TCP as a law: what a greedy connection makes of a path, from tables of its Markov chain.

In lock-step rounds the fates of segments do not depend on times. So with a round trip R, a timeout RTO and a
cap, independent losses p of segments and q of acknowledgements, a delivered segment takes

    R A(p, q) + sum_k N_k(p, q) min(b^k RTO, cap) + d C(p, q)    seconds,

exactly as long as no timer is older than itself (RTO >= age R; with RTO = R, up to 2 % too little). A are
rounds, less the part in which a timer that expires has already run; N_k timeouts after k doublings (b = 2);
C waits of d seconds for a delayed acknowledgement. With timestamps N_k = N_0 f^k, where f =
1 - (1-p)(1-q) is what may happen to a lone retransmission. Without them (Karn's rule) all but the stages k of
the timeouts stays as it is. Delayed acknowledgements have two laws, for d longer and for d shorter than R;
the answer changes over with R^4 / (R^4 + d^4). The second one neglects that a wait spreads a round.

A, C, the timeouts, fast retransmits, transmissions and the mean window are tabulated as polynomials of
Chebyshev in log(1 + t / scale), t = -log((1-p)(1-q)) up to `MOST`, and in the share of t that is the
acknowledgements'. They stand for the logarithms of functions that have no zero: what is known about small
losses (one loss or two until a timeout; all acknowledgements of a round) is factored out. So rates are
positive, smooth, and exact without losses. `validation/theory/make_tcp_laws.py` makes the tables.
"""

from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

TABLES = Path(__file__).with_name("tcp_laws.npz")
UNIT = 2.0**-24
"""Of the numbers in the tables, which are whole."""

MOST = -float(np.log(0.05 * 0.4))
"""Total t at which tables end, with p = 0.95 and q = 0.6; beyond, f grows, and the rest stays as it is."""
CERTAIN = 1.0 - 1e-9
"""Largest loss."""

ROUNDS, TIMEOUTS, FAST_RETRANSMITS, TRANSMISSIONS, WINDOW, DELAYS = range(6)
"""Rows of a table; then those of the odds of stages 1 to 5 and of all later ones."""
STAGES = 6
DOUBLINGS = 16
"""Doublings of a timeout after which the cap must have been reached."""


class Receiver(StrEnum):
    """When a segment in order is acknowledged: at once, or every other one, with a timer for the rest."""

    AT_ONCE = "at once"
    LONG_TIMER = "delayed, a timer longer than a round"
    SHORT_TIMER = "delayed, a timer shorter than a round"


ENDINGS = {Receiver.AT_ONCE: "", Receiver.LONG_TIMER: "-long", Receiver.SHORT_TIMER: "-short"}
"""Of the names of laws."""
CHANGEOVER = 4.0
"""Power with which the law of delayed ACKs changes over from a long timer to a short one."""

EXACT_WINDOWS = 10
LONGEST_WINDOW = 64
ONLY_HERE = {"timestamps": 8, "delayed_ack": 8}
"""Largest window (segments) of the exact chain without timestamps, and with delayed acknowledgements."""


class NoLaw(ValueError):
    """No table holds this connection.

    Attributes:
        key: of `[transport]` that is in the way.
        allowed: its values that are not, in words.
    """

    def __init__(self, key: str, allowed: str) -> None:
        super().__init__(f"no law of TCP is tabulated for this {key}; there are: {allowed}")
        self.key, self.allowed = key, allowed


class TcpLaw(NamedTuple):
    """One connection's tables, for each of L laws: one, or those of a long and a short timer of delayed ACKs.

    Connections with the same L have the same shapes: they can be stacked.

    Attributes:
        table: (L, rows, X, Y) coefficients.
        silence: (L, X) coefficients of the timeouts for want of any acknowledgement, in -log(1-q).
        window: (L,) receive window (segments).
        scale: (L,) of t in the tables.
        rounds: (L,) of a segment without losses.
        delays: (L,) the same, waits for a delayed acknowledgement.
        one_loss: (L,) 1 if one loss may end in a timeout, 0 if it takes two.
        recovers: (L,) 1 if there are fast retransmits, else 0.
        acks: (L,) acknowledgements whose loss leaves a round without any.
    """

    table: Any
    silence: Any
    window: Any
    scale: Any
    rounds: Any
    delays: Any
    one_loss: Any
    recovers: Any
    acks: Any


class LawRates(NamedTuple):
    """What TCP makes of a path.

    Attributes:
        seconds: per delivered segment.
        goodput: delivered segments a second.
        timeouts: expiries of the timer per second.
        fast_retransmits: per second.
        transmissions: per delivered segment.
        window: mean of the lesser of cwnd and receive window, as acknowledgements and expiries find it
            (segments).
    """

    seconds: jax.Array
    goodput: jax.Array
    timeouts: jax.Array
    fast_retransmits: jax.Array
    transmissions: jax.Array
    window: jax.Array


@lru_cache(maxsize=256)
def law(variant: str, window: int, *, timestamps: bool = True, delayed_ack: bool = False) -> TcpLaw:
    """Return the law of a greedy connection.

    To windows of 10 segments, 8 with delayed acknowledgements, it is that of the exact chain; to 64 that of
    the reduced chain of NewReno (with its errors). Beyond 8 without
    timestamps the stages of timeouts are those of a window of 8.

    Args:
        variant: "tahoe", "reno", "newreno" or "sack".
        window: receive window in segments.
        timestamps: whether every new acknowledgement ends a backoff; else Karn's rule.
        delayed_ack: whether only every second segment is acknowledged, and a timer acknowledges the rest.

    Raises:
        NoLaw: nothing is tabulated for these arguments.

    Example:
        >>> from btqueue.transport.tcp_law import law
        >>> law("newreno", 8).window
        array([8.])
    """
    if variant not in ("tahoe", "reno", "newreno", "sack"):
        raise NoLaw("variant", '"tahoe", "reno", "newreno", "sack"')
    longest = longest_window(variant)
    if not 1 <= window <= longest:
        more = "" if variant == "newreno" else f', 1 to {LONGEST_WINDOW} with variant = "newreno"'
        raise NoLaw("receive_window_segments", f"1 to {longest}{more}")
    if delayed_ack and window > ONLY_HERE["delayed_ack"]:
        raise NoLaw("delayed_ack", f"false, or receive_window_segments to {ONLY_HERE['delayed_ack']}")
    receivers = [Receiver.LONG_TIMER, Receiver.SHORT_TIMER] if delayed_ack else [Receiver.AT_ONCE]
    parts = [_law(variant, window, receiver, timestamps) for receiver in receivers]
    return TcpLaw(*(np.stack(values) for values in zip(*parts, strict=True)))


def longest_window(variant: str) -> int:
    """Return the largest receive window of a variant whose law is tabulated (segments).

    Larger ones have the same law as long as losses keep windows small: with a mean window of up to 0.65 of
    this one, the goodput of larger ones is within 1.7 % (NewReno's tables of 10, 16, 32 and 64 segments).

    Example:
        >>> from btqueue.transport.tcp_law import longest_window
        >>> longest_window("newreno")
        64
    """
    return LONGEST_WINDOW if variant == "newreno" else EXACT_WINDOWS


def _law(variant: str, window: int, receiver: Receiver, timestamps: bool) -> TcpLaw:
    """Return one law, without the axis of laws."""
    tables = _tables()
    known = tables[law_name(variant, window, receiver)]
    stages = np.zeros((STAGES, *known["table"].shape[1:]))
    if not timestamps:
        stages = tables[law_name(variant, min(window, ONLY_HERE["timestamps"]), receiver)]["stages"]
    return TcpLaw(
        np.concatenate([known["table"], stages]), known["silence"], float(window), *known["numbers"]
    )


def law_name(variant: str, window: int, receiver: Receiver) -> str:
    """Return the name of a law's tables.

    Example:
        >>> from btqueue.transport.tcp_law import Receiver, law_name
        >>> law_name("newreno", 8, Receiver.LONG_TIMER)
        'newreno-8-long'
    """
    return f"{variant}-{window}{ENDINGS[receiver]}"


@cache
def _tables() -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return all tables, by law."""
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    with np.load(TABLES) as archive:
        for key, values in archive.items():
            name, _, part = key.partition(".")
            scaled = values * UNIT if values.dtype == np.int32 else values
            found.setdefault(name, {})[part] = scaled
    return found


def law_rates(
    law: TcpLaw,
    data_loss: Any,
    ack_loss: Any = 0.0,
    *,
    rtt_s: Any,
    min_rto_s: Any = 1.0,
    max_rto_s: Any = 64.0,
    backoff: Any = 2.0,
    ack_delay_s: Any = 0.0,
) -> LawRates:
    """Return what the connection makes of a path; for `jax.jit`, `grad` and `vmap`, in double precision.

    Args:
        law: from `law`.
        data_loss: loss probability of a segment.
        ack_loss: loss probability of an acknowledgement.
        rtt_s: round-trip time in seconds, without the wait of a delayed acknowledgement.
        min_rto_s: floor of the timeout in seconds; the timeout is the larger of the two.
        max_rto_s: cap of the timeout after backoff, in seconds; at most 2^16 times the timeout.
        backoff: factor of the timeout at each expiry, 1 or more.
        ack_delay_s: longest wait of a delayed acknowledgement in seconds.

    Example:
        >>> from btqueue.transport.tcp_law import law, law_rates
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     rates = law_rates(law("newreno", 8), 0.01, rtt_s=0.1)
        >>> round(float(rates.goodput), 2)
        65.0
    """
    u, v = (-jnp.log1p(-jnp.clip(loss, 0.0, CERTAIN)) for loss in (data_loss, ack_loss))
    rto, most = jnp.maximum(min_rto_s, rtt_s), jnp.maximum(max_rto_s, rtt_s)
    costs = jax.vmap(_costs, (0, None, None, None, None, None))(law, u, v, rto, most, backoff)
    if len(law.window) > 1:
        short = 1.0 / (1.0 + (ack_delay_s / rtt_s) ** CHANGEOVER)
        costs = _Costs(*((1.0 - short) * cost[0] + short * cost[1] for cost in costs))
    else:
        costs = _Costs(*(cost[0] for cost in costs))
    seconds = rtt_s * costs.rounds + costs.timers + ack_delay_s * costs.delays
    return LawRates(
        seconds=seconds,
        goodput=1.0 / seconds,
        timeouts=costs.timeouts / seconds,
        fast_retransmits=costs.fast_retransmits / seconds,
        transmissions=costs.transmissions,
        window=costs.window,
    )


class _Costs(NamedTuple):
    """Of a delivered segment: `timers` are the seconds of its timeouts."""

    rounds: Any
    timers: Any
    delays: Any
    timeouts: Any
    fast_retransmits: Any
    transmissions: Any
    window: Any


def _costs(law: TcpLaw, u: Any, v: Any, rto: Any, most: Any, backoff: Any) -> _Costs:
    """Read one law's table at -log(1-p) and -log(1-q)."""
    total = u + v
    share = v / jnp.maximum(total, 1e-100)
    t = jnp.minimum(total, MOST)
    along = chebyshev(2.0 * jnp.log1p(t / law.scale) / jnp.log1p(MOST / law.scale) - 1.0, law.table.shape[1])
    across = chebyshev(2.0 * share - 1.0, law.table.shape[2])
    row = jnp.einsum("ijk,j,k->i", law.table, along, across)
    u, v = t * (1.0 - share), t * share
    first = u * (law.one_loss + (1.0 - law.one_loss) * t) * jnp.exp(row[TIMEOUTS]) + silence(law, v)
    timeouts = first * jnp.exp(total)  # with those of the lone retransmissions that fail
    odds = jnp.expm1(total) * jnp.exp(row[-STAGES:])
    return _Costs(
        rounds=law.rounds * jnp.exp(t * row[ROUNDS]),
        timers=timeouts * _mean_timeout(odds, rto, most, backoff),
        delays=law.delays + t * row[DELAYS],
        timeouts=timeouts,
        fast_retransmits=law.recovers * u * jnp.exp(row[FAST_RETRANSMITS]),
        transmissions=jnp.exp(t * row[TRANSMISSIONS] + (total - t)),
        window=law.window * jnp.exp(t * row[WINDOW]),
    )


def silence(law: TcpLaw, v: Any) -> Any:
    """Return the timeouts of a delivered segment where acknowledgements alone are lost, v = -log(1-q).

    Example:
        >>> from btqueue.transport.tcp_law import law, silence
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     expired = silence(law("newreno", 8), 0.1)
        >>> round(float(expired[0]), 4)
        0.0
    """
    return v**law.acks * jnp.exp(chebyshev(2.0 * v / MOST - 1.0, law.silence.shape[0]) @ law.silence)


def chebyshev(x: Any, count: int) -> jax.Array:
    """Return the first polynomials of Chebyshev at x: T_(m+k) = 2 T_m T_k - T_(m-k) doubles their number.

    Example:
        >>> from btqueue.transport.tcp_law import chebyshev
        >>> import jax.numpy as jnp
        >>> [round(float(value), 4) for value in chebyshev(jnp.array(0.5), 4)]
        [1.0, 0.5, -0.5, -1.0]
    """
    known = jnp.stack([jnp.ones_like(x), x])
    while len(known) < count:
        last = len(known) - 1
        known = jnp.concatenate([known, 2.0 * known[last] * known[1:] - known[last - 1 :: -1]])
    return known[:count]


def _mean_timeout(odds: Any, rto: Any, most: Any, backoff: Any) -> Any:
    """Return the mean duration (s) of a timeout over the stages.

    `odds` are those of a further stage after 0, 1, ... and more doublings.
    """
    further, last = odds / (1.0 + odds), 1.0 / (1.0 + odds)
    steps = jnp.concatenate([jnp.ones(1), further, jnp.repeat(further[-1:], DOUBLINGS - STAGES)])
    weights = jnp.cumprod(steps)
    weights = weights.at[-1].divide(last[-1])  # and all later ones
    waits = jnp.minimum(backoff ** np.arange(DOUBLINGS + 1.0) * rto, most)
    return weights @ waits / weights.sum()
