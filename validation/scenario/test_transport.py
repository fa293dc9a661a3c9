"""Presets of `[transport]`, bundles of defaults which keys that are given go before; and keys of flows.

A flow may have any key of `[traffic]` and `[transport]` of its own, a preset among them.
"""

import pytest
from thesis import over_wires

import btqueue as bt
from btqueue.scenario import Scenario
from btqueue.scenario.topology import flows_of
from btqueue.scenario.transport import Transport


def test_a_key_that_is_given_goes_before_the_preset():
    transport = Transport(preset="linux", min_rto_s=1.0, variant="newreno")
    assert (transport.min_rto_s, transport.variant, transport.ack_delay_s) == (1.0, "newreno", 0.04)


def test_another_preset_takes_the_first_ones_keys_back():
    linux = Scenario.from_dict({"transport": {"preset": "linux", "mss_bytes": 1448}})
    assert linux.to_dict(resolved=False) == {"transport": {"preset": "linux", "mss_bytes": 1448}}
    assert linux.to_dict()["transport"]["variant"] == "cubic", "the result shows what was set"
    assert Scenario.from_dict(linux.to_dict()) == linux
    back = linux.with_(transport__preset="thesis")
    assert back.transport == Transport(preset="thesis", mss_bytes=1448)


def mixed(transport, **own):
    """Return two flows, the first with these keys of its own."""
    flows = [{"from": "p1.1", "to": "p1.2", **own}, {"from": "p1.2", "to": "p1.1"}]
    return Scenario.from_dict({"network": {"flows": flows}, "transport": transport})


@pytest.mark.parametrize(
    ("own", "seen"),
    [
        ({"preset": "linux"}, {"variant": ["cubic", "newreno"], "min_rto_s": [0.2, 1.0]}),
        ({"protocol": "none"}, {"protocol": ["none", "tcp"], "header_bytes": [28, 40]}),
    ],
)
def test_defaults_follow_the_flows_own_keys(own, seen):
    scenario = mixed({"preset": "thesis"}, **own)
    both = [scenario.of_flow(flow).transport for flow in flows_of(scenario.network)]
    assert {key: [getattr(one, key) for one in both] for key in seen} == seen


@pytest.mark.parametrize("preset", ["linux", "ns3", "rfc"])
def test_a_preset_runs(preset):
    names = ("variant", "receive_window_segments", "windows")
    window = {f"transport__{name}": None for name in names}
    run = {"run__duration_s": 20, "run__warmup_s": 5, "run__replications": 1}
    scenario = bt.load("venugopal-2006/piconet").with_(transport__preset=preset, **window, **run)
    assert float(bt.simulate(scenario).goodput_kbps.mean()) > 50


def test_values_of_a_flow_and_where_they_come_from():
    scenario = mixed({}, preset="linux")
    assert scenario.value_of("network.flows[1].receive_window_segments") == 2048
    assert scenario.value_of("network.flows[2].law") == "poisson"
    assert scenario.origin("network.flows[1].variant") == 'of preset = "linux"'
    assert scenario.origin("network.flows[1].preset") == ""
    datagrams = Scenario.from_dict({"transport": {"preset": "linux", "protocol": "none"}})
    assert datagrams.origin("transport.variant") == "the default", "a preset is one of TCP"


def test_protocols_may_be_mixed():
    """Over wires of their own, a session of CentaurusComm and a TCP transfer do as each does alone."""
    wires = [
        {"name": name, "from": f"{name}1", "to": f"{name}2", "rate_kbps": 500.0, "delay_s": 0.01}
        for name in ("a", "b")
    ]
    session = {"from": "a1", "to": "a2", "law": "request-reply", "protocol": "centaurus"}
    bulk = {"from": "b1", "to": "b2", "law": "greedy", "variant": "sack"}

    def goodputs(*flows):
        run = {"duration_s": 30.0, "warmup_s": 5.0, "replications": 2}
        dataset = bt.simulate(Scenario(network=over_wires(*wires, flows=flows), run=run))
        return dict(zip(dataset["flow_name"].values, dataset["goodput_kbps"].values[0], strict=True))

    assert goodputs(session, bulk) == goodputs(session) | goodputs(bulk)


def test_a_flow_of_tcp_without_ip_is_refused_with_its_key():
    """Theory divided by zero, and a sweep printed a goodput."""
    tables = {"link": {"bearer": "le"}, "le": {"ip": "none"}, "transport": {"protocol": "none"}}
    flows = [{"from": "p1.1", "to": "c1", "protocol": "tcp"}, {"from": "p1.2", "to": "c1"}]
    with pytest.raises(bt.ScenarioError, match=r"flows\[1\].protocol = \"tcp\".* without IP"):
        Scenario.from_dict(tables | {"network": {"peripherals": 2, "flows": flows}})
    with pytest.raises(bt.ScenarioError, match=r"\[le\] ip = \"none\".* without IP"):
        Scenario.from_dict(tables | {"transport": {"protocol": "tcp"}})
