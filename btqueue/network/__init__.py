"""Couples queueing and transport on a network into one operating point: `solve`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from btqueue.network.answers import NoConvergence, NotSampled
from btqueue.network.certificates import ImpossibleAnswer
from btqueue.network.solve import solve

if TYPE_CHECKING:
    from btqueue.network.variation import InDoubt, Judged, Plan, plan

__all__ = [
    "ImpossibleAnswer",
    "InDoubt",
    "Judged",
    "NoConvergence",
    "NotSampled",
    "Plan",
    "plan",
    "solve",
]


def __getattr__(name: str) -> Any:
    """Import names of `variation` when they are first used."""
    if name in __all__:
        return getattr(import_module("btqueue.network.variation"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
