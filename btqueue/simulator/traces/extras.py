"""Packages that are needed for files of traces only."""

import importlib
from typing import Any


class MissingPackage(ImportError):
    """A package of `btqueue[trace]` is not installed; the message says how to install it."""


def require(package: str, purpose: str) -> Any:
    """Return the package, or say how to install it.

    Raises:
        MissingPackage: it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingPackage(
            f"{purpose} need the package {package}: pip install 'btqueue[trace]'", name=package
        ) from None
