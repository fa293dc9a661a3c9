"""Whether an answer of theory stands, why not, and what is refused."""

from unittest.mock import Mock

import pytest

import btqueue as bt
from btqueue.network.answers import NoConvergence
from btqueue.network.stations import model as stations
from btqueue.scenario import ScenarioError
from btqueue.study.sensitivity import local_sensitivity

from .test_anchors import OPEN as LE
from .test_model import PLAIN

RING = bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=40.0)


@pytest.fixture
def doubt(monkeypatch):
    """Let theory doubt its answers beyond a load (kbit/s)."""
    real = stations.answer

    def beyond(load_kbps):
        def answer(scenario):
            metrics, notes = real(scenario)
            doubts = ["it may rain"] if scenario.traffic.load_kbps > load_kbps else []
            return metrics, {**notes, "warnings": doubts}

        monkeypatch.setattr(stations, "answer", answer)

    return beyond


@pytest.fixture
def doubtful(doubt):
    doubt(0.0)


def test_an_answer_without_doubts_stands():
    solved = bt.solve(RING)
    assert (solved.attrs["answered_by"], solved.attrs["stands"], solved.attrs["why"]) == ("theory", True, ())
    assert solved.attrs["errors_of"] == "theory"


def test_an_answer_in_doubt_is_given_with_its_doubts(doubtful):
    solved = bt.solve(RING)
    assert (solved.attrs["stands"], solved.attrs["why"]) == (False, ("it may rain",))
    assert "it may rain" in solved.attrs["warnings"] and solved.attrs["errors_of"] == "theory, in doubt"


def test_a_refusal_says_who_answers(monkeypatch):
    monkeypatch.setattr(stations, "answer", Mock(side_effect=NoConvergence("nothing settles")))
    with pytest.raises(NoConvergence, match="nothing settles") as refusal:
        bt.solve(RING)
    assert any("simulate" in words for words in refusal.value.__notes__)


def test_doubts_of_any_step_of_a_load_count():
    steps = RING.with_(
        run__duration_s=100.0, run__warmup_s=0.0, traffic__load_schedule=[{"at_s": 50.0, "load_kbps": 158.0}]
    )
    assert bt.solve(RING).attrs["stands"] and not bt.solve(steps).attrs["stands"]


@pytest.mark.parametrize("solver", ["auto", "analytic", "followed"])
def test_the_choice_of_a_solver_is_read_and_changes_nothing(solver):
    """Files of earlier versions have the key."""
    written = RING.with_(run__solver=solver)
    assert written == RING and hash(written) == hash(RING) and written.to_dict() == RING.to_dict()
    old, new = bt.solve(written), bt.solve(RING)
    assert old.equals(new) and old.attrs["stands"]


def test_a_solver_that_never_was_is_refused():
    with pytest.raises(ScenarioError) as refusal:
        RING.with_(run__solver="best")
    assert (refusal.value.key, refusal.value.value) == ("run.solver", "best")


def test_a_slope_is_of_theory_although_a_neighbour_is_in_doubt(doubt):
    """A step above the load the model doubts its answer; both ends are theory's all the same."""
    wanted = ["rtt_s"], ["traffic.load_kbps"]
    expected = local_sensitivity(RING, *wanted)
    doubt(RING.traffic.load_kbps)
    found = local_sensitivity(RING, *wanted)
    for name in ("kind", "derivative", "left", "right"):
        assert found[name].identical(expected[name])


STAR = {"network.peripherals": 3, "network.flows": "uplink"}
GREEDY = {"traffic.source": "greedy", "network.flows": "downlink"}
LONG = {"traffic.source": "poisson", "traffic.message_bytes": 1800, "traffic.load_kbps": 130.0}
LOSSY = {"link.arq": "none", "radio.model": "constant", "radio.ber": 1e-5}
RANDOM = {"traffic.source": "poisson", "traffic.load_kbps": 80.0}
BUSY = PLAIN | RANDOM | {"network.flows": "downlink", "traffic.load_kbps": 145.0}
TOKENS = {"flow_control.enabled": True, "flow_control.token_rate_kbps": 62.5}
CHAIN, ALONE = "chen-2004/adaptive-4", "avancha-2002/bluetooth-tcp"
ROUGH = [
    ("Bernoulli", PLAIN, {"traffic.source": "ibp", "traffic.load_kbps": 40.0, "network.flows": "ring"}),
    ("which link is next", BUSY, {"polling.discipline": "fep"}),
    ("random fill", BUSY, {}),
    ("windows of one segment", PLAIN | GREEDY, {"transport.receive_window_segments": 1}),
    ("Vegas", PLAIN, {"transport.variant": "vegas", "transport.receive_window_segments": 30}),
    ("overflow", PLAIN, {"flow_control.central_buffer_packets": 10}),
    ("lost at random", PLAIN, LOSSY | {"radio.ber": 1e-4}),
    ("frto", PLAIN, LOSSY | {"transport.frto": True}),
    ("before windows", PLAIN, {"transport.receive_window_segments": 20000, "flow_control.enabled": False}),
    ("voice", PLAIN, {"voice.packet": "HV3", "voice.links": 1, "link.packets": ["DH3", "DH1"]}),
    ("of several segments", PLAIN | RANDOM,
     {"flow_control.enabled": True, "traffic.message_bytes": 5840}),
    ("of one acknowledgement", PLAIN | RANDOM,
     {"transport.delayed_ack": True, "transport.ack_every_segments": 16}),
    ("ack_path", CHAIN, {"transport.ack_path": "direct"}),
    ("ack_path", ALONE, {"transport.ack_path": "direct"}),
    ("jitter_s", CHAIN, {"run.jitter_s": 0.02}),
    ("jitter_s", STAR | RANDOM, {"run.jitter_s": 0.2, "traffic.load_kbps": 110.0}),
    ("three segments or more for each", STAR | RANDOM,
     {"transport.delayed_ack": True, "transport.ack_every_segments": 4, "traffic.load_kbps": 110.0}),
    ("larger than a bucket", STAR | RANDOM,
     {"flow_control.enabled": True, "flow_control.bucket_bytes": 750, "traffic.load_kbps": 110.0}),
    ("of relayed windows", CHAIN, TOKENS),
    ("one by one", ALONE, TOKENS),
    ("datagrams overflow", STAR,
     {"transport.protocol": "none", "traffic.source": "ibp", "traffic.load_kbps": 190.0,
      "flow_control.baseband_packets": 20}),
    ('"ldq"', STAR | GREEDY, {"polling.discipline": "ldq"}),
    ("keeps the central to itself", STAR | GREEDY, {"polling.discipline": "exhaustive"}),
    ("acknowledgements of several frames vary",
     {"network.peripherals": 1, "link.packets": ["DH1"], "traffic.source": "greedy",
      "network.flows": [{"from": "c1", "to": "p1.1"}, {"from": "p1.1", "to": "c1"}]},
     {"transport.receive_window_segments": 44}),
    ("prc-lwrr", STAR | GREEDY | {"network.flows": PLAIN["network.flows"]},
     {"polling.discipline": "prc-lwrr", "transport.receive_window_segments": 2}),
    ("last segment of a message", STAR | LONG, {"transport.nagle": "minshall"}),
    ("last segment of a message", STAR | LONG, {"transport.nagle": False}),
    ("interval_spread_s", LE, {"le.interval_spread_s": 0.02}),
    ("iso_interval_s", LE, {"le.iso_interval_s": 0.01, "le.iso_length_s": 0.004}),
    ("node_buffer_bytes", LE, {"link.node_buffer_bytes": 250}),
    ("phase of a periodic source", LE, {"traffic.source": "periodic"}),
    ("answers", LE,
     {"transport.protocol": "centaurus", "traffic.source": "request-reply", "le.ip": "6lowpan"}),
]  # fmt: skip
"""A part of the doubt, a base, and keys with which theory was wrong, without a word, before these doubts."""


@pytest.mark.parametrize(("said", "base", "changes"), ROUGH)
def test_what_the_laws_know_roughly_is_in_doubt(said, base, changes):
    scenario = bt.load(base) if isinstance(base, str) else bt.Scenario().changed(base)
    why = bt.solve(scenario.changed(changes)).attrs["why"]
    assert any(said in doubt for doubt in why), why


RINGS = {
    "network.peripherals": 5, "network.flows": "ring", "traffic.source": "poisson", "traffic.load_kbps": 36.0,
    "radio.model": "perfect", "link.arq": "unlimited", "flow_control.baseband_packets": 200,
    "flow_control.enabled": False, "transport.delayed_ack": False,
}  # fmt: skip
LONE = RINGS | {"network.peripherals": 1, "network.flows": "downlink"}
PAUSING = STAR | GREEDY | {"polling.discipline": "prc-lwrr", "flow_control.enabled": False}


GATEWAY = {
    "network.topology": "custom", "network.flows": [{"from": "host", "to": "s1"}],
    "network.piconet_list": [{"name": "bt", "central": "gw", "peripherals": ["s1"]}],
    "link.packets": ["DH5", "DH3"], "link.arq": "unlimited", "flow_control.enabled": False,
    "flow_control.baseband_packets": 1000, "traffic.source": "greedy", "transport.delayed_ack": False,
}  # fmt: skip


ONE_OF_FOUR = {"network.flows": [{"from": "c1", "to": "p1.1"}], "transport.tcp_delay_s": 0.02}
MESSAGES_UP = {
    "network.peripherals": 4, "network.flows": "uplink", "link.packets": ["2-DH5", "2-DH1"],
    "polling.limit": 5, "traffic.source": "poisson", "traffic.message_bytes": 2920,
    "traffic.load_kbps": 100.0, "transport.receive_window_segments": 44, "transport.delayed_ack": False,
    "radio.model": "perfect", "flow_control.enabled": False,
}  # fmt: skip
DATAGRAMS = {
    "network.peripherals": 3, "network.flows": "uplink", "link.packets": ["DH1"], "traffic.source": "poisson",
    "traffic.message_bytes": 65_536, "traffic.load_kbps": 20.0, "transport.protocol": "none",
    "radio.model": "perfect", "flow_control.enabled": False, "flow_control.baseband_packets": 1000,
}  # fmt: skip
PAIRS_OF_FOUR = {
    "network.peripherals": 2, "network.flows": "downlink", "link.packets": ["2-DH5", "2-DH1"],
    "polling.limit": 10, "traffic.source": "greedy", "transport.receive_window_segments": 4,
    "transport.delayed_ack": True, "radio.model": "perfect", "flow_control.enabled": False,
}  # fmt: skip
UPLOADS = {
    "network.peripherals": 3, "network.flows": "uplink", "link.packets": ["2-DH5", "2-DH1"],
    "polling.limit": 10, "traffic.source": "greedy", "transport.receive_window_segments": 20,
    "radio.model": "perfect", "flow_control.enabled": False,
}  # fmt: skip


def filled_ring(visits):
    """Return two connections of twelve segments of three frames, which need so many visits."""
    ring = {"network.peripherals": 2, "network.flows": "ring", "traffic.source": "greedy"}
    ring |= {"link.packets": ["2-DH5", "2-DH3", "2-DH1"], "transport.receive_window_segments": 12}
    quiet = {"radio.model": "perfect", "flow_control.enabled": False}
    return ring | quiet | {"polling.limit": 36 // visits}


def gateway(window, jitter_s, **changes):
    link = {"name": "net", "from": "host", "to": "gw", "kind": "wired"}
    link |= {"jitter_s": jitter_s, "buffer_packets": 1000} | changes
    return GATEWAY | {"network.outside_links": [link], "transport.receive_window_segments": window}


NOISY = gateway(16, 0.0, delay_s=0.02) | {
    "link.arq": "none", "radio.model": "constant", "radio.ber": 1e-5, "transport.limited_transmit": False,
}  # fmt: skip
THINNED = LONE | {
    "link.packets": ["DH5", "DH3", "DH1"], "link.arq": "none", "radio.model": "constant", "radio.ber": 3e-6,
    "traffic.source": "poisson", "traffic.load_kbps": 100.0, "transport.receive_window_segments": 8,
    "transport.limited_transmit": False, "transport.delayed_ack": False,
    "transport.window_limited_growth": False,
}  # fmt: skip
SHORT_FADES = LONE | {
    "traffic.load_kbps": 120.0, "radio.model": "gilbert-elliott", "radio.ber_good": 1e-6, "radio.good_s": 0.8,
    "radio.ber_bad": 0.01, "radio.bad_s": 0.5,
}  # fmt: skip


WITH_ENDS = {
    "traffic.source": "poisson", "traffic.load_kbps": 60.0, "traffic.message_bytes": 1000,
    "transport.nagle": "minshall",
}  # fmt: skip
STREAM = LONE | WITH_ENDS | {"link.packets": ["DM5", "DM3"], "traffic.message_bytes": 256}
FADES = {
    "radio.model": "gilbert-elliott", "radio.ber_bad": 1e-3, "radio.good_s": 0.6, "radio.bad_s": 0.1,
    "link.packets": ["2-DH5", "2-DH1"], "traffic.load_kbps": 300.0,
}  # fmt: skip
OFFERED = LONE | {
    "traffic.source": "request-reply", "traffic.request_bytes": 300, "traffic.reply_bytes": 8192,
    "transport.protocol": "centaurus", "transport.centaurus_early_data": True,
}  # fmt: skip
SETTLED = LONE | {
    "traffic.source": "greedy", "transport.variant": "vegas", "transport.receive_window_segments": 16,
    "transport.initial_window_segments": 1,
}  # fmt: skip
FULL_RING = {
    "network.peripherals": 6, "network.flows": "ring", "link.packets": ["DH5", "DH3"], "polling.limit": 5,
    "traffic.source": "greedy", "transport.mss_bytes": 1460, "transport.delayed_ack": False,
    "transport.receive_window_segments": 4, "flow_control.enabled": False, "radio.model": "perfect",
}  # fmt: skip
ONE_UP = {"network.flows": [{"from": "p1.1", "to": "c1"}], "transport.protocol": "none"}
UPLOADS_IN_TURN = {
    "network.peripherals": 4, "network.flows": [{"from": f"p1.{n}", "to": "c1"} for n in (1, 2, 3)],
    "link.packets": ["DH5", "DH3"], "traffic.message_bytes": 1460, "transport.mss_bytes": 1460,
    "traffic.source": "poisson", "flow_control.enabled": False, "radio.model": "perfect",
    "transport.delayed_ack": False,
}  # fmt: skip
SLOT_BY_SLOT = {"link.packets": ["2-DH1"], "polling.limit": 1}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (gateway(12, 0.02), None),
        (gateway(6, 0.02), None),
        (gateway(4, 0.02), "jitter_s"),
        (gateway(3, 0.02, loss=0.001), "does not fill its path"),
        (gateway(64, 0.0, delay_s=0.05, loss=0.03), None),
        (gateway(64, 0.0, delay_s=0.05, loss=0.05), "lost at random"),
        (gateway(64, 0.0, delay_s=0.05, loss=0.003) | {"transport.min_rto_s": 0.2}, "lost at random"),
        (gateway(64, 0.0, delay_s=0.05, loss=0.03, buffer_packets=30), "lost at random"),
        (NOISY, None),
        (NOISY | {"radio.ber": 6e-5}, "lost at random"),
        (NOISY | {"transport.limited_transmit": True}, "lost at random"),
        (NOISY | {"transport.min_rto_s": 0.2}, "lost at random"),
        (THINNED, None),
        (THINNED | {"radio.ber": 1e-5}, "does not always have data"),
        (THINNED | {"traffic.load_kbps": 250.0}, "does not always have data"),
        (THINNED | {"transport.receive_window_segments": 4}, "does not always have data"),
        (THINNED | {"transport.window_limited_growth": True}, "does not always have data"),
        (SHORT_FADES, "Timers expire"),
        (SHORT_FADES | {"traffic.source": "greedy"}, "Timers expire"),
        (SHORT_FADES | {"traffic.source": "greedy", "transport.min_rto_s": 0.2}, None),
        (filled_ring(visits=2), "just fill a station"),
        (filled_ring(visits=3), None),
        (gateway(12, 0.0, delay_s=0.02) | WITH_ENDS, None),
        (gateway(12, 0.0, delay_s=0.02, loss=0.001) | WITH_ENDS, "catch up on the air"),
        (gateway(12, 0.0, delay_s=0.02, loss=0.001) | WITH_ENDS | {"traffic.load_kbps": 10.0}, None),
        (gateway(12, 0.0, delay_s=0.02) | WITH_ENDS | {"traffic.message_bytes": 1800}, "catch up on the air"),
        (STREAM | {"traffic.load_kbps": 180.0}, None),
        (STREAM | {"traffic.load_kbps": 260.0}, "of the time of a station is used"),
        (STREAM | {"network.peripherals": 2}, None),
        (STREAM | {"network.peripherals": 2, "polling.discipline": "exhaustive"}, None),
        (STREAM | {"traffic.source": "ibp"}, "come in bursts"),
        (STREAM | {"traffic.source": "periodic", "traffic.load_kbps": 900.0}, None),
        (STREAM | FADES, "worse states of a radio"),
        (STREAM | {"transport.min_rto_s": 0.02}, "as long as the least timeout"),
        (OFFERED, None),
        (OFFERED | {"traffic.reply_bytes": 600}, "offer of an object"),
        (SETTLED, None),
        (SETTLED | {"transport.alpha": 3.0, "transport.beta": 6.0}, "Vegas settles"),
        (SETTLED | {"network.peripherals": 2}, "Vegas settles"),
        (LONE | {"transport.variant": "vegas", "traffic.load_kbps": 120.0}, None),
        (LONE | {"transport.variant": "vegas", "traffic.load_kbps": 300.0}, "Vegas takes"),
        # layers that take one segment at a time are stations; with hardly any wait goodput was 8 % too high
        (UPLOADS | {"transport.ip_delay_s": 0.02}, None),
        (UPLOADS | {"transport.tcp_delay_s": 0.02}, None),
        (PAIRS_OF_FOUR | {"transport.ip_delay_s": 0.0125}, "just fill a station"),
        (PAIRS_OF_FOUR | ONE_OF_FOUR, "how segments pair up"),
        (PAIRS_OF_FOUR | ONE_OF_FOUR | {"transport.delayed_ack": False}, None),
        (MESSAGES_UP, "visits end within"),
        # 65,536 bytes are 2,484 packets of 27 bytes, and the queue holds 1,000: a third got through
        (DATAGRAMS, "datagrams overflow"),
        (DATAGRAMS | {"traffic.message_bytes": 1460}, None),
        (MESSAGES_UP | {"polling.limit": 6}, None),
        (RINGS | {"traffic.load_kbps": 20.0}, None),
        (RINGS | {"traffic.load_kbps": 38.0}, None),
        (RINGS | {"traffic.load_kbps": 38.0, "polling.limit": 2}, "random fill"),
        (RINGS | {"traffic.load_kbps": 46.0}, "random fill"),
        (RINGS | {"radio.model": "constant", "radio.ber": 3e-5}, "several visits"),
        (RINGS | {"polling.discipline": "lwrr", "traffic.load_kbps": 10.0}, "which link is next"),
        (UPLOADS_IN_TURN | {"polling.discipline": "slq", "traffic.load_kbps": 30.0}, None),
        (UPLOADS_IN_TURN | {"polling.discipline": "slq", "traffic.load_kbps": 80.0}, "which link is next"),
        (UPLOADS_IN_TURN | {"polling.discipline": "gated", "traffic.source": "periodic"}, "gated"),
        (UPLOADS_IN_TURN | ONE_UP | {"polling.discipline": "gated", "traffic.source": "periodic"}, None),
        (FULL_RING | {"polling.discipline": "lwrr"}, None),
        (FULL_RING | {"polling.discipline": "lwrr", "transport.receive_window_segments": 3}, "which link"),
        (FULL_RING | SLOT_BY_SLOT, None),
        (FULL_RING | SLOT_BY_SLOT | {"network.relay": "segment"}, "leave directions of links idle"),
        (FULL_RING | SLOT_BY_SLOT | {"polling.limit": 20}, "leave directions of links idle"),
        (FULL_RING | {"network.relay": "segment", "transport.receive_window_segments": 8}, None),
        (FULL_RING | {"polling.discipline": "fep"}, None),
        (FULL_RING | {"polling.discipline": "fep", "network.flows": "pairs"}, "hold the central"),
        (LONE | {"traffic.load_kbps": 480.0}, None),
        (LONE | {"traffic.load_kbps": 610.0}, "random fill"),
        (PAUSING | {"transport.receive_window_segments": 8}, None),
        (PAUSING | {"transport.receive_window_segments": 2, "network.peripherals": 2}, "prc-lwrr"),
    ],
)
def test_each_doubt_ends_where_its_law_is_right(changes, said):
    why = bt.solve(bt.Scenario().changed(changes)).attrs["why"]
    assert any(said in one for one in why) if said else not why


@pytest.mark.parametrize(("delay_s", "close"), [(0.02, True), (0.012, False)])
def test_packets_that_come_back_from_a_wire_about_as_their_link_is_polled_are_in_doubt(delay_s, close):
    """Visits of two full links take 60 slots; a frame earlier or later decides whether the poll is missed."""
    flows = [
        {"from": "server", "to": "p1.1", "law": "poisson", "load_kbps": 74.2, "message_bytes": 100},
        {"from": "c1", "to": "p1.2", "law": "greedy"},
        {"from": "p1.3", "to": "server", "law": "greedy"},
    ]
    wire = {
        "name": "net", "from": "server", "to": "c1", "kind": "other",
        "rate_kbps": 20000.0, "delay_s": delay_s,
    }  # fmt: skip
    keys = {
        "network.peripherals": 3, "network.outside_links": [wire], "network.flows": flows,
        "link.packets": ["DM5", "DM1"], "transport.delayed_ack": False,
        "transport.receive_window_segments": 16,
    }  # fmt: skip
    found = bt.solve(bt.Scenario().changed(keys)).attrs["why"]
    assert any("about as their link is polled" in why for why in found) == close
