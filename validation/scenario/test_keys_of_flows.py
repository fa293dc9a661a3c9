"""A flow's own traffic and transport: any key of `[traffic]` and `[transport]` in `network.flows`."""

import tomllib

import pytest
from thesis import over_wires, thesis

import btqueue as bt
from btqueue.scenario import Scenario

RING = [{"from": "p1.1", "to": "p1.2"}, {"from": "p1.2", "to": "p1.1"}]
RUN = {"duration_s": 30.0, "warmup_s": 5.0, "replications": 2}


def with_flows(flows, **tables):
    return thesis(network={"flows": flows}, run=RUN, **tables)


def test_protocols_may_be_mixed():
    """Over wires of their own, a session of CentaurusComm and a TCP transfer do as each does alone."""
    wires = [
        {"name": name, "from": f"{name}1", "to": f"{name}2", "rate_kbps": 500.0, "delay_s": 0.01}
        for name in ("a", "b")
    ]
    session = {"from": "a1", "to": "a2", "law": "request-reply", "protocol": "centaurus"}
    bulk = {"from": "b1", "to": "b2", "law": "greedy", "variant": "sack"}

    def goodputs(*flows):
        dataset = bt.simulate(Scenario(network=over_wires(*wires, flows=flows), run=RUN))
        return dict(zip(dataset["flow_name"].values, dataset["goodput_kbps"].values[0], strict=True))

    assert goodputs(session, bulk) == goodputs(session) | goodputs(bulk)


def test_defaults_follow_the_flows_own_keys():
    s = with_flows([{**RING[0], "protocol": "none"}, RING[1]])
    assert not isinstance(s.network.flows, str)
    first, second = (s.of_flow(flow).transport for flow in s.network.flows)
    assert (first.protocol, first.header_bytes) == ("none", 28)
    assert (second.protocol, second.header_bytes) == ("tcp", 40)
    assert Scenario.from_dict(tomllib.loads(s.to_toml(resolved=False))) == s


def test_a_flow_of_tcp_without_ip_is_refused_with_its_key():
    """Theory divided by zero, and a sweep printed a goodput."""
    tables = {"link": {"bearer": "le"}, "le": {"ip": "none"}, "transport": {"protocol": "none"}}
    flows = [{"from": "p1.1", "to": "c1", "protocol": "tcp"}, {"from": "p1.2", "to": "c1"}]
    with pytest.raises(bt.ScenarioError, match=r"flows\[1\].protocol = \"tcp\".* without IP"):
        Scenario.from_dict(tables | {"network": {"peripherals": 2, "flows": flows}})
    with pytest.raises(bt.ScenarioError, match=r"\[le\] ip = \"none\".* without IP"):
        Scenario.from_dict(tables | {"transport": {"protocol": "tcp"}})
