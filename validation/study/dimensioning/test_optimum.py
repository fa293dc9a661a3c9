"""Dimensioning against brute force: the optimum of random problems."""

import itertools
import math

import numpy as np
import pytest
from dimension_stand_ins import CountingSolver, choose_limit, dimension_by, random_problem


def brute_force(arguments: dict, metrics) -> float | None:
    """Return the greatest goodput of all combinations that meet the bounds, by plain loops."""
    names = list(arguments["choose"])
    rtt_bound = float(arguments["subject_to"][0].split()[-1])
    least = float(arguments["subject_to"][1].split()[-1]) if len(arguments["subject_to"]) > 1 else -math.inf
    best = None
    for values in itertools.product(*arguments["choose"].values()):
        found = metrics(dict(zip(names, values, strict=True)))
        if found is None or found["rtt_s"] > rtt_bound or values[0] + values[1] < least:
            continue
        best = found["goodput_kbps"] if best is None else max(best, found["goodput_kbps"])
    return best


SHORT = 2
"""Problems of each kind that every run of the tests solves; the long tests solve the others."""


def seeds(count):
    """Return the seeds of random problems."""
    return [pytest.param(n, marks=() if n < SHORT else pytest.mark.long) for n in range(count)]


@pytest.mark.parametrize("seed", [*seeds(40), *range(40, 50)])
def test_the_search_finds_the_optimum_of_random_problems_and_says_if_it_is_proved(seed):
    # Up to 15,400 combinations, of which the search may solve 2,000 (a third of them if there are fewer), or
    # all of every third value.
    arguments, metrics = random_problem(seed)
    size = math.prod(len(values) for values in arguments["choose"].values())
    if enumerated := seed >= 40:
        arguments["choose"] = {name: list(values)[::3] for name, values in arguments["choose"].items()}
    solver = CountingSolver(metrics)
    found = dimension_by(
        solver, **arguments, confirm=False, budget=5000 if enumerated else min(2000, size // 3)
    )
    truth = brute_force(arguments, metrics)
    assert (found.outcome == "proved") == enumerated
    assert len(solver.asked) == len(set(solver.asked)), "a point was solved twice"
    assert (found.best and found.best.objective) == (truth and pytest.approx(truth, rel=1e-8))


@pytest.mark.parametrize("seed", seeds(12))
def test_the_search_finds_the_optimum_of_problems_with_continuous_keys(seed):
    # For each M the best rate is where the ascending side of a tent meets its bound: known in closed form.
    random = np.random.default_rng([11, seed])
    slope, weight, top = random.uniform(0.2, 0.8), random.uniform(0.5, 3), random.uniform(8, 18)
    bound = random.uniform(150, 300)

    def metrics(changes):
        rate, limit = changes["flow_control.token_rate_kbps"], changes["polling.limit"]
        return {
            "goodput_kbps": slope * min(rate, 320 - rate / 5) - weight * abs(limit - top),
            "rtt_s": rate + 4 * limit,
        }

    choose = ["flow_control.token_rate_kbps=50..400", "polling.limit=1..25"]
    found = choose_limit(metrics, subject_to=f"rtt_s <= {bound!r}", choose=choose, budget=1500)
    truth = max(
        metrics({"flow_control.token_rate_kbps": rate, "polling.limit": limit})["goodput_kbps"]
        for limit in range(1, 26)
        for rate in [min(bound - 4 * limit, 320 / 1.2)]
        if rate >= 50
    )
    assert found.best.objective == pytest.approx(truth, rel=1e-4)
    assert found.best.objective <= truth * (1 + 1e-9)


def test_the_search_finds_points_where_bounds_on_keys_leave_few():
    """One in 2,500 combinations of whole numbers, and a continuous key."""

    def metrics(changes):
        rate, limit = changes["flow_control.token_rate_kbps"], changes["polling.limit"]
        return {"goodput_kbps": rate + limit}

    rate, buffer = "flow_control.token_rate_kbps", "flow_control.buffer_packets"
    keys = [f"{rate}=50..400", "polling.limit=1..100", f"{buffer}=1..60"]
    bounds = ["polling.limit >= 97", f"{buffer} <= 6", f"{rate} <= 85"]
    found = choose_limit(metrics, subject_to=bounds, choose=keys)
    assert found.best.objective == pytest.approx(185.0, rel=1e-5)
