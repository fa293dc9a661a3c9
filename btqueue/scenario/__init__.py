"""Scenarios, as the user describes them: network, radio, link, polling, traffic, transport, run and more.

Nothing here computes a result; the package reads, checks, changes and writes scenarios, and holds the
vocabulary (keys, metrics, units) that the solver, the simulator and the reports share. Tables are imported on
first use: a list of models needs none of them, and their checks take long to build.
"""

import importlib
from typing import TYPE_CHECKING, Any

from btqueue.scenario.errors import NotBuiltYet, Problem, ScenarioError
from btqueue.scenario.loading import list_models, load, models_folder
from btqueue.scenario.metrics import METRICS, Metric, describe

if TYPE_CHECKING:
    from btqueue.scenario.link import FlowControl, Link
    from btqueue.scenario.low_energy import ChannelClass, Energy, LowEnergy
    from btqueue.scenario.network import Flow, Network, OutsideLink, Piconet
    from btqueue.scenario.radio import Radio, RadioLink
    from btqueue.scenario.run import Run
    from btqueue.scenario.scenario import Scenario
    from btqueue.scenario.topology import Topology
    from btqueue.scenario.traffic import LoadStep, Traffic
    from btqueue.scenario.transport import Transport

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


TABLES = ("scenario", "network", "radio", "low_energy", "traffic", "topology")
"""Modules that have all tables among their names."""


def __getattr__(name: str) -> Any:
    """Import the tables when one of them is asked for."""
    for module in TABLES if name in __all__ else ():
        found = importlib.import_module(f"btqueue.scenario.{module}")
        if hasattr(found, name):
            globals()[name] = getattr(found, name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
