"""Vegas's window: per acknowledgement (Johansson 2000, section 3.3) and per round trip (Linux, ns-3)."""

from itertools import pairwise

import pytest
from tcp_sender_calls import MS, Sender


class Path(Sender):
    """A Vegas sender over a path with a fixed delay and a bottleneck that serves one after the other (ms)."""

    def __init__(self, plain, *, ssthresh=1e9, delay=100, service=10, **options):
        law = {"alpha": 1.0, "beta": 3.0, "variant": plain.records.VEGAS}
        super().__init__(plain, ssthresh=ssthresh, rwnd=100, timestamps=False, **law | options)
        self.vegas = plain.vegas
        self.delay, self.service, self.free_at, self.now = delay, service, 0, 0
        self.arrivals = []
        self.forward(self.send())

    def forward(self, sent):
        for _ in sent:
            self.free_at = max(self.free_at, self.now) + self.service
            self.arrivals.append(self.free_at + self.delay)

    def run(self, acks):
        """Play so many acknowledgements; return cwnd after each."""
        windows = []
        for _ in range(acks):
            self.now = self.arrivals.pop(0)
            self.forward(self.ack(self.conn.snd_una + 1, at=self.now))
            windows.append(float(self.conn.cwnd))
        return windows


PER_ACK, PER_RTT = 0, 1


@pytest.mark.parametrize("start", [4.0, 40.0])
@pytest.mark.parametrize(
    ("options", "least", "most"),
    [
        ({"vegas_adjustment": PER_ACK}, 1 - 0.1, 3 + 0.1),
        # whole segments: cwnd - floor(cwnd BaseRTT / RTT) is 2 to 4
        ({"vegas_adjustment": PER_RTT, "alpha": 2.0, "beta": 4.0}, 1, 4),
    ],
)
def test_between_alpha_and_beta_segments_are_kept_in_the_queue(plain, start, options, least, most):
    # the path holds 11 segments (110 ms at one per 10 ms)
    tcp = Path(plain, cwnd=start, ssthresh=2.0, **options)
    tcp.conn.base_rtt = 110 * MS  # as a single segment would have measured
    tcp.run(800)
    assert 11 + least <= tcp.conn.cwnd <= 11 + most


def test_per_ack_opens_by_a_fraction_at_each_acknowledgement(plain):
    tcp = Path(plain, vegas_adjustment=PER_ACK, cwnd=4.0, ssthresh=2.0)
    assert all(after == before + 1 / before for before, after in pairwise(tcp.run(9)))


def test_per_ack_slow_start_doubles_in_every_other_round_trip(plain):
    tcp = Path(plain, vegas_adjustment=PER_ACK, cwnd=1.0, delay=1000, service=1)
    windows = [tcp.run(int(tcp.conn.snd_nxt - tcp.conn.snd_una))[-1] for _ in range(8)]
    assert windows == [2, 2, 4, 4, 8, 8, 16, 16]


def test_per_ack_slow_start_ends_when_more_than_gamma_segments_queue(plain):
    tcp = Path(plain, vegas_adjustment=PER_ACK, cwnd=1.0)
    tcp.run(150)
    assert tcp.conn.cwnd >= tcp.conn.ssthresh, "in congestion avoidance"
    assert tcp.conn.ssthresh <= 32


def test_per_ack_the_third_duplicate_halves_cwnd_and_the_first_new_ack_ends_recovery(plain):
    # Johansson 2000, section 3.3
    tcp = Path(plain, vegas_adjustment=PER_ACK, cwnd=10.0, ssthresh=2.0)
    tcp.run(30)
    window = float(tcp.conn.cwnd)
    tcp.acks(*[tcp.conn.snd_una] * 3)
    assert (tcp.conn.ssthresh, tcp.conn.cwnd) == (window / 2, window / 2 + 3)
    tcp.ack(tcp.conn.snd_una + 2)
    assert (tcp.conn.in_recovery, tcp.conn.cwnd) == (False, window / 2)


def test_per_round_leaves_slow_start_for_the_window_that_fits(plain):
    tcp = Path(plain, vegas_adjustment=PER_RTT, cwnd=2.0, alpha=2.0, beta=4.0)
    windows = tcp.run(120)
    # The path holds 11. A queue shows one round trip late, so the window doubles at most once too often from
    # 12 or less; NewReno would have reached 122.
    assert max(windows) < 4 * 12
    assert tcp.conn.cwnd >= tcp.conn.ssthresh
    assert tcp.conn.ssthresh >= 0.75 * tcp.conn.cwnd


def test_per_round_with_few_samples_grows_as_newreno(plain):
    tcp = Path(plain, vegas_adjustment=PER_RTT, cwnd=2.0, ssthresh=2.0, alpha=2.0, beta=4.0)
    tcp.run(1)
    before = float(tcp.conn.cwnd)
    tcp.conn.round_samples, tcp.conn.round_end = 0, tcp.conn.snd_una + 1
    tcp.run(1)
    assert tcp.conn.cwnd == before + 1 / before


def test_on_srtt_the_smoothed_time_takes_the_place_of_samples(plain):
    tcp = Path(plain, vegas_adjustment=PER_RTT, cwnd=8.0, ssthresh=2.0, vegas_on_srtt=True)
    tcp.run(4)
    assert tcp.conn.srtt > 110 * MS, "the first was 110 ms, the others waited"
    tcp.conn.base_rtt, tcp.conn.round_samples = 0, 0
    tcp.vegas.observe(tcp.conn, tcp.starts, 50 * MS, tcp.now * MS)
    assert tcp.conn.base_rtt == tcp.conn.round_rtt == int(tcp.conn.srtt)
    tcp.vegas.observe(tcp.conn, tcp.starts, tcp.records.NOTHING, tcp.now * MS)
    assert tcp.conn.round_samples == 2, "also when there is no sample"


def test_per_round_grows_as_newreno_after_a_timeout(plain):
    tcp = Path(plain, vegas_adjustment=PER_RTT, cwnd=16.0, ssthresh=2.0, alpha=2.0, beta=4.0)
    tcp.timeout(at=1000)
    assert tcp.conn.cwnd == 1.0
    assert tcp.run(1) == [2.0], "slow start"
