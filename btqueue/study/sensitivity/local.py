"""How metrics react to a small change of each key: derivatives and elasticities at one operating point.

Each change is answered once, in this process or in several (`Solver`). Where theory stands the derivatives
are theory's (`btqueue.network.variation.Plan`), elsewhere secants of simulations over a tenth of the key to
both sides, with the same random numbers at all points, so that the differences of replications vary little.
Student's interval of these differences gives the interval of the slope (Glasserman and Yao, Management
Science 38, 1992).
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import xarray as xr

from btqueue.network.variation import Plan, Sides
from btqueue.scenario import METRICS, Scenario, ScenarioError
from btqueue.scenario.expressions import Quantity, parse_metric
from btqueue.scenario.topology import topology
from btqueue.scenario.traits import is_trait, traits
from btqueue.study.evaluate import FIRST, Answer, Engine, Failure, answer_of, evaluate, theory_or_simulation
from btqueue.study.many_points import map_points
from btqueue.study.points import Progress
from btqueue.study.sensitivity.factors import LINKS, SHARE, Factor, coordinates, keys_in_lists
from btqueue.study.summary import NOTHING, student_half_width

DEFAULT_METRICS = ("goodput_kbps", "rtt_s", "delay_s", "segment_loss", "timeouts_per_s")
"""Metrics studied by default, if they have a value; the message delay only of a source with a load."""
Changes = Mapping[str, Any]


class Solver:
    """Answers for a scenario with some keys changed, kept by change.

    A difference between two answers is a slope only if both come from theory, or both from the same number
    of replications with the same random numbers: `FIRST` at least, for intervals of the differences. So all
    are theory's if its answer of the scenario itself stands, else all are simulated.
    """

    def __init__(
        self,
        scenario: Scenario,
        metrics: Sequence[str] | None,
        workers: int | None,
        progress: Progress | None,
    ) -> None:
        """Answer the scenario itself.

        Raises:
            ScenarioError: as `chosen_metrics`.
            NotBuiltYet: theory has no model for it, and it cannot be simulated.
            NoConvergence: theory found no operating point, and it cannot be simulated.
        """
        self.answer = answer_of(theory_or_simulation(scenario))
        notes, self.scenario = self.answer.notes, scenario
        self.engine: Engine = "theory" if notes["answered_by"] == "theory" else "simulate"
        if self.simulated:
            count = max(notes["replications"], FIRST)
            self.scenario = scenario.changed({"run.precision": None, "run.replications": count})
            if count != notes["replications"]:
                again = evaluate(self.scenario, "simulate", threads=None)
                self.answer = replace(again, notes={**notes, **again.notes, "why": notes["why"]})
        self.quantities = chosen_metrics(metrics, self.answer.metrics, scenario)
        self.answer = self.answer.with_quantities(self.quantities.values())
        self._workers, self._progress = workers, progress
        self._known: dict[tuple[tuple[str, Any], ...], Answer] = {(): self.answer}
        self._asked = self._done = 0

    @property
    def simulated(self) -> bool:
        """Whether answers are simulated, and so have a random error."""
        return self.engine == "simulate"

    @property
    def about(self) -> dict[str, Any]:
        """How the scenario itself was answered: answered_by, why and warnings.

        Another warning says at which of the other points theory does not stand, although it does here.
        """
        found = {name: self.answer.notes[name] for name in ("answered_by", "why", "warnings")}
        doubted = [(dict(place), why) for place, one in self._known.items() if (why := one.notes.get("why"))]
        if doubted and not found["why"]:
            at = ", ".join(f"{key} = {value:g}" for key, value in doubted[0][0].items())
            count = f"{len(doubted)} of {self.solved} points, such as {at}"
            found["warnings"] = [*found["warnings"], f"theory does not stand at {count}: {doubted[0][1][0]}"]
        return found

    @property
    def solved(self) -> int:
        """How many points were solved, the scenario itself included."""
        return len(self._known)

    def at(self, changes: Changes) -> Answer:
        """Return the answer at changes that `solve_all` was given."""
        return self._known[_place(changes)]

    def failures(self, key: str) -> list[tuple[float, Failure]]:
        """Return the values of a key alone that have no answer, and why."""
        alone = ((dict(place), answer) for place, answer in self._known.items() if len(place) == 1)
        return [(at[key], one.failure) for at, one in alone if key in at and one.failure is not None]

    def solve_all(self, points: Iterable[Changes], engine: Engine | None = None) -> None:
        """Solve all points that are not known yet, by another engine if one is given."""
        engine = engine or self.engine
        missing = {place: dict(place) for place in map(_place, points) if place not in self._known}
        places, wanted = list(missing), list(missing.values())
        self.count(asked=len(wanted))
        more = {"workers": self._workers, "quantities": tuple(self.quantities.values())}
        for result in map_points(self.scenario, wanted, engines=(engine,), **more):
            self._known[places[result.number]] = result.answers[engine]
            self.count(done=1)

    def count(self, *, asked: int = 0, done: int = 0) -> None:
        """Count points that are going to be answered, and tell that some are."""
        self._asked, self._done = self._asked + asked, self._done + done
        if done and self._progress is not None:
            self._progress(self._done, self._asked)


def _place(changes: Changes) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(changes.items()))


def chosen_metrics(
    metrics: Sequence[str] | None, given: Iterable[str], scenario: Scenario
) -> dict[str, Quantity]:
    """Return the metrics to study, by name.

    Args:
        metrics: asked for, as `goodput_kbps` or `p95(delay_s, sensors)`; by default the members of
            `DEFAULT_METRICS` that are given.
        given: metrics that the engine gives for this scenario.
        scenario: whose flows and groups they may name.

    Raises:
        ScenarioError: one is unknown (the message suggests the nearest name), or is not given.
    """
    there = [name for name in METRICS if name in set(given)]
    if metrics is None:
        sources = {scenario.of_flow(flow.spec).traffic.source for flow in topology(scenario).flows}
        loads = sources - {"greedy", "request-reply"}
        wanted = [name for name in DEFAULT_METRICS if name in there and (loads or name != "delay_s")]
        return {name: Quantity(name) for name in wanted or there[:4]}
    found = [parse_metric(text, "--metric", scenario) for text in dict.fromkeys(metrics)]
    if missing := [one.name for one in found if one.name not in there]:
        why = f"the answer gives no value here, only {', '.join(there)}"
        raise ScenarioError(f"{missing[0]}: {why}", missing[0])
    return {str(one): one for one in found}


BENT = 0.5
"""Difference of the slopes on both sides, as a share of the larger one, from which on both are told."""
FLAT = 1e-6
"""Relative change of a metric that cannot be told from none: an answer of theory is found to 1e-8."""
Kind = Literal["smooth", "one-sided", "kink", "jump", "step", "secant", "uncertain", "none"]
"""Kind of a derivative: smooth; known on one side only; different below and above; none because the metric
jumps; differences over one step of a whole number; a secant of simulations; a secant whose interval contains
0; none, for lack of values."""


@dataclass(frozen=True)
class Derivative:
    """A derivative, or why there is none.

    Attributes:
        kind: see `Kind`.
        derivative: its value; NaN at a kink or a jump, or where there are no values.
        error: half-width of the 95 % interval of a secant; else how far the slopes of both sides lie from
            their mean; NaN where there is none.
        left: from below; NaN if there is none, as on the side of a jump.
        right: from above.
    """

    kind: Kind
    derivative: float = math.nan
    error: float = math.nan
    left: float = math.nan
    right: float = math.nan


def bends(left: float, right: float) -> bool:
    """Whether the slopes below and above differ much."""
    return abs(right - left) > BENT * max(abs(left), abs(right))


def of_theory(sides: Sides) -> Derivative:
    """Return the derivative that theory gives."""
    if sides.kind == "jump":
        return Derivative("jump", left=sides.below, right=sides.above)
    return Derivative(sides.kind, sides.slope, abs(sides.above - sides.below) / 2.0, sides.below, sides.above)


def of_steps(
    here: float, below: float, above: float, step: float, kind: Literal["step", "one-sided"] = "step"
) -> Derivative:
    """Return the differences of theory's values over one step to each side, without intervals.

    Args:
        here: value at the scenario.
        below: value a step below; NaN if missing.
        above: value a step above; NaN if missing.
        step: step of the key.
        kind: "one-sided" of a real key that is 0.
    """
    left, right = (
        0.0 if abs(change) <= FLAT * abs(here) else change / step for change in (here - below, above - here)
    )
    known = [slope for slope in (left, right) if math.isfinite(slope)]
    return Derivative(kind, sum(known) / len(known), left=left, right=right) if known else Derivative("none")


def of_simulations(
    below: Sequence[float], here: Sequence[float], above: Sequence[float], offsets: Sequence[float]
) -> Derivative:
    """Return the slope of simulated values, by pairs of replications with the same random numbers.

    Args:
        below: value of each replication; empty if there is none below.
        here: the same at the scenario.
        above: the same above; empty if there is none.
        offsets: offsets of the key, below and above.

    Returns:
        A kink where the slopes of both sides differ beyond the interval and by more than `BENT`; "uncertain"
        where the interval contains 0.
    """
    left, right = _paired(here, below, offsets[0]), _paired(here, above, offsets[1])
    if left.size and right.size:
        slopes = _paired(below, above, offsets[1] - offsets[0])
        apart = right - left
    else:
        slopes, apart = (left if left.size else right), np.zeros(0)
    if slopes.size < 2:
        return Derivative("none")
    value, error = float(slopes.mean()), float(student_half_width(slopes))
    sides = [float(one.mean()) if one.size else math.nan for one in (left, right)]
    if apart.size > 1 and bends(*sides) and abs(apart.mean()) > student_half_width(apart):
        return Derivative("kink", math.nan, error, *sides)
    return Derivative("uncertain" if 0.0 < error >= abs(value) else "secant", value, error, *sides)


def _paired(first: Sequence[float], second: Sequence[float], step: float) -> np.ndarray:
    """Return the slope from the first to the second value of each replication that has both."""
    if not first or not second:
        return np.zeros(0)
    count = min(len(first), len(second))
    found = (np.array(second[:count]) - np.array(first[:count])) / step
    return found[np.isfinite(found)]


VARIABLES = (
    *(one.name for one in fields(Derivative)), "elasticity", "effect", "at_low", "at_high", "note",
)  # fmt: skip
"""Of the dataset of a local study."""


def reaction(
    factor: Factor, base: float, slope: Derivative, at_low: float, at_high: float, note: str = ""
) -> dict[str, Any]:
    """Return how one metric reacts to one key: the variables of the dataset of a local study.

    Args:
        factor: the key.
        base: value of the metric in the scenario.
        slope: derivative of the metric by the key.
        at_low: the metric where the key is at the low end of its spread; NaN where there is no answer.
        at_high: at the high end.
        note: why something is missing; empty if nothing is.
    """
    elasticity, apart = math.nan, slope.kind == "step" and bends(slope.left, slope.right)
    if base and factor.value and slope.kind != "uncertain" and not apart:
        elasticity = slope.derivative * factor.value / base
    changes = [abs(end - base) for end in (at_low, at_high) if math.isfinite(end)]
    effect = max(changes, default=0.0)
    more = {"elasticity": elasticity, "effect": effect, "at_low": at_low, "at_high": at_high, "note": note}
    return asdict(slope) | more


TINY = 1e-12
"""A metric this small is 0, whatever its unit."""
STEP = 0.1
"""Of theory for a key that is 0, in units of the key (`Factor.unit`)."""


def derivatives(
    solver: Solver, varied: Sequence[Factor], keys: Sequence[str] | None, given: Set[str]
) -> xr.Dataset:
    """Return derivatives and elasticities, as `btqueue.study.sensitivity.sensitivity` describes them.

    Args:
        solver: of the scenario, with the metrics.
        varied: the keys.
        keys: names of the keys that were asked for; None for all.
        given: keys whose range was given, which may reach to where a key without effect has one.
    """
    scenario, names = solver.scenario, tuple(solver.quantities)
    base = {name: solver.answer.mean(name) for name in names}
    there = {one.kind for one in traits(scenario)}
    named = given | set(keys or ())
    left_out = [f.key for f in varied if not f.value and f.spread is None and f.key not in named]
    varied = [f for f in varied if f.key not in left_out]
    known = [
        f for f in varied if not f.value or not is_trait(f.key) or f.key in there | given or "[" in f.key
    ]
    active = active_factors(known, names, solver)
    found = (_by_simulation if solver.simulated else _by_theory)(active, names, solver)
    shown: dict[Factor, list[dict[str, Any]]] = {}
    failed: dict[str, str] = {}
    for factor in active:
        at_ends = {name: (math.nan, math.nan) for name in names}
        if factor.spread is not None:
            ends = (factor.spread.low, factor.spread.high)
            there = [solver.answer if end == factor.value else solver.at({factor.key: end}) for end in ends]
            at_ends = {name: (there[0].mean(name), there[1].mean(name)) for name in names}
        note = _missing(factor, solver)
        none = all(derivative.kind == "none" for derivative in found[factor.key].values())
        if none and np.isnan(list(at_ends.values())).all():
            failed[factor.key] = note or "the metrics have no value beside the scenario"
            continue
        note = note or none * f"no derivative: there is no answer close to {factor.value:g}"
        shown[factor] = [
            reaction(factor, base[name], found[factor.key][name], *at_ends[name], note) for name in names
        ]
    columns = {
        name: (("metric", "key"), [[rows[n][name] for rows in shown.values()] for n in range(len(names))])
        for name in VARIABLES
    }
    in_lists = keys_in_lists(scenario)
    elsewhere = {key.rpartition(".")[2] for key in in_lists}  # entries that replace a key of a table
    in_lists = [key for key in in_lists if not key.startswith(LINKS)]
    idle = [factor.key for factor in varied if factor not in active]
    quiet = [key for key in idle if "[" in key or key.rpartition(".")[2] not in elsewhere]
    attrs = {"study": "local", "solved": solver.solved, "without_effect": quiet, "without_range": left_out}
    attrs["not_varied"] = in_lists if keys is None else []
    attrs |= solver.about
    return xr.Dataset(columns, coordinates(names, shown, base=base.values()), {**attrs, "failed": failed})


def active_factors(varied: Sequence[Factor], metrics: Sequence[str], solver: Solver) -> list[Factor]:
    """Return the keys that change a metric somewhere within their spread, or that have no answer there."""
    base = {name: solver.answer.mean(name) for name in metrics}
    tried = [[{f.key: value} for value in f.ends or (f.value + f.unit,)] for f in varied]
    solver.solve_all(chain(*tried))
    active = []
    for factor, points in zip(varied, tried, strict=True):
        means = [answer.means for answer in map(solver.at, points) if answer.failure is None]
        same = (
            math.isclose(mean.get(name, math.nan), value, rel_tol=FLAT, abs_tol=TINY)
            for mean in means
            for name, value in base.items()
        )
        if not means or not all(same):
            active.append(factor)
    return active


Found = dict[str, dict[str, Derivative]]
"""Derivatives by key and metric."""


def _by_theory(active: Sequence[Factor], names: Sequence[str], solver: Solver) -> Found:
    """Return theory's derivatives; of whole numbers, and of keys that a plan does not vary, by steps."""
    plan = Plan(solver.scenario)
    smooth = [factor for factor in active if not factor.whole and factor.key in plan.parameters]
    stepped = [factor for factor in active if factor not in smooth]
    steps = {f: 1 if f.whole else STEP * f.unit for f in stepped}
    solver.solve_all({f.key: f.value + side * step} for f, step in steps.items() for side in (-1, 1))
    found: Found = {}
    for factor, step in steps.items():
        below, above = (solver.at({factor.key: factor.value + side * step}) for side in (-1, 1))
        kind = "step" if factor.whole else "one-sided"
        found[factor.key] = {
            n: of_steps(solver.answer.mean(n), below.mean(n), above.mean(n), step, kind) for n in names
        }
    solver.count(asked=len(smooth))
    for factor in smooth:
        found[factor.key] = {n: of_theory(sides) for n, sides in plan.sides(names, factor.key).items()}
        solver.count(done=1)
    return found


def _by_simulation(active: Sequence[Factor], names: Sequence[str], solver: Solver) -> Found:
    """Return the secants of simulations over `SHARE` of each key to both sides."""
    solver.solve_all({f.key: f.value + offset} for f in active for offset in _offsets(f))
    found: Found = {}
    for factor in active:
        low, high = _offsets(factor)
        below, above = (solver.at({factor.key: factor.value + offset}) for offset in (low, high))
        for name in names:
            every = (one.metrics.get(name, NOTHING).samples for one in (below, solver.answer, above))
            down, here, up = every
            found.setdefault(factor.key, {})[name] = of_simulations(down, here, up, (low, high))
    return found


def _offsets(factor: Factor) -> tuple[float, float]:
    """Return how far from the scenario a key is simulated, below and above."""
    step = SHARE * factor.unit if factor.value else factor.unit
    step = max(1, round(step)) if factor.whole else step
    return -step, step


def _missing(factor: Factor, solver: Solver) -> str:
    """Say on which sides there are no answers, and why; that a key cannot have a value explains itself."""
    found: dict[str, str] = {}
    for value, failure in solver.failures(factor.key):
        why = "not allowed" if failure.kind == "scenario" else " ".join(failure.message.split())
        found.setdefault("below" if value < factor.value else "above", why)
    return "; ".join(f"nothing {side}: {why}" for side, why in sorted(found.items(), reverse=True))
