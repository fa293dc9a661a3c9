"""Vegas, delayed acknowledgements and the queue of one link: exact values, limits, invariants."""

import numpy as np
import pytest

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.two_way_link.air import Train, air_of
from btqueue.network.two_way_link.jobs import Jobs, Overloaded
from btqueue.network.two_way_link.laws import mixture
from btqueue.network.two_way_link.queue import link_queue
from btqueue.network.two_way_link.window import both_ways, one_way
from btqueue.scenario.capability import model_of
from btqueue.transport.delayed_ack import ack_cycle, wait_until
from btqueue.transport.vegas import Round, equilibrium, window_walk


@pytest.mark.parametrize(
    ("rate", "base", "flight", "rtt"), [(40, 0.1, 5, 0.125), (57.1, 0.06, 5, 0.08757), (10, 0.05, 2, 0.2)]
)
def test_vegas_settles_from_below(rate, base, flight, rtt):
    found = equilibrium(rate, base, alpha=1, window=12)
    assert found.flight == flight
    assert found.rtt == pytest.approx(rtt, abs=5e-6)
    assert found.rate == pytest.approx(rate)


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
    assert wait_until(rate, period, clock) == pytest.approx(expected, abs=5e-7)


def test_without_arrivals_the_wait_is_the_clocks():
    assert wait_until(0.0, 0.2, "timer") == (0.2, pytest.approx(0.04), 1.0)
    assert wait_until(0.0, 0.5, "tick") == (0.25, pytest.approx(0.25 / 3), 1.0)


def test_rare_segments_wait_as_at_any_phase_of_the_tick():
    rare = ack_cycle(1e-4, 0.0, 0.5, "tick")
    assert rare.wait.mean == pytest.approx(0.25, rel=1e-3)
    assert rare.segments == pytest.approx(1.0, abs=1e-3)


def test_waits_at_a_tick_against_a_walk_through_time():
    """Arrivals one by one: forward ones wait or answer, reverse ones answer, ticks answer."""
    rng = np.random.default_rng(1)
    forward, reverse, period = 4.0, 2.0, 0.5
    times = np.cumsum(rng.exponential(1 / (forward + reverse), 400_000))
    kinds = rng.random(400_000) < forward / (forward + reverse)
    waits, carried, since = [], 0, None
    for time, is_forward in zip(times, kinds, strict=True):
        if since is not None and time // period > since // period:
            waits.append((since // period + 1) * period - since)
            since = None
        if since is None:
            since = time if is_forward else None
        else:
            waits.append(time - since)
            carried += not is_forward
            since = None
    cycle = ack_cycle(forward, reverse, period, "tick")
    error = np.std(waits) / len(waits) ** 0.5
    assert cycle.wait.mean == pytest.approx(np.mean(waits), abs=4 * error)
    assert cycle.piggybacked == pytest.approx(carried / len(waits), abs=0.005)


def test_each_segment_acknowledged_at_once_waits_for_nothing():
    assert ack_cycle(5.0, 5.0, 0.5, "tick", every=1).separate == 1.0


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
        assert both_ways(air, window).period == pytest.approx(air.both(0.0))
    assert one_way(air, 2, 2).period > air.alone(0.5)
    assert one_way(air, 3, 2).rtt == one_way(air, 4, 2).rtt


def test_the_walk_rests_where_slow_start_ends_if_nothing_is_random():
    walk = window_walk(
        lambda w: Round(max(0.05, 0.02 * w), 0.0, 0.05, w, w),
        alpha=1,
        beta=3,
        gamma=1,
        window=12,
        start=1,
    )
    (window,) = walk.windows
    assert 1 <= window - 2.5 <= 3  # Base times the rate is 2.5 segments


def test_the_law_of_the_walk_is_one():
    walk = window_walk(
        lambda w: Round(0.02 * w, 0.004 * w**0.5, 0.01 * w, w, w),
        alpha=1,
        beta=3,
        gamma=1,
        window=12,
        start=1,
    )
    assert sum(walk.windows.values()) == pytest.approx(1.0)
    assert walk.residual < 1e-3


ONE_PACKET = (((1, 0.0),), ())


def test_queue_alone_is_the_discrete_m_d_1():
    """Frames of two slots, one packet a job: residual frame, then load s / 2 (1 - load)."""
    jobs = Jobs(0.1, 1.0, *ONE_PACKET, 0.0)
    found = link_queue(jobs, None)
    load = 0.1 * 2
    assert found.busy == pytest.approx(load)
    assert found.wait == pytest.approx(2 / 2 + load * 2 / (2 * (1 - load)), rel=1e-9)


def test_queue_with_errors_is_the_m_g_1():
    """Five packets of geometric repetitions: Pollaczek & Khinchine, and half an idle frame as a vacation."""
    error = 0.3
    train = Train(((5, error),) * 4 + ((3, error),))
    rate = 0.7 / train.time()
    found = link_queue(Jobs(rate, 1.0, train.packets, (), 0.0), None)
    square = train.variance() + train.time() ** 2
    expected = rate * square / (2 * (1 - 0.7)) + 1.0
    assert found.busy == pytest.approx(0.7)
    assert found.wait == pytest.approx(expected, rel=1e-9)


def test_neighbour_and_direction_are_busy_alike():
    train = ((5, 0.1),) * 4 + ((3, 0.1),)
    jobs = Jobs(0.01, 1.0, train, (), 0.0)
    found = link_queue(jobs, jobs)
    assert found.present.sum() == pytest.approx(1.0, abs=1e-6)
    assert found.busy == pytest.approx(1 - found.present[0])
    assert link_queue(jobs, None).wait < found.wait


def test_bursts_wait_longer():
    train = ((5, 0.1),) * 4 + ((3, 0.1),)
    waits = [link_queue(Jobs(0.01 / size, size, train, (), 0.0), None).wait for size in (1.0, 2.0, 10.0)]
    # the m-th of a batch waits for m - 1 others: batches of b add (b - 1) / (1 - load) services
    service = Train(train).time()
    for size, wait in zip((2.0, 10.0), waits[1:], strict=True):
        assert wait - waits[0] == pytest.approx((size - 1) * service / (1 - 0.01 * service), rel=0.02)


def test_too_many_jobs_are_refused():
    with pytest.raises(Overloaded):
        link_queue(Jobs(0.6, 1.0, *ONE_PACKET, 0.0), None)


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
    from btqueue.scenario.model_scopes import MODELS
    from btqueue.scenario.scope import problems_of

    problems = problems_of(MODELS["two_way_link"], _paper("smooth", **changes))
    assert key in [problem.key for problem in problems]
