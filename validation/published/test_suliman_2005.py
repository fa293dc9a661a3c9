"""Suliman et al. (2005): what does hold where a claim is not met.

Seeds are fixed. Orders and trends are paired t-tests with a false-alarm rate of 0.1 %.
"""

import pytest

from btqueue.reproduction.claims import suliman_2005
from btqueue.reproduction.claims.engines import Simulator
from btqueue.reproduction.claims.judgement import exceeds

SIMULATOR = Simulator()


@pytest.mark.parametrize("packet", [256, 512, 1024, 1500])
def test_throughput_never_falls_with_the_window_if_the_gateway_has_room(packet):
    mss = packet - 40
    sizes = {"transport__mss_bytes": mss, "traffic__message_bytes": mss, "link__node_buffer_bytes": 10**6}
    rates = [
        SIMULATOR.sample(
            suliman_2005.scenario("one-of-seven"),
            "goodput_kbps",
            **sizes,
            transport__receive_window_segments=window * 1024 // mss,
            transport__initial_window_segments=min(2, window * 1024 // mss),
        )
        for window in (2, 4, 64)
    ]
    assert not exceeds(rates[0], rates[1])
    assert not exceeds(rates[1], rates[2])


def test_losses_on_the_wlan_bring_the_mean_round_trip_to_the_published_one():
    means = [
        SIMULATOR(suliman_2005.wlan_with_loss(loss)).mean_over_flows("rtt_s").mean()
        for loss in (0.002, 0.005, 0.01)
    ]
    assert means[0] > means[1] > means[2]
    assert means[2] < 0.2777 < means[0]


def test_nothing_is_retransmitted_without_need_by_a_single_transfer():
    scenario = suliman_2005.scenario("round-trips")
    result = SIMULATOR(scenario)
    assert abs(suliman_2005.unnecessary(result, scenario)) < 1 / 30 * 1.5  # a loss or so at the ends
    assert float(result["rtt_max_s"].max()) < 1.0
    assert not result["timeouts_per_s"].any()


def test_without_the_first_overshoot_the_congestion_window_stays_below_the_receive_window():
    _, cwnd = suliman_2005.largest_windows(
        SIMULATOR, transport__initial_ssthresh_segments=suliman_2005.OVERSHOOT_FREE
    )
    assert cwnd < 44


def test_buffers_of_their_own_make_all_connections_equal():
    keys = {"link.node_buffer_bytes": None, "flow_control.central_buffer_packets": 170, "run.replications": 2}
    result = SIMULATOR(suliman_2005.scenario("connections").changed(keys))
    assert float(result["fairness"].min()) > 0.9999
