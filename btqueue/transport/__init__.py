"""Analytic models of transport protocols: closed-form laws and the exact small-window TCP chain.

Nothing here knows queues or radio links: loss probabilities, round-trip times and timeouts go in, rates come
out. The sympy laws are in `btqueue.transport.symbolic`.
"""

from btqueue.transport.chain import TransitionStructure, compile_chain
from btqueue.transport.closed_forms import pftk_rate, pftk_short_rate, square_root_rate
from btqueue.transport.lockstep import LockstepRates, lockstep_rates
from btqueue.transport.loss_process import LossProcess, NothingPasses, in_series
from btqueue.transport.newreno_chain import Growth, Variant
from btqueue.transport.round_map import NotConvergedError

__all__ = [
    "Growth",
    "LockstepRates",
    "LossProcess",
    "NotConvergedError",
    "NothingPasses",
    "TransitionStructure",
    "Variant",
    "compile_chain",
    "in_series",
    "lockstep_rates",
    "pftk_rate",
    "pftk_short_rate",
    "square_root_rate",
]
