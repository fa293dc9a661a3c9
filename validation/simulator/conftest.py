"""Settings of the tests of the simulator."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def wrapping_arithmetic():
    """Random numbers are made with 64-bit words that wrap around; numpy would warn of it in plain Python."""
    with np.errstate(over="ignore"):
        yield
