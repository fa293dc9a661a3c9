"""Voice links beside data: gaps, fitting packet types, capacities, and the queue that is left."""

import numpy as np
import pytest

from btqueue.baseband import PACKET_TYPES, packet_type, packet_types, segment
from btqueue.baseband.voice import (
    VOICE_PERIOD_SLOTS,
    VoiceLinks,
    data_capacity_kbps,
    fits,
    fitting_types,
    open_positions,
    vacations,
    wait_for_gap,
)
from btqueue.queueing.laws import lattice
from btqueue.queueing.links.periodic_server import periodic_server
from btqueue.queueing.traffic.arrivals import PoissonBatches
from btqueue.queueing.vacations.vacations import limited_service_queue

ONE_HV3, TWO_HV3, THREE_HV3 = (VoiceLinks(packet="HV3", links=links) for links in (1, 2, 3))
ONE_HV2, ONE_HV1 = VoiceLinks(packet="HV2"), VoiceLinks(packet="HV1")


@pytest.mark.parametrize(
    ("voice", "gap"), [(ONE_HV3, 4), (TWO_HV3, 2), (ONE_HV2, 2), (THREE_HV3, 0), (ONE_HV1, 0)]
)
def test_gap(voice: VoiceLinks, gap: int):
    assert voice.gap == gap
    assert voice.gap + voice.reserved == voice.period == VOICE_PERIOD_SLOTS[voice.packet]


@pytest.mark.parametrize(
    ("voice", "forward", "reverse", "rates"),
    [
        (None, "DH1", "DH1", (172.80, 172.80)),
        (None, "DM3", "DH1", (387.20, 86.40)),
        (None, "DH3", "DH1", (585.60, 86.40)),
        (None, "DH5", "DH1", (723.20, 57.60)),
        (None, "DH5", "DH5", (433.92, 433.92)),
        (ONE_HV3, "DH1", "DH1", (115.20, 115.20)),
        (ONE_HV3, "DM3", "DH1", (258.13, 57.60)),
        (ONE_HV3, "DH3", "DH1", (390.40, 57.60)),
        (ONE_HV3, "DH5", "DH1", (0.0, 0.0)),
        (TWO_HV3, "DH1", "DH1", (57.60, 57.60)),
        (ONE_HV2, "DH1", "DH1", (86.40, 86.40)),
        (TWO_HV3, "DH3", "DH1", (0.0, 0.0)),
        (THREE_HV3, "DH1", "DH1", (0.0, 0.0)),
        (ONE_HV1, "DH1", "DH1", (0.0, 0.0)),
    ],
)
def test_capacity(voice: VoiceLinks | None, forward: str, reverse: str, rates: tuple[float, float]):
    assert data_capacity_kbps(packet_type(forward), packet_type(reverse), voice) == pytest.approx(
        rates, abs=5.1e-3
    )


def test_five_slot_packets_never_fit_beside_voice():
    for name, period in VOICE_PERIOD_SLOTS.items():
        for links in range(1, period // 2 + 1):
            assert not fits(packet_type("DH5"), VoiceLinks(packet=name, links=links))
    assert fits(packet_type("DH5"), None)


def test_fitting_types():
    names = [packet.name for packet in fitting_types(PACKET_TYPES.values(), ONE_HV3)]
    assert names == ["DM1", "DH1", "DM3", "DH3", "2-DH1", "2-DH3", "3-DH1", "3-DH3"]
    assert [packet.name for packet in fitting_types(packet_types(["DH1", "DH3"]), TWO_HV3)] == ["DH1"]
    assert fitting_types(packet_types(["DH1", "DH3"]), ONE_HV3, reply_slots=3) == packet_types(["DH1"])
    assert fitting_types(PACKET_TYPES.values(), THREE_HV3) == ()


def test_a_full_segment_beside_voice_takes_nine_dh3():
    """1460 bytes of data, 40 of TCP/IP and 4 of framing, in nothing larger than DH3."""
    dh3 = packet_type("DH3")
    assert fitting_types(packet_types(["DH3", "DH5"]), ONE_HV3) == (dh3,)
    assert [fragment.packet for fragment in segment(1504, [dh3])] == [dh3] * 9


@pytest.mark.parametrize(
    ("voice", "slots", "law"),
    [
        (
            ONE_HV3,
            2,
            [3 / 6, 1 / 6, 1 / 6, 1 / 6, 0, 0, 0],
        ),  # starts at slots 2, 3, 4; waits 2, 1, and 3 from slot 5
        (ONE_HV3, 4, [1 / 6] * 6 + [0]),
        (ONE_HV2, 2, [1 / 4] * 4 + [0]),
    ],
)
def test_wait_for_a_gap(voice: VoiceLinks, slots: int, law: list[float]):
    np.testing.assert_allclose(wait_for_gap(voice, slots), law, atol=1e-15)


def test_saturated_data_between_reservations_reaches_the_capacity():
    """The queue with the vacations that voice leaves: two frames of two slots in six slots."""
    law = vacations(ONE_HV3, 2)
    assert law.shape == (3, 7)
    np.testing.assert_allclose(lattice.mean(law), [6.0, 4.0, 2.0], atol=1e-15)
    solution = limited_service_queue(
        arrivals=PoissonBatches(3.0), service=lattice.point(2), vacations=law, capacity=10, limit=2
    )
    assert float(solution.throughput) == pytest.approx(1 / 3, abs=1e-9)


def test_leaving_early_costs_time_against_looking_again():
    """At light load the server that gives up the rest of the period is the slower one; both carry all."""
    given_up = limited_service_queue(
        arrivals=PoissonBatches(0.05),
        service=lattice.point(2),
        vacations=vacations(ONE_HV3, 2),
        capacity=40,
        limit=2,
    )
    looks_again = periodic_server(
        arrivals=PoissonBatches(0.1), is_open=open_positions(ONE_HV3, 2), capacity=40
    )
    assert float(given_up.throughput) == pytest.approx(float(looks_again.throughput) / 2, rel=1e-9)
    assert float(given_up.mean_sojourn) > 2 * float(looks_again.mean_sojourn) - 1.0
    assert open_positions(ONE_HV3, 2) == (False, True, True)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: VoiceLinks(packet="HV4"), "packet"),
        (lambda: VoiceLinks(packet="HV3", links=4), "links"),
        (lambda: VoiceLinks(packet="HV1", links=0), "links"),
        (lambda: wait_for_gap(THREE_HV3, 2), "never fits"),
        (lambda: vacations(ONE_HV3, 6), "never fits"),
        (lambda: open_positions(ONE_HV3, 3), "slots"),
        (lambda: ONE_HV3.frames(0), "slots"),
    ],
)
def test_impossible_arguments_are_refused(call, name: str):
    with pytest.raises(ValueError, match=name):
        call()
