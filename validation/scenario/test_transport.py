"""Presets of `[transport]`: bundles of defaults, which keys that are given go before."""

import pytest

import btqueue as bt
from btqueue.scenario.topology import flows_of
from btqueue.scenario.transport import Transport


def test_a_key_that_is_given_goes_before_the_preset():
    transport = Transport(preset="linux", min_rto_s=1.0, variant="newreno")
    assert (transport.min_rto_s, transport.variant, transport.ack_delay_s) == (1.0, "newreno", 0.04)


def test_another_preset_takes_the_first_ones_keys_back():
    linux = bt.Scenario.from_dict({"transport": {"preset": "linux", "mss_bytes": 1448}})
    assert linux.to_dict(resolved=False) == {"transport": {"preset": "linux", "mss_bytes": 1448}}
    assert linux.to_dict()["transport"]["variant"] == "cubic", "the result shows what was set"
    assert bt.Scenario.from_dict(linux.to_dict()) == linux
    back = linux.with_(transport__preset="thesis")
    assert back.transport == Transport(preset="thesis", mss_bytes=1448)


def mixed(**transport):
    """Return two flows, the first with the preset "linux" of its own."""
    flows = [{"from": "p1.1", "to": "p1.2", "preset": "linux"}, {"from": "p1.2", "to": "p1.1"}]
    return bt.Scenario.from_dict({"network": {"flows": flows}, "transport": transport})


def seen_by(scenario):
    """Return the transport of each flow."""
    return [scenario.of_flow(flow).transport for flow in flows_of(scenario.network)]


def test_a_flow_may_have_a_preset_of_its_own():
    scenario = mixed(preset="thesis")
    seen = seen_by(scenario)
    assert [one.variant for one in seen] == ["cubic", "newreno"]
    assert [one.min_rto_s for one in seen] == [0.2, 1.0]


@pytest.mark.parametrize("preset", ["linux", "ns3", "rfc"])
def test_a_preset_runs(preset):
    names = ("variant", "receive_window_segments", "windows")
    window = {f"transport__{name}": None for name in names}
    run = {"run__duration_s": 20, "run__warmup_s": 5, "run__replications": 1}
    scenario = bt.load("venugopal-2006/piconet").with_(transport__preset=preset, **window, **run)
    assert float(bt.simulate(scenario).goodput_kbps.mean()) > 50


def test_values_of_a_flow_and_where_they_come_from():
    scenario = mixed()
    assert scenario.value_of("network.flows[1].receive_window_segments") == 2048
    assert scenario.value_of("network.flows[2].law") == "poisson"
    assert scenario.origin("network.flows[1].variant") == 'of preset = "linux"'
    assert scenario.origin("network.flows[1].preset") == ""
    datagrams = bt.Scenario.from_dict({"transport": {"preset": "linux", "protocol": "none"}})
    assert datagrams.origin("transport.variant") == "the default", "a preset is one of TCP"
