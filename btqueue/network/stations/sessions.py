r"""Request-reply sessions: the time of a session, of TCP connections and of CentaurusComm.

A session is a closed class of one customer: a client asks, thinks while the server answers, says good-bye and
pauses, so its rate is one over its cycle. A message crosses the stations of its way as a train of segments.
Segment k leaves when the window has room and arrives

.. math:: a_k = \max(s_k + d,\ a_{k-1} + x),

with the lone way d, and x the time that the slowest station takes for a segment and its share of the
acknowledgements (Lindley's recursion for stations of constant service in a row). Slow start, windows, delayed
acknowledgements and Nagle's algorithm are when s_k may be. So the time of a message is the sum of its rounds,
each the larger of round trip and serialization. Lone ways depend on where in the cycle of polls they begin
(`Laws.way`): a message begins where the one that it answers has come.

**Losses.** A lost segment with three more behind it in its window is sent again a round trip later; another
waits for the timer and begins slow start. Costs of losses are added, as if each were the only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtrc

from btqueue.baseband import SLOT_S
from btqueue.network.stations.network import Flow, Network, Piece, Visit
from btqueue.transport.centaurus_transaction import Branch, Transaction, mean_time

PLAYED = 400
"""Segments of a message that are followed one by one; the others have their pace."""
SESSIONS = 4
"""Sessions until windows, phases and acknowledgements that wait are as in all later ones."""
DUPLICATES = 3
AFTER_LOST_SYN_S = 3.0
"""Least timeout after a handshake that had to be repeated (RFC 6298, 5.7)."""
SAW = 0.75
"""Mean of a window that rises from half of what fits to all of it, relative to that."""
STEADY_WINDOW = sqrt(1.5)
"""Mean window times the root of the losses (Mathis et al. 1997)."""


class Sessions(NamedTuple):
    """Sessions of a client, by its number; pairs are of client and server.

    Attributes:
        cycle_s: from one session to the next; session_s: from request to reply; connect_s: of a handshake.
        rtt_s: mean of measured round trips.
        timeouts, fast_retransmits, again: expected in a session.
    """

    cycle_s: float
    session_s: float
    connect_s: float
    rtt_s: tuple[float, float] = (np.nan, np.nan)
    timeouts: tuple[float, float] = (0.0, 0.0)
    fast_retransmits: tuple[float, float] = (0.0, 0.0)
    again: tuple[float, float] = (0.0, 0.0)


Samples = tuple[list[tuple[float, float]], list[tuple[float, float]]]
"""Of client and server, when acknowledgements come and the round trips that they tell (s)."""


class Course(NamedTuple):
    """A message on its way: when its segments were sent and arrived, and acknowledgements; all in s.

    Attributes:
        acks: of each acknowledgement when it comes, and the segments that it covers: from, and up to.
        last_ack: when the last one leaves.
    """

    sent: list[float]
    arrived: list[float]
    acks: list[tuple[float, int, int]]
    last_ack: float


def pair_of(flows: Sequence[Flow], f: int) -> list[int]:
    """Return the numbers of the flows of a client and of its server."""
    server = flows[f].reverse
    assert server is not None
    return [f, server]


def lossless(flow: Flow) -> bool:
    """Return whether neither segments nor acknowledgements of a flow are lost at random."""
    return flow.loss == 0.0 and flow.ack_loss == 0.0


class End:
    """What one end of a session sends, and its window."""

    def __init__(self, laws: Any, f: int, used: np.ndarray, *, bare: bool = False) -> None:
        """Args: the laws of the stations, the number of the flow, what others use of each resource.

        `bare`: what takes time is only the own work.
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
        self.most = inf  # segments of a window, beside the receiver's
        self.reset()

    def reset(self) -> None:
        """Begin a new connection."""
        self.window = float(self.flow.transport.initial_window_segments)
        self.pending, self.quiet = 0.0, -inf

    def signature(self) -> Any:
        """Return what ends have in common that fare alike."""
        links, flow, found = self.laws.links, self.flow, []
        for message in (*flow.messages, (Piece(0, 0.0, flow.back),)):
            for piece in message:
                found.append((piece.count, piece.share))
                for visit in piece.visits:
                    state: tuple = (visit.index, round(float(self.used[self.laws.number[visit[:2]]]), 9))
                    if visit.kind == "port":
                        link = links.port_link[visit.index]
                        state = tuple(
                            round(float(value), 7)
                            for value in (links.away[link], links.busy[visit.index], links.frame[visit.index])
                        )
                    found.append((visit.kind, visit[2:], state))
        return tuple(found), flow.transport.model_dump_json(), flow.traffic.pause_s

    def lone(self, visits: tuple[Visit, ...], place: Any, gap: float = 0.0) -> tuple[float, Any]:
        """Return the time of a lone segment (s), and where in a cycle of polls it ends."""
        if not visits:
            return 0.0, place
        host, of = 2.0 * self.flow.host_s, "work" if self.bare else "message"
        seconds, end = self.laws.way(
            visits, None if host else place, self.none, 1.0 / gap if gap else 0.0, of=of
        )
        return seconds + host, end

    def pace(self, visits: tuple[Visit, ...], acks: float) -> float:
        """Return the time between segments in a row, with this share of acknowledgements against them (s)."""
        return max(self.takes(visits, acks, bare=self.bare).values(), default=0.0)

    def takes(self, visits: tuple[Visit, ...], acks: float, *, bare: bool = False) -> dict[Any, float]:
        """Return the time that each medium takes for a segment and acknowledgements (s).

        Args:
            visits: of the segment.
            acks: acknowledgements that come against it.
            bare: without what others take meanwhile.
        """
        laws = self.laws
        links = laws.links
        air: dict[int, np.ndarray] = {}
        found: dict[Any, float] = {}
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
        for key, service in found.items():
            found[key] = service if bare else service / max(1.0 - self.used[laws.number[key]], 0.05)
        for link, of_link in air.items():
            frames = of_link[:, 0].max()
            slots = of_link[:, 1].sum() + 2.0 * frames - of_link[:, 0].sum()
            slots = slots / links.share[link] + (0.0 if bare else frames * laws.between(link))
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
            parts += [(piece.visits, acks if piece.count > 1 else 0.0, piece.count) for piece in message]
            closes = transport.connection_per_session and message is last
            if tcp and message and not closes:  # the last acknowledgements have nothing against them
                parts.append((self.flow.back, 0.0, max(sum(piece.count == 1 for piece in message), 1)))
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
        """Return by how much an acknowledgement that comes against a segment at its start delays it (s)."""
        visit = next(visit for visit in visits if visit.kind != "bucket")
        links = self.laws.links
        for other in self.flow.back:
            if visit.kind == other.kind == "wire" and visit.index == other.index:
                return max(other.service_s - other.delay_s, 0.0)
            if visit.kind == other.kind == "port" and links.opposite[visit.index] == other.index:
                slots = other.train.air - min(other.train.frames, visit.train.frames)
                return slots / links.share[links.port_link[visit.index]] * SLOT_S
        return 0.0

    def meets(self, visits: tuple[Visit, ...]) -> float:
        """Return what an acknowledgement waits for segments in a row that it meets on wires (s)."""
        back = {visit.index for visit in self.flow.back if visit.kind == "wire"}
        return sum(visit.service_s for visit in visits if visit.kind == "wire" and visit.index in back) / 2.0

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
            pieces: of the message.
            start: when it may be sent (s).
            place: in the cycle of polls, where known.
            due: whether an own acknowledgement leaves when it is written.
            lead: whether that goes in front of it.
            faced: whether an acknowledgement comes against it.
        """
        flow = self.flow
        acks = 1.0 / max(self.every, 1.0)
        gap = [self.pace(piece.visits, acks) for piece in pieces]
        back, again = self.lone(flow.back, self.lone(pieces[0].visits, place)[1])
        held = self.nagle and pieces[0].share < 1.0
        if held and self.quiet > start:  # the acknowledgement that it waits for meets the own one
            lead, faced = False, due and self.quiet < start + back
            if place is not None and flow.back:
                place = place._replace(used=place.used + flow.back[-1].train.frames)
        meets = self.meets(pieces[0].visits)
        first = [
            self.lone(_behind(piece.visits, flow, self.laws) if lead else piece.visits, place, gap[i])
            for i, piece in enumerate(pieces)
        ]
        late = self.facing(pieces[0].visits) if faced else 0.0
        if place is None and not self.bare:  # it may come while hardly anything gets through
            late += sum(visit.train.outage_s for visit in pieces[0].visits if visit.kind == "port")
        later = [self.lone(piece.visits, again, gap[i]) for i, piece in enumerate(pieces)]
        ends = (later if sum(piece.count for piece in pieces) > 1 else first)[-1][1]
        kinds = [i for i, piece in enumerate(pieces) for _ in range(min(piece.count, PLAYED))]
        left = sum(max(piece.count - PLAYED, 0) for piece in pieces)
        limit, threshold = min(flow.window, self.most), float(flow.transport.initial_ssthresh_segments)
        sent, arrived, acked = [], [], []
        start = max(start, self.quiet) if held else start
        flight, waits, since, now, taken = 0.0, 0, inf, start, 0
        shares = [pieces[i].share if self.in_bytes else 1.0 for i in kinds]
        for k, i in enumerate(kinds):
            share = shares[k]
            most = min(self.window, limit)
            if share < 1.0 and self.nagle is True:
                most = share  # a short segment waits for all before it
            while flight + share > max(most, share) + 1e-9 and (taken < len(acked) or waits < k):
                if taken == len(acked):  # nothing else lets the acknowledgement out
                    acked.append((since + self.delay + back, waits, k))
                    self.pending, waits = 0.0, k
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
            if waits == k:
                since = arrived[-1]
            elif arrived[-1] > since + self.delay:
                acked.append((since + self.delay + back, waits, k))
                self.pending, waits, since = 0.0, k, arrived[-1]
            self.pending += share
            if self.pending + 1e-9 >= self.every:
                acked.append((arrived[-1] + back + (meets if k + 1 < len(kinds) else 0.0), waits, k + 1))
                self.pending, waits = 0.0, k + 1
        for _, low, high in acked[taken:]:
            amount = min(sum(shares[low:high]), 1.0)
            self.window += amount if self.window < threshold else 1.0 / self.window
        if left:
            pace = (arrived[-1] - arrived[-101]) / 100.0
            arrived[-1] += left * pace
        leaves = arrived[-1]
        if waits < len(kinds):
            leaves = since + self.delay
            acked.append((leaves + back, waits, len(kinds)))
            self.pending = 0.0
        return Course(sent, arrived, acked, leaves), ends


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


def sessions_of(laws: Any, asking: list[int], rate: np.ndarray, service: np.ndarray) -> dict[int, Sessions]:
    """Return the sessions of each client at the present rates of all.

    Args:
        laws: of the stations (`point.Laws`).
        asking: numbers of the clients' flows.
        rate: of each flow, shape (flows,).
        service: of each resource for a segment with its acknowledgement (s), shape (flows, resources).
    """
    flows, found, works = laws.network.flows, {}, {}
    plain = np.array([not flow.messages for flow in flows])
    room: dict[Any, float] = {}
    known: dict[Any, Sessions] = {}
    for f in asking:
        pair = pair_of(flows, f)
        used = rate @ service - rate[pair] @ service[pair]
        ends = End(laws, f, used), End(laws, pair[1], used)
        alike = ends[0].signature(), ends[1].signature()
        if alike not in known:
            known[alike] = _centaurus(*ends) if flows[f].protocol == "centaurus" else _tcp(*ends)
        found[f] = known[alike]
        works[f] = _works(laws, pair, used) if len(asking) > 1 or laws.network.buckets else {}
        if len(asking) == 1:  # all media but tokens work as its course says
            works[f] = {key: seconds for key, seconds in works[f].items() if key[0] == "bucket"}
        for key in works[f]:
            others = (
                (rate * plain) @ service[:, laws.number[key]] if key[0] != "air" else laws.plain_load(key[1])
            )
            room[key] = max(1.0 - float(others), 0.05)
    if any(works.values()):
        _share(found, works, room, flows)
    return found


def _works(laws: Any, pair: list[int], used: np.ndarray) -> dict[Any, float]:
    """Return the time that each medium works for a session (s).

    Where visits of several frames carry all of it, its course alone is what a piconet does meanwhile: a visit
    ends with an empty frame where its turn-around is too late.
    """
    known = laws.works
    if pair[0] in known:
        return known[pair[0]]
    client, server = (End(laws, one, used, bare=True) for one in pair)
    found = client.work()
    for key, seconds in server.work().items():
        found[key] = found.get(key, 0.0) + seconds
    flows = laws.network.flows
    counts = [piece.count for one in pair for message in flows[one].messages for piece in message]
    if counts == [1, 1] and flows[pair[0]].protocol == "tcp":  # their acknowledgements face each other
        for key in [one for one in found if one[0] != "bucket"]:
            found[key] -= client.takes(flows[pair[0]].back, 0.0, bare=True)[key] - client.facing(
                server.flow.back
            )
    links = [laws.links.port_link[visit.index] for visit in client.flow.forth if visit.kind == "port"]
    if len(found) == 1 and links and laws.links.limit[links].min() > 1.0:
        played = _centaurus(client, server) if client.flow.protocol == "centaurus" else _tcp(client, server)
        found = dict.fromkeys(found, played.cycle_s - client.flow.traffic.pause_s)
    known[pair[0]] = found
    return found


def _share(found: dict[int, Sessions], works: dict[int, dict], room: dict[Any, float], flows: Any) -> None:
    """Lengthen sessions until no medium works for longer than it has: clients wait for each other."""
    for _ in range(20):
        worst = 1.0
        for key, space in room.items():
            users = [f for f in found if key in works[f]]
            over = sum(works[f][key] / found[f].cycle_s for f in users) / space
            worst = max(worst, over)
            for f in users if over > 1.0 else ():
                one, pause = found[f], flows[f].traffic.pause_s
                cycle = one.cycle_s * over
                stretch = (cycle - pause) / max(one.cycle_s - pause, 1e-9)
                found[f] = one._replace(
                    cycle_s=cycle,
                    session_s=one.session_s * stretch,
                    rtt_s=tuple(value * stretch for value in one.rtt_s),
                )
        if worst < 1.0 + 1e-6:
            break


# -------------------------------------------------------------------------------------------------------- TCP


def _tcp(client: End, server: End) -> Sessions:
    """Return sessions over TCP: as without losses, and what losses cost."""
    transport, traffic = client.flow.transport, client.flow.traffic
    fresh, both = transport.connection_per_session, (client, server)
    connect = 0.0
    request, goodbye = client.flow.messages
    reply = server.flow.messages[0]
    lossy = not (lossless(client.flow) and lossless(server.flow))
    lossy = lossy or any(
        min(end.flow.window, sum(piece.count for piece in message)) > _room(end)
        for end in both
        for message in end.flow.messages
    )
    for end in both if not fresh else ():
        end.window = _open_window(end)
    now, place, lead, faced = 0.0, None, False, False
    cycle = session = 0.0
    courses: list[tuple[End, Sequence[Piece], Course]] = []
    samples: Samples = ([], [])
    for _ in range(SESSIONS):
        start, courses, samples = now, [], ([], [])
        if fresh:
            client.reset()
            server.reset()
        if fresh and transport.handshake:
            there, place = client.lone(server.flow.back, place)
            back, place = client.lone(client.flow.back, place)
            connect, lead = there + back + (client.facing(server.flow.back) if faced else 0.0), False
            faced = False
            now += connect
        asked = now
        windows = client.window, server.window
        course, place = client.message(request, now, place, due=lead, lead=lead, faced=faced)
        courses.append((client, request, course))
        answer, place = server.message(reply, course.arrived[-1], place)
        courses.append((server, reply, answer))
        _finish(client, course, answer, samples[0], short=request[-1].share < 1.0)
        at_once = course.last_ack == course.arrived[-1]
        held = False
        now = answered = answer.arrived[-1]
        last = answer
        if goodbye:
            due = answer.last_ack == answer.arrived[-1]
            held = client.nagle and goodbye[0].share < 1.0 and client.quiet > now
            last, place = client.message(goodbye, now, place, due=due, faced=at_once)
            courses.append((client, goodbye, last))
            _finish(server, answer, last, samples[1], short=reply[-1].share < 1.0)
            now = last.arrived[-1]
        else:
            faced_s = client.facing(server.flow.back) if at_once else 0.0
            _finish(server, answer, None, samples[1], short=reply[-1].share < 1.0, faced_s=faced_s)
        if goodbye:
            _finish(client, last, None, samples[0], short=goodbye[-1].share < 1.0)
        if fresh:  # acknowledgements that come later find no connection
            samples = tuple([one for one in some if one[0] <= now] for some in samples)
        # an acknowledgement that leaves at the end goes in front of the next request
        lead = traffic.pause_s == 0.0 and answer.last_ack <= now and not fresh and not held
        mine = last if goodbye else course
        faced = traffic.pause_s == 0.0 and mine.last_ack == mine.arrived[-1]
        if traffic.pause_s > 0.0:
            place = None
        now += traffic.pause_s
        settled = abs(now - start - cycle) < 1e-9
        cycle, session = now - start, answered - asked
        if lossy and not fresh:
            client.window, server.window = windows
        if settled:
            break
    trips = [[trip for _, trip in some] for some in samples]
    rtt = tuple(float(np.mean(values)) if values else np.nan for values in trips)
    found = Sessions(cycle, session, connect, rtt)
    return _with_losses(found, courses, both, trips) if lossy else found


def _finish(
    end: End,
    course: Course,
    answer: Course | None,
    samples: list[tuple[float, float]],
    *,
    short: bool,
    faced_s: float = 0.0,
) -> None:
    """Take the round trips of a message whose last acknowledgement goes behind what has answered it.

    Args:
        end: of the message.
        course: of the message.
        answer: which follows it from the other end.
        samples: that get when acknowledgements have come, and the round trips (s).
        short: whether the last segment is no full one.
        faced_s: by how much an acknowledgement that comes against the last one delays it (s).
    """
    acks = list(course.acks)
    if answer is not None and acks:
        at, low, high = acks[-1]
        ahead = int(np.searchsorted(answer.sent, course.last_ack, side="right"))
        if ahead:
            at = max(at, answer.arrived[ahead - 1] + end.pace(end.flow.back, 0.0))
        acks[-1] = at, low, high
    elif acks:
        acks[-1] = acks[-1][0] + faced_s, *acks[-1][1:]
    samples.extend((at, at - course.sent[low]) for at, low, _ in acks if low < len(course.sent))
    if acks and (end.nagle is True or (end.nagle and short)):
        end.quiet = acks[-1][0]


def _open_window(end: End) -> float:
    """Return the window at the beginning of a message of a connection that has been open for long."""
    flow, transport = end.flow, end.flow.transport
    most = flow.window
    pieces = max(flow.messages, key=lambda message: sum(piece.count for piece in message))
    gap = max(end.pace(pieces[0].visits, 1.0 / max(end.every, 1.0)), 1e-9)
    if transport.variant == "vegas":
        lone = end.lone(pieces[0].visits, None)[0] + end.lone(flow.back, None)[0]
        most = min(most, max(lone / gap + transport.alpha, 2.0))
    room = _room(end)
    if most > room and sum(piece.count for piece in pieces) > room:
        most = SAW * room
    if flow.loss > 0.0:
        most = min(most, max(STEADY_WINDOW / sqrt(flow.loss), 1.0))
    return most


def _room(end: End) -> float:
    """Return the segments in a row that find place before and in each station of a way."""
    return min((visit.places + 1.0 for visit in end.flow.forth), default=inf)


def _with_losses(
    found: Sessions,
    courses: list[tuple[End, Sequence[Piece], Course]],
    both: tuple[End, End],
    trips: list[list[float]],
) -> Sessions:
    """Return sessions with the expected costs of lost segments and acknowledgements."""
    transport = both[0].flow.transport
    timeouts, fast, again, connect = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], 0.0
    cost, session = 0.0, found.session_s
    lost_syn = 1.0 - (1.0 - both[0].flow.ack_loss) * (1.0 - both[1].flow.ack_loss)
    for number, (end, pieces, course) in enumerate(courses):
        side = both.index(end)
        values = trips[side]
        rto = _timeout(end, values)
        if found.connect_s and end is both[0]:
            rto += lost_syn * max(AFTER_LOST_SYN_S - rto, 0.0)
        losses = [
            1.0 - np.prod([1.0 - visit.loss for visit in piece.visits])
            for piece in pieces
            for _ in range(min(piece.count, PLAYED))
        ]
        p = float(np.mean(losses))
        lost_ack = end.flow.ack_loss
        count, arrived = len(course.sent), np.array(course.arrived)
        back = course.acks[0][0] - course.arrived[0]
        window, end.window = end.window, 1.0
        end.most = window  # which it has on average, with losses
        slow, _ = end.message(pieces, 0.0, None)
        end.window, end.most = window, inf
        unheard = 1.0 - (1.0 - p) * (1.0 - lost_ack)
        waits, last_wait = (_backed_off(rto, one, transport) for one in (unheard, p))
        before = timeouts[side]
        # half a window goes on while the lost segment is sent again
        gap = (arrived[-1] - arrived[0]) / max(count - 1, 1)
        stall = max(slow.arrived[0] + back - window / 2.0 * gap, 0.0)
        # a window that losses limit is a saw between half of its peak and that
        windows = np.minimum(window * np.linspace(0.5, 1.0, 6) / SAW, end.flow.window).astype(int)
        mine = 0.0
        for k, loss in enumerate(losses):
            if not loss:
                continue
            behind = np.minimum(windows - 1, count - 1 - k)
            if transport.limited_transmit:  # the first two duplicates let one segment out each
                behind = np.where(behind > 0, np.minimum(behind + 2, count - 1 - k), behind)
            quick = float(np.where(behind < DUPLICATES, 0.0, bdtrc(DUPLICATES - 1, behind, 1.0 - p)).mean())
            repaired = arrived[min(k + DUPLICATES, count - 1)] + back + slow.arrived[0]
            left = max(count - k - min(int(window) - 1, count - 1 - k), 1)
            # with more to send, a window of one segment waits until its acknowledgement has come, too
            expired = (
                course.sent[k]
                + (waits if k < count - 1 else last_wait)
                + slow.arrived[min(left, len(slow.arrived)) - 1]
            )
            mine += loss * quick * max(repaired - arrived[-1], stall)
            mine += loss * (1.0 - quick) * max(expired - arrived[-1], 0.0)
            timeouts[side] += loss * (1.0 - quick * (1.0 - loss)) / (1.0 - loss)
            fast[side] += loss * quick
            again[side] += loss / (1.0 - loss)
        room = _room(end)
        if count > room and min(end.flow.window, count) > room:
            # the window opens by one segment in a window of them, from half of what fits to one too many
            often = min(1.0, count / ((room / 2.0 + 1.0) * SAW * room))
            expired = course.sent[int(room)] + waits + slow.arrived[count - int(room) - 1]
            mine += often * max(expired - arrived[-1], 0.0)
            timeouts[side] += often
            again[side] += often
        if end.nagle is True and count > 1 and pieces[-1].share < 1.0:  # its end waits for what is before it
            mine += lost_ack * waits
            timeouts[side] += lost_ack
            again[side] += lost_ack
        if not transport.connection_per_session:
            held = end.quiet > -inf  # by Nagle's algorithm: the next message waits for the acknowledgement
            silent = lost_ack * (1.0 if found.cycle_s > rto or held else 0.0)
            # else one lost behind another, or behind a timeout, fills the window
            blocked = lost_ack * (1.0 if held else lost_ack + timeouts[side] - before)
            timeouts[side] += silent
            again[side] += silent
            cost += blocked * max(waits - (found.cycle_s - course.sent[-1] + courses[0][2].sent[0]), 0.0)
        cost += mine
        if number < 2:
            session += mine
    if found.connect_s:
        connect = lost_syn * _backed_off(transport.initial_rto_s, lost_syn, transport)
    return found._replace(
        cycle_s=found.cycle_s + cost + connect, session_s=session, connect_s=found.connect_s + connect,
        timeouts=tuple(timeouts), fast_retransmits=tuple(fast), again=tuple(again),
    )  # fmt: skip


def _timeout(end: End, samples: list[float]) -> float:
    """Return the retransmission timeout (s; RFC 6298)."""
    transport = end.flow.transport
    measured = samples and (not transport.connection_per_session or len(samples) > 1)
    if not measured:
        return transport.initial_rto_s
    mean = float(np.mean(samples))
    spread = float(np.mean(np.abs(np.array(samples) - mean)))
    return float(np.clip(mean + 4.0 * spread, transport.min_rto_s, transport.max_rto_s))


def _backed_off(rto: float, loss: float, transport: Any) -> float:
    """Return the mean wait for a segment that comes through at last, if each loss is a timeout (s)."""
    total, share, timeout = 0.0, 1.0, rto
    while share > 1e-9:
        if not transport.rto_backoff or timeout >= transport.max_rto_s:
            return total + share * timeout / (1.0 - loss)
        total += share * timeout
        share, timeout = share * loss, min(2.0 * timeout, transport.max_rto_s)
    return total


# ---------------------------------------------------------------------------------------------- CentaurusComm


def _centaurus(client: End, server: End) -> Sessions:
    """Return sessions over CentaurusComm: objects between control messages, each behind the other's answer.

    OBJ, PROCEED, data and DONE, ACK carry the request; NOPE hands the turn to the server; OBJ, PROCEED, data
    and DONE carry the reply. The client acknowledges it while it goes on.
    """
    traffic = client.flow.traffic
    early = client.flow.transport.centaurus_early_data
    control = {client.f: server.flow.back, server.f: client.flow.back}
    request, goodbye = client.flow.messages
    place, lead, cycle, session = None, False, 0.0, 0.0

    def send(end: End, pieces: Sequence[Piece], place: Any, extra: int = 0) -> tuple[float, Any]:
        """Return the time of a train of data and as many control messages more, and where it ends."""
        visits = control[end.f]
        seconds, ends = end.lone(visits, place)
        before = (*pieces, *([Piece(extra, 0.0, visits)] if extra else []))
        worker = end.flow.transport.centaurus_worker_s
        for piece in before:
            each = max(end.pace(piece.visits, 0.0), worker if piece.share else 0.0)
            seconds += piece.count * each
        return seconds, ends

    def carry(end: End, pieces: Sequence[Piece], place: Any, ahead: int) -> tuple[float, Any]:
        """Return the time from the offer of an object until its DONE is there, and where it ends."""
        other = server if end is client else client
        if early:
            return send(end, pieces, place, ahead + 1)
        offer, place = send(end, (), place, ahead)
        proceed, place = other.lone(control[other.f], place)
        train, place = send(end, pieces, place)
        return offer + proceed + train, place

    for _ in range(2):
        asking, place = carry(client, request, place, int(lead))
        ack, place = server.lone(control[server.f], place)
        nope, place = client.lone(control[client.f], place)
        answering, place = carry(server, server.flow.messages[0], place, 0)
        session = cycle = asking + ack + nope + answering
        lead = not goodbye and traffic.pause_s == 0.0
        if goodbye:
            leaving, place = carry(client, goodbye, place, 1)
            done, place = server.lone(control[server.f], place)
            cycle += leaving + done
            lead = traffic.pause_s == 0.0  # a last NOPE
        if traffic.pause_s:
            place = None
        cycle += traffic.pause_s
    losses = [client.flow.loss, client.flow.ack_loss, server.flow.loss, server.flow.ack_loss]
    if any(losses):
        objects = [(client, server, request), (server, client, server.flow.messages[0])]
        objects += [(client, server, goodbye)] if goodbye else []
        costs = [_object_cost(*one, control, send, until=n != 1) for n, one in enumerate(objects)]
        turn = client.flow.transport.centaurus_watchdog_s * server.flow.ack_loss
        session += costs[0] + turn + costs[1]
        cycle += sum(costs) + turn
    return Sessions(cycle, session, 0.0)


def _object_cost(
    end: End, other: End, pieces: Sequence[Piece], control: Any, send: Any, *, until: bool
) -> float:
    """Return by how much losses lengthen the transfer of an object in the mean (s)."""
    transport = end.flow.transport
    count = sum(piece.count for piece in pieces)
    alone, back = end.lone(control[end.f], None)[0], other.lone(control[other.f], None)[0]
    whole = send(end, pieces, None)[0]
    burst = alone + (whole - alone) / max(count, 1) * np.arange(count + 1)
    hang = transport.centaurus_watchdog_s + transport.centaurus_worker_s * np.arange(count + 1)
    lost = sum(
        piece.count * (1.0 - float(np.prod([1.0 - visit.loss for visit in piece.visits]))) for piece in pieces
    ) / max(count, 1)

    def mean(data: float, forth: float, behind: float) -> float:
        through = (1.0 - forth) * (1.0 - behind)
        offer = (
            Branch(1.0 - through, transport.centaurus_watchdog_s, accepted=False),
            Branch(through, alone + back, accepted=True),
        )
        return mean_time(
            Transaction(
                offer,
                tuple(burst),
                back,
                tuple(hang),
                data,
                forth,
                behind,
                "acknowledged" if until else "delivered",
                offer,
            )
        )

    return mean(lost, other.flow.ack_loss, end.flow.ack_loss) - mean(0.0, 0.0, 0.0)


def doubts(network: Network, found: dict[int, Sessions]) -> Iterator[str]:
    """Yield what makes sessions uncertain."""
    yield from ()
