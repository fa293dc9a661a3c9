"""What the benchmarks measure. Each function runs once and returns plain numbers; nothing here judges
them.

Times mean little on a busy machine, ratios within one run more. What runs on one thread is timed in CPU
seconds, which others' programs disturb least, and of several runs the median counts; what is compared runs
in turns, so that both sides meet the same disturbances.
"""

import functools
import statistics
import time

import other_programs
from networks import many_piconets, tcp_over_a_link

import btqueue as bt
from btqueue.scenario.library import list_models
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.replications import run_until

LINK = {"rate_kbps": 2000, "delay_ms": 10, "loss": 0.01}


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


def piconet_against_cpp(*, seconds=20_000, repeats=5, errors=False):
    """Return simulated seconds a CPU second of the C++ loop and of this engine, and their ratio."""
    scenario = "venugopal-2006/piconet-errors" if errors else "venugopal-2006/piconet"
    cpp, ours = medians(
        repeats,
        lambda: _speed(other_programs.cpp_piconet(seconds=seconds, errors=errors)),
        lambda: _speed(other_programs.one_replication(seconds, scenario=scenario)),
    )
    return {
        "cpp_s_per_s": cpp["simulated_s_per_s"],
        "our_s_per_s": ours["simulated_s_per_s"],
        "our_events_per_s": ours["events_per_s"],
        "ratio": ours["simulated_s_per_s"] / cpp["simulated_s_per_s"],
    }


def _speed(result):
    return {
        "simulated_s_per_s": result["simulated_s"] / result["cpu_s"],
        "events_per_s": result["events"] / result["cpu_s"],
    }


def link_against_ns3(*, our_seconds=20_000, their_seconds=500, repeats=3):
    """Return events a CPU second of both for a TCP flow over a link, and the ratios by event and by time."""
    theirs = medians(repeats, lambda: other_programs.ns3_link(**LINK, seconds=their_seconds))[0]
    ours = network_speed(tcp_over_a_link(**LINK), seconds=our_seconds, repeats=repeats)
    their_events = theirs["events"] / theirs["cpu_s"]
    return {
        "our_events_per_s": ours["events_per_s"],
        "their_events_per_s": their_events,
        "ratio": ours["events_per_s"] / their_events,
        "ratio_of_simulated_time": ours["simulated_s_per_s"] * theirs["cpu_s"] / their_seconds,
    }


def cost_by_devices(*, device_seconds=200_000, repeats=3, devices=(8, 80, 800, 8000)):
    """Return CPU seconds for a simulated second and device, at each number of devices."""
    costs = {}
    for count in devices:
        found = network_speed(many_piconets(count), seconds=device_seconds / count, repeats=repeats)
        costs[count] = 1 / found["simulated_s_per_s"] / count
    return {"cpu_s_for_a_simulated_second_and_device": costs}


def long_scenarios(least_s=0.2):
    """Return the shipped scenarios that take at least so long (s) on one thread, by name."""
    found = {}
    for name in list_models():
        scenario = bt.load(name)
        bt.simulate(scenario, threads=1)
        if timed(bt.simulate, scenario, threads=1)[0] >= least_s:
            found[name] = scenario
    return found


def threads_against_one(*, threads, repeats=9):
    """Return how much faster several threads finish than one, and what the machine can give (wall clock).

    `by_scenario`: medians, of the shipped scenarios that run long enough; `ratio`: the least of them.
    `bound`: the same for as many processes of the C++ loop, which share nothing, against one of them; below
    `threads` on a machine whose cores share a physical one, or do other work. `share`: `ratio` over `bound`.
    """
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


def memory_growth(*, short=100, long=10_000):
    """Return the bytes of the state after a short and a long run of an overloaded piconet."""
    scenario = bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=400)
    return {"short": run_network(scenario, short)[1], "long": run_network(scenario, long)[1]}
