"""Stations visited in a cycle: exact chains, closures, closed form against each other and simulations.

Packets take 5 slots with probability .8, otherwise 3. ``load`` is the packet rate of a queue as a fraction of
``1 / (2 n 4.6)``. Simulated figures carry their own error of about half a percent (delay) to several percent
(small losses); the tolerances of the closures are the accuracies stated in their docstrings.
"""

from typing import NamedTuple

import numpy as np
import pytest

from btqueue.queueing import closed_forms
from btqueue.queueing.errors import ConvergenceError
from btqueue.queueing.laws import lattice
from btqueue.queueing.pairs.joint_chain import joint_chain
from btqueue.queueing.pairs.polling import cycle_memory_closure, independent_vacations
from btqueue.queueing.pairs.relay import RelayRing, relay_ring
from btqueue.queueing.pairs.relay_chain import relay_joint_chain
from btqueue.queueing.pairs.stations import PairPolling, PairPollingSolution
from btqueue.queueing.traffic.arrivals import PoissonBatches

PACKETS = lattice.from_points({3: 0.2, 5: 0.8})


def stations(count: int, batch_rate: float, batch: int, capacity: int, limit: int) -> PairPolling:
    queue = PoissonBatches(batch_rate, lattice.point(batch))
    return PairPolling(count, limit, PACKETS, queue, capacity, queue, capacity)


def loaded(count: int, load: float, batch: int, limit: int) -> PairPolling:
    return stations(count, load / (2 * count * 4.6 * batch), batch, 20, limit)


def ring(count: int, load: float, limit: int = 5, inbound_capacity: int = 20) -> RelayRing:
    queue = PoissonBatches(load / (2 * count * 4.6 * 5), lattice.point(5))
    return RelayRing(count, limit, PACKETS, queue, 20, inbound_capacity)


def mean_sojourn(solution: PairPollingSolution) -> float:
    return float(solution.inbound.mean_sojourn + solution.outbound.mean_sojourn) / 2


class Exact(NamedTuple):
    """Exact values for two stations, printed to six decimals, and the two closures where they are known."""

    batch_rate: float
    batch: int
    capacity: int
    limit: int
    cycle: float
    throughput: tuple[float, float]  # outbound, inbound
    content: tuple[float, float]  # at slot starts
    loss: float
    independent: tuple[float, float, float]  # cycle, outbound content, outbound loss


SMALL = Exact(
    0.05,
    1,
    6,
    2,
    24.859704,
    (0.048927, 0.048934),
    (1.622623, 1.614476),
    0.021456,
    (26.077, 1.46528, 0.014211),
)
LARGE = [
    Exact(
        0.06,
        1,
        8,
        5,
        87.309226,
        (0.053672, 0.053682),
        (4.501879, 4.500114),
        0.105466,
        (88.021, 4.50939, 0.104615),
    ),
    Exact(
        0.012,
        5,
        8,
        5,
        34.645653,
        (0.04675, 0.046757),
        (2.758936, 2.759197),
        0.220825,
        (44.968, 2.5538, 0.20186),
    ),
]
EXACT = [SMALL, *(pytest.param(case, marks=pytest.mark.long) for case in LARGE)]


@pytest.mark.parametrize("case", EXACT)
def test_joint_chain_of_two_stations(case: Exact):
    solution = joint_chain(stations(2, *case[:4]))
    assert float(solution.mean_cycle) == pytest.approx(case.cycle, abs=5e-7)
    for queue, throughput, content in zip(
        (solution.outbound, solution.inbound), case.throughput, case.content, strict=True
    ):
        assert float(queue.throughput) == pytest.approx(throughput, abs=5e-7)
        assert float(queue.mean_queue_at_slots) == pytest.approx(content, abs=5e-7)
        balance = 1 - float(queue.throughput) / (case.batch_rate * case.batch)
        assert float(queue.packet_loss) == pytest.approx(balance, abs=1e-8)
    assert float(solution.outbound.packet_loss) == pytest.approx(case.loss, abs=5e-7)


@pytest.mark.parametrize("case", EXACT)
def test_independent_vacations_of_two_stations(case: Exact):
    solution = independent_vacations(stations(2, *case[:4]))
    cycle, content, loss = case.independent
    assert float(solution.mean_cycle) == pytest.approx(cycle, abs=5e-4)
    assert float(solution.outbound.mean_queue_at_slots) == pytest.approx(content, abs=5e-6)
    assert float(solution.outbound.packet_loss) == pytest.approx(loss, abs=5e-7)


def test_cycle_memory_on_every_lattice_point():
    """With few possible cycle lengths nothing is binned: the closure's own value is known."""
    solution = cycle_memory_closure(stations(2, *SMALL[:4]), points=64)
    assert float(solution.mean_cycle) == pytest.approx(24.944, abs=5e-4)
    assert float(solution.outbound.mean_queue_at_slots) == pytest.approx(1.62103, abs=5e-6)
    assert float(solution.outbound.packet_loss) == pytest.approx(0.021061, abs=5e-7)


def test_alone_a_station_has_no_absence_and_both_closures_are_exact():
    alone = stations(1, 0.05, 1, 6, 2)
    independent, memory = independent_vacations(alone), cycle_memory_closure(alone)
    for solution in (independent, memory):
        balance = 1 - float(solution.outbound.throughput) / 0.05
        assert float(solution.outbound.packet_loss) == pytest.approx(balance, abs=1e-8)
    assert float(memory.mean_cycle) == pytest.approx(float(independent.mean_cycle), rel=1e-8)
    assert mean_sojourn(memory) == pytest.approx(mean_sojourn(independent), rel=1e-8)


@pytest.mark.parametrize(
    ("count", "rate", "wait"), [(2, 0.6 / 18.4, 7.804348), (7, 0.6 / 64.4, 20.304348), (4, 0.02, 20.363636)]
)
def test_closed_form_of_the_alternating_round_robin(count: int, rate: float, wait: float):
    moments = float(lattice.mean(PACKETS)), float(lattice.second_moment(PACKETS))
    assert closed_forms.alternating_round_robin_wait(rate, count, *moments) == pytest.approx(wait, abs=5e-7)


def test_joint_chain_of_a_round_robin_meets_the_closed_form():
    """With one frame a visit the pair is a one-limited cycle; at light load eight places are enough.

    The continuous-time mean wait of the slotted system: the closed form counts from the arrival itself.
    """
    rate = 0.01
    solution = joint_chain(stations(2, rate, 1, 8, 1))
    moments = float(lattice.mean(PACKETS)), float(lattice.second_moment(PACKETS))
    wait = closed_forms.alternating_round_robin_wait(rate, 2, *moments)
    assert mean_sojourn(solution) - moments[0] == pytest.approx(wait, rel=1e-6)
    cycle = closed_forms.alternating_round_robin_cycle(rate, 2, moments[0])
    assert float(solution.mean_cycle) == pytest.approx(cycle, rel=1e-7)


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "limit", "batch", "load", "cycle", "sojourn", "loss"),
    [
        (2, 5, 5, 0.30, 6.00, 24.92, None),
        (2, 5, 5, 0.60, 11.31, 42.95, 0.00119),
        (2, 5, 5, 0.80, 22.56, 75.89, 0.01260),
        (2, 5, 5, 0.95, 44.44, 122.85, 0.04972),
        (4, 5, 5, 0.60, 23.16, 51.76, 0.00027),
        (4, 5, 5, 0.90, 84.19, 167.12, 0.02089),
        (7, 5, 5, 0.50, 31.45, 48.54, None),
        (7, 5, 5, 0.80, 92.97, 141.96, 0.00281),
        (2, 1, 1, 0.60, 7.540, 12.403, None),
        (7, 1, 1, 0.60, 26.38, 24.89, None),
        (7, 5, 1, 0.80, 107.19, 64.50, None),
        (4, 2, 1, 0.80, 37.16, 34.14, None),
    ],
)
def test_cycle_memory_against_simulation(
    count: int, limit: int, batch: int, load: float, cycle: float, sojourn: float, loss: float | None
):
    solution = cycle_memory_closure(loaded(count, load, batch, limit))
    assert float(solution.mean_cycle) == pytest.approx(cycle, rel=0.035)
    assert mean_sojourn(solution) == pytest.approx(sojourn, rel=0.035)
    if loss is None:
        assert float(solution.outbound.packet_loss) < 2e-5
    else:
        assert float(solution.outbound.packet_loss) == pytest.approx(loss, rel=0.2)


@pytest.mark.parametrize(
    ("count", "load", "cycle", "outbound", "inbound", "loss"),
    [
        (2, 0.30, 5.983, 29.67, 28.54, None),
        (2, 0.60, 10.996, 57.45, 31.44, 0.00310),
        (2, 0.80, 20.554, 97.68, 34.40, 0.02281),
        pytest.param(4, 0.60, 22.752, 70.09, 30.51, 0.00090, marks=pytest.mark.long),
        pytest.param(4, 0.80, 46.001, 137.53, 33.60, 0.01126, marks=pytest.mark.long),
    ],
)
def test_relay_ring_against_simulation(
    count: int, load: float, cycle: float, outbound: float, inbound: float, loss: float | None
):
    solution = relay_ring(ring(count, load))
    assert float(solution.mean_cycle) == pytest.approx(cycle, rel=0.02)
    assert float(solution.outbound.mean_sojourn) == pytest.approx(outbound, rel=0.02)
    assert float(solution.inbound.mean_sojourn) == pytest.approx(inbound, rel=0.02)
    if loss is None:
        assert float(solution.outbound.packet_loss) < 1e-4
    else:
        assert float(solution.outbound.packet_loss) == pytest.approx(loss, rel=0.02)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_relay_ring_against_the_exact_chain_of_two(load: float):
    closure, exact = relay_ring(ring(2, load)), relay_joint_chain(ring(2, load))
    assert float(closure.mean_cycle) == pytest.approx(float(exact.mean_cycle), rel=0.01)
    for queue, truth in ((closure.outbound, exact.outbound), (closure.inbound, exact.inbound)):
        assert float(queue.mean_sojourn) == pytest.approx(float(truth.mean_sojourn), rel=0.01)
    assert float(closure.outbound.packet_loss) == pytest.approx(float(exact.outbound.packet_loss), rel=0.03)


@pytest.mark.parametrize(
    ("load", "cycle", "outbound", "inbound", "loss"),
    [
        (0.60, 10.996, 57.45, 31.44, 0.00310),
        (0.80, 20.554, 97.68, 34.40, 0.02281),
    ],
)
def test_exact_chain_of_two_relays_against_simulation(
    load: float, cycle: float, outbound: float, inbound: float, loss: float
):
    """The simulations are short: about half a percent in the means, three percent in the losses."""
    solution = relay_joint_chain(ring(2, load))
    assert float(solution.mean_cycle) == pytest.approx(cycle, rel=0.006)
    assert float(solution.outbound.mean_sojourn) == pytest.approx(outbound, rel=0.005)
    assert float(solution.inbound.mean_sojourn) == pytest.approx(inbound, rel=0.005)
    assert float(solution.outbound.packet_loss) == pytest.approx(loss, rel=0.03)
    offered = load / (2 * 2 * 4.6)
    balance = 1 - float(solution.outbound.throughput) / offered
    assert float(solution.outbound.packet_loss) == pytest.approx(balance, rel=1e-6)


def test_relay_ring_conserves_packets_and_slots():
    solution = relay_ring(ring(3, 0.6))
    offered = 0.6 / (2 * 3 * 4.6)
    accepted = offered * (1 - float(solution.outbound.packet_loss))
    assert float(solution.outbound.throughput) == pytest.approx(accepted, rel=1e-6)
    assert float(solution.inbound.throughput) == pytest.approx(float(solution.outbound.throughput), rel=1e-12)
    assert float(solution.inbound.packet_loss) == 0.0
    assert float(solution.slot_utilisation) == pytest.approx(3 * 2 * accepted * 4.6, rel=1e-6)


def test_an_overloaded_ring_fills_its_visits():
    """Far above saturation every visit takes all its frames: 5 packets each way, 4.6 slots each."""
    solution = relay_ring(ring(2, 4.0))
    assert float(solution.mean_cycle) == pytest.approx(2 * 5 * 2 * 4.6, rel=1e-2)
    assert float(solution.slot_utilisation) == pytest.approx(1.0, abs=5e-3)


def test_a_small_inbound_queue_loses_what_a_visit_brings_beyond_it():
    solution = relay_ring(ring(2, 0.6, inbound_capacity=3))
    passed, sent = float(solution.inbound.throughput), float(solution.outbound.throughput)
    assert 0.05 < float(solution.inbound.packet_loss) < 1
    assert passed == pytest.approx(sent * (1 - float(solution.inbound.packet_loss)), rel=1e-12)


def test_a_ring_is_worse_off_outbound_than_independent_inputs_suggest():
    relayed = relay_ring(ring(2, 0.6))
    independent = cycle_memory_closure(loaded(2, 0.6, 5, 5), points=12)
    assert float(relayed.outbound.mean_sojourn) > 1.2 * float(independent.outbound.mean_sojourn)
    assert float(relayed.outbound.packet_loss) > 2 * float(independent.outbound.packet_loss)


def test_packets_of_even_length_are_tracked_slot_by_slot():
    """One-slot steps and two-slot steps describe the same system when no even length occurs."""
    odd = np.array([0, 0, 0, 0.2, 0, 0.8])
    nearly = np.array([0, 0, 1e-13, 0.2, 0, 0.8 - 1e-13])
    queue = PoissonBatches(0.03)
    coarse, fine = (joint_chain(PairPolling(2, 2, law, queue, 4, queue, 4)) for law in (odd, nearly))
    assert float(fine.mean_cycle) == pytest.approx(float(coarse.mean_cycle), rel=1e-9)
    assert mean_sojourn(fine) == pytest.approx(mean_sojourn(coarse), rel=1e-9)


def test_too_few_iterations_are_reported():
    with pytest.raises(ConvergenceError, match="after 3 iterations"):
        relay_ring(ring(2, 0.6), max_iterations=3)


def test_impossible_systems_are_refused():
    with pytest.raises(ValueError, match="stations"):
        ring(1, 0.6)
    with pytest.raises(ValueError, match="limit"):
        stations(2, 0.05, 1, 6, 0)
    with pytest.raises(ValueError, match="2 stations"):
        joint_chain(stations(3, 0.05, 1, 2, 1))
    with pytest.raises(ValueError, match="packet_slots"):
        PairPolling(2, 2, np.array([1.0]), PoissonBatches(0.1), 4, PoissonBatches(0.1), 4)
