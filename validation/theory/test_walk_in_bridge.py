"""Bridges: exact values, invariants, limits, gradients, and small simulations with measured errors."""

import importlib.util
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from btqueue.queueing.bridges.delay import packet_delay
from btqueue.queueing.bridges.home_bridge import home_bridge, home_exchanges
from btqueue.queueing.bridges.network import BridgeNetwork, bridge_network
from btqueue.queueing.bridges.walk_in_bridge import WalkInBridge, walk_in_bridge
from btqueue.queueing.errors import ConvergenceError
from btqueue.queueing.laws import lattice


def _simulation():
    """The module beside this file, which is not on the path."""
    spec = importlib.util.spec_from_file_location("bridges", Path(__file__).with_name("bridge_simulation.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SIMULATION = _simulation()
VISIT = np.zeros(31)
VISIT[2::2] = 1 / 15
FIVE = lattice.point(5)


def tours(visits):
    return np.asarray(lattice.convolution_power(VISIT, visits))


def bridge(visits, rate, limit, *, capacity=30, **settings):
    return WalkInBridge(
        tours=tours(visits),
        arrival_rates=rate,
        packet_slots=FIVE,
        capacity=capacity,
        limit=limit,
        **settings,
    )


# visits, rate, limit; the independent model's exchange, missed polls and period to the digits known, and a
# simulation's.
TABLE = [
    (3, 0.01, 15, (10.7558, 0.38236, 77.874), (10.7175, 0.38398, 77.925)),
    (3, 0.02, 15, (24.9580, 0.64961, 105.438), (24.6652, 0.64629, 104.981)),
    (3, 0.03, 15, (55.0814, 1.26952, 166.557), (53.6146, 1.23520, 163.373)),
    (6, 0.015, 30, (27.4710, 0.33899, 156.692), (27.3002, 0.34129, 156.734)),
    (1, 0.03, 5, (26.1628, 1.90293, 76.416), (25.3611, 1.85733, 74.786)),
]
LONG = (
    pytest.mark.long
)  # most of the time is for compilation: a program for each set of capacities and limits


@pytest.mark.parametrize("row", [0, 1, 2, pytest.param(3, marks=LONG), pytest.param(4, marks=LONG)])
def test_independent_closure_gives_the_known_values(row):
    visits, rate, limit, (exchange, missed, period), _ = TABLE[row]
    capacity = 20 if limit == 30 else 30
    found = walk_in_bridge(bridge(visits, rate, limit, capacity=capacity), closure="independent")
    assert found.mean_exchange[0] == pytest.approx(exchange, abs=5.1e-5)
    assert found.missed_polls[0] == pytest.approx(missed, abs=5.1e-6)
    assert found.period == pytest.approx(period, abs=5.1e-4)


# Standard errors of those simulations: about 0.1 %, 0.2 % where the load is high; the rest is the model's.
@pytest.mark.parametrize(
    ("row", "error"),
    [
        (0, 0.003),
        (1, 0.003),
        (2, 0.005),
        pytest.param(3, 0.003, marks=LONG),
        pytest.param(4, 0.012, marks=LONG),
    ],
)
def test_joint_closure_is_near_the_simulation(row, error):
    visits, rate, limit, _, (exchange, missed, period) = TABLE[row]
    capacity = 20 if limit == 30 else 30
    found = walk_in_bridge(bridge(visits, rate, limit, capacity=capacity))
    assert found.converged
    assert found.mean_exchange[0] == pytest.approx(exchange, rel=error)
    assert found.missed_polls[0] == pytest.approx(missed, rel=error)
    assert found.period == pytest.approx(period, rel=error)


def means_of_runs(function, *arguments, runs=6):
    """Means of independent runs, and their standard errors."""
    results = [function(np.random.default_rng(seed), *arguments) for seed in range(runs)]
    columns = [np.array(column) for column in zip(*results, strict=True)]
    return [(c.mean(axis=0), c.std(axis=0, ddof=1) / np.sqrt(runs)) for c in columns]


def assert_within(found, simulated, error):
    """Within five standard errors (of six runs: a false alarm in 250) and the model's measured error."""
    mean, standard = simulated
    assert np.all(np.abs(np.asarray(found) - mean) < 5 * standard + error * mean), (found, simulated)


# visits, rate, limit, tours stayed; measured errors of period, exchange and missed polls, and of the delays
SIMULATED = {
    "leaves after the exchange": (3, 0.02, 15, 0, 0.002, 0.006),
    "stays one tour": (3, 0.02, 15, 1, 0.002, 0.01),
    "stays one tour, near saturation": pytest.param(3, 0.03, 15, 1, 0.003, 0.035, marks=LONG),
    "stays one tour, short of frames": pytest.param(1, 0.03, 5, 1, 0.008, 0.08, marks=LONG),
    "short of frames": pytest.param(1, 0.03, 5, 0, 0.011, 0.1, marks=LONG),
}


@pytest.mark.parametrize(
    ("visits", "rate", "limit", "stayed", "error", "delay_error"), SIMULATED.values(), ids=SIMULATED.keys()
)
def test_against_a_simulation(visits, rate, limit, stayed, error, delay_error):
    model = bridge(visits, rate, limit, tours_stayed=stayed)
    found = walk_in_bridge(model)
    delay = packet_delay(model, found)
    both = np.full(2, visits), np.full(2, rate)
    period, exchange, missed, wait, hold = means_of_runs(SIMULATION.walk_in, *both, limit, 2, stayed, 100_000)
    assert_within(found.period, period, error)
    assert_within(found.mean_exchange[0], exchange, error)
    assert_within(found.missed_polls[0], missed, error)
    assert_within(delay.mean_wait[0], wait, delay_error)
    assert_within(delay.mean_hold[0], hold, delay_error)
    for law in (delay.wait, delay.hold, delay.delay):
        assert law.sum() == pytest.approx(1.0, abs=1e-12)


# Simulated mean times held, with the known periods of the same simulations.
@pytest.mark.parametrize(("row", "hold"), [(0, 48.1), (1, 65.9), (2, 100.0)])
def test_time_held(row, hold):
    model = bridge(*TABLE[row][:3])
    assert packet_delay(model, walk_in_bridge(model)).mean_hold[0] == pytest.approx(hold, rel=0.005)


def test_staying_one_tour_costs_a_tour():
    # simulated: a period has two exchanges in each place, one every 140.43 slots; missed polls 1.2065; held
    # 139.83
    model = bridge(3, 0.02, 15, tours_stayed=1)
    found = walk_in_bridge(model)
    assert found.period / 2 == pytest.approx(140.43, rel=0.003)
    assert found.missed_polls[0] == pytest.approx(1.2065, rel=0.003)
    assert packet_delay(model, found).mean_hold[0] == pytest.approx(139.83, rel=0.01)


# ------------------------------------------------------------------------ small bridges: quick to compile

SMALL = {"capacity": 8, "limit": 3, "packet_slots": lattice.from_points({1: 0.3, 3: 0.7})}
SHORT_TOUR = lattice.uniform(2, 6)
LONG_TOUR = np.pad(lattice.uniform(4, 8), (0, 0))


def small(rate: Any = 0.03, tour: Any = SHORT_TOUR, **settings):
    return WalkInBridge(tours=tour, arrival_rates=rate, **{**SMALL, **settings})


def two_kinds():
    return small(
        np.array([0.02, 0.05]), np.stack([np.pad(SHORT_TOUR, (0, 2)), LONG_TOUR]), switch=1, missed_poll=2
    )


@pytest.mark.parametrize("closure", ["joint", pytest.param("independent", marks=LONG)])
def test_laws_and_flows(closure):
    found = walk_in_bridge(two_kinds(), closure=closure)
    for law in (found.absence, found.wait_for_poll, found.exchange, found.stays.left_waiting):
        assert law.sum(axis=1) == pytest.approx(np.ones(2), abs=1e-12)
    assert found.stays.law.sum(axis=(1, 2)) == pytest.approx(np.ones(2), abs=1e-12)
    # a period is made of two switches, waits for polls and exchanges
    parts = 2 * 1 + found.mean_wait_for_poll.sum() + found.mean_exchange.sum()
    assert found.period == pytest.approx(parts, rel=1e-10)
    # and is, for each place, an absence and an exchange
    whole = np.asarray(lattice.mean(found.absence)) + found.mean_exchange
    assert whole == pytest.approx(np.full(2, found.period), rel=1e-10)
    # polls, by Wald: those missed in an absence take it up, with the tour before the first
    spacing = np.array([4.0, 6.0]) + 2
    assert lattice.mean(found.absence) == pytest.approx(spacing - 2 + found.missed_polls * spacing, rel=1e-10)


@LONG
def test_places_that_are_alike_may_be_given_one_by_one():
    one = walk_in_bridge(small())
    each = walk_in_bridge(small(np.full(2, 0.03), np.stack([SHORT_TOUR] * 2)))
    assert np.asarray(each.stays.law) == pytest.approx(np.repeat(one.stays.law, 2, axis=0), abs=1e-10)


def test_without_load_exchanges_are_empty():
    # The wait for a poll is then that of a renewal process at the age of a deterministic chain's absence.
    found = walk_in_bridge(small(1e-9))
    assert found.mean_exchange[0] == pytest.approx(2.0, abs=1e-6)
    assert found.taken[0] == pytest.approx(1e-9 * found.period, rel=1e-6)


def test_above_saturation_exchanges_are_full():
    found = walk_in_bridge(small(1.0))
    assert found.taken[0] == pytest.approx(3.0, abs=1e-4)
    assert found.mean_exchange[0] == pytest.approx(3 * 2 * (0.3 * 1 + 0.7 * 3), abs=1e-3)
    assert found.packet_loss[0] == pytest.approx(1 - 3 / found.period, rel=1e-4)


def test_with_much_room_and_a_high_limit_nothing_is_lost():
    found = walk_in_bridge(small(0.01))
    assert found.packet_loss[0] == pytest.approx(0.0, abs=1e-6)
    assert found.taken[0] == pytest.approx(0.01 * found.period, rel=1e-6)


@LONG
def test_loss_of_a_small_room_is_what_is_not_taken():
    found = walk_in_bridge(small(0.03, capacity=1))
    # room for one packet: it is there unless none came since the last was taken, an absence before at least
    assert found.packet_loss[0] > walk_in_bridge(small(0.03)).packet_loss[0]
    empty = np.asarray(found.absence[0]) @ np.exp(-0.03 * np.arange(found.absence.shape[1]))
    assert 1 - empty < found.taken[0] < 1 - empty + 0.03 * float(found.mean_exchange[0])


def test_three_places_against_a_simulation():
    model = WalkInBridge(
        tours=tours(1), arrival_rates=0.008, packet_slots=FIVE, capacity=10, limit=3, places=3
    )
    found = walk_in_bridge(model)
    three = np.full(3, 1), np.full(3, 0.008)
    period, exchange, missed, *_ = means_of_runs(SIMULATION.walk_in, *three, 3, 2, 0, 150_000)
    # measured errors: 0.5 %, 0.7 %, 0.6 %: stays are taken as independent of each other
    assert_within(found.period, period, 0.007)
    assert_within(found.mean_exchange[0], exchange, 0.01)
    assert_within(found.missed_polls[0], missed, 0.01)


@LONG
def test_routing_to_one_place_only_is_a_relay():
    # packets of the first place go to the second, of the second to the third, of the third to the first
    ring = np.roll(np.eye(3), 1, axis=1)
    found = walk_in_bridge(small(0.01, capacity=4, limit=2, places=3, routing=ring))
    assert found.taken == pytest.approx(np.full(3, found.taken[0]), rel=1e-8)
    assert found.taken[0] == pytest.approx(0.01 * found.period, rel=1e-3)


def mean_period(rate):
    return walk_in_bridge(small(rate)).period


def test_gradients_forward_and_backward():
    with jax.enable_x64(True):
        at, step = 0.03, 1e-6
        difference = float(mean_period(at + step) - mean_period(at - step)) / (2 * step)
        assert float(jax.grad(mean_period)(at)) == pytest.approx(difference, rel=1e-6)
        assert float(jax.jvp(mean_period, (at,), (1.0,))[1]) == pytest.approx(difference, rel=1e-6)


@LONG
def test_gradient_in_the_law_of_a_tour():
    def period(share):
        tour = share * np.pad(SHORT_TOUR, (0, 2)) + (1 - share) * LONG_TOUR
        return walk_in_bridge(small(tour=tour)).period

    with jax.enable_x64(True):
        difference = float(period(0.3 + 1e-6) - period(0.3 - 1e-6)) / 2e-6
        assert float(jax.grad(period)(0.3)) == pytest.approx(difference, rel=1e-6)


def test_batches():
    rates = np.array([0.01, 0.03, 0.06])
    with jax.enable_x64(True):
        batch = jax.vmap(mean_period)(rates)
    assert np.asarray(batch) == pytest.approx([float(mean_period(rate)) for rate in rates], rel=1e-9)


def test_too_few_iterations_are_an_error():
    with pytest.raises(ConvergenceError):
        walk_in_bridge(small(), max_iterations=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tour": [0.5, 0.2]}, "tours must sum to one"),
        ({"rate": -1.0}, "arrival_rates must be positive"),
        ({"limit": 0}, "limit must be a whole number"),
        ({"places": 1}, "places must be a whole number of at least 2"),
        ({"tours_stayed": -1}, "tours_stayed"),
        ({"packet_slots": [1.0]}, "packet_slots must give no probability to zero"),
        ({"rate": np.full(3, 0.1)}, "for 2 places"),
        ({"routing": np.eye(3)}, "routing must have shape"),
        ({"routing": np.eye(2)}, "no packet to the place where it was taken"),
    ],
)
def test_bad_parameters_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        small(**settings)


def test_delays_are_for_two_places():
    found = walk_in_bridge(small())
    with pytest.raises(ValueError, match="two places, got 3"):
        packet_delay(small(places=3), found)
    unknown: Any = "none"
    with pytest.raises(ValueError, match="closure"):
        walk_in_bridge(small(), closure=unknown)


# -------------------------------------------------------------------------------------- bridges with a home


@pytest.mark.parametrize(("visits", "cycle", "missed"), [(2, 65.849956, 0.642646), (4, 113.292960, 0.565045)])
def test_a_bridge_with_a_home(visits, cycle, missed):
    found = home_bridge(tours(visits), tours(visits), lattice.point(12))
    assert found.cycle == pytest.approx(cycle, abs=5e-7)
    assert found.missed_polls == pytest.approx(missed, abs=5.1e-7)
    assert found.vacation.sum() == pytest.approx(1.0, abs=1e-12)
    # by Wald: tour, two switches and the wait are a tour elsewhere and the missed polls with theirs
    away = 16 * visits + 4 + float(lattice.mean(found.wait_for_poll))
    assert away == pytest.approx(16 * visits + float(found.missed_polls) * (16 * visits + 2), rel=1e-12)


@LONG
def test_a_bridge_with_a_home_that_gathers_packets():
    found = home_exchanges(
        tours(2), 0.04, tour=tours(3), arrival_rate=0.02, packet_slots=FIVE, lengths=(5,), capacity=15,
        limit=6, room=10,
    )  # fmt: skip
    cycle, exchange, missed = means_of_runs(SIMULATION.home, 2, 0.04, 3, 0.02, 6, 2, 150_000)
    # the limit hardly binds: exact but for that
    assert_within(found.bridge.cycle, cycle, 0.001)
    assert_within(found.bridge.mean_exchange, exchange, 0.002)
    assert_within(found.bridge.missed_polls, missed, 0.001)
    assert found.taken == pytest.approx(0.02 * found.bridge.cycle * (1 - found.packet_loss), rel=1e-12)


# ----------------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize(
    "bridges",
    [
        pytest.param(((0, 1), (1, 2), (2, 0)), id="ring"),
        pytest.param(((0, 1), (1, 2), (2, 3)), id="chain", marks=LONG),
    ],
)
def test_networks_against_a_simulation(bridges):
    places = 1 + max(map(max, bridges))
    found = bridge_network(
        BridgeNetwork(
            own_tours=tours(2), bridges=bridges, arrival_rates=0.01, packet_slots=FIVE, capacity=12, limit=5
        )
    )
    period, exchange, missed = means_of_runs(
        SIMULATION.network, places, np.array(bridges), 2, 0.01, 5, 2, 5e6, runs=4
    )
    # measured: periods 2 %, exchanges 1.6 %, missed polls 6.3 %; four runs, five standard errors: 1 in 130
    assert_within(np.repeat(found.period[:, None], 2, axis=1), period, 0.023)
    assert_within(found.mean_exchange, exchange, 0.02)
    assert_within(found.missed_polls, missed, 0.07)
    assert found.packet_loss.max() < 1e-6
    if len(set(np.ravel(bridges).tolist())) == 3:  # all bridges of the ring are alike
        assert found.period == pytest.approx(np.full(3, found.period[0]), rel=1e-8)


@LONG
def test_a_network_of_one_bridge_is_a_bridge():
    network = BridgeNetwork(own_tours=SHORT_TOUR, bridges=((0, 1),), arrival_rates=0.03, **SMALL)
    found, alone = bridge_network(network), walk_in_bridge(small())
    assert found.period[0] == pytest.approx(alone.period, rel=1e-9)
    assert found.mean_tour == pytest.approx(np.full((1, 2), 4.0), rel=1e-12)
    assert found.missed_polls[0] == pytest.approx(np.full(2, alone.missed_polls[0]), rel=1e-9)


@LONG
def test_gradient_of_a_network():
    def period(rate):
        ring = ((0, 1), (1, 0))
        network = BridgeNetwork(
            own_tours=SHORT_TOUR, bridges=ring, arrival_rates=rate, **{**SMALL, "limit": 2, "capacity": 4}
        )
        return bridge_network(network, tolerance=1e-12).period[0]

    with jax.enable_x64(True):
        difference = float(period(0.02 + 1e-6) - period(0.02 - 1e-6)) / 2e-6
        assert float(jax.jvp(period, (0.02,), (1.0,))[1]) == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bridges": ((0, 0),)}, "bridges must each join two places"),
        ({"bridges": ()}, "bridges must each join two places"),
        ({"own_tours": np.stack([SHORT_TOUR])}, "own_tours must be given for 2 places"),
        ({"arrival_rates": 0.0}, "arrival_rates must be positive"),
    ],
)
def test_bad_networks_are_named(settings, message):
    known = {"own_tours": SHORT_TOUR, "bridges": ((0, 1),), "arrival_rates": 0.03, **SMALL}
    with pytest.raises(ValueError, match=message):
        BridgeNetwork(**{**known, **settings})
