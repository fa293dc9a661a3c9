"""Laws of the radio in the one theory: closed forms, limits, and a few points of the simulator."""

from math import ceil

import numpy as np
import pytest
from beside import mean, near_simulation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import nbinom

import btqueue as bt
from btqueue.network.stations import fading
from btqueue.network.stations.crossings import visits_of
from btqueue.network.stations.network import Train, network_of

LINK = bt.Scenario().changed({
    "network.peripherals": 1, "network.flows": "downlink", "link.packets": ["DH5"],
    "radio.model": "constant", "traffic.source": "greedy", "transport.delayed_ack": False,
    "transport.receive_window_segments": 8,
})  # fmt: skip


def train(**keys) -> Train:
    return network_of(LINK.with_(**keys)).flows[0].forth[0].train


def test_two_equal_speeds_are_an_m_m_1_queue():
    queue = fading.two_speeds(0.6, np.array([1.0, 1.0]), np.array([0.1, 0.3]), 1.0)
    assert queue.wait(1e9)[0] == pytest.approx(0.6 / 0.4, rel=1e-5)


def test_work_of_a_server_that_stops_is_known():
    """Without speed in the bad state and with small jobs, work is a fluid: drift x in, 1 - x out."""
    rate, leaves, returns = 0.3, 0.1, 0.5
    queue = fading.two_speeds(rate, np.array([1.0, 0.0]), np.array([leaves, returns]), 1e-6)
    decay = returns / rate - leaves / (1.0 - rate)
    bad = leaves / (leaves + returns)
    work = bad / (1.0 - rate) / decay  # all of the bad time, and its share of the good time behind it
    assert float((queue.some / queue.rates).sum()) == pytest.approx(work, rel=1e-3)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_visits_are_those_of_a_negative_binomial_train(limit):
    packets, good = 5, 0.6
    frames = packets / good
    count = np.arange(400)
    law = nbinom.pmf(count, packets, good)
    exact = float(law @ np.ceil((packets + count) / limit))
    whole = float(law @ ((packets + count) % limit == 0))
    one = Train(packets, packets * 5.0, frames, frames * 5.0, 0.0, 5.0, packets * (1 - good) / good**2)
    assert visits_of(one, frames, 0.0, float(limit)) == pytest.approx((exact, whole), abs=1e-3)
    still = Train(packets, packets * 5.0, float(packets), packets * 5.0, 0.0, 5.0)
    assert visits_of(still, float(packets), 0.0, float(limit))[0] == ceil(packets / limit)


def test_given_up_packets_take_the_rest_of_the_segment_along():
    found = train(radio__per=0.3, link__arq=2)
    lost = 0.3**2
    reached = sum((1.0 - lost) ** k for k in range(5))
    assert found.packets == 5
    assert found.frames == pytest.approx(1.3 * reached)
    assert found.loss == pytest.approx(1.0 - (1.0 - lost) ** 5)


@pytest.mark.parametrize(("scale", "expected"), [(1e-5, "mean of errors"), (1e5, "mean of losses")])
def test_losses_of_a_segment_in_fast_and_slow_fading(scale, expected):
    keys = {"radio__model": "gilbert-elliott", "link__arq": "none", "radio__ber_good": 0.0}
    found = train(**keys, radio__ber_bad=1e-5, radio__good_s=3.0 * scale, radio__bad_s=scale)
    bad = train(radio__ber=1e-5, link__arq="none").loss
    each = 1.0 - (1.0 - bad) ** (1.0 / 5.0)
    laws = {"mean of errors": 1.0 - (1.0 - 0.25 * each) ** 5, "mean of losses": 0.25 * bad}
    # the last packet is shorter, so that errors of packets differ
    assert found.loss == pytest.approx(laws[expected], rel=0.01)


def test_packets_that_never_fail_are_never_flushed():
    wide = LINK.with_(radio__model="perfect", transport__receive_window_segments=30)
    kept, flushed = (bt.solve(wide.with_(link__flush_timeout_s=time)) for time in (None, 0.05))
    assert flushed.attrs["stands"] and float(flushed["rtt_s"].mean()) > 0.05
    assert all(np.array_equal(flushed[name], kept[name]) for name in ("goodput_kbps", "rtt_s"))


@pytest.mark.parametrize(
    ("keys", "like"),
    [
        ({"radio__fading": "per-piconet"}, {}),  # the only link
        ({"radio__model": "alternating"}, {"radio__good_s": 0.5, "radio__bad_s": 0.5}),  # halves of a second
    ],
)
def test_sessions_over_a_radio_whose_links_fade_at_once_are_answered(keys, like):
    """The first pass of the fixed point has no segments at all: two decay rates of the queue are equal."""
    alone = bt.load("avancha-2002/bluetooth-tcp").with_(radio__model="gilbert-elliott")
    models = alone.with_(**like), alone.with_(**keys)
    one, other = (mean(model, "sessions_per_s") for model in models)
    assert other == pytest.approx(one, rel=1e-9)


@pytest.mark.parametrize("model", ["alternating", "trace"])
def test_a_schedule_slows_all_links_of_a_chain_at_once(model):
    """Relays lose no more than on a steady radio; independent states would take 17 and 48 % of goodput."""
    one = bt.load(f"chen-2004/{model}-regular").with_(
        network__hops=4, run__duration_s=600, run__warmup_s=60, run__replications=2
    )
    near_simulation(one, goodput_kbps=0.06)


@settings(max_examples=300, deadline=None)
@given(
    st.floats(1.0, 1e4), st.floats(-6.0, 0.0), st.booleans(), st.floats(0.0, 2.0),
    st.floats(-2.0, 3.0), st.floats(-2.0, 3.0), st.floats(0.5, 3.0),
)  # fmt: skip
def test_waits_are_finite_for_any_load_and_for_nearly_equal_speeds(
    good, power, alike, load, worse, back, size
):
    """Without arrivals the two decay rates of a queue with nearly equal speeds cannot be told apart."""
    bad = good * (1.0 - 10.0**power) if alike else good * 10.0**power
    queue = fading.two_speeds(load * good, np.array([good, bad]), 10.0 ** np.array([worse, back]), size)
    waits = queue.wait(1e4)
    assert np.isfinite(waits).all() and min(waits) > -1e-9
