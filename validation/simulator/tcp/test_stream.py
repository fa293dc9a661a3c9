"""The byte stream: writes share segments, Nagle's algorithm, windows of bytes (RFC 1122, RFC 5681).

A full segment has 1000 bytes here, so that windows and what counts against them can be read off.
"""

from hypothesis import given, settings
from hypothesis import strategies as st
from state_tables import one
from tcp_sender_calls import RING, Sender

UNIT = 1000


def new_sender(plain, *, written=0, nagle=True, **options):
    return Sender(plain, unit=UNIT, nagle=nagle, written=written, **options)


def lengths(tcp, numbers):
    """Return the bytes of these segments; each has to be sent already."""
    edges = [(int(tcp.starts[n % RING]), int(tcp.starts[(n + 1) % RING])) for n in numbers]
    return [end - start for start, end in edges]


def test_writes_share_a_segment(plain):
    tcp = new_sender(plain, written=50, cwnd=4.0)
    assert tcp.send() == [0], "nothing is unacknowledged: a short segment leaves at once"
    tcp.conn.written += 7 * 50
    assert tcp.send() == [], "Nagle: the first has to be acknowledged"
    tcp.conn.written += 750
    assert lengths(tcp, tcp.send()) == [1000], "a full segment does not wait, the 100 bytes behind it do"
    assert lengths(tcp, tcp.ack(2)) == [100]


def test_the_end_of_a_message_waits_for_the_end_of_the_one_before_only(plain):
    tcp = new_sender(plain, nagle=plain.records.MINSHALL, written=1050, cwnd=8.0)
    assert lengths(tcp, tcp.send()) == [1000, 50]
    tcp.conn.written += 1050
    assert lengths(tcp, tcp.send()) == [1000], "50 bytes of the first message are unacknowledged"
    assert lengths(tcp, tcp.ack(2)) == [50], "a full segment is, too, and holds nothing back"


def test_a_window_never_cuts_a_segment_short(plain):
    # silly window syndrome avoidance: 500 bytes of the window are free, but 1000 are to be sent
    for written, sent in ((2500, [1000, 1000, 500]), (3000, [1000, 1000])):
        tcp = new_sender(plain, nagle=False, written=written, cwnd=2.5)
        assert lengths(tcp, tcp.send()) == sent


def test_slow_start_opens_by_what_is_acknowledged_up_to_a_segment(plain):
    # RFC 5681, equation 2: cwnd += min(N, SMSS)
    tcp = new_sender(plain, written=50, cwnd=2.0)
    tcp.send()
    tcp.ack(1)
    assert tcp.conn.cwnd == 2.05
    tcp.conn.written += 2000
    tcp.send()
    tcp.ack(3)
    assert tcp.conn.cwnd == 3.05


def test_a_delayed_acknowledgement_counts_bytes(plain):
    # RFC 5681, section 4.2: for every second full-sized segment
    for parts in (20, 3):  # six times 1/3 is less than 2 in floating point
        conn = one(plain.records, "connection", unit=parts, delayed_ack=True, ack_every_segments=2)
        for _ in range(2 * parts - 1):
            plain.delayed_ack.on_segment_in_order(conn, 1, 0)
        assert not conn.ack_now
        plain.delayed_ack.on_segment_in_order(conn, 1, 0)
        assert conn.ack_now


@settings(max_examples=40)
@given(
    writes=st.lists(st.integers(1, 2500), min_size=1, max_size=40),
    nagle=st.sampled_from(range(3)),
    lost=st.sets(st.integers(0, 60), max_size=8),
)
def test_every_byte_arrives_once_and_in_order(plain, writes, nagle, lost):
    """Send writes over a path that loses the first copy of some segments; Nagle allows one short one."""
    tcp = new_sender(plain, nagle=nagle, cwnd=4.0, rwnd=16)
    arrived, got, to_lose, network = 0, set(), set(lost), []
    for write in [*writes, *[0] * 400]:
        tcp.conn.written += write
        network += tcp.send()
        unacknowledged = range(int(tcp.conn.snd_una), int(tcp.conn.snd_max))
        short = [length for length in lengths(tcp, unacknowledged) if length < UNIT]
        assert len(short) <= 1 or not nagle
        assert sum(lengths(tcp, unacknowledged)) <= 16 * UNIT
        if network:
            number = network.pop(0)
            if number in to_lose:
                to_lose.discard(number)
                continue
            got.add(number)
            while arrived in got:
                arrived += 1
            network += tcp.ack(arrived)
        elif tcp.conn.snd_una < tcp.conn.snd_max:
            network += tcp.timeout(at=0)
    assert tcp.conn.snd_una == tcp.conn.snd_max
    assert tcp.starts[tcp.conn.snd_max % RING] == tcp.conn.written == sum(writes)
