"""Dimensioning: reading what is asked, feasibility, ties, failures, confirmation by simulation, files."""

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import btqueue as bt
from btqueue.scenario import ScenarioError
from btqueue.study.dimensioning import DimensioningInterrupted, dimension
from btqueue.study.dimensioning.choices import parse_choice, parse_choices
from btqueue.study.dimensioning.expressions import Quantity, parse_expression, scenario_keys
from btqueue.study.dimensioning.paired import bound_verdict, different, paired_p_value, samples_of
from btqueue.study.dimensioning.problem import parse_constraint, task_of
from btqueue.study.dimensioning.results import as_dataset, as_values, write_csv
from btqueue.study.evaluate import Value

spec = importlib.util.spec_from_file_location(
    "dimension_stand_ins", Path(__file__).with_name("dimension_stand_ins.py")
)
assert spec is not None and spec.loader is not None
stand_ins = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stand_ins)

BASE = bt.load("venugopal-2006/piconet").with_(run__replications=10)


def tent(changes):
    """Goodput 100 at M = 8, less by 2 for each step away; a round trip of M / 20."""
    limit = changes["polling.limit"]
    return {"goodput_kbps": 100.0 - 2 * abs(limit - 8), "rtt_s": limit / 20}


def choose_limit(metrics=tent, **options):
    question = {"maximize": "goodput_kbps", "choose": "polling.limit=1..20", "confirm": False}
    return dimension(BASE, **{**question, "solver": stand_ins.CountingSolver(metrics), **options})


# ---------------------------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("text", "sense", "bound", "strict"),
    [
        ("rtt_s <= 0.4", "<=", 0.4, False),
        ("rtt_s<=400ms", "<=", 0.4, False),
        ("400 ms >= rtt_s", "<=", 0.4, False),
        ("goodput_kbps > 0.15 Mbit/s", ">=", 150.0, True),
        ("loss_token_buffer < 5 %", "<=", 0.05, True),
        ("min(goodput_kbps) >= 80", ">=", 80.0, False),
        ("2 * rtt_s + 0.1 <= 0.5 + 0.2 s", "<=", 0.6, False),
        ("timeouts_per_s ≤ 6 1/min", "<=", 0.1, False),
        ("-rtt_s >= -0.4", "<=", 0.4, False),
        ("polling.limit + network.peripherals <= 12", "<=", 12.0, False),
    ],
)
def test_bounds_are_read(text, sense, bound, strict):
    constraint = parse_constraint(text)
    assert (constraint.sense, constraint.strict) == (sense, strict)
    assert constraint.bound == pytest.approx(bound, rel=1e-14)


def test_both_sides_of_a_bound_may_have_metrics_and_keys():
    constraint = parse_constraint("flow_control.token_rate_kbps <= 1.5 * goodput_kbps + 3 kbit/s")
    assert constraint.bound == 3 and not constraint.of_keys_only
    side = constraint.expression.value({"goodput_kbps": Value(100)}, {"flow_control.token_rate_kbps": 160})
    assert side == 10 and constraint.slack(side) == -7


numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@given(numbers, numbers, numbers)
def test_an_expression_is_worth_what_python_says(a, b, c):
    first, second = "-" if a < 0 else "", "-" if b < 0 else "+"
    text = f"{first}{abs(a)!r} * rtt_s {second} goodput_kbps * {abs(b)!r} + {abs(c)!r}"
    linear = parse_expression(text, "test").linear
    value = linear.value({"rtt_s": Value(0.25), "goodput_kbps": Value(80.0)}, {})
    assert value == pytest.approx(a * 0.25 + b * 80.0 + abs(c), rel=1e-12, abs=1e-9)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_in_words(text):
    for read in (lambda: parse_constraint(text), lambda: parse_expression(text, "--maximize")):
        try:
            read()
        except ScenarioError as error:
            assert str(error)


def test_aggregates_are_over_the_flows_that_have_a_value():
    value = Value(20.0, part="flow", means=(10.0, math.nan, 30.0))
    assert [Quantity("rtt_s", how).of(value) for how in ("mean", "min", "max")] == [20.0, 10.0, 30.0]
    assert Quantity("cycle_s", "max").of(Value(0.5)) == 0.5


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"maximize": "godput_kbps"}, "did you mean goodput_kbps?"),
        ({"maximize": "S"}, "did you mean flow_control.buffer_packets?"),
        ({"maximize": "goodput_kbps", "minimize": "rtt_s"}, "name one objective"),
        ({}, "name one objective"),
        ({"maximize": ""}, "name a metric"),
        ({"maximize": "3"}, "names no metric"),
        ({"maximize": "link.packets"}, "no number"),
        ({"maximize": "avg(goodput_kbps)"}, "mean(...), min(...) or max(...)"),
        ({"maximize": "min(polling.limit)"}, "one value"),
        ({"maximize": "rtt_s / 0"}, "division by 0"),
        ({"maximize": "rtt_s * delay_s"}, "by a number"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt <= 0.4"}, "did you mean rtt_s?"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <= 0.4 kbps"}, "rtt_s is in s"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <= 4 msec"}, "did you mean ms?"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s"}, "has no bound"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <="}, "nothing to read"),
        ({"maximize": "goodput_kbps", "subject_to": "0.1 <= rtt_s <= 0.4"}, "each of them alone"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s = 0.4"}, "equality"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s - rtt_s <= 1"}, "names no metric"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <= 2 delay_s"}, "write a *"),
        ({"maximize": "goodput_kbps", "choose": "polling.limt=1..5"}, "polling.limit"),
        ({"maximize": "goodput_kbps", "choose": "polling.limit"}, "KEY=VALUES"),
        ({"maximize": "goodput_kbps", "choose": []}, "nothing to choose"),
        ({"maximize": "goodput_kbps", "choose": "polling.limit=0..5"}, "at least 1"),
        ({"maximize": "goodput_kbps", "choose": "polling.limit=log(1,9)"}, "how many values"),
        ({"maximize": "goodput_kbps", "choose": ["polling.limit=1,2", "polling.limit=3"]}, "given twice"),
        ({"maximize": "goodput_kbps", "budget": 0}, "at least 1"),
        ({"maximize": "goodput_kbps", "top": -1}, "0 or more"),
        (
            {"minimize": "transport.mss_bytes", "choose": "transport.mss_bytes=abc,500"},
            "whole number",
        ),
        (
            {"maximize": "goodput_kbps", "subject_to": "link.packets <= 2", "choose": "link.packets=DH5,DH3"},
            "no numbers",
        ),
    ],
)
def test_what_cannot_be_read_is_said_in_words(question, words):
    solver = stand_ins.CountingSolver(tent)
    with pytest.raises(ScenarioError) as caught:
        dimension(BASE, **{"choose": "polling.limit=1..5", "solver": solver, **question})
    assert words in str(caught.value)
    assert not solver.asked


def test_choices_are_read_as_those_of_a_sweep():
    assert parse_choice("polling.limit", "1..4").values == (1, 2, 3, 4)
    assert parse_choice("polling.limit", "lin(1, 4)").values == (1, 2, 3, 4)
    assert parse_choice("polling.limit", "log(1,16,5)").values == (1, 2, 4, 8, 16)
    assert parse_choice("flow_control.token_rate_kbps", "100..300:100").values == (100.0, 200.0, 300.0)
    assert parse_choice("link.packets", "DH5,DH3").values == (["DH5"], ["DH3"])
    assert parse_choice("link.packets", "[DH5],[DH5,DH3]").values == (["DH5"], ["DH5", "DH3"])
    assert not parse_choice("transport.variant", "reno,newreno").ordered
    for text in ("100..400", "100.0..400.0", "lin(100,400)"):
        choice = parse_choice("flow_control.token_rate_kbps", text)
        assert choice.continuous and [choice.at(x) for x in (0.0, 0.5, 1.0)] == [100, 250, 400]
    assert parse_choice("radio.ber", "log(1e-6,1e-4)").at(0.5) == pytest.approx(1e-5)
    assert [c.key for c in parse_choices({"polling.limit": [3, 1]})] == ["polling.limit"]


def test_every_key_of_a_scenario_may_stand_in_an_expression():
    tables = {name: keys for name, keys in BASE.to_dict().items() if isinstance(keys, dict)}
    written = {f"{table}.{key}" for table, keys in tables.items() for key in keys}
    assert len(written) > 50 and written <= set(scenario_keys())


# ---------------------------------------------------------------------------------- what is found


def test_the_best_point_the_runners_up_and_the_counts():
    found = choose_limit(subject_to=["rtt_s <= 0.3"], top=3)
    assert found.best is not None and found.best.changes == {"polling.limit": 6}
    assert [c.changes["polling.limit"] for c in found.runners_up] == [5, 4, 3]
    assert (found.feasible, len(found.candidates), found.ties) == (6, 20, 0)
    assert found.scenario.polling.limit == 6
    assert found.prices[0].binding and found.prices[0].step == pytest.approx(0.05)


def test_among_equals_the_first_value_of_the_choice_wins():
    flat = lambda changes: {"goodput_kbps": 1.0 + 1e-13 * changes["polling.limit"]}  # noqa: E731
    up = choose_limit(flat)
    down = choose_limit(flat, choose={"polling.limit": range(20, 0, -1)})
    assert up.best is not None and up.best.changes == {"polling.limit": 1}
    assert down.best is not None and down.best.changes == {"polling.limit": 20}
    assert up.ties == down.ties == 19
    assert up.at_end == ("polling.limit",)


def test_a_strict_bound_excludes_equality_and_others_forgive_rounding():
    at = lambda changes: {"goodput_kbps": changes["polling.limit"], "rtt_s": 0.1 + 0.2}  # noqa: E731
    assert choose_limit(at, subject_to="rtt_s <= 0.3").feasible == 20
    assert choose_limit(at, subject_to="rtt_s < 0.30000000000000004").feasible == 0


def test_nothing_feasible_gives_the_nearest_point_and_what_fails():
    found = choose_limit(subject_to=["goodput_kbps >= 110", "rtt_s <= 1 s"])
    assert found.best is None and found.feasible == 0 and found.prices == ()
    assert found.nearest is not None and found.nearest.changes == {"polling.limit": 8}
    assert found.nearest.violations(found.task) == (pytest.approx(10 / 110), 0.0)
    with pytest.raises(ValueError, match="bounds"):
        _ = found.scenario


def test_bounds_of_keys_that_exclude_each_other_give_a_nearest_point_too():
    solver = stand_ins.CountingSolver(tent)
    found = choose_limit(solver=solver, subject_to=["polling.limit <= 3", "polling.limit >= 5"])
    assert found.best is None and found.nearest is not None and len(solver.asked) == 1
    assert found.nearest.changes == {"polling.limit": 3}  # off by 2 of 5; 4 by 1 of 3 and 1 of 5


def test_points_that_fail_are_left_out_with_their_reason():
    def metrics(changes):
        return "it oscillates" if changes["polling.limit"] in (7, 8) else tent(changes)

    found = choose_limit(metrics)
    assert found.best is not None and found.best.changes == {"polling.limit": 9}
    assert found.failures == {"no convergence: it oscillates": 2}
    assert found.nearest is None


def test_a_metric_that_is_missing_at_some_points_makes_these_fail():
    def metrics(changes):
        known = tent(changes)
        return known if changes["polling.limit"] > 5 else {"rtt_s": known["rtt_s"]}

    found = choose_limit(metrics, subject_to="rtt_s <= 0.4")
    assert found.failures == {"no value: the model gives no goodput_kbps here": 5}
    assert found.best is not None and found.best.changes == {"polling.limit": 8}


def test_a_metric_that_the_model_never_gives_is_said_after_three_points():
    solver = stand_ins.CountingSolver(tent)
    with pytest.raises(ScenarioError, match="gives no delay_s"):
        choose_limit(solver=solver, minimize="delay_s", maximize=None)
    assert len(solver.asked) == 3


def test_a_scenario_without_a_model_is_refused():
    with pytest.raises(ScenarioError, match="none of 2 points"):
        dimension(BASE.with_(transport__variant="vegas", flow_control__drop="segment"),
                  maximize="goodput_kbps", choose="polling.limit=1,2", workers=1)  # fmt: skip


def test_an_objective_and_bounds_may_be_about_keys():
    found = choose_limit(maximize=None, minimize="polling.limit", subject_to="goodput_kbps >= 95")
    assert found.best is not None and found.best.changes == {"polling.limit": 6}
    price = found.prices[0]  # M = 5 carries 94
    assert (price.slack, price.step, price.step_gain, price.exact) == (1.0, 1.0, 1.0, True)


def test_the_budget_is_kept_and_every_point_solved_once():
    solver = stand_ins.CountingSolver(lambda c: tent(c) | {"rtt_s": c["flow_control.token_rate_kbps"] / 1000})
    found = choose_limit(
        solver=solver, budget=50, choose=["polling.limit=1..20", "flow_control.token_rate_kbps=100..400"]
    )
    assert len(solver.asked) == len(set(solver.asked)) == 50 == len(found.candidates)
    assert found.outcome.spent and not found.outcome.proved


def test_categories_are_searched_all():
    def metrics(changes):
        bonus = {"DH1": 0, "DH3": 5, "DH5": 9}[changes["link.packets"][0]]
        return {"goodput_kbps": tent(changes)["goodput_kbps"] + bonus}

    for budget in (1000, 30):
        found = choose_limit(
            metrics, budget=budget, choose=["polling.limit=1..20", "link.packets=DH1,DH3,DH5"]
        )
        assert found.best is not None
        assert found.best.changes == {"polling.limit": 8, "link.packets": ["DH5"]}


def test_an_interrupted_search_keeps_what_it_has():
    class Interrupting(stand_ins.CountingSolver):
        def __call__(self, base, points, workers):
            for place, result in enumerate(super().__call__(base, points, workers)):
                if place == 5:
                    raise KeyboardInterrupt
                yield result

    with pytest.raises(DimensioningInterrupted) as caught:
        choose_limit(solver=Interrupting(tent))
    partial = caught.value.partial
    assert partial is not None and partial.interrupted and not partial.outcome.proved
    assert len(partial.candidates) == 6 and partial.best is not None


def test_progress_ends_at_the_number_of_points():
    calls = []
    choose_limit(progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (20, 20) and [done for done, _ in calls] == list(range(1, 21))


# ---------------------------------------------------------------------------------- by simulation


def simulated(*, common=2.0, own=0.1, seed=1, truth=tent, **options):
    play = stand_ins.noisy_simulator(truth, common=common, own=own, seed=seed, key="polling.limit")
    return choose_limit(confirm=True, simulator=play, **options)


def test_the_winner_its_neighbours_and_the_runner_up_are_simulated():
    confirmation = simulated(choose="polling.limit=1..20", subject_to="rtt_s <= 0.5").confirmation
    assert confirmation is not None and confirmation.replications == 10
    assert [point.role for point in confirmation.points] == [
        "winner", "runner-up, polling.limit = 7", "polling.limit = 9",
    ]  # fmt: skip
    assert [point.verdict for point in confirmation.points] == ["winner", "worse", "worse"]
    assert confirmation.winner.bounds == ("met",) and confirmation.warnings == ()


def test_common_random_numbers_tell_apart_what_independent_ones_cannot():
    # A true difference of 2 under noise of deviation 20 that all points share, and of 0.1 that they do not.
    confirmation = simulated(common=20.0).confirmation
    assert confirmation is not None
    near = confirmation.points[1]
    assert near.verdict == "worse"
    assert near.difference.mean == pytest.approx(2, abs=0.3) and near.difference.ci95 < 0.3
    assert near.objective.ci95 > 5


def test_points_that_do_not_differ_are_called_different_in_at_most_5_percent_of_the_cases():
    # 200 dimensionings with two comparisons each of points that are truly equal: by Holm at most 5 % of them
    # name any difference; binomial, 20 or more of 200 has a probability of 0.3 %. Fixed seeds.
    flat = lambda changes: {"goodput_kbps": 100.0}  # noqa: E731
    alarms = 0
    for seed in range(200):
        confirmation = simulated(common=1.0, own=1.0, seed=seed, truth=flat, choose="polling.limit=3..5",
                                 metrics=tent).confirmation  # fmt: skip
        assert confirmation is not None
        alarms += any(p.verdict in ("better", "worse") for p in confirmation.points)
    assert 0 < alarms < 20


def test_a_simulation_that_disagrees_with_the_model_is_reported():
    def truth(changes):
        return {"goodput_kbps": 100.0 - 2 * abs(changes["polling.limit"] - 9), "rtt_s": 0.45}

    found = simulated(truth=truth, subject_to="rtt_s <= 0.42", own=0.01)
    assert found.confirmation is not None
    warnings = " / ".join(found.confirmation.warnings)
    assert "the winner violates rtt_s <= 0.42" in warnings
    assert found.confirmation.winner.bounds == ("violated",)
    better = next(p for p in found.confirmation.points if p.changes == {"polling.limit": 9})
    assert better.verdict == "better" and better.worthless  # it violates the bound as well


def test_a_better_neighbour_and_a_margin_below_the_error_are_reported():
    def truth(changes):
        return {"goodput_kbps": 95.0 - 2 * abs(changes["polling.limit"] - 9), "rtt_s": 0.415}

    found = simulated(truth=truth, subject_to="rtt_s <= 0.42", own=0.01)
    assert found.confirmation is not None
    warnings = " / ".join(found.confirmation.warnings)
    assert "polling.limit = 9 is better" in warnings
    near = simulated(truth=lambda c: tent(c) | {"rtt_s": 0.3}, subject_to="rtt_s <= 0.42").confirmation
    assert near is not None
    assert any("more than the margin of 0.02" in warning for warning in near.warnings)


def test_a_neighbour_that_cannot_be_simulated_is_kept_with_its_reason():
    play = stand_ins.noisy_simulator(tent, common=1.0, own=0.1, seed=1, key="polling.limit")

    def simulator(scenario):
        if scenario.polling.limit == 9:
            raise RuntimeError("out of memory")
        return play(scenario)

    confirmation = choose_limit(confirm=True, simulator=simulator).confirmation
    assert confirmation is not None
    failed = next(point for point in confirmation.points if point.changes == {"polling.limit": 9})
    assert failed.failure is not None and "out of memory" in failed.failure.message
    assert failed.verdict == "no comparison"


def test_holm_compares_the_smallest_p_value_with_the_whole_number_of_comparisons():
    assert different([0.02, 0.012, 0.04, math.nan]) == {0, 1, 2}
    assert different([0.02, 0.018, 0.04]) == set()
    assert different([]) == set()


def test_p_values_of_paired_differences():
    from scipy.stats import ttest_1samp

    sample = np.random.default_rng(3).normal(0.4, 1, 12)
    reference: Any = ttest_1samp(sample, 0)
    assert paired_p_value(sample) == pytest.approx(reference.pvalue, rel=1e-12)
    assert paired_p_value(np.zeros(4)) == 1 and paired_p_value(np.ones(4)) == 0
    assert math.isnan(paired_p_value(np.array([1.0, math.nan])))


def test_bounds_are_judged_by_the_whole_interval():
    verdicts = [bound_verdict(slack, 1.0) for slack in (1.5, 1.0, 0.5, -0.5, -1.5, math.nan)]
    assert verdicts == ["met", "met", "open", "open", "violated", "unknown"]


def test_the_least_flow_is_the_one_that_is_least_on_average():
    # In every replication the least of the two is 1, on average the flows have 2 and 1.5.
    values = np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0], [3.0, 1.0]])
    dataset = xr.Dataset({"goodput_kbps": (("replication", "flow"), values)})
    least = samples_of(parse_expression("min(goodput_kbps)", "test").linear, dataset, {})
    assert least.tolist() == [2.0, 1.0, 2.0, 1.0]
    mean = samples_of(parse_expression("2 * goodput_kbps + 1", "test").linear, dataset, {})
    assert mean.tolist() == [4.0, 5.0, 4.0, 5.0]
    assert np.isnan(samples_of(parse_expression("rtt_s", "test").linear, dataset, {})).all()


# ---------------------------------------------------------------------------------- files and figures


def test_the_dataset_and_the_table_hold_every_point(tmp_path):
    found = simulated(subject_to="rtt_s <= 0.5")
    dataset = as_dataset(found)
    assert dataset["objective"].dims == ("point",) and dataset.sizes == {"point": 20, "constraint": 1}
    best = dataset.isel(point=0)
    assert (best["polling.limit"].item(), best["feasible"].item(), best["role"].item()) == (8, True, "winner")
    assert dataset["slack"].sel(constraint="rtt_s <= 0.5").isel(point=0).item() == pytest.approx(0.1)
    dataset.to_netcdf(tmp_path / "points.nc", engine="h5netcdf")
    write_csv(dataset, tmp_path / "points.csv")
    lines = (tmp_path / "points.csv").read_text("utf-8").splitlines()
    assert lines[0].startswith("polling.limit,objective,slack of rtt_s <= 0.5,feasible")
    assert len(lines) == 21 and lines[1].startswith("8,100.0,")


def test_the_plain_values_of_every_outcome_are_json():
    import json

    for found in (simulated(), choose_limit(subject_to="goodput_kbps >= 200"), choose_limit(budget=5)):
        values = as_values(found)
        assert json.loads(json.dumps(values, allow_nan=False)) == values


@pytest.mark.parametrize(
    "choose",
    [
        "polling.limit=1..20",
        ["polling.limit=1..20", "link.packets=DH5,DH3"],
        ["polling.limit=1..9", "radio.ber=log(1e-6,1e-4)"],
    ],
)
def test_a_figure_is_drawn_of_every_kind_of_choice(choose, tmp_path):
    from btqueue.plots import save
    from btqueue.plots.dimension import dimension_figure

    found = simulated(choose=choose, subject_to="rtt_s <= 0.5", budget=60)
    figure = dimension_figure(found, "a title")
    for suffix in (".png", ".svg", ".pdf"):
        save(figure, tmp_path / f"figure{suffix}")
        assert (tmp_path / f"figure{suffix}").stat().st_size > 1000
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert "polling.limit" in labels


def test_a_figure_of_an_objective_of_keys_shows_the_bound_that_it_meets():
    from btqueue.plots.dimension import dimension_figure

    found = simulated(maximize=None, minimize="polling.limit", subject_to="goodput_kbps >= 95")
    (panel,) = dimension_figure(found).axes
    assert panel.get_ylabel() == "goodput (kbit/s)"
    heights = [float(np.asarray(line.get_ydata(), float)[0]) for line in panel.get_lines()]
    assert 95.0 in heights and 96.0 in heights


def test_a_figure_is_drawn_if_nothing_is_feasible():
    from btqueue.plots.dimension import dimension_figure

    assert dimension_figure(choose_limit(subject_to="goodput_kbps >= 200")).axes


def test_a_task_keeps_the_values_of_keys_that_nobody_chooses():
    task = task_of(BASE, maximize="goodput_kbps", subject_to="polling.limit <= flow_control.buffer_packets",
                   choose="polling.limit=1..40")  # fmt: skip
    assert task.fixed == {"flow_control.buffer_packets": 25.0}
    assert not task.rules_out({"polling.limit": 25}) and task.rules_out({"polling.limit": 26})
