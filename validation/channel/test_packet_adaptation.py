"""Bit error rates at which packet types change places: roots of the closed forms."""

import pytest
from scipy.optimize import brentq

from btqueue.baseband import PACKET_TYPES
from btqueue.channel import packet_adaptation
from btqueue.study.closed_forms import closed_forms


@pytest.mark.parametrize(
    ("fast", "robust", "value"),
    [("DH5", "DM5", 0.000152937), ("DM5", "DM3", 0.005018106), ("DM3", "DM1", 0.012701721)],
)
def test_thresholds_to_nine_decimals_and_against_the_numerical_root(fast, robust, value):
    first, second = PACKET_TYPES[fast], PACKET_TYPES[robust]
    root = brentq(
        closed_forms()[f"threshold {fast} to {robust}, zero of"].function("b"), 1e-7, 0.05, xtol=1e-16
    )
    assert root == pytest.approx(value, abs=5e-10)
    crossing = packet_adaptation.goodput_crossing(first, second)
    assert root == pytest.approx(crossing, rel=1e-11)
    ladder = [PACKET_TYPES[name] for name in ("DH5", "DM5", "DM3", "DM1")]
    assert packet_adaptation.best_packet(ladder, crossing * 0.999) is first
    assert packet_adaptation.best_packet(ladder, crossing * 1.001) is second


def test_types_that_do_not_change_places_have_no_threshold():
    for first, second, ber_max in (("DM3", "DH1", 1e-3), ("DH1", "DM3", 1e-3), ("DM5", "DH5", 0.05)):
        with pytest.raises(ValueError, match="do not change places"):
            packet_adaptation.goodput_crossing(PACKET_TYPES[first], PACKET_TYPES[second], ber_max=ber_max)
