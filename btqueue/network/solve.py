"""`solve`: theory answers a scenario, and says whether its answer stands.

Every answer of a model passes `gate` and gets its doubts there. So a point that `solve` refuses or doubts is
refused or doubted with the same message by plans (`btqueue.network.variation`) and by studies.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from btqueue.network.answers import Answer, NoConvergence, label
from btqueue.network.certificates import ImpossibleAnswer, certify
from btqueue.network.load_steps import answer_in_steps
from btqueue.network.measured_errors import IN_DOUBT, THEORY, in_words, kind_of
from btqueue.network.overload import mark_overload
from btqueue.scenario import Scenario
from btqueue.scenario.limits import limits
from btqueue.scenario.metrics import Computed, Results
from btqueue.scenario.traits import in_tables

ELSEWHERE = "theory has no answer here: simulate plays the network"
"""The note under a refusal."""


def solve(scenario: Scenario, *, sampling: bool = True) -> Results:
    """Return the metrics of a scenario in the long run, by the theory of stations, with units.

    Args:
        scenario: to be answered.
        sampling: whether a connection is sampled where nothing else answers. Sampled answers never stand.

    Returns:
        `Results`, read like an `xarray.Dataset`: per-flow metrics of dimension (flow,), scalars for the
        network and `queue_packets` of dimension (queue,); a metric that the model cannot give is absent.
        Attributes: answered_by ("theory"),
        stands (whether no law doubts the answer, `btqueue.network.stations.doubts`), why (the doubts,
        a tuple of sentences, empty if it stands), method, converged, residual (relative), warnings
        (the doubts among them), iterations (where they were counted), system and regime (the kind of the
        scenario), errors_of (whether the quoted errors are of answers that stand or of answers in doubt) and
        measured_errors (as text).

    Raises:
        NoConvergence: no consistent operating point was found.
        NotSampled: *sampling* is false, and a connection would be sampled.
        ImpossibleAnswer: the model's answer breaks a law that every network keeps (`certificates`).
    """
    try:
        return gate(scenario, sampling=sampling)
    except (NoConvergence, ImpossibleAnswer) as refusal:
        refusal.add_note(ELSEWHERE)
        raise


def gate(written: Scenario, *, sampling: bool = True) -> Results:
    """Return the answer of theory, with its doubts.

    Args:
        written: the scenario to be answered, as the user wrote it.
        sampling: see `solve`.

    Raises:
        NoConvergence: there is no consistent operating point.
        NotSampled: *sampling* is false, and a connection would be sampled.
        ImpossibleAnswer: the answer breaks a law that every network keeps (`certificates`).
    """
    from btqueue.network.stations import model  # a quarter of the start of `simulate`, which needs no theory

    scenario, found = in_tables(written), []

    def answer(of: Scenario) -> Answer:
        metrics, notes = model.answer(of, sampling=sampling)
        found.extend(notes["warnings"])
        return mark_overload(of, metrics, notes)

    if scenario.traffic.load_schedule:
        metrics, notes = answer_in_steps(scenario, answer)
        found.extend(notes.pop("doubts"))
    else:
        metrics, notes = answer(scenario)
    why = tuple(dict.fromkeys(found))
    bounds, errors_of = notes.pop("limits", None), IN_DOUBT if why else THEORY
    notes.pop("point", None)
    kind = cache(partial(kind_of, scenario, metrics))
    later = {
        "system": lambda: kind().system, "regime": lambda: kind().regime,
        "measured_errors": lambda: in_words(errors_of, kind(), metrics),
        **({"limited_by": partial(limits, written, bounds)} if bounds is not None else {}),
    }  # fmt: skip
    known = {"answered_by": "theory", "stands": not why, "why": why, "errors_of": errors_of}
    solved = label(scenario, metrics, Computed({**known, **notes}, later))
    certify(scenario, solved)
    return solved


def beside(written: Scenario, near: Any = None) -> tuple[Results, Any]:
    """Return metrics a small step away from an answer of `gate`, and the operating point where there is one.

    For derivatives: without limits, doubts and certificates. A schedule of loads has them.

    Args:
        written: the scenario to be answered.
        near: the operating point of the answer, from which this one is found in fewer turns.

    Raises:
        NoConvergence: there is no consistent operating point.
        ImpossibleAnswer: with a schedule of loads, as `gate`.
    """
    from btqueue.network.stations import model

    if written.traffic.load_schedule:
        return gate(written), None
    scenario = in_tables(written)
    metrics, notes = mark_overload(scenario, *model.answer(scenario, near=near))
    return label(scenario, metrics, notes), notes.get("point")
