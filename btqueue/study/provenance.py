"""Versions, platform, seed and date of a result, so that it can be made again; and its JSON object."""

import json
import math
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any

import btqueue
from btqueue.scenario import Scenario

PACKAGES = ("numpy", "scipy", "jax", "jaxlib", "numba")
"""Packages whose versions may change a number."""
NAMED = ("btqueue", "python", "numpy", "jax", "numba")
"""Versions that results name."""


@cache
def versions() -> dict[str, str]:
    """Return the versions of btqueue, python and `PACKAGES`, from the installed packages' records."""
    found = {"btqueue": btqueue.__version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in PACKAGES}


def provenance(scenario: Scenario) -> dict[str, str | int]:
    """Return versions of `NAMED`, platform, seed of *scenario*, and the date, which is UTC in ISO 8601."""
    return {
        **{name: versions()[name] for name in NAMED},
        "platform": platform.platform(),
        "seed": scenario.run.seed,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def attributes(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario (as JSON) and the provenance of a result as attributes of its dataset."""
    made_with = {f"provenance_{key}": value for key, value in provenance(scenario).items()}
    return {"scenario": json.dumps(scenario.to_dict()), **made_with}


def as_document(scenario: Scenario, **parts: Any) -> dict[str, Any]:
    """Return the JSON object of a result: its scenario, the parts of the result, and the provenance."""
    return plain({"scenario": scenario.to_dict(), **parts, "provenance": provenance(scenario)})


def plain(value: Any) -> Any:
    """Return a value, or nested tables and lists of values, with None for numbers that JSON cannot hold."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
