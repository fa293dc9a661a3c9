"""A piconet as arrays: its discrete structure, and the numbers that may be varied.

Stations, flows and classes are padded to few sizes, so that few programs are compiled: which port a flow
crosses, and how many stations there are, is data. Flows that see the same are one class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from btqueue.channel import spared_by_neighbour
from btqueue.network.piconet.disciplines import numbers
from btqueue.network.piconet.lone import BACK, BACK_ON, DATA, DATA_ON, EMPTY_FRAME, Idle, Route
from btqueue.network.piconet.ports import DOWN, UP, Piconet, Port, Sender, Train
from btqueue.network.piconet.sources import Source
from btqueue.network.piconet.trains import Packets

STATIONS = 8
"""Places for stations: a piconet has up to 7."""
LEAST_FLOWS = 8
LEAST_PACKETS = 8
LEAST_LEVELS = 64
FOLLOWED = 1.0 - 1.0 / 8.0
"""Error rate of a packet in a state of the radio up to which the law of its transmissions is followed.
Beyond, times grow with the mean number, as the limit of visits makes them."""
MOST_LEVELS = 1024
"""Levels of a token bucket that are followed: where more wait, a segment was delayed by many round trips."""
LARGEST_QUEUE = 60
"""Packets of the largest queue whose losses are followed, for cost: a larger one loses as many where it is
always full, and else none."""
LEAST_CUSTOMERS = 64
MOST_CUSTOMERS = 1024
"""Customers of a closed network that are counted: with more the bottleneck never rests."""


class Class(NamedTuple):
    """What flows of a class have in common; F flows, P ports (2 a station).

    Attributes:
        route: where they go.
        ports: (4, P) 1 at the port of each crossing of one of them.
        member: (F,) 1 for that one.
        flows: (F,) 1 for all of them.
        meets: (F, 4) 1 for crossings of trains that may be under way elsewhere when a segment comes.
        joined: (F, 3) 1 where trains that may be under way elsewhere follow at once, as far as the limit
            allows: data their first hop, the acknowledgement the data, and its second hop the first.
        later: (4,) 1 for crossings of further ports, each port once.
    """

    route: Route
    ports: Array
    member: Array
    flows: Array
    meets: Array
    joined: Array
    later: Array


@partial(
    jax.tree_util.register_dataclass,
    data_fields=[
        "idle", "limit", "slot_s", "most_transmissions", "data_kilobits", "data", "ack", "at_port",
        "class_of", "classes", "source", "vegas", "ack_every",
    ],
    meta_fields=[
        "answered", "ack_clock", "regular", "closes", "interleaved", "relays", "errors", "lossy", "tokens",
        "queues", "fading", "transmissions", "transmissions_in_state", "levels", "customers",
    ],
)  # fmt: skip
@dataclass(frozen=True)
class Structure:
    """All that is discrete.

    Attributes:
        idle: stations, and whether trains are put together.
        limit: most frames M of a visit.
        slot_s: mean time from slot to slot (s).
        most_transmissions: of a packet.
        data_kilobits: of a segment, without headers.
        data, ack: packets of a segment and of an acknowledgement.
        at_port: (F, 4, P) 1 at the port of each crossing.
        class_of: (F, C) 1 at the class of each flow.
        classes: stacked, (C, ...).
        source: laws of the sources of the classes.
        vegas: (C,) 1 for classes whose windows TCP Vegas holds.
        ack_every: segments of an acknowledgement.
        answered: whether there are acknowledgements.
        ack_clock: what ends the wait of a delayed acknowledgement: a timer, a tick; empty if there is none.
        regular: whether some sources are periodic.
        closes: whether a visit ends with the last packet that it found.
        interleaved: whether busy stations take turns frame by frame.
        relays: whether flows go from station to station.
        errors: whether packets can be lost on the radio.
        lossy: whether segments can.
        tokens: whether there are token buckets.
        queues: whether queues of ports can be too short.
        fading: what the radio's two states make of repetition: see `Piconet`.
        transmissions: size of the law of a train's transmissions.
        transmissions_in_state: the same in a state of the radio.
        levels: of a token bucket that are followed.
        customers: of a closed network that are counted.
    """

    idle: Idle
    limit: Array
    slot_s: Array
    most_transmissions: Array
    data_kilobits: Array
    data: Packets
    ack: Packets
    at_port: Array
    class_of: Array
    classes: Class
    source: Source
    vegas: Array
    ack_every: Array
    answered: bool
    ack_clock: str
    regular: bool
    closes: bool
    interleaved: bool
    relays: bool
    errors: bool
    lossy: bool
    tokens: bool
    queues: bool
    fading: str
    transmissions: int
    transmissions_in_state: int
    levels: int
    customers: int

    @property
    def stations(self) -> Array:
        """Number n of stations."""
        return self.idle.stations

    @property
    def padding(self) -> int:
        """Classes that are copies of the first one: nothing belongs to them."""
        return int((np.asarray(self.class_of).sum(axis=0) == 0.0).sum())

    @property
    def kind_at_port(self) -> Array:
        """(F, 2, P) crossings of data and of acknowledgements."""
        return self.at_port.reshape(self.at_port.shape[0], 2, 2, -1).sum(2)


class Radio(NamedTuple):
    """Bit error rates of two states and mean times there (s); a packet error rate, or NaN, in their place."""

    ber_good: Array
    ber_bad: Array
    good_s: Array
    bad_s: Array
    per: Array


class Inputs(NamedTuple):
    """The numbers that may be varied.

    Attributes:
        load: (C,) messages a second of a flow of each class; infinite for a greedy source.
        token_rate: bytes a second.
        bucket_bytes: depth of a token bucket.
        buffer: packets that may wait for tokens (S).
        places: (2,) packets that may wait in the queue of a port, by way; infinite without limit.
        jitter_s: largest random processing delay of a segment at its sender.
        layers_s: that the layers of both hosts hold a segment.
        window: (C,) receive windows (segments).
        scv: squared coefficient of variation of the gaps of an interrupted Bernoulli process.
        ack_delay_s: longest wait of a delayed acknowledgement, or from tick to tick.
        alpha, beta, gamma: TCP Vegas's bounds of the segments that wait (in slow start the last one).
        min_rto_s, max_rto_s: least and largest timeout.
        backoff: factor of a timeout at each expiry.
        radio: of all links.
    """

    load: Array
    token_rate: Array
    bucket_bytes: Array
    buffer: Array
    places: Array
    jitter_s: Array
    layers_s: Array
    window: Array
    scv: Array
    ack_delay_s: Array
    alpha: Array
    beta: Array
    gamma: Array
    min_rto_s: Array
    max_rto_s: Array
    backoff: Array
    radio: Radio


class Layout(NamedTuple):
    """Which class a flow belongs to, and one flow of each class, as numbers of flows."""

    class_of: tuple[int, ...]
    members: tuple[int, ...]


def layout_of(piconet: Piconet, apart: Sequence[int] = ()) -> Layout:
    """Sort the flows into classes of those that see the same, some flows each in a class of its own."""
    names = [number if number in apart else -1 for number in range(len(piconet.senders))]
    signatures = [_signature(piconet, sender, names) for sender in piconet.senders]
    known = list(dict.fromkeys(signatures))
    class_of = tuple(known.index(signature) for signature in signatures)
    return Layout(class_of, tuple(class_of.index(k) for k in range(len(known))))


def _signature(piconet: Piconet, one: Sender, names: Sequence[int]) -> tuple:
    """Return what two flows of one class have in common: themselves, and what their stations carry."""
    named = list(zip(piconet.senders, names, strict=True))
    first, last = one.data[0], one.data[-1]
    ahead = (last.station - first.station) % piconet.stations
    carried = tuple(
        tuple(
            sorted(
                (p.way, s.rate, s.law, s.window, s.vegas, p == s.port, name)
                for s, name in named
                for p in s.data
                if p.station == port.station
            )
        )
        for port in one.data
    )
    own = next(name for sender, name in named if sender is one)
    return tuple(port.way for port in one.data), ahead, one[1:], carried, own


def structure_of(piconet: Piconet, layout: Layout, *, lossy: bool) -> Structure:
    """Return the arrays of a piconet."""
    flows = _padded(len(piconet.senders), LEAST_FLOWS)
    crossed = [_crossings(piconet, sender) for sender in piconet.senders]
    at_port = np.zeros((flows, 4, STATIONS, 2))
    for number, ports in enumerate(crossed):
        for place, port in ports.items():
            at_port[number, place, port.station, port.way] = 1.0
    members = layout.members + layout.members[:1] * (_padded(len(layout.members), 1) - len(layout.members))
    class_of = np.zeros((flows, len(members)))
    class_of[np.arange(len(layout.class_of)), layout.class_of] = 1.0
    classes = [_class(piconet, layout, crossed, number, at_port) for number in members]
    packets = max(len(train.packets) for train in (piconet.data, piconet.ack or piconet.data))
    size = _padded(packets, LEAST_PACKETS)
    tokens = bool(np.isfinite(piconet.token_rate))
    prices = [t.tokens / len(t.packets) for t in (piconet.data, piconet.ack) if t is not None]
    wanted = piconet.buffer + piconet.bucket_bytes / min(prices) + 2.0 if tokens else 0.0
    window = max(sender.window for sender in piconet.senders) if piconet.ack is not None else 1
    of_class = [piconet.senders[number] for number in members]
    return Structure(
        idle=Idle(numbers(piconet.stations), numbers(piconet.whole), piconet.visits),
        limit=numbers(piconet.limit),
        slot_s=numbers(piconet.slot_s),
        most_transmissions=numbers(piconet.most_transmissions),
        data_kilobits=numbers(piconet.segment_bytes * 8 / 1000),
        data=packets_of(piconet.data, size, piconet),
        ack=packets_of(piconet.ack, size, piconet),
        at_port=numbers(at_port.reshape(flows, 4, -1)),
        class_of=numbers(class_of),
        classes=jax.tree.map(lambda *leaves: np.stack(leaves), *classes),
        source=Source(
            bursty=numbers([sender.law == "ibp" for sender in of_class]),
            regular=numbers([sender.law == "periodic" for sender in of_class]),
            segments=numbers([piconet.segments for _ in of_class]),
        ),
        vegas=numbers([sender.vegas for sender in of_class]),
        ack_every=numbers(piconet.ack_every),
        answered=piconet.ack is not None,
        ack_clock=piconet.ack_clock if piconet.ack is not None else "",
        regular=any(sender.law == "periodic" for sender in piconet.senders),
        closes=bool(piconet.visits.closes > 0.0),
        interleaved=bool(piconet.visits.interleaved > 0.0),
        relays=any(len(sender.data) > 1 for sender in piconet.senders),
        errors=piconet.worst_error > 0.0,
        lossy=lossy and piconet.ack is not None,
        tokens=tokens,
        queues=min(piconet.places) <= LARGEST_QUEUE or (piconet.ack is None and min(piconet.places) < np.inf),
        fading=piconet.fading,
        transmissions=_padded(_transmissions(piconet, packets, piconet.worst_error), LEAST_PACKETS),
        transmissions_in_state=_padded(_transmissions(piconet, packets, FOLLOWED), LEAST_PACKETS),
        levels=min(_padded(int(wanted), LEAST_LEVELS), MOST_LEVELS),
        customers=min(_padded(window * len(piconet.senders), LEAST_CUSTOMERS), MOST_CUSTOMERS),
    )


def _transmissions(piconet: Piconet, packets: int, error: float) -> int:
    """Return the size of the law of a train's transmissions: what is beyond it is below 1e-9.

    With the largest error rate e of a packet, which is sent at most N times.
    """
    worst = min(error, 1.0 - 1e-3)
    if piconet.most_transmissions == 1 or worst <= 0.0:
        return packets + 1
    if np.isfinite(piconet.most_transmissions) and packets * piconet.most_transmissions < LEAST_LEVELS:
        return int(packets * piconet.most_transmissions) + 1
    mean, deviation = packets / (1.0 - worst), (packets * worst) ** 0.5 / (1.0 - worst)
    return min(int(mean + 8.0 * deviation + 20.0 / -np.log(worst)), 4 * MOST_LEVELS)


def _padded(size: int, least: int) -> int:
    """Return the next power of two from `least` on."""
    return max(least, 1 << max(size - 1, 0).bit_length())


def _crossings(piconet: Piconet, sender: Sender) -> dict[int, Port]:
    ports = dict(zip((DATA, DATA_ON), sender.data, strict=False))
    if piconet.ack is not None:
        ports |= {BACK + place: port for place, port in enumerate(sender.back)}
    return ports


def _class(
    piconet: Piconet, layout: Layout, crossed: list[dict[int, Port]], number: int, at_port: np.ndarray
) -> Class:
    sender, own = piconet.senders[number], crossed[number]
    flows = at_port.shape[0]
    member, of_class, joined, meets = (np.zeros((flows, *shape)) for shape in ((), (), (3,), (4,)))
    member[number] = 1.0
    single = len(sender.data) == 1
    for other, ports in enumerate(crossed):
        of_class[other] = layout.class_of[other] == layout.class_of[number]
        for place, port in ports.items():
            meets[other, place] = other != number and port != sender.port
        joined[other] = _joined(piconet, ports, sender.port) * (other != number)
    later, known = np.zeros(4), {sender.port}
    for place, port in own.items():
        later[place] = port not in known
        known.add(port)
    first, last, n = sender.data[0].station, sender.data[-1].station, piconet.stations
    between = np.array([(last - first) % n - 1.0, (first - last) % n - 1.0])
    up = float(sender.back[0].way == UP)
    route = Route(numbers(not single), numbers(up), numbers(between))
    ports = at_port[number].reshape(4, -1)
    return Class(route, *map(numbers, (ports, member, of_class, meets, joined, later)))


def _joined(piconet: Piconet, ports: dict[int, Port], first: Port) -> np.ndarray:
    """(3,) 1 where a train of another flow follows the one before it at once: see `Class`.

    At the next station it does unless the central visits the port of the segment, `first`, in between.
    """
    found, n = np.zeros(3), piconet.stations

    def elsewhere(*places: int) -> bool:
        return all(place in ports and ports[place] != first for place in places)

    for number, (before, after) in ((0, (DATA, DATA_ON)), (2, (BACK, BACK_ON))):
        if not piconet.whole and elsewhere(before, after):
            ahead = (ports[after].station - ports[before].station) % n
            found[number] = (first.station - ports[before].station) % n > ahead > 0
    last = DATA_ON if DATA_ON in ports else DATA
    found[1] = elsewhere(last, BACK) and ports[last].way == DOWN
    return found


def packets_of(train: Train | None, size: int, piconet: Piconet) -> Packets:
    """Return the packets of a train, padded to so many places."""
    there, slots, bits, blocks, prices = np.zeros((5, size))
    spared, on_air = np.ones(size), piconet.on_air
    each = zip(train.packets, train.charges, strict=True) if train is not None else ()
    for place, (packet, charge) in enumerate(each):
        there[place], slots[place], prices[place] = 1.0, packet.slots, charge
        spared[place] = spared_by_neighbour(packet.air_time_us) ** piconet.interferers
        blocks[place] = packet.body_fec_blocks if on_air else packet.payload_fec_blocks
        bits[place] = 0.0 if packet.coded else packet.body_bits if on_air else packet.payload_bits
    if piconet.fills_gaps:
        long, short = slots > 1.0, np.flatnonzero(slots == 1.0)
        if train is piconet.ack:
            slots[long] += EMPTY_FRAME  # it shares no frame with data
        elif long.any() and short.size % 2:
            slots[short[-1]] = slots.max()  # nothing else fits into the rest of its gap
    return Packets(*map(numbers, (there, slots, bits, blocks, on_air, spared, prices)))
