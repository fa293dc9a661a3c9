"""Sessions of a TCP connection that loses nothing: both ends play them on the timetable of the way.

Nothing is random but processing delays and repeated radio packets, and those are known to the timetable in
the mean. So the sessions become periodic as soon as the windows have opened as far as messages use them, and
times are exact sums of transmissions, trips and polls.

Rules: RFC 5681 (slow start, congestion avoidance, delayed acknowledgements), RFC 7323 (time stamps) or the
time of the oldest segment that an acknowledgement covers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.path import Path
from btqueue.network.request_reply.timetable import NO_CHANCE, NS, Chance, Form, Parcel, Timetable, Way
from btqueue.network.whole_segments import cut_of
from btqueue.scenario import Scenario

CLIENT, SERVER = 0, 1
REQUEST, REPLY, GOODBYE, OVER = range(4)
MOST_SESSIONS = 400
"""Sessions played in search of a period."""


@dataclass(frozen=True)
class Plan:
    """What the sessions of a connection are made of; times in ns but for those of the timer (s).

    Attributes:
        messages: forms of the segments of request, reply and good-bye (possibly none).
        small: form of acknowledgements and of SYN.
        windows: receive window, initial window and initial threshold (segments).
        in_bytes: whether windows count bytes, not segments.
        nagle: whether a short segment waits until all before it is acknowledged, or ("minshall") the last
            short one (RFC 1122, 4.2.3.4).
        ack_every: segments that are acknowledged together, or else after `ack_delay_ns`.
        fresh: every session has a connection of its own, which `handshake` opens.
    """

    way: Way
    messages: tuple[tuple[Form, ...], ...]
    in_bytes: bool
    nagle: bool | Literal["minshall"]
    small: Form
    windows: tuple[int, float, float]
    timestamps: bool
    ack_every: int
    ack_delay_ns: int
    pause_ns: int
    fresh: bool
    handshake: bool

    @property
    def lossy(self) -> bool:
        """Whether a segment or acknowledgement can be lost, by chance or to a buffer."""
        forms = [*(form for message in self.messages for form in message), self.small]
        packets = max(1, *(len(form.fragments) for form in forms))
        most = (2 * max(self.burst(CLIENT), self.burst(SERVER)) + 1) * packets
        tight = any(hop.buffer < most for route in self.way.routes for hop in route)
        return tight or any(any(form.losses) for form in forms)

    def burst(self, end: int) -> int:
        """Return the segments of an end beyond which a window does not matter."""
        request, reply, goodbye = map(len, self.messages)
        return min(self.windows[0], reply if end == SERVER else request + goodbye)


class Session(NamedTuple):
    """One session: when its messages were whole (ns from its beginning), and what was measured.

    Attributes:
        asked, requested, answered, over: request written and arrived, reply and good-bye arrived.
        next_ns: when the next session began.
        chance: what is random on the way to the reply; `whole`: to the end.
        samples: of each end, round trips (ns), the mean of repeated packets included.
        trips: of each end, when a segment was sent, and the acknowledgement came that covers it.
        arrivals: of each end, when its segments arrived.
    """

    asked: int
    requested: int
    answered: int
    over: int
    next_ns: int
    chance: Chance
    whole: Chance
    samples: tuple[list[float], list[float]]
    trips: tuple[list[tuple[int, int]], list[tuple[int, int]]]
    arrivals: tuple[list[int], list[int]]


def plan_of(scenario: Scenario) -> Plan:
    """Return what the sessions of the scenario's connection are made of."""
    traffic, transport, flows = scenario.traffic, scenario.transport, scenario.network.flows
    path = Path(scenario)
    own = None if isinstance(flows, str) else flows[0].receive_window_segments
    pieces = [
        cut_of(size, transport.mss_bytes)
        for size in (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes)
    ]
    forms = {
        piece: path.form(piece + transport.header_bytes)._replace(share=piece / transport.mss_bytes)
        for message in pieces
        for piece in message
    }
    return Plan(
        way=path.way,
        messages=tuple(tuple(forms[piece] for piece in message) for message in pieces),
        in_bytes=transport.windows == "bytes",
        nagle=transport.windows == "bytes" and transport.nagle,
        small=path.form(transport.header_bytes),
        windows=(
            transport.receive_window_segments if own is None else own,
            float(transport.initial_window_segments), float(transport.initial_ssthresh_segments),
        ),
        timestamps=transport.timestamps,
        ack_every=transport.ack_every_segments if transport.delayed_ack else 1,
        ack_delay_ns=round(transport.ack_delay_s * NS),
        pause_ns=round(traffic.pause_s * NS),
        fresh=transport.connection_per_session,
        handshake=transport.connection_per_session and transport.handshake,
    )  # fmt: skip


class End:
    """One direction: the sender of an end, and its receiver at the other."""

    def __init__(self, plan: Plan) -> None:
        """Begin a new connection; nothing written."""
        self.una = self.nxt = self.written = self.expected = self.acknowledged = 0
        self.last_short, self.waiting = -1, 0
        self.deadline: int | None = None
        self.cwnd, self.echo = plan.windows[1], 0
        self.sent_at: dict[int, tuple[int, float]] = {}


class Sessions:
    """Sessions one after the other."""

    def __init__(self, plan: Plan, window: float | None = None) -> None:
        """`window`: of both senders at the beginning, unless it is the initial one."""
        self.plan, self.table = plan, Timetable(plan.way, self._take)
        self.connection, self.phase, self.goal, self.began = 0, OVER, 0, 0
        self.ends = End(plan), End(plan)
        if window is not None:
            for end in self.ends:
                end.cwnd = window
        self.due, self.marks = False, [0, 0, 0, 0]
        self.chance = self.whole = NO_CHANCE
        self.samples: tuple[list[float], list[float]] = ([], [])
        self.trips: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        self.arrivals: tuple[list[int], list[int]] = ([], [])

    def play(self) -> list[Session]:
        """Return the sessions of a period, after which all is as it was at its beginning.

        Raises:
            NoConvergence: there is no period among the first sessions.
        """
        seen: dict[tuple, int] = {}
        found: list[Session] = []
        while len(found) < MOST_SESSIONS:
            key = self._state()
            if key in seen:
                return found[seen[key] :]
            seen[key] = len(found)
            found.append(self.one())
        raise NoConvergence(f"sessions are not periodic within {MOST_SESSIONS} of them")

    def one(self) -> Session:
        """Play a session, up to the beginning of the next one."""
        plan, table = self.plan, self.table
        self.began, self.marks, self.due = table.now, [0, 0, 0, 0], False
        self.samples, self.trips, self.arrivals = ([], []), ([], []), ([], [])
        self.chance = self.whole = NO_CHANCE
        table.forget_chance()
        if plan.handshake:
            table.post(CLIENT, plan.small, ("syn", self.connection), NO_CHANCE)
        else:
            self._ask(NO_CHANCE)
        table.flush()
        while not self.due:
            table.step()
        asked, requested, answered, over = self.marks
        return Session(
            asked, requested, answered, over, table.now - self.began, self.chance, self.whole, self.samples,
            self.trips, self.arrivals,
        )  # fmt: skip

    def _state(self) -> tuple:
        most = [min(self.plan.windows[0], 2 * self.plan.burst(place)) for place in (CLIENT, SERVER)]
        windows = [min(end.cwnd, float(limit)) for end, limit in zip(self.ends, most, strict=True)]
        waiting = [
            (
                end.waiting,
                end.deadline and end.deadline - self.table.now,
                *(self.table.now - at for at, _ in end.sent_at.values()),
            )
            for end in self.ends
        ]
        return (*([] if self.plan.fresh else windows), *waiting, self.table.phase)

    def _mark(self, place: int) -> None:
        self.marks[place] = self.table.now - self.began

    def _begin(self) -> None:
        self.due = True

    def _ask(self, chance: Chance) -> None:
        self.phase = REQUEST
        self._mark(0)
        self._write(CLIENT, REQUEST, chance)

    def _write(self, flow: int, message: int, chance: Chance) -> None:
        end = self.ends[flow]
        end.written += len(self.plan.messages[message])
        self.goal = end.written
        self._send_fitting(flow, chance)

    def _row(self, flow: int) -> tuple[Form, ...]:
        """Return the segments of an end, which it sends again and again."""
        request, reply, goodbye = self.plan.messages
        return reply if flow == SERVER else request + goodbye

    def _amount(self, flow: int, first: int, end: int) -> float:
        """Return what segments count in windows: their sizes, in full segments, or their number."""
        if not self.plan.in_bytes:
            return end - first
        row = self._row(flow)
        return sum(row[number % len(row)].share for number in range(first, end))

    def _has_to_wait(self, end: End) -> bool:
        """Whether Nagle's algorithm holds a short segment back."""
        return self.plan.nagle is not False and end.una <= (
            end.last_short if self.plan.nagle == "minshall" else end.nxt - 1
        )

    def _send_fitting(self, flow: int, chance: Chance) -> None:
        end, table, row = self.ends[flow], self.table, self._row(flow)
        window = min(end.cwnd if self.plan.in_bytes else int(end.cwnd), self.plan.windows[0])
        while end.nxt < end.written and self._amount(flow, end.una, end.nxt + 1) <= window:
            form = row[end.nxt % len(row)]
            if form.share < 1.0:
                if self._has_to_wait(end):
                    break
                end.last_short = end.nxt
            end.sent_at[end.nxt] = table.now, chance.repeated_ns
            table.post(flow, form, ("data", self.connection, end.nxt, table.now), chance)
            end.nxt += 1

    def _take(self, parcel: Parcel) -> None:
        """Take a parcel at its last node."""
        kind, connection, *load = parcel.load
        if connection != self.connection:
            return
        if kind == "data":
            number, at = load
            self._take_segment(parcel.direction, number, at, parcel.chance)
        elif kind == "ack":
            number, echo = load
            self._take_acknowledgement(1 - parcel.direction, number, echo, parcel.chance)
        elif parcel.direction == CLIENT:
            self.table.post(SERVER, self.plan.small, ("syn", connection), parcel.chance)
        else:
            self._ask(parcel.chance)

    def _take_segment(self, flow: int, number: int, at: int, chance: Chance) -> None:
        end, now, connection = self.ends[flow], self.table.now, self.connection
        if number <= end.acknowledged:
            end.echo = at
        self.arrivals[flow].append(now - self.began)
        end.expected += 1
        end.waiting += 1
        if end.expected == self.goal:
            self._go_on(flow, chance)
        if connection != self.connection or self.ends[flow] is not end:
            return
        if end.waiting >= self.plan.ack_every:
            self._acknowledge(flow, chance)
        elif end.deadline is None:
            end.deadline = now + self.plan.ack_delay_ns
            self.table.at(end.deadline, self._acknowledge_late, flow, end)

    def _acknowledge_late(self, flow: int, end: End) -> None:
        if self.ends[flow] is end and end.deadline is not None and end.deadline <= self.table.now:
            self._acknowledge(flow, NO_CHANCE)

    def _acknowledge(self, flow: int, chance: Chance) -> None:
        end = self.ends[flow]
        end.acknowledged, end.waiting, end.deadline = end.expected, 0, None
        self.table.post(1 - flow, self.plan.small, ("ack", self.connection, end.expected, end.echo), chance)

    def _take_acknowledgement(self, flow: int, number: int, echo: int, chance: Chance) -> None:
        end, now = self.ends[flow], self.table.now
        if number <= end.una:
            return
        at, repeated = end.sent_at[end.una]
        since = echo if self.plan.timestamps else at
        later = chance.repeated_ns - repeated if chance.repeated_ns else 0.0
        self.samples[flow].append(now - since + max(0.0, later))
        for old in range(end.una, number):
            self.trips[flow].append((end.sent_at.pop(old)[0] - self.began, now - self.began))
        arrived = min(self._amount(flow, end.una, number), 1.0)
        end.una = number
        end.cwnd += arrived if end.cwnd < self.plan.windows[2] else 1.0 / end.cwnd
        self._send_fitting(flow, chance)

    def _go_on(self, flow: int, chance: Chance) -> None:
        """The message under way is whole: answer it (Avancha 2002, section 4.4.1)."""
        if self.phase == REQUEST and flow == CLIENT:
            self.phase = REPLY
            self._mark(1)
            self._write(SERVER, REPLY, chance)
            return
        if self.phase == REPLY and flow == SERVER:
            self.chance = chance
            self._mark(2)
            if self.plan.messages[GOODBYE]:
                self.phase = GOODBYE
                self._write(CLIENT, GOODBYE, chance)
                return
        self.phase, self.whole = OVER, chance
        self._mark(3)
        if self.plan.fresh:
            self.connection += 1
            self.ends = End(self.plan), End(self.plan)
        self.table.at(self.table.now + self.plan.pause_ns, self._begin)
