"""Measured errors of the solver against the simulator, over grids of scenarios.

By whether the answer stands, by system and by regime, from `measured_errors.csv`, which
`tools/model_against_simulation.py` writes together with the page of the documentation that
shows every point.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from btqueue.network.overload import offered_loads
from btqueue.scenario import Scenario
from btqueue.scenario.traits import traits

CARRIED = 0.99
"""Share of the offered load of every flow above which the load of a network counts as carried."""
FEW = 10
"""Least points of a regime; with fewer the errors of its whole system are quoted."""
THEORY, IN_DOUBT = "theory", "theory, in doubt"
"""The answers whose errors are quoted: by an answer that stands, and by an answer in doubt."""
IN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "goodput_kbps": "goodput",
        "rtt_s": "round trip",
        "session_time_s": "session time",
        "timeouts_per_s": "timeouts",
    }
)
"""Metrics whose errors an answer quotes."""


class MeasuredError(NamedTuple):
    """Size of the relative error of one metric.

    Attributes:
        points: scenarios that were solved and simulated.
        median: median of the absolute values of their relative errors.
        high: their 95th percentile.
        worst: the error of greatest absolute value, with its sign (solved above simulated: positive).
    """

    points: int
    median: float
    high: float
    worst: float


class Kind(NamedTuple):
    """A kind of scenario: its system, and its regime, the radio's errors and the load."""

    system: str
    regime: str


def kind_of(scenario: Scenario, metrics: Mapping[str, Any]) -> Kind:
    """Return the kind of a scenario with these metrics, of shape (flows,) or one value for all flows."""
    network, there = scenario.network, traits(scenario)
    arq = {one.value for one in there if one.kind == "link.arq"}
    sessions = any(one.kind == "traffic.source" and one.value == "request-reply" for one in there)
    if scenario.link.bearer == "le":
        system = "Low Energy"
    elif sessions:
        system = "sessions"
    elif network.outside_links:
        system = "outside links"
    else:
        system = "one piconet" if len(network.piconet_names) == 1 else "several piconets"
    errors = "no random losses"
    if any(one.kind.startswith("network.outside_links.loss") and one.value for one in there):
        errors = "random losses"
    elif arq:
        errors = "random losses" if "none" in arq else "packets repeated"
    if sessions:
        return Kind(system, errors)
    offered = offered_loads(scenario)
    carries = np.all((offered > 0.0) & (metrics.get("goodput_kbps", 0.0) >= CARRIED * offered))
    return Kind(system, f"{errors}, {'load carried' if carries else 'saturated'}")


@cache
def _table() -> dict[tuple[str, str, str], dict[str, MeasuredError]]:
    """Return the errors by answers, system and regime, then by metric; of all regimes where it is empty."""
    text = files("btqueue.network").joinpath("measured_errors.csv").read_text(encoding="utf-8")
    found: dict[tuple[str, str, str], dict[str, MeasuredError]] = {}
    for row in csv.DictReader(text.splitlines()):
        sizes = float(row["median"]), float(row["high"]), float(row["worst"])
        of_class = found.setdefault((row["answers"], row["system"], row["regime"]), {})
        of_class[row["metric"]] = MeasuredError(int(row["points"]), *sizes)
    return found


def measured_errors(answers: str, kind: Kind) -> Mapping[str, MeasuredError]:
    """Return the errors of `answers` (`THEORY` or `IN_DOUBT`) to a kind of scenario, by metric.

    Where fewer than `FEW` points of the regime were measured, the errors are over all regimes of the system;
    empty if there are none.
    """
    everywhere = _table().get((answers, kind.system, ""), {})
    here = _table().get((answers, kind.system, kind.regime), {})
    return {**everywhere, **{name: error for name, error in here.items() if error.points >= FEW}}


def in_words(answers: str, kind: Kind, metrics: Mapping[str, Any]) -> str:
    """Return the errors of goodput, round trip or session time, and timeouts as text: median and 95 %.

    Metrics that an answer does not have, or that are 0 in it, are left out.
    """
    there = {name for name in IN_WORDS if np.any(metrics.get(name, 0.0))}
    known = {name: error for name, error in measured_errors(answers, kind).items() if name in there}
    where = f"{kind.system}, {kind.regime}"
    if not known:
        return f"never measured: {where}"
    errors = [
        f"{name} {known[key].median:.1%} and {known[key].high:.0%}"
        for key, name in IN_WORDS.items()
        if key in known
    ]
    counts = sorted({error.points for error in known.values()})
    points = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"{', '.join(errors)} (median and 95th percentile of {points} points: {where})"
