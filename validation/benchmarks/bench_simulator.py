"""Speed as ratios within one run, on a quiet machine. Not part of the default test run:

    pytest validation/benchmarks/bench_simulator.py                        all of it
    pytest validation/benchmarks/bench_simulator.py --benchmark-json=FILE  kept, with the ratios in extra_info
    python validation/benchmarks/report.py                                 a table of the ratios

A ratio that is asked for fails when it is missed; on a machine that others use, look at the table instead. A
comparison whose other program is not here is skipped and says what it needs (`other_programs.py`).
"""

import measurements
import pytest
from other_programs import NotHere, compile_times

pytestmark = pytest.mark.benchmark_ratio


@pytest.fixture
def measured(benchmark):
    """Call a measurement once, keep its numbers with the benchmark, and return them."""

    def run(function, **kwargs):
        try:
            result = benchmark.pedantic(function, kwargs=kwargs, rounds=1)
        except NotHere as reason:
            pytest.skip(str(reason))
        benchmark.extra_info.update(result)
        return result

    return run


def test_seven_queues(benchmark):
    system = measurements.seven_queue_system()
    benchmark.pedantic(
        measurements.our_polling, (system, 2e7), {"visits_are_events": True}, rounds=5, warmup_rounds=1
    )


def test_seven_queues_against_simpy(measured):
    assert measured(measurements.seven_queues_against_simpy)["ratio"] >= 60


def test_seven_queues_against_line(measured):
    assert measured(measurements.seven_queues_against_line)["ratio"] >= 8


def test_mm1_against_ciw(measured):
    assert measured(measurements.mm1_against_ciw)["ratio"] >= 60


@pytest.mark.parametrize("errors", [False, True], ids=["perfect radio", "two-state radio"])
def test_piconet_against_cpp(measured, errors):
    assert measured(measurements.piconet_against_cpp, errors=errors)["ratio"] >= (0.8 if errors else 0.95)


def test_link_against_ns3(measured):
    assert measured(measurements.link_against_ns3)["ratio"] >= 50


def test_cost_of_options_that_are_off(measured):
    measured(measurements.cost_of_options)


def test_compiling(measured):
    seconds = measured(compile_times)
    assert seconds["empty_cache_s"] < 20
    assert seconds["warm_cache_s"] < 1


def test_cost_of_a_device_does_not_grow_with_their_number(benchmark):
    # Twice is left for caches: 8 devices fit into the nearest, 8,000 do not.
    costs = benchmark.pedantic(measurements.cost_by_devices, rounds=1)
    benchmark.extra_info["cpu_s_for_a_simulated_second_and_device"] = costs
    assert max(costs.values()) <= 2 * costs[8]


# 1.9 of 2 cores and 3.4 of 4; where a machine's cores are not whole ones, as much of what it gives.
@pytest.mark.parametrize(("threads", "share"), [(2, 1.9 / 2), (4, 3.4 / 4)])
def test_threads_against_one(measured, threads, share):
    assert measured(measurements.threads_against_one, threads=threads)["share"] >= share


def test_memory_is_flat(measured):
    result = measured(measurements.memory_growth)
    assert result["long"] == result["short"]


def test_solve(benchmark):
    if reason := measurements.why_no_solve():
        pytest.skip(reason)
    benchmark.extra_info.update(measurements.solve_times())
    benchmark.pedantic(
        measurements.bt.solve, (measurements.bt.load("venugopal-2006/piconet"),), rounds=10, warmup_rounds=1
    )
    assert benchmark.extra_info["fresh_process_s"] <= 2 * benchmark.extra_info["import_jax_s"]
