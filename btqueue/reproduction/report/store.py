"""Finished claims on disk, so that work which was interrupted goes on where it was.

What an engine found about a claim is a file in a cache folder that is named by a digest of all that the
engine's answers depend on. The file's name holds a digest of how the claim is checked: words of the record
may change, what was found stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from btqueue.caches import cache_folder, keep
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.record import Claim
from btqueue.reproduction.report.outcomes import Seen
from btqueue.scenario.library import models_folder

PACKAGE = Path(__file__).parents[2]
GROUND = ("baseband", "channel", "scenario")
SOURCES = {
    "simulate": (*GROUND, "simulator"),
    "solve": (*GROUND, "queueing", "transport", "network"),
}
"""Parts of the package that the answers of an engine depend on."""
CHECKS = ("judgement.py", "engines.py", "record.py", "recorded.py", "papers.py")
"""Modules of `btqueue.reproduction.claims` that all checks use."""
PACKAGES = ("numpy", "scipy", "jax", "numba")
WORDS = ("where", "statement", "published", "verdict", "reason", "note", "misprints", "computed", "unit")
"""Keys of a claim that no check reads."""


class Store:
    """The finished claims in the cache."""

    def __init__(self, *, quick: bool, fresh: bool = False) -> None:
        """Use the cache; `fresh` judges everything anew and still keeps it."""
        self.quick, self.fresh = quick, fresh

    def get(self, paper: str, claim: Claim, engine: Engine) -> Seen | None:
        """Return what was kept, None if there is nothing that can be read."""
        if self.fresh:
            return None
        try:
            return Seen.from_plain(json.loads(self._path(paper, claim, engine).read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def add(self, paper: str, claim: Claim, engine: Engine, seen: Seen) -> None:
        """Keep what an engine found."""
        keep(self._path(paper, claim, engine), json.dumps(seen.to_plain()).encode())

    def _path(self, paper: str, claim: Claim, engine: Engine) -> Path:
        checked = {key: value for key, value in claim.items() if key not in WORDS}
        digest = hashlib.sha256(json.dumps(checked, sort_keys=True).encode()).hexdigest()[:12]
        run = "quick" if self.quick and engine.is_simulator else "full"
        folder = cache_folder("claims", f"{engine.name}-{paper}-{sources_digest(engine.name, paper)}")
        return folder / f"{claim['id']}-{run}-{digest}.json"


@cache
def sources_digest(engine: str, paper: str) -> str:
    """Return a short digest of all that an engine's answers for a publication depend on."""
    digest = hashlib.sha256(" ".join(metadata.version(name) for name in PACKAGES).encode())
    for path in _sources(engine, paper):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(engine: str, paper: str) -> Iterator[Path]:
    """Yield the sources of the engine and of the checks, and the scenarios."""
    claims, scenarios = PACKAGE / "reproduction" / "claims", models_folder() / paper
    for part in (*(PACKAGE / name for name in SOURCES[engine]), claims / paper.replace("-", "_")):
        yield from _files(part.rglob("*"), (".py", ".csv"))
    yield from (claims / name for name in CHECKS)
    # How each claim is checked is in the name of its file.
    yield from (path for path in _files(scenarios.iterdir(), (".toml", ".txt")) if path.stem != "published")


def _files(paths: Iterable[Path], suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(path for path in paths if path.suffix in suffixes)
