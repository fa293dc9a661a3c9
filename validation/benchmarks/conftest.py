"""Let the benchmarks import their neighbours `measurements` and `peer_models`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
