"""A cyclic polling server played customer by customer; it shares no code with btqueue. Times are in slots.

One queue whose walk leads back to itself is a queue with multiple vacations; without walks it is an M/G/1
queue. Nobody looks at a queue before the server comes, so customers are let in then, at their own instants.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy.stats import t


class Law(NamedTuple):
    """`most` with probability `chance`, else `least`, plus `phases` exponential times of mean `phase`.

    Without a chance the first part is a whole number of slots from `least` to `most`, each as likely.
    """

    least: float = 0.0
    most: float = 0.0
    chance: float = 0.0
    phases: int = 0
    phase: float = 0.0

    @property
    def mean(self) -> float:
        share = self.chance or 0.5
        return self.least + (self.most - self.least) * share + self.phases * self.phase

    @property
    def second(self) -> float:
        """The mean square."""
        width = self.most - self.least
        variance = width**2 * self.chance * (1 - self.chance) if self.chance else ((width + 1) ** 2 - 1) / 12
        return self.mean**2 + (variance if width else 0) + self.phases * self.phase**2


def constant(slots: float) -> Law:
    return Law(least=slots, most=slots)


def erlang(mean: float, phases: int = 1) -> Law:
    """One phase: exponential."""
    return Law(phases=phases, phase=mean / phases)


NO_TIME = Law()


@dataclass(frozen=True, kw_only=True)
class Polling:
    """Every field is one value for all queues or one for each; None is without limit.

    `rates` of Poisson batches, `limit` of customers served in a visit, `gated` visits serve only customers
    found on coming, `buffer` places with the one in service.
    """

    rates: Any
    services: Any
    walks: Any = NO_TIME
    limit: Any = None
    gated: Any = False
    buffer: Any = None
    batch: Any = 1


FIELDS = "gap limit gated places batch due inside seen"
COUNTED = "area busy batches cut offered lost served visits pairs"
QUEUE = np.dtype([(name, float) for name in f"{FIELDS} {COUNTED}".split(" ")])
"""`COUNTED`: integral of the number inside up to `seen`, service times, batches, batches that
lost a customer, customers offered, lost and served, visits and their N(N - 1), N customers served."""


@numba.njit(nogil=True)
def draw(law, random):
    time = law[0]
    if law[2] > 0:
        if random.random() < law[2]:
            time = law[1]
    elif law[1] > law[0]:
        time += np.floor(random.random() * (law[1] - law[0] + 1))
    for _ in range(int(law[3])):
        time += random.exponential(law[4])
    return time


@numba.njit(nogil=True)
def let_in(queue, now, random):
    """Customers that came up to now join the queue or are lost."""
    while queue.due <= now:
        queue.area += queue.inside * (queue.due - queue.seen)
        queue.seen = queue.due
        joining = min(queue.batch, queue.places - queue.inside)
        queue.inside += joining
        queue.batches += 1
        queue.offered += queue.batch
        queue.lost += queue.batch - joining
        queue.cut += joining < queue.batch
        queue.due += random.exponential(queue.gap)
    queue.area += queue.inside * (now - queue.seen)
    queue.seen = now


@numba.njit(nogil=True)
def visit(queue, service, now, end, random):
    """Serve one visit that begins now; return when it ends."""
    let_in(queue, now, random)
    most = min(queue.limit, queue.inside) if queue.gated else queue.limit
    served = 0
    while served < most and queue.inside > 0 and now < end:
        time = draw(service, random)
        now += time
        let_in(queue, now, random)
        queue.inside -= 1
        queue.busy += time
        served += 1
    queue.served += served
    queue.pairs += served * (served - 1)
    queue.visits += 1
    return now


@numba.njit(nogil=True)
def play(queues, services, walks, start, end, random):
    """Play up to `end`; what is counted begins at the first visit after `start`, whose time is returned."""
    now, began = 0.0, -1.0
    while now < end:
        for place in range(len(queues)):
            if began < 0 and now >= start:
                began = now
                for queue in queues:
                    let_in(queue, now, random)
                    queue.area = queue.busy = queue.batches = queue.cut = queue.offered = queue.lost = 0
                    queue.served = queue.visits = queue.pairs = 0
            now = visit(queues[place], services[place], now, end, random) + draw(walks[place], random)
        if not walks.any() and (queues.inside == 0).all():
            now = max(now, queues.due.min())
    for queue in queues:
        let_in(queue, now, random)
    return began, now


def of_each(system: Polling, field: str) -> np.ndarray:
    """A field with one value for each queue; None is infinite."""
    value: Any = getattr(system, field)
    several = np.iterable(value) and not isinstance(value, Law)
    values = list(value) if several else [value] * len(system.rates)
    return np.array([np.inf if each is None else each for each in values], float)


def replicate(system: Polling, seed: int, number: int, warmup: float, slots: float) -> dict[str, Any]:
    queues = np.zeros(len(system.rates), QUEUE).view(np.recarray)
    random = np.random.default_rng([seed, number])
    queues.gap = 1 / np.asarray(system.rates)
    queues.due = random.exponential(queues.gap)
    for name, field in {"limit": "limit", "gated": "gated", "places": "buffer", "batch": "batch"}.items():
        queues[name] = of_each(system, field)
    services, walks = of_each(system, "services"), of_each(system, "walks")
    began, ended = play(queues, services, walks, warmup, warmup + slots, random)
    visits = queues.visits.sum() / len(queues)
    return {
        "waiting": (queues.area - queues.busy) / queues.served,  # by Little's law
        "queue_length": queues.area / (ended - began),
        "loss": queues.lost / queues.offered,
        "batch_loss": queues.cut / queues.batches,
        "pairs": queues.pairs / visits,
        "cycle": (ended - began) / visits,
    }


def simulate(system: Polling, *, slots: float, replications: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Metrics of independent replications, after a warm-up of a tenth of `slots`.

    By (replication, queue): `waiting` from arrival to start of service, `queue_length` with the one in
    service, `loss` of customers, `batch_loss` of batches that lost a customer or more, `pairs` N(N - 1) of a
    visit of N customers. By replication: length of a `cycle`.
    """

    def one(number: int) -> dict[str, Any]:
        return replicate(system, seed, number, slots / 10, slots)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = list(pool.map(one, range(replications)))
    return {name: np.array([each[name] for each in measured]) for name in measured[0]}


def half_width(values: np.ndarray, confidence: float = 0.95) -> np.ndarray:
    """Half the width of Student's interval of a mean over replications."""
    count = len(values)
    return t.ppf((1 + confidence) / 2, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
