"""Finished claims on disk, so that work which was interrupted goes on where it was.

An engine's finding about a claim is a file in a cache folder. The folder's name is a digest of everything the
engine's answers depend on. The file's name holds a digest of the claim's checks: if only words of the record
change, the finding stays.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from btqueue.caches import cache_folder
from btqueue.reproduction import claims
from btqueue.reproduction.answer_cache import digest_of, read, source_digest, write
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.record import Claim
from btqueue.reproduction.report.outcomes import Seen
from btqueue.scenario.library import models_folder

CHECKS = ("judgement.py", "engines.py", "record.py", "recorded.py", "papers.py")
"""Modules of `btqueue.reproduction.claims` that all checks use."""
WORDS = (
    "where",
    "blind",
    "statement",
    "published",
    "verdict",
    "reason",
    "note",
    "misprints",
    "computed",
    "unit",
)
"""Keys of a claim that no check reads."""


class Store:
    """The finished claims in the cache."""

    def __init__(self, *, quick: bool, fresh: bool = False) -> None:
        """Use the cache; `fresh` judges everything anew and still keeps it."""
        self.quick, self.fresh = quick, fresh

    def get(self, paper: str, claim: Claim, engine: Engine) -> Seen | None:
        """Return the kept finding, None if it is missing or cannot be read."""
        if self.fresh:
            return None
        return read(self._path(paper, claim, engine), Seen.from_plain)

    def add(self, paper: str, claim: Claim, engine: Engine, seen: Seen) -> None:
        """Keep an engine's finding."""
        write(self._path(paper, claim, engine), seen.to_plain())

    def _path(self, paper: str, claim: Claim, engine: Engine) -> Path:
        checked = {key: value for key, value in claim.items() if key not in WORDS}
        run = "quick" if self.quick and engine.is_simulator else "full"
        folder = cache_folder("claims", f"{engine.name}-{paper}-{sources_digest(engine.name, paper)}")
        return folder / f"{claim['id']}-{run}-{digest_of(checked)[:12]}.json"


@cache
def sources_digest(engine: str, paper: str) -> str:
    """Return a short digest of everything an engine's answers for a publication depend on."""
    folder = Path(claims.__file__).parent
    checks = [folder / name for name in (*CHECKS, f"{paper.replace('-', '_')}.py")]
    # How each claim is checked is in the name of its file.
    scenarios = [path for path in sorted((models_folder() / paper).iterdir()) if path.stem != "published"]
    return source_digest(engine, *checks, *scenarios)
