"""The loop in C++ that speed is compared with: it simulates the same piconet, at 4.5 standard deviations."""

import math

import numpy as np
import other_programs
import pytest

import btqueue as bt


@pytest.mark.parametrize(("scenario", "errors"), [("piconet", False), ("piconet-errors", True)])
def test_the_loop_in_cpp_is_the_same_piconet(scenario, errors):
    try:
        theirs = other_programs.cpp_piconet(seconds=480, replications=100, errors=errors)["goodput_kbps"]
    except other_programs.NotHere as reason:
        pytest.skip(str(reason))
    loaded = bt.load(f"venugopal-2006/{scenario}").with_(run__replications=40)
    ours = bt.simulate(loaded).goodput_kbps.mean("flow").values
    error = math.hypot(np.std(theirs, ddof=1) / 10, ours.std(ddof=1) / math.sqrt(40))
    assert abs(np.mean(theirs) - ours.mean()) < 4.5 * error
    assert error < 0.05 * ours.mean()
