"""Write the gallery of published figures from pictures that were drawn before.

btqueue figures --all --out FOLDER
python docs/generate_gallery.py FOLDER       writes docs/gallery
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from PIL import Image

from btqueue.reproduction.figures.catalogue import DRAWINGS, Drawn, catalogue, drawn_figures, find

GALLERY = Path(__file__).parent / "gallery"
PICTURES = GALLERY / "pictures"
WIDTH, QUALITY = 1100, 65
"""Of a stored picture, its most pixels across and its quality as WebP: a tenth of the room, and readable."""

COMMENT = "<!-- Written by docs/generate_gallery.py: change the figures, not this page. -->"

INTRODUCTION = """\
# Gallery

Every figure of the five publications that shows results, drawn again: markers with 95 % intervals are
simulated, lines are solved by the models, and stars or dashed lines are values that the publication states.
Figures of Bluetooth Low Energy stand beside measured rates in place of a publication.
`btqueue figures` lists them, `btqueue figures venugopal-2006/6.10` draws one and `btqueue figures --all`
draws all. The [report of the reproduction](../explanation/reproduction.md) judges the agreement."""

TITLES = {
    "venugopal-2006": "Venugopal 2006: TCP NewReno in piconets and scatternets",
    "johansson-2000": "Johansson, Kihl and Körner 2000: TCP Vegas over a Bluetooth link",
    "suliman-2005": "Suliman, Lehtomäki and Oppermann: a WLAN gateway into a piconet",
    "chen-2004": "Chen, Kapoor, Sanadidi and Gerla 2004: adaptive packet types",
    "avancha-2002": "Avancha and others 2002: CentaurusComm against TCP",
    "low-energy": "Bluetooth Low Energy, beside measured rates",
}
"""Headings of the publications' pages, in the order of the gallery."""

MOST = 13
"""Figures of a page."""


def anchor(drawn: Drawn) -> str:
    """Return the name of a figure's section."""
    return drawn.name.replace("/", "-").replace("_", "-").lower()


def pages_of(figures: list[Drawn]) -> dict[str, list[Drawn]]:
    """Return the figures of each page, by its name: a publication with many figures has several pages."""
    pages = {}
    for paper, of_paper in groupby(figures, key=lambda drawn: drawn.paper):
        shown = list(of_paper)
        parts = [shown[at : at + MOST] for at in range(0, len(shown), MOST)]
        names = [paper] if len(parts) == 1 else [f"{paper}-{number}" for number in range(1, len(parts) + 1)]
        pages |= dict(zip(names, parts, strict=True))
    return pages


def index_page(figures: list[Drawn]) -> Iterator[str]:
    """Yield the lines of the page of thumbnails."""
    yield from (COMMENT, "", INTRODUCTION)
    for paper, of_paper in groupby(figures, key=lambda drawn: drawn.paper):
        yield from ("", f"## {TITLES[paper]}", "", "::::{grid} 2 3 3 4", ":gutter: 2", "")
        for drawn in of_paper:
            yield f":::{{grid-item-card}} {heading(drawn)}"
            yield from (f":link: {anchor(drawn)}", ":link-type: ref", f":img-top: {picture(drawn, 0)}")
            yield from (":::", "")
        yield "::::"
    yield from ("", "```{toctree}", ":hidden:", "", *pages_of(figures), "```")


def paper_page(figures: list[Drawn], title: str) -> Iterator[str]:
    """Yield the lines of a page: pictures, captions, tables or scripts."""
    yield from (COMMENT, "", f"# {title}", "", drawings(figures[0].paper))
    for drawn in figures:
        yield from ("", f"({anchor(drawn)})=", f"## {heading(drawn)}", "", drawn.title, "")
        yield from picture_lines(drawn, 0)
        for paragraph in drawn.caption.splitlines():
            yield from (paragraph, "")
        yield from (f"* {note}" for note in drawn.notes)
        path = find(drawn.name).path
        more = len(drawn.files) - 1
        pictures = f"{more} more picture{'s' if more > 1 else ''}, " if more else ""
        yield from ("", f":::{{dropdown}} {pictures}figures/{drawn.paper}/{path.name}")
        for place in range(1, len(drawn.files)):
            yield from picture_lines(drawn, place)
        yield f"```{{literalinclude}} ../../figures/{drawn.paper}/{path.name}"
        yield from ((":language: toml",) if path.suffix == ".toml" else ())
        yield from ("```", ":::")


def picture_lines(drawn: Drawn, place: int) -> Iterator[str]:
    """Yield the lines of one picture."""
    yield f"```{{figure}} {picture(drawn, place)}"
    yield from (f":alt: {drawn.title}", "", "```", "")


def drawings(paper: str) -> str:
    """Return the sentence on the figures that are not drawn again."""
    if paper not in DRAWINGS:
        return "Not figures of a publication: questions that users ask, answered by both engines."
    numbers = DRAWINGS[paper]
    several = len(numbers) > 1
    figures = f"Figures {', '.join(numbers)} are drawings" if several else f"Figure {numbers[0]} is a drawing"
    return f"All figures with results. {figures} of blocks, networks or states, and not drawn again."


def heading(drawn: Drawn) -> str:
    """Return "Figure 6.10", or the subject of a figure that the publication does not have."""
    if drawn.paper not in DRAWINGS:
        return drawn.title.partition(":")[0]
    number, _, word = drawn.name.partition("/fig_")[2].replace("_", ".").partition(".of.")
    return f"Figure {number}{' ' if word else ''}{word}"


def picture(drawn: Drawn, place: int) -> str:
    """Return the path of a picture from the gallery's pages."""
    return f"pictures/{drawn.paper}/{Path(drawn.files[place]).stem}.webp"


def store(drawn: Drawn, folder: Path) -> None:
    """Copy the pictures of a figure, smaller.

    Raises:
        FileNotFoundError: a picture that the record names is not there.
    """
    for place, name in enumerate(drawn.files):
        nested = folder / drawn.paper / name
        target = GALLERY / picture(drawn, place)
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(nested if nested.exists() else folder / name) as image:
            small = image.convert("RGB")
            small.thumbnail((WIDTH, 10 * WIDTH), Image.Resampling.LANCZOS)
            small.save(target, quality=QUALITY, method=6)


def main(folder: Path) -> None:
    """Write all pages and pictures."""
    figures = drawn_figures(folder)
    missing = {entry.name for entry in catalogue()} - {drawn.name for drawn in figures}
    if missing:
        sys.exit(f"{folder} lacks {', '.join(sorted(missing))}: btqueue figures --all --out {folder}")
    order = {paper: number for number, paper in enumerate(TITLES)}
    figures.sort(key=lambda drawn: order[drawn.paper])  # stable: keeps the order of the numbers
    shutil.rmtree(GALLERY, ignore_errors=True)
    for drawn in figures:
        store(drawn, folder)
    pages: dict[str, Iterator[str]] = {"index": index_page(figures)}
    for name, shown in pages_of(figures).items():
        title = TITLES[shown[0].paper]
        part = "" if name in TITLES else f", {heading(shown[0]).lower()} and on"
        pages[name] = paper_page(shown, title + part)
    for name, lines in pages.items():
        (GALLERY / f"{name}.md").write_text("\n".join(lines) + "\n", "utf-8")
    size = sum(path.stat().st_size for path in PICTURES.rglob("*.webp"))
    print(f"{len(figures)} figures, {sum(len(d.files) for d in figures)} pictures, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
