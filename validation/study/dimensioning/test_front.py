"""Two aims of a dimensioning: the front of the points that no other one beats in both."""

import json
import re
import shlex
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from command_line import run
from dimension_stand_ins import BASE, CountingSolver, choose_limit, limits_of, printed, simulated, tent
from matplotlib.backends.backend_agg import FigureCanvasAgg

from btqueue.plots.dimension import front_figure
from btqueue.study.dimensioning.confirmation import MOST_SIMULATED, spread
from btqueue.study.dimensioning.optimum import as_table, as_values
from btqueue.study.dimensioning.problem import aims_of

DOCS = Path(__file__).parents[3] / "docs"
TWO = {"maximize": None, "pareto": "goodput_kbps, rtt_s"}
NAMES = ("polling.limit", "flow_control.buffer_packets")
KEYS = [f"{NAMES[0]}=1..20", f"{NAMES[1]}=5..12"]


def bowl(changes):
    """Goodput and round trip grow with M; a buffer of 10 is best for goodput, a small one for round trips."""
    limit, buffer = changes["polling.limit"], changes.get("flow_control.buffer_packets", 10)
    return {
        "goodput_kbps": 100.0 - (20 - limit) ** 2 / 4 - abs(buffer - 10),
        "rtt_s": (5 * limit + buffer) / 100,
    }


def values_of(points):
    return {(one.objective, one.sides[-1]) for one in points}


def test_no_point_of_the_front_is_beaten_and_every_other_point_is():
    found = choose_limit(bowl, choose=KEYS, subject_to="goodput_kbps >= 40", **TWO)
    feasible = [one for one in found.candidates if one.feasible(found.task)]
    assert 1 < len(found.front) < len(feasible) < len(found.candidates)

    def beaten(one):
        return any(
            (other.objective >= one.objective and other.sides[-1] <= one.sides[-1])
            and (other.objective, other.sides[-1]) != (one.objective, one.sides[-1])
            for other in feasible
        )

    assert not any(map(beaten, found.front))
    assert all(beaten(one) or (one.objective, one.sides[-1]) in values_of(found.front) for one in feasible)
    goodputs = [one.objective for one in found.front]
    assert goodputs == sorted(goodputs, reverse=True) and found.outcome == "proved"


def test_a_search_finds_both_ends_and_most_of_the_front():
    """Of all points, by plain loops."""
    points = [bowl(dict(zip(NAMES, at, strict=True))) for at in product(range(1, 21), range(5, 13))]
    every = {(one["goodput_kbps"], one["rtt_s"]) for one in points}
    whole = {at for at in every if not any(a >= at[0] and b <= at[1] for a, b in every - {at})}
    solver = CountingSolver(bowl)
    found = choose_limit(solver=solver, choose=KEYS, budget=60, **TWO)
    assert found.outcome != "proved" and len(solver.asked) == len(set(solver.asked)) <= 1.6 * 60
    best, least = max(one for one, _ in whole), min(other for _, other in whole)
    assert (found.front[0].objective, found.front[-1].sides[-1]) == (best, least)
    assert len(values_of(found.front) & whole) > len(whole) / 2


def test_what_is_better_follows_from_the_metric_and_a_minus_sign_turns_it_round():
    text = "-p95(delay_s), min(goodput_kbps, 1)"
    assert [(aim.sense, aim.text) for aim in aims_of(text, BASE)] == [
        ("minimize", "-p95(delay_s)"),
        ("maximize", "min(goodput_kbps, 1)"),
    ]
    assert [aim.sense for aim in aims_of("current_ma, flow_control.buffer_packets", BASE)] == ["minimize"] * 2
    assert aims_of(["current_ma", "rtt_s"], BASE) == aims_of("current_ma, rtt_s", BASE)
    worst = choose_limit(tent, **{**TWO, "pareto": "-goodput_kbps, -rtt_s"})
    assert limits_of(worst.front) == [20]


def test_points_of_the_front_are_simulated_told_and_drawn():
    found = simulated(truth=bowl, metrics=bowl, choose=KEYS, **TWO)
    roles = [point.role for point in found.confirmation.points]
    assert roles == [f"{place + 1}." for place in spread(len(found.front), MOST_SIMULATED)]
    text, front = printed(found), found.front
    assert f"any of these {len(front)} in both: the best goodput_kbps first, rtt_s last" in text
    assert front[0].objective == max(one.objective for one in front)
    assert front[-1].sides[-1] == min(one.sides[-1] for one in front)
    assert "winner" not in text
    values = as_values(found)
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["second_objective"] == {"sense": "minimize", "expression": "rtt_s"}
    assert [one["second_objective"] for one in values["front"]] == [one.sides[-1] for one in found.front]
    table = as_table(found)
    assert sum(table["on_front"]) == len(found.front)
    assert not any(name.startswith("slack") for name in table)
    figure = front_figure(found, "a title")
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    assert axes.get_xlabel() == "goodput (kbit/s)" and axes.get_ylabel() == "round-trip time (s)"
    assert axes.get_title(loc="left").startswith("A: most goodput_kbps: polling.limit = 20,")
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height


def test_bounds_on_an_aim_are_lines_beside_the_front():
    found = choose_limit(bowl, choose=KEYS, subject_to=["rtt_s <= 0.9", "goodput_kbps >= 20"], **TWO)
    (axes,) = front_figure(found).axes
    lines = [line for line in axes.get_lines() if line.get_label() == "bound"]
    assert [np.asarray(line.get_xdata()).tolist() for line in lines] == [[0, 1], [20, 20]]
    assert [np.asarray(line.get_ydata()).tolist() for line in lines] == [[0.9, 0.9], [0, 1]]


def test_the_axes_end_beside_the_front_and_headings_keep_a_key_and_its_value_together():
    """The front lay on the zero line below dominated points of 120 s, and a line ended behind `limit =`."""

    def far(changes):
        slow = changes["flow_control.buffer_packets"] == 12
        return bowl(changes) | ({"rtt_s": 120.0} if slow else {})

    found = choose_limit(far, choose=KEYS, **TWO)
    figure = front_figure(found)
    (axes,) = figure.axes
    assert axes.get_ylim()[1] < 2.0 * max(one.sides[-1] for one in found.front)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    (beyond,) = (int(one.split()[0]) for one in names if "beyond the axes" in one)
    assert beyond >= 20
    played = simulated(common=400.0, truth=bowl, metrics=far, choose=KEYS, **TWO)
    low, high = front_figure(played).axes[0].get_xlim()
    for point in played.confirmation.points:  # intervals are wider than the front is long
        mean, ci95 = point.estimates[0].mean, point.estimates[0].ci95
        assert low < mean - ci95 and mean + ci95 < high
    for width in range(40, 80, 3):
        with patch("btqueue.plots.dimension.LINE", width):
            title = front_figure(found).axes[0].get_title(loc="left")
        assert not any(line.endswith(" =") for line in title.splitlines())


def test_the_cell_that_lasts_longest_is_found_as_the_page_on_low_energy_says():
    page = (DOCS / "how-to" / "low-energy.md").read_text("utf-8")
    (line,) = re.findall(r"^btqueue (dimension ble-sensors.*)$", page, re.MULTILINE)
    result = run(*shlex.split(line), "--no-confirm", "--json", "--quiet")
    best = json.loads(result.stdout)["dimension"]["best"]
    assert (best["keys"]["le.interval_s"], best["keys"]["le.latency"]) == (0.5, 9)
    assert best["objective"] == pytest.approx(0.0051, abs=0.0002)


def test_points_where_a_flow_gets_nothing_are_told_once_and_warnings_name_their_points():
    def metrics(changes):
        limit = changes["polling.limit"]
        return {"goodput_kbps": [0.0, 9.0]} if limit > 10 else {**bowl(changes), "goodput_kbps": [limit] * 2}

    found = choose_limit(metrics, choose=KEYS[:1], **TWO)
    warned = [replace(point, warnings=("rough",) if n else ()) for n, point in enumerate(found.front)]
    told = printed(replace(found, front=tuple(warned)))
    assert "at 10 of the points some flow gets nothing" in told and "failed:" not in told
    rows = ", ".join(f"{n}." for n in range(2, len(found.front) + 1))
    assert f"warns of {rows} of the front: rough" in told
