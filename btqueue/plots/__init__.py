"""Figures of studies, from a dataset to a figure in one call; one module for each study.

Colours and markers come from `btqueue.plotting`: colour-blind readers can tell them apart, and so can readers
of a print without colour.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {".png": "PNG", ".svg": "SVG", ".pdf": "PDF"}
"""Of pictures, by suffix."""


class NoFigure(ValueError):
    """The study has no value to draw; the message says why."""


def save(figure: Figure, path: Path, suffix: str | None = None) -> None:
    """Write a figure in the format of a suffix, one of `FORMATS`; by default that of *path*.

    The same figure gives the same file: it holds no date, and no random names.

    Raises:
        OSError: the file system refuses.
    """
    from matplotlib import rc_context

    from btqueue.plotting import house_style

    suffix = (suffix or path.suffix).lower()
    undated = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[suffix]
    drawn = io.BytesIO()  # on a full disk, matplotlib would fail in ways of its own
    with house_style(), rc_context({"svg.hashsalt": "btqueue"}):
        figure.savefig(drawn, format=suffix[1:], metadata=undated)
    path.write_bytes(drawn.getvalue())
