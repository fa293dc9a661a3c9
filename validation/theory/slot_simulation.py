"""One queue with vacations, slot by slot, in plain numpy: many independent copies side by side.

It shares nothing with the analysis but the laws it draws from: state, queue and clock of every copy are moved
by one slot at a time, and every packet carries the slot in which it came.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Seen:
    """Ratios of sums over all copies, each as (estimate, standard error)."""

    packet_loss: tuple[float, float]
    wait: tuple[float, float]  # whole slots from the end of the slot of arrival to the start of service
    long_waits: tuple[float, float]  # share of packets that wait at least `long` such slots
    cycle: tuple[float, float]


def ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Ratio of two sums over independent copies; its error by the delta method."""
    estimate = above.sum() / below.sum()
    return float(estimate), float(np.sqrt(((above - estimate * below) ** 2).sum()) / below.sum())


def simulate(
    *,
    batch_rate: float,
    batch_size: list[float],
    service: np.ndarray,
    vacations: np.ndarray,
    capacity: int,
    limit: int,
    gated: bool,
    long: int,
    copies: int,
    slots: int,
    warm_up: int,
    seed: int,
) -> Seen:
    """Poisson batches, partial acceptance; `limit` is the most packets served a visit."""
    random = np.random.default_rng(seed)
    service_cdf, vacation_cdf = np.cumsum(service), np.cumsum(vacations, axis=1)
    everyone = np.arange(copies)
    came_in = np.zeros((copies, capacity), dtype=int)  # slot of arrival, first in line first
    queue, served, budget = np.zeros((3, copies), dtype=int)
    serving = np.zeros(copies, dtype=bool)
    clock = np.ones(copies, dtype=int)
    offered, lost, started, waited, waited_long, cycles = np.zeros((6, copies))

    def draw_service(who):
        return np.searchsorted(service_cdf, random.random(who.size), side="right")

    def draw_vacation(who):
        row = np.minimum(served[who], len(vacations) - 1)
        return (vacation_cdf[row] <= random.random(who.size)[:, None]).sum(axis=1)

    for slot in range(warm_up + slots):
        measured = slot >= warm_up
        batches = random.poisson(batch_rate, copies)
        for _ in range(int(batches.max())):
            packets = random.choice(len(batch_size), copies, p=batch_size) * (batches > 0)
            batches -= 1
            taken = np.minimum(packets, capacity - queue)
            for place in range(int(taken.max())):
                who = everyone[taken > place]
                came_in[who, queue[who] + place] = slot
            queue += taken
            offered += measured * packets
            lost += measured * (packets - taken)
        clock -= 1
        done = everyone[clock == 0]
        left = done[serving[done]]
        came_in[left, :-1] = came_in[left, 1:]
        queue[left] -= 1
        served[left] += 1
        # a server back from its vacation begins a visit
        back = done[~serving[done]]
        cycles[back] += measured
        served[back] = 0
        budget[back] = np.minimum(queue[back], limit) if gated else limit
        goes_on = (served[done] < budget[done]) & (queue[done] > 0)
        begins, rests = done[goes_on], done[~goes_on]
        serving[begins], serving[rests] = True, False
        clock[begins], clock[rests] = draw_service(begins), draw_vacation(rests)
        wait = slot - came_in[begins, 0]
        started[begins] += measured
        waited[begins] += measured * wait
        waited_long[begins] += measured * (wait >= long)
    return Seen(
        packet_loss=ratio(lost, offered),
        wait=ratio(waited, started),
        long_waits=ratio(waited_long, started),
        cycle=ratio(np.full(copies, float(slots)), cycles),
    )
