"""The figures of the report: drawn by `btqueue.reproduction.figures`, or found in a folder."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from btqueue.files import UnusableFile, read_bytes, require_regular
from btqueue.reproduction.figures.catalogue import BadFiles, Drawn, drawn_figures

MIME = {".png": "image/png", ".svg": "image/svg+xml"}
"""Pictures that a page can hold, by suffix."""
LARGE = 150_000
"""Bytes of a picture above which the page holds a reduced copy; the files stay as they are."""
WIDTH, COLOURS = 1400, 128
"""Of a reduced copy: pixels and number."""


def found_figures(folder: Path, papers: Iterable[str]) -> dict[str, list[Drawn]]:
    """Return by publication the figures that were drawn into its folder, as their records say.

    Their `files` are paths here; formats that a page cannot hold are left out.

    Raises:
        BadFiles: a record is damaged, or a picture cannot be read.
    """
    found: dict[str, list[Drawn]] = {}
    for drawn in drawn_figures(folder):
        paths = [folder / drawn.paper / file for file in drawn.files if Path(file).suffix in MIME]
        for path in paths if drawn.paper in papers else ():
            try:
                require_regular(path)
            except UnusableFile as error:
                raise BadFiles(f"{path}: {error}") from None
        if drawn.paper in papers and paths:
            own = replace(drawn, files=tuple(map(str, paths)))
            found.setdefault(drawn.paper, []).append(own)
    return found


def embedded(path: Path) -> str:
    """Return a picture as a data URL; large pictures are reduced to the width of the page.

    Raises:
        UnusableFile: it cannot be read.
    """
    content = read_bytes(path)
    if path.suffix == ".png" and len(content) > LARGE:
        content = _reduced(path)
    return f"data:{MIME[path.suffix]};base64,{base64.b64encode(content).decode()}"


def _reduced(path: Path) -> bytes:
    """Return a PNG picture with fewer pixels and colours."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB")
    small.thumbnail((WIDTH, 4 * WIDTH), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    small.quantize(COLOURS, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue()
