"""Model beside simulation at points of the 2006 thesis that stand for each regime.

Tolerances are the model's error classes on the whole grid (docs/explanation/model-against-simulation.md), not
tuned to the points: goodput 5 % and round trips 15 % with a perfect radio; 12 % and 25 % with radio errors.
They are wide against the simulation's 95 % intervals, which is checked, so that a failure is the model's.
"""

import pytest

import btqueue as bt
from btqueue.study.summary import student_half_width

PERFECT = {
    "application limited": {"traffic__load_kbps": 80},
    "token limited": {"traffic__load_kbps": 240, "flow_control__token_rate_kbps": 150},
    "saturated, four peripherals": {
        "network__peripherals": 4,
        "traffic__load_kbps": 120,
        "flow_control__token_rate_kbps": 110,
    },
    "application limited, six peripherals": {
        "network__peripherals": 6,
        "traffic__load_kbps": 40,
        "flow_control__token_rate_kbps": 80,
    },
}


def compare(scenario, metric: str) -> tuple[float, float]:
    """Return the model's relative error and the relative half-width of the simulation."""
    simulated = bt.simulate(scenario)[metric].mean("flow").values
    mean = simulated.mean()
    return float(bt.solve(scenario)[metric].mean()) / mean - 1, student_half_width(simulated) / mean


@pytest.mark.parametrize("point", PERFECT)
@pytest.mark.parametrize(("metric", "tolerance"), [("goodput_kbps", 0.05), ("rtt_s", 0.15)])
def test_perfect_radio(point: str, metric: str, tolerance: float):
    scenario = bt.load("venugopal-2006/piconet").with_(
        run__jitter_s=0.005, run__replications=40, **PERFECT[point]
    )
    error, half_width = compare(scenario, metric)
    assert half_width < tolerance / 5
    assert abs(error) < tolerance


@pytest.mark.parametrize("name", ["piconet-errors", "piconet-errors-4"])
@pytest.mark.parametrize(("metric", "tolerance"), [("goodput_kbps", 0.12), ("rtt_s", 0.25)])
def test_error_prone_radio(name: str, metric: str, tolerance: float):
    error, half_width = compare(bt.load(f"venugopal-2006/{name}").with_(run__replications=200), metric)
    assert half_width < tolerance / 5
    assert abs(error) < tolerance
