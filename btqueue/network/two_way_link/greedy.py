"""Greedy connections over one link: window, goodput and round trips.

The window of Vegas walks (`transport.vegas.window_walk`) over the cycles of `two_way_link.window`; that of
other variants, which lose nothing here, is the receive window. Both directions of two-way traffic are alike.
"""

from typing import NamedTuple

from btqueue.network.mixtures import Mixture, mixture
from btqueue.network.two_way_link.air import Air, air_of
from btqueue.network.two_way_link.window import Cycle, both_ways, cycles, one_way
from btqueue.scenario import Scenario
from btqueue.transport.vegas import Walk, window_walk


class Saturated(NamedTuple):
    """Law of the window with the cycle of each, the walk it comes from, and both per segment rates (1/s)."""

    air: Air
    windows: dict[int, float]
    cycles: dict[int, Cycle]
    walk: Walk | None
    acks: float
    rate: float

    @property
    def rtt(self) -> Mixture:
        """Law of the round-trip samples, one for each acknowledgement: fast windows count for more."""
        return mixture(
            [
                (share / self.cycles[w].period, c.least, c.rtt, c.variance)
                for w, share in self.windows.items()
                if share > 1e-6 and (c := self.cycles[w])
            ]
        )


def ack_every(scenario: Scenario) -> int:
    """Segments that are acknowledged together."""
    return scenario.transport.ack_every_segments if scenario.transport.delayed_ack else 1


def carries_acks(scenario: Scenario) -> bool:
    """Whether data carry acknowledgements; not where each segment is answered at once."""
    return scenario.traffic.two_way and scenario.transport.piggyback and ack_every(scenario) > 1


def saturated(scenario: Scenario) -> Saturated:
    """Return what greedy connections get."""
    air, transport = air_of(scenario), scenario.transport
    every, largest = ack_every(scenario), transport.receive_window_segments
    two_way = scenario.traffic.two_way
    carried = carries_acks(scenario)
    if carried:
        found = cycles(lambda w: both_ways(air, w), largest)
    else:
        found = cycles(lambda w: one_way(air, w, every, opposite=two_way), largest)
    walk = None
    windows = {largest: 1.0}
    if transport.variant == "vegas":
        walk = window_walk(
            lambda w: found[w].marked,
            alpha=transport.alpha,
            beta=transport.beta,
            gamma=transport.gamma,
            window=largest,
            start=transport.initial_window_segments,
            every=every,
        )
        windows = dict(walk.windows)
    period = sum(share * found[w].period for w, share in windows.items())
    return Saturated(air, windows, found, walk, 0.0 if carried else 1.0 / every, 1.0 / period)
