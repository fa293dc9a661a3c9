"""Reading scenarios from files: the user's files, and files that come with the package."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from btqueue.files import UnusableFile, read_bytes
from btqueue.scenario.errors import ScenarioError, shown
from btqueue.text_files import BadText, BadToml, decoded, parse_toml

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

LARGEST_FILE_BYTES = 10_000_000
"""A scenario file beyond this size is surely something else."""


def models_folder() -> Path:
    """Return the folder with one subfolder for each system of the literature, and `practice`."""
    return shipped_folder("models")


def shipped_folder(name: str) -> Path:
    """Return a folder that stands beside the package in a checkout, and inside it in an installed wheel.

    Raises:
        FileNotFoundError: if the package was installed without it.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"no folder '{name}' in or beside {package}: the installation is incomplete")


def list_models() -> tuple[str, ...]:
    """Return the names of all scenarios in :func:`models_folder`, such as ``venugopal-2006/piconet``."""
    folder = models_folder()
    files = (path for path in folder.glob("*/*.toml") if path.stem != "published")  # no record of a paper
    return tuple(sorted(path.relative_to(folder).with_suffix("").as_posix() for path in files))


def load(name_or_path: str | os.PathLike[str], overrides: Mapping[str, Any] | Iterable[str] = ()) -> Scenario:
    """Read a scenario from a TOML file, or by its name in the library of models.

    Args:
        name_or_path: a file, or a name such as ``venugopal-2006/piconet``; a file of that name comes first.
        overrides: dotted keys with values (``{"polling.limit": 10}``), or settings as on the command line
            (``["polling.limit=10"]``).

    Raises:
        ScenarioError: if no file or model has this name, it cannot be read, or the scenario is not valid.
    """
    from btqueue.scenario.scenario import Scenario

    path = find(name_or_path)
    scenario = Scenario.from_dict(with_files_beside(read_toml(path), path.parent))
    if isinstance(overrides, Mapping):
        return scenario.changed(overrides) if overrides else scenario
    settings = [overrides] if isinstance(overrides, str) else list(overrides)
    return scenario.with_sets(settings) if settings else scenario


def find(name_or_path: str | os.PathLike[str]) -> Path:
    """Return the file of a scenario given by path or by name in the library.

    Raises:
        ScenarioError: if it does not exist, or is a folder.
    """
    text = os.fspath(name_or_path)
    is_folder = os.path.isdir(text)
    if os.path.exists(text) and not is_folder:
        return Path(text)
    names = list_models()
    name = text.removesuffix(".toml")
    if name in names:
        return models_folder() / f"{name}.toml"
    if is_folder or any(known.startswith(f"{text}/") for known in names):
        inside = [known for known in names if known.startswith(f"{text}/")]
        hint = f"; the scenarios in it are {', '.join(inside)}" if inside else "; give a TOML file"
        raise ScenarioError(f"{shown(text)} is a folder{hint}", value=text)
    from btqueue.scenario.problems import closest

    by_last_part = {known.rpartition("/")[2]: known for known in reversed(names)}
    guess = by_last_part.get(name) or closest(name, names) or closest(text, _toml_files_beside(text))
    hint = f"did you mean '{guess}'?" if guess else "btqueue models lists the models"
    raise ScenarioError(f"no scenario file or model {shown(text)}: {hint}", value=text, guess=guess)


def _toml_files_beside(path: str) -> list[str]:
    try:
        return [str(other) for other in Path(path).parent.glob("*.toml")]
    except (OSError, ValueError):
        return []


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        ScenarioError: if it cannot be read, is no text, or is no TOML (with the line).
    """
    try:
        return parse_toml(toml_text(path))
    except BadToml as error:
        raise ScenarioError(f"{path} {error}", value=str(path)) from None


def toml_text(path: Path) -> str:
    """Return a scenario file as it is written.

    Raises:
        ScenarioError: if it cannot be read, is no text, or is too large for a scenario.
    """
    try:
        return decoded(read_bytes(path, LARGEST_FILE_BYTES)).replace("\r\n", "\n")
    except (UnusableFile, BadText) as error:
        raise ScenarioError(f"{path} {error} (a scenario is a TOML file)", value=str(path)) from None


def with_files_beside(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the content of a scenario file in which the files that it names are found from anywhere.

    A trace or an arrival file that lies beside the scenario file is named by its full path; any other name
    stays as it is, and counts from the working directory.
    """
    files = {"radio": "trace_file", "traffic": "arrival_file", "network": "arrival_file"}
    for table, key in files.items():
        keys = data.get(table)
        listed = keys.get("flows" if table == "network" else "links") if isinstance(keys, dict) else None
        for place in (keys, *(listed if isinstance(listed, list) else ())):
            if not isinstance(place, dict):
                continue
            if isinstance(name := place.get(key), str) and os.path.isfile(folder / name):
                place[key] = str((folder / name).resolve())
    return data
