"""Analytic models of transport protocols: closed-form laws, laws tabulated from TCP's chain, rounds.

Nothing here knows queues or radio links: loss probabilities, round-trip times and timeouts go in, rates come
out. The sympy laws are in `btqueue.transport.symbolic`. Each name is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.transport.closed_forms import pftk_rate, pftk_short_rate, square_root_rate
    from btqueue.transport.tcp_law import LawRates, NoLaw, TcpLaw, law, law_rates

__all__ = [
    "LawRates",
    "NoLaw",
    "TcpLaw",
    "law",
    "law_rates",
    "pftk_rate",
    "pftk_short_rate",
    "square_root_rate",
]

_HOME = {
    "closed_forms": ("pftk_rate", "pftk_short_rate", "square_root_rate"),
    "tcp_law": ("LawRates", "NoLaw", "TcpLaw", "law", "law_rates"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    for home, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"btqueue.transport.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
