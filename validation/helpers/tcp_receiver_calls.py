"""A TCP receiver of the simulator, called as its host does, one segment after the other."""

import numpy as np

RING = 128


class Receiver:
    """Segments in; for each one (acknowledgement, echoed timestamp, segments that become readable) out."""

    def __init__(self, plain, rwnd=8, **options):
        self.tcp, self.records = plain.receiver, plain.records
        self.conn = np.zeros(1, plain.records.connection_dtype).view(np.recarray)[0]
        self.statistics = np.zeros(1, plain.records.flow_statistics_dtype).view(np.recarray)[0]
        self.out_of_order = np.zeros(RING, np.uint8)
        self.starts = np.zeros(1, np.int64)
        self.conn.unit = 1
        self.conn.rwnd = rwnd
        for name, value in options.items():
            setattr(self.conn, name, value)

    def take(self, number, timestamp=0):
        """Receive a segment; return how many become readable."""
        segment = np.zeros(1, self.records.segment_dtype).view(np.recarray)[0]
        segment.number, segment.timestamp = number, timestamp
        return int(
            self.tcp.on_segment(self.conn, self.out_of_order, self.starts, self.statistics, segment, 0)
        )

    def answer(self, kind=None):
        """Return the acknowledgement that leaves now."""
        segment = np.zeros(1, self.records.segment_dtype).view(np.recarray)[0]
        segment.kind = self.records.ACK if kind is None else kind
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
