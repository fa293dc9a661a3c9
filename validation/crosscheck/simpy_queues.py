"""Single queues, priorities and token buckets as a user of SimPy would write them: the outside truth.

A model counts into a `Tally`; `batch_means` runs it in one go and returns what each stretch of time counted.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import count
from typing import Any

import numpy as np
import simpy
from random_queues import Bucket, PriorityQueue, Queue, System

BEFORE_THE_END = 1e-6
"""Bernoulli batches come so many slots before the end of their slot."""


@dataclass
class Tally:
    """What a model counts; ``area`` is the integral of the queue length, waits are of those started."""

    offered: float = 0.0
    refused: float = 0.0
    batches: float = 0.0
    batches_cut: float = 0.0
    started: float = 0.0
    waited: float = 0.0
    late: float = 0.0
    area: float = 0.0
    first_started: float = 0.0
    first_waited: float = 0.0
    second_started: float = 0.0
    second_waited: float = 0.0
    second_left: float = 0.0
    second_sojourns: float = 0.0
    length: int = 0
    changed_at: float = 0.0

    def change_length(self, change: int, now: float) -> None:
        self.area += self.length * (now - self.changed_at)
        self.changed_at = now
        self.length += change

    def offer(self, size: int, joining: int) -> None:
        self.offered += size
        self.refused += size - joining
        self.batches += 1
        self.batches_cut += joining < size

    def values(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Draws:
    """Random numbers drawn by the thousand."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def of(self, law: np.ndarray) -> Callable[[], int]:
        numbers: list[int] = []

        def draw() -> int:
            if not numbers:
                numbers.extend(self.random.choice(len(law), 1000, p=law).tolist())
            return numbers.pop()

        return draw

    def exponential(self, rate: float) -> Callable[[], float]:
        numbers: list[float] = []

        def draw() -> float:
            if not numbers:
                numbers.extend(self.random.exponential(1.0 / rate, 1000).tolist())
            return numbers.pop()

        return draw


def source(env: simpy.Environment, draws: Draws, rate: float, bernoulli: bool, sizes: np.ndarray, come):
    """Process: call ``come(size)`` for every batch."""
    size, slot = draws.of(sizes), 0
    wait = draws.exponential(rate)
    while True:
        if bernoulli:
            slot += int(draws.random.geometric(rate))
            yield env.timeout(slot - BEFORE_THE_END - env.now)
        else:
            yield env.timeout(wait())
        come(size())


def queue_model(env: simpy.Environment, draws: Draws, tally: Tally, queue: Queue) -> None:
    """A queue whose server sleeps, or takes vacations, as described."""
    line: deque[float] = deque()
    room = math.inf if queue.capacity is None else queue.capacity
    bell = env.event()

    def come(size: int) -> None:
        nonlocal bell
        joining = size if size <= room - len(line) else (0 if queue.whole else int(room - len(line)))
        tally.offer(size, joining)
        tally.change_length(joining, env.now)
        line.extend([env.now] * joining)
        bell.succeed()
        bell = env.event()

    def server():
        service = draws.of(queue.service)
        vacation = None if queue.vacation is None else draws.of(queue.vacation)
        while True:
            if vacation is None:
                while len(line) < queue.threshold:
                    yield bell
                if queue.slotted:
                    yield env.timeout(math.ceil(env.now) - env.now)
            allowed = math.inf if queue.limit is None else queue.limit
            if queue.gated:
                allowed = min(allowed, len(line))
            served = 0
            while line and served < allowed:
                tally.started += 1
                tally.waited += env.now - line[0]
                since = math.ceil(line[0]) if queue.slotted else line[0]
                tally.late += env.now - since > queue.late_after + 1e-9
                yield env.timeout(service())
                line.popleft()
                tally.change_length(-1, env.now)
                served += 1
            if vacation is not None:
                yield env.timeout(vacation())

    env.process(source(env, draws, queue.batch_rate, queue.bernoulli, queue.sizes, come))
    env.process(server())


def priority_model(env: simpy.Environment, draws: Draws, tally: Tally, queue: PriorityQueue) -> None:
    """A resource of SimPy's that serves classes in their order, in continuous time.

    A packet's number is part of its priority: asking again after an interruption, it keeps its place.
    """
    server: Any = (simpy.PreemptiveResource if queue.preemptive else simpy.PriorityResource)(env)
    numbers = count()

    def packet(kind: int, remaining: float):
        arrived, begun, number = env.now, None, next(numbers)
        while remaining > 0:
            with server.request(priority=(kind, number)) as turn:
                yield turn
                since = env.now
                if begun is None:
                    begun = since
                    if kind == 0:
                        tally.first_started += 1
                        tally.first_waited += begun - arrived
                    if kind == 1:
                        tally.second_started += 1
                        tally.second_waited += begun - arrived
                try:
                    yield env.timeout(remaining)
                    remaining = 0.0
                except simpy.Interrupt:
                    remaining -= env.now - since
        if kind == 1:
            tally.second_left += 1
            tally.second_sojourns += env.now - arrived

    def comer(kind: int) -> Callable[[int], None]:
        service = draws.of(queue.services[kind])

        def come(size: int) -> None:
            for _ in range(size):
                env.process(packet(kind, float(service())))

        return come

    for kind, rate in enumerate(queue.batch_rates):
        if rate > 1e-9:
            env.process(source(env, draws, rate, False, queue.sizes[kind], comer(kind)))


def bucket_model(env: simpy.Environment, draws: Draws, tally: Tally, bucket: Bucket) -> None:
    """Tokens flow into the bucket steadily; a packet takes a whole one, or waits for it in the buffer."""
    line: deque[float] = deque()
    tokens, counted_at = float(bucket.depth), 0.0
    bell = env.event()

    def fill() -> None:
        nonlocal tokens, counted_at
        tokens = min(float(bucket.depth), tokens + (env.now - counted_at) / bucket.token_time)
        counted_at = env.now

    def come(size: int) -> None:
        nonlocal tokens, bell
        fill()
        at_once = 0 if line else min(size, math.floor(tokens))
        joining = min(size, at_once + bucket.buffer - len(line))
        if bucket.whole and joining < size:
            at_once = joining = 0
        tally.offer(size, joining)
        tokens -= at_once
        tally.started += at_once
        if joining > at_once:
            line.extend([env.now] * (joining - at_once))
            tally.change_length(joining - at_once, env.now)
            bell.succeed()
            bell = env.event()

    def gate():
        nonlocal tokens
        while True:
            while not line:
                yield bell
            fill()
            yield env.timeout(max(1.0 - tokens, 0.0) * bucket.token_time)
            fill()
            tokens = max(tokens - 1.0, 0.0)
            tally.started += 1
            tally.waited += env.now - line.popleft()
            tally.change_length(-1, env.now)

    env.process(source(env, draws, bucket.batch_rate, False, bucket.sizes, come))
    env.process(gate())


def batch_means(
    system: System, *, seed: int, warmup: float, length: float, batches: int
) -> list[dict[str, float]]:
    """What one long run counted in each of ``batches`` stretches of ``length`` after the warm-up."""
    env, tally = simpy.Environment(), Tally()
    draws = Draws(np.random.default_rng([seed, 1]))
    if isinstance(system, Queue):
        queue_model(env, draws, tally, system)
    elif isinstance(system, PriorityQueue):
        priority_model(env, draws, tally, system)
    elif isinstance(system, Bucket):
        bucket_model(env, draws, tally, system)
    else:
        raise TypeError(f"no model in SimPy of {type(system).__name__}")
    env.run(until=warmup)
    stretches = []
    for number in range(1, batches + 1):
        tally.change_length(0, env.now)
        before = tally.values()
        env.run(until=warmup + number * length)
        tally.change_length(0, env.now)
        after = tally.values()
        stretches.append({name: after[name] - before[name] for name in after})
    return stretches
