"""The coupled model of the ring: what it covers, its limits, and that it is smooth."""

from typing import Any

import numpy as np
import pytest

import btqueue as bt
from btqueue.network.answers import NoConvergence
from btqueue.network.coupled.model import answer
from btqueue.network.coupled.path import Timing
from btqueue.network.ring_piconet.ring import ring_of
from btqueue.scenario import Scenario
from btqueue.scenario.coupled_scope import COUPLED, not_coupled
from btqueue.scenario.scope import Scope, problems_of

SCOPE = Scope("the coupled model", COUPLED, not_coupled)
SLOT = 625e-6
EXCHANGE_KBIT = 1460 * 8 / 1000


def scenario(**changes: Any) -> Scenario:
    """Return the thesis's error-prone piconet, with greedy sources and a processing delay."""
    usual: dict[str, Any] = {"traffic__source": "greedy", "run__jitter_s": 0.005}
    return bt.load("venugopal-2006/piconet-errors").with_(**{**usual, **changes})


def constant(ber: float, **changes: Any) -> Scenario:
    return scenario(radio__model="constant", radio__ber=ber, **changes)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"radio__model": "perfect"}, "radio.model"),
        ({"radio__model": "constant", "radio__ber": 0.0}, "radio.ber"),
        ({"transport__receive_window_segments": 9}, "transport.receive_window_segments"),
        ({"flow_control__enabled": False}, "flow_control.enabled"),
        ({"flow_control__baseband_packets": 9}, "flow_control.baseband_packets"),
        ({"voice__packet": "HV3", "voice__links": 1, "link__packets": ("DH3", "DH1")}, "voice.packet"),
        ({"link__arq": "unlimited"}, "link.arq"),
    ],
)
def test_what_is_not_covered_is_named(changes: dict[str, Any], key: str):
    assert key in {problem.key for problem in problems_of(SCOPE, scenario(**changes))}


def test_the_thesis_is_covered():
    assert problems_of(SCOPE, bt.load("venugopal-2006/piconet-errors")) == []


def goodput(ours: Scenario) -> float:
    return answer(ours)[0]["goodput_kbps"] / EXCHANGE_KBIT


def test_window_of_one_without_errors_is_one_segment_a_round_trip():
    ours = constant(
        1e-12,
        network__peripherals=1,
        transport__receive_window_segments=1,
        flow_control__token_rate_kbps=1000,
    )
    assert goodput(ours) == pytest.approx(1.0 / Timing(ring_of(ours)).round_trip_s, rel=1e-3)


def test_scarce_tokens_without_errors_are_the_limit():
    ours = constant(
        1e-12,
        network__peripherals=1,
        transport__receive_window_segments=4,
        flow_control__token_rate_kbps=40,
        flow_control__buffer_packets=100,
    )
    assert goodput(ours) == pytest.approx(ring_of(ours).token_capacity, rel=0.01)


def test_load_that_is_carried():
    ours = scenario(traffic__source="poisson", traffic__load_kbps=5)
    metrics, notes = answer(ours)
    assert metrics["goodput_kbps"] == pytest.approx(5.0)
    assert metrics["rtt_s"] > Timing(ring_of(ours)).round_trip_s
    assert notes["warnings"]
    assert metrics["timeouts_per_s"] < answer(scenario())[0]["timeouts_per_s"]


def test_knee_between_load_and_radio_is_continuous():
    most = answer(scenario())[0]
    near = answer(scenario(traffic__source="poisson", traffic__load_kbps=most["goodput_kbps"] * (1 - 1e-7)))[
        0
    ]
    for name in ("goodput_kbps", "rtt_s", "timeouts_per_s", "segment_loss", "cycle_s"):
        assert near[name] == pytest.approx(most[name], rel=1e-4)


def test_hopeless_radio():
    errors = [1e-5, 3e-5, 1e-4, 2e-4]
    rates = [goodput(constant(rate)) for rate in errors]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 1e-3
    with pytest.raises(NoConvergence, match="no segment gets through"):
        answer(constant(0.5))


def test_air_that_does_not_carry_it_is_refused():
    with pytest.raises(NoConvergence, match="slots of the air"):
        answer(constant(1e-9, flow_control__token_rate_kbps=2000, flow_control__buffer_packets=100))


@pytest.mark.parametrize(
    ("key", "values", "sign"),
    [
        ("flow_control__token_rate_kbps", (60, 120, 250), 1),
        ("flow_control__buffer_packets", (5, 9, 15, 25), 1),
        ("network__peripherals", (2, 4, 6), -1),
        ("transport__min_rto_s", (0.4, 1.0, 2.0), -1),
        ("radio__ber_bad", (5e-5, 1.3e-4, 4e-4), -1),
        ("radio__bad_s", (0.02, 0.06, 0.2), -1),
    ],
)
def test_goodput_is_monotone(key: str, values: tuple[float, ...], sign: int):
    found = [goodput(scenario(**{key: value})) for value in values]
    assert (sign * np.diff(found) > 0).all()


def test_one_channel_for_all_links_is_better_than_many():
    """What breaks one hop breaks the other, too; and with the same share of lost segments less is lost."""
    assert goodput(scenario(radio__fading="per-piconet")) > goodput(scenario())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("radio__ber_good", 6.8979e-6),
        ("radio__good_s", 0.4375),
        ("flow_control__token_rate_kbps", 97.0),
        ("transport__min_rto_s", 1.0),
        ("run__jitter_s", 0.005),
    ],
)
@pytest.mark.parametrize("buffer", [6, 25])
def test_answers_are_smooth(key: str, value: float, buffer: int):
    ours = scenario(
        network__peripherals=4, flow_control__token_rate_kbps=97.0, flow_control__buffer_packets=buffer
    )

    def slopes(step: float) -> np.ndarray:
        low, high = (answer(ours.with_(**{key: value * (1 + sign * step)}))[0] for sign in (-1, 1))
        names = ("goodput_kbps", "rtt_s", "timeouts_per_s")
        return np.array([np.log(high[name] / low[name]) for name in names]) / (2 * step)

    wide, narrow = map(slopes, (1e-3, 1e-4))
    assert narrow == pytest.approx(wide, rel=1e-3, abs=1e-5)


def test_the_certificate():
    metrics, notes = answer(scenario())
    assert notes["converged"]
    assert notes["residual"] < 1e-8
    assert 2 < notes["iterations"] < 20
    assert notes["warnings"] == []
    assert "goodput" in notes["errors"]
    assert metrics["throughput_kbps"] > metrics["goodput_kbps"]
    assert 0.0 < metrics["slot_utilisation"] < 1.0
    assert metrics["cycle_s"] > 4 * SLOT
