"""The bitmaps of CentaurusComm, one bit for each data packet of an object (Avancha et al. 2002, section 3.1).

The receiver's bitmap only grows. So the bitmap of a PROCEED is known from the number of bits set when it
left: the receiver notes for every packet whether it came first, second, ... (in `sent_at`; 0 is a bit not
set). The sender's bitmap is in `scoreboard`: a bit is set when its packet has been handed to Level I, and
replaced by the receiver's bit when a PROCEED comes.
"""

from btqueue.simulator.applications.exchange import flow_from, message_layout, message_segments
from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.conventions import NOTHING

SENT, SENT_EARLIER, SENT_WITH_OFFER = 1, 2, 4
"""The sender's bit; whether the packet has ever been sent; whether as early data of the present session."""


# ----------------------------------------------------------------------------------------------------- sender


@compiled
def begin_offer(sim, index, end):
    """The end offers its outgoing object: a new one has all bits zero, a resumed one keeps them."""
    session = sim.sessions[index]
    board = sim.scoreboard[flow_from(session, end)]
    number = session.outgoing[end]
    old = session.bitmap_of[end]
    if number != old and old != session.delivered[1 - end]:
        give_up(sim, index, end)
    for slot in range(message_segments(session, end, number)):
        if number == session.bitmap_of[end]:
            board[slot] &= SENT | SENT_EARLIER
        else:
            board[slot] = 0
    session.bitmap_of[end] = number
    session.next_packet[end] = 0


@compiled
def give_up(sim, index, end):
    """Count the bytes that were sent of the object in the sender's bitmap, which was never delivered."""
    session = sim.sessions[index]
    flow, number = flow_from(session, end), session.bitmap_of[end]
    for slot in range(message_segments(session, end, number)):
        if sim.scoreboard[flow][slot] & SENT_EARLIER:
            layout = message_layout(sim, index, end, number, slot)
            sim.flow_statistics[flow].bytes_wasted += sim.layouts[layout].application


@compiled
def next_unsent(sim, index, end):
    """Return the slot of the next zero bit, or NOTHING."""
    session = sim.sessions[index]
    board = sim.scoreboard[flow_from(session, end)]
    packets = message_segments(session, end, session.bitmap_of[end])
    while session.next_packet[end] < packets and board[session.next_packet[end]] & SENT:
        session.next_packet[end] += 1
    return session.next_packet[end] if session.next_packet[end] < packets else NOTHING


@compiled
def mark_sent(sim, index, end, slot):
    """Set the bit of a packet that goes to Level I, and count it if it was sent before."""
    session = sim.sessions[index]
    flow = flow_from(session, end)
    board = sim.scoreboard[flow]
    if board[slot] & SENT_EARLIER:
        sim.flow_statistics[flow].segments_retransmitted += 1
    board[slot] = SENT | SENT_EARLIER
    if session.done_sent[end] == 0:
        board[slot] |= SENT_WITH_OFFER


@compiled
def update_from_receiver(sim, index, end, count):
    """Set the sender's bits to the bitmap of a PROCEED: the first `count` packets received.

    The answer to OBJ cannot include early data sent after it, so these packets keep their bits.
    """
    session = sim.sessions[index]
    flow = flow_from(session, end)
    board = sim.scoreboard[flow]
    order = sim.sent_at[flow]
    for slot in range(message_segments(session, end, session.bitmap_of[end])):
        held = 0 < order[slot] <= count
        early = session.done_sent[end] == 0 and board[slot] & SENT_WITH_OFFER
        if held or early:
            board[slot] |= SENT
        else:
            board[slot] &= SENT_EARLIER
    session.next_packet[end] = 0


# --------------------------------------------------------------------------------------------------- receiver


@compiled
def collect(sim, index, end, number):
    """The end accepts an object: a new one has all bits zero, a resumed one keeps them."""
    session = sim.sessions[index]
    if session.collecting[end] == number:
        return
    session.collecting[end] = number
    session.received[end] = 0
    order = sim.sent_at[flow_from(session, 1 - end)]
    for slot in range(len(order)):
        order[slot] = 0


@compiled
def record(sim, index, end, flow, slot):
    """Set the receiver's bit of a data packet, or count a duplicate."""
    session = sim.sessions[index]
    order = sim.sent_at[flow]
    if order[slot] > 0:
        sim.flow_statistics[flow].duplicates_received += 1
        return
    session.received[end] += 1
    order[slot] = session.received[end]


@compiled
def is_whole(session, end):
    """Whether all bits of the object that this end collects are set."""
    return session.received[end] == message_segments(session, 1 - end, session.collecting[end])
