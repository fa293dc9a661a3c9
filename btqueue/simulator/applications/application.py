"""Applications: sources that write messages to a connection, and the delivery of each message.

A message is a row of segments, or of bytes. It is delivered when the receiver has all its segments in order.
It is acknowledged when the receiver has sent an acknowledgement that covers it: Johansson et al. (2000)
measure the delay until this time. Messages of a flow form a list from the oldest that is not acknowledged
(`message_head`) to the youngest (`message_tail`); `message_undelivered` is the oldest that is not delivered.

A source that writes more than the goodput would list messages without end. Beyond a number that no window
covers messages are therefore only counted. When a message leaves the list, the source is set back to the
state in which it wrote the first unlisted message. It writes this message once more, with the same random
numbers, and is set forward.
"""

from btqueue.simulator.applications import arrival_processes as arrivals
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.queues import give_back, take
from btqueue.simulator.machinery.timers import schedule
from btqueue.simulator.records.connections import FROM_FILE, GREEDY, PERIODIC, REQUESTER, RESPONDER
from btqueue.simulator.records.conventions import NOTHING, UNLIMITED
from btqueue.simulator.records.run import MESSAGES
from btqueue.simulator.statistics.histograms import count
from btqueue.simulator.tcp.stream import position
from btqueue.simulator.traces.trace import MESSAGE_DELIVERED, MESSAGE_WRITTEN, flow_event

LISTED = 1024
"""Messages that a flow lists in addition to the messages of its window: each has at least a segment, or
byte."""


@outlined
def start_application(sim, flow):
    """Let the flow's source begin at `start_at`; the two ends of a session are begun by the session."""
    conn = sim.connections[flow]
    if conn.application == REQUESTER or conn.application == RESPONDER:
        return
    at = conn.start_at
    if conn.application == FROM_FILE:
        at = arrivals.recorded_arrival(sim, conn)
    elif conn.application != GREEDY:
        while arrivals.next_change(sim, conn) <= conn.start_at:
            arrivals.take_step(sim, conn)
        if conn.application != PERIODIC or not conn.aligned_phase or conn.mean_gap == 0.0:
            at = arrivals.next_arrival(sim, flow, conn.start_at, True)
    schedule(sim, conn.arrival_timer, at)


@compiled
def on_arrival(sim, flow, now):
    """Write the message that is due now and schedule the next; start a greedy source."""
    conn = sim.connections[flow]
    if conn.application == GREEDY:
        conn.written = UNLIMITED
    else:
        write_message(sim, flow, arrivals.size_due(sim, conn), now)
        schedule(sim, conn.arrival_timer, arrivals.following_arrival(sim, flow, now))


@outlined
def write_message(sim, flow, size, now):
    """Append a message to the send buffer, or refuse it if it does not fit; `messages` counts it always."""
    conn = sim.connections[flow]
    statistics = sim.flow_statistics[flow]
    statistics.messages += 1
    buffered = conn.written - position(conn, sim.starts[flow], conn.snd_una)
    if conn.send_buffer > 0 and buffered + size > conn.send_buffer:
        statistics.messages_refused += 1
        return
    conn.written += size
    if conn.unlisted == 0 and (conn.listed < LISTED + conn.rwnd * conn.unit or conn.send_buffer > 0):
        list_message(sim, conn, conn.written - 1, now)
    else:
        if conn.unlisted == 0:
            arrivals.remember_source(sim, conn, sim.backlogs[flow], now)
        conn.unlisted += 1
    flow_event(sim, MESSAGE_WRITTEN, flow, now)


@compiled
def list_message(sim, conn, last, created_at):
    """Append a message to the flow's list."""
    index = take(sim.pools[MESSAGES], sim.messages)
    message = sim.messages[index]
    message.created_at = created_at
    message.last = last
    conn.listed += 1
    if conn.message_head == NOTHING:
        conn.message_head = index
    else:
        sim.messages[conn.message_tail].next = index
    conn.message_tail = index
    if conn.message_undelivered == NOTHING:
        conn.message_undelivered = index


@outlined
def list_next(sim, flow):
    """Append the oldest unlisted message, as its source writes it when it is played again."""
    conn = sim.connections[flow]
    backlog = sim.backlogs[flow]
    arrivals.change_places(sim, conn, backlog)
    list_message(sim, conn, sim.messages[conn.message_tail].last + arrivals.size_due(sim, conn), backlog.due)
    backlog.due = arrivals.following_arrival(sim, flow, backlog.due)
    arrivals.change_places(sim, conn, backlog)
    conn.unlisted -= 1


@compiled
def on_delivered(sim, flow, now):
    """Count the messages that the receiver now has in order to their ends, and their delays."""
    conn = sim.connections[flow]
    readable = position(conn, sim.starts[flow], conn.rcv_nxt)
    while conn.message_undelivered != NOTHING:
        message = sim.messages[conn.message_undelivered]
        if message.last >= readable:
            break
        count_delivered(sim, flow, now - message.created_at)
        flow_event(sim, MESSAGE_DELIVERED, flow, now)
        conn.message_undelivered = message.next


@compiled
def count_delivered(sim, flow, delay):
    """Count a message that was delivered whole, `delay` ns after it was written."""
    statistics = sim.flow_statistics[flow]
    statistics.messages_delivered += 1
    statistics.delay_sum += delay
    statistics.delay_squares += float(delay) * float(delay)
    if sim.connections[flow].session == NOTHING:  # else the histogram has the sessions' times
        count(sim.delay_histogram[flow], delay)


@compiled
def on_acknowledged(sim, flow, now):
    """Count the delivered messages that the acknowledgement sent now covers, and forget them."""
    conn = sim.connections[flow]
    statistics = sim.flow_statistics[flow]
    covered = position(conn, sim.starts[flow], conn.last_ack_sent)
    while conn.message_head != conn.message_undelivered:
        message = sim.messages[conn.message_head]
        if message.last >= covered:
            break
        delay = now - message.created_at
        statistics.messages_acknowledged += 1
        statistics.acknowledged_delay_sum += delay
        statistics.acknowledged_delay_squares += float(delay) * float(delay)
        forget_oldest(sim, conn)
        if conn.unlisted > 0:
            list_next(sim, flow)


@compiled
def forget_oldest(sim, conn):
    """Remove the oldest message from the flow's list and free its record."""
    index = conn.message_head
    conn.message_head = sim.messages[index].next
    conn.listed -= 1
    give_back(sim.pools[MESSAGES], sim.messages, index)
