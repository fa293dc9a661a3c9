"""Packages that are needed for files of traces only."""

import importlib
from typing import Any


def require(package: str, purpose: str) -> Any:
    """Return the package, or say how to install it.

    Raises:
        ImportError: it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ImportError(
            f"{purpose} need the package {package}: pip install 'btqueue[trace]'", name=package
        ) from None
