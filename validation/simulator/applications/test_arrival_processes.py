"""Arrival processes: the exact law of the interrupted Bernoulli process, changing loads.

Statistical checks have a fixed seed; the false-alarm rate stated is that of a fresh seed.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from state_tables import tables

NEVER = 2**62
SLOT = 625_000
MS = 1_000_000


def new_source(plain, application, schedule=(), seed=1, **fields):
    """A flow with this application; `schedule`: its part of `schedules`, behind two foreign entries."""
    records = plain.records
    sim = tables(records, connections=1)
    sim.streams = plain.random_streams.make_streams(seed, 0, 1)
    sim.schedules = np.array([-1, -1, *schedule], np.int64)
    conn = sim.connections[0]
    conn.application, conn.schedule = getattr(records, application), 2
    for name, value in fields.items():
        conn[name] = value
    assert records.SLOT == SLOT
    return sim


def with_steps(plain, application, steps, **fields):
    """A source whose load changes: `steps` are pairs of a time and the mean gap from then on (ns)."""
    flat = [number for step in steps for number in step]
    return new_source(plain, application, flat, schedule_length=len(steps), **fields)


def arrivals(plain, sim, until, after=0):
    """Return the arrivals up to `until` (ns) of a source that starts at `after`."""
    begins, times = True, []
    while True:
        after = int(plain.arrival_processes.next_arrival(sim, 0, after, begins))
        begins = False
        if after > until:
            return times
        times.append(after)


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
    with pytest.raises(ValueError, match="at least"):
        plain.arrival_processes.ibp_probabilities(rate, 0.999 * least)


@pytest.mark.parametrize("rate", [-0.1, 0.0, 1.0, 1.5])
def test_a_rate_that_no_slotted_process_has_is_refused(plain, rate):
    with pytest.raises(ValueError, match="messages a slot"):
        plain.arrival_processes.ibp_probabilities(rate, 2.0)


@pytest.mark.parametrize(("p", "q"), [(0.4, 0.2), (1.0, 0.3), (0.3, 1.0)])
def test_the_gaps_drawn_follow_the_law_of_the_chain(plain, p, q):
    sim = new_source(plain, "IBP", mean_gap=SLOT * (p + q) / q, leave_active=p, leave_idle=q)
    times = [0, *(arrivals(plain, sim, 4000 * SLOT))]
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
    steps = [(1000 * MS, MS // 4), (2000 * MS, 0), (3000 * MS, 2 * MS)]
    sim = with_steps(plain, "POISSON", steps, mean_gap=float(MS))
    counts = np.histogram(arrivals(plain, sim, 4000 * MS), bins=[0, 1e9, 2e9, 3e9, 4e9])[0]
    for count, mean in zip(counts, [1000, 4000, 0, 500], strict=True):
        # two-sided tail of a Poisson count: false-alarm rate 5e-5 for each of three
        assert stats.poisson.ppf(2.5e-5, mean) <= count <= stats.poisson.ppf(1 - 2.5e-5, mean)


def test_a_periodic_source_has_a_random_phase_and_a_fresh_one_after_each_change(plain):
    gaps, phases = (7 * MS, 3 * MS), []
    for seed in range(400):
        sim = with_steps(plain, "PERIODIC", [(100 * MS, gaps[1])], seed=seed, mean_gap=float(gaps[0]))
        times = np.array(arrivals(plain, sim, 200 * MS))
        parts = times[times <= 100 * MS], times[times > 100 * MS] - 100 * MS
        for part, gap in zip(parts, gaps, strict=True):
            assert set(np.diff(part)) == {gap}
        phases.append([part[0] / gap for part, gap in zip(parts, gaps, strict=True)])
    before, after = np.array(phases).T
    # Kolmogorov-Smirnov twice, and a correlation of 4.06 deviations: false-alarm rate 3e-4 in all
    for phase in (before, after):
        assert stats.kstest(phase, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(before, after)[0, 1]) < 4.06 / np.sqrt(len(phases))


@pytest.mark.parametrize("application", ["POISSON", "PERIODIC", "IBP"])
@pytest.mark.parametrize("gap", [1e19, 1e300, np.inf])
def test_an_arrival_that_no_run_reaches_never_comes(plain, application, gap):
    sim = new_source(plain, application, mean_gap=gap, leave_active=1.0, leave_idle=SLOT / gap)
    # an exponential gap of mean 1e19 ns is below 2^62 in a third of the cases
    times = [int(plain.arrival_processes.next_arrival(sim, 0, MS, False)) for _ in range(100)]
    assert all(MS < time <= NEVER for time in times)
    assert NEVER in times
