"""Check another simulator's output against itself, the model and the simulation: `check(file, scenario)`."""

from btqueue.study.check.agreement import Agreement
from btqueue.study.check.causes import Cause
from btqueue.study.check.reading import read_results
from btqueue.study.check.results import BadResults, Finding, ForeignResults, Quantity
from btqueue.study.check.verdicts import Report, check

__all__ = [
    "Agreement", "BadResults", "Cause", "Finding", "ForeignResults", "Quantity", "Report", "check",
    "read_results",
]  # fmt: skip
