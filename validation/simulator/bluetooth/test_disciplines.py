"""Polling disciplines traced by hand: who has data goes in, the order of the visits comes out."""

import numpy as np
import pytest
from state_tables import NOTHING, tables

from btqueue.simulator.records.conventions import SLOT

VISIT = 2 * SLOT
"""Every visit takes two slots here."""


class Piconet:
    """One piconet without bridges; `packets[station]` are those in its downlink and in its uplink queue."""

    def __init__(self, plain, discipline, links=3, limit=5, max_weight=3, bridge_at=NOTHING):
        records = plain.records
        self.disciplines = plain.disciplines
        self.sim = tables(records, piconets=1, links=links, bridges=1, ports=2 * links, queues=2 * links)
        self.sim.streams = plain.random_streams.make_streams(1, 0, 1)
        self.central = self.sim.piconets[0]
        self.central.links, self.central.limit, self.central.max_weight = links, limit, max_weight
        self.central.discipline, self.central.bridge = getattr(records, discipline), NOTHING
        self.sim.links.down = np.arange(links)
        self.sim.links.up = links + np.arange(links)
        self.sim.links.bridge = NOTHING
        if bridge_at != NOTHING:
            self.sim.links[bridge_at].bridge = 0
        self.now = 0
        self.disciplines.start(self.sim, 0)

    def fill(self, station, down=0, up=0):
        self.sim.queues[self.sim.links[station].down].length = down
        self.sim.queues[self.sim.links[station].up].length = up

    def has_data(self, station):
        link = self.sim.links[station]
        return bool(self.sim.queues[link.down].length + self.sim.queues[link.up].length)

    def begin(self):
        self.disciplines.begin_visit(self.sim, 0, self.now)

    def over_after(self, frames, null=False):
        self.central.frame = frames
        return bool(self.disciplines.visit_is_over(self.sim, 0, null))

    def visits(self, count, served=False):
        """Play so many visits, each with data if its station has some, which it loses if it is `served`."""
        stations = []
        for _ in range(count):
            stations.append(int(self.central.station))
            self.begin()
            self.central.carried_data = self.has_data(self.central.station)
            if served:
                self.fill(self.central.station)
            self.now += VISIT
            assert self.disciplines.next_station(self.sim, 0, self.now)
        return stations


LIMITED = ("E_LIMITED", "LWRR", "PRC_LWRR", "SLQ", "LDQ")
OTHERS = ("EXHAUSTIVE", "GATED", "FEP")


@pytest.mark.parametrize(
    ("discipline", "frames"), [*((one, 3) for one in LIMITED), ("FEP", 1), ("EXHAUSTIVE", 10**6)]
)
def test_a_visit_ends_after_its_limit_or_a_null(plain, discipline, frames):
    """Fair exhaustive polling has visits of one frame, whatever the limit; an exhaustive visit has none."""
    p = Piconet(plain, discipline, limit=3)
    p.fill(0, down=9, up=9)
    p.begin()
    assert [p.over_after(number) for number in (1, 2, 3)] == [number >= frames for number in (1, 2, 3)]
    assert p.over_after(0, null=True)


def test_a_gated_visit_serves_what_was_there_when_it_began(plain):
    p = Piconet(plain, "GATED", limit=1)
    p.fill(0, down=1, up=2)
    p.begin()
    p.fill(0, down=5, up=5)
    assert not p.over_after(0)
    p.central.gate_down -= 1
    p.central.gate_up -= 1
    assert not p.over_after(1)
    p.central.gate_up -= 1
    assert p.over_after(2)
    p.fill(0)
    p.begin()
    p.fill(0, up=1)
    assert p.over_after(1), "a visit to empty queues ends after a frame"


@pytest.mark.parametrize("discipline", [*LIMITED, *OTHERS])
def test_a_visit_to_a_bridge_has_the_limit_of_the_bridge(plain, discipline):
    p = Piconet(plain, discipline, links=1, limit=2, bridge_at=0)
    p.sim.links[0].limit = 15
    p.begin()
    assert not p.over_after(14)
    assert p.over_after(15)


@pytest.mark.parametrize("discipline", ["E_LIMITED", "SLQ", "LDQ", *OTHERS])
def test_cyclic_order_and_its_count_of_cycles(plain, discipline):
    """The disciplines that look at queues are cyclic when there is nothing to send."""
    p = Piconet(plain, discipline)
    assert p.visits(7) == [0, 1, 2, 0, 1, 2, 0]
    assert p.central.cycle == 2


def test_an_inactive_link_is_left_out_until_the_others_are_inactive_too(plain):
    p = Piconet(plain, "FEP")
    p.fill(0, up=1)
    p.fill(2, up=1)
    assert p.visits(6) == [0, 1, 2, 0, 2, 0]
    p.fill(1, up=1)  # the central does not know
    assert p.visits(4) == [2, 0, 2, 0]
    p.fill(0)
    p.fill(2)
    # Links 2 and 0 fall silent; then all are tried again, and link 1 alone stays active.
    assert p.visits(8) == [2, 0, 1, 2, 0, 1, 1, 1]


def test_a_link_without_data_loses_weight_and_then_misses_cycles(plain):
    p = Piconet(plain, "LWRR", links=2, max_weight=3)
    p.fill(0, up=1)
    # Link 1: weight 3, 2, then 1 and left out of two cycles, again and again.
    assert p.visits(11) == [0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0]
    assert list(p.sim.links.weight) == [3, 1]
    p.fill(1, up=1)
    # One visit with data, and it takes part in every cycle.
    assert p.visits(5) == [1, 0, 1, 0, 1]
    assert list(p.sim.links.weight) == [3, 3]


def test_cycles_that_leave_every_link_out_take_no_time(plain):
    p = Piconet(plain, "LWRR", links=2, max_weight=5)
    p.visits(8)
    assert list(p.sim.links.weight) == [1, 1]
    before = int(p.central.cycle)
    assert p.visits(4) == [0, 1, 0, 1]
    # Two more turns, of five cycles each.
    assert p.central.cycle == before + 10


def test_every_cycle_has_a_fresh_random_order_and_all_are_equally_likely(plain):
    p = Piconet(plain, "PRC_LWRR", links=3)
    for station in range(3):
        p.fill(station, up=1)
    orders = [tuple(p.visits(3)) for _ in range(1200)]
    counts = [orders.count(order) for order in set(orders)]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert p.central.cycle == 1200
    # Chi-square with 5 degrees of freedom: a fresh seed exceeds 20.5 once in a thousand.
    assert len(counts) == 6
    assert sum((count - 200) ** 2 / 200 for count in counts) < 20.5


def test_a_link_without_data_is_skipped_for_slots(plain):
    """Links x (max_weight - weight) visits of two slots each: 2, then 4, then 4 again."""
    p = Piconet(plain, "PRC_LWRR", links=2, max_weight=3)
    p.fill(0, up=1)
    polls = [number for number, station in enumerate(p.visits(60)) if station == 1]
    gaps = np.diff(polls)
    # Its time is up after `skipped` visits of the other; where it then stands in the order adds one at most.
    assert set(gaps[:1]) <= {3, 4}
    assert set(gaps[1:]) <= {5, 6}
    assert p.sim.links[1].weight == 1


@pytest.mark.parametrize(("now", "cycle"), [(VISIT - 1, 1), (VISIT, 0)])
def test_a_skipped_link_has_its_turn_from_the_very_end_of_its_time(plain, now, cycle):
    p = Piconet(plain, "PRC_LWRR", links=2)
    skipped = int(p.central.order[1])
    p.sim.links[skipped].skip_until = VISIT
    p.disciplines.next_station(p.sim, 0, now)
    assert p.central.cycle == cycle
    assert (p.central.station == skipped) == (cycle == 0)


def test_if_all_are_skipped_the_one_whose_time_is_up_first_is_polled(plain):
    p = Piconet(plain, "PRC_LWRR", links=2, max_weight=10)
    for first, second in ((900, 800), (800, 900), (800, 900), (900, 800)):
        p.sim.links.skip_until = first * SLOT, second * SLOT
        assert p.disciplines.next_station(p.sim, 0, VISIT)
        assert p.central.station == (0 if first < second else 1)


def test_the_largest_sum_of_queues_is_next(plain):
    p = Piconet(plain, "SLQ", links=4)
    p.fill(0, down=1)
    p.fill(1, down=2, up=2)
    p.fill(2, up=5)
    p.fill(3, down=4)
    assert p.visits(5, served=True) == [0, 2, 3, 1, 2]


def test_the_largest_downlink_queue_is_next_whatever_the_uplinks_hold(plain):
    p = Piconet(plain, "LDQ")
    p.fill(0, down=1)
    p.fill(1, up=9)
    p.fill(2, down=2)
    assert p.visits(4) == [0, 2, 2, 2]
    assert p.central.cycle == 3  # staying is a cycle too
    p.fill(2)
    p.fill(0)
    assert p.visits(3) == [2, 0, 1]


def test_a_link_that_carried_nothing_does_not_hold_the_others_up(plain):
    """As a walk-in bridge that is elsewhere, with the longest queue."""
    p = Piconet(plain, "LDQ")
    p.fill(0, down=1)
    p.fill(2, down=9)
    p.has_data = lambda station: station == 0
    assert p.visits(5) == [0, 2, 0, 2, 0]
