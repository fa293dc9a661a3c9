"""Sections 4.4, 5.2 and 6: sessions over CDPD."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.claims.avancha_2002.systems import (
    APPLICATION_TIMEOUT_S,
    CDPD_SIZES,
    NOISY,
    QUIET,
    over_cdpd,
    ratio,
    retransmissions,
    session,
)
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import Finding, exceeds, rising, rounded


def tcp_on_cdpd(engine: Engine) -> list[np.ndarray]:
    """Return TCP's session times (s) at good times, from 128 to 4,096 bytes."""
    return [session(over_cdpd(engine, "tcp", size, QUIET)) for size in CDPD_SIZES[:4]]


def jump_at_4096(engine: Engine) -> Finding:
    """TCP on CDPD: linear up to 2,048 bytes, a jump at 4,096."""
    times = tcp_on_cdpd(engine)
    return Finding(exceeds(times[3], 2 * times[2]), f"{rounded(*times)} s")


def retransmissions_at_4096(engine: Engine) -> Finding:
    """Retransmissions set in massively at 4,096 bytes."""
    counts = [retransmissions(over_cdpd(engine, "tcp", size, QUIET)) for size in CDPD_SIZES[:4]]
    return Finding(exceeds(counts[3], 3 * counts[2]), f"{rounded(*counts)} for each session")


def success_at_8192(engine: Engine, bler: float, timeout_s: float) -> np.ndarray:
    """Return the share of TCP sessions of 8,192 bytes that end before they are given up."""
    result = over_cdpd(engine, "tcp", 8192, bler, traffic__application_timeout_s=timeout_s)
    return 1 - result["sessions_lost"].values[:, 0]


def failures_at_8192(engine: Engine) -> Finding:
    """Sessions of 8,192 bytes hardly ever end by TCP."""
    quiet, noisy = (success_at_8192(engine, bler, APPLICATION_TIMEOUT_S) for bler in (QUIET, NOISY))
    short = success_at_8192(engine, NOISY, 15.0)
    seen = (
        f"{rounded(quiet)}; with many block errors {rounded(noisy)}, "
        f"and {rounded(short)} if given up after 15 s"
    )
    return Finding(quiet.mean() <= 0.1, seen)


def block_errors(engine: Engine) -> Finding:
    """Block errors lower efficiency and raise the time."""
    rates = (0.001, 0.005, 0.01, 0.02)
    results = [over_cdpd(engine, "tcp", 1024, bler) for bler in rates]
    times = [session(result) for result in results]
    useful = [(r["goodput_kbps"].sum("flow") / r["throughput_kbps"].sum("flow")).values for r in results]
    return Finding(
        rising(times) and rising(useful[::-1]), f"{rounded(*times)} s, efficiency {rounded(*useful)}"
    )


def large_suffer_more(engine: Engine) -> Finding:
    """Large messages suffer more than small ones."""
    growth = {
        size: ratio(
            *(session(over_cdpd(engine, "tcp", size, bler, run__replications=20)) for bler in (NOISY, QUIET))
        )
        for size in (1024, 4096)
    }
    return Finding(
        exceeds(growth[4096], growth[1024]),
        f"times {rounded(growth[4096])} against times {rounded(growth[1024])}",
    )


def connect_time(engine: Engine) -> np.ndarray:
    """Return how much longer an exchange takes if it opens a new connection (s)."""
    period = [
        1 / over_cdpd(engine, "tcp", 128, 0.0, **changes)["sessions_per_s"].values[:, 0]
        for changes in ({"transport__handshake": True, "transport__connection_per_session": True}, {})
    ]
    return period[0] - period[1]


def connection_time(engine: Engine) -> Finding:
    """Opening a TCP connection takes about 2 s."""
    return Finding(abs(connect_time(engine).mean() / 2 - 1) <= 0.3, f"{rounded(connect_time(engine))} s")


def penalties(engine: Engine, delay_s: float = 0.97) -> list[np.ndarray]:
    """Return how much longer CentaurusComm takes than TCP, without losses of any kind (s)."""
    options = {"bler": 0.0, "delay_s": delay_s, "buffer": 1000}
    return [
        session(over_cdpd(engine, "centaurus", size, transport__centaurus_worker_s=0.0, **options))
        - session(over_cdpd(engine, "tcp", size, **options))
        for size in (128, 1024, 2048)
    ]


def penalty(engine: Engine) -> Finding:
    """CentaurusComm costs a constant 2 s more."""
    usual, short = penalties(engine), penalties(engine, 0.32)
    met = all(abs(p.mean() / 2 - 1) <= 0.3 for p in usual)
    return Finding(met, f"{rounded(*usual)} s; {rounded(*short)} s with a round trip of 0.64 s")


def small_messages(engine: Engine) -> Finding:
    """With the connection time, small messages take as long by either protocol."""
    tcp, centaurus = (session(over_cdpd(engine, protocol, 128, QUIET)) for protocol in ("tcp", "centaurus"))
    share = ratio(centaurus, tcp + connect_time(engine))
    early = session(over_cdpd(engine, "centaurus", 128, QUIET, transport__centaurus_early_data=True))
    return Finding(
        abs(share.mean() - 1) <= 0.4,
        f"{rounded(share)}; {rounded(ratio(early, tcp + connect_time(engine)))} with early data",
    )


def factor_at_4096(engine: Engine) -> Finding:
    """At 4,096 bytes CentaurusComm is five times as fast."""
    quiet, noisy = (
        ratio(
            session(over_cdpd(engine, "tcp", 4096, bler)), session(over_cdpd(engine, "centaurus", 4096, bler))
        )
        for bler in (QUIET, NOISY)
    )
    return Finding(
        abs(quiet.mean() / 5 - 1) <= 0.4, f"{rounded(quiet)}; {rounded(noisy)} with many block errors"
    )


def early_data(engine: Engine) -> Finding:
    """Data before PROCEED would save much, and cost nothing at bad times."""
    quiet, noisy = (
        [
            session(over_cdpd(engine, "centaurus", 4096, bler, transport__centaurus_early_data=early))
            for early in (True, False)
        ]
        for bler in (QUIET, NOISY)
    )
    return Finding(
        exceeds(quiet[1], quiet[0]) and not exceeds(noisy[0], noisy[1]),
        f"{rounded(quiet[1])} > {rounded(quiet[0])} s; "
        f"with many block errors {rounded(noisy[1])} > {rounded(noisy[0])} s",
    )


def tcp_is_poor_on_cdpd(engine: Engine) -> Finding:
    """TCP does badly on slow, long links, the message protocol better."""
    pairs = {
        (size, bler): [session(over_cdpd(engine, protocol, size, bler)) for protocol in ("centaurus", "tcp")]
        for size in (4096, 8192)
        for bler in (QUIET, NOISY)
    }
    seen = "; ".join(
        f"{size} byte, {100 * bler:g} %: {rounded(c)} against {rounded(t)} s"
        for (size, bler), (c, t) in pairs.items()
    )
    return Finding(all(exceeds(t, c) for c, t in pairs.values()), seen)
