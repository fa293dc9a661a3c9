"""Parameters of commands: the shared ones in `Call`, and their texts from `options.toml`."""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option, Typer

if TYPE_CHECKING:
    from btqueue.cli.files import AnswerFirst
    from btqueue.scenario import Scenario

TEXTS = tomllib.loads(Path(__file__).with_name("options.toml").read_text("utf-8"))
"""By command, and `shared` by several, the texts of each parameter; of a command `examples`, too."""


@dataclass(frozen=True)
class Call:
    """The parameters that commands share; a command takes some of them."""

    scenario: str
    set_: list[str] | None = None
    out: Path | None = None
    plot: Path | None = None
    force: bool = False
    threads: int | None = None
    as_json: bool = False
    quiet: bool = False

    @cached_property
    def base(self) -> Scenario:
        """The scenario with its changed keys."""
        from btqueue.scenario import load

        return load(self.scenario, self.set_ or ())

    @property
    def heading(self) -> str:
        """Name and title of the scenario."""
        from btqueue.cli.tables import heading

        return heading(self.scenario, self.base)

    def files(self, *, report: bool = False) -> AnswerFirst:
        """Return the files of `--out`, in the formats of results or of reports, and `--plot`, checked."""
        from btqueue.cli.files import REPORTS, RESULTS, AnswerFirst

        return AnswerFirst(self.out, self.plot, REPORTS if report else RESULTS, force=self.force)


def add_command(app: Typer, command: Callable[..., None], takes: str) -> None:
    """Make a function a command: parameters get their texts, and its help ends with examples.

    An option is called like its parameter, `--subject-to` for `subject_to`, unless its `flags` say otherwise.

    Args:
        app: the program.
        command: takes a `Call` first, then its other parameters.
        takes: names of its parameters, shared ones of `Call` included, in the order of the help; `name=value`
            has another default, `name=` has none.
    """
    texts, known = TEXTS["shared"] | TEXTS[command.__name__], dict(inspect.signature(Call).parameters)
    known |= inspect.signature(command).parameters
    hints, parameters = get_type_hints(Call) | get_type_hints(command), list[inspect.Parameter]()
    for word in takes.split():
        name, other, default = word.partition("=")
        parameter = known[name].replace(default=default or None) if other else known[name]
        own = dict(texts[name])
        if own.pop("argument", False):
            if parameter.default is not parameter.empty:
                own["metavar"] = f"[{own['metavar']}]"
            described = Argument(**own)
        else:
            flags = own.pop("flags", f"--{name.strip('_').replace('_', '-')}")
            described = Option(*flags.split(), **own)
        parameters.append(parameter.replace(annotation=Annotated[hints[name], described]))

    def called(scenario: str | None = None, **given: Any) -> None:
        shared = {name: given.pop(name) for name in Call.__dataclass_fields__.keys() & given.keys()}
        command(Call(scenario or "", **shared), **given)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    app.command(epilog="\n\n".join(["Examples:", *texts["examples"]]))(called)


def fraction(text: str) -> float:
    """Return the share that a number or a percentage gives; NaN for another text."""
    number = text.strip().removesuffix("%")
    try:
        return float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        return math.nan
