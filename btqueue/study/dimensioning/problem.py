"""The problem of a dimensioning: an objective, bounds, and the keys to choose, with their values."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.errors import all_read, shown
from btqueue.scenario.expressions import Linear, check_units, number_of_key, parse_expression, parse_quantity
from btqueue.scenario.polling import DISCIPLINES
from btqueue.study.points import GRID, Interval, Over, is_number, keyed_values, label, parse_values, values_of

Place = tuple[float, ...]
"""A point of the search: of each choice the number of its value, or, if it is continuous, a share (0 to 1) of
its range."""


@dataclass(frozen=True)
class Choice:
    """A key and the values that it may have.

    Attributes:
        key: dotted key.
        values: to choose from; among equally good points the first value wins; empty for a continuous key.
        interval: interval of a continuous key.
    """

    key: str
    values: tuple[Any, ...] = ()
    interval: Interval | None = None

    @property
    def continuous(self) -> bool:
        """Whether any value of a range may be chosen."""
        return self.interval is not None

    @property
    def ordered(self) -> bool:
        """Whether it makes sense to go up and down: numbers, not names."""
        return self.continuous or all(map(is_number, self.values))

    def steps(self, at: float, share: float) -> list[float]:
        """Return the places a step either way from one, or all others if the values are no numbers.

        A step along a continuous key is a *share* of its range.
        """
        if not self.ordered:
            return [place for place in range(len(self.values)) if place != at]
        last, step = (1.0, share) if self.continuous else (len(self.values) - 1, 1)
        there = [min(max(at + way * step, 0), last) for way in (-1, 1)]
        return [round(place, 12) for place in there if place != at]

    def at(self, place: float) -> Any:
        """Return the value at a place."""
        if self.interval is None:
            return self.values[int(place)]
        if place in (0.0, 1.0):
            return float(self.interval.low if place == 0 else self.interval.high)
        return float(self.interval.at(place))

    def shown(self, value: Any) -> str:
        """Return a value as tables show it, a polling discipline with its plain name."""
        if isinstance(value, float):
            return f"{value:.6g}"
        if self.key == "polling.discipline":
            return f"{value} ({DISCIPLINES[value].plain})"
        return label(value)


def parse_choices(choose: Over) -> tuple[Choice, ...]:
    """Return the keys to choose and their values.

    Raises:
        ScenarioError: there are none, one is unknown or given twice, or its values cannot be read.
    """
    pairs = keyed_values(choose, "--choose")
    if not pairs:
        raise ScenarioError("there is nothing to choose: name a key, as in --choose polling.limit=1..25")
    found, read = [], all_read(partial(parse_values, *pair) for pair in pairs)
    for (key, _), spread in zip(pairs, read, strict=True):
        if isinstance(spread, Interval) and spread.open and key not in GRID:
            if not spread.whole:
                found.append(Choice(key, interval=spread))
                continue
            if spread.scale == "lin":
                spread = replace(spread, low=int(spread.low), high=int(spread.high))  # by steps of 1
        found.append(Choice(key, values_of(key, spread)))
    return tuple(found)


STEP_SHARE = 0.05
"""A step along a continuous key, as a share of its range."""
DISTINCT = 0.01
"""Points are distinct from each other if they differ by this share of a continuous key's range."""
ROUNDING = 1e-9
"""Relative violation of a bound that is nothing but rounding, and difference of objectives that is none."""
COMPARISON = re.compile(r"(?:<=|>=|≤|≥|==|!=|<|>|=)(?![^\[(]*[\])])")
"""A sign, but not inside the name of a flow in brackets, as in rtt_s[p1.1>c1]."""
MORE = frozenset({"goodput_kbps", "throughput_kbps", "sessions_per_s", "fairness"})
"""Metrics of which more is better."""
HOW = "write METRIC <= NUMBER or METRIC >= NUMBER, as in rtt_s <= 0.4"


@dataclass(frozen=True)
class Objective:
    """The quantity to maximise or minimise."""

    sense: Literal["maximize", "minimize"]
    expression: Linear
    text: str

    def loss(self, value: float) -> float:
        """Return a number that is smaller for better values; equal where they differ by rounding only."""
        return float(f"{-value if self.sense == 'maximize' else value:.9g}")

    def gain(self, value: float, over: float) -> float:
        """Return by how much *value* is better than *over*."""
        return value - over if self.sense == "maximize" else over - value


@dataclass(frozen=True)
class Constraint:
    """A bound: expression <= bound, or expression >= bound.

    Attributes:
        expression: its left side, without a constant.
        sense: which.
        strict: whether equality is a violation.
        bound: its right side.
        text: as it was written.
    """

    expression: Linear
    sense: Literal["<=", ">="]
    strict: bool
    bound: float
    text: str

    @property
    def of_keys_only(self) -> bool:
        """Whether it can be judged before anything is solved."""
        return not self.expression.metrics

    @property
    def scale(self) -> float:
        """Unit of violations: the size of the bound, 1 for a bound of 0."""
        return abs(self.bound) or 1.0

    def slack(self, side: float) -> float:
        """Return how far the left side is from the bound, negative if it violates it."""
        return self.bound - side if self.sense == "<=" else side - self.bound

    def violation(self, side: float) -> float:
        """Return the relative violation, 0 if the bound is met; infinite without a value."""
        if math.isnan(side):
            return math.inf
        slack = self.slack(side) / self.scale
        if self.strict and slack <= ROUNDING:
            return max(-slack, ROUNDING)
        return -slack if slack < -ROUNDING else 0.0


@dataclass(frozen=True)
class Task:
    """A dimensioning problem of a scenario.

    Attributes:
        base: the scenario, whose other keys stay as they are.
        objective: the quantity to optimise.
        constraints: the bounds.
        choices: the keys to choose.
        fixed: values of keys that expressions name and nobody chooses.
        second: a second aim, if there are two; its expression is the left side of the last constraint, which
            has no bound.
    """

    base: Scenario
    objective: Objective
    constraints: tuple[Constraint, ...]
    choices: tuple[Choice, ...]
    fixed: Mapping[str, float]
    second: Objective | None = None

    @property
    def aims(self) -> tuple[Objective, ...]:
        """The one or two quantities to optimise."""
        return (self.objective,) if self.second is None else (self.objective, self.second)

    @property
    def bounds(self) -> tuple[Constraint, ...]:
        """The constraints that were asked for."""
        return self.constraints if self.second is None else self.constraints[:-1]

    @property
    def metrics(self) -> list[str]:
        """The metrics that its expressions name."""
        expressions = [self.objective.expression, *(one.expression for one in self.constraints)]
        return list(dict.fromkeys(name for one in expressions for name in one.metrics))

    @property
    def size(self) -> int | None:
        """Number of combinations; None if a key is continuous."""
        if any(choice.continuous for choice in self.choices):
            return None
        return math.prod(len(choice.values) for choice in self.choices)

    def place(self, shares: Iterable[float]) -> Place:
        """Return the place at shares, from 0 and less than 1, of all choices."""
        return tuple(
            round(share, 12) if choice.continuous else int(share * len(choice.values))
            for choice, share in zip(self.choices, shares, strict=True)
        )

    def changes(self, place: Place) -> dict[str, Any]:
        """Return the values of the chosen keys at a point of the search."""
        return {choice.key: choice.at(at) for choice, at in zip(self.choices, place, strict=True)}

    def apart(self, one: Place, other: Place, numbers: Sequence[int]) -> bool:
        """Whether two points of the search differ in some of these choices."""
        return any(
            abs(one[number] - other[number]) >= (DISTINCT if self.choices[number].continuous else 0.5)
            for number in numbers
        )

    def keys(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all keys that expressions may name."""
        return {**self.fixed, **changes}

    def violation_by_keys(self, place: Place) -> float:
        """Return the sum of the violations of bounds that need no answer."""
        keys = self.keys(self.changes(place))
        return sum(c.violation(c.expression.value({}, keys)) for c in self.constraints if c.of_keys_only)


def task_of(
    base: Scenario,
    *,
    maximize: str | None = None,
    minimize: str | None = None,
    pareto: str | Sequence[str] | None = None,
    subject_to: str | Sequence[str] = (),
    choose: Over,
) -> Task:
    """Return the task that was asked for, in the arguments of `btqueue.study.dimensioning.dimension`.

    Raises:
        ScenarioError: something of it cannot be read or is unknown.
    """
    wanted = (("maximize", maximize), ("minimize", minimize), ("pareto", pareto))
    given = [(sense, text) for sense, text in wanted if text is not None]
    if len(given) != 1:
        raise ScenarioError(
            "name one objective: maximize or minimize, as in --maximize goodput_kbps, or two that "
            "compete, as in --pareto 'goodput_kbps, delay_s'"
        )
    ((option, aim),) = given
    texts = [subject_to] if isinstance(subject_to, str) else list(subject_to)
    bounds = (partial(parse_constraint, text, base) for text in texts)
    reads = partial(aims_of, aim, base, option), partial(parse_choices, choose), *bounds
    aims, choices, *read = all_read(reads)
    constraints = tuple[Constraint, ...](read)
    chosen = {choice.key: choice.ordered for choice in choices}
    named = [
        *((f"--{option} {shown(one.text)}", key) for one in aims for key in one.expression.keys),
        *((f"--subject-to {shown(one.text)}", key) for one in constraints for key in one.expression.keys),
    ]
    for what, key in named:
        if not chosen.get(key, True):
            raise ScenarioError(f"{what}: the values to choose for {key} are no numbers", key)
    fixed = {key: number_of_key(base, key, what) for what, key in named if key not in chosen}
    if len(aims) > 1:
        sense, bound = (">=", -math.inf) if aims[1].sense == "maximize" else ("<=", math.inf)
        constraints += (Constraint(aims[1].expression, sense, False, bound, aims[1].text),)
    return Task(base, aims[0], constraints, choices, fixed, *aims[1:])


def aims_of(aims: str | Sequence[str], base: Scenario, option: str = "pareto") -> list[Objective]:
    """Return the aim of ``--maximize`` or ``--minimize``, or two: "goodput_kbps, p95(delay_s, sensors)".

    Of two, metrics of which more is better (`MORE`) are maximised, all else is minimised; a minus sign before
    an expression turns it round.

    Raises:
        ScenarioError: they cannot be read, or are not two.
    """
    text = aims if isinstance(aims, str) else ", ".join(aims)
    texts = [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", text)] if option == "pareto" else [text]
    if option == "pareto" and (len(texts) != 2 or texts[0] == texts[1]):
        how = "name two metrics, as in 'goodput_kbps, delay_s'"
        raise ScenarioError(f"--pareto {shown(text.strip())}: {how}", value=text)
    found = []
    for part in texts:
        read = parse_quantity(part, f"--{option}", base)
        more = option == "maximize" or (option == "pareto" and read.terms[0][1].name in MORE)
        found.append(Objective("maximize" if more else "minimize", read, part.strip()))
    return found


def parse_constraint(text: str, base: Scenario | None = None) -> Constraint:
    """Return a bound as it is written on the command line; it may name flows and groups of a scenario.

    Raises:
        ScenarioError: it cannot be read.
    """
    what = "--subject-to"
    signs = COMPARISON.findall(text)
    if len(signs) != 1:
        why = "gives two bounds at once: give each of them alone" if signs else f"has no bound: {HOW}"
        raise ScenarioError(f"{what} {shown(text.strip())}: {why}", value=text)
    if (sign := signs[0]) in ("=", "==", "!="):
        why = f"an equality is hardly ever met to the last digit: {HOW}"
        raise ScenarioError(f"{what} {shown(text.strip())}: {why}", value=text)
    left, right = (parse_expression(side, what, base) for side in COMPARISON.split(text))
    linear = left.minus(right)
    if not linear.terms or not linear.is_finite:
        why = "its numbers are too large together" if linear.terms else "names no metric and no key"
        raise ScenarioError(f"{what} {shown(text.strip())}: {why}", value=text)
    check_units(linear, f"{what} {shown(text.strip())}")
    below, bound = sign in ("<", "<=", "≤"), -linear.constant
    if linear.terms[0][0] < 0:  # 0.4 >= rtt_s reads rtt_s <= 0.4
        linear, below, bound = linear.times(-1.0), not below, -bound
    return Constraint(
        Linear(linear.terms), "<=" if below else ">=", sign in ("<", ">"), bound + 0.0, " ".join(text.split())
    )
