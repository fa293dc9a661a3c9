"""A piconet without repetition on the link whose radio loses packets: its metrics, from `lossy`.

1. Held back by radio errors: every connection always has data, and works as `rounds` says.
2. The load is below that: goodput is the load. Rates of events go with the share of the time that the
   connection needs. Messages that wait behind a timeout, and those that come before they have been cleared
   away, meet a busy connection; the others meet the network alone.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from btqueue.baseband import PACKET_TYPES, segment
from btqueue.channel import packet_error_rate
from btqueue.network.answers import NoConvergence
from btqueue.network.piconet import lossy
from btqueue.network.piconet.exchange import exchange_of
from btqueue.network.piconet.ports import UP, Piconet, Sender, Train, piconet_of
from btqueue.queueing._precision import in_float64
from btqueue.scenario import Scenario

LARGEST_WINDOW = 8
"""Largest window of TCP's rounds; where the radio loses segments, larger ones are hardly ever reached."""
CONVERGED = 1e-5
"""Mismatch up to which an answer stands."""
NOTHING = 1e-9
"""Chance of a segment to get through below which nothing is said about the connection."""
LATE = 1.1
"""Multiple of the timeout's floor above which the estimate of the round trip decides about goodput."""
SHORT_TIMEOUT = 4.0
"""Least timeout, in round trips, below which connections live by their timers."""
FEW_PACKETS = 3
"""Packets of a segment below which a visit takes several segments."""
CROWDED = 0.5
"""Share of the air used by others from which on processor sharing describes them only roughly."""
WIDE = 0.5
"""Share of the rounds of largest windows above which windows beyond them would be used."""


def is_lossy(scenario: Scenario) -> bool:
    """Whether the radio loses packets that nobody but TCP repeats."""
    radio = scenario.radio
    perfect = radio.per == 0 if radio.per is not None else radio.model == "perfect"
    return not perfect and scenario.link.arq == "none" and scenario.transport.protocol == "tcp"


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: no fixed point was found, or nothing gets through.
    """
    piconet = piconet_of(scenario)
    class_of, members = classes(piconet)
    senders = [piconet.senders[number] for number in members]
    kinds, paths = paths_of(scenario, piconet, class_of, members)
    network = network_of(scenario, piconet, [sender.rate for sender in senders])
    window = min(scenario.transport.receive_window_segments, LARGEST_WINDOW)
    if float(jnp.prod(network.data_through.max(axis=1))) < NOTHING:
        raise NoConvergence("no segment gets through: the flows never move")
    metrics, found, residual, iterations = solved(kinds, window, paths, network)
    if not residual <= CONVERGED:
        raise NoConvergence(
            f"connections and network do not agree: mismatch {float(residual):.2g} after {int(iterations)} steps"
        )
    kilobits = scenario.traffic.message_bytes * 8 / 1000
    network_wide = {name: float(metrics.pop(name)) for name in ("cycle_s", "slot_utilisation")}
    backlog = metrics.pop("waiting")
    for name in ("goodput_kbps", "throughput_kbps"):
        metrics[name] = metrics[name] * kilobits
    waiting = sum(
        float(backlog[k]) for k, sender in zip(class_of, piconet.senders, strict=True) if sender.port.way == UP
    )
    by_flow: dict[str, Any] = {name: value[list(class_of)] for name, value in metrics.items()}
    by_flow |= network_wide | {"queue_packets": {"token_buffer": waiting / piconet.stations}}
    notes = {
        "method": "queueing: TCP's rounds with token buckets, polled air and the radio's state, in one fixed point",
        "converged": True,
        "residual": float(residual),
        "iterations": int(iterations),
        "warnings": warnings_of(scenario, piconet, found, metrics),
    }
    return by_flow, notes


@in_float64
def solved(
    kinds: tuple[int, ...], window: int, paths: tuple[lossy.Path, ...], network: lossy.Network
) -> tuple[dict[str, np.ndarray], tuple[lossy.Found, ...], np.ndarray, np.ndarray]:
    """Return metrics by class (K,), rates in segments a second, and what they come from."""
    return jax.tree.map(np.asarray, _metrics(kinds, window, paths, network))


def _metrics(
    kinds: tuple[int, ...], window: int, paths: tuple[lossy.Path, ...], network: lossy.Network
) -> tuple[dict[str, Any], tuple[lossy.Found, ...], Any, Any]:
    given, found, residual, iterations = lossy.solve(kinds, window, paths, network)
    return lossy.metrics_of(paths, network, given, found), found, residual, iterations


def classes(piconet: Piconet) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the class of each flow, and one flow of each class: flows that see the same."""
    signatures = [_signature(piconet, sender) for sender in piconet.senders]
    known = list(dict.fromkeys(signatures))
    class_of = tuple(known.index(signature) for signature in signatures)
    return class_of, tuple(class_of.index(k) for k in range(len(known)))


def _signature(piconet: Piconet, one: Sender) -> tuple:
    first, last = one.data[0], one.data[-1]
    ahead = (last.station - first.station) % piconet.stations
    carried = tuple(
        tuple(sorted((p.way, s.rate, p == s.port) for s in piconet.senders for p in s.data if p.station == port.station))
        for port in one.data
    )
    return tuple(port.way for port in one.data), ahead, one.rate, carried


def paths_of(
    scenario: Scenario, piconet: Piconet, class_of: tuple[int, ...], members: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[lossy.Path, ...]]:
    """Return the channels that a segment of each class meets, and the rest that is discrete of it."""
    kinds, paths = [], []
    for number in members:
        sender = piconet.senders[number]
        port, back = sender.port, sender.back[0]
        others = [(k, other) for k, other in zip(class_of, piconet.senders, strict=True) if other is not sender]
        every = [*others, (class_of[number], sender)]

        def count(chosen: list[int]) -> np.ndarray:
            return np.bincount(np.array(chosen, int), minlength=len(members)).astype(float)

        kinds.append(_kind(scenario, piconet, sender))
        paths.append(
            lossy.Path(
                flows=np.array(float(class_of.count(class_of[number]))),
                exchange=exchange_of(piconet, sender),
                acks_before=count([k for k, other in every if other.back[0] == port]),
                data_before=count([k for k, other in others if other.port == port]),
                tokens_of_acks=count([k for k, other in every if other.port == back]),
            )
        )
    return tuple(kinds), tuple(paths)


def _kind(scenario: Scenario, piconet: Piconet, sender: Sender) -> int:
    if scenario.radio.model == "constant":
        return lossy.CONSTANT
    if len(sender.data) == 1:
        return lossy.SINGLE
    if piconet.stations == 1:
        return lossy.LONE
    if scenario.radio.fading == "per-link":
        return lossy.PAIR
    return lossy.SHORT_VISITS if piconet.limit < len(piconet.data.packets) else lossy.SAME


def network_of(scenario: Scenario, piconet: Piconet, rates: list[float]) -> lossy.Network:
    """Return what may be varied."""
    radio, control, transport = scenario.radio, scenario.flow_control, scenario.transport
    assert piconet.ack is not None
    headers = scenario.link.l2cap_header_bytes + transport.header_bytes
    types = [PACKET_TYPES[name] for name in scenario.link.packets]
    pieces = segment(scenario.traffic.message_bytes + headers, types, scenario.link.segmentation)
    full = control.charge == "payload"
    prices = [float(p.packet.payload_bytes if full else p.carried_bytes) for p in pieces]
    constant = radio.model == "constant"
    rates_of_bits = (radio.ber, radio.ber) if constant else (radio.ber_good, radio.ber_bad)
    tokens = bool(np.isfinite(piconet.token_rate))

    def through(train: Train) -> np.ndarray:
        if radio.per is not None:
            return np.full((len(train.packets), 2), 1.0 - radio.per)
        return np.array(
            [[1.0 - float(packet_error_rate(p, ber, bits=radio.bits)) for ber in rates_of_bits] for p in train.packets]
        )

    return lossy.Network(
        load=np.array(rates),
        prices=np.array(prices),
        ack_price=np.array(float(piconet.ack.tokens)),
        token_rate=np.array(piconet.token_rate if tokens else lossy.FREE_RATE),
        depth=np.array(float(piconet.bucket_bytes) if tokens else lossy.FREE_DEPTH),
        places=np.array(float(piconet.buffer)),
        jitter_s=np.array(piconet.jitter_s),
        min_rto=np.array(transport.min_rto_s),
        max_rto=np.array(transport.max_rto_s),
        backoff=np.array(2.0 if transport.rto_backoff else 1.0),
        slot_s=np.array(piconet.slot_s),
        data_slots=np.array([float(packet.slots) for packet in piconet.data.packets]),
        ack_slots=np.array([float(packet.slots) for packet in piconet.ack.packets]),
        data_through=through(piconet.data),
        ack_through=through(piconet.ack),
        good_s=np.array(1.0 if constant else radio.good_s),
        bad_s=np.array(1.0 if constant else radio.bad_s),
    )


def warnings_of(
    scenario: Scenario, piconet: Piconet, found: tuple[lossy.Found, ...], metrics: dict[str, np.ndarray]
) -> list[str]:
    """Return a warning for each regime in which the answer is less certain."""
    transport, weak = scenario.transport, []
    least = transport.min_rto_s
    timeout = max(float(one.timeout) for one in found)
    if any(one.duty < 1.0 for one in found):
        weak.append(
            "radio errors hardly hold the connections back: messages come one by one, and their round trips are "
            "only roughly accounted for"
        )
    if transport.receive_window_segments > LARGEST_WINDOW and any(
        one.rounds.law.window > WIDE * LARGEST_WINDOW for one in found
    ):
        weak.append(
            f"transport.receive_window_segments = {transport.receive_window_segments}: windows above "
            f"{LARGEST_WINDOW} segments are not accounted for"
        )
    if timeout > LATE * least:
        weak.append(
            f"timeouts last {timeout:.2f} s, more than their floor, and so depend on how round trips vary: goodput "
            "and timeouts come out up to 26 % high"
        )
    if least < SHORT_TIMEOUT * metrics["rtt_s"].max():
        weak.append(
            f"transport.min_rto_s = {least:g} is less than {SHORT_TIMEOUT:g} round trips: goodput comes out up to "
            "13 % high"
        )
    if len(piconet.data.packets) < FEW_PACKETS:
        weak.append(
            f"segments of {len(piconet.data.packets)} packets: several go in one visit, which the times of a burst "
            "do not account for; round trips come out up to 43 % short"
        )
    if (others := max(float(one.others) for one in found)) > CROWDED:
        weak.append(
            f"the others use {others:.0%} of the air, which processor sharing describes only roughly: goodput comes "
            "out up to 15 % high"
        )
    return weak
