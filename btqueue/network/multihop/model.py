"""Answer a network of several piconets that bridges join: flows that their windows and the air carry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import pdtrc

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.multihop.covers import not_always_full
from btqueue.network.multihop.limits import Limits, Network, limits_of, saturated
from btqueue.network.multihop.routes import ACK, DATA, Routes, error_rates, loads_of, routes_of, trains_of
from btqueue.network.piconet.bucket import missing
from btqueue.network.piconet.disciplines import numbers
from btqueue.network.piconet.plan import changed
from btqueue.network.piconet.ports import Train
from btqueue.network.piconet.tails import NONE, Tail, longest
from btqueue.network.programs import Kept
from btqueue.network.regime import FREQUENT
from btqueue.queueing._precision import in_float64
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology

LEAST = 1e-6
"""Round trips by which that of a saturated network is longer at least than a lone one."""
RHYTHMS = 0.03
"""Differences between starts of a saturated network up to which their mean stands: the aim of goodput."""
SURELY = 1.1
"""Loads over what saturated flows get from which on a sender is always busy."""
FULL = 0.97
"""Use from which on there is no answer."""
BUSY = 0.3
"""Use from which on the model is in doubt: up to there round trips of every flow of five networks were within
5 % of the simulation, at 0.4 within 8 %, at 0.48 within 11 %."""


class Tokens(NamedTuple):
    """Token buckets: rate (bytes/s), depth (bytes), prices of a segment and of an acknowledgement (bytes)."""

    rate: Array
    depth: Array
    prices: Array


class System(NamedTuple):
    """A network with the numbers that may be varied; F flows, A piconets, padded to powers of two.

    Attributes:
        limits: see `limits.Limits`.
        slots: (F,) that the packets of a segment and of its acknowledgement take on all their way, a piconet.
        host: (F, 2) numbers of the hosts' links at which segments, and acknowledgements, begin.
        rate: (F,) segments a second.
        window: (F,) most segments under way.
        tokens: of the buckets, if there are any.
    """

    limits: Limits
    slots: Array
    host: Array
    rate: Array
    window: Array
    tokens: Tokens | None


class Inputs(NamedTuple):
    """The numbers of a `System` that may be varied."""

    rate: Array
    tokens: Tokens | None


class Found(NamedTuple):
    """What comes out.

    Attributes:
        rtt_s: (F,) mean round trips.
        use: load of a flow over what it gets where all windows are full; the largest.
        spent: share of the tokens of a host; the largest.
        slot_utilisation: share of the slots that carry packets, averaged over the piconets.
        cycle_s: averaged over the piconets.
    """

    rtt_s: Array
    use: Array
    spent: Array
    slot_utilisation: Array
    cycle_s: Array


def _found(system: System) -> Found:
    """Return round trips where all flows are carried.

    A lone one takes R; others make it 1 + t times as long in light traffic, and W / x, with the x that
    saturated flows get, where they use u = 1 of it: R (1 + t / (1 - u + t / (W / (x R) - 1))) is the linear
    fraction in the loads that has these three limits. Of the waits behind segments of the same host a flow
    has either that at its port or that for tokens, the longer one.
    """
    limits, rate = system.limits, system.rate * SLOT_S
    data, back, spent = _tokens(system)
    uses = rate / limits.most
    use = uses.max()
    busy = jnp.minimum(use, 1.0)
    added = jnp.maximum(limits.slopes @ rate, 0.0)
    most = jnp.maximum(system.window / (limits.most * limits.lone) - 1.0, LEAST)
    waited = added / (1.0 - busy + added / limits.lone / most)
    source = system.host[:, DATA]
    beside = (source == source[:, None]).astype(float)
    own = jnp.clip((beside * limits.slopes) @ rate, 0.0, added)
    own = jnp.asarray(waited * own / jnp.where(added > 0.0, added, 1.0))
    at_port = Tail.of(jnp.minimum(beside @ uses, 1.0), own)
    in_air = limits.lone + waited - own + longest(at_port, data, jnp.full((), jnp.inf))
    idle, saturated = limits.cycles
    # without bridges exactly so: the slots that are left are those of polls
    cycles = (1.0 - busy) * idle + busy * saturated
    there = (idle > 0.0).astype(float)
    return Found(
        rtt_s=jnp.asarray((in_air + back.share * back.mean) * SLOT_S),
        use=use,
        spent=spent,
        slot_utilisation=rate @ system.slots,
        cycle_s=(there / jnp.where(idle > 0.0, cycles, 1.0)).sum() / there.sum() * SLOT_S,
    )


found = Kept(_found)


@Kept
def changes(systems: tuple[System, Inputs]) -> Found:
    """Return how what is found changes with each of several steps of the inputs."""
    system, steps = systems
    here = Inputs(system.rate, system.tokens)

    def of(inputs: Inputs) -> Found:
        return found(system._replace(**inputs._asdict()))

    return jax.vmap(lambda step: jax.jvp(of, (here,), (step,))[1])(steps)


def _tokens(system: System) -> tuple[Tail, Tail, Array]:
    """Return the waits of segments and acknowledgements for tokens (slots), and the most that are spent."""
    tokens = system.tokens
    if tokens is None:
        none = jax.tree.map(lambda value: jnp.full_like(system.rate, value), NONE)
        return none, none, jnp.zeros(())
    kinds = jnp.arange(2)
    rates = jnp.zeros((system.host.size, 2)).at[system.host, kinds].add(system.rate[:, None])
    prices = tokens.prices / tokens.rate
    of_host = jax.vmap(lambda rates: missing(rates, prices))

    def wait(kind: int) -> Tail:
        depth_s = (tokens.depth - tokens.prices[kind]) / tokens.rate
        tail = of_host(rates[system.host[:, kind]]).beyond(depth_s, jnp.asarray(jnp.inf))
        return Tail(tail.share, tail.mean / SLOT_S, tail.room)

    return wait(DATA), wait(ACK), (rates @ prices).max()


class Plan:
    """A scenario as numbers that may be varied, and pure functions from these to metrics.

    Attributes:
        scenario: that is answered.
        parameters: the values of the keys that may be varied.
        system: the same as arrays.
        routes: what is discrete about it.
    """

    def __init__(self, scenario: Scenario) -> None:
        """Read a scenario that the model covers."""
        self.scenario, self.routes = scenario, routes_of(scenario)
        self.trains = trains_of(scenario)
        control, transport = scenario.flow_control, scenario.transport
        self.parameters, self._load_keys = _varied(scenario)
        self._kilobits = scenario.traffic.message_bytes * 8e-3
        rates = loads_of(scenario) * 1000.0 / (8.0 * scenario.traffic.message_bytes)
        self.flows = rates.size
        more = _padded(self.flows) - self.flows
        prices = numbers([train.tokens for train in self.trains])
        rate, depth = numbers(control.token_rate_kbps * 125.0), numbers(control.bucket_bytes)
        self.system = System(
            _limits(scenario, self.routes, self.trains),
            numbers(np.pad(_slots(scenario, self.routes, self.trains), (0, more))),
            cast(Any, np.pad(_hosts(self.routes), ((0, more), (0, 0)))),
            numbers(np.pad(rates, (0, more))),
            numbers(np.full(self.flows + more, transport.receive_window_segments)),
            Tokens(rate, depth, prices) if control.enabled else None,
        )

    @property
    def full(self) -> bool:
        """Whether every flow is surely offered more than it gets, and only its window holds it back."""
        beyond = self.system.rate > SURELY * self.system.limits.most / SLOT_S
        return bool(beyond[: self.flows].all()) and not any(not_always_full(self.scenario))

    @in_float64
    def found(self) -> Found:
        """Return what comes out at the loads of the scenario."""
        return self.of_flows(found(jax.tree.map(np.asarray, self.system)))

    def of_flows(self, one: Found) -> Found:
        """Return what was found without the places that hold no flow."""
        return one._replace(rtt_s=one.rtt_s[: self.flows])

    @in_float64
    def with_findings(self, parameters: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], Found]:
        """Return metrics of all flows, (flows,), or of the network, (), as if carried, and what was found.

        Args:
            parameters: values that differ from those of the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
        """
        system = self._at(changed(self.parameters, parameters))
        loaded = self.of_flows(found(system))
        return self._metrics(system.rate[: self.flows], loaded), loaded

    def _at(self, values: Mapping[str, Any]) -> System:
        system = jax.tree.map(jnp.asarray, self.system)
        return system._replace(**self._inputs(values)._asdict())

    def _inputs(self, values: Mapping[str, Any]) -> Inputs:
        loads = jnp.stack([jnp.asarray(values[key], float) for key in self._load_keys])
        tokens = self.system.tokens
        if tokens is not None:
            rate = jnp.asarray(values["flow_control.token_rate_kbps"], float) * 125.0
            tokens = Tokens(rate, jnp.asarray(values["flow_control.bucket_bytes"], float), tokens.prices)
        empty = jnp.zeros_like(self.system.rate)
        return Inputs(empty.at[: self.flows].set(loads / self._kilobits), tokens)

    @in_float64
    def derivatives(
        self, names: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> dict[str, dict[str, float]]:
        """Return the derivatives of means over flows, by metric and key of `parameters`, as if carried."""
        values = changed(self.parameters, parameters)
        here = self._inputs(values)
        steps = [
            jax.tree.map(jnp.subtract, self._inputs({**values, key: value + 1.0}), here)
            for key, value in values.items()  # which enter linearly
        ]
        moved = changes((self._at(values), jax.tree.map(lambda *leaves: np.stack(leaves), *steps)))
        slopes: dict[str, dict[str, float]] = {name: {} for name in names}
        for number, (key, step) in enumerate(zip(self.parameters, steps, strict=True)):
            one = self.of_flows(Found(*(value[number] for value in moved)))
            metrics = self._metrics(step.rate[: self.flows], one)
            for name in metrics.keys() & slopes.keys():
                slopes[name][key] = float(np.mean(metrics[name]))
        return slopes

    def _metrics(self, rates: Any, one: Found) -> dict[str, Any]:
        metrics = {
            "goodput_kbps": rates * self._kilobits,
            "rtt_s": one.rtt_s,
            "slot_utilisation": one.slot_utilisation,
        }
        if not (self.routes.bridges.own >= 0).any():
            metrics["cycle_s"] = one.cycle_s
        return metrics

    def answer(self, loaded: Found) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return metrics and notes of what was found at the loads of the scenario.

        Raises:
            NoConvergence: the network does not carry the load, or no consistent cycles were found.
        """
        if self.full:
            return _saturated(self.scenario)
        use = float(max(loaded.use, loaded.spent))
        if not use < FULL:
            raise NoConvergence(
                f"[traffic] load_kbps: a resource of this network would be in use to {use:.0%}, and the "
                "model of several piconets knows flows that are carried only; lower the load"
            )
        metrics = self._metrics(self.system.rate[: self.flows], self.of_flows(loaded))
        metrics = {
            name: np.asarray(value) if np.ndim(value) else float(value) for name, value in metrics.items()
        }
        notes = {
            "method": "queueing: light traffic and saturation exactly, a linear fraction between",
            "converged": True,
            "residual": 0.0,
            "utilisation": use,
            "warnings": _warnings(self, loaded, use),
        }
        return metrics, notes


def answer(scenario: Scenario) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return metrics and notes (`btqueue.network.answers`).

    Raises:
        NoConvergence: a part of the network carries its load, and another does not.
    """
    if scenario.traffic.source == "greedy":
        return _saturated(scenario)
    plan = Plan(scenario)
    return plan.answer(plan.found())


def _saturated(scenario: Scenario) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the answer where all windows are full: W segments of a flow are always under way (J. Little)."""
    routes, trains = routes_of(scenario), trains_of(scenario)
    full, window = _saturated_of(_known(scenario, routes, trains)), scenario.transport.receive_window_segments
    rates = full.most / SLOT_S
    goodput = rates * scenario.traffic.message_bytes * 8e-3
    metrics: dict[str, Any] = {
        "goodput_kbps": goodput,
        "throughput_kbps": goodput,
        "rtt_s": window / rates,
        "window_segments": np.full_like(rates, window),
        "segment_loss": np.zeros_like(rates),
        "fast_retransmits_per_s": np.zeros_like(rates),
        "slot_utilisation": float(full.most @ _slots(scenario, routes, trains)),
    }
    if not (routes.bridges.own >= 0).any():
        metrics["cycle_s"] = float((1.0 / full.cycles).mean()) * SLOT_S
    if (window / rates).max() < scenario.transport.min_rto_s:
        metrics["timeouts_per_s"] = np.zeros_like(rates)
    warnings = []
    if full.rhythms > RHYTHMS:
        warnings.append(
            f"from one start to another saturated flows get up to {full.rhythms:.0%} more or less: in which "
            "rhythm windows and bridges end up is not in the model"
        )
    if window == 1:
        warnings.append(
            "[transport] receive_window_segments = 1: no segment waits behind another, and rhythms decide "
            "when bridges find one"
        )
    if (room := _room(scenario, routes)) is not None:
        warnings.append(room)
    return metrics, {
        "method": "queueing: all windows full, bottlenecks by the order of polls and bridges",
        "converged": True,
        "residual": 0.0,
        "utilisation": 1.0,
        "warnings": warnings,
    }


def _warnings(plan: Plan, loaded: Found, use: float) -> list[str]:
    """Return in words where errors were measured to be larger than 5 %."""
    found = []
    if use > BUSY:
        found.append(
            f"the busiest flow has {use:.0%} of what saturated flows get: above {BUSY:.0%} round trips were "
            "up to 20 % off"
        )
    overflows, places = _overflows(plan, loaded)
    if overflows > FREQUENT:
        found.append(
            f"[flow_control] baseband_packets: the queue of a sender holds {places:g} segments, and "
            f"{overflows:.2g} more come a second: what it loses is not in the model"
        )
    if (room := _room(plan.scenario, plan.routes)) is not None:
        found.append(room)
    return found


def _overflows(plan: Plan, loaded: Found) -> tuple[float, float]:
    """Return the segments a second that find the queue of their sender full, at most, and its places.

    As if as many were there, in a Poisson number, as at any other queue of their way and of the way back. Of
    three networks round trips were 3 % too long at most up to 0.07 a second; at 0.3 one lost a third of its
    goodput.
    """
    host = plan.system.host[: plan.flows, DATA]
    rates = np.bincount(host, plan.system.rate[: plan.flows])
    queues = np.bincount(plan.routes.hops.flow)
    there = np.bincount(host, plan.system.rate[: plan.flows] * loaded.rtt_s / queues)
    windows = np.bincount(host, plan.system.window[: plan.flows])
    places = plan.scenario.flow_control.places[1] // len(plan.trains[DATA].packets)
    found = np.where(windows > places, rates * pdtrc(places - 1.0, there), 0.0)
    return float(found.max()), places


def _room(scenario: Scenario, routes: Routes) -> str | None:
    """Return in words where a bridge takes more in one piconet than it can hold, or give, in the other."""
    links, repeats = routes.links, _repeats(scenario)
    whole = max(len(train.packets) for train in trains_of(scenario))
    for first, second, own in zip(*routes.bridges, strict=True):
        places = [int(links.room[link]) for link in (first, second) if link >= 0]
        if scenario.network.relay == "segment" and own < 0 and min(places) < whole:
            return (
                f"[polling] bridge_buffer_packets: a bridge holds {min(places)} packets, less than the "
                f"{whole} of a segment, which it sends on only whole: nothing may get through"
            )
        if own >= 0 and repeats:
            return (
                "[link] arq: a bridge that is a central may be left with more packets than it can hold for "
                "its other piconet, where packets are repeated: what it loses is not in the model"
            )
        both = ((first, second), (second, first)) if own < 0 else ()
        for taken, given in both:
            place, most = int(links.room[given]), int(links.limit[taken])
            if most > min(place, int(links.limit[given])) or (most == place and repeats):
                return (
                    f"[polling] bridge_limit, bridge_buffer_packets: a bridge takes up to {most} packets of "
                    f"a visit, and holds {place} for the other piconet: what it loses is not in the model"
                )
    return None


def _repeats(scenario: Scenario) -> bool:
    """Whether packets are repeated, so that a visit may give fewer than its limit."""
    return bool(max(error_rates(scenario, train).max() for train in trains_of(scenario)) > 0.0)


@dataclass(frozen=True)
class _Known:
    """A network without its loads, for a cache: equal where its arrays are."""

    key: tuple[bytes, ...]
    network: Network = field(compare=False)


_limits_of = lru_cache(lambda known: limits_of(known.network))
_saturated_of = lru_cache(lambda known: saturated(known.network))


def _known(scenario: Scenario, routes: Routes, trains: tuple[Train, Train]) -> _Known:
    slots = [np.array([packet.slots for packet in train.packets], float) for train in trains]
    errors = [_errors(scenario, train) for train in trains]
    windows = (scenario.transport.receive_window_segments, scenario.transport.initial_window_segments)
    network = Network(routes, slots, errors, *windows, whole=scenario.network.relay == "segment")
    return _Known(tuple(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(network)), network)


def _limits(scenario: Scenario, routes: Routes, trains: tuple[Train, Train]) -> Limits:
    """Return the limits, with places that hold no flow, or no piconet."""
    found = _limits_of(_known(scenario, routes, trains))
    flows, airs = (_padded(size) - size for size in (found.lone.size, found.cycles.shape[1]))
    return Limits(
        np.pad(found.lone, (0, flows), constant_values=1.0),
        np.pad(found.slopes, (0, flows)),
        np.pad(found.most, (0, flows), constant_values=1.0),
        np.pad(found.cycles, ((0, 0), (0, airs))),
    )


def _slots(scenario: Scenario, routes: Routes, trains: tuple[Train, Train]) -> np.ndarray:
    """Return the slots of the packets of each flow's segments and acknowledgements, a piconet, (F,)."""
    per_hop = [
        (np.array([packet.slots for packet in train.packets]) / (1.0 - _errors(scenario, train))).sum()
        for train in trains
    ]
    flow, kind = routes.hops.flow, routes.hops.kind
    return np.bincount(flow, weights=np.array(per_hop)[kind]) / routes.members.size


def _hosts(routes: Routes) -> np.ndarray:
    """Return numbers of the ports at which segments and acknowledgements of each flow begin, (F, 2)."""
    hops = routes.hops
    train = 2 * hops.flow + hops.kind
    first = np.flatnonzero(np.r_[True, train[1:] != train[:-1]])
    ports = 2 * hops.link[first] + hops.way[first]
    return np.unique(ports, return_inverse=True)[1].reshape(-1, 2)


def _errors(scenario: Scenario, train: Train) -> np.ndarray:
    """Return the error rates of packets that are repeated, (K,)."""
    return error_rates(scenario, train) * (scenario.link.arq == "unlimited")


def _padded(size: int) -> int:
    """Return the power of two that has room for so many: few shapes of arrays are few programs."""
    return 1 << int(size - 1).bit_length()


def _varied(scenario: Scenario) -> tuple[dict[str, float], list[str]]:
    """Return the keys that may be varied, with their values, and the key of the load of each flow."""
    own = [flow.spec.load_kbps if flow.spec is not None else None for flow in topology(scenario).flows]
    keys = [
        "traffic.load_kbps" if load is None else f"network.flows[{number + 1}].load_kbps"
        for number, load in enumerate(own)
    ]
    found = dict(zip(keys, loads_of(scenario).tolist(), strict=True))
    if scenario.flow_control.enabled:
        for name in ("token_rate_kbps", "bucket_bytes"):
            found[f"flow_control.{name}"] = float(getattr(scenario.flow_control, name))
    return found, keys
