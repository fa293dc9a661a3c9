"""What runs in processes of its own: the C++ loop, ns-3, a fresh interpreter.

ns-3 (PyPI `ns3`) brings a C++ interpreter and needs an environment for itself, whose interpreter this
variable names:

    python -m venv ns3 && ns3/bin/pip install ns3==3.44.post0
    export BTQUEUE_NS3_PYTHON=$PWD/ns3/bin/python

Where the variable is not set, or there is no C++ compiler, the comparison is left out and says why.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


class NotHere(RuntimeError):
    """A program that a comparison needs is not on this machine; the text says which and how to get it."""


def answer_of(*command, **environment):
    """Run a program and return the JSON object that it printed last."""
    done = subprocess.run(
        [str(part) for part in command],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def ns3_link(*, rate_kbps, delay_ms, loss, seconds):
    """Return what ns-3 needs for a TCP flow over a link: CPU seconds, events, goodput."""
    python = os.environ.get("BTQUEUE_NS3_PYTHON")
    if not python:
        raise NotHere("BTQUEUE_NS3_PYTHON is not set; see validation/benchmarks/other_programs.py")
    numbers = (rate_kbps, delay_ms, loss, seconds)
    return answer_of(python, HERE / "ns3_link.py", *numbers)


@functools.cache
def compiled_piconet():
    """Compile piconet.cpp for this machine and return the program; it stays until this process ends."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NotHere("no C++ compiler")
    folder = tempfile.TemporaryDirectory()
    program = Path(folder.name) / "piconet"
    subprocess.run([compiler, "-std=c++20", "-O3", "-o", program, HERE / "piconet.cpp"], check=True)
    return folder, program


def cpp_piconet(*, seconds, replications=1, seed=1, load_kbps=160, errors=False):
    """Return what the C++ loop printed: goodputs, events, CPU seconds, simulated seconds."""
    _, program = compiled_piconet()
    return answer_of(program, seconds, replications, seed, load_kbps, int(errors))


def cpp_piconets_at_once(count, *, seconds=20_000):
    """Play the C++ loop in several processes at once, each its own replication."""
    _, program = compiled_piconet()
    commands = [[program, str(seconds), "1", str(seed), "160", "0"] for seed in range(1, count + 1)]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    for process in processes:
        if process.wait():
            raise subprocess.CalledProcessError(process.returncode, process.args)


def one_replication(seconds, *, scenario="venugopal-2006/piconet", **environment):
    """Return the cost of one replication in a process of its own, with a cold or a warm cache."""
    return answer_of(sys.executable, __file__, seconds, scenario, **environment)


def compile_times():
    """Return wall-clock seconds of the first call with an empty cache, and with the cache that it left."""
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (one_replication(1, BTQUEUE_CACHE_DIR=cache)["first_call_s"] for _ in range(2))
    return {"empty_cache_s": cold, "warm_cache_s": warm}


def main(seconds, name):
    """Print as JSON the cost of the first call (wall-clock s), which compiles, and of a second (CPU s)."""
    import btqueue as bt
    from btqueue.simulator.replications import run_replication

    scenario, start = bt.load(name), time.perf_counter()
    run_replication(scenario.with_(run__duration_s=0.001, run__warmup_s=0), 0)
    first, start = time.perf_counter() - start, time.process_time()
    replication = run_replication(scenario.with_(run__duration_s=seconds, run__warmup_s=0), 0)
    cost = {"first_call_s": first, "cpu_s": time.process_time() - start, "simulated_s": seconds}
    goodput = float(replication.counts.goodput_kbps().mean())
    print(json.dumps({**cost, "events": replication.events, "goodput_kbps": goodput}))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2])
