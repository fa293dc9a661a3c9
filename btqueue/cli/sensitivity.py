"""`btqueue sensitivity`: the keys that an answer depends on, and how much."""

from typing import Literal

from btqueue.cli.errors import BadInput
from btqueue.cli.options import Call

Method = Literal["local", "sobol", "closed"]


def sensitivity(
    call: Call,
    method: Method = "local",
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
    if samples is not None and method != "sobol":
        raise BadInput(f"--samples: goes with --method sobol, not {method}")
    assert base is not None
    files = call.files()
    ranges, share = work.spreads(spread or ())
    wanted = {"metrics": metric, "keys": key, "spread": ranges, "share": share, "workers": call.threads}
    if method == "sobol":
        wanted |= {"seed": seed} | ({} if samples is None else {"samples": samples})
    found = work.run(base, method, wanted, quiet=call.quiet)
    with files:
        files.write(WRITERS | {".csv": work.write_csv}, found, base)
        files.draw("btqueue.plots.sensitivity.sensitivity_figure", found, base.title)
        if call.as_json:
            work.print_json(base, found)
        else:
            work.print_tables(title, found)
