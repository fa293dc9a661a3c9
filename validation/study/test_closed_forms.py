"""The catalogue of closed forms: what it says of each, what a form can be turned into, its documentation."""

import doctest
import importlib
import subprocess
import sys

import jax
import pytest
import sympy

from btqueue.study.closed_forms import closed_forms as catalogue
from btqueue.study.closed_forms import table

FORMS = catalogue()


@pytest.mark.parametrize("entry", FORMS.values(), ids=FORMS.keys())
def test_entries_are_documented(entry):
    assert entry.latex()
    assert all(unit and meaning for unit, meaning in entry.symbols.values())
    if entry.twin.startswith("btqueue."):
        module, *attributes = entry.twin.split(".")
        found = importlib.import_module(module)
        for name in attributes:
            try:
                found = getattr(found, name)
            except AttributeError:
                found = importlib.import_module(f"{found.__name__}.{name}")
        assert callable(found) or isinstance(found, property)


def test_symbols_and_functions_are_checked():
    form = FORMS["wait, M/G/1"]
    with pytest.raises(ValueError, match="no symbol 'mu', only b, b_2, k, lambda"):
        form.derivative("mu")
    with pytest.raises(ValueError, match="needs a place for b_2, k"):
        form.function("lambda", "b")


def test_a_form_runs_in_jax_and_has_its_gradient_there():
    form = FORMS["wait, one-limited vacations"]
    values = {"lambda": 0.03, "k": 10 / 3, "b": 6.0, "b_2": 40.0, "v": 15.0, "v_2": 235.0}
    function = form.function(*values, modules="jax")
    gradient = jax.grad(function, argnums=tuple(range(len(values))))(*map(float, values.values()))
    for name, slope in zip(values, gradient, strict=True):
        exact = sympy.lambdify([form.symbol(n) for n in values], form.derivative(name))(*values.values())
        assert float(slope) == pytest.approx(float(exact), rel=1e-5)  # single precision


def test_the_documentation_shows_the_catalogue(pytestconfig):
    page = (pytestconfig.rootpath / "docs/explanation/closed-forms.md").read_text("utf-8")
    assert table() in page


def test_the_examples_of_the_catalogue():
    assert doctest.testmod(importlib.import_module("btqueue.study.closed_forms")).failed == 0


def test_sympy_is_imported_only_when_a_formula_is_asked_for():
    program = (
        "import sys, btqueue.study.closed_forms as c; c.closed_forms();"
        "from btqueue.queueing import traffic_forms; traffic_forms.timer_alone(1.0, 1.0);"
        "sys.exit('sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
