"""Analytic answers of many scenarios, found together before they are asked for one by one."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from btqueue.network.answers import NoConvergence
from btqueue.network.load_steps import Answer, in_step, steps_of
from btqueue.network.models import candidates
from btqueue.scenario import Scenario, ScenarioError

BATCHED = ("piconet", "multihop")
"""Models that solve scenarios together, and give derivatives."""
FEW = 8
"""So many scenarios or fewer are answered one by one: a batch is a program of its own."""

Ahead = Mapping[Any, Answer | NoConvergence]
"""What the analytic model has to say, by scenario."""


def answers_ahead(scenarios: Iterable[Scenario]) -> Ahead:
    """Return the answers of the models of piconets, where a scenario asks one first; others are left out.

    The same as one by one up to rounding, for a tenth of the time.
    """
    wanted: dict[str, dict[Any, None]] = {name: {} for name in BATCHED}
    for scenario in scenarios:
        try:
            model = candidates(scenario).get("analytic")
        except ScenarioError:
            continue
        if model in BATCHED:
            steps = [in_step(scenario, step) for step in steps_of(scenario)]
            wanted[model] |= dict.fromkeys(steps if scenario.traffic.load_schedule else [scenario])
    known: dict[Any, Answer | NoConvergence] = {}
    for name, some in wanted.items():
        if len(some) > FEW:
            answers = import_module(f"btqueue.network.{name}.model").answers
            known |= zip(some, answers(list(some)), strict=True)
    return known
