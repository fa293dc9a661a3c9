"""Options that several commands have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def examples(*commands: str) -> str:
    """Return the last paragraphs of a command's help: examples of command lines."""
    return "\n\n".join(["Examples:", *commands])


def fraction(text: str) -> float:
    """Return the share that a number or a percentage gives; NaN for another text."""
    number = text.strip().removesuffix("%")
    try:
        return float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        return math.nan


def _names(incomplete: str) -> list[str]:
    """Complete the name of a scenario that comes with btqueue, or of a file here."""
    from btqueue.scenario.library import list_models

    files = [str(path) for path in Path().glob(f"{incomplete}*.toml")]
    return files + [name for name in list_models() if name.startswith(incomplete)]


def _keys(incomplete: str) -> list[str]:
    """Complete ``table.key=``."""
    from btqueue.scenario.problems import all_keys
    from btqueue.scenario.scenario import Scenario

    return [f"{key}=" for key in all_keys(Scenario) if key.startswith(incomplete)]


def _metrics(incomplete: str) -> list[str]:
    """Complete the name of a metric."""
    from btqueue.scenario.metrics import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


SCENARIO = "A TOML file, or a name that [b]btqueue models[/b] lists."

Name = Annotated[str, Argument(metavar="SCENARIO", help=SCENARIO, autocompletion=_names)]
MaybeName = Annotated[str | None, Argument(metavar="[SCENARIO]", help=SCENARIO, autocompletion=_names)]
NameOrPiconet = Annotated[str, Argument(metavar="[SCENARIO]", help=SCENARIO, autocompletion=_names)]
Sets = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key, as in polling.limit=10 or link.packets=DH5,3-DH5. Repeatable.",
        autocompletion=_keys,
    ),
]
Metrics = Annotated[
    list[str] | None,
    Option(
        "--metric", metavar="NAME", help="Show and draw this metric. Repeatable.", autocompletion=_metrics
    ),
]
Out = Annotated[
    Path | None, Option("--out", metavar="FILE", help="Write the result to FILE (.nc for netCDF, .csv).")
]
Report = Annotated[
    Path | None, Option("--out", metavar="FILE", help="Write the report to FILE (.json), or its rows (.csv).")
]
Plot = Annotated[Path | None, Option("--plot", metavar="FILE", help="Draw the result (.png, .svg, .pdf).")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[
    bool, Option("--force", help="Replace files that are there already; without it they are left alone.")
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress and no messages.")]
Threads = Annotated[
    int | None, Option("--threads", min=1, metavar="N", help="Cores to use at once; default: all.")
]
Map = Annotated[
    list[str] | None,
    Option("--map", metavar="THEIRS=METRIC", help="Our metric for a name of theirs. Repeatable."),
]
FlowOfResults = Annotated[
    int | None, Option("--flow", min=1, metavar="N", help="Flow of the scenario that RESULTS is about.")
]
Check = Annotated[
    bool | None,
    Option(
        "--check/--no-check",
        help="Check theory by a short simulation; default: where the simulator is compiled already.",
        show_default=False,
    ),
]
