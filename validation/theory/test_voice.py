"""Voice links beside data: gaps, capacities, and packet types that do not fit."""

import pytest

from btqueue.baseband import packet_type, segment
from btqueue.baseband.voice import VOICE_PERIOD_SLOTS, VoiceLinks, data_capacity_kbps

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
    frame = packet_type("DH5").slots + 1
    for name, period in VOICE_PERIOD_SLOTS.items():
        for links in range(1, period // 2 + 1):
            assert VoiceLinks(packet=name, links=links).frames(frame) == 0


def test_a_full_segment_beside_voice_takes_nine_dh3():
    """1460 bytes of data, 40 of TCP/IP and 4 of framing, in the largest packet beside one HV3 link."""
    dh3 = packet_type("DH3")
    assert ONE_HV3.frames(dh3.slots + 1) == 1
    assert [fragment.packet for fragment in segment(1504, [dh3])] == [dh3] * 9


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: VoiceLinks(packet="HV4"), "packet"),
        (lambda: VoiceLinks(packet="HV3", links=4), "links"),
        (lambda: VoiceLinks(packet="HV1", links=0), "links"),
        (lambda: ONE_HV3.frames(0), "slots"),
    ],
)
def test_impossible_arguments_are_refused(call, name: str):
    with pytest.raises(ValueError, match=name):
        call()
