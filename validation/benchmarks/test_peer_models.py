"""The share of the benchmarks that every test run makes: both programs simulate the same system.

Small runs; each comparison at 4.5 standard deviations, estimated over replications of the slower program.
"""

import math

import measurements
import numpy as np
import other_programs
import pytest
from peer_models import ciw_mm1, simpy_polling

import btqueue as bt
from btqueue.simulator.queueing_only.polling_system import simulate_polling_system

COMPARISONS = {
    "seven queues, SimPy": (measurements.seven_queue_system, simpy_polling, measurements.SEVEN_QUEUES, 3e4),
    "M/M/1, Ciw": (measurements.mm1_system, ciw_mm1, measurements.MM1, 3e4),
}


@pytest.mark.parametrize("comparison", COMPARISONS.values(), ids=COMPARISONS.keys())
def test_both_programs_simulate_the_same_system(comparison):
    system, peer, parameters, slots = comparison
    theirs = np.array([peer(**parameters, until=slots, seed=seed).mean_waiting for seed in range(8)])
    ours = simulate_polling_system(system(), duration_slots=slots, replications=100).waiting.mean("queue")
    error = math.hypot(theirs.std(ddof=1) / math.sqrt(8), float(ours.std(ddof=1)) / 10)
    assert abs(theirs.mean() - float(ours.mean())) < 4.5 * error
    assert error < 0.05 * theirs.mean(), "and the comparison is sharp enough to tell"


@pytest.mark.parametrize("comparison", COMPARISONS.values(), ids=COMPARISONS.keys())
def test_both_programs_count_the_same_events(comparison):
    system, peer, parameters, slots = comparison
    theirs = peer(**parameters, until=slots, seed=1).events
    visits = peer is simpy_polling
    ours = measurements.our_polling(system(), slots, visits_are_events=visits)["happened"]
    # Arrivals and services vary by the root of their number, visits less.
    assert abs(ours - theirs) < 4.5 * math.sqrt(2 * 2 * theirs)


@pytest.mark.parametrize(("scenario", "errors"), [("piconet", False), ("piconet-errors", True)])
def test_the_loop_in_cpp_is_the_same_piconet(scenario, errors):
    try:
        theirs = other_programs.cpp_piconet(seconds=480, replications=100, errors=errors)["goodput_kbps"]
    except other_programs.NotHere as reason:
        pytest.skip(str(reason))
    loaded = bt.load(f"venugopal-2006/{scenario}").with_(run__replications=40)
    ours = bt.simulate(loaded).goodput_kbps.mean("flow").values
    error = math.hypot(np.std(theirs, ddof=1) / 10, ours.std(ddof=1) / math.sqrt(40))
    assert abs(np.mean(theirs) - ours.mean()) < 4.5 * error
    assert error < 0.05 * ours.mean()
