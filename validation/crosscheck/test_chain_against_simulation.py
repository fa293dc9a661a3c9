"""The model of chains beside the simulator, with the aims of the solver as tolerances.

Goodput 10 % and round trips 15 % at every point; timeouts 10 %, where the simulated rate is known to 5 %, and
fast retransmits over bridges. The whole grid is in `grids/chain.py`.
"""

import pytest

import btqueue as bt
from btqueue.study.summary import student_half_width

POINTS = {
    "one hop": ("regular-1", {"radio.ber": 2e-4}),
    "two hops": ("adaptive-2", {"radio.ber": 1e-3}),
    "four hops, buffers overflow": ("regular-4", {"radio.ber": 2e-4}),
    "one hop, trace": ("trace-regular", {}),
}


@pytest.fixture(scope="module", params=POINTS)
def both(request):
    name, changes = POINTS[request.param]
    scenario = bt.load(f"chen-2004/{name}", changes).with_(run__duration_s=400, run__replications=4)
    return bt.solve(scenario), bt.simulate(scenario)


@pytest.mark.parametrize(
    ("metric", "tolerance"), [("goodput_kbps", 0.10), ("rtt_s", 0.15), ("rtt_p90_s", 0.15)]
)
def test_within_the_aims(both, metric: str, tolerance: float):
    solved, simulated = both
    values = simulated[metric].mean("flow").values
    assert student_half_width(values) < tolerance / 2 * values.mean()
    assert float(solved[metric].mean()) == pytest.approx(values.mean(), rel=tolerance)


@pytest.mark.parametrize(
    ("name", "changes", "metric", "duration_s"),
    [
        ("adaptive-2", {"radio.ber": 0.01}, "timeouts_per_s", 12_000),
        ("alternating-regular", {"network.hops": 2}, "timeouts_per_s", 12_000),
        ("regular-4", {"radio.ber": 1e-4}, "fast_retransmits_per_s", 2000),
        ("regular-4", {"radio.ber": 2e-4}, "fast_retransmits_per_s", 2000),
    ],
)
def test_rare_events(name: str, changes: dict, metric: str, duration_s: float):
    scenario = bt.load(f"chen-2004/{name}", changes).with_(run__duration_s=duration_s, run__replications=6)
    values = bt.simulate(scenario)[metric].mean("flow").values
    assert student_half_width(values) < 0.05 * values.mean()
    assert float(bt.solve(scenario)[metric].mean()) == pytest.approx(values.mean(), rel=0.10)
