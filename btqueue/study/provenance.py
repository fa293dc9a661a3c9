"""Versions, platform, seed and date of a result, so that it can be made again."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib import metadata

import btqueue
from btqueue.scenario import Scenario

PACKAGES = ("numpy", "jax", "numba")
"""Packages whose versions may change a result."""


def provenance(scenario: Scenario) -> dict[str, str | int]:
    """Return versions (btqueue, python and `PACKAGES`), platform, seed of *scenario*, and the date.

    The date is UTC in ISO 8601. Versions are read from the installed packages' records; nothing is imported.
    """
    return {
        "btqueue": btqueue.__version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "seed": scenario.run.seed,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
