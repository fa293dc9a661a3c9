"""A scenario as numbers that may be varied: metrics, derivatives, and the doubts of `solve` at each point.

Derivatives are central differences of the answers of the theory of stations. The answer at the point passes
`btqueue.network.solve.gate`. The operating points of answers beside it are found from its own, to 1e-10.
The laws of stations and transports are smooth nearly everywhere. They bend or jump where another packet fits,
a buffer just fills, or a window just holds a source back. There secants from both sides differ, even short
ones: at a kink there is no derivative, and beside a jump only the derivative of the other side. Sampled
answers have slopes of lines through answers further away.

JAX is imported only where its tracers are handed in.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.answers import NoConvergence
from btqueue.network.certificates import ImpossibleAnswer
from btqueue.network.solve import beside, gate
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.expressions import Quantity, parse_metric
from btqueue.scenario.metrics import Computed
from btqueue.scenario.traits import traits

REFUSALS = (NoConvergence, ImpossibleAnswer, ScenarioError)
_WHOLE = {
    "transport": ("receive_window_segments",),
    "polling": ("limit", "bridge_limit", "bridge_buffer_packets"),
    "flow_control": ("bucket_bytes", "buffer_packets", "baseband_packets", "central_buffer_packets"),
    "network.outside_links": ("buffer_packets",),
    "traffic": ("message_bytes", "request_bytes", "reply_bytes"),
}
WHOLE = frozenset(f"{table}.{name}" for table, names in _WHOLE.items() for name in names)
"""Keys of whole numbers that laws take as real ones, by the names of traits."""
STEP = 1e-3
"""Of a difference, as a share of the value of the key."""
SHORTER = 8.0
"""Factor by which the second step is shorter, where the first does not settle a derivative."""
CLOSE = 0.02
"""Relative difference up to which secants from both sides count as one derivative."""
NOISE = 1e-5
"""Elasticity up to which it counts as zero: the error of an answer over the step."""
KEPT = 512
"""Answers that a plan keeps."""
WIDE = (0.1, 0.2)
"""Steps of slopes through sampled answers, as shares of the value of the key."""
SAMPLED = (
    "one connection was sampled, with independent errors at each point: slopes are from lines through "
    "answers 10 and 20 % away"
)
FROM_ZERO = {
    **dict.fromkeys(("delay_s", "tcp_delay_s", "ip_delay_s", "l2cap_delay_s", "baseband_delay_s"), 1e-5),
    **dict.fromkeys(("jitter_s", "pause_s"), 1e-5),
    **dict.fromkeys(("per", "loss", "loss_back"), 1e-5),
    **dict.fromkeys(("ber", "ber_good", "ber_bad"), 1e-8),
}
"""Keys that may be varied where they are 0, by the last part of their names, with the step from there."""


class InDoubt(UserWarning):
    """An answer of theory is in doubt where a plan is evaluated; the message has the reasons."""


class Judged(dict[str, Any]):
    """Metrics, or slopes, by name.

    Attributes:
        warnings: why the answer is in doubt, as `solve` says it, and where a derivative does not exist. Empty
            while JAX traces a function: a Python warning says the same when the program runs.
    """

    def __init__(self, values: Mapping[str, Any], warnings: Sequence[str] = ()) -> None:
        """Take values by name and their doubts."""
        super().__init__(values)
        self.warnings = tuple(warnings)


class _Answer(NamedTuple):
    """The answer of `solve` at a point.

    Attributes:
        metrics: by name, computed when they are read.
        warnings: the doubts; empty beside a point.
        sampled: whether it was sampled.
        point: the operating point, where answers beside it are asked for.
    """

    metrics: Mapping[str, NDArray[np.float64]]
    warnings: tuple[str, ...]
    sampled: bool
    point: Any


class Sides(NamedTuple):
    """The slopes of one metric by one key.

    Attributes:
        kind: "smooth", "one-sided" (there are answers on one side only), "kink" (different slopes below and
            above), "jump" (of the metric itself), or "none" (no answer on either side).
        slope: the derivative; NaN at a kink and where there are no answers; where the metric jumps on one
            side only, the slope from the other side, or, if this side has no answers, the slope behind the
            jump.
        below: slope of the metric from below; NaN if it jumps there.
        above: slope of the metric from above; NaN if it jumps there.
        why: the reason if there is no derivative, or only from one side; else empty.
    """

    kind: Literal["smooth", "one-sided", "kink", "jump", "none"]
    slope: float
    below: float
    above: float
    why: str = ""


class _Secants(NamedTuple):
    """Slopes from below and from above, shape (n,), and the derivative; NaN where there is no answer.

    Attributes:
        one_side: -1 or 1 if there are answers only below or only above, else 0; then both slopes are of it.
    """

    below: NDArray[np.float64]
    above: NDArray[np.float64]
    slope: NDArray[np.float64]
    one_side: int = 0


class Plan:
    """A scenario as numbers that may be varied, and metrics as a function of these.

    `metrics` may be differentiated once, mapped and compiled by `jax.grad`, `jax.vmap` and `jax.jit`. JAX
    calls this Python code for each answer: there are no second derivatives, and batches are no faster than
    loops.

    Every point is judged as by `solve`. A point that `solve` refuses is refused here with the same error.
    Under `jax.vmap` and `jax.jit`, where a point must not end the computation of the others, its metrics are
    NaN, and an `InDoubt` warning has the text of the error. Doubts of `solve` are in `warnings` of the
    result, and are `InDoubt` warnings.

    Attributes:
        scenario: that is answered.
        parameters: the values of the keys that may be varied: real numbers above 0 that have an effect,
            delays, pauses, losses and error rates that are 0, and the whole numbers that laws take as real
            ones (windows, limits, buffers). Sizes of messages stay whole: a number between two bytes is
            rounded up, and derivatives are differences over whole bytes. The rate of a medium that outside
            links share is the rate of the first link.
    """

    def __init__(self, scenario: Scenario) -> None:
        """Read a scenario; see `plan`."""
        self.scenario = scenario
        media: dict[str, list[str]] = {}
        for number, link in enumerate(scenario.network.outside_links, start=1):
            media.setdefault(link.medium or str(number), []).append(
                f"network.outside_links[{number}].rate_kbps"
            )
        self._of_medium = {first: others for first, *others in media.values()}
        shared = {key for others in self._of_medium.values() for key in others}
        self.parameters: dict[str, float] = {
            one.key: float(one.value)
            for one in traits(scenario)
            if one.key not in shared
            and (isinstance(one.value, float) or (one.kind in WHOLE and isinstance(one.value, int)))
            and (one.value > 0 or one.kind.rpartition(".")[2] in FROM_ZERO)
            and (one.kind != "radio.ber" or scenario.radio.per is None)
        }
        self._known: dict[tuple, _Answer | Exception] = {}

    def metrics(self, parameters: Mapping[str, Any] | None = None) -> Judged:
        """Return metrics of all flows, (flows,), or of the network, (); NaN where `solve` gives none.

        Args:
            parameters: values that differ from the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
            ScenarioError: no scenario has these values.
            NoConvergence: theory refuses this point.
            ImpossibleAnswer: its answer there breaks a law that every network keeps.
        """
        given = self._checked(parameters)
        if _traced(given):
            return self._through_jax(given)
        found = self._answer({key: float(value) for key, value in given.items()})
        _say(found.warnings)
        return Judged(found.metrics, found.warnings)

    def slopes(
        self,
        names: Sequence[str],
        parameters: Mapping[str, Any] | None = None,
        keys: Sequence[str] | None = None,
    ) -> Judged:
        """Return the derivatives of means over flows, by metric and by key of `parameters`.

        A key needs two further answers, or four where the slopes on both sides differ much or the metric
        jumps. Means are over the flows for which `solve` gives the metric at this point. Derivatives are NaN
        where a metric has a kink, and where there is no answer on either side. Where a metric jumps on one
        side only, they are the slopes on the other side, and in doubt.

        Args:
            names: names of metrics.
            parameters: values that differ from the scenario, by key.
            keys: keys by which to differentiate; all of `parameters` by default.

        Raises:
            KeyError: a key is not one of `parameters`, or the answer does not have a metric.
            ScenarioError: no scenario has these values.
            NoConvergence: theory refuses this point.
            ImpossibleAnswer: its answer there breaks a law that every network keeps.
        """
        point = {key: float(value) for key, value in self._checked(parameters).items()}
        here = self._answer(point)
        found: dict[str, dict[str, float]] = {name: {} for name in names}
        doubts = [*here.warnings, *([SAMPLED] if here.sampled else [])]
        for key in self._checked(dict.fromkeys(keys)) if keys is not None else self.parameters:
            for name, sides in self.sides(names, key, point).items():
                found[name][key] = sides.slope
                doubts += [f"{name}: {sides.why}"] if sides.why else []
        _say(doubts)
        return Judged(found, doubts)

    def sides(
        self, names: Sequence[str], key: str, parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Sides]:
        """Return the slopes of metrics by one key, by name: from below, from above, and of both.

        Args:
            names: names of metrics, which stand for their means over flows, or quantities (`parse_metric`).
            key: key by which to differentiate.
            parameters: values that differ from the scenario, by key.

        Raises:
            KeyError, ScenarioError, NoConvergence, ImpossibleAnswer: as `slopes`.
        """
        point = {key: float(value) for key, value in self._checked(parameters).items()}
        self._checked({key: None})
        here = self._answer(point).metrics
        wanted = [
            Quantity(name) if name.isidentifier() else parse_metric(name, "a metric", self.scenario)
            for name in names
        ]
        if unknown := [one.name for one in wanted if one.name not in here]:
            raise KeyError(f"{', '.join(unknown)}: the answer has {', '.join(here)}")
        given = {one: np.isfinite(here[one.name]) for one in wanted}

        def means(answer: _Answer) -> NDArray[np.float64]:
            known = answer.metrics
            found = np.full(len(given), math.nan)
            for place, (one, there) in enumerate(given.items()):
                if one.name not in known:
                    continue
                values = np.where(there, known[one.name], math.nan)
                if one == Quantity(one.name):
                    kept = known[one.name][there]
                    found[place] = float(np.mean(kept)) if np.size(kept) else math.nan
                else:
                    found[place] = one.over(np.reshape(values, (1, -1)))[0]
            return found

        secants, bent = self._derivatives(point, key, means)
        found = dict.fromkeys(names, Sides("none", math.nan, math.nan, math.nan))
        for place, name in enumerate(names):
            below, above, slope = (float(one[place]) for one in secants[:3])
            if place in bent:
                found[name] = bent[place]
            elif not math.isnan(slope) and secants.one_side:
                sides = (slope, math.nan) if secants.one_side < 0 else (math.nan, slope)
                found[name] = Sides("one-sided", slope, *sides)
            elif not math.isnan(slope):
                found[name] = Sides("smooth", slope, below, above)
        return found

    def _checked(self, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
        given = dict(parameters or {})
        if unknown := sorted(given.keys() - self.parameters.keys()):
            raise KeyError(f"{', '.join(unknown)}: may be varied: {', '.join(self.parameters)}")
        return given

    def _answer(self, point: Mapping[str, float], of: Mapping[str, float] | None = None) -> _Answer:
        """Return the answer at a point, which is kept; a refusal is kept, too.

        Args:
            point: where.
            of: the point beside which it is, for a derivative there; None for an answer that is judged.

        Raises:
            ScenarioError, NoConvergence, ImpossibleAnswer: as `metrics`.
        """
        changes, base = self._changes(point), None if of is None else tuple(self._changes(of).items())
        place = (base, *changes.items())
        if place not in self._known:
            while len(self._known) >= KEPT:
                self._known.pop(next(iter(self._known)))
            try:
                alike = {other: v for key, v in changes.items() for other in self._of_medium.get(key, ())}
                scenario, at = _at(self.scenario, changes | alike), None
                if of is None:
                    solved = gate(scenario)
                elif tuple(changes.items()) == base:
                    solved, at = beside(scenario)
                    if at is not None and not solved.attrs.get("sampled"):  # found as those beside it are
                        solved, at = beside(scenario, at)
                else:
                    solved, _ = beside(scenario, self._answer(of, of).point)
                values = Computed(later={name: partial(_values, solved.metrics, name) for name in solved})
                doubts = () if of is not None else tuple(solved.attrs["warnings"])
                self._known[place] = _Answer(values, doubts, bool(solved.attrs.get("sampled")), at)
            except REFUSALS as refusal:
                self._known[place] = refusal
        found = self._known[place]
        if isinstance(found, Exception):
            raise found
        return found

    def _changes(self, point: Mapping[str, float]) -> dict[str, float]:
        """Return the values of a point that differ from the scenario; sizes of messages are whole."""
        whole = {key: float(math.ceil(v)) if _in_bytes(key) else v for key, v in sorted(point.items())}
        return {key: value for key, value in whole.items() if value != self.parameters[key]}

    def _derivatives(
        self, point: Mapping[str, float], key: str, values: Any
    ) -> tuple[_Secants, dict[int, Sides]]:
        """Return slopes of the values, (n,), of answers by a key, and, by place, slopes that do not settle.

        Args:
            point: where.
            key: that is varied.
            values: an array of shape (n,) from an answer.
        """
        value = point.get(key, self.parameters[key])
        step = STEP * value or FROM_ZERO[key.rpartition(".")[2]]
        shorter = step / SHORTER
        if _in_bytes(key):
            step, shorter = max(2.0, round(step)), 1.0
        answer = self._answer(point, point)
        here = values(answer)
        if answer.sampled:
            nothing, slope = np.full_like(here, np.nan), self._sampled_slope(point, key, value, here, values)
            return _Secants(nothing, nothing, slope), {}
        floor = NOISE * np.abs(here) * STEP / (shorter if _in_bytes(key) else step)
        first = self._secants(point, key, value, step, here, values)
        (below, above, slope, _), apart = first, np.abs(first.above - first.below)
        size = np.maximum(np.abs(first.above), np.abs(first.below))
        open_ = np.isfinite(here) & ~(apart <= CLOSE * size + floor)
        bent: dict[int, Sides] = {}
        if open_.any():
            last = self._secants(point, key, value, shorter, here, values)
            nearer = np.abs(last.above - last.below)
            size = np.maximum(np.abs(last.above), np.abs(last.below))
            less = apart * min(2.0 * shorter / step, 0.75)
            settled = nearer <= np.maximum(CLOSE * size, less) + step / shorter * floor
            slope = np.where(open_, np.where(settled, last.slope, np.nan), slope)
            below, above = np.where(open_, last.below, below), np.where(open_, last.above, above)
            for place in np.flatnonzero(open_ & ~settled).tolist():
                near, far = ((float(one.below[place]), float(one.above[place])) for one in (last, first))
                at, noise = f"{key} = {value:g}", float(floor[place])
                bent[place] = _apart(at, near, far, step / shorter, noise, last.one_side)
                slope[place] = bent[place].slope
        slope = np.where(np.abs(slope) <= floor, 0.0, slope)
        return _Secants(below, above, slope, first.one_side), bent

    def _sampled_slope(
        self, point: Mapping[str, float], key: str, value: float, here: Any, values: Any
    ) -> NDArray[np.float64]:
        """Return slopes of lines through sampled answers at equal distances, NaN where there are none."""
        over, squares = np.zeros_like(here), 0.0
        for share in WIDE:
            step = max(round(share * value), 1) if self._is_whole(key) else share * value
            try:
                ends = [self._answer({**point, key: value + side * step}, point) for side in (-1.0, 1.0)]
            except REFUSALS:
                continue
            if step and all(end.sampled for end in ends):
                over = over + step * (values(ends[1]) - values(ends[0]))
                squares += 2.0 * step**2
        return over / squares if squares else np.full_like(here, np.nan)

    def _is_whole(self, key: str) -> bool:
        """Whether the key is a whole number in the scenario."""
        return isinstance(self.scenario.value_of(key), int)

    def _secants(
        self, point: Mapping[str, float], key: str, value: float, step: float, here: Any, values: Any
    ) -> _Secants:
        """Return slopes on both sides; where one side has no answer, two of the other."""

        def at(offset: float) -> Any:
            try:
                answer = self._answer({**point, key: value + offset}, point)
            except REFUSALS:
                return np.full_like(here, np.nan)
            return np.full_like(here, np.nan) if answer.sampled else values(answer)

        down, up = at(-step), at(step)
        below, above = (here - down) / step, (up - here) / step
        if np.isnan(down).all() != np.isnan(up).all():
            side = -1.0 if np.isnan(up).all() else 1.0
            half, whole = side * (at(side * step / 2.0) - here) / (step / 2.0), below if side < 0 else above
            return _Secants(half, whole, 2.0 * half - whole, int(side))
        return _Secants(below, above, (below + above) / 2.0)

    # -------------------------------------------------------------------------------------------------- JAX

    def _through_jax(self, given: dict[str, Any]) -> Judged:
        """Return metrics whose numbers JAX traces; its program calls back for values and derivatives."""
        import jax
        import jax.numpy as jnp

        keys = list(given)
        concrete = [_concrete(value) for value in given.values()]
        known = {key: value for key, value in zip(keys, concrete, strict=True) if value is not None}
        near = self._answer(known if len(known) == len(keys) else {})  # raises if the point is refused
        shapes = near.metrics
        if len(known) == len(keys):
            _say(near.warnings, frames=4)
        real = jnp.result_type(float)

        def like(*more: int) -> dict[str, Any]:
            return {name: jax.ShapeDtypeStruct((*value.shape, *more), real) for name, value in shapes.items()}

        def ask(numbers: Sequence[Any], slopes: bool) -> dict[str, Any]:
            def called(*numbers: Any) -> dict[str, np.ndarray]:
                point = {key: float(number) for key, number in zip(keys, numbers, strict=True)}
                found = self._jacobian(point, shapes) if slopes else self._or_nothing(point, shapes)
                return {name: np.asarray(value, real) for name, value in found.items()}

            wanted = like(len(keys)) if slopes else like()
            return jax.pure_callback(called, wanted, *numbers, vmap_method="sequential")

        @jax.custom_jvp
        def metrics(*numbers: Any) -> dict[str, Any]:
            return ask(numbers, slopes=False)

        def derivatives(numbers: Any, tangents: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            found, along = ask(numbers, slopes=True), jnp.stack([jnp.asarray(one, real) for one in tangents])
            return metrics(*numbers), {name: value @ along for name, value in found.items()}

        metrics.defjvp(derivatives)
        return Judged(metrics(*(jnp.asarray(value, real) for value in given.values())))

    def _or_nothing(self, point: dict[str, float], shapes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metrics of a point that JAX hands over when its program runs; NaN if it is refused."""
        try:
            found = self._answer(point)
        except REFUSALS as refusal:
            where = ", ".join(f"{key} = {value:g}" for key, value in point.items())
            warnings.warn(f"{where}: {refusal}", InDoubt, stacklevel=2)
            return {name: np.full_like(value, math.nan) for name, value in shapes.items()}
        _say(found.warnings)
        return {n: found.metrics.get(n, np.full_like(value, math.nan)) for n, value in shapes.items()}

    def _jacobian(self, point: dict[str, float], shapes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the derivatives of metrics by the keys of a point, by name: of its shape, and (keys,)."""

        def flat(answer: _Answer) -> NDArray[np.float64]:
            known = answer.metrics
            values = [known[n] if n in known else np.full_like(v, math.nan) for n, v in shapes.items()]
            return np.concatenate([np.ravel(value) for value in values])

        try:
            columns = [self._derivatives(point, key, flat) for key in point]
        except REFUSALS:  # the warning of the values reports it
            return {name: np.full((*value.shape, len(point)), math.nan) for name, value in shapes.items()}
        names = [name for name, value in shapes.items() for _ in range(value.size)]  # of each place
        said = [f"{names[place]}: {one.why}" for _, bent in columns for place, one in bent.items()]
        _say([SAMPLED] if self._answer(point).sampled else list(dict.fromkeys(said)))
        every, found, begin = np.stack([secants.slope for secants, _ in columns], axis=-1), {}, 0
        for name, value in shapes.items():
            found[name] = every[begin : begin + value.size].reshape(*value.shape, len(point))
            begin += value.size
        return found


def plan(scenario: Scenario) -> Plan:
    """Return a scenario as numbers that may be varied, and a function from them to metrics and derivatives.

    It works for every network that `solve` answers, and under `jax.grad`, `jax.vmap` and `jax.jit`.
    """
    return Plan(scenario)


def _values(metrics: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    return np.asarray(metrics[name].values, float)


def _in_bytes(key: str) -> bool:
    """Return whether the key is a size that stays whole: message sizes, as packets take whole bytes."""
    return key.endswith("_bytes") and key != "flow_control.bucket_bytes"


def _apart(
    at: str,
    near: tuple[float, float],
    far: tuple[float, float],
    ratio: float,
    floor: float,
    one_side: int,
) -> Sides:
    """Tell a kink from a jump where secants do not settle.

    Args:
        at: key and value.
        near: secants from below and from above, with the shorter step; where there are answers on one side
            only, both are of this side, over half of a step and over a whole one.
        far: the same with the longer step.
        ratio: ratio of the steps.
        floor: slope that is none.
        one_side: -1 or 1 if there are answers only below or only above.
    """
    low, high = near
    if one_side:
        found = f"slopes are {low:.4g} over half a step and {high:.4g} over one"
        if _stays(low, high, 2.0, floor) is not False:
            return Sides("kink", math.nan, low, high, f"no derivative by {at}, where {found}")
        behind = 2.0 * high - low
        sides = (behind, math.nan) if one_side < 0 else (math.nan, behind)
        return Sides("jump", behind, *sides, f"the slope by {at} is the slope behind a jump, where {found}")
    if math.isnan(low) and math.isnan(high):
        return Sides(
            "none", math.nan, low, high, f"no derivative by {at}, where there is no answer on either side"
        )
    found = f"slopes are {low:.4g} from below and {high:.4g} from above"
    below, above = (_stays(*pair, ratio, floor) for pair in zip(near, far, strict=True))
    if below and above is False:
        return Sides("jump", low, low, math.nan, f"a jump at {at}: the slope is the one below it")
    if above and below is False:
        return Sides("jump", high, math.nan, high, f"a jump at {at}: the slope is the one above it")
    if False in (below, above):
        return Sides("jump", math.nan, math.nan, math.nan, f"no derivative by {at}, where {found}")
    return Sides("kink", math.nan, low, high, f"no derivative by {at}, where {found}")


def _stays(near: float, far: float, ratio: float, floor: float) -> bool | None:
    """Whether a secant stays as its step shrinks; False at a jump, where the difference does; else None."""
    if abs(near - far) <= CLOSE * max(abs(near), abs(far)) + ratio * floor:
        return True
    return False if abs(near) > ratio**0.5 * abs(far) else None


def _at(scenario: Scenario, changes: Mapping[str, float]) -> Scenario:
    """Return the scenario with these numbers, which may lie between whole ones.

    Raises:
        ScenarioError: no scenario has these values; between whole numbers, none has the larger one.
    """
    whole = {key: isinstance(scenario.value_of(key), int) for key in changes}
    found = scenario.changed({key: math.ceil(v) if whole[key] else v for key, v in changes.items()})
    for key, value in changes.items():
        if whole[key] and value != round(value):
            found = _between(found, key.split("."), value)
    return found


def _between(table: Any, way: list[str], value: float) -> Any:
    """Return a table with a number between whole ones, which its own checks would refuse."""
    name, bracket, number = way[0].removesuffix("]").partition("[")
    if len(way) == 1:
        return table.model_copy(update={name: value})
    inside = getattr(table, name)
    if not bracket:
        return table.model_copy(update={name: _between(inside, way[1:], value)})
    entries = list(inside)
    entries[int(number) - 1] = _between(entries[int(number) - 1], way[1:], value)
    return table.model_copy(update={name: tuple(entries)})


def _traced(given: Mapping[str, Any]) -> bool:
    """Whether JAX traces one of the numbers."""
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(value, jax.core.Tracer) for value in given.values())


def _concrete(value: Any) -> float | None:
    """Return a number; None if JAX knows it only when its program runs."""
    known = value.to_concrete_value() if hasattr(value, "to_concrete_value") else value
    return None if known is None else float(known)


def _say(doubts: Sequence[str], frames: int = 2) -> None:
    """Give a Python warning of doubts, as from the code `frames` frames above the caller."""
    if doubts:
        words = f"the answer of theory is in doubt: {'; '.join(doubts)}"
        warnings.warn(words, InDoubt, stacklevel=1 + frames)
