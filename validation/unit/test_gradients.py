"""Gradients: two solves a key where the answer is smooth, a fit with its interval where it is sampled."""

import math
import subprocess
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.optimize import bisect

import btqueue as bt
from btqueue.network import InDoubt, plan, solve
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


# ---------------------------------------------------------------------------------------------------- plans

RING = bt.load("venugopal-2006/piconet").with_(network__peripherals=3, traffic__load_kbps=40.0)
CAPACITY = bt.load("venugopal-2006/piconet-capacity")
LOAD = "traffic.load_kbps"
PLANS = {
    "ring": (RING, ("rtt_s",), (LOAD, "flow_control.token_rate_kbps")),
    "lossy": (
        bt.load("chen-2004/adaptive-1").with_(link__arq="none", radio__ber=1e-5),
        ("goodput_kbps",),
        ("radio.ber", "transport.min_rto_s"),
    ),
    "wires": (
        bt.load("johansson-2000/smooth").with_(traffic__load_kbps=60.0),
        ("goodput_kbps", "rtt_s"),
        (LOAD, "radio.per", "link.l2cap_delay_s", "transport.ack_delay_s"),
    ),
    "sessions": (
        bt.load("avancha-2002/wlan-tcp"),
        ("goodput_kbps", "session_time_s"),
        ("traffic.pause_s", "network.outside_links[1].delay_s"),
    ),
    "bridges": (
        bt.load("venugopal-2006/scatternet-1").with_(traffic__load_kbps=10.0),
        ("rtt_s",),
        (LOAD,),
    ),
}
quietly = pytest.mark.filterwarnings("ignore::btqueue.network.InDoubt")


@quietly
@pytest.mark.parametrize("kind", PLANS)
def test_derivatives_are_those_of_four_further_answers(kind):
    """Fourth order, at a step of a percent: no argument in common with the derivative but the point."""
    scenario, names, keys = PLANS[kind]
    asked = plan(scenario)
    slopes = asked.slopes(names, keys=keys)
    for key in keys:
        value = asked.parameters[key]
        h = 0.01 * value
        at = {k: asked.metrics({key: value + k * h}) for k in (-2, -1, 1, 2)}
        for name in names:
            f = {k: float(np.nanmean(one[name])) for k, one in at.items()}
            slope = (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * h)
            floor = 1e-4 * abs(f[1]) / value
            assert slopes[name][key] == pytest.approx(slope, rel=5e-3, abs=floor), (key, name)


@quietly
def test_carried_loads_have_the_derivatives_of_a_hand_calculation():
    """What is offered is carried: by the load 1, by all else 0; a round trip passes four layers."""
    asked = plan(bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=30.0, link__l2cap_delay_s=1e-3))
    keys = [LOAD, "flow_control.token_rate_kbps", "link.l2cap_delay_s"]
    slopes = asked.slopes(["goodput_kbps", "rtt_s"], keys=keys)
    assert slopes["goodput_kbps"].pop("traffic.load_kbps") == pytest.approx(1.0, rel=1e-9)
    assert set(slopes["goodput_kbps"].values()) == {0.0}
    # twice a layer at both ends, for a segment and for its acknowledgement
    assert slopes["rtt_s"]["link.l2cap_delay_s"] == pytest.approx(4.0, rel=1e-3)


@quietly
def test_where_the_laws_bend_there_is_no_derivative_and_a_doubt():
    """A window that just fills the air: a smaller one sends less, a larger one no more."""
    key, asked = "transport.receive_window_segments", plan(CAPACITY)

    def short(window):
        return float((asked.metrics({key: window})["goodput_kbps"] / full - 1.0).mean()) + 1e-9

    full = asked.metrics()["goodput_kbps"]
    bend = float(bisect(short, 1.5, 3.0, xtol=1e-9))
    with pytest.warns(InDoubt, match=f"no derivative by {key}"):
        found = asked.slopes(["goodput_kbps"], {key: bend}, [key])
    assert math.isnan(found["goodput_kbps"][key])
    assert any(key in one for one in found.warnings)
    at = {shift: asked.slopes(["goodput_kbps"], {key: bend + shift}, [key]) for shift in (-0.1, 0.1)}
    assert at[-0.1]["goodput_kbps"][key] > 10.0 and at[0.1]["goodput_kbps"][key] == 0.0
    assert not any("no derivative" in why for one in at.values() for why in one.warnings)


def test_what_is_sampled_has_no_derivatives():
    with pytest.warns(InDoubt, match="one connection was sampled"):
        found = plan(bt.load("venugopal-2006/piconet-4")).slopes(["rtt_s"], keys=[LOAD])
    assert math.isnan(found["rtt_s"][LOAD])


def test_whole_numbers_may_be_taken_as_real_ones():
    window, asked = "transport.receive_window_segments", plan(CAPACITY)
    goodput = [
        float(asked.metrics({window: value})["goodput_kbps"].mean()) for value in (2.0, 2.25, 2.75, 3.0)
    ]
    assert goodput == pytest.approx([goodput[0]] * 4)  # full
    trips = [float(asked.metrics({window: value})["rtt_s"].mean()) for value in (2.0, 2.25, 2.75, 3.0)]
    assert np.diff(trips) == pytest.approx(np.diff(trips)[0] * np.array([1.0, 2.0, 1.0]))  # Little's law
    with pytest.raises(ScenarioError, match="receive_window"):
        asked.metrics({window: -2.0})


@quietly
def test_loads_of_flows_have_the_keys_of_the_scenario():
    own = [{"from": "c1", "to": "p1.1", "load_kbps": 150.0}, {"from": "p1.2", "to": "c1"}]
    star = RING.with_(network__flows=own, network__peripherals=2, flow_control__enabled=False)
    asked = plan(star)
    assert asked.parameters["network.flows[1].load_kbps"] == 150.0
    found = asked.metrics({"network.flows[1].load_kbps": 120.0})
    assert found["goodput_kbps"] == pytest.approx([120.0, 40.0])
    key = "network.flows[1].load_kbps"
    slopes = asked.slopes(["goodput_kbps"], keys=[key])["goodput_kbps"]
    assert slopes[key] == pytest.approx(0.5)  # of the mean of two flows


def test_a_plan_names_what_may_be_varied():
    with pytest.raises(KeyError, match=r"traffic\.load_kbps"):
        plan(RING).metrics({"traffic.laod_kbps": 3.0})
    with pytest.raises(KeyError, match="rtt_s"):
        plan(RING).slopes(["rtt"])


@quietly
def test_jax_differentiates_maps_and_compiles_a_plan():
    asked, key, other = plan(RING), LOAD, "flow_control.token_rate_kbps"
    slope, tokens = asked.slopes(["rtt_s"], keys=[key, other])["rtt_s"].values()
    loads = np.array([5.0, 30.0, 60.0])

    def trip(load):
        return asked.metrics({key: load})["rtt_s"].mean()

    with jax.enable_x64(True):
        assert float(jax.grad(trip)(40.0)) == pytest.approx(slope, rel=1e-12)
        assert float(jax.jit(jax.grad(trip))(40.0)) == pytest.approx(slope, rel=1e-12)
        batch = np.asarray(jax.jit(jax.vmap(trip))(loads))
        both = jax.jacfwd(lambda x: asked.metrics({key: x[0], other: x[1]})["rtt_s"].mean())(
            np.array([40.0, 250.0])
        )
    assert batch == pytest.approx([trip(load) for load in loads], rel=1e-12)
    assert np.asarray(both) == pytest.approx([slope, tokens], rel=1e-12)
    assert float(jax.grad(trip)(40.0)) == pytest.approx(slope, rel=1e-6)  # of single precision


def test_answers_and_derivatives_need_no_jax():
    program = """
import sys, warnings
warnings.simplefilter("ignore")
import btqueue as bt
from btqueue.study.sensitivity import gradient
ring = bt.load("venugopal-2006/scatternet-1").with_(traffic__load_kbps=10.0)
bt.network.plan(ring).slopes(["rtt_s"], keys=["traffic.load_kbps"])
assert "jax" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_derivatives_of_a_study_are_those_of_a_plan():
    scenario, keys = bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=20.0), [LOAD]
    found = gradient(scenario, ["rtt_s", "goodput_kbps"], keys)
    assert found.about["answered_by"] == "theory" and found.solved == 3
    slopes = plan(scenario).slopes(["rtt_s", "goodput_kbps"], keys=keys)
    assert len(found.rows) == 2
    for row in found.rows:
        assert row.derivative.value == pytest.approx(slopes[row.metric][row.factor.key], rel=0.01)
