"""Queueing models and simulation of Bluetooth networks that carry TCP or another transport.

``load`` a scenario, ``solve`` it with Markov chains and queueing theory, ``simulate`` it event by event, or
``compare`` the two; ``sweep`` keys, ask for their ``sensitivity``, ``dimension`` them; ``check`` another
simulator's results, or ``fit`` keys to them. Each name is imported on first use, so that importing the
package costs nothing.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.network import solve
    from btqueue.network.hints import hints
    from btqueue.progress_bars import progress
    from btqueue.scenario import Scenario, ScenarioError, load
    from btqueue.simulator import simulate, simulate_many
    from btqueue.study import compare
    from btqueue.study.check import check
    from btqueue.study.dimensioning import dimension
    from btqueue.study.fit import fit
    from btqueue.study.sensitivity import sensitivity
    from btqueue.study.sweep import sweep
    from btqueue.study.tables import table

__version__ = "0.2.0"

__all__ = [
    "Scenario",
    "ScenarioError",
    "__version__",
    "check",
    "compare",
    "dimension",
    "fit",
    "hints",
    "load",
    "progress",
    "sensitivity",
    "simulate",
    "simulate_many",
    "solve",
    "sweep",
    "table",
]

_HOME = {
    "Scenario": "btqueue.scenario",
    "ScenarioError": "btqueue.scenario",
    "check": "btqueue.study.check",
    "compare": "btqueue.study",
    "dimension": "btqueue.study.dimensioning",
    "fit": "btqueue.study.fit",
    "hints": "btqueue.network.hints",
    "load": "btqueue.scenario",
    "progress": "btqueue.progress_bars",
    "sensitivity": "btqueue.study.sensitivity",
    "simulate": "btqueue.simulator",
    "simulate_many": "btqueue.simulator",
    "solve": "btqueue.network",
    "sweep": "btqueue.study.sweep",
    "table": "btqueue.study.tables",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a part of the package, when it is first asked for."""
    if name in {"network", "scenario", "simulator", "study"}:
        return importlib.import_module(f"btqueue.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOME[name]), name)
    importlib.import_module("btqueue.scenario.metrics").Results.as_html = _as_html
    globals()[name] = found = found if isinstance(found, type) else _by_name(found)
    return found


def _by_name(function: Any) -> Any:
    """Let a function take the name or path of a scenario, as `load` does, in the place of the scenario."""
    from inspect import signature as signature_of

    signature = signature_of(function)
    if not {"scenario", "scenarios"} & set(signature.parameters):
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            if name == "scenario":
                given.arguments[name] = _loaded(value, optional=signature.parameters[name].default is None)
            elif name == "scenarios":
                several = [value] if isinstance(value, (str, os.PathLike)) else value
                given.arguments[name] = [_loaded(one) for one in several]
        return function(*given.args, **given.kwargs)

    called.__module__, called.__qualname__ = __name__, function.__name__  # where pickle finds it
    return called


def _loaded(scenario: Any, *, optional: bool = False) -> Any:
    from btqueue.scenario import Scenario, load

    if isinstance(scenario, Scenario) or (scenario is None and optional):
        return scenario
    if isinstance(scenario, (str, os.PathLike)):
        return load(scenario)
    raise TypeError(f"scenario = {scenario!r}: must be a Scenario, or the name or path of one")


def _as_html(results: Any) -> str:
    """Return the table of results for a notebook."""
    return importlib.import_module("btqueue.study.tables").table(results)._repr_html_()


def __dir__() -> list[str]:
    """List the lazy names too."""
    return sorted({*globals(), *__all__})
