"""The claims of Venugopal (2006): each has the verdict that published.toml records, with fixed seeds.

A claim that is not reproduced is a test as well: it fails as soon as it is, and the record must then be
corrected. Claims of a few simulations run always, the others with -m long. Every trend and order is tested at
a false-alarm rate of 0.1 % (judgement.py).
"""

import numpy as np
import pytest

from btqueue.reproduction.claims import judgement
from btqueue.reproduction.claims.engines import Simulator
from btqueue.reproduction.claims.papers import is_judged, judge, points
from btqueue.reproduction.claims.record import claims_of

PAPER = "venugopal-2006"
CLAIMS = claims_of(PAPER)
SIMULATOR = Simulator()
FAST = 4
"""Most points of ten replications that a claim of the default run may take."""


def marked(claim):
    size = 100 if claim["kind"] == "summary" else points(PAPER, claim)
    return pytest.param(claim, id=claim["id"], marks=() if size <= FAST else pytest.mark.long)


@pytest.mark.parametrize("claim", [marked(claim) for claim in CLAIMS.values() if is_judged(claim)])
def test_a_claim_has_the_verdict_that_is_recorded(claim):
    judged = judge(PAPER, claim, SIMULATOR)
    assert judged.verdict == claim["verdict"], judged


# ---------------------------------------------------------------- the judges


NOISE = np.random.default_rng(1).normal(size=(5, 10))
PLACES = np.arange(5.0)


def test_a_trend_beyond_the_noise_is_found_and_its_opposite_is_not():
    rising = 10 * PLACES[:, None] + NOISE
    assert judgement.trend(rising, PLACES, rising=True).holds
    assert not judgement.trend(rising, PLACES, rising=False).holds


def test_a_significant_step_backward_spoils_a_trend():
    bent = np.array([0.0, 10, 20, 10, 40])[:, None] + NOISE / 10
    assert not judgement.trend(bent, PLACES, rising=True).holds


def test_without_a_trend_hardly_any_is_found():
    # 2000 tests at a rate of 0.001: more than 10 occur with a probability of 8e-6 (Poisson, mean 2).
    generator = np.random.default_rng(2)
    found = [judgement.trend(generator.normal(size=(5, 10)), PLACES, rising=True).holds for _ in range(2000)]
    assert sum(found) <= 10


def test_a_value_is_met_within_its_tolerance_and_the_interval():
    sample = np.array([99.0, 101.0, 100.0])  # 100 ± 2.48
    assert judgement.value(sample, 112.0, 10.0).holds
    assert not judgement.value(sample, 113.0, 10.0).holds


def test_an_order_needs_every_step():
    low, high = np.zeros(5), np.ones(5)
    assert judgement.order([2 * high, high, low]).holds
    assert not judgement.order([2 * high, high, high]).holds


def test_flat_and_places():
    level = np.array([100.0, 104.0, 100.0])[:, None] * np.ones((3, 4))
    assert judgement.flat(level, 0.05).holds
    assert not judgement.flat(level, 0.03).holds
    assert judgement.best(level, [5, 10, 15], 10, 10, 0.02).holds
    assert not judgement.best(level, [5, 10, 15], 5, 5, 0.02).holds
    assert judgement.smallest_sufficient(level, [5, 10, 15], 5, 5, 0.05).holds
    assert not judgement.smallest_sufficient(level, [5, 10, 15], 5, 5, 0.02).holds
    assert judgement.inner(level, [5, 10, 15], 8, 12, least=False).holds
    assert not judgement.inner(level, [5, 10, 15], 8, 12, least=True).holds


# ---------------------------------------------------------------- samples of a model: one replication


def test_a_model_has_an_order_if_values_differ_by_more_than_its_resolution():
    high, low = np.array([1.0]), np.array([0.9])
    assert judgement.exceeds(high, low)
    assert not judgement.exceeds(low, high)
    assert not judgement.exceeds(high + 1e-9, high)
    assert judgement.same(high + 1e-9, high)
    assert not judgement.same(high, low)


def test_a_trend_of_a_model_is_the_sign_of_its_steps_up_to_the_same_share_backward():
    places = np.arange(4.0)
    rising = np.array([[1.0], [2.0], [1.95], [3.0]])
    assert judgement.trend(rising, places, rising=True).holds
    assert not judgement.trend(-rising, places, rising=True).holds
    assert not judgement.trend(np.array([[1.0], [2.0], [1.5], [3.0]]), places, rising=True).holds
    assert not judgement.trend(1.0 + 1e-12 * rising, places, rising=True).holds
