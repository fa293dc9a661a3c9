"""`btqueue sweep`: a scenario at many points, kept on disk point by point."""

import time
from typing import Literal

import typer

from btqueue.cli.errors import NO_ANSWER, BadInput, say
from btqueue.cli.options import Call

DEFAULT_METRICS = ("goodput_kbps", "rtt_s")
"""Metrics shown by default."""
MOST_KEYS_DRAWN = 3
"""Keys of a grid that a figure has room for."""


def sweep(
    call: Call,
    over: list[str] | None = None,
    engine: Literal["auto", "simulate", "both"] = "auto",
    check: bool = True,
    metric: list[str] | None = None,
    cluster: str | None = None,
) -> None:
    """Evaluate a scenario at many points: any keys over ranges and lists.

    Points that fail are kept with their reason. Ctrl-C, a full disk or the end of the machine lose nothing
    that was finished: with --out, the same command goes on from there.
    """
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import AnswerFirst
    from btqueue.cli.sweep_report import print_json, print_table, require, run
    from btqueue.network.numba_cache import interpreted
    from btqueue.scenario.expressions import parse_metric
    from btqueue.study.sweep_files import with_quantities

    base, out, plot, threads = call.base, call.out, call.plot, call.threads
    quantities = [parse_metric(text, "--metric", base) for text in metric or DEFAULT_METRICS]
    metrics = tuple(dict.fromkeys(map(str, quantities)))
    files = AnswerFirst(plot=plot, force=call.force)
    if not over:
        raise BadInput("--over: name a key and its values, as in --over polling.limit=1..25")
    if plot is not None and len(over) > MOST_KEYS_DRAWN:
        raise BadInput(f"--plot {plot}: a figure shows at most {MOST_KEYS_DRAWN} keys, not {len(over)}")
    if cluster is not None and threads is not None:
        raise BadInput(f"--threads: the cluster {cluster} has its own")
    keep_compiled_models()
    began = time.perf_counter()
    wanted = {
        "over": over, "engine": engine, "check": check and not interpreted(), "out": out, "force": call.force,
        "workers": threads, "cluster": cluster, "metrics": [one.name for one in quantities] if metric else (),
    }  # fmt: skip
    with files:
        found = with_quantities(run(base, wanted, files, quiet=call.quiet), quantities)
        require(metrics if metric else (), found)
        if out is not None and not files.failures:
            files.written["out"] = str(out)
        wall_s = time.perf_counter() - began
        if plot is not None and found.attrs["answered"]:
            there = [name for name in metrics if name in found and found[name].notnull().any()]
            shown = metrics if metric else there or metrics
            files.draw("btqueue.plots.sweep.sweep_figure", found, shown, base.title)
        if call.as_json:
            print_json(base, found, metrics, files.written)
        else:
            print_table(call.heading, found, metrics, wall_s, files.written.get("out"))
        if not found.attrs["answered"]:
            say("no point has an answer")
            raise typer.Exit(NO_ANSWER)
