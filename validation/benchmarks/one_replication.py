"""Play one replication and print its cost, in a process of its own, with a cold or a warm cache.

    python one_replication.py SECONDS SCENARIO.toml

prints one JSON object: wall-clock seconds of the first call, which compiles or reads the cache, and CPU
seconds, events and goodput (kbit/s, mean of the flows) of a second one of that many simulated seconds.
"""

import json
import sys
import time

import btqueue as bt
from btqueue.simulator.replications import run_replication


def main():
    """Play and print."""
    seconds, scenario = float(sys.argv[1]), bt.load(sys.argv[2])
    start = time.perf_counter()
    run_replication(scenario.with_(run__duration_s=0.001, run__warmup_s=0), 0)
    first = time.perf_counter() - start
    start = time.process_time()
    replication = run_replication(scenario.with_(run__duration_s=seconds, run__warmup_s=0), 0)
    cpu = time.process_time() - start
    result = {
        "first_call_s": first,
        "cpu_s": cpu,
        "events": replication.events,
        "goodput_kbps": float(replication.counts.goodput_kbps().mean()),
        "simulated_s": seconds,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
