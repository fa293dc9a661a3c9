"""The token bucket and its two queues, packet by packet. A token is a byte; 8 kbit/s are 1 byte a ms."""

import pytest
from state_tables import one
from thesis import thesis

MS = 1_000_000
BYTE = 8 * 1_000_000_000  # nanobits
DH5, DH3 = 339, 183  # payload bytes
PORT = 0
"""The uplink of peripheral 0, where flow 0 begins."""


class Gate:
    """Flow control of peripheral 0; packets are offered and the outcome is read off the queues."""

    def __init__(self, plain, *, tokens, S=25, L=20, **keys):
        self.plain, self.bucket_of = plain, plain.token_bucket
        usual = {"token_rate_kbps": 8, "bucket_bytes": 3000, "buffer_packets": S, "baseband_packets": L}
        scenario = thesis().changed({f"flow_control.{key}": value for key, value in (usual | keys).items()})
        self.sim = plain.state.new_state(scenario, 0)
        self.bucket = self.sim.buckets[PORT]
        self.bucket.tokens = tokens * BYTE
        self.layout = self.sim.patterns[self.sim.connections[0].pattern]
        self.segment = plain.l2cap.new_segment(self.sim, 0, plain.records.DATA, False, self.layout, 0)
        self.sim.segments[self.segment].travelling = 1000

    @property
    def seen(self):
        """How many packets wait for tokens and are in the uplink queue, and how many tokens there are."""
        lengths = self.sim.queues.length
        return int(lengths[self.bucket.queue]), int(lengths[PORT]), self.bucket.tokens / BYTE

    @property
    def refused(self):
        counts = self.sim.flow_statistics[0]
        return int(counts.refused_at_token_buffer), int(counts.refused_at_baseband)

    @property
    def due(self):
        """When the token timer fires (ns)."""
        return int(self.sim.timers[self.bucket.timer].due)

    def offer(self, *positions, at=0):
        """Offer packets of a data segment; positions 0 to 3 are DH5, 4 is the DH3."""
        for position in positions:
            packet = self.plain.l2cap.new_packet(self.sim, self.segment, position)
            self.bucket_of.admit_packet(self.sim, PORT, packet, at)

    def fire(self):
        """Let the token timer fire when it is due; return that time (ns)."""
        now = self.due
        self.plain.timers.cancel(self.sim, self.bucket.timer)
        self.bucket_of.on_tokens(self.sim, PORT, now)
        return now


def test_tokens_gather_at_the_rate_up_to_the_depth(plain):
    bucket = one(plain.records, "bucket", depth=100 * BYTE)
    # in three years, at 250 kbit/s, rate x time would be 2.5e22, past 2^63
    for rate, now, tokens in ((8000, 30 * MS, 30), (8000, 100 * MS, 100), (250_000, 10**17, 100)):
        bucket.rate = rate
        plain.token_bucket.accrue(bucket, now)
        assert bucket.tokens == tokens * BYTE


@pytest.mark.parametrize(
    ("settings", "offered", "seen", "refused"),
    [
        # the tokens are there
        ({"tokens": 400}, 1, (0, 1, 400 - DH5), (0, 0)),
        # the token buffer is full
        ({"tokens": 0, "S": 2}, 3, (2, 0, 0), (1, 0)),
        # the uplink queue is full, and the tokens are spent
        ({"tokens": 1100, "L": 2}, 3, (0, 2, 1100 - 3 * DH5), (0, 1)),
        # without flow control packets go straight to the uplink queue
        ({"tokens": 0, "S": 1, "L": 3, "enabled": False}, 4, (0, 3, 0), (0, 1)),
    ],
)
def test_a_packet_passes_or_waits_or_is_refused(plain, settings, offered, seen, refused):
    flow = Gate(plain, **settings)
    flow.offer(*range(offered))
    assert (flow.seen, flow.refused) == (seen, refused)
    assert flow.sim.segments[flow.segment].damaged == any(refused)


def test_the_timer_fires_at_the_first_nanosecond_at_which_the_tokens_are_there(plain):
    flow = Gate(plain, tokens=300)
    flow.bucket.rate = 333_333  # divides no packet's price
    flow.offer(0)
    missing = (DH5 - 300) * BYTE
    assert 333_333 * (flow.due - 1) < missing <= 333_333 * flow.due
    flow.fire()
    assert flow.seen[:2] == (0, 1)


def test_a_cheap_packet_does_not_overtake_a_dear_one(plain):
    flow = Gate(plain, tokens=200)
    flow.offer(0, 4)
    assert flow.seen == (2, 0, 200), "183 are there, but first come, first served"
    assert flow.fire() == 139 * MS
    assert flow.seen == (1, 1, 0)
    assert flow.due == (139 + DH3) * MS


@pytest.mark.parametrize(
    ("places", "tokens", "waiting", "fits"),
    [
        (5, 0, 0, True),  # five packets, five places
        (5, 0, 1, False),  # four places left
        (5, DH5, 0, True),
        (5, 4 * DH5 + DH3, 1, False),  # somebody waits, so the tokens are his
        (4, DH5 - 1, 0, False),
        (4, DH5, 0, True),  # packets that pass at once need no place
    ],
)
def test_whether_a_whole_segment_fits(plain, places, tokens, waiting, fits):
    flow = Gate(plain, tokens=0, S=places)
    flow.offer(*range(waiting))
    flow.bucket.tokens = tokens * BYTE
    layout = flow.sim.layouts[flow.layout]
    assert flow.bucket_of.has_room_for(flow.sim, PORT, layout, 0) == fits


def test_a_full_buffer_refuses_the_whole_segment_if_asked_to(plain):
    flow = Gate(plain, tokens=0, S=4, drop="segment")
    plain.forwarding.enter_port(flow.sim, flow.segment, 0)
    assert flow.refused == (5, 0)
    assert flow.sim.queues.length.sum() == 0
    assert flow.sim.flow_statistics[0].segments_damaged == 1


def test_a_rate_below_a_bit_a_second_is_taken_as_it_is(plain):
    flow = Gate(plain, tokens=0)
    flow.bucket.rate = 0.25
    flow.offer(0)
    assert flow.due == DH5 * 8 * 4 * 1_000_000_000
    flow.bucket.rate = 1e-9
    flow.bucket_of.wait_for_tokens(flow.sim, PORT, 0)
    assert flow.due == plain.records.NEVER
