"""The queueing-only simulator against exact results of queueing theory.

The formulas are written out here, from the literature; times are in slots. Each comparison is at 99 %: with a
fresh seed one in a hundred would fail. Seeds are fixed.
"""

import numpy as np
import pytest

from btqueue.simulator.polling_system import (
    ExponentialService,
    PollingSystem,
    TwoPointService,
    advance_to,
    deterministic,
    new_polling_state,
    simulate_polling_system,
)
from btqueue.simulator.replications import half_width

LENGTH = {"duration_slots": 4e6, "warmup_slots": 1e5, "replications": 12}


def run(system, **changes):
    return simulate_polling_system(system, confidence=0.99, **{"seed": 1, **LENGTH, **changes})


def agrees(values, exact):
    """Whether the 99 % interval of the mean of these replications holds the exact value."""
    values = np.asarray(values)
    return abs(values.mean() - exact) <= half_width(values, 0.99)


def single(arrival_rate, service, **settings):
    return PollingSystem(arrival_rates=(arrival_rate,), services=(service,), **settings)


# ---------------------------------------------------------------- one queue


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_m_d_1(load):
    result = run(single(load / 6, deterministic(6)))
    assert agrees(result.waiting[:, 0], load * 6 / (2 * (1 - load))), "Pollaczek and Khinchin"


def test_m_m_1():
    result = run(single(0.8 / 5, ExponentialService(mean=5)))
    assert agrees(result.waiting[:, 0], 0.8 * 5 / (1 - 0.8))
    assert agrees(result.queue_length[:, 0], 0.8 / (1 - 0.8))


def test_m_g_1_with_two_lengths_of_service():
    # b = 2 or 12 with probabilities 0.7 and 0.3: mean 5, second moment 46
    result = run(single(0.14, TwoPointService(short=2, long=12, probability_long=0.3)))
    assert agrees(result.waiting[:, 0], 0.14 * 46 / (2 * (1 - 0.7)))


@pytest.mark.parametrize("places", [1, 3, 8])
def test_m_m_1_with_a_finite_buffer(places):
    load = 0.9
    result = run(single(load / 4, ExponentialService(mean=4), buffer=places))
    assert agrees(result.loss[:, 0], (1 - load) * load**places / (1 - load ** (places + 1)))


def test_exhaustive_service_with_vacations():
    # W = lambda b2 / (2 (1 - rho)) + v2 / (2 v): a walk of 10 slots after every visit is the vacation
    result = run(single(0.05, deterministic(6), switch_slots=10))
    assert agrees(result.waiting[:, 0], 0.05 * 36 / (2 * 0.7) + 10 / 2)


# One customer a visit has W = v2 / (2 v) + lambda (b2 + 2 b v + v2) / (2 (1 - lambda (b + v))) = 37 slots.
# For more the values follow from the generating function of the queue at the start of a visit and its roots
# in the unit disc.
@pytest.mark.parametrize(
    ("limit", "exact"), [(1, 37.0), (2, 10.477567), (3, 7.754771), (5, 6.588921), (10, 6.297837)]
)
def test_limited_service_with_vacations(limit, exact):
    result = run(single(0.05, deterministic(6), switch_slots=10, limit=limit))
    assert agrees(result.waiting[:, 0], exact)


# ---------------------------------------------------------------- several queues

ASYMMETRIC = {
    "arrival_rates": (0.05, 0.08, 0.1),
    "services": (
        deterministic(2),
        ExponentialService(mean=3),
        TwoPointService(short=1, long=4, probability_long=1 / 3),
    ),
    "switch_slots": 1.5,
}
MEANS, SECONDS = np.array([2, 3, 2]), np.array([4, 18, 6])
RATES = np.array(ASYMMETRIC["arrival_rates"])
LOADS = RATES * MEANS
LOAD, WALKS = LOADS.sum(), 3 * 1.5


def pseudo_conservation_law():
    """Return the sum of rho_i W_i for exhaustive service, constant walks (Boxma and Groenendijk 1987)."""
    return (
        LOAD * (RATES * SECONDS).sum() / (2 * (1 - LOAD))
        + LOAD * WALKS / 2
        + WALKS * (LOAD**2 - (LOADS**2).sum()) / (2 * (1 - LOAD))
    )


def test_the_pseudo_conservation_law_of_exhaustive_polling():
    result = run(PollingSystem(**ASYMMETRIC))
    assert agrees((result.waiting.values * LOADS).sum(axis=1), pseudo_conservation_law())


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_the_pseudo_conservation_law_of_limited_polling(limit):
    # Two terms more, with E[N (N - 1)] for the N customers of a visit; for a limit of 1 it is 0 and the law
    # closed.
    result = run(PollingSystem(**ASYMMETRIC, limit=limit))
    weights = LOADS * (1 - RATES * WALKS / (limit * (1 - LOAD)))
    left = (result.waiting.values * weights).sum(axis=1)
    served_in_excess = (result.pairs_served.values * MEANS * (1 - LOADS) / (2 * limit)).sum(axis=1)
    right = pseudo_conservation_law() + (LOADS**2).sum() * WALKS / (limit * (1 - LOAD))
    assert agrees(left + served_in_excess, right)


@pytest.mark.parametrize("limit", [None, 2])
def test_the_mean_cycle_depends_on_load_and_walks_only(limit):
    result = run(PollingSystem(**ASYMMETRIC, limit=limit))
    assert agrees(result.cycle, WALKS / (1 - LOAD))


def test_symmetric_exhaustive_polling_in_closed_form():
    # W = delta^2/(2 r) + (n lambda b2 + r (n - rho)) / (2 (1 - rho)), constant walk r, rho in all (Takagi
    # 1986)
    queues, walk, rate = 7, 2, 1 / 60
    result = run(
        PollingSystem(
            arrival_rates=(rate,) * queues, services=(deterministic(6),) * queues, switch_slots=walk
        )
    )
    load = queues * rate * 6
    exact = (queues * rate * 36 + walk * (queues - load)) / (2 * (1 - load))
    assert agrees(result.waiting.values.mean(axis=1), exact)


def test_littles_law_between_length_and_time_in_the_system():
    result = run(PollingSystem(**ASYMMETRIC, limit=2), replications=2)
    seconds_inside = result.waiting.values + MEANS
    # Both sides are counted in the same run; they differ by who is inside at the ends: 1 in 200,000
    # customers.
    served_rate = result.queue_length.values / seconds_inside
    np.testing.assert_allclose(served_rate, np.broadcast_to(RATES, (2, 3)), rtol=0.01)


# ---------------------------------------------------------------- the machine


def test_walking_on_in_pieces_changes_nothing():
    system = PollingSystem(**ASYMMETRIC, limit=2, buffer=4)
    with np.errstate(over="ignore"):
        whole = advance_to(new_polling_state(system, seed=3, replication=0), 5000)
        pieces = new_polling_state(system, seed=3, replication=0)
        for slots in np.linspace(0, 5000, 777):
            pieces = advance_to(pieces, slots)
    for name, records in whole._asdict().items():
        assert records.tobytes() == getattr(pieces, name).tobytes(), name


def test_results_do_not_depend_on_the_number_of_threads():
    results = [run(PollingSystem(**ASYMMETRIC), duration_slots=1e4, threads=threads) for threads in (1, 2, 5)]
    assert results[0].identical(results[1])
    assert results[0].identical(results[2])


def test_an_overloaded_unlimited_queue_grows_its_pool():
    result = run(single(0.5, deterministic(4)), duration_slots=2e5, warmup_slots=0, replications=2)
    # Half of the customers are served; the queue grows by a quarter of a customer a slot.
    assert float(result.queue_length.mean()) == pytest.approx(0.25 * 2e5 / 2, rel=0.05)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival_rates": (0.1,)}, "one entry for each queue"),
        ({"arrival_rates": (0.1, 0.1, 0.0)}, "arrival_rates must be positive"),
        ({"switch_slots": -1.0}, "switch_slots"),
        ({"limit": 0}, "limit and buffer"),
        ({"buffer": -2}, "limit and buffer"),
    ],
)
def test_wrong_parameters_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        PollingSystem(**{**ASYMMETRIC, **changes})
