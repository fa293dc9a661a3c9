"""The limit of a flow: the same cause from both engines, its key, and the next limit behind it."""

import json

import pytest
from command_line import run

from btqueue import compare, load, simulate, solve, table
from btqueue.scenario import Scenario
from btqueue.scenario.limits import Bound, limits
from btqueue.scenario.topology import topology
from btqueue.study.tables import limit_lines

ALONE = Scenario().with_(
    network__peripherals=1,
    network__flows="uplink",
    traffic__source="greedy",
    run__duration_s=20,
    run__warmup_s=5,
    run__replications=2,
)
TOKENS = {"flow_control.enabled": True, "flow_control.token_rate_kbps": 100.0}
LOSSY = {"link.arq": "none", "radio.model": "constant", "radio.ber": 3e-6}
WLAN = {
    "network": {
        "topology": "custom",
        "piconet_list": [{"name": "ward", "central": "ap", "peripherals": ["a"]}],
        "outside_links": [{"name": "lan", "from": "host", "to": "ap", "rate_kbps": 200.0}],
        "flows": [{"from": "host", "to": "a"}],
    }
}
LE = ALONE.changed(
    {"link.bearer": "le", "le.ip": "none", "transport.protocol": "none"}
    | {"traffic.message_bytes": 244, "transport.mss_bytes": 244}
)
RESERVED = LE.changed({"network.peripherals": 3, "le.interval_s": 0.1, "le.event_length_s": 0.0025})
FIRST, LAST = ([{"from": sender, "to": "c1"}] for sender in ("p1.1", "p1.3"))
CASES = {
    "load": (ALONE.with_(traffic__source="poisson", traffic__load_kbps=100.0), "traffic.load_kbps", ""),
    "window": (ALONE.with_(transport__receive_window_segments=2), "transport.receive_window_segments", ""),
    "slots": (ALONE, "link.packets", "1"),
    "tokens": (ALONE.changed(TOKENS), "flow_control.token_rate_kbps", ""),
    "outside": (
        Scenario.from_dict(WLAN | {"traffic": {"source": "greedy"}, "run": ALONE.to_dict()["run"]}),
        "network.outside_links[1].rate_kbps",
        "lan",
    ),
    "host": (ALONE.changed({"link.l2cap_delay_s": 0.03}), "link.l2cap_delay_s", "p1.1"),
    "cwnd": (ALONE.changed(LOSSY), "link.arq", "the radio"),
    "timer": (ALONE.changed(LOSSY | {"radio.ber": 2e-5}), "transport.min_rto_s", ""),
    "slots of connection events": (LE, "le.phy", "1"),
    "slots of few packets": (LE.changed({"le.event_packets": 2}), "le.event_packets", "1"),
    # the next reservation limits every peripheral but the last, which carries twenty times as much
    "slots of the first": (RESERVED.with_(network__flows=FIRST), "le.event_length_s", "1"),
    "slots of the last": (RESERVED.with_(network__flows=LAST), "le.phy", "1"),
    "slots of the last, not extended": (
        RESERVED.with_(network__flows=LAST, le__event_extension=False), "le.event_length_s", "1"
    ),
    "slots of skipped events": (
        LE.changed({"network.flows": "downlink", "le.latency": 4}), "le.latency", "1"
    ),
    "slots of the last in the interval": (
        RESERVED.with_(network__flows=LAST, le__event_length_s=None), "le.event_length_s", "1"
    ),
}  # fmt: skip


DOWNLOAD = {"from": "c1", "to": "p1.1", "name": "download", "law": "greedy"}
SENSORS = [{"from": f"p1.{number}", "to": "c1", "group": "sensors"} for number in range(2, 8)]
WARD = Scenario(
    network={"peripherals": 7, "flows": [DOWNLOAD, *SENSORS]},
    traffic={"source": "periodic", "load_kbps": 8.0, "message_bytes": 100},
    run={"duration_s": 20.0, "warmup_s": 5.0, "replications": 3},
)


@pytest.mark.parametrize("engine", [solve, simulate])
@pytest.mark.parametrize("kind", CASES)
def test_both_engines_find_the_limit_and_its_key(kind, engine):
    scenario, key, name = CASES[kind]
    results = engine(scenario)
    (found,) = results.attrs["limited_by"]
    assert (found["kind"], found["key"], found["name"]) == (kind.partition(" ")[0], key, name)
    assert found["value"] == scenario.value_of(key)
    assert found["kbps"] == pytest.approx(float(results.goodput_kbps.mean()), rel=1e-9)
    behind = found["next"]
    if kind in ("load", "window", "tokens", "outside"):
        assert behind["kind"] == "slots" and behind["kbps"] > found["kbps"]
        assert f"; the radio would carry {behind['kbps']:,.3g}" in found["line"]
    if scenario.link.bearer == "le":
        assert found["line"].startswith("connection events of piconet 1: ")
        assert ("next reservation: le.event_length_s = " in found["line"]) == (key == "le.event_length_s")
        assert ("skips events: le.latency = 4" in found["line"]) == (key == "le.latency")


@pytest.mark.parametrize("engine", [solve, simulate])
def test_the_next_limit_is_the_goodput_without_the_limit(engine):
    """The slots beside a window of two segments, and beside a load, carry as much as a large window gets."""
    most = float(simulate(ALONE).goodput_kbps.mean())
    for kind, tolerance in (("window", 0.06), ("load", 0.2)):
        (found,) = engine(CASES[kind][0]).attrs["limited_by"]
        assert found["next"]["kbps"] == pytest.approx(most, rel=tolerance)


SHORT = {"run.duration_s": 20, "run.warmup_s": 5, "run.replications": 2}
SPARSE = {"traffic.source": "poisson", "traffic.load_kbps": 8.0, "le.interval_s": 0.1}


@pytest.mark.parametrize(
    "scenario",
    [load("practice/game-pads"), LE.changed(SPARSE), CASES["load"][0].with_(network__peripherals=3)],
    ids=["voice and other links", "Low Energy", "other links"],
)
def test_the_simulator_names_no_radio_behind_a_load_where_packets_wait_while_slots_are_free(scenario):
    """The queues of game pads are empty so often that 37 kbit/s would fit, and a load of 30 gets 21."""
    for limit in simulate(scenario.changed(SHORT)).attrs["limited_by"]:
        assert (limit["kind"], limit["next"]) == ("load", None)


def test_theory_names_the_radio_behind_a_load_beside_a_call():
    pads = load("practice/game-pads", SHORT)
    most = float(simulate(pads.with_(traffic__load_kbps=30.0)).goodput_kbps.mean())
    for limit in solve(pads).attrs["limited_by"]:
        assert (limit["kind"], limit["next"]["kind"]) == ("load", "slots")
        assert limit["next"]["kbps"] == pytest.approx(most, rel=0.01)


@pytest.mark.parametrize("window", [22, 88])
def test_a_queue_of_acknowledgements_alone_shows_that_the_slots_are_the_limit(window):
    """In the gaps of HV3 an acknowledgement of three slots waits for the end of the data of three slots.

    The queue of the data is empty in a twentieth of the time, and a larger window brings 3 % at most.
    """
    car = load("practice/car", {"link.rate": "basic", "voice.packet": "HV3"} | SHORT)
    for size in (window, 2 * window):
        (limit,) = simulate(car.with_(transport__receive_window_segments=size)).attrs["limited_by"]
        assert (limit["kind"], limit["key"]) == ("slots", "link.packets")


FAR = {"name": "lan", "from": "host", "to": "ap", "rate_kbps": 10_000.0, "delay_s": 0.1}
SLOW = FAR | {"rate_kbps": 200.0, "delay_s": 0.0}
ONE = WLAN["network"] | {"flows": [{"from": "host", "to": "a", "law": "greedy"}]}
TWO = WLAN["network"] | {"flows": [{"from": "host", "to": "a", "law": "greedy"}] * 2}


@pytest.mark.parametrize("engine", [solve, simulate])
@pytest.mark.parametrize(
    ("network", "window", "kinds", "words"),
    [
        # 27 ms in slots of the piconet behind delays of 200 ms, and without delays
        (ONE | {"outside_links": [FAR]}, 4, ["window", "slots"], "window of 4 segments and slots of "),
        (ONE | {"outside_links": [FAR | {"delay_s": 1.0}]}, 4, ["window"], "window of 4 segments: "),
        (ONE | {"outside_links": [SLOW]}, 44, ["outside"], "link lan: "),
        (
            TWO | {"outside_links": [SLOW]},
            44,
            ["outside", "window"],
            "link lan and the window of 44 segments: ",
        ),
    ],
)
def test_limits_that_hold_a_flow_together_are_named_together(engine, network, window, kinds, words):
    """A station beside a window for a tenth of the round trip; a window beside a station that others fill."""
    transport = {"receive_window_segments": window}
    scenario = Scenario.from_dict({"network": network, "transport": transport, "run": ALONE.to_dict()["run"]})
    found = engine(scenario).attrs["limited_by"][0]
    assert [found["kind"], *(one["kind"] for one in found["also"])] == kinds
    assert found["line"].startswith(words)
    if kinds == ["window", "slots"]:
        assert [one["key"] for one in found["also"]] == ["link.packets"]
        assert " % of the round trip)" in found["line"].replace("%", " %")


@pytest.mark.parametrize("engine", [solve, simulate])
def test_the_interval_makes_up_the_round_trip_beside_a_window_over_connection_events(engine):
    """Segments wait for events of both piconets, wherever these end: shorter intervals bring goodput."""
    ward, lab = ({"name": name, "central": name[0], "peripherals": ["a"]} for name in ("ward", "lab"))
    network = {"topology": "custom", "piconet_list": [ward, lab], "flows": [{"from": "w", "to": "l"}]}
    transport = {"receive_window_segments": 2, "initial_window_segments": 2}
    scenario = Scenario.from_dict({"network": network, "transport": transport, "link": {"bearer": "le"}})
    scenario = scenario.changed(SHORT | {"traffic.source": "greedy", "le.interval_s": 0.1})
    (found,) = engine(scenario).attrs["limited_by"]
    assert [found["kind"], *(one["key"] for one in found["also"])] == ["window", "le.interval_s"]
    shorter = engine(scenario.with_(le__interval_s=0.05)).goodput_kbps
    assert float(shorter.mean()) > 1.1 * found["kbps"]


@pytest.mark.parametrize("engine", [solve, simulate])
def test_windows_share_the_layers_of_the_host_that_receives_them(engine):
    two = {"network.peripherals": 2, "network.flows": [{"from": f"p1.{n}", "to": "c1"} for n in (1, 2)]}
    for found in engine(CASES["host"][0].changed(two)).attrs["limited_by"]:
        assert [found["kind"], *(one["kind"] for one in found["also"])] == ["host", "window"]
        assert found["line"].startswith("the layers of host c1 and the window of 44 segments: ")


@pytest.mark.parametrize("engine", [solve, simulate])
def test_losses_are_named_beside_the_timer(engine):
    (found,) = engine(CASES["timer"][0]).attrs["limited_by"]
    assert [(one["kind"], one["key"]) for one in found["also"]] == [("cwnd", "link.arq")]
    assert found["line"].startswith(
        "the retransmission timer and the congestion window after losses at the radio: "
    )


@pytest.mark.parametrize("engine", [solve, simulate])
def test_tokens_that_a_load_leaves_are_the_next_limit(engine):
    """Beside a load of half the token rate the tokens carry as much as a greedy source gets from them."""
    most = float(simulate(CASES["tokens"][0]).goodput_kbps.mean())
    (found,) = engine(CASES["load"][0].changed(TOKENS | {"traffic.load_kbps": 50.0})).attrs["limited_by"]
    assert (found["kind"], found["next"]["kind"]) == ("load", "tokens")
    assert found["next"]["kbps"] == pytest.approx(most, rel=0.02)


@pytest.mark.parametrize("engine", [solve, simulate])
def test_skipped_events_are_the_limit_of_a_download_only_where_the_peripheral_sends_nothing(engine):
    """Without skipped events five times as much is carried; with an upload beside it, no event is skipped."""
    skipping = CASES["slots of skipped events"][0]
    (alone,) = engine(skipping).attrs["limited_by"]
    awake = float(engine(skipping.with_(le__latency=0)).goodput_kbps.mean())
    assert awake == pytest.approx(5 * alone["kbps"], rel=0.01)
    both = [{"from": "c1", "to": "p1.1"}, {"from": "p1.1", "to": "c1"}]
    beside = engine(skipping.with_(network__flows=both)).attrs["limited_by"]
    assert [one["key"] for one in beside] == ["le.phy"] * 2


def test_no_station_is_next_where_a_window_binds_before_it():
    """A window of 44 segments carries 8.6 Mbit/s in 60 ms; the wire of 20 Mbit/s cannot be next, 4 can."""
    for rate, expected in ((20_000.0, None), (4_000.0, "lan")):
        link = {"name": "lan", "from": "host", "to": "ap", "rate_kbps": rate, "delay_s": 0.03}
        network = ONE | {"outside_links": [link]}
        found = simulate(Scenario.from_dict({"network": network, "run": ALONE.to_dict()["run"]}))
        (limit,) = found.attrs["limited_by"]
        assert limit["kind"] == "slots"
        assert (limit["next"] and limit["next"]["name"]) == expected


def test_tables_show_the_least_and_the_greatest_link_where_flows_differ():
    """The mean current of a peripheral that always gets data and of one that sends little hides both."""
    flows = [{"from": "c1", "to": "p1.2", "name": "update", "law": "greedy"}, {"from": "p1.1", "to": "c1"}]
    own = {"network.peripherals": 2, "network.flows": flows, "le.event_length_s": 0.005}
    both = LE.changed(own | {"traffic.source": "poisson", "traffic.load_kbps": 0.1})
    solved, simulated = solve(both), simulate(both)
    for found in (table(solved), table(simulated), table(compare(both))):
        assert found.columns[-1] == "least to greatest"
        (cells,) = (row for row in found.rows if row and row[0] == "current")
        assert " to " in cells[-1]
    assert solved.current_ma.values.argmax() == simulated.current_ma.values.mean(axis=0).argmax() == 1


def test_a_key_of_a_flow_is_named_in_its_entry():
    flows = [{"from": "p1.1", "to": "c1", "load_kbps": 5.0}, {"from": "p1.2", "to": "c1"}]
    scenario = Scenario.from_dict({"network": {"flows": flows}, "traffic": {"two_way": True}})
    bounds = [[Bound("load", 5.0)]] * 4
    keys = [found["key"] for found in limits(scenario, bounds)]
    assert keys == ["network.flows[1].load_kbps", "traffic.load_kbps"] * 2


BRIDGED = Scenario.from_dict(
    {"network": {"topology": "scatternet", "piconets": 2, "peripherals": 1, "flows": "pairs"}}
)
RELAYED = ALONE.changed({"network.peripherals": 2, "network.flows": [{"from": "p1.1", "to": "p1.2"}]})
WIRED = Scenario.from_dict(WLAN)
SMALL = {"flow_control.central_buffer_packets": 10}


@pytest.mark.parametrize(
    ("scenario", "place", "key"),
    [
        (BRIDGED, "a queue on the way", "polling.bridge_buffer_packets"),
        (RELAYED.changed(SMALL), "a queue on the way", "flow_control.central_buffer_packets"),
        (WIRED, "a queue on the way", "network.outside_links[1].buffer_packets"),
        (BRIDGED.changed(SMALL), "a queue on the way", ""),  # either may overflow
        (WIRED.changed(SMALL), "the baseband queue", "flow_control.central_buffer_packets"),
        (WIRED, "the baseband queue", ""),  # without a limit it never overflows
    ],
)
def test_the_key_behind_losses_in_a_queue_is_of_one_that_the_flow_passes(scenario, place, key):
    lost = Bound("cwnd", 5.0, place)
    found = limits(scenario, [[lost]] * len(topology(scenario).flows))
    assert {one["key"] for one in found} == {key}


def test_a_bridge_that_loses_packets_is_named_and_its_buffer_is_the_cure():
    """It holds a segment alone, and a visit brings four; no queue of a central has a limit."""
    small = {"polling.bridge_limit": 20, "polling.bridge_buffer_packets": 5, "traffic.source": "greedy"}
    run = {f"run.{key}": value for key, value in ALONE.to_dict()["run"].items()}
    lossy = BRIDGED.changed({"network.flows": [{"from": "p1.1", "to": "p2.1"}]} | small | run)
    (limit,) = simulate(lossy).attrs["limited_by"]
    assert (limit["kind"], limit["key"], limit["value"]) == ("cwnd", "polling.bridge_buffer_packets", 5)
    more = simulate(lossy.changed({"polling.bridge_buffer_packets": 40})).goodput_kbps
    assert float(more.mean()) > 2.0 * limit["kbps"]


@pytest.mark.parametrize("engine", [solve, simulate])
def test_tokens_behind_a_load_are_the_ones_that_acknowledgements_leave(engine):
    """A bucket pays 1,539 bytes for a segment of its own flow, 183 for an acknowledgement of the other."""
    ring = load("venugopal-2006/piconet").with_(traffic__load_kbps=80, run__duration_s=200)
    (found, _) = engine(ring).attrs["limited_by"]
    segments = 1000.0 * found["kbps"] / 8 / 1460  # a second, each acknowledged
    left = (250_000 / 8 - 183 * segments) / 1539
    assert (found["kind"], found["next"]["kind"]) == ("load", "tokens")
    assert found["next"]["kbps"] == pytest.approx(left * 1460 * 8 / 1000, rel=0.01)


def test_tables_and_documents_show_the_limits_of_flows_and_groups(tmp_path):
    network = {"network.peripherals": 3, "network.flows": [DOWNLOAD, *SENSORS[:2]]}
    ward = ALONE.changed(network | {"traffic.source": "poisson", "traffic.load_kbps": 10.0})
    for results in (solve(ward), simulate(ward)):
        first, second = limit_lines(results)
        assert first.startswith("limited by, download: slots of piconet 1: ")
        assert second.startswith("limited by, sensors: its load: ")
        assert table(results).notes[:2] == (first, second)
    (tmp_path / "ward.toml").write_text(ward.to_toml(resolved=False))
    for engine in ("solve", "simulate"):
        words = [engine, str(tmp_path / "ward.toml"), "--quiet"]
        assert "limited by, sensors: its load" in run(*words).stdout
        found = json.loads(run(*words, "--json").stdout)[engine]["limited_by"]
        assert [one["kind"] for one in found] == ["slots", "load", "load"]
    assert compare(ward).attrs["model_limited_by"][0]["kind"] == "slots"
    both = [line for line in run("compare", words[1], "--quiet").stdout.splitlines() if "limited by" in line]
    assert both == limit_lines(simulate(ward)) + [
        f"limited by, {group}, in the model: {limit['line']}"
        for group, limit in zip(("download", "sensors"), solve(ward).attrs["limited_by"], strict=False)
    ]


@pytest.mark.parametrize("engine", [solve, simulate])
def test_no_number_is_named_behind_the_load_of_messages_that_may_share_segments(engine):
    for nagle in (True, False):
        sensors = engine(WARD.changed({"transport.nagle": nagle})).attrs["limited_by"][1]
        assert sensors["line"] == "its load: 8 kbit/s" and sensors["next"] is None


def test_the_window_behind_a_limit_does_not_depend_on_the_number_of_replications():
    """It allows itself in the least round trip of all of them, not in the sum of the least ones."""
    paced = CASES["load"][0].with_(traffic__source="periodic", transport__receive_window_segments=3)
    runs = (simulate(paced.with_(run__replications=count)) for count in (2, 8))
    once, often = (run.attrs["limited_by"][0]["next"] for run in runs)
    assert once["kind"] == often["kind"] == "window"
    assert often["kbps"] == pytest.approx(once["kbps"], rel=0.1)


@pytest.mark.parametrize(
    ("engine", "discipline"), [(solve, "exhaustive"), (simulate, "exhaustive"), (simulate, "fep")]
)
def test_flows_that_get_nothing_are_limited_by_the_flow_that_keeps_the_central(engine, discipline):
    found = engine(WARD.changed({"polling.discipline": discipline})).attrs["limited_by"]
    assert [one["kind"] for one in found] == ["slots", *["polling"] * 6]
    assert {(one["key"], one["value"], one["name"]) for one in found[1:]} == {
        ("polling.discipline", discipline, "download")
    }
    assert found[1]["next"]["kbps"] == pytest.approx(8.0, rel=0.1)


def test_flows_that_wait_for_visits_longer_than_their_timers_are_limited_by_the_polling_limit():
    found = simulate(WARD.changed({"polling.limit": 100_000})).attrs["limited_by"]
    assert [one["kind"] for one in found] == ["slots", *["polling"] * 6]
    assert {(one["key"], one["value"], one["name"]) for one in found[1:]} == {
        ("polling.limit", 100_000, "download")
    }
    assert "polls, which download keeps to itself" in found[1]["line"]


@pytest.mark.parametrize("engine", [solve, simulate])
def test_polls_of_links_without_data_are_the_limit_where_they_take_a_tenth_of_the_slots(engine):
    """A sixth frame of a visit brings goodput there."""
    found = engine(WARD).attrs["limited_by"][0]
    assert (found["kind"], found["key"], found["value"]) == ("slots", "polling.limit", 5)
    assert "of the slots poll links without data; polling.limit = 5, the default" in found["line"]
    more = engine(WARD.changed({"polling.limit": 6})).goodput_kbps.values[..., 0].mean()
    assert more > 1.02 * found["kbps"]
    large = engine(WARD.changed({"polling.limit": 20})).attrs["limited_by"][0]
    assert large["key"] == "link.packets" and "poll links" not in large["line"]
