"""All figures by name, drawing them, and records of drawn figures."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import runpy
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from btqueue.files import UnusableFile, read_bytes, require_writable, written_whole
from btqueue.plots import save
from btqueue.reproduction.answer_cache import Store
from btqueue.reproduction.figures.points import Progress
from btqueue.reproduction.figures.work import Picture, Settings, Work
from btqueue.scenario.loading import shipped_folder
from btqueue.scenario.problems import closest

KINDS = {
    "curves": "btqueue.reproduction.figures.curve_tables",
    "sessions": "btqueue.reproduction.figures.sessions",
    "boxes": "btqueue.reproduction.figures.sessions",
    "events": "btqueue.reproduction.figures.event_panels",
}
"""The module that draws each kind of figure that a table describes."""

DRAWINGS = {
    "avancha-2002": ("1", "2", "3"),
    "chen-2004": ("4",),
    "johansson-2000": ("1",),
    "suliman-2005": ("1", "2"),
    "venugopal-2006": ("1.1", "2.1", "2.2", "2.3", "2.4", "3.1", *(f"4.{number}" for number in range(1, 16))),
}
"""Figures of each publication that show blocks, networks or states, not results; they are not drawn again."""


class NoSuchFigure(ValueError):
    """No figure has this name; the message suggests the nearest name."""


class BadFiles(ValueError):
    """A file of a figure is in the way, damaged, or cannot be written; the message says which and why."""


@dataclass(frozen=True)
class Entry:
    """A figure that can be drawn.

    Attributes:
        name: as "venugopal-2006/fig_6_10".
        path: path of its table or script.
        title: in a line.
        caption: one paragraph a line: the content of the published figure, and our reading.
    """

    name: str
    path: Path
    title: str
    caption: str

    @property
    def paper(self) -> str:
        """Folder of the publication."""
        return self.name.partition("/")[0]

    @property
    def stem(self) -> str:
        """Name without the publication, as "fig_6_10"."""
        return self.name.partition("/")[2]

    @property
    def citation(self) -> str:
        """Publication and number, as "Venugopal 2006, figure 6.10"; the number is left out if it has none."""
        author, _, year = self.paper.partition("-")
        numbers = [part for part in self.stem.split("_")[1:] if part[0].isdigit()]
        figure = f", figure {'.'.join(numbers)}" if numbers else ""
        return f"{author.capitalize()} {year}{figure}"


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn.

    Attributes:
        name: as `Entry.name`.
        paper: folder of the publication.
        title: as `Entry.title`.
        caption: as `Entry.caption`.
        notes: remarks of the computation for the caption: failed points, and why.
        claims: ids of the claims of the publication that bear on the figure.
        files: names of the pictures in their folder, in order.
        settings: how it was drawn, see `Settings`.
        points: number of points in it.
        computed: number of these points that were computed anew.
        seconds: that it took.
    """

    name: str
    paper: str
    title: str
    caption: str
    notes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    points: int = 0
    computed: int = 0
    seconds: float = 0.0


def catalogue(paper: str | None = None) -> list[Entry]:
    """Return all figures (of one publication), in the order of their numbers; nothing is drawn.

    Raises:
        NoSuchFigure: the publication has no figures.
    """
    folder = shipped_folder("figures")
    found = [_entry(path) for path in folder.glob("*/fig_*.*") if path.suffix in (".toml", ".py")]
    if paper is not None:
        papers = sorted({entry.paper for entry in found})
        if paper not in papers:
            guess = closest(paper, papers)
            hint = f"did you mean '{guess}'?" if guess else f"there are {', '.join(papers)}"
            raise NoSuchFigure(f"no figures of '{paper}': {hint}")
        found = [entry for entry in found if entry.paper == paper]
    return sorted(found, key=lambda entry: (entry.paper, _numbers(entry.stem)))


def find(name: str) -> Entry:
    """Return a figure by its name, as "venugopal-2006/fig_6_10", "venugopal-2006/6.10" or "fig_6_10".

    Raises:
        NoSuchFigure: there is none, or several publications have one of this name.
    """
    entries = {entry.name: entry for entry in catalogue()}
    paper, slash, stem = name.removesuffix(".py").removesuffix(".toml").rpartition("/")
    stem = stem if stem.startswith("fig_") else f"fig_{stem.replace('.', '_')}"
    wanted = [known for known, entry in entries.items() if entry.stem == stem and paper in ("", entry.paper)]
    if len(wanted) > 1:
        raise NoSuchFigure(f"'{name}' is the name of several figures: {', '.join(wanted)}")
    if wanted:
        return entries[wanted[0]]
    number = stem.removeprefix("fig_").replace("_", ".")
    if number in DRAWINGS.get(paper, ()):
        raise NoSuchFigure(f"figure {number} of {paper} is a drawing, not a result: it is not drawn again")
    guess = closest(f"{paper}/{stem}" if slash else stem, [*entries, *(e.stem for e in entries.values())])
    hint = f"did you mean '{guess}'?" if guess else "btqueue figures lists them"
    raise NoSuchFigure(f"no figure '{name}': {hint}")


def require_free(entries: Iterable[tuple[Entry, Path]], settings: Settings, *, force: bool = False) -> None:
    """Make sure that drawing figures into folders replaces only files that the same drawing wrote before.

    Args:
        entries: the figures and their folders.
        settings: how they are drawn.
        force: other regular files may be replaced, too.

    Raises:
        BadFiles: another file is in the way.
    """
    for entry, folder in entries:
        own, names = (
            _own_files(entry, folder, settings),
            re.compile(rf"{entry.stem}(-.*)?\.{settings.format}"),
        )
        there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        for name in there:
            if names.fullmatch(name) or name == _record(entry):
                with _refusals(folder / name):
                    require_writable(folder / name, replace=force or name in own)


def _record(entry: Entry) -> str:
    return f"{entry.stem}.json"


def _own_files(entry: Entry, folder: Path, settings: Settings) -> set[str]:
    """Return the files in a folder that the same drawing wrote, in whichever format."""
    try:
        content = json.loads(read_bytes(folder / _record(entry)))
        same = content["settings"] | {"format": settings.format} == asdict(settings)
        if same and content["name"] == entry.name:
            return {_record(entry), *content["files"]}
    except (UnusableFile, ValueError, KeyError, TypeError):
        pass  # none, or not ours
    return set()


def draw(
    entry: Entry,
    folder: Path,
    settings: Settings,
    store: Store,
    report: Progress | None = None,
    *,
    force: bool = False,
) -> Drawn:
    """Draw a figure, write its pictures and a record of them, `<fig_name>.json`, into a folder.

    Args:
        entry: which.
        folder: where; made if it is not there.
        settings: how.
        store: store of answers.
        report: told about progress.
        force: replace regular files that are there, whoever wrote them.

    Raises:
        BadFiles: another file is in the way, or the file system refuses.
        Exception: whatever the drawing raises; the pictures before are written.
        KeyboardInterrupt: by Ctrl-C; finished points are in the store.
    """
    require_free([(entry, folder)], settings, force=force)
    own = _own_files(entry, folder, settings)
    with _refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
    began, computed = time.monotonic(), store.computed
    drawer, claims = drawer_of(entry)
    work = Work(entry.paper, entry.citation, settings, store, report)
    files = []
    for picture in drawer(work):
        name = f"{entry.stem}{'-' if picture.part else ''}{picture.part}.{settings.format}"
        path = folder / name
        with _refusals(path), written_whole(path, replace=force or name in own) as part:
            save(picture.figure, part, f".{settings.format}")
        files.append(name)
    drawn = Drawn(
        entry.name, entry.paper, entry.title, entry.caption, tuple(work.notes),
        tuple(claims), tuple(files), asdict(settings),
        work.points, store.computed - computed, round(time.monotonic() - began, 2),
    )  # fmt: skip
    path = folder / _record(entry)
    with _refusals(path), written_whole(path, replace=force or path.name in own) as part:
        part.write_text(json.dumps(asdict(drawn), indent=1) + "\n", "utf-8")
    return drawn


def drawer_of(entry: Entry) -> tuple[Callable[[Work], Iterable[Picture]], Sequence[str]]:
    """Return the function that draws a figure, and the ids of its claims.

    Raises:
        BadFiles: the table of the figure has another kind.
    """
    if entry.path.suffix == ".py":
        script = runpy.run_path(str(entry.path))
        return script["draw"], script.get("CLAIMS", ())
    table = tomllib.loads(entry.path.read_text("utf-8"))
    if table["kind"] not in KINDS:
        raise BadFiles(f'{entry.path}: kind = "{table["kind"]}": kinds are {", ".join(KINDS)}')
    module = importlib.import_module(KINDS[table["kind"]])
    return partial(module.draw, table=table), table.get("claims", ())


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Raise `BadFiles` in the block where the file system refuses *path*."""
    try:
        yield
    except OSError as error:
        hint = "; --force replaces it" if isinstance(error, FileExistsError) else ""
        raise BadFiles(f"{path}: cannot be written ({error.strerror or error}{hint})") from None


def drawn_figures(folder: Path) -> list[Drawn]:
    """Return the figures drawn into a folder and the folders in it, in the order of `catalogue`.

    Raises:
        BadFiles: a record is damaged.
    """
    found = []
    for path in [*folder.glob("fig_*.json"), *folder.glob("*/fig_*.json")]:
        try:
            content = json.loads(read_bytes(path))
            lists = {name: tuple(content[name]) for name in ("notes", "claims", "files")}
            found.append(Drawn(**(content | lists)))
        except UnusableFile as error:
            raise BadFiles(f"{path}: {error}") from None
        except (ValueError, KeyError, TypeError):
            raise BadFiles(f"{path}: is damaged; delete it, and draw the figure again") from None
    return sorted(found, key=lambda drawn: (drawn.paper, _numbers(drawn.name.partition("/")[2])))


def _entry(path: Path) -> Entry:
    text = path.read_text("utf-8")
    if path.suffix == ".toml":
        table = tomllib.loads(text)
        title, rest = table["title"], table["caption"]
    else:
        title, _, rest = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
    caption = "\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", rest.strip()))
    return Entry(f"{path.parent.name}/{path.stem}", path, title, caption)


def _numbers(stem: str) -> Sequence[tuple[int, str]]:
    """Return a sorting key that puts fig_6_2 before fig_6_10."""
    parts = stem.removeprefix("fig_").split("_")
    return [(int(part), "") if part.isdigit() else (10**6, part) for part in parts]
