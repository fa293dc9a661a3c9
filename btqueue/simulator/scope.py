"""The scenarios that the simulator can run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from btqueue.scenario.errors import NotBuiltYet
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit, Scope, problems_of

MOST_PICONETS_OF_A_DEVICE = 8
"""Most piconets that a simulated device can belong to."""


def _unsimulated(s: Scenario) -> Iterator[Limit]:
    """Yield the limits of the simulator that no list of values can express."""
    memberships = Counter(name for p in s.network.piconet_names for name in (p.central, *p.members))
    for name, count in memberships.items():
        if count > MOST_PICONETS_OF_A_DEVICE:
            available = f"a device in at most {MOST_PICONETS_OF_A_DEVICE} piconets, not in {count}"
            yield Limit("network.piconet_list", name, available)


SIMULATOR = Scope("the simulator", {}, _unsimulated, own=None)


def require_simulated(scenario: Scenario) -> None:
    """Make sure that the simulator can run *scenario*.

    Raises:
        NotBuiltYet: naming each key, its value, and the values that are covered.
    """
    if any(_unsimulated(scenario)):  # to name the keys takes a description of the whole network
        raise NotBuiltYet(problems_of(SIMULATOR, scenario))
