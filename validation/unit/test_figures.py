"""Published figures can be drawn again: scripts write what they promise, here with stand-in engines."""

import os

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.container import ErrorbarContainer
from typer.testing import CliRunner

from btqueue.cli import app
from btqueue.plotting import MARKERS, PALETTE, axis_label, line_panel

FIGURE = "venugopal-2006/fig_6_1"


@pytest.fixture(autouse=True)
def no_windows():
    matplotlib.use("Agg")
    yield
    plt.close("all")


def test_figure_6_1_writes_surfaces_and_lines(engines, tmp_path):
    result = CliRunner().invoke(app, ["figures", FIGURE, "--out", str(tmp_path), "--replications", "2"])
    assert result.exit_code == 0, (result.output, result.exception)
    names = ["fig_6_1_lines.png", "fig_6_1_surfaces.png"]
    assert sorted(os.listdir(tmp_path)) == names
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in names)


def test_points_that_the_model_cannot_solve_are_named(engines, tmp_path):
    usual = engines.network.solve

    def solve(scenario):
        if scenario.flow_control.buffer_packets == 5:
            raise engines.network.NoConvergence("too small a buffer")
        return usual(scenario)

    engines.network.solve = solve
    result = CliRunner().invoke(app, ["figures", FIGURE, "--out", str(tmp_path), "--replications", "2"])
    assert result.exit_code == 0, result.exception
    assert result.stderr.count("too small a buffer") == 9  # one for each load


def test_wrong_options_of_a_script_are_bad_input(engines, tmp_path):
    result = CliRunner().invoke(app, ["figures", FIGURE, "--out", str(tmp_path / "missing")])
    assert result.exit_code == 2
    assert "no such folder" in result.stderr


def test_axes_carry_units_of_the_vocabulary():
    assert axis_label("goodput_kbps") == "goodput (kbit/s)"
    assert axis_label("fairness") == "fairness"


def test_a_curve_shows_model_simulation_and_interval():
    _, axes = plt.subplots()
    x, mean, ci95, model = (
        np.array([1.0, 2.0]),
        np.array([3.0, 5.0]),
        np.array([0.5, 1.0]),
        np.array([3.5, np.nan]),
    )
    line_panel(axes, x, mean, ci95, model, place=1)
    line, bars = axes.lines[0], axes.containers[0]
    assert isinstance(bars, ErrorbarContainer)
    markers, _, (segments, *_) = bars.lines
    np.testing.assert_array_equal(line.get_ydata(), model)
    np.testing.assert_array_equal(markers.get_ydata(), mean)
    assert line.get_color() == markers.get_color() == PALETTE[1]
    np.testing.assert_allclose([bar[:, 1] for bar in segments.get_segments()], [[2.5, 3.5], [4.0, 6.0]])


def test_each_curve_has_its_own_colour_and_marker():
    assert len(set(PALETTE)) == len(PALETTE) == len(set(MARKERS))
