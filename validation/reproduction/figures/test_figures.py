"""Published figures can be drawn again: scripts write what they promise, here with stand-in engines."""

import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
from command_line import run

from btqueue.reproduction.answer_cache import Store
from btqueue.reproduction.figures import points
from btqueue.reproduction.figures.catalogue import BadFiles, catalogue, drawn_figures, find
from btqueue.reproduction.figures.curve_panels import Panel, curves
from btqueue.reproduction.figures.curve_tables import table_curve
from btqueue.reproduction.figures.points import ComputationFailed
from btqueue.reproduction.figures.published import stated
from btqueue.reproduction.figures.work import Settings, Work, trace_file
from btqueue.scenario import load
from btqueue.study.evaluate import Answer, Failure
from btqueue.study.summary import Estimate

FIGURE = "venugopal-2006/fig_6_1"
GOOD = Answer(metrics={"goodput_kbps": Estimate(100.0, 1.0)}, names={}, notes={})

pytestmark = pytest.mark.usefixtures("kept")  # no stand-in's answer comes into the user's cache


@pytest.fixture
def asked(monkeypatch):
    """Scenarios and engines that had to be computed, by a stand-in."""
    seen = []

    def evaluate(scenario, engine, *, threads=None):
        seen.append((scenario, engine))
        return GOOD

    monkeypatch.setattr(points, "evaluate", evaluate)
    return seen


def test_figure_6_1_writes_a_picture_and_a_record_and_notes_what_the_model_cannot_solve(engines, tmp_path):
    usual = engines.network.solve

    def solve(scenario):
        if scenario.flow_control.buffer_packets == 5:
            raise engines.network.NoConvergence("too small a buffer")
        return usual(scenario)

    engines.network.solve = solve
    result = run("figures", FIGURE, "--out", tmp_path, "--quick")
    assert sorted(os.listdir(tmp_path)) == ["fig_6_1.json", "fig_6_1.png"]
    assert (tmp_path / "fig_6_1.png").read_bytes().startswith(b"\x89PNG")
    (drawn,) = drawn_figures(tmp_path)
    assert (drawn.name, drawn.points, drawn.computed) == (FIGURE, 9, 18)
    assert drawn.files == ("fig_6_1.png",) and "goodput-2" in drawn.claims
    assert drawn.caption.startswith("Goodput, round-trip time")
    assert "No answer of the model at 3 of 3 points (S = 5)" in result.stderr
    assert "too small a buffer" in drawn.notes[0]


def test_a_bug_in_an_engine_is_no_hole_in_the_figure(engines, tmp_path):
    engines.network.solve = lambda scenario: 1 / 0
    result = run("figures", FIGURE, "--out", tmp_path, "--quick", code=3)
    assert "division by zero" in result.stderr


@pytest.mark.parametrize(
    ("first", "code", "told", "drawn"),
    [
        ("1 / 0", 3, "1/2 someone-1999/fig_1: failed: ZeroDivisionError", ["someone-1999/fig_2"]),
        ("raise KeyboardInterrupt", 130, "goes on from there", []),
    ],
)
def test_all_figures_go_on_after_one_that_fails_end_at_ctrl_c_and_are_listed(
    monkeypatch, tmp_path, first, code, told, drawn
):
    folder = tmp_path / "scripts" / "someone-1999"
    folder.mkdir(parents=True)
    for number, body in enumerate((first, "return []"), start=1):
        script = f'"""Drawing {number}."""\ndef draw(work):\n    {body}\n'
        (folder / f"fig_{number}.py").write_text(script)
    monkeypatch.setattr(f"{points.__package__}.catalogue.shipped_folder", lambda _: folder.parent)
    result = run("figures", "--all", "--out", tmp_path / "out", code=code)
    assert told in result.stderr and ("2/2 someone-1999/fig_2: " in result.stdout) == bool(drawn)
    assert [one.name for one in drawn_figures(tmp_path / "out")] == drawn
    listed = run("figures", "--paper", "someone-1999", "--out", tmp_path / "out").stdout
    assert all(f"someone-1999/fig_{n}" in listed and f"Drawing {n}" in listed for n in (1, 2))
    assert ("✓ Drawing 1" in listed, "✓ Drawing 2" in listed) == (False, bool(drawn))


@pytest.mark.parametrize("content", ["{", "[]", '{"notes": []}'])
def test_a_damaged_record_of_a_figure_is_named(tmp_path, content):
    (tmp_path / "fig_6_1.json").write_text(content)
    with pytest.raises(BadFiles, match=r"fig_6_1\.json: is damaged; delete it"):
        drawn_figures(tmp_path)


def test_every_result_of_the_thesis_is_there():
    wanted = {f"5_{k}" for k in range(1, 8)} | {f"6_{k}" for k in range(1, 18)}
    assert {f"fig_{number}" for number in wanted} == {entry.stem for entry in catalogue("venugopal-2006")}


PICONETS = [
    load("venugopal-2006/piconet", {"traffic.load_kbps": load_kbps}) for load_kbps in (80.0, 90.0, 95.0)
]


def test_a_point_is_computed_once_and_kept_before_an_interruption(asked):
    def interrupt_later(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        points.answers(PICONETS, ["solve"], Store(), interrupt_later)
    assert points.answers(PICONETS, ["solve"], Store())[0] == {"solve": GOOD}
    assert [scenario.traffic.load_kbps for scenario, _ in asked] == [80.0, 90.0, 95.0]
    again = points.answers(PICONETS[::-1], ["solve", "simulate"], Store())
    assert [engine for _, engine in asked] == ["theory"] * 3 + ["simulate"] * 3
    assert again[0] == {"solve": GOOD, "simulate": GOOD}


def test_what_is_known_is_not_computed_again_unless_something_has_changed(asked, kept, monkeypatch):
    scenario = PICONETS[0]

    def computed(one, store=None):
        before = len(asked)
        assert points.answers([one], ["solve"], store or Store()) == [{"solve": GOOD}]
        return len(asked) > before

    assert computed(scenario)
    assert not computed(scenario.with_(title="same"))
    assert computed(scenario, Store(fresh=True))
    (path,) = kept.glob("points/*/*.json")
    path.write_text(path.read_text()[:20])
    assert computed(scenario), "a damaged file"
    assert computed(scenario.with_(run__seed=scenario.run.seed + 1))
    monkeypatch.setattr(points, "source_digest", lambda engine: "other")
    assert computed(scenario), "another source of the engine"


def test_no_convergence_is_an_answer_and_a_bug_is_not(kept, monkeypatch):
    failures = iter([Failure("no convergence", "no"), Failure("error", "bug")])
    monkeypatch.setattr(points, "evaluate", lambda *_, **__: Answer(failure=next(failures)))
    (first,) = points.answers(PICONETS[:1], ["solve"], Store())
    assert str(first["solve"].failure) == "no convergence: no"
    assert points.answers(PICONETS[:1], ["solve"], Store()) == [first]
    with pytest.raises(ComputationFailed, match="bug"):
        points.answers(PICONETS[:1], ["simulate"], Store())
    assert len(list(kept.glob("points/*/*.json"))) == 1


def test_points_that_the_model_doubts_are_crosses(monkeypatch):
    """A point of a difference is one if the model doubts either of its answers."""

    def evaluate(scenario, engine, *, threads=None):
        load_kbps, deep = scenario.traffic.load_kbps, scenario.flow_control.buffer_packets == 50
        doubts = engine == "theory" and load_kbps == (95.0 if deep else 90.0)
        value = Estimate(load_kbps + deep, 1.0)
        return Answer({"goodput_kbps": value}, {}, {"why": ["full"] if doubts else []})

    monkeypatch.setattr(points, "evaluate", evaluate)
    work = Work("venugopal-2006", "", Settings(), Store())
    wanted = {
        "label": "S = 25", "scenario": "piconet", "set": {}, "metric": "goodput_kbps",
        "key": "traffic.load_kbps", "values": [80.0, 90.0, 95.0],
    }  # fmt: skip
    curve = table_curve(work, wanted)
    less = table_curve(work, wanted | {"minus": {"set": {"flow_control.buffer_packets": 50}}})
    assert (curve.doubted, less.doubted) == ([1], [1, 2])
    figure = curves([Panel([curve], "goodput")])
    (crosses,) = (line for line in figure.axes[0].lines if line.get_marker() == "x")
    assert np.array(crosses.get_xydata()).tolist() == [[90.0, 90.0]]
    assert "model, in doubt" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_quick_settings_shorten_runs_and_thin_values(asked):
    work = Work("venugopal-2006", "", Settings(quick=True), Store())
    assert work.some(range(5, 41, 5)) == [5, 25, 40]
    run = work.scenario("piconet").run
    assert (run.duration_s, run.warmup_s, run.replications) == (20.0, 2.0, 2)


def test_a_trace_file_has_a_lasting_name():
    names = [trace_file(np.array(rates)) for rates in ([0.0, 1e-4], [0.0, 1e-4], [0.0, 2e-4])]
    assert names[0] == names[1] != names[2]
    assert np.loadtxt(names[0]).tolist() == [0.0, 1e-4]


def test_a_stated_number_and_one_of_its_cases():
    one = stated("venugopal-2006", "goodput-2")
    assert (one.metric, one.value, one.tolerance) == ("goodput_kbps", 170, pytest.approx(17))
    assert one.scenario.traffic.load_kbps == 200
    case = stated("venugopal-2006", "rtt-rises-with-M: M = 25")
    assert (case.value, case.scenario.polling.limit) == (0.4, 25)
    with pytest.raises(KeyError, match="no single value"):
        stated("venugopal-2006", "best-S")


@pytest.mark.long
@pytest.mark.parametrize("name", [entry.name for entry in catalogue()])
def test_every_figure_is_drawn_by_the_engines(name, tmp_path):
    run("figures", name, "--quick", "--out", tmp_path)
    record = json.loads((tmp_path / f"{name.partition('/')[2]}.json").read_text())
    assert record["files"]
    assert all((tmp_path / file).stat().st_size > 5000 for file in record["files"])


def test_the_measured_rates_of_low_energy_are_those_on_record():
    rows = json.loads((Path(__file__).parents[2] / "peers" / "low_energy.json").read_text())["measured"]
    numbers = [row for row in rows if isinstance(row["value"], (int, float))]
    measured = {(row["keys"]["le.interval_s"], row["value"]) for row in numbers}
    table = tomllib.loads(find("low-energy/goodput").path.read_text())
    stars = table["picture"][0]["panel"][0]["stars"]
    assert len(stars) == 8 and {(star["x"], star["value"]) for star in stars} <= measured
    assert all(star["tolerance"] == pytest.approx(0.02 * star["value"], abs=0.6) for star in stars)
