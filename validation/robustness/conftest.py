"""Let the tests import the modules of `crosscheck`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "crosscheck"))
