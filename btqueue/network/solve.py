"""`solve`: a scenario is answered by the first model that covers it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import xarray as xr

from btqueue.network.answers import label
from btqueue.network.certificates import certify
from btqueue.network.load_steps import Answer, answer_in_steps
from btqueue.network.measured_errors import in_words
from btqueue.network.overload import mark_overload
from btqueue.scenario import Scenario
from btqueue.scenario.capability import model_of
from btqueue.scenario.errors import NotBuiltYet
from btqueue.scenario.model_scopes import MODELS, SAMPLED
from btqueue.scenario.scope import problems_of

if TYPE_CHECKING:
    from btqueue.network.piconet.model import Plan


def solve(scenario: Scenario) -> xr.Dataset:
    """Solve the scenario's models and return its metrics in the long run.

    Returns:
        Dataset with per-flow metrics of dimension (flow,), scalars for the network and `queue_packets` of
        dimension (queue,); a metric that the model cannot give is absent. Attributes: answered_by, model,
        method, sampled (whether connections are followed by sampling), converged, residual (relative),
        iterations, warnings, measured_errors (in words) and, where the regime has a class of its own, errors.

    Raises:
        NotBuiltYet: the scenario asks for something that no model can do yet.
        NoConvergence: no consistent operating point was found.
        ImpossibleAnswer: the model's answer breaks a law that every network keeps (`certificates`).
    """
    name = model_of(scenario)
    model = import_module(f"btqueue.network.{name}.model")

    def answer(of: Scenario) -> Answer:
        return mark_overload(of, *model.answer(of))

    if scenario.traffic.load_schedule:
        metrics, notes = answer_in_steps(scenario, answer)
    else:
        metrics, notes = answer(scenario)
    about = {"model": name, "sampled": name in SAMPLED, "measured_errors": in_words(name)}
    solved = label(scenario, metrics, {**about, **notes})
    certify(scenario, solved)
    return solved


def plan(scenario: Scenario) -> Plan:
    """Return a scenario as numbers that may be varied, and a pure function from them to metrics.

    For gradients and for many answers at once, by `jax.grad`, `jax.vmap` and `jax.jit`. Single piconets only.

    Raises:
        NotBuiltYet: the scenario asks for something that the queueing model of a piconet cannot do.
    """
    if problems := problems_of(MODELS["piconet"], scenario):
        raise NotBuiltYet(problems)
    from btqueue.network.piconet.model import Plan

    return Plan(scenario)
