"""One or two hops, in one piconet: the orbit of the window, and the branches that expiries of the timer make.

The order of the segments is the same in all states of the radio. The chances of expiries are those of the
state that delivers most, whose times the others stretch (`chain.timer`); what they do to it they do to all.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.answers import NoConvergence
from btqueue.network.chain.flow import Flow, capacity
from btqueue.network.chain.orbit import Orbit, Tally, follow
from btqueue.network.chain.phases import long_run
from btqueue.network.chain.pipes import Line, Pace, Rounds
from btqueue.network.chain.radio import RadioCourse, progress
from btqueue.network.chain.timer import COURSES, EVENT, PROGRESS, Expiries, chances
from btqueue.network.opening import new_sender
from btqueue.scenario import Scenario

Array = NDArray[np.float64]

FAR = 10.0
"""Deviations that no wait is longer than its mean."""
NEVER = 1e-9
"""Chance of any expiry up to which there is none."""
LEAST = 0.002
"""Chance up to which a branch counts as the likeliest one; at twice this chance it is followed in full."""
WORTH_BRANCHING = 0.02
"""Chance from which on further expiries in a branch are looked for."""
MOST_EXPIRIES = 20
"""In one period; connections that move have three at most."""


class Branch(NamedTuple):
    """A period with expiries before some events, and its chance in each course of the times.

    `again` is the mean number of expiries besides, in the wait for events before which it expired, by course.
    """

    tally: Tally
    chance: Array
    again: Array


class Share(NamedTuple):
    """A kind of period: its share of all periods, and further expiries, which are not in its tally."""

    share: float
    tally: Tally
    again: float = 0.0


class Timers(NamedTuple):
    """What the chances depend on: the radio's course in the orbit's time, and the bounds of the timeout."""

    course: tuple[Array, Array]
    bounds: tuple[float, float]

    @property
    def turns(self) -> bool:
        """Whether the radio changes."""
        return float(np.ptp(np.diff(self.course[0]))) > 0.0


def flows_in_one_piconet(scenario: Scenario, course: RadioCourse) -> list[Flow]:
    """Return what the connection gets in each state of the radio."""
    paces = [Pace(state.service, scenario.network.hops) for state in course.states]
    orbits = [_orbit(scenario, pace) for pace in paces]
    plain = [_flow([Share(1.0, orbit.tally)], pace) for orbit, pace in zip(orbits, paces, strict=True)]
    most = int(
        np.argmax([state.share * flow.goodput for state, flow in zip(course.states, plain, strict=True)])
    )
    passed, edges = progress(course, [flow.rtt for flow in plain])
    bounds = (scenario.transport.min_rto_s, scenario.transport.max_rto_s)
    timers = Timers((passed * plain[most].rtt, edges), bounds)
    if not _may_expire(orbits[most], timers):
        return plain
    mixed = _flow(_shares(orbits[most], paces[most], timers), paces[most])
    return [_alike(flow, plain[most], mixed) for flow in plain]


def _may_expire(orbit: Orbit, timers: Timers) -> bool:
    """Whether some wait for a new acknowledgement comes near the least timeout."""
    if not orbit.waits:
        return False
    passed, edges = timers.course
    slowest = float((np.diff(edges) / np.diff(passed)).max())
    longest = last = spread = 0.0
    for event in orbit.events:
        spread += event.chance.leap**2 + event.chance.step**2
        if event.kind == PROGRESS:
            longest = max(longest, event.time - last + FAR * sqrt(spread))
            last, spread = event.time, 0.0
    return longest * slowest > timers.bounds[0]


def _orbit(scenario: Scenario, pace: Pace) -> Orbit:
    pipe = (Line if pace.hops == 1 else Rounds)(pace, capacity(scenario))
    return follow(new_sender(scenario), pipe)


def _shares(orbit: Orbit, pace: Pace, timers: Timers) -> list[Share]:
    """Return the periods that there are, with and without expiries."""
    found = _expiries(orbit, orbit.begin, timers)
    branches = list(_branches(orbit, found, np.ones(COURSES), np.zeros(COURSES), timers))
    if len(branches) == 1:
        return [Share(1.0, orbit.tally)]
    weights = np.full(COURSES, 1.0 / COURSES)
    if timers.turns:
        periods = np.array([max(1, branch.tally.recoveries) for branch in branches])
        lasting = np.array([branch.tally.elapsed for branch in branches]) / periods
        spreads = np.sqrt(pace.variance * np.array([branch.tally.sent for branch in branches]) / periods)
        chance = np.array([branch.chance for branch in branches])
        weights = long_run(chance, lasting, spreads, found.starts, float(timers.course[0][-1]))
    return [
        Share(float(branch.chance @ weights), branch.tally, float(branch.again @ weights))
        for branch in branches
    ]


def _expiries(orbit: Orbit, begin: int, timers: Timers) -> Expiries:
    rows = [(*event[:4], *event.chance) for event in orbit.events]
    return chances(np.array(rows, EVENT), begin, *timers)


def _branches(
    orbit: Orbit, found: Expiries, chance: Array, again: Array, timers: Timers, before: int = 0
) -> Iterator[Branch]:
    """Yield an orbit of this chance, and what branches off from it where the timer may expire.

    Raises:
        NoConvergence: the timer has expired very often `before`: the connection stalls.
    """
    if before > MOST_EXPIRIES:
        raise NoConvergence(
            f"the retransmission timer expires more than {MOST_EXPIRIES} times in a period of the window: "
            "the connection stalls, and the model follows one that moves"
        )
    expiring, left = _followed(orbit, found, chance)
    yield Branch(orbit.tally, left, again)
    for event, (share, more) in expiring.items():
        branch = orbit.branch(event)
        if share.mean() > WORTH_BRANCHING:
            yield from _branches(
                branch, _expiries(branch, event + 1, timers), share, more, timers, before + 1
            )
        else:
            yield Branch(branch.tally, share, more)


def _followed(orbit: Orbit, found: Expiries, chance: Array) -> tuple[dict[int, tuple[Array, Array]], Array]:
    """Return the chances and further expiries of the events that are followed, and the chance of none."""
    expiring, left = {}, chance
    for event in orbit.waits:
        expiring[event] = left * found.late[:, event], left * found.again[:, event]
        left = left - expiring[event][0]
    means = {event: float(share.mean()) for event, (share, _) in expiring.items()}
    if sum(means.values()) < NEVER:
        return {}, chance
    likeliest = max(means, key=lambda event: means[event])
    followed = {likeliest: expiring.pop(likeliest)}
    for event, (share, more) in expiring.items():
        own = min(max(means[event] / LEAST - 1.0, 0.0), 1.0)
        before = followed[likeliest]
        followed[likeliest] = before[0] + (1.0 - own) * share, before[1] + (1.0 - own) * more
        if own > 0.0:
            followed[event] = own * share, own * more
    return followed, left


def _flow(periods: list[Share], pace: Pace) -> Flow:
    """The mean of periods with these shares."""
    tallies = [(period.share / max(1, period.tally.recoveries), period.tally) for period in periods]
    again = sum(period.again for period in periods)

    def total(name: str) -> float:
        return sum(share * getattr(tally, name) for share, tally in tallies)

    elapsed, seen = total("elapsed"), total("acknowledgements")
    return Flow(
        goodput=total("delivered") / elapsed,
        sends=total("sent") / elapsed,
        window=total("windows") / seen,
        cwnd=total("cwnds") / seen,
        fast_retransmits=total("recoveries") / elapsed,
        timeouts=(total("expiries") + again) / elapsed,
        losses=total("lost") / elapsed,
        rtts=np.concatenate([_phases(tally, pace, share) for share, tally in tallies], 1),
        iterations=int(seen),
        residual=0.0,
    )


def _alike(flow: Flow, plain: Flow, mixed: Flow) -> Flow:
    """Return what becomes of a flow by expiries that make of a plain one a mixed one."""
    pace = flow.goodput / plain.goodput
    times = flow.rtts[:2].mean(1) / np.maximum(plain.rtts[:2].mean(1), 1e-300)

    def changed(name: str) -> float:
        before = getattr(plain, name)
        return getattr(flow, name) * getattr(mixed, name) / before if before else getattr(mixed, name) * pace

    names = ("goodput", "sends", "window", "cwnd", "fast_retransmits", "timeouts", "losses")
    rtts = mixed.rtts * np.array([*times, 1.0])[:, None]
    return replace(flow, rtts=rtts, **{name: changed(name) for name in names})


def _phases(tally: Tally, pace: Pace, share: float) -> Array:
    """Round trips of the orbit, the deviation that repetitions give each, and a common weight."""
    means, segments = np.array(tally.rtts).T
    return np.stack([means, np.sqrt(segments * pace.variance), np.full(len(means), share)])
