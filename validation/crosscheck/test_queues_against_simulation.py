"""A share of the comparison of exact queues with simulations for every test run, and all of it at length.

How the numbers are judged: `queues_against_simulation.complaints`. Seeds are fixed and were not chosen; with
fresh ones a test would complain of exact methods with probability 1e-4.
"""

import numpy as np
import pytest
from queues_against_simulation import FALSE_ALARM, Point, compare, complaints, most_outside
from random_queues import METHODS

EVERY_TIME = (
    "M^X/G/1, slotted",
    "N-policy",
    "M^X/G/1/K",
    "Geo^X/G/1/K",
    "priority, slotted",
    "exhaustive",
    "E-limited",
    "gated, K",
    "E-limited, K",
    "1-limited, K",
    "token bucket",
    "token bucket, whole batches",
    "bulk service, K",
)


def relative_width(point: Point) -> float:
    return point.error / point.simulated


def test_exact_queues_are_simulated():
    """Four systems of each method, some 300 values; the last seed also in SimPy."""
    points = [
        point
        for method in EVERY_TIME
        for seed in (101, 102, 103, 104)
        for point in compare(method, seed, packets=2e5, few=True)
    ]
    assert {point.method for point in points} == set(EVERY_TIME)
    assert {point.simulator for point in points} == {"queueing-only mode", "loop", "SimPy"}
    assert not complaints(points, FALSE_ALARM)
    assert np.median([relative_width(point) for point in points]) < 0.01, "and the comparison can tell"


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_exact_queues_are_simulated_at_length(method):
    points = [point for seed in range(1000, 1012) for point in compare(method, seed, packets=1e6)]
    assert not complaints(points, FALSE_ALARM)
    assert np.median([relative_width(point) for point in points]) < 0.01


def test_the_judgement_can_tell():
    """Points 6 standard errors off are found alone, points 3 off when there are many."""
    good = [Point("a", seed, "b", "c", 0.5, 1.0, 1.001, 0.001, 24) for seed in range(100)]
    assert not complaints(good, FALSE_ALARM)
    assert len(complaints([*good, good[0]._replace(simulated=1.007)], FALSE_ALARM)) == 1
    assert not complaints([*good, good[0]._replace(simulated=1.003)], FALSE_ALARM)
    assert len(complaints([*good, *[good[0]._replace(simulated=1.003)] * 10], FALSE_ALARM)) == 1
    assert most_outside(4, 1e-6) == 3 and most_outside(1000, 1e-4) < 25
