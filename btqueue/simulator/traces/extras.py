"""Packages that only some features need."""

import importlib
from typing import Any


class MissingPackage(ImportError):
    """A package of an extra such as `btqueue[trace]` is not installed; the message says how to install it."""


def require(package: str, purpose: str, extra: str = "trace") -> Any:
    """Return the package, or say how to install it.

    Args:
        package: its name.
        purpose: the feature that needs it, as the subject of a sentence.
        extra: of btqueue, which installs it.

    Raises:
        MissingPackage: it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        message = f"{purpose} need the package {package}: pip install 'btqueue[{extra}]'"
        raise MissingPackage(message, name=package) from None
