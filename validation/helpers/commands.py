"""Commands as a user gives them: a process of its own, in which this checkout is the package."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import btqueue

ROOT = Path(btqueue.__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
UNCOMPILED = ENVIRONMENT | {"NUMBA_DISABLE_JIT": "1"}
COMMAND = [sys.executable, "-m", "btqueue"]
DEADLINE_S = 600.0
"""Of what takes seconds on a quiet machine."""


def python(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the simulator uncompiled, if the environment does not say otherwise."""
    words, env = [sys.executable, *arguments], UNCOMPILED | environment
    return subprocess.run(words, capture_output=True, text=True, env=env, cwd=cwd, timeout=DEADLINE_S)


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, which stands for a disk without more room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
