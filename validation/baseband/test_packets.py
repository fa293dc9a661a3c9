"""The packet table against the Bluetooth specification, and the (15,10) code against its own definition."""

import numpy as np
import pytest

from btqueue.baseband import (
    PACKET_TYPES,
    block_error_rate,
    block_success_rate,
    packet_type,
    packet_types,
)

# name: slots, payload, payload header, body bits, FEC blocks of the body, us on air, asym. and sym. kbps
SPECIFICATION = {
    "DM1": (1, 17, 1, 160, 16, 366, 108.8, 108.8),
    "DH1": (1, 27, 1, 240, 0, 366, 172.8, 172.8),
    "DM3": (3, 121, 2, 1000, 100, 1626, 387.2, 258.1),
    "DH3": (3, 183, 2, 1496, 0, 1622, 585.6, 390.4),
    "DM5": (5, 224, 2, 1824, 183, 2871, 477.9, 286.7),
    "DH5": (5, 339, 2, 2744, 0, 2870, 723.2, 433.9),
    "2-DH1": (1, 54, 2, 464, 0, 376, 345.6, 345.6),
    "2-DH3": (3, 367, 2, 2968, 0, 1628, 1174.4, 782.9),
    "2-DH5": (5, 679, 2, 5464, 0, 2876, 1448.5, 869.1),
    "3-DH1": (1, 83, 2, 696, 0, 376, 531.2, 531.2),
    "3-DH3": (3, 552, 2, 4448, 0, 1627, 1766.4, 1177.6),
    "3-DH5": (5, 1021, 2, 8200, 0, 2878, 2178.1, 1306.9),
}

# g(D) = (D + 1)(D^4 + D + 1) = D^5 + D^4 + D^2 + 1
GENERATOR = 0b110101


def test_table_holds_exactly_the_acl_types() -> None:
    assert set(PACKET_TYPES) == set(SPECIFICATION)


@pytest.mark.parametrize("name", SPECIFICATION)
def test_packet_matches_specification(name: str) -> None:
    packet = packet_type(name)
    slots, payload, header, body_bits, blocks, air_us, asymmetric, symmetric = SPECIFICATION[name]
    assert (packet.slots, packet.payload_bytes, packet.payload_header_bytes) == (slots, payload, header)
    assert (packet.body_bits, packet.body_fec_blocks, packet.air_time_us) == (body_bits, blocks, air_us)
    assert packet.asymmetric_kbps == pytest.approx(asymmetric, abs=0.05)
    assert packet.symmetric_kbps == pytest.approx(symmetric, abs=0.05)


def test_unknown_packet_is_named_with_a_guess() -> None:
    with pytest.raises(ValueError, match=r"'dh5'.*did you mean 'DH5'"):
        packet_type("dh5")
    with pytest.raises(ValueError, match="'XYZ'"):
        packet_types(["DH5", "XYZ"])


def _syndrome(word: int) -> int:
    """Remainder of the 15-bit word, highest power first, on division by the generator."""
    for power in range(14, 4, -1):
        if word >> power & 1:
            word ^= GENERATOR << (power - 5)
    return word


def _decoded_right() -> np.ndarray:
    """Error patterns by weight that leave the information bits (the upper ten) right, of all 2^15."""
    correctable = {_syndrome(1 << position): 1 << position for position in range(15)}
    assert len(correctable) == 15  # all single errors have different syndromes
    counts = np.zeros(16, dtype=int)
    for pattern in range(1 << 15):
        syndrome = _syndrome(pattern)
        if syndrome == 0:
            residue = pattern
        elif syndrome in correctable:
            residue = pattern ^ correctable[syndrome]
        else:
            continue
        if residue >> 5 == 0:
            counts[pattern.bit_count()] += 1
    return counts


def test_fec_formula_is_the_enumeration_of_all_error_patterns() -> None:
    counts = _decoded_right()
    assert counts.tolist() == [1, 15] + [0] * 14
    ber = np.array([1e-4, 1e-2, 0.1, 0.5, 0.9])
    by_weight = [count * ber**k * (1 - ber) ** (15 - k) for k, count in enumerate(counts)]
    np.testing.assert_allclose(block_success_rate(ber), np.sum(by_weight, axis=0), rtol=1e-10, atol=1e-15)


def test_fec_failure_keeps_its_digits_at_tiny_error_rates() -> None:
    assert float(block_error_rate(1e-10)) == pytest.approx(105e-20, rel=2e-9)


@pytest.mark.parametrize("bad", [-1e-9, 1.1, np.nan])
def test_fec_rejects_what_is_no_probability(bad: float) -> None:
    with pytest.raises(ValueError, match=f"bit error rate must lie within \\[0, 1\\], not {bad}"):
        block_error_rate(bad)
