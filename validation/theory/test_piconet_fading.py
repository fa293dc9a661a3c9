"""A radio that fades under repetition: limits of the queueing model of a piconet, and what it must keep.

A program is compiled for each size of the law of a train's transmissions: error rates are chosen so that they
are few.
"""

import dataclasses

import jax
import numpy as np
import pytest

import btqueue as bt
from btqueue.baseband import PACKET_TYPES
from btqueue.channel import packet_error_rate, spared_by_neighbour
from btqueue.network.piconet.fading import EXPIRIES, shrinkage
from btqueue.network.piconet.metrics import metrics_of
from btqueue.network.piconet.plan import Plan
from btqueue.queueing._precision import in_float64

FADING = ("per-link", "per-piconet")


def star(**changes) -> bt.Scenario:
    """Clients that send to their access point over a radio with two states, with repetition."""
    common = {
        "network.peripherals": 3, "network.flows": "uplink", "link.arq": "unlimited",
        "flow_control.enabled": False, "flow_control.baseband_packets": 400, "traffic.load_kbps": 60.0,
        "radio.model": "gilbert-elliott", "radio.ber_good": 1e-6, "radio.ber_bad": 3e-4,
        "radio.good_s": 0.8, "radio.bad_s": 0.2,
    }  # fmt: skip
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return bt.load("venugopal-2006/piconet").changed(common | dotted)


@in_float64
def solved(scenario: bt.Scenario, *, at_mean_rate: bool = False) -> dict[str, np.ndarray]:
    """Metrics by class; on request of queues that see the mean error rate."""
    plan = Plan(scenario, apart=False)
    system = plan.system(plan.parameters)
    if at_mean_rate:
        system = system._replace(structure=dataclasses.replace(system.structure, fading=""))
    return {name: np.asarray(value) for name, value in metrics_of(system)[0].items()}


def rtt(scenario: bt.Scenario, **how) -> float:
    return float(solved(scenario, **how)["rtt_s"][0])


@pytest.mark.parametrize("fading", FADING)
def test_fast_fading_is_the_mean_error_rate(fading):
    fast = star(radio__fading=fading, radio__good_s=8e-7, radio__bad_s=2e-7)
    assert rtt(fast) == pytest.approx(rtt(fast, at_mean_rate=True), rel=1e-3)


@pytest.mark.parametrize(
    ("fading", "protocol", "metric"),
    [
        ("per-link", "tcp", "rtt_s"),
        ("per-piconet", "tcp", "rtt_s"),
        ("per-link", "none", "delay_s"),
        pytest.param("per-piconet", "none", "delay_s", marks=pytest.mark.long),
    ],
)
def test_states_that_hardly_differ_are_a_constant_radio(fading, protocol, metric):
    """Datagrams have no acknowledgements, of whose transmissions there are none."""
    asked = star(transport__protocol=protocol)
    almost = asked.with_(radio__fading=fading, radio__ber_good=1e-4, radio__ber_bad=1.0001e-4)
    constant = asked.with_(radio__model="constant", radio__ber=1e-4)
    assert solved(almost)[metric][0] == pytest.approx(solved(constant)[metric][0], rel=1e-3)


@pytest.mark.parametrize("fading", FADING)
@pytest.mark.parametrize("ber_bad", [2e-4, 0.05])
def test_longer_fades_of_the_same_share_make_round_trips_longer(fading, ber_bad):
    stays = (1e-4, 0.01, 0.1, 0.5)
    found = [
        rtt(star(radio__fading=fading, radio__ber_bad=ber_bad, radio__good_s=4 * s, radio__bad_s=s))
        for s in stays
    ]
    assert found == sorted(found)


def test_slow_fading_is_the_mean_of_two_constant_radios():
    """Arrivals are spread over the states as time is; what overlaps two states is rare."""
    lone = star(network__peripherals=1, traffic__load_kbps=250.0, radio__ber_good=3e-5, radio__ber_bad=1e-4)
    slow = rtt(lone.with_(radio__good_s=3e5, radio__bad_s=1e5))
    good, bad = (rtt(lone.with_(radio__model="constant", radio__ber=ber)) for ber in (3e-5, 1e-4))
    # fast fading is 1.5 % shorter; the variance of a service is that at the mean error rate in both states
    assert slow == pytest.approx(0.75 * good + 0.25 * bad, rel=5e-3)


@pytest.mark.parametrize("fading", FADING)
def test_what_comes_is_carried(fading):
    found = solved(star(radio__fading=fading))
    assert found["goodput_kbps"][0] == pytest.approx(60.0)
    assert found["segment_loss"][0] == 0.0


def test_windows_bound_what_piles_up():
    """Little: not more than a window is under way."""
    for window in (2, 8, 16):
        found = rtt(star(transport__receive_window_segments=window, radio__ber_bad=0.05))
        assert found <= window * 11.68 / 60.0 * (1.0 + 1e-9)


def test_timers_expire_in_long_outages_alone():
    seldom, often = (
        float(solved(star(radio__ber_bad=0.5, radio__good_s=5 * bad, radio__bad_s=bad))["timeouts_per_s"][0])
        for bad in (0.04, 100.0)
    )
    assert seldom < 1e-8
    assert 1.0 / 600.0 < often <= EXPIRIES / 600.0
    assert float(solved(star())["timeouts_per_s"][0]) < 1e-6


@pytest.mark.parametrize("changes", [0.0, 1e-4, 0.3, 5.0, np.inf])
def test_the_variance_of_a_mean_over_two_states(changes):
    """By numerical integration of the covariance e^-x|t - u| over the unit square; 1 and 0 at the ends."""
    grid = (np.arange(2000) + 0.5) / 2000
    exact = 2.0 * np.mean((1.0 - grid) * np.exp(-min(changes, 1e12) * grid))
    assert float(shrinkage(jax.numpy.asarray(changes))) == pytest.approx(exact, rel=1e-3, abs=1e-3)


@pytest.mark.long
def test_derivatives_are_those_of_the_answer():
    plan = Plan(star(), apart=False)
    slopes = plan.derivatives(["rtt_s"])["rtt_s"]
    for name in ("radio.bad_s", "radio.ber_bad", "traffic.load_kbps"):
        step = 1e-5 * plan.parameters[name]
        above, below = (
            plan.with_findings({name: plan.parameters[name] + sign * step})[0]["rtt_s"][0] for sign in (1, -1)
        )
        assert slopes[name] == pytest.approx((above - below) / (2.0 * step), rel=1e-4)


def test_a_schedule_of_two_states_piles_up_as_exponential_stays_of_half_the_length():
    regular = star(radio__model="alternating", radio__period_s=0.4, radio__ber_bad=2e-4)
    random = star(radio__fading="per-piconet", radio__good_s=0.2, radio__bad_s=0.2, radio__ber_bad=2e-4)
    assert rtt(regular) == pytest.approx(rtt(random), rel=1e-9)


def test_piconets_nearby_spoil_packets_of_one_length_alike():
    error_rate = 1.0 - float(spared_by_neighbour(PACKET_TYPES["DH5"].air_time_us)) ** 3
    alike = star(link__packets=["DH5"], traffic__load_kbps=20.0)
    near = alike.with_(radio__model="perfect", radio__interferers=3)
    given = alike.with_(radio__model="constant", radio__per=error_rate)
    assert rtt(near) == pytest.approx(rtt(given), rel=1e-12)


def test_a_packet_is_given_up_in_the_state_in_which_it_is_sent():
    found = solved(star(link__arq=3, radio__ber_bad=1e-3, traffic__load_kbps=5.0))
    success = 0.0
    for share, ber in ((0.8, 1e-6), (0.2, 1e-3)):
        dh5, dh3 = (
            float(packet_error_rate(PACKET_TYPES[name], ber, bits="payload")) for name in ("DH5", "DH3")
        )
        success += share * (1.0 - dh5**3) ** 4 * (1.0 - dh3**3)
    assert found["segment_loss"][0] == pytest.approx(1.0 - success, rel=1e-6)
