"""Metrics from counts that are set by hand: values, units, and what is left out or not a number."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from state_tables import zeros

from btqueue.scenario.metrics import LINK_METRICS, METRICS
from btqueue.simulator.records import connections, le_links, nodes, piconets, run
from btqueue.simulator.records.connections import POISSON, TCP, session_dtype
from btqueue.simulator.records.conventions import NOTHING, SECOND, UNLIMITED
from btqueue.simulator.records.nodes import DOWNLINK, OUTSIDE, TOKEN_BUFFER, UPLINK
from btqueue.simulator.statistics import measurement
from btqueue.simulator.statistics.histograms import BINS
from btqueue.simulator.statistics.measurement import jain_index, measure, take_counts

MS = 1_000_000
TEN_SECONDS = 10 * SECOND


def network(flows=2, stars=1, links=2, queues=(UPLINK, UPLINK, DOWNLINK, DOWNLINK), ports=(UPLINK,)) -> Any:
    """A network that was measured from 5 s to 15 s and in which nothing happened."""
    sim = SimpleNamespace(
        clock=zeros(run.clock_dtype, 1),
        settings=zeros(run.settings_dtype, 1),
        connections=zeros(connections.connection_dtype, flows),
        flow_statistics=zeros(connections.flow_statistics_dtype, flows),
        halfway=zeros(connections.flow_statistics_dtype, flows),
        seen=np.zeros((1, flows), np.int64),
        sessions=zeros(session_dtype, 0),
        rtt_histogram=np.zeros((flows, BINS), np.int64),
        delay_histogram=np.zeros((flows, BINS), np.int64),
        ports=zeros(nodes.port_dtype, len(ports)),
        le_links=zeros(le_links.le_link_dtype, 0),
        queues=zeros(nodes.queue_dtype, len(queues)),
        queue_statistics=zeros(nodes.queue_statistics_dtype, len(queues)),
        piconets=zeros(piconets.piconet_dtype, stars),
        links=zeros(piconets.link_dtype, stars * links),
        bridges=zeros(piconets.bridge_dtype, 0),
    )
    sim.counted = lambda: sim
    sim.clock.statistics_since, sim.clock.now = 5 * SECOND, 15 * SECOND
    sim.connections.protocol, sim.connections.application = TCP, POISSON
    sim.connections.session = sim.connections.reverse = NOTHING
    sim.ports.kind = ports
    sim.queues.kind, sim.queues.limit = queues, UNLIMITED
    sim.queue_statistics.changed_at = 5 * SECOND
    sim.piconets.links = links
    sim.links.piconet = np.repeat(np.arange(stars), links)
    return sim


def measured(sim) -> dict[str, Any]:
    """Return the metrics of one replication; with another beside it they are the same."""
    counts = take_counts(sim)
    alone, both = measure(sim, [counts]), measure(sim, [counts, counts])
    for name, values in alone.items():
        np.testing.assert_array_equal(both[name], np.repeat(values, 2, axis=0), err_msg=name)
    return {name: values[0] for name, values in alone.items()}


def test_rates_are_per_second_of_the_measured_time():
    sim = network()
    flow = sim.flow_statistics
    flow.bytes_delivered, flow.bytes_wasted = [12_500, 0], [12_500, 1250]
    flow.bytes_sent = [6250, 1250]  # of the first flow more was under way when the measurement began
    flow.timeouts, flow.fast_retransmits, flow.segments_retransmitted = [5, 0], [0, 10], [20, 1]
    rates = {
        "goodput_kbps": [10.0, 0.0],
        "throughput_kbps": [20.0, 1.0],
        "timeouts_per_s": [0.5, 0.0],
        "fast_retransmits_per_s": [0.0, 1.0],
        "retransmissions_per_s": [2.0, 0.1],
        "fairness": 0.5,
    }
    metrics, counts = measured(sim), take_counts(sim)
    assert {name: metrics[name].tolist() for name in rates} == rates
    assert measurement.drained_kbps(counts.flows, counts.seconds).tolist() == [15.0, 0.0]


def fill(plain, samples, sim, histogram, name, count_of):
    """Count samples (ns) of the first flow as the simulator does."""
    flow = sim.flow_statistics[0]
    for sample in samples:
        plain.histograms.count(histogram[0], sample)
    flow[count_of] = len(samples)
    flow[f"{name}_sum"] = sum(samples)
    flow[f"{name}_squares"] = sum(float(sample) ** 2 for sample in samples)


def test_delays_until_delivery_and_until_acknowledged(plain):
    sim = network()
    delays, later = [10 * MS, 30 * MS], [20 * MS, 20 * MS, 50 * MS]
    fill(plain, delays, sim, sim.delay_histogram, "delay", "messages_delivered")
    fill(plain, later, sim, np.zeros((2, BINS)), "acknowledged_delay", "messages_acknowledged")
    sim.connections.send_buffer = 8
    sim.flow_statistics.messages, sim.flow_statistics.messages_refused = [10, 0], [4, 0]
    metrics = measured(sim)
    names = ("delay_s", "delay_scv", "acknowledged_delay_s", "acknowledged_delay_scv", "messages_refused")
    first, second = zip(*(metrics[name] for name in names), strict=True)
    assert first[:4] == pytest.approx((0.02, 0.25, 0.03, 200 / 900))
    assert first[4] == 0.4
    assert np.isnan(second).all()
    assert metrics["delay_p95_s"][0] == pytest.approx(0.03, rel=1 / 16)


@pytest.mark.parametrize("last", [0.1, 0.1001])
def test_equal_delays_have_no_variance_and_different_ones_have(last):
    """0.1 is no sum of powers of two, so that the sums of equal delays are rounded."""
    delays, one = [0.1] * 59 + [last], np.ones(1)
    (found,) = measurement.scv(60 * one, sum(delays) * one, sum(delay**2 for delay in delays) * one)
    assert found == pytest.approx(
        np.var(delays) / np.mean(delays) ** 2 if last > 0.1 else 0.0, rel=1e-3, abs=0
    )
    assert np.isnan(measurement.scv(0 * one, 0 * one, 0 * one)[0])


def test_losses_are_shares_of_what_was_offered_there():
    sim = network(ports=(UPLINK, OUTSIDE))
    sim.settings.node_buffers = True
    sim.ports.most_transmissions = [3, 0]
    flow = sim.flow_statistics
    flow.packets_sent = 200
    flow.offered_to_token_buffer, flow.refused_at_token_buffer = 160, 40
    flow.offered_to_baseband, flow.refused_at_baseband = 120, 12
    flow.packets_delivered, flow.packets_corrupted = 100, 5
    flow.segments_finished, flow.segments_damaged = 20, 3
    flow.sent_outside = 46  # of which 40 arrived, and were no packets of the radio
    flow.given_up, flow.refused_at_node, flow.lost_outside, flow.refused_on_the_way = 2, 4, 6, 8
    flow.acks_sent, flow.acks_piggybacked = 30, 10
    ended = 100 + 40 + 12 + 2 + 4 + 6 + 8  # delivered, or lost somewhere
    expected = {
        "loss_token_buffer": 0.25,
        "loss_baseband_buffer": 0.1,
        "loss_radio": 5 / (100 - 40),
        "segment_loss": 0.15,
        "loss_arq": 2 / ended,
        "loss_node_buffer": 4 / ended,
        "loss_outside": 6 / 46,
        "loss_relay": 8 / ended,
        "piggybacked_acks": 0.25,
    }
    metrics = measured(sim)
    for name, share in expected.items():
        assert metrics[name].tolist() == pytest.approx([share, share]), name


def test_transmissions_of_a_packet_are_counted_over_radio_hops():
    sim = network(ports=(UPLINK, DOWNLINK, OUTSIDE))
    sim.ports.most_transmissions = [UNLIMITED, UNLIMITED, 0]
    sim.flow_statistics.transmissions = [100, 50]
    assert np.isnan(measured(sim)["transmissions_per_packet"]), "of packets that were sent and not served"
    sim.queue_statistics.served = [60, 40, 1000, 7]  # of the three ports, and of a token buffer
    assert measured(sim)["transmissions_per_packet"] == 1.5
    sim.flow_statistics.parts_passed = [20, 30]  # of segments that cross in several packets
    assert measured(sim)["transmissions_per_packet"] == 1.0


def test_queue_lengths_are_means_over_the_queues_of_a_kind():
    sim = network(queues=(UPLINK, TOKEN_BUFFER, UPLINK, OUTSIDE))
    sim.queue_statistics.area = np.array([1, 8, 2, 0]) * TEN_SECONDS
    sim.queues.length[0], sim.queue_statistics.changed_at[0] = 4, 10 * SECOND  # 4 packets for 5 s more
    sim.queue_statistics.busy = 2 * SECOND
    assert measurement.queue_kinds(sim) == [TOKEN_BUFFER, UPLINK, OUTSIDE]
    assert measured(sim)["queue_packets"].tolist() == [8.0, 2.5, 0.0]
    assert take_counts(sim).busy.tolist() == [0.7, 0.2, 0.2, 0.2], "of 10 s"


@pytest.mark.parametrize(
    ("rates", "index"),
    [([5.0, 5.0], 1.0), ([5.0, 0.0], 0.5), ([0.0, 0.0], np.nan), ([1.0, 2.0, 3.0], 36 / 42)],
)
def test_fairness(rates, index):
    assert jain_index(np.array(rates)) == pytest.approx(index, nan_ok=True)


def test_every_metric_is_in_the_vocabulary():
    sim = network(ports=(UPLINK, OUTSIDE))
    sim.settings.node_buffers = True
    sim.ports.most_transmissions = 2
    sim.sessions = zeros(session_dtype, 1)
    sim.connections.session, sim.connections.send_buffer = 0, 8
    sim.le_links = zeros(le_links.le_link_dtype, 2)
    metrics = measured(sim)
    assert set(metrics) == set(METRICS)
    assert set(metrics) >= LINK_METRICS
