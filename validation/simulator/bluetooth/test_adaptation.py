"""Packet types chosen at transmission: by level, by link quality, within a room, for what is left."""

import numpy as np
import pytest
from state_tables import tables

SECOND, SLOT = 1_000_000_000, 625_000
PLENTY = 2**62
DH5, DH3, DM5, DM3, DM1 = range(5)
SLOTS = (5, 3, 5, 3, 1)
PAYLOAD = (339, 183, 224, 121, 17)
FAMILY = (0, 0, 1, 1, 1)


def sender(plain, size=1000, sent=0, qualities=(255.0, 200.0), **fields):
    """A port with one packet, and a channel with one level for each quality; level k asks for type k."""
    sim = tables(plain.records, settings=1, ports=1, packets=1, packet_types=len(SLOTS), channels=1)
    sim.level_quality, sim.type_for_level = np.array(qualities), np.arange(len(qualities))
    sim.type_for_quality = np.zeros(256, np.int64)
    sim.packet_types.slots, sim.packet_types.payload, sim.packet_types.family = SLOTS, PAYLOAD, FAMILY
    sim.packet_types.duration = SLOT * np.array(SLOTS)
    sim.packets.bytes, sim.packets.sent_bytes = size, sent
    for name, value in fields.items():
        sim.channels[name] = value
    return sim


def test_the_type_follows_the_level_now(plain):
    sim = sender(plain, qualities=(255,) * 4, model=plain.records.ALTERNATING, step=SECOND, first_level=1)
    types = [plain.adaptation.choose_type(sim, 0, 0, PLENTY, k * SECOND) for k in range(4)]
    assert types == [1, 2, 1, 2]


def test_packets_sent_along_a_trace(plain):
    # 60 slots at each level; with the one-slot answer DH5 takes 6 of them, DM3 4 and DM1 2
    trace = {"model": plain.records.TRACE, "step": 60 * SLOT, "trace_length": 3}
    sim = sender(plain, size=10**6, qualities=(255,) * 3, **trace)
    sim.type_for_level, sim.trace_levels = np.array([DH5, DM3, DM1]), np.array([0, 2, 1])
    sent, now = [0] * len(SLOTS), 0
    while now < 2 * 180 * SLOT:
        kind = plain.adaptation.choose_type(sim, 0, 0, PLENTY, now)
        sent[kind] += 1
        now += (SLOTS[kind] + 1) * SLOT
    assert sent == [2 * 10, 0, 0, 2 * 15, 2 * 30]


@pytest.mark.parametrize(
    ("wanted", "size", "chosen"),
    [
        (DH5, 184, DH5),
        (DH5, 183, DH3),
        (DH5, 1, DH3),  # there is no DH1
        (DH3, 1000, DH3),  # never a larger one
        (DM5, 122, DM5),
        (DM5, 121, DM3),
        (DM5, 17, DM1),
    ],
)
def test_the_rest_goes_into_the_smallest_packet_of_the_family_that_holds_it(plain, wanted, size, chosen):
    sim = sender(plain, size=1000, sent=1000 - size, qualities=(255,) * 5, first_level=wanted)
    assert plain.adaptation.choose_type(sim, 0, 0, PLENTY, 0) == chosen


@pytest.mark.parametrize(
    ("wanted", "room", "chosen"),
    [
        (DH5, 5 * SLOT, DH5),
        (DH5, 5 * SLOT - 1, DH3),
        (DH5, 3 * SLOT, DH3),
        (DH5, 3 * SLOT - 1, DH5),  # none fits: the caller sees that this one does not either
        (DM5, 4 * SLOT, DM3),
        (DM5, SLOT, DM1),
        (DM3, 5 * SLOT, DM3),
    ],
)
def test_a_type_too_long_for_the_room_gives_way_to_the_longest_that_fits(plain, wanted, room, chosen):
    sim = sender(plain, qualities=(255,) * 5, first_level=wanted)
    assert plain.adaptation.choose_type(sim, 0, 0, room, 0) == chosen


def test_the_room_does_not_make_a_short_rest_longer(plain):
    sim = sender(plain, size=10, qualities=(255,) * 5, first_level=DM5)
    assert plain.adaptation.choose_type(sim, 0, 0, 3 * SLOT, 0) == DM1


def test_a_part_that_is_already_there_is_repeated_in_the_same_type(plain):
    sim = sender(plain, size=10)
    sim.ports.received, sim.packets.type = True, DM5
    assert plain.adaptation.choose_type(sim, 0, 0, PLENTY, 0) == DM5


@pytest.mark.parametrize(("quality", "reported"), [(248.5, 249), (248.4999, 248), (255.0, 255), (0.0, 0)])
def test_link_quality_is_reported_as_a_whole_number(plain, quality, reported):
    sim = sender(plain, qualities=(quality,))
    sim.settings.adapts_to_quality = True
    sim.type_for_quality[reported] = DM3
    assert plain.adaptation.choose_type(sim, 0, 0, PLENTY, 0) == DM3


@pytest.mark.parametrize(("kind", "sent", "carried"), [(DH5, 0, 339), (DH5, 900, 100), (DM1, 983, 17)])
def test_bytes_on_air(plain, kind, sent, carried):
    assert plain.adaptation.bytes_on_air(sender(plain, sent=sent), kind, 0) == carried
