"""What is known at one instant of a scatternet, as arrays of records for the compiled loop.

Ends of flows, token buckets and packets are those of a ring (`btqueue.network.ring_piconet.records`): link f
is the way into the air of the source of flow f, and stream 2 f are its data, 2 f + 1 their acknowledgements.
Links of bridges use uplink and downlink queue only. Times are in seconds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from btqueue.network.ring_piconet.network import EMPTY_FRAME_SLOTS
from btqueue.network.ring_piconet.records import (
    BAD,
    BEGINNING_S,
    CLOCK_FIELDS,
    ITEM_FIELDS,
    LINK,
    NOTED,
    PERIPHERAL,
    QUEUES,
    zeros,
)
from btqueue.network.ring_piconet.sequences import ERRORS, MESSAGES, gap, quantile
from btqueue.network.scatternet.network import (
    NO_LIMIT,
    Connection,
    Piconet,
    Place,
    Scatternet,
)
from btqueue.transport.newreno_sender import Sender

NONE = -1
STUCK = "every bridge waits to be polled by a central that is away itself"
VISIT, CYCLE, COMPLETE = range(3)
STAYS = {"visit": VISIT, "cycle": CYCLE, "complete": COMPLETE}

ITEM = np.dtype([*ITEM_FIELDS, ("hop", np.int64)])
"""A segment or a packet in a queue; `hop` counts the hops behind it."""

CLOCK = np.dtype(
    [
        *CLOCK_FIELDS,
        *((name, np.float64) for name in ("slot", "noted_slot", "period")),
        ("looks", np.int64),
        ("stuck", np.bool_),
    ],
    align=True,
)
"""That of a ring, whose cycles each piconet counts; its time in slots; whether bridges wait for each other
for ever. What was noted, here and below, is for `scatternet.idleness`; the period last found there (slots).
"""

PICONET = np.dtype(
    [
        *((name, np.float64) for name in ("slot", "now", "noted_slot")),
        *((name, np.int64) for name in ("noted_stance", "noted_cycles")),
        *((name, np.int64) for name in ("station", "cycles", "data_slots", "slots_before", "relay_losses")),
        *((name, np.bool_) for name in ("away", "ready")),
    ],
    align=True,
)
"""A piconet: up to when it has been followed (in slots, and in seconds), or, while its central is `away`, a
time before which it does not come back; place in the polling cycle, and whether the idle polls before it are
over; what it counts; its data slots when the cycle began."""

BRIDGE = np.dtype(
    [
        *((name, np.float64) for name in ("since", "noted_since")),
        *((name, np.int64) for name in ("current", "origin", "exchanges", "switches", "noted_whereabouts")),
    ]
)
"""A bridge: since which slot it is in the piconet at place `current` of its list, and where it came from;
exchanges or cycles there; switches so far."""


class Paths(NamedTuple):
    """What does not change: who is polled where, and how packets go on.

    Attributes:
        members: links of each piconet in the order of its cycle, [piconet, place], and NONE behind the last.
            Peripherals that neither send nor receive are left out:
        idle_slots: of the polls of such before each place, [piconet, place], and behind the last.
        central_bridge: the bridge that is the central, [piconet], or NONE.
        bridge_of: the bridge whose link it is, [link], or NONE.
        channel_of: the channel that decides on errors, [link].
        limit: most frames of a visit, [link].
        room: packets in the uplink queue, [link]; where the link is a bridge's.
        piconets, bridge_links: of each bridge, [bridge, place]; NONE behind the last, or where it is central.
        routes: 2 x link + direction (1: down) of the queue behind each hop, [stream, hop]; NONE: there.
        stay, stay_cycles: rule and cycles of a bridge's stay.
        switch_slots: longest time of a switch.
    """

    members: np.ndarray
    idle_slots: np.ndarray
    central_bridge: np.ndarray
    bridge_of: np.ndarray
    channel_of: np.ndarray
    limit: np.ndarray
    room: np.ndarray
    piconets: np.ndarray
    bridge_links: np.ndarray
    routes: np.ndarray
    stay: int
    stay_cycles: int
    switch_slots: float


class State(NamedTuple):
    """A scatternet at one instant; the first eight are those of a ring.

    Attributes:
        notes: as a ring's, and the round-trip times of each class.
        piconets, bridges: a `PICONET` and a `BRIDGE` record each.
        samples: round-trip times of each class of flows, [class, sample]; older ones are written over.
        counts: how many there have been, [class].
        class_of: class of each flow.
    """

    clock: np.ndarray
    peripherals: np.ndarray
    links: np.ndarray
    early: np.ndarray
    queues: np.ndarray
    marks: np.ndarray
    rtts: np.ndarray
    notes: np.ndarray
    piconets: np.ndarray
    bridges: np.ndarray
    samples: np.ndarray
    counts: np.ndarray
    class_of: np.ndarray


def paths_of(net: Scatternet) -> Paths:
    """Return the layout as arrays."""
    limit, room = np.full(net.links, net.ring.limit), np.full(net.links, NO_LIMIT)
    for piconet in net.polled:
        for link in piconet.members:
            if net.bridge_of[link] is not None:
                share = piconet.ordinary * net.polling_limit
                limit[link] = net.bridge_limit or share
                room[link] = net.bridge_buffer or share
    busy = [_busy_members(net, piconet) for piconet in net.polled]
    return Paths(
        members=_table([[*members, None] for members, _ in busy]),
        idle_slots=EMPTY_FRAME_SLOTS * np.maximum(_table([idle for _, idle in busy]), 0),
        central_bridge=_row([piconet.central_bridge for piconet in net.polled]),
        bridge_of=_row(net.bridge_of),
        channel_of=np.array([net.home_of[k] if net.radio.shared else k for k in range(net.links)]),
        limit=limit,
        room=room,
        piconets=_table([bridge.piconets for bridge in net.bridges]),
        bridge_links=_table([bridge.links for bridge in net.bridges]),
        routes=_table([_behind(way) for c in net.connections for way in _ways(c)]),
        stay=STAYS[net.stay],
        stay_cycles=net.stay_cycles,
        switch_slots=net.switch_slots,
    )


def _busy_members(net: Scatternet, piconet: Piconet) -> tuple[list[int], list[int]]:
    """Return the members that are ever busy, and how many others stand before each, and behind the last."""
    members, idle = [], [0]
    for link in piconet.members:
        if link in net.ends or net.bridge_of[link] is not None:
            members.append(link)
            idle.append(0)
        else:
            idle[-1] += 1
    return members, idle


def _ways(connection: Connection) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    return connection.forth, connection.back


def _behind(way: tuple[Place, ...]) -> list[int]:
    return [2 * place.link + place.down for place in way[1:]] + [NONE]


def _row(values: Sequence[int | None]) -> np.ndarray:
    return np.array([NONE if value is None else value for value in values], np.int64)


def _table(rows: Sequence[Sequence[int | None]]) -> np.ndarray:
    """Return rows of different lengths as one array, filled up with NONE; never without columns."""
    table = np.full((max(len(rows), 1), max((len(row) for row in rows), default=1)), NONE, np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = _row(row)
    return table


def at_rest(
    net: Scatternet,
    window: int,
    places: int,
    samples: int,
    class_of: Sequence[int] | None = None,
    batches: int = 1,
) -> State:
    """Return empty queues and full buckets, bridges where they begin.

    Args:
        net: the scatternet.
        window: largest window (segments).
        places: that each queue has; a power of two.
        samples: round-trip times kept of each class of flows.
        class_of: class of each flow; all in one without.
        batches: most batches.
    """
    peripherals = np.zeros(net.links, PERIPHERAL)
    peripherals["tokens"] = net.ring.bucket_bytes
    peripherals["deadline"] = peripherals["message"] = np.inf
    peripherals["recover"], peripherals["smoothed"] = -1, np.nan
    idle = [link for link in range(net.links) if link not in net.ends]
    peripherals["due"][idle] = np.inf  # those of bridges, too
    channels = np.zeros(net.links, LINK)
    channels["until"] = 0.0 if net.radio.two_states else np.inf
    channels["level"] = BAD if net.radio.two_states else 0  # the first look finds that the bad stay is over
    piconets, bridges = np.zeros(net.piconets, PICONET), np.zeros(max(len(net.bridges), 1), BRIDGE)
    for number, bridge in enumerate(net.bridges):
        bridges["current"][number] = bridge.first
        for place, link in enumerate(bridge.links):
            if link is None and place != bridge.first:
                piconets["away"][bridge.piconets[place]] = True
    classes = np.zeros(net.flows, np.int64) if class_of is None else np.array(class_of, np.int64)
    return State(
        clock=zeros((1,), CLOCK),
        peripherals=peripherals.view(np.recarray),
        links=channels.view(np.recarray),
        early=np.zeros((net.links, 1 << window.bit_length()), np.bool_),
        queues=zeros((net.links, QUEUES, places), ITEM),
        marks=np.zeros((net.links, QUEUES, 2), np.int64),
        rtts=np.zeros(1),
        notes=np.zeros((batches + 1, NOTED + int(classes.max()) + 1)),
        piconets=piconets.view(np.recarray),
        bridges=bridges.view(np.recarray),
        samples=np.zeros((int(classes.max()) + 1, samples)),
        counts=np.zeros(int(classes.max()) + 1, np.int64),
        class_of=classes,
    )


def begin(state: State, sender: Sender, intervals: Sequence[float], number: int) -> None:
    """Give every flow a sender, and messages, the first ones at irregular times.

    These lie within `BEGINNING_S`, or within the time between two messages where that is longer: connections
    that begin close together can set idle piconets and bridges to a pace that rare messages do not bring.

    Args:
        state: a scatternet at rest.
        sender: what every sender is at first.
        intervals: mean time between the messages of each flow (s); 0: there are always data.
        number: which sequences they follow.
    """
    peripherals, channels = state.peripherals.view(np.ndarray), state.links.view(np.ndarray)
    sequences = [place + number * len(channels) for place in range(len(channels))]
    peripherals["sequence"] = channels["sequence"] = sequences
    channels["left"] = [gap(k, ERRORS, 0) for k in sequences]
    own = peripherals[: len(intervals)]
    for name, value in vars(sender).items():
        own[name] = np.nan if value is None else value
    own["message"] = [first_message(*each) for each in zip(intervals, sequences, strict=False)]
    own["interval"] = intervals


def first_message(interval: float, sequence: int) -> float:
    """Return when the first message of a flow comes (s)."""
    return max(BEGINNING_S, interval) * quantile(sequence, MESSAGES, 0)
