"""From the counts of replications to the metrics of `btqueue.scenario.metrics`, of all replications at once.

A metric that the scenario cannot have (round trips without TCP, delays of greedy sources) is left out; a
metric without an observation is not a number.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from btqueue.simulator.bluetooth.sleep import visits_until_now
from btqueue.simulator.records.arrays import State, columns
from btqueue.simulator.records.connections import GREEDY, TCP
from btqueue.simulator.records.conventions import NOTHING, SECOND, SLOT, UNLIMITED
from btqueue.simulator.records.nodes import DOWNLINK, OUTSIDE
from btqueue.simulator.statistics.census import packets_lost
from btqueue.simulator.statistics.quantiles import quantiles

PERCENTILES = (50, 90, 95, 99)
SHARES = np.array(PERCENTILES) / 100
"""The same as shares of the observations."""

Metrics = dict[str, np.ndarray]


class Counts(NamedTuple):
    """The counts of a replication; for several, every array has a further dimension, the replications.

    `seconds`: measured time, no dimensions; `flows`: statistics of the flows, records; `rtt`, `delay`:
    percentiles of the round-trip times and delays (ns), shape (flows, percentiles); `lengths`: the mean
    length of each queue, and the packets that it `served`; `visits` in each piconet; `link_visits` and
    `data_slots` of each link.
    """

    seconds: Any
    flows: Any
    rtt: np.ndarray
    delay: np.ndarray
    lengths: np.ndarray
    served: np.ndarray
    visits: np.ndarray
    link_visits: np.ndarray
    data_slots: np.ndarray

    def goodput_kbps(self) -> np.ndarray:
        """Return the goodput of each flow (kbit/s)."""
        return kilobits_per_second(self.flows["bytes_delivered"], self.seconds)


def take_counts(sim: State) -> Counts:
    """Copy the counts of a replication since its statistics began."""
    visits_until_now(sim)
    clock, queues, links = sim.clock[0], columns(sim.queue_statistics), columns(sim.links)
    now, measured = int(clock.now), int(clock.now) - int(clock.statistics_since)
    area = queues.area + columns(sim.queues).length * (now - queues.changed_at)
    return Counts(
        seconds=measured / SECOND,
        flows=sim.flow_statistics.view(np.ndarray).copy(),
        rtt=quantiles(sim.rtt_histogram, SHARES),
        delay=quantiles(sim.delay_histogram, SHARES),
        lengths=area / measured,
        served=queues.served.copy(),
        visits=columns(sim.piconets).visits.copy(),
        link_visits=links.visits.copy(),
        data_slots=links.data_slots.copy(),
    )


def measure(network: State, counted: Sequence[Counts]) -> Metrics:
    """Return the metrics of replications of a network, since their statistics began.

    Values have shape (replications, flows), (replications,) for the whole network, (replications, links) for
    metrics in `LINK_METRICS`, and (replications, kinds) for `queue_packets`: the mean length of the queues of
    each kind in `queue_kinds(network)`.
    """
    counts = Counts(*(stacked(arrays) for arrays in zip(*counted, strict=True)))
    flow, seconds = columns(counts.flows), counts.seconds[:, None]
    counts = counts._replace(flows=flow, seconds=seconds)
    goodput = kilobits_per_second(flow.bytes_delivered, seconds)
    # of data under way when the measurement began only the arrivals are known
    carried = np.maximum(flow.bytes_sent, flow.bytes_delivered + flow.bytes_wasted)
    return {
        "goodput_kbps": goodput,
        "throughput_kbps": kilobits_per_second(carried, seconds),
        **transport_metrics(network, counts),
        **application_metrics(network, counts),
        **losses(network, counts),
        "queue_packets": mean_queue_lengths(network, counts),
        **polling_metrics(network, counts),
        "fairness": jain_index(goodput),
    }


def stacked(arrays: Sequence[Any]) -> np.ndarray:
    """Return arrays of one shape and type in one, whose first axis counts them.

    Their bytes are joined: NumPy would copy records field by field.
    """
    first = np.asarray(arrays[0])
    block = b"".join(np.asarray(array).tobytes() for array in arrays)
    return np.frombuffer(block, first.dtype).reshape(len(arrays), *first.shape)


def halves(halfway: Any, end: Any, seconds: np.ndarray) -> dict[str, np.ndarray]:
    """Return the means over flows in the first and in the second half of runs, shape (2, runs) each.

    Not a number where no flow has an observation.

    Args:
        halfway: statistics of the flows in the middle of each run, shape (runs, flows).
        end: the same at their ends.
        seconds: how long the runs are, shape (runs, 1).
    """

    def both(name: str) -> np.ndarray:
        return np.array([halfway[name], end[name] - halfway[name]])

    return {
        "goodput_kbps": kilobits_per_second(both("bytes_delivered"), seconds / 2).mean(axis=-1),
        "rtt_s": _mean_of_known(_ratio(both("rtt_sum"), both("rtt_samples"))) / SECOND,
        "delay_s": _mean_of_known(_ratio(both("delay_sum"), both("messages_delivered"))) / SECOND,
    }


def drained_kbps(flow: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return the decrease of the data under way from the beginning to the end of a run, for each second.

    Args:
        flow: statistics of the flows at the ends of runs, shape (replications, flows).
        seconds: how long the runs are, shape (replications, 1).

    Returns:
        Shape (replications, flows), kbit/s; below 0 where more is under way.
    """
    bytes_less = flow["bytes_delivered"] + flow["bytes_wasted"] - flow["bytes_sent"]
    return kilobits_per_second(bytes_less, seconds)


LINK_METRICS = frozenset({"polls_per_s", "slot_share"})
"""Metrics with one value for each link between a central and a peripheral."""


def kilobits_per_second(count: np.ndarray, seconds: Any) -> np.ndarray:
    """Return the rate (kbit/s) of `count` bytes in `seconds` seconds."""
    return count * 8 / 1000 / seconds


def transport_metrics(network: State, counts: Counts) -> Metrics:
    """Return round-trip times, windows and recoveries of TCP, and lost segments."""
    flow, seconds = counts.flows, counts.seconds
    metrics: Metrics = {}
    if np.any(network.connections.protocol == TCP):
        metrics |= round_trips(counts)
        metrics |= {
            "cwnd_segments": _ratio(flow.cwnd_sum, flow.window_samples),
            "window_segments": _ratio(flow.window_sum, flow.window_samples),
            "timeouts_per_s": flow.timeouts / seconds,
            "fast_retransmits_per_s": flow.fast_retransmits / seconds,
            "retransmissions_per_s": flow.segments_retransmitted / seconds,
            "piggybacked_acks": _ratio(flow.acks_piggybacked, flow.acks_piggybacked + flow.acks_sent),
        }
    return {**metrics, "segment_loss": _ratio(flow.segments_damaged, flow.segments_finished)}


def round_trips(counts: Counts) -> Metrics:
    """Return mean, extremes, standard deviation and percentiles of the senders' round-trip samples (s)."""
    flow = counts.flows
    seen = flow.rtt_samples > 0
    least = np.where(seen, flow.rtt_least, np.nan)
    most = np.where(seen, flow.rtt_most, np.nan)
    return {
        "rtt_s": _ratio(flow.rtt_sum, flow.rtt_samples) / SECOND,
        "rtt_min_s": least / SECOND,
        "rtt_max_s": most / SECOND,
        "rtt_sd_s": np.sqrt(variance(flow.rtt_samples, flow.rtt_sum, flow.rtt_squares)) / SECOND,
        **{
            f"rtt_p{percent}_s": np.clip(counts.rtt[..., place], least, most) / SECOND
            for place, percent in enumerate(PERCENTILES)
        },
    }


def application_metrics(network: State, counts: Counts) -> Metrics:
    """Return delays of messages, until they were delivered and until acknowledged, and session times (s)."""
    flow, conn = counts.flows, network.connections
    metrics: Metrics = {}
    if np.any(conn.application != GREEDY):
        metrics |= {
            "delay_s": _ratio(flow.delay_sum, flow.messages_delivered) / SECOND,
            "delay_scv": scv(flow.messages_delivered, flow.delay_sum, flow.delay_squares),
            **{
                f"delay_p{percent}_s": np.where(
                    conn.session == NOTHING, counts.delay[..., place] / SECOND, np.nan
                )
                for place, percent in enumerate(PERCENTILES)
            },
        }
    limited = (conn.application != GREEDY) & (conn.send_buffer > 0)
    if np.any(limited):
        metrics["messages_refused"] = np.where(limited, _ratio(flow.messages_refused, flow.messages), np.nan)
    if np.any((conn.application != GREEDY) & (conn.protocol == TCP)):
        count, total = flow.messages_acknowledged, flow.acknowledged_delay_sum
        metrics["acknowledged_delay_s"] = _ratio(total, count) / SECOND
        metrics["acknowledged_delay_scv"] = scv(count, total, flow.acknowledged_delay_squares)
    if len(network.sessions) and np.any(conn.session != NOTHING):
        metrics |= session_metrics(network, counts)
    return metrics


def session_metrics(network: State, counts: Counts) -> Metrics:
    """Return rate and duration (s) of sessions and the share lost, for flows that carry the requests."""
    flow = counts.flows
    requests = np.isin(np.arange(len(network.connections)), network.sessions.requester)
    spread = variance(flow.sessions, flow.session_time_sum, flow.session_time_squares)
    return {
        "sessions_per_s": np.where(requests, flow.sessions / counts.seconds, np.nan),
        "session_time_s": _ratio(flow.session_time_sum, flow.sessions) / SECOND,
        "session_time_sd_s": np.sqrt(spread) / SECOND,
        **{
            f"session_time_p{percent}_s": np.where(requests, counts.delay[..., place] / SECOND, np.nan)
            for place, percent in enumerate(PERCENTILES)
        },
        "connect_time_s": _ratio(flow.connect_time_sum, flow.connects) / SECOND,
        "sessions_lost": np.where(
            requests, _ratio(flow.sessions_lost, flow.sessions + flow.sessions_lost), np.nan
        ),
    }


def losses(network: State, counts: Counts) -> Metrics:
    """Return the shares of packets lost at each place, per flow.

    `btqueue.scenario.metrics` defines the packets of each share: a packet lost since the statistics began may
    have been sent before.
    """
    flow, ports = counts.flows, network.ports
    ended = flow.packets_delivered + packets_lost(flow)
    radio = ports.kind != OUTSIDE
    by_radio = flow.packets_delivered - (flow.sent_outside - flow.lost_outside)
    metrics: Metrics = {}
    if np.any(radio):
        metrics |= {
            "loss_token_buffer": _ratio(flow.refused_at_token_buffer, flow.offered_to_token_buffer),
            "loss_baseband_buffer": _ratio(flow.refused_at_baseband, flow.offered_to_baseband),
            "loss_radio": _ratio(flow.packets_corrupted, by_radio),
        }
    if np.any(radio & (ports.most_transmissions > 0)):
        served = counts.served[:, np.flatnonzero(radio)].sum(axis=1)
        metrics["loss_arq"] = _ratio(flow.given_up, ended)
        metrics["transmissions_per_packet"] = _ratio(flow.transmissions.sum(axis=1), served)
    if network.settings[0].node_buffers:
        metrics["loss_node_buffer"] = _ratio(flow.refused_at_node, ended)
    if np.any(~radio):
        metrics["loss_outside"] = _ratio(flow.lost_outside, flow.sent_outside)
    if (
        len(network.bridges)
        or np.any(~radio)
        or np.any(network.queues.limit[network.queues.kind == DOWNLINK] < UNLIMITED)
    ):
        metrics["loss_relay"] = _ratio(flow.refused_on_the_way, ended)
    return metrics


def polling_metrics(network: State, counts: Counts) -> Metrics:
    """Return how often peripherals are visited and how full the slots are; nothing without a piconet.

    Data can use all slots that voice links leave: a packet type that does not fit there with its answer is
    refused (`btqueue.scenario.checks`).
    """
    if not len(network.piconets):
        return {}
    visits, seconds, piconets = counts.visits, counts.seconds, network.piconets
    with np.errstate(divide="ignore"):
        cycles = np.where(visits > 0, seconds * piconets.links / visits, np.nan)
    free = 1.0 - piconets.voice_reserved / np.maximum(piconets.voice_period, 1)
    used = counts.data_slots.sum(axis=1) * SLOT / SECOND / seconds[:, 0]
    return {
        "polls_per_s": counts.link_visits / seconds,
        "slot_share": counts.data_slots * SLOT / SECOND / seconds,
        "cycle_s": cycles.mean(axis=1),
        "slot_utilisation": used / free.sum(),
    }


def queue_kinds(network: State) -> list[int]:
    """Return the kinds of queues that the network has, as indices of `QUEUE_KINDS`."""
    return sorted(set(network.queues.kind.tolist()))


def mean_queue_lengths(network: State, counts: Counts) -> np.ndarray:
    """Return the mean length of a queue of each kind in `queue_kinds`, shape (replications, kinds)."""
    kinds = np.array(network.queues.kind)
    found = [kinds == kind for kind in queue_kinds(network)]
    return np.array([[own[those].mean() for those in found] for own in counts.lengths])


def jain_index(rates: np.ndarray) -> np.ndarray:
    """Return Jain's fairness index, (sum x)^2 / (n sum x^2), of rates of shape (..., n).

    Not a number where nobody gets anything.
    """
    return _ratio(np.sum(rates, axis=-1) ** 2, rates.shape[-1] * np.sum(rates**2, axis=-1))


def variance(count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the variance of observations from their number, their sum and the sum of their squares."""
    mean = _ratio(total, count)
    return np.maximum(_ratio(squares, count) - mean**2, 0.0)


def scv(count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the squared coefficient of variation: variance over squared mean."""
    return _ratio(variance(count, total, squares), _ratio(total, count) ** 2)


def _mean_of_known(values: np.ndarray) -> np.ndarray:
    """Return the mean of the numbers in each row; not a number if there is none."""
    known = ~np.isnan(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1))


def _ratio(numerator, denominator) -> np.ndarray:
    """Return the ratio, NaN where the denominator is 0."""
    return numerator / np.where(denominator == 0, np.nan, denominator)
