"""Section III.E: how connections share the piconet."""

from __future__ import annotations

from typing import Any

import numpy as np

from btqueue.reproduction.claims.engines import Answer, Engine
from btqueue.reproduction.claims.judgement import Finding, exceeds, rising, rounded
from btqueue.reproduction.claims.suliman_2005.systems import simulated
from btqueue.simulator.statistics.measurement import jain_index


def connections(engine: Engine, count: int, **changes: Any) -> Answer:
    """Answer for a number of simultaneous connections."""
    return simulated(engine, "connections", network__active_flows=count, **changes)


def share_against_connections(engine: Engine) -> Finding:
    """Each peripheral receives less as connections are added."""
    shares = [connections(engine, k).mean_over_flows("goodput_kbps") for k in range(1, 8)]
    return Finding(rising(shares[::-1]), f"{rounded(*shares)} kbit/s")


def fairness(engine: Engine, count: int) -> np.ndarray:
    """Return Jain's index of the goodputs of a number of connections."""
    return connections(engine, count, run__replications=20).mean_over_flows("fairness")


def fairness_of_two(engine: Engine) -> Finding:
    """Two connections share equally."""
    return Finding(abs(fairness(engine, 2).mean() - 0.997) <= 0.015, rounded(fairness(engine, 2), digits=4))


def fairness_of_many(engine: Engine) -> Finding:
    """Many connections share less equally."""
    return Finding(abs(fairness(engine, 7).mean() - 0.875) <= 0.08, rounded(fairness(engine, 7), digits=4))


def fairness_against_connections(engine: Engine) -> Finding:
    """Sharing becomes less fair with more connections."""
    return Finding(
        exceeds(fairness(engine, 2), fairness(engine, 7)),
        rounded(*(fairness(engine, k) for k in (2, 4, 7)), digits=4),
    )


def jain_of_a_tenth(_engine: Engine) -> Finding:
    """An index of 0.10 leaves out 90 % of the users."""
    index = float(jain_index(np.array([1.0] + [0.0] * 9)))
    return Finding(index == 0.1, f"{index:g}")
