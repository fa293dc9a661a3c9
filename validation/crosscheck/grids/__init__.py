"""For each model of the solver the points at which it is laid beside the simulator.

A module has `points()`, the scenarios by name, and `REASONS`: where the model is worse, and why, in Markdown.
"""

import importlib
import pkgutil
from types import ModuleType

from btqueue.network.models import MODELS
from btqueue.scenario import Scenario


def modules() -> dict[str, ModuleType]:
    """Return the grids by the name of their model."""
    return {
        m.name: importlib.import_module(f"{__name__}.{m.name}")
        for m in pkgutil.iter_modules(__path__)
        if not m.ispkg
    }


def points_of(model: str) -> list[tuple[str, Scenario]]:
    """Return the points of a model by name, asked of its own solver and no other."""
    follows = MODELS[model].follows
    return [
        (name, scenario.with_(run__solver="followed" if follows(scenario) else "analytic"))
        for name, scenario in modules()[model].points()
    ]
