"""From the counts of replications to the metrics of `btqueue.scenario.metrics`, of all replications at once.

A metric that the scenario cannot have (round trips without TCP, delays of greedy sources) is left out; a
metric without an observation is not a number.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from btqueue.scenario.metrics import PERCENTILES, Computed
from btqueue.simulator.records.arrays import Columns, State, first_of, plain
from btqueue.simulator.records.connections import GREEDY, TCP
from btqueue.simulator.records.conventions import NOTHING, SECOND, SLOT, UNLIMITED
from btqueue.simulator.records.nodes import DOWNLINK, OUTSIDE
from btqueue.simulator.statistics.histograms import quantiles
from btqueue.simulator.statistics.invariants import packets_lost

SHARES = np.array(PERCENTILES) / 100
"""The same as shares of the observations."""

ROUNDING = 1e-12
"""Variance over squared mean up to which a variance is taken as the rounding error of sums: ten thousand
additions of the precision of a double."""

Formulas = dict[str, Callable[[], np.ndarray]]
"""How to compute each metric, once somebody reads it."""


class Counts:
    """The counts of a replication; for several, every array has a further dimension, the replications.

    `seconds`: measured time, no dimensions; `flows`: statistics of the flows, records; `rtt`, `delay`:
    percentiles of the round-trip times and delays (ns), shape (flows, percentiles); `lengths`: the mean
    length of each queue, the share of the time that it is `busy`: not empty, the packets that it `served`,
    and their `sojourn`; `visits` in each piconet, slots in which its `voice` was repeated; `link_visits`,
    `data_slots` of each link; `events`: records of links of Bluetooth Low Energy; `backlogs` at the looks,
    shape (looks, backlogs); `halfway`: statistics of the flows in the middle of a replication.
    """

    def __init__(self, seconds: Any, flows: Any, **more: Any) -> None:
        """Take counts by name; or in their place `_sim`, a state that others are read from when needed."""
        vars(self).update(more, seconds=seconds, flows=flows)

    def __getattr__(self, name: str) -> Any:
        """Read counts from the state."""
        if name.startswith("_"):
            raise AttributeError(name)
        vars(self).update(_counts_of_places(self._sim))
        return vars(self)[name]

    def everything(self) -> bytes:
        """Return all counts as bytes, to be compared."""
        known = (self.seconds, self.flows, self.rtt, self.delay, *_counts_of_places(self._sim).values())
        return b"".join(np.asarray(count).tobytes() for count in known)

    def goodput_kbps(self) -> np.ndarray:
        """Return the goodput of each flow (kbit/s)."""
        return kilobits_per_second(self.flows["bytes_delivered"], self.seconds)


def take_counts(sim: State) -> Counts:
    """Copy the counts since the statistics began; `check_invariants` brings them up to now."""
    kept, clock = sim.counted(), first_of(sim.clock)
    return Counts(
        (clock.now - clock.statistics_since) / SECOND,
        plain(kept.flow_statistics),
        rtt=quantiles(sim.rtt_histogram, SHARES),
        delay=quantiles(sim.delay_histogram, SHARES),
        _sim=kept,
    )


def _counts_of_places(sim: State) -> dict[str, Any]:
    """Return the counts of queues, piconets and links."""
    clock, links, piconets = first_of(sim.clock), plain(sim.links), plain(sim.piconets)
    statistics, length = plain(sim.queue_statistics), plain(sim.queues)["length"]
    since, measured = clock.now - statistics["changed_at"], clock.now - clock.statistics_since
    return {
        "lengths": (statistics["area"] + length * since) / measured,
        "busy": (statistics["busy"] + (length > 0) * since) / measured,
        "served": statistics["served"],
        "sojourn": statistics["sojourn"],
        "visits": piconets["visits"],
        "voice": piconets["voice_repeated"],
        "link_visits": links["visits"],
        "data_slots": links["data_slots"],
        "events": plain(sim.le_links),
        "backlogs": sim.seen,
        "halfway": plain(sim.halfway),
    }


class Together:
    """The counts of several replications: each array is joined when it is asked for."""

    def __init__(self, counted: Sequence[Counts]) -> None:
        """Keep the counts."""
        self._counted = counted

    def __getattr__(self, name: str) -> Any:
        """Return the `Counts` of this name with a further dimension; records by their fields."""
        joined = stacked([getattr(one, name) for one in self._counted])
        if name == "seconds":
            joined = joined[:, None]
        vars(self)[name] = value = Columns(joined) if joined.dtype.names else joined
        return value


def measure(network: State, counted: Sequence[Counts]) -> Mapping[str, np.ndarray]:
    """Return the metrics of replications of a network after their warm-ups; each is computed when it is read.

    The result keeps the counts, and the few arrays of the network that metrics need, because a study keeps
    many results.
    Values have shape (replications, flows), (replications,) for the whole network, (replications, links) for
    metrics in `btqueue.scenario.metrics.LINK_METRICS`, and (replications, kinds) for `queue_packets`: the
    mean length of the queues of each kind in `queue_kinds(network)`.
    """
    counts = Together(counted)
    goodput = cache(lambda: kilobits_per_second(counts.flows.bytes_delivered, counts.seconds))

    def others() -> Formulas:
        reverse = np.array(plain(network.connections)["reverse"])
        return {
            "throughput_kbps": lambda: throughput_kbps(counts),
            **transport_metrics(network, counts),
            **application_metrics(network, counts),
            **losses(network, counts),
            "queue_packets": partial(mean_queue_lengths, plain(network.queues)["kind"], counts),
            **polling_metrics(network, counts),
            **event_metrics(network, counts, goodput),
            "fairness": lambda: jain_index(of_connections(goodput(), reverse)),
        }

    return Computed(later={"goodput_kbps": goodput}, more=others)


def stacked(arrays: Sequence[Any]) -> np.ndarray:
    """Return arrays of one shape and type in one, whose first axis counts them.

    Their bytes are joined: NumPy would copy records field by field.
    """
    first = np.asarray(arrays[0])
    block = b"".join(np.asarray(array).tobytes() for array in arrays)
    return np.frombuffer(block, first.dtype).reshape(len(arrays), *first.shape)


def total(counted: Sequence[Counts]) -> Counts:
    """Return the counts of replications together, as of one; lengths, shares and percentiles are left out.

    `busy` is the mean, weighted by the time of each replication; `rtt_least` and `rtt_most` are extremes.
    """
    first, seconds = counted[0], np.array([float(one.seconds) for one in counted])
    flows = first.flows.copy()
    for name in flows.dtype.names:
        flows[name] = np.sum([one.flows[name] for one in counted], axis=0)
    samples, least, most = (
        np.array([one.flows[name] for one in counted]) for name in ("rtt_samples", "rtt_least", "rtt_most")
    )
    flows["rtt_most"] = most.max(axis=0)
    flows["rtt_least"] = np.where(samples > 0, least, most.max(axis=0)).min(axis=0)
    busy = np.average([one.busy for one in counted], axis=0, weights=seconds)
    sums = {name: sum(getattr(one, name) for one in counted) for name in ("served", "sojourn", "link_visits")}
    return Counts(seconds.sum(), flows, busy=busy, **sums)


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
        "rtt_s": mean_of_known(_ratio(both("rtt_sum"), both("rtt_samples"))) / SECOND,
        "delay_s": mean_of_known(_ratio(both("delay_sum"), both("messages_delivered"))) / SECOND,
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


def kilobits_per_second(count: np.ndarray, seconds: Any) -> np.ndarray:
    """Return the rate (kbit/s) of `count` bytes in `seconds` seconds."""
    return count * 8 / 1000 / seconds


def throughput_kbps(counts: Together) -> np.ndarray:
    """Return the data sent; of data under way when the measurement began only the arrivals are known."""
    flow = counts.flows
    carried = np.maximum(flow.bytes_sent, flow.bytes_delivered + flow.bytes_wasted)
    return kilobits_per_second(carried, counts.seconds)


def transport_metrics(network: State, counts: Together) -> Formulas:
    """Return round-trip times, windows and recoveries of TCP, and lost segments."""
    flow, seconds = counts.flows, counts.seconds
    metrics: Formulas = {}
    if (plain(network.connections)["protocol"] == TCP).any():
        metrics |= round_trips(counts)
        metrics |= {
            "cwnd_segments": lambda: _ratio(flow.cwnd_sum, flow.window_samples),
            "window_segments": lambda: _ratio(flow.window_sum, flow.window_samples),
            "timeouts_per_s": lambda: flow.timeouts / seconds,
            "fast_retransmits_per_s": lambda: flow.fast_retransmits / seconds,
            "retransmissions_per_s": lambda: flow.segments_retransmitted / seconds,
            "piggybacked_acks": lambda: _ratio(flow.acks_piggybacked, flow.acks_piggybacked + flow.acks_sent),
        }
    return {**metrics, "segment_loss": lambda: _ratio(flow.segments_damaged, flow.segments_finished)}


def round_trips(counts: Together) -> Formulas:
    """Return mean, extremes, standard deviation and percentiles of the senders' round-trip samples (s)."""
    flow = counts.flows

    def bound(times: np.ndarray) -> np.ndarray:
        return np.where(flow.rtt_samples > 0, times, np.nan)

    def percentile(place: int) -> np.ndarray:
        return np.clip(counts.rtt[..., place], bound(flow.rtt_least), bound(flow.rtt_most)) / SECOND

    return {
        "rtt_s": lambda: _ratio(flow.rtt_sum, flow.rtt_samples) / SECOND,
        "rtt_min_s": lambda: bound(flow.rtt_least) / SECOND,
        "rtt_max_s": lambda: bound(flow.rtt_most) / SECOND,
        "rtt_sd_s": lambda: np.sqrt(variance(flow.rtt_samples, flow.rtt_sum, flow.rtt_squares)) / SECOND,
        **percentiles("rtt", percentile),
    }


def percentiles(name: str, percentile: Callable[[int], np.ndarray]) -> Formulas:
    """Return the metrics `<name>_p50_s` to `<name>_p99_s`, from a function of the place in `PERCENTILES`."""
    return {f"{name}_p{percent}_s": partial(percentile, place) for place, percent in enumerate(PERCENTILES)}


def delays(counts: Together, chosen: np.ndarray, place: int) -> np.ndarray:
    """Return a percentile of the delays, or of the times of sessions, of chosen flows (s)."""
    return np.where(chosen, counts.delay[..., place] / SECOND, np.nan)


def application_metrics(network: State, counts: Together) -> Formulas:
    """Return delays of messages, until they were delivered and until acknowledged, and session times (s)."""
    flow, conn = counts.flows, plain(network.connections)
    offers, session = conn["application"] != GREEDY, conn["session"]
    metrics: Formulas = {}
    if offers.any():
        metrics |= {
            "delay_s": lambda: _ratio(flow.delay_sum, flow.messages_delivered) / SECOND,
            "delay_scv": lambda: scv(flow.messages_delivered, flow.delay_sum, flow.delay_squares),
            **percentiles("delay", partial(delays, counts, session == NOTHING)),
        }
    limited = offers & (conn["send_buffer"] > 0)
    if limited.any():
        metrics["messages_refused"] = lambda: np.where(
            limited, _ratio(flow.messages_refused, flow.messages), np.nan
        )
    if (offers & (conn["protocol"] == TCP)).any():
        count, total = flow.messages_acknowledged, flow.acknowledged_delay_sum
        metrics["acknowledged_delay_s"] = lambda: _ratio(total, count) / SECOND
        metrics["acknowledged_delay_scv"] = lambda: scv(count, total, flow.acknowledged_delay_squares)
    if len(network.sessions) and (session != NOTHING).any():
        metrics |= session_metrics(network, counts)
    return metrics


def session_metrics(network: State, counts: Together) -> Formulas:
    """Return rate and duration (s) of sessions and the share lost, for flows that carry the requests."""
    flow = counts.flows
    requests = np.isin(np.arange(len(network.connections)), network.sessions.requester)

    def spread() -> np.ndarray:
        return variance(flow.sessions, flow.session_time_sum, flow.session_time_squares)

    return {
        "sessions_per_s": lambda: np.where(requests, flow.sessions / counts.seconds, np.nan),
        "session_time_s": lambda: _ratio(flow.session_time_sum, flow.sessions) / SECOND,
        "session_time_sd_s": lambda: np.sqrt(spread()) / SECOND,
        **percentiles("session_time", partial(delays, counts, requests)),
        "connect_time_s": lambda: _ratio(flow.connect_time_sum, flow.connects) / SECOND,
        "sessions_lost": lambda: np.where(
            requests, _ratio(flow.sessions_lost, flow.sessions + flow.sessions_lost), np.nan
        ),
    }


def losses(network: State, counts: Together) -> Formulas:
    """Return the shares of packets lost at each place, per flow.

    `btqueue.scenario.metrics` defines the packets of each share: a packet lost since the statistics began may
    have been sent before.
    """
    flow, ports = counts.flows, plain(network.ports)
    radio = ports["kind"] != OUTSIDE
    outside = not radio.all()
    metrics: Formulas = {}

    def of_all(lost: np.ndarray) -> np.ndarray:
        return _ratio(lost, flow.packets_delivered + packets_lost(flow))

    if radio.any():
        metrics |= {
            "loss_token_buffer": lambda: _ratio(flow.refused_at_token_buffer, flow.offered_to_token_buffer),
            "loss_baseband_buffer": lambda: _ratio(flow.refused_at_baseband, flow.offered_to_baseband),
            "loss_radio": lambda: _ratio(
                flow.packets_corrupted, flow.packets_delivered - (flow.sent_outside - flow.lost_outside)
            ),
        }
    if (radio & (ports["most_transmissions"] > 0)).any():
        metrics |= {
            "loss_arq": lambda: of_all(flow.given_up),
            "transmissions_per_packet": lambda: _ratio(
                flow.transmissions.sum(axis=1),
                counts.served[:, np.flatnonzero(radio)].sum(axis=1) + flow.parts_passed.sum(axis=1),
            ),
        }
    if network.settings[0].node_buffers:
        metrics["loss_node_buffer"] = lambda: of_all(flow.refused_at_node)
    if outside:
        metrics["loss_outside"] = lambda: _ratio(flow.lost_outside, flow.sent_outside)
    limits = plain(network.queues)["limit"][plain(network.queues)["kind"] == DOWNLINK]
    if len(network.bridges) or outside or (limits < UNLIMITED).any():
        metrics["loss_relay"] = lambda: of_all(flow.refused_on_the_way)
    return metrics


def polling_metrics(network: State, counts: Together) -> Formulas:
    """Return how often peripherals are visited and how full the slots are; nothing without a piconet.

    Data can use all slots that voice links leave: a packet type that does not fit there with its answer is
    refused (`btqueue.scenario.checks`).
    """
    piconets = plain(network.piconets)
    if not piconets["links"].any():
        return {}
    visits, seconds = counts.visits, counts.seconds

    def cycle() -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.where(visits > 0, seconds * piconets["links"] / visits, np.nan).mean(axis=1)

    def utilisation() -> np.ndarray:
        reserved = piconets["voice_reserved"] / np.maximum(piconets["voice_period"], 1)
        repeated = counts.voice.sum(axis=1) * SLOT / SECOND / seconds[:, 0]
        free = (1.0 - reserved).sum() - repeated
        return counts.data_slots.sum(axis=1) * SLOT / SECOND / seconds[:, 0] / free

    return {
        "polls_per_s": lambda: counts.link_visits / seconds,
        "slot_share": lambda: counts.data_slots * SLOT / SECOND / seconds,
        "cycle_s": cycle,
        "slot_utilisation": utilisation,
    }


def event_metrics(network: State, counts: Together, goodput: Callable[[], np.ndarray]) -> Formulas:
    """Return the metrics of connection events; none without links of Bluetooth Low Energy."""
    if not len(network.le_links):
        return {}
    link, seconds = counts.events, counts.seconds

    def current_ma() -> np.ndarray:
        busy = link.tx_ma * link.sent + link.rx_ma * link.heard + link.idle_ma * link.spaces
        return (busy / SECOND + 1e-3 * link.event_uc * link.wakes) / seconds + 1e-3 * link.sleep_ua

    return {
        "exchanges_per_event": lambda: _ratio(link.exchanged, link.taken),
        "air_share": lambda: link.on_air / SECOND / seconds,
        "events_missed": lambda: _ratio(link.missed, link.events),
        "disconnections_per_h": lambda: link.disconnections * 3600 / seconds,
        "current_ma": current_ma,
        "energy_uj_per_bit": lambda: _ratio(
            (link.supply_v * current_ma()).sum(axis=1), goodput().sum(axis=1)
        ),
    }


def queue_kinds(network: State) -> list[int]:
    """Return the kinds of queues that the network has, as indices of `QUEUE_KINDS`."""
    return sorted(set(plain(network.queues)["kind"].tolist()))


def mean_queue_lengths(kinds: np.ndarray, counts: Together) -> np.ndarray:
    """Return the mean length of a queue of each kind, shape (replications, kinds), in the order of the kinds.

    Args:
        kinds: the kind of each queue, as a number, shape (queues,).
        counts: the counts of the replications.
    """
    alike = [kinds == kind for kind in sorted(set(kinds.tolist()))]
    return np.array([[lengths[chosen].mean() for chosen in alike] for lengths in counts.lengths])


def of_connections(rates: np.ndarray, reverse: np.ndarray) -> np.ndarray:
    """Return the rates of connections, shape (..., flows): the rates of both directions are added.

    Args:
        rates: of flows.
        reverse: number of each flow's reverse flow, shape (flows,), `NOTHING` where data goes one way.
    """
    both = rates + np.where(reverse == NOTHING, 0.0, rates[..., reverse])
    return both[..., (reverse == NOTHING) | (reverse > np.arange(len(reverse)))]


def jain_index(rates: np.ndarray) -> np.ndarray:
    """Return Jain's fairness index, (sum x)^2 / (n sum x^2), of rates of shape (..., n).

    Not a number where all rates are 0.
    """
    return _ratio(np.sum(rates, axis=-1) ** 2, rates.shape[-1] * np.sum(rates**2, axis=-1))


def variance(count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the variance of observations from their number, their sum and the sum of their squares.

    It is 0 where it is no larger than the rounding errors of the sums.
    """
    mean = _ratio(total, count)
    found = _ratio(squares, count) - mean**2
    return np.where(found <= ROUNDING * mean**2, 0.0, found)


def scv(count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the squared coefficient of variation: variance over squared mean."""
    return _ratio(variance(count, total, squares), _ratio(total, count) ** 2)


def mean_of_known(values: np.ndarray) -> np.ndarray:
    """Return the mean of the numbers in each row; not a number if there is none."""
    known = ~np.isnan(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1))


def _ratio(numerator, denominator) -> np.ndarray:
    """Return the ratio, NaN where the denominator is 0."""
    return numerator / np.where(denominator == 0, np.nan, denominator)
