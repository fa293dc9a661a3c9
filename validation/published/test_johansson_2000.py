"""Johansson, Kihl and Körner (2000): the arithmetic of their text.

The claims about simulations are judged in test_claims. Seeds are fixed.
"""

import pytest

from btqueue.baseband import packet_type, packet_types, segment
from btqueue.channel import packet_goodput_kbps
from btqueue.reproduction.claims import johansson_2000
from btqueue.reproduction.claims.engines import Simulator
from btqueue.scenario import load

SIMULATOR = Simulator()

# ---------------------------------------------------------------- arithmetic of sections 2.1, 4.1, 4.2


def test_the_printed_rates_are_those_of_an_older_338_byte_packet():
    dh5 = packet_type("DH5")
    assert (dh5.asymmetric_kbps, dh5.symmetric_kbps) == pytest.approx((723.2, 433.92))
    assert [dh5.asymmetric_kbps * 338 / 339, dh5.symmetric_kbps * 338 / 339] == pytest.approx(
        [721, 432.6], abs=0.1
    )
    assert packet_type("DH1").payload_bits / (6 * johansson_2000.SLOT_S) / 1e3 == pytest.approx(57.6)


def test_uncoded_packets_hold_half_as_much_again():
    pairs = (("DH1", "DM1"), ("DH3", "DM3"), ("DH5", "DM5"))
    ratios = [packet_type(u).payload_bytes / packet_type(c).payload_bytes - 1 for u, c in pairs]
    assert sum(ratios) / 3 == pytest.approx(0.55, abs=0.02)


def test_a_packet_error_probability_of_a_good_third_eats_the_advantage():
    uncoded, coded = packet_types(["DH5", "DM5"])
    assert 1 - coded.payload_bytes / uncoded.payload_bytes == pytest.approx(0.36, abs=0.025)
    assert float(packet_goodput_kbps(coded, 0.0)) < float(packet_goodput_kbps(uncoded, 0.0)) * (1 - 0.33)


def test_a_segment_fills_55_one_slot_packets_and_an_acknowledgement_takes_three():
    (dh1,) = packet_types(["DH1"])
    full = segment(1429 + 32 + 20 + 4, [dh1])
    assert len(full) == 55
    assert full[-1].padding_bytes == 0
    assert len(segment(32 + 20 + 4, [dh1])) == 3


def test_the_saturated_goodput_follows_from_the_slots():
    # Two segments of four DH5 and a DH3 with one-slot answers; one answer is a DH3 with the acknowledgement.
    # No tick here: it would now and then acknowledge a single segment. In 400 s there are 22,000 segments.
    slots = 2 * (4 * 6 + 4) + 2
    keys = {"transport.ack_clock": "timer", "run.replications": 1}
    scenario = load("johansson-2000/asymmetric", keys)
    goodput = float(SIMULATOR.sample(scenario, "goodput_kbps").mean())
    assert goodput == pytest.approx(2 * 1429 * 8 / (slots * johansson_2000.SLOT_S) / 1e3, rel=1e-4)
