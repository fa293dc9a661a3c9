"""Numbers that a publication states (its record is `models/<paper>/published.toml`), as marks in pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from btqueue.reproduction.claims.judgement import limit
from btqueue.reproduction.claims.record import claims_of
from btqueue.scenario import Scenario, load

SIGN = "black"
"""Colour of published values."""


@dataclass(frozen=True)
class Stated:
    """A number that a publication states for one scenario.

    Attributes:
        metric: its name.
        value: in the metric's unit.
        tolerance: half-width of the band that the wording leaves, in the same unit; 0 if none is on record.
        scenario: for which it is stated.
    """

    metric: str
    value: float
    tolerance: float
    scenario: Scenario


def stated(paper: str, name: str) -> Stated:
    """Return the number that a claim states.

    Args:
        paper: folder of the publication.
        name: id of the claim, or of one of its cases, as "rtt-rises-with-M: M = 5".

    Raises:
        KeyError: the claim or case does not exist, or states no single value.
    """
    key, _, case = name.partition(": ")
    claim = dict(claims_of(paper)[key])
    if case:
        chosen = next((one for one in claim["cases"] if one["label"] == case), None)
        if chosen is None:
            raise KeyError(f"{paper}: claim {key} has no case {case!r}")
        claim |= chosen | {"set": [*claim.get("set", ()), *chosen.get("set", ())]}
    if claim["kind"] != "value" or not isinstance(claim["value"], int | float):
        raise KeyError(f"{paper}: claim {name} states no single value")
    value = claim["value"] / claim.get("times", 1)
    tolerance = claim.get("abs_tol", limit(claim) * value)
    scenario = load(claim["scenario"]).with_sets(claim.get("set", ()))
    return Stated(claim["metric"], value, tolerance, scenario)


def mark_point(axes: Axes, x: float, value: float, tolerance: float | np.ndarray = 0.0) -> None:
    """Mark a stated number at an abscissa: a star, with a bar for the tolerance, downward and upward."""
    axes.errorbar(
        [x], [value], yerr=np.reshape(tolerance, (-1, 1)) if np.any(tolerance) else None, fmt="*", color=SIGN,
        markersize=11, markeredgecolor="white", markeredgewidth=0.6, elinewidth=0.9, capsize=3.0, zorder=5,
    )  # fmt: skip


def mark_level(axes: Axes, value: float, text: str, *, tolerance: float = 0.0, at: float = 0.02) -> None:
    """Mark a stated level: a dashed line across the panel, with a band for the tolerance of the wording.

    Args:
        axes: where to draw.
        value: in the unit of the vertical axis.
        text: its name, written on the line.
        tolerance: half-width of the band, in the same unit; 0 draws none.
        at: where the text begins, as a share of the axis.
    """
    if tolerance and math.isfinite(tolerance):
        axes.axhspan(value - tolerance, value + tolerance, color="#999999", alpha=0.15, zorder=0, lw=0)
    axes.axhline(value, color="#555555", linestyle=(0, (5, 3)), linewidth=1.0, zorder=1)
    axes.annotate(
        text, (at, value), xycoords=axes.get_yaxis_transform(), xytext=(0, 3), textcoords="offset points",
        ha="left", va="bottom", fontsize=7.5, color="#444444",
    )  # fmt: skip


def mark_place(axes: Axes, value: float, text: str, *, low: bool = False) -> None:
    """Draw a vertical line at an abscissa, with a text at the top, or at the bottom if *low*."""
    axes.axvline(value, color="#555555", linestyle=(0, (5, 3)), linewidth=0.9, zorder=1)
    axes.annotate(
        text, (value, 0.0 if low else 1.0), xycoords=axes.get_xaxis_transform(), rotation=90,
        xytext=(-2, 3 if low else -2), textcoords="offset points", ha="right",
        va="bottom" if low else "top", fontsize=7, color="#444444",
    )  # fmt: skip


def mark_key() -> Line2D:
    """Return the legend entry of `mark_point`."""
    return Line2D(
        [],
        [],
        color=SIGN,
        marker="*",
        markersize=10,
        linestyle="",
        label="published value, and its tolerance",
    )
