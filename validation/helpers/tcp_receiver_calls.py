"""A TCP receiver of the simulator, called as its host does, one segment after the other."""

import numpy as np
from state_tables import one

RING = 128


class Receiver:
    """Segments in; for each one (acknowledgement, echoed timestamp, segments that become readable) out."""

    def __init__(self, plain, rwnd=8, **options):
        self.tcp, self.records = plain.receiver, plain.records
        self.conn = one(self.records, "connection", **{"unit": 1, "rwnd": rwnd} | options)
        self.statistics = one(self.records, "flow_statistics")
        self.out_of_order = np.zeros(RING, np.uint8)
        self.starts = np.zeros(1, np.int64)

    def take(self, number, timestamp=0):
        """Receive a segment; return how many become readable."""
        segment = one(self.records, "segment", number=number, timestamp=timestamp)
        rings = self.out_of_order, self.starts
        return int(self.tcp.on_segment(self.conn, *rings, self.statistics, segment, 0))

    def answer(self):
        """Return the acknowledgement that leaves now."""
        segment = one(self.records, "segment", kind=self.records.ACK)
        self.tcp.fill_acknowledgement(self.conn, self.out_of_order, self.starts, segment, 0)
        return segment

    def receive(self, number, timestamp=0):
        readable = self.take(number, timestamp)
        assert self.conn.ack_now
        answer = self.answer()
        assert answer.acknowledges
        assert not self.conn.ack_now
        return int(answer.ack), int(answer.echo), readable

    def acks(self, *numbers):
        return [self.receive(number)[0] for number in numbers]
