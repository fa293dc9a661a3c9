"""`solve`: queues and chains answer a scenario where that stands, else connections are followed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from btqueue.network.ahead import Ahead
from btqueue.network.answers import NoConvergence, label
from btqueue.network.certificates import ImpossibleAnswer, certify
from btqueue.network.load_steps import Answer, answer_in_steps
from btqueue.network.measured_errors import IN_DOUBT, in_words, kind_of
from btqueue.network.models import MODELS, SAMPLED, Solver, candidates, lacking, models_of, problems, seen_by
from btqueue.network.overload import mark_overload
from btqueue.network.piconet.covers import loses_segments
from btqueue.network.regime import doubts
from btqueue.network.whole_segments import in_rounds, in_rounds_at_all, in_segments, of_full_segments
from btqueue.scenario import NotBuiltYet, Scenario
from btqueue.scenario.errors import Problem, bracketed, shown
from btqueue.scenario.metrics import Results
from btqueue.scenario.scope import in_tables, problems_of

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.network.multihop.model import Plan as PlanOfSeveral
    from btqueue.network.piconet.lossy_model import LossyPlan
    from btqueue.network.piconet.plan import Plan

NOTHING_AHEAD: Ahead = MappingProxyType({})
SMOOTH = ("piconet", "multihop")
"""Models that give derivatives."""
OF_DERIVATIVES = frozenset({"load_kbps"})
"""Keys of flows by which there are derivatives, each under the name that it has in the scenario."""
STANDS = "no doubt about the answer by queues and chains"
DOUBTED = "the answer by queues and chains is in doubt (see its warnings)"


class Solved(NamedTuple):
    """The answer of one solver, and why it does not stand: empty if it does."""

    results: Results
    doubts: tuple[str, ...]

    def because(self, reason: str) -> Results:
        """Return the answer, which states the reason for its solver from now on."""
        self.results.attrs["solver_reason"] = reason
        return self.results


def solve(scenario: Scenario, ahead: Ahead = NOTHING_AHEAD) -> xr.Dataset:
    """Return the `solution` of a scenario as a dataset with units and descriptions."""
    return solution(scenario, ahead).to_dataset()


def solution(scenario: Scenario, ahead: Ahead = NOTHING_AHEAD) -> Results:
    """Solve the scenario's models and return its metrics in the long run.

    By `run.solver`: "analytic" solves queues and chains, "followed" follows connections from event to event.
    With "auto" it is the analytic answer where that stands (`btqueue.network.regime`), else the followed one
    where there is one, else the analytic one with its warnings.

    Args:
        scenario: to be answered.
        ahead: analytic answers that are known already (`btqueue.network.ahead`).

    Returns:
        Per-flow metrics of dimension (flow,), scalars for the network and `queue_packets` of
        dimension (queue,); a metric that the model cannot give is absent. Attributes: answered_by, solver
        ("analytic" or "followed"), solver_reason (why that one, in words), model, method, sampled (whether
        connections are followed by sampling), converged, residual (relative), warnings, iterations (where
        they were counted), system and regime (of what kind the scenario is), errors_of (the answers that are
        quoted: a solver's, or analytic ones in doubt) and measured_errors (in words).

    Raises:
        NotBuiltYet: the scenario asks for something that no model can do yet.
        NoConvergence: no consistent operating point was found.
        ImpossibleAnswer: the model's answer breaks a law that every network keeps (`certificates`).
    """
    models = candidates(scenario)
    if not models:
        raise NotBuiltYet(problems(scenario))
    written, scenario = scenario, in_tables(scenario)
    if scenario.run.solver != "auto":
        (chosen,) = models.items()
        return _solved(scenario, *chosen, ahead).because("as run.solver says")
    if "analytic" not in models:
        lacks = lacking(written, models_of(scenario, "analytic"))[0]
        uncovered = f"no model by queues and chains covers {bracketed(lacks.key)} = {shown(lacks.value)}"
        return _solved(scenario, "followed", models["followed"]).because(uncovered)
    if "followed" not in models:
        found = _solved(scenario, "analytic", models["analytic"], ahead)
        return found.because(
            f"{DOUBTED}, but such connections cannot be followed" if found.doubts else STANDS
        )
    try:
        found = _solved(scenario, "analytic", models["analytic"], ahead)
    except (NoConvergence, ImpossibleAnswer) as error:
        failed = f"queues and chains give no answer: {error}"
        return _solved(scenario, "followed", models["followed"]).because(failed)
    if not found.doubts:
        return found.because(STANDS)
    in_doubt = f"the answer by queues and chains is in doubt: {'; '.join(found.doubts)}"
    try:
        return _solved(scenario, "followed", models["followed"]).because(in_doubt)
    except (NoConvergence, ImpossibleAnswer) as error:
        return found.because(f"{DOUBTED}, but following the connections failed: {error}")


def _solved(scenario: Scenario, solver: Solver, name: str, ahead: Ahead = NOTHING_AHEAD) -> Solved:
    """Return the answer of a model."""
    model = import_module(f"btqueue.network.{name}.model")
    found: list[str] = []

    def ask(of: Scenario) -> Answer:
        known: Any = ahead.get(of)
        if isinstance(known, NoConvergence):
            raise known
        metrics, notes = model.answer(of) if known is None else known
        return metrics, {**notes, "warnings": doubts(name, of, metrics, notes)}

    def answer(of: Scenario) -> Answer:
        metrics, notes = in_rounds(of, ask) if solver == "analytic" else ask(seen_by(name, of))
        if solver == "analytic":
            found.extend(notes["warnings"])
        return mark_overload(of, metrics, notes)

    if scenario.traffic.load_schedule:
        metrics, notes = answer_in_steps(scenario, answer)
    else:
        metrics, notes = answer(scenario)
    plain = seen_by(name, scenario)
    kind = kind_of(plain, metrics)
    about = {
        "solver": solver, "solver_reason": "", "model": name, "sampled": name in SAMPLED,
        "system": kind.system, "regime": kind.regime,
        "errors_of": (errors_of := IN_DOUBT if solver == "analytic" and found else solver),
        "measured_errors": in_words(errors_of, kind),
    }  # fmt: skip
    solved = label(plain, metrics, {**about, **notes})
    certify(of_full_segments(scenario), solved)
    return Solved(solved, tuple(dict.fromkeys(found)))


def plan(scenario: Scenario) -> Plan | LossyPlan | PlanOfSeveral:
    """Return a scenario as numbers that may be varied, and a pure function from them to metrics.

    For gradients and for many answers at once, by `jax.grad`, `jax.vmap` and `jax.jit`: of one piconet, or of
    several that carry their loads.

    Raises:
        NotBuiltYet: the scenario asks for something that the queueing models of piconets cannot do.
    """
    scenario = in_tables(scenario, OF_DERIVATIVES)
    if in_rounds_at_all(scenario):
        size, mss = scenario.traffic.message_bytes, scenario.transport.mss_bytes
        full = f"a multiple of transport.mss_bytes = {mss}"
        message = (
            f"[traffic] message_bytes = {size}: no derivatives of messages that wait for each other; {full}"
        )
        raise NotBuiltYet([Problem(message, key="traffic.message_bytes", value=size, allowed=full)])
    scenario = in_segments(scenario)
    if scenario.traffic.source == "poisson" and not problems_of(MODELS["multihop"], scenario):
        from btqueue.network.multihop.model import Plan as PlanOfSeveral

        return PlanOfSeveral(scenario)
    if problems := problems_of(MODELS["piconet"], scenario):
        raise NotBuiltYet(problems)
    from btqueue.network.piconet.lossy_model import LossyPlan
    from btqueue.network.piconet.plan import Plan

    return LossyPlan(scenario) if loses_segments(scenario) else Plan(scenario)


def slopes(scenario: Scenario, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return exact derivatives of an analytic answer: means over flows by metric, and by key of `plan`.

    Empty where another model than those of piconets answers, or a load that changes, or messages wait for
    each other's acknowledgement, or connections overflow their buffers in cycles, which have no derivatives.
    """
    scenario = in_tables(scenario, OF_DERIVATIVES)
    waiting, scenario = in_rounds_at_all(scenario), in_segments(scenario)
    model = candidates(scenario).get("analytic")
    if model not in SMOOTH or scenario.traffic.load_schedule or waiting:
        return {}
    if model == "multihop":
        if scenario.traffic.source == "greedy":
            return {}
        from btqueue.network.multihop.model import Plan as PlanOfSeveral

        return PlanOfSeveral(scenario).slopes(names)
    from btqueue.network.piconet.lossy_model import LossyPlan
    from btqueue.network.piconet.model import cycle_in
    from btqueue.network.piconet.plan import Plan

    if loses_segments(scenario):
        return LossyPlan(scenario, apart=False).slopes(names)
    numbers = Plan(scenario, apart=False)
    return {} if cycle_in(numbers, numbers.with_findings()[1]) is not None else numbers.slopes(names)
