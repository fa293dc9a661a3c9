"""What is known at one instant of bulk transfers, as arrays of records for the compiled loop.

Items (segments and acknowledgements) and their baseband packets stand in pools. A queue is a chain of places
in a pool: each entry names the one behind it, and free places are a chain as well. Times are in seconds,
numbers and windows in segments. What does not change is in `bulk_transfer.rules`.
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.bulk_transfer.events import BEGIN, schedule
from btqueue.network.bulk_transfer.rules import NONE, Rules
from btqueue.scenario.transport import Transport

NO_END = 1 << 60
"""Segments that a greedy application has written."""
FRAME, ANSWER, END = range(3)
"""What the central does next: begin a frame, hear the answer to its packet, or end the frame."""
PAUSE, REQUEST, REPLY, GOODBYE = range(4)
"""What a session is at."""
ROUND_TRIP, SESSION = range(2)
"""Samples of a flow: its round trips, and the durations of the sessions of which it is the client."""

CLOCK = np.dtype(
    [
        ("now", np.float64),
        *((name, np.int64) for name in ("ended", "looked_at", "steps_left")),
        *((name, np.int64) for name in ("order", "events", "items", "free_item", "free_packet")),
        ("cramped", np.bool_),
    ]
)
"""Time; segments at the end of their way, and how many they were when losses were last looked at; steps left
until the next look whether the orbit has been followed far enough. Events so far, events that wait, items in
use; first free places. `cramped`: an array may be full after the next step."""

EVENT = np.dtype([("time", np.float64), *((name, np.int64) for name in ("order", "action", "argument"))])
"""What happens when, and to whom; of events at the same time the one that was entered first comes first."""

ITEM = np.dtype(
    [
        ("stamp", np.float64),
        *((name, np.int64) for name in ("flow", "layout", "number", "blocks", "hop", "parts", "behind")),
        *((name, np.bool_) for name in ("acknowledgement", "damaged")),
    ]
)
"""A segment or an acknowledgement on its way, at hop `hop` of its route. `number` is the segment's, or the
one expected next; `stamp` its time of sending, or the one that is echoed; `blocks` how many blocks are
reported; `parts` how many of its packets are under way; `behind` the next item of its queue."""

PACKET = np.dtype([(name, np.int64) for name in ("owner", "slots", "carried", "transmissions", "behind")])
"""A baseband packet of an item; it leaves its queue with the last of its transmissions."""

QUEUE = np.dtype([(name, np.int64) for name in ("first", "last", "waiting", "seen")])
"""The queue of a port: its ends, how many wait, and packets that were given a number of transmissions."""

TRANSMITTER = np.dtype([("time", np.float64), *((name, np.int64) for name in ("serving", "turn"))])
"""A medium: when its transmission ends, the port that it serves, and the one whose turn is next."""

PICONET = np.dtype(
    [
        *((name, np.float64) for name in ("time", "idle_since")),
        *((name, np.int64) for name in ("phase", "station", "frames", "waiting", "visits", "data_slots")),
        *((name, np.bool_) for name in ("sent", "answered")),
    ]
)
"""The central: when its state changes next, since when every queue is empty, what comes next (`phase`), the
member that it visits, frames of this visit, packets in all queues, counts; whether a packet went down in this
frame, and up."""

NODE = np.dtype([("released", np.float64), *((name, np.int64) for name in ("departures", "held"))])
"""A node: when its last segment left the host, how many have, and bytes that it holds below IP."""

SUMMED = (
    *("repeated_bytes", "delivered_bytes", "ended", "lost", "timeouts", "fast_retransmits"),
    *("acknowledgements", "cwnd_sum", "window_sum"),
)
"""What is added up of a flow: user bytes sent again and delivered in order, segments at the end of their way,
what happened to the windows."""

SENDER = np.dtype(
    [
        *((name, np.float64) for name in ("cwnd", "ssthresh", "rto", "min_rto", "max_rto", "smoothed")),
        *((name, np.float64) for name in ("variation", "deadline", "alarm", "cwnd_sum", "window_sum")),
        *((name, np.int64) for name in ("variant", "receive_window", "una", "nxt", "highest", "duplicates")),
        *((name, np.int64) for name in ("recover", "repaired", "rescued", "reports", "written")),
        *((name, np.int64) for name in SUMMED[:-2]),
        *((name, np.bool_) for name in ("timestamps", "backoff", "recovering")),
    ]
)
"""The sender of a flow.

`una`, `nxt`, `highest`: oldest number not acknowledged, next to send, one above all ever sent. `recover`:
highest number sent when the last recovery began or the timer expired. `reports`: how many numbers above
`una` selective acknowledgements report; `repaired`: highest number sent again in this recovery (HighRxt);
`rescued`: recovery point of the last rescue retransmission (RescueRxt). `written`: segments that the
application has written. `deadline`: when the timer expires; `alarm`: when it is next looked at. `timestamps`:
every new acknowledgement is timed by its echo; without, Karn's rule."""

SENT = np.dtype([("at", np.float64), ("reported", np.bool_), ("again", np.bool_)])
"""A number in flight: when it was sent first, whether it was reported to have come, or sent again."""

RECEIVER = np.dtype(
    [
        *((name, np.float64) for name in ("delay_s", "echo", "deadline", "alarm")),
        *((name, np.int64) for name in ("every", "most_blocks")),
        *((name, np.int64) for name in ("expected", "waiting", "acknowledged", "blocks")),
    ]
)
"""The receiver of a flow: `every` so many segments in order are acknowledged together, of which the first
waits for at most `delay_s`; an acknowledgement reports at most `most_blocks` of its blocks. `echo`: the time
stamp to echo. `deadline`: when a delayed acknowledgement has to leave; `alarm`: when it is next looked at."""

TALK = np.dtype([("began", np.float64), ("phase", np.int64)])
"""A client's session."""


class State(NamedTuple):
    """Bulk transfers at one instant.

    Attributes:
        clock, piconet: one record each.
        events: a heap.
        items, packets: pools.
        reports: blocks of an acknowledgement, [item, block, begin and end].
        queues: [port]; transmitters: [medium]; nodes: [node]; active: [member], for fair exhaustive polling.
        senders, receivers, sessions: [flow].
        flight: numbers in flight, [flow, number modulo width]; a power of two.
        early: blocks that came out of order, the most recent first, [flow, block, begin and end].
        samples: [flow, kind, place], and how many there are, `counts`: [flow, kind].
    """

    clock: np.ndarray
    piconet: np.ndarray
    events: np.ndarray
    items: np.ndarray
    packets: np.ndarray
    reports: np.ndarray
    queues: np.ndarray
    transmitters: np.ndarray
    nodes: np.ndarray
    active: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    sessions: np.ndarray
    flight: np.ndarray
    early: np.ndarray
    samples: np.ndarray
    counts: np.ndarray


def records(shape: int | tuple[int, ...], kind: np.dtype) -> np.ndarray:
    """Return records of zeros, whose fields are attributes."""
    return np.zeros(shape, kind).view(np.recarray)


def at_rest(rules: Rules, transport: Transport, places: int, samples: int) -> State:
    """Return empty queues, and flows that begin at their times with the ends that the scenario gives them.

    Args:
        rules: what does not change.
        transport: parameters of the ends.
        places: items that there is room for; at least as many as a step can bring.
        samples: likewise, of each kind and flow.
    """
    flows, width = len(rules.flows), 1 << int(rules.flows["receive_window"].max()).bit_length()
    clock, piconet = records(1, CLOCK), records(1, PICONET)
    piconet["time"] = np.inf
    queues, transmitters = records(len(rules.ports), QUEUE), records(len(rules.media), TRANSMITTER)
    transmitters["serving"], transmitters["time"] = NONE, np.inf
    state = State(
        clock=clock,
        piconet=piconet,
        events=records(2 * places + 8 * flows, EVENT),
        items=chain(records(places, ITEM)),
        packets=chain(records(places * int(rules.layouts["packets"].max()), PACKET)),
        reports=np.zeros((places, max(transport.sack_blocks, 1), 2), np.int64),
        queues=queues,
        transmitters=transmitters,
        nodes=records(rules.nodes, NODE),
        active=np.ones(len(rules.members), np.bool_),
        senders=_senders(rules, transport),
        receivers=_receivers(flows, transport),
        sessions=records(flows, TALK),
        flight=records((flows, width), SENT),
        early=np.zeros((flows, width, 2), np.int64),
        samples=np.zeros((flows, 2, samples)),
        counts=np.zeros((flows, 2), np.int64),
    )
    for flow, start_s in enumerate(rules.flows["start_s"]):
        schedule(state, start_s, BEGIN, flow)
    return state


def chain(pool: np.ndarray, used: int = 0) -> np.ndarray:
    """Chain the places of a pool from `used` on; the last one names the first place of its extension."""
    pool["behind"][used:] = np.arange(used + 1, len(pool) + 1)
    return pool


def _senders(rules: Rules, transport: Transport) -> np.ndarray:
    senders = records(len(rules.flows), SENDER)
    for name in ("variant", "receive_window"):
        senders[name] = rules.flows[name]
    senders["cwnd"] = transport.initial_window_segments
    senders["ssthresh"] = transport.initial_ssthresh_segments
    senders["rto"], senders["smoothed"] = transport.initial_rto_s, np.nan
    senders["min_rto"], senders["max_rto"] = transport.min_rto_s, transport.max_rto_s
    senders["backoff"], senders["timestamps"] = transport.rto_backoff, transport.timestamps
    senders["deadline"] = senders["alarm"] = np.inf
    senders["recover"] = senders["repaired"] = senders["rescued"] = -1
    senders["written"] = np.where(rules.flows["client"] == NONE, NO_END, 0)
    return senders


def _receivers(flows: int, transport: Transport) -> np.ndarray:
    receivers = records(flows, RECEIVER)
    receivers["every"] = transport.ack_every_segments if transport.delayed_ack else 1
    receivers["delay_s"], receivers["most_blocks"] = transport.ack_delay_s, transport.sack_blocks
    receivers["deadline"] = receivers["alarm"] = np.inf
    return receivers
