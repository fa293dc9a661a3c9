"""Senders of the simulator for unit tests."""

import numpy as np
import pytest
from tcp_sender_calls import Sender


@pytest.fixture
def sender(plain):
    """Makes a TCP sender in any state: `sender(cwnd=4.0, in_flight=4)`."""
    return lambda **state: Sender(plain, **state)


@pytest.fixture(autouse=True)
def wrapping_arithmetic():
    """Random numbers are made with 64-bit words that wrap around; numpy would warn of it in plain Python."""
    with np.errstate(over="ignore"):
        yield
