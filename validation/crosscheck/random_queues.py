"""Random single queues, priorities, token buckets: descriptions that any solver or simulator can read.

Sizes that a compiled program depends on (laws, tables, capacities of some functions) are padded or taken from
short lists, so that few are compiled.
"""

from dataclasses import dataclass

import numpy as np

SIZES, SERVICES, VACATIONS = 5, 9, 17
"""Lengths of the vectors of batch sizes, services and vacations."""
MAX_CAPACITY, MAX_LIMIT, MAX_CLASSES = 60, 30, 3
CAPACITIES = (13, 1, 2, 3, 5, 8, 21, 34, 60)
"""Of the functions that compile a program for each."""
LIMITS = (4, 2, 12, 30)
BUCKETS = ((5, 8), (1, 0), (1, 12), (4, 0), (12, 30), (30, 5))
"""Depth and buffer."""
THRESHOLDS = 30


@dataclass(frozen=True, kw_only=True)
class Queue:
    """One queue and its server, with or without vacations; laws are vectors over slots or packets.

    Attributes:
        batch_rate: batches a slot; of Bernoulli batches their probability.
        sizes: law of the packets in a batch.
        service: law of a service.
        bernoulli: whether batches come at the ends of slots, at most one at each.
        slotted: whether services begin at slot boundaries only.
        capacity: room, the packet in service included; None for no limit.
        whole: whether a batch that does not fit is refused as a whole.
        threshold: packets at which the server is switched on.
        vacation: law of a vacation; None for a server that never leaves.
        gated: whether a visit serves those present at its start only.
        limit: most packets served a visit.
        late_after: whole slots of waiting after which a packet counts as late.
    """

    batch_rate: float
    sizes: np.ndarray
    service: np.ndarray
    bernoulli: bool = False
    slotted: bool = True
    capacity: int | None = None
    whole: bool = False
    threshold: int = 1
    vacation: np.ndarray | None = None
    gated: bool = False
    limit: int | None = None
    late_after: int = 0


@dataclass(frozen=True, kw_only=True)
class PriorityQueue:
    """One server and classes of single packets and batches, the first goes first."""

    batch_rates: np.ndarray
    sizes: np.ndarray
    services: np.ndarray
    bernoulli: bool
    slotted: bool
    preemptive: bool


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A token bucket with whole tokens, in front of nothing."""

    batch_rate: float
    sizes: np.ndarray
    token_time: float
    depth: int
    buffer: int
    whole: bool


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """Up to ``bulk`` packets leave at an epoch, a random number comes until the next."""

    arrivals: np.ndarray
    bulk: int
    capacity: int


System = Queue | PriorityQueue | Bucket | Bulk


def mean(law: np.ndarray) -> float:
    return float(law @ np.arange(len(law)))


def mean_square(law: np.ndarray) -> float:
    return float(law @ np.arange(len(law)) ** 2)


def random_law(random: np.random.Generator, length: int, largest: int) -> np.ndarray:
    """A constant, two values, or some neighbouring values alike; on ``1..largest``."""
    low, high = np.sort(random.integers(1, largest + 1, 2))
    law = np.zeros(length)
    kind = random.integers(3)
    if kind == 0 or low == high:
        law[low] = 1.0
    elif kind == 1:
        law[high] = random.uniform(0.1, 0.6)
        law[low] = 1.0 - law[high]
    else:
        law[low : high + 1] = 1.0 / (high - low + 1)
    return law


def one_size(random: np.random.Generator) -> np.ndarray:
    """Batches of equal size, every other single packets."""
    return np.eye(SIZES)[random.integers(1, SIZES) if random.random() < 0.5 else 1]


def random_load(random: np.random.Generator, finite: bool) -> float:
    return random.uniform(0.1, 1.6 if finite else 0.95)


def log_uniform(random: np.random.Generator, most: int) -> int:
    return round(float(most) ** random.uniform())


def random_queue(
    random: np.random.Generator,
    *,
    capacity: int | None = None,
    constant_batches: bool = False,
    vacations: bool = False,
    limit: int | None = None,
    bernoulli: bool = False,
    **settings: bool,
) -> Queue:
    """Draw laws and a load from .1 to .95 of saturation, to 1.6 with a finite buffer."""
    sizes = one_size(random) if constant_batches else random_law(random, SIZES, SIZES - 1)
    service = random_law(random, SERVICES, SERVICES - 1 if vacations or not bernoulli else 6)
    vacation = random_law(random, VACATIONS, VACATIONS - 1) if vacations else None
    a_packet = mean(service) + (mean(vacation) / limit if vacation is not None and limit else 0.0)
    rate = random_load(random, capacity is not None) / a_packet / mean(sizes)
    return Queue(
        batch_rate=min(rate, 0.98) if bernoulli else rate,
        sizes=sizes,
        service=service,
        bernoulli=bernoulli,
        capacity=capacity,
        vacation=vacation,
        limit=limit,
        late_after=int(random.integers(1, 3 * round(mean(service)) + 1)),
        **settings,
    )


def random_priorities(random: np.random.Generator, *, slotted: bool, preemptive: bool) -> PriorityQueue:
    """Two or three classes; classes that are not there come with a rate of 1e-12, below the others."""
    count = int(random.integers(2, MAX_CLASSES + 1))
    services = np.array([random_law(random, SERVICES, SERVICES - 1) for _ in range(MAX_CLASSES)])
    sizes = np.array([random_law(random, SIZES, SIZES - 1) for _ in range(MAX_CLASSES)])
    shares = random.dirichlet(np.full(MAX_CLASSES, 3.0)) * (np.arange(MAX_CLASSES) < count)
    work = services @ np.arange(SERVICES) * (sizes @ np.arange(SIZES))
    rates = random_load(random, False) * shares / shares.sum() / work
    return PriorityQueue(
        batch_rates=np.maximum(rates, 1e-12),
        sizes=sizes,
        services=services,
        bernoulli=False,
        slotted=slotted,
        preemptive=preemptive,
    )


def random_bucket(random: np.random.Generator, *, whole: bool, few: bool) -> Bucket:
    depth, buffer = BUCKETS[0 if few else random.integers(len(BUCKETS))]
    sizes = random_law(random, SIZES, min(SIZES - 1, depth + buffer)) if whole else one_size(random)
    token_time = random.uniform(0.5, 6.0)
    rate = random_load(random, True) / token_time / mean(sizes)
    return Bucket(
        batch_rate=rate, sizes=sizes, token_time=token_time, depth=depth, buffer=buffer, whole=whole
    )


def random_bulk(random: np.random.Generator) -> Bulk:
    arrivals = random.dirichlet(np.full(VACATIONS, 0.3))
    bulk = max(1, round(mean(arrivals) / random_load(random, True)))
    return Bulk(arrivals=arrivals, bulk=min(bulk, MAX_LIMIT), capacity=CAPACITIES[0])


METHODS = (
    "M^X/G/1",
    "M^X/G/1, slotted",
    "Geo^X/G/1",
    "N-policy",
    "M^X/G/1/K",
    "M^X/G/1/K, slotted",
    "M^X/G/1/K, whole batches",
    "Geo^X/G/1/K",
    "priority",
    "priority, slotted",
    "preemptive priority",
    "preemptive priority, slotted",
    "exhaustive",
    "gated",
    "E-limited",
    "1-limited",
    "gated-limited",
    "exhaustive, K",
    "gated, K",
    "E-limited, K",
    "1-limited, K",
    "gated-limited, K",
    "token bucket",
    "token bucket, whole batches",
    "bulk service, K",
)


def random_system(method: str, seed: int, *, few: bool = False) -> System:
    """Draw a system; with ``few``, all that would need another compiled program is fixed."""
    random = np.random.default_rng([METHODS.index(method), seed])
    if method.startswith("token"):
        return random_bucket(random, whole="whole" in method, few=few)
    if method.startswith("bulk"):
        return random_bulk(random)
    if "priority" in method:
        return random_priorities(random, slotted="slotted" in method, preemptive="preemptive" in method)
    if "/1" in method or method == "N-policy":
        finite = "/K" in method
        capacity = CAPACITIES[0 if few else random.integers(len(CAPACITIES))] if finite else None
        whole = "whole" in method or (method == "Geo^X/G/1/K" and not few and random.random() < 0.5)
        queue = random_queue(
            random,
            capacity=capacity,
            constant_batches=method in ("M^X/G/1", "M^X/G/1/K"),
            bernoulli="Geo" in method,
            slotted=method not in ("M^X/G/1", "M^X/G/1/K"),
            whole=whole,
        )
        if queue.whole and capacity is not None and not queue.sizes[: capacity + 1].any():
            return random_system(method, seed + 10**6, few=few)
        if method == "N-policy":
            return Queue(**{**vars(queue), "threshold": log_uniform(random, THRESHOLDS)})
        return queue
    finite = method.endswith("K")
    limit = None
    if "limited" in method:
        limit = log_uniform(random, MAX_LIMIT) if finite else LIMITS[0 if few else random.integers(4)]
        limit = 1 if method.startswith("1") else limit
    capacity = log_uniform(random, MAX_CAPACITY) if finite else None
    return random_queue(
        random,
        capacity=capacity,
        constant_batches=True,
        vacations=True,
        limit=limit,
        gated=method.startswith("gated"),
    )


def load_of(system: System) -> float:
    """Offered load relative to saturation."""
    if isinstance(system, PriorityQueue):
        work = system.services @ np.arange(SERVICES) * (system.sizes @ np.arange(SIZES))
        return float(system.batch_rates @ work)
    if isinstance(system, Bulk):
        return mean(system.arrivals) / system.bulk
    a_packet = system.token_time if isinstance(system, Bucket) else mean(system.service)
    if isinstance(system, Queue) and system.vacation is not None and system.limit:
        a_packet += mean(system.vacation) / system.limit
    return system.batch_rate * mean(system.sizes) * a_packet
