"""The queueing model of a piconet against the simulator, at points of its grid and one beside it.

Bounds are 95th percentiles of the model's errors over such points of the grid, rounded up, plus the
simulator's interval; that of message delays is the aim for round trips at the 95th percentile.
"""

import pytest
from grids import points_of

import btqueue as bt
from btqueue.study.evaluate import answer_of

GOODPUT, ROUND_TRIP, CYCLE, DELAY = 0.02, 0.09, 0.05, 0.15

POINTS = (
    "perfect radio, uplink, n=4, load 0.5, M=5",
    "perfect radio, downlink, n=7, load 0.75, M=5",
    "bit errors, downlink, n=2, load 0.4, M=5, 0.0001",
    "greedy, uplink, n=2, 1e-4",
    "long messages, uplink, 1 segments, window 1",
    "long messages, downlink, 8 segments, window 2",
    "delayed acknowledgements, uplink, 2 segments, timer",
)


@pytest.mark.parametrize("name", POINTS)
def test_a_point_of_the_grid(name):
    compare(dict(points_of("piconet"))[name])


def test_a_point_beside_the_grid():
    scenario = bt.load("venugopal-2006/piconet").changed(
        {
            "network.flows": "downlink", "network.peripherals": 5, "link.arq": "unlimited",
            "flow_control.enabled": False, "traffic.load_kbps": 70.0, "radio.model": "constant",
            "radio.ber": 3e-5, "run.duration_s": 300.0, "run.replications": 8,
        }
    )  # fmt: skip
    compare(scenario)


def compare(scenario: bt.Scenario) -> None:
    """Lay the model beside the simulator."""
    solved, simulated = bt.solve(scenario), answer_of(bt.simulate(scenario))
    assert solved.attrs["model"] == "piconet"
    bounds = {"goodput_kbps": GOODPUT, "rtt_s": ROUND_TRIP, "cycle_s": CYCLE}
    if scenario.traffic.source != "greedy":
        bounds["delay_s"] = DELAY
    for metric, share in bounds.items():
        mean, interval = simulated.means[metric], simulated.ci95[metric]
        assert abs(float(solved[metric].mean()) - mean) <= share * mean + interval, metric
