"""Quantiles, queues and losses of theory beside the simulator, on random piconets that carry their load.

    python validation/crosscheck/test_quantiles_against_simulation.py [COUNT]

prints the table of docs/explanation/queueing-vacations.md. Seeds are fixed, so that a run gives the same
numbers; the bounds were asked for before any comparison.
"""

import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import btqueue as bt

SHORT, LONG, SEED = 60, 150, 36
"""Scenarios of the short run, fewer of which do not tell a median, and of the long one; seed of both."""
QUANTILES = {"rtt_p90_s": (0.05, 0.15), "rtt_p95_s": (0.05, 0.15), "delay_p90_s": (0.05, 0.15)} | {
    "delay_p95_s": (0.05, 0.15)
}
"""Median and 95th percentile of the relative error that are wanted."""
LOSS = 0.25
"""Median relative error that is wanted of losses above `SEEN`."""
SEEN, FEW = 1e-3, 0.05
"""Losses, and packets in a queue, from which on a relative error means something."""
CARRIED = {"DH5": 600.0, "DM5": 420.0, "2-DH5": 1150.0}
"""What a link that is always in use carries of segments of 1,460 bytes (kbit/s)."""


class Errors(NamedTuple):
    """Relative errors of a scenario by metric, and whether its answer stands."""

    metrics: dict[str, float]
    stands: bool


def drawn(count: int, seed: int, *, small: bool = False, greedy: bool = False) -> Iterator[bt.Scenario]:
    """Yield random stars and rings; datagrams through small queues of the uplink if `small`.

    If `greedy`, windows of eight segments are always open, and packets may be repeated.
    """
    random = np.random.default_rng(seed)
    while count:
        members, first = int(random.integers(1, 8)), str(random.choice(list(CARRIED)))
        ring = members > 1 and bool(random.random() < 0.4)
        use = float(random.uniform(0.1, 0.7))
        packets = [first, first.replace("5", "3"), first.replace("5", "1")]
        way = "ring" if ring else "uplink" if small else str(random.choice(["uplink", "downlink"]))
        found = {
            "network.peripherals": members,
            "network.flows": way,
            "link.packets": packets,
            "polling.limit": int(random.choice([1, 2, 3, 5, 10, 20])),
            "traffic.source": "poisson",
            "traffic.load_kbps": round(CARRIED[first] / members / (1.9 if ring else 1.0) * use, 1),
            "transport.protocol": "none" if small else str(random.choice(["tcp", "tcp", "none"])),
            "transport.receive_window_segments": 44,
            "flow_control.enabled": small,
            "flow_control.token_rate_kbps": 4000.0,
            "flow_control.buffer_packets": 1000,
            "flow_control.baseband_packets": int(random.choice([10, 15, 20])) if small else 1000,
            "radio.model": "perfect",
            "run.duration_s": 1000.0,
            "run.warmup_s": 50.0,
            "run.replications": 4,
        }
        if greedy:
            ber = float(random.choice([0.0, 1e-5, 5e-5]))
            found |= {"traffic.source": "greedy", "transport.protocol": "tcp", "radio.ber": ber}
            found |= {"transport.receive_window_segments": 8, "link.arq": "unlimited"}
            found |= {"radio.model": "constant" if ber else "perfect"}
        try:
            scenario = bt.Scenario().changed(found)
        except bt.ScenarioError:
            continue
        count -= 1
        yield scenario


def errors(scenario: bt.Scenario) -> Errors:
    """Return how far theory is from the simulation, means over flows."""
    solved, simulated = bt.solve(scenario), bt.simulate(scenario).mean("replication")
    found = {}
    for name in (*QUANTILES, "rtt_s", "delay_s", "loss_baseband_buffer"):
        if name in solved and name in simulated:
            truth = float(np.nanmean(simulated[name].values))
            if truth > (SEEN if name.startswith("loss") else 0.0):
                found[name] = float(np.nanmean(solved[name].values)) / truth - 1.0
    if "queue_packets" in solved:
        for queue in map(str, solved["queue"].values):
            truth = float(simulated["queue_packets"].sel(queue=queue))
            if truth > FEW:
                mine = float(solved["queue_packets"].values[list(solved["queue"].values).index(queue)])
                found[f"queue_packets[{queue}]"] = mine / truth - 1.0
    return Errors(found, bool(solved.attrs["stands"]))


def sizes(found: list[Errors], *, stands: bool) -> dict[str, tuple[int, float, float]]:
    """Return number, median and 95th percentile of the absolute errors by metric."""
    every: dict[str, list[float]] = {}
    for one in found:
        for name, error in one.metrics.items():
            if one.stands or not stands:
                every.setdefault(name, []).append(abs(error))
    return {
        name: (len(one), float(np.median(one)), float(np.percentile(one, 95)))
        for name, one in sorted(every.items())
    }


@cache
def of_standing(count: int) -> dict[str, tuple[int, float, float]]:
    """Return the sizes of the errors of the answers that stand, of this number of scenarios."""
    return sizes([errors(scenario) for scenario in drawn(count, SEED)], stands=True)


@pytest.mark.parametrize("count", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
@pytest.mark.parametrize("metric", QUANTILES)
def test_quantiles_of_answers_that_stand_are_within_their_bound_in_the_median(count: int, metric: str):
    assert of_standing(count)[metric][1] <= QUANTILES[metric][0]


@pytest.mark.parametrize("count", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
@pytest.mark.parametrize("metric", QUANTILES)
def test_quantiles_of_answers_that_stand_are_within_their_bound(count: int, metric: str):
    assert of_standing(count)[metric][2] <= QUANTILES[metric][1]


@pytest.mark.long
def test_losses_at_the_uplink_are_within_their_bound():
    """Of one network that is shipped, `network/stations/test_quantiles.py` asks the same in every run."""
    found = sizes([errors(scenario) for scenario in drawn(LONG, SEED, small=True)], stands=False)
    assert found["loss_baseband_buffer"][1] <= LOSS, found["loss_baseband_buffer"]


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else LONG
    carried = [errors(scenario) for scenario in drawn(number, SEED)]
    lossy = [errors(scenario) for scenario in drawn(number, SEED, small=True)]
    full = [errors(scenario) for scenario in drawn(number, SEED, greedy=True)]
    print("| metric | answers | median | 95 % |\n|---|---|---|---|")
    for title, table in (
        ("", sizes(carried, stands=True)),
        (", doubted ones too", sizes(carried, stands=False)),
        (" through small queues", sizes(lossy, stands=False)),
        (", windows always open", sizes(full, stands=True)),
    ):
        for name, (answers, median, high) in table.items():
            print(f"| {name}{title} | {answers} | {median:.1%} | {high:.1%} |")
