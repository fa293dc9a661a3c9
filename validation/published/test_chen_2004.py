"""Chen, Kapoor, Sanadidi and Gerla (2004): the closed forms of section IV, and the text about the figures.

The claims about simulations are judged in test_claims. Seeds are fixed.
"""

from itertools import pairwise

import numpy as np
import pytest

from btqueue.baseband import packet_type, packet_types
from btqueue.baseband.fec import block_error_rate
from btqueue.channel import (
    best_packet,
    goodput_crossing,
    link_quality,
    packet_error_rate,
    packet_goodput_kbps,
)
from btqueue.reproduction.claims.record import claims_of

THRESHOLDS = (0.0001529, 0.0060795, 0.0157813)
ADAPTIVE = packet_types(["DH5", "DM5", "DM3", "DM1"])


# ---------------------------------------------------------------- tables 1 to 3, equations 1 to 4


def printed_error_rate(bits: int, ber: float) -> float:
    """Equation 2 as printed: s/15 blocks (whole ones), though s/10 blocks hold s payload bits."""
    return float(1 - (1 - block_error_rate(ber)) ** (bits // 15))


@pytest.mark.parametrize(
    ("name", "symmetric", "forward"),
    [
        ("DM1", 108.8, 108.8),
        ("DM3", 258.1, 387.2),
        ("DM5", 286.7, 477.8),
        ("DH1", 172.8, 172.8),
        ("DH3", 390.4, 585.6),
        ("DH5", 433.9, 723.2),
    ],
)
def test_table_1(name, symmetric, forward):
    kind = packet_type(name)
    assert (kind.symmetric_kbps, kind.asymmetric_kbps) == pytest.approx((symmetric, forward), abs=0.1)


def test_the_link_quality_of_figure_1():
    bers = np.array([0, 1e-4, 5e-4, 1e-3, 0.1, 0.5])
    assert link_quality(bers) == pytest.approx([255, 251, 235, 215, 90, 26.875])
    for low, high, slope in ((0, 1e-3, 40_000), (1.1e-3, 0.1, 1250), (0.101, 0.6, 156.25)):
        ends = link_quality(np.array([low, high]))
        assert (ends[0] - ends[1]) / (high - low) == pytest.approx(slope)


def test_error_rates_of_uncoded_packets():
    found = [float(packet_error_rate(kind, 1e-4)) for kind in packet_types(["DH5", "DH3", "DH1"])]
    assert found == pytest.approx([0.23755, 0.13619, 0.02137], rel=5e-4)


def test_error_rates_of_coded_packets_as_printed_and_as_meant():
    # The record's values have fractional exponents, whole blocks are up to 1 % away.
    printed = [printed_error_rate(bits, 1e-3) for bits in (1816, 968, 136)]
    assert printed == pytest.approx([0.01252, 0.0067, 0.00094], rel=0.01)
    meant = [float(packet_error_rate(kind, 1e-3)) for kind in packet_types(["DM5", "DM3", "DM1"])]
    assert [m / p for m, p in zip(meant, printed, strict=True)] == pytest.approx([1.5, 1.5, 1.5], abs=0.06)


def test_coded_packets_fail_in_second_order():
    bers = np.array([1e-6, 1e-5])
    for name, order in (("DH5", 1), ("DM5", 2)):
        low, high = packet_error_rate(packet_type(name), bers)
        assert np.log10(high / low) == pytest.approx(order, abs=0.02)


def test_the_thresholds_of_table_3_follow_from_whole_blocks_of_15_payload_bits():
    payload = {"DH5": 2712, "DM5": 1816, "DM3": 968, "DM1": 136}
    rates = {"DH5": 723.2, "DM5": 477.8, "DM3": 387.2, "DM1": 108.8}

    def throughput(name, ber):
        if name == "DH5":
            return rates[name] * (1 - ber) ** payload[name]
        return rates[name] * (1 - printed_error_rate(payload[name], ber))

    for (fast, robust), threshold in zip(pairwise(payload), THRESHOLDS, strict=True):
        below, above = threshold - 1e-7, threshold + 1e-7  # the last digit printed
        assert throughput(fast, below) > throughput(robust, below)
        assert throughput(fast, above) < throughput(robust, above)


def test_with_the_right_number_of_blocks_the_upper_thresholds_are_a_sixth_lower():
    crossings = [goodput_crossing(fast, robust) for fast, robust in pairwise(ADAPTIVE)]
    assert crossings[0] == pytest.approx(THRESHOLDS[0], rel=1e-3)
    assert [c / t for c, t in zip(crossings[1:], THRESHOLDS[1:], strict=True)] == pytest.approx(
        [0.83, 0.80], abs=0.01
    )


def test_the_shorter_uncoded_packets_are_never_best():
    kinds = packet_types(["DH5", "DM5", "DH3", "DM3", "DH1", "DM1"])
    best = [best_packet(kinds, ber).name for ber in np.geomspace(1e-6, 0.05, 400)]
    assert list(dict.fromkeys(best)) == ["DH5", "DM5", "DM3", "DM1"]


def test_equation_4():
    for case in claims_of("chen-2004")["link-throughput"]["cases"]:
        if case["label"] in ("DH5", "DH3"):
            found = packet_goodput_kbps(packet_type(case["label"]), np.array(case["sweep"]["values"]))
            assert found == pytest.approx(case["sweep"]["beside"]["value"], rel=0.005)
