"""Applications: laws and starts of sources, what does not fit the send buffer, the fate of every message.

Statistical checks have a fixed seed; the false-alarm rate stated is that of a fresh seed.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from state_tables import NOTHING, pool, tables

from btqueue.simulator.records.conventions import NEVER, SLOT, UNLIMITED

MS = 1_000_000
POOL = 1000


def new_flow(plain, application="POISSON", schedule=(), seed=1, **fields):
    """A flow without messages, with the arrival timer 0; its schedule is behind foreign entries."""
    records = plain.records
    sim = tables(records, clock=1, pools=3, timers=1, connections=1, backlogs=1, flow_statistics=1)
    sim.messages, sim.pools.left = pool(records, "messages", POOL), POOL
    sim.heap, sim.timers.due = np.arange(1), NEVER
    sim.streams = plain.random_streams.make_streams(seed, 0, 1)
    sim.delay_histogram = np.zeros((1, plain.histograms.BINS), np.int64)
    sim.schedules, sim.starts = np.array([-1, -1, *schedule], np.int64), np.zeros((1, 1), np.int64)
    conn = sim.connections[0]
    conn.application = getattr(records, application)
    conn.mean_gap, conn.message_size, conn.unit, conn.schedule = 10.0 * MS, 1, 1, 2
    conn.message_head = conn.message_tail = conn.message_undelivered = conn.session = NOTHING
    for name, value in fields.items():
        conn[name] = value
    return sim


def play(plain, sim, until):
    """Start the flow and play its arrivals; return the times (ns) of the timer."""
    plain.application.start_application(sim, 0)
    times = []
    while (now := int(sim.timers[0].due)) <= until:
        times.append(now)
        plain.timers.cancel(sim, 0)
        plain.application.on_arrival(sim, 0, now)
    return times


@pytest.mark.parametrize("start", [0, 7])
def test_a_greedy_source_has_all_its_data_from_its_start_on(plain, start):
    sim = new_flow(plain, "GREEDY", start_at=start)
    plain.application.start_application(sim, 0)
    assert sim.connections[0].written == 0
    assert play(plain, sim, 1000) == [start]
    assert sim.connections[0].written == UNLIMITED
    assert sim.timers[0].due == NEVER
    assert sim.connections[0].message_head == NOTHING, "greedy data are no messages"


def test_a_poisson_source_counts_its_first_gap_from_its_start(plain):
    sim = new_flow(plain, start_at=500 * MS)
    gap = int(plain.random_streams.exponential(sim.streams.copy()[0], 10.0 * MS))
    times = play(plain, sim, 2000 * MS)
    assert times[0] == 500 * MS + gap
    assert sim.connections[0].written == sim.flow_statistics[0].messages == len(times) > 20


def test_a_periodic_source_begins_after_a_share_of_its_period_drawn_from_its_own_stream(plain):
    change = {"schedule": [530 * MS, 4 * MS], "schedule_length": 1}
    sim = new_flow(plain, "PERIODIC", **change, start_at=500 * MS, mean_gap=10.0 * MS)
    stream = sim.streams.copy()[0]
    phase, fresh = (int(plain.random_streams.uniform(stream) * period * MS) for period in (10, 4))
    times = [500 * MS + phase + 10 * MS * k for k in range(3)] + [530 * MS + fresh, 534 * MS + fresh]
    assert play(plain, sim, 538 * MS - 1) == times
    silent = new_flow(plain, "PERIODIC", [20 * MS, 5 * MS], schedule_length=1, mean_gap=0.0)
    assert play(plain, silent, 25 * MS) == [20 * MS + phase // 2]


def test_an_aligned_periodic_source_that_is_silent_at_first_begins_one_gap_after_the_step(plain):
    sim = new_flow(plain, "PERIODIC", [20, 5], schedule_length=1, mean_gap=0.0, aligned_phase=True)
    assert play(plain, sim, 40) == [25, 30, 35, 40]


def test_a_step_of_the_load_before_or_at_the_start_counts(plain):
    sim = new_flow(plain, "PERIODIC", [0, 5], schedule_length=1, start_at=10, aligned_phase=True)
    assert play(plain, sim, 22) == [10, 15, 20]
    for silent_from in (5, 10):
        steps = [silent_from, 0, 20, 5]
        sim = new_flow(plain, "PERIODIC", steps, schedule_length=2, start_at=10, aligned_phase=True)
        assert play(plain, sim, 32) == [25, 30]


@pytest.mark.parametrize(
    ("period", "start", "times", "written"),
    [(0, 0, [4, 9, 9], 9), (0, 100, [104, 109, 109], 9), (20, 0, [4, 9, 9, 24], 11)],
)
def test_a_file_gives_times_and_sizes_once_or_in_each_period(plain, period, start, times, written):
    schedule = [4, 9, 9, 2, 3, 4]
    sim = new_flow(plain, "FROM_FILE", schedule, schedule_length=3, file_period=period, start_at=start)
    assert play(plain, sim, 28 if period else 10**9) == times
    assert sim.connections[0].written == written
    assert (sim.timers[0].due == NEVER) == (period == 0)


def test_a_message_that_does_not_fit_the_send_buffer_is_refused_whole(plain):
    sim = new_flow(plain, send_buffer=5)
    conn, statistics = sim.connections[0], sim.flow_statistics[0]
    for segments, written in [(3, 3), (3, 3), (2, 5), (1, 5)]:
        plain.application.write_message(sim, 0, segments, 0)
        assert conn.written == written
    assert (statistics.messages, statistics.messages_refused) == (4, 2)
    conn.snd_una = 1
    plain.application.write_message(sim, 0, 1, 0)
    assert conn.written == 6, "an acknowledged segment makes room"


operations = st.lists(
    st.tuples(st.sampled_from(["write", "deliver", "acknowledge"]), st.integers(1, 4), st.integers(0, 100)),
    max_size=40,
)


@given(operations=operations)
def test_every_message_is_delivered_and_acknowledged_once_with_its_delay(plain, operations):
    sim = new_flow(plain)
    conn, statistics = sim.connections[0], sim.flow_statistics[0]
    messages, now = [], 0  # (created, last segment)
    delivered: list[int] = []
    acknowledged: list[int] = []
    for operation, amount, pause in operations:
        now += pause
        if operation == "write":
            messages.append((now, int(conn.written) + amount - 1))
            plain.application.write_message(sim, 0, amount, now)
        elif operation == "deliver":
            conn.rcv_nxt = min(conn.rcv_nxt + amount, conn.written)
            plain.application.on_delivered(sim, 0, now)
        else:
            conn.last_ack_sent = min(conn.last_ack_sent + amount, conn.rcv_nxt)
            plain.application.on_acknowledged(sim, 0, now)
        for done, edge in ((delivered, conn.rcv_nxt), (acknowledged, conn.last_ack_sent)):
            finished = sum(last < edge for _, last in messages)
            done.extend(now - created for created, _ in messages[len(done) : finished])
        assert sim.pools[2].left == POOL - len(messages) + len(acknowledged)
    assert statistics.messages_delivered == len(delivered) == sim.delay_histogram.sum()
    assert statistics.delay_sum == sum(delivered)
    assert statistics.delay_squares == sum(delay**2 for delay in delivered)
    assert statistics.messages_acknowledged == len(acknowledged)
    assert statistics.acknowledged_delay_sum == sum(acknowledged)
    assert statistics.acknowledged_delay_squares == sum(delay**2 for delay in acknowledged)


STEPS = [200 * MS, 5 * MS, 400 * MS, 0, 500 * MS, 8 * MS]
FILE = [0, 3 * MS, 3 * MS, 9 * MS, 1, 2, 1, 3]


@pytest.mark.parametrize(
    ("application", "schedule", "fields"),
    [
        ("POISSON", STEPS, {"schedule_length": 3}),
        ("IBP", STEPS, {"schedule_length": 3, "leave_active": 0.6, "leave_idle": 0.04}),
        ("PERIODIC", STEPS, {"schedule_length": 3, "message_size": 2}),
        ("FROM_FILE", FILE, {"schedule_length": 4, "file_period": 20 * MS}),
    ],
)
@settings(max_examples=20)
@given(steps=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4), st.integers(0, 4)), max_size=20))
def test_a_source_played_again_writes_the_same_messages(plain, application, schedule, fields, steps):
    """With two messages listed beyond the window of four segments, and with all."""
    counted = []
    for listed in (2, POOL):
        sim, now = new_flow(plain, application, schedule, rwnd=4, **fields), 0
        conn = sim.connections[0]
        plain.application.start_application(sim, 0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plain.application, "LISTED", listed)
            for pause, delivered, acknowledged in steps:
                now += pause * MS
                while (due := int(sim.timers[0].due)) <= now:
                    plain.timers.cancel(sim, 0)
                    plain.application.on_arrival(sim, 0, due)
                conn.rcv_nxt = min(conn.rcv_nxt + delivered, conn.written, conn.last_ack_sent + conn.rwnd)
                plain.application.on_delivered(sim, 0, now)
                conn.last_ack_sent = min(conn.last_ack_sent + acknowledged, conn.rcv_nxt)
                plain.application.on_acknowledged(sim, 0, now)
                assert conn.listed == POOL - sim.pools[2].left <= listed + conn.rwnd
        assert conn.listed + conn.unlisted >= sim.flow_statistics[0].messages - conn.last_ack_sent
        counted.append([array.tobytes() for array in (sim.flow_statistics, sim.delay_histogram, sim.streams)])
    assert counted[0] == counted[1]


def arrivals(plain, sim, until):
    """Return the times (ns) at which a source writes up to then; nothing is written."""
    times = [0]
    while times[-1] <= until:
        times.append(int(plain.arrival_processes.next_arrival(sim, 0, times[-1], len(times) == 1)))
    return times[1:-1]


def ibp_gap_law(p, q, longest):
    """Return the probabilities of gaps of 1 to `longest` slots, from the two-state chain slot by slot."""
    active, idle, law = 1.0, 0.0, []
    for _ in range(longest):
        active, idle = active * (1 - p) + idle * q, active * p + idle * (1 - q)
        law.append(active)
        active = 0.0  # first passage only
    return np.array(law)


@given(rate=st.floats(0.02, 0.95), scv=st.floats(0.05, 20.0))
def test_the_gaps_have_exactly_the_mean_and_the_variation_asked_for(plain, rate, scv):
    assume(scv >= (1 - rate) * abs(1 - 2 * rate))
    p, q = plain.arrival_processes.ibp_probabilities(rate, scv)
    assert 0 < p <= 1
    assert 0 < q <= 1
    longest = int(60 / q) + 2 if q < 1 else 4  # what is cut off has a probability below exp(-60)
    law, gap = ibp_gap_law(p, q, longest), np.arange(1, longest + 1)
    mean = law @ gap
    assert law.sum() == pytest.approx(1, rel=1e-9)
    assert mean == pytest.approx(1 / rate, rel=1e-9)
    assert law @ gap**2 / mean**2 - 1 == pytest.approx(scv, rel=1e-6)


@given(rate=st.floats(0.01, 0.99))
def test_the_least_variation_is_where_a_probability_reaches_one(plain, rate):
    least = (1 - rate) * abs(1 - 2 * rate)
    assume(least > 1e-6)
    assert max(plain.arrival_processes.ibp_probabilities(rate, least)) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(("p", "q"), [(0.4, 0.2), (1.0, 0.3), (0.3, 1.0)])
def test_the_gaps_drawn_follow_the_law_of_the_chain(plain, p, q):
    sim = new_flow(plain, "IBP", mean_gap=SLOT * (p + q) / q, leave_active=p, leave_idle=q)
    times = [0, *arrivals(plain, sim, 4000 * SLOT)]
    gaps, remainders = np.divmod(np.diff(times), SLOT)
    assert not remainders.any(), "messages come at the start of slots"
    law = ibp_gap_law(p, q, 60)
    bins = np.flatnonzero(law * len(gaps) > 5)  # the usual bins of the test, the rest in one
    counts = np.bincount(gaps, minlength=61)[1:]
    observed = [*counts[bins], len(gaps) - counts[bins].sum()]
    expected = np.array([*law[bins], 1 - law[bins].sum()]) * len(gaps)
    kept = expected > 1e-9
    assert not np.array(observed)[~kept].any()
    assert stats.chisquare(np.array(observed)[kept], expected[kept]).pvalue > 5e-5  # = false-alarm rate


def test_a_poisson_source_has_the_load_of_each_step(plain):
    steps = [1000 * MS, MS // 4, 2000 * MS, 0, 3000 * MS, 2 * MS]
    sim = new_flow(plain, "POISSON", steps, schedule_length=3, mean_gap=float(MS))
    counts = np.histogram(arrivals(plain, sim, 4000 * MS), bins=[0, 1e9, 2e9, 3e9, 4e9])[0]
    for count, mean in zip(counts, [1000, 4000, 0, 500], strict=True):
        # two-sided tail of a Poisson count: false-alarm rate 5e-5 for each of three
        assert stats.poisson.ppf(2.5e-5, mean) <= count <= stats.poisson.ppf(1 - 2.5e-5, mean)


@pytest.mark.parametrize("application", ["POISSON", "PERIODIC", "IBP"])
@pytest.mark.parametrize("gap", [1e19, 1e300, np.inf])
def test_an_arrival_that_no_run_reaches_never_comes(plain, application, gap):
    sim = new_flow(plain, application, mean_gap=gap, leave_active=1.0, leave_idle=SLOT / gap)
    # an exponential gap of mean 1e19 ns is below 2^62 in a third of the cases
    times = [int(plain.arrival_processes.next_arrival(sim, 0, MS, False)) for _ in range(100)]
    assert all(MS < time <= NEVER for time in times)
    assert NEVER in times
