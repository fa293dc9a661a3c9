"""Claims of a publication against simulations: how a claim is judged, and the page of all of them.

A sample has one value for each replication, the mean over flows. Replications of two scenarios with the same
seed share their random numbers, so orders are judged by the differences of replications. Each such test has a
false-alarm rate of ALPHA: where there is no difference, it finds one with that probability.
"""

import sys
import tomllib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import btqueue as bt
from btqueue.scenario import Scenario
from btqueue.scenario.library import models_folder

ALPHA = 0.001
PAGES = Path(__file__).parents[2] / "docs" / "explanation"


class Claim(NamedTuple):
    """A claim, what was published and simulated, and which of its parts hold."""

    id: str
    published: str
    simulated: str
    parts: Mapping[str, bool]

    @property
    def verdict(self) -> str:
        """The verdict; a claim that holds in part names what does not."""
        failed = [part for part, holds in self.parts.items() if not holds]
        if not failed:
            return "reproduced"
        if len(failed) == len(self.parts):
            return "not reproduced"
        return f"in part; not: {', '.join(failed)}"


def sample(scenario: Scenario, metric: str, **changes: Any) -> np.ndarray:
    """Simulate and return the metric's mean over flows in each replication."""
    values = bt.simulate(scenario.with_(**changes))[metric]
    return (values.mean("flow") if "flow" in values.dims else values).values


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return the mean and the half-width of its 95 % interval (Student), 0 for equal values."""
    spread = float(values.std(ddof=1))
    return float(values.mean()), float(stats.t.ppf(0.975, len(values) - 1)) * spread / len(values) ** 0.5


def shown(values: np.ndarray) -> str:
    """Return mean and half-width as text, the mean with the digits that the half-width leaves."""
    mean, width = interval(values)
    if width <= 1e-9 * abs(mean):
        return f"{mean:.4g}"
    digits = max(0, 1 - int(np.floor(np.log10(width))))
    return f"{mean:.{digits}f} ± {width:.{digits}f}"


def exceeds(high: np.ndarray, low: np.ndarray) -> bool:
    """Whether `high` has the greater mean: one-sided t-test of paired replications at ALPHA."""
    difference = high - low
    if np.all(difference == difference[0]):
        return bool(difference[0] > 0)
    standard_error = float(difference.std(ddof=1)) / len(difference) ** 0.5
    return bool(stats.t.sf(difference.mean() / standard_error, len(difference) - 1) < ALPHA)


def falling(samples: Iterable[np.ndarray]) -> bool:
    """Whether each sample exceeds the next."""
    return all(exceeds(high, low) for high, low in pairwise(samples))


def within(values: np.ndarray, lower: float, upper: float) -> bool:
    """Whether the mean, with its half-width against it, lies between the bounds."""
    mean, width = interval(values)
    return lower <= mean - width and mean + width <= upper


def ids_of(paper: str, checked_by: str) -> set[str]:
    """Return the ids of the claims in the paper's published.toml that are checked in this way."""
    record = tomllib.loads((models_folder() / paper / "published.toml").read_text("utf-8"))
    return {claim["id"] for claim in record["claim"] if checked_by in claim["checked_by"]}


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    names = list(headings)
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def write(name: str, lines: Iterable[str]) -> None:
    """Write a page of docs/explanation."""
    path = PAGES / f"{name}.md"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write(f"{path}\n")


def claims_table(claims: Iterable[Claim]) -> list[str]:
    """Return the table of claims and verdicts."""
    rows = ([f"`{c.id}`", c.published, c.simulated, c.verdict] for c in claims)
    return table(("claim", "published", "simulated", "verdict"), rows)
