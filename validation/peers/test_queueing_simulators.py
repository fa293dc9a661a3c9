"""Queues in SimPy and Ciw, written as their manuals would write them, beside theory and `polling_loop`.

Each comparison is at 4.5 standard errors of the mean of eight short runs. By Student's law with 7 degrees of
freedom a comparison fails by chance with probability 0.0028, one of the four with at most 0.012.
"""

import ciw
import numpy as np
import polling_loop
import pytest
from ciw.dists import Exponential
from right_runs import by_simpy

from btqueue.queueing import polling_model, solve_polling
from btqueue.study.closed_forms import closed_forms

SLOTS, SEEDS = 3e4, range(8)
QUEUES, RATE, SERVICE, WALK, LIMIT = 7, 0.7 / 7 / 6, 6.0, 2.0, 5
TIMES = {"services": polling_loop.constant(SERVICE), "walks": polling_loop.constant(WALK)}
SEVEN = polling_loop.Polling(rates=[RATE] * QUEUES, limit=LIMIT, **TIMES)
"""70 % load, and at most five customers a visit."""
single_wait = closed_forms()["wait, M/G/1"].function("lambda", "b", "b_2", "k")
MM1 = polling_loop.Polling(rates=[0.7 / 6], services=polling_loop.erlang(6))


def ciw_mm1(seed):
    """Mean wait of M/M/1."""
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[Exponential(rate=0.7 / 6)],
        service_distributions=[Exponential(rate=1 / 6)],
        number_of_servers=[1],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(SLOTS)
    return np.mean([record.waiting_time for record in simulation.get_all_records()])


def seven_solved():
    times = {"service_mean": SERVICE, "service_second": SERVICE**2}
    times |= {"switch_mean": WALK, "switch_second": WALK**2}
    model = polling_model(arrival_rate=[RATE] * QUEUES, discipline="limited", limit=LIMIT, **times)
    return float(np.mean(solve_polling(model).mean_wait))


@pytest.mark.parametrize(
    ("peer", "solved", "system"),
    [
        pytest.param(
            lambda seed: by_simpy(0.7, seed, SLOTS, LIMIT), seven_solved, SEVEN, id="SimPy, seven queues"
        ),
        pytest.param(ciw_mm1, lambda: single_wait(0.7 / 6, 6, 72, 1), MM1, id="Ciw, M/M/1"),
    ],
)
def test_theory_and_play_find_the_mean_wait_of_another_simulator(peer, solved, system):
    waits = np.array([peer(seed) for seed in SEEDS])
    error = waits.std(ddof=1) / np.sqrt(len(waits))
    assert error < 0.05 * waits.mean(), "and the comparison can tell"
    assert abs(waits.mean() - solved()) < 4.5 * error
    played = polling_loop.simulate(system, slots=SLOTS, replications=400)["waiting"].mean()
    assert abs(waits.mean() - played) < 4.5 * error
