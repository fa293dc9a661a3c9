"""The regime test: reasons why the answer of a model does not stand.

Doubts of one model stand beside it; those that any model has are here, each a predicate over the described
network and what came out, with its sentence. Three things more spoil an answer: a resource that is
nearly busy and yet not saturated, where round trips depend on how flows meet; and windows that overflow a
buffer again and again, where connections fall into a rhythm that no stationary law knows. A window is a
resource as a server is: the share of it that is under way is its utilisation.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S, packet_types
from btqueue.network.models import STATIONS
from btqueue.scenario import Scenario
from btqueue.scenario.bounds import on_air, segments_of, window_of
from btqueue.scenario.description import Description, Flow, Trait, description
from btqueue.scenario.errors import bracketed, shown
from btqueue.scenario.topology import topology

BUSY, SATURATED = 0.7, 0.999
"""Shares of a resource between which round trips are uncertain; above, it alone decides on them."""
BUSY_VEGAS = 0.45
"""The same with TCP Vegas, which holds back what would wait: at uses of 0.42 and 0.48 round trips of
sixteen piconets were up to 3 % long, at 0.56 and 0.64 up to 10 %."""
BUSY_STAR = 0.85
"""The same where visits are short against segments: on 11 of 11 random stars between 0.7 and 0.9 round
trips were within 5 % and the half-width of the truth; with a limit of 12, on 3 of 6."""
BUSY_ONE = 0.4
"""The same of a window of one segment, which comes and goes with polls: up to there round trips of four stars
were within 5 %, at 0.5 to 0.6 up to 17 % long."""
FREQUENT = 0.02
"""Overflows a second of a flow up to which the rhythm in which they come does not matter."""
LEFT_OUT = 0.01
"""Share of an answer, about the error of a simulation of it, up to which an effect is left out of it."""

SHORT_VISIT = 5
"""Frames."""

AT_ANY_LOAD = frozenset({"paths", "request_reply", "two_way_link"})
"""Models that hold at any load, overflows included: their warnings, and the doubts of any, are the test."""


class Asked(NamedTuple):
    """An answer, and what it is about.

    Attributes:
        model: that gave it.
        scenario: that was asked.
        metrics: by name, of shape (flows,) or ().
        network: the scenario as stations and flows.
        views: the scenario as each flow sees it.
    """

    model: str
    scenario: Scenario
    metrics: dict[str, Any]
    network: Description
    views: tuple[Scenario, ...]

    def of_flows(self, name: str, otherwise: float = 0.0) -> np.ndarray:
        """Return a metric of all flows, shape (flows,)."""
        return np.broadcast_to(self.metrics.get(name, otherwise), len(self.views)).astype(float)

    def repetition(self, flow: Flow) -> Iterator[Trait]:
        """Yield how the radio links of a flow, both ways, repeat packets, if they damage any."""
        for number in dict.fromkeys((*flow.forth, *flow.back)):
            station = self.network.stations[number]
            if station.kind == "radio link":
                yield from (one for one in station.traits if one.kind == "link.arq")


def doubts(model: str, scenario: Scenario, metrics: dict[str, Any], notes: dict[str, Any]) -> list[str]:
    """Return in words why an answer (`btqueue.network.answers`) does not stand; empty if it does."""
    if model == STATIONS:  # whose laws say it themselves
        return list(notes["warnings"])
    views = tuple(scenario.of_flow(flow.spec) for flow in topology(scenario).flows)
    asked = Asked(model, scenario, metrics, description(scenario), views)
    if notes.get("sampled"):  # a tagged connection, whose doubts are its own
        return list(notes["warnings"])
    found = [*notes["warnings"], *(said for test in OF_ANY_MODEL for said in test(asked))]
    if model in AT_ANY_LOAD:
        return found
    segments_per_s, used = _segments_per_s(asked), _used(asked)
    busy = BUSY_STAR if model == "piconet" and _short_visits(asked) else BUSY
    if any(view.transport.variant == "vegas" for view in views):
        busy = BUSY_VEGAS
    windows = np.array([window_of(scenario, flow) for flow in topology(scenario).flows])
    for words, use, most in (
        ("the busiest resource is in use", notes.get("utilisation", 0.0), busy),
        ("windows are under way", float(np.max(used)), busy),
        ("windows of one are under way", float(np.max(used * (windows == 1))), BUSY_ONE),
    ):
        if most < use < SATURATED:
            found.append(f"{words} to {use:.0%}: between {most:.0%} and all of it round trips are uncertain")
    if (overflows := _overflows_per_s(asked, segments_per_s)) > FREQUENT:
        found.append(
            f"{overflows:.2g} segments a second of a flow overflow a buffer: connections fall into a rhythm "
            "of losses that is not in the model"
        )
    return found


def _of_delays_in_order(asked: Asked) -> Iterator[str]:
    """Yield outside links whose random delays are taken for their mean, although no packet overtakes another.

    With exponential delays of mean J and packets at a rate L the packet in front is released later with a
    probability of L J / 2 where packets are few, and by J on average. Where they are many, waits are longer.
    """
    jitters = {
        number: trait
        for number, station in enumerate(asked.network.stations)
        for trait in station.traits
        if trait.kind == "network.outside_links.jitter_s" and trait.value
    }
    per_s = np.zeros(len(asked.network.stations))
    for flow, view, rate in zip(asked.network.flows, asked.views, _sends_per_s(asked), strict=True):
        per_s[list(flow.forth)] += rate
        if view.transport.protocol == "tcp":
            every = view.transport.ack_every_segments if view.transport.delayed_ack else 1
            per_s[list(flow.back)] += rate / every
    times_s = np.nan_to_num(asked.of_flows("rtt_s" if "rtt_s" in asked.metrics else "delay_s"))
    for flow, time_s in zip(asked.network.flows, times_s, strict=True):
        way = [number for number in (*flow.forth, *flow.back) if number in jitters]
        waits_s = {number: per_s[number] * jitters[number].value ** 2 / 2.0 for number in way}
        if sum(waits_s.values()) > LEFT_OUT * time_s:
            worst = max(waits_s, key=lambda number: waits_s[number])
            delay_s = jitters[worst].value
            yield (
                f"{bracketed(jitters[worst].key)} = {delay_s:g}: no packet overtakes another, and "
                f"{per_s[worst] * delay_s:.2g} are delayed at a time; the model has the mean of the delays, "
                f"without the waits for packets in front: round trips come out {sum(waits_s.values()):.2g} s "
                "short or more, and what windows let through in that time too high"
            )
            return


def _of_vegas(asked: Asked) -> Iterator[str]:
    """Yield a radio that repeats packets of TCP Vegas.

    Vegas takes the least round trip ever seen for one without waits: in the others it counts what repetition
    takes as segments that wait, and sends less. A model of a link has that.
    """
    if asked.model == "two_way_link":
        return
    for flow, view in zip(asked.network.flows, asked.views, strict=True):
        transport = view.transport
        if transport.protocol != "tcp" or transport.variant != "vegas":
            continue
        for one in asked.repetition(flow):
            if one.value != "none":
                yield (
                    f"{bracketed(one.key)} = {shown(one.value)}: TCP Vegas takes the time of repeated "
                    "packets for waits, and sends less: round trips come out long"
                )
                return


def _of_visits(asked: Asked) -> Iterator[str]:
    """Yield visits of a piconet's members that end otherwise than a model has it.

    Each visit finds a segment of a full window only if there are enough for a visit at each hop, and for a
    segment and an acknowledgement under way from one hop to the next; else polls find nothing, and there is
    less goodput. A visit of more packets than a segment has takes a part of the next one, of which models of
    what the radio loses know nothing.
    """
    scenario, plan = asked.scenario, topology(asked.scenario)
    full = _used(asked) >= SATURATED
    loses = [any(one.value in ("none", 1) for one in asked.repetition(flow)) for flow in asked.network.flows]
    for number, flow in enumerate(plan.flows):
        hops = [hop for hop in plan.route(flow.source, flow.target) if hop.kind == "bluetooth"]
        stars = {hop.index for hop in hops if len(plan.piconets[hop.index].members) > 1}
        if len(stars) != 1:
            continue
        from btqueue.network.piconet.disciplines import limit_of  # and JAX

        limit = limit_of(scenario.polling)
        sent = segments_of(scenario, flow)
        packets = max(on_air(asked.views[number], size, exact=sent.exact).packets for size, _ in sent.sizes)
        visits, between = len(hops) * limit / packets, 2 * (len(hops) - 1)
        window = window_of(scenario, flow)
        if full[number] and window < visits + between:
            yield (
                f"[transport] receive_window_segments = {window}: too few segments of {packets:.0f} packets "
                f"for visits of {limit:g} packets at each hop ({len(hops)} of them): polls find nothing, and "
                "goodput comes out up to 10 % high"
            )
            return
        if loses[number] and not full[number] and limit > packets:
            yield (
                f"[polling] limit = {limit:g}: a visit takes more than a segment of {packets:.0f} packets, "
                "and the radio loses segments: what a visit takes of the next segment is not in the model; "
                "round trips come out up to 21 % long"
            )
            return


def _of_tries(asked: Asked) -> Iterator[str]:
    """Yield a radio whose state changes before a packet has been tried as often as it may be.

    Models try a packet in the state in which it is sent first. If its tries take T and a state lasts for S,
    they end in the other one with a probability of T / S, after half of them on average.
    """
    radio, arq = asked.scenario.radio, asked.scenario.link.arq
    changes = radio.per is None and radio.model in ("gilbert-elliott", "alternating")
    if isinstance(arq, str) or not changes or radio.ber_good == radio.ber_bad:
        return
    from btqueue.network.piconet.ports import stays

    slots = max(packet.slots for packet in packet_types(asked.scenario.link.packets))
    tries_s, stay_s = (arq - 1) * (slots + 1) * SLOT_S, min(stays(radio))
    if tries_s > 2.0 * LEFT_OUT * stay_s:
        yield (
            f"[link] arq = {arq}: the tries of a packet take up to {tries_s:.2g} s, and the radio stays for "
            f"{stay_s:.2g} s in a state; that it changes between two tries is not in the model of goodput, "
            "losses and delays"
        )


OF_ANY_MODEL: tuple[Callable[[Asked], Iterator[str]], ...] = (
    _of_delays_in_order,
    _of_vegas,
    _of_visits,
    _of_tries,
)
"""What makes an answer doubtful, whatever model it is of."""


def _sends_per_s(asked: Asked) -> np.ndarray:
    """Return the segments, or datagrams, a second that are delivered of each flow, shape (flows,)."""
    sent = [segments_of(asked.scenario, flow) for flow in topology(asked.scenario).flows]
    return asked.of_flows("goodput_kbps") * [one.number / one.kilobits for one in sent]


def _short_visits(asked: Asked) -> bool:
    """Whether flows begin or end at the central, and each visit serves at most about a segment in turn."""
    scenario, plan = asked.scenario, topology(asked.scenario)
    if any(view.traffic.source not in ("poisson", "greedy") for view in asked.views):
        return False
    if any(len(plan.route(flow.source, flow.target)) > 1 for flow in plan.flows):
        return False
    return len(plan.piconets[0].members) == 1 or (
        scenario.polling.discipline == "1-limited"
        or (scenario.polling.discipline == "e-limited" and scenario.polling.limit <= SHORT_VISIT)
    )


def _segments_per_s(asked: Asked) -> np.ndarray:
    """Return the segments a second that are delivered of each flow, shape (flows,); 0 without TCP."""
    sizes = [
        min(view.transport.mss_bytes, view.traffic.message_bytes)
        if view.transport.protocol == "tcp"
        else np.inf
        for view in asked.views
    ]
    return asked.of_flows("goodput_kbps") / (np.array(sizes) * 8e-3)


def _used(asked: Asked) -> np.ndarray:
    """Return the share of the window of each flow that is under way, by Little's law, shape (flows,)."""
    windows = [window_of(asked.scenario, flow) for flow in topology(asked.scenario).flows]
    return _segments_per_s(asked) * asked.of_flows("rtt_s") / windows


def _overflows_per_s(asked: Asked, segments_per_s: np.ndarray) -> float:
    """Return the segments a second that the worst flow loses to buffers; 0 where something else loses any.

    TCP answers random losses by a law that is in the models; it is the rhythm of overflows that is not.
    """
    radio, links = asked.scenario.radio, asked.scenario.network.outside_links
    random = radio.model != "perfect" and asked.scenario.link.arq != "unlimited"
    if random or any(link.loss or link.loss_back for link in links):
        return 0.0
    lost = asked.of_flows("segment_loss")
    return float(np.max(segments_per_s * lost / np.maximum(1.0 - lost, 1e-9)))
