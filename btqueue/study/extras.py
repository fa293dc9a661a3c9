"""Packages that only some studies need."""

import importlib
from typing import Any

from btqueue.simulator.traces.extras import MissingPackage


def require(package: str, purpose: str, extra: str) -> Any:
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
