"""Couples queueing and transport on a network into one operating point: `solve`."""

from btqueue.network.piconet import NoConvergence, solve

__all__ = ["NoConvergence", "solve"]
