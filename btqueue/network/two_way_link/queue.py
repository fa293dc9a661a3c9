r"""The queue of one direction of a link, frame by frame, beside a neighbour that shares the slots.

State at the start of a frame: jobs of this direction (segments and separate acknowledgements), the packet of
the first one that is next, and the jobs of the other direction. A frame lasts this direction's packet and the
other's (one slot each where there is none), a packet arrives but for its error rate, and jobs come at a rate
for each slot, so that long frames bring more: two directions that are busy hold each other up. That is a
quasi-birth-death chain in the jobs of this direction.

Approximations: the neighbour's jobs take a geometric number of frames of its mean packet, and at most `ROOM`
of them wait; a neighbour whose jobs come in bursts is on or off, for geometric spells of its mean busy
period. Several arrivals in a frame, and bursts, are geometric batches with the first two factorial moments of
the true number. Against simulation of Poisson messages without any transport protocol the mean delay is
within 2 % up to a load of 0.6 of the slots.

Sources: Neuts, Matrix-Geometric Solutions (1981); Latouche & Ramaswami, J. Appl. Prob. 30 (1993).
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.two_way_link.jobs import (
    Array,
    Jobs,
    Overloaded,
    batches,
    continuing,
    neighbour_lengths,
    neighbour_moves,
    starts,
)

TOLERANCE = 1e-11
MOST_REDUCTIONS = 60


class LinkQueue(NamedTuple):
    """Steady state; times in slots.

    Attributes:
        busy: share of the time with a job here.
        neighbour_busy: share of the frames with a packet here in which the other direction sends one too.
        present: law of the jobs present at a random moment.
        joined: law of the jobs present just after one has joined, itself included.
        wait: mean time of a job from its arrival to its first frame.
        frame: mean length of a frame with a packet here.
        residual: largest violation of the balance equations, relative.
        iterations: of the logarithmic reduction.
    """

    busy: float
    neighbour_busy: float
    present: Array
    joined: Array
    wait: float
    frame: float
    residual: float
    iterations: int


class _Chain(NamedTuple):
    up: Array
    level: Array
    down: Array
    to_empty: Array


def link_queue(
    jobs: Jobs, neighbour: Jobs | None, *, window: int = 1, slowed: tuple[float, float] = (1.0, 1.0)
) -> LinkQueue:
    """Return the steady state of one direction.

    Args:
        jobs: of this direction.
        neighbour: of the other direction; None where nothing comes.
        window: jobs up to which the link works at full speed; above, the sender's window holds it up.
        slowed: the share of its speed that is then left, with the neighbour idle and busy.

    Raises:
        Overloaded: if the direction cannot carry its jobs.
    """
    slots = np.array([packet[0] for packet in (*jobs.data, *jobs.ack)], float)
    other = neighbour_lengths(neighbour, jobs)
    lengths = slots[:, None] + other
    idle = 1.0 + other
    moves = neighbour_moves(neighbour, jobs, lengths)
    idle_moves = neighbour_moves(neighbour, jobs, idle[None])[0]
    more = continuing(jobs, float(lengths.mean()))
    full = _chain(jobs, lengths, moves, more, np.ones(len(other)))
    speeds = np.where(np.arange(len(other)) == 0, slowed[0], slowed[1])
    slow = _chain(jobs, lengths, moves, more, speeds)
    _require_stable(slow, jobs)
    down, iterations = _first_passage(slow)
    return _measures(
        jobs, other, lengths, idle, idle_moves, full, slow, down, more, max(window, 1), iterations
    )


def _chain(jobs: Jobs, lengths: Array, moves: Array, more: float, speeds: Array) -> _Chain:
    """Blocks on (mode, packet, neighbour); in mode 1 more jobs of a batch join, in no time."""
    count, states = lengths.shape
    packets = (*jobs.data, *jobs.ack)
    success = (1.0 - np.array([packet[1] for packet in packets]))[:, None] * speeds
    following, last = np.zeros((count, count)), np.zeros(count)
    for place in range(count):
        if place in (len(jobs.data) - 1, count - 1):
            last[place] = 1.0
        else:
            following[place, place + 1] = 1.0
    staying = np.einsum("ij,iv,ivw->ivjw", np.eye(count), 1.0 - success, moves)
    staying += np.einsum("ij,iv,ivw->ivjw", following, success, moves)
    ending = np.einsum("i,iv,ivw->ivw", last, success, moves)
    renewed = np.einsum("ivw,j->ivjw", ending, starts(jobs))
    comes, second = (part[:, :, None, None] for part in batches(jobs, lengths, more))
    size = count * states

    def both_modes(with_arrival: Array, without: Array, joining: Array) -> Array:
        block = np.zeros((2 * size, 2 * size))
        block[:size, :size] = (without + (1.0 - second) * with_arrival).reshape(size, size)
        block[:size, size:] = (second * with_arrival).reshape(size, size)
        block[size:, :size], block[size:, size:] = (1.0 - more) * joining, more * joining
        return block

    nothing, each = np.zeros_like(staying), np.eye(size)
    to_empty = np.zeros((2 * size, states))
    to_empty[:size] = (ending * (1.0 - comes[..., 0])).reshape(size, states)
    return _Chain(
        up=both_modes(staying * comes, nothing, each),
        level=both_modes(renewed * comes, staying * (1.0 - comes), 0.0 * each),
        down=both_modes(nothing, renewed * (1.0 - comes), 0.0 * each),
        to_empty=to_empty,
    )


def _require_stable(chain: _Chain, jobs: Jobs) -> None:
    """Compare the mean drifts up and down (Neuts)."""
    moves = chain.up + chain.level + chain.down
    size = len(moves)
    system = np.vstack([(moves.T - np.eye(size))[:-1], np.ones(size)])
    law = np.linalg.solve(system, np.append(np.zeros(size - 1), 1.0))
    if law @ chain.up.sum(axis=1) >= law @ chain.down.sum(axis=1):
        raise Overloaded(f"the link cannot carry {jobs.rate * jobs.batch:.4g} jobs a slot")


def _first_passage(chain: _Chain) -> tuple[np.ndarray, int]:
    """Return G, the phase in which the level below is first reached, by logarithmic reduction."""
    size = len(chain.up)
    steps = np.linalg.solve(np.eye(size) - chain.level, np.hstack([chain.up, chain.down]))
    up, down = steps[:, :size], steps[:, size:]
    total, path = down.copy(), up.copy()
    for iteration in range(1, MOST_REDUCTIONS + 1):
        steps = np.linalg.solve(np.eye(size) - up @ down - down @ up, np.hstack([up @ up, down @ down]))
        up, down = steps[:, :size], steps[:, size:]
        change = path @ down
        total, path = total + change, path @ up
        if np.abs(change).max() < TOLERANCE:
            return total, iteration
    raise NoConvergence(f"no convergence of the first passage in {MOST_REDUCTIONS} reductions")


def _measures(
    jobs: Jobs,
    other: Array,
    lengths: Array,
    idle: Array,
    idle_moves: Array,
    full: _Chain,
    slow: _Chain,
    passage: Array,
    more: float,
    window: int,
    iterations: int,
) -> LinkQueue:
    count, states = lengths.shape
    size = count * states
    eye = np.eye(2 * size)
    comes, second = batches(jobs, idle, more)
    filling = np.einsum("vw,v,j->vjw", idle_moves, comes, starts(jobs)).reshape(states, size)
    filling = np.hstack([(1.0 - second)[:, None] * filling, second[:, None] * filling])
    # visits to a level before it is left downward, from the window's level to the first
    above, visits = passage, []
    for level in range(window, 0, -1):
        visits.insert(0, np.linalg.inv(eye - full.level - full.up @ above))
        above = visits[0] @ full.down if level > 1 else above
    again = np.linalg.inv(eye - slow.level - slow.up @ passage)
    ratio = slow.up @ again
    loop = idle_moves * (1.0 - comes)[:, None] + filling @ visits[0] @ full.to_empty
    system = np.vstack([(loop.T - np.eye(states))[:-1], np.ones(states)])
    empty = np.linalg.solve(system, np.append(np.zeros(states - 1), 1.0))
    levels = [empty @ filling @ visits[0]]
    for level in range(1, window):
        levels.append(levels[-1] @ full.up @ visits[level])
    first = levels[-1] @ full.up @ again
    beyond = np.linalg.inv(eye - ratio)
    total = sum(levels) + first @ beyond
    time = np.concatenate([lengths.reshape(-1), np.zeros(size)])
    scale = 1.0 / (empty @ idle + total @ time)
    empty, total, first = empty * scale, total * scale, first * scale
    levels = [level * scale for level in levels]
    queue = sum((n + 1) * (level @ time) for n, level in enumerate(levels))
    queue += window * (first @ beyond @ time) + first @ beyond @ beyond @ time
    rate = jobs.rate * jobs.batch
    queue += 0.5 * rate * (total @ time**2 + empty @ idle**2)
    busy = float(total @ time)
    frames = total[:size].reshape(count, states)
    present, joined = _laws(levels, first, ratio, empty, idle, time, filling, full, slow)
    balance = np.abs(empty @ (loop - np.eye(states))).max() / max(empty.max(), 1e-300)
    return LinkQueue(
        busy=busy,
        neighbour_busy=float(frames[:, 1:].sum() / frames.sum()),
        present=present,
        joined=joined,
        wait=float(queue) / rate - busy / rate,
        frame=busy / float(frames.sum()),
        residual=float(balance),
        iterations=iterations,
    )


def _laws(
    levels: list[Array],
    first: Array,
    ratio: Array,
    empty: Array,
    idle: Array,
    time: Array,
    filling: Array,
    full: _Chain,
    slow: _Chain,
) -> tuple[Array, Array]:
    """Return the laws of the jobs present at a random moment, and just after one has joined."""
    present, joined = [float(empty @ idle)], [0.0, float((empty @ filling).sum())]
    for level in levels:
        present.append(float(level @ time))
        joined.append(float((level @ full.up).sum()))
    high, left = first, 1.0
    while left > 1e-7 and len(present) < 5000:
        present.append(float(high @ time))
        joined.append(float((high @ slow.up).sum()))
        high = high @ ratio
        left = 1.0 - sum(present)
    # those that join in a frame with a departure do so at the level left behind
    counts = np.array(joined)
    return np.array(present), counts / counts.sum()
