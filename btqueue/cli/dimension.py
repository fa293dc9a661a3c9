"""`btqueue dimension`: choose keys so that a metric is best within bounds, and confirm it by simulation."""

import time
from pathlib import Path
from typing import Literal

import typer

from btqueue.cli.errors import INTERRUPTED, NO_ANSWER, put_json, say


def dimension(
    scenario: str,
    choose: list[str] | None = None,
    maximize: str | None = None,
    minimize: str | None = None,
    pareto: str | None = None,
    subject_to: list[str] | None = None,
    engine: Literal["auto", "simulate"] = "auto",
    confirm: bool = True,
    top: int = 5,
    budget: int = 2000,
    set_: list[str] | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    threads: int | None = None,
    force: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Choose keys so that a metric is as good as it can be within bounds on others.

    All combinations are solved, or searched where they are too many; the simulator then confirms the winner
    against its neighbours. Exit code 3 if nothing meets the bounds.
    """
    from btqueue.cli.dimension_report import WRITERS, document, print_report, run
    from btqueue.cli.engines import keep_compiled_models, run_hints
    from btqueue.cli.files import REPORTS, AnswerFirst
    from btqueue.scenario import load
    from btqueue.study.dimensioning import DimensioningInterrupted

    base, files = load(scenario, set_ or ()), AnswerFirst(out, plot, REPORTS, force=force)
    keep_compiled_models()
    began = time.perf_counter()
    wanted = {
        "maximize": maximize, "minimize": minimize, "pareto": pareto, "subject_to": subject_to or (),
        "choose": choose or (), "top": top, "budget": budget, "confirm": confirm, "engine": engine,
        "workers": threads,
    }  # fmt: skip
    try:
        found = run(base, wanted, quiet=quiet)
    except DimensioningInterrupted as interruption:
        if interruption.partial is None:
            raise
        found = interruption.partial
    wall_s = time.perf_counter() - began
    with files:
        files.write(WRITERS, found)
        figure = f"btqueue.plots.dimension.{'front' if found.front else 'dimension'}_figure"
        files.draw(figure, found, base.title)
        if as_json:
            put_json(document(found, files=files.written))
        else:
            print_report(scenario, found, wall_s)
        if found.interrupted:
            say(f"interrupted: this answer rests on {len(found.candidates):,} points")
            raise typer.Exit(INTERRUPTED)
        if found.best is None:
            starved = found.nearest is not None and found.nearest.unserved
            say("no point meets all bounds" + (" and serves every flow" if starved else ""))
            if found.nearest is not None:
                run_hints(base.changed(found.nearest.changes), quiet=quiet)
            raise typer.Exit(NO_ANSWER)
