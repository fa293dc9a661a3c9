"""Models as functions of their keys: what is smooth must look smooth to central differences of two steps."""

from typing import Any

import pytest

import btqueue as bt

METRICS = ("goodput_kbps", "rtt_s", "delay_s")
STEPS = (1e-3, 1e-4)


def slopes(scenario: bt.Scenario, key: str, step: float) -> dict[str, float]:
    """Return the relative change of each metric over a relative change of a key."""
    value: Any = scenario.value_of(key)
    ends = [bt.solve(scenario.changed({key: value * (1.0 + sign * step)})) for sign in (1, -1)]
    more, less = ({m: float(found[m].mean()) for m in METRICS if m in found} for found in ends)
    return {m: (more[m] - less[m]) / (step * (more[m] + less[m])) for m in more}


@pytest.mark.parametrize(
    ("name", "key", "changes"),
    [
        ("adaptive-1", "radio.ber", {"radio.ber": 3e-3}),
        ("regular-4", "radio.ber", {"radio.ber": 1e-4}),
        ("alternating-regular", "radio.ber_bad", {"radio.ber_bad": 5e-4, "network.hops": 4}),
        ("alternating-regular", "radio.period_s", {"radio.period_s": 1.0}),
    ],
)
def test_chains_are_smooth(name, key, changes):
    """To 1e-3 of the answer."""
    scenario = bt.load(f"chen-2004/{name}").changed(changes)
    wide, narrow = (slopes(scenario, key, step) for step in STEPS)
    assert wide == pytest.approx(narrow, abs=1e-3)
