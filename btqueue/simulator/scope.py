"""The scenarios that the simulator can run."""

from __future__ import annotations

from btqueue.scenario.errors import NotBuiltYet, conflict
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.topology import topology
from btqueue.simulator.records.piconets import PICONETS_A_BRIDGE


def require_simulated(scenario: Scenario) -> None:
    """Make sure that the simulator can run *scenario*, as it can run all but one kind.

    Raises:
        NotBuiltYet: a device is in too many piconets.
    """
    key, most = "network.piconet_list", f"a device in at most {PICONETS_A_BRIDGE} piconets"
    plan = topology(scenario)
    if problems := [
        conflict(key, plan.nodes[one.node], f"the simulator covers {most}, not in {len(one.piconets)}")
        for one in plan.bridges
        if len(one.piconets) > PICONETS_A_BRIDGE
    ]:
        raise NotBuiltYet(problems)
