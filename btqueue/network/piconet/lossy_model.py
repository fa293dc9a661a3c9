"""A piconet without repetition on the link whose radio loses packets: its metrics, from `lossy`.

1. Held back by radio errors: every connection always has data, and works as `rounds` says.
2. The load is below that: goodput is the load. Messages that wait behind a timeout, and those that come
   before they have been cleared away, meet a busy connection; the others meet the network as open queues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from btqueue.baseband import PACKET_TYPES, segment
from btqueue.network.answers import NoConvergence
from btqueue.network.piconet import lossy
from btqueue.network.piconet.covers import LARGEST_ROUND
from btqueue.network.piconet.exchange import exchange_of
from btqueue.network.piconet.plan import changed, windows_fit
from btqueue.network.piconet.ports import UP, Piconet, Sender, Train, load_key, piconet_of
from btqueue.network.piconet.structure import Layout, layout_of, packets_of
from btqueue.network.piconet.trains import failure_rates
from btqueue.network.programs import Kept
from btqueue.queueing._precision import in_float64
from btqueue.scenario import Scenario

CONVERGED = 1e-2
"""Mismatch up to which an answer stands, as a share of a rate, or of a segment's tokens: where buffers refuse
segments, mean levels that are met rarely can go on to move."""
NOTHING = 1e-9
"""Chance of a segment to get through below which nothing is said about the connection."""
LATE = 1.1
"""Multiple of the timeout's floor above which the estimate of the round trip decides about goodput."""
SHORT_TIMEOUT = 4.0
"""Least timeout, in round trips, below which connections live by their timers."""
ALWAYS = 1.0 - 1e-6
"""Share of the time that is all of it."""
NEARLY = 0.8
"""Share of the time that a connection needs for its load from which on it may need all."""
MANY_TOKENS = 0.5
"""Share of the tokens that loads take from which on waits for them are known only roughly."""
LONG_FADE = 0.4
"""Mean fade, in least timeouts, from which on a repetition often meets the fade that took the segment."""
FEW_PACKETS = 3
"""Packets of a segment below which a visit takes several segments."""
CROWDED = 0.5
"""Share of the air used by others from which on processor sharing describes them only roughly."""


class Findings(NamedTuple):
    """What warnings are about; of classes (K,).

    Attributes:
        duty: share of the time that a flow needs for its load.
        timeout: without doublings (s).
        others: share of the air that others use.
        through: probability that a lone segment and its acknowledgement get through.
        window: that acknowledgements and expiries find, on average, while a flow has data.
        residual: mismatch of what classes give and are given.
        iterations: of the fixed point.
    """

    duty: Array
    timeout: Array
    others: Array
    through: Array
    window: Array
    residual: Array
    iterations: Array


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["paths", "network", "tolerance"],
    meta_fields=["kinds", "window"],
)
@dataclass(frozen=True)
class System:
    """All that an answer depends on.

    Attributes:
        kinds: channels of the classes.
        window: largest one.
        paths: classes.
        network: what may vary.
        tolerance: mismatch of an answer.
    """

    kinds: tuple[int, ...]
    window: int
    paths: tuple[lossy.Path, ...]
    network: lossy.Network
    tolerance: float = lossy.TOLERANCE


@Kept
def metrics_of(system: System) -> tuple[dict[str, Array], Findings, lossy.Given]:
    """Return metrics, by class (K,), rates in segments a second, or of the network (), findings and root."""
    given, found, residual, iterations = lossy.solve(
        system.kinds, system.window, system.paths, system.network, system.tolerance
    )
    metrics = lossy.metrics_of(system.paths, system.network, given, found)
    of_classes = {
        name: jnp.stack([getattr(one, name) for one in found])
        for name in ("duty", "timeout", "others", "through")
    }
    of_classes["window"] = jnp.stack([one.rounds.law.window for one in found])
    return metrics, Findings(**of_classes, residual=residual, iterations=iterations), given


@Kept
def slopes_of(point: tuple[System, lossy.Given]) -> dict[str, Array]:
    """Return the derivatives of the metrics at a root, (K, P) or (P,), by the P numbers of the network.

    With the implicit function theorem, as `at_root`; all derivatives come from one pass, which compiles in
    half of the time.
    """
    system, root = point
    vector, unravel = ravel_pytree((root, system.network))
    unknowns = ravel_pytree(root)[0].size

    def at(vector: Array) -> tuple[dict[str, Array], Array]:
        given, network = unravel(vector)
        better, found = lossy.respond(system.kinds, system.window, system.paths, network, given)
        residual = ravel_pytree(better)[0] - vector[:unknowns]
        return lossy.metrics_of(system.paths, network, given, found), residual

    direct, change = jax.jacfwd(at)(vector)
    change = -jnp.linalg.solve(change[:, :unknowns], change[:, unknowns:])
    return {name: by[..., :unknowns] @ change + by[..., unknowns:] for name, by in direct.items()}


class LossyPlan:
    """A scenario as numbers that may be varied, and a pure function from these to metrics.

    As `btqueue.network.piconet.plan.Plan`; the receive window is no number that may be varied.

    Attributes:
        scenario: that is answered.
        parameters: the values of the keys that may be varied.
        tolerance: mismatch of classes and network up to which they are improved.
    """

    def __init__(self, scenario: Scenario, *, apart: bool = True, tolerance: float = lossy.TOLERANCE) -> None:
        """Read a scenario; flows with loads of their own can be varied one by one if they are kept apart."""
        self.tolerance = tolerance
        self.scenario, self.piconet = scenario, piconet_of(scenario)
        own = [k for k, sender in enumerate(self.piconet.senders) if sender.own_load and apart]
        self.layout = layout_of(self.piconet, apart=own)
        self.parameters = _values(scenario, self.piconet)
        self._window = min(scenario.transport.receive_window_segments, LARGEST_ROUND)
        self._kinds, self._paths = _paths(scenario, self.piconet, self.layout)

    @in_float64
    def metrics(self, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return metrics of all flows, (flows,), or of the network, ().

        Args:
            parameters: values that differ from those of the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
        """
        return self.with_findings(parameters)[0]

    @in_float64
    def with_findings(self, parameters: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], Findings]:
        """Return metrics as `metrics` does, and findings by class."""
        metrics, findings, _ = metrics_of(self._system(changed(self.parameters, parameters)))
        return self._of_flows(metrics), findings

    @in_float64
    def slopes(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the derivatives of means over flows, by metric and by key of `parameters`."""
        system, found = self._system(self.parameters), {name: dict[str, float]() for name in names}
        slopes = slopes_of((system, metrics_of(system)[-1]))

        def network(key: str, value: Array) -> Array:
            return ravel_pytree(self._network({**self.parameters, key: value}))[0]

        for key, value in self.parameters.items():
            _, step = jax.jvp(partial(network, key), (jnp.asarray(value),), (jnp.asarray(1.0),))
            change = self._of_flows({name: slope @ np.asarray(step) for name, slope in slopes.items()})
            for name in names:
                found[name][key] = float(np.mean(change[name]))
        return found

    def _system(self, values: Mapping[str, Any]) -> System:
        return System(self._kinds, self._window, self._paths, self._network(values), self.tolerance)

    def _of_flows(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Return metrics by flow, in their units, from those by class; those of the network as they are."""
        metrics = dict(metrics)
        kilobits = self.piconet.segment_bytes * 8 / 1000
        for name in ("goodput_kbps", "throughput_kbps"):
            metrics[name] = metrics[name] * kilobits
        of_flow = np.array(self.layout.class_of)
        up = np.array([s.port.way == UP for s in self.piconet.senders])
        waiting = (metrics.pop("waiting")[of_flow] * up).sum() / self.piconet.stations
        by_flow = {name: value[of_flow] if value.ndim else value for name, value in metrics.items()}
        return by_flow | {"token_buffer": waiting}

    def _network(self, values: Mapping[str, Any]) -> lossy.Network:
        scenario, net = self.scenario, self.piconet
        radio, control, transport = scenario.radio, scenario.flow_control, scenario.transport
        assert net.ack is not None
        headers = scenario.link.l2cap_header_bytes + transport.header_bytes
        types = [PACKET_TYPES[name] for name in scenario.link.packets]
        pieces = segment(round(net.segment_bytes) + headers, types, scenario.link.segmentation)
        full = control.charge == "payload"
        prices = [float(p.packet.payload_bytes if full else p.carried_bytes) for p in pieces]
        constant = self._kinds[0] == lossy.CONSTANT

        def number(key: str, otherwise: float) -> Array:
            return jnp.asarray(values.get(key, otherwise), float)

        loads = []
        for member in self.layout.members:
            sender = net.senders[member]
            key = load_key(sender, member)
            kbps = jnp.asarray(jnp.inf) if np.isinf(sender.rate) else number(key, np.nan)
            loads.append(kbps * 1000.0 / (8.0 * net.segment_bytes))
        keys = ("radio.ber", "radio.ber") if constant else ("radio.ber_good", "radio.ber_bad")
        bers = jnp.stack([number(key, 0.0) for key in keys])

        def through(train: Train) -> Array:
            if radio.per is not None:
                return jnp.full((len(train.packets), 2), 1.0) - number("radio.per", 0.0)
            packets = packets_of(train, len(train.packets), net)
            return 1.0 - failure_rates(jax.tree.map(jnp.asarray, packets), bers).T

        return lossy.Network(
            load=jnp.stack(loads),
            prices=jnp.asarray(prices),
            ack_price=jnp.asarray(float(net.ack.tokens)),
            token_rate=number("flow_control.token_rate_kbps", lossy.FREE_RATE / 125.0) * 125.0,
            depth=number("flow_control.bucket_bytes", lossy.FREE_DEPTH),
            places=number("flow_control.buffer_packets", float(net.buffer)),
            jitter_s=number("run.jitter_s", 0.0),
            min_rto=number("transport.min_rto_s", transport.min_rto_s),
            max_rto=number("transport.max_rto_s", transport.max_rto_s),
            backoff=jnp.asarray(2.0 if transport.rto_backoff else 1.0),
            slot_s=jnp.asarray(net.slot_s),
            data_slots=jnp.asarray([float(packet.slots) for packet in net.data.packets]),
            ack_slots=jnp.asarray([float(packet.slots) for packet in net.ack.packets]),
            data_through=through(net.data),
            ack_through=through(net.ack),
            good_s=number("radio.good_s", 1.0),
            bad_s=number("radio.bad_s", 1.0),
        )


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: no fixed point was found, or nothing gets through.
    """
    plan = LossyPlan(scenario, apart=False)
    metrics, findings = _solved(plan)
    queues = {"token_buffer": float(metrics.pop("token_buffer"))}
    notes = {
        "method": "queueing: TCP's rounds, token buckets, polled air and radio state in one fixed point",
        "converged": True,
        "residual": float(findings.residual),
        "iterations": int(findings.iterations),
        "warnings": warnings_of(plan, findings, metrics["rtt_s"].max()),
    }
    return {**metrics, "queue_packets": queues}, notes


@in_float64
def _solved(plan: LossyPlan) -> tuple[dict[str, np.ndarray], Findings]:
    """Return the metrics of a plan and its findings, as numbers of numpy."""
    metrics, findings = jax.tree.map(np.asarray, plan.with_findings())
    if findings.through.min() < NOTHING:
        raise NoConvergence("no segment gets through: the flows never move")
    if np.isnan(findings.residual).any():
        raise NoConvergence("no segment gets through often enough: the flows hardly move")
    if not findings.residual <= CONVERGED:
        raise NoConvergence(
            f"connections and network do not agree: mismatch {float(findings.residual):.2g} after "
            f"{int(findings.iterations)} steps"
        )
    asked = plan.scenario.transport.receive_window_segments
    if not windows_fit(asked, findings.window, LARGEST_ROUND):
        raise NoConvergence(
            f"transport.receive_window_segments = {asked}: rounds of TCP with losses are known to windows of "
            f"{LARGEST_ROUND} segments, and these connections would use more"
        )
    return metrics, findings


def _paths(
    scenario: Scenario, piconet: Piconet, layout: Layout
) -> tuple[tuple[int, ...], tuple[lossy.Path, ...]]:
    """Return the channels that a segment of each class meets, and the rest of the class."""
    kinds, paths = [], []
    for number in layout.members:
        sender = piconet.senders[number]
        port, back = sender.port, sender.back[0]
        every = list(zip(layout.class_of, piconet.senders, strict=True))
        others = [(k, other) for k, other in every if other is not sender]

        def count(chosen: list[int]) -> np.ndarray:
            return np.bincount(np.array(chosen, int), minlength=len(layout.members)).astype(float)

        kinds.append(_kind(scenario, piconet, sender))
        paths.append(
            lossy.Path(
                flows=np.array(float(layout.class_of.count(layout.class_of[number]))),
                exchange=exchange_of(piconet, sender),
                acks_before=count([k for k, other in every if other.back[0] == port]),
                data_before=count([k for k, other in others if other.port == port]),
                tokens_of_acks=count([k for k, other in every if other.port == back]),
            )
        )
    return tuple(kinds), tuple(paths)


def _kind(scenario: Scenario, piconet: Piconet, sender: Sender) -> int:
    if scenario.radio.model == "constant" or scenario.radio.per is not None:
        return lossy.CONSTANT
    if len(sender.data) == 1:
        return lossy.SINGLE
    if piconet.stations == 1:
        return lossy.LONE
    if scenario.radio.fading == "per-link":
        return lossy.PAIR
    return lossy.SHORT_VISITS if piconet.limit < len(piconet.data.packets) else lossy.SAME


def _values(scenario: Scenario, piconet: Piconet) -> dict[str, float]:
    """Return the keys that may be varied, with their values."""
    control, transport, radio = scenario.flow_control, scenario.transport, scenario.radio
    found: dict[str, float] = {}
    for number, sender in enumerate(piconet.senders):
        if np.isfinite(sender.rate):
            found[load_key(sender, number)] = sender.rate * piconet.segment_bytes * 8 / 1000
    if control.enabled:
        for name in ("token_rate_kbps", "bucket_bytes", "buffer_packets"):
            found[f"flow_control.{name}"] = float(getattr(control, name))
    for name in ("min_rto_s", "max_rto_s"):
        found[f"transport.{name}"] = float(getattr(transport, name))
    found["run.jitter_s"] = scenario.run.jitter_s
    if radio.per is not None:
        return found | {"radio.per": radio.per}
    keys = ("ber",) if radio.model == "constant" else ("ber_good", "ber_bad", "good_s", "bad_s")
    return found | {f"radio.{name}": float(getattr(radio, name)) for name in keys}


def _tokens_in_use(plan: LossyPlan) -> float:
    """Return the largest share of its tokens that a sender's load takes."""
    control, net = plan.scenario.flow_control, plan.piconet
    if not control.enabled:
        return 0.0
    most = max((sender.rate for sender in net.senders if np.isfinite(sender.rate)), default=0.0)
    return most * net.data.tokens / (control.token_rate_kbps * 125.0)


def warnings_of(plan: LossyPlan, findings: Findings, rtt_s: float) -> list[str]:
    """Return a warning for each regime in which the answer is less certain."""
    transport, weak = plan.scenario.transport, list[str]()
    least = transport.min_rto_s
    timeout = float(findings.timeout.max())
    duty = findings.duty[findings.duty < ALWAYS]
    if (duty > NEARLY).any():
        weak.append(
            f"connections need {duty.max():.0%} of the time for their load: whether it is carried depends on "
            "small errors; goodput comes out up to 26 % high"
        )
    radio = plan.scenario.radio
    two_state = radio.per is None and radio.model == "gilbert-elliott"
    if two_state and radio.fading == "per-piconet" and plan.piconet.stations > 1:
        weak.append(
            "all links fade at once, and senders fall silent and begin again together: goodput comes out up "
            "to 25 % and round trips up to 30 % off"
        )
    if duty.size and two_state and (fade := radio.bad_s) > LONG_FADE * least:
        weak.append(
            f"the radio fades for {fade:g} s: messages come one by one, and a fade takes several of them "
            "and of their repetitions; timeouts come out up to 14 % high"
        )
    if duty.size and (use := _tokens_in_use(plan)) > MANY_TOKENS:
        weak.append(
            f"loads use {use:.0%} of the tokens: messages that come one by one wait longer for them than the "
            "tail of what is missing says; round trips come out up to 21 % short"
        )
    if duty.size and plan.piconet.limit < len(plan.piconet.data.packets):
        weak.append(
            f"polling.limit = {plan.piconet.limit} is less than the packets of a segment, and the load is "
            "carried: round trips come out up to 11 %, timeouts up to 41 % off"
        )
    if timeout > LATE * least:
        weak.append(
            f"timeouts last {timeout:.2f} s, more than their floor, and so depend on how round trips vary: "
            "goodput comes out up to 28 % high"
        )
    if least < SHORT_TIMEOUT * rtt_s:
        weak.append(
            f"transport.min_rto_s = {least:g} is less than {SHORT_TIMEOUT:g} round trips: goodput comes out "
            "up to 13 % high, more where the others use much of the air"
        )
    if len(plan.piconet.data.packets) < FEW_PACKETS:
        weak.append(
            f"segments of {len(plan.piconet.data.packets)} packets: several go in one visit, which the times "
            "of a burst do not account for; round trips come out up to 43 % short"
        )
    if (others := float(findings.others.max())) > CROWDED:
        weak.append(
            f"the others use {others:.0%} of the air, which processor sharing describes only roughly: "
            "goodput comes out up to 39 % high, round trips twice as long, and up to 83 % too few timeouts"
        )
    return weak
