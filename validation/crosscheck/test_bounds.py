"""What no goodput can exceed: by hand, and as properties over the vocabulary of scenarios."""

import numpy as np
import pytest
from any_scenario import scenarios
from hypothesis import given, settings
from thesis import thesis, thesis_of

import btqueue as bt
from btqueue.network.bounds import capacity, window_kbps
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology

SLOT_S = 0.000625
KILOBITS = 11.68
"""Of a segment of 1460 bytes. With 44 bytes of headers it takes four DH5 and a DH3, 23 slots; an
acknowledgement takes a DH3, 3 slots."""
RING = thesis().with_(traffic__source="greedy")


def test_a_ring_of_two_fills_both_ways_of_its_links():
    # Each link carries one flow up and the other down, and an acknowledgement for eight segments each way.
    slots = 2 * 2 * (23 + 3 / 8)
    assert capacity(RING).most_kbps() == pytest.approx(KILOBITS / (slots * SLOT_S))
    assert capacity(RING).used(np.full(2, 100.0))[0] == pytest.approx(100 / KILOBITS * slots * SLOT_S)


def test_a_flow_alone_pays_for_the_empty_packets_of_its_frames():
    # Five packets one way, an eighth of one the other way: the rest of the frames is POLL or NULL.
    slots = 2 * (23 + 3 / 8 + (5 - 1 / 8))
    assert capacity(RING).most_kbps(0) == pytest.approx(KILOBITS / (slots * SLOT_S))


def test_voice_takes_its_slots_first():
    voice = {"voice__packet": "HV3", "link__packets": ["DM3", "DM1"]}
    with_voice, without = (RING.with_(**(voice | more)) for more in ({}, {"voice__packet": "none"}))
    assert capacity(with_voice).most_kbps() == pytest.approx(capacity(without).most_kbps() * 4 / 6)


def test_a_bridge_is_in_one_piconet_at_a_time():
    # Two flows cross the bridge, and each hop of each takes its time: as much as both hops at a central.
    scenario = bt.load("venugopal-2006/scatternet-1")
    room = capacity(scenario)
    assert set(room.names) == {"device c1", "device c2", "device b1"}
    slots = 2 * 2 * (23 + 3 / scenario.transport.receive_window_segments)
    assert dict(zip(room.names, room.used(np.full(2, KILOBITS)), strict=True)) == pytest.approx(
        dict.fromkeys(room.names, slots * SLOT_S)
    )


def outside(**link) -> Scenario:
    """A flow over one outside link of 100 kbit/s, 0.05 s long."""
    own = {"name": "x", "from": "a", "to": "b", "kind": "wired", "rate_kbps": 100.0, "delay_s": 0.05}
    flows = [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
    network = {"peripherals": 1, "outside_links": [own | link], "flows": flows}
    return thesis_of({"network": network, "traffic": {"source": "greedy"}})


def test_an_outside_link_carries_its_rate_with_headers():
    each_way = outside(header_bytes=10)
    # 1460 bytes of 1510; full duplex: a medium for each direction
    data, acks = 1510, 50 / 8
    assert capacity(each_way).most_kbps() == pytest.approx(100 * 1460 / (data + acks))
    shared = outside(header_bytes=10, half_duplex=True)
    assert capacity(shared).most_kbps() == pytest.approx(100 * 1460 / (data + acks) / 2)


TRIP_S = 2 * 0.05 + (1500 + 40) * 8e-3 / 100


def test_a_window_is_delivered_once_a_round_trip_at_most():
    one = outside().with_(transport__receive_window_segments=1)
    assert window_kbps(one) == pytest.approx(KILOBITS / TRIP_S)
    assert window_kbps(outside()) == pytest.approx(8 * KILOBITS / TRIP_S)


@pytest.mark.parametrize(
    ("window", "clock", "waited"),
    [
        (1, "timer", lambda trip: trip + 0.2),
        (2, "timer", lambda trip: trip + 0.1),  # the second one waits for less
        (3, "timer", lambda trip: trip),  # three force an acknowledgement out
        (1, "tick", lambda trip: max(trip, 0.2)),
    ],
)
def test_a_window_that_forces_no_acknowledgement_out_waits_for_the_clock(window, clock, waited):
    keys = {"delayed_ack": True, "ack_every_segments": 3, "ack_clock": clock}
    keys |= {"receive_window_segments": window}
    scenario = outside().changed({f"transport.{key}": value for key, value in keys.items()})
    assert window_kbps(scenario) == pytest.approx(window * KILOBITS / waited(TRIP_S))


def test_the_clock_is_what_holds_a_lone_segment_back():
    """The bound is met: Johansson's link with one segment in flight is simulated at 22.864 kbit/s."""
    keys = {"transport.receive_window_segments": 1, "transport.delayed_ack": True}
    scenario = bt.load("johansson-2000/asymmetric", keys | {"run.duration_s": 60, "run.replications": 2})
    simulated = bt.simulate(scenario).goodput_kbps.mean().item()
    # sixty seconds begin and end within a segment
    assert simulated == pytest.approx(window_kbps(scenario)[0], rel=0.01)


@pytest.mark.parametrize("arq", ["none", "unlimited"])
@pytest.mark.parametrize("types", [["DH1"], ["DH5", "DM5", "DM3", "DM1"]])
def test_packets_chosen_at_each_transmission_carry_no_more_than_their_slots(types, arq):
    link = {"link__adaptation": "best", "link__packets": ["DH1"], "link__adaptation_packets": types}
    sizes = {"transport__mss_bytes": 500, "traffic__message_bytes": 500}
    run = {"run__duration_s": 20, "run__replications": 2}
    scenario = RING.with_(link__arq=arq, flow_control__enabled=False, **link, **sizes, **run)
    simulated = bt.simulate(scenario).goodput_kbps.mean().item()
    # a run begins and ends within a window of segments
    assert 0 < simulated <= capacity(scenario).most_kbps() + 8 * 500 * 8e-3 / 20


@settings(max_examples=60)
@given(scenarios())
def test_no_goodputs_fit_that_have_a_greater_mean_than_the_most(scenario):
    room, flows = capacity(scenario), len(topology(scenario).flows)
    assert (window_kbps(scenario) > 0).all()
    most = room.most_kbps()
    for weights in (np.ones(flows), np.arange(1.0, flows + 1), np.eye(flows)[0]):
        used = room.used(weights).max(initial=0.0)
        # what is used grows in proportion; scaled to the limit it has no greater mean than the largest
        assert used > 0 and np.mean(weights) / used <= most * (1 + 1e-6)
        assert room.used(3 * weights) == pytest.approx(3 * room.used(weights))
