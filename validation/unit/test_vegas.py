"""Vegas's window: per acknowledgement (Johansson 2000, section 3.3) and per round trip (Linux, ns-3)."""

import itertools

import numpy as np
import pytest

MS = 1_000_000
SECOND = 1000 * MS
RING = 256


class Path:
    """A Vegas sender over a path with a fixed delay and a bottleneck that serves one after the other."""

    def __init__(self, plain, *, adjustment, cwnd, ssthresh=1e9, delay=100, service=10, **options):
        self.tcp, self.vegas, self.records = plain.sender, plain.vegas, plain.records
        self.conn = np.zeros(1, plain.records.connection_dtype).view(np.recarray)[0]
        self.statistics = np.zeros(1, plain.records.flow_statistics_dtype).view(np.recarray)[0]
        self.board, self.sent_at = np.zeros(RING, np.uint8), np.zeros(RING, np.int64)
        self.starts = np.zeros(RING, np.int64)
        self.rings = self.board, self.sent_at, self.starts
        self.histogram = np.zeros(plain.histograms.BINS, np.int64)
        conn = self.conn
        conn.variant, conn.adjustment, conn.unit = plain.records.VEGAS, adjustment, 1
        conn.written, conn.cwnd, conn.ssthresh, conn.rwnd = 10**6, cwnd, ssthresh, 200
        conn.recover, conn.rto_deadline = -1, plain.records.NEVER
        conn.rto, conn.min_rto, conn.max_rto = 3 * SECOND, SECOND, 64 * SECOND
        conn.alpha, conn.beta, conn.gamma = 1.0, 3.0, 1.0
        for name, value in options.items():
            setattr(conn, name, value)
        self.delay, self.service, self.free_at, self.now = delay * MS, service * MS, 0, 0
        self.acks = []
        self.send()

    def send(self):
        while True:
            number = self.tcp.next_segment(
                self.conn, self.board, self.sent_at, self.starts, self.statistics, self.now
            )
            if number == self.records.NOTHING:
                return
            self.free_at = max(self.free_at, self.now) + self.service
            self.acks.append(self.free_at + self.delay)

    def run(self, acks):
        """Play so many acknowledgements; return cwnd after each."""
        windows = []
        for _ in range(acks):
            self.now = self.acks.pop(0)
            segment = np.zeros(1, self.records.segment_dtype).view(np.recarray)[0]
            segment.kind, segment.ack = self.records.ACK, self.conn.snd_una + 1
            self.tcp.on_ack(
                self.conn,
                self.board,
                self.sent_at,
                self.starts,
                self.statistics,
                self.histogram,
                segment,
                self.now,
            )
            self.send()
            windows.append(float(self.conn.cwnd))
        return windows


@pytest.fixture
def path(plain):
    return lambda **state: Path(plain, **state)


PER_ACK, PER_RTT = 0, 1


def test_per_ack_keeps_between_alpha_and_beta_segments_in_the_queue(path):
    # the path holds 11 segments (110 ms at one per 10 ms)
    for start in (4.0, 40.0):
        tcp = path(adjustment=PER_ACK, cwnd=start, ssthresh=2.0)
        tcp.conn.base_rtt = 110 * MS  # as a single segment would have measured
        tcp.run(800)
        assert 11 + 1 - 0.1 <= tcp.conn.cwnd <= 11 + 3 + 0.1


def test_per_ack_opens_by_a_fraction_at_each_acknowledgement(path):
    tcp = path(adjustment=PER_ACK, cwnd=4.0, ssthresh=2.0)
    windows = tcp.run(9)
    for before, after in itertools.pairwise(windows):
        assert after == before + 1 / before


def test_per_ack_slow_start_doubles_in_every_other_round_trip(path):
    tcp = path(adjustment=PER_ACK, cwnd=1.0, delay=1000, service=1)
    windows = [tcp.run(int(tcp.conn.snd_nxt - tcp.conn.snd_una))[-1] for _ in range(8)]
    assert windows == [2, 2, 4, 4, 8, 8, 16, 16]


def test_per_ack_slow_start_ends_when_more_than_gamma_segments_queue(path):
    tcp = path(adjustment=PER_ACK, cwnd=1.0)
    tcp.run(150)
    assert tcp.conn.cwnd >= tcp.conn.ssthresh, "in congestion avoidance"
    assert tcp.conn.ssthresh <= 32


def test_per_ack_excess_is_expected_less_actual_times_base_rtt(path):
    # cwnd 6, of which 4 were sent while the marked segment took 150 ms; BaseRTT 100 ms
    tcp = path(adjustment=PER_ACK, cwnd=6.0, ssthresh=2.0)
    conn = tcp.conn
    conn.base_rtt, conn.round_first, conn.round_end, conn.round_started_at = 100 * MS, 20, 21, 50 * MS
    conn.snd_una, conn.snd_max = 21, 24
    tcp.vegas.observe(conn, tcp.starts, 150 * MS, 200 * MS)
    assert conn.vegas_excess == pytest.approx((6 / 100 - 4 / 150) * 100)
    assert conn.round_end == 0


def test_per_ack_a_loss_voids_the_measurement(path):
    tcp = path(adjustment=PER_ACK, cwnd=6.0, ssthresh=2.0)
    assert tcp.conn.round_end == 1
    tcp.tcp.on_timeout(tcp.conn, tcp.board, tcp.sent_at, tcp.starts, tcp.statistics, SECOND)
    assert tcp.conn.round_end == 0


def test_per_ack_the_third_duplicate_halves_cwnd_and_the_first_new_ack_ends_recovery(path):
    # Johansson 2000, section 3.3
    tcp = path(adjustment=PER_ACK, cwnd=10.0, ssthresh=2.0)
    tcp.run(30)
    window = float(tcp.conn.cwnd)
    segment = np.zeros(1, tcp.records.segment_dtype).view(np.recarray)[0]
    segment.kind, segment.ack = tcp.records.ACK, tcp.conn.snd_una
    for _ in range(3):
        tcp.tcp.on_ack(tcp.conn, *tcp.rings, tcp.statistics, tcp.histogram, segment, tcp.now)
    assert tcp.conn.ssthresh == window / 2
    assert tcp.conn.cwnd == window / 2 + 3
    segment.ack = tcp.conn.snd_una + 2
    tcp.tcp.on_ack(tcp.conn, *tcp.rings, tcp.statistics, tcp.histogram, segment, tcp.now)
    assert not tcp.conn.in_recovery
    assert tcp.conn.cwnd == window / 2


def test_per_round_keeps_between_alpha_and_beta_segments_in_the_queue(path):
    # whole segments: cwnd - floor(cwnd BaseRTT / RTT) is 2 to 4
    for start in (4.0, 40.0):
        tcp = path(adjustment=PER_RTT, cwnd=start, ssthresh=2.0, alpha=2.0, beta=4.0)
        tcp.conn.base_rtt = 110 * MS
        tcp.run(800)
        assert 11 + 1 <= tcp.conn.cwnd <= 11 + 4


def test_per_round_moves_by_one_segment_at_the_end_of_a_round_trip(path):
    tcp = path(adjustment=PER_RTT, cwnd=4.0, ssthresh=2.0, alpha=2.0, beta=4.0)
    windows = tcp.run(40)
    steps = np.diff(windows)
    assert set(steps) == {0.0, 1.0}
    assert np.count_nonzero(steps) < 40 / 4


def test_per_round_leaves_slow_start_for_the_window_that_fits(path):
    tcp = path(adjustment=PER_RTT, cwnd=2.0, alpha=2.0, beta=4.0)
    windows = tcp.run(120)
    # The path holds 11. A queue shows one round trip late, so the window doubles at most once too often from
    # 12 or less; NewReno would have reached 122.
    assert max(windows) < 4 * 12
    assert tcp.conn.cwnd >= tcp.conn.ssthresh
    assert tcp.conn.ssthresh >= 0.75 * tcp.conn.cwnd


def test_per_round_with_few_samples_grows_as_newreno(path):
    tcp = path(adjustment=PER_RTT, cwnd=2.0, ssthresh=2.0, alpha=2.0, beta=4.0)
    tcp.run(1)
    before = float(tcp.conn.cwnd)
    tcp.conn.round_samples, tcp.conn.round_end = 0, tcp.conn.snd_una + 1
    tcp.run(1)
    assert tcp.conn.cwnd == before + 1 / before


def test_on_srtt_the_smoothed_time_takes_the_place_of_samples(path):
    tcp = path(adjustment=PER_RTT, cwnd=8.0, ssthresh=2.0, vegas_on_srtt=True)
    tcp.run(4)
    assert tcp.conn.srtt > 110 * MS, "the first was 110 ms, the others waited"
    tcp.conn.base_rtt, tcp.conn.round_samples = 0, 0
    tcp.vegas.observe(tcp.conn, tcp.starts, 50 * MS, tcp.now)
    assert tcp.conn.base_rtt == tcp.conn.round_rtt == int(tcp.conn.srtt)
    tcp.vegas.observe(tcp.conn, tcp.starts, tcp.records.NOTHING, tcp.now)
    assert tcp.conn.round_samples == 2, "also when there is no sample"


def test_per_round_grows_as_newreno_after_a_timeout(path):
    tcp = path(adjustment=PER_RTT, cwnd=16.0, ssthresh=2.0, alpha=2.0, beta=4.0)
    tcp.tcp.on_timeout(tcp.conn, tcp.board, tcp.sent_at, tcp.starts, tcp.statistics, SECOND)
    assert tcp.conn.cwnd == 1.0
    assert tcp.run(1) == [2.0], "slow start"
