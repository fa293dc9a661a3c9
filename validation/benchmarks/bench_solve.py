"""Speed of `solve`. Not part of the default test run:

    pytest -s validation/benchmarks/bench_solve.py                     all of it, with the numbers
    pytest validation/benchmarks/bench_solve.py --benchmark-json=FILE  kept, with the numbers in extra_info

What is asked for fails when it is missed; it means little on a machine that others use. Times are CPU seconds
of the thread that solves, unless they say otherwise; of several runs the least counts, as what disturbs can
only add.
"""

import os
import subprocess
import sys
import tempfile
import time
from itertools import product

import numpy as np
import pytest

import btqueue as bt
from btqueue.study.many_points import map_points

pytestmark = pytest.mark.benchmark_ratio

STAR = {
    "network.flows": "downlink", "link.arq": "unlimited", "flow_control.enabled": False,
    "radio.model": "constant", "radio.ber": 3e-5,
}  # fmt: skip
CASES = {
    "chain": ("chen-2004/adaptive-1", {}, "radio.ber", (0.0001, 0.002)),
    "sessions": ("avancha-2002/bluetooth-tcp", {}, "run.jitter_s", (0.0002, 0.002)),
    "piconet": ("venugopal-2006/piconet", STAR, "traffic.load_kbps", (50.0, 250.0)),
}
"""A scenario, what is changed in it, and a number that a sweep varies beside the receive window."""
WINDOWS = range(5, 15)
each_case = pytest.mark.parametrize("case", CASES)


def scenario_of(case):
    name, changes, _, _ = CASES[case]
    return bt.load(name).changed(changes)


def least(function, repeats=5, clock=time.thread_time):
    """Return the least seconds of several calls."""
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


@each_case
def test_one_solve(measured, case):
    scenario = scenario_of(case)
    bt.solve(scenario)
    assert measured(lambda: {"milliseconds": 1e3 * least(lambda: bt.solve(scenario))})["milliseconds"] < 50


@pytest.mark.parametrize("name", ["ble-throughput/coc-nordic-sdc", "ble-sensors/sensors"])
def test_one_solve_of_low_energy(measured, name):
    """One link, and twenty links of a central."""
    scenario = bt.load(name)
    bt.solve(scenario)
    assert measured(lambda: {"milliseconds": 1e3 * least(lambda: bt.solve(scenario))})["milliseconds"] < 10


@each_case
def test_sweep(measured, case):
    """10,000 points in a minute on two cores."""
    scenario, (_, _, key, (low, high)) = scenario_of(case), CASES[case]
    places = product(np.linspace(low, high, 20).tolist(), WINDOWS)
    grid = [{key: value, "transport.receive_window_segments": window} for value, window in places]
    bt.solve(scenario)

    def sweep():
        start = time.process_time()
        results = list(map_points(scenario, grid, engines=("theory",), workers=1))
        without = sum(one.answers["theory"].failure is not None for one in results)
        return {"points_per_s": len(grid) / (time.process_time() - start), "without_answer": without}

    found = measured(sweep)
    assert found["without_answer"] == 0
    assert found["points_per_s"] > 10_000 / 60 / 2


@pytest.fixture
def command(tmp_path):
    """Return a function for the wall-clock seconds of Python with these words; FILE is the scenario."""

    def seconds(case, *words, **environment):
        file = tmp_path / "scenario.toml"
        file.write_text(scenario_of(case).to_toml(resolved=False))
        words = [str(file) if word == "FILE" else word for word in words]
        run = {"env": os.environ | environment, "check": True, "stdout": subprocess.DEVNULL}
        return least(lambda: subprocess.run([sys.executable, *words], **run), 1, time.perf_counter)

    return seconds


SOLVE = ("-m", "btqueue", "solve", "FILE", "--no-check")


@each_case
def test_fresh_process_against_import_of_jax(measured, command, case):
    def processes():
        command(case, *SOLVE)
        rounds = [(command(case, *SOLVE), command(case, "-c", "import jax")) for _ in range(5)]
        solve, jax = map(min, zip(*rounds, strict=True))
        return {"solve_s": solve, "import_jax_s": jax, "ratio": solve / jax}

    assert measured(processes)["ratio"] < 2


@each_case
def test_empty_cache(measured, command, case):
    def empty():
        with tempfile.TemporaryDirectory() as cache:
            return {"seconds": command(case, *SOLVE, BTQUEUE_CACHE_DIR=cache)}

    assert measured(empty)["seconds"] < 30


@each_case
def test_gradient(measured, case):
    """Three solves, and what is around them; the scenario's own solve is counted with the derivative."""
    scenario, (_, _, key, _) = scenario_of(case), CASES[case]
    bt.solve(scenario)

    def gradient():
        solving = least(lambda: bt.solve(scenario))
        return {"ratio": least(lambda: bt.network.plan(scenario).sides(["goodput_kbps"], key)) / solving}

    assert measured(gradient)["ratio"] < 3.3
