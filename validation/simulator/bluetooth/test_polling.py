"""E-limited polling as a timeline of half-frames on the air (Venugopal 2006, sections 2.1.1 and 2.3.1).

A timeline reads "slot station direction packet, ..."; stations count from 0.
"""

from itertools import groupby

import numpy as np
import pytest
from thesis import thesis
from whole_network import go_on

from btqueue.simulator.construction import state
from btqueue.simulator.records.conventions import SECOND, SLOT
from btqueue.simulator.statistics.invariants import check_invariants
from btqueue.simulator.statistics.measurement import measure, take_counts


class Piconet:
    """A piconet whose queues are filled by hand; its sources are silent for hours, and it never sleeps."""

    def __init__(self, plain, *, peripherals=2, limit=5, **changes):
        self.plain = plain
        self.scenario = thesis().with_(
            network__peripherals=peripherals,
            polling__limit=limit,
            traffic__load_kbps=1e-3,
            flow_control__baseband_packets=100,
            **changes,
        )
        self.names = plain.names.packet_type_names(self.scenario)
        self.sim = sleepless(plain.state, self.scenario)
        self.central = self.sim.piconets[0]

    def queue(self, direction, station):
        link = self.sim.links[station]
        return link.up if direction == "up" else link.down

    def new_segment(self, travelling):
        """Make a data segment of flow 0, from peripheral 0 to peripheral 1, with packets on their way."""
        conn = self.sim.connections[0]
        layout = self.sim.patterns[conn.pattern]
        segment = self.plain.l2cap.new_segment(self.sim, 0, self.plain.records.DATA, False, layout, 0)
        self.sim.segments[segment].travelling = travelling
        return segment

    def put(self, direction, station, segment, position):
        packet = self.plain.l2cap.new_packet(self.sim, segment, position)
        self.sim.packets[packet].hop += direction == "down"
        now = int(self.sim.clock[0].now)
        assert self.plain.packet_queue.offer(self.sim, self.queue(direction, station), packet, now)
        self.central.waiting += 1

    def fill(self, direction, station, *positions):
        """Put packets of a data segment in a queue; positions 0 to 3 are DH5, 4 is the DH3.

        The segment never comes complete, so TCP stays out of the picture.
        """
        segment = self.new_segment(travelling=1000)
        for position in positions:
            self.put(direction, station, segment, position)

    def on_air(self):
        """What is on the air now."""
        down = self.central.phase == self.plain.records.DOWNLINK_HALF
        if self.central.packet == self.plain.records.NOTHING:
            name = "POLL" if down else "NULL"
        else:
            name = self.names[self.central.on_air_type]
        return f"{self.central.station} {'down' if down else 'up'} {name}"

    def timeline(self, half_frames):
        """Play so many half-frames; return what was on the air, in a line."""
        lines = []
        for _ in range(half_frames):
            lines.append(f"{self.sim.clock[0].now // SLOT} {self.on_air()}")
            self.plain.engine.advance(self.sim, int(self.sim.timers[self.central.timer].due))
        return ", ".join(lines)

    def stations(self, half_frames, direction):
        """Play so many half-frames; return the stations in those of this direction."""
        lines = [line.split() for line in self.timeline(half_frames).split(", ")]
        return [int(station) for _, station, way, _ in lines if way == direction]


def sleepless(state, scenario):
    """Return the state at time 0 of a network that plays every idle visit, made by this module of states."""
    state.keep.cache_clear()
    state.State(state.empty_network(scenario).packed).piconets.can_sleep = False
    try:
        return state.new_state(scenario, 0)
    finally:
        state.keep.cache_clear()


@pytest.fixture
def piconet(plain):
    return lambda **settings: Piconet(plain, **settings)


def test_with_nothing_to_send_every_visit_is_poll_and_null(piconet):
    assert piconet().timeline(4) == "0 0 down POLL, 1 0 up NULL, 2 1 down POLL, 3 1 up NULL"


def test_a_visit_ends_after_the_limit_of_frames(piconet):
    network = piconet(limit=2)
    network.fill("up", 0, 0, 1, 2)
    assert network.timeline(4) == "0 0 down POLL, 1 0 up DH5, 6 0 down POLL, 7 0 up DH5"
    # two frames: the third packet waits for the next visit, the first two were relayed
    assert network.timeline(1) == "12 1 down DH5"


def test_a_visit_ends_at_once_when_poll_is_answered_by_null(piconet):
    network = piconet(limit=5)
    network.fill("up", 0, 4)
    assert network.timeline(4) == "0 0 down POLL, 1 0 up DH3, 4 0 down POLL, 5 0 up NULL"
    assert network.timeline(1) == "6 1 down DH3"


def test_a_downlink_packet_answered_by_null_does_not_end_the_visit(piconet):
    network = piconet(limit=5)
    network.timeline(2)
    network.fill("down", 1, 0, 4)
    # the POLL was on the air already
    assert network.timeline(4) == "2 1 down POLL, 3 1 up NULL, 4 0 down POLL, 5 0 up NULL"
    assert network.timeline(4) == "6 1 down DH5, 11 1 up NULL, 12 1 down DH3, 15 1 up NULL"
    assert network.timeline(2) == "16 1 down POLL, 17 1 up NULL"


def test_the_uplink_answers_with_what_was_ready_when_the_downlink_ended(piconet):
    # The downlink packet completes a segment; its acknowledgement is too late for this half-frame.
    network = piconet(limit=5)
    network.timeline(2)
    network.put("down", 1, network.new_segment(travelling=1), 4)
    network.timeline(4)
    assert network.timeline(4) == "6 1 down DH3, 9 1 up NULL, 10 1 down POLL, 11 1 up DH3"


@pytest.mark.parametrize("limit", [1, 3, 15])
def test_a_backlog_gets_exactly_the_limit_in_every_visit(piconet, limit):
    network = piconet(limit=limit)
    network.fill("up", 0, *[4] * 40)
    visits = [len(list(visit)) for _, visit in groupby(network.stations(16 * limit, "up"))]
    assert visits[0] == max(visits) == limit, "the first visit is to the station with the backlog"


def outcome(sim, seconds):
    """Run from the start; return everything that a result is made of, and the number of events played."""
    for second in range(1, seconds + 1):
        sim = go_on(sim, second * SECOND + 7)
    check_invariants(sim)
    metrics = measure(sim, [take_counts(sim)])
    tables = ("connections", "flow_statistics", "queue_statistics", "buckets", "streams", "channels", "links")
    # field by field: what lies between the fields of a record is not defined
    records = {
        (table, field): getattr(sim, table)[field].tolist()
        for table in tables
        for field in getattr(sim, table).dtype.names
    }
    return records, metrics, int(sim.clock[0].events)


@pytest.mark.parametrize(
    "changes",
    [
        {"traffic__load_kbps": 10},
        {"traffic__load_kbps": 20, "polling__limit": 2},
        {"traffic__load_kbps": 20, "network__peripherals": 5, "polling__limit": 1},
        {"traffic__load_kbps": 60, "flow_control__token_rate_kbps": 50, "radio__model": "gilbert-elliott"},
        {"traffic__load_kbps": 20, "run__jitter_s": 0.01},
        {"traffic__load_kbps": 20, "polling__discipline": "gated"},
        {"traffic__load_kbps": 20, "polling__discipline": "exhaustive", "link__arq": "unlimited"},
        {"traffic__load_kbps": 2, "voice__packet": "HV3", "link__packets": ["DH3"]},
        {"traffic__source": "ibp", "traffic__load_kbps": 20, "transport__delayed_ack": True},
    ],
    ids=str,
)
def test_sleeping_through_idle_visits_changes_nothing(changes):
    scenario = thesis().with_(**changes)
    seconds = 8 if "voice__packet" in changes else 4  # little load: the messages come late
    slept, slept_metrics, few = outcome(state.new_state(scenario, 0), seconds)
    played, played_metrics, many = outcome(sleepless(state, scenario), seconds)
    assert few < 0.8 * many, "it slept"
    assert [name for name in played if slept[name] != played[name]] == []
    for name, value in played_metrics.items():
        np.testing.assert_array_equal(value, slept_metrics[name], err_msg=name)
