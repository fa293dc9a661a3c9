"""Servers side by side behind one queue: M/G/c with waiting places, and Erlang's loss system M/G/c/c.

Customers are served in the order of arrival, so all that will happen to one is known when it comes: it
starts at the server that is free first (the recursion of Kiefer and Wolfowitz, Trans. AMS 78, 1955). One
step of the loop is one customer.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Unpack

import numpy as np
import xarray as xr

from btqueue.simulator.machinery.compilation import compiled, entry_point
from btqueue.simulator.machinery.random_streams import exponential, make_streams
from btqueue.simulator.queueing_only.independent_runs import Metrics, Runs, run_independently
from btqueue.simulator.queueing_only.random_times import TimeLaw, draw_time, law_dtype
from btqueue.simulator.records.conventions import SLOT, integers, reals

MOST_WAITING = 1 << 16
"""Most customers that wait for a server at a time."""

group_dtype = np.dtype(
    [
        *reals("mean_interarrival"),
        ("service", law_dtype),
        *integers("waiting_places arrival_due first waiting offered refused delayed waited"),
    ]
)
"""`first` and `waiting`: where the ring of starting times begins, and how many are in it; `delayed`
customers had to wait, `waited` is the sum of all waiting times (ns)."""


class GroupState(NamedTuple):
    """One replication: `free_at[i]` is when server i has finished all that it was given (ns)."""

    group: np.recarray
    free_at: np.ndarray
    starts: np.ndarray
    streams: np.recarray


@dataclass(frozen=True, kw_only=True)
class ServerGroup:
    """Poisson customers and `servers` equal servers.

    Attributes:
        arrival_rate: customers a slot.
        service: law of the service times.
        servers: number of servers.
        waiting_places: customers beyond the servers and these places are lost.
    """

    arrival_rate: float
    service: TimeLaw
    servers: int
    waiting_places: int = MOST_WAITING

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            ValueError: saying which parameter is wrong.
        """
        if self.arrival_rate <= 0 or self.servers < 1:
            raise ValueError("arrival_rate must be positive, and servers at least 1")
        if not 0 <= self.waiting_places <= MOST_WAITING:
            raise ValueError(f"waiting_places must be from 0 to {MOST_WAITING}, not {self.waiting_places}")


@compiled
def earliest_free(free_at):
    """Return the server that is free first."""
    first = 0
    for server in range(1, len(free_at)):
        if free_at[server] < free_at[first]:
            first = server
    return first


@compiled
def on_customer(sim, now):
    """A customer comes: it is given to the server that is free first, or is lost."""
    group = sim.group[0]
    while group.waiting > 0 and sim.starts[group.first] <= now:
        group.first = (group.first + 1) % len(sim.starts)
        group.waiting -= 1
    server = earliest_free(sim.free_at)
    start = max(now, sim.free_at[server])
    group.offered += 1
    if start > now:
        if group.waiting == group.waiting_places:
            group.refused += 1
            return
        sim.starts[(group.first + group.waiting) % len(sim.starts)] = start
        group.waiting += 1
        group.delayed += 1
        group.waited += start - now
    sim.free_at[server] = start + draw_time(group.service, sim.streams[1])


@entry_point
def advance_group(sim, until):
    """Play all arrivals up to and including time `until` (ns)."""
    group = sim.group[0]
    while group.arrival_due <= until:
        now = group.arrival_due
        on_customer(sim, now)
        group.arrival_due = now + int(exponential(sim.streams[0], group.mean_interarrival))


def new_group_state(system: ServerGroup, *, seed: int, replication: int) -> GroupState:
    """Return the state at time 0 of one replication, all servers idle and a customer just coming."""
    state = GroupState(
        group=np.zeros(1, group_dtype).view(np.recarray),
        free_at=np.zeros(system.servers, np.int64),
        starts=np.zeros(max(system.waiting_places, 1), np.int64),
        streams=make_streams(seed, replication, 2),
    )
    state.group.mean_interarrival = SLOT / system.arrival_rate
    state.group[0].service = system.service.record()
    state.group.waiting_places = system.waiting_places
    return state


def replicate_group(system: ServerGroup, seed: int, number: int, warmup_end: float, end: float) -> Metrics:
    """Simulate one replication; return the metrics of `simulate_server_group` after the warm-up (slots)."""
    state = new_group_state(system, seed=seed, replication=number)
    advance_group(state, round(warmup_end * SLOT))
    for name in ("offered", "refused", "delayed", "waited"):
        state.group[name] = 0
    advance_group(state, round(end * SLOT))
    group = state.group[0]
    accepted = max(group.offered - group.refused, 1)
    return {
        "loss": group.refused / max(group.offered, 1),
        "delayed": group.delayed / accepted,
        "waiting": group.waited / SLOT / accepted,
        "arrivals": int(group.offered),
    }


def simulate_server_group(system: ServerGroup, **runs: Unpack[Runs]) -> xr.Dataset:
    """Simulate a group of servers; `runs` says how long and how often.

    Returns:
        Dataset with dimension (replication,): `loss` (share of customers refused), `delayed` (share of the
        others that had to wait), `waiting` (their mean time from arrival to start of service, slots), the
        count `arrivals`, and the half-widths.
    """
    return run_independently(partial(replicate_group, system), **runs)
