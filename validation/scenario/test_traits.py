"""The traits of a scenario: keys that make a difference, and the places that give them."""

import pytest
from thesis import thesis

import btqueue as bt
from btqueue.scenario.traits import traits

STAR = {"network.topology": "piconet", "network.peripherals": 3, "network.flows": "downlink"}
FAR = {"node": "p1.1", "model": "constant", "per": 0.1}


def test_a_trait_names_the_key_that_gives_it():
    flows = [{"from": "c1", "to": "p1.1", "variant": "sack"}, {"from": "c1", "to": "p1.2"}]
    scenario = thesis().changed({**STAR, "network.flows": flows})
    variants = {one.key: one.value for one in traits(scenario) if one.kind == "transport.variant"}
    assert variants == {"network.flows[1].variant": "sack", "transport.variant": "newreno"}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        (STAR, "network.relay"),
        (STAR, "polling.bridge_schedule"),
        ({**STAR, "transport.protocol": "none"}, "transport.variant"),
        ({}, "transport.sack_blocks"),
        ({}, "traffic.scv"),
        ({"traffic.source": "greedy"}, "traffic.load_kbps"),
        ({"link.arq": "unlimited"}, "link.arq"),
        ({"flow_control.enabled": False}, "flow_control.token_rate_kbps"),
        ({**STAR, "network.active_flows": 1, "radio.links": [FAR | {"node": "p1.3"}]}, "radio.links"),
    ],
)
def test_what_makes_no_difference_is_left_out(changes, kind):
    assert all(one.kind != kind for one in traits(thesis().changed(changes)))


AROUND = [{"from": "p1.2", "to": "p1.1"}, {"from": "p1.1", "to": "p1.2"}]


def test_a_ring_in_a_list_is_the_ring():
    ring = thesis()
    listed = ring.with_(network__flows=AROUND[::-1])  # as they are numbered in the ring
    assert float(bt.solve(listed).rtt_s.mean()) == float(bt.solve(ring).rtt_s.mean())
