"""What is known at one instant of a network, as flat arrays of records for the compiled loop.

Times are in slots of 625 us, so that the clocks of piconets are whole numbers; windows in segments, tokens in
bytes. A *port* is one direction of a link, an *item* a segment or an acknowledgement on its way, a *packet* a
part of an item on the radio, or the whole of it on an outside link. Places of a pool that are free, and those
that wait for a port, are chained by `behind`.
"""

from collections import namedtuple
from typing import Any

import numpy as np

NONE = -1
UNLIMITED = 1 << 60
MOST_BLOCKS = 4
"""Blocks that an acknowledgement reports, and that a receiver remembers to report."""
MOST_PICONETS = 16
"""Piconets of a bridge."""


def _record(floats: str, integers: str) -> np.dtype:
    fields = [(name, np.float64) for name in floats.split()] + [(n, np.int64) for n in integers.split()]
    return np.dtype(fields, align=True)


NEVER = 1e15
"""A time (slots) that no run reaches."""

INTACT, DAMAGED, AT_BUCKET, AT_BASEBAND, ON_THE_WAY, GIVEN_UP, OUTSIDE, AT_NODE = range(8)
"""Fates of packets: come, come damaged, refused by a token buffer, by the queue behind it, by a queue on the
way, given up by ARQ, lost by an outside link, refused by a full node."""
TO_BUCKET, TO_BASEBAND, BY_OUTSIDE = 8, 9, 10
"""What else is counted of the packets of a flow: those offered to a token buffer, those offered to the queue
behind, and those that an outside link has transmitted."""
FATES = 11
"""Number of counters: the eight fates, and the three others."""

CLOCK = _record("now", "drawn order events free_item free_packet items delivered cramped steps idle")
EVENT = _record("time", "order action argument")
ITEM = _record("stamp", "flow back layout number blocks hop parts damaged behind")
PACKET = _record("since ready", "owner kind slots carried price hop transmissions damaged behind")
FLOW = _record(
    # sender
    "cwnd ssthresh rto min_rto max_rto smoothed variation granularity deadline alarm "
    # Vegas
    "alpha beta gamma shortest least round_started excess "
    # receiver
    "echo ack_delay ack_deadline ack_alarm tick_phase waiting "
    # application
    "start gap leave_active leave_idle message due pause began "
    # sums; ages: times of delivery or leaving less those of writing or entering
    "cwnd_sum window_sum trip_time trip_squares message_age session_time session_squares",
    "variant window una nxt highest duplicates recover recovering repaired rescued reports written "
    "timestamps backoff limited_transmit window_limited hold_ssthresh retransmit nagle unit grain last_short "
    "per_round doubles round_first round_end round_samples "
    "expected acknowledged blocks every most_blocks tick "
    "law length layouts first_layout ack_layout source target forth back "
    "client server request reply goodbye phase "
    "delivered_bytes repeated_bytes ended lost timeouts fast_retransmits samples trips messages_in "
    "messages_out sessions",
)
PORT = _record(
    "tokens updated rate depth flush delay jitter loss released bucket_age age",
    "outside node piconet channel limit first last waiting shaped whole buffer bucket_first bucket_last "
    "bucket_waiting most medium loss_block",
)
LINK = _record("", "down up bridge limit active weight skip")
PICONET = _record(
    "time idle_since",
    "phase station frame visit_limit first_link links discipline limit max_weight waiting visiting carried "
    "down_packet up_packet can_sleep asleep bridge away cycle_carried windows gate_down gate_up period "
    "reserved cycles visits data_slots probing",
)
BRIDGE = _record("since window", "schedule stay stay_cycles count current exchanges switches offset")
MEDIUM = _record("rate up_mean down_mean up_at", "header first_port ports serving turn")
NODE = _record("delay first_s second_s jitter free_1 free_2 released up_delay up_first up_second up_free_1 "
               "up_free_2", "held room")  # fmt: skip
CHANNEL = _record("looked relaxation bad_share", "model radio bad")
SENT = _record("at", "reported again start")
LAYOUT = _record("", "user ip frame first_piece pieces")
PIECE = _record("", "kind slots carried price")

INTEGER, REAL = np.dtype(np.int64), np.dtype(np.float64)
FIELDS: dict[str, np.dtype] = {
    "clock": CLOCK, "events": EVENT, "items": ITEM, "packets": PACKET, "reports": INTEGER, "flows": FLOW,
    "sent": SENT, "early": INTEGER, "ports": PORT, "links": LINK, "piconets": PICONET, "bridges": BRIDGE,
    "places": INTEGER, "media": MEDIUM, "media_ports": INTEGER, "nodes": NODE, "channels": CHANNEL,
    "random": REAL, "trips": REAL, "layouts": LAYOUT, "pieces": PIECE, "routes": INTEGER,
    "errors": REAL, "sizes": INTEGER, "fates": INTEGER,
}  # fmt: skip
"""The arrays and their kinds, each of one dimension."""

World = namedtuple("World", FIELDS)
World.__doc__ = """A network at one instant.

`reports`: blocks of an acknowledgement, [item, block, begin and end]; `sent`: numbers in flight, [flow,
number modulo width]; `early`: blocks that came out of order, [flow, block, begin and end]; `places`: of a
bridge, its piconets and its links there, [bridge, place, which]; `random`: numbers between 0 and 1, which are
used up; `trips`: latest round trips, [flow, place]; `routes`: ports, NONE behind the last; `errors`: packet
error rates, [radio, kind of packet, bad]; `fates`: of the packets of each flow, [flow, fate]; `sizes`:
`WIDTH`, `KINDS`, `SAMPLES`, `BURST`, `RELAY`, in this order."""

WIDTH, KINDS, SAMPLES, BURST, RELAY = range(5)
"""Places in `sizes`: numbers in flight of a flow, kinds of packets, round trips kept of a flow, items that a
step can bring at most, and whether whole segments are relayed."""


def records(count: int, kind: Any) -> Any:
    """Return records of zeros, whose fields are attributes."""
    found = np.zeros(count, np.dtype(kind))
    return found.view(np.recarray) if found.dtype.names else found


def chained(pool: np.ndarray, used: int = 0) -> np.ndarray:
    """Chain the places of a pool from `used` on; the last one names the first place of its extension."""
    pool["behind"][used:] = np.arange(used + 1, len(pool) + 1)
    return pool


def enlarged(world: World) -> World:
    """Return the world with twice the room for events, items and packets."""

    def more(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array, np.zeros_like(array)]).view(type(array))

    return world._replace(
        events=more(world.events),
        items=chained(more(world.items), len(world.items)),
        packets=chained(more(world.packets), len(world.packets)),
        reports=more(world.reports),
    )


def table_of(world: World) -> np.ndarray:
    """Return addresses and lengths of the arrays, [array, 2], for compiled code."""
    return np.array([[array.ctypes.data, len(array)] for array in world], np.int64)
