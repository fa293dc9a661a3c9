"""Dimensioning confirmed by simulation: what is simulated, how differences and bounds are judged."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dimension_stand_ins import choose_limit, limits_of, noisy_simulator, printed, simulated, tent
from scipy.stats import ttest_1samp

from btqueue.study.dimensioning.confirmation import MOST_PLAYED, _warnings, paired_p_value
from btqueue.study.dimensioning.optimum import as_values


def test_the_winner_and_all_points_that_are_nearly_as_good_are_simulated():
    confirmation = simulated(choose="polling.limit=1..20", subject_to="rtt_s <= 0.5").confirmation
    assert confirmation.replications == 10
    assert [point.role for point in confirmation.points] == [
        "winner", "runner-up, polling.limit = 9", "polling.limit = 7", "polling.limit = 6",
        "polling.limit = 10",
    ]  # fmt: skip
    assert [point.verdict for point in confirmation.points] == ["winner", *["worse"] * 4]
    assert confirmation.points[0].bounds == ("met",) and confirmation.warnings == ()


def test_common_random_numbers_tell_apart_what_independent_ones_cannot():
    # A true difference of 2 under noise of deviation 20 that all points share, and of 0.1 that they do not.
    near = simulated(common=20.0).confirmation.points[1]
    assert near.verdict == "worse"
    assert near.difference.mean == pytest.approx(2, abs=0.3) and near.difference.ci95 < 0.3
    assert near.estimates[0].ci95 > 5


def test_points_that_do_not_differ_are_called_different_in_at_most_5_percent_of_the_cases():
    # 200 dimensionings with two comparisons each of points that are truly equal: by Holm at most 5 % of them
    # name any difference; binomial, 20 or more of 200 has a probability of 0.3 %. Fixed seeds.
    def alarms(seed):
        noise = {"common": 1.0, "own": 1.0, "seed": seed, "truth": lambda _: {"goodput_kbps": 100.0}}
        found = simulated(**noise, choose="polling.limit=3..5")
        return any(point.verdict in ("better", "worse") for point in found.confirmation.points)

    assert 0 < sum(map(alarms, range(200))) < 20


@pytest.mark.parametrize("values", ["1..20", "1..60"])
def test_where_simulation_finds_no_point_within_the_bounds_this_is_said(values):
    def truth(changes):
        return {"goodput_kbps": 100.0 - 2 * abs(changes["polling.limit"] - 9), "rtt_s": 0.45}

    choose = f"polling.limit={values}"
    model = {"metrics": lambda c: tent(c) | {"rtt_s": 0.4}, "choose": choose, "own": 0.01}
    found = simulated(truth=truth, subject_to="rtt_s <= 0.42", **model)
    if values == "1..20":  # all of them are simulated
        assert found.best is None
        assert found.nearest.answered_by == "simulation" and found.nearest.sides == pytest.approx([0.45])
        return
    assert len(found.confirmation.points) == MOST_PLAYED
    assert (limits_of([found.best]), found.best.answered_by) == ([8], "theory")
    assert "the winner violates rtt_s <= 0.42" in " / ".join(found.confirmation.warnings)
    assert found.confirmation.points[0].bounds == ("violated",)
    better = next(p for p in found.confirmation.points if p.changes == {"polling.limit": 9})
    assert better.verdict == "better" and better.worthless  # it violates the bound as well


def test_simulation_picks_the_winner_far_from_the_best_of_theory():
    def truth(changes):
        return {"goodput_kbps": 95.0 - 2 * abs(changes["polling.limit"] - 15), "rtt_s": 0.415}

    found = simulated(truth=truth, subject_to="rtt_s <= 0.42", own=0.01)
    assert limits_of([found.best]) == [15] and found.confirmation.warnings == ()
    assert (found.best.answered_by, found.best.confirmed) == ("simulation", True)
    assert all(one.confirmed for one in found.runners_up)
    assert found.best.sides[0] == pytest.approx(0.415)


def test_a_point_that_only_theory_says_violates_a_bound_can_win():
    model = {"metrics": lambda c: tent(c) | {"rtt_s": 0.45}, "own": 0.01}
    found = simulated(truth=lambda c: tent(c) | {"rtt_s": 0.4}, subject_to="rtt_s <= 0.42", **model)
    assert limits_of([found.best]) == [8]
    far = simulated(truth=tent, subject_to="rtt_s <= 0.001", own=0.01)
    assert far.best is None and far.confirmation is None


@pytest.mark.parametrize("unfair", [8, 9])
def test_a_flow_that_gets_nothing_in_the_simulation_is_never_better(unfair):
    def truth(changes):
        starves = changes["polling.limit"] == unfair
        return {"goodput_kbps": np.array([0.0, 400.0] if starves else [100.0, 100.0])}

    found = simulated(truth=truth).confirmation
    starving = found.points[limits_of(found.points).index(unfair)]
    assert (starving.verdict, starving.unserved, found.warnings) == ("worse", 1, ())
    assert starving.difference.mean < 0 and found.points[0].unserved == 0


def test_a_neighbour_that_cannot_be_simulated_is_kept_with_its_reason():
    play = noisy_simulator(tent, common=1.0, own=0.1, seed=1, key="polling.limit")

    def simulator(scenario):
        if scenario.polling.limit == 9:
            raise RuntimeError("out of memory")
        return play(scenario)

    points = choose_limit(confirm=True, simulator=simulator).confirmation.points
    failed = points[limits_of(points).index(9)]
    assert "out of memory" in failed.failure.message and failed.verdict == "no comparison"


def test_p_values_of_paired_differences():
    sample = np.random.default_rng(3).normal(0.4, 1, 12)
    reference: Any = ttest_1samp(sample, 0)
    assert paired_p_value(sample) == pytest.approx(reference.pvalue, rel=1e-12)
    assert paired_p_value(np.zeros(4)) == 1 and paired_p_value(np.ones(4)) == 0
    assert math.isnan(paired_p_value(np.array([1.0, math.nan])))
    nearly_equal = 78.84 + 1e-13 * sample  # the warning of scipy is an error here
    assert 0 < paired_p_value(nearly_equal) < 1e-100


def test_what_would_decide_is_said_and_in_the_json():
    found = simulated(subject_to="goodput_kbps >= 99.5")
    winner = found.confirmation.points[0]
    assert winner.bounds == ("open",) and winner.needed[0] > len(winner.samples)
    said = f"about {winner.needed[0]:,.0f} replications would decide it"
    assert said in found.confirmation.warnings[0] and said in printed(found)
    values = as_values(found)["confirmation"]["points"]
    assert values[0]["constraints"][0]["replications_to_decide"] == winner.needed[0]


def test_runners_up_stand_in_the_order_of_the_objective_whoever_has_answered():
    """A neighbour that was simulated and is much worse stands behind better points of theory."""

    def metrics(changes):
        return {"goodput_kbps": 100.0 - 5.5 * abs(changes["polling.limit"] - 8), "rtt_s": 0.1}

    # the second value is a step from the first, the third is not
    found = simulated(truth=metrics, metrics=metrics, choose={"polling.limit": [8, 20, 9]}, own=0.01)
    assert limits_of(found.runners_up) == [9, 20]
    assert [one.answered_by for one in found.runners_up] == ["theory", "simulation"]


@pytest.mark.parametrize(("bound", "said"), [("open", ", if its bounds hold, which is open"), ("met", "")])
def test_a_better_point_whose_bound_is_open_is_named_so(bound, said):
    found = simulated(choose="polling.limit=1..20", subject_to="rtt_s <= 0.5")
    winner, other, *_ = found.confirmation.points
    difference = replace(other.difference, mean=-2.0, ci95=0.5)
    better = replace(other, verdict="better", bounds=(bound,), difference=difference)
    (warning,) = _warnings(found.task, [winner, better])
    assert warning == f"{other.role} is better by simulation, by 2 ± 0.5{said}"


def test_what_is_said_of_ties_and_of_points_that_cannot_be_told_apart():
    def truth(changes):
        return {"goodput_kbps": 5.0 if changes["polling.limit"] < 5 else 1.0, "rtt_s": 0.1}

    assert "alone tells no point apart" in printed(simulated(truth=truth, choose="polling.limit=3..5"))
    assert "1 other point is as good" in printed(choose_limit(truth, choose="polling.limit=3..5"))
