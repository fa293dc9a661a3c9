"""Speed of the simulator as ratios within one run, on a quiet machine. Not part of the default test run:

    pytest -s validation/benchmarks/bench_simulator.py                     all of it, with the numbers
    pytest validation/benchmarks/bench_simulator.py --benchmark-json=FILE  kept, with the ratios in extra_info

A comparison whose other program is not here is skipped and says what it needs (`other_programs.py`). What
runs on one thread is timed in CPU seconds, and of several runs the median counts; what is compared runs in
turns, so that both sides meet the same disturbances.
"""

import functools
import statistics
import time

import other_programs
import pytest
from thesis import over_wires, thesis_of

import btqueue as bt
from btqueue.scenario.loading import list_models
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.replications import run_until

pytestmark = pytest.mark.benchmark_ratio

LINK = {"rate_kbps": 2000, "delay_ms": 10, "loss": 0.01}
PERIPHERALS = 7


def timed(function, *args, clock=time.process_time, **kwargs):
    """Return (seconds, result) of one call."""
    start = clock()
    result = function(*args, **kwargs)
    return clock() - start, result


def in_turns(repeats, *functions, clock=time.process_time):
    """Return the median seconds of each of several functions that are called in turns."""
    rounds = [[timed(function, clock=clock)[0] for function in functions] for _ in range(repeats)]
    return [statistics.median(seconds) for seconds in zip(*rounds, strict=True)]


def medians(repeats, *functions):
    """Call functions that measure themselves in turns; return the median of each number that each returns."""
    rounds = [[function() for function in functions] for _ in range(repeats)]
    return [
        {name: statistics.median(result[name] for result in results) for name in results[0]}
        for results in zip(*rounds, strict=True)
    ]


def run_network(scenario, seconds):
    """Play one replication on one thread; return the number of events and the bytes of the state."""
    sim = run_until(new_state(scenario, 0), seconds)
    return int(sim.clock[0].events), sum(array.nbytes for array in sim.arrays().values())


def network_speed(scenario, *, seconds, repeats=3):
    """Return events and simulated seconds a CPU second, one thread, compiled beforehand; set-up left out."""
    run_network(scenario, 0)
    (empty,) = in_turns(repeats, lambda: run_network(scenario, 0))
    cpu, (events, _) = timed(run_network, scenario, seconds)
    (cpu,) = in_turns(repeats, lambda: run_network(scenario, seconds))
    return {"events_per_s": events / (cpu - empty), "simulated_s_per_s": seconds / (cpu - empty)}


def _speed(result):
    return {f"{name}_per_s": result[name] / result["cpu_s"] for name in ("simulated_s", "events")}


@pytest.mark.parametrize("errors", [False, True], ids=["perfect radio", "two-state radio"])
def test_piconet_against_cpp(measured, errors):
    """Simulated seconds a CPU second of the C++ loop and of this engine."""
    scenario = "venugopal-2006/piconet-errors" if errors else "venugopal-2006/piconet"

    def piconets(seconds=20_000, repeats=5):
        cpp, ours = medians(
            repeats,
            lambda: _speed(other_programs.cpp_piconet(seconds=seconds, errors=errors)),
            lambda: _speed(other_programs.one_replication(seconds, scenario=scenario)),
        )
        ratio = ours["simulated_s_per_s"] / cpp["simulated_s_per_s"]
        return {"cpp_s_per_s": cpp["simulated_s_per_s"], "ours": ours, "ratio": ratio}

    assert measured(piconets)["ratio"] >= (0.8 if errors else 0.95)


def tcp_over_a_link(*, rate_kbps, delay_ms, loss):
    """Return a greedy TCP flow between two hosts on an outside link; an idle piconet stands beside it."""
    link = {"name": "link", "from": "a", "to": "b", "rate_kbps": rate_kbps, "delay_s": delay_ms / 1000}
    return thesis_of(
        {
            "network": over_wires({**link, "loss": loss, "loss_back": 0.0, "header_bytes": 2}),
            "flow_control": {"enabled": False},
            "traffic": {"source": "greedy"},
            "transport": {"windows": "segments", "receive_window_segments": 64},
        }
    )


def test_link_against_ns3(measured):
    """Events a CPU second of both for a TCP flow over a link."""

    def links(our_seconds=20_000, their_seconds=500, repeats=3):
        theirs = medians(repeats, lambda: other_programs.ns3_link(**LINK, seconds=their_seconds))[0]
        ours = network_speed(tcp_over_a_link(**LINK), seconds=our_seconds, repeats=repeats)
        their_events = theirs["events"] / theirs["cpu_s"]
        of_time = ours["simulated_s_per_s"] * theirs["cpu_s"] / their_seconds
        return {"ratio": ours["events_per_s"] / their_events, "ratio_of_simulated_time": of_time}

    assert measured(links)["ratio"] >= 50


def test_compiling(measured):
    seconds = measured(other_programs.compile_times)
    assert seconds["empty_cache_s"] < 20
    assert seconds["warm_cache_s"] < 1


def many_piconets(devices):
    """Return a network of this many devices, 8 to a piconet, each peripheral sending to the next one."""
    piconets, flows = [], []
    for number in range(devices // (PERIPHERALS + 1)):
        members = [f"p{number}.{place}" for place in range(PERIPHERALS)]
        piconets.append({"name": f"{number}", "central": f"c{number}", "peripherals": members})
        flows += [{"from": members[place - 1], "to": members[place]} for place in range(PERIPHERALS)]
    network = {"network.topology": "custom", "network.piconet_list": piconets, "network.flows": flows}
    return bt.load("venugopal-2006/piconet", network | {"traffic.source": "greedy"})


def test_cost_of_a_device_does_not_grow_with_their_number(measured):
    """Twice is left for caches: 8 devices fit into the nearest, 8,000 do not."""

    def costs(device_seconds=200_000):
        found = {}
        for count in (8, 80, 800, 8000):
            speed = network_speed(many_piconets(count), seconds=device_seconds / count)
            found[count] = 1 / speed["simulated_s_per_s"] / count
        return {"cpu_s_for_a_simulated_second_and_device": found}

    found = measured(costs)["cpu_s_for_a_simulated_second_and_device"]
    assert max(found.values()) <= 2 * found[8]


def long_scenarios(least_s=0.2):
    """Return the shipped scenarios that take at least so long (s) on one thread, by name."""
    found = {}
    for name in list_models():
        scenario = bt.load(name)
        bt.simulate(scenario, threads=1)
        if timed(bt.simulate, scenario, threads=1)[0] >= least_s:
            found[name] = scenario
    return found


# 1.9 of 2 cores and 3.4 of 4; where a machine's cores are not whole ones, as much of what it gives.
@pytest.mark.parametrize(("threads", "share"), [(2, 1.9 / 2), (4, 3.4 / 4)])
def test_threads_against_one(measured, threads, share):
    """How much faster several threads finish than one, and what the machine can give (wall clock).

    `by_scenario`: medians, of the shipped scenarios that run long enough; `ratio`: the least of them.
    `bound`: the same for as many processes of the C++ loop, which share nothing, against one of them; below
    `threads` on a machine whose cores share a physical one, or do other work. `share`: `ratio` over `bound`.
    """

    def gains(repeats=9):
        by_scenario, bounds = {}, []
        for name, scenario in long_scenarios().items():
            one_process, processes, one, several = in_turns(
                repeats,
                functools.partial(other_programs.cpp_piconets_at_once, 1),
                functools.partial(other_programs.cpp_piconets_at_once, threads),
                functools.partial(bt.simulate, scenario, threads=1),
                functools.partial(bt.simulate, scenario, threads=threads),
                clock=time.perf_counter,
            )
            by_scenario[name] = one / several
            bounds.append(threads * one_process / processes)
        ratio, bound = min(by_scenario.values()), statistics.median(bounds)
        return {"ratio": ratio, "bound": bound, "share": ratio / bound, "by_scenario": by_scenario}

    assert measured(gains)["share"] >= share
