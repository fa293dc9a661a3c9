"""A piconet as numbers that may be varied, and its metrics and derivatives as functions of these."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from btqueue.network.piconet.coupling import System
from btqueue.network.piconet.metrics import Findings, metrics_of, slopes_of
from btqueue.network.piconet.ports import LAYERS, SHORTEST_PERIOD_S, Piconet, load_key, piconet_of
from btqueue.network.piconet.structure import LARGEST_QUEUE, Inputs, Radio, layout_of, structure_of
from btqueue.queueing._precision import in_float64
from btqueue.scenario import Scenario
from btqueue.transport.tcp_law import TcpLaw, law, longest_window

RADIO_KEYS = {
    "constant": ("ber",),
    "gilbert-elliott": ("ber_good", "ber_bad", "good_s", "bad_s"),
    "alternating": ("ber_good", "ber_bad", "period_s"),
}
"""Numbers of a radio that may be varied."""


WELL_INSIDE = 0.65
"""Mean window, as a share of the largest one in TCP's tables, up to which that limit makes no difference."""


class Numbers(ABC):
    """A scenario of one piconet as numbers that may be varied, and a pure function from these to metrics.

    It says nothing of where its numbers stand: `btqueue.network.plan` hands them out with what `solve` says.

    Attributes:
        scenario: that is answered.
        parameters: the values of the keys that may be varied.
    """

    def __init__(self, scenario: Scenario, *, apart: bool = True) -> None:
        """Read a scenario that the model covers.

        Args:
            scenario: to be answered.
            apart: whether flows with loads of their own, which may be equal, can be varied one by one.
        """
        self.scenario, self.piconet = scenario, piconet_of(scenario)
        own = [k for k, sender in enumerate(self.piconet.senders) if sender.own_load and apart]
        self.layout = layout_of(self.piconet, apart=own)
        self.parameters = _values(scenario, self.piconet)

    @abstractmethod
    def system(self, values: Mapping[str, Any]) -> Any:
        """Return what is solved where these keys have these values, all others those of the scenario."""

    @abstractmethod
    def found(self, system: Any) -> tuple[dict[str, Any], Any]:
        """Return metrics by class, or of the network, and findings."""

    @abstractmethod
    def slopes_at(self, system: Any) -> dict[str, tuple[Array, ...]]:
        """Return the derivatives of these metrics by all numbers, in the order of the leaves of `Inputs`."""

    @in_float64
    def with_findings(self, parameters: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
        """Return metrics of all flows, (flows,), or of the network, (), and findings by class.

        A metric that the model does not have is NaN.

        Args:
            parameters: values that differ from those of the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
        """
        metrics, findings = self.found(self.system(changed(self.parameters, parameters)))
        return self.of_flows(metrics), findings

    def of_flows(self, metrics: dict[str, Any]) -> dict[str, Any]:
        """Return metrics by flow from those by class; of the network as they are."""
        of_flow = np.array(self.layout.class_of)
        return {name: value[of_flow] if value.ndim else value for name, value in metrics.items()}

    @in_float64
    def derivatives(
        self, names: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> dict[str, dict[str, float]]:
        """Return the derivatives of means over flows, by metric and by key of `parameters`.

        Implicit: all keys cost as much as a few answers.

        Args:
            names: of metrics.
            parameters: values that differ from those of the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
        """
        values = changed(self.parameters, parameters)
        here = self.system(values)
        slopes, of_flow = self.slopes_at(here), np.array(self.layout.class_of)
        found: dict[str, dict[str, float]] = {name: {} for name in names}
        for key, value in values.items():
            further = self.system({**values, key: value + 1.0})  # which the keys enter linearly
            pairs = zip(jax.tree.leaves(further.inputs), jax.tree.leaves(here.inputs), strict=True)
            steps = [_difference(new, old) for new, old in pairs]
            for name in names:
                each = sum(
                    np.tensordot(by, step, step.ndim) if step.any() else 0.0
                    for by, step in zip(slopes[name], steps, strict=True)
                )
                found[name][key] = float(np.mean(np.asarray(each)[of_flow] if np.ndim(each) else each))
        return found

    def inputs(self, values: Mapping[str, Any], padding: int = 0) -> Inputs:
        """Return the numbers of the classes, and of so many more that are copies of the first one."""
        values = {**self.parameters, **values}
        scenario, control, radio = self.scenario, self.scenario.flow_control, self.scenario.radio

        # outside of JAX's transformations numpy is faster
        numbers: Any = jnp if any(isinstance(value, Array) for value in values.values()) else np

        def number(key: str, otherwise: float) -> Any:
            return numbers.asarray(values.get(key, otherwise), float)

        loads, windows = [], []
        shared = scenario.transport.receive_window_segments
        for member in (*self.layout.members, *self.layout.members[:1] * padding):
            sender = self.piconet.senders[member]
            key = load_key(sender, member)
            kbps = numbers.asarray(np.inf) if np.isinf(sender.rate) else number(key, np.nan)
            loads.append(kbps / (self.piconet.segment_bytes * 8 / 1000))
            key = "transport.receive_window_segments" if sender.window == shared else ""
            windows.append(number(key, sender.window))
        constant = radio.model == "constant"
        perfect = radio.model == "perfect"
        good, bad = ("radio.ber", "radio.ber") if constant else ("radio.ber_good", "radio.ber_bad")
        alternating = radio.model == "alternating"
        half = numbers.maximum(number("radio.period_s", 1.0), SHORTEST_PERIOD_S) / 2.0  # see `ports.stays`
        transport, infinite = scenario.transport, float("inf")
        down, up = control.places
        return Inputs(
            load=numbers.stack(loads),
            token_rate=number("flow_control.token_rate_kbps", infinite) * 125.0,
            bucket_bytes=number("flow_control.bucket_bytes", infinite),
            buffer=number("flow_control.buffer_packets", infinite),
            places=numbers.stack(
                [
                    number("flow_control.central_buffer_packets", down),
                    number("flow_control.baseband_packets", up),
                ]
            ),
            jitter_s=number("run.jitter_s", 0.0),
            layers_s=numbers.asarray(2.0 * sum(number(f"{table}.{name}", 0.0) for table, name in LAYERS)),
            window=numbers.stack(windows),
            scv=number("traffic.scv", scenario.traffic.scv),
            ack_delay_s=number("transport.ack_delay_s", transport.ack_delay_s),
            alpha=number("transport.alpha", transport.alpha),
            beta=number("transport.beta", transport.beta),
            gamma=number("transport.gamma", transport.gamma),
            min_rto_s=number("transport.min_rto_s", transport.min_rto_s),
            max_rto_s=number("transport.max_rto_s", transport.max_rto_s),
            backoff=numbers.asarray(2.0 if transport.rto_backoff else 1.0),
            radio=Radio(
                ber_good=numbers.zeros(()) if perfect else number(good, 0.0),
                ber_bad=numbers.zeros(()) if perfect else number(bad, 0.0),
                good_s=half if alternating else number("radio.good_s", 1.0),
                bad_s=half if alternating else number("radio.bad_s", 1.0),
                per=number("radio.per", np.nan),
            ),
        )


class Plan(Numbers):
    """A piconet as open queues, in the bounds that windows, and TCP's law on a lossy radio, set.

    Attributes:
        law: TCP's, where segments can be lost on the radio.
    """

    def __init__(self, scenario: Scenario, *, apart: bool = True) -> None:
        """Read a scenario, as `Numbers`."""
        super().__init__(scenario, apart=apart)
        repeated = np.isinf(self.piconet.most_transmissions)
        lossy = self.piconet.ack is not None and self.piconet.worst_error > 0.0 and not repeated
        if lossy:  # TCP's tables are those of one window
            del self.parameters["transport.receive_window_segments"]
        self._structure = structure_of(self.piconet, self.layout, lossy=lossy)
        self.law = _law(scenario) if lossy else None

    @in_float64
    def system(self, values: Mapping[str, Any]) -> System:
        """Return what is solved where these keys have these values, all others those of the scenario."""
        return System(self._structure, self.law, self.inputs(values, self._structure.padding))

    def found(self, system: System) -> tuple[dict[str, Any], Findings]:
        """Return metrics by class, or of the network, and findings."""
        return metrics_of(system)

    def slopes_at(self, system: System) -> dict[str, tuple[Array, ...]]:
        """Return the derivatives of these metrics by all numbers."""
        found = metrics_of(system)[1]
        return slopes_of((system, np.log(np.concatenate([found.rates, found.offered]))))


def changed(values: Mapping[str, float], changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the numbers that may be varied, with changes.

    Raises:
        KeyError: a key is not among them.
        TypeError: JAX transforms a number of single precision, in which the fixed point has no derivatives.
    """
    if unknown := sorted(set(changes or {}) - set(values)):
        raise KeyError(f"{', '.join(unknown)}: may be varied: {', '.join(values)}")
    for key, value in (changes or {}).items():
        if isinstance(value, Tracer) and value.dtype == np.float32:
            raise TypeError(
                f"{key} is a number of single precision: use jax.grad, jax.vmap and jax.jit inside "
                '"with jax.enable_x64(True):", and make numbers there'
            )
    return {**values, **(changes or {})}


def _values(scenario: Scenario, piconet: Piconet) -> dict[str, float]:
    """Return the keys that may be varied, with their values."""
    control, transport, radio = scenario.flow_control, scenario.transport, scenario.radio
    found: dict[str, float] = {}
    for number, sender in enumerate(piconet.senders):
        if np.isfinite(sender.rate):
            kbps = sender.rate * scenario.traffic.message_bytes * 8 / 1000
            found[load_key(sender, number)] = kbps
    if control.enabled:
        for name in ("token_rate_kbps", "bucket_bytes", "buffer_packets"):
            found[f"flow_control.{name}"] = float(getattr(control, name))
    for name, places in zip(("central_buffer_packets", "baseband_packets"), piconet.places, strict=True):
        if places <= LARGEST_QUEUE:
            found[f"flow_control.{name}"] = places
    if piconet.ack is not None:
        for name in ("receive_window_segments", "min_rto_s", "max_rto_s"):
            found[f"transport.{name}"] = float(getattr(transport, name))
    found["run.jitter_s"] = scenario.run.jitter_s
    for table, name in LAYERS:
        if delay_s := getattr(getattr(scenario, table), name):
            found[f"{table}.{name}"] = delay_s
    if radio.per is not None:
        found["radio.per"] = radio.per
    elif radio.model != "perfect":
        found |= {f"radio.{name}": float(getattr(radio, name)) for name in RADIO_KEYS[radio.model]}
    return found


def windows_fit(asked: int, mean: np.ndarray, longest: int) -> bool:
    """Whether TCP's law for windows up to `longest` segments holds for mean windows where more is asked."""
    return asked <= longest or bool((mean < WELL_INSIDE * longest).all())


def law_of(variant: str) -> str:
    """Return the variant whose law holds: Vegas answers losses as NewReno does, as far as a law knows."""
    return "newreno" if variant == "vegas" else variant


def _law(scenario: Scenario) -> TcpLaw:
    """Return TCP's law where segments can be lost on the radio."""
    transport = scenario.transport
    variant = law_of(transport.variant)
    window = min(transport.receive_window_segments, longest_window(variant))
    return law(variant, window, timestamps=transport.timestamps, delayed_ack=transport.delayed_ack)


def _difference(new: Any, old: Any) -> np.ndarray:
    """Return how far apart numbers are; those without end are the same."""
    same = np.asarray((new == old) | (np.isnan(new) & np.isnan(old)))
    return np.where(same, 0.0, new) - np.where(same, 0.0, old)
