"""From the counts of a replication to the metrics of `btqueue.scenario.metrics`."""

import numpy as np

from btqueue.scenario import Scenario
from btqueue.simulator.records import QUEUE_KINDS, SECOND, SLOT, State
from btqueue.simulator.state import visits_ahead


def measure(sim: State, scenario: Scenario) -> dict[str, np.ndarray | float]:
    """Return the metrics of one replication since its statistics began.

    Values are arrays of shape (flows,), scalars for the piconet, and shape (3,) for `queue_packets` (mean
    length of a token buffer, an uplink and a downlink queue). A ratio without a single observation is not a
    number.
    """
    clock, flow, central = sim.clock[0], sim.flow_statistics, sim.central[0]
    elapsed = clock.now - clock.statistics_since
    seconds = elapsed / SECOND
    kilobits = scenario.traffic.message_bytes * 8 / 1000
    goodput = flow.delivered_in_order * kilobits / seconds
    visits = central.visits - visits_ahead(sim)
    return {
        "goodput_kbps": goodput,
        "throughput_kbps": flow.segments_sent * kilobits / seconds,
        "rtt_s": _ratio(flow.rtt_sum, flow.rtt_samples) / SECOND,
        "cwnd_segments": _ratio(flow.cwnd_sum, flow.window_samples),
        "window_segments": _ratio(flow.window_sum, flow.window_samples),
        "timeouts_per_s": flow.timeouts / seconds,
        "fast_retransmits_per_s": flow.fast_retransmits / seconds,
        "segment_loss": _ratio(flow.segments_damaged, flow.segments_finished),
        "loss_token_buffer": _ratio(flow.refused_at_token_buffer, flow.offered_to_token_buffer),
        "loss_baseband_buffer": _ratio(flow.refused_at_baseband, flow.offered_to_baseband),
        "loss_radio": _ratio(flow.packets_corrupted, flow.packets_delivered),
        "queue_packets": mean_queue_lengths(sim),
        "cycle_s": seconds * central.peripherals / visits if visits else np.nan,
        "slot_utilisation": central.data_slots * SLOT / elapsed,
        "fairness": jain_index(goodput),
    }


def mean_queue_lengths(sim: State) -> np.ndarray:
    """Return the time-average length of each kind of queue, averaged over the peripherals, shape (3,)."""
    clock, count = sim.clock[0], sim.queue_statistics
    area = count.area + sim.queues.length * (clock.now - count.changed_at)
    return (area / (clock.now - clock.statistics_since)).reshape(len(QUEUE_KINDS), -1).mean(axis=1)


def jain_index(rates: np.ndarray) -> float:
    """Return Jain's fairness index of the rates, (sum x)^2 / (n sum x^2), 1 if nobody gets anything."""
    squares = float(np.sum(rates**2))
    return float(np.sum(rates)) ** 2 / (len(rates) * squares) if squares else 1.0


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerator / denominator
