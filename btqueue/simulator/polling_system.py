"""Classical cyclic polling with no network around it: Poisson queues and one server with k-limited visits.

The same timers, packet queues and random streams as in the full simulator, and nothing else, so that these
can be held against queueing theory, whose results are exact here. Time is counted in slots outside, in
nanoseconds inside. The mechanism is in `cyclic_server`.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import xarray as xr

from btqueue.simulator.cyclic_server import (
    NEEDS_SPACE,
    PollingState,
    advance_polling,
    server_dtype,
    start_polling,
    station_dtype,
)
from btqueue.simulator.random_streams import make_streams
from btqueue.simulator.records import (
    NEVER,
    NOTHING,
    SLOT,
    clock_dtype,
    packet_dtype,
    queue_dtype,
    queue_statistics_dtype,
    timer_dtype,
)
from btqueue.simulator.replications import half_width

UNLIMITED = 2**62
FIRST_POOL = 1024


@dataclass(frozen=True, kw_only=True)
class TwoPointService:
    """A service takes `long` slots with probability `probability_long`, else `short` slots."""

    short: float
    long: float = 0.0
    probability_long: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ExponentialService:
    """A service takes an exponential time with this mean (slots)."""

    mean: float


Service = TwoPointService | ExponentialService


def deterministic(slots: float) -> TwoPointService:
    """Return the service that always takes this many slots."""
    return TwoPointService(short=slots)


@dataclass(frozen=True, kw_only=True)
class PollingSystem:
    """One server visits its queues in cyclic order and walks to the next one after every visit.

    Attributes:
        arrival_rates: Poisson rate of each queue, customers a slot, shape (queues,).
        services: service law of each queue, shape (queues,).
        switch_slots: constant time of a walk; it is spent after a visit to an empty queue too.
        limit: most customers served in one visit (k-limited, "E-limited"); None serves until the queue is
        empty. buffer: most customers in a queue, the one in service included; None for no limit.
    """

    arrival_rates: Sequence[float]
    services: Sequence[Service]
    switch_slots: float = 0.0
    limit: int | None = None
    buffer: int | None = None

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            ValueError: saying which parameter is wrong.
        """
        if not self.arrival_rates or len(self.arrival_rates) != len(self.services):
            raise ValueError("arrival_rates and services need one entry for each queue, and at least one")
        if min(self.arrival_rates) <= 0:
            raise ValueError(f"arrival_rates must be positive, not {self.arrival_rates}")
        if self.switch_slots < 0 or 0 < self.switch_slots * SLOT < 1:
            raise ValueError(f"switch_slots must be 0, or at least 1 ns, not {self.switch_slots}")
        if min(self.limit or 1, self.buffer or 1) < 1 or 0 in (self.limit, self.buffer):
            raise ValueError("limit and buffer must be at least 1, or None")


def new_polling_state(system: PollingSystem, *, seed: int, replication: int) -> PollingState:
    """Return the state at time 0 of one replication; it depends on these arguments only."""
    count = len(system.services)
    state = PollingState(
        clock=_zeros(clock_dtype, 1),
        timers=_zeros(timer_dtype, 1 + count),
        heap=np.arange(1 + count),
        streams=make_streams(seed, replication, 2 * count),
        packets=_zeros(packet_dtype, 0),
        queues=_zeros(queue_dtype, count),
        queue_statistics=_zeros(queue_statistics_dtype, count),
        server=_zeros(server_dtype, 1),
        stations=_zeros(station_dtype, count),
    )
    state.clock.free_packet = NOTHING
    state.timers.due = NEVER
    state.timers.place = state.heap
    state.queues.limit = system.buffer or UNLIMITED
    state.server.limit = system.limit or UNLIMITED
    state.server.switch = round(system.switch_slots * SLOT)
    state.stations.mean_interarrival = SLOT / np.asarray(system.arrival_rates, np.float64)
    for station, law in zip(state.stations, system.services, strict=True):
        if isinstance(law, ExponentialService):
            station.exponential, station.long = True, round(law.mean * SLOT)
        else:
            station.short, station.long = round(law.short * SLOT), round(law.long * SLOT)
            station.probability_long = law.probability_long
    state = _with_more_customers(state)
    start_polling(state)
    return state


def advance_to(state: PollingState, slots: float) -> PollingState:
    """Advance to this time (slots), growing the pool of customers where needed; return the state."""
    while advance_polling(state, round(slots * SLOT)) == NEEDS_SPACE:
        state = _with_more_customers(state)
    return state


def forget_polling_statistics(state: PollingState) -> None:
    """Start measuring now: clear every count, keep the customers (end of the warm-up)."""
    clock, count = state.clock[0], state.queue_statistics
    clock.statistics_since, clock.events = clock.now, 0
    count[:] = np.zeros_like(count)
    count.inside_at_start, count.changed_at = state.queues.length, clock.now
    for name in ("started", "waited", "pairs_served"):
        state.stations[name] = 0
    state.server.visits = -_visits_of_idle_walk(state)


def measure_polling(state: PollingState) -> dict[str, np.ndarray | float]:
    """Return the metrics of one replication since its statistics began: see `simulate_polling_system`."""
    clock, count, stations = state.clock[0], state.queue_statistics, state.stations
    elapsed = (clock.now - clock.statistics_since) / SLOT
    area = count.area + state.queues.length * (clock.now - count.changed_at)
    visits = state.server[0].visits + _visits_of_idle_walk(state)
    # Without a single visit ended (a queue too full to leave) there is no cycle to speak of.
    cycles = visits / len(stations) if visits else np.nan
    return {
        "waiting": stations.waited / SLOT / np.maximum(stations.started, 1),
        "loss": count.refused / np.maximum(count.offered, 1),
        "queue_length": area / SLOT / elapsed,
        "pairs_served": stations.pairs_served / cycles,
        "cycle": elapsed / cycles,
        "services": float(count.served.sum()),
        "arrivals": float(count.offered.sum()),
        "visits": float(visits),
    }


def simulate_polling_system(
    system: PollingSystem,
    *,
    duration_slots: float,
    warmup_slots: float = 0.0,
    replications: int = 10,
    seed: int = 1,
    threads: int | None = None,
    confidence: float = 0.95,
) -> xr.Dataset:
    """Simulate a polling system and return its metrics, one value for each replication.

    Args:
        system: queues, server and limits.
        duration_slots: time that is measured, after `warmup_slots`, in each replication.
        warmup_slots: time before measuring starts.
        replications: independent repetitions.
        seed: seed of all random streams.
        threads: replications run at once; the number of cores by default. Results do not depend on it.
        confidence: of the half-widths.

    Returns:
        Dataset with dimensions (replication, queue): `waiting` (mean time from arrival to start of service,
        slots), `loss` (share of customers refused), `queue_length` (time average, the one in service
        included), `pairs_served` (mean of N(N-1), N customers in a visit); with (replication,): `cycle` (mean
        time of a cycle, slots), and the counts `services`, `arrivals` and `visits`. For each metric `m` of
        the queues and for `cycle`, `m_half_width` is the half-width of Student's confidence interval of its
        mean over the replications. `cycle` and `pairs_served` are not a number if no visit has ended.
    """

    def replicate(number: int) -> dict[str, np.ndarray | float]:
        with np.errstate(over="ignore"):
            state = new_polling_state(system, seed=seed, replication=number)
            state = advance_to(state, warmup_slots)
            forget_polling_statistics(state)
            return measure_polling(advance_to(state, warmup_slots + duration_slots))

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        measured = list(pool.map(replicate, range(replications)))
    variables = {}
    for name in measured[0]:
        values = np.array([m[name] for m in measured])
        variables[name] = (("replication", "queue")[: values.ndim], values)
        if name not in ("services", "arrivals", "visits"):
            columns = values.reshape(replications, -1).T
            widths = np.array([half_width(column, confidence) for column in columns])
            variables[f"{name}_half_width"] = (("queue",), widths) if values.ndim == 2 else ((), widths[0])
    return xr.Dataset(variables, attrs={"seed": seed, "confidence": confidence, "unit_of_time": "slot"})


def _visits_of_idle_walk(state: PollingState) -> int:
    """Return how many empty visits the present idle spell has seen that are not counted yet."""
    server = state.server[0]
    if server.idle_since == NEVER or server.switch == 0:
        return 0
    return (state.clock[0].now - server.idle_since) // server.switch


def _with_more_customers(state: PollingState) -> PollingState:
    """Return the state with twice the room for customers, those inside kept in place."""
    clock, before = state.clock[0], len(state.packets)
    packets = _zeros(packet_dtype, max(FIRST_POOL, 2 * before))
    packets[:before] = state.packets
    packets.next[before:] = np.arange(before + 1, len(packets) + 1)
    packets.next[-1] = clock.free_packet
    clock.free_packet = before
    clock.free_packets += len(packets) - before
    return state._replace(packets=packets)


def _zeros(dtype: np.dtype, length: int) -> np.recarray:
    return np.zeros(length, dtype).view(np.recarray)
