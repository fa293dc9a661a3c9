"""What the benchmarks measure. Each function runs once and returns plain numbers; nothing here judges them.

Wall-clock times mean little on a busy machine, ratios within one run more. Of several runs the shortest
counts, the one that was disturbed least; what is compared runs in turns, so that both sides meet the same
disturbances.
"""

import importlib
import subprocess
import sys
import time

import numpy as np
from peer_models import ciw_mm1, simpy_polling

import btqueue as bt
from btqueue.simulator.engine import NEEDS_SPACE, advance
from btqueue.simulator.polling_system import (
    ExponentialService,
    PollingSystem,
    advance_to,
    deterministic,
    new_polling_state,
)
from btqueue.simulator.records import SECOND
from btqueue.simulator.state import grow, new_state

MM1_LOAD, MM1_SERVICE = 0.7, 6.0
SEVEN_QUEUES = {"queues": 7, "arrival_rate": 0.7 / 7 / 6, "service": 6.0, "switch": 2.0, "limit": 5}
MM1 = {"arrival_rate": MM1_LOAD / MM1_SERVICE, "service_rate": 1 / MM1_SERVICE}


def timed(function, *args, **kwargs):
    """Return (seconds, result) of one call."""
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return time.perf_counter() - start, result


def best_of(repeats, function, *args, **kwargs):
    """Return (seconds, result) of the fastest of several calls."""
    return min((timed(function, *args, **kwargs) for _ in range(repeats)), key=lambda pair: pair[0])


def in_turns(repeats, first, second):
    """Return (seconds, result) of the fastest call of each of two functions that are called in turns."""
    rounds = [(timed(first), timed(second)) for _ in range(repeats)]
    return tuple(min(calls, key=lambda pair: pair[0]) for calls in zip(*rounds, strict=True))


def run_piconet(scenario, seconds):
    """Play one replication on one thread; return the number of events."""
    with np.errstate(over="ignore"):
        sim = new_state(scenario, 0)
        while advance(sim, round(seconds * SECOND)) == NEEDS_SPACE:
            sim = grow(sim)
    return int(sim.clock[0].events), sum(array.nbytes for array in sim)


def piconet_speed(*, seconds=20_000, repeats=3, scenario="venugopal-2006/piconet", **changes):
    """Return events and simulated seconds a second of wall clock, one thread, compiled beforehand."""
    loaded = bt.load(scenario).with_(**changes)
    run_piconet(loaded, 1)
    wall, (events, _) = best_of(repeats, run_piconet, loaded, seconds)
    return {"events_per_s": events / wall, "simulated_s_per_s": seconds / wall}


def our_polling(system, slots, *, visits_are_events):
    """Play one replication; return how many events happened, how many were played, and the mean waiting time.

    Visits to queues while the whole system is empty are counted but not played.
    """
    with np.errstate(over="ignore"):
        state = advance_to(new_polling_state(system, seed=1, replication=0), slots)
    stations, server = state.stations, state.server[0]
    happened = int(state.queue_statistics.offered.sum() + state.queue_statistics.served.sum())
    happened += int(server.visits) if visits_are_events else 0
    waiting = stations.waited.sum() / stations.started.sum() / 625_000
    return {"happened": happened, "played": int(state.clock[0].events), "waiting": float(waiting)}


def seven_queue_system():
    """Return the seven-queue system: M = 5, service of 6 slots, 2 to switch, 70 % load."""
    count = SEVEN_QUEUES["queues"]
    return PollingSystem(
        arrival_rates=(SEVEN_QUEUES["arrival_rate"],) * count,
        services=(deterministic(SEVEN_QUEUES["service"]),) * count,
        switch_slots=SEVEN_QUEUES["switch"],
        limit=SEVEN_QUEUES["limit"],
    )


def mm1_system():
    """Return the M/M/1 queue at 70 % load."""
    return PollingSystem(
        arrival_rates=(MM1["arrival_rate"],), services=(ExponentialService(mean=MM1_SERVICE),)
    )


def seven_queues_against_simpy(*, our_slots=2e7, their_slots=4e5, repeats=3):
    """Return events a second of both, and their ratios by simulated time and by events played."""
    return _against(seven_queue_system(), True, our_slots, simpy_polling, SEVEN_QUEUES, their_slots, repeats)


def mm1_against_ciw(*, our_slots=5e7, their_slots=2e5, repeats=3):
    """Return the same for M/M/1 and Ciw; events are arrivals and service completions."""
    return _against(mm1_system(), False, our_slots, ciw_mm1, MM1, their_slots, repeats)


def _against(system, visits_are_events, our_slots, peer, parameters, their_slots, repeats):
    our_polling(system, 100, visits_are_events=visits_are_events)
    (wall, ours), (their_wall, theirs) = in_turns(
        repeats,
        lambda: our_polling(system, our_slots, visits_are_events=visits_are_events),
        lambda: peer(**parameters, until=their_slots, seed=1),
    )
    return {
        "our_events_per_s": ours["happened"] / wall,
        "our_played_events_per_s": ours["played"] / wall,
        "their_events_per_s": theirs.events / their_wall,
        "ratio": (our_slots / wall) / (their_slots / their_wall),
        "ratio_of_played_events": (ours["played"] / wall) / (theirs.events / their_wall),
        "our_waiting": ours["waiting"],
        "their_waiting": theirs.mean_waiting,
    }


def two_threads_against_one(*, seconds=4800, replications=20, repeats=5):
    """Return how much faster two threads finish the same replications than one."""
    scenario = bt.load("venugopal-2006/piconet").with_(
        run__duration_s=seconds, run__replications=replications
    )
    bt.simulate(scenario.with_(run__duration_s=1, run__warmup_s=0, run__replications=1))
    (one, _), (two, _) = in_turns(
        repeats, lambda: bt.simulate(scenario, threads=1), lambda: bt.simulate(scenario, threads=2)
    )
    return {"one_thread_s": one, "two_threads_s": two, "ratio": one / two}


def memory_growth(*, short=100, long=10_000):
    """Return the bytes of the state after a short and a long run of an overloaded piconet."""
    scenario = bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=400)
    return {"short": run_piconet(scenario, short)[1], "long": run_piconet(scenario, long)[1]}


def cost_by_devices(*, seconds=5000, repeats=3):
    """Return wall-clock seconds for a simulated second at 2 to 7 peripherals, sources greedy."""
    costs = {}
    for peripherals in range(2, 8):
        speed = piconet_speed(
            seconds=seconds, repeats=repeats, network__peripherals=peripherals, traffic__source="greedy"
        )
        costs[peripherals] = 1 / speed["simulated_s_per_s"]
    return costs


SOLVE = "import btqueue as bt; bt.solve(bt.load('venugopal-2006/piconet'))"


def why_no_solve():
    """Return why the solver cannot be timed, or an empty text."""
    try:
        network = importlib.import_module("btqueue.network")
    except ImportError as error:
        return str(error)
    return "" if hasattr(network, "solve") else "btqueue.network has no solve yet"


def solve_times(*, repeats=3):
    """Return seconds of a solve: in a fresh process, warm in this one, and of importing jax alone."""
    scenario = bt.load("venugopal-2006/piconet")
    (fresh, _), (importing, _) = in_turns(
        repeats,
        lambda: subprocess.run([sys.executable, "-c", SOLVE], check=True),
        lambda: subprocess.run([sys.executable, "-c", "import jax"], check=True),
    )
    first, _ = timed(bt.solve, scenario)
    warm, _ = best_of(repeats, bt.solve, scenario)
    return {"fresh_process_s": fresh, "import_jax_s": importing, "first_call_s": first, "warm_call_s": warm}
