"""The chain of CentaurusComm objects, the chain of a TCP sender, and sessions worked out by hand."""

import heapq
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thesis import thesis_of

import btqueue as bt
from btqueue.network.stations import session_losses
from btqueue.network.stations.model import answer
from btqueue.network.stations.session_losses import Chain, Sender, costs, lay_out
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


ROUND_TRIP, OUT, SPACING, TIMER = 0.5, 0.3, 0.02, 4.0
SENDER = Sender(
    messages=(1,), loss=0.2, last_loss=(0.2,), ack_loss=0.0, gaps_s=(1.0,), round_trip_s=ROUND_TRIP,
    spacing_s=SPACING, last_spacing_s=(SPACING,), back_s=ROUND_TRIP - OUT, answer_s=(0.0,), room=1000,
    windows=(8, 2.0, 64.0), timer_s=(TIMER, TIMER, 64 * TIMER), fresh=True,
)  # fmt: skip
"""Every timeout is the least one, doubled: round trips are much shorter."""


def timeout(doublings):
    return TIMER * 2.0 ** min(doublings, 6)


def alone(loss, doublings):
    """Mean time until a segment has arrived that is sent alone, its timer doubled so often."""
    if doublings > 60:
        return OUT
    return (1 - loss) * OUT + loss * (timeout(doublings) + alone(loss, doublings + 1))


def two_by_one(loss, doublings):
    """The same of two segments, sent one after the other after an expiry."""
    if doublings > 60:
        return OUT
    again = timeout(doublings) + two_by_one(loss, doublings + 1)
    return (1 - loss) * (ROUND_TRIP + alone(loss, 0)) + loss * again


@pytest.fixture
def nothing_left_out(monkeypatch):
    monkeypatch.setattr(session_losses, "NEGLIGIBLE", 1e-13)
    monkeypatch.setattr(session_losses, "UNFOLLOWED", {True: 1e-12, False: 1e-12})


@pytest.mark.parametrize("loss", [0.01, 0.2, 0.4])
def test_a_single_segment_is_lost_a_geometric_number_of_times(loss, nothing_left_out):
    found = Chain(replace(SENDER, loss=loss, last_loss=(loss,))).solve()
    assert found.spans_s[0] == pytest.approx(alone(loss, 0), rel=1e-7)
    assert found.counts[0] == pytest.approx(loss / (1 - loss), rel=1e-7)
    assert found.counts[1] == 0.0


@pytest.mark.parametrize("loss", [0.01, 0.2, 0.4])
def test_two_segments_by_enumeration(loss, nothing_left_out):
    """Both sent at once: four fates, after which single segments are left, or both by slow start."""
    found = Chain(replace(SENDER, messages=(2,), loss=loss, last_loss=(loss,))).solve()
    mean = (
        (1 - loss) ** 2 * (OUT + SPACING)
        + loss * (1 - loss) * (timeout(0) + alone(loss, 1))
        + (1 - loss) * loss * (ROUND_TRIP + timeout(0) + alone(loss, 1))
        + loss**2 * (timeout(0) + two_by_one(loss, 1))
    )
    assert found.spans_s[0] == pytest.approx(mean, rel=1e-6)


def test_segments_of_a_long_message_that_are_sent_one_by_one_each_wait_for_their_own_timer(nothing_left_out):
    """A window of one: of 100 segments, not all of which are solved, each is a message of its own."""
    count, loss = 100, 0.2
    found = costs(replace(SENDER, messages=(count,), loss=loss, last_loss=(loss,), windows=(1, 1.0, 2.0)))
    assert found.spans_s[0] == pytest.approx(count * (alone(loss, 0) - OUT), rel=1e-7)
    assert found.counts == pytest.approx([count * loss / (1 - loss), 0.0], rel=1e-7)


def test_three_duplicates_save_a_timeout(nothing_left_out):
    """Of 8 segments sent at once the first is resent in a round trip; of 3 it waits for the timer."""
    rare = replace(SENDER, windows=(8, 8.0, 64.0), loss=1e-4, last_loss=(1e-4,))
    long, short = (Chain(replace(rare, messages=(count,))).solve() for count in (8, 3))
    assert long.counts[1] == pytest.approx(5e-4, rel=1e-2), "one of the first five"
    assert long.counts[0] == pytest.approx(3e-4, rel=1e-2)
    assert tuple(short.counts[::-1]) == pytest.approx((0.0, 3e-4), rel=1e-2)


@st.composite
def bursts(draw):
    """A number of segments, the first window, a threshold, the places of the bottleneck."""
    count = draw(st.integers(1, 24))
    return count, draw(st.integers(1, 12)), draw(st.integers(2, 16)), draw(st.integers(1, 30))


@given(bursts(), st.floats(0.05, 1.0))
def test_segments_follow_each_other_as_played_one_by_one(burst, round_trip):
    """The recursion beside a heap of events, up to the first segment that finds no room."""
    count, window, threshold, room = burst
    windows, value = [], float(window)
    for _ in range(count):
        windows.append(value)
        value += 1.0 if value < threshold else 1.0 / value
    course = replace(SENDER, messages=(count,), room=room, round_trip_s=round_trip, windows=(1000, 1.0, 64.0))
    way = lay_out(course, np.array([0]), np.array([count]), np.array([windows]))
    sent, acknowledged, busy, heap = [], [], [], [(0.0, -1)]
    while heap and len(acknowledged) < count:
        now, number = heapq.heappop(heap)
        if number >= 0:
            acknowledged.append(now)
        while len(sent) < count and len(sent) - len(acknowledged) < int([*windows, value][len(acknowledged)]):
            if sum(end > now + 1e-12 for end in busy) >= room:
                assert way.full[0, len(sent)]
                np.testing.assert_allclose(way.sent[0, : len(sent)], sent, atol=1e-9)
                return
            assert not way.full[0, len(sent)]
            sent.append(now)
            busy.append(max([now, *busy[-1:]]) + SPACING)
            heapq.heappush(heap, (busy[-1] + round_trip - SPACING, len(sent)))
    np.testing.assert_allclose(way.sent[0], sent, atol=1e-9)
    np.testing.assert_allclose(way.acknowledged[0], acknowledged, atol=1e-9)


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
    """The chain of losses, at next to none, gives what the recursion without any gives."""
    scenario = SESSIONS[name]
    if scenario.network.outside_links:
        rare = with_links(scenario, loss=1e-9)
    else:
        rare = scenario.with_(link__arq="none", radio__model="constant", radio__ber=1e-13)
    exact, limit = answer(scenario)[0], answer(rare)[0]
    for metric in ("session_time_s", "sessions_per_s", "goodput_kbps", "rtt_s"):
        np.testing.assert_allclose(limit[metric], exact[metric], rtol=1e-5, err_msg=metric)


@pytest.mark.parametrize(("places", "doubted"), [(4, True), (20, False)])
def test_overflows_of_a_buffer_are_a_doubt(places, doubted):
    """Eight segments in a row meet a buffer of four places."""
    solved = bt.solve(lossy(buffer_packets=places, loss=0.001).with_(traffic__request_bytes=4096))
    assert any("overflows a buffer" in warning for warning in solved.attrs["warnings"]) == doubted


def test_a_handshake_is_repeated_a_geometric_number_of_times():
    """SYN and SYN-ACK of 40 bytes, two blocks each: lost with 1 - 0.99^4, the timer 3, 6, ... s."""
    one_each = {"transport__connection_per_session": True, "transport__handshake": True}
    scenario = lossy(loss=0.01, delay_s=0.5).with_(**one_each)
    lost = 1 - 0.99**4
    waits = sum(min(3.0 * 2**k, 64.0) * lost ** (k + 1) for k in range(100))
    expected = 2 * (0.5 + 8 * 40 / 19200) + waits
    assert float(bt.solve(scenario).connect_time_s[0]) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("unmeasured", [0.0, 0.25])
def test_the_handshake_is_the_first_sample_of_a_connection(unmeasured, nothing_left_out):
    """R + 4 R/2 of a SYN of 2 s; the initial timeout after a SYN that was lost (RFC 6298, 5.7)."""
    begun = replace(SENDER, timer_s=(8.0, 1.0, 1000.0), backoff=False, handshake=(2.0, unmeasured))
    loss, timer = SENDER.loss, (1 - unmeasured) * 6.0 + unmeasured * 8.0
    assert Chain(begun).solve().spans_s[0] == pytest.approx(OUT + timer * loss / (1 - loss), rel=1e-7)


def test_the_first_timeout_is_forgotten():
    """In the long run nothing depends on it: no stage is one of the first session."""
    first, other = (lossy().with_(transport__initial_rto_s=rto) for rto in (3.0, 5.0))
    assert float(bt.solve(first).goodput_kbps[0]) == float(bt.solve(other).goodput_kbps[0])
