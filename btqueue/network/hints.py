"""Hints before a run: keys whose values surprise people, each with its value and one reason.

A hint is no error: the scenario runs as it is written. Each rule has a threshold, beyond which the key
decides the answer, and is silent where it cannot tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.bounds import capacity
from btqueue.network.stations.description import network_of
from btqueue.network.stations.network import Flow, Network, Visit
from btqueue.scenario.errors import Problem, conflict
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.topology import flows_of, topology

LOSS = 1e-3
"""Share of lost segments from which random losses decide. TCP's mean window is about (1.5 / loss)^(1/2)
segments (Mathis and others, 1997): 39 at this loss, and the default window holds 44."""
SHORT = 0.8
"""Share of a flow's demand below which its window decides. Demand is an upper bound, which forgets polls of
idle links and the rests of gaps: together up to a fifth."""
ROUND_TRIPS = 10
"""A slow start doubles the window each round trip: ten of them fill any window of 1,000 segments."""
MISSED = 0.01
"""Share of missed events from which reservations are too long."""
MESSAGE_TIMER_S = 1.0
"""A pause that starves messages without a transport, which has no timer: as the least timeout of TCP."""


def hints(scenario: Scenario) -> tuple[Problem, ...]:
    """Return hints at keys that are likely to give an answer that nobody wants, before anything is run.

    * bit errors that no radio reads, because its model is another one;
    * `link.arq = "none"` while bit errors lose a segment in 1,000 or more;
    * a queue that is shorter than the packets that a message, or the initial window, sends at once;
    * a window too small for the demand: a fair share of the network, or the load if that is less;
    * a polling limit, or an exhaustive discipline, that keeps others waiting for longer than their timers;
    * Nagle's algorithm, where short messages wait for acknowledgements that are held back;
    * reservations of several links of a central that do not fit into the interval of Bluetooth Low Energy;
    * more active flows than the pattern has;
    * a warm-up shorter than ten round trips, or than a timer that runs at the start. Theory does not read it.

    Args:
        scenario: any scenario.

    Returns:
        At most one hint for each key; its `message` is a sentence with the key and its value.

    Raises:
        ScenarioError: a file of the scenario cannot be read.
    """
    seen = _Seen.of(scenario)
    found: dict[str, Problem] = {}
    rules = (_repetition_off, _short_queues, _small_windows, _starved, _held_messages, _short_warm_up)
    for rule in (_unread_errors, *rules, _long_events, _few_flows):
        for hint in rule(seen):
            found.setdefault(hint.key, hint)
    return tuple(found.values())


@dataclass(frozen=True)
class _Seen:
    """A scenario and its numbers.

    Attributes:
        named: for each flow, from a key of the tables to the key that gives its value.
        shares: kilobits a second that each flow asks for, if none may have more than a common limit.
        alone_s: the unloaded round trip of each flow.
    """

    scenario: Scenario
    network: Network
    named: tuple[Callable[[str], str], ...]
    shares: np.ndarray
    alone_s: np.ndarray

    @classmethod
    def of(cls, scenario: Scenario) -> _Seen:
        network, plan = network_of(scenario), topology(scenario)
        named = []
        for number, flow in enumerate(plan.flows):
            entry = number if flow.reverse is None else min(number, flow.reverse)
            names = flow.spec.names(entry + 1) if flow.spec is not None else {}
            named.append(lambda key, names=names: names.get(key, key))
        alone = [_alone_s(flow.forth) + _alone_s(flow.back) + 2.0 * flow.host_s for flow in network.flows]
        return cls(scenario, network, tuple(named), _fair_shares(scenario, network), np.array(alone))

    def flows(self) -> Iterator[tuple[int, Flow]]:
        return iter(enumerate(self.network.flows))


def _alone_s(visits: tuple[Visit, ...]) -> float:
    """Return the mean time of a lone segment on its way, repetitions included."""
    return sum(
        visit.service_s * (visit.kind == "wire")
        + visit.delay_s
        + max(visit.train.air + visit.train.frames - 1.0, 0.0) * SLOT_S
        for visit in visits
    )


def _fair_shares(scenario: Scenario, network: Network) -> np.ndarray:
    """Return the load of each flow, or the largest common rate that the network carries, if that is less."""
    loads = np.array([flow.load * flow.kilobits for flow in network.flows])
    more = np.array([_repeated(network, flow) for flow in network.flows])
    time = capacity(scenario)
    low, high = 0.0, 1e7
    for _ in range(60):
        rate = (low + high) / 2.0
        fits = (time.used(np.minimum(loads, rate) * more) <= 1.0).all()
        low, high = (rate, high) if fits else (low, rate)
    rooms = np.array([_room(flow) for flow in network.flows])
    return np.minimum(np.minimum(loads, low), rooms)


def _room(flow: Flow) -> float:
    """Return the goodput (kbit/s) that connection events of Bluetooth Low Energy leave a flow."""
    times = [visit.service_s for visit in flow.forth if visit.pdus is not None]
    return flow.kilobits / max(times) if times else np.inf


def _repeated(network: Network, flow: Flow) -> float:
    """Return the slots of a segment over the least ones: repetitions, and gaps of voice that stay empty."""
    found = [1.0]
    for visit in flow.forth:
        if visit.kind == "port":
            piconet = network.piconets[network.ports[visit.index].piconet]
            train = visit.train
            tries = (train.air + train.frames) / max(train.slots + train.packets, 1.0)
            found.append(max(tries, 1.0) * piconet.free_share / piconet.data_share)
    return max(found)


def _unread_errors(seen: _Seen) -> Iterator[Problem]:
    radio = seen.scenario.radio
    if radio.ber > 0.0 and "constant" not in {radio.model, *(link.model for link in radio.links)}:
        why = f'the radio of radio.model = "{radio.model}" does not read it, and that of "constant" does'
        yield conflict("radio.ber", radio.ber, why)


def _repetition_off(seen: _Seen) -> Iterator[Problem]:
    if seen.scenario.link.arq != "none":
        return
    lost = max(
        (visit.train.loss for _, flow in seen.flows() for visit in flow.forth if visit.kind == "port"),
        default=0.0,
    )
    if lost >= LOSS:
        why = f'bit errors lose up to {lost:.1%} of the segments of a link, and "unlimited" would repeat them'
        yield conflict("link.arq", "none", why)


def _short_queues(seen: _Seen) -> Iterator[Problem]:
    """Compare the packets that come at once with the places of the first queue; greedy senders adapt."""
    control, link = seen.scenario.flow_control, seen.scenario.link
    for _, flow in seen.flows():
        if flow.source in ("greedy", "file") or not flow.forth:
            continue
        size = flow.traffic.message_bytes
        segments: float = flow.segments or ceil(size / flow.transport.mss_bytes)
        if flow.protocol == "tcp":
            segments = min(segments, flow.window, flow.transport.initial_window_segments)
        elif flow.protocol == "centaurus":
            segments = min(segments, flow.window)
        first = flow.forth[0]
        packets, places, key = segments, inf, ""
        if first.kind == "bucket":
            bucket, tried = seen.network.buckets[first.index], first.train.packets
            packets = ceil(segments * tried)
            through = bucket.depth * tried // (first.service_s * bucket.rate) if bucket.rate else 0.0
            places, key = control.buffer_packets + through, "flow_control.buffer_packets"
        elif first.kind == "port":
            port = seen.network.ports[first.index]
            packets = ceil(segments * first.train.packets)
            places = port.places
            key = "flow_control.baseband_packets" if port.up else "flow_control.central_buffer_packets"
            key = "polling.bridge_buffer_packets" if port.up and port.bridge >= 0 else key
        if packets > places:
            why = f"{_message(flow)} sends {packets} packets at once, and packets beyond the queue are lost"
            given = seen.scenario.value_of(key)
            yield conflict(key, int(places) if given is None else given, why)
        held = segments * flow.kilobits * 125.0
        if link.node_buffer_bytes is not None and held > link.node_buffer_bytes and first.kind != "wire":
            why = f"{_message(flow)} sends {held:.0f} bytes at once, and segments beyond the buffer are lost"
            yield conflict("link.node_buffer_bytes", link.node_buffer_bytes, why)


def _message(flow: Flow) -> str:
    return "a session" if flow.messages else f"a message of {flow.traffic.message_bytes} bytes"


def _small_windows(seen: _Seen) -> Iterator[Problem]:
    """Compare a full window in each unloaded round trip with the demand."""
    for number, flow in seen.flows():
        if flow.protocol != "tcp" or flow.messages or not isfinite(flow.window):
            continue
        most = flow.window * flow.kilobits / seen.alone_s[number]
        if most < SHORT * seen.shares[number]:
            transport = flow.transport
            of_sender = transport.send_buffer_segments is not None and (
                transport.send_buffer_segments < transport.receive_window_segments
            )
            key = "transport.send_buffer_segments" if of_sender else "transport.receive_window_segments"
            why = (
                f"one window in each unloaded round trip of {seen.alone_s[number]:.3g} s is {most:.4g} "
                f"kbit/s, and the path would carry {seen.shares[number]:.4g}"
            )
            yield conflict(seen.named[number](key), int(flow.window), why)


def _starved(seen: _Seen) -> Iterator[Problem]:
    """Compare the visits to links that always have packets with the timers of flows on other links."""
    network, polling = seen.network, seen.scenario.polling
    longest: dict[tuple[int, int], float] = {}
    for _, flow in seen.flows():
        ports = {visit.index for visit in (*flow.forth, *flow.back) if visit.kind == "port"}
        links = {(network.ports[port].piconet, network.ports[port].link) for port in ports}
        for visit in flow.forth:
            if visit.kind != "port" or flow.load < inf or network.ports[visit.index].bridge >= 0:
                continue
            port = network.ports[visit.index]
            frames = float(port.limit)
            answered_within = len(links) == 1 and network.piconets[port.piconet].discipline != "gated"
            if not answered_within:  # then a visit ends at the latest when the window is used up
                frames = min(frames, flow.window * visit.train.packets)
            seconds = frames * (visit.train.first + 1.0) * SLOT_S
            link = port.piconet, port.link
            longest[link] = max(longest.get(link, 0.0), seconds)
    for _, flow in seen.flows():
        timer = flow.transport.min_rto_s if flow.protocol == "tcp" else MESSAGE_TIMER_S
        for visit in flow.forth:
            if visit.kind != "port":
                continue
            own = network.ports[visit.index]
            others = [
                (s, link) for link, s in longest.items() if link[0] == own.piconet and link[1] != own.link
            ]
            pause = sum(seconds for seconds, _ in others)
            if pause > timer and network.piconets[own.piconet].discipline in (
                "e-limited",
                "exhaustive",
                "gated",
            ):
                of_limit = polling.discipline == "e-limited"
                key = "polling.limit" if of_limit else "polling.discipline"
                lasts = (
                    f"{pause:.3g} s" if of_limit else "as long as a link has packets, which may be for ever"
                )
                why = f"visits to links that always have packets last {lasts}, and others starve"
                yield conflict(key, polling.limit if of_limit else polling.discipline, why)
                return


def _held_messages(seen: _Seen) -> Iterator[Problem]:
    """Look for messages that fill no segment, and come faster than acknowledgements that are held back.

    A message leaves at once if all data are acknowledged, or if a segment is full (RFC 896). Two full
    segments of data, or the timer, release an acknowledgement (RFC 1122, section 4.2.3.2).
    """
    for number, flow in seen.flows():
        transport = flow.transport
        if not flow.short or transport.nagle is not True or not flow.delays_received:
            continue
        held_s, size = transport.ack_delay_s, flow.traffic.message_bytes
        bytes_per_s = 125.0 * flow.traffic.load_kbps
        often = size < bytes_per_s * (held_s + seen.alone_s[number])
        if not often:
            continue
        full_s = transport.mss_bytes / bytes_per_s
        why = f"messages of {size} bytes wait (Nagle's algorithm) "
        if held_s < full_s:
            why += f"for acknowledgements, which are held back {held_s:g} s (transport.ack_delay_s)"
        elif seen.alone_s[number] < full_s:
            why += f"until they fill a segment of {transport.mss_bytes} bytes, which takes {full_s:.2g} s"
        else:
            continue
        yield conflict(seen.named[number]("transport.nagle"), True, why)


def _short_warm_up(seen: _Seen) -> Iterator[Problem]:
    """Compare the warm-up with the start of a connection and with timers."""
    run, longest, timers = seen.scenario.run, 0.0, {}
    if run.warmup_s == "auto":
        return
    for number, flow in seen.flows():
        transport, name = flow.transport, seen.named[number]
        if flow.protocol != "tcp":
            continue
        timers["transport.min_rto_s"] = (transport.min_rto_s, name("transport.min_rto_s"))
        timers["transport.initial_rto_s"] = (transport.initial_rto_s, name("transport.initial_rto_s"))
        alone, share = seen.alone_s[number], seen.shares[number]
        window = alone
        if flow.load == inf and share > 0.0:
            places = min((visit.places for visit in flow.forth), default=inf)
            held = min(flow.window, places + share * alone / flow.kilobits + 1.0)
            window = max(alone, held * flow.kilobits / share if isfinite(held) else 0.0)
        longest = max(longest, window)
    if any(bridge.schedule != "walk-in" for bridge in seen.network.bridges):
        timers["polling.rendezvous_s"] = (seen.scenario.polling.rendezvous_s, "polling.rendezvous_s")
    slowest, key = max(timers.values(), default=(0.0, ""))
    if run.warmup_s < ROUND_TRIPS * longest:
        why = f"ten round trips take {ROUND_TRIPS * longest:.3g} s, so the start is measured, too"
        yield conflict("run.warmup_s", run.warmup_s, why)
    elif run.warmup_s < slowest:
        why = f"shorter than {key} = {slowest:g} s: a timer of the start may expire in the measured time"
        yield conflict("run.warmup_s", run.warmup_s, why)


def _long_events(seen: _Seen) -> Iterator[Problem]:
    """Compare the reservations of a central, one for each of its links, with the time between two events."""
    le, counts = seen.scenario.le, Counter[int]()
    for piconet in topology(seen.scenario).piconets:
        counts[piconet.central] += len(piconet.members)
    links, period_s = max(counts.values(), default=0), le.interval_s * le.subrate
    missed = 1.0 - period_s / max(links * le.reserved_s, period_s)
    if seen.scenario.link.bearer == "le" and links > 1 and missed > MISSED:
        fits_s = floor(1e6 * period_s / links) / 1e6
        unset = ", the interval" if le.event_length_s is None else ""
        why = (
            f"each of {links} links of a central reserves this time{unset}, and an event comes every "
            f"{period_s:g} s: {missed:.0%} of the events are missed; {fits_s:g} fits"
        )
        yield conflict("le.event_length_s", le.reserved_s, why)


def _few_flows(seen: _Seen) -> Iterator[Problem]:
    network = seen.scenario.network
    wanted, there = network.active_flows, len(flows_of(network))
    if isinstance(wanted, int) and wanted > there:
        yield conflict("network.active_flows", wanted, f"there are only {there} flows, and all are active")
