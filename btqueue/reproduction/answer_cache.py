"""Results of earlier computations: files in cache folders whose names end in a digest of their inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from btqueue.caches import keep
from btqueue.study.provenance import versions

PACKAGE = Path(__file__).parents[1]
GROUND = ("baseband", "channel", "scenario", "study/evaluate.py", "study/summary.py")
SOURCES = {"simulate": (*GROUND, "simulator"), "solve": (*GROUND, "queueing", "transport", "network")}
"""Files and folders of the package that the answers of an engine depend on."""
SUFFIXES = (".py", ".csv", ".toml", ".txt")

Kept = TypeVar("Kept")


@cache
def source_digest(engine: str, *others: Path) -> str:
    """Return a short digest of the sources of an engine, of the packages below it, and of other sources."""
    digest = hashlib.sha256(digest_of(versions()).encode())
    for place in (*(PACKAGE / name for name in SOURCES[engine]), *others):
        for source in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if source.suffix in SUFFIXES:
                digest.update(source.relative_to(place.parent).as_posix().encode())
                digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def digest_of(content: Any) -> str:
    """Return a digest of plain values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Store:
    """The answers in the cache; `computed` of them were added."""

    def __init__(self, *, fresh: bool = False) -> None:
        """Use the cache; `fresh` computes everything anew, and answers are still kept."""
        self.fresh = fresh
        self.computed = 0

    def get(self, path: Path, from_plain: Callable[[Any], Kept]) -> Kept | None:
        """Return the answer that was kept, None if there is none that can be read."""
        if self.fresh:
            return None
        try:
            return from_plain(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, path: Path, content: Any) -> None:
        """Keep an answer as plain values."""
        self.computed += 1
        keep(path, json.dumps(content).encode())
