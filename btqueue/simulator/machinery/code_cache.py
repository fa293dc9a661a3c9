"""Where the simulator's compiled code is kept; to find out, numba need not be imported, which takes long.

The cache folder is named after a digest of all the simulator's sources: any change starts an empty one.
"""

import hashlib
import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from btqueue.caches import cache_folder

SOURCES = Path(__file__).parents[1]
"""The folder of the simulator's package."""
CONSTANTS = Path(__file__).parents[2] / "scenario" / "transport.py"
"""The only other file whose values are compiled in."""


def source_digest() -> str:
    """Return a short digest of all that is compiled, and of the versions of Python and numba."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {version('numba')}".encode())
    digest.update(CONSTANTS.read_bytes())
    for source in sorted(SOURCES.rglob("*.py")):
        digest.update(source.relative_to(SOURCES).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


digest_at_start = cache(source_digest)
"""The digest of the sources that this process has read."""


def code_folder() -> Path:
    """Return the cache folder of the code that is compiled from these sources."""
    return cache_folder("simulator", digest_at_start())


def code_file(function: str, arguments: str) -> Path:
    """Return the file with the code of a function, for arguments of some kinds and this processor."""
    import llvmlite.binding as llvm

    settings = [os.environ.get(f"NUMBA_{name}") for name in ("CPU_NAME", "CPU_FEATURES", "ENABLE_AVX")]
    here = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    digest = hashlib.sha256(f"{arguments} {here} {settings}".encode()).hexdigest()[:16]
    return code_folder() / f"{function}-{digest}.o"
