"""The systems of Avancha et al. (2002), and how to ask an engine for their session times."""

from __future__ import annotations

from typing import Any

import numpy as np

from btqueue.reproduction.claims.engines import Answer, Engine
from btqueue.scenario import Scenario, load

PAPER = "avancha-2002"
CDPD_SIZES = (128, 1024, 2048, 4096, 8192)
BLUETOOTH_SIZES = (64, 128, 1024, 2048, 4096, 8192)
WLAN_SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
QUIET, NOISY = 0.001, 0.02
"""Block error rates of CDPD: at good times, and at bad ones."""
APPLICATION_TIMEOUT_S = 30.0
"""A session is given up after this time."""


def scenario(name: str, size: int | None = None, **changes: Any) -> Scenario:
    """Return a scenario whose swept message has this size; CDPD sweeps the request, all others the reply."""
    if size is not None:
        changes["traffic__request_bytes" if name.startswith("cdpd") else "traffic__reply_bytes"] = size
    return load(f"{PAPER}/{name}").with_(**changes)


def simulated(engine: Engine, name: str, size: int | None = None, **changes: Any) -> Answer:
    """Answer a scenario by its name."""
    return engine(scenario(name, size, **changes))


def cdpd_link(bler: float) -> dict[str, Any]:
    """Return the channel with another block error rate."""
    (link,) = scenario("cdpd-tcp").to_dict(resolved=False)["network"]["outside_links"]
    return link | {"loss": bler}


def over_cdpd(
    engine: Engine,
    protocol: str,
    size: int,
    bler: float,
    delay_s: float = 0.97,
    buffer: int = 4,
    **changes: Any,
) -> Answer:
    """Simulate sessions over CDPD with another block error rate, one-way delay or buffer of the modem."""
    links = [cdpd_link(bler) | {"delay_s": delay_s, "buffer_packets": buffer}]
    return engine(scenario(f"cdpd-{protocol}", size, network__outside_links=links, **changes))


def session(result: Answer) -> np.ndarray:
    """Return the mean session time (s) of the first flow in each replication."""
    return result["session_time_s"].values[:, 0]


def retransmissions(result: Answer) -> np.ndarray:
    """Return retransmitted segments for each session, of both ends."""
    return result["retransmissions_per_s"].sum("flow").values / result["sessions_per_s"].values[:, 0]


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the ratio in each replication."""
    return a / b
