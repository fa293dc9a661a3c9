"""Scenarios, as the user describes them: network, radio, link, polling, traffic, transport, run and more.

Nothing here computes a result; the package reads, checks, changes and writes scenarios, and holds the
vocabulary (keys, metrics, units) that the solver, the simulator and the reports share. Names are imported on
first use: a list of models needs none of the tables, whose checks take long to build.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.scenario.errors import NotBuiltYet, Problem, ScenarioError
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
        "btqueue.scenario.errors": ("NotBuiltYet", "Problem", "ScenarioError"),
        "btqueue.scenario.library": ("list_models", "models_folder"),
        "btqueue.scenario.link": ("FlowControl", "Link"),
        "btqueue.scenario.loading": ("load",),
        "btqueue.scenario.low_energy": ("ChannelClass", "Energy", "LowEnergy"),
        "btqueue.scenario.metrics": ("METRICS", "Metric", "describe"),
        "btqueue.scenario.network": ("Flow", "Network", "OutsideLink", "Piconet"),
        "btqueue.scenario.polling": ("Polling", "Voice"),
        "btqueue.scenario.radio": ("Radio", "RadioLink"),
        "btqueue.scenario.run": ("Run",),
        "btqueue.scenario.scenario": ("Scenario",),
        "btqueue.scenario.topology": ("Topology",),
        "btqueue.scenario.traffic": ("LoadStep", "Traffic"),
        "btqueue.scenario.transport": ("Transport",),
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
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found
