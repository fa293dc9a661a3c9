"""Right runs of other programs, as facts: the scenario of each, and its numbers in `right_runs.json`.

`PYTHONPATH=tools:validation/helpers python validation/peers/right_runs.py` writes the runs of `polling_loop`
and SimPy; the others stand as they were measured (README.md).
"""

import json
import math
import random
from collections import deque
from pathlib import Path

import numpy as np
import polling_loop
import simpy
from ns3_scenario import scenario_of as of_ns3
from planted_faults import THESIS
from thesis import over_wires

import btqueue as bt
from btqueue.study.check import ForeignResults, Quantity

FILE = Path(__file__).with_name("right_runs.json")
NS3 = json.loads(Path(__file__).with_name("ns3_tcp.json").read_text("utf-8"))
ROWS = [dict(zip(NS3["columns"], row, strict=True)) for row in NS3["rows"]]
CHOSEN = [
    ("LinuxReno", 250000, 20, 5, 0, 8, 1),
    ("NewReno", 250000, 100, 5, 0, 0, 1),
    ("NewReno", 700000, 100, 25, 0, 8, 0),
    ("NewReno", 700000, 20, 25, 0.01, 0, 1),
    ("Vegas", 700000, 100, 5, 0, 0, 0),
    ("LinuxReno", 700000, 100, 25, 0.05, 0, 1),
]
TRANSFER = 250 * 1448
"""Bytes that a kernel of the captures sent."""
LONGEST_S = 60
SLOT_S = 625e-6
POLLED = {"load 0.5": 0.5, "load 0.7": 0.7}
"""Seven queues, served to the end at each visit: peripherals that send packets of five slots."""
QUEUES, SECONDS, RUNS = 7, 200, 8


def of_row(row: dict) -> ForeignResults:
    """Return the numbers of a row of ns-3, which cover 1000 s from the start."""
    names = {
        "goodput_kbps": ("goodput_bps", 1000),
        "retransmissions_per_s": ("retransmissions", 1000),
        "timeouts_per_s": ("rto", 1000),
        "fast_retransmits_per_s": ("fast_recovery", 1000),
    }
    found = {}
    for name, (column, divisor) in names.items():
        width, runs = row.get(f"{column}_ci95"), row["runs"]
        found[name] = Quantity(name, row[column] / divisor)
        if width is not None:
            found[name] = Quantity(name, row[column] / divisor, (), width / divisor, replications=runs)
    return ForeignResults("ns-3", "CSV", found, duration_s=1000.0, measured_from_start=True)


def kernel(link: dict) -> bt.Scenario:
    """Return the scenario of one transfer by a Linux kernel over the link of a capture."""
    wire = {
        "name": "link",
        "from": "a",
        "to": "b",
        "rate_kbps": link["rate"],
        "delay_s": link["delay"] / 1000,
    }
    wire |= {"buffer_packets": link["buf"], "loss": link["p"], "loss_back": 0.0, "header_bytes": 0}
    headers = 52 if link.get("ts", 1) else 40
    variant = {"reno": "newreno", "cubic": "cubic"}[link["variant"]]
    linux = {"preset": "linux", "variant": variant, "timestamps": bool(link.get("ts", 1))}
    once = {"source": "periodic", "phase": "aligned", "message_bytes": TRANSFER}
    return bt.Scenario.from_dict(
        {
            "network": over_wires(wire),
            "traffic": once | {"load_kbps": TRANSFER * 8e-3 / (2 * LONGEST_S)},
            "transport": linux | {"mss_bytes": 1500 - headers, "header_bytes": headers},
            "run": {"duration_s": LONGEST_S, "warmup_s": 0},
        }
    )


def polled(load: float) -> bt.Scenario:
    """Return seven peripherals that send packets of five slots: an exchange of six, and two to leave."""
    size = 339 - 4
    return THESIS.with_(
        **{"network__flows": "uplink", "network__peripherals": QUEUES, "transport__protocol": "none"},
        **{"transport__header_bytes": 0, "flow_control__enabled": False, "polling__discipline": "exhaustive"},
        **{"traffic__message_bytes": size, "traffic__load_kbps": load / QUEUES / 6 / SLOT_S * size * 8e-3},
        **{"run__duration_s": SECONDS, "run__warmup_s": SECONDS / 10},
    )


def by_simpy(load: float, seed: int, slots: float, limit: float = math.inf) -> float:
    """Return the mean wait (slots): one process for each source, one for the server."""
    env, draw = simpy.Environment(), random.Random(seed).expovariate
    lines, waits = [deque() for _ in range(QUEUES)], []

    def source(line):
        while True:
            yield env.timeout(draw(load / QUEUES / 6))
            line.append(env.now)

    def server():
        while True:
            for line in lines:
                served = 0
                while line and served < limit:
                    waits.append(env.now - line.popleft())
                    yield env.timeout(6)
                    served += 1
                yield env.timeout(2)

    for line in lines:
        env.process(source(line))
    env.process(server())
    env.run(until=slots)
    return float(np.mean(waits))


def delays() -> dict[str, dict[str, list[float]]]:
    """Return the delays (s) of `POLLED` by both programs: a wait and five slots on the air."""
    found = {}
    for name, load in POLLED.items():
        times = {"services": polling_loop.constant(6), "walks": polling_loop.constant(2)}
        system = polling_loop.Polling(rates=[load / QUEUES / 6] * QUEUES, **times)
        played = polling_loop.simulate(system, slots=SECONDS / SLOT_S, replications=RUNS)
        waits = {"polling_loop": played["waiting"].mean(axis=1)}
        waits["SimPy"] = np.array([by_simpy(load, seed, SECONDS / SLOT_S) for seed in range(RUNS)])
        for program, values in waits.items():
            found[f"{program}, {name}"] = {"delay_s": [float(f"{(w + 5) * SLOT_S:.5g}") for w in values]}
    return found


def runs() -> dict[str, tuple[ForeignResults, bt.Scenario]]:
    """Return the numbers and the scenario of each right run, by name."""
    from emulated_beside_simulated import NETWORKS, scenario_of

    table = json.loads(FILE.read_text("utf-8"))
    found = {}
    for row in ROWS:
        name = tuple(row[key] for key in ("variant", "rate", "delay_ms", "queue", "per", "rwnd", "sack"))
        if name in CHOSEN and not row["prr"]:
            found[f"ns-3 {name}"] = of_row(row), of_ns3(row, 8)
    for name, (link, numbers) in table["kernel"].items():
        found[f"kernel {name}"] = single(numbers), kernel(link)
    for name, samples in table["emulated"].items():
        found[f"emulated {name}"] = several(samples), scenario_of(NETWORKS[name], "cubic")
    for name, samples in table["simulators"].items():
        scenario = (
            polled(POLLED[name.split(", ")[1]]) if ", load" in name else bt.load(f"venugopal-2006/{name}")
        )
        found[f"simulator {name}"] = several(samples), scenario
    return found


def single(numbers: dict[str, float]) -> ForeignResults:
    """Return numbers of one run."""
    return ForeignResults("theirs", "CSV", {name: Quantity(name, value) for name, value in numbers.items()})


def several(samples: dict[str, list[float]]) -> ForeignResults:
    """Return numbers of several runs."""
    means = {name: Quantity(name, float(np.mean(values)), tuple(values)) for name, values in samples.items()}
    return ForeignResults("theirs", "CSV", means)


def main() -> None:
    """Write the delays anew."""
    table = json.loads(FILE.read_text("utf-8"))
    table["simulators"] |= delays()
    parts = (
        f'"{part}": {{\n' + ",\n".join(f'"{name}": {json.dumps(one)}' for name, one in rows.items()) + "\n}"
        for part, rows in table.items()
    )
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
