"""The dimensioning of Venugopal (2006), 6.1 and 7.1, by the model: one key at a time, as in the thesis."""

import pytest

import btqueue as bt
from btqueue.study.dimensioning import dimension

FAIR_SHARE_KBPS = 359.4 / 2
"""Of two peripherals: 11,680 bit in 52 slots, models/venugopal-2006/README.md."""


@pytest.fixture(scope="module")
def overloaded():
    return bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=200)


def best(scenario, choose):
    found = dimension(scenario, maximize="goodput_kbps", choose=choose, confirm=False, workers=1)
    assert found.best is not None and found.outcome.proved
    return next(iter(found.best.changes.values()))


def test_a_buffer_of_about_25_packets_is_best(overloaded):
    # "about": one step of the thesis's figures, as in published.toml, claim best-S
    assert abs(best(overloaded, "flow_control.buffer_packets=5..40:5") - 25) <= 5


def test_a_visit_of_one_segment_is_best(overloaded):
    assert best(overloaded, "polling.limit=5..25:5") == 5


def test_the_best_token_rate_is_above_the_fair_share_and_not_above_one_and_a_half_times(overloaded):
    rate = best(overloaded, "flow_control.token_rate_kbps=180..400:20")
    assert FAIR_SHARE_KBPS < rate <= 1.5 * FAIR_SHARE_KBPS
