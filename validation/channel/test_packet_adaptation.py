"""Bit error rates at which packet types change places: roots of the closed forms."""

import itertools

import pytest

from btqueue.baseband import PACKET_TYPES
from btqueue.channel import closed_forms, packet_adaptation
from btqueue.study.closed_forms import closed_forms as catalogue

FORMS = catalogue()


THRESHOLDS = {
    ("payload", False): {
        "DH5 DM5 DM3 DM1": (0.0001529, 0.0050181, 0.0127017),
        "DH5 DH3 DH1": (0.0001691, 0.0009775),
    },
    ("payload", True): {
        "DH5 DH3 DM5 DM3 DM1": (0.0000847, 0.0002114, 0.0035238, 0.0103872),
        "DH5 DH3 DH1": (0.0000847, 0.0006529),
    },
    ("on-air", False): {
        "DH5 DM5 DM3 DM1": (0.0001512, 0.0050205, 0.0126474),
        "DH5 DH3 DH1": (0.0001691, 0.0009713),
    },
    ("on-air", True): {
        "DH5 DH3 DM5 DM3 DM1": (0.0000847, 0.0002069, 0.0035248, 0.0103401),
        "DH5 DH3 DH1": (0.0000847, 0.0006487),
    },
}


@pytest.mark.parametrize("bits", ["payload", "on-air"])
@pytest.mark.parametrize("same", [False, True])
def test_thresholds_between_packet_types(bits, same):
    for ladder, values in THRESHOLDS[bits, same].items():
        types = [PACKET_TYPES[name] for name in ladder.split()]
        for (fast, robust), value in zip(itertools.pairwise(types), values, strict=True):
            equation = closed_forms.threshold_equation(fast, robust, bits=bits, same_type_reply=same)
            assert closed_forms.threshold(equation) == pytest.approx(value, abs=5e-8)


@pytest.mark.parametrize(
    ("fast", "robust", "value"),
    [("DH5", "DM5", 0.000152937), ("DM5", "DM3", 0.005018106), ("DM3", "DM1", 0.012701721)],
)
def test_thresholds_to_nine_decimals_and_against_the_numerical_root(fast, robust, value):
    first, second = PACKET_TYPES[fast], PACKET_TYPES[robust]
    root = closed_forms.threshold(FORMS[f"threshold {fast} to {robust}, zero of"].expression)
    assert root == pytest.approx(value, abs=5e-10)
    crossing = packet_adaptation.goodput_crossing(first, second)
    assert root == pytest.approx(crossing, rel=1e-11)
    ladder = [PACKET_TYPES[name] for name in ("DH5", "DM5", "DM3", "DM1")]
    assert packet_adaptation.best_packet(ladder, crossing * 0.999) is first
    assert packet_adaptation.best_packet(ladder, crossing * 1.001) is second


def test_types_that_do_not_change_places_have_no_threshold():
    equation = closed_forms.threshold_equation(PACKET_TYPES["DM3"], PACKET_TYPES["DH1"], bits="payload")
    with pytest.raises(ValueError, match="do not change places"):
        closed_forms.threshold(equation, high=1e-3)
