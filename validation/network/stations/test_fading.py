"""Laws of the radio in the one theory: closed forms, limits, and a few points of the simulator."""

from itertools import pairwise, product
from math import ceil

import numpy as np
import pytest
from beside import mean, near_simulation
from scipy.stats import nbinom

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.repetition import kinds_of
from btqueue.network.stations import fading
from btqueue.network.stations.bridge_buffers import losing
from btqueue.network.stations.crossings import visits_of
from btqueue.network.stations.description import network_of
from btqueue.network.stations.network import Train
from btqueue.network.stations.trains import packet_error, states_of
from btqueue.network.stations.transport import radio_of

LINK = bt.Scenario().changed({
    "network.peripherals": 1, "network.flows": "downlink", "link.packets": ["DH5"],
    "radio.model": "constant", "traffic.source": "greedy", "transport.delayed_ack": False,
    "transport.receive_window_segments": 8,
})  # fmt: skip


def train(**keys) -> Train:
    return network_of(LINK.with_(**keys)).flows[0].forth[0].train


LOST = {
    "radio.model": "gilbert-elliott", "radio.ber_good": 1e-5, "radio.ber_bad": 3e-4, "radio.good_s": 0.04,
    "radio.bad_s": 0.02, "link.arq": "none", "link.packets": ["DH3"], "transport.mss_bytes": 500,
}  # fmt: skip


def test_a_segment_that_arrives_leaves_the_radio_in_a_state():
    """Against the sum over all sequences of states of its packets, each a frame apart."""
    scenario = LINK.changed(LOST)
    found = network_of(scenario).flows[0].forth[0].train
    states, packets = states_of(scenario.radio), int(found.packets)
    share = np.array([state.share for state in states])
    link, radio = scenario.link, scenario.radio
    kinds = kinds_of(link, radio.bits, 500 + 40 + link.l2cap_header_bytes, 0.0, 255.0)
    through = [[1.0 - packet_error(link, radio, kind, state.ber) for kind in kinds] for state in states]
    kept = np.exp(-(kinds[0].slots + 1) * SLOT_S * (1.0 / 0.04 + 1.0 / 0.02))
    moves = kept * np.eye(2) + (1.0 - kept) * share
    expected = np.zeros((2, 2))
    for path in product((0, 1), repeat=packets):
        chance = np.prod([moves[a, b] for a, b in pairwise(path)])
        expected[path[0], path[-1]] += chance * np.prod([through[state][n] for n, state in enumerate(path)])
    assert packets == 3 and found.through == pytest.approx(expected, rel=1e-12)
    assert found.loss == pytest.approx(1.0 - share @ expected.sum(axis=1), rel=1e-12)


@pytest.mark.parametrize(("fading", "radios"), [("per-link", 2), ("per-piconet", 1)])
def test_a_relayed_segment_crosses_each_radio_once(fading, radios):
    """Up one link and down another one, behind a bucket, whose tokens are no radio."""
    ring = {"network.peripherals": 3, "network.flows": "ring", "flow_control.enabled": True}
    network = network_of(LINK.changed({**LOST, **ring, "radio.fading": fading}))
    flow = network.flows[0]
    found, train = radio_of(network, flow), flow.forth[-1].train
    assert found is not None
    assert (len(found.worse), found.others) == (radios, 1.0)
    one = train.through.sum(axis=1)
    both = np.kron(one, one) if radios == 2 else (train.through @ train.through).sum(axis=1)
    assert found.loss == pytest.approx(1.0 - both, rel=1e-12)
    if radios == 2:  # one radio does not lose independently at its two links
        assert found.moved(np.inf)[0] @ found.loss == pytest.approx(flow.loss, rel=1e-12)
    ports = {visit.index for visit in flow.forth if visit.kind == "port"}
    refused = np.array([[0.5 * (n in ports) for n in range(len(network.ports))]] * len(network.flows))
    refusing = radio_of(network, losing(network.flows, refused)[0])
    assert refusing is not None and refusing.others == pytest.approx(0.25)


def test_a_backlog_of_an_outage_is_a_fluid():
    """All that comes in a bad state waits: Little's law of a simulated fluid, 1 - x out in the good state."""
    rate, leaves, returns = 0.3, 0.1, 0.5
    rng, work, area, seconds = np.random.default_rng(1), 0.0, 0.0, 0.0
    for good, bad in rng.exponential((1.0 / leaves, 1.0 / returns), (200_000, 2)).tolist():
        emptied = min(work / (1.0 - rate), good)
        area += work * emptied - (1.0 - rate) * emptied**2 / 2.0
        work = max(work - (1.0 - rate) * good, 0.0)
        area += work * bad + rate * bad**2 / 2.0
        work, seconds = work + rate * bad, seconds + good + bad
    flow = network_of(LINK).flows[0]
    mean = flow.forth[0].train.air + flow.forth[0].train.frames
    stops = {"fast": mean, "slow": 1e9 * mean, "worse": leaves / (leaves + returns), "stay_s": 1.0 / returns}
    visit = flow.forth[0]._replace(train=flow.forth[0].train._replace(**stops))
    found = fading.faded(flow, visit, rate, rate, 1.0, 1e-6, 1e9, waits=True)
    assert found.wait_s == pytest.approx(area / seconds / rate, rel=0.02)


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
