"""The scenarios that the two engines can run; keys and values that an engine lacks are refused by name."""

from __future__ import annotations

from typing import Literal

from btqueue.scenario.errors import NotBuiltYet, Problem
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import problems_of

Engine = Literal["solve", "simulate"]


def require_built(scenario: Scenario, engine: Engine = "solve") -> None:
    """Make sure that *engine* can run *scenario*.

    Raises:
        NotBuiltYet: naming each key, its value, and the values that are covered.
    """
    if problems := not_built(scenario, engine):
        raise NotBuiltYet(problems)


def require_answer(scenario: Scenario) -> None:
    """Make sure that theory covers *scenario*, or else that it can be simulated.

    Raises:
        NotBuiltYet: neither engine can run it; names the keys that theory does not cover.
    """
    if (problems := not_built(scenario)) and not_built(scenario, "simulate"):
        raise NotBuiltYet(problems)


def not_built(scenario: Scenario, engine: Engine = "solve") -> list[Problem]:
    """Return a problem for each part of *scenario* that *engine* cannot run; theory has laws for all."""
    if engine == "solve":
        return []
    from btqueue.simulator.scope import SIMULATOR

    return problems_of(SIMULATOR, scenario)
