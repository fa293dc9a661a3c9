"""The claims of all publications: each has the verdict that its record has, with fixed seeds.

A claim that is not reproduced is a test as well: it fails as soon as it is, and the record must then be
corrected. Claims of a few simulations run always, the others with -m long. Every trend and order is tested at
a false-alarm rate of 0.1 % (judgement.py).
"""

import numpy as np
import pytest

from btqueue.reproduction.claims import judgement
from btqueue.reproduction.claims.engines import Simulator
from btqueue.reproduction.claims.record import PAPERS, claims_of, is_judged
from btqueue.reproduction.claims.recorded import JUDGES, at_places, checks, judge

SIMULATOR = Simulator()
FAST = 4
"""Most points of ten replications that a claim of the thesis may take in a default run."""
SLOW = {"half-the-buffer", "vegas-bounds", "vegas-bounds-with-more-peripherals"}
"""Claims whose points take long."""
NOT_REPRODUCED = {
    "link-throughput": {"DM5 at 0.001"},
    "four-hops-as-two": {""},
    "bursts-cost-delay": {f"PEP {pep}, load 0.9" for pep in (0.1, 0.3, 0.5)},
    "vegas-bounds": {
        *("saturated goodput, asymmetric", "saturated goodput, symmetric"),
        *("delay at load 0.6", "delay at load 0.8"),
    },
    "vegas-bounds-with-more-peripherals": {"from 1 to 3"},
    "alternating": {f"{hops} hops, far" for hops in (1, 2, 4)},
    "almost-tenfold": {"largest"},
    "fixed-wait-variance": {"PEP 0.1, load 0.2", "PEP 0.3, load 0.2"},
    "fixed-wait-mean": {"PEP 0.5"},
    "fixed-wait-hump": {"minimum, PEP 0.1", "minimum, PEP 0.3"},
}
"""Parts of claims of Chen and of Johansson that do not hold; why is said on the pages of the claims."""


def points(claim):
    """Return about how many points of ten replications a claim simulates."""
    if claim["kind"] not in JUDGES:
        return 100 if claim["kind"] == "procedure" else 0
    sizes = (len(at_places(check)) * len(check.get("order", [{}])) for check in checks(claim))
    return sum(sizes) * claim.get("replications", 10) // 10


def marked(paper, claim):
    name = claim["id"]
    slow = name in SLOW
    if paper == "venugopal-2006":
        slow = claim["kind"] == "summary" or points(claim) > FAST
    return pytest.param(paper, claim, id=f"{paper}-{name}", marks=pytest.mark.long if slow else ())


@pytest.mark.parametrize(
    ("paper", "claim"),
    [marked(paper, claim) for paper in PAPERS for claim in claims_of(paper).values() if is_judged(claim)],
)
def test_a_claim_has_the_verdict_on_record(paper, claim):
    judged = judge(paper, claim, SIMULATOR)
    assert judged.verdict == claim["verdict"], judged
    if paper in ("chen-2004", "johansson-2000"):
        assert set(judged.failed) == NOT_REPRODUCED.get(claim["id"], set()), judged


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
    assert judgement.best(level, [5, 10, 15], 10, 10).holds
    assert not judgement.best(level, [5, 10, 15], 5, 5).holds
    tied = level / [[1.0], [1.02], [1.0]]  # 100 against 101.96
    assert not judgement.best(tied, [5, 10, 15], 10, 10).holds
    assert judgement.smallest_sufficient(tied, [5, 10, 15], 5, 5).holds
    assert not judgement.smallest_sufficient(level, [5, 10, 15], 5, 5).holds
    assert judgement.inner(level, [5, 10, 15], 8, 12, least=False).holds
    assert not judgement.inner(level, [5, 10, 15], 8, 12, least=True).holds


# ---------------------------------------------------------------- samples of a model: one replication


def test_a_model_has_an_order_if_values_differ_by_more_than_its_resolution():
    high, low = np.array([1.0]), np.array([0.9])
    assert judgement.exceeds(high, low)
    assert not judgement.exceeds(low, high)
    assert not judgement.exceeds(high + 1e-9, high)


def test_a_trend_of_a_model_is_the_sign_of_its_steps_up_to_the_same_share_backward():
    places = np.arange(4.0)
    rising = np.array([[1.0], [2.0], [1.95], [3.0]])
    assert judgement.trend(rising, places, rising=True).holds
    assert not judgement.trend(-rising, places, rising=True).holds
    assert not judgement.trend(np.array([[1.0], [2.0], [1.5], [3.0]]), places, rising=True).holds
    assert not judgement.trend(1.0 + 1e-12 * rising, places, rising=True).holds
