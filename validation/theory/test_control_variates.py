"""Control variates of followed connections: means of 0, weights, and what they do to an answer."""

from itertools import pairwise

import numpy as np
import pytest

import btqueue as bt
from btqueue.network.control_variates import Messages, excess_of, relative_error, weights
from btqueue.network.opening import new_sender
from btqueue.network.orbit_precision import Batches, Precision, enough, of_long_batches, precision_of
from btqueue.network.ring_piconet.network import network_of
from btqueue.network.ring_piconet.runs import Connections, Run
from btqueue.network.ring_piconet.sequences import MESSAGES, gap


def messages(flows: int, interval: float, shared: float, own: float, start: int = 0) -> Messages:
    alike, numbers = np.ones(flows), np.arange(start, start + flows)
    first = np.array([interval * gap(int(number), MESSAGES, 0) for number in numbers])
    return Messages(numbers, first, interval * alike, shared * alike, own * alike)


def waits(arrivals: list[float], service: float) -> np.ndarray:
    """Return the waits in a queue, one after the other (Lindley)."""
    free, found = 0.0, []
    for arrival in arrivals:
        found.append(max(free - arrival, 0.0))
        free = max(free, arrival) + service
    return np.array(found)


def test_excesses_are_those_of_queues_followed_by_hand():
    asked = messages(2, 1.0, shared=0.3, own=0.5)
    edges = np.array([50.0, 120.0, 200.0])
    own = [np.cumsum([gap(number, MESSAGES, n) for n in range(400)]) for number in (0, 1)]
    both = np.sort(np.concatenate(own))
    found = excess_of(asked, edges)
    for batch, (begin, end) in enumerate(pairwise(edges.tolist())):
        inside = (both >= begin) & (both < end)
        assert found[batch, 0] == pytest.approx(inside.sum() - 2.0 * (end - begin))
        mean = 2.0 * 0.3**2 / 2.0 / (1.0 - 0.6)
        assert found[batch, 1] == pytest.approx((waits(list(both), 0.3)[inside] - mean).sum())
        alone = sum((waits(list(t), 0.5)[(t >= begin) & (t < end)] - 0.25).sum() for t in own)
        assert found[batch, 2] == pytest.approx(alone)


def test_excesses_are_0_on_average():
    edges = np.linspace(100.0, 1100.0, 9)
    found = np.concatenate([excess_of(messages(3, 1.0, 0.2, 0.5, 3 * n), edges) for n in range(60)])
    errors = found.mean(axis=0) / (found.std(axis=0) / len(found) ** 0.5)
    assert np.abs(errors).max() < 3.0


def test_a_queue_that_is_too_busy_is_no_control():
    assert excess_of(messages(3, 1.0, 0.3, 0.2), np.array([0.0, 1.0])).shape == (1, 0)


def test_weights_give_the_controls_their_means_and_keep_the_size():
    rng = np.random.default_rng(3)
    sizes, excess = rng.uniform(50, 60, 32), rng.normal(0.3, 1.0, (32, 2))
    found = weights(sizes, excess)
    assert found @ excess == pytest.approx(np.zeros(2), abs=1e-9)
    assert found @ sizes == pytest.approx(sizes.sum())
    assert weights(sizes, np.zeros((32, 2))) == pytest.approx(np.ones(32))


def test_what_controls_explain_is_no_error():
    rng = np.random.default_rng(4)
    estimates, said = [], []
    for _ in range(400):
        # so many batches that no weight falls below 0, where all would count alike
        sizes, excess, noise = np.full(128, 50.0), rng.normal(0.0, 1.0, (128, 1)), rng.normal(0.0, 1.0, 128)
        parts = 2.0 * sizes + 5.0 * excess[:, 0] + noise
        estimates.append(float(weights(sizes, excess) @ parts / sizes.sum()))
        said.append(relative_error(parts, sizes, excess))
    assert np.mean(estimates) == pytest.approx(2.0, abs=4 * float(np.std(estimates)) / 20)
    assert np.std(estimates) / 2.0 == pytest.approx(np.mean(said), rel=0.15)
    assert np.std(estimates) == pytest.approx(1.0 / 128**0.5 / 50.0, rel=0.15)


def test_surprises_of_the_radio_are_0_on_average_and_decide_goodput():
    asked = bt.load("venugopal-2006/piconet-errors")
    connections = Connections(network_of(asked), new_sender(asked), 8, 0.073)
    found, pace = [], []
    for number in range(60):
        run = Run(connections, number)
        run.follow(16)
        found.append(run.surprises.sum(axis=0))
        pace.append(run.elapsed / run.delivered)
    array = np.array(found)
    assert np.abs(array.mean(axis=0) / (array.std(axis=0) / len(array) ** 0.5)).max() < 3.0
    given = np.column_stack([np.ones(len(array)), array])
    left = np.array(pace) - given @ np.linalg.lstsq(given, np.array(pace))[0]
    assert left.var() < 0.7 * np.var(pace)


def test_precision_is_the_scatter_of_batches_around_their_run():
    rng = np.random.default_rng(5)

    def run(delivered: float) -> Batches:
        time = rng.normal(10.0, 0.5, 400)
        return Batches(time, np.full(400, delivered), np.full(400, 20.0), rng.normal(40.0, 2.0, 400))

    found = precision_of([run(100.0), run(200.0)])  # runs differ, and that does not count
    assert found.goodput == pytest.approx(0.05 / 800**0.5, rel=0.15)
    assert found.round_trip == pytest.approx(0.05 / 800**0.5, rel=0.15)
    assert precision_of([run(100.0)], carried=True).goodput == 0.0


def test_enough_is_all_three():
    sure = Precision(0.001, 0.001)
    assert enough(sure, 0, 1e3)
    assert enough(sure, 9, 1e3)
    assert not enough(sure, 11, 1e3)
    assert enough(sure, 100, 1e3)
    assert not enough(Precision(0.05, 0.001), 0, 1e3)
    assert not enough(Precision(0.001, 0.05), 0, 1e3)


def test_batches_grow_with_the_run():
    notes = np.arange(33.0)
    assert of_long_batches(notes).tolist() == list(range(0, 33, 4))
    assert of_long_batches(notes[:9]).tolist() == list(range(9))
    assert of_long_batches(notes[:3]).tolist() == [0.0, 1.0, 2.0]


def test_long_batches_hold_all_that_was_counted():
    # a run can end early, with any number of notes: nothing may be left over at its end
    for count in range(2, 40):
        chosen = of_long_batches(np.arange(count))
        assert (chosen[0], chosen[-1]) == (0, count - 1)
        assert np.ptp(np.diff(chosen)) <= 1
