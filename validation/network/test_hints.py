"""Hints before a run: at which scenarios they come, and that the key named does decide the answer."""

import json

import pytest
from any_scenario import scenarios
from command_line import run
from hypothesis import given, settings

import btqueue as bt

ARQ, WINDOW, WARM_UP = "link.arq", "transport.receive_window_segments", "run.warmup_s"


def keys(scenario):
    return {hint.key for hint in bt.hints(scenario)}


DOWNLOAD = {"network": {"peripherals": 1, "flows": "downlink"}, "traffic": {"source": "greedy"}}
NOISY = DOWNLOAD | {"radio": {"model": "constant", "ber": 1e-4}}
DOCUMENT = {
    "network": {"peripherals": 1, "flows": "uplink"},
    "traffic": {"load_kbps": 50, "message_bytes": 20_000},
    "transport": {"protocol": "none"},
}
FULL = {"from": "c1", "to": "p1.1", "law": "greedy"}
LIGHT = {"from": "p1.2", "to": "c1", "load_kbps": 10, "message_bytes": 200, "nagle": False}
SHORT = {"duration_s": 60, "warmup_s": 10, "replications": 2}
MIXED = {"network": {"flows": [FULL, LIGHT]}, "run": SHORT}
SENSOR = {
    "network": {"peripherals": 1, "flows": "uplink"},
    "traffic": {"source": "periodic", "load_kbps": 8, "message_bytes": 100},
}
LE = {"link": {"bearer": "le"}, "le": {"ip": "none", "interval_s": 0.1}, "transport": {"protocol": "none"}}
EVENTS = LE | {"network": {"peripherals": 4, "flows": "uplink"}, "traffic": {"message_bytes": 40}}
TABLE = [
    ("events of the whole interval", EVENTS, {}, {"le.event_length_s"}),
    ("long events", EVENTS, {"le__event_length_s": 0.03}, {"le.event_length_s"}),
    ("events that fit", EVENTS, {"le__event_length_s": 0.025}, set()),
    ("more active flows", EVENTS, {"le__subrate": 4, "network__active_flows": 5}, {"network.active_flows"}),
    ("one link", EVENTS, {"network__peripherals": 1}, set()),
    ("every fourth event", EVENTS, {"le__subrate": 4}, set()),
    ("held back", SENSOR, {}, {"transport.nagle"}),
    ("seldom", SENSOR, {"traffic__load_kbps": 2}, set()),
    ("full segments within the delay", SENSOR, {"traffic__load_kbps": 80}, {"transport.nagle"}),
    ("full segments within the round trip", SENSOR,
     {"traffic__load_kbps": 400, "link__l2cap_delay_s": 0.02}, set()),
    ("no Nagle", SENSOR, {"transport__nagle": False}, set()),
    ("no delayed acknowledgements", SENSOR, {"transport__delayed_ack": False}, set()),
    ("repetition", NOISY, {"link__arq": "none"}, {ARQ}),
    ("errors of another radio", DOWNLOAD, {"radio__ber": 1e-4}, {"radio.ber"}),
    ("errors of a link", DOWNLOAD,
     {"radio__ber": 1e-4, "radio__links": [{"node": "p1.1", "model": "constant"}]}, set()),
    ("few errors", NOISY, {"link__arq": "none", "radio__ber": 1e-8}, set()),
    ("no errors", DOWNLOAD, {"link__arq": "none"}, set()),
    ("queue", DOCUMENT, {"flow_control__baseband_packets": 20}, {"flow_control.baseband_packets"}),
    ("long queue", DOCUMENT, {"flow_control__baseband_packets": 80}, set()),
    ("queue of the central", DOCUMENT,
     {"network__flows": "downlink", "flow_control__central_buffer_packets": 20},
     {"flow_control.central_buffer_packets"}),
    ("node", DOCUMENT, {"link__node_buffer_bytes": 15_000}, {"link.node_buffer_bytes"}),
    ("initial window", DOCUMENT, {"transport__protocol": "tcp", "flow_control__baseband_packets": 40},
     {"flow_control.baseband_packets"}),
    ("small initial window", DOCUMENT, {"transport__protocol": "tcp", "flow_control__baseband_packets": 40,
     "transport__initial_window_segments": 4}, set()),
    ("tokens", DOCUMENT, {"flow_control__enabled": True, "flow_control__buffer_packets": 40},
     {"flow_control.buffer_packets"}),
    ("tokens saved", DOCUMENT, {"flow_control__enabled": True, "flow_control__buffer_packets": 40,
     "flow_control__bucket_bytes": 20_000}, set()),
    ("limit", MIXED, {"polling__limit": 1000}, {"polling.limit"}),
    ("usual limit", MIXED, {}, set()),
    ("exhaustive", MIXED, {"polling__discipline": "exhaustive"}, {"polling.discipline"}),
    ("gated", MIXED, {"polling__discipline": "gated"}, set()),
    ("short warm-up", DOWNLOAD, {"run__warmup_s": 2.0}, {WARM_UP}),
    ("timer", DOWNLOAD, {"link__rate": "edr3", "run__warmup_s": 2.9, "transport__initial_rto_s": 3.0,
     "transport__receive_window_segments": 8}, {WARM_UP}),
    ("warm-up found", DOWNLOAD, {"run__warmup_s": "auto"}, set()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tables", "changes", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_hint_comes_beyond_its_threshold_only(tables, changes, expected):
    assert keys(bt.Scenario(**tables).with_(**changes)) == expected


def test_the_hint_at_a_window_names_the_flow_that_has_it():
    flows = [{"from": "server", "to": "laptop", "law": "greedy", "receive_window_segments": 4}]
    (hint,) = bt.hints(bt.load("practice/gateway").with_(network__flows=flows))
    assert hint.key == "network.flows[1].receive_window_segments"
    words = "[network] flows[1].receive_window_segments = 4: one window in each unloaded round trip"
    assert hint.message.startswith(words)


def goodput(scenario):
    short = scenario.changed({f"run.{key}": value for key, value in SHORT.items()})
    return bt.simulate(short)["goodput_kbps"].mean("replication").to_numpy()


@pytest.mark.parametrize(
    ("scenario", "better"),
    [
        (bt.Scenario(**NOISY).with_(link__arq="none"), {"link__arq": "unlimited"}),
        (bt.load("practice/gateway").with_(transport__receive_window_segments=8),
         {"transport__receive_window_segments": 16}),
        (bt.Scenario(**DOCUMENT).with_(flow_control__baseband_packets=20),
         {"flow_control__baseband_packets": 200}),
    ],
)  # fmt: skip
def test_the_key_of_a_hint_decides_the_answer(scenario, better):
    assert keys(scenario)
    after = scenario.with_(**better)
    assert not keys(after)
    assert goodput(after)[0] > 1.3 * goodput(scenario)[0]


def test_others_starve_beside_a_link_that_is_never_left():
    scenario = bt.Scenario(**MIXED)
    assert goodput(scenario)[1] > 9
    assert goodput(scenario.with_(polling__discipline="exhaustive"))[1] < 0.5


def test_the_event_length_that_a_hint_names_misses_no_event():
    """Without it three of four events are missed, and readings wait for more than an interval."""
    scenario = bt.Scenario.from_dict(EVENTS | {"run": {"duration_s": 30, "warmup_s": 5, "replications": 2}})
    scenario = scenario.with_(traffic__source="poisson", traffic__load_kbps=0.32)
    (hint,) = bt.hints(scenario)
    assert "75% of the events are missed; 0.025 fits" in hint.message
    found = [bt.simulate(one) for one in (scenario, scenario.with_(le__event_length_s=0.025))]
    assert [round(float(one["events_missed"].mean()), 2) for one in found] == [0.75, 0.0]
    assert float(found[0]["delay_s"].mean()) > 3 * float(found[1]["delay_s"].mean())


def test_commands_say_hints_before_they_run():
    typed = ["practice/gateway", "--set", "transport.receive_window_segments=4", "--set", "run.warmup_s=0"]
    typed += ["--set", "run.duration_s=1", "--set", "run.replications=1", "--json"]
    both = [WINDOW, WARM_UP]
    for command, expected in {"solve": [WINDOW], "simulate": both, "compare": both}.items():
        loud = run(command, *typed)
        hints = json.loads(loud.stdout)["hints"]
        assert [hint["key"] for hint in hints] == expected
        said = [line for line in loud.stderr.splitlines() if "hint" in line]
        assert said == [f"btqueue: hint: {hint['message']}" for hint in hints]
        quiet = run(command, *typed, "--quiet")
        assert "hint" not in quiet.stderr
        assert json.loads(quiet.stdout)["hints"] == hints


@settings(max_examples=60, deadline=None)
@given(scenarios())
def test_every_scenario_can_be_asked_for_hints(scenario):
    found = bt.hints(scenario)
    assert len({hint.key for hint in found}) == len(found)
    assert all(" = " in hint.message and "nan" not in hint.message for hint in found)
