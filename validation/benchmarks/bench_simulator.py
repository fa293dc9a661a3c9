"""Speed as ratios within one run, on a quiet machine. Not part of the default test run:

    pytest validation/benchmarks/bench_simulator.py                        all of it
    pytest validation/benchmarks/bench_simulator.py --benchmark-json=FILE  kept, with the ratios in extra_info
    python validation/benchmarks/report.py                                 a table of the ratios

A ratio that is asked for fails when it is missed; on a machine that others use, look at the table instead.
"""

import measurements
import pytest

pytestmark = pytest.mark.benchmark_ratio

SIMPY_RATIO = 30
THREADS_RATIO = 1.9


def test_piconet(benchmark):
    scenario = measurements.bt.load("venugopal-2006/piconet")
    measurements.run_piconet(scenario, 1)
    events, _ = benchmark.pedantic(measurements.run_piconet, (scenario, 20_000), rounds=5)
    benchmark.extra_info["events_per_s"] = events / benchmark.stats["min"]
    benchmark.extra_info["simulated_s_per_s"] = 20_000 / benchmark.stats["min"]


def test_seven_queues_against_simpy(benchmark):
    system = measurements.seven_queue_system()
    benchmark.extra_info.update(measurements.seven_queues_against_simpy())
    benchmark.pedantic(measurements.our_polling, (system, 2e7), {"visits_are_events": True}, rounds=3)
    assert benchmark.extra_info["ratio_of_played_events"] >= SIMPY_RATIO


def test_mm1_against_ciw(benchmark):
    benchmark.extra_info.update(measurements.mm1_against_ciw())
    system = measurements.mm1_system()
    benchmark.pedantic(measurements.our_polling, (system, 5e7), {"visits_are_events": False}, rounds=3)
    assert benchmark.extra_info["ratio"] >= SIMPY_RATIO


def test_two_threads_against_one(benchmark):
    result = benchmark.pedantic(measurements.two_threads_against_one, rounds=1)
    benchmark.extra_info.update(result)
    assert result["ratio"] >= THREADS_RATIO


def test_memory_is_flat(benchmark):
    result = benchmark.pedantic(measurements.memory_growth, rounds=1)
    benchmark.extra_info.update(result)
    assert result["long"] == result["short"]


def test_cost_is_at_most_linear_in_the_number_of_devices(benchmark):
    # Greedy sources keep the radio busy, so a simulated second holds the same number of slots whatever the
    # number of devices: the cost may not grow faster than that number does.
    costs = benchmark.pedantic(measurements.cost_by_devices, rounds=1)
    benchmark.extra_info["seconds_for_a_simulated_second"] = costs
    assert costs[7] <= costs[2] * 7 / 2


def test_solve(benchmark):
    if reason := measurements.why_no_solve():
        pytest.skip(reason)
    benchmark.extra_info.update(measurements.solve_times())
    benchmark.pedantic(
        measurements.bt.solve, (measurements.bt.load("venugopal-2006/piconet"),), rounds=10, warmup_rounds=1
    )
    assert benchmark.extra_info["fresh_process_s"] <= 2 * benchmark.extra_info["import_jax_s"]
