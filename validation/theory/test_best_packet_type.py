"""The best packet type by bit error rate: thresholds of four formulas, to the digits known."""

from typing import Any

import numpy as np
import pytest

from btqueue.baseband import packet_types
from btqueue.channel.best_packet_type import Bits, Reply, arq_goodput_kbps, best_type, reigns
from btqueue.channel.packet_adaptation import goodput_crossing, packet_goodput_kbps
from btqueue.network.arq_service import arq_link, goodput_kbps

ALL = packet_types(["DM1", "DH1", "DM3", "DH3", "DM5", "DH5"])
UNCODED = packet_types(["DH1", "DH3", "DH5"])


@pytest.mark.parametrize(
    ("bits", "reply", "types", "names", "thresholds"),
    [
        ("payload", "one-slot", ALL, "DH5 DM5 DM3 DM1", (0.0001529, 0.0050181, 0.0127017)),
        ("payload", "one-slot", UNCODED, "DH5 DH3 DH1", (0.0001691, 0.0009775)),
        ("payload", "same-type", ALL, "DH5 DH3 DM5 DM3 DM1", (0.0000847, 0.0002114, 0.0035238, 0.0103872)),
        ("payload", "same-type", UNCODED, "DH5 DH3 DH1", (0.0000847, 0.0006529)),
        ("on-air", "one-slot", ALL, "DH5 DM5 DM3 DM1", (0.0001512, 0.0050205, 0.0126474)),
        ("on-air", "one-slot", UNCODED, "DH5 DH3 DH1", (0.0001691, 0.0009713)),
        ("on-air", "same-type", ALL, "DH5 DH3 DM5 DM3 DM1", (0.0000847, 0.0002069, 0.0035248, 0.0103401)),
        ("on-air", "same-type", UNCODED, "DH5 DH3 DH1", (0.0000847, 0.0006487)),
    ],
)
def test_thresholds(bits: Bits, reply: Reply, types, names: str, thresholds: tuple[float, ...]):
    found = reigns(types, bits=bits, reply=reply)
    assert " ".join(reign.packet.name for reign in found) == names
    assert found[0].ber_from == 0.0
    assert [reign.ber_from for reign in found[1:]] == pytest.approx(thresholds, abs=5.1e-8)


@pytest.mark.parametrize("bits", ["payload", "on-air"])
@pytest.mark.parametrize("reply", ["one-slot", "same-type"])
def test_the_reigning_type_is_the_best_type_everywhere(bits: Bits, reply: Reply):
    found = reigns(ALL, bits=bits, reply=reply)
    starts = np.array([reign.ber_from for reign in found])
    for ber in np.geomspace(1e-7, 0.04, 97):
        reigning = found[int(np.searchsorted(starts, ber, side="right")) - 1].packet
        assert reigning is best_type(ALL, float(ber), bits=bits, reply=reply)


def test_a_coarse_grid_finds_the_same_thresholds():
    fine, coarse = (reigns(ALL, reply="same-type", grid=grid) for grid in (2000, 7))
    assert [reign.packet.name for reign in coarse] == [reign.packet.name for reign in fine]
    np.testing.assert_allclose(
        [reign.ber_from for reign in coarse], [reign.ber_from for reign in fine], rtol=1e-9
    )


def test_the_published_formula_is_the_one_of_packet_adaptation():
    bers = np.geomspace(1e-6, 1e-2, 9)
    for packet in ALL:
        np.testing.assert_allclose(
            arq_goodput_kbps(packet, bers, bits="payload"), packet_goodput_kbps(packet, bers), rtol=1e-14
        )
    crossing = goodput_crossing(*packet_types(["DH5", "DM5"]))
    assert reigns(ALL, bits="payload")[1].ber_from == pytest.approx(crossing, rel=1e-12)


@pytest.mark.parametrize("packet", ALL, ids=lambda packet: packet.name)
def test_goodput_is_that_of_the_arq_chain(packet):
    for ber in (0.0, 1e-4, 1e-3, 1e-2):
        chain = float(goodput_kbps(packet, arq_link(packet, ber)))
        assert float(arq_goodput_kbps(packet, ber)) == pytest.approx(chain, rel=1e-10, abs=1e-12)
        same = float(goodput_kbps(packet, arq_link(packet, ber, reply=packet.slots)))
        assert float(arq_goodput_kbps(packet, ber, reply="same-type")) == pytest.approx(
            same, rel=1e-10, abs=1e-12
        )


def test_a_dead_link_carries_nothing():
    assert float(arq_goodput_kbps(ALL[0], 1.0)) == 0.0


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="types"):
        reigns([])
    with pytest.raises(ValueError, match="ber_max"):
        reigns(ALL, ber_max=2.0)
    unknown: Any = "none"
    with pytest.raises(ValueError, match="reply"):
        arq_goodput_kbps(ALL[0], 1e-3, reply=unknown)
    with pytest.raises(ValueError, match="bits"):
        arq_goodput_kbps(ALL[0], 1e-3, bits=unknown)
