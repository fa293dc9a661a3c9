"""The scenarios that the simulator can run."""

from __future__ import annotations

from collections import Counter

from btqueue.scenario.errors import NotBuiltYet, conflict
from btqueue.scenario.scenario import Scenario

MOST_PICONETS_OF_A_DEVICE = 8
"""Most piconets that a simulated device can belong to."""


def require_simulated(scenario: Scenario) -> None:
    """Make sure that the simulator can run *scenario*, as it can run all but one kind.

    Raises:
        NotBuiltYet: a device is in too many piconets.
    """
    memberships = Counter(name for p in scenario.network.piconet_names for name in (p.central, *p.members))
    key, most = "network.piconet_list", f"a device in at most {MOST_PICONETS_OF_A_DEVICE} piconets"
    if problems := [
        conflict(key, name, f"the simulator covers {most}, not in {count}", allowed=most)
        for name, count in memberships.items()
        if count > MOST_PICONETS_OF_A_DEVICE
    ]:
        raise NotBuiltYet(problems)
