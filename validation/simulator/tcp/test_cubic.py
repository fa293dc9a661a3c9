"""CUBIC: the curve, the window after losses, and where Reno's window is larger (RFC 9438)."""

import pytest
from tcp_sender_calls import Sender

SECOND = 1_000_000_000
C, BETA = 0.4, 0.7


class Flow(Sender):
    """A CUBIC sender; `grow` lets segments arrive at a given second."""

    def __init__(self, plain, *, prior=0.0, srtt_s=0.0, **options):
        usual = {"variant": plain.records.CUBIC, "cubic_epoch": -1, "ssthresh": 2.0, "rwnd": 10**6}
        own = {"snd_una": 10, "cubic_prior": prior, "srtt": srtt_s * SECOND}
        super().__init__(plain, **usual | own | options)
        self.cubic = plain.cubic

    def grow(self, at_s, arrived=1.0):
        self.cubic.grow(self.conn, arrived, int(at_s * SECOND))
        return float(self.conn.cwnd)


def test_the_window_returns_to_its_height_at_the_loss_after_k_seconds(plain):
    # section 4.2: K = cbrt((W_max - cwnd_epoch) / C)
    tcp = Flow(plain, cwnd=70.0, cubic_max=100.0, prior=100.0)
    k = (30.0 / C) ** (1 / 3)
    for step in range(4001):
        window = tcp.grow(k * step / 4000, arrived=0.0)
    assert tcp.conn.cubic_k == pytest.approx(k)
    assert window == pytest.approx(100.0, abs=0.1)


def test_the_target_is_that_of_a_round_trip_later_and_at_most_half_as_much_again(plain):
    tcp = Flow(plain, cwnd=100.0, srtt_s=2.0)
    assert tcp.grow(1.0, arrived=0.0) == pytest.approx(100.0 + C * 2.0**3 / 100.0)
    tcp = Flow(plain, cwnd=100.0, srtt_s=60.0)
    assert tcp.grow(1.0, arrived=0.0) == 100.5


def test_a_short_round_trip_follows_renos_window(plain):
    # section 4.3: W_est opens by 3 (1 - beta) / (1 + beta) a round trip up to the window of the loss
    tcp = Flow(plain, cwnd=7.0, cubic_max=10.0, prior=10.0, srtt_s=0.001)
    for step in range(1000):
        window = tcp.grow(step * 0.001 / 8)
        if window >= 10.0:
            break
    trips = (step + 1) / 8.4  # about as many acknowledgements a round trip as the mean window
    assert 3.0 / trips == pytest.approx(3 * (1 - BETA) / (1 + BETA), rel=0.05)


@pytest.mark.parametrize("sack", [False, True])
def test_a_loss_leaves_seven_tenths(plain, sack):
    tcp = Flow(plain, cwnd=20.0, in_flight=20, sack=sack, sack_blocks=3)
    for last in (12, 13, 14):
        tcp.ack(10, blocks=[(11, last)] if sack else ())
    assert tcp.conn.in_recovery
    assert tcp.conn.ssthresh == pytest.approx(14.0)
    assert (tcp.conn.cubic_max, tcp.conn.cubic_epoch) == (20.0, -1)


def test_fast_convergence_gives_way_when_the_window_was_larger_before(plain):
    # section 4.7: W_max = cwnd (1 + beta) / 2 when the window is below the last W_max
    tcp = Flow(plain, cwnd=20.0, cubic_max=30.0, in_flight=20)
    for _ in range(3):
        tcp.ack(10)
    assert tcp.conn.cubic_max == pytest.approx(20.0 * (1 + BETA) / 2)


def test_after_a_timeout_the_curve_begins_at_its_top(plain):
    # section 4.8: K = 0 and W_max the window when congestion avoidance begins
    tcp = Flow(plain, cwnd=20.0, cubic_max=30.0, in_flight=20)
    tcp.timeout(at=5000)
    assert tcp.conn.ssthresh == pytest.approx(14.0)
    tcp.conn.cwnd = 14.0
    tcp.grow(10.0)
    assert (tcp.conn.cubic_k, tcp.conn.cubic_max) == (0.0, 14.0)


def test_time_in_which_the_window_does_not_limit_does_not_count(plain):
    # section 5.8: a new epoch begins
    tcp = Flow(plain, cwnd=20.0, in_flight=3, window_limited_growth=True, cubic_epoch=5)
    tcp.ack(11, at=100_000)
    assert (tcp.conn.cwnd, tcp.conn.cubic_epoch) == (20.0, -1)


@pytest.mark.parametrize(
    ("cwnd", "count", "rtt_ms", "gap_ms", "left"),
    [
        # one a millisecond: over half of 40 ms and of the one that they may be held, after 21
        (32.0, 21, 40, 1, False),
        (32.0, 22, 40, 1, True),
        (32.0, 60, 40, 3, False),  # a gap ends the train
        # the eighth of 40 ms by which round trips may grow is 5 ms; eight samples do not count yet
        (32.0, 9, 45, 3, False),
        (32.0, 8, 46, 3, False),
        (32.0, 9, 46, 3, True),
        (15.0, 60, 90, 1, False),  # a small window goes on
    ],
)
def test_trains_and_growing_round_trips_end_slow_start(plain, cwnd, count, rtt_ms, gap_ms, left):
    usual = {"hystart": True, "base_rtt": 40 * SECOND // 1000, "round_end": 10}
    tcp = Flow(plain, cwnd=cwnd, ssthresh=1e6, in_flight=64, **usual)
    for place in range(count):
        tcp.conn.snd_una += 1
        tcp.cubic.look_for_exit(tcp.conn, rtt_ms * SECOND // 1000, place * gap_ms * SECOND // 1000)
    assert tcp.conn.slow_start_left == left
    assert (tcp.conn.ssthresh == cwnd) == left


def test_whole_segments_come_at_most_every_second_arrival(plain):
    # six seconds on, the curve would open by more than half of the window in a round trip
    tcp = Flow(plain, cwnd=100.0, cubic_max=400.0, prior=400.0, byte_counting=True)
    assert tcp.grow(0.0, arrived=0.0) == 100.0
    for arrival in range(100):
        assert tcp.grow(6.0 + arrival * 1e-4) == 100.0 + (arrival + 1) // 2
