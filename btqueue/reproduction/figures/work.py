"""The workbench of a figure: scenarios adapted to the settings, answers, notes for the caption."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from btqueue.caches import cache_folder, keep
from btqueue.reproduction.answer_cache import Store
from btqueue.reproduction.figures.points import Progress, answers
from btqueue.scenario import Scenario, load
from btqueue.study.evaluate import ENGINES, Answer, Engine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUICK_REPLICATIONS, QUICK_S, QUICK_WARMUP_S, QUICK_VALUES = 2, 20.0, 2.0, 3
"""With `Settings.quick`: replications, longest run and warm-up (s), most values of a key."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class Settings:
    """How a figure is drawn.

    Attributes:
        replications: replications of each point; None for as many as the scenario says.
        quick: few points, 2 replications, short runs: for a first look, and for tests.
        format: format of the pictures, "png", "svg" or "pdf".
    """

    replications: int | None = None
    quick: bool = False
    format: str = "png"


@dataclass(frozen=True)
class Picture:
    """One picture of a figure.

    Attributes:
        figure: the drawing; it can be saved as it is.
        part: tells the pictures of a figure apart in their file names, as "n4-lines"; empty for the only one.
    """

    figure: Figure
    part: str = ""


@dataclass
class Work:
    """The workbench of one figure.

    Attributes:
        paper: folder of the publication, as "venugopal-2006".
        citation: citation of the figure, for titles, as "Venugopal 2006, figure 6.1".
        settings: how it is drawn.
        store: where answers are kept.
        report: told about progress.
        notes: remarks on the computation that belong into the caption; see `note`.
        asked: the scenarios asked for.
    """

    paper: str
    citation: str
    settings: Settings
    store: Store
    report: Progress | None = None
    notes: list[str] = field(default_factory=list)
    asked: set[Scenario] = field(default_factory=set)

    @property
    def points(self) -> int:
        """Number of scenarios asked for."""
        return len(self.asked)

    def scenario(self, base: str | Scenario, changes: Mapping[str, Any] | None = None) -> Scenario:
        """Return a scenario with some keys (dotted) changed, as the settings want it.

        Args:
            base: name such as "venugopal-2006/piconet" (or "piconet", of the figure's own paper), or a
                scenario.
            changes: values by dotted key.

        Raises:
            ScenarioError: the scenario, a key, or a value does not exist.
        """
        if isinstance(base, str):
            base = load(base if "/" in base else f"{self.paper}/{base}")
        wanted = base.changed(changes) if changes else base
        run: dict[str, Any] = {}
        if self.settings.quick:
            run["run.duration_s"] = min(wanted.run.duration_s, QUICK_S)
            if isinstance(wanted.run.warmup_s, str) or wanted.run.warmup_s > QUICK_WARMUP_S:
                run["run.warmup_s"] = QUICK_WARMUP_S
            run["run.replications"] = min(wanted.run.replications, QUICK_REPLICATIONS)
            run["run.precision"] = None
        if self.settings.replications is not None:
            run["run.replications"] = self.settings.replications
        return wanted.changed(run) if run else wanted

    def some(self, values: Sequence[Value]) -> list[Value]:
        """Return the values, or a few of them (the ends among them) in a quick figure."""
        count = len(values)
        if not self.settings.quick or count <= QUICK_VALUES:
            return list(values)
        places = [round(k * (count - 1) / (QUICK_VALUES - 1)) for k in range(QUICK_VALUES)]
        return [values[place] for place in places]

    def answers(
        self, scenarios: Sequence[Scenario], engines: Sequence[Engine] = ENGINES, *, label: str = ""
    ) -> list[dict[Engine, Answer]]:
        """Return the engines' answers to scenarios, which `scenario` made.

        Points without an answer are noted for the caption; their `Answer.failure` says why.

        Args:
            scenarios: the points.
            engines: "solve", "simulate", or both.
            label: name of the points, for notes, as "n = 4".
        """
        self.asked.update(scenarios)
        found = answers(scenarios, engines, self.store, self.report)
        for engine in engines:
            self._note_failures(engine, [one[engine] for one in found], label)
        return found

    def note(self, text: str) -> None:
        """Add a sentence to the caption, once."""
        if text not in self.notes:
            self.notes.append(text)

    def _note_failures(self, engine: Engine, given: Sequence[Answer], label: str) -> None:
        reasons = [answer.failure for answer in given if answer.failure is not None]
        if reasons:
            who = "the model" if engine == "solve" else "the simulation"
            where = f" ({label})" if label else ""
            self.note(
                f"No answer of {who} at {len(reasons)} of {len(given)} points{where}: {reasons[0].message}"
            )


def trace_file(values: np.ndarray) -> str:
    """Write numbers, shape (n,), one a line, as `radio.trace_file` takes them; return the file's name.

    The name is made of the content and lasts, so that points which use the file are found again.
    """
    text = "\n".join(f"{value:.6g}" for value in values) + "\n"
    path = cache_folder("traces", hashlib.sha256(text.encode()).hexdigest()[:16]) / "trace.txt"
    if not path.is_file():
        keep(path, text.encode())
    return str(path)


def runs_note(scenario: Scenario) -> str:
    """Return how a scenario is simulated, as "10 replications of 480 s after 60 s of warm-up"."""
    run = scenario.run
    runs = "one run" if run.replications == 1 else f"{run.replications} replications"
    warmup = "" if not run.warmup_s else f" after {run.warmup_s} of warm-up"
    if isinstance(run.warmup_s, int | float) and run.warmup_s:
        warmup = f" after {run.warmup_s:g} s of warm-up"
    return f"{runs} of {run.duration_s:g} s{warmup}"
