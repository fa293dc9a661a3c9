"""The answer of a model: named metrics, how it was found, and both with labels.

A model is a module with a function `answer(scenario)` that returns two dictionaries:

- metrics by name: one number for the network (`cycle_s`, `slot_utilisation`, `fairness`), one for each flow,
  or one number that holds for every flow; `queue_packets` maps the names of queues to mean lengths. A metric
  that the model cannot give is left out.
- notes: `method` as text, `converged`, `residual` (relative), `warnings`, `iterations` where they were
  counted, and `utilisation` of the busiest resource where there is one.
"""

import math
from collections.abc import Mapping, MutableMapping
from functools import partial
from typing import Any

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.metrics import LINK_METRICS, OF_THE_NETWORK, Computed, Results, Variable
from btqueue.scenario.topology import topology

Answer = tuple[MutableMapping[str, Any], MutableMapping[str, Any]]
"""Metrics and notes."""


class NoConvergence(RuntimeError):
    """The model found no consistent operating point; the message gives the reason."""


class NotSampled(NoConvergence):
    """A connection would have to be sampled; `args` are the doubts of a sampled answer."""


def label(scenario: Scenario, metrics: Mapping[str, Any], attrs: MutableMapping[str, Any]) -> Results:
    """Put names on a model's metrics, each when it is read first."""
    plan = topology(scenario)

    def variable(name: str) -> Variable:
        value = metrics[name]
        if name == "queue_packets":
            return Variable(("queue",), np.array(list(value.values()), float))
        if name in OF_THE_NETWORK:
            return Variable((), np.asarray(value))
        if name in LINK_METRICS:
            return Variable(("link",), np.asarray(value, float))
        values = np.broadcast_to(value, len(plan.flows)).astype(float)
        # a mean over no arrivals is no number
        return Variable(("flow",), np.where(np.isinf(values), np.nan, values))

    variables = Computed(later={name: partial(variable, name) for name in metrics})
    if "goodput_kbps" in variables and "fairness" not in variables:
        rates = np.array(variables["goodput_kbps"].values)
        rates += [0.0 if flow.reverse is None else rates[flow.reverse] for flow in plan.flows]
        connections = [flow.reverse is None or flow.reverse > n for n, flow in enumerate(plan.flows)]
        variables["fairness"] = Variable((), np.asarray(jain_index(rates[connections])))
    coordinates = {name: Variable(("flow",), np.array(of)) for name, of in plan.flow_labels().items()}
    if queues := metrics.get("queue_packets"):
        coordinates["queue"] = Variable(("queue",), np.array(list(queues)))
    if any(name in LINK_METRICS for name in metrics):
        links = plan.link_names
        coordinates["link"] = Variable(("link",), np.arange(1, len(links) + 1))
        coordinates["link_name"] = Variable(("link",), np.array(links))
    return Results(variables, coordinates, attrs)


def jain_index(rates: np.ndarray) -> float:
    """Return Jain's fairness index of rates, shape (flows,): 1 if all are equal (Jain et al. 1984).

    NaN if all are 0.
    """
    if not rates.any():
        return math.nan
    return min(
        float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())), 1.0
    )  # equal rates may round to more
