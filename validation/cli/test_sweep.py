"""`btqueue sweep`: what it prints, writes and draws, and how it ends."""

import json
import os
from unittest.mock import Mock

import numpy as np
import pytest
import xarray as xr
from command_line import run

from btqueue.cli.sweep_report import _without_effect
from btqueue.scenario import NotBuiltYet, Problem
from btqueue.study.sweep_files import read_sweep

NAME = "venugopal-2006/piconet"
OVER = ["--over", "polling.limit=1..6:5", "--over", "traffic.load_kbps=100,120,140"]

pytestmark = pytest.mark.usefixtures("engines")


def test_a_table_shows_every_point(tmp_path):
    shown = run("sweep", NAME, *OVER, "--out", tmp_path / "result.nc", "--threads", 1).stdout
    assert "polling.limit" in shown and "goodput (kbit/s)" in shown
    assert shown.replace(str(tmp_path), "").count("101") == 6
    assert "6 of 6 points answered" in shown and "written to" in shown
    assert read_sweep(tmp_path / "result.nc").sizes["polling.limit"] == 2


def test_json_is_one_object_with_labels_and_metrics():
    shown = json.loads(run("sweep", NAME, *OVER, "--json", "--threads", 1, "--metric", "cycle_s").stdout)
    found = shown["sweep"]
    assert found["dimensions"] == {"polling.limit": 2, "traffic.load_kbps": 3}
    assert found["coordinates"]["polling.limit"] == [1, 6]
    assert found["metrics"] == {"cycle_s": [[0.03] * 3] * 2}
    assert (found["points"], found["answered"], found["failed"]) == (6, 6, 0)
    assert shown["scenario"]["network"]["topology"] == "piconet" and "btqueue" in shown["provenance"]


def test_points_that_theory_does_not_answer_are_simulated_and_it_is_said(engines, tmp_path):
    engines.network.solve = Mock(side_effect=engines.network.NoConvergence("nowhere"))
    out = tmp_path / "result.csv"
    shown = run("sweep", NAME, *OVER, "--threads", 1, "--out", out).stdout
    assert "6 of 6 points answered" in shown and "6 points simulated: theory does not stand" in shown
    assert "(reasons with --out), first: nowhere" in " ".join(shown.split())
    head, first, *_ = out.read_text("utf-8").splitlines()
    cells = dict(zip(head.split(","), first.split(","), strict=True))
    assert (cells["answered_by"], cells["why"]) == ("simulation", "nowhere")
    both = run("sweep", NAME, *OVER, "--threads", 1, "--engine", "both").stdout
    assert "nowhere" in both and "points simulated: theory" not in both


def test_only_a_sweep_without_any_answer_is_exit_3(engines, tmp_path):
    engines.simulator.simulate = Mock(side_effect=NotBuiltYet(Problem("not simulated")))
    engines.network.solve = Mock(side_effect=engines.network.NoConvergence("nowhere"))
    ended = run("sweep", NAME, *OVER, "--threads", 1, "--plot", tmp_path / "x.png", code=3)
    assert "no point has an answer" in ended.stderr and os.listdir(tmp_path) == []


def test_a_metric_that_no_point_has_is_an_error_and_no_empty_table_or_picture(tmp_path):
    ended = run("sweep", NAME, *OVER, "--threads", 1, "--metric", "delay_s", code=2)
    assert "--metric delay_s: no point has this metric; there are goodput_kbps" in ended.stderr
    assert ended.stdout == ""
    run("sweep", NAME, *OVER, "--metric", "loss_arq", "--plot", tmp_path / "x.png", "--threads", 1, code=2)
    assert os.listdir(tmp_path) == []


def test_both_engines_are_shown_and_drawn(tmp_path):
    both = ["--over", "polling.limit=1..10:3", "--engine", "both"]
    shown = run("sweep", NAME, *both, "--threads", 1, "--plot", tmp_path / "picture.svg").stdout
    assert shown.count("simulate") == 4 and shown.count("solve") == 4
    assert "simulate" in (tmp_path / "picture.svg").read_text()


def test_theory_is_checked_at_some_points_and_it_is_said_how_far_off_it_is(engines):
    good, words = engines.network.solve, ("--over", "polling.limit=1..40", "--threads", 1)
    engines.network.solve = lambda scenario: (
        good(scenario).to_dataset() * (1.5 if scenario.polling.limit > 20 else 1.0)
    )
    shown = run("sweep", NAME, *words).stdout
    for told in ("checked by simulation: 5 of 40 points of theory: ", "at worst +51 % at polling.limit="):
        assert told in shown
    unchecked = run("sweep", NAME, *words, "--no-check").stdout
    assert "checked" not in unchecked and "simulated" not in unchecked


def test_truths_are_shown_as_scenario_files_write_them():
    shown = run("sweep", NAME, "--over", "transport.nagle=true,false", "--threads", 1).stdout
    assert "true" in shown and "false" in shown and "True" not in shown


def test_a_key_that_changes_nothing_is_named():
    """Of values that do not change; the engines here always give the same."""
    assert "polling.limit has no effect on these metrics" in run("sweep", NAME, *OVER, "--threads", 1).stdout
    keys = {"polling.limit": [1, 5], "traffic.load_kbps": [10.0, 20.0]}
    values = xr.DataArray([[1.0, 1.0], [2.0, 2.0]], dims=list(keys), coords=keys)
    assert _without_effect(xr.Dataset({"goodput_kbps": values}), ["goodput_kbps"]) == ["traffic.load_kbps"]
    assert _without_effect(xr.Dataset({"goodput_kbps": values * np.nan}), ["goodput_kbps"]) == []
