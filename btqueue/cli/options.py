"""Arguments and options of commands: their texts, which `options.toml` has, and their completions."""

import inspect
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option, Typer

TEXTS = tomllib.loads(Path(__file__).with_name("options.toml").read_text("utf-8"))
"""By command, and `shared` by several, the texts of each parameter; of a command `examples`, too."""


def add_command(app: Typer, command: Callable[..., None]) -> None:
    """Make a function a command: parameters get their texts, and its help ends with examples.

    An option is called like its parameter, `--subject-to` for `subject_to`, unless its `flags` say otherwise.
    """
    texts, hints = TEXTS["shared"] | TEXTS[command.__name__], get_type_hints(command)
    for name, parameter in inspect.signature(command).parameters.items():
        own = dict(texts[name])
        if "completes" in own:
            own["autocompletion"] = COMPLETIONS[own.pop("completes")]
        if own.pop("argument", False):
            if parameter.default is not parameter.empty:
                own["metavar"] = f"[{own['metavar']}]"
            hints[name] = Annotated[hints[name], Argument(**own)]
        else:
            flags = own.pop("flags", f"--{name.strip('_').replace('_', '-')}")
            hints[name] = Annotated[hints[name], Option(*flags.split(), **own)]
    command.__annotations__ = hints
    app.command(epilog="\n\n".join(["Examples:", *texts["examples"]]))(command)


def fraction(text: str) -> float:
    """Return the share that a number or a percentage gives; NaN for another text."""
    number = text.strip().removesuffix("%")
    try:
        return float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        return math.nan


def _names(incomplete: str) -> list[str]:
    """Complete the name of a scenario that comes with btqueue, or of a file here."""
    from btqueue.scenario.loading import list_models

    files = [str(path) for path in Path().glob(f"{incomplete}*.toml")]
    return files + [name for name in list_models() if name.startswith(incomplete)]


def _keys(incomplete: str) -> list[str]:
    """Complete ``table.key=``."""
    from btqueue.scenario.problems import all_keys
    from btqueue.scenario.scenario import Scenario

    return [f"{key}=" for key in all_keys(Scenario) if key.startswith(incomplete)]


def _metrics(incomplete: str) -> list[str]:
    from btqueue.scenario.metrics import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


COMPLETIONS: dict[str, Any] = {"names": _names, "keys": _keys, "metrics": _metrics}
