"""`btqueue sensitivity`: the keys that an answer depends on, and how much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from btqueue.cli.errors import BadInput
from btqueue.cli.options import (
    AsJson,
    Auto,
    Force,
    MaybeName,
    Metrics,
    Out,
    Plot,
    Quiet,
    Sets,
    Threads,
    fraction,
)

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario import Scenario
    from btqueue.study.sensitivity.formulas import Evaluated

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
    engine: Auto = "auto",
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
    pairs: Annotated[
        bool, Option("--pairs", help="Also interactions of two keys (sobol; twice the points).")
    ] = False,
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

    Keys are ranked by their elasticity times a plausible spread. Where there is no derivative (a kink, a
    jump, noise) the table says so in place of a number.
    """
    from btqueue.cli.files import WRITERS, AnswerFirst, Target
    from btqueue.cli.sensitivity_report import print_json, print_tables, write_csv
    from btqueue.cli.tables import heading
    from btqueue.plots import FORMATS
    from btqueue.scenario import load

    if scenario is None and (formula is None or set_):
        raise BadInput("name a SCENARIO (btqueue models lists some), or a --formula")
    base = None if scenario is None else load(scenario, set_ or ())
    if formula is not None or method == "closed":
        if out is not None or plot is not None:
            raise BadInput("--out and --plot: formulas are printed; --json gives them to programs")
        _formulas(base, scenario or "", formula, at, as_json=as_json)
        return
    if at:
        raise BadInput(f"--at {at[0]}: goes with --formula")
    for option, given in (("--samples", samples is not None), ("--pairs", pairs)):
        if given and method != "sobol":
            raise BadInput(f"{option}: goes with --method sobol, not {method}")
    assert base is not None and scenario is not None
    target = Target.checked(out, force=force)
    picture = Target.checked(plot, "--plot", FORMATS, force=force)
    ranges, share = _spreads(spread or ())
    wanted = {"metrics": metric, "keys": key, "spread": ranges, "share": share}
    found = _run(
        base, method, wanted, {"samples": samples, "pairs": pairs, "seed": seed}, threads, quiet=quiet
    )
    with AnswerFirst() as files:
        files.write(target, WRITERS | {".csv": write_csv}, found, base)
        files.draw(picture, "btqueue.plots.sensitivity.sensitivity_figure", found, base.title)
        if as_json:
            print_json(base, found)
        else:
            print_tables(heading(scenario, base), found)


def _run(
    base: Scenario,
    method: Method,
    wanted: dict[str, Any],
    sampling: dict[str, Any],
    threads: int | None,
    *,
    quiet: bool,
) -> xr.Dataset:
    """Run a study with progress."""
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.progress_bars import bars
    from btqueue.study import sensitivity as study

    keep_compiled_models()
    more = {name: one for name, one in sampling.items() if one is not None} if method == "sobol" else {}
    assert method != "closed"
    with bars(quiet=quiet) as bar:
        return study.sensitivity(base, method, **wanted, **more, workers=threads, progress=bar("points"))


def _spreads(texts: Sequence[str]) -> tuple[dict[str, str], float]:
    """Return ranges by key, and the share that holds for the other keys."""
    from btqueue.study.sensitivity.factors import SHARE

    ranges, share = {}, SHARE
    for text in texts:
        key, equals, values = text.partition("=")
        if equals:
            ranges[key.strip()] = values.strip()
            continue
        share = fraction(text)
        if not 0 < share < 1 or "%" not in text:
            raise BadInput(f"--spread {text}: write KEY=LOW..HIGH, or a share such as 20%")
    return ranges, share


def _formulas(
    base: Scenario | None, name: str, formula: str | None, at: list[str] | None, *, as_json: bool
) -> None:
    from btqueue.cli.sensitivity_report import print_formula, print_formulas, print_formulas_json
    from btqueue.cli.tables import heading
    from btqueue.study.sensitivity import formula as evaluated
    from btqueue.study.sensitivity import formulas_of
    from btqueue.study.sensitivity.formulas import parse_at

    found: list[Evaluated]
    if formula is not None:
        found = [evaluated(formula, parse_at(at or ()), base)]
    else:
        if at:
            raise BadInput(f"--at {at[0]}: goes with --formula")
        assert base is not None
        found = formulas_of(base)
    if as_json:
        print_formulas_json(base, found)
    elif formula is not None:
        print_formula(found[0])
    else:
        assert base is not None
        print_formulas(heading(name, base), found)
