"""Polling: the recorded comparison with simulated systems, a part of it each time, and fresh simulations.

The records (docs/explanation/queueing-polling.csv) are of simulations with a fixed seed: comparing with them
raises no false alarm. Fresh simulations have fixed seeds too; with other seeds the test of exact waits would
fail by chance once in a thousand times.
"""

import numpy as np
import pytest
from polling_against_simulation import (
    FAMILIES,
    FIRST_SEED,
    MAX_LIMIT,
    NARROW,
    PAGE,
    recorded,
    solved,
    table,
    wait_errors,
    weighted_errors,
)
from polling_loop import Polling, constant, erlang, half_width, simulate

from btqueue.queueing import polling_model, solve_polling

EXACT = "exhaustive and gated"


def within_the_aims(points):
    """Single queues and systems weighted by load, at random points: .2 % in the median, 5 % for 95 of 100."""
    for errors in (wait_errors(points), weighted_errors(points)):
        assert np.median(np.abs(errors)) < 0.002 and np.quantile(np.abs(errors), 0.95) < 0.05


def test_recorded_waits_are_within_the_aims_and_in_the_table():
    points = [point for queues in recorded().values() for point in queues]
    assert table(points) in PAGE.read_text("utf-8"), "run polling_against_simulation.py"
    ours = [point for point in points if point.family in FAMILIES and point.family != EXACT]
    assert len(wait_errors(ours)) == 1241
    within_the_aims(ours)
    narrow = [point for point in points if point.family in NARROW]
    assert len(weighted_errors(narrow)) == 120
    assert np.abs(weighted_errors(narrow)).max() < 0.03


@pytest.mark.parametrize(
    ("queues", "limit"),
    [(2, 8), *(pytest.param(number, MAX_LIMIT, marks=pytest.mark.long) for number in range(1, 8))],
)
def test_the_recorded_waits_are_those_of_the_solver(queues, limit):
    """Recorded systems of this many queues and of limits up to this one are solved again; with six digits."""
    systems = [points for points in recorded().values() if points[0].queues == queues]
    systems = [points for points in systems if max(point.limit for point in points) <= limit]
    assert len(systems) > 20
    again = [point for points in systems for point in solved(points, limit)]
    recorded_waits = [point.wait for points in systems for point in points]
    np.testing.assert_allclose([point.wait for point in again], recorded_waits, rtol=1e-5)
    limited = [point for point in again if point.seed >= FIRST_SEED and point.family != EXACT]
    assert np.median(np.abs(wait_errors(limited))) < 0.003


@pytest.mark.parametrize("walk", [0.5, pytest.param(0.0, marks=pytest.mark.long)])
def test_exact_waits_of_batches_are_simulated(walk):
    """Exhaustive and gated queues in batches, with and without walks: 99.9 % for the six waits together."""
    rates, services, batch = np.array([0.05, 0.08, 0.1]), [2, 3, 2], np.array([3, 1, 2])
    gated = [False, True, True]
    times = {"service_mean": services, "service_second": 2 * np.square(services)}
    times |= {"switch_mean": walk, "switch_second": walk**2}
    batches = {"batch_mean": batch, "batch_second": batch**2}
    names = ["gated" if one else "exhaustive" for one in gated]
    model = polling_model(arrival_rate=rates, discipline=names, **times, **batches)
    laws = {"services": [erlang(mean) for mean in services], "walks": constant(walk)}
    system = Polling(rates=rates / batch, gated=gated, batch=batch, **laws)
    waits = simulate(system, slots=4e5, replications=10)["waiting"]
    simulated, sure = waits.mean(axis=0), half_width(waits, 1 - 0.001 / 6)
    assert (np.abs(solve_polling(model).mean_wait - simulated) < sure).all()
    assert (sure < 0.1 * simulated).all(), "and the comparison can tell"
