"""The model of one link as a function of its keys: what is smooth must look smooth to finite differences."""

from functools import reduce

import pytest

import btqueue as bt

METRICS = ("goodput_kbps", "rtt_s", "delay_s")
SCENARIOS = {
    "smooth": ("smooth", {}),
    "smooth, near saturation": ("smooth", {"traffic__load_kbps": 230}),
    "fixed wait": ("fixed-wait", {}),
    "bursts": ("bursty", {}),
    "one way": ("smooth", {"traffic__two_way": False}),
    "greedy": ("symmetric", {"radio__per": 0.2}),
    "greedy, one way": ("asymmetric", {"radio__per": 0.2}),
}
KEYS = {
    "radio.per": {},
    "traffic.load_kbps": {},
    "traffic.scv": {"traffic__scv": 2.2},
    "transport.ack_delay_s": {"transport__min_rto_s": 1.5},
    "transport.tcp_delay_s": {},
    "link.l2cap_delay_s": {},
    "transport.alpha": {},
    "transport.beta": {"transport__beta": 3.3},
    "transport.gamma": {"transport__gamma": 1.2},
}
"""With what else is changed: away from the kinks, C^2 = 1 (no bursts below), whole beta (whole windows) and
gamma = 1 (the excess in slow start is just 1), and out of the way of limits."""


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("key", KEYS)
def test_differences_do_not_depend_on_their_step(name, key):
    file, changes = SCENARIOS[name]
    scenario = bt.load(f"johansson-2000/{file}").with_(**{**changes, **KEYS[key]})
    if scenario.traffic.source == "greedy" and key.startswith("traffic."):
        pytest.skip("greedy sources have no rate")
    value = float(reduce(getattr, key.split("."), scenario))
    middle = bt.solve(scenario)
    wide, narrow = (_slopes(scenario, key, value, step) for step in (1e-3, 1e-4))
    for metric in (m for m in METRICS if m in middle):
        # per relative change, and of what can be told apart from nothing
        scale = float(middle[metric].mean())
        assert wide[metric] / scale == pytest.approx(narrow[metric] / scale, rel=1e-3, abs=1e-6), metric


def _slopes(scenario, key, value, step):
    above, below = (
        bt.solve(scenario.with_(**{key.replace(".", "__"): value * (1.0 + sign * step)})) for sign in (1, -1)
    )
    return {m: float(above[m].mean() - below[m].mean()) / (2.0 * step) for m in METRICS if m in above}
