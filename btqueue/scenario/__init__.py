"""Scenarios, as the user describes them: network, radio, link, polling, traffic, transport, run and more.

Nothing here computes a result; the package reads, checks, changes and writes scenarios, and holds the
vocabulary (keys, metrics, units) that the solver, the simulator and the reports share. Names are imported on
first use: a list of models needs none of the tables, whose checks take long to build.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.scenario.errors import NotBuiltYet, Problem, ScenarioError
    from btqueue.scenario.graph_import import scenario_from_graph
    from btqueue.scenario.library import list_models, models_folder
    from btqueue.scenario.link import FlowControl, Link
    from btqueue.scenario.loading import load
    from btqueue.scenario.low_energy import ChannelClass, Energy, LowEnergy
    from btqueue.scenario.metrics import METRICS, Metric, describe
    from btqueue.scenario.network import Flow, Network, OutsideLink, Piconet
    from btqueue.scenario.polling import Polling, Voice
    from btqueue.scenario.radio import Radio, RadioLink
    from btqueue.scenario.run import Run
    from btqueue.scenario.scenario import Scenario
    from btqueue.scenario.topology import Topology
    from btqueue.scenario.traffic import LoadStep, Traffic
    from btqueue.scenario.transport import Transport

_HOME = {
    name: module
    for module, names in {
        "errors": ("NotBuiltYet", "Problem", "ScenarioError"),
        "graph_import": ("scenario_from_graph",),
        "library": ("list_models", "models_folder"),
        "link": ("FlowControl", "Link"),
        "loading": ("load",),
        "low_energy": ("ChannelClass", "Energy", "LowEnergy"),
        "metrics": ("METRICS", "Metric", "describe"),
        "network": ("Flow", "Network", "OutsideLink", "Piconet"),
        "polling": ("Polling", "Voice"),
        "radio": ("Radio", "RadioLink"),
        "run": ("Run",),
        "scenario": ("Scenario",),
        "topology": ("Topology",),
        "traffic": ("LoadStep", "Traffic"),
        "transport": ("Transport",),
    }.items()
    for name in names
}
__all__ = [
    "METRICS",
    "ChannelClass",
    "Energy",
    "Flow",
    "FlowControl",
    "Link",
    "LoadStep",
    "LowEnergy",
    "Metric",
    "Network",
    "NotBuiltYet",
    "OutsideLink",
    "Piconet",
    "Polling",
    "Problem",
    "Radio",
    "RadioLink",
    "Run",
    "Scenario",
    "ScenarioError",
    "Topology",
    "Traffic",
    "Transport",
    "Voice",
    "describe",
    "list_models",
    "load",
    "models_folder",
    "scenario_from_graph",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = found
    return found
