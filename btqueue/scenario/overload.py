"""Overloaded flows: the offered load exceeds the goodput, so delays grow with the run and are no metrics.

Both engines find overloaded flows in their own way and report them in these words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

DELAYS = ("delay_", "acknowledged_delay_")
"""How the names begin of metrics that a growing backlog makes a function of the run's length."""
MOST_NAMED = 3
"""Flows that a warning names one by one."""


def grows_with_the_run(metric: str) -> bool:
    """Whether the metric of an overloaded flow grows with the length of the run."""
    return metric.startswith(DELAYS)


def overload_warning(
    names: Sequence[str], overloaded: np.ndarray, carried_kbps: np.ndarray, offered_kbps: np.ndarray
) -> str:
    """Return the warning of a result with overloaded flows; empty if there is none.

    Args:
        names: names of the flows.
        overloaded: whether each is, shape (flows,).
        carried_kbps: goodputs, shape (flows,).
        offered_kbps: offered loads, shape (flows,).
    """

    def share(of: np.ndarray) -> str:
        carried, offered = np.mean(carried_kbps[of]), np.mean(offered_kbps[of])
        return f"{carried:.3g} of {offered:.3g} kbit/s carried"

    places = np.flatnonzero(overloaded)
    if not places.size:
        return ""
    if places.size == len(names):
        which = share(places) + (" per flow" if len(names) > 1 else "")
    elif places.size <= MOST_NAMED:
        which = ", ".join(f"{names[int(place)]} ({share(np.array([place]))})" for place in places)
    else:
        which = f"{places.size} of {len(names)} flows, on average {share(places)}"
    return f"overloaded: {which}; delays grow with the run and are left out"
