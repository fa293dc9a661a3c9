"""One tagged connection of a ring, in the mean field of its past, where buffers overflow or radios lose.

All stations are equal, and each sends to the next one. One connection is a recursion in whole packets: its
source, its NewReno sender (`btqueue.transport.newreno_sender`), its token bucket with a buffer of S packets,
its queue of L, and its visits of at most M frames. The others are copies of its history, each with a random
lag: the wait for tokens and the queue of the next station, the segments of the previous one, whose
acknowledgements need tokens here, and the packets that come to each, which make polling cycles longer. The
history is the unknown of the fixed point and grows while it is read: no iteration or fit is needed.

A lag stays for many round trips, because bursts meet bursts. The arrivals at the others in a cycle are
counted by time, not by cycle, or longer cycles would bring no more work. On a lossy radio each link has a
schedule of its states, and a packet is lost by the state at the end of its reception. The only approximation
is that stations are independent. The sample has a fixed seed: the same scenario has the same answer.
"""

from collections.abc import Mapping
from math import ceil, inf, log2
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence, NotSampled
from btqueue.network.numba_cache import compiled, part, subroutine
from btqueue.network.repetition import kinds_of
from btqueue.network.stations.buffers import RARE
from btqueue.network.stations.doubts import IN_RECOVERY, UNREAD
from btqueue.network.stations.network import Network
from btqueue.network.stations.trains import packet_error, states_of
from btqueue.scenario import Scenario
from btqueue.transport import newreno_sender
from btqueue.transport.newreno_sender import NO_SEGMENT, SENDER, answer, go_back, sent_up_to, smooth, timeout

PLAIN: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **IN_RECOVERY,
        **UNREAD,
        "network.relay": ("packet",),
        "voice.packet": ("none",),
        "polling.discipline": ("e-limited", "1-limited", "round-robin", "exhaustive"),
        "radio.model": ("perfect", "constant", "gilbert-elliott", "alternating"),
        "radio.links": ((),),
        "link.adaptation": ("fixed",),
        "link.arq_feedback": ("reliable",),
        "link.node_buffer_bytes": (None,),
        "link.flush_timeout_s": (None,),
        "flow_control.central_buffer_packets": (None,),
        "flow_control.drop": ("packet", "segment"),
        "transport.variant": ("newreno",),
        "transport.sack": (False,),
        "transport.limited_transmit": (False,),
        "transport.window_limited_growth": (False,),
        "transport.hold_ssthresh": (False,),
        "transport.delayed_ack": (False,),
        "transport.send_buffer_segments": (None,),
        "transport.ack_path": ("queued",),
    }
)
"""Values of keys that the sample knows."""

SEGMENTS, ON_A_LOSSY_RADIO = 8_000, 20_000
"""Segments to deliver; losses on the radio make rates more random."""
SETTLING = 1 / 8
"""Share of them that is not counted, while the history fills."""
MARKS, BATCHES = 128, 10
"""Times at which counts are noted, and batches of these times, whose rates give the standard error."""
MOST_STEPS = 400
"""Events and entries of the history for each segment, after which the sample ends early."""
KEPT_WINDOWS, LEAST_LAG, LATEST = 40, 0.6, 0.6
"""Time for which a lag is kept and least lag, in times of a window; largest lag as a share of the past."""
PER_SEGMENT, LONGEST_HISTORY = 16, 2**20
"""Entries of the history in the least time of a segment, and in all; then every second one is kept."""
STAYS, QUANTILES = 2**15, 2**10
"""Stays of a radio in each state before they repeat, and gaps between messages: quantiles in random order."""
MOST_LOST = 0.6
"""Loss above which a connection waits for its timer nearly always."""
FREE = 1e15
"""Tokens a second without flow control."""
LONGEST_WINDOW = 64
"""Segments that queues have room for."""
SEED = 2006

SAID = (
    "one connection was sampled, and delayed copies of it stood for all others: of full rings goodput was 4 "
    "% off in the median and round trips 11 %, and at most 13 and 39 %"
)
FEW_STATIONS = 4
"""Number of stations from which on they hardly keep step."""
IN_STEP = (
    "[network] peripherals = {}: few stations keep step with each other, but theory takes them as "
    "independent: of full rings goodput was 6 % off in the median, round trips 17 %, and timeouts several "
    "times too many"
)

BUCKET, PORT, BACK = range(3)
"""Queues: packets waiting for tokens, packets for visits, acknowledgements for their own visit."""
SENT, REACHED, TRIPS, TRIP_S, TOKENS, SINCE, CAME = range(7)
"""Counts: segments sent and received, round trips, their sum; tokens, and their time; arrivals at the queue.
"""
WAIT, QUEUE, COME, VISIT = range(4)
"""Of the past: wait of an acknowledgement for tokens (infinite if refused), packets in the queue and come to
it, packets of the visit in progress."""


class Ring(NamedTuple):
    """The ring that a connection crosses; packets: of a segment in order, and an acknowledgement last.

    Attributes:
        stations, limit: number of stations, and most frames of a visit (M).
        buffer, places, whole: packets that may wait for tokens (S) and for visits (L), and whether a full
            buffer refuses all packets of a segment.
        depth, token_rate: of the bucket (bits), and bits a second.
        prices, slots: (P,) tokens and slots of the packets.
        mean_slots: mean slots of a packet of others.
        window: receive window (segments).
        gaps, burst: times between messages (s), one after the other (none if there is always data); segments
            of a message.
        jitter_s: largest random delay in each host (s).
        errors: (2, P) error rates by state of the radio.
        switches: (2, K) times at which the links of this and of the next station change their state, good
            first; none without errors.
        segment_s: least time of a segment, by slots or tokens.
    """

    stations: int
    limit: int
    buffer: int
    places: int
    whole: bool
    depth: float
    token_rate: float
    prices: np.ndarray
    slots: np.ndarray
    mean_slots: float
    window: int
    gaps: np.ndarray
    burst: int
    jitter_s: float
    errors: np.ndarray
    switches: np.ndarray
    segment_s: float


class Sample(NamedTuple):
    """The state of the tagged station, its history, and the other stations in it.

    Attributes:
        waiting: (3, R, 3) by place (`BUCKET`): release, kind, segment of packets; time ready, number, stamp.
        ends: (3, 2) place of the oldest and how many.
        segments: (2 R, 3) number, time sent, and whether a packet of it is lost.
        counts: (7,) see `SENT`.
        past: (N, 4) the history, see `WAIT`.
        clock: (2,) number of its entries, and time between two.
        lags, left, seen: (n - 1,) of the others: lag, packets left after the last visit, and come by then.
    """

    waiting: np.ndarray
    ends: np.ndarray
    segments: np.ndarray
    counts: np.ndarray
    past: np.ndarray
    clock: np.ndarray
    lags: np.ndarray
    left: np.ndarray
    seen: np.ndarray


def covers(network: Network) -> bool:
    """Return whether one connection may represent all: a ring of equal stations, each sending to the next."""
    flows, first = network.flows, network.flows[0]
    if len(network.piconets) != 1 or network.wires or len(flows) < 2 or any(f.messages for f in flows):
        return False
    stops = [
        [(network.ports[v.index].link, network.ports[v.index].up) for v in flow.forth if v.kind == "port"]
        for flow in flows
    ]
    ways = [((n, True), ((n + 1) % len(flows), False)) for n in range(len(flows))]
    packets = {visit.train.packets for flow in flows for visit in flow.back}
    once = all(v.train.frames == v.train.packets for f in flows for v in (*f.forth, *f.back))
    return (
        len(flows) == network.piconets[0].members
        and sorted(map(tuple, stops)) == ways
        and len({(f.source, f.load, f.batch, f.transport, f.window) for f in flows}) == 1
        and (first.protocol, packets, once) == ("tcp", {1.0}, True)
        and first.source in ("poisson", "greedy")
        and not first.short
        and first.load > 0.0
        and first.host_s == 0.0
        and first.window <= LONGEST_WINDOW
        and (bool(network.buckets) or not _whole(network))
        and all(one.value in PLAIN.get(one.kind, (one.value,)) for one in network.traits)
    )


def is_asked(network: Network, *, overflows: bool = False) -> bool:
    """Whether a ring loses segments without repetition, or `overflows` a buffer.

    A connection that loses most of its segments hardly meets others, and has the law of a lone TCP
    connection.
    """
    loss = network.flows[0].loss
    return covers(network) and loss < MOST_LOST and (loss > RARE or overflows)


def tagged(
    scenario: Scenario, network: Network, *, sampling: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return metrics and notes (`btqueue.network.answers`) of a ring (`covers`).

    Raises:
        NotSampled: with *sampling* false, in place of the answer.
        NoConvergence: too few segments get through to say anything.
    """
    flow, rng = network.flows[0], np.random.default_rng(SEED)
    ring = ring_of(scenario, network, rng)
    in_step = ring.stations < FEW_STATIONS and not ring.switches.size
    said = [SAID, *([IN_STEP.format(ring.stations)] if in_step else [])]
    if not sampling:
        raise NotSampled(*said)
    total = ON_A_LOSSY_RADIO if ring.switches.size else SEGMENTS
    marks = np.zeros((MARKS + 1, 8))
    reached = follow(ring, _sender(flow.transport), sample_of(ring), total, marks, rng)
    if reached < BATCHES + 2:
        raise NoConvergence("no segment gets through, or hardly any: the connection makes no progress")
    places = np.linspace(SETTLING * (reached - 1), reached - 1, BATCHES + 1).astype(int)
    batches = np.diff(marks[places], axis=0)
    seconds, delivered, sent, received, trips, trip_s, timeouts, fast = batches.sum(axis=0)
    spread = (batches[:, 1] / batches[:, 0]).std(ddof=1) * seconds / delivered / BATCHES**0.5
    metrics = {
        # in the long run goodput is at most the arrival rate
        "goodput_kbps": min(delivered / seconds, flow.load) * flow.kilobits,
        "throughput_kbps": max(sent, delivered) / seconds * flow.kilobits,
        "rtt_s": trip_s / trips,
        "timeouts_per_s": timeouts / seconds,
        "fast_retransmits_per_s": fast / seconds,
        "segment_loss": max(1.0 - received / sent, 0.0),
    }
    notes = {
        "method": f"one of {ring.stations} connections in whole packets, in the mean field of its past",
        "converged": True,
        "sampled": True,
        "residual": float(spread),
        "warnings": said,
    }
    return {name: np.full(ring.stations, value) for name, value in metrics.items()}, notes


def ring_of(scenario: Scenario, network: Network, rng: np.random.Generator) -> Ring:
    """Return the ring that a connection crosses; `rng` draws the times of its source and of the radio."""
    flow, link, states = network.flows[0], scenario.link, states_of(scenario.radio)
    headers = scenario.transport.header_bytes + link.l2cap_header_bytes
    pieces = []
    for size in (round(flow.kilobits * 125.0) + headers, headers):
        kinds, left = kinds_of(link, scenario.radio.bits, size, 0.0, 255.0), size
        for kind in kinds:
            full = scenario.flow_control.charge == "payload"
            pieces.append((kind, kind.payload_bytes if full else min(left, kind.payload_bytes)))
            left -= kind.payload_bytes
    prices = np.array([8.0 * price for _, price in pieces])
    slots = np.array([float(kind.slots) for kind, _ in pieces])
    bers = [state.ber for state in states]
    errors = np.array([[packet_error(link, scenario.radio, kind, ber) for kind, _ in pieces] for ber in bers])
    most = 8 * int(flow.window) * len(pieces)  # packets under way are several times fewer
    bucket = network.buckets[0] if network.buckets else None
    token_rate = min(bucket.rate, FREE) if bucket else FREE
    return Ring(
        len(network.flows), int(min(network.piconets[0].limit, most)),
        int(min(bucket.places, most)) if bucket else most, int(min(network.ports[0].places, most)),
        _whole(network), bucket.depth if bucket else FREE, token_rate,
        prices, slots, float(slots.mean()), int(flow.window),
        gaps=_exponentials(rng, QUANTILES) * flow.batch / flow.load if flow.load < inf else np.zeros(0),
        burst=round(flow.batch), jitter_s=flow.jitter_s, errors=np.resize(errors, (2, len(pieces))),
        switches=_switches(scenario, len(states) > 1, rng) if errors.any() else np.zeros((2, 0)),
        segment_s=max(2.0 * len(network.flows) * slots.sum() * SLOT_S, prices.sum() / token_rate),
    )  # fmt: skip


def _whole(network: Network) -> bool:
    return any((one.kind, one.value) == ("flow_control.drop", "segment") for one in network.traits)


def _exponentials(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return `count` quantiles of the exponential law of mean one, in random order."""
    values = -np.log((np.arange(count) + 0.5) / count)
    return rng.permutation(values / values.mean())


def _switches(scenario: Scenario, two: bool, rng: np.random.Generator) -> np.ndarray:
    """Return the times at which the two links leave the good state, the bad one, and so on, (2, K)."""
    radio = scenario.radio
    if not two or radio.model == "alternating":  # states are equal, or all links have one schedule
        return np.cumsum(np.full((2, 2), radio.period_s if two else 1.0), axis=1)
    stays = np.stack([_exponentials(rng, 2 * STAYS).reshape(STAYS, 2) for _ in range(2)])
    times = np.cumsum((stays * (radio.good_s, radio.bad_s)).reshape(2, -1), axis=1)
    return times[[0, 0]] if radio.fading == "per-piconet" else times


def _sender(transport: Any) -> np.recarray:
    sender = np.zeros(1, SENDER).view(np.recarray)
    sender.cwnd, sender.ssthresh = transport.initial_window_segments, transport.initial_ssthresh_segments
    sender.rto, sender.min_rto = transport.initial_rto_s, transport.min_rto_s
    sender.max_rto, sender.backoff = transport.max_rto_s, transport.rto_backoff
    sender.receive_window, sender.recover = transport.receive_window_segments, -1
    sender.deadline, sender.smoothed = inf, np.nan
    return sender


def sample_of(ring: Ring) -> Sample:
    """Return a station whose bucket is full, without a past."""
    room = 2 ** ceil(log2(ring.buffer + ring.places + ring.prices.size))
    others, counts = ring.stations - 1, np.zeros(7)
    counts[TOKENS] = ring.depth
    gap_s = ring.gaps.mean() / ring.burst if ring.gaps.size else 0.0
    return Sample(
        np.zeros((3, room, 3)), np.zeros((3, 2), np.int64), np.zeros((2 * room, 3)), counts,
        np.empty((LONGEST_HISTORY, 4)), np.array([0.0, max(ring.segment_s, gap_s) / PER_SEGMENT]),
        np.full(others, inf), np.zeros(others), np.zeros(others),
    )  # fmt: skip


@compiled(str(newreno_sender.__file__))
def follow(ring, sender, station, total, marks, rng):
    """Sample until `total` segments are delivered; return the number of marks written.

    Args:
        ring: `Ring`.
        sender: `SENDER`, one record.
        station: `Sample`.
        total: segments.
        marks: (MARKS + 1, 8) time, delivered, the first of `SENT`, timeouts, fast retransmits: to be written.
        rng: draws chances, lags and waits.
    """
    one, waiting, ends, counts, lags = sender[0], station.waiting, station.ends, station.counts, station.lags
    entries, lossy = station.past, ring.switches.shape[1] > 0
    others, data, window_s = lags.size, ring.prices.size - 1, ring.window * ring.segment_s
    previous = others - 1  # the next station is 0
    early, arrivals = np.zeros(2 * total, np.bool_), np.zeros(8 * total)
    aired = np.zeros((ring.limit, 2), np.int64)
    now, steps, marked, arrived, foreign = 0.0, 0, 0, 0, 0
    expected, echo, last_back, offered, messages = 0, 0.0, 0.0, 0, 0
    frame, frames, up, coming, visited, visit_ends = inf, 0, 0, 0.0, 0.0, inf
    drawn, call, heard, message = 0.0, inf, inf, 0.0 if ring.gaps.size == 0 else ring.gaps[0]
    while marked <= MARKS and steps < MOST_STEPS * total and arrived + ring.limit < arrivals.size:
        if expected >= marked * total // MARKS:
            mark = marks[marked]
            mark[0], mark[1], mark[2:6] = now, expected, counts[:4]
            mark[6], mark[7] = one.timeouts, one.fast_retransmits
            marked += 1
            continue
        then = min(min(min(frame, call), min(message, drawn)), min(heard, one.deadline))
        steps += 1
        if station.clock[0] * station.clock[1] < then:
            steps += remember(ring, station, then, visited, visit_ends)
        now = then
        if now == drawn:  # from now on the others are copies of the past at random lags
            for j in range(others):
                spread = max(LATEST * now - LEAST_LAG * window_s, 0.0)
                lags[j] = LEAST_LAG * window_s + rng.random() * spread if spread > 0.0 else inf
                place = at(station.clock, now - lags[j])
                station.left[j], station.seen[j] = entries[place, QUEUE], entries[place, COME]
            foreign = np.searchsorted(arrivals[:arrived], now - lags[previous])
            call = arrivals[foreign] + lags[previous] if foreign < arrived else inf
            drawn = now + min(KEPT_WINDOWS * window_s, 0.5 * now + 2.0 * window_s) * (0.5 + rng.random())
            continue
        if now == call:  # a segment of the previous station is here, and answered
            offer(ring, station, data, NO_SEGMENT, now)
            foreign += 1
            call = arrivals[foreign] + lags[previous] if foreign < arrived else inf
        elif now == message:
            messages += 1
            offered = messages * ring.burst if ring.gaps.size > 0 else early.size
            message = now + ring.gaps[messages % ring.gaps.size] if ring.gaps.size > 0 else inf
            send_window(ring, station, one, offered, now)
        elif now == heard:
            heard, place = inf, take(station, BACK)
            if not (lossy and lost(ring, rng, 0, data, now)):
                acknowledge(ring, station, one, int(waiting[BACK, place, 1]), waiting[BACK, place, 2], now)
                send_window(ring, station, one, offered, now)
        elif now == frame:
            admit(ring, station, now)
            sends = ends[PORT, 1] > 0 and frames < ring.limit
            hears = frames < ring.limit and first(waiting, ends, BACK) <= now
            if sends or hears:
                slots = ring.slots[data] if hears else (ring.mean_slots if frames < coming else 1.0)
                heard = now + slots * SLOT_S if hears else inf
                if sends:
                    place = take(station, PORT)
                    kind, ident = int(waiting[PORT, place, 1]), int(waiting[PORT, place, 2])
                    slots += ring.slots[kind]
                    if ident != NO_SEGMENT and lossy and lost(ring, rng, 0, kind, now + slots * SLOT_S):
                        station.segments[ident, 2] = 1.0
                    aired[up, 0], aired[up, 1] = kind, ident
                    up += 1
                else:
                    slots += 1.0
                frames, frame = frames + 1, now + slots * SLOT_S
                continue
            # the visit is over, and the other stations are visited
            now += max(coming - frames, 0.0) * (ring.mean_slots + 1.0) * SLOT_S
            now += 2.0 * SLOT_S if max(float(frames), coming) < ring.limit else 0.0
            visited = float(up)
            again, coming, beside = cycle(ring, station, visited, now, True)
            for place in range(up):  # own packets take their real slots, not the mean
                again += (ring.slots[aired[place, 0]] - ring.mean_slots) * SLOT_S
            down = now
            for place in range(up):
                kind, ident = aired[place, 0], aired[place, 1]
                down += (ring.slots[kind] + (ring.mean_slots if place < beside else 1.0)) * SLOT_S
                if ident == NO_SEGMENT:
                    continue
                if lossy and lost(ring, rng, 1, kind, down):
                    station.segments[ident, 2] = 1.0
                if kind != data - 1 or station.segments[ident, 2] > 0.0:
                    continue
                number = int(station.segments[ident, 0])
                echo = max(echo, station.segments[ident, 1]) if number <= expected else echo
                early[number] = True
                while early[expected]:
                    expected += 1
                arrivals[arrived] = down
                arrived += 1
                counts[REACHED] += 1.0
                asked = down + ring.jitter_s * (rng.random() + rng.random())
                there = at(station.clock, asked - lags[0])
                back, ahead = asked + entries[there, WAIT], entries[there, QUEUE]
                if back == inf:
                    continue
                if back > down or ahead > 0.0 or up >= ring.limit:  # it misses this visit of the next station
                    own = float(min(ends[PORT, 1], ring.limit))
                    soon = visit_s(ring.limit, ring.mean_slots, own, coming)
                    turn_s = soon + cycle(ring, station, own, again, False)[0] - again
                    ahead = max(ahead - ring.limit * rng.random(), 0.0)  # as it is just after a visit
                    turns = max(np.ceil((back - again) / turn_s), 0.0) + ahead // ring.limit
                    back = again + soon + turns * turn_s
                elif beside == 0.0:  # the answer makes an empty visit longer
                    again += (ring.slots[data] + 1.0) * SLOT_S
                last_back = max(back + (ring.slots[data] + 1.0) * SLOT_S, last_back)
                if ends[BACK, 1] < waiting.shape[1] and not (lossy and lost(ring, rng, 1, data, last_back)):
                    put(station, BACK, last_back, expected, echo)
            call = arrivals[foreign] + lags[previous] if call == inf and foreign < arrived else call
            frames, up = 0, 0
            frame = again if min(packet_at(waiting, ends), first(waiting, ends, BACK)) <= again else inf
            visit_ends, coming = (again, 0.0) if frame == inf else (inf, coming)
        else:
            if one.una < one.highest:
                go_back(one, now)
            else:
                one.deadline = inf
            send_window(ring, station, one, offered, now)
        data_at, ack_at = packet_at(waiting, ends), first(waiting, ends, BACK)
        if frame == inf and min(data_at, ack_at) < inf:  # an idle port is polled at any time of a cycle
            ready, frames, up, coming = max(min(data_at, ack_at), now), 0, 0, 0.0
            turn_s = idle_turn_s(ring, station, ready)
            # a packet has until the end of the poll; an acknowledgement comes up behind the own visit
            before, behind = max(rng.random() * turn_s - SLOT_S, 0.0), turn_s * others / ring.stations
            frame = ready + (before if data_at <= ack_at else behind)
            for j in range(others):  # half of the packets that come for others meanwhile go before
                station.seen[j] = entries[at(station.clock, ready - lags[j]), COME]
                station.left[j] = -0.5 * max(
                    entries[at(station.clock, frame - lags[j]), COME] - station.seen[j], 0.0
                )
            frame -= station.left.sum() * 2.0 * (ring.mean_slots + 1.0) * SLOT_S
    return marked


@subroutine
def remember(ring, station, until, visited, visit_ends):
    """Write the history up to a time, with the packets of the last visit until it ends; return its steps."""
    steps, entries, kept, step_s = 0, station.past, int(station.clock[0]), station.clock[1]
    while kept * step_s < until:
        steps += 1
        if kept == entries.shape[0]:
            kept, step_s = kept // 2, 2.0 * step_s
            entries[:kept] = entries[::2]
            continue
        now = kept * step_s
        if station.ends[BUCKET, 1] > 0:
            admit(ring, station, now)
        missing = ring.prices[-1] - station.counts[TOKENS]
        wait = max(station.counts[SINCE] + missing / ring.token_rate - now, 0.0)
        entries[kept, WAIT] = wait if station.ends[BUCKET, 1] < ring.buffer else inf
        entries[kept, QUEUE], entries[kept, COME] = station.ends[PORT, 1], station.counts[CAME]
        entries[kept, VISIT] = visited if now < visit_ends else 0.0
        kept += 1
    station.clock[0], station.clock[1] = kept, step_s
    return steps


@part
def at(clock, time):
    """Return the entry of a time in the history; for times before it the first entry, without arrivals."""
    return int(min(max(time / clock[1], 0.0), clock[0] - 1.0))


@part
def lost(ring, rng, link, kind, time):
    """Return whether a packet is lost on a link whose reception ends at this time."""
    times = ring.switches[link]
    return rng.random() < ring.errors[np.searchsorted(times, time % times[-1]) % 2, kind]


@part
def visit_s(limit, mean_slots, up, down):
    """Return the time of a visit with packets of others up and down, which share frames."""
    both, most = min(up, down), max(up, down)
    slots = both * 2.0 * mean_slots + (most - both) * (mean_slots + 1.0)
    return SLOT_S * (slots + (2.0 if most < limit else 0.0))


@subroutine
def cycle(ring, station, own, now, lasting):
    """Let the other stations have their visits after this one; `lasting`: keep their other packets.

    Returns the time of the next visit to this station, and the packets of its two neighbours.
    """
    time, before, beside = now, own, 0.0
    for j in range(station.lags.size):
        come = max(station.past[at(station.clock, time - station.lags[j]), COME], station.seen[j])
        here = max(station.left[j] + come - station.seen[j], 0.0)
        sent = min(here, float(ring.limit))
        if lasting:
            station.left[j], station.seen[j] = here - sent, come
        beside = sent if j == 0 else beside
        time += visit_s(ring.limit, ring.mean_slots, sent, before)
        before = sent
    return time, before, beside


@part
def idle_turn_s(ring, station, now):
    """Return the cycle time found by a packet that arrives at a random time, by the visits in progress."""
    time, before = now + 2.0 * SLOT_S, 0.0
    for lag in station.lags:
        sent = station.past[at(station.clock, time - lag), VISIT]
        time += visit_s(ring.limit, ring.mean_slots, sent, before)
        before = sent
    return time - now


@part
def first(waiting, ends, where):
    """Return the time of the oldest entry of a queue; infinity if there is none."""
    return waiting[where, ends[where, 0], 0] if ends[where, 1] > 0 else inf


@part
def packet_at(waiting, ends):
    """Return the time at which the next packet may go up; infinity if there is none."""
    return min(first(waiting, ends, PORT), first(waiting, ends, BUCKET))


@part
def take(station, where):
    """Take the oldest entry of a queue; return its index."""
    head = station.ends[where, 0]
    station.ends[where, 0] = (head + 1) % station.waiting.shape[1]
    station.ends[where, 1] -= 1
    return head


@part
def put(station, where, time, second, third):
    """Append an entry to a queue."""
    place = (station.ends[where, 0] + station.ends[where, 1]) % station.waiting.shape[1]
    waiting = station.waiting
    waiting[where, place, 0], waiting[where, place, 1], waiting[where, place, 2] = time, second, third
    station.ends[where, 1] += 1


@subroutine
def admit(ring, station, now):
    """Move packets that have their tokens to the queue for visits, which refuses packets if it is full."""
    while first(station.waiting, station.ends, BUCKET) <= now:
        place = take(station, BUCKET)
        kind, ident = station.waiting[BUCKET, place, 1], int(station.waiting[BUCKET, place, 2])
        if station.ends[PORT, 1] < ring.places:
            station.counts[CAME] += 1.0
            put(station, PORT, now, kind, ident)
        elif ident != NO_SEGMENT:
            station.segments[ident, 2] = 1.0


@subroutine
def offer(ring, station, kind, ident, now):
    """Offer a packet to the bucket, in whose buffer it waits for tokens; it is lost if the buffer is full."""
    admit(ring, station, now)
    save(ring, station, now)
    counts, price = station.counts, ring.prices[kind]
    if counts[TOKENS] >= price:
        counts[TOKENS] -= price
    elif station.ends[BUCKET, 1] < ring.buffer:
        counts[SINCE] += (price - counts[TOKENS]) / ring.token_rate
        counts[TOKENS] = 0.0
    else:
        if ident != NO_SEGMENT:
            station.segments[ident, 2] = 1.0
        return
    put(station, BUCKET, counts[SINCE], kind, ident)
    admit(ring, station, now)


@part
def save(ring, station, now):
    """Add the tokens of the time until now, unless tokens of a later time are spent already."""
    counts = station.counts
    if counts[SINCE] < now:
        counts[TOKENS] = min(ring.depth, counts[TOKENS] + ring.token_rate * (now - counts[SINCE]))
        counts[SINCE] = now


@subroutine
def send(ring, station, number, now):
    """Send a segment; with `Ring.whole` only if the buffer holds all its packets that have no tokens."""
    ident = int(station.counts[SENT]) % station.segments.shape[0]
    station.segments[ident, 0], station.segments[ident, 1], station.segments[ident, 2] = number, now, 0.0
    station.counts[SENT] += 1.0
    if ring.whole:
        admit(ring, station, now)
        save(ring, station, now)
        short = np.cumsum(ring.prices[:-1]) > station.counts[TOKENS]
        if station.ends[BUCKET, 1] + short.sum() > ring.buffer:
            return
    for kind in range(ring.prices.size - 1):
        offer(ring, station, kind, ident, now)


@subroutine
def send_window(ring, station, one, offered, now):
    """Send the segments of the source that the window lets out."""
    begin, end = one.nxt, min(int(one.una + min(one.cwnd, float(ring.window))), offered)
    if end > begin:
        sent_up_to(one, end, now)
    for number in range(begin, end):
        send(ring, station, number, now)


@subroutine
def acknowledge(ring, station, one, number, stamp, now):
    """Take an acknowledgement at the sender."""
    if number > one.una:
        station.counts[TRIPS] += 1.0
        station.counts[TRIP_S] += now - stamp
        one.smoothed, one.variation = smooth(one.smoothed, one.variation, now - stamp)
        one.rto = timeout(one, one.smoothed, one.variation)
    again = answer(one, number, now)
    if again != NO_SEGMENT:
        send(ring, station, again, now)


for _rule in (
    answer,
    go_back,
    sent_up_to,
    smooth,
    timeout,
    newreno_sender.duplicate,
    newreno_sender.in_recovery,
):
    part(_rule)
