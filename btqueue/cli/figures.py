"""Published figures: list them, draw one, draw all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from btqueue.cli.errors import BadInput, put, put_titles, say
from btqueue.progress_bars import bars

if TYPE_CHECKING:
    from btqueue.reproduction.figures.catalogue import Drawn, Entry
    from btqueue.reproduction.figures.points import Store
    from btqueue.reproduction.figures.work import Settings

FORMATS = ("png", "svg", "pdf")


def list_figures(paper: str | None, drawn_in: Path | None) -> None:
    """Print names and titles, and which are drawn in a folder."""
    from btqueue.reproduction.figures.catalogue import catalogue, drawn_figures

    entries = catalogue(paper)
    drawn = {one.name for one in drawn_figures(drawn_in)} if drawn_in is not None else set()
    put_titles({entry.name: f"{'✓ ' if entry.name in drawn else ''}{entry.title}" for entry in entries})


def draw_one(name: str, out: Path, settings: Settings, store: Store, *, force: bool, quiet: bool) -> None:
    """Draw a figure into a folder; name the files on standard output."""
    from btqueue.reproduction.figures.catalogue import find

    entry = find(name)
    drawn = _draw(entry, out, settings, store, force=force, quiet=quiet)
    for note in drawn.notes:
        say(f"note: {note}")
    for file in drawn.files:
        put(out / file)


def draw_each(
    entries: Sequence[Entry],
    out: Path,
    settings: Settings,
    store: Store,
    *,
    tell: Callable[[str], None],
    force: bool,
    quiet: bool,
) -> int:
    """Draw figures into folders of their publications, and *tell* each; return how many failed.

    A script may fail in any way: it is named with its error, and the others are drawn.

    Raises:
        BadFiles: another file is in the way, before anything is drawn.
    """
    from btqueue.reproduction.figures.catalogue import require_free

    require_free([(entry, out / entry.paper) for entry in entries], settings, force=force)
    failed = 0
    for number, entry in enumerate(entries, start=1):
        heading = f"{number}/{len(entries)} {entry.name}"
        try:
            drawn = _draw(entry, out / entry.paper, settings, store, force=force, quiet=quiet)
        except Exception as error:
            failed += 1
            say(f"{heading}: failed: {type(error).__name__}: {error}")
            continue
        if not quiet:
            points = f"{drawn.points} points, {drawn.computed} answers computed, " if drawn.points else ""
            tell(f"{heading}: {points}{drawn.seconds:.1f} s, {len(drawn.files)} pictures")
    if failed:
        say(f"{failed} of {len(entries)} figures failed")
    return failed


def settings_of(replications: int | None, quick: bool, picture_format: str) -> Settings:
    """Return the settings of the command line.

    Raises:
        BadInput: the format is unknown.
    """
    from btqueue.reproduction.figures.work import Settings

    if picture_format not in FORMATS:
        raise BadInput(f"--format {picture_format}: pictures are {', '.join(FORMATS)}")
    return Settings(replications, quick, picture_format)


def _draw(entry: Entry, out: Path, settings: Settings, store: Store, *, force: bool, quiet: bool) -> Drawn:
    """Draw a figure, with a bar on the terminal that says how far it is."""
    from btqueue.reproduction.figures.catalogue import draw

    try:
        with bars(quiet=quiet) as make:
            return draw(entry, out, settings, store, make(entry.name), force=force)
    except KeyboardInterrupt:
        say(f"{store.computed} new answers are kept: the same command goes on from there")
        raise
