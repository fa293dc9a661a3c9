"""`btqueue check`: what it prints, writes and how it ends. The engines are stand-ins of `conftest.py`."""

import csv
import json
import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from command_line import run
from thesis import thesis

from btqueue.plots.check import check_figure
from btqueue.study.check import check

NAME = "venugopal-2006/piconet"
THEIRS = "metric,value,ci95,replications\ngoodput_kbps,{goodput},2,10\nqueue_packets[uplink],1,0.1,10\n"
"""The stand-in for the simulator has goodputs 100 plus -4.5, -3.5, ... 4.5, and queues of 1."""


pytestmark = pytest.mark.usefixtures("engines")


def results(path: Path, goodput: float) -> Path:
    path.write_text(THEIRS.format(goodput=goodput), "utf-8")
    return path


@pytest.fixture
def theirs(tmp_path) -> Path:
    return results(tmp_path / "theirs.csv", goodput=100.5)


@pytest.fixture
def wrong(tmp_path) -> Path:
    return results(tmp_path / "wrong.csv", goodput=140)


def checked(path: Path, *words: object, code: int = 0):
    return run("check", path, *words, "--scenario", NAME, code=code)


def told(path: Path, *words: object) -> dict:
    return json.loads(checked(path, *words, "--json").stdout)["check"]


def test_agreement_is_one_line_at_the_end(theirs):
    result = checked(theirs)
    lines = result.stdout.rstrip().splitlines()
    assert lines[0] == f"theirs.csv (CSV) against {NAME}"
    assert lines[-1] == "agrees: 2 of 2 metrics, nothing inconsistent (chance of any false alarm 0.01)"
    assert any("goodput" in line and "✓ agrees" in line for line in lines)


def test_disagreement_is_explained_and_strict_makes_it_an_exit_code(wrong):
    result = checked(wrong)
    text = " ".join(result.stdout.split())
    assert "✗ differs" in text
    assert "goodput: 40.0% above the simulation, more than chance explains" in text
    tried = re.search(r"none of (\d+) neighbours of the scenario fits", text)
    assert tried is not None and int(tried[1]) > 40
    assert "does not agree" in text
    assert "simulating neighbours" in result.stderr
    assert checked(wrong, "--strict", "--quiet", code=3).stderr == ""
    checked(results(wrong.with_name("right.csv"), goodput=99), "--strict")


def test_json_and_files_hold_the_whole_report(wrong, tmp_path):
    report, table, picture = (tmp_path / name for name in ("report.json", "report.csv", "forest.png"))
    found = told(wrong, "--confidence", "0.95", "--out", report, "--plot", picture)
    assert json.loads(report.read_text("utf-8"))["check"] == found
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (found["agrees"], found["confidence"], found["format"]) == (False, 0.95, "CSV")
    metric = found["metrics"]["goodput_kbps"]
    assert (metric["theirs"], metric["simulation"], metric["model"]) == (140.0, 100.0, 101.0)
    assert metric["verdict"] == "differs" and metric["p_value"] < 1e-6
    assert {one["status"] for one in found["consistency"]} == {"passed"}
    assert found["neighbours_tried"] > 40
    checked(wrong, "--out", table)
    rows = {row["metric"]: row for row in csv.DictReader(table.read_text("utf-8").splitlines())}
    assert (rows["goodput_kbps"]["verdict"], rows["goodput_kbps"]["unit"]) == ("differs", "kbit/s")
    assert rows["queue_packets[uplink]"]["verdict"] == "agrees"


def test_a_tolerance_is_a_share_or_a_percentage(wrong):
    for text in ("45%", "0.45"):
        found = told(wrong, "--tolerance", text)
        assert (found["tolerance"], found["agrees"]) == (0.45, True)
        assert found["metrics"]["goodput_kbps"]["verdict"] == "negligible"
    for text in ("3 percent", "100%", "-1", "nan"):
        said = checked(wrong, "--tolerance", text, code=2).stderr
        assert "must be at least 0 and below 1, or a percentage" in said


def test_without_simulation_the_model_is_asked(theirs, engines):
    engines.simulator.simulate = None
    metric = told(theirs, "--no-simulate")["metrics"]["goodput_kbps"]
    assert (metric["simulation"], metric["verdict"]) == (None, "agrees")


def test_a_scenario_without_model_is_compared_with_the_simulation(theirs, engines):
    engines.network.solve = Mock(side_effect=engines.network.NoConvergence("no operating point"))
    found = told(theirs)
    assert found["agrees"] and any("no model: no operating point" in note for note in found["notes"])


def test_the_figure_has_a_row_for_each_metric(theirs, engines):
    report = check(theirs, thesis(), simulate=engines.simulator.simulate, solve=engines.network.solve)
    (axes,) = check_figure(report).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["goodput", "queue length, uplink"]
    assert axes.get_xlabel() == "relative to the simulation"
    points = [np.asarray(line.get_xdata(), float) for line in axes.get_lines()]
    drawn = {round(float(x[0]), 3) for x in points if len(x) == 1}
    assert {1.0, 1.005, 1.01} <= drawn  # simulation, theirs and model over the simulation's 100
