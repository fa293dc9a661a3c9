"""The long run of a network: averages over runs that began with seeds of their own, until they are known.

All that is left to chance is drawn: messages, delays, radio errors. So the averages have a sampling error,
which batches of the runs tell. Where nothing is left to chance there is one run, which goes round in a limit
cycle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np

from btqueue.network.answers import NoConvergence, uncertain_ends
from btqueue.network.followed.plan import Plan
from btqueue.network.followed.runs import Counts, Run
from btqueue.network.followed.sources import GREEDY

RUNS, MOST_RUNS = 3, 9
"""Runs of a network where something is left to chance, and the most where limit cycles differ."""
UNLIKE = 2.0
"""Standard errors within runs by which they have to differ to be in different limit cycles."""
PHASES = 48
"""Runs where chance is only in how things begin, as in the phases of periodic sources: a sample of those."""
BATCHES = 8
"""Batches of a run that are compared: the longer it is, the longer they are."""
LONGEST = 64
"""How long they are at most, in multiples of the least."""
MOST_STEPS = 2_000_000
"""Events that are followed in all: at most, but for the first batches."""
UNSURE = 0.03
"""Relative standard error of goodput, round trips or message delays above which an answer has a warning."""
CERTAIN, LONGER = 0.02, 4
"""The same above which a network is followed for longer, and how many times as long."""
GOODPUT, ROUND_TRIP = 0.006, 0.01
"""Relative standard errors at which it is enough."""
TIMEOUTS, SELDOM = 200, 0.002
"""Timeouts that are enough, and those per second and flow that need not be known."""
FEW = 25
"""Timeouts below which their number carries a warning."""
CARRIED = 0.99
"""Share of the messages written that are delivered if the network carries the load of a flow."""
STUCK = (
    "walk-in bridges wait for each other for ever: each is the central of the piconet in which another one "
    "waits to be polled"
)


@dataclass(frozen=True)
class Followed:
    """What has been counted of a network.

    Attributes:
        plan: the network.
        runs: what was followed.
        goodput_error, trip_error, delay_error: relative standard errors of the mean goodput, round trip and
            message delay.
    """

    plan: Plan
    runs: Sequence[Run]
    goodput_error: float
    trip_error: float
    delay_error: float

    @cached_property
    def counts(self) -> Counts:
        """What has been counted in all runs."""
        return reduce(add, (run.counts for run in self.runs))

    @property
    def goodputs(self) -> list[float]:
        """User bytes delivered of all flows in each run, per slot."""
        return [float(run.counts.of("delivered_bytes").sum() / run.counts.time) for run in self.runs]

    @property
    def ends(self) -> float:
        """Relative error for where counting began and ended, of the class of flows where it is largest."""
        least = [self.of_kind(run.counts.of("expected")) for run in self.runs]
        counted = [float(one[one > 0].min()) for one in least if (one > 0).any()]
        return uncertain_ends(min(counted)) if counted else 0.0

    @cached_property
    def kinds(self) -> np.ndarray:
        """Number of the class of each flow; those of it that get nothing in any run are one of their own."""
        starved = self.counts.of("delivered_bytes") == 0.0
        return 2 * np.array(self.plan.kind_of) + starved

    def of_kind(self, values: np.ndarray) -> np.ndarray:
        """Return for each flow the mean over the flows of its class, [..., flow]."""
        found = np.array(values, float)
        for kind in np.unique(self.kinds):
            alike = self.kinds == kind
            found[..., alike] = found[..., alike].mean(axis=-1, keepdims=True)
        return found

    def carried(self) -> np.ndarray:
        """Return which flows have their load carried, [flow]."""
        return carried(self.counts, self.of_kind)


def follow(plan: Plan) -> Followed:
    """Follow a network until goodput, round trips and timeouts are known, or for long enough.

    Raises:
        NoConvergence: bridges wait for each other for ever, or messages are too rare.
    """
    count = 1 if not plan.random else PHASES if plan.phases else RUNS
    runs = [Run(plan, seed) for seed in range(count)]
    batches, length = 2 if plan.phases else BATCHES, 1
    while True:
        for run in runs:
            run.follow(batches, length)
            if run.is_stuck():
                raise NoConvergence(STUCK)
        found = Followed(plan, runs, *errors_of(plan, runs))
        uncertain = max(found.goodput_error, found.trip_error) > CERTAIN
        most = MOST_STEPS * (LONGER if uncertain else 1)
        if is_known(found) or length >= LONGEST or 2 * found.counts.steps > most:
            break
        length *= 2
    while not (plan.phases or found.carried().all()) and unlike(found):
        apart = between_runs(runs)  # each stays in a limit cycle of its own
        if apart <= UNLIKE * GOODPUT or len(runs) >= MOST_RUNS:
            found = replace(found, goodput_error=max(apart, found.goodput_error))
            break
        runs.append(Run(plan, len(runs)))
        runs[-1].follow(batches, length)
        found = Followed(plan, runs, *errors_of(plan, runs))
    written, greedy = found.counts.written, runs[0].world.flows["law"] == GREEDY
    if not (found.counts.of("sessions").any() or written.any() or greedy.any()):
        raise NoConvergence(
            f"no message was written in the {sum(run.seconds for run in runs):.3g} s that connections were "
            "followed: at this load messages are too rare for this model"
        )
    return found


def unlike(found: Followed) -> bool:
    """Return whether runs differ by more than they vary within themselves."""
    return between_runs(found.runs) > UNLIKE * found.goodput_error


def between_runs(runs: Sequence[Run]) -> float:
    """Return the relative standard error of goodput that runs tell by what they differ."""
    rates = np.array([run.counts.of("delivered_bytes").sum() / run.counts.time for run in runs])
    if len(rates) < 2 or not rates.any():
        return 0.0
    return float(rates.std(ddof=1) / rates.mean() / len(rates) ** 0.5)


def is_known(found: Followed) -> bool:
    """Return whether goodput, round trips and timeouts are known as well as they need be."""
    if found.plan.phases:
        return True
    if found.goodput_error > GOODPUT or found.trip_error > ROUND_TRIP:
        return False
    timeouts = float(found.counts.of("timeouts").sum())
    seconds = sum(run.seconds for run in found.runs) * len(found.plan.specs)
    return timeouts >= TIMEOUTS or timeouts <= SELDOM * seconds


def errors_of(plan: Plan, runs: Sequence[Run]) -> tuple[float, float, float]:
    """Return the relative standard errors of goodput, 0 where all loads are carried, trips and delays."""
    total = reduce(add, (run.counts for run in runs))
    delivers = carried(total, lambda values: values).all()
    parts = ("delivered_bytes", "time"), ("trip_time", "trips"), ("message_age", "messages_out")
    if plan.phases:  # runs differ, their batches hardly
        of_runs = [[np.array([run.batches(name).sum() for run in runs]) for name in two] for two in parts]
        goodput, trip, delay = (ratio_error([(part, whole)]) for part, whole in of_runs)
    else:
        goodput, trip, delay = (
            ratio_error([(run.batches(a), run.batches(b)) for run in runs]) for a, b in parts
        )
    return 0.0 if delivers else goodput, trip, delay


def carried(counts: Counts, averaged: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return which flows have what was written delivered, [flow]."""
    written, out = averaged(counts.written), averaged(counts.of("messages_out"))
    return (written > 0.0) & (out > CARRIED * written)


def ratio_error(runs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the relative standard error of a ratio of sums over all batches (Cochran 1977, chapter 6).

    The sums of each run are taken as they are: batches scatter around the ratio of their run, since what runs
    differ in (the limit cycle that they fell into) longer ones do not mend.
    """
    whole = sum(float(parts.sum()) for parts, _ in runs)
    if whole <= 0.0:
        return 0.0
    variance = 0.0
    for parts, wholes in runs:
        if not (total := wholes.sum()) > 0.0:  # nothing to take a share of
            continue
        share = parts.sum() / total
        scatter = parts - share * wholes
        variance += float(scatter @ scatter) * len(parts) / max(len(parts) - 1, 1)
    return variance**0.5 / whole
