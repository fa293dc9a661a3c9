"""Random queues in three simulators: the queueing-only mode, the loops of `queue_loops`, and SimPy.

A sample maps quantities to what one replication saw, or one stretch of a long run in SimPy.
"""

from collections.abc import Callable

import numpy as np
from queue_loops import (
    BATCHES,
    BATCHES_CUT,
    LATE,
    OFFERED,
    REFUSED,
    SOJOURNS,
    STARTED,
    WAITED,
    bulk_service,
    first_come_first_served,
    priorities,
)
from random_queues import Bucket, Bulk, PriorityQueue, Queue, System, load_of, mean, mean_square
from simpy_queues import batch_means

from btqueue.simulator.queueing_only.polling_system import PollingSystem, replicate_polling
from btqueue.simulator.queueing_only.random_times import (
    NO_TIME,
    ConstantTime,
    TimeLaw,
    TwoPointTime,
    UniformTime,
)
from btqueue.simulator.queueing_only.token_gate import TokenGate, replicate_gate

SAMPLES = 24
"""Independent replications, or stretches of one SimPy run."""

Sample = dict[str, float]
Replicate = Callable[[int, int, float, float], Sample]
"""Called with the seed, the number of the replication, and the times at which warm-up and run end."""


def packet_rate(system: System) -> float:
    if isinstance(system, PriorityQueue):
        return float(system.batch_rates @ system.sizes @ np.arange(system.sizes.shape[1]))
    if isinstance(system, Bulk):
        return mean(system.arrivals)
    return system.batch_rate * mean(system.sizes)


def relaxation(system: System) -> float:
    """Time in which a queue forgets, an upper estimate: that of Brownian motion, ``2 variance / drift^2``."""
    if isinstance(system, Bulk):
        slack = max(abs(1.0 - load_of(system)), 3.0 / (system.capacity / system.bulk + 3.0))
        return 2.0 * mean_square(system.arrivals) / system.bulk**2 / slack**2 + 1.0
    if isinstance(system, PriorityQueue):
        count = system.sizes.shape[1]
        squares = system.services @ np.arange(system.services.shape[1]) ** 2
        work = float(system.batch_rates @ (squares * (system.sizes @ np.arange(count) ** 2)))
        rates = system.batch_rates[system.batch_rates > 1e-9]
        # the second class lives in what the first leaves, and what is behind it does not matter to it
        return (2.0 * work + 10.0) / (1.0 - load_of(system)) ** 2 + 1.0 / float(rates.min())
    if isinstance(system, Bucket):
        first, second, room, pause = (
            system.token_time,
            system.token_time**2,
            float(system.depth + system.buffer),
            0.0,
        )
    else:
        first, second = mean(system.service), mean_square(system.service)
        room, pause = system.capacity or np.inf, 0.0
        if system.vacation is not None:
            pause = mean_square(system.vacation) / mean(system.vacation)
            if system.limit:
                share = mean(system.vacation) / system.limit
                second += 2.0 * first * share + mean_square(system.vacation) / system.limit
    work = system.batch_rate * mean_square(system.sizes) * second
    slack = max(abs(1.0 - load_of(system)), 3.0 / (room + 3.0))
    sleep = system.threshold if isinstance(system, Queue) else 1
    return (2.0 * work + pause + second / first) / slack**2 + sleep / system.batch_rate


def time_law(law: np.ndarray) -> TimeLaw:
    """A law of whole slots as the queueing-only mode writes it."""
    support = [int(slots) for slots in np.flatnonzero(law)]
    if len(support) == 1:
        return ConstantTime(slots=support[0])
    if len(support) == 2:
        return TwoPointTime(short=support[0], long=support[1], probability_long=float(law[support[1]]))
    assert np.ptp(law[support]) < 1e-12 and np.ptp(support) == len(support) - 1
    return UniformTime(least=support[0], most=support[-1])


def one_size_only(system: System) -> bool:
    return isinstance(system, Queue | Bucket) and np.count_nonzero(system.sizes) == 1


def in_queueing_only_mode(system: System) -> Replicate | None:
    """One replication in the simulator's queueing-only mode, if that can express the system."""
    if isinstance(system, Bucket) and one_size_only(system) and not system.whole:
        gate = TokenGate(
            batch_rate=system.batch_rate,
            batch=int(system.sizes.argmax()),
            token_slots=system.token_time,
            depth=system.depth,
            buffer=system.buffer,
            service=ConstantTime(slots=1),
        )

        def bucket(seed: int, number: int, warmup: float, end: float) -> Sample:
            seen = replicate_gate(gate, seed, number, warmup, end)
            let_in = float(seen["batches"]) * gate.batch * (1.0 - float(seen["loss"]))
            wait = float(seen["token_wait"])
            return {
                "packet loss": float(seen["loss"]),
                "batch loss": float(seen["batch_loss"]),
                "mean wait": wait,
                "mean queue": wait * let_in / (end - warmup),
            }

        return bucket
    if not isinstance(system, Queue) or not one_size_only(system):
        return None
    if system.bernoulli or system.whole or (system.vacation is None and system.slotted):
        return None
    polling = PollingSystem(
        arrival_rates=[system.batch_rate],
        services=time_law(system.service),
        walks=NO_TIME if system.vacation is None else time_law(system.vacation),
        limit=system.limit,
        gated=system.gated,
        buffer=system.capacity,
        batch=int(system.sizes.argmax()),
    )

    def queue(seed: int, number: int, warmup: float, end: float) -> Sample:
        seen = replicate_polling(polling, seed, number, warmup, end)
        names = {"mean wait": "waiting", "mean queue": "queue_length"}
        names |= {"packet loss": "loss", "batch loss": "batch_loss"}
        return {name: float(np.asarray(seen[metric])[0]) for name, metric in names.items()}

    return queue


def in_a_loop(system: System) -> Replicate | None:
    """One replication in a loop of `queue_loops`, if there is one."""
    if isinstance(system, Queue) and system.vacation is None:

        def queue(seed: int, number: int, warmup: float, end: float) -> Sample:
            seen = first_come_first_served(
                np.random.default_rng([seed, number]),
                system.batch_rate,
                system.bernoulli,
                np.cumsum(system.sizes),
                np.cumsum(system.service),
                system.capacity or 0,
                system.whole,
                system.slotted,
                system.threshold,
                system.late_after,
                warmup,
                end,
            )
            return {
                "mean wait": seen[WAITED] / seen[STARTED],
                "mean queue": seen[SOJOURNS] / (end - warmup),
                "late packets": seen[LATE] / seen[STARTED],
                "packet loss": seen[REFUSED] / seen[OFFERED],
                "batch loss": seen[BATCHES_CUT] / seen[BATCHES],
            }

        return queue
    if isinstance(system, PriorityQueue) and system.slotted:

        def classes(seed: int, number: int, warmup: float, end: float) -> Sample:
            seen = priorities(
                np.random.default_rng([seed, number]),
                system.batch_rates,
                np.cumsum(system.sizes, axis=1),
                np.cumsum(system.services, axis=1),
                system.preemptive,
                warmup,
                round(end),
            )
            waits, sojourns = seen[:2, 1:].T / seen[:2, 0]
            return {
                "wait, first class": waits[0],
                "wait, second class": waits[1],
                "sojourn, second class": sojourns[1],
            }

        return classes
    if isinstance(system, Bulk):

        def bulk(seed: int, number: int, warmup: float, end: float) -> Sample:
            epochs = np.random.default_rng([seed, number]), np.cumsum(system.arrivals)
            total, offered, lost = bulk_service(
                *epochs, system.bulk, system.capacity, round(warmup), round(end)
            )
            return {"mean queue": total / (round(end) - round(warmup)), "packet loss": lost / offered}

        return bulk
    return None


def has_simpy_model(system: System) -> bool:
    return not (isinstance(system, Bulk) or (isinstance(system, PriorityQueue) and system.slotted))


def in_simpy(seed: int, system: System, warmup: float, length: float) -> list[Sample]:
    """Batch means of one long run in SimPy."""

    def sample(seen: Sample) -> Sample:
        if isinstance(system, PriorityQueue):
            return {
                "wait, first class": seen["first_waited"] / seen["first_started"],
                "wait, second class": seen["second_waited"] / seen["second_started"],
                "sojourn, second class": seen["second_sojourns"] / seen["second_left"],
            }
        return {
            "mean wait": seen["waited"] / seen["started"],
            "mean queue": seen["area"] / length,
            "late packets": seen["late"] / seen["started"],
            "packet loss": seen["refused"] / seen["offered"],
            "batch loss": seen["batches_cut"] / seen["batches"],
        }

    return [
        sample(seen) for seen in batch_means(system, seed=seed, warmup=warmup, length=length, batches=SAMPLES)
    ]
