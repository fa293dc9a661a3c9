"""One link with ARQ: model beside simulation. Tolerances are the aims for all models, set beforehand."""

import pytest

import btqueue as bt
from btqueue.study.summary import student_half_width

POINTS = {
    "greedy one way": ("asymmetric", {"radio__per": 0.3}),
    "greedy both ways": ("symmetric", {"radio__per": 0.1}),
    "light load": ("smooth", {"radio__per": 0.3, "traffic__load_kbps": 55}),
    "fixed wait": ("fixed-wait", {"radio__per": 0.1, "traffic__load_kbps": 107}),
    "half load": ("smooth", {"radio__per": 0.3, "traffic__load_kbps": 136}),
    "greedy both ways, many errors": ("symmetric", {"radio__per": 0.5}),
}
BURSTS = ("bursty", {"radio__per": 0.3, "traffic__load_kbps": 136, "run__duration_s": 4000})
AIMS = {"goodput_kbps": 0.03, "rtt_s": 0.05, "rtt_p90_s": 0.10}


def compare(name: str, changes: dict) -> dict[str, tuple[float, float]]:
    """Return by metric the model's relative error and the simulation's relative half-width."""
    scenario = bt.load(f"johansson-2000/{name}").with_(**{"run__duration_s": 1000, **changes})
    solved, simulated = bt.solve(scenario), bt.simulate(scenario)
    found = {}
    for metric in AIMS:
        seen = simulated[metric].mean("flow").values
        error = float(solved[metric].mean()) / seen.mean() - 1
        found[metric] = (float(error), float(student_half_width(seen) / seen.mean()))
    return found


@pytest.mark.parametrize("point", POINTS)
def test_within_the_aims(point):
    for metric, (error, half_width) in compare(*POINTS[point]).items():
        assert half_width < 0.5 * AIMS[metric], metric
        assert abs(error) < AIMS[metric], metric


@pytest.mark.parametrize("metric", ["goodput_kbps", "rtt_s"])
def test_bursts_are_within_the_aims(metric):
    assert abs(compare(*BURSTS)[metric][0]) < AIMS[metric]


@pytest.mark.xfail(strict=True, reason="docs/explanation/model-two_way_link.md: 12 % short in bursts")
def test_long_round_trips_in_bursts():
    assert abs(compare(*BURSTS)["rtt_p90_s"][0]) < AIMS["rtt_p90_s"]
