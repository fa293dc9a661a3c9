"""Greedy connections round the ring, event by event: the loop that is compiled.

The data of connection i share buffers with the acknowledgements of connection i - 1. All that arrives at
one place left one first-in-first-out path a constant time before, so the deliveries under way stand in two
queues for each connection and the next event is at the head of one of them: no heap is needed. Deliveries at
the same time keep the order in which they were sent off.

State is kept in records of arrays; `btqueue.network.ring_piconet.orbit` makes and reads them.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from btqueue.network.ring_piconet import ring_buffer, sender_path
from btqueue.network.ring_piconet.ring_buffer import drop_oldest, place
from btqueue.network.ring_piconet.sender_path import Limits, Packets, Paths, send
from btqueue.transport import newreno_sender
from btqueue.transport.compilation import compiled, part
from btqueue.transport.newreno_sender import NO_SEGMENT, answer, go_back, let_out, smooth, timeout

START = -1
"""Number of the delivery that starts a connection."""

_SUMS = ("window_sum", "cwnd_sum", "rtt_sum")
_TALLIES = ("acknowledgements", "round_trips", "sent", "lost")
CONNECTION = np.dtype(
    [
        *((name, np.float64) for name in ("ssthresh", "min_rto", "max_rto", "rto", "cwnd", "deadline")),
        *((name, np.float64) for name in ("smoothed", "variation", "echo", *_SUMS)),
        *((name, np.int64) for name in ("receive_window", "una", "nxt", "highest", "duplicates", "recover")),
        *((name, np.int64) for name in ("timeouts", "fast_retransmits", "expected", *_TALLIES)),
        *((name, np.bool_) for name in ("backoff", "recovering")),
    ]
)
"""A sender (the names of `Sender`), its receiver (`expected`, `echo`), and what is added up of both."""
SUMMED = (*_SUMS, *_TALLIES, "timeouts", "fast_retransmits")

DELIVERY = np.dtype(
    [("arrival", np.float64), ("order", np.int64), ("number", np.int64), ("stamp", np.float64)]
)
"""Data with the time of sending, or an acknowledgement with the echo of it."""
CLOCK = np.dtype([("now", np.float64), ("order", np.int64), ("delivered", np.int64), ("longest", np.int64)])
"""Time, deliveries sent off, segments received in order, and the largest number of entries in any queue."""


class Rules(NamedTuple):
    """What does not change: limits of the paths, packets of a segment and an acknowledgement, relays."""

    limits: Limits
    data: Packets
    ack: Packets
    data_relay_s: float
    ack_relay_s: float


class Connections(NamedTuple):
    """n connections and their paths; row n + i of `deliveries` are the acknowledgements of connection i.

    `early` marks segments that came out of order, by number modulo its width. `rtts` and `refused` take what
    happens to the first segments of connection 0.
    """

    clock: np.ndarray
    ends: np.ndarray
    early: np.ndarray
    paths: Paths
    deliveries: np.ndarray
    delivery_marks: np.ndarray
    rtts: np.ndarray
    refused: np.ndarray


@compiled(newreno_sender, sender_path, ring_buffer)
def play(ring, rules, delivered, end, round_trips, room):
    """Play until so many segments are delivered, so late, or so many round trips of connection 0 are known.

    Returns False as soon as fewer than `room` places may be left in some queue: more than one event can take.
    """
    clock, first = ring.clock[0], ring.ends[0]
    places = ring.deliveries.shape[1] - room
    while clock.delivered < delivered and clock.now < end and first.round_trips < round_trips:
        if clock.longest > places:
            return False
        step(ring, rules)
    return True


@part
def step(ring, rules):
    """Play the next event: the delivery of data or of an acknowledgement, or the expiry of a timer."""
    clock, connections = ring.clock[0], len(ring.ends)
    expiring, deadline = 0, inf
    for k in range(connections):
        if ring.ends[k].deadline < deadline:
            expiring, deadline = k, ring.ends[k].deadline
    queue, arrival = next_delivery(ring)
    if deadline < arrival:
        clock.now = deadline
        sample_window(ring.ends[expiring])
        go_back(ring.ends[expiring], deadline)
        send_new(ring, rules, expiring)
        return
    clock.now = arrival
    if queue < 0:
        return  # nothing will ever happen again
    head = ring.deliveries[queue, ring.delivery_marks[queue, 0]]
    number, stamp = head.number, head.stamp
    drop_oldest(ring.deliveries[queue], ring.delivery_marks[queue])
    if queue >= connections:
        acknowledge(ring, rules, queue - connections, number, stamp)
    elif number == START:
        send_new(ring, rules, queue)
    else:
        receive(ring, rules, queue, number, stamp)


@part
def next_delivery(ring):
    """Return queue and time of the next delivery; -1 and inf if there is none."""
    queue, arrival, order = -1, inf, 0
    for k in range(len(ring.deliveries)):
        if ring.delivery_marks[k, 1] > 0:
            head = ring.deliveries[k, ring.delivery_marks[k, 0]]
            if head.arrival < arrival or (head.arrival == arrival and head.order < order):
                queue, arrival, order = k, head.arrival, head.order
    return queue, arrival


@part
def receive(ring, rules, index, number, stamp):
    """Deliver data: acknowledge cumulatively, with the timestamp of RFC 7323, through the next path."""
    end, early = ring.ends[index], ring.early[index]
    if number <= end.expected:
        end.echo = max(end.echo, stamp)
    if number >= end.expected:
        early[number & (len(early) - 1)] = True
    while early[end.expected & (len(early) - 1)]:
        early[end.expected & (len(early) - 1)] = False
        end.expected += 1
        ring.clock[0].delivered += 1
    row = (index + 1) % len(ring.ends)
    arrival = send(ring.paths, row, rules.limits, rules.ack, ring.clock[0].now) + rules.ack_relay_s
    deliver(ring, len(ring.ends) + index, arrival, end.expected, end.echo)


@part
def acknowledge(ring, rules, index, number, echo):
    """Deliver an acknowledgement: send what it asks for and what it lets out."""
    end, now = ring.ends[index], ring.clock[0].now
    sample_window(end)
    if number > end.una:
        if index == 0 and end.round_trips < len(ring.rtts):
            ring.rtts[end.round_trips] = now - echo
        end.round_trips += 1
        end.rtt_sum += now - echo
        end.smoothed, end.variation = smooth(end.smoothed, end.variation, now - echo)
        end.rto = timeout(end, end.smoothed, end.variation)
    resend = answer(end, number, now)
    if resend != NO_SEGMENT:
        send_segment(ring, rules, index, resend)
    send_new(ring, rules, index)


@part
def send_new(ring, rules, index):
    """Send what the window lets out."""
    first = ring.ends[index].nxt
    for number in range(first, first + let_out(ring.ends[index], ring.clock[0].now)):
        send_segment(ring, rules, index, number)


@part
def send_segment(ring, rules, index, number):
    """Send one segment over the connection's path."""
    end, now = ring.ends[index], ring.clock[0].now
    arrival = send(ring.paths, index, rules.limits, rules.data, now) + rules.data_relay_s
    if index == 0 and end.sent < len(ring.refused):
        ring.refused[end.sent] = arrival == inf
    end.sent += 1
    end.lost += arrival == inf
    deliver(ring, index, arrival, number, now)


@part
def deliver(ring, queue, arrival, number, stamp):
    """Put a delivery behind the others of its queue, unless it is lost on its way."""
    path = queue % len(ring.ends)
    if queue >= len(ring.ends):
        path = (path + 1) % len(ring.ends)
    clock = ring.clock[0]
    entries = max(ring.paths.release_marks[path, 1], ring.paths.departure_marks[path, 1])
    if arrival < inf:
        marks = ring.delivery_marks[queue]
        last = ring.deliveries[queue, place(ring.deliveries[queue], marks, marks[1])]
        clock.order += 1
        last.arrival, last.order, last.number, last.stamp = arrival, clock.order, number, stamp
        marks[1] += 1
        entries = max(entries, marks[1])
    clock.longest = max(clock.longest, entries)


@part
def sample_window(end):
    """Count the window in force when an acknowledgement or a timeout comes."""
    end.acknowledgements += 1
    end.window_sum += min(end.cwnd, float(end.receive_window))
    end.cwnd_sum += end.cwnd
