"""The saturated ring without radio errors: every connection greedy, the air shared among equals.

The fixed point: the rate x at which one connection uses the air decides how much the others slow it down, and
the orbit on that air decides x. The orbit's rate falls as x grows, so the root is unique and bisection finds
it. Where the orbit jumps from one limit cycle to another, no x is consistent; the two cycles at the jump are
then averaged and the answer says so.
"""

from dataclasses import dataclass
from functools import partial

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.orbit import Orbit, follow
from btqueue.network.ring_piconet.ring import Ring
from btqueue.network.ring_piconet.sender_path import Air
from btqueue.scenario import Scenario
from btqueue.transport.newreno_sender import Sender

STEPS = 10
"""Bisection steps: the rate is found to a thousandth of the capacity."""
CONSISTENT = 0.02
"""Largest mismatch of the air's use, as a share of its capacity, that counts as solved."""


@dataclass(frozen=True)
class Saturated:
    """Solution of the saturated ring.

    Attributes:
        orbits: the orbit, or the two orbits between which the system jumps.
        cycle: mean polling cycle (s).
        slot_utilisation: share of the slots that carry data.
        residual: mismatch between the assumed and the resulting use of the air, as a share of its capacity.
        iterations: orbits followed.
    """

    orbits: tuple[Orbit, ...]
    cycle: float
    slot_utilisation: float
    residual: float
    iterations: int

    def mean(self, name: str) -> float:
        """Return the average of an orbit's attribute."""
        return sum(getattr(orbit, name) for orbit in self.orbits) / len(self.orbits)


def cycle_s(ring: Ring, air_rate: float) -> float:
    """Return the mean polling cycle (s) when each flow uses the air for `air_rate` exchanges a second.

    Each visit costs two slots besides its data frames until the limit cuts visits short (polling conservation
    law); a cycle of full visits is the most there can be.
    """
    peripherals, capacity = ring.peripherals, ring.air_capacity
    mean_slots = ring.exchange_slots / (2 * ring.exchange_packets)
    longest = peripherals * min(ring.limit, 4 * ring.exchange_packets) * 2 * mean_slots * SLOT_S
    spare = max(1.0 - air_rate / capacity, 1e-9)
    return min(2 * peripherals * SLOT_S / spare, max(longest, 2 * peripherals * SLOT_S))


def air_at(ring: Ring, air_rate: float) -> Air:
    """Return the air that a connection sees when the others use it for `air_rate` exchanges a second."""
    use = min(air_rate / ring.air_capacity, 1.0)
    others = use * (ring.peripherals - 1) / ring.peripherals
    cycle = cycle_s(ring, air_rate)
    relay = Air(1.0, use, 0.0, 0.0, 0.0)
    return Air(
        stretch=1.0 / (1.0 - others),
        companion=use,
        poll_wait_s=cycle / 2,
        data_relay_s=sum(relay.service_s(piece.packet.slots) for piece in ring.data),
        ack_relay_s=cycle * (ring.peripherals - 1) / ring.peripherals + ring.ack_slots * SLOT_S,
    )


def new_sender(scenario: Scenario) -> Sender:
    """Return a sender with the scenario's parameters."""
    transport = scenario.transport
    return Sender(
        receive_window=transport.receive_window_segments,
        ssthresh=float(transport.initial_ssthresh_segments),
        min_rto=transport.min_rto_s,
        max_rto=transport.max_rto_s,
        rto=transport.initial_rto_s,
        backoff=transport.rto_backoff,
        cwnd=float(transport.initial_window_segments),
    )


def air_use(ring: Ring, orbit: Orbit) -> float:
    """Return the exchanges per second that an orbit puts on the air: packets that passed both buffers."""
    passed = orbit.counts.offered_to_baseband - orbit.counts.refused_at_baseband
    share = passed / max(1, orbit.counts.offered_to_buffer)
    return orbit.sends * share


def solve_saturated(scenario: Scenario, ring: Ring) -> Saturated:
    """Solve the ring with greedy sources and a perfect radio."""
    low, high = 0.0, ring.air_capacity
    orbit = follow(ring, air_at(ring, high), partial(new_sender, scenario))
    used = air_use(ring, orbit)
    if used >= high * (1 - CONSISTENT):
        return _solution(ring, (orbit,), used, abs(used - high) / ring.air_capacity, 1)
    below = above = orbit
    rate, followed = high, 1
    while followed <= STEPS:
        rate = (low + high) / 2
        orbit = follow(ring, air_at(ring, rate), partial(new_sender, scenario))
        followed += 1
        used = air_use(ring, orbit)
        if used > rate:
            low, below = rate, orbit
        else:
            high, above = rate, orbit
        if abs(used - rate) < CONSISTENT / 4 * ring.air_capacity:
            break
    residual = abs(used - rate) / ring.air_capacity
    orbits = (orbit,) if residual <= CONSISTENT else (below, above)
    return _solution(ring, orbits, rate, residual, followed)


def _solution(
    ring: Ring, orbits: tuple[Orbit, ...], rate: float, residual: float, followed: int
) -> Saturated:
    return Saturated(orbits, cycle_s(ring, rate), min(1.0, rate / ring.air_capacity), residual, followed)
