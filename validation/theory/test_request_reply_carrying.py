"""Laws on a lattice, carried through transitions: beside the same by one law at a time."""

import numpy as np

from btqueue.network.request_reply.carrying import MOVE, Laws, carry
from btqueue.network.request_reply.law import add_at

POINTS = 64
STEP_NS = 1000.0


def test_laws_are_carried_as_one_at_a_time():
    random = np.random.default_rng(2)
    now, then = Laws(3, POINTS), Laws(4, POINTS)
    for row, (first, behind) in enumerate([(0, 5), (20, 64)]):  # the third is empty
        now.weights[row, first:behind] = random.random(behind - first)
        now.held[row] = first, behind
    times = [0.0, 250.0, 7000.0, 43_500.0, 59_900.0, 62_999.0, 63_000.0, 64_000.0, 1e9]
    rows = [(place % 3, place % 4, random.random(), time) for place, time in enumerate(times * 3)]
    expected = np.zeros((4, POINTS))
    for source, target, share, time in rows:
        add_at(expected[target], share * now.weights[source], time / STEP_NS)
    carry(now, np.array(rows, MOVE).view(np.recarray), STEP_NS, then)
    np.testing.assert_allclose(then.weights, expected, rtol=1e-12, atol=1e-15)
    for row, (first, behind) in zip(then.weights, then.held, strict=True):
        assert not row[:first].any()
        assert not row[behind:].any()
    np.testing.assert_allclose(then.total, expected.sum(), rtol=1e-12)
    then.clear()
    assert not then.weights.any()
    assert then.total == 0.0
