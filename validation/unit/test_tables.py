"""Scenarios, answers, comparisons and closed forms as tables, in a terminal and in a notebook."""

from html.parser import HTMLParser

import pytest

import btqueue as bt
from btqueue.progress_bars import bars
from btqueue.study.closed_forms import closed_forms

LINK = bt.load("chen-2004/adaptive-1", {"run.duration_s": 2.0, "run.warmup_s": 0.0, "run.replications": 2})


class Cells(HTMLParser):
    """The texts of all cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells, self.inside = list[str](), False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.inside = tag in ("td", "th")
        if self.inside:
            self.cells.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


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
    assert Cells(table._repr_html_()).cells == cells
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


def test_bars_take_shares_and_totals_and_are_none_where_nobody_looks(monkeypatch):
    with bars() as make:
        assert make("points") is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with bars(quiet=True) as make:
        assert make("points") is None
    with bt.progress("simulating", total=2) as bar:
        assert bar is not None
        bt.simulate(LINK, progress=bar)
        bar(1, 3)
