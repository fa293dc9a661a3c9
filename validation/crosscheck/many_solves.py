"""Solve many different scenarios in one process and print what it holds of the system after every hundred.

    python validation/crosscheck/many_solves.py 3000

Each line is the number of solves, the resident memory (MiB) and the memory mappings of the process.
"""

import json
import os
import sys
import tempfile
from itertools import count
from pathlib import Path

from any_scenario import drawn
from scenario_fuzz import write_files

from btqueue.network import solve
from btqueue.scenario import Scenario, ScenarioError

EVERY = 100


def resident_mib() -> float:
    """Return the memory of this process that is in use (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def mappings() -> int:
    """Return the number of memory mappings of this process (Linux)."""
    with open("/proc/self/maps", "rb") as maps:
        return sum(1 for _ in maps)


def solvable(files):
    """Yield scenarios that a model covers, all different."""
    for number in count():
        fuzzed = drawn(number, files)
        if fuzzed.damaged or fuzzed.extreme:
            continue
        yield Scenario.from_dict(fuzzed.data)


def main(solves: int) -> None:
    """Solve so many scenarios."""
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        for scenario in solvable(write_files(Path(folder))):
            try:
                solve(scenario)
            except (ScenarioError, RuntimeError):  # refused, or without an answer: no matter here
                continue
            done += 1
            if done % EVERY == 0:
                print(json.dumps([done, round(resident_mib(), 1), mappings()]), flush=True)
            if done >= solves:
                return


if __name__ == "__main__":
    main(int(sys.argv[1]))
