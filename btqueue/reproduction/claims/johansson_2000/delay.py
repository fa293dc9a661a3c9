"""Section 6, figures 3 to 6: delay against load."""

from __future__ import annotations

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.johansson_2000.systems import (
    LOADS,
    NOISY,
    capacity,
    longer,
    measured,
    milliseconds,
    model,
)
from btqueue.reproduction.claims.judgement import listed, rising, within
from btqueue.reproduction.claims.record import Comparison


def delay_is_u_shaped(engine: Engine) -> Comparison:
    """The mean delay first falls with load, as acknowledgements find data to ride on, then rises."""
    parts, seen = {}, []
    for pep in NOISY:
        samples = [measured(engine, "smooth", "acknowledged_delay_s", pep, load) for load in LOADS]
        least = min(samples, key=lambda s: s.mean())
        parts[f"PEP {pep}"] = longer(samples[0], least) and longer(samples[-1], least)
        seen.append(milliseconds(samples))
    return Comparison(f"at loads {LOADS}, ms: {'; '.join(seen)} (PEP {NOISY})", parts)


def piggybacked_share(engine: Engine) -> Comparison:
    """At the lowest loads nearly all acknowledgements wait for the tick and travel alone."""
    loads = (0.005, *LOADS)
    parts, seen = {}, []
    for pep in NOISY:
        samples = [measured(engine, "smooth", "piggybacked_acks", pep, load) for load in loads]
        parts[f"PEP {pep} rises"] = rising(samples)
        parts[f"PEP {pep} nearly none at first"] = within(samples[0], 0.0, 0.1)
        seen.append(listed(samples, ".2f"))
    return Comparison(f"share on data at loads {loads}: {'; '.join(seen)} (PEP {NOISY})", parts)


def bursts_cost_delay(engine: Engine) -> Comparison:
    """Accepted is at least a factor of two at each load."""
    parts, seen = {}, []
    for pep in NOISY:
        factors = []
        for load in LOADS:
            smooth = measured(engine, "smooth", "acknowledged_delay_s", pep, load)
            bursty = measured(engine, "bursty", "acknowledged_delay_s", pep, load)
            parts[f"PEP {pep}, load {load}"] = longer(bursty, 2 * smooth)
            factors.append(bursty.mean() / smooth.mean())
        seen.append(f"{min(factors):.1f} to {max(factors):.1f}")
    return Comparison(f"times {', '.join(seen)} (PEP {NOISY})", parts)


def half_the_buffer(engine: Engine) -> Comparison:
    """Loads of 0.3 and 0.8, smooth and bursty; saturation both ways and one way."""
    parts, worst = {}, 0.0
    for pep in (0.1, 0.5):
        for name in ("asymmetric", "symmetric"):
            half = engine.sample(model(name, radio__per=pep, link__node_buffer_bytes=7500), "goodput_kbps")
            worst = max(worst, abs(float(half.mean() / capacity(engine, name, pep).mean()) - 1))
        for name in ("smooth", "bursty"):
            for load in (0.3, 0.8):
                for metric in ("goodput_kbps", "acknowledged_delay_s"):
                    half = measured(engine, name, metric, pep, load, link__node_buffer_bytes=7500)
                    full = measured(engine, name, metric, pep, load)
                    worst = max(worst, abs(float(half.mean() / full.mean()) - 1))
    parts["below 5 %"] = worst < 0.05
    return Comparison(f"largest change {worst:.1%}", parts)
