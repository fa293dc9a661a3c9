"""The problem of a dimensioning: an objective, bounds, and the keys to choose, with their values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from btqueue.scenario import Problem, Scenario, ScenarioError
from btqueue.scenario.errors import shown
from btqueue.scenario.expressions import (
    Linear,
    check_units,
    number_of_key,
    parse_expression,
    parse_quantity,
)
from btqueue.study.dimensioning.choices import Choice, Choices, Place, parse_choices

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

    def relaxed(self, by: float) -> Constraint:
        """Return the constraint with its bound moved outward."""
        return replace(self, bound=self.bound + by if self.sense == "<=" else self.bound - by)


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
    def bounds(self) -> tuple[Constraint, ...]:
        """The constraints that were asked for."""
        return self.constraints if self.second is None else self.constraints[:-1]

    @property
    def size(self) -> int | None:
        """Number of combinations; None if a key is continuous."""
        if any(choice.continuous for choice in self.choices):
            return None
        return math.prod(len(choice.values) for choice in self.choices)

    def changes(self, place: Place) -> dict[str, Any]:
        """Return the values of the chosen keys at a place."""
        return {choice.key: choice.at(at) for choice, at in zip(self.choices, place, strict=True)}

    def keys(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all keys that expressions may name."""
        return {**self.fixed, **changes}

    def with_constraint(self, number: int, constraint: Constraint) -> Task:
        """Return the task with one constraint replaced."""
        changed = [*self.constraints[:number], constraint, *self.constraints[number + 1 :]]
        return replace(self, constraints=tuple(changed))

    def without_constraint(self, number: int) -> Task:
        """Return the task without one of its constraints."""
        return replace(self, constraints=(*self.constraints[:number], *self.constraints[number + 1 :]))

    def without_bounds(self) -> Task:
        """Return the task without its constraints."""
        return replace(self, constraints=())

    def rules_out(self, changes: Mapping[str, Any]) -> bool:
        """Whether the values of the keys alone violate a bound."""
        keys = self.keys(changes)
        return any(
            constraint.of_keys_only and constraint.violation(constraint.expression.value({}, keys)) > 0
            for constraint in self.constraints
        )


def task_of(
    base: Scenario,
    *,
    maximize: str | None = None,
    minimize: str | None = None,
    pareto: str | Sequence[str] | None = None,
    subject_to: str | Sequence[str] = (),
    choose: Choices,
) -> Task:
    """Return the task that was asked for.

    Args:
        base: the scenario.
        maximize: a linear expression of metrics and keys; or
        minimize: another one; or
        pareto: two of them, as a list or separated by a comma (`aims_of`).
        subject_to: bounds such as ``"rtt_s <= 400 ms"`` or
            ``"flow_control.token_rate_kbps <= 1.5 * goodput_kbps"``.
        choose: values by key, written as for a sweep (``"1..25"``, ``"DH5,[DH3,DH5]"``); for a key that takes
            real numbers, ``"100..400"``, ``"lin(a,b)"`` and ``"log(a,b)"`` are continuous.

    Raises:
        ScenarioError: something of it cannot be read or is unknown.
    """
    if (maximize, minimize, pareto).count(None) != 2:
        raise ScenarioError(
            Problem(
                "name one objective: maximize or minimize, as in --maximize goodput_kbps, or two that "
                "compete, as in --pareto 'goodput_kbps, delay_s'"
            )
        )
    aims = aims_of(pareto, base) if pareto is not None else [
        _objective("maximize", maximize, base)
        if maximize is not None
        else _objective("minimize", minimize or "", base)
    ]  # fmt: skip
    texts = [subject_to] if isinstance(subject_to, str) else list(subject_to)
    constraints = tuple(parse_constraint(text, base) for text in texts)
    choices = parse_choices(choose)
    numbers = {choice.key for choice in choices if choice.ordered}
    named = [
        *(
            (f"--{'pareto' if pareto else aim.sense} {shown(aim.text)}", key)
            for aim in aims
            for key in aim.expression.keys
        ),
        *((f"--subject-to {shown(c.text)}", key) for c in constraints for key in c.expression.keys),
    ]
    chosen = {choice.key for choice in choices}
    for what, key in named:
        if key in chosen and key not in numbers:
            raise ScenarioError(Problem(f"{what}: the values to choose for {key} are no numbers", key))
    fixed = {key: number_of_key(base, key, what) for what, key in named if key not in chosen}
    if pareto is None:
        return Task(base, aims[0], constraints, choices, fixed)
    second = aims[1]
    sense, bound = (">=", -math.inf) if second.sense == "maximize" else ("<=", math.inf)
    unbounded = Constraint(second.expression, sense, False, bound, second.text)
    return Task(base, aims[0], (*constraints, unbounded), choices, fixed, second)


def _objective(sense: Literal["maximize", "minimize"], text: str, base: Scenario) -> Objective:
    return Objective(sense, parse_quantity(text, f"--{sense}", base), text.strip())


def aims_of(aims: str | Sequence[str], base: Scenario) -> list[Objective]:
    """Return two aims, as in "goodput_kbps, p95(delay_s, sensors)".

    Metrics of which more is better (`MORE`) are maximised, all else is minimised; a minus sign before an
    expression turns it round.

    Raises:
        ScenarioError: they cannot be read, or are not two.
    """
    text = aims if isinstance(aims, str) else ", ".join(aims)
    texts = [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", text)]
    if len(texts) != 2 or texts[0] == texts[1]:
        how = "name two metrics, as in 'goodput_kbps, delay_s'"
        raise ScenarioError(Problem(f"--pareto {shown(text.strip())}: {how}", value=text))
    read = [parse_quantity(part, "--pareto", base) for part in texts]
    return [
        Objective("maximize" if one.terms[0][1].name in MORE else "minimize", one, part)
        for one, part in zip(read, texts, strict=True)
    ]


def parse_constraint(text: str, base: Scenario | None = None) -> Constraint:
    """Return a bound as it is written on the command line; it may name flows and groups of a scenario.

    Raises:
        ScenarioError: it cannot be read.
    """
    what = "--subject-to"
    signs = COMPARISON.findall(text)
    if len(signs) != 1:
        why = "gives two bounds at once: give each of them alone" if signs else f"has no bound: {HOW}"
        raise ScenarioError(Problem(f"{what} {shown(text.strip())}: {why}", value=text))
    if (sign := signs[0]) in ("=", "==", "!="):
        why = f"an equality is hardly ever met to the last digit: {HOW}"
        raise ScenarioError(Problem(f"{what} {shown(text.strip())}: {why}", value=text))
    left, right = (parse_expression(side, what, base) for side in COMPARISON.split(text))
    linear = left.linear.minus(right.linear)
    if not linear.terms or not linear.is_finite:
        why = "its numbers are too large together" if linear.terms else "names no metric and no key"
        raise ScenarioError(Problem(f"{what} {shown(text.strip())}: {why}", value=text))
    check_units(linear, (*left.units, *right.units), f"{what} {shown(text.strip())}")
    below, bound = sign in ("<", "<=", "≤"), -linear.constant
    if linear.terms[0][0] < 0:  # 0.4 >= rtt_s reads rtt_s <= 0.4
        linear, below, bound = linear.times(-1.0), not below, -bound
    return Constraint(
        Linear(linear.terms), "<=" if below else ">=", sign in ("<", ">"), bound + 0.0, " ".join(text.split())
    )
