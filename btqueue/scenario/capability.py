"""What the engines can run. The vocabulary of scenarios is larger; the rest is refused by name.

The simulator is one engine. `solve` has two solvers, one that solves and one that follows, each of several
models (`model_scopes`); of those of a solver the first that covers a scenario is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from btqueue.scenario.errors import NotBuiltYet, Problem, shown
from btqueue.scenario.model_scopes import MODELS
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit, Scope, problems_of

Engine = Literal["solve", "simulate"]
Solver = Literal["analytic", "followed"]
SOLVERS: tuple[Solver, ...] = ("analytic", "followed")

SIMULATE_VALUES: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {"polling.bridge_schedule": ("walk-in", "sniff", "pcss")}
)
"""For each key with values that the simulator cannot run yet: those that it can."""

KINDS = {
    "network.topology": 1000,
    "transport.protocol": 100,
    "network.peripherals": 30,
    "link.adaptation": 30,
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
    wanted = scenario.run.solver
    if wanted == "auto":
        return lacking(scenario, [name for solver in SOLVERS for name in models_of(scenario, solver)])
    problems = lacking(scenario, models_of(scenario, wanted))
    other = "followed" if wanted == "analytic" else "analytic"
    if problems and covering(scenario, other):
        available = f'"auto" or "{other}"'
        message = f"[run] solver = {shown(wanted)}: does not cover this; available today: {available}"
        return [Problem(message, key="run.solver", value=wanted, allowed=available), *problems]
    return problems


def lacking(scenario: Scenario, models: Iterable[str]) -> list[Problem]:
    """Return what the model that comes closest does not cover; nothing if one covers all."""
    return min((problems_of(MODELS[name], scenario) for name in models), key=distance)


def models_of(scenario: Scenario, solver: Solver) -> list[str]:
    """Return the models of a solver, in turn; what some do with a scenario depends on the scenario."""
    return [name for name, scope in MODELS.items() if scope.follows(scenario) == (solver == "followed")]


def covering(scenario: Scenario, solver: Solver) -> str | None:
    """Return the model by which a solver answers *scenario*, if any does."""
    return next((n for n in models_of(scenario, solver) if not problems_of(MODELS[n], scenario)), None)


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
    """Return the name of the model that is asked first about *scenario*, a key of `MODELS`.

    Raises:
        NotBuiltYet: there is none; the message is about the one that comes closest.
    """
    require_built(scenario)
    return next(iter(candidates(scenario).values()))


def candidates(scenario: Scenario) -> dict[Solver, str]:
    """Return the models that may answer *scenario* by `run.solver`, by solver, the analytic one first."""
    wanted = SOLVERS if scenario.run.solver == "auto" else (scenario.run.solver,)
    return {solver: name for solver in wanted if (name := covering(scenario, solver)) is not None}


def _unsimulated(s: Scenario) -> Iterator[Limit]:
    """Yield what the simulator cannot run, and no list of values can say."""
    memberships = Counter(name for p in s.network.piconet_names for name in (p.central, *p.members))
    for name, count in memberships.items():
        if count > MOST_PICONETS_OF_A_DEVICE:
            available = f"a device in at most {MOST_PICONETS_OF_A_DEVICE} piconets, not in {count}"
            yield Limit("network.piconet_list", name, available)


SIMULATOR = Scope("the simulator", SIMULATE_VALUES, _unsimulated)
