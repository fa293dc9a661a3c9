"""The figures of the report: drawn by `btqueue.reproduction.figures`, or found in a folder."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from btqueue.files import UnusableFile, read_bytes, require_regular
from btqueue.reproduction.figures.catalogue import BadFiles, drawn_figures

MIME = {".png": "image/png", ".svg": "image/svg+xml"}
"""Pictures that a page can hold, by suffix."""
LARGE = 150_000
"""Bytes of a picture above which the page holds a reduced copy; the files stay as they are."""
WIDTH, COLOURS = 1400, 128
"""Of a reduced copy: pixels and number."""


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a publication that was drawn again.

    Attributes:
        paper: folder of the publication.
        name: name of its script, as "fig_6_1".
        title: first line.
        caption: the rest, and remarks of the computation.
        files: its pictures.
        claims: ids that bear on it.
    """

    paper: str
    name: str
    title: str
    caption: str
    files: tuple[Path, ...]
    claims: tuple[str, ...] = ()


def found_figures(folder: Path, papers: Iterable[str]) -> dict[str, list[PaperFigure]]:
    """Return the figures that were drawn into a folder, by publication, as their records name them.

    Raises:
        BadFiles: a record is damaged, or a picture cannot be read.
    """
    found: dict[str, list[PaperFigure]] = {}
    recorded = {(drawn.paper, drawn.name.rpartition("/")[2]): drawn for drawn in drawn_figures(folder)}
    for paper in papers:
        place = folder / paper if (folder / paper).is_dir() else folder
        for (owner, name), drawn in recorded.items():
            files = tuple(place / file for file in drawn.files if Path(file).suffix in MIME)
            if owner == paper and files:
                caption = "\n".join(filter(None, (drawn.caption, *drawn.notes)))
                found.setdefault(paper, []).append(
                    PaperFigure(paper, name, drawn.title, caption, files, drawn.claims)
                )
    for path in (file for figures in found.values() for figure in figures for file in figure.files):
        try:
            require_regular(path)
        except UnusableFile as error:
            raise BadFiles(f"{path}: {error}") from None
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
