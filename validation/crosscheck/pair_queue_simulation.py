"""A small event simulation of the pair service, written apart from the package's simulator and its models.

Stations are visited in turn; a visit is a run of frames, at most ``limit``: one packet of the inbound queue
or a poll of one slot, then one packet of the outbound queue or an empty answer of one slot. A poll answered
by nothing ends the visit. Batches come in Poisson streams and are accepted in part when room is short. Times
are in slots and continuous.
"""
# ruff: noqa: NPY002 -- compiled by numba, which knows numpy's legacy generator only, and seeds its own

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

INBOUND, OUTBOUND = 0, 1
DIRECTIONS = 2


@dataclass(frozen=True)
class PairSystem:
    """What is simulated: one entry per station, and for pairs one row per direction (inbound, outbound).

    ``batch_rate`` and ``capacity`` have shape ``(2, n)``; ``batch_size`` ``(2, n, x)``, law of the packets of
    a batch; ``packet_slots`` ``(2, n, t)``, law of a packet's slots; ``limit`` has shape ``(n,)``.
    """

    batch_rate: np.ndarray
    batch_size: np.ndarray
    capacity: np.ndarray
    limit: np.ndarray
    packet_slots: np.ndarray
    relayed: bool = False


class Estimates(NamedTuple):
    """Means over the measured part; rows of ``by_batch`` arrays are consecutive stretches of equal length."""

    mean_cycle: np.ndarray
    sojourn: np.ndarray
    wait: np.ndarray
    throughput: np.ndarray
    packet_loss: np.ndarray
    batch_loss: np.ndarray
    mean_queue: np.ndarray
    sojourn_by_batch: np.ndarray
    packet_loss_by_batch: np.ndarray
    cycle_by_batch: np.ndarray


@njit(cache=True)
def _draw(cumulative):
    u = np.random.random()
    k = 0
    while cumulative[k] < u:
        k += 1
    return k


@njit(cache=True)
def _arrive(until, i, j, queues):
    # every batch that came up to ``until``; the time of acceptance is kept per packet
    next_batch, rate, batch_cdf, capacity, stamp, head, length, counts = queues
    while next_batch[j, i] <= until:
        when = next_batch[j, i]
        size = _draw(batch_cdf[j, i])
        room = capacity[j, i] - length[j, i]
        taken = min(size, room)
        for _ in range(taken):
            stamp[j, i, (head[j, i] + length[j, i]) % stamp.shape[2]] = when
            length[j, i] += 1
        counts[j, i, 0] += 1
        counts[j, i, 1] += size
        if taken < size:
            counts[j, i, 2] += 1
            counts[j, i, 3] += size - taken
        next_batch[j, i] = when + np.random.exponential(1.0 / rate[j, i])


@njit(cache=True)
def _simulate(rate, batch_cdf, capacity, limit, slots_cdf, relayed, horizon, warmup, batches, seed):
    np.random.seed(seed)
    n = limit.shape[0]
    stamp = np.zeros((2, n, capacity.max() + 1))
    head = np.zeros((2, n), np.int64)
    length = np.zeros((2, n), np.int64)
    next_batch = np.full((2, n), np.inf)
    for j in range(2):
        for i in range(n):
            if rate[j, i] > 0.0 and not (relayed and j == 0):
                next_batch[j, i] = np.random.exponential(1.0 / rate[j, i])
    # counts: batches, packets, batches short of room, packets lost, packets sent, sojourn, wait
    counts = np.zeros((2, n, 7))
    queues = (next_batch, rate, batch_cdf, capacity, stamp, head, length, counts)
    kept = np.zeros((batches + 1, 2, n, 7))
    cycles = np.zeros(batches + 1)
    now, done, tours = 0.0, 0, 0.0
    borders = np.empty(batches + 1)
    for b in range(batches + 1):
        borders[b] = warmup + (horizon - warmup) * b / batches
    at = np.zeros(batches + 1)
    while done <= batches:
        for i in range(n):
            frame = 0
            while frame < limit[i]:
                frame += 1
                empty = 0
                for j in range(2):
                    _arrive(now, i, j, queues)
                    if length[j, i] == 0:
                        empty += 1
                        now += 1.0
                        continue
                    start = now
                    now += _draw(slots_cdf[j, i])
                    # the packet being sent keeps its place until the end: arrivals meanwhile see it
                    _arrive(now, i, j, queues)
                    came = stamp[j, i, head[j, i]]
                    head[j, i] = (head[j, i] + 1) % stamp.shape[2]
                    length[j, i] -= 1
                    counts[j, i, 4] += 1
                    counts[j, i, 5] += now - came
                    counts[j, i, 6] += start - came
                    if relayed and j == 1:
                        to = (i + 1) % n
                        counts[0, to, 0] += 1
                        counts[0, to, 1] += 1
                        if length[0, to] < capacity[0, to]:
                            stamp[0, to, (head[0, to] + length[0, to]) % stamp.shape[2]] = now
                            length[0, to] += 1
                        else:
                            counts[0, to, 2] += 1
                            counts[0, to, 3] += 1
                if empty == 2:
                    break
        tours += 1.0
        while done <= batches and now >= borders[done]:
            # the arrivals of every queue up to now, so that the counts of a stretch belong together
            for i in range(n):
                for j in range(2):
                    _arrive(now, i, j, queues)
            kept[done] = counts
            cycles[done] = tours
            at[done] = now
            done += 1
    return kept, cycles, at


def simulate(
    system: PairSystem, *, slots: float, seed: int, batches: int = 20, warmup: float = 0.05
) -> Estimates:
    """Simulate for ``slots`` slots, of which the share ``warmup`` is thrown away first."""
    kept, cycles, at = _simulate(
        np.asarray(system.batch_rate, float),
        np.cumsum(system.batch_size, axis=-1),
        np.asarray(system.capacity, np.int64),
        np.asarray(system.limit, np.int64),
        np.cumsum(system.packet_slots, axis=-1) + 1e-15,
        system.relayed,
        float(slots),
        warmup * float(slots),
        batches,
        seed,
    )
    steps, time = np.diff(kept, axis=0), np.diff(at)
    total, span = steps.sum(axis=0), time.sum()
    sent = np.maximum(total[..., 4], 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        by_batch = steps[..., 5] / steps[..., 4], steps[..., 3] / steps[..., 1]
    return Estimates(
        mean_cycle=span / np.diff(cycles).sum(),
        sojourn=total[..., 5] / sent,
        wait=total[..., 6] / sent,
        throughput=total[..., 4] / span,
        packet_loss=total[..., 3] / np.maximum(total[..., 1], 1.0),
        batch_loss=total[..., 2] / np.maximum(total[..., 0], 1.0),
        mean_queue=total[..., 5] / span,
        sojourn_by_batch=by_batch[0],
        packet_loss_by_batch=by_batch[1],
        cycle_by_batch=time / np.diff(cycles),
    )
