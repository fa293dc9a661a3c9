"""`btqueue sensitivity`: the keys that an answer depends on, and how much."""

from pathlib import Path
from typing import Literal

from btqueue.cli.errors import BadInput

Method = Literal["local", "sobol", "closed"]


def sensitivity(
    scenario: str | None = None,
    method: Method = "local",
    metric: list[str] | None = None,
    key: list[str] | None = None,
    spread: list[str] | None = None,
    samples: int | None = None,
    seed: int = 1,
    formula: str | None = None,
    at: list[str] | None = None,
    set_: list[str] | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    threads: int | None = None,
    force: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Show how metrics depend on keys: derivatives, elasticities, shares of variance, formulas.

    Keys are ranked by the change of the metric over a plausible spread. Where there is no derivative (a
    kink, a jump, noise) the table says so in place of a number.
    """
    from btqueue.cli import sensitivity_report as work
    from btqueue.cli.files import WRITERS, AnswerFirst
    from btqueue.cli.tables import heading
    from btqueue.scenario import load

    if scenario is None and (formula is None or set_):
        raise BadInput("name a SCENARIO (btqueue models lists some), or a --formula")
    base = None if scenario is None else load(scenario, set_ or ())
    title = "" if base is None else heading(scenario or "", base)
    if at and formula is None:
        raise BadInput(f"--at {at[0]}: goes with --formula")
    if formula is not None or method == "closed":
        if out is not None or plot is not None:
            raise BadInput("--out and --plot: formulas are printed; --json gives them to programs")
        work.show_formulas(base, title, formula, at, as_json=as_json)
        return
    if samples is not None and method != "sobol":
        raise BadInput(f"--samples: goes with --method sobol, not {method}")
    assert base is not None
    files = AnswerFirst(out, plot, force=force)
    ranges, share = work.spreads(spread or ())
    wanted = {"metrics": metric, "keys": key, "spread": ranges, "share": share, "workers": threads}
    if method == "sobol":
        wanted |= {"seed": seed} | ({} if samples is None else {"samples": samples})
    found = work.run(base, method, wanted, quiet=quiet)
    with files:
        files.write(WRITERS | {".csv": work.write_csv}, found, base)
        files.draw("btqueue.plots.sensitivity.sensitivity_figure", found, base.title)
        if as_json:
            work.print_json(base, found)
        else:
            work.print_tables(title, found)
