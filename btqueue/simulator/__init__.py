"""The event-driven simulator: protocol state in NumPy records, behaviour in functions compiled by numba."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.simulator.replications import simulate

__all__ = ["simulate"]


def __getattr__(name: str) -> Any:
    """Import `simulate` when it is asked for, so that one mechanism can be read without compiling the rest."""
    if name == "simulate":
        from btqueue.simulator.replications import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
