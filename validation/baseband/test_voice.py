"""Voice links beside data: gaps, capacities, and packet types that do not fit."""

import pytest

from btqueue.baseband import packet_type
from btqueue.baseband.voice import (
    ESCO_PACKETS,
    VOICE_PERIOD_SLOTS,
    Frame,
    VoiceLinks,
    data_capacity_kbps,
    repeat_slots,
)
from btqueue.channel import packet_error_rate

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


@pytest.mark.parametrize(
    ("packet", "period", "reserved", "window"),
    [
        ("EV3", 6, 2, 2),  # 30 bytes each way in 3.75 ms are 64 kbit/s
        ("EV4", 24, 6, 6),
        ("EV5", 36, 6, 6),
        ("2-EV3", 12, 2, 2),
        ("3-EV3", 18, 2, 2),
        ("2-EV5", 72, 6, 6),
        ("3-EV5", 108, 6, 6),
    ],
)
def test_extended_links_carry_64_kbps_in_their_period(packet, period, reserved, window):
    voice = VoiceLinks(packet=packet, window=repeat_slots(packet))
    assert (voice.period, voice.reserved, voice.window) == (period, reserved, window)
    assert voice.gap == period - reserved
    assert ESCO_PACKETS[packet].payload_bits / (period * 625e-6) == pytest.approx(64_000)
    assert ESCO_PACKETS[packet].air_time_us < ESCO_PACKETS[packet].slots * 625


def test_only_ev4_is_coded():
    ber = 1e-3
    blocks = 96  # 960 information bits, ten a block
    intact = (1 - ber) ** 15 + 15 * ber * (1 - ber) ** 14
    assert packet_error_rate(ESCO_PACKETS["EV4"], ber) == pytest.approx(1 - intact**blocks, rel=1e-12)
    assert packet_error_rate(ESCO_PACKETS["EV5"], ber) == pytest.approx(1 - (1 - ber) ** 1440, rel=1e-12)


def test_repetitions_by_hand():
    down, up = 0.1, 0.2
    none = (1 - down) * (1 - up)
    one_slot = VoiceLinks(packet="2-EV3", window=2)
    assert one_slot.repeats(down, up) == pytest.approx({0: none, 2: 1 - none})
    twice = VoiceLinks(packet="2-EV3", window=4).repeats(down, up)
    again = down * (1 - up) * down + (1 - down) * up * up + down * up * (1 - none)
    assert twice == pytest.approx({0: none, 2: 1 - none - again, 4: again})
    # With packets of three slots, POLL or NULL in the place of the packet that arrived saves two.
    three_slots = VoiceLinks(packet="EV5", window=6).repeats(down, up)
    single = down * (1 - up) + (1 - down) * up
    assert three_slots == pytest.approx({0: none, 4: single, 6: down * up})
    assert VoiceLinks(packet="EV5", window=4).repeats(down, up) == pytest.approx({0: 1 - single, 4: single})


@pytest.mark.parametrize("packet", ESCO_PACKETS)
def test_a_window_that_is_not_needed_is_left_to_data(packet):
    voice = VoiceLinks(packet=packet, window=repeat_slots(packet))
    assert voice.repeats(0.0, 0.0) == {0: 1.0}
    assert voice.data_share([Frame(2)], {0: 1.0}) == voice.gap / voice.period


def test_frames_wait_for_a_gap_that_holds_them():
    voice = VoiceLinks(packet="2-EV3", window=2)  # ten slots of twelve are free

    def share(*slots: int, repeats: dict[int, float] | None = None) -> float:
        return voice.data_share([Frame(one) for one in slots], repeats or {0: 1.0})

    assert share(6) == pytest.approx(6 / 12)  # four slots are too short for another
    assert share(6, 4) == pytest.approx(10 / 12)
    assert share(4, repeats={0: 0.5, 2: 0.5}) == pytest.approx(8 / 12)
    # gap by gap: 6 2 2, then 2 6 2, then 2 2 6, then 2 2 2 before a frame that does not fit any more
    assert share(6, 2, 2, 2) == pytest.approx((10 + 10 + 10 + 6) / 4 / 12)


def test_answers_with_data_wait_for_a_frame_beside_which_they_fit():
    """Frames of four slots in gaps of ten; an answer with data is two slots longer, due with each third."""
    voice = VoiceLinks(packet="2-EV3", window=2)
    down, up = ([Frame(4, int(n == 0), 2, goes_up) for n in range(3)] for goes_up in (False, True))
    # 6 4, then 4 with the answer that is due next, whose frame is two later, 4, and so on
    assert voice.data_share([Frame(4, 1, 2)], {0: 1.0}) == pytest.approx(10 / 12)
    # gaps of 6 4, 4 6, 4 4: of the last one two slots are too short for any frame
    assert voice.data_share(down, {0: 1.0}) == pytest.approx((10 + 10 + 8) / 3 / 12)
    # the same, as both answers find room beside the data of their frames
    assert voice.data_share(up, {0: 1.0}) == pytest.approx((10 + 10 + 8) / 3 / 12)
    # in gaps of four slots data up wait for the next gap with their answer; data down go ahead of it
    late_up, late_down = ([Frame(2), Frame(2, 1, 2, goes_up)] for goes_up in (True, False))
    one = VoiceLinks(packet="HV3")
    assert one.data_share(late_up, {0: 1.0}) == pytest.approx((2 + 4) / 2 / 6)
    assert one.data_share(late_down, {0: 1.0}) == pytest.approx(4 / 6)
