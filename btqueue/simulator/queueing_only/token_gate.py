"""A token bucket in front of a queue: Poisson batches, whole tokens, a buffer, a single server.

A packet takes one token. The bucket is kept as in ITU-T I.371's virtual scheduling: `full_at` is when it
would be full again if nobody came; a packet may leave when at most `depth` - 1 tokens are missing. Packets
leave in their order, so all that will happen to one is known when it comes; one step of the loop is one
batch.
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
"""Most packets that wait for tokens at a time."""

gate_dtype = np.dtype(
    [
        *reals("mean_interarrival"),
        *integers("batch token_time depth buffer"),
        ("service", law_dtype),
        *integers("arrival_due full_at free_at first waiting batches batches_cut refused token_wait"),
        *integers("server_wait"),
    ]
)
"""`token_time` (ns) is the time in which a token gathers; `free_at` is when the server has finished all
that has come; the last two fields are sums over the packets that were let in (ns)."""


class GateState(NamedTuple):
    """One replication: `releases` is the ring of the times at which waiting packets leave the buffer (ns)."""

    gate: np.recarray
    releases: np.ndarray
    streams: np.recarray


@dataclass(frozen=True, kw_only=True)
class TokenGate:
    """Poisson batches of packets, a token bucket, and a server behind it with room for all.

    Attributes:
        batch_rate: batches a slot.
        batch: packets in a batch.
        token_slots: time in which a token gathers.
        depth: most tokens in the bucket, which is full at the start.
        buffer: most packets that wait for tokens.
        service: law of the service times behind the bucket.
    """

    batch_rate: float
    batch: int
    token_slots: float
    depth: int
    service: TimeLaw
    buffer: int = MOST_WAITING

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            ValueError: saying which parameter is wrong.
        """
        if self.batch_rate <= 0 or self.token_slots <= 0:
            raise ValueError("batch_rate and token_slots must be positive")
        if self.batch < 1 or self.depth < 1 or not 0 <= self.buffer <= MOST_WAITING:
            raise ValueError(f"batch and depth must be at least 1, buffer from 0 to {MOST_WAITING}")


@compiled
def on_packet(sim, now):
    """A packet comes: it passes, waits for its token, or is lost; return whether it was let in."""
    gate = sim.gate[0]
    release = max(now, gate.full_at - (gate.depth - 1) * gate.token_time)
    if release > now:
        if gate.waiting == gate.buffer:
            gate.refused += 1
            return False
        sim.releases[(gate.first + gate.waiting) % len(sim.releases)] = release
        gate.waiting += 1
    gate.full_at = max(gate.full_at, release) + gate.token_time
    start = max(release, gate.free_at)
    gate.free_at = start + draw_time(gate.service, sim.streams[1])
    gate.token_wait += release - now
    gate.server_wait += start - release
    return True


@compiled
def on_batch(sim, now):
    """A batch comes, after the packets whose tokens have come meanwhile have left the buffer."""
    gate = sim.gate[0]
    while gate.waiting > 0 and sim.releases[gate.first] <= now:
        gate.first = (gate.first + 1) % len(sim.releases)
        gate.waiting -= 1
    let_in = 0
    for _ in range(gate.batch):
        if on_packet(sim, now):
            let_in += 1
    gate.batches += 1
    if let_in < gate.batch:
        gate.batches_cut += 1


@entry_point
def advance_gate(sim, until):
    """Play all arrivals up to and including time `until` (ns)."""
    gate = sim.gate[0]
    while gate.arrival_due <= until:
        now = gate.arrival_due
        on_batch(sim, now)
        gate.arrival_due = now + int(exponential(sim.streams[0], gate.mean_interarrival))


def new_gate_state(system: TokenGate, *, seed: int, replication: int) -> GateState:
    """Return the state at time 0 of one replication: a full bucket, and a batch just coming."""
    state = GateState(
        gate=np.zeros(1, gate_dtype).view(np.recarray),
        releases=np.zeros(max(system.buffer, 1), np.int64),
        streams=make_streams(seed, replication, 2),
    )
    gate = state.gate[0]
    gate.mean_interarrival, gate.batch = SLOT / system.batch_rate, system.batch
    gate.token_time, gate.depth = round(system.token_slots * SLOT), system.depth
    gate.buffer, gate.service = system.buffer, system.service.record()
    return state


def replicate_gate(system: TokenGate, seed: int, number: int, warmup_end: float, end: float) -> Metrics:
    """Simulate one replication; return the metrics of `simulate_token_gate` after the warm-up (slots)."""
    state = new_gate_state(system, seed=seed, replication=number)
    advance_gate(state, round(warmup_end * SLOT))
    for name in ("batches", "batches_cut", "refused", "token_wait", "server_wait"):
        state.gate[name] = 0
    advance_gate(state, round(end * SLOT))
    gate = state.gate[0]
    offered = max(gate.batches * gate.batch, 1)
    let_in = max(offered - gate.refused, 1)
    return {
        "loss": gate.refused / offered,
        "batch_loss": gate.batches_cut / max(gate.batches, 1),
        "token_wait": gate.token_wait / SLOT / let_in,
        "server_wait": gate.server_wait / SLOT / let_in,
        "batches": int(gate.batches),
    }


def simulate_token_gate(system: TokenGate, **runs: Unpack[Runs]) -> xr.Dataset:
    """Simulate a token bucket in front of a queue; `runs` says how long and how often.

    Returns:
        Dataset with dimension (replication,): `loss` (share of packets refused), `batch_loss` (share of
        batches that lost a packet or more), `token_wait` and `server_wait` (mean times of the packets let
        in, slots), the count `batches`, and the half-widths.
    """
    return run_independently(partial(replicate_gate, system), **runs)
