"""The description of a network: stations on routes, flows with two laws, and the keys behind them."""

import pytest
from thesis import thesis

import btqueue as bt
from btqueue.engines import not_built
from btqueue.scenario import Scenario
from btqueue.scenario.description import description

STAR = {"network.topology": "piconet", "network.peripherals": 3, "network.flows": "downlink"}
REPEATED = {"link.arq": "unlimited", "radio.model": "constant", "radio.ber": 1e-4}
AT_ONCE = {"flow_control.enabled": False, "flow_control.baseband_packets": 500}
LAN = {"name": "lan", "from": "host", "to": "c1", "delay_s": 0.01}
GATEWAY = {
    "network.topology": "piconet",
    "network.outside_links": [LAN],
    "network.flows": [{"from": "host", "to": "p1.1"}, {"from": "p1.2", "to": "host"}],
}
FAR = {"node": "p1.1", "model": "constant", "per": 0.1}
SCATTERNET = {"network.topology": "scatternet", "network.peripherals": 1}


def own(**keys):
    """Return two flows, of which the first has these keys of its own."""
    return [{"from": "c1", "to": "p1.1", **keys}, {"from": "c1", "to": "p1.2"}]


def stations(scenario: Scenario, way: str) -> list[str]:
    """Return the stations on a way of the first flow in words."""
    found = description(scenario)
    return [f"{one.kind} {one.name}" for one in (found.stations[n] for n in getattr(found.flows[0], way))]


def kinds(scenario: Scenario) -> set[str]:
    """Return the kinds of all traits."""
    return {one.kind for one in description(scenario).traits}


def test_a_segment_of_a_ring_passes_bucket_uplink_central_and_downlink():
    assert stations(thesis(), "forth") == [
        *("host p1.1", "token bucket p1.1"),
        *("queue p1.1 to c1", "radio link p1.1 to c1", "polled air 1"),
        *("queue c1 to p1.2", "radio link c1 to p1.2", "polled air 1", "host p1.2"),
    ]
    assert stations(thesis(), "back")[:3] == ["host p1.2", "token bucket p1.2", "queue p1.2 to c1"]


def test_a_gateway_is_an_outside_link_before_the_air():
    assert stations(thesis().changed(GATEWAY), "forth") == [
        *("host host", "outside link lan to c1", "token bucket c1"),
        *("queue c1 to p1.1", "radio link c1 to p1.1", "polled air 1", "host p1.1"),
    ]


def test_a_way_between_piconets_passes_a_bridge():
    way = stations(thesis().changed(SCATTERNET), "forth")
    assert way.count("bridge b1") == 1
    assert way[-3:] == ["radio link c2 to p2.1", "polled air 2", "host p2.1"]
    assert sum(name.startswith("polled air") for name in way) == 4


def test_a_station_stands_once_whoever_passes_it():
    found = description(bt.load("venugopal-2006/piconet-6"))
    names = [(one.kind, one.name) for one in found.stations]
    assert len(names) == len(set(names))
    assert [kind for kind, _ in names].count("polled air") == 1
    assert {n for flow in found.flows for n in (*flow.forth, *flow.back)} == set(range(len(names)))


def test_a_trait_names_the_key_that_gives_it():
    scenario = thesis().changed({**STAR, "network.flows": own(variant="sack")})
    traits = {one.key: one.value for one in description(scenario).traits if one.kind == "transport.variant"}
    assert traits == {"network.flows[1].variant": "sack", "transport.variant": "newreno"}
    assert [flow.transport.name for flow in description(scenario).flows] == ["sack", "newreno"]


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
    assert kind not in kinds(thesis().changed(changes))


WISHES = {
    "gated polling": ({"polling.discipline": "gated"}, {"polling.discipline"}),
    "weighted polling": ({"polling.discipline": "prc-lwrr"}, {"polling.discipline"}),
    "a clock for acknowledgements": (
        {"transport.delayed_ack": True, "transport.ack_clock": "tick"},
        {"transport.delayed_ack", "transport.ack_clock"},
    ),
    "packets given up": ({**REPEATED, "link.flush_timeout_s": 0.1}, {"link.flush_timeout_s"}),
    "periodic": ({"traffic.source": "periodic"}, {"traffic.source"}),
    "bursty": ({"network.flows": "uplink", "traffic.source": "ibp"}, {"traffic.source"}),
    "one bursty flow": ({"network.flows": own(law="ibp")}, {"network.flows[1].law"}),
    "another sender": ({"network.flows": own(variant="vegas")}, {"network.flows[1].variant"}),
    "messages of its own": ({"network.flows": own(message_bytes=700)}, {"network.flows[1].message_bytes"}),
    "Vegas": ({"transport.variant": "vegas"}, {"transport.variant"}),
    "interferers": ({"link.arq": "unlimited", "radio.interferers": 10}, {"radio.interferers"}),
    "one far station": ({"link.arq": "unlimited", "radio.links": [FAR]}, {"radio.links"}),
    "fading without repetition": ({"radio.model": "gilbert-elliott"}, {"radio.model", "link.arq"}),
    "a gateway": (GATEWAY, {"network.outside_links", "flow_control.enabled"}),
    "bridges by schedule": ({**SCATTERNET, "polling.bridge_schedule": "sniff"}, {"polling.bridge_schedule"}),
    "bridges and repetition": ({**SCATTERNET, **REPEATED}, {"link.arq"}),
    "processing": (
        {"link.l2cap_delay_s": 0.002, "transport.ip_delay_s": 0.001},
        {"link.l2cap_delay_s", "transport.ip_delay_s"},
    ),
    "direct acknowledgements": ({"transport.ack_path": "direct"}, {"transport.ack_path"}),
    "long messages": (
        {"traffic.message_bytes": 5000, "flow_control.enabled": False},
        {"traffic.message_bytes"},
    ),
    "voice and long packets": (
        {**AT_ONCE, "voice.packet": "HV3", "link.packets": ["DH3", "DH1"]},
        {"link.packets", "voice.packet"},
    ),
}
"""Wishes for a star, unless they bring a network, and the keys that a refusal may name: no others."""


@pytest.mark.parametrize("wish", WISHES)
def test_a_refusal_names_the_cause_and_nothing_else(wish):
    changes, causes = WISHES[wish]
    network = {} if "network.topology" in changes else STAR
    named = {problem.key for problem in not_built(thesis().changed({**network, **changes}))}
    assert named <= causes  # none, once a solver covers it


AROUND = [{"from": "p1.2", "to": "p1.1"}, {"from": "p1.1", "to": "p1.2"}]


@pytest.mark.parametrize(
    "changes",
    [
        {**STAR, "network.relay": "segment"},
        {**STAR, "transport.protocol": "none", "transport.variant": "vegas", "transport.delayed_ack": True},
        {**STAR, "network.flows": own(receive_window_segments=8)},
        {"network.flows": AROUND},
    ],
    ids=["nothing is passed on", "no TCP", "a window of its own like all others", "a ring in a list"],
)
def test_a_key_that_cannot_matter_is_no_reason_to_refuse(changes):
    assert not not_built(thesis().changed(changes))


def test_a_ring_in_a_list_is_the_ring():
    ring = thesis()
    listed = ring.with_(network__flows=AROUND[::-1])  # as they are numbered in the ring
    assert float(bt.solve(listed).rtt_s.mean()) == float(bt.solve(ring).rtt_s.mean())
