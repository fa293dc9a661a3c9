"""The systems of the benchmarks in other people's programs, written as their manuals would write them.

An event is an arrival, a service completion or the end of a visit, counted alike in every program.
"""

import random
from collections import deque
from dataclasses import dataclass

import ciw
import simpy
from ciw.dists import Exponential


@dataclass(frozen=True)
class Counts:
    """What a run did: number of events, and the mean waiting time of the customers."""

    events: int
    mean_waiting: float


def simpy_polling(*, queues, arrival_rate, service, switch, limit, until, seed):
    """Cyclic k-limited polling in SimPy: one process for each source, one for the server."""
    env = simpy.Environment()
    draw = random.Random(seed).expovariate
    lines = [deque() for _ in range(queues)]
    events = served_in_all = 0
    waited = 0.0

    def source(line):
        nonlocal events
        while True:
            yield env.timeout(draw(arrival_rate))
            line.append(env.now)
            events += 1

    def server():
        nonlocal events, served_in_all, waited
        while True:
            for line in lines:
                served = 0
                while line and served < limit:
                    waited += env.now - line[0]
                    yield env.timeout(service)
                    line.popleft()
                    served += 1
                    events += 1
                served_in_all += served
                events += 1
                yield env.timeout(switch)

    for line in lines:
        env.process(source(line))
    env.process(server())
    env.run(until=until)
    return Counts(events=events, mean_waiting=waited / served_in_all)


def ciw_mm1(*, arrival_rate, service_rate, until, seed):
    """M/M/1 in Ciw; events are arrivals and service completions."""
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[Exponential(rate=arrival_rate)],
        service_distributions=[Exponential(rate=service_rate)],
        number_of_servers=[1],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(until)
    records = simulation.get_all_records()
    return Counts(
        events=2 * len(records),  # the few customers still inside are left out
        mean_waiting=sum(record.waiting_time for record in records) / len(records),
    )
