"""Couples queueing and transport on a network into one operating point: `solve`, `solution` as arrays."""

from btqueue.network.ahead import answers_ahead
from btqueue.network.answers import NoConvergence
from btqueue.network.certificates import ImpossibleAnswer
from btqueue.network.solve import solution, solve
from btqueue.network.variation import InDoubt, Judged, Plan, plan, slopes

__all__ = ["ImpossibleAnswer", "NoConvergence", "answers_ahead", "plan", "slopes", "solution", "solve"]
