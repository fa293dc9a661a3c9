"""Packet error rates from bit error rates: published and recomputed values, limits, and symbolic twins."""

import math
from typing import Any, get_args

import numpy as np
import pytest

from btqueue.baseband import PACKET_TYPES, PacketType, packet_type
from btqueue.channel import (
    Bits,
    ber_from_link_quality,
    coded_error_rate,
    link_quality,
    on_air_error_rate,
    packet_error_rate,
    reply_error_rate,
    uncoded_error_rate,
)
from btqueue.channel.error_rates import access_code_error_rate, header_error_rate

CONVENTIONS: tuple[Bits, ...] = get_args(Bits)

# (bit error rate, type): payload only, on air with up to 7 errors in the sync word
CHECK_VALUES = {
    (6.8979e-5, "DM1"): (0.000007, 0.000008),
    (6.8979e-5, "DH1"): (0.014790, 0.016419),
    (6.8979e-5, "DM3"): (0.000048, 0.000050),
    (6.8979e-5, "DH3"): (0.096057, 0.098050),
    (6.8979e-5, "DM5"): (0.000090, 0.000092),
    (6.8979e-5, "DH5"): (0.170621, 0.172450),
    (1.263e-3, "DM1"): (0.002317, 0.002733),
    (1.263e-3, "DH1"): (0.238892, 0.261695),
    (1.263e-3, "DM3"): (0.015943, 0.016516),
    (1.263e-3, "DH3"): (0.842794, 0.849038),
    (1.263e-3, "DM5"): (0.029383, 0.029949),
    (1.263e-3, "DH5"): (0.967529, 0.968819),
    (1e-2, "DM1"): (0.126695, 0.148016),
    (1e-2, "DH1"): (0.885922, 0.910851),
    (1e-2, "DM3"): (0.608831, 0.622056),
    (1e-2, "DH3"): (1.000000, 1.000000),
    (1e-2, "DM5"): (0.824788, 0.830712),
    (1e-2, "DH5"): (1.000000, 1.000000),
}


@pytest.mark.parametrize(("ber", "name"), CHECK_VALUES)
def test_check_values(ber: float, name: str) -> None:
    payload, on_air = CHECK_VALUES[ber, name]
    packet = packet_type(name)
    assert float(packet_error_rate(packet, ber, bits="payload")) == pytest.approx(payload, abs=5.1e-7)
    assert float(packet_error_rate(packet, ber, bits="on-air")) == pytest.approx(on_air, abs=5.1e-7)


def test_header_and_access_code_check_values() -> None:
    assert 1 - float(header_error_rate(1e-2)) == pytest.approx(0.994649565, abs=5e-10)
    assert 1 - float(access_code_error_rate(1e-2)) == pytest.approx(0.999999731, abs=5e-10)
    both = 1 - (1 - float(header_error_rate(1e-2))) * (1 - float(access_code_error_rate(1e-2)))
    assert float(reply_error_rate(1e-2)) == pytest.approx(both, rel=1e-12)


def test_tiny_error_rates_keep_their_digits() -> None:
    ber = 1e-18
    assert float(uncoded_error_rate(2712, ber)) == pytest.approx(2712e-18, rel=1e-14)
    assert float(coded_error_rate(180, ber)) == pytest.approx(180 * 105e-36, rel=1e-13)
    assert float(header_error_rate(ber)) == pytest.approx(18 * 3e-36, rel=1e-14)
    assert float(access_code_error_rate(1e-5)) == pytest.approx(math.comb(64, 8) * 1e-40, rel=1e-3)
    assert float(on_air_error_rate(packet_type("DH5"), ber)) == pytest.approx(2744e-18, rel=1e-14)


@pytest.mark.parametrize("bits", CONVENTIONS)
@pytest.mark.parametrize("packet", PACKET_TYPES.values(), ids=lambda p: p.name)
def test_limits(packet: PacketType, bits: Bits) -> None:
    assert float(packet_error_rate(packet, 0.0, bits=bits)) == 0.0
    assert float(packet_error_rate(packet, 1.0, bits=bits)) == 1.0
    assert float(packet_error_rate(packet, 0.5, bits=bits)) == 1.0  # no packet survives coin flips


@pytest.mark.parametrize("bad", [-1e-9, 1.5, np.nan])
def test_what_is_no_probability_is_rejected(bad: float) -> None:
    with pytest.raises(ValueError, match="bit error rate"):
        packet_error_rate(packet_type("DH5"), bad)
    with pytest.raises(ValueError, match="bit error rate"):
        packet_error_rate(packet_type("DM5"), [0.1, bad], bits="on-air")


def test_bad_options_are_named() -> None:
    unknown: Any = "all"
    with pytest.raises(ValueError, match="payload, on-air"):
        packet_error_rate(packet_type("DH5"), 0.1, bits=unknown)


def test_link_quality_check_values() -> None:
    ber = np.array([0, 0.0001, 0.0005, 0.001, 0.1, 0.5])
    quality = np.array([255, 251, 235, 215, 90, 26.875])
    np.testing.assert_allclose(link_quality(ber), quality, rtol=1e-14)
    np.testing.assert_allclose(ber_from_link_quality(quality), ber, rtol=1e-12, atol=1e-18)
    thresholds = link_quality([0.0001529, 0.0060795, 0.0157813])
    np.testing.assert_allclose(thresholds, [248.884, 207.401, 195.273], atol=5.1e-4)


def test_link_quality_jumps_at_one_in_a_thousand_and_ends_at_zero() -> None:
    assert float(link_quality(np.nextafter(1e-3, 1))) == pytest.approx(213.75, abs=1e-9)
    assert float(link_quality(0.9)) == 0.0
    with pytest.raises(ValueError, match="link quality"):
        ber_from_link_quality(256)
