"""What is known at one moment of sessions, as arrays of records for compiled loops.

A `State` holds many such moments, a place of the first axis of its arrays each: open branches of the futures
of a stage, or examples of stages. Times are in whole nanoseconds. Numbers of segments count on and on; where
something is noted of each, its place is the number modulo the length of the row.
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.route import Way
from btqueue.transport.request_reply_transfer import RECEIVER, SENDER

NONE = -1

LONGEST_NS = 2**60
"""Transmission that can be counted with room for what is added to it: 36 years."""

SENT, ARRIVING, FRAME, ANSWER, FRAME_END, HANDED, ALARM = range(7)
"""Kinds of entries: sent by a medium, at the end of a hop, the three moments of a frame, handed to the first
hop after a processing delay, and an alarm."""

DATA, ACK, SYN, SYN_ACK = range(4)
"""What a parcel is."""

BEGIN, SYN_DUE, TIMER, ACK_DUE = range(4)
"""What an alarm is for: a session begins, a SYN is repeated, a timer or a delayed acknowledgement is due."""

PAUSE, CONNECTING, REQUEST, REPLY, GOODBYE = range(5)
"""Phases of a session."""

ENTRY = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("when", "order", "what", "place"),
            *("direction", "form", "hop", "kind", "epoch", "number", "at", "delays", "history"),
        )
    ]
)
"""Something that will happen, `what`, at a medium or after so many slots (`place`); most often to a parcel:
direction (0 from the client), size, hop it is at, what it is, of which connection, its number or that which
it asks for, when it or what it answers was sent, and what is random on its way: processing delays, frames."""

CLOCK = np.dtype(
    [
        *((name, np.int64) for name in ("now", "order", "entries", "undecided", "outgoing")),
        *((name, np.int64) for name in ("anchor", "started")),
        ("asleep", np.bool_),
    ]
)
"""The time, counts of what stands in the lists, and of the polled hop: whether the central is asleep, a
moment of the grid of slots then, and when the frame began otherwise."""

MEDIUM = np.dtype([(name, np.int64) for name in ("serving", "turn", "delays", "history")])
"""A medium: the port it serves, whose turn is next, what is random on the longest path to its state. Behind
the media stand the two directions of the polled one, for these paths."""

DIRECTION = np.dtype([(name, np.int64) for name in ("released", "crossed")])
"""When the last segment was or will be handed over; fragments across of the first in the polled queue."""

SESSION = np.dtype(
    [
        *((name, np.int64) for name in ("epoch", "phase", "goal", "connecting_since")),
        *((name, np.int64) for name in ("action", "action_flow", "since", "delays", "history")),
        *((name, np.int64) for name in ("started", "finished", "connected")),
        *((name, np.float64) for name in ("syn_rto", "repeated")),
        ("open", np.bool_),
    ]
)
"""Which connection it is, the phase, when its message is whole; why the last stage ended. Since then: when
the request was written, the reply complete, how long connecting took (NONE: not), what is random up to there,
and mean slots that repeated packets add to the whole session."""

END = np.dtype(
    [
        *((name, np.int64) for name in ("first", "sent_bytes")),
        *((name, np.float64) for name in ("wake", "late")),
    ]
)
"""Of each end: number of its first segment of the session, bytes sent, its earliest alarm, and mean slots
that repeated packets add to its round-trip samples."""

ODDS = np.dtype([("nominal", float), ("ratio", float)])
"""Of a branch: its probability at nominal losses, and its probability in units of that."""

HISTORY = np.dtype([("before", np.int64), ("failing", float), ("slots", np.int64), ("repeated", float)])
"""A radio packet on a way: what came before, its probability to fail, slots until it is sent again, and mean
slots of all repetitions up to here. The first one is of a way without any."""

COUNTERS = np.dtype([(name, np.int64) for name in ("histories", "futures", "samples", "states", "too_small")])
"""How many places of shared lists are taken; whether any list was too small."""


class State(NamedTuple):
    """Many moments; the first axis of each array is the moment."""

    clocks: np.ndarray
    sessions: np.ndarray
    entries: np.ndarray
    queues: np.ndarray
    lengths: np.ndarray
    media: np.ndarray
    directions: np.ndarray
    undecided: np.ndarray
    outgoing: np.ndarray
    current: np.ndarray
    ends: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    timed: np.ndarray
    samples: np.ndarray
    early: np.ndarray
    left: np.ndarray
    odds: np.ndarray


class Net(NamedTuple):
    """The way and what travels on it: what does not change, and the list of histories.

    Attributes:
        hops: (medium, port, buffer, delay) of each hop, [direction, hop].
        hop_counts: of each direction.
        turns: ports of each medium in turn, [medium, place], NONE behind the last.
        polled, slot_ns, pause_slots, processing_ns: as in `Way`.
        times: transmission time of each form, [form, medium].
        slots, failing: of each fragment, [form, fragment].
        fragments: fragments of each form.
        losses: [form, direction, hop].
        nominal: losses by which is chosen what is followed.
        histories, counters: of `HISTORY` and `COUNTERS`.
    """

    hops: np.ndarray
    hop_counts: np.ndarray
    turns: np.ndarray
    polled: int
    slot_ns: int
    pause_slots: int
    processing_ns: int
    times: np.ndarray
    slots: np.ndarray
    failing: np.ndarray
    fragments: np.ndarray
    losses: np.ndarray
    nominal: np.ndarray
    histories: np.ndarray
    counters: np.ndarray


class Sizes(NamedTuple):
    """How long the lists of a moment are: entries, segments that can be under way, and places of a queue."""

    entries: int
    segments: int
    queue: int


def net_of(way: Way, forms: list, nominal: list | None = None, histories: int = 1) -> Net:
    """Return the way with these forms as arrays; `nominal` gives the forms with nominal losses."""
    most_hops = max(len(route) for route in way.routes)
    hops = np.zeros((2, most_hops, 4), np.int64)
    for direction, route in enumerate(way.routes):
        hops[direction, : len(route)] = route
    most = max(1, *(len(form.fragments) for form in forms))
    slots, failing = np.zeros((len(forms), most), np.int64), np.zeros((len(forms), most))
    for place, form in enumerate(forms):
        for number, fragment in enumerate(form.fragments):
            slots[place, number], failing[place, number] = fragment
    turns = np.full((len(way.turns), max(len(ports) for ports in way.turns)), NONE, np.int64)
    for medium, ports in enumerate(way.turns):
        turns[medium, : len(ports)] = ports

    def losses(which: list) -> np.ndarray:
        found = np.zeros((len(which), 2, most_hops))
        for place, form in enumerate(which):
            for direction in (0, 1):
                found[place, direction, : len(form.losses[direction])] = form.losses[direction]
        return found

    if (longest := max(max(form.times_ns, default=0) for form in forms)) > LONGEST_NS:
        raise NoConvergence(f"a packet takes {longest / 1e9:.3g} s on a link: sessions take years")
    return Net(
        hops, np.array([len(route) for route in way.routes]), turns,
        way.polled, way.slot_ns, way.pause_slots, way.processing_ns,
        np.array([form.times_ns for form in forms], np.int64), slots, failing,
        np.array([len(form.fragments) for form in forms]), losses(forms), losses(nominal or forms),
        np.zeros(max(1, histories), HISTORY).view(np.recarray), counters(),
    )  # fmt: skip


def counters() -> np.ndarray:
    """Return nothing counted but the history that is empty."""
    found = np.zeros(1, COUNTERS).view(np.recarray)
    found["histories"] = 1
    return found


def moments(way: Way, sizes: Sizes, count: int, at_rest: int | None = None) -> State:
    """Return room for so many moments.

    At the first ones, `at_rest`, nothing is under way, and the central asleep on a grid that begins at 0.
    """

    def records(kind: np.dtype, *shape: int) -> np.ndarray:
        return np.zeros((count, *shape), kind).view(np.recarray)

    segments = sizes.segments
    state = State(
        records(CLOCK), records(SESSION), records(ENTRY, sizes.entries),
        records(ENTRY, way.ports, sizes.queue), np.zeros((count, way.ports), np.int64),
        records(MEDIUM, len(way.turns) + 2), records(DIRECTION, 2), records(ENTRY, segments),
        records(ENTRY, segments + 4), records(ENTRY), records(END, 2), records(SENDER, 2),
        records(RECEIVER, 2), np.zeros((count, 2, segments)), np.zeros((count, 2, segments)),
        np.zeros((count, 2, segments), np.bool_), np.zeros((count, 2, segments)),
        records(ODDS),
    )  # fmt: skip
    state.media["serving"][:at_rest] = NONE
    state.clocks["asleep"][:at_rest] = True
    return state
