"""How commands end: 0 done, 2 bad input, 3 no answer, 130 interrupted; a message, never a trace."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

BAD_INPUT, NO_ANSWER, INTERRUPTED = 2, 3, 130

NOT_BUILT = ("explore",)
"""Commands that are promised and do not exist yet."""

EXIT_CODES = (
    ("btqueue.cli.exits", "BadInput", BAD_INPUT),
    ("btqueue.scenario", "ScenarioError", BAD_INPUT),
    ("btqueue.network", "NoConvergence", NO_ANSWER),
    ("btqueue.network", "ImpossibleAnswer", NO_ANSWER),
    ("btqueue.simulator", "InvariantViolated", NO_ANSWER),
    ("btqueue.simulator.gpu.runs", "GpuUnavailable", BAD_INPUT),
    ("btqueue.simulator.traces.extras", "MissingPackage", BAD_INPUT),
    ("btqueue.reproduction.figures.catalogue", "NoSuchFigure", BAD_INPUT),
    ("btqueue.reproduction.figures.catalogue", "BadRecord", BAD_INPUT),
    ("btqueue.reproduction.figures.points", "ComputationFailed", NO_ANSWER),
)
"""Module, exception and exit code of what a user can run into."""


class BadInput(ValueError):
    """An argument of the command line cannot be used; the message says why."""


def exit_code(error: Exception) -> int | None:
    """Return the exit code of *error*, or None for one that nobody expected.

    Looks only into modules that were imported: the others cannot have raised it.
    """
    for module, name, code in EXIT_CODES:
        if module in sys.modules and isinstance(error, getattr(sys.modules[module], name)):
            return code
    return None


def say(message: object) -> None:
    """Print a message to standard error."""
    typer.echo(f"btqueue: {message}", err=True)


class Commands(TyperGroup):
    """The commands, with expected errors turned into messages and exit codes."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; one of `NOT_BUILT` is refused by name."""
        if cmd_name in NOT_BUILT:
            raise BadInput(f"the command {cmd_name} is not built yet")
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # a terminal without ± shows ? instead of failing
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            say(error)
            raise typer.Exit(code) from None
