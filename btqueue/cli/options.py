"""Options that several commands have."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace files that are there already; without it they are left alone."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, metavar="N", help="Replications at once; default: all cores."),
]
