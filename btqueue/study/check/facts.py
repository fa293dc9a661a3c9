"""Facts that the packets of a capture state themselves, and their comparison with the scenario.

Nothing here is fitted: options stand in the headers, windows and sizes are counted, and times are differences
of stamps. Each fact that contradicts the scenario is a finding that names the key.

The place of the capture follows from the opening and from the gaps between segments. At the sender the other
end takes all of the round trip of the opening, and the first windows leave in bursts. Behind the queue of a
link no two segments are closer than the link's time of one, and segments that the queue has lost are holes
that are filled a round trip later.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from btqueue.captures.packets import End, Packet
from btqueue.network.bounds import least_round_trip_s
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology
from btqueue.study.check.results import Finding, ForeignResults
from btqueue.study.check.tcp_sender import SenderLog

SIDE_SHARE = 0.1
"""Share of the opening's round trip up to which, or but for which, a capture is at one end."""
FIRST_GAPS, LEAST_GAPS = 30, 30
"""Gaps of the first windows, which leave a sender in bursts; and how many there must be in all."""
SPACED = 0.8
"""Share of the usual least gap below which no gap behind a link is."""
RARE = 0.01
"""Share of the gaps that may be shorter."""
LEAST_GAP_S = 2e-4
"""Shorter gaps are the time of a host, or of a link too fast to matter."""
LOST_BEFORE = 3
"""Holes filled a round trip later, from which on a capture is behind a place that loses segments."""
FLIGHT_TRIPS = 1.5
"""Round trips of the opening in which the initial window leaves; later segments may be probes."""
PAUSE = 2.0
"""Gaps within the initial window for which it is over before the first acknowledgement comes."""
CLOCKED = 0.25
"""Share of the usual gap between acknowledgements within which a window answers one."""
IDLE = 0.05
"""Share of the segments sent when none is under way, from which on the application may set the pace."""
LEAST_CLOCKED = 0.75
"""Least share of the segments that answer an acknowledgement so: a sender that paces has far fewer."""
CLOCK_S, CLOCK_SHARE = 1e-4, 0.01
"""Most by which the stamps of a round trip may be wrong (s), and as a share."""
START_SHARE = 0.05
"""Share of the capture's time by which senders may begin apart."""
RATE_SHARE = 0.02
"""Most by which the rate between acknowledgements may be wrong."""
STANDING = 1.5
"""Round trips, in least ones, from which on a queue stands before the slowest link."""
Place = Literal["at the sender", "at the receiver", "on the way", "behind the queue of a link"]
AT_SENDER: Place = "at the sender"


@dataclass(frozen=True)
class Facts:
    """The facts of one flow's packets; None where they do not show.

    Attributes:
        place: place of the capture.
        segment_bytes: user data of the largest segment.
        mss_bytes: longest segment that both ends announce, less the options that segments carry.
        option_bytes: TCP options of a segment.
        sack: whether both ends permit selective acknowledgements.
        timestamps: whether segments carry time stamps.
        window_scale: shift of the receiver's windows, 0 without.
        window_bytes: largest window that the receiver announces.
        under_way_bytes: most data sent and not acknowledged.
        initial_window_segments: segments that leave before any is acknowledged.
        least_round_trip_s: least round trip of a full segment.
        segments_per_s: full segments per second through the slowest link, while a queue stands before it.
        begins_s, ends_s: first segment, and last segment or acknowledgement, by the clock of the capture.
        paces: whether segments leave by a clock of the sender and not as acknowledgements come.
    """

    place: Place
    segment_bytes: int | None
    mss_bytes: int | None
    option_bytes: int
    sack: bool | None
    timestamps: bool
    window_scale: int | None
    window_bytes: int | None
    under_way_bytes: int
    initial_window_segments: int | None
    least_round_trip_s: float | None
    segments_per_s: float | None
    begins_s: float
    ends_s: float
    paces: bool


@dataclass
class _Opening:
    """The packets with SYN by direction, the last of each; and the first packet of the third step."""

    forth: Packet | None = None
    back: Packet | None = None
    third_at: float = math.nan

    @property
    def both(self) -> tuple[Packet, Packet] | None:
        """Return the packets of sender and receiver; None if one is not in the capture."""
        return None if self.forth is None or self.back is None else (self.forth, self.back)

    @property
    def own_share(self) -> tuple[float, float]:
        """Return the time in which the sender's end answers (s), and its share of the whole opening."""
        if not self.both:
            return math.nan, math.nan
        client = not self.both[0].acknowledges
        first, second = self.both if client else self.both[::-1]
        steps = second.time - first.time, self.third_at - second.time
        own = steps[1] if client else steps[0]
        return own, own / sum(steps) if sum(steps) > 0 else math.nan


def facts_of(packets: Sequence[Packet], sender: End, log: SenderLog, reaction_s: float) -> Facts:
    """Return the facts of one direction of data.

    Args:
        packets: packets of the connection, both ways.
        sender: end that sends the data.
        log: log of the sender.
        reaction_s: longest time in which a host answers.
    """
    opening, answers, window, stamped = _Opening(), [], -1, False
    lengths: Counter[int] = Counter()
    options: Counter[int] = Counter()
    blocks = False
    for packet in packets:
        forth = packet.source == sender
        if packet.opens:
            if packet.begins and forth:
                opening.forth = packet
            elif packet.begins:
                opening.back = packet
            continue
        if math.isnan(opening.third_at) and opening.both and forth != opening.both[0].acknowledges:
            opening.third_at = packet.time
        if forth and packet.length:
            lengths[packet.length] += 1
            options[packet.option_bytes] += 1
            stamped |= packet.stamp >= 0
        elif not forth and packet.acknowledges:
            answers.append(packet.time)
            window = max(window, packet.window)
            blocks |= bool(packet.blocks)
    option_bytes = options.most_common(1)[0][0]
    ends = opening.both
    mss = min(end.mss for end in ends) if ends else 0
    segment = max(lengths)
    if mss and segment > mss:  # a piece that the device cuts into segments
        segment = mss - option_bytes
    elif not mss and lengths.most_common(1)[0][0] != segment:
        segment = None
    shift = max(ends[1].scale, 0) if ends and ends[0].scale >= 0 else 0
    trip = min((trip for size, trip in log.least_round_trips.items() if size >= (segment or 1)), default=None)
    sack = blocks or (all(end.selective for end in ends) if ends else None)
    return Facts(
        place=_place(opening, log, segment or max(lengths), reaction_s),
        segment_bytes=segment,
        mss_bytes=mss - option_bytes if mss else None,
        option_bytes=option_bytes,
        sack=sack,
        timestamps=stamped,
        window_scale=shift if ends else None,
        window_bytes=window << shift if ends and window >= 0 else None,
        under_way_bytes=max(value for _, value in log.under_way),
        initial_window_segments=_initial_window(opening, log, segment),
        least_round_trip_s=trip,
        segments_per_s=_rate(log, segment, trip),
        begins_s=log.sent[0][0],
        ends_s=max(log.sent[-1][0], log.acknowledged[-1][0] if log.acknowledged else 0.0),
        paces=_paces(log, answers),
    )


def _place(opening: _Opening, log: SenderLog, segment: int, reaction_s: float) -> Place:
    own_s, share = opening.own_share
    far = share > SIDE_SHARE and own_s > reaction_s
    if share > 1 - SIDE_SHARE or (math.isnan(share) and not log.near):
        return "at the receiver"
    trips = [trip for _, trip in log.round_trips] or [math.inf]
    late = sum(came - seen > max(reaction_s, min(trips) / 2) for seen, came in log.filled)
    gaps = np.array([b[0] - a[0] for a, b in pairwise(log.sent) if a[1] >= segment])
    several = any(value >= 2 * segment for _, value in log.under_way)
    if late >= LOST_BEFORE:
        return "behind the queue of a link"
    if opening.forth and several and len(gaps) >= LEAST_GAPS:
        usual = SPACED * float(np.percentile(gaps, 20))
        if usual > LEAST_GAP_S and gaps[:FIRST_GAPS].min() >= usual and np.mean(gaps < usual) <= RARE:
            return "behind the queue of a link"
    return "on the way" if far else AT_SENDER


def _initial_window(opening: _Opening, log: SenderLog, segment: int | None) -> int | None:
    """Return how many segments leave before one is acknowledged, and before a probe may."""
    if not log.acknowledged or segment is None or not opening.both:
        return None
    trip_s = opening.third_at - min(end.time for end in opening.both)
    until = min([log.acknowledged[0][0], *log.retransmissions[:1]])
    if trip_s > 0:
        until = min(until, log.sent[0][0] + FLIGHT_TRIPS * trip_s)
    flight = [(time, size) for time, size in log.sent if time < until]
    gaps = [after - before for (before, _), (after, _) in pairwise(flight)]
    if not flight or log.acknowledged[0][0] - flight[-1][0] < PAUSE * max(gaps, default=0.0):
        return None  # the acknowledgement came while the device was still sending
    return sum(-(-size // segment) for _, size in flight)


def _rate(log: SenderLog, segment: int | None, least_s: float | None) -> float | None:
    """Return the full segments per second between acknowledgements while a queue stands."""
    if segment is None or least_s is None:
        return None
    slow = {time for time, trip in log.round_trips if trip > STANDING * least_s}
    rates = [
        size / segment / (later - earlier)
        for (earlier, _), (later, size) in pairwise(log.acknowledged)
        if earlier in slow and later in slow and later > earlier and size % segment == 0
    ]
    return float(np.median(rates)) if len(rates) >= LEAST_GAPS else None


def _paces(log: SenderLog, answers: Sequence[float]) -> bool:
    """Whether new data leaves by a clock of the sender: neither after an acknowledgement nor in its burst."""
    if len(answers) < LEAST_GAPS or len(log.sent) < LEAST_GAPS:
        return False
    sent = dict(log.sent)
    if np.mean([value <= sent[time] for time, value in log.under_way if time in sent]) > IDLE:
        return False
    times, came = np.array([time for time, _ in log.sent]), np.array(answers)
    near = CLOCKED * float(np.median(np.diff(came)))
    place = np.searchsorted(came, times, side="right") - 1
    known = place >= 0
    after = np.where(known, times - came[np.maximum(place, 0)], 0.0) <= near
    clocked, burst = 0, False
    for answered, gap in zip(after, np.diff(times, prepend=times[0]), strict=True):
        burst = bool(answered or (burst and gap <= near))
        clocked += burst
    return clocked < LEAST_CLOCKED * len(times)


def compare_facts(results: ForeignResults, scenario: Scenario) -> tuple[Finding, ...]:
    """Return a finding for each fact of a file that contradicts the scenario, or one that no fact does."""
    facts, warmup_s = results.facts, results.warmup_s
    found = list(dict.fromkeys(_contradictions(facts, scenario, results.flow, warmup_s)))
    if found or not (facts or warmup_s is not None):
        return tuple(found)
    same = "sizes, options, windows and least round trips in the file are the scenario's, as far as they show"
    return (Finding("facts", "passed", same if facts else "the file leaves out the scenario's run.warmup_s"),)


def _contradictions(
    facts: Sequence[Facts], scenario: Scenario, flow: int | None, warmup_s: float | None
) -> Iterator[Finding]:
    if warmup_s is not None and not isinstance(scenario.run.warmup_s, str):
        yield from _says("run.warmup_s", warmup_s, [scenario.run.warmup_s], whose="file")
    plans = topology(scenario).flows
    plans = plans if flow is None else (plans[flow - 1],)
    owns = [scenario.of_flow(plan.spec) for plan in plans]
    for fact in facts:
        if any(own.transport.protocol != "tcp" for own in owns):
            yield from _says("transport.protocol", "tcp", [own.transport.protocol for own in owns])
            continue
        yield from _of_transport(fact, owns)
        if fact.place != AT_SENDER:
            continue
        least = min(least_round_trip_s(scenario, plan, fact.segment_bytes) for plan in plans)
        trip = fact.least_round_trip_s
        if trip is not None and trip < least * (1 - CLOCK_SHARE) - CLOCK_S:
            allowed = f"the scenario's delays and rates allow no less than {least:.4g} s"
            yield Finding("least round trip", "failed", f"the capture says {trip:.4g} s, and {allowed}")
        if len(facts) == len(plans) == 1:
            yield from _of_rate(fact, scenario)
    starts = [fact.begins_s for fact in facts]
    apart = max(starts, default=0.0) - min(starts, default=0.0)
    own_starts = [own.traffic.start_s for own in owns]
    own_apart = max(own_starts) - min(own_starts)
    if len(facts) > 1 and abs(apart - own_apart) > max(1.0, START_SHARE * max(fact.ends_s for fact in facts)):
        text = (
            f"the capture's senders begin up to {apart:.3g} s apart, the scenario's {own_apart:.3g} s: each "
            "is measured over its own time"
        )
        yield Finding("traffic.start_s", "doubtful", text)


def _of_transport(fact: Facts, owns: Sequence[Scenario]) -> Iterator[Finding]:
    keys = [own.transport for own in owns]
    greedy = all(own.traffic.source == "greedy" for own in owns)
    sizes = [key.mss_bytes for key in keys]
    size, agreed = fact.segment_bytes, fact.mss_bytes
    full = greedy or (size is not None and agreed is not None and size >= agreed)
    if not full and agreed is not None:  # ns-3 does not take the options of a segment off
        size = agreed + fact.option_bytes if agreed + fact.option_bytes in sizes else agreed
    elif not full and size is not None and size < min(sizes):
        size = None  # messages need not fill a segment
    yield from _says("transport.mss_bytes", size, sizes)
    yield from _says("transport.timestamps", fact.timestamps, [key.timestamps for key in keys])
    always = all(key.variant == "sack" for key in keys)
    if always and fact.sack is False:
        yield from _says("transport.variant", "a sender without selective acknowledgements", ["sack"])
    elif not always:
        selective = [key.variant == "sack" or key.sack for key in keys]
        yield from _says("transport.sack", fact.sack, selective)
    yield from _of_window(fact, owns)
    first = fact.initial_window_segments
    allowed = [min(key.initial_window_segments, key.receive_window_segments) for key in keys]
    if first is not None and fact.place == AT_SENDER and (greedy or first > max(allowed)):
        yield from _says("transport.initial_window_segments", first, allowed)
    if fact.paces and greedy and fact.place == AT_SENDER:
        text = (
            "the capture's sender paces its segments: its window is not explained by NewReno, CUBIC or Vegas "
            "(BBR paces, for instance)"
        )
        yield Finding("transport.variant", "doubtful", text)


def _of_window(fact: Facts, owns: Sequence[Scenario]) -> Iterator[Finding]:
    """Look at the receive window: as it is announced, or as the data under way shows it."""
    keys = [own.transport for own in owns]
    windows = [key.receive_window_segments for key in keys]
    most = max(key.mss_bytes for key in keys)
    size = max(fact.mss_bytes or 0, fact.segment_bytes or 0) or most
    under_way = fact.under_way_bytes // max(size, most)
    key = "transport.receive_window_segments"
    if under_way > max(windows):
        text = f"the capture has {under_way} segments under way at once, the scenario at most {max(windows)}"
        yield Finding(key, "failed", text)
    elif fact.window_bytes is not None and all(each.buffers == "fixed" for each in keys):
        step = (1 << (fact.window_scale or 0)) - 1  # windows are rounded down to the scale
        said = fact.window_bytes // size
        if said < min(windows) and (fact.window_bytes + step) // size < min(windows):
            yield from _says(key, said, windows)
        elif said > max(windows):
            yield from _says(key, said, windows, status="doubtful")


def _of_rate(fact: Facts, scenario: Scenario) -> Iterator[Finding]:
    """Look at the rate of the slowest link of a flow alone, if that is a link outside."""
    plan = topology(scenario)
    flow, transport = plan.flows[0], scenario.of_flow(plan.flows[0].spec).transport
    route = plan.route(flow.source, flow.target)
    if fact.segments_per_s is None or any(hop.kind != "outside" for hop in route):
        return
    size = fact.segment_bytes or transport.mss_bytes
    links = [plan.outside[hop.index].link for hop in route]
    bits = [8e-3 * (size + transport.header_bytes + link.header_bytes) for link in links]
    place = min(range(len(links)), key=lambda k: links[k].rate_kbps / bits[k])
    link, said = links[place], fact.segments_per_s * bits[place]
    if link.medium is None and not link.half_duplex and abs(said / link.rate_kbps - 1) > RATE_SHARE:
        key = f"network.outside_links[{route[place].index + 1}].rate_kbps"
        yield from _says(key, float(f"{said:.3g}"), [link.rate_kbps])


def _says(
    key: str,
    said: Any,
    allowed: Iterable[Any],
    *,
    status: Literal["doubtful", "failed"] = "failed",
    whose: str = "capture",
) -> Iterator[Finding]:
    """Yield the finding that a fact is none of the scenario's values; nothing where it does not show."""
    values = list(dict.fromkeys(allowed))
    if said is not None and said not in values:
        theirs, *ours = (f"{x:.4g}" if isinstance(x, float) else str(x).lower() for x in (said, *values))
        yield Finding(key, status, f"the {whose} says {theirs}, the scenario {' or '.join(ours)}", said)
