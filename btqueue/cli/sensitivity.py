"""`btqueue sensitivity`: the keys that an answer depends on, and how much."""

from __future__ import annotations

from typing import Annotated, Literal

from typer import Option

from btqueue.cli.errors import BadInput
from btqueue.cli.options import AsJson, Force, MaybeName, Metrics, Out, Plot, Quiet, Sets, Threads

Method = Literal["local", "sobol", "closed"]

EXAMPLES = (
    "btqueue sensitivity venugopal-2006/piconet",
    "btqueue sensitivity venugopal-2006/piconet --method sobol --metric goodput_kbps "
    "--spread radio.ber=1e-6..1e-4",
)
"""That the help shows."""


def sensitivity(
    scenario: MaybeName = None,
    method: Annotated[
        Method,
        Option(
            help="Derivatives at the scenario, and the ends of its spreads; shares of variance over the "
            "spreads (sobol); or formulas."
        ),
    ] = "local",
    metric: Metrics = None,
    key: Annotated[
        list[str] | None, Option(metavar="KEY", help="By this key; default: all that matter. Repeatable.")
    ] = None,
    spread: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=LOW..HIGH",
            help="Plausible range of a key, or a share such as 20% for all others (10% by default). "
            "Repeatable.",
        ),
    ] = None,
    samples: Annotated[int | None, Option(min=2, metavar="N", help="Blocks of points (sobol).")] = None,
    seed: Annotated[int, Option("--seed", min=0, metavar="N", help="Of sobol.")] = 1,
    formula: Annotated[
        str | None, Option(metavar="NAME", help="One closed form, its derivatives and LaTeX.")
    ] = None,
    at: Annotated[
        list[str] | None, Option(metavar="SYMBOL=NUMBER", help="Number for --formula. Repeatable.")
    ] = None,
    set_: Sets = None,
    out: Out = None,
    plot: Plot = None,
    threads: Threads = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show how metrics depend on keys: derivatives, elasticities, shares of variance, formulas.

    Keys are ranked by the change of the metric over a plausible spread. Where there is no derivative (a
    kink, a jump, noise) the table says so in place of a number.
    """
    from btqueue.cli.files import WRITERS, AnswerFirst, Target
    from btqueue.cli.sensitivity_report import (
        print_json,
        print_tables,
        run,
        show_formulas,
        spreads,
        write_csv,
    )
    from btqueue.cli.tables import heading
    from btqueue.plots import FORMATS
    from btqueue.scenario import load

    if scenario is None and (formula is None or set_):
        raise BadInput("name a SCENARIO (btqueue models lists some), or a --formula")
    base = None if scenario is None else load(scenario, set_ or ())
    if formula is not None or method == "closed":
        if out is not None or plot is not None:
            raise BadInput("--out and --plot: formulas are printed; --json gives them to programs")
        show_formulas(base, scenario or "", formula, at, as_json=as_json)
        return
    if at:
        raise BadInput(f"--at {at[0]}: goes with --formula")
    if samples is not None and method != "sobol":
        raise BadInput(f"--samples: goes with --method sobol, not {method}")
    assert base is not None and scenario is not None
    target = Target.checked(out, force=force)
    picture = Target.checked(plot, "--plot", FORMATS, force=force)
    ranges, share = spreads(spread or ())
    wanted = {"metrics": metric, "keys": key, "spread": ranges, "share": share}
    found = run(base, method, wanted, {"samples": samples, "seed": seed}, threads, quiet=quiet)
    with AnswerFirst() as files:
        files.write(target, WRITERS | {".csv": write_csv}, found, base)
        files.draw(picture, "btqueue.plots.sensitivity.sensitivity_figure", found, base.title)
        if as_json:
            print_json(base, found)
        else:
            print_tables(heading(scenario, base), found)
