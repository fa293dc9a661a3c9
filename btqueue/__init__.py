"""Queueing models and simulation of Bluetooth networks that carry TCP or another transport.

``load`` a scenario, ``solve`` it with Markov chains and queueing theory, ``simulate`` it event by event, or
``compare`` the two. Each name is imported on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.network import solve
    from btqueue.network.hints import hints
    from btqueue.progress_bars import progress
    from btqueue.scenario import Scenario, ScenarioError, load
    from btqueue.simulator import simulate, simulate_many
    from btqueue.study import compare
    from btqueue.study.tables import table

__version__ = "0.2.0"

__all__ = [
    "Scenario",
    "ScenarioError",
    "__version__",
    "compare",
    "hints",
    "load",
    "progress",
    "simulate",
    "simulate_many",
    "solve",
    "table",
]

_HOME = {
    "Scenario": "btqueue.scenario",
    "ScenarioError": "btqueue.scenario",
    "compare": "btqueue.study",
    "hints": "btqueue.network.hints",
    "load": "btqueue.scenario",
    "progress": "btqueue.progress_bars",
    "simulate": "btqueue.simulator",
    "simulate_many": "btqueue.simulator",
    "solve": "btqueue.network",
    "table": "btqueue.study.tables",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a part of the package, when it is first asked for."""
    if name in {"network", "scenario", "simulator", "study"}:
        return importlib.import_module(f"btqueue.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the lazy names too."""
    return sorted({*globals(), *__all__})
