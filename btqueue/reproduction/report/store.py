"""Finished claims on disk, so that work which was interrupted goes on where it was.

What an engine found about a claim is a file in `$BTQUEUE_CACHE_DIR` or the user's cache folder, in a folder
named by a digest of all that the engine's answers depend on. The file's name holds a digest of how the claim
is checked: words of the record may change, what was found stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

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
KEEP_S = 30 * 24 * 3600
"""What was found by other sources and not used for this long (seconds) is removed."""


class Store:
    """A folder of finished claims."""

    def __init__(self, folder: Path, *, quick: bool, fresh: bool = False) -> None:
        """Use a folder, see `default_folder`; `fresh` judges everything anew and still keeps it."""
        self.folder, self.quick, self.fresh = folder, quick, fresh
        self._remove_old()

    def get(self, paper: str, claim: Claim, engine: Engine) -> Seen | None:
        """Return what was kept, None if there is nothing that can be read."""
        if self.fresh:
            return None
        try:
            return Seen.from_plain(json.loads(self._path(paper, claim, engine).read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def add(self, paper: str, claim: Claim, engine: Engine, seen: Seen) -> None:
        """Keep what an engine found: a file that is complete, or not there at all."""
        path = self._path(paper, claim, engine)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(seen.to_plain()), "utf-8")
        os.replace(part, path)

    def _path(self, paper: str, claim: Claim, engine: Engine) -> Path:
        checked = {key: value for key, value in claim.items() if key not in WORDS}
        digest = hashlib.sha256(json.dumps(checked, sort_keys=True).encode()).hexdigest()[:12]
        run = "quick" if self.quick and engine.is_simulator else "full"
        folder = self.folder / f"{engine.name}-{paper}-{sources_digest(engine.name, paper)}"
        return folder / f"{claim['id']}-{run}-{digest}.json"

    def _remove_old(self) -> None:
        if not self.folder.is_dir():
            return
        for other in self.folder.iterdir():
            with contextlib.suppress(OSError):
                if time.time() - other.stat().st_mtime > KEEP_S:
                    shutil.rmtree(other, ignore_errors=True)


def default_folder() -> Path:
    """Return the folder of finished claims."""
    root = os.environ.get("BTQUEUE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "btqueue" / "claims"


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
