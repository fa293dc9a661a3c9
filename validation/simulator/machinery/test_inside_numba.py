"""How the simulator depends on the inside of numba: on versions that are known to have it."""

import tomllib
from importlib import import_module
from importlib.metadata import version
from itertools import permutations
from pathlib import Path
from typing import Any

import numba
import pytest
from packaging.requirements import Requirement

import btqueue

PACKAGE = Path(btqueue.__file__).parent
INSIDE = "btqueue/simulator/machinery/inside_numba.py"


def test_versions_of_numba_are_bounded_from_above():
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    (numbas,) = (one for one in map(Requirement, project["dependencies"]) if one.name == "numba")
    assert any(bound.operator == "<" for bound in numbas.specifier)
    assert numbas.specifier.contains(version("numba"))


def test_numba_has_all_that_the_one_file_changes():
    why = f"numba {version('numba')} is not built as {INSIDE} takes it to be"
    try:
        inside = import_module("btqueue.simulator.machinery.inside_numba")
    except ImportError as error:
        pytest.fail(f"{why}: {error}")
    classes = [kind for kind in vars(inside).values() if getattr(kind, "__module__", "") == inside.__name__]
    changed = {
        f"{kind.__mro__[1].__name__}.{name}"
        for kind in classes
        if isinstance(kind, type)
        for name in vars(kind)
        if not name.startswith("__") and not any(hasattr(base, name) for base in kind.__mro__[1:])
    }
    dispatcher = numba.njit(lambda x: x)
    assert type(dispatcher).__name__ == "CPUDispatcher", "compilation is switched off"
    changed |= {
        f"Dispatcher.{name}"
        for name in ("add_overload", "get_call_template", "overloads", "targetctx")
        if not hasattr(dispatcher, name)
    }
    assert not changed, f"{why}: {sorted(changed)} is not there"


def test_records_of_the_state_are_taken_for_no_others():
    """Else numba warns, and calls what it has compiled for a record that begins with the same fields."""
    from btqueue.simulator.machinery.state_type import ARRAY_TYPES

    records: set[Any] = {
        one.entry for one in ARRAY_TYPES.values() if isinstance(one.entry, numba.types.Record)
    }
    for one, other in permutations(records, 2):
        assert one.can_convert_to(None, other) is None, (one, other)
