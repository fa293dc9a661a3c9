"""When a quantity is known well enough: its interval, how many replications may do, a bound on CPU time.

The interval of a quantity that was simulated until it was known to a relative precision p is its mean plus or
minus p of it, even where Student's interval is narrower by then: a simulation stops where the spread looks
small, so that it is underestimated. Intervals of the width that was asked for cover 95 % as p goes to 0 (Chow
and Robbins, Annals of Mathematical Statistics 36, 1965); of a normal law, after 4 observations or more, they
cover at least 95 % at any p.

Goodput, a mean over time, may be known from short runs. The error of a course that all replications share is
not seen in their spread. It falls as runs become longer: one that falls as 1/length equals the change of the
mean since half the length. This change is added to the half-width.
"""

import math
import sys
import time
from collections.abc import Generator
from functools import lru_cache
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.errors import ScenarioError, conflict
from btqueue.scenario.expressions import Linear, Quantity, number_of_key, parse_quantity
from btqueue.scenario.metrics import METRICS, Results
from btqueue.scenario.topology import own_length
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.machinery.threads import Job
from btqueue.simulator.records.arrays import State
from btqueue.simulator.statistics.doubts import TooShort, has_phases
from btqueue.simulator.statistics.measurement import measure, take_counts
from btqueue.simulator.statistics.results import Measured, Replication
from btqueue.simulator.statistics.student import student_half_width

FEWEST_OBSERVATIONS = 4
"""Replications before which no interval is narrow enough. After 3, intervals of the width that was
asked for hold the mean of a normal law in 94.7 % at worst, after 2 in 93.7 %, after 4 in 95.2 %."""
GROWTH = 1.1
"""Least ratio of the observations at two looks that follow each other."""


class Known(NamedTuple):
    """How well a quantity is known.

    Attributes:
        mean: over the observations that have a value; NaN if none has.
        half_width: of Student's 95 % interval; NaN for fewer than two of them.
        final: whether more observations would add nothing: none has a value, or nothing random happens.
    """

    mean: float
    half_width: float
    final: bool

    @property
    def relative(self) -> float:
        """The half-width over the mean; infinite if either is unknown, or if the mean is 0 by chance."""
        if self.half_width == 0 and self.final:
            return 0.0
        if math.isnan(self.half_width) or self.mean == 0:
            return math.inf
        return self.half_width / abs(self.mean)


@lru_cache(maxsize=16)
def of_metric(name: str) -> Linear:
    """Return the mean of a metric as the quantity whose precision is watched."""
    return parse_quantity(name, "run.precision_of", None)


class Watched:
    """The quantity `run.precision_of` of a scenario."""

    def __init__(self, scenario: Scenario, network: State) -> None:
        """Read the expression for a network.

        Raises:
            ScenarioError: the network has no metric of this name, or fewer flows, links or queues.
        """
        self.scenario, self.network = scenario, network
        self.text = scenario.run.precision_of
        self.precision = scenario.run.precision or math.inf
        known = self.text in METRICS
        self.linear = (
            of_metric(self.text) if known else parse_quantity(self.text, "run.precision_of", scenario)
        )
        self.keys = {key: number_of_key(scenario, key, "run.precision_of") for key in self.linear.keys}
        quantities = [quantity for _, quantity in self.linear.terms if not quantity.is_key]
        if any(quantity.name != "goodput_kbps" or quantity.places for quantity in quantities):
            self._require(quantities)

    def _require(self, quantities: list[Quantity]) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing has happened yet
            there = measure(self.network, [take_counts(new_state(self.scenario, 0))])
            shapes = {one.name: there[one.name].shape for one in quantities if one.name in there}
        for quantity in quantities:
            if quantity.name not in there:
                names = ", ".join(name for name in METRICS if name in there)
                why = f"this network has no {quantity.name}; it has {names}"
                raise ScenarioError(conflict("run.precision_of", self.text, why))
            count = shapes[quantity.name][1] if len(shapes[quantity.name]) > 1 else 0
            if quantity.places and max(quantity.places) > count:
                why = f"{quantity.name} has {f'{count} values' if count else 'one value only'}"
                raise ScenarioError(conflict("run.precision_of", self.text, why))

    def known(self, measured: Measured) -> Known:
        """Return how well the quantity is known from complete observations."""
        complete = measured.complete
        if not complete:
            return Known(math.nan, math.nan, final=False)
        samples = self.linear.samples(measured, len(complete), self.keys)
        samples = samples[~np.isnan(samples)]
        if not samples.size:
            return Known(math.nan, math.nan, final=len(complete) >= FEWEST_OBSERVATIONS)
        half_width = float(student_half_width(samples))
        return Known(float(samples.mean()), half_width, self._is_fixed(complete, half_width))

    def is_enough(self, known: Known, done: int) -> bool:
        """Whether the quantity is known to the precision, after `done` observations, or cannot be."""
        enough = done >= FEWEST_OBSERVATIONS and known.relative <= self.precision
        return enough or known.final or math.isinf(self.precision)

    @property
    def may_end_early(self) -> bool:
        """Whether runs may be shorter than the scenario's own, for the mean goodput of all flows."""
        run = self.scenario.run
        if run.precision is None or self.text != "goodput_kbps" or run.duration_s < 1e-6:  # too few ns
            return False
        return not (run.limit_cpu_s or own_length(self.scenario) or has_phases(self.scenario))

    def is_enough_early(self, known: Known, complete: list[Replication], results: Results) -> bool:
        """Whether runs that may be shorter than the scenario's own are enough, and not too short."""
        half = sum(int(one.counts.halfway["bytes_delivered"].sum()) for one in complete)
        whole = sum(int(one.counts.flows["bytes_delivered"].sum()) for one in complete)
        enough = whole > 0 and self.is_enough(known, len(complete))
        if not enough or known.relative * whole + abs(whole - 2 * half) > self.precision * whole:
            return False
        return not any(isinstance(doubt, TooShort) for doubt in results.attrs["warnings"])

    def note(self, results: Results, known: Known, ended: str) -> None:
        """Write down how well the quantity is known, and warn if that is less than was asked for.

        Args:
            results: to whose attributes this is added.
            known: mean and interval of the quantity.
            ended: the limit that ended the simulation early, "" if none did.
        """
        half_width, relative = known.half_width, known.relative
        if relative <= self.precision < math.inf and not known.final:
            relative = self.precision
            half_width = relative * abs(known.mean)
        attrs = results.attrs
        attrs["precision_of"], attrs["estimate"] = self.text, known.mean
        attrs["half_width"], attrs["relative_half_width"] = half_width, relative
        if math.isinf(self.precision):
            if ended:
                attrs["warnings"].append(
                    f"{ended} after {attrs['finished']} of {attrs['wanted']} replications"
                )
        elif relative > self.precision:
            attrs["warnings"].append(
                f"the precision was not reached: {self.text} {how_well(known)} after {attrs['finished']} "
                f"replications, and run.precision asks for {percent(self.precision)}{ended and f' ({ended})'}"
            )

    def _is_fixed(self, complete: list[Replication], half_width: float) -> bool:
        if half_width != 0:
            return False
        every = {one.counts.everything() for one in complete}
        return len(complete) > 1 and len(every) == 1


def how_well(known: Known) -> str:
    """Return in words how well a quantity is known."""
    if math.isnan(known.mean):
        return "has no value"
    if not math.isfinite(known.relative):
        return "is 0 everywhere" if known.mean == 0 else "has a single value"
    return f"is known to {percent(known.relative)}"


def percent(share: float) -> str:
    """Return a share as people write it, with two significant digits."""
    return f"{100 * share:.2g} %"


def next_target(done: int, width: float, precision: float) -> int:
    """Return how many observations should reach the precision: a tenth more to four times as many."""
    if not math.isfinite(width):
        return max(done + 2, FEWEST_OBSERVATIONS)
    ratio = max(GROWTH, min(width / precision, 2.0) ** 2)
    return max(done + 1, math.ceil(done * ratio), FEWEST_OBSERVATIONS)


class CpuBudget:
    """CPU time that replications may take, all threads together; counted at their pauses.

    Code that is not compiled yet is compiled before the count begins.
    """

    def __init__(self, scenario: Scenario) -> None:
        """Begin at 0."""
        limit_s = scenario.run.limit_cpu_s
        self.limit_s = math.inf if limit_s is None else limit_s
        self._used_s: dict[int, float] = {}
        if limit_s is not None:
            new_state(scenario, 0)

    @property
    def used_s(self) -> float:
        """CPU time that was used."""
        return sum(list(self._used_s.values()))

    @property
    def is_spent(self) -> bool:
        """Whether no CPU time is left."""
        return self.used_s >= self.limit_s

    def affordable(self, done: int) -> int:
        """Return how many observations the CPU time allows, at the mean cost of the `done` observations."""
        if math.isinf(self.limit_s):
            return sys.maxsize
        return int(done * self.limit_s / self.used_s) if self.used_s > 0 else done + 1

    def require(self, measured: list[Replication]) -> None:
        """Make sure that the CPU time sufficed for a measurement.

        Raises:
            ScenarioError: it did not suffice.
        """
        if not measured:
            why = "nothing but a part of the warm-up can be simulated in that time"
            raise ScenarioError(conflict("run.limit_cpu_s", self.limit_s, why))

    def ended(self, finished: int, target: int) -> str:
        """Return in words that it ended after `finished` of `target` observations, "" if it did not end."""
        return (
            f"run.limit_cpu_s = {self.limit_s:g} ended the simulation"
            if finished < target and math.isfinite(self.limit_s)
            else ""
        )

    def bound(self, job: Job) -> Generator[None, bool | None, Any]:
        """Do a job, which is asked to stop once no time is left, and return its result; None if not begun."""
        if math.isinf(self.limit_s):
            return (yield from job)
        stop: bool | None = None
        if self.is_spent:
            return None
        while True:
            begin = time.thread_time()
            try:
                job.send(stop)
            except StopIteration as end:
                return end.value
            finally:
                mine = get_ident()
                self._used_s[mine] = self._used_s.get(mine, 0.0) + time.thread_time() - begin
            stop = (yield) or self.is_spent
