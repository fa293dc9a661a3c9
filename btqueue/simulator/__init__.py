"""The event-driven simulator: the full stack as plain functions over NumPy records, compiled by numba."""

from btqueue.simulator.invariants import InvariantViolated
from btqueue.simulator.replications import simulate

__all__ = ["InvariantViolated", "simulate"]
