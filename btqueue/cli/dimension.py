"""`btqueue dimension`: choose keys so that a metric is best within bounds, and confirm it by simulation."""

import time
from typing import Literal

import typer

from btqueue.cli.errors import INTERRUPTED, NO_ANSWER, put_json, say
from btqueue.cli.options import Call


def dimension(
    call: Call,
    choose: list[str] | None = None,
    maximize: str | None = None,
    minimize: str | None = None,
    pareto: str | None = None,
    subject_to: list[str] | None = None,
    engine: Literal["auto", "simulate"] = "auto",
    confirm: bool = True,
    top: int = 5,
    budget: int = 2000,
) -> None:
    """Choose keys so that a metric is as good as it can be within bounds on others.

    All combinations are solved, or searched where they are too many; the simulator then confirms the winner
    against its neighbours. Exit code 3 if nothing meets the bounds.
    """
    from btqueue.cli.dimension_report import WRITERS, document, print_report, run
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import REPORTS
    from btqueue.study.dimensioning import DimensioningInterrupted

    base, files = call.base, call.files(REPORTS)
    keep_compiled_models()
    began = time.perf_counter()
    wanted = {
        "maximize": maximize, "minimize": minimize, "pareto": pareto, "subject_to": subject_to or (),
        "choose": choose or (), "top": top, "budget": budget, "confirm": confirm, "engine": engine,
        "workers": call.threads,
    }  # fmt: skip
    try:
        found = run(base, wanted, quiet=call.quiet)
    except DimensioningInterrupted as interruption:
        if interruption.partial is None:
            raise
        found = interruption.partial
    wall_s = time.perf_counter() - began
    with files:
        files.write(WRITERS, found)
        figure = f"btqueue.plots.dimension.{'front' if found.front else 'dimension'}_figure"
        files.draw(figure, found, base.title)
        if call.as_json:
            put_json(document(found, files=files.written))
        else:
            print_report(call.scenario, found, wall_s)
        if found.interrupted:
            say(f"interrupted: this answer rests on {len(found.candidates):,} points")
            raise typer.Exit(INTERRUPTED)
        if found.best is None:
            starved = found.nearest is not None and found.nearest.unserved
            say("no point meets all bounds" + (" and serves every flow" if starved else ""))
            raise typer.Exit(NO_ANSWER)
