"""The retransmission timer: RFC 6298's estimator, the doubling, and the rules of the single timer."""

import pytest
from state_tables import NEVER, one

from btqueue.scenario.transport import Transport

MS = 1_000_000
SECOND = 1000 * MS


@pytest.fixture
def connection(plain):
    usual = {"max_rto": 64 * SECOND, "rto": 3 * SECOND, "rto_backoff": True, "rto_deadline": NEVER}
    return lambda **fields: one(plain.records, "connection", **usual | fields)


def test_the_first_sample_sets_the_averages_and_later_ones_move_them(plain, connection):
    # 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR
    conn = connection()
    plain.retransmission_timer.measure(conn, 500 * MS)
    assert (conn.srtt, conn.rttvar, conn.rto) == (500 * MS, 250 * MS, 1500 * MS)
    # 2.3, by hand: RTTVAR = 3/4 * 250 + 1/4 * |500 - 900| = 287.5 first, then SRTT = 7/8 * 500 + 1/8 * 900 =
    # 550
    plain.retransmission_timer.measure(conn, 900 * MS)
    assert (conn.srtt, conn.rttvar) == (550 * MS, 287.5 * MS)
    assert conn.rto == (550 + 4 * 287.5) * MS


def test_the_timeout_stays_between_its_bounds(plain, connection):
    # 2.4: at least a second; 2.5: an upper bound may be placed
    conn = connection(min_rto=SECOND)
    plain.retransmission_timer.measure(conn, 10 * MS)
    assert conn.rto == SECOND
    plain.retransmission_timer.measure(conn, 500 * SECOND)
    assert conn.rto == 64 * SECOND


def test_the_timeout_exceeds_the_average_by_at_least_the_clock_granularity(plain, connection):
    # 2.2, 2.3: RTO = SRTT + max(G, 4 RTTVAR)
    conn = connection(clock_granularity=50 * MS)
    for _ in range(200):
        plain.retransmission_timer.measure(conn, 400 * MS)
    assert conn.rto == pytest.approx(450 * MS, rel=1e-9)


def expiries(plain, conn, count):
    """Send at time 0 into silence; return when the timer expires (s)."""
    timer = plain.retransmission_timer
    timer.start_if_stopped(conn, 0)
    times = []
    for _ in range(count):
        now = int(conn.rto_deadline)
        times.append(now / SECOND)
        timer.back_off(conn, now)
    return times


@pytest.mark.parametrize(
    ("rto_s", "backoff", "times_s"),
    [
        # 5.5: double, up to the maximum of 2.5; 1 + 2 + 4 + 8 + 16 + 32 + 64 = 127
        (1, True, [1, 3, 7, 15, 31, 63, 127]),
        (32, True, [32, 96, 160, 224]),
        (1, False, [1, 2, 3, 4]),
    ],
)
def test_the_timer_expires_after_twice_the_time_up_to_64_seconds(plain, connection, rto_s, backoff, times_s):
    conn = connection(rto=rto_s * SECOND, rto_backoff=backoff)
    assert expiries(plain, conn, len(times_s)) == times_s


def test_rule_2_new_data_acknowledged_restarts_the_timer_or_stops_it(plain, connection):
    conn = connection(snd_una=4, snd_max=5, rto_deadline=13 * SECOND)
    plain.retransmission_timer.on_new_ack(conn, 12 * SECOND)
    assert conn.rto_deadline == 15 * SECOND
    conn.snd_una = 5
    plain.retransmission_timer.on_new_ack(conn, 14 * SECOND)
    assert conn.rto_deadline == NEVER


def test_an_acknowledgement_ends_the_back_off_only_on_request(plain, connection):
    # without a sample (Karn) the doubled timeout stays, 5.7; `ack_ends_backoff` does as ns-3 does
    for ends, rto in ((False, 4 * SECOND), (True, SECOND)):
        conn = connection(rto=SECOND, min_rto=SECOND, ack_ends_backoff=ends)
        plain.retransmission_timer.measure(conn, 200 * MS)
        expiries(plain, conn, 2)
        conn.snd_una, conn.snd_max = 4, 5
        plain.retransmission_timer.on_new_ack(conn, 12 * SECOND)
        assert conn.rto_deadline == 12 * SECOND + rto


def test_an_impatient_sender_restarts_the_timer_at_the_first_partial_acknowledgement_only(plain, connection):
    conn = connection(rto=SECOND, impatient_timer=True, in_recovery=True, snd_una=4, snd_max=9)
    deadlines = []
    for now in (10, 11, 12):
        plain.retransmission_timer.on_new_ack(conn, now * SECOND)
        deadlines.append(int(conn.rto_deadline) // SECOND)
    assert deadlines == [11, 11, 11]
    for now, recovering in ((13, False), (15, True)):  # another recovery
        conn.in_recovery = recovering
        plain.retransmission_timer.on_new_ack(conn, now * SECOND)
        assert conn.rto_deadline == (now + 1) * SECOND


def test_linux_waits_for_the_round_trip_and_200_ms(plain, connection):
    # a steady round trip of 300 ms: RFC 6298 with a floor of 200 ms would come to 300 ms
    linux = Transport(preset="linux")
    conn = connection(
        largest_variation=linux.rto_variation == "largest", min_rto=round(linux.min_rto_s * 1e9)
    )
    for _ in range(200):
        conn.snd_una += 1
        conn.snd_nxt = conn.snd_una + 1
        plain.retransmission_timer.measure(conn, 300 * MS)
    assert conn.rto == pytest.approx(500 * MS, rel=2e-6)


@pytest.mark.parametrize(
    ("tick_ms", "now_ms", "wait_ms", "due_ms"),
    [
        (0, 10, 15.49, 25.49),
        # the last tick was at 8 ms; the wait is 4 ticks, and the timer fires at the tick after them
        (4, 10, 15.49, 28),
        (4, 0, 252, 256),  # 63 ticks: at any tick
        (4, 0, 253, 288),  # 64 ticks: the next eighth tick after 256 ms
        (4, 0, 2016, 2048),  # 504 ticks: the next eighth tick after 2016 ms
        (4, 0, 2300, 2304),  # 575 ticks: the next 64th tick after 2300 ms
    ],
)
def test_a_timer_of_linux_fires_at_a_tick_of_the_wheel(plain, connection, tick_ms, now_ms, wait_ms, due_ms):
    conn = connection(timer_tick=tick_ms * MS)
    plain.retransmission_timer.arm(conn, round(wait_ms * MS), now_ms * MS)
    assert conn.rto_deadline == round(due_ms * MS)


def test_linux_counts_the_timeout_in_whole_ticks(plain, connection):
    # 301 + 4 * 150.5 = 903 ms, which is 226 ticks of 4 ms
    conn = connection(largest_variation=True, min_rto=200 * MS, timer_tick=4 * MS)
    plain.retransmission_timer.measure(conn, 301 * MS)
    assert conn.rto == 904 * MS
