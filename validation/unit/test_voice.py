"""Slots that voice leaves to the polling cycle, against an enumeration slot by slot."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btqueue.simulator.bluetooth import voice
from btqueue.simulator.records.conventions import NEVER, SLOT, UNLIMITED

RESERVATIONS = {"none": (0, 0), "1 HV3": (6, 2), "2 HV3": (6, 4), "1 HV2": (4, 2)}
NO_ROOM = {"3 HV3": (6, 6), "2 HV2": (4, 4), "1 HV1": (2, 2)}


def central(name):
    period, reserved = (RESERVATIONS | NO_ROOM)[name]
    return SimpleNamespace(voice_period=period * SLOT, voice_reserved=reserved * SLOT)


def is_free(name, tick, ticks_a_slot):
    """Whether the air is free in this tick."""
    period, reserved = RESERVATIONS[name]
    return period == 0 or tick % (period * ticks_a_slot) >= reserved * ticks_a_slot


def first_start(name, now, ticks_a_slot):
    """The first tick from `now` on with two whole slots of free air after it, found by trying each."""
    while not all(is_free(name, now + tick, ticks_a_slot) for tick in range(2 * ticks_a_slot)):
        now += 1
    return now


def visits_one_by_one(name, since, until, ticks_a_slot):
    """The idle visits that are over by `until`, played one after the other, and the start of the next."""
    start, visits = first_start(name, since, ticks_a_slot), 0
    while start + 2 * ticks_a_slot <= until:
        visits += 1
        start = first_start(name, start + 2 * ticks_a_slot, ticks_a_slot)
    return visits, start


# Ticks of a fifth of a slot, so that times off the grid of slots occur too.
TICKS = 5
TICK = SLOT // TICKS
times = st.integers(0, 60 * TICKS)
names = st.sampled_from(sorted(RESERVATIONS))


@given(names, times)
def test_a_frame_starts_as_soon_as_two_slots_are_free(plain_voice, name, now):
    assert plain_voice.next_start(central(name), now * TICK) == first_start(name, now, TICKS) * TICK


@given(names, times, st.integers(0, 100 * TICKS))
def test_idle_visits_are_those_played_one_by_one(plain_voice, name, since, length):
    visits, start = visits_one_by_one(name, since, since + length, TICKS)
    begin, end = since * TICK, (since + length) * TICK
    assert plain_voice.idle_visits(central(name), begin, end) == visits
    assert plain_voice.start_of_idle_visit(central(name), begin, visits) == start * TICK


@given(names, times)
def test_room_is_the_free_air_from_now_on(plain_voice, name, now):
    free = 0
    while is_free(name, now + free, TICKS) and free < 100 * TICKS:
        free += 1
    room = plain_voice.room(central(name), now * TICK)
    assert room == (UNLIMITED if name == "none" else free * TICK)


@pytest.mark.parametrize("name", NO_ROOM)
def test_voice_in_every_slot_leaves_no_visit(plain_voice, name):
    full = central(name)
    assert plain_voice.next_start(full, 5 * SLOT) == NEVER
    assert plain_voice.start_of_idle_visit(full, 0, 3) == NEVER
    assert plain_voice.idle_visits(full, 0, 1000 * SLOT) == 0


@pytest.mark.parametrize(
    ("packet", "links", "slots"),
    [("HV1", 1, 0), ("HV2", 1, 2), ("HV2", 2, 0), ("HV3", 1, 4), ("HV3", 2, 2), ("HV3", 3, 0)],
)
def test_slots_between_reservations(packet, links, slots):
    period, reserved = voice.reservation(packet, links)
    assert period - reserved == slots * SLOT
    assert reserved == 2 * links * SLOT


def test_without_voice_nothing_is_reserved():
    assert voice.reservation("none", 0) == (0, 0)


@pytest.fixture(scope="session")
def plain_voice(plain):
    return plain.voice
