r"""Request-reply sessions over TCP: the time of a session, and what sessions make of media that they share.

A session is a closed class of one customer: a client asks, thinks while the server answers, says good-bye and
pauses, so its rate is one over its cycle. The time of a message is the sum of its rounds, each the larger of
round trip and serialization (`messages`). Clients wait for each other: no medium works longer than it has.

**Losses.** A lost segment with three more behind it in its window is sent again a round trip later; another
waits for the timer and begins slow start. Costs of losses are added, as if each were the only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtrc

from btqueue.network.stations.messages import LEAST_ROOM, PLAYED, Course, End
from btqueue.network.stations.network import Flow, Network, Piece

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
        timeouts, fast_retransmits: expected in a session.
    """

    cycle_s: float
    session_s: float
    connect_s: float
    rtt_s: tuple[float, float] = (np.nan, np.nan)
    timeouts: tuple[float, float] = (0.0, 0.0)
    fast_retransmits: tuple[float, float] = (0.0, 0.0)


Samples = tuple[list[tuple[float, float]], list[tuple[float, float]]]
"""Of client and server, when acknowledgements come and the round trips that they tell (s)."""


def pair_of(flows: Sequence[Flow], f: int) -> list[int]:
    """Return the numbers of the flows of a client and of its server."""
    server = flows[f].reverse
    assert server is not None
    return [f, server]


def lossless(flow: Flow) -> bool:
    """Return whether neither segments nor acknowledgements of a flow are lost at random."""
    return flow.loss == 0.0 and flow.ack_loss == 0.0


def sessions_of(laws: Any, asking: list[int], rate: np.ndarray, service: np.ndarray) -> dict[int, Sessions]:
    """Return the sessions of each client at the present rates of all.

    Args:
        laws: of the stations (`point.Laws`).
        asking: numbers of the clients' flows.
        rate: of each flow, shape (flows,).
        service: of each resource for a segment with its acknowledgement (s), shape (flows, resources).
    """
    from btqueue.network.stations.centaurus import centaurus_sessions

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
            known[alike] = centaurus_sessions(*ends) if flows[f].protocol == "centaurus" else _tcp(*ends)
        found[f] = known[alike]
        works[f] = _works(laws, pair, used) if len(asking) > 1 or laws.network.buckets else {}
        if len(asking) == 1:  # all media but tokens work as its course says
            works[f] = {key: seconds for key, seconds in works[f].items() if key[0] == "bucket"}
        for key in works[f]:
            others = (
                (rate * plain) @ service[:, laws.number[key]] if key[0] != "air" else laws.plain_load(key[1])
            )
            room[key] = max(1.0 - float(others), LEAST_ROOM)
    if any(works.values()):
        _share(found, works, room, flows)
    return found


def _works(laws: Any, pair: list[int], used: np.ndarray) -> dict[Any, Any]:
    """Return the time that each medium works for a session (s).

    Where visits of several frames carry all of it, its course alone is what a piconet does meanwhile: a visit
    ends with an empty frame where its turn-around is too late.
    """
    from btqueue.network.stations.centaurus import centaurus_sessions

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
            found[key] -= client.takes(flows[pair[0]].back, 0.0, bare=True).get(key, 0.0) - client.facing(
                server.flow.back
            )
    links = [laws.links.port_link[visit.index] for visit in client.flow.forth if visit.kind == "port"]
    if len(found) == 1 and links and laws.links.limit[links].min() > 1.0:
        played = (
            centaurus_sessions(client, server)
            if client.flow.protocol == "centaurus"
            else _tcp(client, server)
        )
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
                    rtt_s=(one.rtt_s[0] * stretch, one.rtt_s[1] * stretch),
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
            in_time = [[one for one in some if one[0] <= now] for some in samples]
            samples = in_time[0], in_time[1]
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
    client_s, server_s = (float(np.mean(values)) if values else np.nan for values in trips)
    found = Sessions(cycle, session, connect, (client_s, server_s))
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
    timeouts, fast, connect = [0.0, 0.0], [0.0, 0.0], 0.0
    cost, session = 0.0, found.session_s
    lost_syn = 1.0 - (1.0 - both[0].flow.ack_loss) * (1.0 - both[1].flow.ack_loss)
    for number, (end, pieces, course) in enumerate(courses):
        side = both.index(end)
        values = trips[side]
        rto = _timeout(end, values)
        if found.connect_s and end is both[0]:
            rto += lost_syn * max(AFTER_LOST_SYN_S - rto, 0.0)
        losses = [
            1.0 - float(np.prod([1.0 - visit.loss for visit in piece.visits]))
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
        room = _room(end)
        if count > room and min(end.flow.window, count) > room:
            # the window opens by one segment in a window of them, from half of what fits to one too many
            often = min(1.0, count / ((room / 2.0 + 1.0) * SAW * room))
            expired = course.sent[int(room)] + waits + slow.arrived[count - int(room) - 1]
            mine += often * max(expired - arrived[-1], 0.0)
            timeouts[side] += often
        if end.nagle is True and count > 1 and pieces[-1].share < 1.0:  # its end waits for what is before it
            mine += lost_ack * waits
            timeouts[side] += lost_ack
        if not transport.connection_per_session:
            held = end.quiet > -inf  # by Nagle's algorithm: the next message waits for the acknowledgement
            silent = lost_ack * (1.0 if found.cycle_s > rto or held else 0.0)
            # else one lost behind another, or behind a timeout, fills the window
            blocked = lost_ack * (1.0 if held else lost_ack + timeouts[side] - before)
            timeouts[side] += silent
            cost += blocked * max(waits - (found.cycle_s - course.sent[-1] + courses[0][2].sent[0]), 0.0)
        cost += mine
        if number < 2:
            session += mine
    if found.connect_s:
        connect = lost_syn * _backed_off(transport.initial_rto_s, lost_syn, transport)
    return found._replace(
        cycle_s=found.cycle_s + cost + connect, session_s=session, connect_s=found.connect_s + connect,
        timeouts=(timeouts[0], timeouts[1]), fast_retransmits=(fast[0], fast[1]),
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


def doubts(network: Network, found: dict[int, Sessions]) -> Iterator[str]:
    """Yield what makes sessions uncertain, and by how much measured answers were off."""
    pairs = [network.flows[one] for f in found for one in pair_of(network.flows, f)]
    tcp = [flow for flow in pairs if flow.protocol == "tcp"]
    worst = max((flow.loss for flow in tcp), default=0.0)
    if worst > 0.1:
        yield f"{worst:.2g} of the segments of sessions are lost, and errors were measured to 0.1"
    elif worst > 0.03:
        yield (
            f"{worst:.2g} of the segments of sessions are lost: at 0.1 goodput was 16 % too low to 15 % too "
            "high for messages of 10 kB, up to 80 % too high for 100 kB; round trips were up to 3.8 times as "
            "long"
        )
    elif worst > 0.005:
        yield (
            f"{worst:.2g} of the segments of sessions are lost: at 0.03 goodput was 12 % too low to 21 % too "
            "high, and round trips up to 50 % too long, three times where windows of 40 segments never opened"
        )
    if any(flow.loss + flow.ack_loss > 0.001 for flow in pairs if flow.protocol == "centaurus"):
        yield (
            "packets of CentaurusComm are lost: goodput was 31 % too low to 28 % too high in simulations of "
            "400 s, in which few watchdogs expire"
        )
    for flow in tcp:
        longest = min(flow.window, max(sum(piece.count for piece in message) for message in flow.messages))
        room = min((visit.places + 1.0 for visit in flow.forth), default=inf)
        if longest > room:
            yield (
                f"a message of {longest:g} segments overflows a buffer with room for {room:g}: goodput was "
                "52 % too low to 20 % too high, and timeouts 34 % too few to 51 % too many"
            )
            break
    if any(flow.transport.delayed_ack and not flow.transport.nagle for flow in tcp):
        yield (
            "delayed acknowledgements wait for the next session without Nagle's algorithm: goodput was 6 % "
            "too high, and round trips 20 % too short to four times too long"
        )
    if len(found) > 1:
        yield "several clients wait for each other: round trips were 46 % too short to 61 % too long"
        if any(flow.traffic.pause_s for flow in pairs):
            yield (
                "several clients with pauses may keep step: goodput was 7 % too low to 16 % too high, and "
                "up to 49 % too high where segments wait for acknowledgements by Nagle's algorithm"
            )
        if any(found[f].session_s > network.flows[f].transport.min_rto_s for f in found if pairs[0] in tcp):
            yield "sessions wait for others longer than the least timeout: such timeouts are not counted"
    names = {network.piconets[port.piconet].discipline for port in network.ports}
    if found and "exhaustive" in names and any(flow.load == inf for flow in network.flows):
        yield "under exhaustive polling a greedy connection may keep its visit: sessions got nothing then"
    least = min((bucket.depth for bucket in network.buckets), default=inf)
    if any(flow.segments * flow.kilobits * 1000.0 > least for flow in pairs):
        yield "messages that exceed a token bucket: goodput was up to 54 % too high"
    for flow in pairs:
        if flow.transport.piggyback or flow.traffic.application_timeout_s:
            yield "acknowledgements on data segments and sessions that are given up are left out"
            break
