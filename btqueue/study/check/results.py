"""The content of another simulator's file, in our vocabulary: quantities and counts.

A quantity is a metric of `btqueue.scenario.METRICS`, for `queue_packets` one queue as
`queue_packets[uplink]`, or one of the few `HELPERS` that serve the checks of internal consistency alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import stats

from btqueue.scenario import METRICS
from btqueue.scenario.problems import closest
from btqueue.study.comparison import metric_name
from btqueue.study.summary import student_half_width

if TYPE_CHECKING:
    from btqueue.study.check.facts import Facts


class BadResults(ValueError):
    """A results file cannot be used; the message names the file, the place and the allowed content."""


HELPERS: Final = MappingProxyType(
    {
        "packets_sent": "packets that entered the network",
        "packets_delivered": "packets that came out of it",
        "packets_lost": "packets that were lost in it",
        "arrived_kbps": "application bytes that arrived, repeated bytes included",
        "repeated_kbps": "application bytes that were sent again",
        "under_way_kbps": "growth of the application bytes sent and not acknowledged, over the measured time",
        "packets_in_flight": "packets that were inside it at the end",
        "arrivals_per_s": "packets per second that entered a queue, as arrivals_per_s[uplink]",
        "queue_delay_s": "mean time of a packet in a queue, as queue_delay_s[uplink]",
    }
)
"""Quantities that are no metrics and that conservation and Little's law need."""
Status = Literal["passed", "doubtful", "failed"]


@dataclass(frozen=True)
class Finding:
    """One check of internal consistency: its name, how it ended, and why in a sentence.

    A doubtful result is suspicious and need not be an error. If the check is named after a key that the file
    states, `value` is the file's value of this key.
    """

    check: str
    status: Status
    sentence: str
    value: float | str | bool | None = None


@dataclass(frozen=True)
class Quantity:
    """One number of a file, with its accuracy as far as the file gives it.

    Attributes:
        name: metric, metric with queue, or helper.
        value: mean over flows and replications.
        samples: one value a replication, mean over flows; empty if the file has no replications.
        half_width: half width of the 95 % interval that the file gives; NaN if it gives none.
        replications: behind that interval; None if the file does not say.
    """

    name: str
    value: float
    samples: tuple[float, ...] = ()
    half_width: float = math.nan
    replications: int | None = None

    @property
    def shown_half_width(self) -> float:
        """Return the half-width of the 95 % interval: the file's, or else from its replications."""
        return self.half_width if len(self.samples) < 2 else student_half_width(np.array(self.samples))

    def spread(self, runs: int) -> tuple[float, int] | None:
        """Return the variance between replications, from samples or the interval, and their number.

        None for a single run without an interval. *runs*: replications behind an interval whose file does not
        say how many.
        """
        if len(self.samples) > 1:
            return float(np.var(self.samples, ddof=1)), len(self.samples)
        if math.isnan(self.half_width):
            return None
        count = self.replications or runs
        quantile = float(stats.t.ppf(0.975, max(1, count - 1)))
        return (self.half_width / quantile) ** 2 * count, count


@dataclass(frozen=True)
class ForeignResults:
    """The content of a file.

    Attributes:
        source: name of the file.
        kind: name of its format.
        quantities: by name.
        duration_s: time that was measured; None if the file does not say.
        measured_from_start: whether the measured time includes the start of the run.
        flow: number of the scenario's flow that the numbers belong to; None if they are of several.
        flow_assumed: whether the file does not say so, and the flow is the first.
        groups: groups of flows that differ and have separate numbers, as `goodput_kbps[sensors]`. Means over
            all flows stand beside these, for the checks of consistency alone.
        backoff_gaps: silent gaps (s) before two successive timeouts of one segment, from packets.
        facts: that the packets of each flow state themselves.
        warmup_s: time before the measurement that the file says it has left out; None if it does not say.
        notes: how numbers were obtained where that matters.
    """

    source: str
    kind: str
    quantities: Mapping[str, Quantity]
    duration_s: float | None = None
    measured_from_start: bool = False
    flow: int | None = None
    flow_assumed: bool = False
    groups: tuple[str, ...] = ()
    backoff_gaps: tuple[tuple[float, float], ...] = ()
    facts: tuple[Facts, ...] = ()
    warmup_s: float | None = None
    notes: tuple[str, ...] = field(default=())

    def value(self, name: str) -> float:
        """Return a value, NaN if the file does not have it."""
        return self.quantities[name].value if name in self.quantities else math.nan

    def slack(self, name: str) -> float:
        """Return the half-width of a value, 0 if it has none."""
        width = self.quantities[name].shown_half_width if name in self.quantities else 0.0
        return width if math.isfinite(width) else 0.0


def known_name(name: str, source: str, renamed: Mapping[str, str] | None = None) -> str:
    """Return *name* as our vocabulary has it, after the renaming of `--map`.

    Raises:
        BadResults: it is unknown; the message suggests the nearest name.
    """
    name = (renamed or {}).get(name, name).strip()
    base, bracket, _ = name.partition("[")
    if metric_name(name) in METRICS or base in HELPERS:
        return name
    if bracket and base in METRICS:
        raise BadResults(f'{source}: "{name}": the bracket of a queue or flow is not closed')
    guess = closest(base, [*METRICS, *HELPERS])
    hint = f'; did you mean "{guess}"?' if guess else f"; known are {', '.join(list(METRICS)[:8])}, ..."
    name = name if len(name) <= 80 else f"{name[:77]}..."
    other = "" if source.startswith("--map") else f' (or give --map "{name}=METRIC")'
    raise BadResults(f'{source}: "{name}" is no metric{hint}{other}')


def checked_map(pairs: Iterable[str]) -> dict[str, str]:
    """Return the renamings of `--map THEIRS=METRIC`.

    Raises:
        BadResults: a pair has no "=", or its metric is unknown.
    """
    found = {}
    for pair in pairs:
        theirs, equals, ours = pair.rpartition("=")
        if not equals or not theirs.strip():
            raise BadResults(f"--map {pair}: must be THEIRS=METRIC")
        found[theirs.strip()] = known_name(ours.strip(), f"--map {pair}")
    return found


def unmatched(renamed: Mapping[str, str] | None, names: Iterable[str]) -> list[str]:
    """Return a note for each name of `--map` that is not in a file."""
    missing = sorted(set(renamed or {}) - set(names))
    return [f'--map "{name}={(renamed or {})[name]}": the file has no "{name}"' for name in missing]


LARGEST = 1e30
"""Largest number that a file may hold; larger ones would overflow in further computations."""


def finite(text: str, source: str, what: str) -> float:
    """Return a number read from a file.

    Raises:
        BadResults: the text is no number, not finite, or beyond `LARGEST`.
    """
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    try:
        if "_" in text or not text.isascii():  # Python reads 1_0 as 10
            raise ValueError
        number = float(text)
    except ValueError:
        raise BadResults(f'{source}: {what} = "{shown}": must be a number') from None
    if not math.isfinite(number):
        raise BadResults(f'{source}: {what} = "{shown}": must be finite')
    if abs(number) > LARGEST:
        raise BadResults(f'{source}: {what} = "{shown}": must be within -{LARGEST:g} and {LARGEST:g}')
    return number
