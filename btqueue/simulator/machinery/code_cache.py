"""Where the simulator's compiled code is kept; to find out, numba need not be imported, which takes long.

numba's disk cache looks at the file of the cached function only, not at the functions that it calls. The
cache folder is therefore named after a digest of all the simulator's sources: any change starts an empty one.
"""

import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

from btqueue.caches import cache_folder

SOURCES = Path(__file__).parents[1]
"""The folder of the simulator's package."""


def source_digest() -> str:
    """Return a short digest of every source file of the simulator and of the versions of Python and numba."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {version('numba')}".encode())
    for source in sorted(SOURCES.rglob("*.py")):
        digest.update(source.relative_to(SOURCES).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def code_folder() -> Path:
    """Return the cache folder of the code that is compiled from these sources, where they lie.

    numba finds no code that was compiled for a file in another place, or before the file was installed again.
    With one folder for all installations the simulator would be called compiled and would not be.
    """
    loop = SOURCES / "engine.py"
    installed = f"{source_digest()} {loop} {loop.stat().st_mtime_ns}"
    return cache_folder("simulator", hashlib.sha256(installed.encode()).hexdigest()[:16])


def holds_event_loop() -> bool:
    """Whether machine code of the event loop is in the cache."""
    return any(code_folder().rglob("engine.advance-*.nbc"))
