"""`solve`: queues and chains answer a scenario where that stands, else connections are followed.

Every answer of a model passes `gate`, whoever asks, and gets its doubts there. So a point that `solve`
refuses, or doubts, is refused, or doubted, in the same words by plans (`btqueue.network.variation`) and by
studies.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from btqueue.network.ahead import Ahead
from btqueue.network.answers import NoConvergence, label
from btqueue.network.certificates import ImpossibleAnswer, certify
from btqueue.network.load_steps import Answer, answer_in_steps
from btqueue.network.measured_errors import IN_DOUBT, in_words, kind_of
from btqueue.network.models import SAMPLED, Solver, candidates, lacking, models_of, problems, seen_by
from btqueue.network.overload import mark_overload
from btqueue.network.regime import doubts
from btqueue.network.whole_segments import in_rounds, of_full_segments
from btqueue.scenario import NotBuiltYet, Scenario
from btqueue.scenario.errors import bracketed, shown
from btqueue.scenario.metrics import Results
from btqueue.scenario.scope import in_tables

if TYPE_CHECKING:
    import xarray as xr

NOTHING_AHEAD: Ahead = MappingProxyType({})
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
        return gate(scenario, *chosen, ahead).because("as run.solver says")
    if "analytic" not in models:
        lacks = lacking(written, models_of(scenario, "analytic"))[0]
        uncovered = f"no model by queues and chains covers {bracketed(lacks.key)} = {shown(lacks.value)}"
        return gate(scenario, "followed", models["followed"]).because(uncovered)
    if "followed" not in models:
        found = gate(scenario, "analytic", models["analytic"], ahead)
        return found.because(
            f"{DOUBTED}, but such connections cannot be followed" if found.doubts else STANDS
        )
    try:
        found = gate(scenario, "analytic", models["analytic"], ahead)
    except (NoConvergence, ImpossibleAnswer) as error:
        failed = f"queues and chains give no answer: {error}"
        return gate(scenario, "followed", models["followed"]).because(failed)
    if not found.doubts:
        return found.because(STANDS)
    in_doubt = f"the answer by queues and chains is in doubt: {'; '.join(found.doubts)}"
    try:
        return gate(scenario, "followed", models["followed"]).because(in_doubt)
    except (NoConvergence, ImpossibleAnswer) as error:
        return found.because(f"{DOUBTED}, but following the connections failed: {error}")


def gate(scenario: Scenario, solver: Solver, name: str, ahead: Ahead = NOTHING_AHEAD) -> Solved:
    """Return the answer of a model, with its doubts.

    Args:
        scenario: to be answered.
        solver: that the model belongs to.
        name: of the model, a key of `btqueue.network.models.MODELS`.
        ahead: what an analytic model has said already, by scenario `in_segments`; it is asked for the rest.

    Raises:
        NoConvergence: the model refuses the scenario: it has no consistent operating point.
        ImpossibleAnswer: the answer breaks a law that every network keeps (`certificates`).
    """
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
