"""The retransmission timer of a chain: laws, the radio's course, branches and locking, by hand."""

from math import exp, inf

import numpy as np
import pytest
from scipy.special import gammaincc
from scipy.stats import norm

import btqueue as bt
from btqueue.network import NoConvergence
from btqueue.network.chain import timer
from btqueue.network.chain.link import HopService, Piece
from btqueue.network.chain.orbit import follow
from btqueue.network.chain.phases import PLACES, long_run
from btqueue.network.chain.pipes import Pace, Rounds
from btqueue.network.chain.quantiles import condensed, quantile
from btqueue.network.chain.splitting import VARIANCE, shared_out
from btqueue.network.chain.timer import (
    COURSES,
    EVENT,
    NOTHING,
    PROGRESS,
    across,
    beyond,
    chances,
    skewed,
)
from btqueue.transport.newreno_sender import Sender

STEADY = np.array([0.0, 1.0]), np.array([0.0, 1.0])
"""A radio that never changes."""
PERFECT = HopService((Piece(5, 1.0), Piece(5, 1.0)), (Piece(5, 1.0),))


def events(times: list[float], leap: float = 0.0, skewness: float = 0.0) -> np.ndarray:
    """Acknowledgements of segments that were sent at the one before, each with new data."""
    rows = [(time, number, PROGRESS, 0, leap, skewness, 0.0, 0.0, 0.0) for number, time in enumerate(times)]
    return np.array(rows, EVENT)


def test_a_timer_without_chance_expires_where_the_wait_is_longer():
    # a constant round trip brings the mean deviation down, so that the timer is at 0.1 s
    times = [0.1 * count for count in range(1, 61)]
    found = chances(events([*times, 6.09]), 30, STEADY, (0.0, 64.0))
    assert not found.late[:, -1].any()
    found = chances(events([*times, 6.15]), 30, STEADY, (0.0, 64.0))
    assert (found.late[:, -1] == 1).all()
    assert not found.again.any()
    # 0.1, 0.3, 0.7 and 1.5 s after the last one
    found = chances(events([*times, 7.0]), 30, STEADY, (0.0, 64.0))
    assert (found.again[:, -1] == 2).all()


def test_the_wait_has_the_law_of_what_is_to_come():
    """The timer is at its least, one second; the wait is 0.9 s with a deviation of 0.1 s."""
    times = [0.5 * count for count in range(1, 61)]
    log = events([*times, times[-1] + 0.9])
    log["leap"][-1] = 0.1
    found = chances(log, 30, STEADY, (1.0, 64.0))
    assert found.late[:, -1] == pytest.approx(norm.sf(1.0), rel=1e-3)


def test_the_deviation_of_the_timer_follows_its_recursion():
    """Independent round trips: SRTT + 4 RTTVAR beside a plain recursion with other random numbers."""
    count, spread = 80, 0.02
    log = events([float(number) for number in range(1, count + 1)], leap=spread)
    log["time"][-1] += 0.1
    found = chances(log, count - 1, STEADY, (0.0, 64.0)).late[:, -1].mean()
    random = np.random.default_rng(7)
    trips = 1.0 + spread * random.standard_normal((count - 1, 40_000))
    smoothed, variation = trips[0], trips[0] / 2.0
    for trip in trips[1:]:
        variation = 0.75 * variation + 0.25 * np.abs(smoothed - trip)
        smoothed = 0.875 * smoothed + 0.125 * trip
    expected = norm.sf((smoothed + 4.0 * variation - 1.1) / spread).mean()
    assert 0.05 < expected < 0.95
    assert found == pytest.approx(expected, rel=0.03)


def test_a_radio_that_gets_worse_stretches_a_wait_beyond_the_timer():
    """Waits of 0.6 s, a timer of 1 s; in every other ten seconds all takes twice as long."""
    course = np.array([0.0, 10.0, 15.0]), np.array([0.0, 10.0, 20.0])
    log = events([0.6 * count for count in range(1, 301)])
    found = chances(log, 100, course, (1.0, 64.0))
    # the timeout follows the round trips, so that only the first waits in the bad state are too long
    assert 0.0 < found.late.mean() < 0.1
    assert chances(log, 100, STEADY, (1.0, 64.0)).late.max() == 0.0


def test_duplicates_restart_no_timer():
    log = events([0.5 * count for count in range(1, 61)])
    log["kind"][-3:-1] = NOTHING
    assert (chances(log, 30, STEADY, (1.0, 64.0)).late[:, -1] == 1).all()


@pytest.mark.parametrize("skewness", [0.0, 0.3, 1.0, 2.0])
def test_skewed_deviations_follow_a_gamma_law(skewness: float):
    normal = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    found = np.array([skewed(z, skewness) for z in normal])
    assert found.mean() == pytest.approx(0, abs=0.02)
    assert found.std() == pytest.approx(1, abs=0.03)
    assert (found**3).mean() == pytest.approx(skewness, abs=0.1)
    for z in (-1.0, 0.5, 2.0):
        assert beyond(3.0 * skewed(z, skewness), 3.0, skewness) == pytest.approx(norm.sf(z), rel=1e-6)
    if skewness > 0.0:
        shape = 4.0 / skewness**2
        for x in (1.0, 3.0):
            exact = gammaincc(shape, shape + x * np.sqrt(shape))
            assert beyond(x, 1.0, skewness) == pytest.approx(exact, rel=0.05)
    assert beyond(3.0, 1.0, 2.0) == pytest.approx(exp(-4.0), rel=0.05)  # an exponential law


def test_compiled_and_plain_python_agree(monkeypatch: pytest.MonkeyPatch):
    log = events([0.9 * count for count in range(1, 13)], leap=0.2, skewness=0.5)
    log["step"], log["step_skewness"], log["back"] = 0.05, 2.0, 0.02
    course = np.array([0.0, 3.0, 5.0]), np.array([0.0, 3.0, 7.0])
    compiled = chances(log, 3, course, (0.2, 64.0))
    monkeypatch.setattr(timer, "expiries", getattr(timer.expiries, "function", timer.expiries))
    plain = chances(log, 3, course, (0.2, 64.0))
    assert compiled.late.any()
    for one, other in zip(compiled, plain, strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12)


def test_across_and_back():
    passed, edges = np.array([0.0, 1.0, 1.5, 3.0]), np.array([0.0, 2.0, 4.0, 5.0])
    assert across(0.5, passed, edges) == 1.0
    assert across(1.25, passed, edges) == 3.0
    assert across(3.0 + 0.5, passed, edges) == 6.0
    assert across(-0.75, passed, edges) == -0.5
    for place in (0.1, 1.2, 2.9, 7.7, -4.4):
        assert across(across(place, passed, edges), edges, passed) == pytest.approx(place)


def test_periods_that_do_not_depend_on_the_radio_are_everywhere():
    starts = np.linspace(0, 2, COURSES, endpoint=False)
    share = np.full(COURSES, 0.3)
    weights = long_run(
        np.array([share, 1.0 - share]), np.array([0.7, 1.9]), np.array([0.2, 0.2]), starts, 2.0
    )
    assert weights.sum() == pytest.approx(1)
    assert weights == pytest.approx(1 / COURSES, rel=0.05)


def test_a_period_as_long_as_the_radios_locks():
    """In its first half a period takes the radio's own time, in the other a tenth less."""
    starts = np.linspace(0, 1, 8 * PLACES, endpoint=False)
    first = (starts < 0.5).astype(float)
    weights = long_run(np.array([first, 1.0 - first]), np.array([1.0, 0.9]), np.full(2, 0.01), starts, 1.0)
    assert weights @ first > 0.8


def test_sharing_out_keeps_the_mean_and_adds_a_constant_variance():
    places = np.linspace(3.0, 4.0, 11)
    to, shares = shared_out(places)
    assert shares.sum(axis=0) == pytest.approx(1)
    assert (shares * to).sum(axis=0) == pytest.approx(places)
    assert (shares * (to - places) ** 2).sum(axis=0) == pytest.approx(VARIANCE)


def test_a_condensed_mixture_has_nearly_the_same_quantiles():
    random = np.random.default_rng(3)
    rows = np.stack([random.uniform(1, 2, 5000), np.full(5000, 0.03), random.uniform(0, 1, 5000)])
    few = condensed(rows, 200)
    assert few.shape[1] <= 200
    assert np.average(few[0], weights=few[2]) == pytest.approx(np.average(rows[0], weights=rows[2]), rel=1e-9)
    for level in (0.1, 0.5, 0.9, 0.99):
        assert quantile(few, level) == pytest.approx(quantile(rows, level), rel=1e-4)


def test_a_lost_segment_has_crossed_the_first_hop():
    """A full central: the visit to the sender is as long as if all its segments had been kept."""
    ends = []
    for holds in (3, 2):
        pipe = Rounds(Pace(PERFECT, 2), holds)
        kept = [pipe.offer(number, 0, 0.0) for number in range(3)]
        assert kept == [True, True, holds == 3]
        ends.append(pipe.take(0.0).time)
    receiver = Pace(PERFECT, 2).visit(3) - Pace(PERFECT, 2).visit(2)
    assert ends[0] - ends[1] == pytest.approx(receiver)


def test_an_expiry_goes_back_and_ends_at_the_next_fast_retransmit():
    sender = Sender(20, inf, 1.0, 64.0, 3.0, cwnd=2.0)
    orbit = follow(sender, Rounds(Pace(PERFECT, 2), 16))
    assert orbit.tally.expiries == 0
    assert orbit.waits
    for event in orbit.waits:
        branch = orbit.branch(event)
        assert branch.tally.recoveries == 1
        assert branch.tally.expiries >= 1
        assert branch.tally.sent > branch.tally.delivered
        assert branch.events[event].expired
    again = follow(Sender(20, inf, 1.0, 64.0, 3.0, cwnd=2.0), Rounds(Pace(PERFECT, 2), 16))
    assert again.tally == orbit.tally, "branches leave the orbit alone"


def test_timeouts_are_there_only_near_the_timer():
    near = bt.solve(bt.load("chen-2004/adaptive-2", {"radio.ber": 0.01}))
    patient = bt.solve(bt.load("chen-2004/adaptive-2", {"radio.ber": 0.01, "transport.min_rto_s": 3.0}))
    assert float(near.timeouts_per_s.item()) > 0.05
    assert float(patient.timeouts_per_s.item()) < 1e-9
    assert float(patient.goodput_kbps.item()) > float(near.goodput_kbps.item())


@pytest.mark.parametrize("ber", [0.003, 0.04])
def test_a_connection_that_stalls_has_no_answer_in_place_of_hundreds_of_branches(ber):
    stalled = bt.load("chen-2004/regular-2", {"radio.model": "constant", "radio.ber": ber})
    with pytest.raises(NoConvergence, match="the connection stalls"):
        bt.solve(stalled)
