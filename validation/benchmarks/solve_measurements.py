"""What the benchmarks of `solve` measure: plain numbers, nothing here judges them.

One scenario of the literature stands for each model. Times are CPU seconds of the thread that solves, unless
they say otherwise; of several runs the least counts, as what disturbs can only add.
"""

import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np

import btqueue as bt
from btqueue.study.evaluate import answer_of
from btqueue.study.many_points import map_points

MODELS = Path(__file__).parents[2] / "models"

SCENARIOS = {
    "chain": "chen-2004/adaptive-1",
    "request_reply": "avancha-2002/bluetooth-tcp",
    "piconet": "venugopal-2006/piconet",
}

CHANGED = {
    "piconet": {
        "network.flows": "downlink",
        "link.arq": "unlimited",
        "flow_control.enabled": False,
        "radio.model": "constant",
        "radio.ber": 3e-5,
    },
}
"""What else a scenario has."""

VARIED = {
    "chain": ("radio.ber", (0.0001, 0.002)),
    "request_reply": ("run.jitter_s", (0.0002, 0.002)),
    "piconet": ("traffic.load_kbps", (50.0, 250.0)),
}
"""A number that a sweep varies besides the receive window, and its range."""

DIFFERENTIATED = {
    "chain": "radio.ber",
    "request_reply": "run.jitter_s",
    "piconet": "radio.ber",
}
"""A key to differentiate by."""

WINDOWS = range(5, 15)
"""Receive windows that a sweep varies."""
PRECISION = 0.02

QUESTIONS = {
    "rate and delay": ("goodput_kbps", "rtt_s"),
    "events too": ("goodput_kbps", "rtt_s", "timeouts_per_s", "fast_retransmits_per_s", "segment_loss"),
}
"""What is to be known to `PRECISION`: in which of its metrics a user may be interested."""

RARE = {"timeouts_per_s": 0.01, "fast_retransmits_per_s": 0.01, "segment_loss": 0.001}
"""Below these nobody asks for 2 % of a metric; they are those of the table of errors."""


def scenario_of(model):
    """Return the scenario that stands for a model."""
    return bt.load(MODELS / f"{SCENARIOS[model]}.toml").changed(CHANGED.get(model, {}))


def solve_command(model):
    """Return the words of the command that solves it."""
    changes = [
        word
        for key, value in CHANGED.get(model, {}).items()
        for word in ("--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}")
    ]
    return ("-m", "btqueue", "solve", str(MODELS / f"{SCENARIOS[model]}.toml"), *changes)


def least(repeats, function, clock=time.thread_time):
    """Return the least seconds of several calls."""
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def one_solve(model, repeats=5):
    """Return the milliseconds of a solve, everything being compiled."""
    scenario = scenario_of(model)
    bt.solve(scenario)
    return {"milliseconds": 1e3 * least(repeats, lambda: bt.solve(scenario))}


def sweep(model, points=200):
    """Return the points that one core answers in a second, and those without an answer."""
    scenario = scenario_of(model)
    key, (low, high) = VARIED[model]
    values = np.linspace(low, high, points // len(WINDOWS)).tolist()
    grid = [
        {key: value, "transport.receive_window_segments": window}
        for value, window in product(values, WINDOWS)
    ]
    bt.solve(scenario)
    start = time.process_time()
    results = list(map_points(scenario, grid, engines=("theory",), workers=1))
    seconds = time.process_time() - start
    return {
        "points_per_s": len(grid) / seconds,
        "without_answer": sum(result.answers["theory"].failure is not None for result in results),
        "seconds_of_10000_points_on_two_cores": 1e4 * seconds / len(grid) / 2,
    }


def _command(*words, **environment):
    """Return the wall-clock seconds of a process."""
    start = time.perf_counter()
    subprocess.run(words, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def fresh_process(model, repeats=5):
    """Return the wall-clock seconds of `btqueue solve` and of `import jax`, in turns, and their ratio."""
    commands = [solve_command(model), ("-c", "import jax")]
    _command(sys.executable, *commands[0])
    rounds = [[_command(sys.executable, *words) for words in commands] for _ in range(repeats)]
    solve, jax = map(min, zip(*rounds, strict=True))
    return {"solve_s": solve, "import_jax_s": jax, "ratio": solve / jax}


def empty_cache(model):
    """Return the wall-clock seconds of `btqueue solve` with nothing compiled."""
    with tempfile.TemporaryDirectory() as cache:
        return {"seconds": _command(sys.executable, *solve_command(model), BTQUEUE_CACHE_DIR=cache)}


def gradient(model):
    """Return the CPU seconds of a derivative of goodput by one key, in those of a solve.

    The scenario's own solve is counted with the derivative.
    """
    scenario, key = scenario_of(model), DIFFERENTIATED[model]
    bt.solve(scenario)
    solving = least(5, lambda: bt.solve(scenario))
    (found,) = bt.network.plan(scenario).sides(["goodput_kbps"], key).values()
    seconds = least(5, lambda: bt.network.plan(scenario).sides(["goodput_kbps"], key))
    return {"ratio": seconds / solving, "kind": found.kind}


def against_simulation(model, question):
    """Return the CPU seconds of a solve, and of a simulation after which the answer to a question is known.

    Known means: half a 95 % interval is within `PRECISION` of the mean. The scenario is simulated as it is;
    how much more or less would do follows from its intervals, which shrink with the root of the simulated
    time; where nothing is random it is one replication. Compilation is not counted.
    """
    scenario = scenario_of(model)
    solved = answer_of(bt.solve(scenario)).means
    solving = least(3, lambda: bt.solve(scenario))
    bt.simulate(scenario.with_(run__duration_s=1.0, run__warmup_s=0.0, run__replications=2), threads=1)
    start = time.process_time()
    answer = answer_of(bt.simulate(scenario, threads=1))
    seconds = time.process_time() - start
    asked = [
        name for name in QUESTIONS[question] if name in solved and answer.means[name] > RARE.get(name, 0.0)
    ]
    widths = {name: answer.ci95[name] / answer.means[name] for name in asked}
    needed = (max(widths.values()) / PRECISION) ** 2
    simulating = seconds * max(needed, 1.0 / scenario.run.replications)
    return {
        "solve_s": solving,
        "simulate_s": simulating,
        "as_it_is_s": seconds,
        **{f"{name}_half_width": width for name, width in widths.items()},
        "ratio": simulating / solving,
        "ratio_as_it_is": seconds / solving,
    }
