"""Connections that radio errors hold back: the lock-step chain of TCP with channel states.

Approximations, besides those of `scatternet.losses`: one constant round-trip time, that of a lone connection
with its mean window, stretched by the traffic of the others as Poisson arrivals stretch it; a timeout of
max(minimum, mean + 4 mean deviations). Packets refused by a full buffer are left out: windows are small where
radio errors decide.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.scatternet.losses import Hops, loss_process
from btqueue.network.scatternet.server import Level, Population, RoundTrips
from btqueue.scenario import Scenario
from btqueue.transport import LockstepRates, LossProcess, NothingPasses, lockstep_rates
from btqueue.transport.newreno_chain import UNLIMITED

WINDOWS = (4, 5, 6, 8)
"""Windows of the exact chain that are tried in turn: small ones are enough where losses are frequent."""
WINDOW_TOLERANCE = 2e-3
"""Change of goodput and timeouts from one window to the next that counts as none."""
TOLERANCE = 5e-3
"""Mismatch of rate or window that counts as solved, relative."""
GRID = (np.arange(40) + 0.5) / 40
"""Quantiles that stand for the law of a round-trip time."""
MARGIN = 0.1
"""Least share of the interval that a step of false position cuts off."""
JUMP = 0.05
"""Mismatch, as a share of the capacity, that is not solved even where the interval is narrow."""
MOST_STEPS = 40
"""Evaluations of the chain, at most."""
ALMOST_FULL = 0.98
"""Share of the network's capacity up to which the traffic of the others is followed."""


class Network(Hops, Protocol):
    """A scatternet or a single piconet."""

    @property
    def flows(self) -> int:
        """Flows of the network."""
        ...


class Windows(NamedTuple):
    """Windows of a connection (segments).

    Attributes:
        found: mean that acknowledgements find.
        of_chain: receive window of a chain that is large enough; None if that is not known yet.
    """

    found: float
    of_chain: int | None


FIRST = Windows(1.5, None)
"""Where the search starts."""


@dataclass(frozen=True)
class RadioLimited:
    """Rates of a greedy connection that only radio errors hold back, and the times that it sees (s)."""

    rates: LockstepRates
    trips: RoundTrips
    rto: float
    windows: Windows
    residual: float
    iterations: int


def solve_radio_limited(
    scenario: Scenario, net: Network, population: Population, alone: list[Level]
) -> RadioLimited:
    """Find the rates of greedy connections that are held back by radio errors alone.

    The fixed point: rate and window decide the round-trip time, that decides the rate. The rate falls as the
    round trip grows, so the root in the rate is unique; the window is corrected on the way. If the chain
    would fill even a saturated network, radio errors are not what limits the rate: the answer is an upper
    bound. `alone` is a lone connection with 1, 2, ... segments in flight.

    Raises:
        NoConvergence: rate and round-trip time were not found to agree.
        NotConvergedError: the chain's stationary law was not found.
    """
    capacity = population.capacity / net.flows
    low, high = Guess(0.0), Guess(ALMOST_FULL * capacity)
    guess, windows = Guess(capacity / 4), FIRST
    for step in range(1, MOST_STEPS + 1):
        found, used = _rates_at(scenario, net, population, alone, guess.rate, windows)
        moved = abs(found.windows.found / windows.found - 1.0)
        windows = found.windows
        guess = Guess(guess.rate, (used - guess.rate) / capacity)
        narrow = high.rate - low.rate < TOLERANCE / 10 * capacity
        if max(abs(guess.excess), moved) < TOLERANCE or narrow:
            if narrow and abs(guess.excess) > JUMP and high.rate < ALMOST_FULL * capacity:
                break
            return replace(found, residual=abs(guess.excess), iterations=step)
        low, high = (guess, high) if guess.excess > 0.0 else (low, guess)
        guess = between(low, high)
    raise NoConvergence(f"the rate under radio errors: mismatch {guess.excess:.2g} of the capacity")


class Guess(NamedTuple):
    """A rate that was tried, and by how much the chain's rate exceeds it; not a number if not known."""

    rate: float
    excess: float = np.nan


def between(low: Guess, high: Guess) -> Guess:
    """Return the next rate to try: false position, kept off the ends; the middle if an end is unknown."""
    if np.isnan(low.excess) or np.isnan(high.excess):
        return Guess((low.rate + high.rate) / 2)
    share = low.excess / (low.excess - high.excess)
    return Guess(low.rate + (high.rate - low.rate) * float(np.clip(share, MARGIN, 1.0 - MARGIN)))


def _rates_at(
    scenario: Scenario,
    net: Network,
    population: Population,
    alone: list[Level],
    rate: float,
    windows: Windows,
) -> tuple[RadioLimited, float]:
    """Solve the chain where the flows use the network for `rate` exchanges a second each.

    Returns the answer, and the exchanges a second that it amounts to: damaged packets travel on, and an
    acknowledgement is a share of an exchange.
    """
    transport = scenario.transport
    trips = round_trips(net, population, alone, rate, windows)
    rtt = trips.mean
    rto = min(max(transport.min_rto_s, rtt + 4 * trips.deviation), transport.max_rto_s)
    try:
        loss = loss_process(scenario, net, rtt)
    except NothingPasses:
        return _stalled(scenario, trips), 0.0
    spacing = max(float(alone[1].rtts.mean() - alone[0].rtts.mean()), 0.0)
    rates, of_chain = chain_rates(scenario, loss, rtt, rto, spacing, windows.of_chain)
    acked = rates.sends * (1.0 - rates.segment_loss)
    ring = net.ring
    used = (rates.sends * ring.data_slots + acked * ring.ack_slots) / (ring.data_slots + ring.ack_slots)
    windows = Windows(rates.mean_window_found, of_chain)
    return RadioLimited(rates, trips, rto, windows, 0.0, 0), used


def round_trips(
    net: Network, population: Population, alone: list[Level], rate: float, windows: Windows
) -> RoundTrips:
    """Return the law of the round-trip time with these windows; each flow uses the network at `rate`.

    That of a lone connection, with one of the two whole windows next to the mean, times what the others'
    traffic adds to the round trip of a single segment; but the others hold no more than this flow does.
    """
    low = min(int(windows.found), len(alone) - 1)
    share = min(windows.found - low, 1.0)
    own = [np.quantile(level.rtts, GRID) for level in alone[low - 1 : low + 1]]
    busy = population.round_trips(net.flows * rate)
    stretch = np.array([busy.quantile(q) for q in GRID]) / population.levels[0].rtts.mean()
    values = np.concatenate([np.outer(one, stretch).ravel() for one in own])
    weights = np.repeat([1.0 - share, share], stretch.size * GRID.size)
    law = RoundTrips.of(values, weights)
    least = (1.0 - share) * own[0].mean() + share * own[1].mean()
    most = float(population.round_trip(np.array([net.flows * windows.found]))[0])
    return law.with_mean(min(law.mean, max(most, least)))


def chain_rates(
    scenario: Scenario,
    loss: LossProcess,
    rtt: float,
    rto: float,
    spacing: float,
    of_chain: int | None,
    room: int = UNLIMITED,
) -> tuple[LockstepRates, int]:
    """Solve the exact chain with the smallest window that is large enough; return that, too.

    Losses keep the window small, and a chain of a smaller receive window is then the same chain.
    """
    transport = scenario.transport

    def solve(window: int) -> LockstepRates:
        return lockstep_rates(
            window=window,
            loss=loss,
            rtt=rtt,
            min_rto=rto,
            max_rto=max(transport.max_rto_s, rto),
            rto_backoff=transport.rto_backoff,
            segment_spacing=spacing,
            room=room,
        )

    if of_chain is not None:
        return solve(of_chain), of_chain
    smaller, *larger = sorted({min(w, transport.receive_window_segments) for w in WINDOWS})
    rates = solve(smaller)
    for window in larger:
        before, rates = rates, solve(window)
        if np.allclose(*((r.goodput, r.timeouts) for r in (before, rates)), rtol=WINDOW_TOLERANCE):
            return before, smaller
        smaller = window
    return rates, smaller


def _stalled(scenario: Scenario, trips: RoundTrips) -> RadioLimited:
    """Return the answer for a path that lets nothing through."""
    rates = stalled_rates(scenario)
    return RadioLimited(rates, trips, 1.0 / rates.sends, FIRST, 0.0, 0)


def stalled_rates(scenario: Scenario) -> LockstepRates:
    """Return the rates of a path that lets nothing through: one segment for each expiry."""
    transport = scenario.transport
    rate = 1.0 / (transport.max_rto_s if transport.rto_backoff else transport.initial_rto_s)
    return LockstepRates(
        goodput=0.0,
        sends=rate,
        timeouts=rate,
        fast_retransmits=0.0,
        segment_loss=1.0,
        mean_cwnd=1.0,
        mean_window=1.0,
        mean_window_found=1.0,
        mean_window_at_round_ends=1.0,
        converged=True,
        residual=0.0,
        iterations=0,
        states=1,
    )
