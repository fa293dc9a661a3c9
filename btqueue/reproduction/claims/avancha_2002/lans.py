"""Sections 5.1, 5.3 and 5.4: sessions over Ethernet, Bluetooth and a WLAN."""

from __future__ import annotations

from typing import Any

import numpy as np

from btqueue.reproduction.claims.avancha_2002.systems import (
    BLUETOOTH_SIZES,
    QUIET,
    WLAN_SIZES,
    over_cdpd,
    ratio,
    session,
    simulated,
)
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import Finding, exceeds, rising, rounded


def ethernet_is_flat(engine: Engine) -> Finding:
    """On Ethernet the time does not depend on the size."""
    near, far = (
        [
            1000 * session(simulated(engine, "ethernet", size, run__jitter_s=0.0)) + 2000 * further_s
            for size in (64, 1024, 8192)
        ]
        for further_s in (0.0, 0.05)
    )
    flat = near[-1].mean() < 1.1 * near[0].mean()
    return Finding(flat, f"{rounded(*near)} ms; {rounded(*far)} ms over a way that is 50 ms longer")


def milliseconds(engine: Engine, name: str, size: int, **changes: Any) -> np.ndarray:
    """Return the session time of a scenario (ms)."""
    return 1000 * session(simulated(engine, name, size, **changes))


def no_collapse(engine: Engine) -> Finding:
    """No cascade of retransmissions on Bluetooth."""
    result = simulated(engine, "bluetooth-tcp", 8192)
    share = (result["retransmissions_per_s"].sum("flow") / result["sessions_per_s"].isel(flow=0) / 8).values
    return Finding(bool(share.max() < 0.01), f"{100 * share.mean():.2g} % of segments")


def centaurus_is_linear(engine: Engine) -> Finding:
    """CentaurusComm's time on Bluetooth is linear in the size."""
    sizes = np.array(BLUETOOTH_SIZES[:5])
    times = [milliseconds(engine, "bluetooth-centaurus", size) for size in BLUETOOTH_SIZES[:5]]
    fit = float(np.corrcoef(sizes, [t.mean() for t in times])[0, 1] ** 2)
    return Finding(fit > 0.95, f"R² = {fit:.4f}: {rounded(*times)} ms")


def difference_of_small(engine: Engine) -> Finding:
    """Up to 512 bytes the protocols differ by about 50 ms."""
    usual, slow = (
        [
            milliseconds(engine, "bluetooth-centaurus", size, **changes)
            - milliseconds(engine, "bluetooth-tcp", size)
            for size in (64, 512)
        ]
        for changes in ({}, {"transport__centaurus_worker_s": 0.01})
    )
    met = all(abs(d.mean() / 50 - 1) <= 0.4 for d in usual)
    return Finding(
        met, f"{rounded(*usual)} ms at 64 and 512 byte; {rounded(*slow)} ms with a worker every 10 ms"
    )


def tcp_is_faster_on_bluetooth(engine: Engine) -> Finding:
    """TCP is faster on Bluetooth."""
    pairs = [
        (milliseconds(engine, "bluetooth-tcp", size), milliseconds(engine, "bluetooth-centaurus", size))
        for size in BLUETOOTH_SIZES
    ]
    seen = ", ".join(f"{t.mean():.0f} < {c.mean():.0f}" for t, c in pairs)
    return Finding(all(exceeds(c, t) for t, c in pairs), f"{seen} ms")


def order_of_networks(engine: Engine) -> Finding:
    """TCP: WLAN nearly as good as wired, then Bluetooth, then CDPD."""
    seen, met = [], True
    for size in (128, 8192):
        times = [
            session(simulated(engine, "ethernet", size)),
            session(simulated(engine, "wlan-tcp", size)),
            session(simulated(engine, "bluetooth-tcp", size)),
            session(over_cdpd(engine, "tcp", size, QUIET)),
        ]
        met = met and rising(times)
        seen.append(f"{size} byte: " + " < ".join(rounded(1000 * time) for time in times) + " ms")
    return Finding(met, "; ".join(seen))


def half_as_long_again(engine: Engine) -> Finding:
    """CentaurusComm takes 50 % longer than TCP on the WLAN, at all sizes."""
    ratios = [
        ratio(milliseconds(engine, "wlan-centaurus", size), milliseconds(engine, "wlan-tcp", size))
        for size in WLAN_SIZES
    ]
    return Finding(all(1.3 <= r.mean() <= 1.8 for r in ratios), rounded(*ratios))


def interference(engine: Engine) -> Finding:
    """Interference lengthens TCP's 8,192 bytes by 400 %."""
    factor = ratio(milliseconds(engine, "wlan-chargen", 8192), milliseconds(engine, "wlan-tcp", 8192))
    increase = 100 * (factor - 1)
    return Finding(
        abs(increase.mean() / 400 - 1) <= 0.4, f"+{rounded(increase)} %, a factor of {rounded(factor)}"
    )
