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
from dataclasses import dataclass
from html import escape
from typing import Protocol

AGAIN_S = 0.1
"""Time (s) between two pictures of a bar in a notebook."""


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
        yield lambda title, *, total=None, hidden=True: _InNotebook(title, total, hidden)
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


@dataclass
class _InNotebook:
    """A bar in the output of a notebook's cell; call it as a `Bar`."""

    title: str
    total: float | None
    hidden: bool
    done: float = 0.0
    _due_s = 0.0

    def __post_init__(self) -> None:
        if not self.hidden:
            self._show()

    def __call__(self, done: float, total: float | None = None, /) -> None:
        self.done, self.total = (self.done + done, self.total) if total is None else (done, total)
        if time.monotonic() >= self._due_s or (self.total and self.done >= self.total):
            self._show()

    def __repr__(self) -> str:
        return f"{self.title}: {self.done:,.0f}" + (f" of {self.total:,.0f}" if self.total else "")

    def _repr_html_(self) -> str:
        of = f' max="{self.total:g}" value="{self.done:g}"' if self.total else ""
        return f"{escape(repr(self))} <progress{of}></progress>"

    def _show(self) -> None:
        from IPython.display import display, update_display

        known, self._due_s = self._due_s > 0.0, time.monotonic() + AGAIN_S
        (update_display if known else display)(self, display_id=f"btqueue-{id(self)}")
