"""`btqueue figures`: list the published figures, draw one, draw all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from btqueue.cli.errors import NO_ANSWER, BadInput, put, put_titles, say
from btqueue.cli.options import Call
from btqueue.progress_bars import bars

if TYPE_CHECKING:
    from btqueue.reproduction.figures.catalogue import Drawn, Entry


def figures(
    call: Call,
    name: str | None = None,
    every: bool = False,
    paper: str | None = None,
    replications: int | None = None,
    quick: bool = False,
    picture_format: Literal["png", "svg", "pdf"] = "png",
    fresh: bool = False,
) -> None:
    """List the published figures that can be drawn again, or draw one or all of them.

    Finished points are kept in the user's cache: an interrupted drawing goes on where it was, and figures
    that share points compute them once. A picture that this command drew with the same settings is replaced;
    other files are left alone.
    """
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.reproduction.answer_cache import Store
    from btqueue.reproduction.figures.catalogue import catalogue, draw, drawn_figures, find, require_free
    from btqueue.reproduction.figures.work import Settings

    if name is None and not every:
        known = {one.name for one in drawn_figures(call.out or Path("figures-drawn"))}
        put_titles({one.name: f"{'✓ ' * (one.name in known)}{one.title}" for one in catalogue(paper)})
        return
    if name is not None and (every or paper is not None):
        raise BadInput(f"{name}: name a figure, or draw --all (of one --paper)")
    folder = call.out or Path("figures-drawn" if every else ".")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise BadInput(f"--out {call.out}: is no folder")
    keep_compiled_models()
    settings, store = Settings(replications, quick, picture_format), Store(fresh=fresh)

    def drawn(entry: Entry, folder: Path) -> Drawn:
        with bars(quiet=call.quiet) as make:
            return draw(entry, folder, settings, store, make(entry.name), force=call.force)

    try:
        if name is None:
            entries = [(one, folder / one.paper) for one in catalogue(paper)]
            require_free(entries, settings, force=call.force)
            if _draw_each(entries, drawn, quiet=call.quiet):
                raise typer.Exit(NO_ANSWER)
            return
        found = drawn(find(name), folder)
    except KeyboardInterrupt:
        say(f"{store.computed} new answers are kept: the same command goes on from there")
        raise
    for note in found.notes:
        say(f"note: {note}")
    for file in found.files:
        put(folder / file)


def _draw_each(
    entries: Sequence[tuple[Entry, Path]], draw: Callable[[Entry, Path], Drawn], *, quiet: bool
) -> int:
    """Draw figures into folders; return how many failed.

    A script may fail in any way: it is named with its error, and the others are drawn.
    """
    failed = 0
    for number, (entry, folder) in enumerate(entries, start=1):
        heading = f"{number}/{len(entries)} {entry.name}"
        try:
            drawn = draw(entry, folder)
        except Exception as error:
            failed += 1
            say(f"{heading}: failed: {type(error).__name__}: {error}")
            continue
        if not quiet:
            points = f"{drawn.points} points, {drawn.computed} answers computed, " if drawn.points else ""
            put(f"{heading}: {points}{drawn.seconds:.1f} s, {len(drawn.files)} pictures")
    if failed:
        say(f"{failed} of {len(entries)} figures failed")
    return failed
