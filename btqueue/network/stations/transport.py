"""Laws of transport: the effect of windows, timers and losses on a connection over a path."""

from __future__ import annotations

from functools import lru_cache, reduce
from math import ceil, exp, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, pdtr

from btqueue.network.stations.acknowledgements import NEARLY, Queue
from btqueue.network.stations.network import Flow, Network, Train, Visit, Visits
from btqueue.transport import binomial, vegas
from btqueue.transport.radio import Radio
from btqueue.transport.recovery import LossyPath, Row
from btqueue.transport.window_cycles import LossyRates, lossy_rates

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ALONE = 0.85
"""Loss above which segments are sent one at a time, from timeout to timeout. Chosen by the simulator: the
chain of the window, whose least window is two, had 4 % less goodput at 78 % loss (this law 12 %), and 13 %
less at 89 % (5 %)."""
RADIOS = 2
"""Radios on a way whose states are told apart."""
LARGEST_CHAIN = 256
"""Largest window (segments) whose losses are solved; losses keep larger windows from opening further."""
LARGEST_OPENING = 12
"""Window (segments) from which on three of those behind a lost one hardly ever fail to arrive."""
OPEN = 2.0
"""Segments behind a lost segment that a window lets out in a timeout, on average: it opens from two."""
NEARBY = 1.07
"""Factor by which the shortest round trip of Vegas may be off (assumed) where its window is certain."""
ODD = 5.0
"""Window (segments) of Vegas from which on waits for polls may decide, where acknowledgements are shared, at
which odd window slow start ends: 20 of 51 drawn lone links were right, and all of 9 with smaller windows
(chosen after these)."""
DUPLICATES = 3
"""Duplicates that make a fast retransmit."""
REMEMBERED = 100
"""Round trips after which a smoothed mean has forgotten where it began: (7/8)^100 is 2e-6."""
IN_STEP = 1e-3
"""Part of an acknowledgement's time by which a clock moves against acknowledgements, if they keep in step."""
BACKOFFS = 6
"""Doublings of a timer that are told apart."""
KNOWN = {"cubic": "newreno", "vegas": "newreno"}
"""Variants without a law of losses, and the variant whose law they take."""
GRID = 0.01
"""Change of a path, in logarithms, up to which a solved chain is used again on the way to the fixed point."""
COARSE, SPARE = 0.1, 2.0
"""The same for a connection whose source offers less than losses let it send, by this factor."""
EXACT = 1e-10
"""The same when rates have nearly settled."""


class Law(NamedTuple):
    """A connection with losses: segments a second, transmissions of each, events a second, window.

    `known`: whether its rates of events are as exact as counts.
    """

    goodput: float
    transmissions: float
    timeouts: float
    fast_retransmits: float
    losses: float
    window: float
    rtt_s: float
    known: bool = False


def window_of(network: Network, flow: Flow) -> float:
    """Return the segments that may be under way; for datagrams the places in the smallest queue."""
    if flow.messages:
        longest = max(sum(piece.count for piece in message) for message in flow.messages)
        return min(flow.window, float(longest))
    if flow.window < inf:
        return flow.window
    places = min((visit.places for visit in flow.forth), default=inf)
    return min(places + 1.0, 1e9)


def let_out(flow: Flow) -> float:
    """Return the most segments under way at once; Vegas keeps its window small."""
    if flow.protocol == "tcp" and flow.transport.variant == "vegas":
        return min(flow.window, 2.0 + flow.transport.alpha)
    return flow.window


def ahead(flow: Flow) -> float:
    """Return the segments (of mean size) of the same batch ahead of a segment, as windows allow.

    A batch is a message, and a burst of an interrupted Bernoulli process a geometric number of messages. At
    most the other segments of a window are ahead.
    """
    most, count = max(let_out(flow) - 1.0, 0.0), max(flow.batch, 1.0)
    if flow.more == 0.0:
        return ahead_in_message(flow)
    within = 1.0 if most == inf else -float(np.expm1(most / count * np.log(flow.more)))
    return min(before(flow) * within + ahead_in_message(flow), most)


def ahead_in_message(flow: Flow) -> float:
    """Return the segments (of mean size) of the same message ahead of a segment, as windows allow."""
    window, count = let_out(flow), max(flow.batch, 1.0)
    return (count - 1.0) / 2.0 if count <= window else max(window - 1.0, 0.0) * (1.0 - window / (2.0 * count))


def before(flow: Flow) -> float:
    """Return the mean number of segments in earlier messages of a message's burst."""
    return flow.more / (1.0 - flow.more) * max(flow.batch, 1.0)


def ahead_of_sample(flow: Flow) -> float:
    """Return the segments of a batch that are served before the segment whose round trip is measured.

    A batch is a message: earlier messages of its burst are not counted (`before`). An acknowledgement shows
    the round trip of the first segment that it covers, and goes with the last one. The result counts full
    segments: the last segment of a batch may be shorter, and the measured segment has a mean service.
    """
    every = round(1.0 / flow.acks) if flow.acks else 1
    count = round(flow.batch)
    if every <= 1 or count <= 1 or count > flow.window:
        return ahead_in_message(flow)
    groups, rest = divmod(count, every)
    served = sum((group + 1) * every - 1 for group in range(groups)) + (count - 1 if rest else 0)
    groups += rest > 0
    return served / groups - (1.0 - 1.0 / flow.uneven) * (count / groups - 1.0)


def _every(flow: Flow) -> int:
    """Return the segments that share an acknowledgement; 1 for a window that is too small, or varies."""
    transport = flow.transport
    if flow.protocol != "tcp" or not transport.delayed_ack:
        return 1
    return transport.ack_every_segments if flow.window >= transport.ack_every_segments else 1


def gather_s(flow: Flow, service_s: float) -> float:
    """Return how much longer a round trip is by the segments that share an acknowledgement (s).

    These segments go round together, a service apart. The first of them waits for the last, or for the timer.
    A window is taken as a multiple of these segments (`left_over`).

    Args:
        flow: that always has data, or more than is carried.
        service_s: time of the slowest station for a segment.
    """
    every = _every(flow)
    if every <= 1 or flow.cut or flow.window == inf:
        return 0.0
    return min(flow.transport.ack_delay_s, (every - 1.0) * service_s)


def left_over(flow: Flow) -> bool:
    """Whether a window is no multiple of the segments of an acknowledgement: `gather_s` is rough."""
    every = _every(flow)
    return every > 1 and not flow.cut and flow.window < inf and flow.window % every > 0.0


def held_back(queue: Queue, window: float, on_way_s: float, together: int) -> float:
    """Return the part of a wait that is in the network: a window keeps the rest at the sender (s).

    While a station is busy, a window has as many segments at it as are not elsewhere on their way.

    Args:
        queue: at the slowest station, with the segments that the window holds back.
        window: segments that may be under way.
        on_way_s: round trip without the wait, and without the wait of an acknowledgement for further
            segments.
        together: segments of an acknowledgement: the first of an odd window goes with the second of the next.
    """
    if window == inf or queue.wait_s <= 0.0:
        return queue.wait_s
    low = max(int(window + 1e-9), 1)
    share, found = window - low, 0.0
    for whole, part in ((low, 1.0 - share), (low + 1, share)):
        released = ceil(whole / together) * together - (together - 1)
        found += part * (queue.wait_s - queue.beyond_s(released - on_way_s / queue.service_s))
    return found


class Rest(NamedTuple):
    """The settled window: mean segments under way, and the segments that a measured round trip lasts for.

    The second is more where acknowledgements are for several segments: the first of an odd window goes with
    the second of the next, and where a clock acknowledges, any first segments do. The window of Vegas is not
    `certain` where it depends on the order in which connections begin, or on waits for polls.
    """

    window: float
    shown: float
    certain: bool = True


def resting_window(
    flow: Flow,
    rate: float,
    lone_s: float,
    every: int = 0,
    starts: tuple[float, ...] = (),
    least_s: float = 0.0,
) -> Rest:
    """Return the settled window, without losses, of a connection that always has data.

    The window of Vegas follows its segments from the start (`btqueue.transport.vegas`). A source of limited
    load leaves slow start with few segments, and its window grows until `alpha` wait. Other windows open as
    far as the receiver lets them.

    Args:
        flow: the connection.
        rate: segments a second.
        lone_s: round trip without waits.
        every: segments of an acknowledgement; by default as the receiver acknowledges.
        starts: shortest round trips (s) of equal connections by Vegas, in the order in which they begin.
        least_s: their lower bound.
    """
    together = round(1.0 / flow.acks) if flow.acks else 1
    every = every or together
    if flow.protocol != "tcp" or flow.transport.variant != "vegas":
        if every <= 1 or flow.window == inf:
            return Rest(flow.window, flow.window)
        apart, ticks = -flow.window % every, flow.transport.ack_delay_s * rate / every
        if flow.transport.ack_clock == "tick" and abs(ticks - round(ticks)) > IN_STEP:
            # a tick within a round trip ends a group anywhere
            often = min(flow.window / (ticks * every), 1.0)
            apart += often * ((every - 1.0) / 2.0 - apart)
        return Rest(flow.window, flow.window + apart)
    transport, path = flow.transport, max(rate * lone_s, 1.0)
    if flow.load < inf or flow.loss > 0.0 or rate <= 0.0:
        window = min(max(path + transport.alpha + 0.5, vegas.LEAST_WINDOW), flow.window)
        if flow.loss > 0.0 and flow.load == inf and transport.alpha < 1.0:
            grown = vegas.LEAST_WINDOW  # losses halve the window; a part of a segment counts as waiting
            while grown < window and grown % 1.0 < transport.alpha:
                grown += 1.0 / grown
            window = min(window, grown // 1.0)
        return Rest(window, window, window >= flow.window)
    starts, late = starts or (lone_s,), rate * transport.ack_delay_s
    delay = round(vegas.PARTS * late) / vegas.PARTS if transport.delayed_ack else inf
    found = [
        vegas.settled(
            max(round(vegas.PARTS * rate * base_s), 1) / vegas.PARTS,
            (transport.alpha, transport.beta, transport.gamma),
            transport.initial_window_segments,
            int(flow.window),
            threshold=transport.initial_ssthresh_segments,
            every=every,
            delay=delay,
        )
        for base_s in (*starts, max(min(starts) / NEARBY, least_s), max(starts) * NEARBY)
    ]
    windows, rest = zip(*found, strict=True)
    own = np.minimum(windows[: len(starts)], flow.window)
    shown = np.where(own % 1.0 == 0.0, np.ceil(own / every) * every, own)
    certain = all(rest) and max(windows) == min(windows) and (every == 1 or max(own) < ODD)
    # the receiver holds a window that leaves no more than alpha segments waiting
    certain = certain or (every == 1 and min(windows) >= flow.window <= rate * lone_s + transport.alpha)
    return Rest(float(np.mean(own)), float(np.mean(shown)), certain)


def vegas_between(flow: Flow, queue: Queue, least_s: float, lone_s: float) -> Rest:
    """Return the settled window of Vegas where the source has nothing to send at times (assumed).

    In a round trip R it sends x R + 1 segments, x a second, so that it rests where
    ``alpha < cwnd - (x R + 1) Base / R < beta``: at any of these windows. Lone segments push it down to the
    upper bound, in steps of a part of a segment, and whole segments are sent: where a window holds segments
    back, it is one less.

    Args:
        flow: the connection.
        queue: queue of its segments, including segments that the window holds back.
        least_s: shortest round trip.
        lone_s: round trip of a lone segment, with the wait of its acknowledgement.
    """
    transport = flow.transport
    beta = max(transport.beta, transport.alpha)
    alone = least_s / max(lone_s, least_s)
    sent = queue.rate * least_s + least_s / max(lone_s + queue.wait_s, least_s)
    full = max(beta + alone - 1.0, vegas.LEAST_WINDOW)
    between = max((transport.alpha + beta) / 2.0 + sent - 0.5, full)
    held = queue.decay**between
    window = min((1.0 - held) * between + held * full, flow.window)
    return Rest(window, window)


def _acks(flow: Flow, service_s: float) -> float:
    """Return the acknowledgements of a segment: one, where the timer expires before the next segment."""
    return flow.acks if flow.acks and service_s <= flow.transport.ack_delay_s else 1.0


def saw(
    flow: Flow, base_s: float, service_s: float, room: int, in_vain: float, varies_s: float, *, batch: bool
) -> Law:
    """Return the law of a window whose only losses are repeated overflows of a buffer (a sawtooth).

    In congestion avoidance c' = c + 1/c at each acknowledgement: c^2 = h^2 + 2 k, from the half h that a
    recovery leaves. When the window exceeds path and buffer by one segment, one is lost. The window of
    acknowledgements before it arrives, then the duplicates of a window, then the repetition. This is exact
    except for half segments. So are the round trips, and therefore the timer that runs until the repair.

    Args:
        flow: its window and acknowledgements.
        base_s: round trip of a lone segment.
        service_s: time between segments at the bottleneck.
        room: segments that path and buffer hold.
        in_vain: part of the lost segment that finds room, and is sent.
        varies_s: time by which a repair may take longer (s).
        batch: whether a window moves as a whole: then the last segment of the next window is lost as well,
            before the first loss is noticed.
    """
    most, acks = int(flow.window), _acks(flow, service_s)
    losses, every = 2 if batch and most > room + 1 else 1, round(1.0 / acks)
    # segments that a recovery lets out: two by RFC 3042, one for each later duplicate, the others at its end
    early = int(min(max(most - room - 1, 0), DUPLICATES - 1)) if flow.transport.limited_transmit else 0
    selective = flow.transport.sack or flow.transport.variant == "sack"
    # the segment behind the lost one ends the wait of the segment before it, so that it makes no duplicate
    waits = int(room % every > 0 and room > 1 and not (batch or selective))
    one = room < 2 and flow.transport.variant in ("reno", "newreno") and not selective
    if one or room - waits + early * (room > waits) < DUPLICATES:
        return _until_timer_expires(flow, base_s, service_s, room, early * (room > waits))
    half, tahoe = max((room + losses) / 2.0, 2.0), flow.transport.variant == "tahoe" and not batch
    half = ceil(half) if tahoe else half  # at the end of its slow start
    low, windows = int(half), _avoids(half, room + 1.0)
    grows = every * len(windows)
    if batch:  # to the end of the window in which it happens
        grows = max(grows, low + sum(range(low, room + 1)))
    windows = np.repeat(windows, every)
    inflated = np.minimum(half + DUPLICATES + np.arange(room), most)
    new = int(max(min(low - 1, most - room - 1 - early), 0))
    drained = np.full(low, half) if batch else np.append(np.full(new, low), np.arange(new + 1.0, low + 1.0))
    if tahoe:  # each acknowledgement lets out two
        drained = np.sort(np.append(np.arange(1.0, low), np.arange(2.0, low + 1.0)))
    # without timestamps a repetition shows no round trip (RFC 6298, section 3)
    repair = [room + early + 1.0 - DUPLICATES] if flow.transport.timestamps and not batch else []
    grown = np.sort(np.append(np.minimum(windows.astype(int), room), np.arange(low + 1.0, room + 1.0)))
    seen = np.concatenate([repair, drained, grown])
    trips = _round_trips(seen, base_s, service_s, every)
    at_loss = np.minimum(np.linspace(room + 1.0, room + 2.0, room), most)
    delivered = grows + 2.0 * room + (3.0 if batch else 1.0 + early + (low - 2.0) * tahoe)
    # a whole segment has crossed one of two hops
    lost_s = service_s * (losses * 0.5 if batch else in_vain)
    idle_s = _idle_s(seen[len(repair) :], base_s, service_s, every)
    seconds = delivered * service_s + lost_s + idle_s
    window = (windows.sum() + at_loss.sum() + inflated.sum() + half) / (grows + 2.0 * room + 1.0)
    repaired_s = max((room + early + 1.0) * service_s, DUPLICATES * service_s + base_s) + lost_s
    timer_s = max(flow.transport.min_rto_s, timer(trips[:: max(round(1.0 / acks), 1)][-REMEMBERED:].tolist()))
    return Law(
        delivered / seconds,
        1.0 + losses / delivered,
        float(repaired_s >= timer_s) / seconds,
        1.0 / seconds,
        losses / (delivered + losses),
        float(window),
        float(trips.mean()),
        known=repaired_s + varies_s < timer_s
        and room > (DUPLICATES if tahoe else 1)  # a slow start leaves a short queue empty
        and flow.transport.variant in ("tahoe", "reno", "newreno", "sack"),
    )


def _avoids(least: float, most: float) -> Vector:
    """Return the congestion windows of an avoidance before each acknowledgement.

    Each acknowledgement adds 1/c, so that c^2 grows by 2 + 1/c^2.
    """
    square = least**2 + 2.0 * np.arange(ceil(max(most**2 - least**2, 0.0) / 2.0))
    windows = np.sqrt(square + np.log(square / least**2) / 2.0 + (1.0 / least**2 - 1.0 / square) / 2.0)
    return windows[windows < most]


def _round_trips(seen: Vector, base_s: float, service_s: float, every: int) -> Vector:
    """Return the round trips of segments by the number in flight with them (s).

    Where an acknowledgement covers several, it shows the round trip of the first one (RFC 7323, section 4.3),
    which waits for the last one. The segments of an acknowledgement are not sent together, unless the window
    is a multiple of them.
    """
    return np.maximum(base_s, np.where(seen > 1.0, np.ceil(seen / every) * every, seen) * service_s)


def _idle_s(seen: Vector, base_s: float, service_s: float, every: int) -> float:
    """Return how long a bottleneck is idle while segments are acknowledged (s), by the number in flight."""
    rounds_s = base_s + np.where(seen > 1.0, every - 1.0, 0.0) * service_s
    return float((np.maximum(rounds_s - seen * service_s, 0.0) / np.maximum(seen, 1.0)).sum())


def _until_timer_expires(flow: Flow, base_s: float, service_s: float, room: int, early: int) -> Law:
    """Return the law of a window whose buffer has room for few segments: a timer ends each cycle of it.

    Too few duplicates follow a loss for a fast retransmit (RFC 5681, section 3.2). The repetition
    acknowledges all segments behind it, and the window begins with two. When it exceeds the room by one
    segment, one is lost; the segments before it are acknowledged, and let out as many behind it. With room
    for one, limited transmit shows this loss, but not the next one. For six lone links goodput and timeouts
    were within 2.1 % of the simulation, and round trips within 7 %.

    Args:
        flow: its window and acknowledgements.
        base_s: round trip of a lone segment.
        service_s: time between segments at the bottleneck.
        room: segments that path and buffer hold.
        early: segments that duplicates let out (RFC 3042).
    """
    acks = _acks(flow, service_s)
    every = round(1.0 / acks)
    windows = np.repeat(_avoids(max((room + 1.0) / 2.0, 2.0), room + 1.0), every)
    seen = np.concatenate([[1.0], np.minimum(windows.astype(int), room), np.full(room, float(room))])
    trips = _round_trips(seen, base_s, service_s, every)
    # a fast retransmit lets out a new segment, for which one place is too few, and whose loss does not show
    repaired = int(room == 1 and early > 1)
    delivered = len(seen) + (room + early) * (1 + repaired) + repaired
    # a segment alone is acknowledged by the timer of the receiver
    late_s = flow.transport.ack_delay_s if room % every and room == 1 else 0.0
    trips[-1] += late_s
    timer_s = max(flow.transport.min_rto_s, timer(trips.tolist()))
    seconds = (
        timer_s + late_s + (delivered - room - early) * service_s + _idle_s(seen, base_s, service_s, every)
    )
    return Law(
        delivered / seconds, 1.0 + (1 + repaired) / delivered, 1.0 / seconds, repaired / seconds,
        (1 + repaired) / (delivered + 1.0 + repaired),
        float(np.append(windows, room + 1.0).mean()), float(trips.mean()),
    )  # fmt: skip


def timer(trips: list[float]) -> float:
    """Return the retransmission timer after round trips that repeat (s; RFC 6298, section 2.3)."""
    mean = trips[-1]
    deviation = mean / 2.0
    for trip in trips * (1 + REMEMBERED // len(trips)):
        deviation += (abs(mean - trip) - deviation) / 4.0
        mean += (trip - mean) / 8.0
    return mean + 4.0 * deviation


def radio_of(network: Network, flow: Flow) -> Radio | None:
    """Return the states of the radios that lose segments of a flow; none if no state loses more than others.

    The two most uneven radios have states. The losses at a third one are taken at their mean.
    """

    def fades_at(visit: Visit) -> bool:
        return visit.kind == "port" and visit.train.loses_by_state

    def radio(visit: Visit) -> tuple[int, ...]:
        port = network.ports[visit.index]
        if visit.train.scheduled:
            return ()
        return (port.piconet,) if visit.train.together else (port.piconet, port.link)

    fades: dict[tuple[int, ...], list[Train]] = {}
    for visit in (*flow.forth, *flow.back):
        if fades_at(visit):
            fades.setdefault(radio(visit), []).append(visit.train)
    if not fades:
        return None
    first = sorted(fades, key=lambda kind: np.diff(fades[kind][0].through.sum(axis=1)))[:RADIOS]

    def through(visits: Visits) -> tuple[tuple[Matrix, ...], tuple[float, ...], float]:
        """Return the chances by radio and states, the crossing times, and the chance at all other stops."""
        chances, crossing, others = [np.eye(2)] * len(first), [0.0] * len(first), 1.0
        for visit in visits:
            if fades_at(visit) and (kind := radio(visit)) in first:
                place = first.index(kind)
                chances[place] = chances[place] @ visit.train.through
                crossing[place] += visit.train.crossing_s
                if visit.loss > visit.train.loss:  # the buffer of a bridge refuses segments, too
                    others *= (1.0 - visit.loss) / (1.0 - visit.train.loss)
            else:
                others *= 1.0 - visit.loss
        return tuple(chances), tuple(crossing), others

    segments, crossing_s, others = through(flow.forth)
    answers, _, others_back = through(flow.back)
    trains = [fades[kind][0] for kind in first]
    return Radio(
        tuple(train.worse for train in trains),
        tuple(1.0 / (train.stay_s * (1.0 - train.worse)) for train in trains),
        tuple(tuple(one.ravel().tolist()) for one in segments),
        crossing_s,
        others,
        tuple((1.0 - others_back * reduce(np.kron, [one.sum(axis=1) for one in answers])).tolist()),
    )


def chain_of(
    flow: Flow,
    base_s: float,
    service_s: float,
    room: float,
    radio: Radio | None = None,
    row: Row | None = None,
    comes: float = 1.0,
) -> Law:
    """Return the renewal chain of a greedy connection on a path (`btqueue.transport.window_cycles`).

    The losses of a radio that fades without repetition depend on its state; only segments that arrive are
    acknowledged.
    """
    transport, loss = flow.transport, flow.loss
    every = 1.0 / _acks(flow, service_s)
    ack_loss = radio.answers_lost if radio else flow.ack_loss
    window = resting_window(flow, 1.0 / service_s, base_s).window
    if loss == 0.0 and room < 2.0 <= window:
        return _until_timer_expires(flow, base_s, service_s, 1, 0)
    if row is not None and min(int(window), max(room, 2.0)) <= row.fits:
        row = None
    if loss == 0.0 and row is None and int(window) <= max(room, 2.0):
        trip = max(base_s, window * service_s)
        return Law(window / trip, 1.0, 0.0, 0.0, 0.0, window, trip)
    path = LossyPath(
        loss=loss,
        segments_per_ack=every / max(1.0 - ack_loss, 0.05),
        window=int(min(window, LARGEST_CHAIN)),
        room=max(room, 2.0),
        base_s=float(f"{base_s:.6e}"),  # equal flows are solved once
        service_s=float(f"{service_s:.6e}"),
        variant="sack" if transport.sack else KNOWN.get(str(transport.variant), str(transport.variant)),
        min_rto_s=transport.min_rto_s,
        max_rto_s=transport.max_rto_s,
        backoff=transport.rto_backoff,
        ack_delay_s=transport.ack_delay_s if every > 1.0 else 0.0,
        gathered=int(every),
        ack_loss=min(ack_loss, 0.95),
        limited_transmit=transport.limited_transmit,
        keeps_backoff=not (transport.timestamps or transport.ack_ends_backoff),
        radio=radio,
        row=row,
        crossed=(comes - 1.0 + loss) / loss if loss > 0.0 else 1.0,
    )
    if min(path.window, path.room) < 2.0 or min(path.states.loss) > ALONE:
        return _stop_and_go(flow, loss, base_s)
    found = _rates(path)
    if not np.isfinite(found.goodput):
        raise FloatingPointError("the chain of a congestion window has no steady state")
    weights = found.weights / found.weights.sum()
    return Law(
        found.goodput,
        1.0 / max(1.0 - found.losses, 1e-9),
        found.timeouts,
        found.fast_retransmits,
        found.losses,
        found.window,
        float(found.rtts @ weights),
    )


@lru_cache(maxsize=256)
def _rates(path: LossyPath) -> LossyRates:
    return lossy_rates(path)


def _stop_and_go(flow: Flow, loss: float, base_s: float) -> Law:
    """Return the law of a window of one segment: each loss is a timeout, whose timer doubles."""
    transport = flow.transport
    lost = 1.0 - (1.0 - loss) * (1.0 - flow.ack_loss)
    if lost >= 1.0 - 1e-9:
        return Law(0.0, 1.0, 1.0 / transport.max_rto_s, 0.0, 1.0, 1.0, np.nan)
    seconds = base_s + lost * backed_off_s(max(transport.min_rto_s, base_s), lost, transport)
    events = lost / (1.0 - lost)
    return Law(1.0 / seconds, 1.0 + events, events / seconds, 0.0, loss, 1.0, base_s)


def backed_off_s(rto: float, loss: float, transport: Any) -> float:
    """Return the mean wait until a segment comes through, if each loss costs a timeout (s)."""
    total, share, timeout = 0.0, 1.0, rto
    while share > 1e-9:
        if not transport.rto_backoff or timeout >= transport.max_rto_s:
            return total + share * timeout / (1.0 - loss)
        total += share * timeout
        share, timeout = share * loss, min(2.0 * timeout, transport.max_rto_s)
    return total


class Repairs(NamedTuple):
    """Events a second, round trip (s) and losses of a connection whose source limits its rate."""

    timeouts: float
    fast_retransmits: float
    rtt_s: float
    losses: float


def _hardly_seen(transport: Any, under_way: float, window: float, loss: float, through: float) -> float:
    """Return the chance that too few segments behind a lost one arrive for a fast retransmit.

    The window opens again from half of the flight at the loss before: from two to three with 2.5 segments,
    and so on. With limited transmit the first two that arrive let out one more each (RFC 3042). A window that
    grows only when it is full waits for segments to fill it.
    """
    sizes = np.arange(2, int(max(min(window, LARGEST_OPENING), DUPLICATES)) + 1)
    fails = np.ones(DUPLICATES)
    if transport.limited_transmit:
        fails[1:] = 1.0 - through**2, (1.0 - through) ** 2
    few = binomial.probability(np.arange(DUPLICATES), sizes[:, None] - 1, through) @ fails
    # a timer repairs the first one behind a recovery
    first = float(not (transport.sack or transport.variant == "sack"))
    few[0] += first * (1.0 - few[0]) / 2.5
    fills = 1.0 - pdtr(sizes - 2, under_way) if transport.window_limited_growth else 1.0
    opens = np.clip(sizes + 1.0 - max((under_way + DUPLICATES + 1.0) / 2.0, 2.0), 0.0, 1.0) * (sizes + 0.5)
    lost = loss * opens / np.maximum(fills, 1e-6)  # meanwhile
    lost[-1] = inf
    grown = np.cumprod(1.0 / (1.0 + lost))
    return max(float(few @ -np.diff(grown, prepend=1.0)), loss * first)


def open_losses(flow: Flow, law: Law, rate: float, rtt_s: float, window: float) -> Repairs:
    """Return the effect of losses on a connection whose source offers less than losses let it send.

    Without a backlog segments leave as they come. Three segments behind a lost one within the timeout make a
    fast retransmit, if the window is open. Otherwise the segments of a timeout wait at the sender. They leave
    as the window opens again from two, by the square-root law, until the backlog is gone: at the rate of a
    connection that always has data (`law`). Round trips are measured by the acknowledgements of new data:
    there is one of these after a hole is filled.
    """
    transport, loss = flow.transport, flow.loss
    through = (1.0 - loss) * (1.0 - flow.ack_loss)
    if loss == 0.0:
        return Repairs(0.0, 0.0, rtt_s, 0.0)
    rto = max(transport.min_rto_s, rtt_s)
    arriving = rate * through
    if flow.behind_s is not None:  # a lost segment is not acknowledged, and only full ones leave (Nagle)
        arriving *= flow.kilobits * 125.0 / transport.mss_bytes
    # the third duplicate and the repetition need a round trip each; the timer starts as the lost segment
    # leaves, or a round trip behind the segment before it
    near, far = (arriving * max(rto - trips * rtt_s, 0.0) for trips in (1.0, 2.0))
    if flow.source == "periodic" and flow.batch <= 1.0:
        shown = float(far >= DUPLICATES)
    else:
        shown = exp(-arriving * rtt_s) * float(pdtr(DUPLICATES, far) - pdtr(DUPLICATES - 1, far))
        shown += float(gammainc(DUPLICATES + 1, near))
    shown *= 1.0 - _hardly_seen(transport, rate * rtt_s, window, loss, through)
    if flow.batch > 1.0:
        shown = max(shown, max(flow.batch - DUPLICATES, 0.0) / flow.batch)
    shown *= float(window > DUPLICATES)
    behind = shown * (1.0 - loss)  # further segments acknowledge the repetition as well
    backoff = 2.0 if transport.rto_backoff else 1.0
    expiries = np.arange(BACKOFFS + 1)
    chances = through * (1.0 - through) ** expiries
    silent = np.cumsum(np.minimum(rto * backoff**expiries, max(transport.max_rto_s, rto)))
    # segments that wait for the end of a timeout, and segments that arrive until the backlog is gone; beside
    # a lost repetition each acknowledgement lets out a segment, up to the receive window
    spare = max(1.0 - rate / max(law.goodput, 1e-12), 1.0 - NEARLY)
    out = np.array([min(window - 1.0, OPEN), OPEN if transport.variant == "tahoe" else window - 1.0])
    backlogs = np.maximum(rate * silent - out[:, None], 0.0) / spare
    waits, quiet = np.array([[1.0 - shown], [shown - behind]]) * chances * backlogs, 1.0 / loss
    places = np.arange(min(float(backlogs.max()), 5.0 * quiet) + 1.0)
    seen, size = through**places, np.minimum(np.sqrt(4.0 + 2.0 * places), window)
    trips = np.cumsum(np.maximum(rtt_s, size * law.rtt_s / max(law.window, 1.0)) * seen) / np.cumsum(seen)
    crowded = trips[np.minimum(backlogs, places[-1]).astype(int)]
    waiting = float(waits.sum())
    rtt = (quiet * rtt_s + rtt_s + float((waits * crowded).sum())) / (quiet + 1.0 + waiting)
    losses = rate * loss / max(1.0 - loss, 1e-9)
    busy = waiting / (waiting + quiet)
    quiet, each = (1.0 - busy) * losses, busy * rate / max(law.goodput, 1e-12)
    late = quiet * (1.0 - behind) + each * law.timeouts
    late += (1.0 - busy) * rate * flow.ack_loss * exp(-near)  # no later acknowledgement comes in time
    return Repairs(late, quiet * behind + each * law.fast_retransmits, rtt, loss)


def caps(
    network: Network,
    laws: Any,
    rate: Vector,
    sent: Vector,
    base: Vector,
    service: NDArray,
    *,
    every: bool,
) -> tuple[Vector, Vector, dict[int, Law]]:
    """Return the highest rate of each flow with its losses (1/s), transmissions of a segment, and the laws.

    While the fixed point is sought, only whether losses hold a source back is needed.
    """
    flows = network.flows
    most, again, found = np.full(len(flows), inf), sent.copy(), {}
    asked = [f for f in laws.firsts if flows[f].protocol == "tcp" and flows[f].source != "request-reply"]
    rows = {f: laws.brings.row(f) for f in asked if laws.refuses}
    filled = {f for f in rows if any(laws.brings.room(f, n) < inf for n in laws.brings.coming)}
    asked = [f for f in asked if flows[f].loss or flows[f].ack_loss or rows.get(f) or f in filled]
    if not asked:
        return most, again, found
    use = rate @ service
    known: dict[tuple, Law] = laws.chains
    endless = np.array([flow.load == inf for flow in flows])
    sharing = (service > 0.0).T.astype(float) @ endless
    buckets = len(network.ports) + len(network.wires)
    depths = np.array([bucket.depth / bucket.rate if bucket.rate else 0.0 for bucket in network.buckets])
    for f in asked:
        flow = flows[f]
        others = np.clip(use - rate[f] * service[f], 0.0, 0.98)
        stretched = service[f] / np.maximum(1.0 - others, 1.0 / np.maximum(sharing, 1.0))
        stretched /= max(sent[f], 1.0) * np.maximum(laws.comes[0, f], 1e-9)  # of one segment that comes there
        slowest = float(stretched[:buckets].max(initial=1e-6))
        if not (0.0 < float(stretched.max(initial=slowest)) < inf and 0.0 < base[f] < inf):
            raise FloatingPointError("a segment takes for ever at a station")
        slowest_at = int(stretched.argmax())
        room, radio = _room(network, laws, f, slowest_at, rate), radio_of(network, flow)
        row = None if laws.brings.room(f, slowest_at) < inf else rows.get(f)  # there the queue forms

        def law(
            slowest: float,
            grid: float,
            flow: Flow = flow,
            base_s: float = float(base[f]),
            room: float = room,
            radio: Radio | None = radio,
            row: Row | None = row,
            comes: float = float(laws.comes[0, f, slowest_at]),
        ) -> Law:
            key = (
                tuple((visit.loss, visit.train) for visit in flow.forth),
                flow.ack_loss,
                round(np.log(base_s) / grid),
                round(np.log(slowest) / grid),
                flow.window,
                flow.acks,
                flow.transport,
                room,
                radio,
                row,
                comes,
            )
            if key not in known:
                held = max(room + base_s / slowest, 2.0)
                held = held if held < flow.window else inf
                known[key] = chain_of(flow, base_s, slowest, held, radio, row, comes)
            return known[key]

        for grid in (COARSE, GRID if laws.change > GRID and not every else EXACT):
            if grid == COARSE and (every or not rate[f] >= NEARLY * flow.load):
                continue
            found[f] = law(slowest, grid)
            # the bucket is full after a timeout: segments beyond its tokens wait, but no lone segment does
            between = found[f].goodput * found[f].transmissions / max(found[f].timeouts, 1e-12)
            waits = stretched[buckets:] - depths / max(between, 1.0)
            waits = np.minimum(stretched[buckets:], np.maximum(waits, base[f]))
            if (longest := float(waits.max(initial=0.0))) > slowest:
                found[f] = law(longest, grid)
            if grid == COARSE and found[f].goodput > SPARE * flow.load:
                break
        most[f] = found[f].goodput
        again[f] = found[f].transmissions if flow.load == inf else 1.0 / max(1.0 - flow.loss, 0.02)
    found = {f: found[first] for f, first in enumerate(laws.like.tolist()) if first in found}
    return most[laws.like], again[laws.like], found


def _room(network: Network, laws: Any, f: int, resource: int, rate: Vector) -> float:
    """Return the places before a resource for a flow's segments: its share of them by rates, in halves."""
    for visit in network.flows[f].forth:
        if laws.number[visit.kind, visit.index] == resource and visit.places < inf:
            users = [g for g, other in enumerate(network.flows) if any(map(visit.shares_places, other.forth))]
            share = float(rate[f] / rate[users].sum()) if rate[f] > 0.0 else 1.0 / len(users)
            return round(2.0 * visit.places * share) / 2.0
    return laws.brings.room(f, resource) if laws.refuses else inf


def doubts(network: Network, point: Any) -> list[str]:
    """Return the doubts about losses and windows, with errors against the simulator."""
    found, senders = [], [flow for flow in network.flows if flow.protocol == "tcp"]
    if any(visit.train.loses_by_state for flow in senders for visit in flow.forth):
        found.append(
            "Segments are lost in the worse states of a radio: of 190 random connections goodput was 1 % off "
            "in the median and round trips 2 %, and at most 32 and 26 % where up to a third of the segments "
            "are lost; beyond, or with a schedule of the states, goodput was several times too high"
        )
    greedy = [flow for flow in senders if flow.transport.variant == "vegas" and flow.load == inf]
    if any(visit.train.spread > 0.0 for flow in greedy for visit in flow.forth):
        found.append(
            "TCP Vegas is used over links that repeat packets: round trips were 15 % too short to 40 % too "
            "long"
        )
    return found
