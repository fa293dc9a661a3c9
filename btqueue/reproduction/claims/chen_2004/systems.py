"""The systems of Chen and others (2004), and how to ask an engine for their goodput.

"Regular" always uses DH5, "adaptive" chooses by the thresholds of table 3. Five replications of 580 s after
20 s of warm-up, all with one seed.
"""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.claims.engines import Engine
from btqueue.scenario import Scenario, load
from btqueue.scenario.library import models_folder
from btqueue.simulator.statistics.series import time_series

PAPER = "chen-2004"
LINKS = ("regular", "adaptive")
HOPS = (1, 2, 4)
BERS = (0.0, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 7e-4, 1e-3)
FIRST_THRESHOLD = 1.529e-4
"""First of the thresholds of table 3: above it adaptive links leave DH5."""


def model(name: str, **changes) -> Scenario:
    """Return a scenario with changes."""
    return load(f"{PAPER}/{name}").with_(run__replications=5, **changes)


def goodput(engine: Engine, link: str, hops: int, ber: float, **changes) -> np.ndarray:
    """Goodput (kbit/s) at a constant bit error rate: figure 5."""
    return engine.sample(model(f"{link}-{hops}", radio__ber=ber, **changes), "goodput_kbps")


def series(engine: Engine, scenario: Scenario) -> np.ndarray:
    """Goodput (kbit/s) in each ten seconds of 600 s: figures 6 and 8."""
    engine.only_simulated("goodput of each ten seconds")
    return time_series(scenario, 0, 10.0).goodput_kbps.values[:, 0]


def traced(link: str, hops: int) -> Scenario:
    """Return the scenario of figure 8: the error rate follows a trace."""
    trace = str(models_folder() / PAPER / "link-quality.txt")
    return model(f"trace-{link}", network__hops=hops, radio__trace_file=trace)
