"""The keys of a scenario as sliders and choices, the keys of largest effect first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args, get_origin

from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.problems import all_keys, known_field, parts_of
from btqueue.study.evaluate import Answer
from btqueue.study.points import scenario_with
from btqueue.study.sensitivity.factors import Factor, factors

TIMES = 4
"""A slider goes from the value divided by this to the value times this."""

FROM_NOTHING = {"_s": 0.1, "ber": 1e-4, "per": 0.1, "loss": 0.1}
"""By the end of a key's name: how far a slider goes whose value is 0."""

JUDGED_BY = ("goodput_kbps", "rtt_s", "segment_loss", "timeouts_per_s")
"""Metrics that say how much a key matters."""


class Control(NamedTuple):
    """A key that the page can change.

    Attributes:
        key: dotted.
        value: its value in the scenario.
        meaning: meaning of the key, in words.
        low: left end of a slider, None for a choice.
        high: right end of a slider, None for a choice.
        whole: whether a slider takes whole numbers only.
        choices: values of a choice; empty for a slider.
        given: whether the scenario's file gives the key: it is then shown before effects are known.
    """

    key: str
    value: Any
    meaning: str
    low: float | None = None
    high: float | None = None
    whole: bool = False
    choices: tuple[Any, ...] = ()
    given: bool = False


def controls(scenario: Scenario) -> list[Control]:
    """Return a control for each key of the network that holds a number or has named values."""
    every = (*_sliders(scenario), *_choices(scenario))
    return [control._replace(given=not scenario.origin(control.key)) for control in every]


def axis_of(found: list[Control]) -> dict[str, Any]:
    """Return key and ends of the first horizontal axis: the load if it can be turned, else the first slider.

    Raises:
        ScenarioError: the scenario has no slider.
    """
    sliders = [control for control in found if control.low is not None]
    first = next((one for one in sliders if one.key == "traffic.load_kbps"), next(iter(sliders), None))
    if first is None:
        raise ScenarioError("the scenario has no key that a slider can turn")
    return {"along": first.key, "low": first.low, "high": first.high}


def changes_to_try(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    """Return by key the changes that measure its effect: the ends of its spread, or its other values.

    Spreads are as in `btqueue sensitivity`: a tenth of the value to both sides, whole numbers at least 1.
    """
    numbers = {factor.key: [{factor.key: end} for end in factor.ends] for factor in factors(scenario)}
    named = {
        control.key: [{control.key: other} for other in control.choices if other != control.value]
        for control in _choices(scenario)
    }
    return numbers | named


def effect(answer: Answer, others: list[Answer]) -> float:
    """Return the effect of changes on the metrics in `JUDGED_BY`, between 0 and 1.

    Each metric counts with its largest change, as a share of the larger of the two values.
    """
    return sum(
        max((_moved(answer, other, name) for other in others), default=0.0) for name in JUDGED_BY
    ) / len(JUDGED_BY)


def _moved(answer: Answer, other: Answer, name: str) -> float:
    before, after = answer.means.get(name, math.nan), other.means.get(name, math.nan)
    if not (math.isfinite(before) and math.isfinite(after)) or before == after:
        return 0.0
    return min(1.0, abs(after - before) / max(abs(before), abs(after)))


def _sliders(scenario: Scenario) -> Iterator[Control]:
    for factor in factors(scenario):
        value = factor.value
        far = next((most for end, most in FROM_NOTHING.items() if factor.key.endswith(end)), 10.0)
        low, high = (value / TIMES, value * TIMES) if value > 0 else (min(value, 0.0), far)
        if factor.whole:
            low, high = math.floor(low), math.ceil(max(high, value + TIMES))
        low, high = (_nearest_allowed(scenario, factor, end) for end in (low, high))
        if low < high:
            meaning = known_field(Scenario, factor.key).description or ""
            yield Control(factor.key, value, meaning, low, high, factor.whole)


def _nearest_allowed(scenario: Scenario, factor: Factor, end: float) -> float:
    """Return an end of the slider that the scenario accepts: `end`, else half as far from the value, ..."""
    for _ in range(8):
        rounded = round(end) if factor.whole else float(f"{end:.6g}")
        if scenario_with(scenario, {factor.key: rounded}) is not None:
            return rounded
        end = (end + factor.value) / 2
    return factor.value


def _choices(scenario: Scenario) -> Iterator[Control]:
    for key in all_keys(Scenario):
        annotation, value = known_field(Scenario, key).annotation, scenario.value_of(key)
        named = next((get_args(kind) for kind in parts_of(annotation) if get_origin(kind) is Literal), ())
        options = (True, False) if annotation is bool else named
        if value is not None and value in options and not key.startswith("run."):
            taken = tuple(other for other in options if scenario_with(scenario, {key: other}) is not None)
            if len(taken) > 1:
                yield Control(key, value, known_field(Scenario, key).description or "", choices=taken)
