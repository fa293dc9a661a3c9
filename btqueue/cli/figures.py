"""The scripts in `figures/`: list them, run one."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

from btqueue.cli.exits import BadInput
from btqueue.scenario.library import figures_folder
from btqueue.scenario.problems import closest


def scripts() -> dict[str, Path]:
    """Return the scripts by name, such as `venugopal-2006/fig_6_1`."""
    folder = figures_folder()
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.glob("*/fig_*.py"))
    }


def titles() -> dict[str, str]:
    """Return the first line of each script's docstring, by name."""
    return {
        name: (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        for name, path in scripts().items()
    }


def draw(name: str, arguments: list[str]) -> None:
    """Run the script *name* with further command-line arguments.

    Raises:
        BadInput: if there is no such script.
    """
    known = scripts()
    if name not in known:
        guess = closest(name, list(known))
        hint = f"did you mean '{guess}'?" if guess else f"the figures are {', '.join(known)}"
        raise BadInput(f"no figure '{name}': {hint}")
    ours, sys.argv = sys.argv, [str(known[name]), *arguments]
    try:
        runpy.run_path(str(known[name]), run_name="__main__")
    finally:
        sys.argv = ours
