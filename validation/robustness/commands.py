"""Commands as a user gives them: a process of its own, in which this checkout is the package."""

import os
import sys
from pathlib import Path

import btqueue

ROOT = Path(btqueue.__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
UNCOMPILED = ENVIRONMENT | {"NUMBA_DISABLE_JIT": "1"}
COMMAND = [sys.executable, "-m", "btqueue"]
DEADLINE_S = 600.0
"""Of what takes seconds on a quiet machine."""
