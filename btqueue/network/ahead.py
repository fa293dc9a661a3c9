"""Answers of theory to many scenarios, found together before they are asked for one by one."""

from collections.abc import Iterable, Mapping
from typing import Any

from btqueue.network.answers import NoConvergence
from btqueue.network.load_steps import Answer, in_step, steps_of
from btqueue.network.models import covering
from btqueue.network.whole_segments import in_segments
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.scope import in_tables

FEW = 8
"""So many scenarios or fewer are answered one by one: a batch is a program of its own."""

Ahead = Mapping[Any, Answer | NoConvergence]
"""What the model has to say, by scenario."""


def answers_ahead(scenarios: Iterable[Scenario]) -> Ahead:
    """Return the answers of the model of a piconet, where it answers a scenario; others are left out.

    The same as one by one up to rounding, for a tenth of the time.
    """
    wanted: dict[Any, None] = {}
    for scenario in map(in_segments, map(in_tables, scenarios)):
        try:
            model = covering(scenario)
        except ScenarioError:
            continue
        if model == "piconet":
            steps = [in_step(scenario, step) for step in steps_of(scenario)]
            wanted |= dict.fromkeys(steps if scenario.traffic.load_schedule else [scenario])
    if len(wanted) <= FEW:
        return {}
    from btqueue.network.piconet.model import answers

    return dict(zip(wanted, answers(list(wanted)), strict=True))
