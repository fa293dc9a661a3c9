"""The result of a local sensitivity study: a row for each metric and key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from btqueue.scenario import Scenario
from btqueue.study.sensitivity.derivatives import Derivative
from btqueue.study.sensitivity.factors import Factor, coordinates


@dataclass(frozen=True)
class Row:
    """How one metric reacts to one key.

    Attributes:
        factor: the key.
        metric: its name.
        base: value of the metric in the scenario.
        derivative: of the metric by the key, in the metric's unit over the key's.
        at_low: the metric where the key is at the low end of its spread; NaN where there is no answer.
        at_high: at the high end.
        note: why something is missing; empty if nothing is.
    """

    factor: Factor
    metric: str
    base: float
    derivative: Derivative
    at_low: float
    at_high: float
    note: str = ""

    @property
    def elasticity(self) -> float:
        """Relative change of the metric over a small relative change of the key; NaN if either is 0."""
        if self.base == 0 or self.factor.value == 0:
            return math.nan
        return self.derivative.value * self.factor.value / self.base

    @property
    def effect(self) -> float:
        """Size of the derivative times half the spread, in the metric's unit; rows are ranked by it.

        For whole numbers, and where there is no derivative, the largest change at the ends of the spread:
        the effect of a single byte would say little.
        """
        changes = [abs(end - self.base) for end in (self.at_low, self.at_high) if math.isfinite(end)]
        if self.derivative.kind in ("step", "jump", "flat", "uncertain", "none") and changes:
            return max(changes)
        return _or_zero(self.derivative.size) * self.factor.half_spread


@dataclass(frozen=True)
class Local:
    """A local sensitivity study.

    Attributes:
        scenario: where it was made.
        metrics: value of each metric there.
        rows: one for each metric and each key with an effect on any of them.
        without_effect: keys that change no metric within their spread.
        failed: keys for which there is no answer beside the scenario itself, and why.
        solved: points that were solved.
        about: how the scenario itself was answered: answered_by, why and warnings (`btqueue.study.evaluate`).
    """

    scenario: Scenario
    metrics: Mapping[str, float]
    rows: tuple[Row, ...]
    without_effect: tuple[str, ...]
    failed: Mapping[str, str]
    solved: int
    about: Mapping[str, Any]

    def ranked(self, metric: str) -> list[Row]:
        """Return the rows of a metric, the largest effect first."""
        rows = [row for row in self.rows if row.metric == metric]
        return sorted(rows, key=lambda row: (-row.effect, -_or_zero(row.derivative.size)))

    def dataset(self) -> xr.Dataset:
        """Return the study with dimensions (metric, key), keys in the order of the scenario."""
        keys = list(dict.fromkeys(row.factor.key for row in self.rows))
        by_place = {(row.metric, row.factor.key): row for row in self.rows}
        columns = {
            name: (("metric", "key"), [[column(by_place[m, key]) for key in keys] for m in self.metrics])
            for name, column in COLUMNS.items()
        }
        varied = {row.factor.key: row.factor for row in self.rows}.values()
        labels = coordinates(self.metrics, varied, base=self.metrics.values())
        attrs = {"study": "local", "solved": self.solved, "without_effect": list(self.without_effect)}
        return xr.Dataset(columns, labels, {**attrs, **self.about, "failed": dict(self.failed)})


COLUMNS: Mapping[str, Any] = {
    "derivative": lambda row: row.derivative.value,
    "error": lambda row: row.derivative.error,
    "left": lambda row: row.derivative.left,
    "right": lambda row: row.derivative.right,
    "elasticity": lambda row: row.elasticity,
    "effect": lambda row: row.effect,
    "at_low": lambda row: row.at_low,
    "at_high": lambda row: row.at_high,
    "kind": lambda row: row.derivative.kind,
    "note": lambda row: row.note,
}
"""Variables of the dataset of a local study."""


def _or_zero(value: float) -> float:
    return value if math.isfinite(value) else 0.0
