"""A client and a server joined by a pipe: a constant delay, in order, that loses what a test tells it to.

The simulator's own records and functions run above it; a TCP flow is replaced by the delivery, `DELAY` later,
of all that was written.
"""

import heapq
from types import SimpleNamespace

import numpy as np
from state_tables import NEVER, NOTHING, pool, tables

DELAY = 1_000_000
"""One way (ns)."""
POOL = 4096
RING = 128
REQUESTER, RESPONDER = 0, 1


def new_state(plain, protocol, request, reply, goodbye):
    """One session between node 0 (flow 0, the requester) and node 1 (flow 1); timer 0 is the session's."""
    records = plain.records
    sim = tables(records, clock=1, pools=3, timers=3, layouts=4, connections=2, sessions=1, flow_statistics=2)
    sim.segments, sim.messages = (pool(records, name, POOL) for name in ("segments", "messages"))
    sim.heap, sim.patterns = np.arange(3), np.array([0] * request + [1] * goodbye + [2] * reply)
    sim.delay_histogram = np.zeros((2, plain.histograms.BINS), np.int64)
    sim.out_of_order, sim.scoreboard = np.zeros((2, 2, RING), np.uint8)
    sim.sent_at, sim.starts = np.zeros((2, RING), np.int64), np.zeros((2, 1), np.int64)
    sim.timers.due = NEVER
    plain.numbering.heaps(sim.timers, np.zeros(3))
    sim.clock.sending = NOTHING
    sim.pools.left = POOL
    sim.layouts.application = 64, 32, 128, 0
    connections = sim.connections
    connections.source, connections.destination, connections.reverse = (0, 1), (1, 0), (1, 0)
    connections.pattern, connections.pattern_length = (0, request + goodbye), (request + goodbye, reply)
    connections.control_layout = 3
    connections.protocol, connections.unit = protocol, 1
    connections.ack_timer = NOTHING
    connections.retransmission_timer = 1, 2
    connections.initial_window_segments, connections.initial_ssthresh_segments = 2, 64
    connections.initial_rto, connections.max_rto, connections.min_rto = 100 * DELAY, 800 * DELAY, DELAY
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

    def __init__(self, plain, protocol, request=3, reply=2, goodbye=1, start_at=0, **options):
        self.plain = plain
        self.sim = new_state(plain, protocol, request, reply, goodbye)
        self.sim.connections.start_at = start_at
        self.session = self.sim.sessions[0]
        for name, value in options.items():
            owner = self.session if name in self.session.dtype.names else self.sim.connections
            assert name in owner.dtype.names
            setattr(owner, name, value)
        for flow in (REQUESTER, RESPONDER):
            conn = self.sim.connections[flow]
            for name, value in plain.fresh_connection.initial_values(conn).items():
                setattr(conn, name, value)
        self.sim.fresh = self.sim.connections.copy()
        self.tcp = protocol == plain.records.TCP
        self.lose = lambda segment: False
        self.travelling = []
        self.sent = []
        self.now = 0
        plain.sessions.start(self.sim, 0)

    def run(self, until=NEVER, done=lambda: False):
        """Play until this time, or until nothing is left to do or `done()`."""
        while not done():
            timer = self.plain.timers.earliest(self.sim, 0)
            timer_due = self.sim.timers[timer].due
            arrival = self.travelling[0][0] if self.travelling else NEVER
            due = min(timer_due, arrival)
            if due > until or due == NEVER:
                return self
            self.now = int(due)
            if arrival <= timer_due:
                self.receive(heapq.heappop(self.travelling))
            else:
                self.on_timer(timer)
            self.send()
        return self

    def on_timer(self, timer):
        """The session's timer, or the one of a SYN: no other runs, for a handshake alone may wait."""
        self.plain.timers.cancel(self.sim, timer)
        if timer == 0:
            self.plain.sessions.on_timer(self.sim, 0, self.now)
            return
        conn = self.sim.connections[timer - 1]
        if conn.rto_deadline <= self.now:
            assert not conn.open
            self.plain.connection_setup.on_syn_timeout(self.sim, timer - 1, self.now)
        self.plain.timers.schedule(self.sim, timer, conn.rto_deadline)

    def send(self):
        """Let the flow that may send now send all that it has."""
        flow = self.sim.clock[0].sending
        if flow == NOTHING:
            return
        make = self.next_tcp if self.tcp else self.plain.state_machine.next_output
        while (index := make(self.sim, flow, self.now)) != NOTHING:
            segment = self.sim.segments[index].copy()
            self.plain.pool.give_back(self.sim.pools[self.plain.records.SEGMENTS], self.sim.segments, index)
            self.sent.append(SimpleNamespace(at=self.now, segment=segment))
            if not self.lose(segment):
                heapq.heappush(self.travelling, (self.now + DELAY, len(self.sent), segment))
        self.sim.clock[0].sending = NOTHING

    def next_tcp(self, sim, flow, now):
        """In place of TCP: a handshake segment, or one segment for all that is written and not yet sent."""
        index = self.plain.connection_setup.next_output(sim, flow, now)
        conn = sim.connections[flow]
        if conn.rto_deadline < sim.timers[conn.retransmission_timer].due:
            self.plain.timers.schedule(sim, conn.retransmission_timer, conn.rto_deadline)
        if index == NOTHING and conn.open and conn.snd_nxt < conn.written:
            conn.snd_nxt = conn.written
            index = self.plain.l2cap.new_segment(
                sim, flow, self.plain.records.DATA, False, 0, conn.written - 1
            )
        return index

    def receive(self, arrival):
        segment = arrival[2]
        records, sim, flow = self.plain.records, self.sim, int(segment.flow)
        if segment.incarnation != sim.connections[flow].incarnation:
            return
        if not self.tcp:
            self.plain.state_machine.on_segment(sim, flow, segment, self.now)
        elif segment.kind in (records.SYN, records.SYN_ACK):
            self.plain.connection_setup.on_segment(sim, flow, segment, self.now)
        else:
            conn = sim.connections[flow]
            conn.rcv_nxt = segment.number + 1
            if not sim.connections[conn.reverse].open:
                self.plain.connection_setup.on_first_data(sim, conn.reverse)
            self.plain.application.on_delivered(sim, flow, self.now)
            self.plain.sessions.on_message_delivered(sim, flow, self.now)
