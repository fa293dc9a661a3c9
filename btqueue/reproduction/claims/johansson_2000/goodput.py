"""Sections 5.2 and 6, figure 2: goodput against packet errors."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.johansson_2000.systems import (
    NOISY,
    PEPS,
    capacity,
    measured,
    milliseconds,
    model,
)
from btqueue.reproduction.claims.judgement import exceeds, falling, listed, shown, within
from btqueue.reproduction.claims.record import Comparison


def goodput_asymmetric(engine: Engine) -> Comparison:
    """Saturated and without errors the asymmetric link stays slightly below 721 kbit/s."""
    seen = capacity(engine, "asymmetric", 0.0)
    return Comparison(f"{shown(seen, 4)} kbit/s", {"in range": within(seen, 600, 721)})


def goodput_symmetric(engine: Engine) -> Comparison:
    """Saturated and without errors the symmetric link stays slightly below 432.6 kbit/s each way."""
    seen = capacity(engine, "symmetric", 0.0)
    return Comparison(f"{shown(seen)} kbit/s", {"in range": within(seen, 360, 432.6)})


def goodput_against_pep(engine: Engine) -> Comparison:
    """To first order goodput is proportional to 1 - PEP: a packet takes 1 / (1 - PEP) turns."""
    parts, seen = {}, []
    for name in ("asymmetric", "symmetric"):
        samples = [capacity(engine, name, pep) for pep in PEPS]
        ratios = [float(s.mean() / samples[0].mean()) for s in samples]
        parts[f"{name} falls"] = falling(samples)
        parts[f"{name} as 1 - PEP, to 5 %"] = bool(np.allclose(ratios, 1 - np.array(PEPS), atol=0.05))
        seen.append(f"{name} {listed(samples, '.0f')}")
    return Comparison(f"PEP {PEPS}: {'; '.join(seen)}", parts)


def asymmetric_over_symmetric(engine: Engine) -> Comparison:
    """The asymmetric curve is the upper one."""
    parts = {
        f"PEP {pep}": exceeds(capacity(engine, "asymmetric", pep), capacity(engine, "symmetric", pep))
        for pep in PEPS
    }
    gains = [capacity(engine, "asymmetric", pep) / capacity(engine, "symmetric", pep) for pep in PEPS]
    return Comparison(f"ratio {listed(gains, '.2f')}", parts)


def half_of_all_packets_lost(engine: Engine) -> Comparison:
    """At a PEP of 0.5: goodput at least 40 % of its best, and delays below 1 s up to a load of 0.6."""
    ratio = capacity(engine, "symmetric", 0.5) / capacity(engine, "symmetric", 0.0)
    delays = [measured(engine, "smooth", "acknowledged_delay_s", 0.5, load) for load in (0.2, 0.4, 0.6)]
    parts = {"goodput": within(ratio, 0.4, 1.0), "delays": all(within(delay, 0.0, 1.0) for delay in delays)}
    return Comparison(
        f"{shown(ratio)} of the goodput without errors; {milliseconds(delays)} ms at loads 0.2, 0.4, 0.6",
        parts,
    )


def overload(engine: Engine) -> Comparison:
    """Offered: twice the capacity; the sender may hold 1,000 segments."""
    parts, ratios = {}, []
    for pep in PEPS:
        full = capacity(engine, "symmetric", pep)
        kbps = 2 * float(full.mean())
        twice = engine.sample(
            model("smooth", radio__per=pep, traffic__load_kbps=kbps, transport__send_buffer_segments=1000),
            "goodput_kbps",
        )
        ratios.append(twice / full)
        parts[f"PEP {pep}"] = within(twice / float(full.mean()), 0.95, 1.05)
    return Comparison(f"twice the capacity offered: {listed(ratios, '.3f')} of it", parts)


def load_is_normalised(engine: Engine) -> Comparison:
    """Load 1 is a different rate at each PEP; there the sources begin to saturate TCP."""
    parts, seen = {}, []
    for pep in NOISY:
        below = (
            measured(engine, "smooth", "goodput_kbps", pep, 0.8) / capacity(engine, "symmetric", pep).mean()
        )
        parts[f"PEP {pep}"] = within(below, 0.79, 0.81)
        seen.append(f"{capacity(engine, 'symmetric', pep).mean():.0f}")
    return Comparison(f"load 1 is {', '.join(seen)} kbit/s each way; load 0.8 is carried", parts)
