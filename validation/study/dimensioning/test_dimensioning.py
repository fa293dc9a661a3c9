"""Dimensioning against brute force; ties, failures, the budget, and files and figures of what is found."""

import itertools
import json
import math

import numpy as np
import pytest
from dimension_stand_ins import (
    CountingSolver,
    choose_limit,
    dimension_by,
    limits_of,
    printed,
    random_problem,
    simulated,
    tent,
)

from btqueue.plots.dimension import dimension_figure
from btqueue.scenario import Scenario, ScenarioError, load
from btqueue.study.dimensioning import dimension
from btqueue.study.dimensioning.optimum import as_table, as_values


def test_the_best_point_the_runners_up_and_the_counts():
    found = choose_limit(subject_to=["rtt_s <= 0.3"], top=3)
    assert limits_of([found.best, *found.runners_up]) == [6, 5, 4, 3]
    assert (found.feasible, len(found.candidates), found.ties) == (6, 20, 0)
    assert found.scenario.polling.limit == 6


@pytest.mark.parametrize("buffers", ["1..40", "1..40:3", "5"])
@pytest.mark.parametrize("budget", [2000, 30])
def test_a_key_without_effect_is_named_and_makes_no_ties(buffers, budget):
    choose = ["polling.limit=1..20", f"flow_control.buffer_packets={buffers}"]
    found = choose_limit(choose=choose, budget=budget, top=3)
    alone = () if buffers == "5" else ("flow_control.buffer_packets",)
    assert (found.without_effect, found.ties) == (alone, 0)
    assert len({8, *limits_of(found.runners_up)}) == 4
    assert "flow_control.buffer_packets" not in found.at_end
    assert as_values(found)["keys_without_effect"] == list(alone)
    assert printed(found).count("flow_control.buffer_packets has no effect on the answer") == len(alone)


def unfair(changes):
    """Above a limit of 8 goodput goes on growing, and one of the two flows has all of it."""
    limit = changes["polling.limit"]
    return {
        "goodput_kbps": (10.0 * limit, 10.0 * limit) if limit <= 8 else (0.0, 30.0 * limit),
        "rtt_s": limit / 20,
    }


def test_points_at_which_a_flow_gets_nothing_are_left_out():
    for budget in (2000, 15):
        found = choose_limit(unfair, subject_to="rtt_s <= 0.8", budget=budget)
        assert limits_of([found.best]) == [8] and not any(one.unserved for one in found.runners_up)
        assert found.feasible == sum(not one.unserved for one in found.candidates) < len(found.candidates)
    assert found.best.unserved == 0 and as_values(found)["best"]["flows_without_goodput"] == 0
    assert max(as_table(found)["flows_without_goodput"]) == 1
    assert "some flow gets nothing" in printed(found)
    none = choose_limit(unfair, subject_to="polling.limit >= 12")
    assert none.best is None and none.nearest.unserved == 1
    assert "1 flow gets nothing at the nearest point" in printed(none)


def test_a_strict_bound_excludes_equality_and_others_forgive_rounding():
    def at(changes):
        return {"goodput_kbps": changes["polling.limit"], "rtt_s": 0.1 + 0.2}

    assert choose_limit(at, subject_to="rtt_s <= 0.3").feasible == 20
    assert choose_limit(at, subject_to="rtt_s < 0.30000000000000004").feasible == 0


def test_nothing_feasible_gives_the_nearest_point_and_what_fails():
    found = choose_limit(subject_to=["goodput_kbps >= 110", "rtt_s <= 1 s"])
    assert found.best is None and found.feasible == 0 and limits_of([found.nearest]) == [8]
    assert found.nearest.violations(found.task) == (pytest.approx(10 / 110), 0.0)
    with pytest.raises(ValueError, match="bounds"):
        _ = found.scenario


def test_bounds_of_keys_that_exclude_each_other_give_a_nearest_point_too():
    solver = CountingSolver(tent)
    found = choose_limit(solver=solver, subject_to=["polling.limit <= 3", "polling.limit >= 5"])
    assert found.best is None and len(solver.asked) == 1
    assert limits_of([found.nearest]) == [3]  # off by 2 of 5; 4 by 1 of 3 and 1 of 5


def test_points_that_fail_are_left_out_with_their_reason():
    """An overload has no round trip: here at both ends and in the middle, which are asked first."""

    def metrics(changes):
        if changes["polling.limit"] in (7, 8):
            return "it oscillates"
        return tent(changes) | ({"rtt_s": math.nan} if changes["polling.limit"] in (1, 11, 20) else {})

    found = choose_limit(metrics, subject_to="rtt_s <= 0.5")
    assert limits_of([found.best]) == [9] and found.nearest is None
    assert found.failures.pop("no convergence: it oscillates") == 2 and sum(found.failures.values()) == 3


def test_a_metric_that_the_model_never_gives_is_said_after_three_points():
    solver = CountingSolver(tent)
    with pytest.raises(ScenarioError, match="gives no delay_s"):
        choose_limit(solver=solver, minimize="delay_s", maximize=None)
    assert len(solver.asked) == 3


def test_an_overloaded_point_is_told_by_the_engine_that_answered_it():
    """Theory doubts both points; below the load of 110 kbit/s, tokens let the backlog grow with the run."""
    short = {"duration_s": 20, "warmup_s": 5, "replications": 2}
    base = Scenario(network={"flows": "uplink"}, flow_control={"enabled": True}, run=short)
    limits = {"maximize": "goodput_kbps", "subject_to": "delay_s <= 2", "confirm": False}
    loaded = base.with_(traffic__load_kbps=110, flow_control__buffer_packets=20)
    found = dimension(loaded, choose={"flow_control.token_rate_kbps": [90, 160]}, **limits)
    assert found.failures == {"no metric: the simulation gives no delay_s here: overloaded": 1}


def test_an_objective_and_bounds_may_be_about_keys():
    found = choose_limit(maximize=None, minimize="polling.limit", subject_to="goodput_kbps >= 95")
    assert limits_of([found.best]) == [6]
    assert as_values(found)["best"]["slack"] == {"goodput_kbps >= 95": 1.0}  # M = 5 carries 94


def test_the_budget_is_kept_and_every_point_solved_once():
    rate = "flow_control.token_rate_kbps"
    solver = CountingSolver(lambda changes: tent(changes) | {"rtt_s": changes[rate] / 1000})
    found = choose_limit(solver=solver, budget=50, choose=["polling.limit=1..20", f"{rate}=100..400"])
    assert len(solver.asked) == len(set(solver.asked)) == 50 == len(found.candidates)
    assert found.outcome == "spent"


def test_categories_are_searched_all():
    def metrics(changes):
        bonus = {"DH1": 0, "DH3": 5, "DH5": 9}[changes["link.packets"][0]]
        return {"goodput_kbps": tent(changes)["goodput_kbps"] + bonus}

    choose = ["polling.limit=1..20", "link.packets=DH1,DH3,DH5"]
    for budget in (1000, 30):
        best = choose_limit(metrics, budget=budget, choose=choose).best
        assert best.changes == {"polling.limit": 8, "link.packets": ["DH5"]}


def test_the_table_holds_every_point():
    table = as_table(simulated(subject_to="rtt_s <= 0.5"))
    best = table.iloc[0]
    assert len(table) == 20 and best["answered_by"] == "simulation"
    assert [*table.columns[:4]] == ["polling.limit", "objective", "slack of rtt_s <= 0.5", "feasible"]
    assert [*best.iloc[[0, 2, 3]]] == [8, pytest.approx(0.1), True]


def test_a_figure_draws_each_bound_and_joins_no_names():
    found = simulated(
        choose=["polling.limit=1..20", "polling.discipline=e-limited,slq"],
        subject_to=["rtt_s <= 0.5", "max(goodput_kbps) >= 90", "polling.limit <= 14"],
    )
    grid = np.reshape(np.array(dimension_figure(found).axes), (3, 2))
    assert [axes.get_ylabel() for axes in grid[:, 0]] == [
        "goodput (kbit/s)", "round-trip time (s)", "greatest goodput (kbit/s)",
    ]  # fmt: skip
    for one, other in grid:
        assert one.get_ylim() == other.get_ylim(), "the effects of two keys are compared by height"
    for axes, bound in zip(grid[:, 0], (None, 0.5, 90.0), strict=True):
        flat = [line for line in axes.get_lines() if line.get_linestyle() == "--"]
        heights = [np.unique(np.asarray(line.get_ydata(), float)) for line in flat]
        assert [list(one) for one in heights if len(one) == 1] == ([] if bound is None else [[bound]])
        assert 14.0 in [float(np.asarray(line.get_xdata(), float)[0]) for line in flat]
        assert any(len(np.asarray(line.get_xdata())) == 14 for line in axes.get_lines()), "numbers are joined"
    of_names = [line for line in grid[0, 1].get_lines() if line.get_linestyle() == "-"]
    assert all(len(np.asarray(line.get_xdata())) == 1 for line in of_names)
    ticks = [label.get_text().replace("\n", " ") for label in grid[-1, 1].get_xticklabels()]
    assert ticks == ["e-limited (up to M frames)", "slq (longest queues first)"]
    best = found.best.changes["polling.limit"]
    titles = ["at polling.discipline = e-limited (up to M frames)", f"at polling.limit = {best}"]
    assert [axes.get_title() for axes in grid[0]] == titles


def test_a_figure_marks_simulated_points_that_violate_a_bound_or_leave_one_open():
    found = simulated(subject_to="rtt_s <= 0.425")
    axes = dimension_figure(found).axes[1]
    marked = {
        (float(one[0].get_xdata()[0]), one[0].get_marker(), one[0].get_markerfacecolor() == "white")
        for one in axes.containers
    }
    looks = {"violated": ("x", True), "open": ("s", False), "met": ("s", True)}
    points = found.confirmation.points
    assert marked == {(point.changes["polling.limit"], *looks[point.bounds[0]]) for point in points}
    assert {"violated", "met"} <= {point.bounds[0] for point in points}


def test_points_at_which_theory_lacks_a_metric_are_simulated():
    """Under Nagle's algorithm theory gives no delay of a message; a reading waits for an acknowledgement."""
    ward = load("practice/ward", {"run.duration_s": 10.0, "run.warmup_s": 1.0, "run.replications": 2})
    choose = {"traffic.load_kbps": [2.0, 4.0]}
    found = dimension(ward, minimize="delay_s", choose=choose, confirm=False, workers=1)
    assert [one.answered_by for one in found.candidates] == ["simulation"] * 2
    assert found.feasible == 2 and all(0.03 < one.objective < 0.2 for one in found.candidates)


@pytest.mark.parametrize(("most", "at_end"), [(6, ("network.peripherals",)), (7, ())])
def test_an_end_of_a_range_is_named_if_a_scenario_may_go_beyond_it(most, at_end):
    key = "network.peripherals"
    found = choose_limit(lambda changes: {"goodput_kbps": changes[key]}, choose=f"{key}=2..{most}")
    assert (found.best.changes, found.at_end) == ({key: most}, at_end)


def test_the_plain_values_of_every_outcome_are_json():
    for found in (simulated(), choose_limit(subject_to="goodput_kbps >= 200"), choose_limit(budget=5)):
        values = as_values(found)
        assert json.loads(json.dumps(values, allow_nan=False)) == values


def brute_force(arguments: dict, metrics) -> float | None:
    """Return the greatest goodput of all combinations that meet the bounds, by plain loops."""
    names = list(arguments["choose"])
    rtt_bound = float(arguments["subject_to"][0].split()[-1])
    least = float(arguments["subject_to"][1].split()[-1]) if len(arguments["subject_to"]) > 1 else -math.inf
    everywhere = itertools.product(*arguments["choose"].values())
    found = [metrics(dict(zip(names, at, strict=True))) for at in everywhere if at[0] + at[1] >= least]
    return max((one["goodput_kbps"] for one in found if one and one["rtt_s"] <= rtt_bound), default=None)


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
