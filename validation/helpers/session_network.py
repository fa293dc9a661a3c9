"""Two ends of CentaurusComm joined by a pipe: a constant delay, in order, that loses what a test tells it to.

The simulator's own records and functions run above it.
"""

import heapq
from types import SimpleNamespace
from typing import Any

import numpy as np
from state_tables import NEVER, NOTHING, pool, tables

DELAY = 1_000_000
"""One way (ns)."""
POOL, RING = 4096, 128
REQUESTER, RESPONDER = 0, 1


def new_state(plain, request, reply, goodbye):
    """One session between node 0 (flow 0, the requester) and node 1 (flow 1); timer 0 is the session's."""
    records = plain.records
    sim = tables(records, clock=1, pools=3, timers=1, layouts=4, connections=2, sessions=1, flow_statistics=2)
    sim.segments, sim.messages = (pool(records, name, POOL) for name in ("segments", "messages"))
    sim.heap, sim.patterns = np.arange(1), np.array([0] * request + [1] * goodbye + [2] * reply)
    sim.delay_histogram = np.zeros((2, plain.histograms.BINS), np.int64)
    sim.out_of_order, sim.scoreboard = np.zeros((2, 2, RING), np.uint8)
    sim.sent_at, sim.starts = np.zeros((2, RING), np.int64), np.zeros((2, 1), np.int64)
    sim.timers.due = NEVER
    sim.clock.sending = NOTHING
    sim.pools.left = POOL
    sim.layouts.application = 64, 32, 128, 0
    connections = sim.connections
    connections.source, connections.destination, connections.reverse = (0, 1), (1, 0), (1, 0)
    connections.pattern, connections.pattern_length = (0, request + goodbye), (request + goodbye, reply)
    connections.control_layout = 3
    connections.protocol, connections.unit = records.CENTAURUS, 1
    connections.ack_timer = connections.retransmission_timer = NOTHING
    session = sim.sessions[0]
    session.requester, session.responder, session.timer = REQUESTER, RESPONDER, 0
    session.request_segments, session.reply_segments, session.goodbye_segments = request, reply, goodbye
    session.deadlines = NEVER
    for name in records.NUMBERS_OF_OBJECTS:
        session[name] = NOTHING
    session.watchdog = 50 * DELAY
    session.pause = 1000 * DELAY
    return sim


class Network:
    """Plays a session: `sent` lists all segments that left, `lose(segment)` says which do not arrive."""

    def __init__(self, plain, request=3, reply=2, goodbye=1, **options) -> None:
        self.plain = plain
        self.sim: Any = new_state(plain, request, reply, goodbye)
        self.session: Any = self.sim.sessions[0]
        for name, value in options.items():
            self.session[name] = value
        for flow in (REQUESTER, RESPONDER):
            conn = self.sim.connections[flow]
            for name, value in plain.fresh_connection.initial_values(conn).items():
                setattr(conn, name, value)
        self.sim.fresh = self.sim.connections.copy()
        self.lose: Any = lambda segment: False
        self.travelling, self.sent = [], []
        self.now = 0
        plain.sessions.start(self.sim, 0)

    def run(self, until=NEVER, done=lambda: False):
        """Play until this time, or until nothing is left to do or `done()`."""
        while not done():
            arrival = self.travelling[0][0] if self.travelling else NEVER
            timer = self.sim.timers[0].due
            due = min(timer, arrival)
            if due > until or due == NEVER:
                return self
            self.now = int(due)
            if arrival <= timer:
                self.receive(heapq.heappop(self.travelling)[2])
            else:
                self.plain.timers.cancel(self.sim, 0)
                self.plain.sessions.on_timer(self.sim, 0, self.now)
            self.send()
        return self

    def receive(self, segment):
        flow = int(segment.flow)
        if segment.incarnation == self.sim.connections[flow].incarnation:
            self.plain.state_machine.on_segment(self.sim, flow, segment, self.now)

    def send(self):
        """Let the flow that may send now send all that it has."""
        flow = self.sim.clock[0].sending
        if flow == NOTHING:
            return
        while (index := self.plain.state_machine.next_output(self.sim, flow, self.now)) != NOTHING:
            segment = self.sim.segments[index].copy()
            self.plain.queues.give_back(self.sim.pools[self.plain.records.SEGMENTS], self.sim.segments, index)
            self.sent.append(SimpleNamespace(at=self.now, segment=segment))
            if not self.lose(segment):
                heapq.heappush(self.travelling, (self.now + DELAY, len(self.sent), segment))
        self.sim.clock[0].sending = NOTHING
