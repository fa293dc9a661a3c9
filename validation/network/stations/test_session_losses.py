"""The chain of CentaurusComm objects, and sessions worked out by hand."""

import numpy as np
import pytest
from beside import doubted
from thesis import thesis_of

import btqueue as bt
from btqueue.network.stations.model import answer
from btqueue.scenario import Scenario
from btqueue.transport.centaurus_transaction import Branch, Transaction, mean_time

TIMES = {"data_s": 0.005, "control_s": 0.010, "setup_s": 0.030}
# packets, data loss, control loss, mean (s): computed independently, confirmed by Monte Carlo to three digits
CHECKED = [
    (16, 0.1, 0.05, 1.019591),
    (64, 0.05, 0.02, 0.754864),
    (128, 0.2, 0.0, 0.937452),
    (1, 0.1, 0.05, 0.715685),
]


def transaction(packets, data_loss, control_loss, watchdog_s=2.0):
    """One time and one loss for every control message; the watchdog runs from when one should have come."""
    data_s, control_s, setup_s = TIMES.values()
    kept = 1.0 - control_loss
    lost = [
        Branch(kept**k * control_loss, setup_s + (k + 1) * control_s + watchdog_s, False) for k in range(3)
    ]
    burst = np.arange(packets + 1) * data_s + control_s
    # a lost answer is noticed one message later than a lost DONE: the mean of both, given that one is lost
    later = kept / (1.0 + kept) * control_s
    return Transaction(
        offer=(*lost, Branch(kept**3, setup_s + 3 * control_s, True)),
        burst_s=tuple(burst),
        answer_s=control_s,
        hang_s=tuple(burst + later + watchdog_s),
        data_loss=data_loss,
        done_loss=control_loss,
        answer_loss=control_loss,
    )


def expected_rounds(packets, data_loss):
    """Sum of 1 - (1 - p^k)^N over rounds k."""
    return sum(1.0 - (1.0 - data_loss**k) ** packets for k in range(200))


@pytest.mark.parametrize(("packets", "data_loss", "control_loss", "mean"), CHECKED)
def test_mean_of_the_chain(packets, data_loss, control_loss, mean):
    assert mean_time(transaction(packets, data_loss, control_loss)) == pytest.approx(mean, abs=6e-7)


@pytest.mark.parametrize("packets", [1, 5, 128])
@pytest.mark.parametrize("loss", [0.0, 0.03, 0.2, 0.6])
def test_closed_form_without_control_loss(packets, loss):
    data_s, control_s, setup_s = TIMES.values()
    rounds = expected_rounds(packets, loss)
    closed = setup_s + 3 * control_s + packets * data_s / (1.0 - loss) + 2 * control_s * rounds
    assert mean_time(transaction(packets, loss, 0.0)) == pytest.approx(closed, rel=1e-10)


def test_one_segment_each_way_by_hand():
    """Two trips: 72 and 104 bytes at 10 Mbit/s, 1 ms each way, 0.5 ms of processing on average."""
    solved = bt.solve(bt.load("avancha-2002/ethernet").with_(traffic__reply_bytes=64))
    trips = 2 * (0.001 + 0.0005) + 8 * (72 + 104) / 10e6
    assert float(solved.session_time_s[0]) == pytest.approx(trips, rel=1e-9)


def test_bluetooth_session_by_hand():
    """33 slots: from the request that waits behind an acknowledgement to the last fragment of the reply."""
    solved = bt.solve(bt.load("avancha-2002/bluetooth-tcp"))
    assert float(solved.session_time_s[0]) == pytest.approx(33 * 625e-6, rel=1e-9)


def with_links(scenario: Scenario, **changes) -> Scenario:
    """Return a scenario with other outside links."""
    data = scenario.to_dict()
    for link in data["network"]["outside_links"]:
        link.update(changes)
    return thesis_of(data)


def lossy(**link) -> Scenario:
    return with_links(bt.load("avancha-2002/cdpd-tcp"), **link)


SESSIONS = {
    "over a shared cell": bt.load("avancha-2002/wlan-tcp"),
    "over a shared cell, 30 kB": bt.load("avancha-2002/wlan-tcp").with_(traffic__reply_bytes=30_000),
    "over a wire": bt.load("avancha-2002/ethernet"),
    "by connections of their own, 663 bytes": lossy(loss=0.0, buffer_packets=1000).with_(
        traffic__request_bytes=663, transport__connection_per_session=True, transport__handshake=True
    ),
    "polled": bt.load("avancha-2002/bluetooth-tcp").with_(traffic__reply_bytes=4244),
    "polled, no jitter": bt.load("avancha-2002/bluetooth-tcp").with_(
        traffic__reply_bytes=430, run__jitter_s=0
    ),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_rare_losses_change_nothing(name):
    """The law of losses, at next to none, gives what the recursion without any gives."""
    scenario = SESSIONS[name]
    if scenario.network.outside_links:
        rare = with_links(scenario, loss=1e-9)
    else:
        rare = scenario.with_(link__arq="none", radio__model="constant", radio__ber=1e-13)
    exact, limit = answer(scenario)[0], answer(rare)[0]
    for metric in ("session_time_s", "sessions_per_s", "goodput_kbps", "rtt_s"):
        np.testing.assert_allclose(limit[metric], exact[metric], rtol=1e-5, err_msg=metric)


@pytest.mark.parametrize(("places", "expected"), [(4, True), (20, False)])
def test_overflows_of_a_buffer_are_a_doubt(places, expected):
    """Eight segments in a row meet a buffer of four places."""
    asked = lossy(buffer_packets=places, loss=0.001).with_(traffic__request_bytes=4096)
    assert doubted(asked, "overflows a buffer") is expected


def test_a_handshake_is_repeated_a_geometric_number_of_times():
    """SYN and SYN-ACK of 40 bytes, two blocks each: lost with 1 - 0.99^4, the timer 3, 6, ... s."""
    one_each = {"transport__connection_per_session": True, "transport__handshake": True}
    scenario = lossy(loss=0.01, delay_s=0.5).with_(**one_each)
    lost = 1 - 0.99**4
    waits = sum(min(3.0 * 2**k, 64.0) * lost ** (k + 1) for k in range(100))
    expected = 2 * (0.5 + 8 * 40 / 19200) + waits
    assert float(bt.solve(scenario).connect_time_s[0]) == pytest.approx(expected, rel=1e-8)


def test_a_lost_segment_waits_for_the_timer_by_hand():
    """One segment each way: each loss costs the least timeout of 1 s, then 2, 4, ... s."""
    scenario = lossy(loss=0.02, buffer_packets=1000, delay_s=0.1).with_(
        traffic__request_bytes=64, traffic__reply_bytes=64, traffic__goodbye_bytes=0, traffic__pause_s=60.0
    )
    solved, exact = bt.solve(scenario), bt.solve(with_links(scenario, loss=0.0))
    lost = 1 - 0.98**3  # blocks of a segment
    waits = sum(min(2.0**k, 64.0) * lost ** (k + 1) for k in range(100))
    assert float(solved.session_time_s[0] - exact.session_time_s[0]) == pytest.approx(2.0 * waits, rel=1e-6)


@pytest.mark.parametrize(("loss", "expected"), [(0.00002, False), (0.0001, True)])
def test_windows_that_losses_keep_small_are_a_doubt(loss, expected):
    """Of 16 segments 3/8 of 256 pass until a window that was halved is open again: at 0.05 of them."""
    scenario = lossy(loss=loss, buffer_packets=1000, rate_kbps=1e6).with_(traffic__request_bytes=16 * 512)
    assert doubted(scenario, "smaller windows") is expected
