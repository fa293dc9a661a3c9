"""Vegas, delayed acknowledgements and the queue of one link: exact values, limits, invariants."""

from dataclasses import replace

import numpy as np
import pytest
from btqueue.network.mixtures import mixture
from btqueue.network.models import MODELS, model_of
from btqueue.network.two_way_link.air import air_of
from btqueue.network.two_way_link.window import both_ways, one_way, pairwise

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.scenario.scope import problems_of
from btqueue.transport.delayed_ack import Receiver, acknowledgements
from btqueue.transport.vegas import ROUNDS, Round, window_walk


def _memoryless(forward, reverse, period, clock):
    """What ends a wait if segments come at random and services take no time."""
    return Receiver(forward, 0.0, 0.0, forward, reverse, period, clock)


@pytest.mark.parametrize(
    ("clock", "period", "rate", "expected"),
    [
        ("tick", 0.5, 2, (0.183940, 0.051819, 0.632121)),
        ("timer", 0.5, 2, (0.316060, 0.132121, 0.367879)),
        ("tick", 0.2, 10, (0.056767, 0.005413, 0.432332)),
        ("timer", 0.2, 10, (0.086466, 0.011880, 0.135335)),
    ],
)
def test_wait_for_the_clock_or_an_arrival(clock, period, rate, expected):
    """So few segments that a wait may begin at any phase, and the receiver writes with this rate."""
    law = _memoryless(1e-9, rate, period, clock).law(followed=False)
    assert (law.mean, law.square, law.clock.sum()) == pytest.approx(expected, abs=5e-7)


def test_without_arrivals_the_wait_is_the_clocks():
    timer, tick = (
        _memoryless(1e-12, 0.0, 0.2, "timer").law(False),
        _memoryless(1e-12, 0.0, 0.5, "tick").law(False),
    )
    assert (timer.mean, timer.square, timer.clock.sum()) == pytest.approx((0.2, 0.04, 1.0))
    assert (tick.mean, tick.square, tick.clock.sum()) == pytest.approx((0.25, 0.25 / 3, 1.0))


def test_rare_segments_wait_as_at_any_phase_of_the_tick():
    rare = acknowledgements(_memoryless(1e-4, 0.0, 0.5, "tick"), 2)
    assert rare.wait * rare.segments == pytest.approx(0.25, rel=1e-3)
    assert rare.segments == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("gap", "followed", "clock", "tolerance"),
    [
        (0.0, 0.0, "tick", 0.0),
        (0.0, 0.0, "timer", 0.0),
        (0.06, 0.4, "timer", 0.0),
        # the phases at which waits begin are those of memoryless segments
        (0.06, 0.0, "tick", 0.02),
        (0.06, 0.4, "tick", 0.02),
    ],
)
def test_waits_against_a_walk_through_time(gap, followed, clock, tolerance):
    """Segments follow after a gap and perhaps a random time; the receiver writes, or the clock comes."""
    forward, reverse, period = 4.0, 2.0, 0.5
    rng = np.random.default_rng(1)
    waits, carried, now, first = [], 0, 0.0, True
    while len(waits) < 100_000:
        comes = now + gap + (rng.exponential(1.0 / forward) if rng.random() >= followed else 0.0)
        if first:
            writes = now + rng.exponential(1.0 / reverse)
            clocked = now + period if clock == "timer" else (now // period + 1.0) * period
            ends = min(comes, writes, clocked)
            waits.append(ends - now)
            carried += ends == writes
        # one that ended the wait is acknowledged with the first; any other is the first of the next
        first = not (first and ends == comes)
        now = comes
    rate = 1.0 / (gap + (1.0 - followed) / forward)
    cycle = acknowledgements(Receiver(rate, gap, followed, forward, reverse, period, clock), 2)
    error = float(np.std(waits)) / len(waits) ** 0.5
    mean = float(np.mean(waits))
    assert cycle.wait * cycle.segments == pytest.approx(mean, abs=4 * error + tolerance * mean)
    assert cycle.piggybacked == pytest.approx(carried / len(waits), abs=0.005)


def test_each_segment_acknowledged_at_once_waits_for_nothing():
    assert acknowledgements(_memoryless(5.0, 5.0, 0.5, "tick"), 1).separate == 1.0


def _paper(name="asymmetric", **changes):
    return bt.load(f"johansson-2000/{name}").with_(**changes)


@pytest.mark.parametrize(("per", "mean_ms", "sd_ms"), [(0.3, 25.0, 6.1859), (0.0, 17.5, 0.0)])
def test_segment_transfer_time(per, mean_ms, sd_ms):
    train = air_of(_paper(radio__per=per)).data
    assert train.time() * SLOT_S * 1e3 == pytest.approx(mean_ms)
    assert train.variance() ** 0.5 * SLOT_S * 1e3 == pytest.approx(sd_ms, abs=1e-3)


@pytest.mark.parametrize(("per", "kbps"), [(0.0, 653.257), (0.1, 587.931), (0.3, 457.280), (0.5, 326.629)])
def test_rate_of_segments_answered_by_one_slot(per, kbps):
    assert 1429 * 8e-3 / air_of(_paper(radio__per=per)).alone(0.0) == pytest.approx(kbps, abs=1e-3)


def test_a_large_window_keeps_the_link_busy():
    air = air_of(_paper(radio__per=0.3))
    for window in (4, 6, 12):
        assert one_way(air, window, 2).period == pytest.approx(air.alone(0.5))
    assert one_way(air, 2, 2).period > air.alone(0.5)
    assert one_way(air, 3, 2).rtt == one_way(air, 4, 2).rtt


def test_without_errors_a_large_window_keeps_both_links_busy():
    air = air_of(_paper(radio__per=0.0))
    for window in (4, 6, 12):
        assert both_ways(air, window).period == pytest.approx(air.both(0.0))


@pytest.mark.parametrize("per", [0.1, 0.3, 0.5])
def test_random_services_leave_both_links_idle_at_times(per):
    """Less and less with more tokens to spare: a walk of the tokens from frame to frame, to a percent."""
    air = air_of(_paper(radio__per=per, link__l2cap_delay_s=0, link__baseband_delay_s=0))
    periods = [both_ways(air, window).period / air.both(0.0) for window in (3, 4, 6)]
    walked = [_tokens(per, window) / air.both(0.0) for window in (3, 4, 6)]
    assert periods == pytest.approx(walked, abs=0.01)
    assert periods[0] > periods[1] > periods[2] > 1.0


def _tokens(per, window, segments=20_000):
    """Seconds a segment of two links that pass tokens to each other and share the slots, packet by packet."""
    rng = np.random.default_rng(2)
    train = (5, 5, 5, 5, 3)
    waiting, at, slots, done = [window - window // 2, window // 2], [0, 0], 0, 0
    while done < 2 * segments:
        sends = [count > 0 for count in waiting]
        slots += sum(train[at[side]] if sends[side] else 1 for side in (0, 1))
        for side in (0, 1):
            if sends[side] and rng.random() >= per:
                at[side] += 1
            if at[side] == len(train):
                at[side] = 0
                waiting[side] -= 1
                waiting[1 - side] += 1
                done += 1
    return slots * SLOT_S / segments


def test_windows_acknowledged_in_pairs_are_slower():
    air = air_of(_paper(radio__per=0.3))
    assert air.both(0.0) < pairwise(air).period < one_way(air, 2, 2, opposite=True).period


VEGAS = {"alpha": 1, "beta": 3, "gamma": 1, "window": 12, "start": 1}


def test_the_walk_rests_where_slow_start_ends_if_nothing_is_random():
    walk = window_walk(lambda w: Round(max(0.05, 0.02 * w), 0.0, 0.05, w, w), **VEGAS)
    (window,) = walk.windows
    assert 1 <= window - 2.5 <= 3  # Base times the rate is 2.5 segments


def test_the_law_of_the_walk_is_one():
    walk = window_walk(lambda w: Round(0.02 * w, 0.004 * w**0.5, 0.01 * w, w, w), **VEGAS)
    assert sum(walk.windows.values()) == pytest.approx(1.0)
    assert walk.residual < 1e-3


def test_the_walk_against_a_walk_of_many_rounds():
    """One connection after the other, with the round trips' law and the Base that the model finds."""
    rounds = {w: Round(0.02 * w, 0.004 * w**0.5, 0.01 * w, w, w) for w in range(1, 13)}
    walk = window_walk(rounds.__getitem__, **VEGAS)
    begins = window_walk(lambda w: replace(rounds[w], sd=0.0), **VEGAS)
    rng = np.random.default_rng(3)
    counts: dict[int, int] = {}
    cwnd = begins.cwnd
    for _ in range(200_000):
        one = rounds[min(int(cwnd + 1e-9), 12)]
        counts[int(one.sent)] = counts.get(int(one.sent), 0) + 1
        beyond = one.mean - one.least
        shape = (beyond / one.sd) ** 2
        excess = cwnd - one.sent * walk.base_s / (one.least + rng.gamma(shape, beyond / shape))
        change = 2.0 * one.acks * ((excess < 1) - (excess > 3))
        cwnd = max(cwnd**2 + change, 4.0) ** 0.5
        if rng.random() < 1.0 / ROUNDS:
            cwnd = begins.cwnd
    for window, share in walk.windows.items():
        assert counts.get(window, 0) / 200_000 == pytest.approx(share, abs=0.03)


def test_quantiles_of_a_mixture():
    law = mixture([(1.0, 0.0, 1.0, 1.0)])  # exponential
    assert law.quantiles()["p90"] == pytest.approx(np.log(10), rel=1e-2)
    assert (law.mean, law.sd) == (1.0, 1.0)


@pytest.mark.parametrize("name", ["asymmetric", "symmetric", "smooth", "bursty", "fixed-wait"])
def test_the_papers_scenarios_are_solved_by_this_model(name):
    scenario = bt.load(f"johansson-2000/{name}")
    assert model_of(scenario) == "two_way_link"
    found = bt.solve(scenario)
    assert found.attrs["converged"]
    assert np.isfinite(found["rtt_s"]).all()
    assert float(found["rtt_p50_s"][0]) < float(found["rtt_p99_s"][0]) or name in ("asymmetric", "symmetric")


def test_overload_is_the_goodput_of_greedy_connections():
    greedy = bt.solve(_paper("symmetric", radio__per=0.1))
    loaded = bt.solve(_paper("smooth", radio__per=0.1, traffic__load_kbps=700))
    assert float(loaded["goodput_kbps"][0]) == float(greedy["goodput_kbps"][0])
    assert "overload" in loaded.attrs["warnings"][0]
    assert "delay_s" not in loaded


@pytest.mark.parametrize("share", [0.5, 0.85, 0.9, 0.95, 0.98, 1.0, 1.02])
def test_no_more_is_delivered_than_offered_or_carried(share: float):
    """Right up to saturation, through the loads that the smallest of Vegas's windows does not carry."""
    full = float(bt.solve(_paper("symmetric", radio__per=0.1))["goodput_kbps"][0])
    loaded = bt.solve(_paper("smooth", radio__per=0.1, traffic__load_kbps=share * full))
    assert float(loaded["goodput_kbps"][0]) == pytest.approx(min(share, 1.0) * full, rel=1e-9)
    assert ("delay_s" in loaded) == (share < 0.8)
    assert bool(loaded.attrs["warnings"]) == (share > 0.8)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"traffic__source": "periodic"}, "traffic.source"),
        ({"transport__min_rto_s": 0.2}, "transport.min_rto_s"),
        ({"link__packets": ["DH1"]}, "link.packets"),
        ({"transport__variant": "newreno"}, "flow_control.baseband_packets"),
    ],
)
def test_what_is_not_covered_is_named(changes, key):
    problems = problems_of(MODELS["two_way_link"], _paper("smooth", **changes))
    assert key in [problem.key for problem in problems]
