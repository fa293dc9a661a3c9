"""Scenarios, answers, comparisons and closed forms as tables, in a terminal and in a notebook."""

import re
from html import unescape

import pytest

import btqueue as bt
from btqueue.study.closed_forms import closed_forms

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
