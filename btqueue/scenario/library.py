"""The scenarios that come with the package: systems of the literature, and networks to start from."""

from __future__ import annotations

from pathlib import Path


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
