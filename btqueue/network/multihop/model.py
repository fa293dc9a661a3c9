"""Answer a network of several piconets that bridges join: flows that their windows and the air carry."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.multihop.airs import FULL, Network, turns
from btqueue.network.multihop.journey import Journey, Steps, journey
from btqueue.network.multihop.routes import ACK, DATA, Routes, error_rates, rates_of, routes_of, trains_of
from btqueue.network.piconet.bucket import missing
from btqueue.network.piconet.disciplines import numbers
from btqueue.network.piconet.plan import changed
from btqueue.network.piconet.ports import Train
from btqueue.network.piconet.tails import NONE, Tail, longest
from btqueue.network.piconet.trains import Packets, Sent, transmissions
from btqueue.network.programs import Kept
from btqueue.queueing._precision import in_float64
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology

LIGHT = 1e-6
"""Share of the load, and segments a second, at which round trips are those of lone segments."""
SUBSTITUTIONS = 8
"""Of the share of the own segments that are under way beside one."""
CONVERGED = 1e-6
AT_ONCE = 32
"""Scenarios that are solved together: always as many, so that one program serves all of one shape."""
LARGEST_LAW = 64
"""Transmissions of a train that are followed."""
LONGEST = 1.25
"""Round trip over that of a lone segment from which on the model is in doubt: round trips are 10 to 20 %
too short there. Set by the errors on the points that were in view while the model was made."""


class Tokens(NamedTuple):
    """Token buckets: rate (bytes/s), depth (bytes), prices of a segment and of an acknowledgement (bytes)."""

    rate: Array
    depth: Array
    prices: Array


class System(NamedTuple):
    """A network with the numbers that may be varied.

    Attributes:
        network: but for its rates.
        steps: of all flows.
        rate: (F,) segments a second.
        window: (F,) most segments under way.
        tokens: of the buckets, if there are any.
    """

    network: Network
    steps: Steps
    rate: Array
    window: Array
    tokens: Tokens | None


class Inputs(NamedTuple):
    """The numbers of a `System` that may be varied."""

    rate: Array
    window: Array
    tokens: Tokens | None


class Found(NamedTuple):
    """What comes out.

    Attributes:
        rtt_s: (F,) mean round trips.
        use: of the busiest resource.
        residual: of the iteration.
        slot_utilisation: share of the slots that carry packets, averaged over the piconets.
        cycle_s: averaged over the piconets.
    """

    rtt_s: Array
    use: Array
    residual: Array
    slot_utilisation: Array
    cycle_s: Array


@Kept
def found(system: System) -> Found:
    """Return round trips where all flows are carried."""
    steps, network, rate = system.steps, system.network, system.rate * SLOT_S
    network = network._replace(rate=(steps.there * rate[:, None, None]).reshape(-1))
    seen, residual = turns(network)

    def again(_: Array, beside: Array) -> Array:
        mean = rate * _round_trip(journey(network, steps, seen, beside), NONE, NONE)
        return 1.0 - (mean / (1.0 + mean)) ** (system.window - 1.0)

    beside = jax.lax.fori_loop(0, SUBSTITUTIONS, again, jnp.zeros_like(rate))
    times = journey(network, steps, seen, beside)
    data, back, spent = _tokens(system)
    in_air = network.air_of_link.T @ seen.work
    packets = jnp.stack([one.mean * one.mean_slots for one in network.sent])[network.kind]
    there = (network.members > 0.0).astype(float)
    carried = network.rate @ packets / there.sum()
    use = jnp.maximum(jnp.maximum(in_air.max(), seen.use.max()), spent)
    return Found(
        _round_trip(times, data, back) * SLOT_S,
        use,
        residual,
        carried,
        seen.cycle @ there / there.sum() * SLOT_S,
    )


found_of_many = Kept(jax.vmap(found))


@Kept
def changes(systems: tuple[System, Inputs]) -> Found:
    """Return how what is found changes with each of several steps of the inputs."""
    system, steps = systems
    here = Inputs(system.rate, system.window, system.tokens)

    def of(inputs: Inputs) -> Found:
        return found(system._replace(**inputs._asdict()))

    return jax.vmap(lambda step: jax.jvp(of, (here,), (step,))[1])(steps)


def _round_trip(times: Journey, tokens: Tail, tokens_back: Tail) -> Array:
    """Return round trips (slots): of the queues on a way the longest counts, as all have constant service."""
    endless = jnp.full_like(times.there, jnp.inf)
    own = longest(Tail.of(times.load, times.behind), tokens, endless)
    back = longest(Tail.of(times.load_back, times.behind_back), tokens_back, endless)
    queues = jnp.maximum(own, times.at_bridge) + jnp.maximum(back, times.at_bridge_back)
    return times.there + times.back + queues


def _tokens(system: System) -> tuple[Tail, Tail, Array]:
    """Return the waits of segments and acknowledgements for tokens (slots), and the most that are spent."""
    steps, tokens = system.steps, system.tokens
    if tokens is None:
        none = Tail(*(jnp.full_like(system.rate, value) for value in NONE))
        return none, none, jnp.zeros(())
    entering = steps.there * steps.first * system.rate[:, None, None]
    kinds = jnp.broadcast_to(jnp.arange(2)[None, :, None], steps.link.shape)
    ports = jnp.zeros((*system.network.limit.shape, 2, 2))
    ports = ports.at[steps.link, steps.way.astype(int), kinds].add(entering)
    prices = tokens.prices / tokens.rate
    of_host = jax.vmap(lambda rates: missing(rates, prices))

    def wait(kind: int) -> Tail:
        at = ports[steps.link[:, kind, 0], steps.way[:, kind, 0].astype(int)]
        depth_s = (tokens.depth - tokens.prices[kind]) / tokens.rate
        tail = of_host(at).beyond(depth_s, jnp.asarray(jnp.inf))
        return Tail(tail.share, tail.mean / SLOT_S, jnp.full_like(tail.mean, tail.room))

    return wait(DATA), wait(ACK), (ports @ prices).max()


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
        steps = _steps(self.routes)
        control, transport = scenario.flow_control, scenario.transport
        rates = rates_of(scenario)
        flows = steps.there.shape[0]
        rates = np.r_[rates, np.zeros(flows - rates.size)]
        windows = np.full(flows, transport.receive_window_segments)
        prices = numbers([train.tokens for train in self.trains])
        rate, depth = numbers(control.token_rate_kbps * 125.0), numbers(control.bucket_bytes)
        self.flows, self._kilobits = (
            int(self.routes.hops.flow.max()) + 1,
            scenario.traffic.message_bytes * 8e-3,
        )
        self.parameters, self._load_keys = _varied(scenario)
        self.system = System(
            _network(scenario, self.routes, steps, self.trains),
            steps,
            numbers(rates),
            numbers(windows),
            Tokens(rate, depth, prices) if control.enabled else None,
        )

    def at(self, share: float) -> System:
        """Return the system at a share of the loads."""
        rate = self.system.rate * share if share > LIGHT else np.where(self.system.rate > 0.0, LIGHT, 0.0)
        return self.system._replace(rate=numbers(rate))

    def found(self, share: float = 1.0) -> Found:
        """Return what comes out at a share of the loads."""
        (one,) = _together([self.at(share)])
        return self.of_flows(one)

    def of_flows(self, one: Found) -> Found:
        """Return what was found without the places that hold no flow."""
        return one._replace(rtt_s=one.rtt_s[: self.flows])

    @in_float64
    def metrics(self, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return metrics of all flows, (flows,), or of the network, (), of loads that are carried.

        Args:
            parameters: values that differ from those of the scenario, by key.

        Raises:
            KeyError: a key is not one of `parameters`.
        """
        values = changed(self.parameters, parameters)
        system = jax.tree.map(jnp.asarray, self.system)
        system = system._replace(**self._inputs(values)._asdict())
        rates = system.rate[: self.flows]
        return self._metrics(rates, self.of_flows(found(system)))

    def _inputs(self, values: Mapping[str, Any]) -> Inputs:
        loads = jnp.stack([jnp.asarray(values[key], float) for key in self._load_keys])
        window = jnp.asarray(values["transport.receive_window_segments"], float)
        tokens = self.system.tokens
        if tokens is not None:
            rate = jnp.asarray(values["flow_control.token_rate_kbps"], float) * 125.0
            tokens = Tokens(rate, jnp.asarray(values["flow_control.bucket_bytes"], float), tokens.prices)
        empty = jnp.zeros_like(self.system.rate)
        return Inputs(
            empty.at[: self.flows].set(loads / self._kilobits), jnp.full_like(empty, window), tokens
        )

    @in_float64
    def slopes(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the derivatives of means over flows, by metric and by key of `parameters`."""
        here = self._inputs(self.parameters)
        steps = [
            jax.tree.map(jnp.subtract, self._inputs({**self.parameters, key: value + 1.0}), here)
            for key, value in self.parameters.items()  # which enter linearly
        ]
        moved = changes((self.system, jax.tree.map(lambda *leaves: np.stack(leaves), *steps)))
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

    def answer(self, loaded: Found, light: Found) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return metrics and notes of what was found at the loads, and in light traffic.

        Raises:
            NoConvergence: the network does not carry the load, or no consistent cycles were found.
        """
        use = float(loaded.use)
        if not use < FULL:
            raise NoConvergence(
                f"[traffic] load_kbps: a resource of this network would be in use to {use:.0%}, and the "
                "model of several piconets knows flows that are carried only; lower the load"
            )
        if not loaded.residual <= CONVERGED:
            raise NoConvergence(f"the cycles of these piconets still changed by {float(loaded.residual):.1g}")
        metrics = self._metrics(self.system.rate[: self.flows], self.of_flows(loaded))
        stretched = float((metrics["rtt_s"] / self.of_flows(light).rtt_s).max())
        notes = {
            "method": "queueing: cycles of piconets and turns of bridges in one fixed point",
            "converged": True,
            "residual": float(loaded.residual),
            "utilisation": use,
            "warnings": _warnings(self, stretched),
        }
        return {
            name: np.asarray(value) if np.ndim(value) else float(value) for name, value in metrics.items()
        }, notes


@in_float64
def _together(systems: Sequence[System]) -> list[Found]:
    """Return what comes out of systems with arrays of the same shapes."""
    stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *systems)
    return [Found(*values) for values in zip(*found_of_many(stacked), strict=True)]


def answer(scenario: Scenario) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return metrics and notes (`btqueue.network.answers`).

    Raises:
        NoConvergence: the network does not carry the load, or no consistent cycles were found.
    """
    plan = Plan(scenario)
    return plan.answer(*(_together([plan.at(share)])[0] for share in (1.0, LIGHT)))


def answers(scenarios: Sequence[Scenario]) -> list[tuple[dict[str, Any], dict[str, Any]] | NoConvergence]:
    """Return what `answer` returns, or raises, for each scenario; those alike are solved together."""
    plans = [Plan(scenario) for scenario in scenarios]
    alike: dict[Any, list[int]] = {}
    for number, plan in enumerate(plans):
        leaves, tree = jax.tree.flatten(plan.system)
        alike.setdefault((tree, *(np.shape(leaf) for leaf in leaves)), []).append(number)
    solved: dict[int, tuple[dict[str, Any], dict[str, Any]] | NoConvergence] = {}
    light: dict[bytes, Found] = {}
    for group in alike.values():
        for begin in range(0, len(group), AT_ONCE):
            some = group[begin : begin + AT_ONCE]
            filled = [*some, *some[-1:] * (AT_ONCE - len(some))]
            loaded = _together([plans[k].at(1.0) for k in filled])
            for number, one in zip(some, loaded, strict=False):
                system = plans[number].at(LIGHT)
                same = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(system))
                if same not in light:
                    (light[same],) = _together([system])
                try:
                    solved[number] = plans[number].answer(one, light[same])
                except NoConvergence as error:
                    solved[number] = error
    return [solved[number] for number in range(len(scenarios))]


def _warnings(plan: Plan, stretched: float) -> list[str]:
    """Return in words where errors were measured to be larger than 5 % in the median."""
    found = []
    if stretched > LONGEST:
        found.append(
            f"round trips are {stretched:.2g} times those of lone segments: beyond {LONGEST:g} times they "
            "were 10 to 20 % too short"
        )
    links, hops = plan.routes.links, plan.routes.hops
    packets = len(plan.trains[DATA].packets)
    limit = int(links.limit[hops.link.astype(int)].min())
    if packets > limit:
        found.append(
            f"[polling] limit, bridge_limit: a segment is {packets} packets, and a visit takes {limit}: its "
            "parts meet the bridge one by one, which is not in the model"
        )
    if (room := _room(plan)) is not None:
        found.append(room)
    return found


def _room(plan: Plan) -> str | None:
    """Return in words where a bridge takes more in one piconet than it can hold, or give, in the other."""
    links, bridges = plan.routes.links, plan.routes.bridges
    for first, second, own in zip(*bridges, strict=True):
        if own >= 0 and _repeats(plan.scenario):
            return (
                "[link] arq: a bridge that is a central may be left with more packets than it can hold for "
                "its other piconet, where packets are repeated: what it loses is not in the model"
            )
        both = ((first, second), (second, first)) if own < 0 else ()
        for taken, given in both:
            place, most = int(links.room[given]), int(links.limit[taken])
            if most > min(place, int(links.limit[given])) or (most == place and _repeats(plan.scenario)):
                return (
                    f"[polling] bridge_limit, bridge_buffer_packets: a bridge takes up to {most} packets of "
                    f"a visit, and holds {place} for the other piconet: what it loses is not in the model"
                )
    return None


def _repeats(scenario: Scenario) -> bool:
    """Whether packets are repeated, so that a visit may give fewer than its limit."""
    return bool(max(error_rates(scenario, train).max() for train in trains_of(scenario)) > 0.0)


def _steps(routes: Routes) -> Steps:
    """Lay the hops out by flow, kind of train, and place."""
    hops = routes.hops
    flow, kind = hops.flow.astype(int), hops.kind.astype(int)
    place = np.zeros(flow.size, int)
    for at in range(1, flow.size):
        same = flow[at] == flow[at - 1] and kind[at] == kind[at - 1]
        place[at] = place[at - 1] + 1 if same else 0
    fields = {}
    for name in Steps._fields:
        table = np.zeros((_padded(flow.max() + 1), 2, _padded(place.max() + 1)))
        table[flow, kind, place] = 1.0 if name == "there" else getattr(hops, name)
        fields[name] = table
    whole = {name: fields[name].astype(int) for name in ("link", "before_air")}
    return Steps(**{**fields, **whole})


def _network(scenario: Scenario, routes: Routes, steps: Steps, trains: tuple[Train, Train]) -> Network:
    """Return the network without its rates."""
    links, bridges = routes.links, routes.bridges
    here, count, airs = links.air.size, _padded(links.air.size), _padded(routes.members.size)
    air_of_link, by_bridge = np.zeros((count, airs)), np.zeros((count, _padded(bridges.own.size)))
    air_of_link[np.arange(here), links.air] = 1.0
    joined = np.flatnonzero(links.bridge >= 0)
    by_bridge[joined, links.bridge[joined]] = 1.0
    nowhere = np.full(_padded(joined.size) - joined.size, count)
    other_stay, other_air = np.zeros((count, count)), np.zeros((count, airs))
    own_air = np.zeros((by_bridge.shape[1], airs))
    for bridge, (first, second, own) in enumerate(zip(*bridges, strict=True)):
        if own >= 0:
            own_air[bridge, own] = other_air[first, own] = 1.0
        else:
            other_stay[first, second] = other_stay[second, first] = 1.0
    sent = _sent(scenario, trains)
    kind = np.broadcast_to(np.arange(2)[None, :, None], steps.link.shape).reshape(-1)
    link, way = steps.link.reshape(-1), steps.way.reshape(-1).astype(int)
    laws = np.stack([np.asarray(one.law) for one in sent])
    number = np.arange(laws.shape[-1])
    limit = _filled_up(links.limit, count, 1.0)
    filled = (np.floor(number / limit[link, None]) * laws[kind]).sum(-1)
    return Network(
        members=numbers(_filled_up(routes.members, airs, 0.0)),
        air_of_link=numbers(air_of_link),
        bridge_of_link=numbers(by_bridge),
        joined=cast(Array, np.r_[joined, nowhere]),
        limit=numbers(limit),
        tie=numbers(_filled_up(links.tie, count, 0.0)),
        other_stay=numbers(other_stay),
        other_air=numbers(other_air),
        own_air=numbers(own_air),
        link=cast(Array, link),
        way=cast(Array, way),
        kind=cast(Array, kind),
        rate=numbers(np.zeros(link.size)),
        sent=sent,
        filled=numbers(filled),
    )


def _filled_up(values: np.ndarray, size: int, otherwise: float) -> np.ndarray:
    return np.r_[values, np.full(size - values.size, otherwise)]


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
    loads = [scenario.traffic.load_kbps if load is None else load for load in own]
    found = dict(zip(keys, map(float, loads), strict=True))
    if scenario.flow_control.enabled:
        for name in ("token_rate_kbps", "bucket_bytes"):
            found[f"flow_control.{name}"] = float(getattr(scenario.flow_control, name))
    found["transport.receive_window_segments"] = float(scenario.transport.receive_window_segments)
    return found, keys


def _sent(scenario: Scenario, trains: tuple[Train, Train]) -> tuple[Sent, Sent]:
    """Return the transmissions of a segment and of an acknowledgement on one hop."""
    repeats = scenario.link.arq == "unlimited"

    def one(train: Train) -> Sent:
        errors = error_rates(scenario, train) if repeats else np.zeros(len(train.packets))
        return _train_sent(
            tuple(packet.slots for packet in train.packets), tuple(errors), float(train.tokens), repeats
        )

    return one(trains[DATA]), one(trains[ACK])


@lru_cache
@in_float64
def _train_sent(slots: tuple[int, ...], errors: tuple[float, ...], tokens: float, repeats: bool) -> Sent:
    none, ones = np.zeros(len(slots)), np.ones(len(slots))
    packets = Packets(*map(jnp.asarray, (ones, np.array(slots, float), none, none, 0.0, ones, tokens)))
    most = jnp.asarray(np.inf if repeats else 1.0)
    law = transmissions(packets, jnp.asarray(np.array(errors)), most, jnp.asarray(1.0), LARGEST_LAW)
    return jax.tree.map(np.asarray, law)
