"""Two queues that slow each other down: exact queues of one direction, and a chain of both."""

import numpy as np
import pytest
from btqueue.network.two_way_link.coupled_processors import Arrivals, Overloaded, Service, coupled_queue

ALONE = np.ones((3, 1))


def _coupled(together):
    """Speeds of coupled processors: less whenever the other side is busy."""
    return np.where(np.arange(3) > 0, together, 1.0) * np.ones((3, 1))


@pytest.mark.parametrize("load", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("variance", [0.0, 0.3, 1.0])
def test_alone_it_is_the_m_g_1(load, variance):
    """Pollaczek & Khinchine."""
    found = coupled_queue(Arrivals(load, 1.0), Service(1.0, variance), ALONE)
    assert found.busy == pytest.approx(load, rel=1e-9)
    assert found.service == pytest.approx(1.0, rel=1e-9)
    assert found.wait == pytest.approx(load * (1.0 + variance) / (2.0 * (1.0 - load)), rel=1e-9)


def test_the_law_of_memoryless_jobs_is_geometric():
    found = coupled_queue(Arrivals(0.6, 1.0), Service(1.0, 1.0), ALONE)
    assert [found.at_most(n) for n in range(8)] == pytest.approx([1.0 - 0.6 ** (n + 1) for n in range(8)])


@pytest.mark.parametrize("batch", [2.0, 25.0])
def test_batches_wait_for_those_before_them(batch):
    """The m-th of a batch waits for m - 1 others; batches are the jobs of a queue of their own."""
    load, variance = 0.5, 0.1
    found = coupled_queue(Arrivals(load / batch, batch), Service(1.0, variance), ALONE)
    square = batch * variance + (2.0 * batch - 1.0) * batch
    assert found.wait == pytest.approx(load / batch * square / (2.0 * (1.0 - load)) + batch - 1.0, rel=1e-9)


@pytest.mark.parametrize("load", [0.1, 0.3, 0.4])
@pytest.mark.parametrize("together", [0.5, 0.61, 0.8, 1.0])
def test_coupled_processors_against_the_chain_of_both(load, together):
    """The mean number is exact; the chance of being busy, of a chain with one and more jobs, is not."""
    law = _both(load, together, most=70)
    found = coupled_queue(Arrivals(load, 1.0), Service(1.0, 1.0), _coupled(together))
    assert found.number == pytest.approx(float(law.sum(axis=1) @ np.arange(len(law))), rel=1e-4)
    assert found.busy == pytest.approx(1.0 - law[0].sum(), abs=0.02)
    assert found.neighbour_busy == pytest.approx(law[1:, 1:].sum() / law[1:].sum(), abs=0.03)


def _both(load, together, most):
    """Law of the jobs at both sides: arrivals and services memoryless, up to ``most`` jobs each."""
    law = np.zeros((most + 1, most + 1))
    law[0, 0] = 1.0
    here, there = np.indices(law.shape)
    speed = np.where((here > 0) & (there > 0), together, 1.0)
    out_here, out_there = speed * (here > 0), speed * (there > 0)
    step = 1.0 / (2.0 * load + 2.0)
    for _ in range(40_000):
        moved = law * (1.0 - step * (load * (here < most) + load * (there < most) + out_here + out_there))
        moved[1:] += step * load * law[:-1]
        moved[:, 1:] += step * load * law[:, :-1]
        moved[:-1] += step * (out_here * law)[1:]
        moved[:, :-1] += step * (out_there * law)[:, 1:]
        if np.abs(moved - law).max() < 1e-13:
            break
        law = moved
    return law / law.sum()


def test_stalls_only_add_to_the_queue():
    arrivals, service = Arrivals(0.3, 1.0), Service(1.0, 0.1)
    stalled = _coupled(0.6)
    stalled[2] *= 0.8
    free, held = coupled_queue(arrivals, service, _coupled(0.6)), coupled_queue(arrivals, service, stalled)
    assert held.number > free.number
    assert held.busy > free.busy
    assert held.states.sum() == pytest.approx(1.0)
    assert held.states == pytest.approx(held.states.T)


def test_too_many_jobs_are_refused():
    with pytest.raises(Overloaded):
        coupled_queue(Arrivals(1.0, 1.0), Service(1.0, 0.0), ALONE)
    with pytest.raises(Overloaded):
        coupled_queue(Arrivals(0.6, 1.0), Service(1.0, 0.0), _coupled(0.6))
