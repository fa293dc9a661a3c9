"""From the counts of a replication to the metrics of `btqueue.scenario.metrics`.

A metric of something that the scenario does not have (round trips without TCP, delays of greedy sources) is
left out; one that it has but never observed is not a number.
"""

import math

import numpy as np

from btqueue.scenario import Scenario
from btqueue.simulator.bluetooth.polling import visits_until_now
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.connections import GREEDY, TCP
from btqueue.simulator.records.conventions import NOTHING, SECOND, SLOT, UNLIMITED
from btqueue.simulator.records.nodes import DOWNLINK, OUTSIDE, QUEUE_KINDS
from btqueue.simulator.statistics.census import packets_lost
from btqueue.simulator.statistics.quantiles import quantile

PERCENTILES = (50, 90, 95, 99)

Metrics = dict[str, np.ndarray | float]


def measure(sim: State, scenario: Scenario) -> Metrics:
    """Return the metrics of one replication since its statistics began.

    Values are arrays of shape (flows,), scalars for the whole network, shape (links,) for those named in
    `LINK_METRICS`, and shape (kinds,) for `queue_packets`: the mean length of the queues of each kind in
    `queue_kinds(sim)`.
    """
    clock = sim.clock[0]
    seconds = (clock.now - clock.statistics_since) / SECOND
    goodput = kilobits_per_second(sim.flow_statistics.bytes_delivered, seconds)
    return {
        "goodput_kbps": goodput,
        "throughput_kbps": kilobits_per_second(sim.flow_statistics.bytes_sent, seconds),
        **transport_metrics(sim, seconds),
        **application_metrics(sim, seconds),
        **losses(sim),
        "queue_packets": mean_queue_lengths(sim),
        **polling_metrics(sim, seconds),
        "fairness": jain_index(goodput),
    }


def halves(halfway: np.recarray, end: np.recarray, seconds: float) -> dict[str, np.ndarray]:
    """Return the means over flows in the first and in the second half of a run, shape (2,) each.

    Not a number where no flow has an observation.

    Args:
        halfway: statistics of the flows in the middle of the run, shape (flows,).
        end: the same at its end.
        seconds: how long the run is.
    """

    def both(name: str) -> np.ndarray:
        return np.array([halfway[name], end[name] - halfway[name]])

    return {
        "goodput_kbps": kilobits_per_second(both("bytes_delivered"), seconds / 2).mean(axis=1),
        "rtt_s": _mean_of_known(_ratio(both("rtt_sum"), both("rtt_samples"))) / SECOND,
        "delay_s": _mean_of_known(_ratio(both("delay_sum"), both("messages_delivered"))) / SECOND,
    }


LINK_METRICS = frozenset({"polls_per_s", "slot_share"})
"""Metrics with one value for each link between a central and a peripheral."""


def kilobits_per_second(count: np.ndarray, seconds: float) -> np.ndarray:
    """Return the rate at which so many bytes went by in that time."""
    return count * 8 / 1000 / seconds


def transport_metrics(sim: State, seconds: float) -> Metrics:
    """Return round-trip times, windows and recoveries of TCP, and lost segments."""
    flow = sim.flow_statistics
    metrics: Metrics = {}
    if np.any(sim.connections.protocol == TCP):
        metrics |= round_trips(sim)
        metrics |= {
            "cwnd_segments": _ratio(flow.cwnd_sum, flow.window_samples),
            "window_segments": _ratio(flow.window_sum, flow.window_samples),
            "timeouts_per_s": flow.timeouts / seconds,
            "fast_retransmits_per_s": flow.fast_retransmits / seconds,
            "retransmissions_per_s": flow.segments_retransmitted / seconds,
            "piggybacked_acks": _ratio(flow.acks_piggybacked, flow.acks_piggybacked + flow.acks_sent),
        }
    return {**metrics, "segment_loss": _ratio(flow.segments_damaged, flow.segments_finished)}


def round_trips(sim: State) -> Metrics:
    """Return mean, extremes, standard deviation and percentiles of the senders' round-trip samples (s)."""
    flow = sim.flow_statistics
    seen = flow.rtt_samples > 0
    least = np.where(seen, flow.rtt_least, np.nan)
    most = np.where(seen, flow.rtt_most, np.nan)
    return {
        "rtt_s": _ratio(flow.rtt_sum, flow.rtt_samples) / SECOND,
        "rtt_min_s": least / SECOND,
        "rtt_max_s": most / SECOND,
        "rtt_sd_s": np.sqrt(variance(flow.rtt_samples, flow.rtt_sum, flow.rtt_squares)) / SECOND,
        **{
            f"rtt_p{percent}_s": np.clip(quantile(sim.rtt_histogram, percent / 100), least, most) / SECOND
            for percent in PERCENTILES
        },
    }


def application_metrics(sim: State, seconds: float) -> Metrics:
    """Return delays of messages, until they were delivered and until acknowledged, and session times (s)."""
    flow, conn = sim.flow_statistics, sim.connections
    metrics: Metrics = {}
    if np.any(conn.application != GREEDY):
        metrics |= {
            "delay_s": _ratio(flow.delay_sum, flow.messages_delivered) / SECOND,
            "delay_scv": scv(flow.messages_delivered, flow.delay_sum, flow.delay_squares),
            **{
                f"delay_p{percent}_s": np.where(
                    conn.session == NOTHING, quantile(sim.delay_histogram, percent / 100) / SECOND, np.nan
                )
                for percent in PERCENTILES
            },
        }
    limited = (conn.application != GREEDY) & (conn.send_buffer > 0)
    if np.any(limited):
        metrics["messages_refused"] = np.where(limited, _ratio(flow.messages_refused, flow.messages), np.nan)
    if np.any((conn.application != GREEDY) & (conn.protocol == TCP)):
        count, total = flow.messages_acknowledged, flow.acknowledged_delay_sum
        metrics["acknowledged_delay_s"] = _ratio(total, count) / SECOND
        metrics["acknowledged_delay_scv"] = scv(count, total, flow.acknowledged_delay_squares)
    if len(sim.sessions) and np.any(conn.session != NOTHING):
        metrics |= session_metrics(sim, seconds)
    return metrics


def session_metrics(sim: State, seconds: float) -> Metrics:
    """Return rate and duration (s) of sessions and the share lost, for flows that carry the requests."""
    flow = sim.flow_statistics
    requests = np.isin(np.arange(len(flow)), sim.sessions.requester)
    spread = variance(flow.sessions, flow.session_time_sum, flow.session_time_squares)
    return {
        "sessions_per_s": np.where(requests, flow.sessions / seconds, np.nan),
        "session_time_s": _ratio(flow.session_time_sum, flow.sessions) / SECOND,
        "session_time_sd_s": np.sqrt(spread) / SECOND,
        **{
            f"session_time_p{percent}_s": np.where(
                requests, quantile(sim.delay_histogram, percent / 100) / SECOND, np.nan
            )
            for percent in PERCENTILES
        },
        "connect_time_s": _ratio(flow.connect_time_sum, flow.connects) / SECOND,
        "sessions_lost": np.where(
            requests, _ratio(flow.sessions_lost, flow.sessions + flow.sessions_lost), np.nan
        ),
    }


def losses(sim: State) -> Metrics:
    """Return the shares of packets lost at each place, per flow.

    Of those whose way has ended: what was lost since the statistics began may have been sent before.
    """
    flow, ports = sim.flow_statistics, sim.ports
    ended = flow.packets_delivered + packets_lost(flow)
    radio = ports.kind != OUTSIDE
    metrics: Metrics = {}
    if np.any(radio):
        metrics |= {
            "loss_token_buffer": _ratio(flow.refused_at_token_buffer, flow.offered_to_token_buffer),
            "loss_baseband_buffer": _ratio(flow.refused_at_baseband, flow.offered_to_baseband),
            "loss_radio": _ratio(flow.packets_corrupted, flow.packets_delivered),
        }
    if np.any(radio & (ports.most_transmissions > 0)):
        served = sim.queue_statistics.served[ports.queue[radio]].sum()
        metrics["loss_arq"] = _ratio(flow.given_up, ended)
        metrics["transmissions_per_packet"] = float(_ratio(flow.transmissions.sum(), served))
    if sim.settings[0].node_buffers:
        metrics["loss_node_buffer"] = _ratio(flow.refused_at_node, ended)
    if np.any(~radio):
        metrics["loss_outside"] = _ratio(flow.lost_outside, ended)
    if (
        len(sim.bridges)
        or np.any(~radio)
        or np.any(sim.queues.limit[sim.queues.kind == DOWNLINK] < UNLIMITED)
    ):
        metrics["loss_relay"] = _ratio(flow.refused_on_the_way, ended)
    return metrics


def polling_metrics(sim: State, seconds: float) -> Metrics:
    """Return how often peripherals are visited and how full the slots are; nothing without a piconet."""
    if not len(sim.piconets):
        return {}
    visits = visits_until_now(sim)  # brings the links' counts up to now, too
    with np.errstate(divide="ignore"):
        cycles = np.where(visits > 0, seconds * sim.piconets.links / visits, np.nan)
    return {
        "polls_per_s": sim.links.visits / seconds,
        "slot_share": sim.links.data_slots * SLOT / SECOND / seconds,
        "cycle_s": float(cycles.mean()),
        "slot_utilisation": float(sim.links.data_slots.sum() * SLOT / SECOND / seconds / len(sim.piconets)),
    }


def queue_kinds(sim: State) -> list[int]:
    """Return the kinds of queues that the network has, as indices of `QUEUE_KINDS`."""
    return [kind for kind in range(len(QUEUE_KINDS)) if np.any(sim.queues.kind == kind)]


def mean_queue_lengths(sim: State) -> np.ndarray:
    """Return the time-average length of a queue of each kind in `queue_kinds(sim)`, shape (kinds,)."""
    clock, count = sim.clock[0], sim.queue_statistics
    area = count.area + sim.queues.length * (clock.now - count.changed_at)
    lengths = area / (clock.now - clock.statistics_since)
    return np.array([lengths[sim.queues.kind == kind].mean() for kind in queue_kinds(sim)])


def jain_index(rates: np.ndarray) -> float:
    """Return Jain's fairness index of the rates, (sum x)^2 / (n sum x^2); NaN if nobody gets anything."""
    squares = float(np.sum(rates**2))
    return float(np.sum(rates)) ** 2 / (len(rates) * squares) if squares else math.nan


def variance(count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the variance of observations from their number, their sum and the sum of their squares."""
    mean = _ratio(total, count)
    return np.maximum(_ratio(squares, count) - mean**2, 0.0)


def scv(count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the squared coefficient of variation: variance over squared mean."""
    return _ratio(variance(count, total, squares), _ratio(total, count) ** 2)


def _mean_of_known(values: np.ndarray) -> np.ndarray:
    """Return the mean of each row without what is not a number; not a number if nothing is left."""
    known = ~np.isnan(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1))


def _ratio(numerator, denominator) -> np.ndarray:
    """Return the ratio, NaN where nothing was counted that it could be a ratio of."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    return np.divide(numerator, denominator, out=np.full(denominator.shape, np.nan), where=denominator != 0)
