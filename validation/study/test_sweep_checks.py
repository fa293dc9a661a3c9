"""Points of a sweep that are checked by simulation: which, and what becomes of those around them."""

import json

import numpy as np
import pytest
import xarray as xr
from thesis import thesis

from btqueue.study.checked_answers import in_words, places_of, spread_out
from btqueue.study.evaluate import simulated_to_precision
from btqueue.study.sweep import sweep

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


@pytest.mark.parametrize(("spread", "least", "most"), [(0.0, 4, 4), (0.1, 5, 39), (0.5, 40, 40)])
def test_a_point_is_simulated_until_times_are_known_or_four_times_as_long_as_its_run(
    engines, spread, least, most
):
    def simulate(scenario, **limits):
        count = scenario.run.replications
        noise = np.random.default_rng(1).normal(0.0, spread, 40)[:count, np.newaxis]
        values = {"goodput_kbps": np.full((count, 1), 50.0), "rtt_s": 0.2 * (1.0 + noise)}
        attrs = {"finished": count, "wanted": count}
        return xr.Dataset({name: (("replication", "flow"), one) for name, one in values.items()}, attrs=attrs)

    engines.simulator.simulate = simulate
    rtt = simulated_to_precision(thesis().with_(run__replications=10))["rtt_s"].values.mean(axis=1)
    assert least <= len(rtt) <= most
    half_width = 2.0 * rtt.std(ddof=1) / len(rtt) ** 0.5
    assert (half_width <= 0.05 * rtt.mean()) == (spread < 0.5)
