"""The link of Johansson, Kihl and Körner (2000), and how to ask an engine for its metrics.

Loads are shares of the saturated goodput at the same packet error probability (PEP), as in section 5.2: of
the goodput that the same engine gives. Ten replications of 400 s, all with one seed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import exceeds, listed
from btqueue.scenario import Scenario, load

PAPER = "johansson-2000"
PEPS = (0.0, 0.1, 0.3, 0.5)
NOISY = (0.1, 0.3, 0.5)
"""Packet error probabilities of figures 3 to 6."""
LOADS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9)
SLOT_S = 625e-6
VEGAS = ((1, 2), (1, 3), (2, 4), (3, 6))
"""Bounds alpha and beta "within reasonable values"; 1 and 3 are the paper's."""


def model(name: str, **changes) -> Scenario:
    """Return a scenario with changes."""
    return load(f"{PAPER}/{name}").with_(**changes)


def capacity(engine: Engine, name: str, pep: float) -> np.ndarray:
    """Saturated goodput (kbit/s, each way): figure 2."""
    return engine.sample(model(name, radio__per=pep), "goodput_kbps")


def measured(engine: Engine, name: str, metric: str, pep: float, load: float, **changes) -> np.ndarray:
    """A metric at a share `load` of the saturated symmetric goodput: figures 3 to 6."""
    kbps = load * float(capacity(engine, "symmetric", pep).mean())
    return engine.sample(model(name, radio__per=pep, traffic__load_kbps=kbps), metric, **changes)


def milliseconds(delays: Iterable[np.ndarray]) -> str:
    """Return the means of several delays (s) in ms."""
    return listed((1000 * delay for delay in delays), ".0f")


def longer(delays: np.ndarray, others: np.ndarray) -> bool:
    """Compare delays by their logarithms: close to saturation they differ by factors between replications."""
    return exceeds(np.log(delays), np.log(others))


def spread(samples) -> float:
    """Return the largest difference of the means over their mean."""
    means = [float(s.mean()) for s in samples]
    return float(np.ptp(means) / np.mean(means))
