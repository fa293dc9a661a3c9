"""Scenarios, as the user describes them: network, radio, link, polling, traffic, transport, run and more.

Nothing here computes a result; the package reads, checks, changes and writes scenarios, and holds the
vocabulary (keys, metrics, units) that the solver, the simulator and the reports share. `Scenario` is imported
on first use: a list of models needs no table, and the checks of tables take long to build.
"""

from typing import TYPE_CHECKING, Any

from btqueue.scenario.errors import NotBuiltYet, Problem, ScenarioError
from btqueue.scenario.loading import list_models, load, models_folder
from btqueue.scenario.metrics import METRICS, Metric, describe

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

__all__ = [
    "METRICS",
    "Metric",
    "NotBuiltYet",
    "Problem",
    "Scenario",
    "ScenarioError",
    "describe",
    "list_models",
    "load",
    "models_folder",
]


def __getattr__(name: str) -> Any:
    """Import `Scenario` when it is asked for."""
    if name != "Scenario":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from btqueue.scenario.scenario import Scenario

    globals()[name] = Scenario
    return Scenario
