"""`btqueue sweep`: a scenario at many points, kept on disk point by point."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Option

from btqueue.cli.errors import NO_ANSWER, BadInput, say
from btqueue.cli.options import AsJson, Force, Metrics, Name, Plot, Quiet, Sets, Threads

DEFAULT_METRICS = ("goodput_kbps", "rtt_s")
"""Metrics shown by default."""
MOST_KEYS_DRAWN = 3
"""Keys of a grid that a figure has room for."""
EXAMPLES = (
    "btqueue sweep venugopal-2006/piconet --over polling.limit=1..25 --plot limit.png",
    "btqueue sweep venugopal-2006/piconet --over radio.ber=log(1e-6,1e-3,7) "
    "--over link.packets=DH5,3-DH5 --engine both --out grid.nc",
)
"""That the help shows."""


def sweep(
    scenario: Name,
    over: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUES",
            help="Values of a key: 1..25, 1..25:2, 5,10,20, lin(a,b,n), log(a,b,n). Repeatable: every "
            "combination is a point.",
        ),
    ] = None,
    engine: Annotated[
        Literal["auto", "simulate", "both"],
        Option(help="Engine of each point; auto: theory where it stands, else simulation."),
    ] = "auto",
    check: Annotated[
        bool,
        Option(
            "--check/--no-check",
            help="Check a twentieth of the points of theory by simulation, and simulate around those that "
            "are not confirmed (with --engine auto).",
        ),
    ] = True,
    out: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Write the result to FILE (.nc, .csv); each point is kept at once, and the "
            "same command goes on where it was ended.",
        ),
    ] = None,
    plot: Plot = None,
    metric: Metrics = None,
    set_: Sets = None,
    threads: Threads = None,
    cluster: Annotated[
        str | None, Option(metavar="ADDRESS", help="A dask scheduler, tcp://HOST:PORT.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate a scenario at many points: any keys over ranges and lists.

    Points that fail are kept with their reason. Ctrl-C, a full disk or the end of the machine lose nothing
    that was finished: with --out, the same command goes on from there.
    """
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import AnswerFirst, Target
    from btqueue.cli.sweep_report import print_json, print_table, require, run
    from btqueue.network.numba_cache import interpreted
    from btqueue.plots import FORMATS
    from btqueue.scenario import load
    from btqueue.scenario.expressions import parse_metric
    from btqueue.study.sweep_files import with_quantities

    base = load(scenario, set_ or ())
    quantities = [parse_metric(text, "--metric", base) for text in metric or DEFAULT_METRICS]
    metrics = tuple(dict.fromkeys(map(str, quantities)))
    picture = Target.checked(plot, "--plot", FORMATS, force=force)
    if not over:
        raise BadInput("--over: name a key and its values, as in --over polling.limit=1..25")
    if picture is not None and len(over) > MOST_KEYS_DRAWN:
        raise BadInput(f"--plot {plot}: a figure shows at most {MOST_KEYS_DRAWN} keys, not {len(over)}")
    if cluster is not None and threads is not None:
        raise BadInput(f"--threads: the cluster {cluster} has its own")
    keep_compiled_models()
    began = time.perf_counter()
    wanted = {
        "over": over, "engine": engine, "out": out, "force": force, "workers": threads, "cluster": cluster,
        "check": check and not interpreted(), "metrics": [one.name for one in quantities] if metric else (),
    }  # fmt: skip
    with AnswerFirst() as files:
        found = with_quantities(run(base, wanted, files, quiet=quiet), quantities)
        require(metrics if metric else (), found)
        written = {"out": None if files.failures else out, "plot": None}
        wall_s = time.perf_counter() - began
        if picture is not None and found.attrs["answered"]:
            there = [name for name in metrics if name in found and found[name].notnull().any()]
            shown = metrics if metric else there or metrics
            if files.draw(picture, "btqueue.plots.sweep.sweep_figure", found, shown, base.title):
                written["plot"] = plot
        if as_json:
            print_json(base, found, metrics, written)
        else:
            print_table(scenario, base, found, metrics, wall_s, written["out"])
        if not found.attrs["answered"]:
            say("no point has an answer")
            raise typer.Exit(NO_ANSWER)
