"""Checks of Venugopal (2006) on single runs, in place of a sweep of a metric."""

from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import Finding, limit, value
from btqueue.reproduction.fading import with_fading
from btqueue.reproduction.figures.runs import events
from btqueue.scenario import Scenario, load
from btqueue.simulator.statistics.series import time_series

STEP_S = 2 * 625e-6
"""A DH1 packet every two slots looks at the state of the radio."""
CLEAN_S = 10.0
"""Section 5.4: the radio errs from then on."""


def states(replication: int, duration_s: float) -> np.ndarray:
    """Return the state of a link every STEP_S (1: bad), seen by DH1 packets that only the bad state hits."""
    scenario = Scenario(
        network={"peripherals": 1, "flows": "uplink"},
        radio={"model": "gilbert-elliott", "ber_good": 0.0, "ber_bad": 0.5},
        link={"packets": ["DH1"], "arq": "none"},
        flow_control={"enabled": False, "baseband_packets": 1000},
        traffic={
            "source": "periodic",
            "phase": "aligned",  # a packet waits at every look
            "message_bytes": 23,
            "load_kbps": 23 * 8 / STEP_S / 1000,
        },
        transport={"protocol": "none", "header_bytes": 0},
        run={"duration_s": duration_s, "warmup_s": 0, "replications": 1},
    )
    received = events(scenario, replication, only=("packet delivered", "packet corrupted"))
    slots = np.round(received.time_s / 625e-6).astype(int)
    assert set(np.diff(slots)) == {2}, "the link was idle in between"
    return received.event == "packet corrupted"


@cache
def all_states() -> list[np.ndarray]:
    """Return the states of ten runs of 480 s."""
    return [states(replication, 480.0) for replication in range(10)]


def mean_stays(engine: Engine, claim: dict[str, Any]) -> Finding:
    """Mean stays from the changes of state between samples: the two-state chain, sampled every STEP_S."""
    engine.only_simulated("state of the radio over time")
    runs = all_states()
    left_good = sum(int(np.sum(~s[:-1] & s[1:])) for s in runs)
    left_bad = sum(int(np.sum(s[:-1] & ~s[1:])) for s in runs)
    good, bad = (sum(int(np.sum(s[:-1] == state)) for s in runs) for state in (False, True))
    leave_good, leave_bad = left_good / good, left_bad / bad
    rate = -np.log(1 - leave_good - leave_bad) / STEP_S
    share_bad = leave_good / (leave_good + leave_bad)
    good_s, bad_s = 1 / (rate * share_bad), 1 / (rate * (1 - share_bad))
    holds = all(
        abs(seen / given - 1) <= claim["rel_tol"] for seen, given in ((good_s, 0.4375), (bad_s, 0.0558))
    )
    return Finding(holds, f"{good_s:.4f} and {bad_s:.5f} s for 0.4375 and 0.0558 s, ten runs")


def exponential_stays(engine: Engine, _claim: dict[str, Any]) -> Finding:
    """Runs of samples in one state are geometric if stays are exponential: chi-square test at 1 % each."""
    engine.only_simulated("state of the radio over time")
    runs = all_states()
    chances = []
    for state in (False, True):
        lengths = np.concatenate([run_lengths(s, state) for s in runs])
        leave = 1 / lengths.mean()
        edges = np.unique(np.ceil(np.log(1 - np.linspace(0, 1, 11)[1:-1]) / np.log(1 - leave)).astype(int))
        below = np.concatenate([1 - (1 - leave) ** edges, [1.0]])
        expected = np.diff(below, prepend=0.0) * len(lengths)
        counts = np.bincount(np.searchsorted(edges, lengths), minlength=len(expected))
        chances.append(float(stats.chisquare(counts, expected, ddof=1).pvalue))
    return Finding(min(chances) > 0.01, f"chi-square p = {chances[0]:.2g} (good), {chances[1]:.2g} (bad)")


def run_lengths(seen: np.ndarray, state: bool) -> np.ndarray:
    """Return the lengths of all whole runs of one state."""
    changes = np.flatnonzero(np.diff(seen.astype(int))) + 1
    pieces = np.diff(changes)
    return pieces[seen[changes[:-1]] == state]


def damaged_packets(engine: Engine, _claim: dict[str, Any]) -> Finding:
    """Packets of each type that bit errors hit in one run of the original radio at load 80."""
    engine.only_simulated("count of single packets")
    scenario = load("venugopal-2006/piconet-errors-original").with_(run__duration_s=480, run__warmup_s=0)
    types = events(scenario, only=("packet corrupted",)).packet_type
    counts = {name: int(np.sum(types == name)) for name in ("DH5", "DH3")}
    return Finding(min(counts.values()) > 0, ", ".join(f"{count} {name}" for name, count in counts.items()))


@cache
def load_steps() -> list[xr.Dataset]:
    """Return the courses of ten runs of section 5.4: steps of the load, errors from `CLEAN_S` on."""
    steps = load("venugopal-2006/piconet-load-steps")
    runs = (with_fading(steps, seed=1000 + number, step_s=0.005, clean_s=CLEAN_S)[0] for number in range(10))
    return [time_series(scenario, number, step_s=0.1) for number, scenario in enumerate(runs)]


def longest_stall(engine: Engine, claim: dict[str, Any]) -> Finding:
    """Section 5.4: the longest time in which the first connection delivers nothing."""
    engine.only_simulated("goodput over time")
    idle = [np.flatnonzero(np.append(run.goodput_kbps.values[:, 0], 1.0)) for run in load_steps()]
    stalls = np.array([0.1 * (np.diff(times, prepend=-1) - 1).max() for times in idle])
    seen = f"from {stalls.min():.0f} to {stalls.max():.0f} s in ten runs, mean {stalls.mean():.0f}"
    return Finding(value(stalls, claim["value"], limit(claim) * claim["value"]).holds, seen)


def errors_after_10_s(engine: Engine, _claim: dict[str, Any]) -> Finding:
    """Section 5.4: the mean window after 10 s is below 2 segments, the largest before four times as large."""
    engine.only_simulated("course of the window")
    largest, later = [], []
    for windows in (run.cwnd_segments for run in load_steps()):
        largest.append(float(windows.sel(time=slice(0, CLEAN_S)).max()))
        later.append(float(windows.sel(time=slice(CLEAN_S + 1, None)).mean()))
    before, after = float(np.mean(largest)), float(np.mean(later))
    return Finding(
        after < 2 and min(largest) >= 4 * after, f"largest {before:.3g} before, mean {after:.3g} after"
    )
