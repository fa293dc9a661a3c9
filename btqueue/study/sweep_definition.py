"""The definition of a sweep: everything its numbers depend on, so that only equal sweeps are ever joined."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from btqueue.files import UnusableFile, read_bytes
from btqueue.scenario import Scenario
from btqueue.study.evaluate import Engine
from btqueue.study.points import Points
from btqueue.study.provenance import versions
from btqueue.study.sweep_store import FORMAT


def definition(
    scenario: Scenario, points: Points, engines: Sequence[Engine], *, independent: bool, checked: bool = False
) -> dict[str, Any]:
    """Return everything the numbers of a sweep depend on, as plain values.

    Long lists of points, and the files that the scenario names, are represented by their SHA-256.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "scenario": scenario.to_dict(),
        "written": scenario.to_dict(resolved=False),  # a point changes this, and is resolved again
        "points": _points(points),
        "engines": list(engines),
        "random_numbers": "independent" if independent else "common",
        "versions": versions(),
    }
    if checked:  # points near those that are not confirmed are simulated
        content["checked"] = True
    if files := _files(scenario, points):
        content["files"] = files
    return json.loads(json.dumps(content))  # as it is read back


def _points(points: Points) -> dict[str, Any]:
    if not points.listed:
        axes = {key: list(values) for key, values in zip(points.keys, points.columns, strict=True)}
        return {"keys": list(points.keys), "grid": axes}  # points are numbered in the order of the keys
    rows = json.dumps([list(points[number].values()) for number in range(len(points))])
    return {
        "keys": list(points.keys),
        "count": len(points),
        "sha256": hashlib.sha256(rows.encode()).hexdigest(),
    }


def _files(scenario: Scenario, points: Points) -> dict[str, str]:
    """Return the digest of each file that the scenario or a point names, if it can be read."""
    names = set(scenario.files)
    for key in ("radio.trace_file", "traffic.arrival_file"):
        if key in points.keys:
            names |= {points[number][key] for number in range(len(points))}
    digests = {}
    for name in sorted(name for name in names if name is not None):
        with suppress(UnusableFile):  # points that need it fail, and say so
            digests[name] = hashlib.sha256(read_bytes(Path(name))).hexdigest()
    return digests
