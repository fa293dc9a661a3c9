"""Figures of sweeps: lines, bands, heat maps and panels show the numbers of the dataset."""

import numpy as np
import pytest
import xarray as xr

from btqueue.plots import save
from btqueue.plots.sweep import NoFigure, sweep_figure

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
    (axes,) = panels(sweep_figure(dataset({A: 4}, ci95=True)))
    (line,), (band,) = axes.lines, axes.collections
    assert np.asarray(line.get_xydata()).tolist() == [[1, 100], [2, 101], [3, 102], [4, 103]]
    assert axes.get_xlabel() == A and axes.get_ylabel() == "goodput (kbit/s)"
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == (99.5, 103.5)


def test_many_values_of_a_second_key_are_a_heat_map():
    data = dataset({A: 4, B: 8})
    figure = sweep_figure(data)
    (axes,) = panels(figure)
    mesh = axes.collections[0]
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).ravel(), data["goodput_kbps"].values.T.ravel())
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


def test_points_that_failed_leave_holes():
    data = dataset({A: 4, B: 8})
    data["goodput_kbps"][1, 2] = np.nan
    (axes,) = panels(sweep_figure(data))
    assert np.ma.count_masked(np.ma.asanyarray(axes.collections[0].get_array())) == 1
    line_data = dataset({A: 4})
    line_data["goodput_kbps"][1] = np.nan
    (axes,) = panels(sweep_figure(line_data))
    assert np.isnan(axes.lines[0].get_ydata()).sum() == 1


@pytest.mark.parametrize(("sizes", "expected"), [({A: 3, B: 3, C: 2}, 2), ({A: 3, B: 9, C: 2}, 4)])
def test_a_third_key_makes_panels(sizes, expected):
    found = panels(sweep_figure(dataset(sizes, engines=("solve", "simulate"))))
    assert len(found) == expected
    assert all(f"{C} = " in axes.get_title() for axes in found)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1e-6, 1e-5, 1e-4, 1e-3], "log"),
        ([1, 2, 4, 8, 16, 32], "log"),
        ([1, 50, 100], "linear"),
        ([1, 1.5, 9], "linear"),
        ([0, 1, 100], "linear"),
        ([1, 100], "linear"),
        (range(1, 40), "linear"),
    ],
)
def test_what_is_evenly_spread_in_the_logarithm_gets_a_logarithmic_axis(values, scale):
    data = dataset({A: len(values)}).assign_coords({A: np.array(values)})
    assert panels(sweep_figure(data))[0].get_xscale() == scale


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (dataset({A: 2, B: 2, C: 2, "d": 2}), {}, "at most three keys"),
        (dataset({A: 2, B: 2, C: 13}), {}, "13 panels are too many"),
        (
            dataset({A: 2}),
            {"metrics": ["delay_s"]},
            "no point has a value of delay_s; there are goodput_kbps, rtt_s",
        ),
    ],
)
def test_what_makes_no_figure_is_refused(data, options, words):
    with pytest.raises(NoFigure, match=words):
        sweep_figure(data, **options)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_figure_is_the_same_file(tmp_path, suffix):
    for name in ("a", "b"):
        save(sweep_figure(dataset({A: 3, B: 9})), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
