"""Progress of long work: bars on standard error of a terminal, or in a notebook.

>>> import btqueue as bt
>>> scenario = bt.load("chen-2004/adaptive-1", {"run.duration_s": 1.0, "run.warmup_s": 0.0})
>>> with bt.progress("simulating", total=scenario.run.replications) as bar:
...     results = bt.simulate(scenario, progress=bar)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, Protocol


class Bar(Protocol):
    """A function that advances a progress bar; for the argument `progress` of btqueue's functions."""

    def __call__(self, done: float, total: float | None = None, /) -> None:
        """Set how much of a total is done; without one, add *done*, as the share of a replication."""


@contextmanager
def progress(title: str = "points", total: float | None = None) -> Iterator[Bar | None]:
    """Yield a bar; None where nobody would see it.

    Args:
        title: name of the work in progress.
        total: amount of work, if it is known beforehand.
    """
    with bars() as make:
        yield make(title, total=total, hidden=False)


@contextmanager
def bars(*, quiet: bool = False) -> Iterator[Callable[..., Bar | None]]:
    """Yield a function that makes bars; a hidden one is shown when it first advances."""
    if quiet or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield lambda title, **_: None
        return
    if "ipykernel" in sys.modules:
        yield _in_notebook
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:

        def make(title: str, *, total: float | None = None, hidden: bool = True) -> Bar:
            task = shown.add_task(title, total=total, visible=not hidden)

            def advance(done: float, total: float | None = None, /) -> None:
                if total is None:
                    shown.update(task, advance=done, visible=True)
                else:
                    shown.update(task, completed=done, total=total, visible=True)

            return advance

        yield make


def _in_notebook(title: str, *, total: float | None = None, **_: bool) -> Bar:
    """Return a bar in the output of a notebook's cell, which is drawn again every 0.1 s."""
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    shown: Any = display(HTML(escape(title)), display_id=True)
    known = due_s = 0.0

    def advance(done: float, of: float | None = None, /) -> None:
        nonlocal known, total, due_s
        known, total = (known + done, total) if of is None else (done, of)
        if time.monotonic() >= due_s or (total and known > 0.999 * total):
            due_s = time.monotonic() + 0.1
            bar, end = (f' max="{total}" value="{known}"', f" of {total:,.0f}") if total else ("", "")
            shown.update(HTML(f"{escape(title)} <progress{bar}></progress> {known:,.0f}{end}"))

    return advance
