"""A TCP sender of the simulator, called as its host does, one event after the other."""

import numpy as np
from state_tables import one

MS = 1_000_000
SECOND = 1000 * MS
RING = 128


class Sender:
    """A connection with its statistics; every call happens at a given millisecond."""

    def __init__(
        self, plain, *, written=1000, cwnd=1.0, ssthresh=64.0, rwnd=64, snd_una=0, in_flight=0, **options
    ):
        self.tcp, self.sack, self.timer = plain.sender, plain.sack, plain.retransmission_timer
        self.records = records = plain.records
        self.conn = conn = one(records, "connection", variant=records.NEWRENO, timestamps=True)
        self.statistics = one(records, "flow_statistics")
        self.board, self.sent_at = np.zeros(RING, np.uint8), np.zeros(RING, np.int64)
        self.starts = np.zeros(RING, np.int64)
        self.histogram = np.zeros(plain.histograms.BINS, np.int64)
        conn.rto_backoff, conn.unit, conn.last_short = True, 1, -1
        conn.written, conn.cwnd, conn.ssthresh, conn.rwnd = written, cwnd, ssthresh, rwnd
        conn.snd_una, conn.snd_nxt, conn.snd_max = snd_una, snd_una + in_flight, snd_una + in_flight
        conn.recover = -1
        conn.rto, conn.min_rto, conn.max_rto = 3 * SECOND, SECOND, 64 * SECOND
        conn.rto_deadline = 3 * SECOND if in_flight else records.NEVER
        for name, value in options.items():
            setattr(conn, name, value)

    def send(self, at=0):
        """Send all that may be sent; return the numbers of the segments."""
        sent = []
        while True:
            number = self.tcp.next_segment(
                self.conn, self.board, self.sent_at, self.starts, self.statistics, at * MS
            )
            if number == self.records.NOTHING:
                return sent
            sent.append(int(number))

    def ack(self, number, at=100, echo=0, blocks=(), kind=None, **fields):
        """Receive an acknowledgement that asks for `number`, then send; return what was sent."""
        segment = one(self.records, "segment", ack=number, echo=echo * MS, blocks=len(blocks), **fields)
        segment.kind = self.records.ACK if kind is None else kind
        for place, (start, end) in enumerate(blocks):
            segment.block_start[place], segment.block_end[place] = start, end
        rings = self.board, self.sent_at, self.starts
        self.tcp.on_ack(self.conn, *rings, self.statistics, self.histogram, segment, at * MS)
        return self.send(at)

    def acks(self, *numbers, at=100):
        return [self.ack(number, at) for number in numbers]

    def timeout(self, at):
        self.tcp.on_timeout(self.conn, self.board, self.sent_at, self.starts, self.statistics, at * MS)
        return self.send(at)


def linux(plain, rtt_ms, **options):
    """Return a sender with the recovery of Linux, which has measured steady round trips."""
    rules = dict.fromkeys(["sack", "rack", "byte_counting", "rate_reduction", "measured"], True)
    rules |= dict.fromkeys(["high_sacked", "high_lost", "rack_sent", "rack_number"], -1)
    own = {"srtt": rtt_ms * MS, "least_rtt": rtt_ms * MS, "rto": SECOND, "ssthresh_rule": 1, "cwnd": 10.0}
    return Sender(plain, **rules | own | options)
