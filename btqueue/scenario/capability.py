"""What the engines can run. The vocabulary of scenarios is larger; the rest is refused by name.

The simulator is one engine. The solver is several models (`model_scopes`), and a scenario is solved by the
first of them that covers it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from btqueue.scenario.errors import NotBuiltYet, Problem
from btqueue.scenario.model_scopes import MODELS, SAMPLED
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit, Scope, problems_of

Engine = Literal["solve", "simulate"]

SIMULATE_VALUES: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {"polling.bridge_schedule": ("walk-in", "sniff", "pcss")}
)
"""For each key with values that the simulator cannot run yet: those that it can."""

KINDS = {
    "network.topology": 1000,
    "transport.protocol": 100,
    "network.peripherals": 30,
    "traffic.source": 20,
    "network.flows": 10,
    "network.outside_links": 5,
}
"""Keys that say what kind of scenario it is, and how far off a model of another kind is."""

SESSIONS = 1000
"""How far off sessions are from everything else."""

MOST_PICONETS_OF_A_DEVICE = 8
"""Most piconets that a simulated device can belong to."""


def require_built(scenario: Scenario, engine: Engine = "solve") -> None:
    """Make sure that *engine* can run *scenario*.

    Raises:
        NotBuiltYet: naming each key, its value, and what is available today.
    """
    if problems := not_built(scenario, engine):
        raise NotBuiltYet(problems)


def not_built(scenario: Scenario, engine: Engine = "solve") -> list[Problem]:
    """Return a problem for each part of *scenario* that *engine* cannot run.

    Of the models it is the one that comes closest whose problems are returned.
    """
    if engine == "simulate":
        return problems_of(SIMULATOR, scenario)
    return min((problems_of(scope, scenario) for scope in scopes_for(scenario).values()), key=distance)


def scopes_for(scenario: Scenario) -> dict[str, Scope]:
    """Return the models that may solve *scenario*, in turn; without those that sample, if asked for."""
    analytic = scenario.run.solver == "analytic"
    return {name: scope for name, scope in MODELS.items() if not (analytic and name in SAMPLED)}


def distance(problems: list[Problem]) -> int:
    """Return how far a scenario is from what a model is about."""
    far = {
        re.sub(r"\[\d+\]", "", problem.key): problem for problem in problems
    }  # as one, if all flows have it
    return sum(
        SESSIONS if key == "traffic.source" and _between_sessions(problem) else KINDS.get(key, 1)
        for key, problem in far.items()
    )


def _between_sessions(problem: Problem) -> bool:
    """Whether sessions meet a model that has none, or the reverse."""
    return "request-reply" in str(problem.allowed) or problem.value == "request-reply"


def model_of(scenario: Scenario) -> str:
    """Return the name of the model that solves *scenario*, a key of `MODELS`.

    Raises:
        NotBuiltYet: none does; the message is about the one that comes closest.
    """
    require_built(scenario)
    return next(name for name, scope in scopes_for(scenario).items() if not problems_of(scope, scenario))


def _unsimulated(s: Scenario) -> Iterator[Limit]:
    """Yield what the simulator cannot run, and no list of values can say."""
    memberships = Counter(name for p in s.network.piconet_names for name in (p.central, *p.members))
    for name, count in memberships.items():
        if count > MOST_PICONETS_OF_A_DEVICE:
            available = f"a device in at most {MOST_PICONETS_OF_A_DEVICE} piconets, not in {count}"
            yield Limit("network.piconet_list", name, available)


SIMULATOR = Scope("the simulator", SIMULATE_VALUES, _unsimulated)
