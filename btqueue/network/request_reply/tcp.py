"""Request-reply sessions over TCP: without losses as they repeat, with losses as a chain for each sender."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from btqueue.network.request_reply.connection import (
    CLIENT,
    GOODBYE,
    REPLY,
    REQUEST,
    SERVER,
    Plan,
    Session,
    Sessions,
    plan_of,
)
from btqueue.network.request_reply.law import (
    QUANTILES,
    Law,
    law_of_period,
    one_way,
    session_metrics,
    with_chance,
)
from btqueue.network.request_reply.losses import Sent, long_run
from btqueue.network.request_reply.stretches import Course, lay_out
from btqueue.network.request_reply.timetable import NS, Chance
from btqueue.scenario import Scenario

POINTS = 2048
"""Of the law of session times."""
LONGEST = {True: 20.0, False: 4.0}
"""Multiples of the mean to which that law goes, with losses and without."""
MEASURED_LOSS = 0.03
"""Loss of segments to which errors were measured on fast links."""
RARELY = 0.1
"""Weight of what a chain leaves out, of the chance that a message gets through, that is warned of."""
RARE = ROUNDED = 1e-9
SPREAD = 20
LONG_PAUSE_S = 1e4
IN_A_ROW = 3
"""Full segments that are sent at least to see how they follow each other."""
AMPLE = 1_000_000
"""Packets of a buffer that never overflows."""


def answer_tcp(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    plan = plan_of(scenario)
    return _with_losses(scenario, plan) if plan.lossy else _without_losses(scenario, plan)


def _without_losses(scenario: Scenario, plan: Plan) -> tuple[dict, dict]:
    """Average over the sessions of a period."""
    period, jitter_s = Sessions(plan).play(), scenario.run.jitter_s
    count = len(period)
    times = [s.answered - s.asked for s in period]
    session = float(np.mean([t + s.chance.repeated_ns for t, s in zip(times, period, strict=True)])) / NS
    cycle = float(np.mean([s.next_ns + s.whole.repeated_ns for s in period])) / NS
    step = LONGEST[False] * session / POINTS
    law = law_of_period([time / NS for time in times], step, POINTS)
    law = Law(step, with_chance(law, period[0].chance, step, jitter_s))
    metrics = session_metrics(scenario, law, session, law.deviation, cycle)
    counts = ("timeouts_per_s", "fast_retransmits_per_s", "retransmissions_per_s")
    metrics |= {"throughput_kbps": metrics["goodput_kbps"], **dict.fromkeys(counts, np.zeros(2))}
    delay_s = jitter_s if plan.way.polled is None else 0.0  # waiting for a poll absorbs it
    samples = [np.concatenate([s.samples[end] for s in period]) / NS for end in (CLIENT, SERVER)]
    weighted = [(values, np.ones(len(values))) for values in samples]
    known = not any(s.whole.repeated_ns for s in period)  # repeated packets are known to the mean alone
    metrics |= round_trips(weighted, delay_s, spread=known)
    if plan.handshake:
        metrics["connect_time_s"] = one_way(float(np.mean([s.asked for s in period])) / NS)
    return metrics, {
        "method": "request-reply sessions over TCP: recursion over segments",
        "converged": True, "residual": 0.0, "iterations": count, "errors": "1 %", "warnings": [],
    }  # fmt: skip


def round_trips(
    samples: list[tuple[np.ndarray, np.ndarray]], delay_s: float, *, spread: bool
) -> dict[str, np.ndarray]:
    """Return mean, deviation and quantiles of the round trips (s) of both senders, given with their weights.

    To the samples, which hold the means of the processing delays, the spread of two of them is added: uniform
    up to `delay_s`, one for the segment and one for its acknowledgement. `spread`: whether it is known.
    """
    even = (np.arange(SPREAD) + 0.5) / SPREAD - 0.5
    even = (
        np.sort((even[:, None] + even).ravel())[SPREAD // 2 :: SPREAD] * delay_s if delay_s else np.zeros(1)
    )
    found: dict[str, list[float]] = {}
    for values, weights in samples:
        times, shares = np.add.outer(values, even).ravel(), np.repeat(weights, len(even))
        if not len(times):
            times, shares = np.array([np.nan]), np.ones(1)
        mean = float(np.average(times, weights=shares))
        found.setdefault("rtt_s", []).append(mean)
        if spread:
            found.setdefault("rtt_sd_s", []).append(
                float(np.sqrt(np.average((times - mean) ** 2, weights=shares)))
            )
            order = np.argsort(times)
            rising = np.cumsum(shares[order]) * (1.0 + ROUNDED)
            for percent in QUANTILES:
                place = min(
                    int(np.searchsorted(rising, percent / 100 * rising[-1] / (1.0 + ROUNDED))), len(order) - 1
                )
                found.setdefault(f"rtt_p{percent}_s", []).append(float(times[order[place]]))
    return {name: np.array(values) for name, values in found.items()}


# ---------------------------------------------------------------------------------------------- with losses


def ample(plan: Plan) -> Plan:
    """Return the plan with buffers that never overflow."""
    routes = tuple(tuple(hop._replace(buffer=AMPLE) for hop in route) for route in plan.way.routes)
    return replace(plan, way=plan.way._replace(routes=(routes[0], routes[1])))


def second(plan: Plan, window: float) -> Session:
    """Return the second session that loses nothing, both windows being this one at first."""
    sessions = Sessions(plan, window)
    sessions.one()
    for end in sessions.ends:
        end.cwnd = window
    return sessions.one()


class Undisturbed(NamedTuple):
    """Sessions that lose nothing and wait for no window but the receiver's: means over a period (ns).

    Attributes:
        spans_ns: of request, reply and good-bye.
        round_trips_s: mean of both senders.
        chance: what is random on the way to the reply; `repeated_ns` of repeated packets to the end.
    """

    spans_ns: np.ndarray
    round_trips_s: list[float]
    chance: Chance
    repeated_ns: float


def undisturbed(plan: Plan) -> Undisturbed:
    """Play sessions over ample buffers, with windows open."""
    period = Sessions(plan, window=float(max(map(len, plan.messages)))).play()
    marks = np.array([(s.asked, s.requested, s.answered, s.over) for s in period], float)
    samples = [np.concatenate([s.samples[end] for s in period]) / NS for end in (CLIENT, SERVER)]
    return Undisturbed(
        np.diff(marks, axis=1).mean(axis=0), [float(values.mean()) for values in samples], period[0].chance,
        float(np.mean([s.whole.repeated_ns for s in period])),
    )  # fmt: skip


def courses_of(scenario: Scenario, plan: Plan) -> tuple[tuple[Course, Course], Undisturbed]:
    """Return what both senders send, and sessions that lose nothing."""
    transport = scenario.transport
    usual = replace(ample(plan), fresh=False, handshake=False, ack_every=1)
    alike = undisturbed(usual)
    cycle = plan.way.cycle_ns  # a pause so long that all is quiet, in phase with the polls
    quiet = replace(usual, pause_ns=plan.pause_ns + round(LONG_PAUSE_S * NS) // cycle * cycle)
    open_ = replace(quiet, windows=(AMPLE, *plan.windows[1:]))
    most = float(max(map(len, plan.messages)))
    alone, windowed = second(open_, 1.0), second(quiet, most)
    full = tuple((m[0],) * max(IN_A_ROW, len(m)) if m else m for m in plan.messages)
    burst = second(replace(open_, messages=full), max(most, IN_A_ROW))
    asked, replied, left = alike.spans_ns
    between = {
        CLIENT: [replied, plan.pause_ns] if plan.messages[GOODBYE] else [replied + plan.pause_ns],
        SERVER: [left + plan.pause_ns + asked],
    }
    found, left_in = [], len(plan.messages[GOODBYE])
    for end, numbers in ((CLIENT, (REQUEST, GOODBYE)), (SERVER, (REPLY,))):
        numbers = [number for number in numbers if plan.messages[number]]
        messages = [plan.messages[number] for number in numbers]
        (sent, acknowledged), arrived = alone.trips[end][0], alone.arrivals[end][0]
        gaps = np.diff(burst.arrivals[end][: max(IN_A_ROW, len(messages[0]))])
        last = np.cumsum([len(message) for message in messages]) - 1
        late = [windowed.trips[end][place][1] - windowed.arrivals[end][place] for place in last]
        opens = (handshake_s(plan), handshake_loss(plan)) if plan.handshake and end == CLIENT else None
        course = Course(
            messages=tuple(map(len, messages)), loss=messages[0][0].losses[end],
            last_loss=tuple(message[-1].losses[end] for message in messages),
            ack_loss=plan.small.losses[1 - end], gaps_s=tuple(gap / NS for gap in between[end]),
            round_trip_s=(acknowledged - sent) / NS,
            spacing_s=float(np.median(gaps)) / NS,
            last_spacing_s=(0.0,) * len(messages), back_s=(acknowledged - arrived) / NS,
            answer_s=tuple((time - (acknowledged - arrived)) / NS for time in late),
            room=min(hop.buffer + 1 for hop in plan.way.routes[end]), windows=plan.windows,
            timer_s=(transport.initial_rto_s, transport.min_rto_s, transport.max_rto_s),
            backoff=transport.rto_backoff, timestamps=plan.timestamps, ack_every=plan.ack_every,
            ack_delay_s=plan.ack_delay_ns / NS, fresh=plan.fresh, handshake=opens,
            # a client that leaves in one segment sends it before what it has to acknowledge
            leaves=plan.fresh and (left_in <= 1 if end == SERVER else left_in > 0),
        )  # fmt: skip
        # the last segment of a message is shorter, or waits for polls and turns: as without losses
        without = [arrivals_without(course, message)[0] for message in range(len(messages))]
        spacing = tuple(
            float(alike.spans_ns[number] / NS - time) for number, time in zip(numbers, without, strict=True)
        )
        found.append(replace(course, last_spacing_s=spacing))
    return (found[0], found[1]), alike


def arrivals_without(course: Course, message: int) -> tuple[float, np.ndarray]:
    """Return when a message that loses nothing has arrived, and its round trips (s), with windows open."""
    count, usual = course.messages[message], replace(course, ack_every=1, room=AMPLE)
    window = np.full((1, count), float(count))
    way = lay_out(usual, np.array([message]), np.array([count]), window)
    round_trips = (way.acknowledged - way.sent)[0]
    return float(way.acknowledged[0, -1] - course.back_s - course.answer_s[message]), round_trips


def _with_losses(scenario: Scenario, plan: Plan) -> tuple[dict, dict]:
    """Average over the chains of both senders, whose times add up."""
    courses, alike = courses_of(scenario, plan)
    both = client, server = [long_run(course) for course in courses]
    request, reply = client.laws[0], server.laws[0]
    session_s = request.mean + reply.mean + alike.chance.repeated_ns / NS
    cycle = request.mean + reply.mean + sum(law.mean for law in client.laws[1:])
    cycle += (plan.pause_ns + alike.repeated_ns) / NS
    connect_s = connecting_s(scenario, plan) if plan.handshake else 0.0
    cycle += connect_s
    step = LONGEST[True] * session_s / POINTS
    law = np.fft.irfft(request.transform(step, POINTS) * reply.transform(step, POINTS), 2 * POINTS)[:POINTS]
    jitter_s = scenario.run.jitter_s
    law = with_chance(np.maximum(law, 0.0), alike.chance, step, jitter_s)
    again = np.array([sent.resent for sent in both]) / cycle
    variance = request.variance + reply.variance + alike.chance.variance / NS**2
    metrics = session_metrics(scenario, Law(step, law), session_s, variance**0.5, cycle)
    goodput = metrics["goodput_kbps"]
    mss = np.minimum(scenario.transport.mss_bytes, goodput * cycle * 125)
    metrics |= {
        "throughput_kbps": goodput + again * mss * 8 / 1000,
        "timeouts_per_s": np.array([sent.timeouts for sent in both]) / cycle,
        "fast_retransmits_per_s": np.array([sent.fast_retransmits for sent in both]) / cycle,
        "retransmissions_per_s": again,
    }  # fmt: skip
    if plan.handshake:
        metrics["connect_time_s"] = one_way(connect_s)
    delay_s = jitter_s if plan.way.polled is None else 0.0
    # the mean of those that meet nothing but each other is known; the chain's recursion leaves meetings out
    samples = []
    for sent, course, mean in zip(both, courses, alike.round_trips_s, strict=True):
        own = np.concatenate([arrivals_without(course, place)[1] for place in range(len(course.messages))])
        samples.append((sent.round_trips[0] + mean - own.mean(), sent.round_trips[1]))
    metrics |= round_trips(samples, delay_s, spread=True)
    unfollowed = max(sent.unfollowed for sent in both)
    return metrics, {
        "method": "request-reply sessions over TCP: absorbing chain of the stretches between losses",
        "converged": True, "residual": unfollowed, "iterations": 1,
        "warnings": [*_rarely(both), *_doubts(scenario, courses)],
    }  # fmt: skip


def _rarely(both: Sequence[Sent]) -> Iterator[str]:
    """Yield a warning if messages end so rarely that what a chain leaves out matters."""
    if (share := max(sent.against_ends for sent in both)) > RARELY:
        yield (
            f"messages seldom get through: what the model leaves out is {share:.0%} of the chance that one "
            "does; sessions may be that much off"
        )


def _doubts(scenario: Scenario, courses: tuple[Course, Course]) -> Iterator[str]:
    """Yield what makes sessions with losses uncertain."""
    for course in courses:
        longest = max(course.messages)
        burst = lay_out(course, np.zeros(1, int), np.array([longest]), np.full((1, longest), float(longest)))
        if burst.full.any():
            yield (
                f"{longest} segments in a row overflow a buffer of {course.room - 1} packets: timeouts came "
                "out 13 to 67 % too few, and sessions up to 9 % too long"
            )
    worst = max((course.loss for course in courses if max(course.messages) > 1), default=0.0)
    if any(link.loss_block_bytes for link in scenario.network.outside_links):
        return  # measured to every third segment, where lines are slow
    if worst > MEASURED_LOSS:
        yield (
            f"{worst:.2g} of the segments are lost, and errors were measured to {MEASURED_LOSS:g}: beyond, "
            "goodput comes out up to 28 % too high and sessions 23 % too short"
        )


def handshake_s(plan: Plan) -> float:
    """Return the time (s) of a handshake that loses nothing."""
    return Sessions(ample(plan)).one().asked / NS


def handshake_loss(plan: Plan) -> float:
    """Return the probability that SYN or SYN-ACK is lost."""
    return 1.0 - (1.0 - plan.small.losses[CLIENT]) * (1.0 - plan.small.losses[SERVER])


def connecting_s(scenario: Scenario, plan: Plan) -> float:
    """Return the mean time of a handshake: SYN or SYN-ACK is lost a geometric number of times."""
    transport, lost = scenario.transport, handshake_loss(plan)
    found, share, timeout = handshake_s(plan), lost, transport.initial_rto_s
    while share * timeout > RARE * found:
        found, share = found + share * timeout, share * lost
        timeout = min(2.0 * timeout, transport.max_rto_s)
    return found
