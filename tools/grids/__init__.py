"""Points at which the solver is laid beside the simulator.

A module has `points()`, the scenarios by name.
"""

import importlib
import pkgutil
from types import ModuleType

from btqueue.scenario import Scenario


def modules() -> dict[str, ModuleType]:
    """Return the grids by name."""
    return {
        m.name: importlib.import_module(f"{__name__}.{m.name}")
        for m in pkgutil.iter_modules(__path__)
        if not m.ispkg
    }


def points_of(grid: str) -> list[tuple[str, Scenario]]:
    """Return the points of a grid by name."""
    return modules()[grid].points()
