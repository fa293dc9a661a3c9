"""The scenarios that the simulator can run."""

from __future__ import annotations

from collections import Counter

from btqueue.scenario.errors import NotBuiltYet, conflict
from btqueue.scenario.scenario import Scenario
from btqueue.simulator.records.piconets import PICONETS_A_BRIDGE


def require_simulated(scenario: Scenario) -> None:
    """Make sure that the simulator can run *scenario*, as it can run all but one kind.

    Raises:
        NotBuiltYet: a device is in too many piconets.
    """
    memberships = Counter(name for p in scenario.network.piconet_names for name in (p.central, *p.members))
    key, most = "network.piconet_list", f"a device in at most {PICONETS_A_BRIDGE} piconets"
    if problems := [
        conflict(key, name, f"the simulator covers {most}, not in {count}")
        for name, count in memberships.items()
        if count > PICONETS_A_BRIDGE
    ]:
        raise NotBuiltYet(problems)
