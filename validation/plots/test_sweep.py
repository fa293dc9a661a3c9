"""Figures of sweeps: lines, bands, heat maps and panels show the numbers of the dataset."""

import json

import numpy as np
import pytest
import xarray as xr

from btqueue.plots import save
from btqueue.plots.sweep import NoFigure, sweep_figure
from btqueue.scenario import Scenario

A, B, C = "polling.limit", "traffic.load_kbps", "run.seed"


def dataset(sizes: dict[str, int], *, engines: tuple[str, ...] = (), ci95: bool = False) -> xr.Dataset:
    dims = (("engine",) if engines else ()) + tuple(sizes)
    shape = ((len(engines),) if engines else ()) + tuple(sizes.values())
    values = np.arange(np.prod(shape), dtype=float).reshape(shape) + 100
    variables = {"goodput_kbps": (dims, values), "rtt_s": (dims, values / 1000)}
    if ci95:
        variables["goodput_kbps_ci95"] = (dims, np.full(shape, 0.5))
    coordinates = {key: np.arange(1, size + 1) for key, size in sizes.items()}
    return xr.Dataset(variables, {**coordinates, **({"engine": list(engines)} if engines else {})})


def panels(figure):
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


def test_one_key_is_a_line_through_the_points_with_intervals_as_a_band():
    data = dataset({A: 5}, ci95=True)
    data["goodput_kbps"][4] = np.nan  # a point that failed
    (axes,) = panels(sweep_figure(data))
    (line,), (band,) = axes.lines, axes.collections
    drawn = [[1, 100], [2, 101], [3, 102], [4, 103], [5, np.nan]]
    np.testing.assert_array_equal(np.asarray(line.get_xydata()), drawn)
    assert axes.get_xlabel() == A and axes.get_ylabel() == "goodput (kbit/s)"
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == (99.5, 103.5)


def test_many_values_of_a_second_key_are_a_heat_map_with_holes_where_points_failed():
    data = dataset({A: 4, B: 8})
    data["goodput_kbps"][1, 2] = np.nan
    figure = sweep_figure(data)
    (axes,) = panels(figure)
    drawn = np.ma.asanyarray(axes.collections[0].get_array())
    assert np.ma.count_masked(drawn) == 1
    np.testing.assert_array_equal(drawn.filled(np.nan).ravel(), data["goodput_kbps"].values.T.ravel())
    assert (axes.get_xlabel(), axes.get_ylabel()) == (A, B)
    assert len(figure.axes) == 2  # the second is the scale of colours


@pytest.mark.parametrize("order", [(A, B), (B, A)])
def test_few_names_are_lines_over_a_key_of_numbers_in_either_order(order):
    data = dataset({key: {A: 2, B: 10}[key] for key in order}).assign_coords({A: ["none", "2-EV3"]})
    (axes,) = panels(sweep_figure(data))
    legend = axes.get_legend()
    assert axes.get_xlabel() == B and legend is not None and legend.get_title().get_text() == A
    for line, name in zip(axes.lines, ("none", "2-EV3"), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), data["goodput_kbps"].sel({A: name}))


def test_an_engine_without_values_gets_no_map():
    data = dataset({A: 4, B: 10}, engines=("solve", "simulate"))
    data["rtt_s"].loc[{"engine": "solve"}] = np.nan
    assert [one.get_title() for one in panels(sweep_figure(data, ["rtt_s"]))] == ["simulate"]
    shown = [one.get_visible() for one in panels(sweep_figure(data, ["goodput_kbps", "rtt_s"]))]
    assert shown == [True, True, False, True]


def test_an_axis_of_one_decade_and_a_half_has_more_than_two_labels():
    data = dataset({A: 10}).assign_coords({A: [2, 4, 6, 8, 10, 12, 16, 20, 30, 44]})
    (axes,) = panels(figure := sweep_figure(data))
    figure.canvas.draw()
    low, high = axes.get_xlim()
    texts = [one.get_text() for one in axes.get_xticklabels() if low <= one.get_position()[0] <= high]
    assert texts == ["2", "5", "10", "20", "50"]


@pytest.mark.parametrize(("sizes", "expected"), [({A: 3, B: 3, C: 2}, 2), ({A: 3, B: 9, C: 2}, 4)])
def test_a_third_key_makes_panels(sizes, expected):
    found = panels(sweep_figure(dataset(sizes, engines=("solve", "simulate"))))
    assert len(found) == expected
    assert all(f"{C} = " in axes.get_title() for axes in found)


EVEN = ([1e-6, 1e-5, 1e-4, 1e-3], [1, 2, 4, 8, 16, 32])
UNEVEN = ([1, 50, 100], [1, 1.5, 9], [0, 1, 100], [1, 100], range(1, 40))


@pytest.mark.parametrize("values", [*EVEN, *UNEVEN])
def test_what_is_evenly_spread_in_the_logarithm_gets_a_logarithmic_axis(values):
    data = dataset({A: len(values)}).assign_coords({A: np.array(values)})
    assert panels(sweep_figure(data))[0].get_xscale() == ("log" if values in EVEN else "linear")


@pytest.mark.parametrize(
    ("sizes", "metrics", "words"),
    [
        ({A: 2, B: 2, C: 2, "d": 2}, ["rtt_s"], "at most three keys"),
        ({A: 2, B: 2, C: 13}, ["rtt_s"], "13 panels are too many"),
        ({A: 2}, ["delay_s"], "no point has a value of delay_s; there are goodput_kbps, rtt_s"),
    ],
)
def test_what_makes_no_figure_is_refused(sizes, metrics, words):
    with pytest.raises(NoFigure, match=words):
        sweep_figure(dataset(sizes), metrics)


@pytest.mark.parametrize(("suffix", "begin"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_the_same_figure_is_the_same_file_in_each_format(tmp_path, suffix, begin):
    files = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for file in files:
        save(sweep_figure(dataset({A: 3, B: 9})), file)
    assert files[0].read_bytes() == files[1].read_bytes() and begin in files[0].read_bytes()[:40]


def test_points_that_theory_doubts_or_leaves_to_the_simulator_are_marked():
    data = dataset({A: 3})
    data["answered_by"] = A, ["theory", "theory", "simulation"]
    data["why"] = A, ["", "a law doubts it", "a law doubts it"]
    (axes,) = panels(sweep_figure(data))
    crosses, filled, _, *_ = axes.lines
    assert (crosses.get_marker(), np.asarray(crosses.get_xydata()).tolist()) == ("x", [[2, 101]])
    assert (filled.get_marker(), np.asarray(filled.get_xydata()).tolist()) == ("o", [[3, 102]])
    legend = axes.get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["simulated in place of theory", "theory, in doubt"]
    data["why"] = A, ["", "", ""]
    (axes,) = panels(sweep_figure(data))
    assert axes.get_legend() is None and len(axes.lines) == 1


def test_a_quantity_is_drawn_by_the_name_that_the_sweep_was_asked_for():
    data = dataset({A: 3}).assign_attrs(scenario=json.dumps(Scenario().to_dict()))
    data["max(delay_p95_s)"] = data["rtt_s"] * 2
    (axes,) = panels(sweep_figure(data, ["p95(delay_s)"]))
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), data["max(delay_p95_s)"])
    with pytest.raises(NoFigure, match=r"goodput_kbps, rtt_s, max\(delay_p95_s\)$"):
        sweep_figure(data, ["timeouts_per_s"])
