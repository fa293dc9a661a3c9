"""Speed as ratios within one run, on a quiet machine. Not part of the default test run:

    pytest -s validation/benchmarks/bench_simulator.py                     all of it, with the numbers
    pytest validation/benchmarks/bench_simulator.py --benchmark-json=FILE  kept, with the ratios in extra_info

A ratio that is asked for fails when it is missed; on a machine that others use, look at the numbers instead.
A comparison whose other program is not here is skipped and says what it needs (`other_programs.py`).
"""

import measurements
import pytest
from other_programs import compile_times

pytestmark = pytest.mark.benchmark_ratio


@pytest.mark.parametrize("errors", [False, True], ids=["perfect radio", "two-state radio"])
def test_piconet_against_cpp(measured, errors):
    assert measured(measurements.piconet_against_cpp, errors=errors)["ratio"] >= (0.8 if errors else 0.95)


def test_link_against_ns3(measured):
    assert measured(measurements.link_against_ns3)["ratio"] >= 50


def test_compiling(measured):
    seconds = measured(compile_times)
    assert seconds["empty_cache_s"] < 20
    assert seconds["warm_cache_s"] < 1


def test_cost_of_a_device_does_not_grow_with_their_number(measured):
    # Twice is left for caches: 8 devices fit into the nearest, 8,000 do not.
    costs = measured(measurements.cost_by_devices)["cpu_s_for_a_simulated_second_and_device"]
    assert max(costs.values()) <= 2 * costs[8]


# 1.9 of 2 cores and 3.4 of 4; where a machine's cores are not whole ones, as much of what it gives.
@pytest.mark.parametrize(("threads", "share"), [(2, 1.9 / 2), (4, 3.4 / 4)])
def test_threads_against_one(measured, threads, share):
    assert measured(measurements.threads_against_one, threads=threads)["share"] >= share


def test_memory_is_flat(measured):
    result = measured(measurements.memory_growth)
    assert result["long"] == result["short"]
