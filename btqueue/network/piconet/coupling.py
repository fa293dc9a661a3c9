"""The rates of flows, the queues that they meet, and TCP's answer to both.

Flows that see the same are one class. A class sends its load if its windows allow that; else its windows go
round as fast as slots and tokens let them (`saturation`), or radio errors hold it back: then it sends at the
rate at which TCP's law gives the same, at the round trip that this rate makes. That rate falls as the round
trip grows, so there is one, and a bracketing search finds it. Several classes are solved in turns until none
moves.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from scipy.optimize import root_scalar

from btqueue.network.answers import NoConvergence
from btqueue.network.piconet.air import Air, Passage
from btqueue.network.piconet.bucket import Bucket, Entering, bucket, queue_loss
from btqueue.network.piconet.ports import DOWN, UP, Piconet, Port, Sender
from btqueue.network.piconet.saturation import (
    Window,
    closed_rate,
    room_of,
    saturated_slots,
    token_capacity,
    window,
)
from btqueue.network.piconet.tcp import LOSSLESS, Timing, tcp_rate
from btqueue.network.piconet.trains import transmissions

LARGEST_QUEUE = 60
"""Packets of the largest queue whose losses are followed, for cost: a larger one is taken to lose none."""
LEAST = 1e-3
"""Share of its capacity that a flow sends where its round trip without queueing is asked for."""
AT_MOST = 0.995
"""Share of its capacity that a flow offers to open queues at most: beyond, they say nothing."""
TOLERANCE = 1e-9
MOVED = 1e-7
MOST_TURNS = 60
CORRECTED = 1e-5
MOST_CORRECTIONS = 20


@dataclass(frozen=True)
class Seen:
    """What a flow of a class sees in open queues.

    Attributes:
        rtt_s, delay_s: mean round trip, and time of a segment from sender to receiver.
        overflow, refused: share of its segments that the queue and the token buffer damage.
    """

    rtt_s: float
    delay_s: float
    overflow: float
    refused: float


@dataclass(frozen=True)
class State:
    """The network at the rates of its classes.

    Attributes:
        offered: segments a second that a flow of each class sends.
        air, buckets: what they meet.
        entering: trains a second that come to each port from a host, by port.
        seen: by a flow of each class.
    """

    offered: np.ndarray
    air: Air
    entering: dict[Port, Entering]
    buckets: dict[Port, Bucket]
    seen: tuple[Seen, ...]


@dataclass(frozen=True)
class Limits:
    """What holds a flow back.

    Attributes:
        capacity: segments a second that slots and tokens carry of it.
        cycle_s: polling cycle if all flows of the class are saturated (s).
        rate: segments a second that its window lets it send.
        window: see `Window`.
        by_tokens: whether tokens are scarcer than slots.
    """

    capacity: float
    cycle_s: float
    rate: float
    window: Window
    by_tokens: bool


class Coupling:
    """The map from the rates of the classes to what they see.

    Attributes:
        class_of: number of the class of each flow.
        members: one flow of each class.
    """

    def __init__(self, piconet: Piconet, timing: Timing) -> None:
        """Sort the flows into classes."""
        self.piconet, self.timing = piconet, timing
        signatures = [_signature(piconet, sender) for sender in piconet.senders]
        known = list(dict.fromkeys(signatures))
        self.class_of = tuple(known.index(signature) for signature in signatures)
        self.members = tuple(piconet.senders[self.class_of.index(k)] for k in range(len(known)))
        self.data = transmissions(piconet.data, piconet.most_transmissions)
        self.ack = transmissions(piconet.ack, piconet.most_transmissions)
        self._known: dict[bytes, State] = {}

    @property
    def evaluations(self) -> int:
        """How often the queues were solved."""
        return len(self._known)

    def at(self, offered: np.ndarray) -> State:
        """Return what the classes see when they offer so many segments a second."""
        if (known := self._known.get(offered.tobytes())) is not None:
            return known
        net, entering = self.piconet, self._entering(offered)
        buckets = {port: bucket(net, own) for port, own in entering.items()}
        window = np.inf if net.ack is None else self.timing.window
        first = [self.class_of.index(number) for number in range(len(self.members))]
        air = Air(net, (self.data, self.ack), offered[list(self.class_of)], window, first)
        seen = tuple(self._seen(number, air, buckets) for number in first)
        return self._known.setdefault(offered.tobytes(), State(offered, air, entering, buckets, seen))

    def _entering(self, offered: np.ndarray) -> dict[Port, Entering]:
        found = {Port(s, way): Entering() for s in range(self.piconet.stations) for way in (DOWN, UP)}
        for sender, number in zip(self.piconet.senders, self.class_of, strict=True):
            own = found[sender.port]
            found[sender.port] = own._replace(data=own.data + offered[number])
            if self.piconet.ack is not None:
                back = found[sender.back[0]]
                answers = offered[number] * self.data.success
                found[sender.back[0]] = back._replace(ack=back.ack + answers)
        return found

    def _seen(self, number: int, air: Air, buckets: dict[Port, Bucket]) -> Seen:
        """Return what a flow sees.

        Tokens and the port are two queues in a row: with constant service only the slower one would make a
        segment wait, with random service both would. The waits are added as squares, between the two.
        """
        sender, passage, net = self.piconet.senders[number], air.passages[number], self.piconet
        slot_s = net.slot_s
        tokens = buckets[sender.port]
        processing_s = net.jitter_s / 2  # uniform from 0
        before_s = processing_s + passage.delay * slot_s
        delay = before_s + hypot(tokens.wait_s, passage.wait * slot_s)
        rtt = np.nan
        if net.ack is not None:
            waits = hypot(tokens.wait_s, passage.wait_inside(self.timing.window) * slot_s)
            rtt = before_s + waits + processing_s + buckets[sender.back[0]].wait_s + passage.answer * slot_s
        return Seen(rtt, delay, self._overflow(sender, passage, air), tokens.train_loss)

    def _overflow(self, sender: Sender, passage: Passage, air: Air) -> float:
        """Share of the segments of which the queue of their port refuses a packet.

        A queue that windows cannot fill refuses none.
        """
        net = self.piconet
        places = net.places[sender.port.way]
        flows = sum(other.port == sender.port for other in net.senders)
        most = np.inf if net.ack is None else flows * self.timing.window * len(net.data.packets)
        if places >= most or places > LARGEST_QUEUE:
            return 0.0
        trains = sum(
            float(air.rates[number]) / net.slot_s
            for number, other in enumerate(net.senders)
            if sender.port in other.data
        )
        return queue_loss(trains, self.data, passage.service * net.slot_s / self.data.mean, int(places))

    def limits(self, rates: np.ndarray, number: int, load: float, held_back: set[int]) -> Limits:
        """Return what slots, tokens and windows allow a class, beside the others at their rates.

        Classes that are not held back by their load share the rest, each port as much as the next one. The
        window goes round in the time that a segment takes when its own class sends next to nothing; first it
        is tried with the longer one at its load, which is solved for anyway, and says enough if the window
        allows the load even so.
        """
        net, timing = self.piconet, self.timing
        own = np.array([k == number for k in self.class_of])
        others = np.where(own, 0.0, rates[list(self.class_of)])
        sharing = np.array([k == number or k in held_back for k in self.class_of])
        ports = Counter(s.port for s, shares in zip(net.senders, sharing, strict=True) if shares)
        shares = np.array([1.0 / ports[s.port] if s.port in ports else 0.0 for s in net.senders]) * sharing
        sender = self.members[number]
        share = 1.0 / ports[sender.port]
        slots = saturated_slots(net, shares, np.where(sharing, 0.0, others), self.data, self.ack)
        tokens = token_capacity(net, own, others, sender.port)
        by_tokens, capacity = tokens < slots.capacity * share, min(slots.capacity * share, tokens)
        if net.ack is None:
            return Limits(capacity, slots.cycle_s, capacity, Window(np.inf, 0.0), by_tokens)
        held = window(timing.window, room_of(net, sender, by_tokens=by_tokens))
        flows = 1.0 if by_tokens else float(shares.sum()) / share
        service_s = 1.0 / (flows * capacity)
        for tried in (load / self.data.success, LEAST * capacity):
            if tried < AT_MOST * capacity:
                offered = rates / self.data.success
                offered[number] = tried
                elsewhere_s = max(self.at(offered).seen[number].rtt_s - service_s, 0.0)
                rate = closed_rate(flows * held.mean, service_s, elsewhere_s) / flows
                if rate * self.data.success >= load:
                    break
        return Limits(capacity, slots.cycle_s, rate, held, by_tokens)


def _signature(piconet: Piconet, one: Sender) -> tuple:
    """Return what two flows of one class have in common: themselves, and what their stations carry."""
    first, last = one.data[0], one.data[-1]
    ahead = (last.station - first.station) % piconet.stations
    carried = tuple(
        tuple(
            sorted(
                (p.way, s.rate, p == s.port)
                for s in piconet.senders
                for p in s.data
                if p.station == port.station
            )
        )
        for port in one.data
    )
    return tuple(port.way for port in one.data), ahead, one.rate, carried


@dataclass(frozen=True)
class Solved:
    """The fixed point.

    Attributes:
        state: the open queues at the rates found, or just below what they carry.
        rates: segments a second that a flow of each class delivers.
        limits: of each class.
        limited: what decides, for each class: "load", "window" or "radio".
        residual: largest relative change of a rate by one more turn or correction.
        evaluations: of the queues.
    """

    state: State
    rates: np.ndarray
    limits: tuple[Limits, ...]
    limited: tuple[str, ...]
    residual: float
    evaluations: int


def solve_rates(coupling: Coupling) -> Solved:
    """Return the network at the rates that loads, windows and radio errors allow.

    Raises:
        NoConvergence: several classes never settled.
        ConvergenceError: the queues were not solved.
    """
    loads = np.array([sender.rate for sender in coupling.members])
    rates = np.zeros(len(loads))
    count = len(loads)
    held_back = {number for number in range(count) if np.isinf(loads[number])}
    for _ in range(MOST_TURNS):
        before, found = rates.copy(), []
        for number in range(count):
            rates[number], limit, why = _rate_of(coupling, rates, number, loads[number], held_back)
            found.append((limit, why))
            held_back = held_back - {number} if why == "load" else held_back | {number}
        moved = float(np.max(np.abs(rates - before) / rates))
        if count == 1 or moved <= MOVED:
            limits, why = zip(*found, strict=True)
            state, corrected = _with_repetitions(coupling, rates, limits)
            residual = max(corrected, 0.0 if count == 1 else moved)
            return Solved(state, rates.copy(), limits, why, residual, coupling.evaluations)
    raise NoConvergence(
        f"the rates of {count} classes of flows still moved by {moved:.1g} in turn {MOST_TURNS}"
    )


def _with_repetitions(coupling: Coupling, rates: np.ndarray, limits: Sequence[Limits]) -> tuple[State, float]:
    """Return the open queues with what TCP sends again because a buffer was full, as far as they carry it.

    Also the relative change that one more correction would make.
    """
    capacity = np.array([AT_MOST * one.capacity for one in limits])
    state, change = coupling.at(np.minimum(rates / coupling.data.success, capacity)), 0.0
    if coupling.piconet.ack is None:
        return state, change
    for _ in range(MOST_CORRECTIONS):
        lost = np.array([overflow(one, seen) for one, seen in zip(limits, state.seen, strict=True)])
        offered = np.minimum(rates / coupling.data.success / (1.0 - lost), capacity)
        change = float(np.max(np.abs(offered / state.offered - 1.0)))
        if change <= CORRECTED:
            break
        state = coupling.at(offered)
    return state, change


def overflow(limits: Limits, seen: Seen) -> float:
    """Return the share of its segments that full buffers damage: not more than if they were always full."""
    return min(limits.window.loss, 1.0 - (1.0 - seen.overflow) * (1.0 - seen.refused))


def _rate_of(
    coupling: Coupling, rates: np.ndarray, number: int, load: float, held_back: set[int]
) -> tuple[float, Limits, str]:
    """Return the rate of one class, the others being given, its limits and which of them decides."""
    limits, success = coupling.limits(rates, number, load, held_back), coupling.data.success
    most, why = min((load, "load"), (limits.rate * success, "window"))
    if success * coupling.ack.success > 1.0 - LOSSLESS or coupling.piconet.ack is None:
        return most, limits, why

    def excess(log_rate: float) -> float:
        tried = rates / success
        tried[number] = min(np.exp(log_rate) / success, AT_MOST * limits.capacity)
        seen = coupling.at(tried).seen[number]
        tcp = tcp_rate(coupling.timing, seen.rtt_s, 1.0 - success, 1.0 - coupling.ack.success)
        return np.log(tcp.rate) - log_rate

    if excess(np.log(most)) >= 0.0:
        return most, limits, why
    found = root_scalar(excess, bracket=(np.log(most) - 12.0, np.log(most)), method="brentq", xtol=TOLERANCE)
    return float(np.exp(found.root)), limits, "radio"
