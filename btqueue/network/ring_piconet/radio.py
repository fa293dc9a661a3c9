"""Connections of a ring that radio errors hold back: the lock-step chain of TCP with channel states.

Between two timeouts a connection goes through a short slow start from a full bucket. It is followed alone on
the polled air, visit by visit, and tells the chain two things: the round-trip times, weighted with the chance
that a run gets so far, and how many segments can be in flight before a buffer refuses one. The traffic of the
others adds what it adds to the round trip of a single segment, as Poisson arrivals.

Approximations, besides those of `btqueue.network.scatternet.losses`: one constant round-trip time; a timeout
of max(minimum, mean + 4 mean deviations); every run begins alike; a buffer that refuses between two whole
numbers of segments in flight is a mixture of both. Measured against the simulator with the errors of the
thesis: goodput 6 % off in the median and 12 % at most, round trips 8 % and 14 %, timeouts 1 % and 3 %; with
constant bit error rates round trips come out 10 to 25 % long.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.opening import new_sender
from btqueue.network.ring_piconet.air import play
from btqueue.network.ring_piconet.network import RingNetwork
from btqueue.network.ring_piconet.records import UNBOUNDED, at_rest, begin, rules_of
from btqueue.network.scatternet.losses import loss_process
from btqueue.network.scatternet.radio import Guess, between, chain_rates, stalled_rates
from btqueue.network.scatternet.server import Population, RoundTrips
from btqueue.scenario import Scenario
from btqueue.transport import LockstepRates, LossProcess, NothingPasses
from btqueue.transport.newreno_chain import UNLIMITED

AFTER_TIMEOUT = 2.0
"""Slow-start threshold after a timeout with a small window (segments; RFC 5681, equation 4)."""
SAMPLES = 60
"""Round trips of a slow start that are followed; a run is hardly ever longer."""
PLACES = 1024
FIRST_RUN = 4.0
"""Segments between timeouts that the search starts from."""
MOST_SEGMENTS = 200.0
NO_RECOVERY = 3
"""Room up to which a refused segment ends in a timeout, for want of three duplicate acknowledgements. With
more the sender recovers, and what the buffer does to long runs is a matter of the orbit, not of the chain."""
TOLERANCE = 5e-3
"""Mismatch of the rate, as a share of the capacity, that counts as solved."""
MOVED = 0.02
"""Relative change of the segments between timeouts that counts as none."""
MOST_STEPS = 40
LONGEST_S = 1e4
"""Time for which a slow start is followed at most (s)."""
LONG_S = 1e6
"""Time after which a channel has forgotten its state (s)."""
GRID = (np.arange(20) + 0.5) / 20
"""Quantiles that stand for the law of what the others add."""
ALMOST_FULL = 0.98
"""Share of the network's capacity up to which the traffic of the others is followed."""
MIXED = ("goodput", "sends", "timeouts", "fast_retransmits", "segment_loss", "mean_window_found")
"""What is taken from a mixture of chains."""


class SlowStart(NamedTuple):
    """What a lone connection meets after a timeout.

    Attributes:
        rtts: round-trip times, in order (s).
        free: the same with room for everything and tokens for everyone.
        room: segments that can be in flight before a buffer refuses one and a timeout follows.
        refused: which segment is the first that is refused; 0 if none is.
    """

    rtts: np.ndarray
    free: np.ndarray
    room: int
    refused: int


@dataclass(frozen=True)
class RadioLimited:
    """Rates of a greedy connection that only radio errors hold back, and the times that it sees (s).

    Attributes:
        loss_on_air: share of the segments that radio errors destroy, in the long run of the channel.
        buffers_first: a run between timeouts is rather ended by a full buffer than by a radio error.
    """

    rates: LockstepRates
    trips: RoundTrips
    loss_on_air: float
    buffers_first: bool
    residual: float
    iterations: int


def slow_start(scenario: Scenario, net: RingNetwork) -> SlowStart:
    """Follow a lone connection from idle, with full buckets."""
    rtts, refused = _followed(scenario, net)
    free, _ = _followed(scenario, net.without_limits())
    free = free[: rtts.size]
    room = 1
    while first_beyond(room + 1) <= refused:
        room += 1
    return SlowStart(rtts, free, room if refused and room <= NO_RECOVERY else UNLIMITED, refused)


def _followed(scenario: Scenario, net: RingNetwork) -> tuple[np.ndarray, int]:
    """Return the round-trip times of the slow start, and which segment is the first to be refused, or 0."""
    state = at_rest(net.ring, scenario.transport.receive_window_segments, PLACES, 2 * SAMPLES)
    begin(state, replace(new_sender(scenario), ssthresh=AFTER_TIMEOUT), [0.0], 0.0)
    rules, own, refused = rules_of(net.ring), state.peripherals, 0
    for known in range(SAMPLES):
        play(state, rules, UNBOUNDED, known + 1, LONGEST_S)
        if int(state.clock["round_trips"][0]) <= known:
            return state.rtts[:known].copy(), refused  # nothing gets through any more
        if not refused and (own["refused_at_buffer"] + own["refused_at_baseband"]).any():
            refused = int(own["sent"][0])
    return state.rtts[:SAMPLES].copy(), refused


def first_beyond(room: int) -> int:
    """Return which segment of a slow start without losses is the first to find `room` others in flight."""
    cwnd, acknowledged = 1.0, 0
    while int(cwnd) <= room:
        acknowledged += 1
        cwnd += 1.0 if cwnd < AFTER_TIMEOUT else 1.0 / cwnd
    return acknowledged + room + 1


def solve_radio_limited(scenario: Scenario, net: RingNetwork, population: Population) -> RadioLimited:
    """Find the rates of greedy connections that are held back by radio errors.

    The fixed point: the rate decides what the others add to the round-trip time, that decides the rate. The
    rate falls as the round trip grows, so the root is unique; the segments between timeouts are corrected on
    the way. If the chain would fill even a saturated network, radio errors are not what limits the rate: the
    answer is an upper bound.

    Raises:
        NoConvergence: rate and round-trip time were not found to agree.
        NotConvergedError: the chain's stationary law was not found.
    """
    scenario = scenario.with_(radio__fading="per-piconet") if net.flows == 1 else scenario  # one link
    capacity, alone = net.air_capacity, slow_start(scenario, net)
    low, high = Guess(0.0), Guess(ALMOST_FULL * capacity)
    guess, segments, of_chain = Guess(capacity / 10), FIRST_RUN, None
    if not alone.rtts.size:
        return stalled(scenario)
    try:
        loss = loss_process(scenario, net, float(population.levels[0].rtts.mean()))
    except NothingPasses:
        return stalled(scenario)
    for step in range(1, MOST_STEPS + 1):
        trips = round_trips(net, population, alone, guess.rate, segments)
        rates, of_chain = rates_at(scenario, net, loss, trips, alone, segments, of_chain)
        found = min(rates.goodput / max(rates.timeouts, 1e-9), MOST_SEGMENTS)
        moved, segments = abs(found / segments - 1.0), found
        guess = Guess(guess.rate, (exchanges(net, rates) - guess.rate) / capacity)
        narrow = high.rate - low.rate < TOLERANCE / 10 * capacity
        if (abs(guess.excess) < TOLERANCE and moved < MOVED) or narrow:
            lost = float(loss.transition(LONG_S)[0] @ loss.data_loss)
            first = alone.room < UNLIMITED and lost * alone.refused < 1.0
            return RadioLimited(rates, trips, lost, first, abs(guess.excess), step)
        low, high = (guess, high) if guess.excess > 0.0 else (low, guess)
        tried = guess.rate + guess.excess * capacity
        guess = Guess(tried) if low.rate < tried < high.rate else between(low, high)
    raise NoConvergence(f"the rate under radio errors: mismatch {guess.excess:.2g} of the capacity")


def stalled(scenario: Scenario) -> RadioLimited:
    """Return the answer for a path that lets nothing through; there is no round trip."""
    never = RoundTrips(np.array([np.nan]), np.ones(1))
    return RadioLimited(stalled_rates(scenario), never, 1.0, False, 0.0, 0)


def exchanges(net: RingNetwork, rates: LockstepRates) -> float:
    """Return the exchanges a second that sends and acknowledgements of a flow amount to on the air."""
    ring = net.ring
    acked = rates.sends * (1.0 - rates.segment_loss)
    return (rates.sends * ring.data_slots + acked * ring.ack_slots) / (ring.data_slots + ring.ack_slots)


def round_trips(
    net: RingNetwork, population: Population, alone: SlowStart, rate: float, segments: float
) -> RoundTrips:
    """Return the law of the round-trip time; `segments` are acknowledged between two timeouts, on average.

    The runs are of geometric length. The others use the air at `rate`; what they add is lost in the wait for
    tokens, if that is longer.
    """
    extra = np.zeros(1)
    if net.flows > 1 and rate > 0.0:
        alone_s = float(population.levels[0].rtts.mean())
        others = population.round_trips((net.flows - 1) * rate)
        extra = np.maximum([others.quantile(share) - alone_s for share in GRID], 0.0)
        extra *= max(others.mean - alone_s, 0.0) / max(float(extra.mean()), 1e-12)
    values = np.maximum(np.add.outer(alone.free, extra), alone.rtts[:, None])
    survival = (segments / (1.0 + segments)) ** np.arange(alone.rtts.size)
    return RoundTrips.of(values.ravel(), np.repeat(survival, extra.size))


def rates_at(
    scenario: Scenario,
    net: RingNetwork,
    loss: LossProcess,
    trips: RoundTrips,
    alone: SlowStart,
    segments: float,
    of_chain: int | None,
) -> tuple[LockstepRates, int | None]:
    """Solve the chain with these round trips; return that window of it which is large enough, too.

    The first segment that a buffer refuses lies between those that two whole rooms would refuse: the mixture
    of their chains is the one that lets as many segments through.
    """
    transport = scenario.transport
    rto = min(max(transport.min_rto_s, trips.mean + 4 * trips.deviation), transport.max_rto_s)
    spacing = sum(piece.packet.slots + 1 for piece in net.ring.data) * SLOT_S

    def solve(room: int, window: int | None) -> tuple[LockstepRates, int]:
        return chain_rates(scenario, loss, trips.mean, rto, spacing, window, room)

    if alone.room == UNLIMITED:
        return solve(UNLIMITED, of_chain)
    goes_on = segments / (1.0 + segments)
    fewer, more = (goes_on ** first_beyond(alone.room + k) for k in (0, 1))
    share = float(np.clip((fewer - goes_on**alone.refused) / max(fewer - more, 1e-12), 0.0, 1.0))
    return _mixture(solve, alone.room, share, of_chain)


def _mixture(
    solve: Callable[[int, int | None], tuple[LockstepRates, int]],
    room: int,
    share: float,
    of_chain: int | None,
) -> tuple[LockstepRates, int | None]:
    """Return the rates with this room and, with the weight `share`, with one more."""
    one, of_chain = solve(room, of_chain)
    if share == 0.0:
        return one, of_chain
    other, of_chain = solve(room + 1, of_chain)
    mixed = {name: (1 - share) * getattr(one, name) + share * getattr(other, name) for name in MIXED}
    return replace(one, **mixed), of_chain
