"""Bridges that agree on meetings (LCS), by hand: intervals, lengths, rests, and what other links may do."""

import numpy as np
import pytest
from state_tables import NEVER, NOTHING, tables

SLOT = 625_000
UNLIMITED = 2**62
LEAST = 160 * SLOT
GUARD = 2  # slots


class Network:
    """Link 0 is an ordinary one of piconet 0; links 1 and 2 are those of a bridge in piconets 0 and 1.

    With `own` the bridge is the central of piconet 2, with the ordinary link 3.
    """

    def __init__(self, plain, *, own=False, rest=0.0):
        records = plain.records
        self.meetings, self.bridges = plain.meetings, plain.bridges
        self.sim = sim = tables(records, piconets=3, links=4, bridges=1, ports=8, queues=8, timers=4)
        sim.heap = np.arange(4)
        sim.timers.due, sim.timers.place, sim.timers.end = NEVER, np.arange(4), 4
        sim.piconets.timer = 0, 1, 2
        sim.piconets.first_link, sim.piconets.links = (0, 2, 3), (2, 1, 1)
        sim.piconets.meets, sim.piconets.bridge = True, NOTHING
        sim.piconets.rest = rest, 0, 0
        sim.links.piconet, sim.links.bridge = (0, 0, 1, 2), (NOTHING, 0, 0, NOTHING)
        sim.links.down, sim.links.up = np.arange(4), np.arange(4, 8)
        bridge = sim.bridges[0]
        bridge.schedule, bridge.count, bridge.own = records.COORDINATED, 2, NOTHING
        bridge.piconets[:3], bridge.links[:3] = (0, 1, 2), (1, 2, NOTHING)
        bridge.window, bridge.longest_interval = LEAST, 8 * LEAST
        if own:
            bridge.count, bridge.own = 3, 2
            sim.piconets[2].bridge = 0
            sim.piconets[2].phase = records.NO_STATION
        self.bridges.start(sim, 0)

    def meeting(self, link):
        """Return start and end of the link's next meeting (slots)."""
        of = self.sim.links[link]
        return of.meeting_start // SLOT, of.meeting_end // SLOT

    def over(self, link, at, *, frames, null=True):
        """End the meeting at a slot, after so many frames with data."""
        self.sim.piconets[self.sim.links[link].piconet].frame = frames + null
        (self.bridges.on_exchange_over if null else self.out_of_time)(self.sim, link, null, at * SLOT)

    def out_of_time(self, sim, link, null, now):
        self.bridges.on_time_over(sim, link, now)

    def left(self, link, at):
        return self.bridges.room(self.sim, link, at * SLOT) // SLOT


@pytest.fixture
def network(plain):
    return lambda **settings: Network(plain, **settings)


@pytest.mark.parametrize(("frames", "waiting"), [(1, 0), (0, 1)])
def test_whatever_was_sent_or_waits_brings_the_least_interval_back(network, frames, waiting):
    net = network()
    net.over(1, 2, frames=0)
    net.over(1, 322, frames=0)
    assert net.meeting(1)[0] == 320 + 640
    net.sim.queues[5].length = waiting
    net.over(1, 970, frames=frames)
    assert net.meeting(1)[0] == 960 + 160


def test_a_meeting_is_as_long_as_what_waits_and_what_will_come(network):
    """At first a link is taken to need 10 slots of 160, a long frame at each meeting.

    30 slots for 5 frames in the first 32 make that (1/16 + 30/32) / 2, or 80 of 160 slots to come; 70 slots
    for 7 frames in the next 200 make it (1/2 + 70/200) / 2, or 68. Then 7 packets wait down, and 3 up, which
    go with them: 70 slots more, at 10 slots a frame.
    """
    net = network()
    net.over(1, 32, frames=5)
    assert net.meeting(1) == (160, 160 + 80 + GUARD)
    net.sim.queues[1].length, net.sim.queues[5].length = 7, 3
    net.over(1, 232, frames=7)
    assert net.meeting(1) == (320, 320 + 138 + GUARD)


def test_a_meeting_is_never_longer_than_the_least_interval(network):
    net = network()
    net.sim.queues[1].length = 1000
    net.over(1, 12, frames=1, null=False)
    assert net.meeting(1) == (160, 160 + 160 + GUARD)


def test_other_links_wait_for_the_meeting_to_end(network):
    net = network()
    assert [net.left(0, at) for at in (0, 5, 13, 14)] == [0, 0, 0, UNLIMITED // SLOT]
    net.over(1, 2, frames=1)
    start, end = net.meeting(1)
    assert [net.left(0, at) for at in (2, start - 3, start, end - 1)] == [start - 2, 3, 0, 0]
    assert net.bridges.next_meeting_on(net.sim, 0, (start - 1) * SLOT) == end * SLOT


def test_a_meeting_ends_with_a_guard(network):
    net = network()
    assert [net.left(1, at) for at in (0, 8, 12, 13)] == [12, 4, 0, 0]
    assert [net.left(2, at) for at in (0, 13, 14, 20)] == [0, 0, 12, 6]
    assert net.bridges.next_meeting_on(net.sim, 2, 3 * SLOT) == 14 * SLOT
    assert not net.bridges.may_poll(net.sim, 1, 11 * SLOT)


def test_a_bridge_is_in_its_own_piconet_between_meetings(network):
    net = network(own=True)
    assert net.left(3, 5) == 0
    net.over(1, 2, frames=0)
    # It takes up to two slots to come back, though the next meeting is at slot 14, and leaves two before it.
    assert [net.left(3, at) for at in (2, 3, 4, 11, 12, 14)] == [0, 0, 8, 1, 0, 0]
    assert net.sim.timers[2].due == 4 * SLOT
    assert net.bridges.next_meeting(net.sim, 2, 2 * SLOT) == 4 * SLOT
    assert net.bridges.next_meeting(net.sim, 2, 11 * SLOT) == 28 * SLOT
