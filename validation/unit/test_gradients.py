"""Gradients: two solves a key where the answer is smooth, a fit with its interval where it is sampled."""

import math
from dataclasses import replace

import numpy as np
import pytest

import btqueue as bt
from btqueue.network import solve
from btqueue.plots.sensitivity import sensitivity_figure
from btqueue.scenario import ScenarioError
from btqueue.study.sensitivity import gradient, local_sensitivity
from btqueue.study.sensitivity.differences import Derivative
from btqueue.study.sensitivity.fitted import NODES, fitted
from btqueue.study.sensitivity.gradients import STEP, central

SMOOTH = {
    "chen-2004/adaptive-1": ("goodput_kbps", ("radio.ber",)),
    "johansson-2000/smooth": ("rtt_s", ("traffic.load_kbps", "radio.per", "link.l2cap_delay_s")),
    "avancha-2002/wlan-tcp": ("goodput_kbps", ("traffic.pause_s",)),
}
"""A metric, and keys that it is smooth in, by scenario."""


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_answers_cost_two_solves_a_key_and_match_other_differences(name):
    scenario, (metric, keys) = bt.load(name), SMOOTH[name]
    found = gradient(scenario, [metric], keys)
    assert found.solved == 1 + 2 * len(keys)
    assert {row.factor.key for row in found.rows} == set(keys)
    for row in found.rows:
        # five points, fourth order, at a step of a percent: no argument in common but the scenario
        value, h = row.factor.value, 1e-2 * row.factor.value
        f = {k: mean(metric, scenario.changed({row.factor.key: value + k * h})) for k in (-2, -1, 1, 2)}
        slope = (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * h)
        assert row.derivative.kind == "smooth"
        assert row.derivative.value == pytest.approx(slope, rel=1e-3)
        assert abs(row.derivative.value - slope) <= row.derivative.error + 1e-5 * abs(slope)


def mean(metric: str, scenario: bt.Scenario) -> float:
    return float(solve(scenario)[metric].mean())


def test_what_a_pair_does_not_settle_goes_through_the_longer_study():
    # slow start ends at gamma = alpha = 1, below that Vegas settles elsewhere: no derivative
    link = bt.load("johansson-2000/symmetric")
    keys = ["transport.gamma"]
    (short,) = gradient(link, ["goodput_kbps"], keys).rows
    (long,) = local_sensitivity(link, ["goodput_kbps"], keys).rows
    assert short.derivative.kind == long.derivative.kind == "jump"
    assert math.isnan(short.derivative.value)


def test_keys_without_effect_or_answer_are_named():
    found = gradient(bt.load("chen-2004/adaptive-1"), ["goodput_kbps"])
    assert "radio.ber" in {row.factor.key for row in found.rows}
    assert "transport.min_rto_s" in found.without_effect
    assert found.dataset().attrs["study"] == "gradient"


def test_whole_numbers_have_no_derivative():
    with pytest.raises(ScenarioError, match=r"network.hops: takes whole numbers only"):
        gradient(bt.load("chen-2004/adaptive-1"), keys=["network.hops"])


@pytest.mark.parametrize(
    ("function", "kind"),
    [(math.exp, "smooth"), (abs, None), (lambda x: 0.0 if x < 0 else 1.0, None), (lambda x: 3.0, "flat")],
)
def test_a_pair_of_slopes_tells_smooth_from_bent(function, kind):
    values = tuple(function(sign * STEP) for sign in (-1, 0, 1))
    found = central(values, STEP, 1.0)
    assert (None if found is None else found.kind) == kind
    if found is not None and kind == "smooth":
        assert abs(found.value - 1.0) <= found.error


def test_values_that_are_missing_settle_nothing():
    assert central((math.nan, 1.0, 1.1), 0.1, 1.0) is None


def test_a_parabola_without_noise_has_its_slope():
    places = 0.1 * NODES
    found = fitted(places, 2.0 + 3.0 * places - 5.0 * places**2, 1.0)
    assert found.kind == "fitted"
    assert found.value == pytest.approx(3.0, rel=1e-12)
    assert found.error < 1e-12


def test_the_interval_of_a_fit_holds_its_confidence():
    # 2,000 fits: of 95 % intervals 93.2 to 96.5 % cover in all but 1 of 1,000 runs of this test
    rng = np.random.default_rng(5)
    places = np.array([*(0.1 * NODES), 0.0])
    covered = 0
    for _ in range(2_000):
        noisy = 1.0 + 0.5 * places + 2.0 * places**2 + 0.03 * rng.standard_normal(places.size)
        found = fitted(places, noisy, 1.0)
        covered += abs(found.value - 0.5) <= found.error
        assert found.kind == ("fitted" if abs(found.value) > found.error else "uncertain")
    assert 0.932 <= covered / 2_000 <= 0.965


def test_a_fit_without_enough_points_is_none():
    places = 0.1 * NODES
    values = np.where(np.arange(places.size) < 5, 1.0, math.nan)
    assert fitted(places, values, 1.0).kind == "none"
    assert fitted(places, np.full(places.size, 7.0), 1.0).kind == "flat"


def test_simulated_answers_get_a_fit_in_both_studies():
    """Theory does not cover segments that are dropped whole."""
    scenario = bt.load("venugopal-2006/piconet-errors-as-reported")
    keys = ["transport.min_rto_s", "radio.period_s"]
    short = gradient(scenario, ["goodput_kbps"], keys)
    long = local_sensitivity(scenario, ["goodput_kbps"], keys)
    assert [row.factor.key for row in short.rows] == [row.factor.key for row in long.rows] == keys[:1]
    (quick,), (slow,) = short.rows, long.rows
    assert quick.derivative == slow.derivative
    assert quick.derivative.kind == "fitted"
    # a longer least timeout: fewer attempts, less goodput
    assert quick.derivative.value + quick.derivative.error < 0
    assert short.without_effect == long.without_effect == ("radio.period_s",)


def test_the_figure_shows_keys_at_a_kink_too():
    found = gradient(bt.load("johansson-2000/smooth"), ["rtt_s"], ["traffic.load_kbps", "link.l2cap_delay_s"])
    assert {row.derivative.kind for row in found.rows} == {"smooth"}
    size = found.rows[0].derivative.size
    bent = replace(found.rows[0], derivative=Derivative("kink", left=size, right=-2.0 * size))
    rows = (bent, *found.rows[1:])
    found = replace(found, rows=rows)
    (axes,) = sensitivity_figure(found.dataset()).axes
    assert {label.get_text() for label in axes.get_yticklabels()} == {row.factor.key for row in rows}
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["elasticity", "below a kink", "above a kink"]


def test_derivatives_of_the_analytic_model_are_its_own_and_those_of_differences():
    ring = bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=60.0)
    keys = ["traffic.load_kbps", "flow_control.token_rate_kbps"]
    exact = gradient(ring, ["rtt_s", "goodput_kbps"], [*keys, "radio.ber"])
    assert exact.solved == 1 and exact.without_effect == ("radio.ber",)
    for row in exact.rows:
        step = 1e-3 * row.factor.value
        low, high = (
            float(bt.solve(ring.changed({row.factor.key: row.factor.value + sign * step}))[row.metric].mean())
            for sign in (-1, 1)
        )
        assert row.derivative.value == pytest.approx((high - low) / (2 * step), rel=1e-5, abs=1e-9)
