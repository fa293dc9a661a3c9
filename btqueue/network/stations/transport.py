"""Laws of transport: what windows, timers and losses make of a path."""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr

from btqueue.network.stations.network import Flow, Network
from btqueue.transport.recovery import LossyPath
from btqueue.transport.vegas import Round, window_walk
from btqueue.transport.window_cycles import LossyRates, lossy_rates

Vector = NDArray[np.float64]

ALONE = 0.6
"""Loss from which on segments go one at a time, from timeout to timeout."""
LARGEST_CHAIN = 256
"""Segments of a window whose losses are solved; beyond, losses hold it back before it opens so far."""
OPENING = 6
"""Segments acknowledged from a window of two, after a loss, to one of four, which finds three duplicates."""
OPEN = 2.0
"""Segments behind a lost one that a window lets out in a timeout, on average: it opens from two."""
MANY = 0.1
"""Share of lost segments from which on the chain of windows is rough."""
VEGAS_START = 4
"""Initial window (segments) from which on Vegas leaves slow start above `beta` segments in queues."""
DUPLICATES = 3
"""Duplicates that make a fast retransmit."""
BACKOFFS = 6
"""Doublings of a timer that are told apart."""
NEARLY = 0.995
"""Most use of what losses let a connection send, in formulas of waits."""
COARSE = 0.1
"""The same of a connection that sends less than it may: how fast it clears a backlog needs no more."""
KNOWN = {"cubic": "newreno", "vegas": "newreno"}
"""Variants without a law of losses of their own, and whose they take."""
GRID = 0.01
"""Change of a path, in logarithms, up to which a solved chain is used again on the way to the fixed point."""


class Law(NamedTuple):
    """What losses make of a connection: segments a second, transmissions of each, events a second, window.

    `parts` are the shares of the time of laws of which it is the mean: at the mean loss, and in the better
    and the worse states of a radio.
    """

    goodput: float
    transmissions: float
    timeouts: float
    fast_retransmits: float
    losses: float
    window: float
    rtt_s: float
    parts: tuple[tuple[float, Law], ...] = ()


def window_of(network: Network, flow: Flow) -> float:
    """Return the segments that may be under way; of datagrams those that find place in a queue."""
    if flow.messages:
        longest = max(sum(piece.count for piece in message) for message in flow.messages)
        return min(flow.window, float(longest))
    if flow.window < inf:
        return flow.window
    places = min((visit.places for visit in flow.forth), default=inf)
    return min(places + 1.0, 1e9)


def ack_wait(flow: Flow, rate: float, *, carried: bool) -> float:
    """Return the mean wait of a segment for the acknowledgement that a receiver delays (s)."""
    transport = flow.transport
    if flow.protocol != "tcp" or not transport.delayed_ack:
        return 0.0
    every, delay = transport.ack_every_segments, transport.ack_delay_s
    if transport.ack_clock != "timer":
        delay = delay / 2.0
    if every <= 1 or delay == 0.0:
        return 0.0
    if flow.window < every:
        return delay
    if flow.load == inf or not carried:
        return 0.0
    if flow.short:  # a short segment waits for the acknowledgement of the one before (Nagle)
        return delay
    count = max(round(flow.batch), 1)
    if not count % every:
        return 0.0
    messages = rate / count
    # the segments left over wait for the next message or the timer
    if flow.source == "periodic":
        wait = min(1.0 / messages, delay) if messages > 0.0 else delay
    else:
        wait = (1.0 - exp(-messages * delay)) / messages if messages > 0.0 else delay
    # of every second such message the first segment goes with the one left over, if it comes in time
    left = 1.0 / (1.0 + -np.expm1(-messages * delay))
    return wait * left / (count // every + left)


def ahead(flow: Flow) -> float:
    """Return the mean number of segments of its own batch that are ahead of a segment, as windows let them.

    A batch is a message, and a burst of an interrupted Bernoulli process a geometric number of messages. Of a
    window no more than its other segments are ahead.
    """
    window = flow.window
    if flow.protocol == "tcp" and flow.transport.variant == "vegas":
        window = min(window, 2.0 + flow.transport.alpha)
    most = max(window - 1.0, 0.0)
    count = max(flow.batch, 1.0)
    of_message = (count - 1.0) / 2.0 if count <= window else most * (1.0 - window / (2.0 * count))
    if flow.more == 0.0:
        return of_message
    messages = flow.more / (1.0 - flow.more)  # ahead in the burst
    within = 1.0 if most == inf else -float(np.expm1(most / count * np.log(flow.more)))
    return min(messages * count * within + of_message, most)


def ahead_of_sample(flow: Flow) -> float:
    """Return the segments of its batch that are served before the one whose acknowledgement is a round trip.

    An acknowledgement shows the round trip of the first segment that it covers, and goes with the last one.
    """
    every = round(1.0 / flow.acks) if flow.acks else 1
    count = round(flow.batch)
    if every <= 1 or count <= 1 or flow.more > 0.0 or count > flow.window:
        return ahead(flow)
    groups, rest = divmod(count, every)
    served = sum((group + 1) * every - 1 for group in range(groups)) + (count - 1 if rest else 0)
    return served / (groups + (rest > 0))


def gather_s(flow: Flow, service_s: float) -> float:
    """Return how long the first of the segments that share an acknowledgement waits for the last (s)."""
    if flow.protocol != "tcp" or flow.load < inf or not flow.acks or flow.window * flow.acks < 1.0:
        return 0.0
    return (1.0 / flow.acks - 1.0) * service_s if flow.window * flow.acks < 2.0 else 0.0


def held_back(window: float, rate: float, base_s: float, wait_s: float) -> float:
    """Return the part of a wait that is in the network: a window keeps the rest at the sender (s).

    The segments that wait are taken for exponential, and no more than the window are under way.
    """
    if wait_s <= 0.0 or rate <= 0.0 or window == inf:
        return wait_s
    room = max(window - rate * base_s, 0.0)
    return -wait_s * float(np.expm1(-room / (rate * wait_s)))


def resting_window(flow: Flow, rate: float, lone_s: float) -> float:
    """Return the window at which a connection rests without losses (segments).

    That of Vegas is `alpha` segments more than are on the way (Low, Peterson & Wang 2002), where round trips
    vary; else it rests where slow start leaves it (`btqueue.transport.vegas`). Other windows open as far as
    the receiver lets them.
    """
    if flow.protocol != "tcp" or flow.transport.variant != "vegas":
        return flow.window
    varies = any(visit.train.spread > 0.0 for visit in (*flow.forth, *flow.back))
    if flow.load < inf or rate <= 0.0 or flow.loss > 0.0 or varies:
        return min(flow.window, max(rate * lone_s + flow.transport.alpha + 0.5, 2.0))
    window = int(min(flow.window, LARGEST_CHAIN))
    return _left_by_slow_start(flow.transport, window, flow.acks, round(np.log(rate * lone_s) / GRID))


@lru_cache(maxsize=1024)
def _left_by_slow_start(transport: Any, window: int, acks: float, on_way: int) -> float:
    """Return where Vegas rests whose round trips do not vary; segments take a time of one each.

    Args:
        transport: with the parameters of Vegas.
        window: of the receiver.
        acks: acknowledgements of a segment.
        on_way: logarithm of the segments that are on the way without a queue, in steps of `GRID`.
    """
    lone = exp(on_way * GRID)
    trips = {w: Round(max(lone, w), 0.0, lone, float(w), w * acks) for w in range(1, window + 1)}
    walk = window_walk(
        trips.__getitem__,
        alpha=transport.alpha,
        beta=transport.beta,
        gamma=transport.gamma,
        window=window,
        start=float(transport.initial_window_segments),
        every=round(1.0 / acks) if acks else 1,
    )
    return sum(size * share for size, share in walk.windows.items())


def chain_of(flow: Flow, base_s: float, service_s: float, room: float) -> Law:
    """Return the renewal chain of a greedy connection on a path (`btqueue.transport.window_cycles`).

    A radio without repetition that fades loses segments in its worse states. Where they outlive a timeout,
    the connection lives in each state for itself; where they are gone before, it meets the mean loss.
    """
    mean, fading = flow.loss, [visit.train for visit in flow.forth if visit.train.loss_slow > visit.loss]
    if not fading or 0.0 < room < inf:
        return _chain(flow, mean, base_s, service_s, room)
    better = mean
    for train in fading:
        better = 1.0 - (1.0 - better) * (1.0 - train.loss_fast) / (1.0 - train.loss)
    better = float(np.clip(better, 0.0, mean))
    share = 1.0 - float(np.prod([1.0 - train.worse for train in fading]))
    worse = min((mean - (1.0 - share) * better) / share, 1.0)
    rto = max(flow.transport.min_rto_s, base_s)
    lasts = exp(-rto / min(train.stay_s for train in fading))
    return _together(
        [_chain(flow, loss, base_s, service_s, room) for loss in (mean, better, worse)],
        [1.0 - lasts, lasts * (1.0 - share), lasts * share],
    )


def _together(laws: list[Law], shares: list[float]) -> Law:
    """Return the mean of laws that hold for shares of the time: rates by time, the rest by segments."""
    time = np.array(shares)
    rates = time @ np.array([law[:4] for law in laws])
    sent = time * [law.goodput for law in laws]
    sent = sent / max(sent.sum(), 1e-300)
    rest = sent @ np.array([np.nan_to_num(law[4:7]) for law in laws])
    again = float(sent @ [law.transmissions for law in laws])
    timeouts, fast = (float(value) for value in rates[2:])
    losses, window, rtt = (float(value) for value in rest)
    parts = tuple(zip(shares, laws, strict=True))
    return Law(float(rates[0]), again, timeouts, fast, losses, window, rtt, parts)


def _chain(flow: Flow, loss: float, base_s: float, service_s: float, room: float) -> Law:
    """Return the renewal chain at this chance of a loss."""
    transport = flow.transport
    every = 1.0 / flow.acks if flow.acks else 1.0
    ack_loss = flow.ack_loss
    window = resting_window(flow, 1.0 / service_s, base_s)
    if loss == 0.0 and int(window) <= max(room, 2.0):
        trip = max(base_s, window * service_s)
        return Law(window / trip, 1.0, 0.0, 0.0, 0.0, window, trip)
    path = LossyPath(
        loss=loss,
        segments_per_ack=every / max(1.0 - ack_loss, 0.05),
        window=int(min(window, LARGEST_CHAIN)),
        room=max(room, 2.0),
        base_s=base_s,
        service_s=service_s,
        variant="sack" if transport.sack else KNOWN.get(str(transport.variant), str(transport.variant)),
        min_rto_s=transport.min_rto_s,
        max_rto_s=transport.max_rto_s,
        backoff=transport.rto_backoff,
        ack_delay_s=transport.ack_delay_s if every > 1.0 else 0.0,
        gathered=int(every),
        ack_loss=min(ack_loss, 0.95),
        limited_transmit=transport.limited_transmit,
    )
    if min(path.window, path.room) < 2.0 or loss > ALONE:
        return _stop_and_go(flow, loss, base_s)
    found: LossyRates = lossy_rates(path)
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


def _stop_and_go(flow: Flow, loss: float, base_s: float) -> Law:
    """Return the law of a window of one segment: each loss is a timeout, whose timer doubles."""
    transport = flow.transport
    lost = 1.0 - (1.0 - loss) * (1.0 - flow.ack_loss)
    if lost >= 1.0 - 1e-9:
        return Law(0.0, 1.0, 1.0 / transport.max_rto_s, 0.0, 1.0, 1.0, np.nan)
    rto, seconds, chance = max(transport.min_rto_s, base_s), base_s, lost
    first = rto
    while chance > 1e-9 and rto < transport.max_rto_s:
        seconds += chance * rto
        chance *= lost
        rto = min(rto * (2.0 if transport.rto_backoff else 1.0), transport.max_rto_s)
        if not transport.rto_backoff and rto == first:
            break
    seconds += chance * rto / (1.0 - lost)
    events = lost / (1.0 - lost)
    return Law(1.0 / seconds, 1.0 + events, events / seconds, 0.0, loss, 1.0, base_s)


class Repairs(NamedTuple):
    """Events a second, round trip (s) and losses of a connection that sends less than it may."""

    timeouts: float
    fast_retransmits: float
    rtt_s: float
    losses: float


def open_losses(flow: Flow, law: Law, rate: float, rtt_s: float, window: float) -> Repairs:
    """Return what losses make of a connection whose source offers less than losses let it send.

    Where a radio fades and its states outlive timeouts: of what a worse state cannot carry a backlog waits,
    which the better state clears at the rate of a connection that always has data.
    """
    if not law.parts:
        return _in_state(flow, law, flow.loss, rate, rtt_s, window)
    (mixed, mean), (better, good), (worse, bad) = law.parts
    found = [(mixed, _in_state(flow, mean, flow.loss, rate, rtt_s, window), mixed)]
    if worse > 0.0:
        cleared = 0.0
        if bad.goodput < rate:
            cleared = min(worse * (rate - bad.goodput) / max(good.goodput - rate, 1e-12), better)
        quiet = better - cleared
        always = [(worse if bad.goodput < rate else 0.0, bad), (cleared, good)]
        found += [
            (
                time,
                Repairs(one.timeouts, one.fast_retransmits, one.rtt_s, one.losses),
                time * one.goodput / rate,
            )
            for time, one in always
        ]
        found.append((quiet, _in_state(flow, good, good.losses, rate, rtt_s, window), quiet))
        if bad.goodput >= rate:
            found.append((worse, _in_state(flow, bad, bad.losses, rate, rtt_s, window), worse))
    time, sent = np.array([one[0] for one in found]), np.array([one[2] for one in found])
    values = np.array([one[1] for one in found])
    again = sent @ (values[:, 3] / np.maximum(1.0 - values[:, 3], 1e-9)) / sent.sum()
    timeouts, fast = time @ values[:, :2]
    return Repairs(
        timeouts, fast, float(sent @ np.nan_to_num(values[:, 2]) / sent.sum()), again / (1.0 + again)
    )


def _in_state(flow: Flow, law: Law, loss: float, rate: float, rtt_s: float, window: float) -> Repairs:
    """Return what independent losses make of a connection.

    In quiet times segments leave as they come. Three behind a lost one within the timeout make a fast
    retransmit, if the window is open; two of them are new ones with limited transmit. Else the segments of a
    timeout wait at the sender, and leave as the window opens again from two, by the square-root law, until
    the backlog is gone: at the rate of a connection that always has data (`law`). Round trips are measured
    by the acknowledgements of new data: behind a hole there is one.
    """
    transport = flow.transport
    through = (1.0 - loss) * (1.0 - flow.ack_loss)
    if loss == 0.0:
        return Repairs(0.0, 0.0, rtt_s, 0.0)
    rto = max(transport.min_rto_s, rtt_s)
    if flow.source == "periodic" and flow.batch <= 1.0:
        behind = float(rate * rto >= DUPLICATES)
    else:
        behind = 1.0 - float(pdtr(DUPLICATES - 1, rate * rto))
    # the window has opened since the last loss; or the few segments that it lets out all come through
    behind *= through**DUPLICATES if transport.limited_transmit else (1.0 - loss) ** OPENING
    if flow.batch > 1.0:
        behind = max(behind, max(flow.batch - DUPLICATES, 0.0) / flow.batch)
    behind *= through * float(window > DUPLICATES)
    backoff = 2.0 if transport.rto_backoff else 1.0
    repeats = sum(((1.0 - through) * backoff) ** k for k in range(1, BACKOFFS + 1))
    silent = (1.0 - behind) * rto * (1.0 + min(repeats, transport.max_rto_s / rto))
    # segments that wait for the end of a timeout, and those that come until they are gone
    spare = max(1.0 - rate / max(law.goodput, 1e-12), 1.0 - NEARLY)
    waiting = max(rate * silent - (1.0 - behind) * min(window - 1.0, OPEN), 0.0) / spare
    quiet = 1.0 / loss
    places = np.arange(min(waiting, 5.0 * quiet) + 1.0)
    seen = through**places
    size = np.minimum(np.sqrt(4.0 + 2.0 * places), window)
    crowded = float(np.maximum(rtt_s, size * law.rtt_s / max(law.window, 1.0)) @ seen / seen.sum())
    rtt = (quiet * rtt_s + rtt_s + waiting * crowded) / (quiet + 1.0 + waiting)
    losses = rate * loss / max(1.0 - loss, 1e-9)
    busy = waiting / (waiting + quiet)
    events = max(law.timeouts + law.fast_retransmits, 1e-12)
    late = (1.0 - busy) * (1.0 - behind) + busy * law.timeouts / events
    soon = (1.0 - busy) * behind + busy * law.fast_retransmits / events
    return Repairs(losses * late, losses * soon, rtt, loss)


def caps(
    network: Network, laws: Any, rate: Vector, sent: Vector, base: Vector, service: NDArray, turn: int
) -> tuple[Vector, Vector, dict[int, Law]]:
    """Return what losses let each flow send at most (1/s), transmissions of a segment, and the laws asked."""
    flows = network.flows
    most, again, found = np.full(len(flows), inf), sent.copy(), {}
    use = rate @ service
    known: dict[tuple, Law] = laws.chains
    endless = np.array([flow.load == inf for flow in flows])
    sharing = (service > 0.0).T.astype(float) @ endless
    buckets = len(network.ports) + len(network.wires)
    depths = np.array([bucket.depth / bucket.rate if bucket.rate else 0.0 for bucket in network.buckets])
    for f, flow in enumerate(flows):
        if flow.protocol != "tcp" or flow.source == "request-reply":
            continue
        if flow.loss == 0.0 and flow.ack_loss == 0.0:
            continue
        others = np.clip(use - rate[f] * service[f], 0.0, 0.98)
        stretched = service[f] / np.maximum(1.0 - others, 1.0 / np.maximum(sharing, 1.0))
        stretched /= max(sent[f], 1.0)  # of one transmission
        slowest = float(stretched[:buckets].max(initial=1e-6))
        if not (0.0 < float(stretched.max(initial=slowest)) < inf and 0.0 < base[f] < inf):
            raise FloatingPointError("a segment takes for ever at a station")
        grid = GRID if flow.load == inf or rate[f] < flow.load else COARSE

        def law(slowest: float, flow: Flow = flow, base_s: float = float(base[f]), grid: float = grid) -> Law:
            key = (
                tuple((visit.loss, visit.train) for visit in flow.forth),
                flow.ack_loss,
                round(np.log(base_s) / grid),
                round(np.log(slowest) / grid),
                flow.window,
                flow.acks,
                flow.transport,
            )
            if key not in known:
                known[key] = chain_of(flow, base_s, slowest, inf)
            return known[key]

        found[f] = law(slowest)
        # the bucket is full after a timeout: what this does not pay for waits, but no lone segment does
        between = found[f].goodput * found[f].transmissions / max(found[f].timeouts, 1e-12)
        waits = stretched[buckets:] - depths / max(between, 1.0)
        waits = np.minimum(stretched[buckets:], np.maximum(waits, base[f]))
        if (longest := float(waits.max(initial=0.0))) > slowest:
            found[f] = law(longest)
        most[f] = found[f].goodput
        again[f] = found[f].transmissions if flow.load == inf else 1.0 / max(1.0 - flow.loss, 0.02)
    return most, again, found


def doubts(network: Network, point: Any) -> list[str]:
    """Return what is known only roughly of losses and windows, with errors against the simulator."""
    found, flows = [], network.flows
    if any(visit.train.loss_slow > visit.train.loss_fast for flow in flows for visit in flow.forth):
        found.append(
            "Segments are lost in the worse states of a radio: goodput was wrong by up to 11 % where losses"
            " limit it, round trips by up to 25 %, and more where states last for about half of a timeout"
        )
    if any(law.losses > MANY and law.goodput < inf for law in point.found.values()):
        found.append("More than 10 % of the segments are lost: goodput was wrong by up to 25 %")
    vegas = [
        f for f, flow in enumerate(flows) if flow.protocol == "tcp" and flow.transport.variant == "vegas"
    ]
    greedy = [flow for f, flow in enumerate(flows) if f in vegas and flow.load == inf]
    if any(visit.train.spread > 0.0 for flow in greedy for visit in flow.forth):
        found.append("Vegas meets repetition on the link: round trips were 6 % too short to 13 % too long")
    if any(flow.transport.initial_window_segments >= VEGAS_START for flow in greedy):
        found.append(
            "Vegas begins with four segments or more, and may pass its resting place: round trips were"
            " wrong by up to a factor of 5"
        )
    return found
