"""The keys that an answer depends on, and how much.

Locally (derivatives and elasticities at one operating point), in closed form, over whole ranges of the keys
(Sobol's shares of variance, Morris's elementary effects), and by simulation as a cross-check.
"""

from btqueue.study.sensitivity.by_simulation import simulated_slopes
from btqueue.study.sensitivity.formulas import Evaluated, formula, formulas_of
from btqueue.study.sensitivity.local import local_sensitivity
from btqueue.study.sensitivity.local_result import Local, Row
from btqueue.study.sensitivity.methods import sensitivity
from btqueue.study.sensitivity.over_ranges import global_sensitivity

__all__ = [
    "Evaluated",
    "Local",
    "Row",
    "formula",
    "formulas_of",
    "global_sensitivity",
    "local_sensitivity",
    "sensitivity",
    "simulated_slopes",
]
