"""The answer of `solve` where nothing is damaged, and what it does not depend on."""

import pytest
from beside import average

import btqueue as bt

PICONET = bt.load("venugopal-2006/piconet")


def test_an_error_rate_of_zero_is_a_perfect_radio():
    """Another model answers where segments may be lost, so that round trips differ a little."""
    light = PICONET.with_(traffic__load_kbps=40)
    perfect = bt.solve(light)
    zero = {"radio__ber_good": 0.0, "radio__ber_bad": 0.0}
    for other in (
        light.with_(radio__model="constant", radio__ber=0.0),
        light.with_(radio__model="gilbert-elliott", **zero),
    ):
        answer = bt.solve(other)
        assert answer.attrs["stands"]
        for name, tolerance in {"goodput_kbps": 1e-6, "rtt_s": 0.05, "cycle_s": 0.01}.items():
            assert average(answer, name) == pytest.approx(average(perfect, name), rel=tolerance), name


def test_run_parameters_do_not_matter():
    one, other = PICONET.with_(run__seed=1), PICONET.with_(run__seed=99, run__replications=3)
    assert bt.solve(one).equals(bt.solve(other))
