"""Analytic models outside what they describe: refused by the key that is the cause, or warned of in words.

Each case was answered wrong by more than 10 % of goodput or 20 % of a round trip without a word; its name has
the error measured against the simulator then. The scenarios beside them are right, and say nothing.
"""

import keys_of_models
import pytest
from single_systems import by_model
from thesis import thesis_of

import btqueue as bt
from btqueue.network.models import problems
from btqueue.scenario import NotBuiltYet, Scenario
from btqueue.scenario.scope import in_tables

ACCESS_POINT = bt.load("venugopal-2006/piconet").changed(keys_of_models.ACCESS_POINT)
FADING = {
    "radio__model": "gilbert-elliott",
    "radio__ber_bad": 0.01,
    "radio__good_s": 10.0,
    "radio__bad_s": 0.5,
}
NO_ROOM = thesis_of(
    {
        "network": {"topology": "chain", "hops": 3},
        "link": {"packets": ["DM5", "DM1"]},
        "flow_control": {"enabled": False},
        "traffic": {"load_kbps": 20.0},
    }
)
UPLOADS = ACCESS_POINT.with_(network__peripherals=2, network__flows="uplink", traffic__load_kbps=50.0)
OVERFLOWING = thesis_of(
    {
        "network": {"peripherals": 2, "flows": "downlink"},
        "radio": {"model": "constant", "ber": 2e-8},
        "traffic": {"source": "greedy"},
    }
)
TOKENS = {"flow_control__enabled": True}
SATELLITE = bt.load("avancha-2002/satellite")
ROUND_TRIPS = bt.load("suliman-2005/round-trips")
TCP, CENTAURUS = bt.load("avancha-2002/bluetooth-tcp"), bt.load("avancha-2002/bluetooth-centaurus")
ONE_OF_SEVEN = bt.load("suliman-2005/one-of-seven")
CDPD = bt.load("avancha-2002/cdpd-tcp")
CDPD_LINK = {
    "name": "cdpd", "from": "palm", "to": "server", "kind": "cdpd", "delay_s": 0.97, "buffer_packets": 4,
    "loss_block_bytes": 35,
}  # fmt: skip
CHAIN = bt.load("chen-2004/adaptive-4")
GREEDY, SMOOTH = bt.load("johansson-2000/symmetric"), bt.load("johansson-2000/smooth")


def satellite(**link: object) -> Scenario:
    return SATELLITE.with_(network__outside_links=[keys_of_models.LONG_LINK | link])


REFUSED = {
    "Karn's rule, goodput +196 %": (satellite(loss=0.3), "transport.timestamps"),
    "losses by block, Karn's rule": (satellite(loss=0.02, loss_block_bytes=200), "transport.timestamps"),
    "acknowledgements lost, goodput +16 %": (satellite(loss_back=0.3), "network.outside_links[1].loss_back"),
    "a single place, goodput +690 %": (
        satellite(buffer_packets=1),
        "network.outside_links[1].buffer_packets",
    ),
    "a lossy window of one, goodput +98 %": (
        SATELLITE.with_(transport__receive_window_segments=1),
        "transport.receive_window_segments",
    ),
    "few acknowledgements of losses, goodput -51 %": (
        SATELLITE.with_(transport__delayed_ack=True, transport__ack_every_segments=16),
        "transport.ack_every_segments",
    ),
    "few acknowledgements of sessions, goodput -70 %": (
        TCP.with_(transport__delayed_ack=True, transport__ack_every_segments=8),
        "transport.ack_every_segments",
    ),
    "a slow worker before the air, goodput +417 %": (
        CENTAURUS.with_(transport__centaurus_worker_s=0.05),
        "transport.centaurus_worker_s",
    ),
    "a layer slower than the air, goodput +93 %": (
        GREEDY.with_(link__l2cap_delay_s=0.05, link__node_buffer_bytes=None),
        "link.l2cap_delay_s",
    ),
    "a window below its acknowledgement, goodput +1859 %": (
        SMOOTH.with_(transport__receive_window_segments=1),
        "transport.receive_window_segments",
    ),
    "bridges that stay until nothing is left, goodput -20 %": (
        bt.load("venugopal-2006/scatternet-2").with_(polling__residence="complete"),
        "polling.residence",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_cause_is_refused_by_its_key(case: str):
    scenario, key = REFUSED[case][0], REFUSED[case][1]
    refused = [problem.key for problem in problems(in_tables(scenario))]
    # that another solver covers it may be said first
    assert [name for name in refused if name != "run.solver"] == [key]
    with pytest.raises(NotBuiltYet):
        by_model(scenario)


WARNED = {
    "long regular delays, round trip +21 %": (ROUND_TRIPS.with_(run__jitter_s=0.2), "run.jitter_s = 0.2"),
    "delays within a train, goodput +15 %": (CENTAURUS.with_(run__jitter_s=0.2), "run.jitter_s = 0.2"),
    "nodes that overflow, round trip +66 %": (
        CHAIN.with_(link__node_buffer_bytes=6000),
        "may overflow a buffer",
    ),
    "exchanges of a frame, goodput +19 %": (CHAIN.with_(polling__bridge_limit=1), "bridge_limit, limit = 1:"),
    "exchanges of twenty, goodput +48 %": (
        CHAIN.with_(network__hops=6, polling__bridge_limit=20),
        "exchanges of 20 frames",
    ),
    "near saturation, delay -95 %": (
        SMOOTH.with_(radio__per=0.1, traffic__load_kbps=320),
        "the load is 0.97 of",
    ),
    "Vegas by the timer, round trip -28 %": (GREEDY.with_(transport__ack_clock="timer"), "by the timer"),
    "Vegas with slow layers, round trip -40 %": (GREEDY.with_(link__l2cap_delay_s=0.01), "ms in the layers"),
    "Vegas with one packet, goodput +22 %": (
        GREEDY.with_(traffic__message_bytes=100),
        "segments of one packet",
    ),
    "long fades with ARQ, round trip -7 %": (ACCESS_POINT.with_(**FADING), "the radio fades for 0.5 s"),
    "losses in fades, goodput -25 %": (
        ACCESS_POINT.with_(link__arq="none", network__flows="uplink", **FADING),
        "given up in bad states of the radio",
    ),
    "a lone ring, round trip -17 %": (
        bt.load("venugopal-2006/piconet").with_(network__peripherals=1, traffic__load_kbps=20),
        "a lone station sends to itself",
    ),
    "a window of one that is acknowledged late, delay -90 %": (
        bt.load("venugopal-2006/piconet").with_(
            traffic__load_kbps=20, transport__receive_window_segments=1, transport__delayed_ack=True
        ),
        "fewer segments than are acknowledged together",
    ),
    "a small bucket, round trip +32 %": (
        ACCESS_POINT.with_(**TOKENS, flow_control__bucket_bytes=750),
        "bucket_bytes = 750",
    ),
    "a small token buffer, goodput +108 %": (
        ACCESS_POINT.with_(**TOKENS, flow_control__buffer_packets=8),
        "buffer_packets = 8",
    ),
    "room for part of a segment, round trip -24 %": (
        ONE_OF_SEVEN.with_(link__node_buffer_bytes=6000),
        "node_buffer_bytes = 6000",
    ),
    "messages that hardly arrive, session -12 %": (
        CDPD.with_(network__outside_links=[CDPD_LINK | {"loss": 0.15}]),
        "messages seldom get through",
    ),
    "bridges without room for a segment, 20 kbit/s for 0": (NO_ROOM, "less than the 7 of a segment"),
    "datagrams in bursts, goodput +28 %": (
        UPLOADS.with_(
            transport__protocol="none",
            traffic__source="ibp",
            traffic__scv=10.0,
            flow_control__baseband_packets=40,
        ),
        "several segments at a time",
    ),
    "bursts and delayed acknowledgements, round trip +37 %": (
        UPLOADS.with_(traffic__source="ibp", traffic__scv=5.0, transport__delayed_ack=True),
        "timer of delayed acknowledgements",
    ),
    "greedy Vegas in a star, round trip +33 %": (
        UPLOADS.with_(traffic__source="greedy", transport__variant="vegas"),
        "settle at windows of their own",
    ),
    "a light flow behind a window, round trip +72 %": (
        UPLOADS.with_(
            network__flows=[
                {"from": "c1", "to": "p1.1", "law": "greedy"},
                {"from": "c1", "to": "p1.1", "load_kbps": 100.0},
            ]
        ),
        "shares a queue with one whose window is full",
    ),
    "one station to three others, round trip +9 %": (
        UPLOADS.with_(
            network__peripherals=4,
            network__flows=[{"from": "p1.1", "to": f"p1.{i}", "load_kbps": 30.0} for i in (2, 3, 4)],
        ),
        "a station sends to several others",
    ),
    "half a segment more in a visit, round trip -10 %": (
        UPLOADS.with_(
            network__peripherals=4,
            network__flows="downlink",
            link__packets=["2-DH5", "2-DH1"],
            traffic__load_kbps=160.0,
        ),
        "a part of the next one",
    ),
    "two of three packets in a visit, round trip +21 %": (
        UPLOADS.with_(
            network__peripherals=4,
            link__packets=["3-DH3", "3-DH1"],
            traffic__load_kbps=300.0,
            polling__limit=2,
        ),
        "a part of a segment",
    ),
    "full windows answered by ticks, round trip -7 %": (
        UPLOADS.with_(
            traffic__source="greedy",
            transport__delayed_ack=True,
            transport__ack_clock="tick",
            link__arq="unlimited",
        ),
        "a tick breaks the rhythm",
    ),
    "a lone link without repetition, round trip -10 %": (
        OVERFLOWING.with_(network__peripherals=1, radio__ber=1.5e-6, flow_control__enabled=False),
        "round trips are uncertain",
    ),
}


def test_greedy_flows_under_exhaustive_polling_are_refused():
    # the queues' model gave each its share, and three times the round trip; one flow gets all
    with pytest.raises(NotBuiltYet, match="keeps the central from all others"):
        by_model(ACCESS_POINT.with_(polling__discipline="exhaustive", traffic__source="greedy"))


def cases(table: dict) -> list:
    """Return the cases' names; those that compile queues of a shape of their own are for the long run."""
    slow = [
        *("a small bucket, round trip +32 %", "a small token buffer, goodput +108 %"),
        *("a full window of one", "access point, tokens", "access point, scarce tokens"),
        *("access point, short fades", "access point, shallow fades", "access point, greedy and fading"),
    ]
    return [pytest.param(name, marks=pytest.mark.long) if name in slow else name for name in table]


@pytest.mark.parametrize("case", cases(WARNED))
def test_the_cause_is_warned_of(case: str):
    scenario, words = WARNED[case]
    answer = bt.solve(scenario)
    assert any(words in warning for warning in answer.attrs["warnings"])


RIGHT = {
    "satellite": SATELLITE,
    "satellite, no time stamps": satellite(loss=0.05),
    "satellite, a window of two": SATELLITE.with_(transport__receive_window_segments=2),
    "round trips": ROUND_TRIPS.with_(run__jitter_s=0.05),
    "sessions": TCP.with_(transport__delayed_ack=True),
    "CentaurusComm": CENTAURUS,
    "chain": CHAIN,
    "longer headers": CHAIN.with_(transport__header_bytes=60),
    "three hops": CHAIN.with_(network__hops=3),
    "six hops": CHAIN.with_(network__hops=6),
    "Vegas": GREEDY.with_(radio__per=0.1),
    "smooth": SMOOTH,
    "one way, a window of one": GREEDY.with_(
        traffic__two_way=False,
        transport__delayed_ack=False,
        transport__variant="newreno",
        transport__receive_window_segments=1,
        link__node_buffer_bytes=None,
        radio__per=0.1,
    ),
    "access point": ACCESS_POINT,
    "a full window of one": ACCESS_POINT.with_(
        traffic__source="greedy", transport__receive_window_segments=1
    ),
    "access point, tokens": ACCESS_POINT.with_(**TOKENS),
    "access point, scarce tokens": ACCESS_POINT.with_(**TOKENS, flow_control__token_rate_kbps=60),
    "access point, short fades": ACCESS_POINT.with_(
        **FADING | {"radio__good_s": 0.02, "radio__bad_s": 0.005}
    ),
    "access point, shallow fades": ACCESS_POINT.with_(**FADING | {"radio__ber_bad": 1.263e-4}),
    "access point, greedy and fading": ACCESS_POINT.with_(**FADING, traffic__source="greedy"),
}


@pytest.mark.parametrize("case", cases(RIGHT))
def test_right_answers_say_nothing(case: str):
    # that more is offered than carried is no doubt about the answer
    doubts = [text for text in bt.solve(RIGHT[case]).attrs["warnings"] if not text.startswith("overloaded")]
    assert doubts == []


CAUSES = {
    "of one hop nothing is passed on": (
        ACCESS_POINT.with_(
            network__flows=[{"from": "c1", "to": "p1.1"}, {"from": "c1", "to": "p1.1"}],
            traffic__source="greedy",
        ),
        None,
    ),
    "each flow has its own": (
        ACCESS_POINT.with_(
            network__flows=[
                {"from": "c1", "to": f"p1.{i}", "message_bytes": size}
                for i, size in enumerate((500, 1000, 1460), start=1)
            ]
        ),
        "network.flows[1].message_bytes",
    ),
    "voice beside downloads": (
        ACCESS_POINT.with_(link__packets=["DM3", "DM1"], voice__packet="HV3", traffic__two_way=True),
        "link.packets",
    ),
}


@pytest.mark.parametrize("case", CAUSES)
def test_a_refusal_names_the_cause(case: str):
    scenario, key = CAUSES[case][0], CAUSES[case][1]
    refused = [problem.key for problem in problems(in_tables(scenario))]
    if key is None:
        assert not refused
    else:
        assert key in refused
        assert {"network.relay", "network.flows"}.isdisjoint(refused)
