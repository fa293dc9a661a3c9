"""Checks of theory by a short simulation, of an answer and of the points of a sweep."""

import json
import math

import numpy as np
import pytest
import xarray as xr
from thesis import thesis

from btqueue.scenario.metrics import Results, Variable
from btqueue.simulator.statistics.doubts import TooShort
from btqueue.study import Estimate
from btqueue.study import checked_answers as checks
from btqueue.study.checked_answers import Check, Difference, check_answer, in_words, places_of, spread_out
from btqueue.study.evaluate import simulated_to_precision
from btqueue.study.sweep import sweep

GOODPUT, ROUND_TRIP, TIMEOUTS = "goodput_kbps", "rtt_s", "timeouts_per_s"


@pytest.mark.parametrize(
    ("metric", "value", "half_width", "verdict"),
    [
        (GOODPUT, 0.03, 0.01, "confirmed"),
        (GOODPUT, -0.05, 0.021, "confirmed"),  # the tolerance lies within the interval
        (GOODPUT, -0.05, 0.019, "not confirmed"),
        (GOODPUT, 0.0, 0.11, "undecided"),
        (GOODPUT, 0.08, 0.06, "undecided"),  # right or 14 % off, who knows
        (ROUND_TRIP, 0.05, 0.01, "confirmed"),
        (ROUND_TRIP, 0.065, 0.01, "not confirmed"),
        (TIMEOUTS, -0.5, 0.41, "undecided"),
        (TIMEOUTS, -0.5, 0.39, "not confirmed"),
        (GOODPUT, math.inf, 0.0, "not confirmed"),
    ],
)
def test_the_rule(metric, value, half_width, verdict):
    assert Difference(metric, value, half_width).verdict == verdict


def test_timeouts_speak_against_an_answer_and_keep_none_from_being_confirmed():
    right = Difference(GOODPUT, 0.0, 0.01)
    assert Check((right, Difference(TIMEOUTS, -0.5, 0.6))).verdict == "confirmed"
    assert Check((right, Difference(TIMEOUTS, -0.9, 0.1))).verdict == "not confirmed"
    assert Check((Difference(TIMEOUTS, 0.0, 0.01),)).verdict == "undecided"


@pytest.fixture
def runs(monkeypatch):
    """Runs of a stand-in: 1,000 events a second, and intervals that narrow as runs become longer."""
    seen = []

    def simulate(scenario, *, threads=None):
        run = scenario.run
        seen.append(run)
        shape = run.replications, 2
        spread = 100.0 / math.sqrt(run.duration_s) * np.resize([-1.0, 1.0], shape[::-1]).T
        values = {GOODPUT: 100.0 + spread, TIMEOUTS: np.full(shape, 0.1)}
        events = round(1000 * run.duration_s * run.replications)
        metrics = {name: Variable(("replication", "flow"), value) for name, value in values.items()}
        return Results(metrics, {}, {"events": events})

    monkeypatch.setattr("btqueue.simulator.simulate", simulate, raising=False)
    return seen


def asked(goodput: float) -> dict[str, Estimate]:
    return {GOODPUT: Estimate(goodput), TIMEOUTS: Estimate(0.1)}


def test_a_pilot_and_one_round_where_that_decides(runs):
    limited = thesis().with_(run__precision=0.001, run__precision_of="rtt_s", run__limit_cpu_s=0.001)
    found = check_answer(limited, asked(200.0), events=8_000_000)
    assert {(run.precision, run.limit_cpu_s) for run in runs} == {(None, None)}
    assert found.verdict == "not confirmed" and len(runs) == 3  # pilots: 20,000 events are enough
    pilots, run = runs[:2], runs[2]
    assert [one.replications for one in pilots] == [1, 1]
    assert pilots[1].duration_s == pytest.approx(10 * pilots[0].duration_s)
    total_s = run.replications * (run.duration_s + run.warmup_s)
    assert total_s == pytest.approx(checks.FIRST_SHARE * 8000)
    assert run.warmup_s == pytest.approx(checks.WARMUP_SHARE * (run.duration_s + run.warmup_s))


def test_what_the_first_round_does_not_decide_a_longer_one_may(runs):
    found = check_answer(thesis(), asked(100.0), events=2_000_000)
    *_, first, second = runs
    assert second.duration_s == pytest.approx(3 * first.duration_s)
    assert found.verdict == "confirmed"
    assert check_answer(thesis(), asked(100.0), events=200_000).verdict == "undecided"


def test_groups_are_judged_apart_and_the_worst_is_named(runs):
    """Theory is right for the download, and 60 % below for the sensors; over both it is 30 % below."""
    flows = [{"from": "p1.1", "to": "c1", "group": name} for name in ("download", "sensors")]
    theory = {GOODPUT: Estimate(70.0, part="flow", means=(100.0, 40.0))}
    found = check_answer(thesis().changed({"network.flows": flows}), theory, events=8_000_000)
    assert [one.group for one in found.differences] == ["sensors"]
    assert str(found) == "not confirmed: goodput of sensors -60 %: simulate"
    theory = {GOODPUT: Estimate(100.0, part="flow", means=(100.0, math.nan))}
    assert check_answer(thesis(), theory, events=8_000_000).verdict == "confirmed"


def test_runs_in_which_the_load_changes_keep_their_length(runs):
    steps = [{"at_s": 60.0, "load_kbps": 20.0}]
    stepped = thesis().changed({"traffic.load_schedule": steps, "run.duration_s": 90.0})
    check_answer(stepped, asked(100.0), events=8_000_000)
    assert {(run.duration_s, run.warmup_s) for run in runs[2:]} == {(90.0, stepped.run.warmup_s)}
    runs.clear()
    assert check_answer(stepped, asked(100.0), events=400_000) == Check()
    assert all(run.replications == 1 for run in runs)


LIMIT, LOAD = "polling.limit", "traffic.load_kbps"


def test_places_are_counted_in_each_range():
    changes = [{"a": a, "b": b} for a in (1, 10, 1000) for b in ("x", "y")]
    assert places_of(changes).tolist() == [[0, 0], [0, 1], [0.5, 0], [0.5, 1], [1, 0], [1, 1]]
    assert places_of([{"a": 3}]).tolist() == [[0]]


def test_chosen_points_lie_in_the_middle_and_at_the_ends_and_own_what_is_nearest():
    places = places_of([{"a": a, "b": b} for a in range(9) for b in range(9)])
    chosen, nearest = spread_out(places, 5)
    assert {tuple(places[one]) for one in chosen} == {(0.5, 0.5), (0, 0), (0, 1), (1, 0), (1, 1)}
    distances = ((places[:, None] - places[chosen]) ** 2).sum(axis=2)
    assert distances[np.arange(81), nearest] == pytest.approx(distances.min(axis=1))
    assert [nearest[one] for one in chosen] == list(range(5))


@pytest.fixture
def half_wrong(engines):
    """Theory is 1 % off, and half as much again at limits above 20; the simulator says 100 everywhere."""
    good = engines.network.solve
    engines.network.solve = lambda scenario: (
        good(scenario).to_dataset() * (1.5 if scenario.polling.limit > 20 else 1.0)
    )
    return engines


@pytest.mark.parametrize(("points", "checked"), [(3, 3), (40, 5), (200, 10)])
def test_a_twentieth_of_the_points_is_checked_and_five_at_least(half_wrong, points, checked):
    found = sweep(thesis(), {LIMIT: range(1, points + 1)}, check=True, workers=1)
    assert json.loads(found.attrs["checks"])["points"] == checked
    assert int((found["check"] != "").sum()) == checked


def test_where_theory_is_not_confirmed_all_around_is_simulated(half_wrong):
    over = {LIMIT: range(1, 41), LOAD: [100, 120]}
    found = sweep(thesis(), over, check=True, workers=1)
    lines = found["check"].values.astype(str)
    by = found["answered_by"].values
    assert set(by[lines == "not confirmed: goodput +51 %: simulate"]) == {"simulation"}
    assert set(by[lines == "confirmed: goodput +1 % of the simulation"]) == {"theory"}
    assert set(by[:10].flat) == {"theory"} and set(by[-10:].flat) == {"simulation"}
    summary = json.loads(found.attrs["checks"])
    assert summary["simulated"] == (by == "simulation").sum() > 20
    assert summary["confirmed"] + summary["not_confirmed"] == 5
    worst = summary["metrics"]["goodput_kbps"]
    assert worst["worst"] == pytest.approx(0.515) and worst["at"][LIMIT] > 20
    assert found["goodput_kbps"].values[by == "simulation"] == pytest.approx(100.0)
    assert all("not confirmed" in why for why in found["why"].values[by == "simulation"])
    assert sum("points near" in line for line in in_words(summary, 80)) == 1


def test_a_checked_sweep_is_the_same_however_it_is_run_and_another_than_an_unchecked_one(
    half_wrong, tmp_path
):
    over = {LIMIT: range(1, 41)}
    checked, plain = (sweep(thesis(), over, check=check, workers=1) for check in (True, False))
    kept = sweep(thesis(), over, check=True, workers=1, out=tmp_path / "kept.nc")
    assert kept.equals(checked) and not kept.equals(plain)
    assert "checks" not in plain.attrs and set(plain["answered_by"].values) == {"theory"}
    assert json.loads(kept.attrs["sweep"]) != json.loads(plain.attrs["sweep"])


STEPS = {"traffic.load_schedule": ({"at_s": 100.0, "load_kbps": 5.0},)}


@pytest.mark.parametrize(
    ("spread", "doubt", "keys", "least", "most", "longer"),
    [
        (0.0, "", {}, 4, 4, 1),
        (0.0, "nothing random happened", {}, 4, 4, 1),
        (0.0, TooShort("the warm-up is too short"), {}, 4, 4, 4),
        (0.05, "", {}, 5, 10, 1),
        (0.5, "", {}, 10, 10, 4),
        (0.5, "", STEPS, 40, 40, 1),
    ],
)
def test_runs_that_are_too_few_or_too_short_are_played_again_four_times_as_long(
    engines, spread, doubt, keys, least, most, longer
):
    """Runs with changes at given times keep their length: there are four times as many."""
    played = []

    def simulate(scenario, **limits):
        played.append((scenario.run.duration_s, scenario.run.warmup_s))
        count = scenario.run.replications
        noise = np.random.default_rng(1).normal(0.0, spread, 40)[:count, np.newaxis]
        values = {"goodput_kbps": np.full((count, 1), 50.0), "rtt_s": 0.2 * (1.0 + noise)}
        attrs = {"finished": count, "wanted": count, "relative_half_width": 0.0, "warnings": [doubt]}
        return xr.Dataset({name: (("replication", "flow"), one) for name, one in values.items()}, attrs=attrs)

    engines.simulator.simulate = simulate
    scenario = thesis().changed({"run.replications": 10, **keys})
    found = simulated_to_precision(scenario)
    assert least <= found.sizes["replication"] <= most
    assert played[-1] == (longer * scenario.run.duration_s, longer * scenario.run.warmup_s)
    said = [one for one in found.attrs["warnings"] if "4 times as long as run asks for" in one]
    assert len(said) == (longer > 1)


def test_a_goodput_beside_a_simulated_0_is_said_in_words():
    starved = Difference(GOODPUT, math.inf, 0.0, group="status")
    assert str(starved) == "goodput of status against a simulated 0"
