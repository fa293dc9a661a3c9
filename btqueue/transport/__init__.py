"""Analytic models of transport protocols: closed-form laws and the exact small-window TCP chain.

Nothing here knows queues or radio links: loss probabilities, round-trip times and timeouts go in, rates come
out. The sympy laws are in `btqueue.transport.symbolic`. Each name is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.transport.chain import TransitionStructure, compile_chain
    from btqueue.transport.closed_forms import pftk_rate, pftk_short_rate, square_root_rate
    from btqueue.transport.lockstep import LockstepRates, lockstep_rates
    from btqueue.transport.loss_process import LossProcess, NothingPasses, in_series
    from btqueue.transport.newreno_chain import Growth, Variant
    from btqueue.transport.round_map import NotConvergedError
    from btqueue.transport.tcp_law import LawRates, NoLaw, TcpLaw, law, law_rates

__all__ = [
    "Growth",
    "LawRates",
    "LockstepRates",
    "LossProcess",
    "NoLaw",
    "NotConvergedError",
    "NothingPasses",
    "TcpLaw",
    "TransitionStructure",
    "Variant",
    "compile_chain",
    "in_series",
    "law",
    "law_rates",
    "lockstep_rates",
    "pftk_rate",
    "pftk_short_rate",
    "square_root_rate",
]

_HOME = {
    "chain": ("TransitionStructure", "compile_chain"),
    "closed_forms": ("pftk_rate", "pftk_short_rate", "square_root_rate"),
    "lockstep": ("LockstepRates", "lockstep_rates"),
    "loss_process": ("LossProcess", "NothingPasses", "in_series"),
    "newreno_chain": ("Growth", "Variant"),
    "round_map": ("NotConvergedError",),
    "tcp_law": ("LawRates", "NoLaw", "TcpLaw", "law", "law_rates"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    for home, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"btqueue.transport.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
