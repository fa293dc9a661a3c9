"""Chains: goodput and round trip are smooth in what a scenario varies continuously.

Central differences with two steps agree to 1e-3 of the answer.
"""

import pytest

import btqueue as bt

STEPS = (1e-3, 1e-4)


def slopes(name: str, key: str, value: float, step: float, **changes: object) -> list[float]:
    ends = []
    for sign in (1, -1):
        solved = bt.solve(bt.load(f"chen-2004/{name}").with_(**changes, **{key: value * (1 + sign * step)}))
        ends.append([float(solved[metric].item()) for metric in ("goodput_kbps", "rtt_s")])
    return [(a - b) / (step * (a + b)) for a, b in zip(*ends, strict=True)]


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("regular-1", "radio__ber", 2e-4),
        ("adaptive-1", "radio__ber", 3e-3),
        ("regular-2", "radio__ber", 2e-4),
        ("regular-2", "radio__ber", 5e-4),
        ("regular-4", "radio__ber", 1e-4),
        ("regular-4", "radio__ber", 5e-4),
        ("adaptive-4", "radio__ber", 3e-3),
        ("alternating-regular", "radio__ber_good", 1e-4),
        ("alternating-regular", "radio__ber_bad", 5e-4),
        ("alternating-regular", "radio__period_s", 1.0),
    ],
)
def test_smooth(name: str, key: str, value: float):
    wide, narrow = (slopes(name, key, value, step) for step in STEPS)
    assert wide == pytest.approx(narrow, abs=1e-3)


@pytest.mark.parametrize("key", ["radio__ber_good", "radio__ber_bad", "radio__period_s"])
def test_smooth_over_bridges_with_a_radio_that_alternates(key: str):
    value = {"radio__ber_good": 1e-4, "radio__ber_bad": 5e-4, "radio__period_s": 1.0}[key]
    wide, narrow = (slopes("alternating-regular", key, value, step, network__hops=4) for step in STEPS)
    assert wide == pytest.approx(narrow, abs=1e-3)
