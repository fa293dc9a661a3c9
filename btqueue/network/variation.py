"""A scenario as numbers that may be varied: metrics and derivatives, and what `solve` says at each point.

Models of piconets are smooth functions of loads, buffers and times. Whether their numbers stand is decided at
each point by `btqueue.network.solve.gate`, as for every other answer.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from btqueue.network.answers import NoConvergence
from btqueue.network.certificates import ROUNDING, ImpossibleAnswer
from btqueue.network.load_steps import Answer
from btqueue.network.models import MODELS, covering
from btqueue.network.piconet import model
from btqueue.network.piconet.plan import Plan as Numbers
from btqueue.network.solve import gate
from btqueue.network.whole_segments import in_rounds_at_all, in_segments
from btqueue.queueing._precision import in_float64
from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError
from btqueue.scenario.errors import Problem, shown
from btqueue.scenario.scope import in_tables, problems_of

REFUSALS = (NoConvergence, ImpossibleAnswer, ScenarioError)
OF_DERIVATIVES = frozenset({"load_kbps"})
"""Keys of flows by which there are derivatives, each under the name that it has in the scenario."""
OTHER_NAMES = {"token_buffer": "queue_packets"}
"""Metrics of a plan that have another name in an answer."""


class InDoubt(UserWarning):
    """An answer by queues and chains is in doubt where a plan is asked; the message has the reasons."""


class Judged(dict[str, Any]):
    """Metrics, or slopes, by name.

    Attributes:
        warnings: why the answer is in doubt, as `solve` says it; empty if it is not, or if JAX maps or
            compiles, where a Python warning says it when the program runs.
    """

    def __init__(self, values: Mapping[str, Any], warnings: Sequence[str] = ()) -> None:
        """Take values by name and their doubts."""
        super().__init__(values)
        self.warnings = tuple(warnings)


jax.tree_util.register_pytree_node(
    Judged,
    lambda one: (tuple(one.values()), (tuple(one), one.warnings)),
    lambda about, values: Judged(dict(zip(about[0], values, strict=True)), about[1]),
)


class _Verdict(NamedTuple):
    """By metric 1, or NaN where `solve` gives no value, in the metric's shape; and the doubts."""

    factors: dict[str, np.ndarray]
    warnings: tuple[str, ...]


class Plan:
    """A scenario as numbers that may be varied, and metrics as a pure function of these.

    `metrics` may be differentiated, mapped and compiled by `jax.grad`, `jax.vmap` and `jax.jit`; inside
    `jax.enable_x64(True)`, or JAX hands it numbers of single precision.

    Every point is judged as `solve` judges it. What that refuses is refused here with the same error; under
    `jax.vmap` and `jax.jit`, where one point must not end all others, it is NaN, and an `InDoubt` warning
    has the error's words. What that doubts is in `warnings` of the result, and is an `InDoubt` warning. A
    number between two whole ones, of a key that takes whole numbers only, is judged as the larger one.

    Attributes:
        scenario: that is answered, in whole segments.
        parameters: the values of the keys that may be varied.
        model: name of the model.
        numbers: the model's own functions, which judge nothing.
    """

    def __init__(self, scenario: Scenario) -> None:
        """Read a scenario; see `plan`."""
        self._asked = in_tables(scenario, OF_DERIVATIVES)
        self.model, self.numbers = _numbers_of(self._asked)
        self.scenario, self.parameters = self.numbers.scenario, self.numbers.parameters

    @in_float64
    def metrics(self, parameters: Mapping[str, Any] | None = None) -> Judged:
        """Return metrics of all flows, (flows,), or of the network, (); NaN where `solve` gives none.

        Args:
            parameters: values that differ from those of the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
            ScenarioError: no scenario has these values.
            NoConvergence: the model refuses this point.
            ImpossibleAnswer: its answer there breaks a law that every network keeps.
        """
        given = dict(parameters or {})
        known = {key: _concrete(value) for key, value in given.items()}
        point = {key: value for key, value in known.items() if value is not None}
        if point.keys() == given.keys():
            metrics, findings = self.numbers.with_findings(point)
            verdict = self._judged(point, metrics, findings)
            _say(verdict.warnings, frames=3)
            if any(isinstance(value, Tracer) for value in given.values()):
                metrics, _ = self.numbers.with_findings(given)
            return Judged({n: metrics[n] * verdict.factors[n] for n in metrics}, verdict.warnings)
        metrics, findings = self.numbers.with_findings(given)
        # a thread of XLA is not in the caller's `jax.enable_x64`: 1 and NaN are the same in single precision
        shapes = {name: jax.ShapeDtypeStruct(value.shape, jnp.float32) for name, value in metrics.items()}
        seen = jax.lax.stop_gradient(jax.tree.map(jnp.asarray, (given, metrics, findings)))
        factors = jax.pure_callback(self._judged_later, shapes, *seen, vmap_method="sequential")
        return Judged({name: value * factors[name].astype(float) for name, value in metrics.items()})

    def slopes(self, names: Sequence[str], parameters: Mapping[str, Any] | None = None) -> Judged:
        """Return the derivatives of means over flows, by metric and by key of `parameters`.

        Implicit: all keys cost as much as a few answers. Where `solve` does not give a metric of every flow,
        its derivatives are NaN.

        Args:
            names: of metrics.
            parameters: values that differ from those of the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
            ScenarioError: no scenario has these values.
            NoConvergence: the model refuses this point.
            ImpossibleAnswer: its answer there breaks a law that every network keeps.
        """
        found = self._slopes(names, parameters)
        _say(found.warnings)
        return found

    def _slopes(self, names: Sequence[str], parameters: Mapping[str, Any] | None = None) -> Judged:
        point = dict(parameters or {})
        verdict = self._judged(point, *self.numbers.with_findings(point))
        found = self.numbers.derivatives(names, point)
        shares = {name: float(np.mean(verdict.factors.get(name, 1.0))) for name in found}
        return Judged(
            {name: {key: slope * shares[name] for key, slope in found[name].items()} for name in found},
            verdict.warnings,
        )

    def _judged(self, point: Mapping[str, float], metrics: Mapping[str, Any], findings: Any) -> _Verdict:
        """Return what `solve` makes of metrics and findings at a point.

        Raises:
            NotBuiltYet: its answer there is another one than that of these functions.
        """
        metrics, findings = jax.tree.map(np.asarray, ({**metrics}, findings))
        here = {key: value for key, value in point.items() if value != self.parameters[key]}
        asked, numbers = self._asked, self.numbers
        if here:
            asked = asked.changed({key: _whole(asked, key, value) for key, value in here.items()})
            name, numbers = _numbers_of(asked)
            if (name, type(numbers)) != (self.model, type(self.numbers)):
                raise NotBuiltYet([_other(here)])
        frozen: Any = in_segments(asked)  # and so hashable
        said: dict[Any, Answer] = {frozen: _answer_at(numbers, metrics, findings)}
        solved = gate(asked, self.model, said)
        factors = {}
        for name, value in metrics.items():
            one = solved.metrics.get(OTHER_NAMES.get(name, name))
            known = np.full_like(value, np.nan) if one is None else one.values.reshape(value.shape)
            there = np.isfinite(known)
            if not np.allclose(value[there], known[there], rtol=ROUNDING, atol=0.0):
                raise NotBuiltYet([_other(here or self.parameters)])
            factors[name] = np.where(there, np.float32(1.0), np.float32(np.nan))
        return _Verdict(factors, tuple(solved.attrs["warnings"]))

    def _judged_later(self, point: Any, metrics: Any, findings: Any) -> dict[str, np.ndarray]:
        """Return the factors of a point that JAX hands over when its program runs; NaN if it is refused."""
        try:
            verdict = self._judged({key: float(value) for key, value in point.items()}, metrics, findings)
        except REFUSALS as refusal:
            where = ", ".join(f"{key} = {float(value):g}" for key, value in point.items())
            warnings.warn(f"{where}: {refusal}", InDoubt, stacklevel=2)
            return {name: np.full(np.shape(value), math.nan, np.float32) for name, value in metrics.items()}
        _say(verdict.warnings)
        return verdict.factors


def plan(scenario: Scenario) -> Plan:
    """Return a scenario as numbers that may be varied, and a pure function from them to metrics.

    For gradients and for many answers at once, by `jax.grad`, `jax.vmap` and `jax.jit`: of one piconet.

    Raises:
        NotBuiltYet: the scenario asks for something that has no derivatives.
    """
    return Plan(scenario)


def slopes(scenario: Scenario, names: Sequence[str]) -> Judged:
    """Return exact derivatives of theory's answer: means over flows by metric, and by key of `plan`.

    Empty where there are none: another model than that of a piconet answers, or a load that changes, or
    messages wait for each other's acknowledgement, or one connection is sampled (`btqueue.network.tagged`).

    Raises:
        NoConvergence: the model refuses the scenario.
        ImpossibleAnswer: its answer breaks a law that every network keeps.
    """
    try:
        return Plan(scenario)._slopes(names)
    except NotBuiltYet:
        return Judged({})


def _numbers_of(scenario: Scenario) -> tuple[str, Numbers]:
    """Return the model that `solve` asks, by name, and the scenario as its numbers.

    Raises:
        NotBuiltYet: it has no derivatives.
    """
    if problems := list(_without_derivatives(scenario)):
        raise NotBuiltYet(problems)
    plain, name = in_segments(scenario), covering(scenario)
    if name is None:
        raise NotBuiltYet(problems_of(MODELS["piconet"], plain))
    return name, Numbers(plain)


def _without_derivatives(scenario: Scenario) -> Iterator[Problem]:
    """Yield what a model covers, but not its derivatives."""
    traffic, mss = scenario.traffic, scenario.transport.mss_bytes
    if in_rounds_at_all(scenario):
        full = f"a multiple of transport.mss_bytes = {mss}"
        yield Problem(
            f"[traffic] message_bytes = {traffic.message_bytes}: no derivatives of messages that wait for "
            f"each other; {full}",
            key="traffic.message_bytes", value=traffic.message_bytes, allowed=full,
        )  # fmt: skip
    if traffic.load_schedule:
        key, one = "traffic.load_schedule", "a load that stays the same"
        yield Problem(f"[traffic] load_schedule: no derivatives of a load that changes; {one}", key=key)
    name = covering(scenario)
    if name not in ("piconet", None):
        key, value = "network.topology", scenario.network.topology
        yield Problem(
            f"[network] topology = {shown(value)}: {MODELS[name].name} answers this scenario, and has no "
            "derivatives; that of a piconet has",
            key=key, value=value,
        )  # fmt: skip


def _answer_at(numbers: Numbers, metrics: Any, findings: Any) -> Answer:
    """Return a model's answer (`btqueue.network.answers`) from what its functions gave."""
    return model.answer_at(numbers, metrics, findings)


def _other(point: Mapping[str, float]) -> Problem:
    key = next(iter(point))
    where = ", ".join(f"{key} = {value:g}" for key, value in point.items())
    return Problem(
        f"{where}: the answer there is of another kind (windows that are always full, a sampled "
        "connection, or none) and no smooth function of these numbers: ask solve",
        key=key, value=point[key],
    )  # fmt: skip


def _concrete(value: Any) -> float | None:
    """Return a number; None if JAX knows it only when its program runs."""
    known = value.to_concrete_value() if isinstance(value, Tracer) else value
    return None if known is None else float(known)


def _whole(scenario: Scenario, key: str, value: float) -> float:
    """Return the value as the key takes it: the next whole number above, of a key of whole numbers."""
    table, name = key.split(".", 1)
    whole = isinstance(getattr(getattr(scenario, table, None), name, None), int)
    return math.ceil(value) if whole else float(value)


def _say(doubts: Sequence[str], frames: int = 2) -> None:
    """Give a Python warning of doubts, as of the code so many frames above the caller."""
    if doubts:
        words = f"the answer by queues and chains is in doubt: {'; '.join(doubts)}"
        warnings.warn(words, InDoubt, stacklevel=1 + frames)
