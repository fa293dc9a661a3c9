"""Time series of a run: windows, round-trip times, goodputs and queues at equal steps of time."""

import numpy as np
import xarray as xr

from btqueue.scenario import Scenario
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import SECOND
from btqueue.simulator.replications import run_until
from btqueue.simulator.traces.trace_files import length_s, queue_names

UNITS = {
    "cwnd_segments": ("segment", "congestion window at the end of the step"),
    "ssthresh_segments": ("segment", "slow start threshold at the end of the step"),
    "srtt_s": ("s", "smoothed round-trip time at the end of the step"),
    "flight_segments": ("segment", "sent since the last timeout and not acknowledged, SND.NXT - SND.UNA"),
    "outstanding_segments": ("segment", "ever sent and not acknowledged, up to SND.MAX"),
    "goodput_kbps": ("kbit/s", "application bytes delivered in order during the step"),
    "queue_packets": ("packet", "length of the queue at the end of the step"),
}


def time_series(scenario: Scenario, replication: int = 0, step_s: float = 0.1) -> xr.Dataset:
    """Run one replication from an empty network and look at it every `step_s`, warm-up included.

    Args:
        scenario: the scenario to simulate.
        replication: its number; the same number and seed give the same run as `simulate`.
        step_s: simulated time between two looks.

    Returns:
        Dataset over `time` (s, ends of the steps) with windows, smoothed round-trip time, segments on their
        way and goodput of each `flow`, and the length of each `queue`.

    Raises:
        ValueError: the step is not positive or longer than the run.
    """
    end_s = length_s(scenario)
    if not 0 < step_s <= end_s:
        raise ValueError(f"step_s = {step_s:g}: a step must be positive and fit into the run of {end_s:g} s")
    sim = new_state(scenario, replication)
    times = step_s * np.arange(1, int(end_s / step_s + 1e-9) + 1)
    looks = []
    delivered = np.zeros(len(sim.connections))
    for time in times:
        sim = run_until(sim, time)
        before, delivered = delivered, sim.flow_statistics.bytes_delivered.astype(float)
        looks.append({**look(sim), "goodput_kbps": (delivered - before) * 8 / 1000 / step_s})
    return label(looks, times, queue_names(sim, scenario))


def look(sim: State) -> dict[str, np.ndarray]:
    """Return the present windows of all senders, and the lengths of all queues."""
    conn = sim.connections
    return {
        "cwnd_segments": conn["cwnd"].copy(),
        "ssthresh_segments": conn["ssthresh"].copy(),
        "srtt_s": np.where(conn["measured"], conn["srtt"], np.nan) / SECOND,
        "flight_segments": conn["snd_nxt"] - conn["snd_una"],
        "outstanding_segments": conn["snd_max"] - conn["snd_una"],
        "queue_packets": sim.queues.length.copy(),
    }


def label(looks: list[dict[str, np.ndarray]], times: np.ndarray, queues: list[str]) -> xr.Dataset:
    """Put names and units on the values of the looks."""
    variables = {
        name: (
            ("time", "queue" if name == "queue_packets" else "flow"),
            np.array([seen[name] for seen in looks]),
            {"units": unit, "description": description},
        )
        for name, (unit, description) in UNITS.items()
    }
    flows = 1 + np.arange(len(looks[0]["srtt_s"]))
    coords = {"time": ("time", times, {"units": "s"}), "flow": flows, "queue": queues}
    return xr.Dataset(variables, coords)
