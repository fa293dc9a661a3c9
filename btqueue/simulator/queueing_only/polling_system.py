"""Classical cyclic polling with no network around it: Poisson queues, and a server that visits them in turn.

One queue whose walk leads back to itself is a queue with multiple vacations; without walks it is an M/G/1
queue. Queueing theory knows these systems exactly, so that the simulator's random numbers, clock and
bookkeeping can be held against it. Time is counted in slots outside, in nanoseconds inside. The mechanism
is in `cyclic_server`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, Unpack

import numpy as np
import xarray as xr

from btqueue.simulator.machinery.random_streams import make_streams
from btqueue.simulator.queueing_only.cyclic_server import (
    NEEDS_SPACE,
    PollingState,
    advance_polling,
    server_dtype,
    start_polling,
    station_dtype,
)
from btqueue.simulator.queueing_only.independent_runs import Metrics, Runs, require_equal, run_independently
from btqueue.simulator.queueing_only.random_times import NO_TIME, TimeLaw
from btqueue.simulator.records.conventions import SLOT, UNLIMITED

FIRST_RING = 64
"""Customers that a queue has room for at first; the rings double when needed."""
STREAMS_A_QUEUE = 3
"""Arrivals, services, walks."""

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class PollingSystem:
    """One server visits its queues in cyclic order and walks to the next one after every visit.

    A field of the visits or the queues is one value for all queues or a list with one for each.

    Attributes:
        arrival_rates: Poisson rate of each queue's batches, batches a slot, shape (queues,).
        services: law of the service times.
        walks: law of the walks after the visits to a queue; a walk is made after a visit to an empty queue
            too.
        limit: most customers served in one visit (k-limited, "E-limited"); None serves until the queue is
            empty.
        gated: whether a visit serves only customers that it found on coming.
        buffer: most customers in a queue, the one in service included, those beyond are lost; None for no
            limit.
        batch: customers that come at once.
    """

    arrival_rates: Sequence[float]
    services: TimeLaw | Sequence[TimeLaw]
    walks: TimeLaw | Sequence[TimeLaw] = NO_TIME
    limit: int | Sequence[int | None] | None = None
    gated: bool | Sequence[bool] = False
    buffer: int | Sequence[int | None] | None = None
    batch: int | Sequence[int] = 1

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            ValueError: saying which parameter is wrong.
        """
        if not self.arrival_rates or min(self.arrival_rates) <= 0:
            raise ValueError(f"arrival_rates must be positive, one for each queue, not {self.arrival_rates}")
        for name in ("services", "walks", "limit", "gated", "buffer", "batch"):
            values = self.of_each(getattr(self, name))
            if len(values) != len(self.arrival_rates):
                raise ValueError(f"{name} needs one value, or one for each of the queues, not {values}")
            if name in ("limit", "buffer", "batch") and min(1 if v is None else v for v in values) < 1:
                raise ValueError(f"{name} must be at least 1, not {values}")

    def of_each(self, values: Value | Sequence[Value]) -> list[Value]:
        """Return a field's values, one for each queue."""
        if isinstance(values, Sequence):
            return list(values)
        return [values] * len(self.arrival_rates)


def new_polling_state(system: PollingSystem, *, seed: int, replication: int) -> PollingState:
    """Return the state at time 0 of one replication; it depends on these arguments only."""
    count = len(system.arrival_rates)
    batches = system.of_each(system.batch)
    state = PollingState(
        server=np.zeros(1, server_dtype).view(np.recarray),
        stations=np.zeros(count, station_dtype).view(np.recarray),
        rings=np.zeros((count, max(FIRST_RING, 1 << (2 * max(batches)).bit_length())), np.int64),
        streams=make_streams(seed, replication, STREAMS_A_QUEUE * count),
    )
    stations = state.stations
    stations.mean_interarrival = SLOT / np.asarray(system.arrival_rates, np.float64)
    stations.batch = batches
    stations.places = [places or UNLIMITED for places in system.of_each(system.buffer)]
    stations.limit = [limit or UNLIMITED for limit in system.of_each(system.limit)]
    stations.gated = system.of_each(system.gated)
    for station, service, walk in zip(
        stations, system.of_each(system.services), system.of_each(system.walks), strict=True
    ):
        station.service, station.walk = service.record(), walk.record()
    state.server.arriving = True
    state.server.walks = any(law.mean > 0 for law in system.of_each(system.walks))
    start_polling(state)
    return state


def advance_to(state: PollingState, slots: float) -> PollingState:
    """Advance to this time (slots), growing the rings where needed; return the state."""
    while advance_polling(state, round(slots * SLOT)) == NEEDS_SPACE:
        state = _with_longer_rings(state)
    return state


def forget_polling_statistics(state: PollingState) -> None:
    """Start measuring now: clear every count, keep the customers (end of the warm-up)."""
    server, stations = state.server[0], state.stations
    server.statistics_since = server.now
    counts = ("area", "batches", "batches_cut", "offered", "refused", "started", "waited", "served")
    for name in (*counts, "sojourn", "visits", "pairs_served"):
        stations[name] = 0
    stations.inside_at_start, stations.changed_at = stations.length, server.now


def measure_polling(state: PollingState) -> Metrics:
    """Return the metrics of one replication since its statistics began: see `simulate_polling_system`."""
    server, stations = state.server[0], state.stations
    elapsed = (server.now - server.statistics_since) / SLOT
    visits = int(stations.visits.sum())
    # Without a single visit ended (a queue too full to leave) there is no cycle to speak of.
    cycles = visits / len(stations) if visits else np.nan
    return {
        "waiting": stations.waited / SLOT / np.maximum(stations.started, 1),
        "loss": stations.refused / np.maximum(stations.offered, 1),
        "batch_loss": stations.batches_cut / np.maximum(stations.batches, 1),
        "queue_length": _area(state) / SLOT / elapsed,
        "pairs_served": stations.pairs_served / cycles,
        "cycle": elapsed / cycles,
        "services": int(stations.served.sum()),
        "arrivals": int(stations.offered.sum()),
        "visits": visits,
    }


def check_polling(state: PollingState) -> None:
    """Raise `CountLost` unless customers are conserved and Little's law holds, to the nanosecond."""
    stations = state.stations
    require_equal(
        stations.inside_at_start + stations.offered,
        stations.refused + stations.served + stations.length,
        "customers that came, and that left or are inside",
    )
    still_inside = [
        sum(
            int(
                state.server[0].now
                - max(ring[(station.first + place) % len(ring)], state.server[0].statistics_since)
            )
            for place in range(station.length)
        )
        for station, ring in zip(stations, state.rings, strict=True)
    ]
    require_equal(
        _area(state), stations.sojourn + still_inside, "area under the length, and time spent inside"
    )


def replicate_polling(
    system: PollingSystem, seed: int, number: int, warmup_end: float, end: float
) -> Metrics:
    """Simulate one replication; return its metrics after the warm-up (slots)."""
    state = new_polling_state(system, seed=seed, replication=number)
    state = advance_to(state, warmup_end)
    forget_polling_statistics(state)
    state = advance_to(state, end)
    check_polling(state)
    return measure_polling(state)


def simulate_polling_system(system: PollingSystem, **runs: Unpack[Runs]) -> xr.Dataset:
    """Simulate a polling system and return its metrics, one value for each replication.

    Args:
        system: queues, server and limits.
        **runs: how long and how often, see `Runs`.

    Returns:
        Dataset with dimensions (replication, queue): `waiting` (mean time from arrival to start of service,
        slots), `loss` (share of customers refused), `batch_loss` (share of batches that lost a customer or
        more), `queue_length` (time average, the one in service included), `pairs_served` (mean of N(N-1), N
        customers in a visit); with (replication,): `cycle` (mean time of a cycle, slots), and the counts
        `services`, `arrivals` and `visits`. For each metric `m` but the counts, `m_half_width` is the
        half-width of Student's confidence interval of its mean over the replications. `cycle` and
        `pairs_served` are not a number if no visit has ended.

    Raises:
        CountLost: the simulator lost a customer (a bug).
    """
    return run_independently(partial(replicate_polling, system), **runs)


def _area(state: PollingState) -> np.ndarray:
    """Return the integral of each queue's length from the start of the statistics to now (ns)."""
    stations = state.stations
    return stations.area + stations.length * (state.server[0].now - stations.changed_at)


def _with_longer_rings(state: PollingState) -> PollingState:
    """Return the state with twice the room for customers, each ring turned so that its first comes first."""
    before = state.rings.shape[1]
    rings = np.zeros((len(state.rings), 2 * before), np.int64)
    for longer, ring, station in zip(rings, state.rings, state.stations, strict=True):
        longer[:before] = np.roll(ring, -station.first)
    state.stations.first = 0
    return state._replace(rings=rings)
