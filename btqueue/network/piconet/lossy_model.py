"""A piconet without repetition on the link whose radio loses packets: its metrics, from `lossy`.

1. Held back by radio errors: every connection always has data, and works as `rounds` says.
2. The load is below that: goodput is the load. Messages that wait behind a timeout, and those that come
   before they have been cleared away, meet a busy connection; the others meet the network as open queues.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.network.answers import NoConvergence
from btqueue.network.piconet import lossy
from btqueue.network.piconet.covers import LARGEST_ROUND
from btqueue.network.piconet.disciplines import numbers
from btqueue.network.piconet.exchange import exchange_of
from btqueue.network.piconet.plan import Numbers, windows_fit
from btqueue.network.piconet.ports import UP, Piconet, Sender
from btqueue.network.piconet.structure import Inputs, Layout, packets_of
from btqueue.network.piconet.trains import Packets
from btqueue.network.programs import Kept
from btqueue.network.regime import FREQUENT
from btqueue.queueing._precision import in_float64
from btqueue.queueing.implicit import slopes_at_root
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
BY_BUFFERS = 0.5
"""Share of the lost segments that buffers refuse up to which goodput was within 6 %."""
FEW_PACKETS = 3
"""Packets of a segment below which a visit takes several segments."""
CROWDED = 0.5
"""Share of the air used by others from which on processor sharing describes them only roughly."""

ONLY_CHECKED = (
    "transport.receive_window_segments",
    *(f"flow_control.{name}" for name in ("central_buffer_packets", "baseband_packets")),
)
"""Keys of which the answer needs to know only that they are large enough."""


class Findings(NamedTuple):
    """What warnings are about; of classes (K,).

    Attributes:
        duty: share of the time that a flow needs for its load.
        timeout: without doublings (s).
        others: share of the air that others use.
        through: probability that a lone segment and its acknowledgement get through.
        window: that acknowledgements and expiries find, on average, while a flow has data.
        refused, refused_share: segments a second of a flow of which token buffers refuse a packet, and
            these as a share of the lost ones.
        residual: mismatch of what classes give and are given.
        iterations: of the fixed point.
    """

    duty: Array
    timeout: Array
    others: Array
    through: Array
    window: Array
    refused: Array
    refused_share: Array
    residual: Array
    iterations: Array


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["paths", "inputs", "data", "ack", "slot_s", "kilobits", "tolerance"],
    meta_fields=["kinds", "window"],
)
@dataclass(frozen=True)
class System:
    """All that an answer depends on.

    Attributes:
        kinds: channels of the classes.
        window: largest one.
        paths: classes.
        inputs: numbers that may be varied.
        data, ack, slot_s, kilobits: see `lossy.Network`.
        tolerance: mismatch of an answer.
    """

    kinds: tuple[int, ...]
    window: int
    paths: tuple[lossy.Path, ...]
    inputs: Inputs
    data: Packets
    ack: Packets
    slot_s: Array
    kilobits: Array
    tolerance: float

    @property
    def network(self) -> lossy.Network:
        """What is solved."""
        return lossy.network_of(self.inputs, self.data, self.ack, self.slot_s, self.kilobits)


@Kept
def metrics_of(system: System) -> tuple[dict[str, Array], Findings, lossy.Given]:
    """Return metrics, by class (K,) or of the network (), findings and root."""
    network = system.network
    given, found, residual, iterations = lossy.solve(
        system.kinds, system.window, system.paths, network, system.tolerance
    )
    metrics = lossy.metrics_of(system.paths, network, given, found)
    of_classes = {
        name: jnp.stack([getattr(one, name) for one in found])
        for name in ("duty", "timeout", "others", "through", "refused")
    }
    lost = jnp.stack([one.sends - one.received for one in found])
    of_classes["refused_share"] = of_classes["refused"] / jnp.maximum(lost, NOTHING)
    of_classes["window"] = jnp.stack([one.rounds.law.window for one in found])
    return metrics, Findings(**of_classes, residual=residual, iterations=iterations), given


@Kept
def slopes_of(point: tuple[System, lossy.Given]) -> dict[str, tuple[Array, ...]]:
    """Return the derivatives of the metrics at a root by all numbers, in the order of the leaves of `Inputs`.

    With the implicit function theorem; all derivatives come from one pass.
    """
    system, root = point

    def at(given: lossy.Given, inputs: Inputs) -> tuple[dict[str, Array], lossy.Given]:
        network = replace(system, inputs=inputs).network
        better, found = lossy.respond(system.kinds, system.window, system.paths, network, given)
        residual = jax.tree.map(jnp.subtract, better, given)
        return lossy.metrics_of(system.paths, network, given, found), residual

    return slopes_at_root(at, root, system.inputs, jax.jacfwd)


class LossyPlan(Numbers):
    """A piconet without repetition on the link; the receive window is no number that may be varied.

    Attributes:
        tolerance: mismatch of classes and network up to which they are improved.
    """

    def __init__(self, scenario: Scenario, *, apart: bool = True, tolerance: float = lossy.TOLERANCE) -> None:
        """Read a scenario, as `Numbers`."""
        super().__init__(scenario, apart=apart)
        for key in ONLY_CHECKED:
            self.parameters.pop(key, None)
        self.tolerance = tolerance
        self._window = min(scenario.transport.receive_window_segments, LARGEST_ROUND)
        self._kinds, self._paths = _paths(scenario, self.piconet, self.layout)

    @in_float64
    def system(self, values: Mapping[str, Any]) -> System:
        """Return what is solved where these keys have these values, all others those of the scenario."""
        net = self.piconet
        assert net.ack is not None
        data, ack = (packets_of(train, len(train.packets), net) for train in (net.data, net.ack))
        slot_s, kilobits = numbers(net.slot_s), numbers(net.segment_bytes * 8 / 1000)
        return System(
            self._kinds, self._window, self._paths, self.inputs(values), data, ack, slot_s, kilobits,
            self.tolerance,
        )  # fmt: skip

    def found(self, system: System) -> tuple[dict[str, Any], Findings]:
        """Return metrics by class, or of the network, and findings."""
        metrics, findings, _ = metrics_of(system)
        return metrics, findings

    def slopes_at(self, system: System) -> dict[str, tuple[Array, ...]]:
        """Return the derivatives of these metrics by all numbers."""
        return slopes_of((system, metrics_of(system)[-1]))


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: no fixed point was found, or nothing gets through.
    """
    plan = LossyPlan(scenario, apart=False)
    return answer_at(plan, *jax.tree.map(np.asarray, plan.with_findings()))


def answer_at(plan: LossyPlan, metrics: dict[str, np.ndarray], findings: Findings) -> tuple[dict, dict]:
    """Return metrics and notes of what was found.

    Raises:
        NoConvergence: no fixed point was found, or nothing gets through.
    """
    _require_convergence(plan, findings)
    metrics = dict(metrics)
    queues = {"token_buffer": float(metrics.pop("token_buffer"))}
    if plan.piconet.stations == 1:  # polls that follow a lone station's packets at once are not counted
        del metrics["cycle_s"]
    notes = {
        "method": "queueing: TCP's rounds, token buckets, polled air and radio state in one fixed point",
        "converged": True,
        "residual": float(findings.residual),
        "iterations": int(findings.iterations),
        "warnings": warnings_of(plan, findings, metrics["rtt_s"].max()),
    }
    return {**metrics, "queue_packets": queues}, notes


def _require_convergence(plan: LossyPlan, findings: Findings) -> None:
    """Make sure that a fixed point was found, within the rounds that are known.

    Raises:
        NoConvergence: it was not.
    """
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
    if not windows_fit(asked, np.asarray(findings.window), LARGEST_ROUND):
        raise NoConvergence(
            f"transport.receive_window_segments = {asked}: rounds of TCP with losses are known to windows of "
            f"{LARGEST_ROUND} segments, and these connections would use more"
        )


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
                up=np.array(float(port.way == UP)),
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
    if findings.refused.max() > FREQUENT and (share := findings.refused_share.max()) > BY_BUFFERS:
        weak.append(
            f"{share:.0%} of the lost segments are refused by full buffers: connections fall into a rhythm "
            "of losses that is not in the model; goodput comes out 9 to 39 % low"
        )
    if plan.piconet.stations == 1 and (findings.duty > NEARLY).any():
        weak.append(
            "a lone busy station writes its segments in step with its polls, which are taken for random "
            "moments: goodput comes out up to 11 % off, round trips up to 15 % short"
        )
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
