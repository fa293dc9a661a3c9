"""A flow's own traffic and transport: any key of `[traffic]` and `[transport]` in `network.flows`."""

import tomllib

import numpy as np
import pytest
from thesis import over_wires, thesis

import btqueue as bt
from btqueue.scenario import Scenario, ScenarioError

RING = [{"from": "p1.1", "to": "p1.2"}, {"from": "p1.2", "to": "p1.1"}]
RUN = {"duration_s": 30.0, "warmup_s": 5.0, "replications": 2}


def with_flows(flows, **tables):
    return thesis(network={"flows": flows}, run=RUN, **tables)


KEYS = {
    "traffic.source": "periodic",
    "traffic.load_kbps": 40.0,
    "traffic.scv": 4.0,
    "traffic.phase": "aligned",
    "traffic.load_schedule": [{"at_s": 10.0, "load_kbps": 20.0}],
    "transport.protocol": "none",
    "transport.variant": "sack",
    "transport.mss_bytes": 500,
    "transport.receive_window_segments": 3,
    "transport.min_rto_s": 0.3,
    "transport.delayed_ack": True,
}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_every_flow_has_of_its_own_is_that_key_of_the_table(key):
    name = key.partition(".")[2]
    source = {"source": "ibp"} if name == "scv" else {"source": "periodic"} if name == "phase" else {}
    changes = {f"traffic.{k}": value for k, value in source.items()}
    common = with_flows(RING).changed({**changes, key: KEYS[key]})
    flows = [{**flow, "law" if name == "source" else name: KEYS[key]} for flow in RING]
    own = with_flows(flows).changed(changes)
    one, other = bt.simulate(common), bt.simulate(own)
    assert set(one.data_vars) == set(other.data_vars)
    for metric in one.data_vars:
        np.testing.assert_array_equal(one[metric], other[metric], err_msg=metric)


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


@pytest.mark.parametrize(
    ("own", "key", "words"),
    [
        ({"min_rot_s": 1.0}, "network.flows[1].min_rot_s", "network.flows[1].min_rto_s"),
        ({"tcp_delay_s": 1.0}, "network.flows[1].tcp_delay_s", "unknown"),
        ({"min_rto_s": -1.0}, "network.flows[1].min_rto_s", "above 0"),
        ({"min_rto_s": 100.0}, "network.flows[1].min_rto_s", "must not exceed max_rto_s = 64"),
        ({"max_rto_s": 0.5}, "network.flows[1].max_rto_s", "transport.min_rto_s = 1"),
        ({"protocol": "centaurus"}, "network.flows[1].protocol", "sessions"),
        ({"protocol": "none", "law": "greedy"}, "network.flows[1].law", "answers"),
        ({"protocol": "none", "handshake": True}, "network.flows[1].handshake", "TCP"),
        ({"application_timeout_s": 1.0}, "network.flows[1].application_timeout_s", "sessions"),
    ],
)
def test_a_wrong_key_of_a_flow_is_named_with_its_place(own, key, words):
    with pytest.raises(ScenarioError) as caught:
        with_flows([{**RING[0], **own}, RING[1]])
    assert caught.value.key == key
    assert words in str(caught.value)
