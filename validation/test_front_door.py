"""Studies at the top level, and what a notebook shows of answers and figures."""

import pickle
import re
import sys
from html import unescape
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import matplotlib.figure
import pytest
from dimension_stand_ins import choose_limit

import btqueue as bt
from btqueue.plots.dimension import dimension_figure
from btqueue.plots.sweep import sweep_figure
from btqueue.study.closed_forms import closed_forms
from btqueue.study.sensitivity import sensitivity

SHORT = bt.load("johansson-2000/asymmetric").with_(run__duration_s=5.0, run__replications=2)


def test_functions_take_the_name_of_a_scenario_as_load_does(tmp_path):
    name: Any = "johansson-2000/asymmetric"
    file: Any = tmp_path / "mine.toml"
    file.write_text(SHORT.to_toml(), "utf-8")
    by_name = bt.solve(name)
    assert float(by_name.goodput_kbps.mean()) == float(bt.solve(bt.load(name)).goodput_kbps.mean())
    assert bt.solve(scenario=file).identical(bt.solve(SHORT))
    assert bt.hints(name) == bt.hints(bt.load(name))
    simulated = bt.simulate(SHORT)
    assert bt.simulate(file).goodput_kbps.equals(simulated.goodput_kbps)
    assert bt.simulate_many(iter([file]))[0].goodput_kbps.equals(simulated.goodput_kbps)
    assert bt.simulate_many(file)[0].goodput_kbps.equals(simulated.goodput_kbps)
    with pytest.raises(bt.ScenarioError, match="johansson-2000/asymetric"):
        bt.compare(cast(Any, "johansson-2000/asymetric"))
    assert pickle.loads(pickle.dumps(bt.simulate)) is bt.simulate  # for pools of processes


def test_results_are_a_line_in_python_and_a_table_in_a_notebook():
    results = bt.solve(SHORT)
    assert repr(results).startswith("<Results: 1 flow; ") and len(repr(results)) < 400
    assert f"goodput_kbps {float(results.goodput_kbps.mean()):.4g}" in repr(results)


def test_a_dimensioning_is_a_line_in_python_and_a_table_in_a_notebook():
    found = choose_limit(subject_to="rtt_s <= 0.3")
    assert repr(found) == (
        "<Dimensioning maximize goodput_kbps: 20 points, 6 meet all bounds; best {'polling.limit': 6}>"
    )
    assert "<th>rtt_s &lt;= 0.3</th>" in found._repr_html_() and "<td>best</td>" in found._repr_html_()
    two = choose_limit(maximize=None, pareto="goodput_kbps, rtt_s")
    assert "maximize goodput_kbps, minimize rtt_s" in repr(two) and "8 points of the front" in repr(two)
    assert "no point meets all bounds" in repr(choose_limit(subject_to="goodput_kbps >= 200"))


def test_a_figure_is_a_picture_in_a_cell():
    figures = [
        dimension_figure(choose_limit()),
        sweep_figure(bt.sweep(SHORT, over={"transport.receive_window_segments": [2, 3]}, workers=1)),
    ]
    for figure in figures:
        assert isinstance(figure, matplotlib.figure.Figure)
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_bar_in_a_notebook_is_drawn_again_in_its_place(monkeypatch):
    """Rich asked for ipywidgets in a warning, and drew nothing without them."""
    drawn, again = list[str](), list[str]()

    def display(html, display_id):
        assert display_id is True
        drawn.append(html)
        return SimpleNamespace(update=again.append)

    for name in ("ipykernel", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    vars(sys.modules["IPython.display"]).update(HTML=str, display=display)
    with bt.progress("simulating", total=2) as bar:
        simulated = bt.simulate(SHORT, progress=bar, threads=1)
    assert simulated.sizes["replication"] == 2 and drawn == ["simulating"]
    assert again[-1] == 'simulating <progress max="2" value="2.0"></progress> 2 of 2'


def test_sensitivity_has_one_door_for_all_methods():
    keys = ["transport.receive_window_segments"]
    assert sensitivity(SHORT, keys=keys).attrs["study"] == "local"
    assert sensitivity(SHORT, "sobol", ["rtt_s"], keys, samples=2).attrs["study"] == "sobol"
    with pytest.raises(bt.ScenarioError, match="go with the method sobol"):
        sensitivity(SHORT, samples=3)


def test_message_delay_is_shown_of_loads_and_of_nothing_else():
    def shown(**changes):
        base = bt.Scenario().with_(flow_control__enabled=False, run__duration_s=5.0, **changes)
        return sensitivity(base, keys=["transport.mss_bytes"])["metric"].values

    assert "delay_s" in shown(traffic__source="poisson", traffic__load_kbps=20.0)
    assert "delay_s" not in shown(traffic__source="greedy")


LINK = bt.load("chen-2004/adaptive-1", {"run.duration_s": 2.0, "run.warmup_s": 0.0, "run.replications": 2})


def cells_of(html: str) -> list[str]:
    """Return the texts of all cells."""
    return [unescape(text) for text in re.findall(r"<t[dh]\b[^>]*>([^<]*)</t[dh]>", html)]


def test_a_scenario_shows_the_keys_that_are_given():
    table = bt.table(LINK)
    rows = {str(key): value for key, value in table.rows}
    assert rows["run.replications"] == "2" and rows["link.packets"] == '["DH5"]'
    assert "run.seed" not in rows  # a default
    assert LINK._repr_html_() == table._repr_html_()


@pytest.mark.parametrize("ask", [bt.solve, bt.simulate, bt.compare])
def test_answers_and_comparisons_show_the_same_in_text_and_html(ask):
    table = bt.table(ask(LINK))
    cells = [cell for row in (table.columns, *table.rows) for cell in row or ("\N{NO-BREAK SPACE}",)]
    assert cells_of(table._repr_html_()) == cells
    assert "goodput" in dict.fromkeys(row[0] for row in table.rows if row)
    for row in table.rows:
        assert all(cell in str(table) for cell in row)
    every = bt.table(ask(LINK), every=True)
    assert len(every.rows) >= len(table.rows) and set(table.rows) <= set(every.rows)


def test_a_text_of_the_user_is_no_html():
    scenario = bt.Scenario.from_dict({"title": "<script>x</script> & y"})
    assert "<script>" not in scenario._repr_html_() and "&lt;script&gt;" in scenario._repr_html_()


def test_a_closed_form_shows_its_formula_and_its_symbols():
    form = next(iter(closed_forms().values()))
    assert form._repr_latex_().strip("$").endswith(form.latex())
    assert [row[0] for row in bt.table(form).rows] == list(form.symbols)


@pytest.mark.parametrize("ask", [bt.solve, bt.simulate, bt.hints, lambda wrong: bt.simulate_many([wrong])])
def test_what_is_no_scenario_is_refused_by_its_value(ask):
    with pytest.raises(TypeError, match="scenario = 3: must be a Scenario, or the name or path of one"):
        ask(3)
    with pytest.raises(TypeError, match="scenario = None: must be a Scenario"):
        ask(None)
