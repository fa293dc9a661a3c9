"""Derivatives of theory: of plans, by JAX, and of the study that asks for them."""

import math
import re

import jax
import numpy as np
import pytest

import btqueue as bt
from btqueue.network import InDoubt, plan
from btqueue.network.variation import SAMPLED
from btqueue.scenario import ScenarioError

RING = bt.load("venugopal-2006/piconet").with_(network__peripherals=3, traffic__load_kbps=40.0)
CAPACITY = bt.load("venugopal-2006/piconet-capacity")
LOSSY = bt.load("chen-2004/adaptive-1").with_(link__arq="none", radio__ber=1e-5)
SMOOTH = bt.load("johansson-2000/smooth").with_(traffic__load_kbps=60.0)
CELL = bt.load("avancha-2002/wlan-tcp")
BRIDGES = bt.load("venugopal-2006/scatternet-1").with_(traffic__load_kbps=10.0)
CHAIN = bt.load("chen-2004/regular-4").with_(radio__ber=1e-4)
ALTERNATING = bt.load("chen-2004/alternating-regular").with_(radio__ber_bad=5e-4, network__hops=4)
LOAD, WIRE = "traffic.load_kbps", "network.outside_links[1].delay_s"
BOTH = ("goodput_kbps", "rtt_s")
PLANS = {
    "ring": (RING, ("rtt_s",), (LOAD, "flow_control.token_rate_kbps")),
    "lossy": (LOSSY, ("goodput_kbps",), ("radio.ber", "transport.min_rto_s")),
    "wires": (SMOOTH, BOTH, (LOAD, "radio.per", "link.l2cap_delay_s", "transport.ack_delay_s")),
    "sessions": (CELL, ("goodput_kbps", "session_time_s"), ("traffic.pause_s", WIRE)),
    "bridges": (BRIDGES, ("rtt_s",), (LOAD,)),
    "chain": (CHAIN, ("goodput_kbps",), ("radio.ber",)),
    "alternating chain": (ALTERNATING, ("goodput_kbps",), ("radio.ber_bad", "radio.period_s")),
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
def test_derivatives_of_a_hand_calculation():
    """What is offered is carried: by the load 1, by all else 0; a wire is passed forth and back."""
    asked = plan(bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=30.0))
    slopes = asked.slopes(["goodput_kbps"], keys=[LOAD, "flow_control.token_rate_kbps"])["goodput_kbps"]
    assert list(slopes.values()) == pytest.approx([1.0, 0.0], rel=1e-9)
    assert plan(CELL).slopes(["rtt_s"], keys=[WIRE])["rtt_s"][WIRE] == pytest.approx(2.0, rel=1e-6)


def test_a_key_without_effect_at_a_point_has_the_slope_zero_there():
    """Nothing is lost at this load, so that no timer expires: answers beside the point are equal to it."""
    asked = plan(RING.with_(network__peripherals=4, traffic__load_kbps=45.0))
    assert asked.slopes(["rtt_s"], keys=["transport.min_rto_s"]) == {"rtt_s": {"transport.min_rto_s": 0.0}}


@quietly
def test_slopes_of_what_is_sampled_are_of_lines_through_answers_further_away():
    """By the load of a ring that carries it they are known: 1, and those of the answers themselves."""
    asked = plan(bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=120.0))
    found = asked.slopes(["goodput_kbps", "rtt_s"], keys=[LOAD])
    assert SAMPLED in found.warnings
    ends = {load: asked.metrics({LOAD: load})["rtt_s"].mean() for load in (96.0, 108.0, 132.0, 144.0)}
    line = np.polyfit(list(ends), list(ends.values()), 1)[0]
    assert found["goodput_kbps"][LOAD] == pytest.approx(1.0, rel=1e-3)
    assert found["rtt_s"][LOAD] == pytest.approx(line, rel=1e-12)


@quietly
def test_delays_losses_and_pauses_of_none_are_varied_from_there():
    """A delay of each host is passed twice each way; a pause lengthens a session by itself."""
    asked = plan(RING)
    assert asked.parameters["link.l2cap_delay_s"] == 0.0
    sides = asked.sides(["rtt_s"], "transport.tcp_delay_s")["rtt_s"]
    assert sides.kind == "one-sided" and math.isnan(sides.below)
    flat = asked.slopes(["goodput_kbps"], keys=["link.l2cap_delay_s"])
    assert flat["goodput_kbps"] == {"link.l2cap_delay_s": 0.0}
    key, satellite = "network.outside_links[1].jitter_s", plan(bt.load("avancha-2002/satellite"))
    assert satellite.slopes(["rtt_s"], keys=[key])["rtt_s"][key] == pytest.approx(2.0, rel=1e-3)  # both ways


@quietly
def test_where_a_metric_jumps_on_one_side_its_slope_is_that_of_the_other():
    """Messages of 1,460 bytes just fill a segment: a byte more takes another one.

    At the same rate of messages shorter ones carry less; at the same load there are more of them.
    """
    key, asked = "traffic.message_bytes", plan(CAPACITY)
    sides = asked.sides(["goodput_kbps"], key)["goodput_kbps"]
    assert sides.kind == "jump" and "the slope is the one below it" in sides.why
    goodput, value = float(asked.metrics()["goodput_kbps"].mean()), asked.parameters[key]
    assert sides.slope == sides.below == pytest.approx(goodput / value, rel=1e-6)
    with pytest.warns(InDoubt) as said:
        jax.grad(lambda size: asked.metrics({key: size})["goodput_kbps"].mean())(value)
    (jumps,) = (text for text in map(str, (one.message for one in said)) if "a jump at" in text)
    told = re.findall(r"(\w+): a jump at", jumps)
    assert "goodput_kbps" in told and len(set(told)) == len(told)  # once for all flows


def test_whole_numbers_may_be_taken_as_real_ones():
    window, asked = "transport.receive_window_segments", plan(CAPACITY)
    values = (12.0, 12.25, 12.75, 13.0)
    goodput = [float(asked.metrics({window: value})["goodput_kbps"].mean()) for value in values]
    assert goodput == pytest.approx([goodput[0]] * 4)  # full
    trips = [float(asked.metrics({window: value})["rtt_s"].mean()) for value in values]
    assert np.diff(trips) == pytest.approx(np.diff(trips)[0] * np.array([1.0, 2.0, 1.0]))  # Little's law
    with pytest.raises(ScenarioError, match="receive_window"):
        asked.metrics({window: -2.0})


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
        at = np.array([40.0, 250.0])
        both = jax.jacfwd(lambda x: asked.metrics({key: x[0], other: x[1]})["rtt_s"].mean())(at)
    assert batch == pytest.approx([trip(load) for load in loads], rel=1e-12)
    assert np.asarray(both) == pytest.approx([slope, tokens], rel=1e-12)
    assert float(jax.grad(trip)(40.0)) == pytest.approx(slope, rel=1e-6)  # of single precision


@quietly
def test_sides_tell_a_kink_from_a_derivative():
    """At a longest timeout of 64 s, which the sixth doubling of 1 s just reaches, there is a kink."""
    key, link = "transport.max_rto_s", LOSSY.with_(radio__ber=1e-4)
    (bent,) = plan(link).sides(["goodput_kbps"], key, {key: 64.0}).values()
    assert bent.kind == "kink" and math.isnan(bent.slope) and bent.below < bent.above
    with pytest.warns(InDoubt, match=r"no derivative by transport\.max_rto_s = 64"):
        found = plan(link).slopes(["goodput_kbps"], {key: 64.0}, [key])
    assert math.isnan(found["goodput_kbps"][key])
    (smooth,) = plan(RING).sides(["rtt_s"], LOAD).values()
    assert smooth.kind == "smooth" and smooth.below == pytest.approx(smooth.above, rel=0.02)
    assert smooth.slope == plan(RING).slopes(["rtt_s"], keys=[LOAD])["rtt_s"][LOAD]
