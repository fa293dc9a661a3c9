"""MAP/PH/1 queues against Pollaczek-Khinchine, renewal roots and chains written out state by state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from btqueue.queueing.chains import birth_death, gi_m_1, markov
from btqueue.queueing.laws import lattice, phase_type_fit
from btqueue.queueing.laws.phase_type import ContinuousPhaseType, DiscretePhaseType
from btqueue.queueing.single.modulated_queue import ModulatedQueue, limited_modulated_queue, modulated_queue
from btqueue.queueing.single.modulated_sojourn import sojourn_law
from btqueue.queueing.traffic import map_sources
from btqueue.queueing.traffic.map_arrivals import DiscreteMap

MEMORYLESS = ContinuousPhaseType([1.0], [[-1.0]], [1.0])


def total(law: lattice.CutLaw) -> float:
    return float(np.asarray(law.probabilities).sum() + law.tail)


@pytest.mark.parametrize(("load", "scv"), [(0.1, 0.4), (0.8, 0.4), (0.8, 3.0), (0.95, 0.4)])
def test_mph1_waits_as_pollaczek_and_khinchine_say(load: float, scv: float):
    queue = modulated_queue(
        arrivals=map_sources.poisson(load), service=phase_type_fit.fit(1.0, scv), length=30
    )
    wait = load * (1 + scv) / (2 * (1 - load))
    assert float(queue.mean_sojourn) == pytest.approx(1.0 + wait, rel=1e-11)
    assert float(queue.occupancy.probabilities[0]) == pytest.approx(1 - load, rel=1e-11)
    # Poisson arrivals see time averages
    np.testing.assert_allclose(queue.found.probabilities, queue.occupancy.probabilities[:-1], rtol=1e-11)
    assert total(queue.occupancy) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("scv", [0.1, 2.0])
def test_geo_g_1_waits_as_its_closed_form_says(scv: float):
    service = phase_type_fit.fit_discrete(4.0, scv)
    queue = modulated_queue(arrivals=map_sources.bernoulli(0.2), service=service, length=30)
    wait = 0.2 * float(service.factorial_moment(2)) / (2 * 0.2)
    assert float(queue.mean_sojourn) == pytest.approx(4.0 + wait, rel=1e-11)
    assert float(queue.load) == pytest.approx(0.8, rel=1e-12)


def test_batches_wait_for_each_other():
    # M^X/M/1 with constant X: the wait of M/M/1, and (X - 1) / (2 (1 - rho)) more
    rate, size = 0.2, 3
    queue = modulated_queue(
        arrivals=map_sources.poisson(rate, lattice.point(size)), service=MEMORYLESS, length=20
    )
    load = rate * size
    wait = (2 * load + size - 1) / (2 * (1 - load))
    assert float(queue.mean_sojourn) == pytest.approx(1.0 + wait, rel=1e-11)


def test_renewal_arrivals_find_a_geometric_queue():
    gap = phase_type_fit.fit(1.0, 0.5)  # Erlang of two phases
    queue = modulated_queue(
        arrivals=map_sources.renewal(gap), service=ContinuousPhaseType([1.0], [[-1.5]], [1.5]), length=12
    )
    root = gi_m_1.gi_m_1_queue(lambda s: (2 / (2 + s)) ** 2, arrival_rate=1.0, service_rate=1.5)
    sigma = float(root.root)
    np.testing.assert_allclose(queue.found.probabilities, (1 - sigma) * sigma ** np.arange(11), rtol=1e-11)
    assert float(queue.mean_sojourn) == pytest.approx(float(root.mean_sojourn), rel=1e-11)


def test_interrupted_bernoulli_with_geometric_service_has_the_renewal_root():
    source = map_sources.interrupted_bernoulli(0.3, 4.0)
    queue = modulated_queue(arrivals=source, service=DiscretePhaseType([1.0], [[0.5]], [0.5]), length=40)
    gaps = np.asarray(source.gaps().law(4000).probabilities)
    root = gi_m_1.gi_geo_1_queue(gaps / gaps.sum(), 0.5)
    sigma = float(root.root)
    np.testing.assert_allclose(queue.found.probabilities, (1 - sigma) * sigma ** np.arange(39), rtol=1e-9)
    assert float(queue.mean_queue) == pytest.approx(float(root.mean_queue), rel=1e-10)


def slot_chain(source: DiscreteMap, service: DiscretePhaseType, capacity: int) -> np.ndarray:
    """The transition matrix written out: states (0, phase) and (n, phase, service phase)."""
    blocks = np.asarray(source.blocks)
    start, inner, ends = (np.asarray(part) for part in (service.start, service.matrix, service.exits))
    phases, stages = blocks.shape[1], len(start)

    def index(packets: int, phase: int, stage: int) -> int:
        return phase if packets == 0 else phases + ((packets - 1) * phases + phase) * stages + stage

    matrix = np.zeros((phases + capacity * phases * stages,) * 2)
    for packets in range(capacity + 1):
        for phase, stage in np.ndindex(phases, stages if packets else 1):
            outcomes = [(packets, start, 1.0)]
            if packets:
                outcomes = [(packets, inner[stage], 1.0), (packets - 1, start, ends[stage])]
            for left, stage_law, weight in outcomes:
                for batch, to in np.ndindex(len(blocks), phases):
                    after = min(left + batch, capacity)
                    chance = weight * blocks[batch, phase, to]
                    here = matrix[index(packets, phase, stage)]
                    if after == 0:
                        here[index(0, to, 0)] += chance
                        continue
                    for next_stage in range(stages):
                        here[index(after, to, next_stage)] += chance * stage_law[next_stage]
    return matrix


@pytest.mark.parametrize("capacity", [1, 2, 3, 7])
def test_limited_queue_is_the_chain_written_out(capacity: int):
    source = map_sources.modulated_bernoulli([[0.9, 0.1], [0.3, 0.7]], [0.05, 0.5], [0.0, 0.5, 0.2, 0.3])
    service = phase_type_fit.fit_discrete(2.5, 0.3)
    queue = limited_modulated_queue(arrivals=source, service=service, capacity=capacity)
    law = np.asarray(markov.stationary_vector(slot_chain(source, service, capacity)))
    np.testing.assert_allclose(queue.empty, law[:2], rtol=1e-11)
    np.testing.assert_allclose(np.asarray(queue.busy).ravel(), law[2:], rtol=1e-11)
    # what comes and finds room is served
    lost = 1 - float(queue.throughput) / float(source.packet_rate)
    assert float(queue.packet_loss) == pytest.approx(lost, rel=1e-12)
    assert float(queue.batch_loss) >= float(queue.packet_loss) * 0.5
    assert total(queue.occupancy) == pytest.approx(1.0, abs=1e-13)
    assert total(queue.found) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("load", [0.5, 1.0, 3.0])
def test_mm1k_in_continuous_time(load: float):
    queue = limited_modulated_queue(arrivals=map_sources.poisson(load), service=MEMORYLESS, capacity=6)
    expected = birth_death.mmck_queue(arrival_rate=load, service_rate=1.0, capacity=6)
    np.testing.assert_allclose(queue.occupancy.probabilities, expected.occupancy, rtol=1e-12)
    assert float(queue.packet_loss) == pytest.approx(float(expected.blocking), rel=1e-12)
    assert float(queue.mean_sojourn) == pytest.approx(float(expected.mean_sojourn), rel=1e-12)


def bursty() -> tuple[DiscreteMap, DiscretePhaseType]:
    return map_sources.interrupted_bernoulli(0.1, 3.0, [0.0, 0.5, 0.5]), phase_type_fit.fit_discrete(4.0, 0.2)


@pytest.fixture(scope="module")
def unlimited() -> ModulatedQueue:
    source, service = bursty()
    return modulated_queue(arrivals=source, service=service, length=320)


def test_large_capacity_tends_to_unlimited_room(unlimited: ModulatedQueue):
    source, service = bursty()
    limited = limited_modulated_queue(arrivals=source, service=service, capacity=400)
    assert float(limited.mean_queue) == pytest.approx(float(unlimited.mean_queue), rel=1e-10)
    np.testing.assert_allclose(
        limited.occupancy.probabilities[:50], unlimited.occupancy.probabilities[:50], rtol=1e-10
    )
    assert 0 < float(limited.packet_loss) < 1e-9


def test_sojourn_law_has_the_mean_that_little_gives(unlimited: ModulatedQueue):
    source, service = bursty()
    law = sojourn_law(unlimited, arrivals=source, service=service, length=318)
    known = np.asarray(law.probabilities)
    assert known.sum() + float(law.tail) == pytest.approx(1.0, abs=1e-12)
    # the tail is geometric, so the rest of the mean follows from the last two entries
    ratio = known[-1] / known[-2]
    rest = known[-1] * ratio * (318 / (1 - ratio) + ratio / (1 - ratio) ** 2)
    assert lattice.mean(known) + rest == pytest.approx(float(unlimited.mean_sojourn), rel=1e-9)


def test_sojourn_law_of_geo_geo_1_is_geometric():
    source, service = map_sources.bernoulli(0.2), DiscretePhaseType([1.0], [[0.5]], [0.5])
    queue = modulated_queue(arrivals=source, service=service, length=32)
    law = sojourn_law(queue, arrivals=source, service=service, length=30)
    leave = 0.3 / 0.8
    np.testing.assert_allclose(law.probabilities[1:], leave * (1 - leave) ** np.arange(29), rtol=1e-11)


def test_sojourn_law_of_a_limited_queue_counts_the_accepted():
    source, service = map_sources.bernoulli(0.6, [0.0, 0.3, 0.0, 0.7]), phase_type_fit.fit_discrete(3.0, 0.1)
    queue = limited_modulated_queue(arrivals=source, service=service, capacity=4)
    law = sojourn_law(queue, arrivals=source, service=service, length=60, capacity=4)
    assert float(lattice.mean(law.probabilities)) == pytest.approx(float(queue.mean_sojourn), rel=1e-10)
    assert float(law.tail) < 1e-12


def test_correlation_makes_queues_longer():
    # same packet rate and same service; slow two-state modulation
    service = phase_type_fit.fit_discrete(4.0, 0.2)
    calm = modulated_queue(arrivals=map_sources.bernoulli(0.15), service=service, length=4)
    slow = map_sources.modulated_bernoulli(map_sources.two_state_transition(100.0, 100.0), [0.05, 0.25])
    waves = modulated_queue(arrivals=slow, service=service, length=4)
    assert float(waves.load) == pytest.approx(float(calm.load), rel=1e-12)
    assert float(waves.mean_queue) > 1.5 * float(calm.mean_queue)


def test_overload_is_refused_outside_and_flagged_inside():
    with pytest.raises(ValueError, match="load below one"):
        modulated_queue(arrivals=map_sources.poisson(1.2), service=MEMORYLESS, length=5)
    with jax.enable_x64(True):
        solve = jax.jit(
            lambda rate: modulated_queue(arrivals=map_sources.poisson(rate), service=MEMORYLESS, length=5)
        )
        over = solve(1.2)
        assert not bool(over.stable)
        assert float(over.mean_queue) == np.inf
        assert float(over.occupancy.tail) == 1.0
        assert float(over.throughput) == 1.0
        assert not any(bool(jnp.isnan(leaf).any()) for leaf in jax.tree.leaves(over))


def test_gradients_through_both_solutions():
    with jax.enable_x64(True):

        def figures(rate: jax.Array, scv: jax.Array, mean: jax.Array) -> jax.Array:
            source = map_sources.interrupted_bernoulli(rate, scv, [0.0, 0.5, 0.5])
            service = phase_type_fit.fit_discrete_low_variability(mean, 0.2, stages=4)
            endless = modulated_queue(arrivals=source, service=service, length=3)
            limited = limited_modulated_queue(arrivals=source, service=service, capacity=6)
            return jnp.stack(
                [endless.mean_queue, endless.occupancy.tail, limited.packet_loss, limited.mean_sojourn]
            )

        solve = jax.jit(
            lambda *at: (figures(*at), jax.jacrev(figures, argnums=(0, 1, 2))(*at))
        )  # one compilation
        point, step = np.array([0.1, 3.0, 4.1]), 1e-4
        slopes = np.stack(solve(*point)[1], axis=1)
        for which in range(3):
            ends = [
                np.asarray(solve(*(point + share * step * np.eye(3)[which] * point))[0])
                for share in (1, -1, 0.5, -0.5)
            ]
            wide, narrow = (ends[0] - ends[1]) / 2, ends[2] - ends[3]
            difference = (4 * narrow - wide) / 3 / (step * point[which])
            np.testing.assert_allclose(slopes[:, which], difference, rtol=1e-6)


def test_impossible_queues_are_refused(unlimited: ModulatedQueue):
    source, service = bursty()
    with pytest.raises(ValueError, match="slots"):
        modulated_queue(arrivals=source, service=MEMORYLESS, length=5)
    with pytest.raises(ValueError, match="capacity"):
        limited_modulated_queue(arrivals=source, service=service, capacity=0)
    with pytest.raises(ValueError, match="length"):
        modulated_queue(arrivals=source, service=service, length=1)
    with pytest.raises(ValueError, match="length must not exceed 318"):
        sojourn_law(unlimited, arrivals=source, service=service, length=319)
