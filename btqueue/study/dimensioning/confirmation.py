"""The best points of a dimensioning, simulated with common random numbers: the winner is picked among them.

Answers of a search err, and so do its choices between points that are nearly as good. Simulated answers take
the places of its answers until the best of all is a simulated point, like its neighbours.

All points share the scenario's seed, so that the difference between two points is less noisy than each of
them: comparisons are of pairs of replications with the same number (Law 2015, chapters 10 and 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btqueue.scenario import Scenario
from btqueue.study.dimensioning.problem import Place, Task
from btqueue.study.dimensioning.search import Candidate, Outcome, Table, find_best, neighbours, search_again
from btqueue.study.evaluate import Failure, failure_of
from btqueue.study.points import Progress
from btqueue.study.summary import NOTHING, Estimate, flows_without_goodput, holm, over_replications

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario.metrics import Results

CONFIDENCE = 0.95
"""Of each interval, and of all comparisons together: one time in 20 at most any of them is a false alarm."""
MOST_REPLICATIONS = 10_000
"""Replications that would decide a bound are told up to this number."""
NEAR, LOOSE = 0.05, 0.10
"""Relative errors of objective and bounds, up to which a point of the search may be better than its best."""
MOST_RIVALS, MOST_PLAYED = 10, 40
"""Most points that are simulated because they may be better, and points that are simulated in all."""
Simulator = Callable[[Scenario], "Results | xr.Dataset"]
"""Simulates a scenario; the result has a dimension `replication`."""
Verdict = Literal["winner", "worse", "better", "cannot be told apart", "equal", "no comparison", ""]

Bound = Literal["met", "violated", "open", "unknown"]
"""Verdict of an interval on a bound; "open" if the bound lies inside."""


@dataclass(frozen=True)
class Simulated(Candidate):
    """A point by simulation.

    Attributes:
        role: "winner", or the keys that differ from it, behind "runner-up" for the next best point.
        estimates: objective and left side of each constraint: mean over replications with its interval.
        bounds: of each constraint, whether the whole interval meets it or violates it, or neither ("open").
        needed: of each constraint that is open, the replications that would decide it if mean and spread
            stayed; infinite if they are more than `MOST_REPLICATIONS`; NaN for the others.
        model: the model's answer, None if it has none.
        difference: how much better the winner's objective is, over pairs of replications.
        p_value: p value of the difference being nothing; NaN if there are no pairs.
        verdict: the objective against the winner's, all comparisons taken together.
        samples: the objective in each replication.
    """

    role: str = ""
    estimates: tuple[Estimate, ...] = ()
    bounds: tuple[Bound, ...] = ()
    needed: tuple[float, ...] = ()
    model: Candidate | None = None
    difference: Estimate = NOTHING
    p_value: float = math.nan
    verdict: Verdict = "no comparison"
    samples: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)

    @property
    def worthless(self) -> bool:
        """Whether its objective is better than the winner's, and a bound is violated for it."""
        return self.verdict == "better" and "violated" in self.bounds


@dataclass(frozen=True)
class Confirmation:
    """The simulated points, of one aim the best first, and warnings about the winner."""

    points: tuple[Simulated, ...]
    warnings: tuple[str, ...]

    @property
    def replications(self) -> int:
        """How many replications of each point were compared."""
        return len(self.points[0].samples)


def around(task: Task, best: Place) -> list[Place]:
    """Return a point and each of its keys a step either way, or all other values if they are no numbers."""
    there = neighbours(task, best, range(len(task.choices)), 1)
    return [best, *(place for place in there if not task.violation_by_keys(place))]


def is_near(task: Task, candidate: Candidate) -> bool:
    """Whether an answer meets all bounds, or would if it were off by no more than `LOOSE`."""
    broken = candidate.violations(task)
    exact = any(v > 0 and c.of_keys_only for v, c in zip(broken, task.constraints, strict=True))
    return candidate.failure is None and not (candidate.unserved or exact or max(broken, default=0.0) > LOOSE)


def rivals(task: Task, best: Candidate, known: Iterable[Candidate], moving: Sequence[int]) -> list[Place]:
    """Return points that may be better than the best, the nearest first, apart in the choices `moving`."""
    unit = abs(best.objective) if task.objective.expression.metrics else 0.0

    def error(candidate: Candidate) -> float:
        """Return how far the answer would have to be off."""
        worse = max(task.objective.gain(best.objective, candidate.objective), 0.0)
        return sum(candidate.violations(task)) + (worse / unit if worse else 0.0)

    near = [one for one in known if is_near(task, one)]
    close = [one for one in near if task.objective.gain(best.objective, one.objective) <= NEAR * unit]
    found: list[Place] = []
    for place in (one.place for one in sorted(close, key=lambda one: (error(one), one.place))):
        if len(found) == MOST_RIVALS:
            break
        if all(task.apart(place, other, moving) for other in (best.place, *found)):
            found.append(place)
    return found


def confirm(
    table: Table,
    models: Mapping[Place, Candidate],
    simulator: Simulator,
    progress: Progress | None = None,
    *,
    without_effect: Collection[str] = (),
) -> Confirmation:
    """Simulate the best points of a table until its best point is simulated, and compare the others with it.

    Args:
        table: answers of the search; simulated answers take their places, and outrank all others.
        models: the model's answers, by place.
        simulator: simulator of one scenario.
        progress: called with the number of points simulated, and the number of points known to be needed.
        without_effect: keys in which points need not differ to stand for each other.

    Returns:
        The points, and warnings: bounds that the winner may violate, points that may be better. If no
        simulated point meets all bounds although others may, the search's best stays, and so does the table.
    """
    task, start = table.task, table.ranked()[0]
    moving = [n for n, choice in enumerate(task.choices) if choice.key not in without_effect]
    known, played = dict(table.known), dict[Place, Simulated]()
    wanted = [*around(task, start.place), *rivals(task, start, known.values(), moving)]
    while new := [one for one in dict.fromkeys(wanted) if one not in played][: MOST_PLAYED - len(played)]:
        total = len(played) + len(new)
        for place in new:
            known[place] = played[place] = simulated(task, "", place, models.get(place), simulator)
            if progress is not None:
                progress(len(played), total)
        apart = (place for place in known if all(task.apart(place, other, moving) for other in played))
        known = {place: known[place] for place in (*played, *apart)}
        wanted = around(task, min(known.values(), key=lambda one: one.rank(task)).place)
    order = sorted(played, key=lambda place: known[place].rank(task))
    answers = [known[place] for place in order]
    others = any(one.feasible(task) for place, one in table.known.items() if place not in played)
    if answers[0].failure or (others and not answers[0].feasible(task)):
        order.sort(key=lambda place: place != start.place)
    else:
        table.known |= {one.place: replace(one, confirmed=True) for one in answers if one.failure is None}
    named = [replace(played[order[0]], role="winner")]
    for place in order[1:]:
        every = zip(task.choices, place, order[0], strict=True)
        role = ", ".join(f"{c.key} = {c.shown(c.at(at))}" for c, at, its in every if at != its)
        if place == order[1] and known[place].feasible(task):
            role = f"runner-up, {role}"
        named.append(replace(played[place], role=role))
    points = _judged(task, named)
    return Confirmation(tuple(points), tuple(_warnings(task, points)))


def simulated_front(
    task: Task,
    front: Sequence[Candidate],
    models: Mapping[Place, Candidate],
    simulator: Simulator,
    progress: Progress | None = None,
) -> Confirmation:
    """Simulate some points of a front, its ends among them, with common random numbers; see `confirm`.

    A warning says if the ends cannot be told apart in the first aim: then chance alone may have made a front.
    """
    points: list[Simulated] = []
    wanted = spread(len(front), MOST_SIMULATED)
    for number in wanted:
        at = front[number]
        one = simulated(task, f"{number + 1}.", at.place, models.get(at.place), simulator)
        points.append(replace(one, verdict=""))  # nothing is compared
        if progress is not None:
            progress(len(points), len(wanted))
    ends, warnings = points[:: max(len(points) - 1, 1)], list[str]()
    if len(ends) > 1 and len(ends[0].samples) == len(ends[1].samples) > 1:
        first, last = ends
        apart = over_replications(first.samples - last.samples)
        if abs(apart.mean) <= apart.ci95:
            warnings.append(
                f"{first.role} and {last.role} cannot be told apart in {task.objective.text}: they differ by "
                f"{apart.mean:.3g} ± {apart.ci95:.2g} in pairs of replications; more run.replications may "
                "show a difference"
            )
    return Confirmation(tuple(points), tuple(warnings))


def simulated(
    task: Task, role: str, place: Place, model: Candidate | None, simulator: Simulator
) -> Simulated:
    """Return a point by simulation, without a verdict."""
    expressions = [task.objective.expression, *(constraint.expression for constraint in task.constraints)]
    samples = [np.zeros(0)] * len(expressions)
    changes, failure, unserved, warnings = task.changes(place), None, 0, ()
    try:
        scenario = task.base.changed(changes)
        dataset = simulator(scenario)
        metrics = [name for name in task.metrics if name in dataset]
        values = {m: dataset[m].transpose("replication", ...).values.astype(float) for m in metrics}
        count, keys = dataset.sizes["replication"], task.keys(changes)
        samples = [one.samples(values, count, keys) for one in expressions]
        unserved, warnings = flows_without_goodput(dataset, scenario), dataset.attrs.get("warnings", ())
    except Exception as error:
        failure = failure_of(error)
    objective, *sides = estimates = tuple(map(over_replications, samples))
    if failure is None and math.isnan(objective.mean):
        failure = Failure("no value", "the simulation gives no value of the objective here")
    slacks = [(c.slack(one.mean), one.ci95) for c, one in zip(task.constraints, sides, strict=True)]
    bounds: tuple[Bound, ...] = tuple(bound_verdict(*slack) for slack in slacks)
    needed = tuple(
        replications_to_decide(*slack, len(samples[0])) if bound == "open" else math.nan
        for slack, bound in zip(slacks, bounds, strict=True)
    )
    return Simulated(
        place, changes, objective.mean, tuple(side.mean for side in sides), failure,
        tuple(map(str, warnings)), unserved, "simulation", role=role, estimates=estimates, bounds=bounds,
        needed=needed, model=model, samples=samples[0],
    )  # fmt: skip


def bound_verdict(slack: float, ci95: float) -> Bound:
    """Return whether a bound is met, from the mean slack and the half-width of its interval."""
    if math.isnan(slack):
        return "unknown"
    half_width = 0.0 if math.isnan(ci95) else ci95
    if slack >= half_width:
        return "met"
    return "violated" if slack < -half_width else "open"


def replications_to_decide(slack: float, ci95: float, done: int) -> float:
    """Return how many replications would put a bound outside the interval, if mean and spread stayed.

    Args:
        slack: distance of the mean from the bound.
        ci95: half-width of the interval over the replications that are done.
        done: their number.

    Returns:
        The number; infinite if it is more than `MOST_REPLICATIONS`.
    """
    from scipy.stats import t

    spread = ci95 * math.sqrt(done) / t.ppf((1 + CONFIDENCE) / 2, done - 1)
    counts = np.arange(2, MOST_REPLICATIONS + 1)
    enough = t.ppf((1 + CONFIDENCE) / 2, counts - 1) * spread / np.sqrt(counts) <= abs(slack)
    return float(counts[enough.argmax()]) if enough.any() else math.inf


def in_words(needed: float) -> str:
    """Return how many replications would decide a bound."""
    if math.isinf(needed):
        return f"more than {MOST_REPLICATIONS:,} replications would decide it"
    return f"about {needed:,.0f} replications would decide it"


def paired_p_value(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Student's test that the mean difference is 0.

    NaN for fewer than two pairs, 1 if all of them are 0.
    """
    from scipy.stats import ttest_1samp

    kept = differences[~np.isnan(differences)]
    if len(kept) < 2:
        return math.nan
    if np.ptp(kept) == 0:
        return float(kept[0] == 0)
    outcome: Any = ttest_1samp(kept, 0.0)  # its type is not declared
    return float(outcome.pvalue)


def _judged(task: Task, points: Sequence[Simulated]) -> list[Simulated]:
    """Return the points with verdicts, all comparisons with the first one taken together by Holm's procedure.

    A point is worse, whatever its objective, if more of its flows get nothing than of the winner's.
    """
    winner, compared = points[0], list[Simulated]()
    for point in points[1:]:
        pairs = min(len(winner.samples), len(point.samples))  # none after a failure
        better = winner.samples[:pairs] - point.samples[:pairs]
        better = better if task.objective.sense == "maximize" else -better
        compared.append(replace(point, difference=over_replications(better), p_value=paired_p_value(better)))
    found = holm({n: point.p_value for n, point in enumerate(compared)}, 1 - CONFIDENCE)
    judged = [replace(point, verdict=_verdict(winner, point, n in found)) for n, point in enumerate(compared)]
    return [replace(winner, verdict="winner"), *judged]


def _verdict(winner: Simulated, point: Simulated, different: bool) -> Verdict:
    if winner.failure is None and point.failure is None and point.unserved != winner.unserved:
        return "worse" if point.unserved > winner.unserved else "better"
    if math.isnan(point.p_value):
        return "no comparison"
    if different:
        return "worse" if point.difference.mean > 0 else "better"
    return "equal" if point.difference.mean == 0 and point.difference.ci95 == 0 else "cannot be told apart"


def _warnings(task: Task, points: Sequence[Simulated]) -> list[str]:
    winner, found = points[0], []
    if winner.failure is not None:
        return [f"the winner could not be simulated: {winner.failure}"]
    for number, constraint in enumerate(task.constraints):
        side, bound = winner.estimates[1 + number], winner.bounds[number]
        by = f"{side.mean:.4g} ± {side.ci95:.2g} by simulation"
        if bound == "violated":
            found.append(f"the winner violates {constraint.text}: {by}")
        elif bound == "open":
            how = in_words(winner.needed[number])
            found.append(f"the winner may violate {constraint.text}: {by}; {how}")
        elif bound == "unknown":
            found.append(f"{constraint.text} cannot be checked: the simulation gives no value")
    if winner.unserved:
        found.append(f"by simulation {nothing_for(winner.unserved)} at the winner")
    for point in points[1:]:
        if point.verdict == "better" and not point.worthless:
            by = f"by {-point.difference.mean:.3g} ± {point.difference.ci95:.2g}"
            if point.unserved < winner.unserved:
                by = nothing_for(point.unserved) if point.unserved else "all flows get something"
            unsure = ", if its bounds hold, which is open" if "open" in point.bounds else ""
            found.append(f"{point.role} is better by simulation, {by}{unsure}")
    if math.isnan(winner.estimates[0].ci95):
        found.append("one replication gives no intervals: nothing can be told apart")
    return found


def nothing_for(count: int) -> str:
    """Return in words that `count` flows get nothing."""
    return "1 flow gets nothing" if count == 1 else f"{count} flows get nothing"


LEVELS = 10
"""Bounds of the second aim that are searched between the ends of a front."""
SHARE = 20
"""Each of these searches may solve this part of the budget."""
FAR = 10.0
"""The bound that looks for the best of the second aim, in multiples of its value at the best of the first."""
MOST_SIMULATED = 5
"""Points of a front that are simulated, the ends among them."""


def find_front(table: Table) -> Outcome:
    """Fill *table* with points until the front is proved, or the searches along it have ended.

    Raises:
        ScenarioError: as `find_best`.
    """
    outcome = find_best(table)
    best = table.best()
    if outcome == "proved" or best is None:
        return outcome
    task, allowance = table.task, max(table.budget // SHARE, 1)
    aim, here = task.constraints[-1], best.sides[-1]
    far = FAR * (abs(here) or 1.0)
    bounds = [here - far if aim.sense == "<=" else here + far]
    for place in range(LEVELS + 1):
        tighter = replace(task, constraints=(*task.bounds, replace(aim, bound=bounds[place])))
        search_again(table, tighter, table.best(tighter) or best, allowance)
        if place == 0:
            ends = front_of(task, list(table.known.values()))
            bounds += np.linspace(ends[0].sides[-1], ends[-1].sides[-1], LEVELS + 2)[1:-1].tolist()
    return outcome


def front_of(task: Task, known: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the feasible points that no other point beats in both aims, the best of the first aim first."""
    first, second = task.aims
    feasible = (one for one in known if one.feasible(task))
    losses = sorted((first.loss(one.objective), second.loss(one.sides[-1]), one.place) for one in feasible)
    at, least, kept = {one.place: one for one in known}, math.inf, []
    for _, loss, place in losses:
        if loss < least:
            least = loss
            kept.append(at[place])
    return tuple(kept)


def spread(count: int, most: int) -> list[int]:
    """Return at most *most* of *count* places, evenly spread, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most)).tolist()})
