"""What a paper states against what the simulation gives: verdicts, and the page of the documentation.

`models/<paper>/published.toml` holds the claims and the verdict on record; a script for each paper holds the
checks. A check returns whether the claim is met as the paper states it, and what was seen. Metrics are means
over flows; a sample has one value for each replication, so that points of a sweep that share their seeds are
compared within a replication, by a paired one-sided t-test with a false-alarm rate of ALPHA.
"""

import itertools
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from btqueue.scenario.library import models_folder
from btqueue.simulator.replications import half_width

ALPHA = 0.001
"""False-alarm rate of a comparison."""
DOCS = Path(__file__).parents[2] / "docs" / "explanation"


class Finding(NamedTuple):
    """Whether a claim is met, and what was seen."""

    met: bool
    seen: str


Checks = Mapping[str, Callable[[], Finding]]


def claims_of(paper: str) -> list[dict[str, Any]]:
    """Return the claims on record."""
    return tomllib.loads((models_folder() / paper / "published.toml").read_text())["claim"]


def less(low: np.ndarray, high: np.ndarray) -> bool:
    """Whether `low` has the smaller mean, by pairs; without any spread the difference speaks for itself."""
    difference = high - low
    if np.ptp(difference) == 0:
        return bool(difference[0] > 0)
    statistic = difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))
    return bool(stats.t.sf(statistic, len(difference) - 1) < ALPHA)


def increasing(samples: list[np.ndarray]) -> bool:
    """Whether each sample has a smaller mean than the next one."""
    return all(less(low, high) for low, high in itertools.pairwise(samples))


def shown(sample: np.ndarray, digits: int = 3) -> str:
    """Return the mean, with the half-width of its 95 % interval if replications differ."""
    width = half_width(sample)
    mean = f"{sample.mean():.{digits}g}"
    return mean if np.isnan(width) or width < 1e-3 * abs(sample.mean()) else f"{mean} ± {width:.2g}"


def listed(samples: list[np.ndarray], digits: int = 3) -> str:
    """Return several samples in a row."""
    return ", ".join(shown(sample, digits) for sample in samples)


def write_page(paper: str, title: str, introduction: str, checks: Checks) -> list[str]:
    """Run all checks, write the page and return the claims whose verdict differs from the one on record."""
    rows, reasons, differing = [], [], []
    for claim in claims_of(paper):
        verdict = claim["verdict"]
        seen = "not simulated"
        if claim["id"] in checks:
            met, seen = checks[claim["id"]]()
            if met != (verdict == "reproduced"):
                differing.append(claim["id"])
        rows.append(f"| {claim['where']}: {claim['statement']} | {claim['published']} | {seen} | {verdict} |")
        if "reason" in claim:
            reasons.append(f"* **{claim['id']}** ({verdict}): {claim['reason']}")
    text = "\n".join(
        [
            f"# {title}\n",
            introduction,
            "",
            "| claim | published | simulated | verdict |",
            "|---|---|---|---|",
            *rows,
            "\n## Where the simulation does not agree, and remarks\n",
            *reasons,
            "",
        ]
    )
    (DOCS / f"claims-{paper}.md").write_text(text)
    return differing
