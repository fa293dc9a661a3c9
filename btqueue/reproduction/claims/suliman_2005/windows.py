"""Section III.D: how losses are repaired and the window moves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import Finding, rounded
from btqueue.reproduction.claims.suliman_2005.systems import OVERSHOOT_FREE, scenario, simulated
from btqueue.simulator.statistics.series import time_series


def fast_retransmit(engine: Engine) -> Finding:
    """Losses are repaired by fast retransmit before the timer expires."""
    result = simulated(engine, "round-trips")
    fast, timeouts = (
        result.mean_over_flows("fast_retransmits_per_s"),
        result.mean_over_flows("timeouts_per_s"),
    )
    return Finding(
        bool(fast.min() > 0 and timeouts.max() == 0), f"{rounded(fast)} /s, timeouts {timeouts.max():g} /s"
    )


def largest_windows(engine: Engine, **changes: Any) -> tuple[int, float]:
    """Return the most segments outstanding and the largest cwnd (segments) of a transfer."""
    engine.only_simulated("course of the window")
    series = time_series(scenario("round-trips", **changes), step_s=0.01)
    return int(series.outstanding_segments.max()), float(series.cwnd_segments.max())


def window_never_full(engine: Engine) -> Finding:
    """The outstanding data never reach 64 KB."""
    outstanding, cwnd = largest_windows(engine)
    _, cwnd_later = largest_windows(engine, transport__initial_ssthresh_segments=OVERSHOOT_FREE)
    return Finding(
        outstanding < math.floor(65536 / 1460),
        f"{outstanding} of 44 segments outstanding while the loss is repaired; cwnd at most {cwnd:.0f}, and "
        f"{cwnd_later:.0f} without the overshoot of the first slow start",
    )


def window_drops(engine: Engine, variant: str) -> tuple[int, float]:
    """Return how often cwnd falls, and the least value it falls to after the first second."""
    engine.only_simulated("course of the window")
    series = time_series(scenario("round-trips", transport__variant=variant), step_s=0.01)
    window = series.cwnd_segments.values.ravel()[100:]
    return int(np.sum(np.diff(window) < -2)), float(window.min())


def sawtooth(engine: Engine) -> Finding:
    """The window grows slowly and falls at duplicate ACKs, to one MSS."""
    falls, least = window_drops(engine, "sack")
    _, tahoe = window_drops(engine, "tahoe")
    return Finding(falls >= 2, f"{falls} falls in 30 s, to {least:g} segments; Tahoe falls to {tahoe:g}")
