"""The commands that study a scenario: `sweep`, `sensitivity`, `dimension`, `check`, `fit` and `validate`.

Each has a module that does its work, which is imported when the command runs.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import typer

from btqueue.cli.errors import INTERRUPTED, NO_ANSWER, BadInput, put, put_json, say
from btqueue.cli.options import Call, fraction

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
    from btqueue.cli import sweep_report as work
    from btqueue.cli.files import AnswerFirst

    metrics = work.shown_metrics(call.base, metric)
    files = AnswerFirst(plot=call.plot, force=call.force)
    if not over:
        raise BadInput("--over: name a key and its values, as in --over polling.limit=1..25")
    if call.plot is not None and len(over) > MOST_KEYS_DRAWN:
        most = f"a figure shows at most {MOST_KEYS_DRAWN} keys, not {len(over)}"
        raise BadInput(f"--plot {call.plot}: {most}")
    if cluster is not None and call.threads is not None:
        raise BadInput(f"--threads: the cluster {cluster} has its own")
    began = time.perf_counter()
    with files:
        wanted = {"over": over, "engine": engine, "check": check, "cluster": cluster}
        found = work.run(call, files, wanted | {"metrics": metrics if metric else ()})
        work.require(metrics if metric else (), found)
        wall_s = time.perf_counter() - began
        if call.plot is not None and found.attrs["answered"]:
            there = [name for name in metrics if name in found and found[name].notnull().any()]
            shown = metrics if metric else there or metrics
            files.draw("btqueue.plots.sweep.sweep_figure", found, shown, call.base.title)
        if call.as_json:
            work.print_json(call.base, found, metrics, files.written)
        else:
            work.print_table(call.heading, found, metrics, wall_s, files.written.get("out"))
        if not found.attrs["answered"]:
            say("no point has an answer")
            raise typer.Exit(NO_ANSWER)


def sensitivity(
    call: Call,
    method: Literal["local", "sobol", "closed"] = "local",
    metric: list[str] | None = None,
    key: list[str] | None = None,
    spread: list[str] | None = None,
    samples: int | None = None,
    seed: int = 1,
    formula: str | None = None,
    at: list[str] | None = None,
) -> None:
    """Show how metrics depend on keys: derivatives, elasticities, shares of variance, formulas.

    Keys are ranked by the change of the metric over a plausible spread. Where there is no derivative (a
    kink, a jump, noise) the table says so in place of a number.
    """
    from btqueue.cli import sensitivity_report as work
    from btqueue.cli.files import WRITERS

    if not call.scenario and (formula is None or call.set_):
        raise BadInput("name a SCENARIO (btqueue models lists some), or a --formula")
    base, title = (call.base, call.heading) if call.scenario else (None, "")
    if at and formula is None:
        raise BadInput(f"--at {at[0]}: goes with --formula")
    if formula is not None or method == "closed":
        if call.out is not None or call.plot is not None:
            raise BadInput("--out and --plot: formulas are printed; --json gives them to programs")
        work.show_formulas(base, title, formula, at, as_json=call.as_json)
        return
    assert base is not None
    files = call.files()
    ranges, share = work.spreads(spread or ())
    wanted = {
        "metrics": metric, "keys": key, "spread": ranges, "share": share, "samples": samples, "seed": seed,
        "workers": call.threads,
    }  # fmt: skip
    found = work.run(base, method, wanted, quiet=call.quiet)
    with files:
        files.write(WRITERS | {".csv": work.write_csv}, found, base)
        files.draw("btqueue.plots.sensitivity.sensitivity_figure", found, base.title)
        if call.as_json:
            work.print_json(base, found)
        else:
            work.print_tables(title, found)


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
    from btqueue.cli import dimension_report as work
    from btqueue.cli.engines import run_hints

    base, files = call.base, call.files(report=True)
    began = time.perf_counter()
    wanted = {
        "maximize": maximize, "minimize": minimize, "pareto": pareto, "subject_to": subject_to or (),
        "choose": choose or (), "top": top, "budget": budget, "confirm": confirm, "engine": engine,
        "workers": call.threads,
    }  # fmt: skip
    found = work.run(base, wanted, quiet=call.quiet)
    wall_s = time.perf_counter() - began
    with files:
        files.write(work.WRITERS, found)
        figure = f"btqueue.plots.dimension.{'front' if found.front else 'dimension'}_figure"
        files.draw(figure, found, base.title)
        if call.as_json:
            put_json(work.document(found, files=files.written))
        else:
            work.print_report(call.scenario, found, wall_s)
        if found.interrupted:
            say(f"interrupted: this answer rests on {len(found.candidates):,} points")
            raise typer.Exit(INTERRUPTED)
        if found.best is None:
            starved = found.nearest is not None and found.nearest.unserved
            say("no point meets all bounds" + (" and serves every flow" if starved else ""))
            if found.nearest is not None:
                run_hints(base.changed(found.nearest.changes), quiet=call.quiet)
            raise typer.Exit(NO_ANSWER)


def check(
    call: Call,
    results: Path,
    confidence: float = 0.99,
    tolerance: str | None = None,
    map_: list[str] | None = None,
    flow: int | None = None,
    no_simulate: bool = False,
    strict: bool = False,
) -> None:
    """Check another simulator's output: is it consistent, does it agree, and if not, why.

    The verdict is in the output, the exit code is 0 either way unless --strict is given.
    """
    from btqueue.cli import check_report as work
    from btqueue.study.check import check as study

    if not 0.5 <= confidence < 1:
        raise BadInput(f"--confidence {confidence:g}: must be at least 0.5 and below 1")
    share = None if tolerance is None else fraction(tolerance)
    if share is not None and not 0 <= share < 1:
        raise BadInput(f"--tolerance {tolerance}: must be at least 0 and below 1, or a percentage as 3%")
    wanted, files = call.base, call.files(report=True)
    simulator = None if no_simulate else work.simulator_of(call)
    found = work.read(call, results, map_, flow)
    report = study(found, wanted, confidence=confidence, tolerance=share, simulate=simulator)
    work.deliver(call, files, report)
    if strict and not report.agrees:
        raise typer.Exit(NO_ANSWER)


def fit(
    call: Call,
    results: Path,
    free: list[str],
    map_: list[str] | None = None,
    flow: int | None = None,
) -> None:
    """Fit keys of a scenario to measured results, and confirm the values by simulation.

    Values have 95 % intervals. Keys that the results do not tell, or that packets state, are named.
    """
    from btqueue.cli import check_report as work
    from btqueue.study.fit import fit as study

    wanted, files, ranges = call.base, call.files(report=True), dict[str, str | None]()
    for text in (part.strip() for one in free for part in one.split(",")):
        key, equals, spread = text.partition("=")
        if key.strip() in ranges:
            raise BadInput(f"--free {key.strip()}: is given twice")
        ranges[key.strip()] = spread.strip() if equals else None
    found = work.read(call, results, map_, flow)
    report = study(found, wanted, ranges, simulate=work.simulator_of(call, causes=False))
    work.deliver(call, files, report)


def validate(
    call: Call, paper: list[str] | None = None, claims: list[str] | None = None, fresh: bool = False
) -> None:
    """Judge every claim of the publications by simulation and by model; write the reproduction report.

    Finished claims are kept: after Ctrl-C the same command goes on. A claim that is not reproduced is a
    finding, not a failure: the exit code is 0.
    """
    from btqueue.cli import validate_report as work
    from btqueue.cli.files import AnswerFirst
    from btqueue.reproduction.report.document import summary

    wanted = work.chosen(paper or (), claims or ())
    folder = work.made_folder(call.out or Path())
    targets = work.report_targets(folder, force=call.force)
    began = time.perf_counter()
    outcomes = work.judge(wanted, fresh=fresh, threads=call.threads, quiet=call.quiet)
    report = work.report_of(outcomes, wall_s=time.perf_counter() - began)
    with AnswerFirst() as files:
        written = [str(folder / t.path.name) for t in targets if files.tried(t.write, work.WRITERS, report)]
        if call.as_json:
            put_json({"files": written, **summary(report)})
        else:
            work.print_summary(report)
            for file in written:
                put(file)
