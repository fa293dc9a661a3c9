"""Collisions of piconets on the same air: which transmissions overlap, and how often they share a channel.

Frequencies are compared at 4.06 standard deviations, a false-alarm rate of 5e-5 with a fresh seed; the seed
is fixed.
"""

import math

import numpy as np
import pytest
from state_tables import tables

DH5_US, DH1_US, SLOT_US = 2870, 366, 625
"""On the air: 126 us of access code and header, 8 (2 + 339 + 2) and 8 (1 + 27 + 2) us of body."""


def air(plain, piconets):
    sim = tables(plain.records, piconets=piconets)
    sim.streams = plain.random_streams.make_streams(2, 0, piconets)
    sim.piconets.stream = np.arange(piconets)
    return sim


@pytest.mark.parametrize(
    ("start", "end", "overlaps"),
    [
        (0, 10, 0),  # long before
        (50, 100, 0),  # ends as ours begins
        (50, 101, 1),
        (120, 130, 1),  # within
        (50, 300, 1),  # around
        (199, 250, 1),
        (200, 250, 0),  # begins as ours ends
    ],
)
def test_what_overlaps_a_packet_from_100_to_200(plain, start, end, overlaps):
    sim = air(plain, 2)
    plain.collisions.note_transmission(sim, 1, start, end)
    assert plain.collisions.overlapping(sim, 0, 100, 200) == overlaps


def test_own_transmissions_do_not_count_and_those_of_all_others_do(plain):
    sim = air(plain, 4)
    for piconet in range(4):
        plain.collisions.note_transmission(sim, piconet, 100, 150)
        plain.collisions.note_transmission(sim, piconet, 160, 200)
    assert plain.collisions.overlapping(sim, 2, 100, 200) == 6
    assert plain.collisions.overlapping(sim, 2, 155, 200) == 3


@pytest.mark.parametrize(("ours", "mean"), [(DH5_US, 3236 / 625), (DH1_US, 732 / 625), (126, 492 / 625)])
def test_mean_number_of_one_slot_packets_met_at_a_random_phase(plain, ours, mean):
    # A neighbour that sends in every slot; all phases, one for each microsecond
    met = 0
    for phase in range(SLOT_US):
        sim = air(plain, 2)
        for slot in range(8):
            start = (slot - 1) * SLOT_US + phase + 0.5
            plain.collisions.note_transmission(sim, 1, 1000 * start, 1000 * (start + DH1_US))
        met += plain.collisions.overlapping(sim, 0, 0, 1000 * ours)
    assert met / SLOT_US == mean


def test_nobody_else_on_the_air_draws_nothing(plain):
    sim = air(plain, 2)
    before = sim.streams.copy()
    plain.collisions.note_transmission(sim, 1, 0, 100)
    plain.collisions.note_transmission(sim, 0, 100, 200)
    assert not plain.collisions.collided(sim, 0)
    assert (sim.streams == before).all()


@pytest.mark.parametrize("others", [1, 20])
def test_each_overlapping_packet_is_on_our_channel_once_in_79(plain, others):
    sim = air(plain, others + 1)
    for piconet in range(others + 1):
        plain.collisions.note_transmission(sim, piconet, 100, 200)
    draws = 4000
    lost = sum(plain.collisions.collided(sim, 0) for _ in range(draws))
    exact = 1 - (78 / 79) ** others
    assert abs(lost / draws - exact) < 4.06 * math.sqrt(exact * (1 - exact) / draws)
