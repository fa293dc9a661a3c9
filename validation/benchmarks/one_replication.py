"""Play one replication and print its cost, in a process of its own: any version of btqueue, a cold or a
warm cache.

    python one_replication.py SECONDS SCENARIO.toml

prints one JSON object: wall-clock seconds of the first call, which compiles or reads the cache, and CPU
seconds, events and goodput (kbit/s, mean of the flows) of a second one of that many simulated seconds.
`PYTHONPATH` chooses the version.
"""

import json
import sys
import time
from typing import Any

import numpy as np

import btqueue as bt
from btqueue.simulator.replications import run_replication


def events_and_metrics(replication: Any) -> tuple[int, Any]:
    """Return (events, metrics), as early versions of btqueue name them."""
    if isinstance(replication, dict):
        return replication["events"], replication
    if hasattr(replication, "metrics"):
        return replication.events, replication.metrics
    return replication.events, {"goodput_kbps": replication.counts.goodput_kbps()}


def main():
    """Play and print."""
    seconds, scenario = float(sys.argv[1]), bt.load(sys.argv[2])
    start = time.perf_counter()
    run_replication(scenario.with_(run__duration_s=0.001, run__warmup_s=0), 0)
    first = time.perf_counter() - start
    start = time.process_time()
    replication = run_replication(scenario.with_(run__duration_s=seconds, run__warmup_s=0), 0)
    cpu = time.process_time() - start
    events, metrics = events_and_metrics(replication)
    result = {
        "first_call_s": first,
        "cpu_s": cpu,
        "events": int(events),
        "goodput_kbps": float(np.mean(metrics["goodput_kbps"])),
        "simulated_s": seconds,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
