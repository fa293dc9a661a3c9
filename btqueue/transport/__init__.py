"""Analytic models of transport protocols: closed-form laws, laws tabulated from TCP's chain.

Nothing here knows queues or radio links: loss probabilities, round-trip times and timeouts go in, rates come
out. The square-root laws are in `btqueue.transport.closed_forms`, as sympy expressions. Each name is imported
on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.transport.tcp_law import LawRates, NoLaw, TcpLaw, law, law_rates

__all__ = ["LawRates", "NoLaw", "TcpLaw", "law", "law_rates"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name in __all__:
        return getattr(importlib.import_module("btqueue.transport.tcp_law"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
