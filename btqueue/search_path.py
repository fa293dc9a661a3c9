"""Where modules are looked for: never among the files of the working directory."""

import os
from collections.abc import Iterable
from pathlib import Path

PACKAGE_HOME = str(Path(__file__).parents[1])
"""The folder that the package lies in."""


def without_working_directory(entries: Iterable[str]) -> list[str]:
    """Return the entries of a search path that do not depend on, and are not, the working directory.

    `python -m` and `python -c` put it first, and an empty entry stands for it: a `numpy.py` beside somebody's
    scenario would be imported in place of NumPy. Where btqueue itself is found nowhere else, as in a checkout
    that is not installed, its folder comes last.
    """
    try:
        here = os.path.realpath(os.getcwd())
    except FileNotFoundError:  # it was deleted
        here = None
    kept = [entry for entry in entries if os.path.isabs(entry) and os.path.realpath(entry) != here]
    return kept if PACKAGE_HOME in kept else [*kept, PACKAGE_HOME]
