"""TCP's rounds on a radio that loses segments: exact limits, the exact chain."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tcp_chains.lockstep import lockstep_rates
from tcp_chains.loss_process import LossProcess, alike_in_series

import btqueue as bt
from btqueue.channel import TwoStateChannel
from btqueue.network.answers import NoConvergence
from btqueue.network.piconet.exchange import exchange_of
from btqueue.network.piconet.lossy import FURTHER, paired, radio_of, stall, transition, turns_of
from btqueue.network.piconet.lossy_model import LossyPlan
from btqueue.network.piconet.ports import piconet_of
from btqueue.network.piconet.rounds import Tokens, after_idling
from btqueue.queueing._precision import in_float64
from btqueue.transport.round_law import Channel, RoundLaw, Times, round_law
from btqueue.transport.round_structure import round_structure

RTT_S, RTO_S, LONGEST_S = 0.08, 1.0, 64.0


@in_float64
@partial(jax.jit, static_argnames=("window", "links"))
def in_step(window: int, lost, ack_lost, good_s=1.0, bad_s=1.0, *, links: int = 1, spacing_s=0.0) -> RoundLaw:
    """Return the law of rounds of one length, with losses by the state of one channel or of two links."""
    structure, lost, ack_lost = (
        round_structure(window),
        jnp.asarray(lost, float),
        jnp.asarray(ack_lost, float),
    )
    states, channel = structure.states, lost.size

    def move(time):
        if channel == 1:
            return jnp.ones((*jnp.shape(time), 1, 1))
        one = transition(jnp.asarray(good_s), jnp.asarray(bad_s), jnp.asarray(time))
        return paired(one, one) if links == 2 else one

    fates = jnp.stack(
        [jnp.diag(lost), jnp.diag((1 - lost) * (1 - ack_lost)), jnp.diag((1 - lost) * ack_lost)]
    )
    closing = jnp.broadcast_to(fates[:, None, None], (3, states, window, channel, channel))
    inside = closing @ move(spacing_s)
    none = jnp.zeros(states)
    trip = jnp.full((states, window), RTT_S)
    return round_law(
        structure,
        Channel(inside, closing, inside, closing, inside, inside[:, :, 0], move),
        Times(none, trip, trip[:, 0], none, jnp.asarray(RTO_S), jnp.asarray(LONGEST_S)),
    )


def exact(window: int, losses: LossProcess, spacing_s: float = 0.0):
    return lockstep_rates(window=window, loss=losses, rtt=RTT_S, segment_spacing=spacing_s)


@pytest.mark.parametrize("window", [1, 6])
def test_without_losses_a_window_goes_round(window):
    law = in_step(window, [0.0], [0.0])
    assert float(law.goodput) == pytest.approx(window / RTT_S, rel=1e-12)
    assert float(law.timeouts) == float(law.fast_retransmits) == 0.0
    assert float(law.window) == pytest.approx(window)


@pytest.mark.parametrize("ack_lost", [0.0, 0.05])
@pytest.mark.parametrize("lost", [0.02, 0.3])
def test_window_one_is_exact(lost, ack_lost):
    law, chain = in_step(1, [lost], [ack_lost]), exact(1, LossProcess.independent(lost, ack_lost))
    assert float(law.goodput) == pytest.approx(chain.goodput, rel=1e-9)
    assert float(law.timeouts) == pytest.approx(chain.timeouts, rel=1e-9)


@pytest.mark.parametrize("window", [2, 6])
@pytest.mark.parametrize("lost", [0.01, 0.1, 0.3])
def test_rounds_are_those_of_the_exact_chain(window, lost):
    """The bounds are the errors that the documentation states."""
    law, chain = (
        in_step(window, [lost], [0.18 * lost]),
        exact(window, LossProcess.independent(lost, 0.18 * lost)),
    )
    assert float(law.goodput) == pytest.approx(chain.goodput, rel=0.012)
    assert float(law.timeouts) == pytest.approx(chain.timeouts, rel=0.015)
    assert float(law.fast_retransmits) == pytest.approx(chain.fast_retransmits, rel=0.05, abs=1e-9)


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize(("good_s", "bad_s", "spacing_s"), [(0.44, 0.056, 0.01), (3.0, 0.3, 0.0)])
def test_rounds_on_a_channel_with_two_states(links, good_s, bad_s, spacing_s):
    one = LossProcess.markov([0.05, 0.5], [0.01, 0.08], [[-1 / good_s, 1 / good_s], [1 / bad_s, -1 / bad_s]])
    losses = alike_in_series(one) if links == 2 else one
    law = in_step(6, losses.data_loss, losses.ack_loss, good_s, bad_s, links=links, spacing_s=spacing_s)
    chain = exact(6, losses, spacing_s)
    assert float(law.goodput) == pytest.approx(chain.goodput, rel=0.02)
    assert float(law.timeouts) == pytest.approx(chain.timeouts, rel=0.015)
    assert float(law.fast_retransmits) == pytest.approx(chain.fast_retransmits, rel=0.06)


def test_states_that_are_alike_are_one():
    one, two = in_step(6, [0.1], [0.02]), in_step(6, [0.1, 0.1], [0.02, 0.02], 0.4, 0.05)
    assert float(two.goodput) == pytest.approx(float(one.goodput), rel=1e-9)
    assert np.asarray(two.law).sum(axis=1) == pytest.approx(np.asarray(one.law)[:, 0], abs=1e-12)


def test_every_round_leads_somewhere():
    assert float(in_step(6, [0.2], [0.05]).defect) < 1e-12


@in_float64
def test_two_links_are_counted_by_the_bad_ones():
    channel = TwoStateChannel(ber_good=0.0, ber_bad=0.0, good_s=0.4, bad_s=0.1)
    one = channel.transition(0.07)
    assert np.asarray(transition(jnp.asarray(0.4), jnp.asarray(0.1), jnp.asarray(0.07))) == pytest.approx(one)
    both = np.kron(one, one)
    wanted = np.array([both[0], both[1:3].mean(axis=0), both[3]])
    wanted = np.stack([wanted[:, 0], wanted[:, 1] + wanted[:, 2], wanted[:, 3]], axis=1)
    assert np.asarray(paired(jnp.asarray(one), jnp.asarray(one))) == pytest.approx(wanted)


@pytest.mark.parametrize("flows", ["ring", "uplink", "downlink"])
@pytest.mark.parametrize("limit", [1, 5, 7])
def test_a_burst_takes_its_packets_and_gaps(flows, limit):
    """From the first slot of the data on a link to the last: packets, and what lies between them."""
    net = piconet_of(
        bt.load("venugopal-2006/piconet").with_(
            network__flows=flows, network__peripherals=4, polling__limit=limit
        )
    )
    turns = exchange_of(net, net.senders[0])
    assert turns.train == sum(packet.slots for packet in net.data.packets) + sum(turns.gaps)
    assert turns.hops == len(net.senders[0].data)
    assert turns.way >= turns.train
    assert turns.busy[0] == turns.hops * sum(packet.slots for packet in net.data.packets)


@in_float64
def test_round_trips_after_idling():
    """The first segment finds a full bucket; where that is empty, it waits for its tokens."""
    plan = LossyPlan(bt.load("venugopal-2006/piconet-errors"))
    system = plan.system(plan.parameters)
    net, path = system.network, system.paths[0]
    turns, _ = turns_of(path.exchange, net, jnp.asarray(0.0))
    price = float(net.data.tokens)

    def found(window, on, rate, depth):
        tokens = Tokens(jnp.asarray(rate), net.data.prices, jnp.asarray(depth * price), jnp.asarray(100.0))
        return float(after_idling(window, tokens, turns, jnp.asarray(on)))

    for window in (1, 8):
        assert found(window, 0.0, 1e4, 2.0) == pytest.approx(float(turns.alone), rel=1e-3)
    # an empty bucket that gets a segment's tokens a second: the first one's last packet waits for all of them
    lone = found(1, 0.0, price, 0.0)
    assert lone == pytest.approx(1.0 + float(turns.alone - turns.head), rel=0.02)


@in_float64
@pytest.mark.parametrize("coming", [0.3, 2.0, 7.0])
def test_what_a_rare_loss_holds_up(coming):
    """Its window is the largest one: of one segment, all wait for the timer; of two, all but one."""
    fewer_than_three = np.exp(-coming) * (1.0 + coming + coming**2 / 2.0)
    exact = {1: (1.0, coming), 2: (1.0, coming - 1.0 + np.exp(-coming)), 8: (fewer_than_three, 0.0)}
    for window, (expiries, held_up) in exact.items():
        found = stall(window, jnp.asarray(1e-9), jnp.asarray(coming), jnp.ones(FURTHER))
        assert float(found.expiries) == pytest.approx(expiries, rel=1e-6)
        assert float(found.held_up) == pytest.approx(held_up, rel=1e-6, abs=1e-6)


@in_float64
@pytest.mark.parametrize("cap", [1.0, 4.0, 64.0])
def test_a_message_waits_for_all_timers_of_one_before_it(cap):
    """A window of one: all that come wait while the retransmission is lost again, each timer up to a cap."""
    lost, coming = 0.6, 1.5
    longer = jnp.minimum(2.0 ** np.arange(1, FURTHER + 1), cap)
    found = stall(1, jnp.asarray(lost), jnp.asarray(coming), longer)
    timers = [min(2.0**k, cap) for k in range(200)]
    drawn = sum(lost**k * (1.0 - lost) * sum(timers[: k + 1]) for k in range(200))
    assert float(found.held_up) == pytest.approx(coming * drawn, rel=1e-6)
    assert float(found.expiries) == pytest.approx(1.0 / (1.0 - lost), rel=1e-9)


@pytest.mark.parametrize("load_kbps", [8.0, 40.0, 80.0, 120.0, 160.0])
def test_without_losses_it_is_nearly_a_perfect_radio(load_kbps):
    """Within 10 %, what acknowledgements wait behind data, up to two thirds of what is carried.

    Whatever the load, not more is under way than a window.
    """
    perfect = bt.load("venugopal-2006/piconet").with_(
        transport__receive_window_segments=8, traffic__load_kbps=load_kbps
    )
    rare = bt.solve(perfect.with_(radio__model="constant", radio__ber=1e-9))
    if load_kbps <= 120.0:
        assert float(rare.rtt_s.mean()) == pytest.approx(float(bt.solve(perfect).rtt_s.mean()), rel=0.10)
    assert float((rare.goodput_kbps / 11.68 * rare.rtt_s).max()) <= 8.0


@in_float64
@pytest.mark.parametrize("flows", ["ring", "uplink"])
@pytest.mark.parametrize("limit", [1, 25])
@pytest.mark.parametrize("peripherals", [1, 3])
@pytest.mark.parametrize("stays_s", [(0.01, 0.005), (0.4, 0.05)])
def test_without_errors_no_time_is_lost_or_gained(flows, limit, peripherals, stays_s):
    """The channel moves on by as much as a segment lasts: lost is what is left of that, here nothing."""
    for fading in ("per-link", "per-piconet"):
        scenario = bt.load("venugopal-2006/piconet-errors").with_(
            network__peripherals=peripherals, network__flows=flows, polling__limit=limit,
            radio__fading=fading, radio__ber_good=0.0, radio__ber_bad=0.0,
            radio__good_s=stays_s[0], radio__bad_s=stays_s[1],
        )  # fmt: skip
        plan = LossyPlan(scenario)
        system = plan.system(plan.parameters)
        net, path, kind = system.network, system.paths[0], system.kinds[0]
        turns, stretch = turns_of(path.exchange, net, jnp.asarray(0.2))
        fates = radio_of(kind, path, net, turns, stretch, jnp.asarray(0.0)).fates(
            jnp.zeros(net.data.prices.size - 1)
        )
        assert np.allclose(fates[0], 0.0, atol=1e-12)
        assert np.allclose(fates.sum(axis=(0, -1)), 1.0, rtol=1e-12)


def test_larger_windows_are_answered_where_losses_keep_them_small():
    lossy = bt.load("venugopal-2006/piconet-errors")
    large = bt.solve(lossy.with_(transport__receive_window_segments=32))
    assert np.array_equal(large.goodput_kbps, bt.solve(lossy).goodput_kbps)
    rare = {"radio__ber_good": 1e-8, "radio__ber_bad": 1e-7, "transport__receive_window_segments": 32}
    with pytest.raises(NoConvergence, match="windows of 8 segments"):
        bt.solve(lossy.with_(**rare))


def test_a_plan_varies_what_it_says():
    plan = bt.network.plan(bt.load("venugopal-2006/piconet-errors"))
    assert isinstance(plan.numbers, LossyPlan)
    with pytest.raises(KeyError, match="may be varied"):
        plan.metrics({"transport.receive_window_segments": 4.0})


VARIED = {
    "constant": {"radio__model": "constant", "radio__ber": 1e-5, "network__peripherals": 4,
                 "traffic__load_kbps": 20.0, "flow_control__token_rate_kbps": 110.0},
    "two-state": {"run__jitter_s": 0.005},
    "per": {"radio__model": "constant", "radio__per": 0.02, "network__flows": "downlink",
            "network__peripherals": 3, "traffic__load_kbps": 40.0},
}  # fmt: skip
"""Radios, flows and loads; a cap of 60 s is no multiple of the timeout, where expiries have no derivative."""


@pytest.mark.parametrize(
    "name", ["constant", *(pytest.param(name, marks=pytest.mark.long) for name in ("two-state", "per"))]
)
def test_derivatives_of_the_fixed_point_are_those_of_differences(name):
    scenario = bt.load("venugopal-2006/piconet-errors").with_(
        transport__receive_window_segments=4, transport__max_rto_s=60.0, **VARIED[name]
    )
    plan = LossyPlan(scenario, apart=False, tolerance=1e-13)
    here = {metric: np.mean(value) for metric, value in plan.with_findings()[0].items()}
    found = plan.derivatives(list(here))
    for key, value in plan.parameters.items():
        # five points: an error of fourth order in the step
        step = 1e-4 * value or 1e-6
        weights = {-2: 1, -1: -8, 1: 8, 2: -1} if value else {0: -25, 1: 48, 2: -36, 3: 16, 4: -3}
        at = {k: plan.with_findings({key: value + k * step})[0] for k in weights}
        for metric, mean in here.items():
            slope = sum(weights[k] * np.mean(at[k][metric]) for k in at) / (12 * step)
            share = value / mean if value and mean else 1.0  # of a relative change
            wanted = pytest.approx(slope * share, rel=1e-5, abs=1e-6)
            assert found[metric][key] * share == wanted, (key, metric)


@pytest.mark.long
@in_float64
def test_metrics_of_a_plan_have_a_gradient():
    scenario = bt.load("venugopal-2006/piconet-errors").with_(
        transport__receive_window_segments=2, transport__max_rto_s=60.0, **VARIED["constant"]
    )
    plan = LossyPlan(scenario, apart=False, tolerance=1e-12)
    wanted = plan.derivatives(["goodput_kbps"])["goodput_kbps"]["radio.ber"]
    gradient = jax.grad(lambda ber: plan.with_findings({"radio.ber": ber})[0]["goodput_kbps"].mean())
    assert float(gradient(plan.parameters["radio.ber"])) == pytest.approx(wanted, rel=1e-8)
