"""The event-driven simulator: the full stack as plain functions over NumPy records, compiled by numba."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.simulator.replications import simulate, simulate_many
    from btqueue.simulator.statistics.invariants import InvariantViolated

__all__ = ["InvariantViolated", "simulate", "simulate_many"]

_HOME = {
    "InvariantViolated": "statistics.invariants",
    "simulate": "replications",
    "simulate_many": "replications",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: a single mechanism can be used without the rest."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"btqueue.simulator.{_HOME[name]}"), name)
