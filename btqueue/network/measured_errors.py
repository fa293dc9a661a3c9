"""How far each model has been from the simulator, over a grid of scenarios: its measured error class.

The numbers stand in `measured_errors.csv`, which `validation/crosscheck/model_against_simulation.py` writes
together with the page of the documentation that shows every point.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class MeasuredError(NamedTuple):
    """Size of the relative error of one metric of one model.

    Attributes:
        points: scenarios that were solved and simulated.
        median: of the absolute values of their relative errors.
        high: their 95th percentile.
        worst: the one of greatest absolute value, with its sign (model above simulation: positive).
    """

    points: int
    median: float
    high: float
    worst: float


@cache
def measured_errors(model: str) -> dict[str, MeasuredError]:
    """Return the measured errors of a model by the name of the metric; empty for one never measured."""
    text = files("btqueue.network").joinpath("measured_errors.csv").read_text(encoding="utf-8")
    return {
        row["metric"]: MeasuredError(
            int(row["points"]), float(row["median"]), float(row["high"]), float(row["worst"])
        )
        for row in csv.DictReader(text.splitlines())
        if row["model"] == model
    }


def in_words(model: str) -> str:
    """Say how large the errors of goodput, round trip or session time, and timeouts are."""
    names = {
        "goodput_kbps": "goodput",
        "rtt_s": "round trip",
        "session_time_s": "session time",
        "timeouts_per_s": "timeouts",
    }
    known = measured_errors(model)
    parts = [
        f"{name} {known[key].median:.1%} and {known[key].high:.0%}"
        for key, name in names.items()
        if key in known
    ]
    points = max((error.points for error in known.values()), default=0)
    return f"against simulation, median and 95th percentile of {points} points: {', '.join(parts)}"
