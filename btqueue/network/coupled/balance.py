"""The fixed point: what connections do to the network, and what the network does to connections.

All connections are alike, so one stands for all. Unknown is what it gives to the others: its traffic on the
air, the acknowledgements that it makes its successor send, the wait and the losses that its own data cause to
acknowledgements in its token bucket, and its timeout. With a load that radio and buffers could carry twice,
the connection works half of the time: everything that it gives is in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, e, erf, exp, hypot, log2, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.coupled.bucket import bucket_of
from btqueue.network.coupled.connection import Connection, solve_connection
from btqueue.network.coupled.counted import counted_rounds
from btqueue.network.coupled.path import Timing
from btqueue.network.coupled.radio import crossing
from btqueue.network.coupled.rounds import Spacing, Timer, rounds_of
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.scenario import Scenario
from btqueue.transport import NotConvergedError
from btqueue.transport.newreno_chain import MAX_BACKOFF

Array = NDArray[np.float64]

TOLERANCE = 1e-8
"""Relative change of the unknowns that counts as none."""
TIGHT, LEAST, LOOSE = 1e-3, 1e-11, 1e-5
"""Residual of a chain, as a share of the mismatch that was left before, and its bounds."""
MOST_STEPS = 60
MOST_BUSY = 0.95
"""Share of the air up to which the others may use it while the fixed point is sought."""
KNOWN = 5
"""Largest window of a chain whose states know the congestion window; with 6 there are twice as many."""
MOST = np.array([1.0, 1.0, np.inf, 1.0, np.inf])
"""Largest values of the unknowns, the rates as shares of what the air can carry."""
MEMORY = 4
"""Earlier steps that an accelerated one combines."""
OF_EXPONENTIAL = 2.0 / e
"""Mean deviation of an exponential variable, in means: what others add to a round trip is taken as one."""
MEMORY_OF_DEVIATION = 0.25
"""Weight of the latest sample in TCP's estimate of the deviation (RFC 6298)."""


class Given(NamedTuple):
    """What a connection gives to the others.

    Attributes:
        data: data segments on the air (1/s).
        acks: acknowledgements on the air (1/s).
        ack_wait: wait of an acknowledgement for its token (s).
        ack_refused: chance that the token buffer refuses it.
        rto: the connection's own timeout (s).
    """

    data: float
    acks: float
    ack_wait: float
    ack_refused: float
    rto: float


@dataclass(frozen=True, eq=False)
class Balance:
    """The solution.

    Attributes:
        connection: a greedy connection in the network.
        given: what it gives.
        timing: of the air that it meets.
        duty: share of the time that it needs to carry its load; 1 if it cannot.
        busy: share of the messages that find the connection busy with others.
        residual: mismatch of `given`, in the scales of each unknown.
        iterations: connections that were solved.
    """

    connection: Connection
    given: Given
    timing: Timing
    duty: float
    busy: float
    residual: float
    iterations: int

    @property
    def goodput(self) -> float:
        """Segments per second that each flow carries."""
        return self.duty * self.connection.goodput


def busy_share(duty: float, silent: float) -> float:
    """Return the share of the messages that find the connection busy with earlier ones.

    A timeout of length t lets the load times t messages pile up, which the connection clears away at the rate
    that it has between timeouts; those who come meanwhile find it busy. At full load these are all.

    Args:
        duty: share of the time that the connection needs.
        silent: share of the time that it waits for timeouts when it always has data.
    """
    silent = min(silent, 1.0)
    return 1.0 if duty == 1.0 else duty * silent / (1.0 - duty * (1.0 - silent))


def share_of_air(ring: Ring, flows: float, data: float, acks: float) -> float:
    """Return the share of the air that so many flows use, each at these rates (1/s).

    A packet replaces an empty slot of POLL or NULL; its answer is an empty slot, too, as long as nothing goes
    the other way, which the share itself says how often it does.
    """
    busy = 2 * flows * SLOT_S * (data * ring.data_slots + acks * ring.ack_slots)
    if ring.peripherals == 1:  # what comes down and what goes up share their frames
        return busy
    timing = Timing(ring)
    beside = data * timing.beside_slots(ring.data) + acks * timing.beside_slots(ring.ack)
    beside *= 2 * flows * SLOT_S
    return (busy + beside) / (1.0 + beside)


def solve_balance(scenario: Scenario, window: int, offered: float, *, start: Given | None = None) -> Balance:
    """Find the fixed point by Anderson's method.

    Args:
        scenario: a ring that the model covers.
        window: receive window of the chain.
        offered: messages per second and flow; infinite for greedy sources.
        start: where the search begins; by default with an idle network.

    Raises:
        NoConvergence: none was found.
    """
    ring, transport = ring_of(scenario), scenario.transport
    counted = counted_rounds(
        window, windows=window <= KNOWN, beyond=doublings_beyond(transport.min_rto_s, transport.max_rto_s)
    )
    near: Array | None = None
    count, residual = 0, 1.0

    def respond(given: Given) -> Balance:
        nonlocal near, count
        count += 1
        others = share_of_air(ring, ring.peripherals - 1, given.data, given.acks)
        timing = Timing(ring, min(others, MOST_BUSY))
        bucket = bucket_of(ring, window, given.acks)
        timer = Timer(given.rto, max(transport.max_rto_s, given.rto), transport.rto_backoff)
        rounds = rounds_of(counted, bucket, Spacing.of(timing), timer, timing.round_trip_s + given.ack_wait)
        connection = solve_connection(
            counted,
            bucket,
            crossing(scenario, timing),
            rounds,
            given.ack_refused,
            near=near,
            tolerance=float(np.clip(TIGHT * residual, LEAST, LOOSE)),
        )
        near = connection.law
        duty = min(1.0, offered / connection.goodput)
        busy = busy_share(duty, connection.timeouts * given.rto)
        found = Given(
            duty * connection.on_air,
            duty * connection.received,
            busy * connection.backlog,
            busy * connection.full,
            expected_timeout(
                connection.rtt,
                hypot(connection.deviation, OF_EXPONENTIAL * others * timing.round_trip_s),
                transport.min_rto_s,
                transport.max_rto_s,
            ),
        )
        return Balance(connection, found, timing, duty, busy, np.nan, count)

    scale = np.array([ring.air_capacity, ring.air_capacity, 0.1, 1.0, 1.0])
    idle = Given(0.1 * ring.air_capacity, 0.1 * ring.air_capacity, 0.0, 0.0, transport.min_rto_s)
    point = np.array(start or idle) / scale
    points: list[Array] = []
    changes: list[Array] = []
    try:
        for _ in range(MOST_STEPS):
            found = respond(Given(*(point * scale)))
            change = np.array(found.given) / scale - point
            residual = float(np.abs(change).max())
            if residual < TOLERANCE:
                return replace(found, residual=residual)
            points, changes = [*points, point][-MEMORY:], [*changes, change][-MEMORY:]
            point = np.clip(next_point(points, changes), 0.0, MOST)
    except NotConvergedError as error:
        raise NoConvergence(f"the chain of a connection: {error}") from error
    if point[0] == 1.0:
        raise NoConvergence(
            "the connections would send more than the slots of the air carry, so it is not radio errors that "
            'limit them: not covered by this solver; [run] solver = "best" follows such connections'
        )
    raise NoConvergence(f"connections and network do not agree: mismatch {residual:.2g} after {count} steps")


def doublings_beyond(least: float, most: float) -> int:
    """Return how often a timeout can double until it meets its cap, beyond what the chain counts."""
    return max(ceil(log2(max(most / least, 1.0))) - MAX_BACKOFF, 0)


def expected_timeout(rtt: float, deviation: float, least: float, most: float) -> float:
    """Return the mean of a timeout (s) that has a floor, by RFC 6298: mean and four mean deviations.

    What TCP knows of the deviation is an average over the last few samples. With weight a for the latest, its
    variance is a / (2 - a) times that of a sample; the deviation of one sample is about as variable as
    exponential. So the timeout spreads around its mean, and the floor cuts it off; the normal law is used.
    """
    mean = rtt + 4.0 * deviation
    spread = 4.0 * deviation * sqrt(MEMORY_OF_DEVIATION / (2.0 - MEMORY_OF_DEVIATION))
    if spread == 0.0:
        return min(max(mean, least), most)
    z = (mean - least) / spread
    above = z * (1.0 + erf(z / sqrt(2.0))) / 2.0 + exp(-z * z / 2.0) / sqrt(2.0 * pi)
    return min(least + spread * above, most)


def next_point(points: list[Array], changes: list[Array]) -> Array:
    """Combine earlier steps so that their changes cancel (D. G. Anderson, J. ACM 12, 1965)."""
    last = changes[-1]
    if len(points) == 1:
        return points[-1] + last
    by_change = np.array([last - change for change in changes[:-1]]).T
    by_point = np.array([points[-1] - point for point in points[:-1]]).T
    weights = np.linalg.lstsq(by_change, last, rcond=1e-10)[0]
    return points[-1] + last - (by_point + by_change) @ weights
