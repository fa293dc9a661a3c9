r"""A message of a session on its way: a train of segments over stations of constant service.

Segment k leaves when the window has room and arrives

.. math:: a_k = \max(s_k + d,\ a_{k-1} + x),

with the lone way d, and x the time that the slowest station takes for a segment and its share of the
acknowledgements (Lindley's recursion for stations of constant service in a row). Slow start, windows, delayed
acknowledgements and Nagle's algorithm decide on s_k. Lone ways depend on the place in the cycle of polls
where they begin (`laws.Laws.way`): a message begins at the place where the message that it answers has
arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.stations.network import Flow, Piece, Visit

Vector = NDArray[np.float64]

PLAYED = 400
"""Segments of a message that are computed one by one; the others have the same spacing."""
AT_ONCE_S = 1e-9
"""Time within which a segment comes before a timer that expires at the same time (s)."""
LEAST_ROOM = 0.05
"""Least share of the time of a medium that is left to a session."""


class Sessions(NamedTuple):
    """Sessions of a client, by its number; pairs are of client and server.

    Attributes:
        cycle_s: from one session to the next; session_s: from request to reply; connect_s: of a handshake.
        rtt_s: mean of measured round trips.
        timeouts, fast_retransmits: expected in a session; lost_s: time that losses add to its cycle.
        expiries: of timers without a loss, expected in a session; infinite if they always expire.
        crossed: whether a timer sends an acknowledgement while its end sends the next request.
        shared: whether sessions keep a medium busy, so that they wait for each other.
    """

    cycle_s: float
    session_s: float
    connect_s: float
    rtt_s: tuple[float, float] = (np.nan, np.nan)
    timeouts: tuple[float, float] = (0.0, 0.0)
    fast_retransmits: tuple[float, float] = (0.0, 0.0)
    lost_s: float = 0.0
    expiries: float = 0.0
    crossed: bool = False
    shared: bool = False


class Course(NamedTuple):
    """A message on its way: when its segments were sent and arrived, and acknowledgements; all in s.

    Attributes:
        acks: for each acknowledgement, when it comes, and the segments that it covers: from, and up to.
        last_ack: when the last one leaves.
        held: of each acknowledgement for segments of earlier messages: when it comes, and its round trip.
        oldest: when the oldest segment was sent that the first acknowledgement of this message covers, if it
            belongs to an earlier message; else None.
    """

    sent: list[float]
    arrived: list[float]
    acks: list[tuple[float, int, int]]
    last_ack: float
    held: list[tuple[float, float]]
    oldest: float | None


class End:
    """One end of a session: its messages and its window."""

    def __init__(self, laws: Any, f: int, used: np.ndarray, *, bare: bool = False) -> None:
        """Args: the laws of the stations, the number of the flow, use of each resource by others.

        `bare`: only the work of this session takes time.
        """
        self.laws, self.f, self.used, self.bare = laws, f, used, bare
        self.flow: Flow = laws.network.flows[f]
        self.none = np.zeros(len(laws.links.names))
        transport = self.flow.transport
        self.every = float(transport.ack_every_segments) if transport.delayed_ack else 0.0
        clock = 0.5 if transport.ack_clock == "tick" else 1.0
        self.delay = transport.ack_delay_s * clock
        self.nagle = (
            transport.nagle if transport.windows == "bytes" and self.flow.protocol == "tcp" else False
        )
        self.in_bytes = transport.windows == "bytes" or self.flow.protocol != "tcp"
        self.reset()

    def reset(self) -> None:
        """Begin a new connection."""
        self.window = float(self.flow.transport.initial_window_segments)
        self.pending, self.quiet = 0.0, -inf
        self.back = 0.0
        self.held: tuple[float, float] | None = None  # a segment whose acknowledgement waits: arrived, sent

    def signature(self) -> Any:
        """Return a key that is equal for ends with equal answers."""
        links, flow, found = self.laws.links, self.flow, []
        for message in (*flow.messages, (Piece(0, 0.0, flow.back),)):
            for piece in message:
                found.append((piece.count, piece.share))
                for visit in piece.visits:
                    turns = self.laws.turns
                    before = turns.before[1, turns.number[visit.turn]] if visit.turn in turns.number else 0.0
                    used = self.used[self.laws.number[visit[:2]]]
                    state: tuple = (visit.index, round(float(used), 9), round(float(before), 9))
                    if visit.kind == "port":
                        link = links.port_link[visit.index]
                        state = tuple(
                            round(float(value), 7)
                            for value in (links.away[link], links.busy[visit.index], links.frame[visit.index])
                        )
                    waits_s = round(float(self.laws.filled_s[self.laws.number[visit[:2]]]), 7)
                    found.append((visit._replace(index=0, turn=0), state, waits_s))
        found += [round(float(self.used[self.laws.number["wire", layer.wire]]), 9) for layer in flow.layers]
        return tuple(found), flow.transport, flow.traffic.pause_s

    def lone(self, visits: tuple[Visit, ...], place: Any) -> tuple[float, Any]:
        """Return the time of a lone segment (s), and where in a cycle of polls it ends."""
        if not visits:
            return 0.0, place
        host, of = 2.0 * self.flow.host_s, "work" if self.bare else "message"
        if visits[0].kind == "port" and self.flow.jitter_s > 2.0 * SLOT_S:  # else hidden by the poll
            host += self.flow.jitter_s / 2.0
        seconds, end = self.laws.way(visits, None if host else place, self.none, 0.0, of=of)
        met_s = sum(self.laws.met_s.get(visit[:2], 0.0) for visit in visits)
        # behind the windows of other flows that fill a station, as any segment that comes there
        met_s += sum(float(self.laws.filled_s[self.laws.number[visit[:2]]]) for visit in visits)
        return seconds + host + met_s, end

    def pace(self, visits: tuple[Visit, ...], acks: float, segments: float = inf) -> float:
        """Return the time between segments in a row, with this share of acknowledgements against them (s)."""
        return max(self.takes(visits, acks, segments, bare=self.bare).values(), default=0.0)

    def takes(
        self, visits: tuple[Visit, ...], acks: float, segments: float = inf, *, bare: bool = False
    ) -> dict[Any, float]:
        """Return the time that each medium takes for a segment and acknowledgements (s).

        Args:
            visits: visits of the segment.
            acks: acknowledgements that come in the other direction.
            segments: of its message, which leave in as few visits as possible.
            bare: without the work of others meanwhile.
        """
        laws = self.laws
        links = laws.links
        air: dict[int, np.ndarray] = {}
        found: dict[Any, float] = {}
        turns: dict[Any, float] = {}  # work of others, where queues of a medium take turns
        for back, stops in ((False, visits), (True, self.flow.back)):
            times = acks if back else 1.0
            for visit in stops:
                if visit.kind == "port":
                    of_link = air.setdefault(links.port_link[visit.index], np.zeros((2, 2)))
                    of_link[int(links.up[visit.index])] += (
                        times * visit.train.frames, times * visit.train.air
                    )  # fmt: skip
                else:
                    key = visit.kind, visit.index
                    found[key] = found.get(key, 0.0) + times * visit.service_s
                    queue = laws.turns.number.get(visit.turn, -1)
                    if queue >= 0:
                        turns[key] = turns.get(key, 0.0) + times * float(laws.turns.before[1, queue])
        for layer in self.flow.layers:
            times = acks if layer.back else 1.0
            if visits is self.flow.back:  # acknowledgements alone
                times = float(layer.back)
            found["wire", layer.wire] = times * self.flow.layer_s
        for key, service in list(found.items()):
            if not bare:
                shared = service / max(1.0 - float(self.used[laws.number[key]]), LEAST_ROOM)
                found[key] = min(shared, service + turns.get(key, inf)) + laws.met_s.get(key, 0.0)
        for link, of_link in air.items():
            frames = of_link[:, 0].max()
            slots = of_link[:, 1].sum() + 2.0 * frames - of_link[:, 0].sum()
            visits_needed = segments * frames / float(links.limit[link])
            interrupted = 1.0  # ends of visits within the message, over the mean of a long message
            if 0.0 < visits_needed < inf:
                interrupted = max(ceil(visits_needed - 1e-9) - 1.0, 0.0) / visits_needed
            slots = slots / links.share[link] + (0.0 if bare else frames * interrupted * laws.between(link))
            key = "air", int(links.piconet[link])
            found[key] = found.get(key, 0.0) + slots * SLOT_S
        return found

    def work(self) -> dict[Any, float]:
        """Return the time that each medium takes for the messages of a session, and their answers (s)."""
        other = self.laws.network.flows[self.flow.reverse]
        last = next((one for one in (*self.flow.messages[1:], *other.messages[1:]) if one), None)
        last = last or (self.flow if self.f > (self.flow.reverse or 0) else other).messages[0]
        found: dict[Any, float] = {}
        tcp, transport = self.flow.protocol == "tcp", self.flow.transport
        acks = 1.0 / max(self.every, 1.0) if tcp else 0.0
        parts = []
        for message in self.flow.messages:
            parts += [(piece.visits, acks, piece.count - (piece is message[-1])) for piece in message]
            parts += [(piece.visits, 0.0, 1) for piece in message[-1:]]
            closes = transport.connection_per_session and message is last
            if tcp and message and not closes:  # the last acknowledgement meets no other segments
                parts.append((self.flow.back, 0.0, 1))
        if not tcp:
            count = sum(piece.count for message in self.flow.messages for piece in message)
            parts.append((self.flow.back, 0.0, self.flow.acks * count))
        elif transport.connection_per_session and transport.handshake:
            parts.append((self.flow.back, 0.0, 1.0))
        for visits, share, times in parts:
            for key, seconds in self.takes(visits, share, bare=True).items():
                found[key] = found.get(key, 0.0) + times * seconds
        return found

    def facing(self, visits: tuple[Visit, ...]) -> float:
        """Return the delay of a segment by an acknowledgement of the other direction at its start (s)."""
        visit = next((visit for visit in visits if visit.kind != "bucket"), None)
        if visit is None:  # acknowledgements that take no time
            return 0.0
        links = self.laws.links
        for other in self.flow.back:
            if visit.kind == other.kind == "wire" and visit.index == other.index:
                return max(other.service_s - other.delay_s, 0.0)
            if visit.kind == other.kind == "port" and links.opposite[visit.index] == other.index:
                slots = other.train.air - min(other.train.frames, visit.train.frames)
                return slots / links.share[links.port_link[visit.index]] * SLOT_S
        return 0.0

    def meets(self, pieces: Sequence[Piece], k: int, window: float) -> float:
        """Return the wait of the k-th segment's acknowledgement for the segments behind it on wires (s).

        At each crossing it waits for half of a round of the ports of segments on the same medium. If there is
        only one port, the next segments follow each other at once, and the rest of a segment is ahead.
        """
        kinds = [piece for piece in pieces for _ in range(min(piece.count, PLAYED))][k + 1 : k + int(window)]
        met = [
            [one for one in pieces[0].visits if one[:2] == own[:2]]
            for own in self.flow.back
            if own.kind == "wire"
        ]
        crossings = sum(bool(ones) for ones in met)
        if len(kinds) < crossings or not crossings:
            return 0.0
        if crossings > 1:
            return sum(one.service_s for ones in met for one in ones) / 2.0
        place = next(visit for ones in met for visit in ones)
        left = -place.delay_s
        for piece in kinds:
            left += next(visit.service_s for visit in piece.visits if visit[:2] == place[:2])
            if left > 0.0:
                break
        return max(left, 0.0)

    def _following(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """Return the message that this end sends after a message."""
        messages = [one for one in self.flow.messages if one]
        return messages[(messages.index(tuple(pieces)) + 1) % len(messages)]

    def release(self, course: Course) -> Course:
        """Return the course of a message with the acknowledgement that the other end's timer has sent."""
        if self.held is None:
            return course
        since, sent = self.held
        self.pending, self.held, at = 0.0, None, since + self.delay + self.back
        if sent not in course.sent:
            return course._replace(held=[*course.held, (at, at - sent)])
        ack = at, course.sent.index(sent), len(course.sent)
        return course._replace(acks=[*course.acks, ack])

    def message(
        self,
        pieces: Sequence[Piece],
        start: float,
        place: Any,
        *,
        due: bool = False,
        lead: bool = False,
        faced: bool = False,
    ) -> tuple[Course, Any]:
        """Return the course of a message written at `start`, and where in the cycle of polls it ends.

        Args:
            pieces: pieces of the message.
            start: when it may be sent (s).
            place: in the cycle of polls, where known.
            due: whether this end sends an acknowledgement when the message is written.
            lead: whether this acknowledgement is sent before the message.
            faced: whether an acknowledgement comes from the other end at the same time.
        """
        flow = self.flow
        acks = 1.0 / max(self.every, 1.0)
        segments = sum(piece.count for piece in pieces)
        gap = [self.pace(piece.visits, acks, segments) for piece in pieces]
        back, again = self.lone(flow.back, self.lone(pieces[0].visits, place)[1])
        held = self.nagle and pieces[0].share < 1.0
        if held and self.quiet > start:  # the acknowledgement that it waits for meets the own one
            lead, faced = False, due and self.quiet < start + back
            if place is not None and flow.back:
                place = place._replace(used=place.used + flow.back[-1].train.frames)
        first = [
            self.lone(_behind(piece.visits, flow, self.laws) if lead else piece.visits, place)
            for piece in pieces
        ]
        late = self.facing(pieces[0].visits) if faced else 0.0
        later = [self.lone(piece.visits, again) for piece in pieces]
        ends = (later if sum(piece.count for piece in pieces) > 1 else first)[-1][1]
        wires = {visit[:2] for visit in pieces[0].visits if visit.kind == "wire"}
        shared = [visit for visit in flow.back if visit[:2] in wires]
        kinds = [i for i, piece in enumerate(pieces) for _ in range(min(piece.count, PLAYED))]
        left = sum(max(piece.count - PLAYED, 0) for piece in pieces)
        limit, threshold = flow.window, float(flow.transport.initial_ssthresh_segments)
        sent, arrived, acked, older, oldest = [], [], [], [], None
        start = max(start, self.quiet) if held else start
        if self.held and min(self.window, limit) < self.pending + pieces[0].share:  # no room before it comes
            start = max(start, self.held[0] + self.delay + back)
        flight, waits, since, now, taken = 0.0, 0, inf, start, 0
        shares = [pieces[i].share if self.in_bytes else 1.0 for i in kinds]
        for k, i in enumerate(kinds):
            share = shares[k]
            most = min(self.window, limit)
            if share < 1.0 and self.nagle is True:
                most = share  # a short segment waits for all before it
            while flight + share > max(most, share) + 1e-9 and (taken < len(acked) or waits < k):
                if taken == len(acked):  # only the timer sends the acknowledgement
                    acked.append((since + self.delay + back, waits, k))
                    oldest = self.held[1] if self.held else oldest
                    self.pending, self.held, waits = 0.0, None, k
                at, low, high = acked[taken]
                taken += 1
                now = max(now, at)
                amount = sum(shares[low:high])
                flight -= amount
                grown = min(amount, 1.0)
                self.window += grown if self.window < threshold else 1.0 / self.window
                most = max(most, min(self.window, limit)) if most > share else most
            sent.append(now)
            flight += share
            lone = first[i][0] + late if now == start else later[i][0]
            arrived.append(max(now + lone, arrived[-1] + gap[i]) if arrived else now + lone)
            if k == 0 and self.held and arrived[0] > self.held[0] + self.delay + AT_ONCE_S:
                at = self.held[0] + self.delay + back
                older.append((at, at - self.held[1]))
                self.pending, self.held = 0.0, None
            if waits == k:
                since = self.held[0] if k == 0 and self.held else arrived[-1]
            elif arrived[-1] > since + self.delay + AT_ONCE_S:
                leaves, free = since + self.delay, arrived[-1] - sum(visit.delay_s for visit in shared)
                if shared and leaves > free - gap[i]:  # this segment is on their medium
                    leaves = max(leaves, free)
                acked.append((leaves + back, waits, k))
                oldest = self.held[1] if self.held else oldest
                self.pending, self.held, waits, since = 0.0, None, k, arrived[-1]
            self.pending += share
            if self.pending + 1e-9 >= self.every:
                held = k + 1 < len(kinds) and self.nagle is True and shares[k + 1] < 1.0
                met = 0.0 if held or not shared else self.meets(pieces, k, most)
                acked.append((arrived[-1] + back + met, waits, k + 1))
                if self.held:  # it shows the round trip of the oldest segment
                    oldest = self.held[1]
                self.pending, waits, self.held = 0.0, k + 1, None
        for _, low, high in acked[taken:]:
            amount = min(sum(shares[low:high]), 1.0)
            self.window += amount if self.window < threshold else 1.0 / self.window
        if left:
            pace = (arrived[-1] - arrived[-101]) / 100.0
            arrived[-1] += left * pace
        leaves = arrived[-1]
        if waits < len(kinds):
            leaves = since + self.delay
            short = self.nagle is True or (self.nagle and shares[-1] < 1.0)
            short = short and self._following(pieces)[0].share < 1.0  # a full segment does not wait
            if short or flow.transport.connection_per_session:  # the next one waits, or never comes
                acked.append((leaves + back, waits, len(kinds)))
                oldest = self.held[1] if self.held else oldest
                self.pending, self.held = 0.0, None
            else:
                self.held, self.back = self.held or (since, sent[waits]), back
        return Course(sent, arrived, acked, leaves, older, oldest), ends


def _behind(visits: tuple[Visit, ...], flow: Flow, laws: Any) -> tuple[Visit, ...]:
    """Return the visits of a segment with an acknowledgement of the other direction in front of it."""
    ahead = {(visit.kind, visit.index): visit for visit in laws.network.flows[flow.reverse].back}
    first = next(i for i, visit in enumerate(visits) if visit.kind != "bucket")
    visit = visits[first]
    other = ahead.get((visit.kind, visit.index))
    if other is None:
        return visits
    both = visit._replace(
        train=visit.train.plus(other.train, 1.0), service_s=visit.service_s + other.service_s
    )
    return (*visits[:first], both, *visits[first + 1 :])
