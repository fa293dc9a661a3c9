"""`btqueue dimension`: choose keys so that a metric is best within bounds, and confirm it by simulation."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer
from typer import Option

from btqueue.cli.errors import INTERRUPTED, NO_ANSWER, say
from btqueue.cli.options import AsJson, Force, Name, Plot, Quiet, Report, Sets, Threads

EXAMPLES = (
    "btqueue dimension venugopal-2006/piconet --choose polling.limit=1..25 --maximize goodput_kbps "
    "--subject-to 'rtt_s <= 400 ms'",
)
"""That the help shows."""


def dimension(
    scenario: Name,
    choose: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUES",
            help="A key and its values: 1..25, 5..60:5; DH5,[DH3,DH5] of a key of lists; 100..400 of a "
            "key of real numbers is continuous. Repeatable.",
        ),
    ] = None,
    maximize: Annotated[
        str | None, Option(metavar="METRIC", help="Metric to maximise: goodput_kbps.")
    ] = None,
    minimize: Annotated[str | None, Option(metavar="METRIC", help="Metric to minimise: rtt_s.")] = None,
    pareto: Annotated[
        str | None,
        Option(
            metavar="METRIC, METRIC",
            help="Two that compete, 'goodput_kbps, p95(delay_s)': show the points that none beats in both.",
        ),
    ] = None,
    subject_to: Annotated[
        list[str] | None,
        Option(
            metavar="BOUND",
            help="A bound on metrics or keys: 'rtt_s <= 400 ms', 'min(goodput_kbps) >= 80'. Repeatable.",
        ),
    ] = None,
    engine: Annotated[
        Literal["auto", "simulate"],
        Option(help="Engine of each point; auto: theory where it stands, else simulation."),
    ] = "auto",
    confirm: Annotated[
        bool, Option("--confirm/--no-confirm", help="Pick the winner by simulation of the best points.")
    ] = True,
    top: Annotated[int, Option("--top", min=0, metavar="N", help="Runners-up to show.")] = 5,
    budget: Annotated[
        int,
        Option(
            min=1,
            metavar="POINTS",
            help="Points to solve at most. More combinations than that are searched, not enumerated.",
        ),
    ] = 2000,
    set_: Sets = None,
    out: Report = None,
    plot: Plot = None,
    threads: Threads = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Choose keys so that a metric is as good as it can be within bounds on others.

    All combinations are solved, or searched where they are too many; the simulator then confirms the winner
    against its neighbours. Exit code 3 if nothing meets the bounds.
    """
    from btqueue.cli.dimension_report import WRITERS, print_json, print_report, run
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import REPORTS, AnswerFirst, Target
    from btqueue.plots import FORMATS
    from btqueue.scenario import load
    from btqueue.study.dimensioning import DimensioningInterrupted

    base = load(scenario, set_ or ())
    table = Target.checked(out, "--out", REPORTS, force=force)
    picture = Target.checked(plot, "--plot", FORMATS, force=force)
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
    with AnswerFirst() as files:
        wrote_table = files.write(table, WRITERS, found)
        figure = f"btqueue.plots.dimension.{'front' if found.front else 'dimension'}_figure"
        wrote_picture = files.draw(picture, figure, found, base.title)
        if as_json:
            written = {"out": out if wrote_table else None, "plot": plot if wrote_picture else None}
            print_json(base, found, written)
        else:
            print_report(scenario, found, wall_s)
        if found.interrupted:
            say(f"interrupted: this answer rests on {len(found.candidates):,} points")
            raise typer.Exit(INTERRUPTED)
        if found.best is None:
            starved = found.nearest is not None and found.nearest.unserved
            say("no point meets all bounds" + (" and serves every flow" if starved else ""))
            raise typer.Exit(NO_ANSWER)
