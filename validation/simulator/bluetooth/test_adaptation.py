"""Packet types chosen at transmission: by level, by link quality, within a room, for what is left."""

import numpy as np
import pytest
from state_tables import tables

import btqueue as bt

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


@pytest.mark.parametrize(
    ("wanted", "size", "room", "chosen"),
    [
        # the rest goes into the smallest packet of the family that holds it
        (DH5, 184, PLENTY, DH5),
        (DH5, 183, PLENTY, DH3),
        (DH5, 1, PLENTY, DH3),  # there is no DH1
        (DH3, 1000, PLENTY, DH3),  # never a larger one
        (DM5, 122, PLENTY, DM5),
        (DM5, 121, PLENTY, DM3),
        (DM5, 17, PLENTY, DM1),
        # a type too long for the room gives way to the longest that fits
        (DH5, 1000, 5 * SLOT, DH5),
        (DH5, 1000, 5 * SLOT - 1, DH3),
        (DH5, 1000, 3 * SLOT, DH3),
        (DH5, 1000, 3 * SLOT - 1, DH5),  # none fits: the caller sees that this one does not either
        (DM5, 1000, 4 * SLOT, DM3),
        (DM5, 1000, SLOT, DM1),
        (DM3, 1000, 5 * SLOT, DM3),
    ],
)
def test_a_packet_holds_the_rest_or_fits_the_room(plain, wanted, size, room, chosen):
    sim = sender(plain, sent=1000 - size, qualities=(255,) * 5, first_level=wanted)
    assert plain.adaptation.choose_type(sim, 0, 0, room, 0) == chosen


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


@pytest.mark.parametrize("feedback", ["reliable", "lossy"])
def test_each_part_of_a_segment_is_a_packet_that_is_transmitted(feedback):
    """On a perfect radio once; with a packet error rate p and certain answers 1 / (1 - p) times."""
    keys = {
        "network.peripherals": 1, "network.flows": "downlink", "link.adaptation": "best",
        "link.arq_feedback": feedback, "traffic.source": "greedy", "transport.ack_path": "direct",
        "radio.model": "constant", "run.duration_s": 60.0, "run.warmup_s": 2.0, "run.replications": 3,
    }  # fmt: skip
    scenario = bt.Scenario().changed(keys)
    assert bt.simulate(scenario).transmissions_per_packet.values == pytest.approx(1.0, rel=1e-3)
    if feedback == "reliable":
        tries = bt.simulate(scenario.with_(radio__per=0.25)).transmissions_per_packet
        assert tries.values == pytest.approx(4 / 3, rel=0.02)
