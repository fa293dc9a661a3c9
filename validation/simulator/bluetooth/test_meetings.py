"""Bridges that agree on meetings (LCS), by hand: intervals, lengths, rests, and what other links may do."""

import numpy as np
import pytest
from state_tables import NEVER, NOTHING, tables

SLOT = 625_000
UNLIMITED = 2**62
LEAST = 160 * SLOT
GUARD, SHORTEST = 2, 14  # slots


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


def test_the_first_meetings_are_short_and_one_after_the_other(network):
    net = network()
    assert net.meeting(1) == (0, SHORTEST)
    assert net.meeting(2) == (SHORTEST, 2 * SHORTEST)


def test_an_idle_link_meets_half_as_often_each_time_up_to_the_largest_interval(network):
    net = network()
    starts = [0]
    for _ in range(5):
        net.over(1, starts[-1] + 2, frames=0)
        start, end = net.meeting(1)
        assert end == start + SHORTEST
        starts.append(start)
    assert list(np.diff(starts)) == [320, 640, 1280, 1280, 1280]


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


def test_a_link_that_was_busy_is_met_as_often_until_little_is_expected(network):
    """A need of 1/2, halved at each idle meeting: under 1/16 it would not fill 10 slots in 160."""
    net = network()
    net.over(1, 32, frames=5)
    starts = []
    for _ in range(6):
        starts.append(net.meeting(1)[0])
        net.over(1, starts[-1] + 2, frames=0)
    assert list(np.diff(starts)) == [160, 160, 160, 320, 640]


def test_a_meeting_is_never_longer_than_the_least_interval(network):
    net = network()
    net.sim.queues[1].length = 1000
    net.over(1, 12, frames=1, null=False)
    assert net.meeting(1) == (160, 160 + 160 + GUARD)


def test_steady_links_get_their_share_of_the_time(network):
    """Frames of 6 slots that fill 30 % and 15 % of the time: 48 and 24 slots in every interval of 160."""
    net = network()
    share, done, starts = {1: 0.3, 2: 0.15}, {1: 0, 2: 0}, {1: [], 2: []}
    for _ in range(100):
        link = min(share, key=lambda one: net.meeting(one)[0])
        start, end = net.meeting(link)
        starts[link].append(start)
        waiting = int(share[link] * start / 6) - done[link]
        frames = min(waiting, (end - GUARD - start) // 6)
        done[link] += frames
        net.sim.queues[link].length = waiting - frames
        net.over(link, start + 6 * frames + 2 * (frames == waiting), frames=frames, null=frames == waiting)
    assert set(np.diff(starts[1][20:])) == set(np.diff(starts[2][20:])) == {160}
    for link in share:
        assert done[link] * 6 == pytest.approx(share[link] * starts[link][-1], abs=12)
    assert np.diff(net.meeting(1)) == pytest.approx(48 + GUARD, abs=6)
    assert np.diff(net.meeting(2)) == pytest.approx(24 + GUARD, abs=6)


def test_two_busy_links_take_turns_without_a_gap(network):
    net = network()
    net.sim.queues.length[[1, 2]] = 1000
    times = []
    for _ in range(20):
        link = min((1, 2), key=lambda one: net.meeting(one)[0])
        start, end = net.meeting(link)
        times.append((link, start, end))
        net.over(link, end - GUARD, frames=(end - start) // 6, null=False)
    links, starts, ends = zip(*times[4:], strict=True)
    assert links == (1, 2) * 8 or links == (2, 1) * 8
    assert starts[1:] == ends[:-1]
    assert set(np.subtract(ends, starts)) == {160 + GUARD}


def test_a_central_rests_after_a_meeting_for_its_other_peripherals(network):
    """At equal weights a busy meeting is half of the interval, and the other half is left."""
    net = network(rest=1.0)
    net.sim.queues[1].length = 1000
    net.over(1, 12, frames=1, null=False)
    assert net.meeting(1) == (160, 160 + 80 + GUARD)
    net.over(1, 240, frames=13, null=False)
    assert net.meeting(1)[0] == 240 + 80
    # The bridge need not rest: it meets the other central meanwhile.
    net.sim.links[2].meeting_start = 80 * SLOT
    net.over(2, 242, frames=1)
    assert net.meeting(2)[0] == 242
    assert net.meeting(2)[1] <= 320


def test_links_of_one_device_do_not_meet_at_once(network):
    net = network()
    net.over(1, 2, frames=1)
    start, end = net.meeting(1)
    assert start == 160
    net.sim.links[2].meeting_start = 0
    net.over(2, 16, frames=1)
    assert net.meeting(2)[0] == end


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


def test_the_end_of_time_for_another_link_ends_no_meeting(network):
    net = network()
    before = [net.meeting(link) for link in (1, 2)]
    net.bridges.on_time_over(net.sim, 0, 0)
    assert [net.meeting(link) for link in (1, 2)] == before
