"""`solve`: theory answers a scenario, and says whether its answer stands.

Every answer of a model passes `gate` and gets its doubts there. So a point that `solve` refuses or doubts is
refused or doubted with the same message by plans (`btqueue.network.variation`) and by studies.
"""

from __future__ import annotations

from btqueue.network.answers import NoConvergence, label
from btqueue.network.certificates import ImpossibleAnswer, certify
from btqueue.network.load_steps import Answer, answer_in_steps
from btqueue.network.measured_errors import IN_DOUBT, THEORY, in_words, kind_of
from btqueue.network.overload import mark_overload
from btqueue.network.stations import model
from btqueue.scenario import Scenario
from btqueue.scenario.limits import limits
from btqueue.scenario.metrics import Results
from btqueue.scenario.traits import in_tables

ELSEWHERE = "theory has no answer here: simulate plays the network"
"""The note under a refusal."""


def solve(scenario: Scenario) -> Results:
    """Return the metrics of a scenario in the long run, by the theory of stations, with units.

    Args:
        scenario: to be answered.

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
        ImpossibleAnswer: the model's answer breaks a law that every network keeps (`certificates`).
    """
    try:
        found = gate(in_tables(scenario))
    except (NoConvergence, ImpossibleAnswer) as refusal:
        refusal.add_note(ELSEWHERE)
        raise
    if (bounds := found.attrs.pop("limits", None)) is not None:
        found.attrs["limited_by"] = limits(scenario, bounds)
    return found


def gate(scenario: Scenario) -> Results:
    """Return the answer of theory, with its doubts.

    Args:
        scenario: to be answered, `in_tables`.

    Raises:
        NoConvergence: there is no consistent operating point.
        ImpossibleAnswer: the answer breaks a law that every network keeps (`certificates`).
    """
    found: list[str] = []

    def answer(of: Scenario) -> Answer:
        metrics, notes = model.answer(of)
        found.extend(notes["warnings"])
        return mark_overload(of, metrics, notes)

    if scenario.traffic.load_schedule:
        metrics, notes = answer_in_steps(scenario, answer)
    else:
        metrics, notes = answer(scenario)
    why = tuple(dict.fromkeys(found))
    kind = kind_of(scenario, metrics)
    about = {
        "stands": not why, "why": why, "system": kind.system, "regime": kind.regime,
        "errors_of": (errors_of := IN_DOUBT if why else THEORY),
        "measured_errors": in_words(errors_of, kind),
    }  # fmt: skip
    solved = label(scenario, metrics, {**about, **notes})
    certify(scenario, solved)
    return solved
