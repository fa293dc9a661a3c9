"""Overloaded flows (offered load above the goodput) are named in an answer, and their delays left out."""

from collections.abc import MutableMapping
from typing import Any

import numpy as np

from btqueue.network.answers import Answer
from btqueue.scenario import Scenario
from btqueue.scenario.limits import grows_with_the_run, overload_warning
from btqueue.scenario.topology import topology

CARRIED = 0.999
"""Share of the offered load below which a flow counts as overloaded; models that carry it answer with it."""


def offered_loads(scenario: Scenario) -> np.ndarray:
    """Return the offered load of each flow (kbit/s), shape (flows,); 0 where no backlog can grow.

    No backlog can grow where a source waits for acknowledgements (greedy, sessions) or a send buffer is
    limited.
    """
    views = [scenario.of_flow(flow.spec) for flow in topology(scenario).flows]
    open_loads = [
        own.traffic.source in ("poisson", "ibp", "periodic") and own.transport.send_buffer_segments is None
        for own in views
    ]
    return np.where(open_loads, [own.traffic.load_kbps for own in views], 0.0)


def mark_overload(
    scenario: Scenario, metrics: MutableMapping[str, Any], notes: MutableMapping[str, Any]
) -> Answer:
    """Return an answer (`btqueue.network.answers`) whose overloaded flows are named and have no delays.

    A datagram that is lost is not carried and does not wait either.
    """
    offered = offered_loads(scenario)
    carried = np.broadcast_to(metrics.get("goodput_kbps", np.inf), offered.shape)
    datagrams = [
        scenario.of_flow(flow.spec).transport.protocol == "none" for flow in topology(scenario).flows
    ]
    lost = np.where(datagrams, metrics.get("segment_loss", 0.0), 0.0)
    least = min(CARRIED, 1.0 - notes["residual"])
    overloaded = carried < least * offered * (1.0 - lost)
    if not overloaded.any():
        return metrics, notes
    warning = overload_warning(topology(scenario).flow_names, overloaded, carried, offered)
    marked = {
        name: np.where(overloaded, np.nan, value) if grows_with_the_run(name) else value
        for name, value in metrics.items()
        if not (grows_with_the_run(name) and np.all(overloaded | np.isnan(value)))
    }
    return marked, {**notes, "warnings": [*notes["warnings"], warning]}
