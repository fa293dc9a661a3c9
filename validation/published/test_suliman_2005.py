"""Suliman et al. (2005): each claim has the verdict on record, and where it is not met, what does hold.

Seeds are fixed. Orders and trends are paired t-tests with a false-alarm rate of 0.1 %.
"""

import claims_suliman_2005 as paper
import pytest
from claims import claims_of, mean_over_flows, verdict
from judgement import exceeds

CLAIMS = claims_of(paper.PAPER)


def test_every_claim_is_checked_or_left_to_the_testbed():
    checked = {name for name, claim in CLAIMS.items() if claim["verdict"] != "testbed-only"}
    assert checked == set(paper.CHECKS)
    assert all("reason" in claim for claim in CLAIMS.values() if claim["verdict"] == "not reproduced")


@pytest.mark.parametrize("name", paper.CHECKS)
def test_a_claim_has_the_verdict_on_record(name):
    finding = paper.CHECKS[name]()
    assert verdict([finding.holds]) == CLAIMS[name]["verdict"], finding.seen


@pytest.mark.parametrize("packet", paper.PACKETS)
def test_throughput_never_falls_with_the_window_if_the_gateway_has_room(packet):
    mss = packet - paper.TCP_IP_BYTES
    rates = [
        mean_over_flows(
            paper.simulated(
                "one-of-seven",
                link__node_buffer_bytes=1_000_000,
                transport__mss_bytes=mss,
                traffic__message_bytes=mss,
                transport__receive_window_segments=window * 1024 // mss,
                transport__initial_window_segments=min(2, window * 1024 // mss),
            ),
            "goodput_kbps",
        )
        for window in (2, 4, 64)
    ]
    assert not exceeds(rates[0], rates[1])
    assert not exceeds(rates[1], rates[2])


def test_losses_on_the_wlan_bring_the_mean_round_trip_to_the_published_one():
    means = [
        mean_over_flows(paper.bt.simulate(paper.wlan_with_loss(loss)), "rtt_s").mean()
        for loss in (0.002, 0.005, 0.01)
    ]
    assert means[0] > means[1] > means[2]
    assert means[2] < 0.2777 < means[0]


def test_nothing_is_retransmitted_without_need_by_a_single_transfer():
    result = paper.simulated("round-trips")
    assert (
        abs(paper.unnecessary(result, paper.scenario("round-trips"))) < 1 / 30 * 1.5
    )  # a loss or so at the ends
    assert float(result.rtt_max_s.max()) < 1.0
    assert not result.timeouts_per_s.any()


def test_without_the_first_overshoot_the_congestion_window_stays_below_the_receive_window():
    _, cwnd = paper.largest_windows(transport__initial_ssthresh_segments=paper.OVERSHOOT_FREE)
    assert cwnd < 44


def test_buffers_of_their_own_make_all_connections_equal():
    result = paper.connections(
        7, link__node_buffer_bytes=None, flow_control__central_buffer_packets=170, run__replications=2
    )
    assert float(result.fairness.min()) > 0.9999
