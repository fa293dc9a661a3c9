"""Bridges: residence rules of walk-in bridges, windows of the others, centrals that leave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_tables import NOTHING, tables

from btqueue.simulator.records.conventions import NEVER, SLOT, UNLIMITED


class Network:
    """Two piconets; link 0 is an ordinary one of piconet 0, links 1 and 2 are those of the bridge.

    With `own` = 1 the bridge is the central of piconet 1, and link 2 an ordinary one of it.
    Timers 0 and 1 are those of the piconets.
    """

    def __init__(self, plain, *, own=NOTHING, seed=1, **fields):
        records = plain.records
        self.bridges = plain.bridges
        sim = self.sim = tables(records, piconets=2, links=3, bridges=2, ports=6, queues=6, timers=2)
        sim.heap, sim.streams = np.arange(2), plain.random_streams.make_streams(seed, 0, 2)
        sim.timers.due, sim.timers.place = NEVER, np.arange(2)
        sim.piconets.timer = 0, 1
        sim.piconets.first_link, sim.piconets.links = (0, 2), (2, 1)
        sim.piconets.bridge = NOTHING
        sim.links.piconet = 0, 0, 1
        sim.links.bridge = NOTHING, 0, 0
        sim.bridges.stream = 0, 1
        self.bridge = sim.bridges[0]
        self.bridge.count = 2
        self.bridge.piconets[:2] = 0, 1
        self.bridge.links[:2] = 1, 2
        if own == 1:
            sim.piconets[1].bridge = 0
            sim.links[2].bridge = NOTHING
            self.bridge.links[1] = NOTHING
        for name, value in fields.items():
            setattr(self.bridge, name, getattr(records, value) if isinstance(value, str) else value)
        self.bridges.start(sim, 0)

    def due(self, timer):
        return int(self.sim.timers[timer].due)

    def present(self, now):
        return [bool(self.bridges.is_present(self.sim, 0, p, now)) for p in (0, 1)]

    def exchange(self, link, now, null=True):
        self.bridges.on_exchange_over(self.sim, link, null, now)

    def cycle_over(self, now, data=False):
        self.sim.piconets[1].cycle_carried_data = data
        return bool(self.bridges.on_cycle_over(self.sim, 1, now))


def test_a_stay_of_one_whole_cycle_is_two_exchanges(plain):
    net = Network(plain, residence="WHOLE_CYCLES", residence_cycles=1)
    for link, piconet in ((1, 0), (2, 1), (1, 0)):
        net.exchange(link, SLOT)
        assert net.bridge.current == piconet
        net.exchange(link, 2 * SLOT)
        assert net.bridge.current == 1 - piconet


def test_a_complete_exchange_ends_when_nothing_is_left(plain):
    net = Network(plain, residence="COMPLETE")
    net.exchange(1, SLOT, null=False)
    net.exchange(1, 9 * SLOT, null=False)
    assert net.bridge.current == 0
    net.exchange(1, 20 * SLOT, null=True)
    assert net.bridge.current == 1


def test_piconets_are_visited_in_cyclic_order(plain):
    net = Network(plain, residence="VISIT", count=3)
    net.bridge.piconets[2], net.bridge.links[2] = 7, 5
    places = []
    for now in range(7):
        places.append(int(net.bridge.piconets[net.bridge.current]))
        net.exchange(1, now * SLOT)
    assert places == [0, 1, 7, 0, 1, 7, 0]


def test_a_switch_takes_up_to_two_slots(plain):
    net = Network(plain, residence="VISIT", switch_delay=True)
    delays = []
    for number in range(500):
        now = 100 * number * SLOT
        net.exchange(1, now)
        arrival = int(net.bridge.present_from)
        delays.append(arrival - now)
        there = int(net.bridge.current)
        assert net.present(arrival)[there]
        assert arrival == now or not net.present(arrival - 1)[there]
    assert min(delays) >= 0
    assert max(delays) < 2 * SLOT
    # Uniform: mean one slot; a fresh seed is off by more than 4 standard errors once in 16,000.
    assert abs(np.mean(delays) - SLOT) < 4 * 2 * SLOT / np.sqrt(12 * 500)


def test_the_piconet_of_a_bridge_sleeps_until_the_bridge_comes_and_again_after_a_cycle(plain):
    net = Network(plain, own=1, residence="VISIT")
    assert (net.sim.piconets[1].away, net.due(1)) == (True, NEVER)
    net.exchange(1, 30 * SLOT)
    assert (net.sim.piconets[1].away, net.due(1)) == (False, 30 * SLOT)
    assert net.cycle_over(50 * SLOT, data=True)
    assert (net.sim.piconets[1].away, net.due(1)) == (True, NEVER)
    assert net.present(50 * SLOT) == [True, False]


def test_a_bridge_stays_in_its_own_piconet_for_whole_cycles(plain):
    net = Network(plain, own=1, residence="WHOLE_CYCLES", residence_cycles=2)
    for slot in (1, 2, 3):
        net.exchange(1, slot * SLOT)
    assert not net.sim.piconets[1].away
    assert [net.cycle_over(slot * SLOT) for slot in (10, 20)] == [False, True]


def test_a_bridge_stays_in_its_own_piconet_until_a_cycle_is_idle(plain):
    net = Network(plain, own=1, residence="COMPLETE")
    net.exchange(1, SLOT)
    assert [net.cycle_over(10 * SLOT, data) for data in (True, True, False)] == [False, False, True]


@pytest.mark.parametrize("offset", [0, 5 * SLOT])
def test_sniff_windows_alternate_from_their_offset_on_and_end_with_a_guard(plain, offset):
    net = Network(plain, schedule="SNIFF", window=20 * SLOT, offset=offset)
    present = [net.present(time - offset) for time in (5 * SLOT, 16 * SLOT, 16 * SLOT + 1, 20 * SLOT - 1)]
    assert present == [[True, False]] * 2 + [[False, False]] * 2
    assert net.present(20 * SLOT - offset) == [False, True]
    assert net.present(40 * SLOT - offset) == [True, False]


def test_room_in_a_window_ends_before_the_guard(plain):
    net = Network(plain, schedule="SNIFF", window=20 * SLOT)
    looks = [(1, 4), (1, 19), (1, 25), (0, 25)]  # link and slot
    rooms = [net.bridges.room(net.sim, link, slot * SLOT) for link, slot in looks]
    assert rooms == [14 * SLOT, 0, 0, UNLIMITED]


def test_a_bridge_that_is_elsewhere_is_not_polled(plain):
    net = Network(plain, schedule="SNIFF", window=20 * SLOT)
    for p in (0, 1):
        plain.disciplines.start(net.sim, p)
    assert list(net.sim.piconets.rendezvous) == [True, True]
    stations = []
    for visit in range(4):
        plain.disciplines.begin_visit(net.sim, 0, 0)
        assert plain.disciplines.next_station(net.sim, 0, (12 + 4 * visit) * SLOT)
        stations.append(int(net.sim.piconets[0].station))
    # Slots 12 and 16 are in the window of piconet 0, slots 20 and 24 are not.
    assert stations == [1, 0, 0, 0]
    # Piconet 1 has no other link.
    assert not plain.disciplines.next_station(net.sim, 1, 0)
    assert net.bridges.next_meeting(net.sim, 1, 0) == 20 * SLOT


def test_the_piconet_of_a_bridge_with_windows_is_played_inside_them(plain):
    net = Network(plain, own=1, schedule="SNIFF", window=20 * SLOT)
    assert not net.sim.piconets[1].away
    assert not net.bridges.may_poll(net.sim, 2, 5 * SLOT)
    assert net.bridges.next_meeting(net.sim, 1, 5 * SLOT) == 20 * SLOT
    assert net.bridges.may_poll(net.sim, 2, 20 * SLOT)
    assert net.bridges.next_meeting(net.sim, 1, 37 * SLOT) == 60 * SLOT
    assert not net.cycle_over(25 * SLOT)


def test_two_bridges_that_never_meet_are_looked_for_again_and_again(plain):
    """The central is there in slots 20 to 40 of every 40, the other is not: the search goes on later."""
    net = Network(plain, own=1, schedule="SNIFF", window=20 * SLOT)
    other = net.sim.bridges[1]
    other.count, other.schedule, other.window = 2, plain.records.SNIFF, 20 * SLOT
    other.piconets[:2], other.links[:2] = (1, 0), (2, 0)
    net.sim.links[2].bridge = 1
    times = [0]
    for _ in range(3):
        times.append(int(net.bridges.next_meeting(net.sim, 1, times[-1])))
        assert not net.bridges.may_poll(net.sim, 2, times[-1])
    assert times == sorted(set(times))


@given(st.integers(0, 2**40), st.integers(0, 2**31), st.sampled_from(["SNIFF", "PSEUDO_RANDOM"]))
def test_the_next_meeting_is_the_first(plain, now, seed, schedule):
    net = Network(plain, schedule=schedule, window=8 * SLOT, seed=seed)
    net.bridge.seed = seed
    at = int(net.bridges.next_meeting(net.sim, 1, now))
    assert at >= now
    assert net.bridges.may_poll(net.sim, 2, at)
    # None before: presence begins with a window, so `now` and the starts of windows are all there is to try.
    windows = range(now // (8 * SLOT) + 1, at // (8 * SLOT) + 1)
    earlier = [time for time in (now, *(w * 8 * SLOT for w in windows)) if time < at]
    assert not any(net.bridges.may_poll(net.sim, 2, time) for time in earlier)


def test_pseudo_random_windows_favour_no_piconet(plain):
    net = Network(plain, schedule="PSEUDO_RANDOM", window=8 * SLOT)
    net.bridge.seed = 12345
    here = [net.present(8 * SLOT * window) for window in range(4000)]
    assert all(sum(present) == 1 for present in here)
    first = np.array([present[0] for present in here])
    # Fair coins: a fresh seed is off by 4 standard errors, in windows or in repeats, once in 8,000.
    assert abs(first.mean() - 0.5) < 4 * 0.5 / np.sqrt(4000)
    assert abs((first[1:] == first[:-1]).mean() - 0.5) < 4 * 0.5 / np.sqrt(3999)
