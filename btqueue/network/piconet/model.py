"""A piconet: its metrics, from queues (`piconet.coupling`).

The rates come from loads, windows and radio errors; round trips, losses and queues from the polled pairs and
token buckets at these rates. Approximations, with their measured errors, are on the documentation's page of
this model.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaincc

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.piconet import lossy_model
from btqueue.network.piconet.coupling import (
    AT_MOST,
    LOAD,
    RADIO,
    WINDOW,
    Solved,
    System,
    lost_in_buffers,
    solve_rates,
)
from btqueue.network.piconet.disciplines import CYCLIC
from btqueue.network.piconet.fading import faded
from btqueue.network.piconet.ports import Piconet, piconet_of, stays
from btqueue.network.piconet.structure import (
    LARGEST_QUEUE,
    Class,
    Inputs,
    Radio,
    Structure,
    layout_of,
    structure_of,
)
from btqueue.network.programs import Kept
from btqueue.queueing._precision import in_float64
from btqueue.scenario import Scenario
from btqueue.transport.tcp_law import TcpLaw, law, longest_window

NEAR = 0.9
"""Share of the carried load above which a flow's round trip is least certain."""
NEAR_RELAYED = 0.7
"""The same for flows between two stations whose windows outgrow a buffer."""
WELL_INSIDE = 0.65
"""Mean window, as a share of the largest one in TCP's tables, up to which that limit makes no difference."""
NOTHING = 1e-9
"""Probability of an exchange below which nothing moves."""
SHORT_FADE_S = 0.005
"""Mean bad state, about a segment's time on the air: with shorter ones round trips are those of the mean."""
MANY_EXPIRIES = 0.01
"""Timeouts a second, of bad states that outlast the timer, from which round trips are less certain."""
ENDLESSLY = ("links", "piconet")
"""Radios whose two states repetition bridges."""
RADIO_KEYS = {
    "constant": ("ber",),
    "gilbert-elliott": ("ber_good", "ber_bad", "good_s", "bad_s"),
    "alternating": ("ber_good", "ber_bad", "period_s"),
}
"""Numbers of a radio that may be varied."""
DUPLICATES = 3.0
"""Acknowledgements of segments behind a lost one that begin a fast retransmit."""
ROUNDING = 1e-9
"""Segments of a window that are no segment."""
UNEVEN = ("lwrr", "prc-lwrr", "slq", "ldq")
"""Disciplines of which the way of the data alone is too short, and that of the acknowledgement too long."""
HALF = 0.5
SHORT = {"slq": (0.3, "25 %"), "ldq": (0.5, "12 %"), "lwrr": (0.6, "8 %"), "prc-lwrr": (0.5, "9 %")}
"""Largest measured errors of round trips of disciplines above a share of the capacity."""
SELDOM = 0.02
"""Loss in a short queue above which the delay of what gets through is not known."""
RARE = 1e-6
"""Loss below which nothing is said of its kind."""
CONVERGED = 1e-6
"""Relative change of a rate in the last iteration up to which an answer stands."""


class Findings(NamedTuple):
    """What warnings are about, by class (C,).

    Attributes:
        limited: what decides the rate.
        room: share of the rate that slots, tokens and windows would allow.
        outgrown: whether windows outgrow a buffer.
        overload: whether more is offered than slots and tokens carry.
        relayed: whether flows go from station to station.
        success: probability that a segment gets over the radio.
        expiries: timeouts a second in bad states of the radio.
        residual: largest relative change of a rate by one more iteration, and of an iteration inside.
    """

    limited: Array
    room: Array
    outgrown: Array
    overload: Array
    relayed: Array
    success: Array
    expiries: Array
    residual: Array


def metrics_of(system: System) -> tuple[dict[str, Array], Findings]:
    """Return metrics, by class (C,) or of the network (), NaN where the model has none, and findings."""
    metrics, findings = _metrics_of(system)
    return metrics, Findings(*findings)


@Kept
def _metrics_of(system: System) -> tuple[dict[str, Array], tuple[Array, ...]]:
    structure, _, inputs = system
    found = solve_rates(system)
    expiries = jnp.zeros_like(found.point.rates)
    if structure.fading in ENDLESSLY:
        seen, expiries = faded(found.network, found.point.offered)
        found = found._replace(point=found.point._replace(seen=seen))
    point = found.point
    metrics = jax.vmap(partial(_metrics_of_class, structure, inputs, found))(
        jnp.arange(inputs.load.size), structure.classes
    )
    if structure.answered:
        metrics["timeouts_per_s"] = metrics["timeouts_per_s"] + expiries
    metrics |= _of_the_network(structure, found)
    limits = point.limits
    findings = Findings(
        limited=point.limited,
        room=point.rates / (limits.rate * found.network.success),
        outgrown=limits.window.loss > 0.0,
        overload=inputs.load >= limits.capacity,
        relayed=structure.classes.route.relayed > 0.0,
        success=found.network.success,
        expiries=expiries,
        residual=jnp.maximum(found.residual, point.seen.residual.max()),
    )
    return metrics, tuple(findings)


def _metrics_of_many(systems: System) -> tuple[dict[str, Array], tuple[Array, ...]]:
    """Return the same for systems of one structure, stacked."""
    return jax.vmap(_metrics_of)(systems)


_together_at_once = Kept(_metrics_of_many)


@Kept
def _slopes_of(system: System) -> dict[str, tuple[Array, ...]]:
    """Return the derivatives of all metrics by all numbers, in the order of the leaves of `Inputs`."""

    def metrics(inputs: Inputs) -> dict[str, Array]:
        return _metrics_of(system._replace(inputs=inputs))[0]

    return {name: tuple(jax.tree.leaves(by)) for name, by in jax.jacrev(metrics)(system.inputs).items()}


def _difference(new: Any, old: Any) -> np.ndarray:
    """Return how far apart numbers are; those without end are the same."""
    same = np.asarray((new == old) | (np.isnan(new) & np.isnan(old)))
    return np.where(same, 0.0, new) - np.where(same, 0.0, old)


def _metrics_of_class(
    structure: Structure, inputs: Inputs, found: Solved, number: Array, one: Class
) -> dict[str, Array]:
    """Return the metrics of a flow of a class."""
    seen, limits, rate, _, why = jax.tree.map(lambda leaf: leaf[number], found.point)
    success = found.network.success[number]
    kilobits = structure.data_kilobits
    none = jnp.full((), jnp.nan)
    if not structure.answered:
        kept = (1.0 - seen.overflow) * (1.0 - seen.refused) * success
        load = inputs.load[number]
        goodput = jnp.minimum(load * kept, limits.capacity * success) * kilobits
        below = load < limits.capacity
        places = found.network.places(one)
        if structure.queues:
            full = (load >= AT_MOST * limits.capacity) & jnp.isfinite(load) & (places <= LARGEST_QUEUE)
            full &= limits.by_tokens == 0.0
            kept_then = (1.0 - found.network.refused(one, limits)) * success
            goodput = jnp.where(full, jnp.where(full, load, 0.0) * kept_then * kilobits, goodput)
        bounded = jnp.isfinite(load) & (below | jnp.isfinite(places))
        offered = jnp.where(jnp.isfinite(load), load, 1.0) * kilobits
        return {
            "goodput_kbps": goodput,
            "throughput_kbps": jnp.where(bounded, offered, none),
            "segment_loss": jnp.where(bounded, jnp.where(below, 1.0 - kept, 1.0 - goodput / offered), none),
            "delay_s": jnp.where(below & (seen.overflow < SELDOM), seen.delay_s, none),
        }
    lost = jnp.where(why == WINDOW, limits.window.loss, lost_in_buffers(limits, seen))
    loss = 1.0 - (1.0 - lost) * success
    every = structure.ack_every  # sampled is the first segment of an acknowledgement
    mean = limits.window.mean
    whole = jnp.where(mean <= every, mean, every * jnp.ceil(mean / every - ROUNDING))
    longest = whole / rate + jnp.where(why == LOAD, seen.held_s, 0.0)
    rtt = jnp.where(
        why == WINDOW, longest, jnp.where(why == LOAD, jnp.minimum(seen.rtt_s, longest), seen.rtt_s)
    )
    metrics = {
        "goodput_kbps": rate * kilobits,
        "throughput_kbps": rate * kilobits / (1.0 - loss),
        "rtt_s": rtt,
        "segment_loss": loss,
        "delay_s": jnp.where(why == LOAD, seen.delay_s, none),
    }
    known = lost <= RARE
    if not structure.lossy:
        zero = jnp.where(known, 0.0, none)
        window = jnp.where(known, inputs.window[number], none)
        return metrics | {"window_segments": window, "timeouts_per_s": zero, "fast_retransmits_per_s": zero}
    tcp = found.network.tcp(rtt, seen.spacing_s, success, found.network.ack_success[number])
    share = rate / tcp.rates.goodput
    # a fast retransmit needs as many segments behind the lost one before its timer expires
    alone = gammaincc(DUPLICATES, rate * jnp.maximum(inputs.min_rto_s, rtt))
    further = rate * jnp.maximum((1.0 - success) / success - tcp.expiries, 0.0) * alone
    further = jnp.where(why == LOAD, further, 0.0)
    behind = found.network.behind_stalls_s(seen, tcp, rate)
    piled_up = jnp.where(why == RADIO, tcp.rtt_s, jnp.minimum(rtt + behind, longest))
    metrics["rtt_s"] = jnp.where(why == WINDOW, rtt, piled_up)
    # messages wait for timers at their sender, too, which is in no round trip
    metrics["delay_s"] = jnp.where(success < 1.0 - RARE, none, metrics["delay_s"])
    return metrics | {
        "window_segments": jnp.where(known, tcp.rates.window, none),
        "timeouts_per_s": jnp.where(known, tcp.rates.timeouts * share + further, none),
        "fast_retransmits_per_s": jnp.where(
            known, jnp.maximum(tcp.rates.fast_retransmits * share - further, 0.0), none
        ),
    }


def _of_the_network(structure: Structure, found: Solved) -> dict[str, Array]:
    """Return what the air and its queues come to, averaged over the stations."""
    limits, limited, none = found.point.limits, found.point.limited, jnp.full((), jnp.nan)
    flows = structure.class_of.sum(axis=0)  # (C,)
    offered = jnp.where(limited == WINDOW, found.point.rates / found.network.success, found.point.offered)
    data, ack = found.network.sent
    slots = data.mean * data.mean_slots + structure.answered * ack.mean * ack.mean_slots
    full = (limits.by_tokens == 0.0) & ((limited == WINDOW) | (found.network.inputs.load >= limits.capacity))
    real = flows > 0.0
    lone_class = real.sum() == 1
    some_full = (full & real).any()
    cycle = jnp.where(some_full, jnp.where(lone_class, limits.cycle_s[0], none), found.point.seen.cycle_s[0])
    metrics = {"slot_utilisation": (flows * offered).sum() * slots * SLOT_S, "cycle_s": cycle}
    waiting = found.network.waiting_for_tokens(found.point.offered) if structure.tokens else jnp.zeros(())
    known = ~some_full & ~((limited == WINDOW) & real).any()
    return metrics | {"token_buffer": jnp.where(known, waiting, none)}


class Plan:
    """A scenario as numbers that may be varied, and a pure function from these to metrics.

    `metrics` may be differentiated, mapped and compiled by `jax.grad`, `jax.vmap` and `jax.jit`; inside
    `jax.enable_x64(True)`, or JAX hands it numbers of single precision.

    Attributes:
        scenario: that is answered.
        parameters: the values of the keys that may be varied.
        law: TCP's, where segments can be lost on the radio.
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
        lossy = (
            self.piconet.ack is not None and self.piconet.worst_error > 0.0 and not _repeated(self.piconet)
        )
        self._structure = structure_of(self.piconet, self.layout, lossy=lossy)
        self.law = _law(scenario, lossy)

    @in_float64
    def metrics(self, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return metrics of all flows, (flows,), or of the network, (); NaN where the model has none.

        Args:
            parameters: values that differ from those of the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
        """
        return self.with_findings(parameters)[0]

    @in_float64
    def with_findings(self, parameters: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], Findings]:
        """Return metrics as `metrics` does, and findings by class."""
        changed = dict(parameters or {})
        if unknown := sorted(set(changed) - set(self.parameters)):
            raise KeyError(f"{', '.join(unknown)}: may be varied: {', '.join(self.parameters)}")
        metrics, findings = metrics_of(self.system(changed))
        return self.of_flows(metrics), findings

    def of_flows(self, metrics: dict[str, Any]) -> dict[str, Any]:
        """Return metrics by flow from those by class; of the network as they are."""
        of_flow = np.array(self.layout.class_of)
        return {name: value[of_flow] if value.ndim else value for name, value in metrics.items()}

    @in_float64
    def slopes(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the derivatives of means over flows, by metric and by key of `parameters`.

        Implicit, backwards: all keys cost as much as a few answers.
        """
        here = self.system({})
        slopes, of_flow = _slopes_of(here), np.array(self.layout.class_of)
        found: dict[str, dict[str, float]] = {name: {} for name in names}
        for key, value in self.parameters.items():
            further = jax.tree.leaves(self.system({key: value + 1.0}).inputs)  # which the keys enter linearly
            steps = [
                _difference(new, old) for new, old in zip(further, jax.tree.leaves(here.inputs), strict=True)
            ]
            for name in names:
                each = sum(
                    np.tensordot(by, step, step.ndim) if step.any() else 0.0
                    for by, step in zip(slopes[name], steps, strict=True)
                )
                found[name][key] = float(np.mean(np.asarray(each)[of_flow] if np.ndim(each) else each))
        return found

    @in_float64
    def system(self, values: Mapping[str, Any]) -> System:
        """Return what is solved where the keys that may be varied have these values."""
        return System(self._structure, self.law, self._inputs({**self.parameters, **values}))

    def _inputs(self, values: Mapping[str, Any]) -> Inputs:
        scenario, control, radio = self.scenario, self.scenario.flow_control, self.scenario.radio

        # outside of JAX's transformations numpy is faster
        numbers: Any = jnp if any(isinstance(value, Array) for value in values.values()) else np

        def number(key: str, otherwise: float) -> Any:
            return numbers.asarray(values.get(key, otherwise), float)

        loads, windows = [], []
        shared = scenario.transport.receive_window_segments
        for member in (*self.layout.members, *self.layout.members[:1] * self._structure.padding):
            sender = self.piconet.senders[member]
            key = own_load(member) if sender.own_load else "traffic.load_kbps"
            kbps = numbers.asarray(np.inf) if np.isinf(sender.rate) else number(key, np.nan)
            loads.append(kbps / self._structure.data_kilobits)
            key = "transport.receive_window_segments" if sender.window == shared else ""
            windows.append(number(key, sender.window))
        constant = radio.model == "constant"
        perfect = radio.model == "perfect"
        good, bad = ("radio.ber", "radio.ber") if constant else ("radio.ber_good", "radio.ber_bad")
        alternating = radio.model == "alternating"
        half = number("radio.period_s", 1.0) / 2.0  # see `ports.stays`
        transport, infinite = scenario.transport, float("inf")
        down = control.central_buffer_packets
        return Inputs(
            load=numbers.stack(loads),
            token_rate=number("flow_control.token_rate_kbps", infinite) * 125.0,
            bucket_bytes=number("flow_control.bucket_bytes", infinite),
            buffer=number("flow_control.buffer_packets", infinite),
            places=numbers.stack(
                [
                    number("flow_control.central_buffer_packets", infinite if down is None else down),
                    number("flow_control.baseband_packets", control.baseband_packets),
                ]
            ),
            jitter_s=number("run.jitter_s", 0.0),
            window=numbers.stack(windows),
            scv=number("traffic.scv", scenario.traffic.scv),
            ack_delay_s=number("transport.ack_delay_s", transport.ack_delay_s),
            alpha=number("transport.alpha", transport.alpha),
            beta=number("transport.beta", transport.beta),
            gamma=number("transport.gamma", transport.gamma),
            min_rto_s=number("transport.min_rto_s", transport.min_rto_s),
            max_rto_s=number("transport.max_rto_s", transport.max_rto_s),
            backoff=jnp.asarray(2.0 if transport.rto_backoff else 1.0),
            radio=Radio(
                ber_good=numbers.zeros(()) if perfect else number(good, 0.0),
                ber_bad=numbers.zeros(()) if perfect else number(bad, 0.0),
                good_s=half if alternating else number("radio.good_s", 1.0),
                bad_s=half if alternating else number("radio.bad_s", 1.0),
                per=number("radio.per", np.nan),
            ),
        )


def own_load(flow: int) -> str:
    """Return the key of the load of a flow that has one of its own."""
    return f"network.flows[{flow}].load_kbps"


def _values(scenario: Scenario, piconet: Piconet) -> dict[str, float]:
    """Return the keys that may be varied, with their values."""
    control, transport, radio = scenario.flow_control, scenario.transport, scenario.radio
    found: dict[str, float] = {}
    for number, sender in enumerate(piconet.senders):
        if np.isfinite(sender.rate):
            kbps = sender.rate * scenario.traffic.message_bytes * 8 / 1000
            found[own_load(number) if sender.own_load else "traffic.load_kbps"] = kbps
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
    if radio.per is not None:
        found["radio.per"] = radio.per
    elif radio.model != "perfect":
        found |= {f"radio.{name}": float(getattr(radio, name)) for name in RADIO_KEYS[radio.model]}
    return found


def _repeated(piconet: Piconet) -> bool:
    """Whether the link repeats every packet until it is there."""
    return bool(np.isinf(piconet.most_transmissions))


def _law(scenario: Scenario, lossy: bool) -> TcpLaw | None:
    """Return TCP's law, if segments can be lost on the radio."""
    if not lossy:
        return None
    transport = scenario.transport
    window = min(transport.receive_window_segments, longest_window(transport.variant))
    return law(transport.variant, window, timestamps=transport.timestamps)


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: nothing gets through, rates never settled, or flows live by a full buffer's losses.
    """
    if lossy_model.is_lossy(scenario):
        return lossy_model.answer(scenario)
    plan = Plan(scenario, apart=False)
    return _answer(plan, *jax.tree.map(np.asarray, plan.with_findings()))


AT_ONCE = 32
"""Scenarios that are solved together: always as many, so that one program is compiled for a structure."""


def answers(scenarios: Sequence[Scenario]) -> list[tuple[dict, dict] | NoConvergence]:
    """Return what `answer` returns, or raises, for each scenario; those alike are solved together."""
    plans = {k: Plan(s, apart=False) for k, s in enumerate(scenarios) if not lossy_model.is_lossy(s)}
    alike: dict[Any, list[int]] = {}
    for number, plan in plans.items():
        leaves, tree = jax.tree.flatten(plan.system({}))
        alike.setdefault((tree, *(np.shape(leaf) for leaf in leaves)), []).append(number)
    found: dict[int, tuple[dict, dict] | NoConvergence] = {}
    for numbers in alike.values():
        for begin in range(0, len(numbers), AT_ONCE):
            some = numbers[begin : begin + AT_ONCE]
            for number, values in zip(some, _together([plans[k] for k in some]), strict=True):
                try:
                    found[number] = _answer(plans[number], *values)
                except NoConvergence as error:
                    found[number] = error
    for number in set(range(len(scenarios))) - set(plans):
        try:
            found[number] = lossy_model.answer(scenarios[number])
        except NoConvergence as error:
            found[number] = error
    return [found[number] for number in range(len(scenarios))]


@in_float64
def _together(plans: Sequence[Plan]) -> list[tuple[dict[str, Any], Findings]]:
    """Return metrics and findings of plans with arrays of the same shapes."""
    systems = [plan.system({}) for plan in [*plans, *[plans[-1]] * (AT_ONCE - len(plans))]]
    stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *systems)
    metrics, findings = _together_at_once(stacked)
    return [
        (
            plan.of_flows({name: value[k] for name, value in metrics.items()}),
            Findings(*(one[k] for one in findings)),
        )
        for k, plan in enumerate(plans)
    ]


def _answer(plan: Plan, metrics: dict[str, np.ndarray], findings: Findings) -> tuple[dict, dict]:
    """Return metrics and notes of what was found.

    Raises:
        NoConvergence: nothing gets through, rates never settled, or flows live by a full buffer's losses.
    """
    if (findings.success < NOTHING).any():
        raise NoConvergence("no segment gets through: the flows never move")
    if not findings.residual <= CONVERGED:
        raise NoConvergence(
            f"the queues of this piconet: rates still changed by {float(findings.residual):.1g}"
        )
    # there goodput was measured to be 15 % off in the median, and 140 % in the worst of 100 rings:
    # connections overflow the buffer in a fixed rhythm, which decides between fast retransmits and timeouts
    if (findings.relayed & (findings.limited == WINDOW) & findings.outgrown).any():
        raise NoConvergence(
            "connections through the central are held back by a full buffer, whose losses this model does "
            "not know: give their windows room (transport.receive_window_segments, "
            "flow_control.buffer_packets), or lower traffic.load_kbps"
        )
    _require_law(plan, metrics)
    known: dict[str, Any] = {name: value for name, value in metrics.items() if not np.isnan(value).any()}
    if plan.piconet.ack is not None and plan.scenario.polling.discipline in UNEVEN:
        known.pop("delay_s", None)
    if "token_buffer" in known:
        known["queue_packets"] = {"token_buffer": known.pop("token_buffer")}
    notes = {
        "method": "queueing: polled ports, token buckets and TCP's rate in one fixed point",
        "converged": True,
        "residual": float(findings.residual),
        "utilisation": float(findings.room.max()),
        "warnings": warnings_of(plan, findings),
    }
    return known, notes


def _require_law(plan: Plan, metrics: dict[str, np.ndarray]) -> None:
    """Make sure that windows beyond those of TCP's tables would make no difference.

    Raises:
        NoConvergence: they would.
    """
    if plan.law is None:
        return
    transport = plan.scenario.transport
    variant, asked = transport.variant, transport.receive_window_segments
    longest = longest_window(variant)
    if asked > longest and not (metrics["window_segments"] < WELL_INSIDE * longest).all():
        raise NoConvergence(
            f'transport.receive_window_segments = {asked}: the law of "{variant}" with losses is known to '
            f"windows of {longest} segments, and these connections would use more"
        )


def warnings_of(plan: Plan, findings: Findings) -> list[str]:
    """Return a warning for each regime, and for each key, in which the answer is less certain."""
    scenario, net = plan.scenario, plan.piconet
    control, weak = scenario.flow_control, []
    by_load, full = findings.limited == LOAD, findings.limited == WINDOW
    answered = net.ack is not None
    if answered and findings.success.min() < 1.0 - RARE:
        weak.append(
            "segments are lost on the radio: messages come in bursts after timeouts; round trips come out "
            "3 % off in the median, 11 % in 95 of 100 cases, 21 % at the worst; timeouts of light flows come "
            "out too few"
        )
    lasting = [net.places[sender.port.way] > LARGEST_QUEUE for sender in net.senders]
    if not answered and findings.overload.any() and (any(lasting) or control.enabled):
        weak.append("more is offered than the piconet carries: queues grow without end or overflow")
    weak += _of_sources(plan, findings) + _of_polling(plan, findings)
    if (by_load & findings.relayed & findings.outgrown & (findings.room > NEAR_RELAYED)).any():
        weak.append(
            f"the load is above {NEAR_RELAYED} of the rate at which windows overflow a buffer: goodput may "
            "be half of the load, and round trips several times as long"
        )
    if (by_load & (findings.room > NEAR)).any():
        weak.append("the load is close to what the piconet carries: round trips are least certain there")
    fades = net.fading in ENDLESSLY and by_load.any()
    if fades and (bad_s := stays(scenario.radio)[1]) > SHORT_FADE_S:
        weak.append(
            f"the radio fades for {bad_s:g} s at a time: on 16 fresh points round trips were 4.8 % off in "
            "the median, 14.6 % at the 95th percentile"
        )
    if fades and not _as_measured(net, scenario):
        weak.append(
            "the radio fades: together with bursts of a source, delayed acknowledgements, TCP Vegas or "
            "polling that is not cyclic that has not been measured"
        )
    if by_load.any() and (findings.expiries > MANY_EXPIRIES).any():
        weak.append(
            f"senders fall silent in long bad states of the radio, {findings.expiries.max():.2g} timeouts a "
            "second: round trips come out up to 15 % off, timeouts up to twice too many"
        )
    if net.fading == "links" and findings.relayed.any():
        weak.append(
            "links fade on their own: what piles up for the second hop of flows through the central is "
            "not in their round trips"
        )
    if net.fading == "tries" and answered:
        weak.append(
            "packets are given up in bad states of the radio: segments are lost in bursts, which TCP's law "
            "does not know"
        )
    if scenario.radio.model == "alternating":
        weak.append(
            'radio.model = "alternating": its fixed stays are taken for random ones that let as much pile up'
        )
    if not answered:
        return weak
    if control.enabled and control.bucket_bytes < net.data.tokens:
        weak.append(
            f"flow_control.bucket_bytes = {control.bucket_bytes} is less than a segment is charged, "
            f"{net.data.tokens} bytes: its packets wait for tokens one by one; round trips come out up to "
            "32 % long"
        )
    small = min(sender.window for sender in net.senders) <= net.ack_every
    if (
        small
        and net.stations > 1
        and full.any()
        and (by_load.any() or findings.relayed.any() or net.ack_clock)
    ):
        weak.append(
            "transport.receive_window_segments: a window that is answered as a whole leaves slots unused; "
            "goodput comes out up to 16 % off, and round trips of other flows up to 39 % long"
        )
    return weak


def _as_measured(net: Piconet, scenario: Scenario) -> bool:
    """Return whether sources, acknowledgements and polling are those of the points with a fading radio."""
    plain = all(sender.law in ("poisson", "greedy") and not sender.vegas for sender in net.senders)
    cyclic = scenario.polling.discipline in CYCLIC or net.stations == 1
    return plain and cyclic and net.segments == 1 and not net.ack_clock


def _of_sources(plan: Plan, findings: Findings) -> list[str]:
    """Return warnings about laws of sources."""
    net, weak = plan.piconet, []
    laws = [sender.law for sender in net.senders]
    if laws.count("periodic") > 1:
        weak.append(
            "traffic.phase: round trips depend on the phases that periodic sources happen to have, which "
            "stay as they are in a run; this is their mean, and single runs differ by up to half of it"
        )
    if "ibp" in laws and findings.relayed.any():
        weak.append(
            "bursts that go from station to station pile up at both: round trips come out up to 33 % short"
        )
    windows = min(sender.window for sender in net.senders)
    if net.segments > max(1, windows // 2) and findings.room.max() > HALF:
        weak.append("messages of half a window or more: round trips come out up to 11 % long")
    return weak


def _of_polling(plan: Plan, findings: Findings) -> list[str]:
    """Return warnings about the polling discipline."""
    name = plan.scenario.polling.discipline
    if plan.piconet.stations == 1 or name in CYCLIC:
        return []
    if findings.relayed.any():
        return [f'polling.discipline = "{name}": round trips through the central come out up to 13 % short']
    if name in ("lwrr", "prc-lwrr") and plan.piconet.limit < len(plan.piconet.data.packets):
        return [
            f'polling.discipline = "{name}" with fewer frames a visit than packets a segment: up to 16 % off'
        ]
    share, most = SHORT.get(name, (1.0, ""))
    if findings.room.max() > share:
        return [
            f'polling.discipline = "{name}": above {share} of the capacity round trips are up to {most} off'
        ]
    return []
