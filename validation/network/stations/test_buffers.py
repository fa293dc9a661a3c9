"""Buffers of limited room in the theory of stations: exact laws, limits, beside simulation."""

from math import exp
from typing import Any

import pytest
from beside import doubted, mean, near_simulation
from hypothesis import given, settings
from hypothesis import strategies as st

import btqueue as bt
from btqueue.network.stations.buffers import Queue, filled
from btqueue.network.stations.model import answer
from btqueue.queueing.vacations import Time

SEGMENT_KBIT = 11.68


def whole(**changes: Any) -> float:
    """Return the share of segments that find room: one packet each, served one after the other."""
    usual = Queue(1.0, 1, 1, 1, 1.0, 1, (), 0.0)
    return filled(usual._replace(**changes))[0]


@pytest.mark.parametrize("load", [0.3, 1.0, 2.0])
def test_room_for_one_is_erlangs_loss_and_room_for_two_that_of_fixed_services(load: float) -> None:
    assert whole(rate=load) == pytest.approx(1.0 / (1.0 + load), rel=1e-9)
    # a departure leaves nobody with the chance that nobody comes in a service (Takagi 1993, M/D/1/2)
    assert whole(rate=load, places=2) == pytest.approx(1.0 / (exp(-load) + load), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 3.0), st.integers(1, 5), st.integers(1, 20), st.integers(1, 6), st.floats(0.0, 10.0))
def test_no_more_is_carried_than_comes_or_than_visits_serve(
    rate: float, packets: int, places: int, limit: int, away: float
) -> None:
    queue = Queue(rate, packets, 1, places, 1.0, limit, (Time(max(away, 0.01)),), 0.0)
    share, short, longer = filled(queue)
    assert -1e-12 <= share <= 1.0 + 1e-12
    assert share < 1e-12 or packets <= places
    assert share * rate * packets <= limit / (limit + away) * (1.0 + 1e-6)
    assert -1e-9 <= short <= limit
    assert longer == 1.0  # all packets are equally long
    # last packets that take no time leave twice the service to the others, if no last one finds room
    share, _, longer = filled(queue._replace(packets=2, places=1, last=0.0))
    assert share == 0.0 and longer == pytest.approx(2.0)


def ring(**changes: object) -> bt.Scenario:
    return bt.load("venugopal-2006/piconet-4").changed(changes)


UPLOADS = {
    "network.flows": "uplink", "transport.protocol": "none", "traffic.load_kbps": 400.0,
    "transport.header_bytes": 28, "link.packets": ["DH5", "DH1"], "flow_control.baseband_packets": 20,
}  # fmt: skip
"""Datagrams of five DH5 beyond what two links carry, of which each holds four."""


DOWNLOADS = {
    "network.flows": "downlink", "traffic.source": "greedy", "link.packets": ["DH5", "DH3"],
    "flow_control.enabled": True, "flow_control.token_rate_kbps": 120.0, "transport.variant": "newreno",
    "transport.receive_window_segments": 8, "transport.delayed_ack": False,
}  # fmt: skip


@pytest.mark.parametrize("places", [25, 40])
def test_tokens_are_spent_on_what_the_buffer_lets_pass(places: int) -> None:
    """Four DH5 and a DH3, 1539 bytes, take the tokens of 1460: what is refused takes none."""
    metrics, notes = answer(bt.Scenario().changed({**DOWNLOADS, "flow_control.buffer_packets": places}))
    assert metrics["goodput_kbps"] == pytest.approx(120.0 * 1460 / 1539, rel=1e-3)
    assert (metrics["segment_loss"] > 0.0).all() == (places < 8 * 5)
    assert not notes["warnings"]


def test_acknowledgements_take_room_beside_segments() -> None:
    """A ring's buffer of tokens holds eight segments of five packets, and eight acknowledgements."""
    full = {"traffic.load_kbps": 200.0, "flow_control.token_rate_kbps": 70.0}
    fits = answer(ring(**full, **{"flow_control.buffer_packets": 48}))[1]
    assert not any("overflow" in said for said in fits["warnings"]) and not fits.get("sampled")
    assert answer(ring(**full, **{"flow_control.buffer_packets": 40}))[1]["sampled"]


@pytest.mark.parametrize(
    ("places", "delayed", "limited", "delivered", "lost"),
    [
        (7, False, False, 3, 1),  # the segment before the loss, the one behind it, and the repetition
        (7, False, True, 9, 2),  # the first loss shows; the repetition leaves no room for a new segment
        (10, False, False, 8, 1),
        (7, True, False, 3, 1),
        (10, True, False, 11, 1),
        (15, True, False, 19, 1),  # the segment before the loss takes one of three duplicates
    ],
)
def test_a_buffer_for_few_segments_makes_a_connection_live_by_its_timer(
    places: int, delayed: bool, limited: bool, delivered: int, lost: int
) -> None:
    """Segments delivered and lost from one timeout to the next are counts; rates are near the simulation."""
    changes = {"transport.delayed_ack": delayed, "transport.limited_transmit": limited}
    asked = bt.Scenario().changed(UPLINK | changes | {"flow_control.baseband_packets": places})
    found, notes = answer(asked)
    assert found["goodput_kbps"] / SEGMENT_KBIT / found["timeouts_per_s"] == pytest.approx(delivered)
    assert found["segment_loss"] == pytest.approx(lost / (delivered + lost))
    assert any("may overflow" in said for said in notes["warnings"])
    near_simulation(asked, goodput_kbps=0.03, timeouts_per_s=0.03, segment_loss=0.03)


LOSSY = DOWNLOADS | {
    "network.peripherals": 1, "flow_control.enabled": False, "link.arq": "none", "radio.model": "constant",
    "traffic.source": "poisson",
}  # fmt: skip
THESIS = LOSSY | {"link.packets": ["DH5", "DH3", "DH1"], "transport.preset": "thesis"}
THINNED = LOSSY | {"radio.ber": 1.1e-6, "traffic.load_kbps": 160.0, "transport.limited_transmit": False}
UNUSED = {"transport.window_limited_growth": False}


def within(*, rtt_s: float, timeouts_per_s: float) -> dict[str, Any]:
    """Return a round trip within 5 % and timeouts within 10 %: the aims of theory."""
    return {"rtt_s": pytest.approx(rtt_s, rel=0.05), "timeouts_per_s": pytest.approx(timeouts_per_s, rel=0.1)}


SIMULATED = [
    # datagrams that overflow waste the air of their other packets: the links carry 311 kbit/s; 10 x 270 s
    (UPLOADS, {"goodput_kbps": pytest.approx(259.3, rel=0.03)}),
    (UPLOADS | {"traffic.load_kbps": 60.0}, {"segment_loss": pytest.approx(0.0, abs=1e-3)}),
    # backlogs of timeouts are part of round trips: else 12 % of one are missed; 20,000 s
    (THESIS | {"radio.ber": 3e-6, "traffic.load_kbps": 100.0}, within(rtt_s=0.0248, timeouts_per_s=0.0717)),
    (THESIS | {"radio.ber": 6e-6, "traffic.load_kbps": 100.0}, within(rtt_s=0.0316, timeouts_per_s=0.2496)),
    (THESIS | {"radio.ber": 1.2e-5, "traffic.load_kbps": 40.0}, within(rtt_s=0.0286, timeouts_per_s=0.3738)),
    # a window that grows only when it is full is small when the next segment is lost
    (THINNED, {"timeouts_per_s": pytest.approx(0.0825, abs=0.015)}),
    (THINNED | UNUSED, {"timeouts_per_s": pytest.approx(0.02, abs=0.015)}),
]
"""What this package's simulator said once."""


@pytest.mark.parametrize(("changes", "expected"), SIMULATED)
def test_losses_are_those_that_were_simulated(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    asked = bt.Scenario().changed(changes)
    assert {metric: mean(asked, metric) for metric in expected} == expected


def test_a_full_buffer_refuses_the_short_last_packets_of_datagrams_first() -> None:
    """Two DH5 and a DH1 take 14 slots with their answers; what goes without its DH1 takes 6 for a packet."""
    short_last = {
        "link.packets": ["DH5", "DH3", "DH1"], "traffic.message_bytes": 660, "traffic.load_kbps": 500.0,
        "run.duration_s": 200, "run.replications": 4,
    }  # fmt: skip
    near_simulation(bt.Scenario().changed(UPLOADS | short_last), goodput_kbps=0.03)


def test_where_packets_are_cut_on_the_air_a_place_holds_a_segment() -> None:
    """A window of 8 segments fits into 8 places; before 5 it is a saw, as in the simulation."""
    asked = bt.Scenario().changed({
        "network.flows": "downlink", "network.relay": "segment", "link.adaptation": "thresholds",
        "traffic.source": "greedy", "transport.delayed_ack": False,
        "transport.receive_window_segments": 8, "flow_control.central_buffer_packets": 1000,
    })  # fmt: skip
    roomy, fits, small = (
        bt.solve(asked.with_(flow_control__central_buffer_packets=places)) for places in (1000, 8, 5)
    )
    assert fits.attrs["stands"] and small.attrs["stands"]
    assert fits["goodput_kbps"].values == pytest.approx(roomy["goodput_kbps"].values, rel=1e-9)
    assert fits["rtt_s"].values == pytest.approx(roomy["rtt_s"].values, rel=1e-9)
    five = asked.with_(flow_control__central_buffer_packets=5, run__replications=2)
    near_simulation(five, goodput_kbps=0.025, rtt_s=0.025)
    random = asked.with_(traffic__source="poisson", traffic__load_kbps=100.0)
    for adaptation in ("fixed", "thresholds"):  # packets in queues are known, and segments are not
        known = "queue_packets" in bt.solve(random.with_(link__adaptation=adaptation))
        assert known == (adaptation == "fixed")


UPLINK = {
    "network.peripherals": 1, "network.flows": "uplink", "traffic.source": "greedy", "link.packets": ["DH5"],
    "transport.variant": "newreno", "transport.receive_window_segments": 64, "transport.delayed_ack": False,
    "flow_control.baseband_packets": 24, "run.replications": 2, "run.duration_s": 60.0,
}  # fmt: skip
TWO = {"network.peripherals": 2, "flow_control.baseband_packets": 29}
SMALL = {
    "traffic.message_bytes": 256, "transport.mss_bytes": 256, "radio.model": "constant", "radio.ber": 2e-6,
    **TWO,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"transport.timestamps": False}, False),  # no round trip of the segment that was sent twice
        ({"flow_control.baseband_packets": 250}, True),  # the timer expires before the repair
        ({"flow_control.baseband_packets": 90, "transport.min_rto_s": 0.2}, True),
        ({"flow_control.baseband_packets": 30, "transport.min_rto_s": 0.2}, False),  # its deviation is large
        (TWO, False),  # visits of a segment: a packet is sent before each acknowledgement
        ({**TWO, "polling.limit": 3}, True),  # at some places in a visit
        ({**TWO, "polling.discipline": "round-robin"}, False),  # never
        ({**TWO, "polling.limit": 20}, True),  # half of the window leaves visits short
        ({**TWO, "traffic.message_bytes": 2500, "transport.windows": "segments"}, True),  # segments differ
        ({**SMALL, "link.packets": ["DH5", "DH3"]}, False),  # acknowledgements lag behind if they fail
        (SMALL, True),  # as often as segments
        ({**SMALL, "link.packets": ["DH5", "DH3"], "radio.ber": 6e-6, "transport.variant": "reno"},
         True),  # losses follow losses
        ({"transport.variant": "tahoe", "flow_control.baseband_packets": 60}, False),
        ({"transport.variant": "tahoe", "flow_control.baseband_packets": 6, "link.packets": ["3-DH5"],
          "transport.limited_transmit": False}, True),  # its link is empty for a while
        ({"transport.variant": "tahoe", "flow_control.baseband_packets": 10, "transport.delayed_ack": True},
         True),  # for longer
        ({"transport.delayed_ack": True, "flow_control.baseband_packets": 40}, False),
        ({"transport.delayed_ack": True, "transport.ip_delay_s": 0.005}, True),  # a host spreads pairs
        ({"flow_control.baseband_packets": 14}, False),  # three duplicates
        ({"flow_control.baseband_packets": 14, "radio.model": "constant", "radio.ber": 1e-6}, True),
        ({"network.peripherals": 3, "network.flows": [{"from": "p1.1", "to": "c1"}],
          "polling.discipline": "slq"}, False),  # other links have no queue
    ],
)  # fmt: skip
def test_the_saw_of_windows_at_their_own_links_is_known(changes: dict[str, Any], expected: bool) -> None:
    """It is exact but for losses that follow a loss, and for timers that expire before the repair."""
    asked = bt.Scenario().changed(UPLINK | changes)
    assert doubted(asked, "may overflow") is expected
    if not expected:
        near_simulation(asked, goodput_kbps=0.01, rtt_s=0.03)


@pytest.mark.parametrize(
    ("window", "room", "expected"), [(7, 9000, False), (32, 10000, False), (32, 9000, True)]
)
def test_the_buffer_of_a_node_is_filled_to_the_byte(window: int, room: int, expected: bool) -> None:
    """Path and 9,000 bytes hold seven segments of 1,504; the first packets of one make room for the next."""
    asked = bt.Scenario().changed({
        "network.topology": "custom", "network.relay": "segment",
        "network.flows": [{"from": "host", "to": "s1"}],
        "network.piconet_list": [{"name": "bt", "central": "gw", "peripherals": ["s1"]}],
        "network.outside_links": [
            {"name": "net", "from": "host", "to": "gw", "rate_kbps": 2000.0, "delay_s": 0.0055},
        ],
        "transport.limited_transmit": False, "transport.receive_window_segments": window,
        "link.node_buffer_bytes": room, "link.packets": ["2-DH5"] if window == 7 else ["DH3", "DH1"],
        **{key: UPLINK[key] for key in ("run.replications", "run.duration_s", "traffic.source")},
        "transport.delayed_ack": False,
    })  # fmt: skip
    assert doubted(asked, "may overflow") is expected
    if not expected:
        near_simulation(asked, rtt_s=0.01)


STAR = DOWNLOADS | {
    "flow_control.buffer_packets": 20, "flow_control.token_rate_kbps": 450.0,
    "transport.receive_window_segments": 16,
}  # fmt: skip
"""Two links of 324 kbit/s for packets of 1539 bytes: windows of 80 packets wait at the ports."""
ROOMY = {"flow_control.buffer_packets": 80, "flow_control.baseband_packets": 200}
SAW = DOWNLOADS | {"flow_control.buffer_packets": 26}
WIRE = {
    "network.topology": "custom", "network.flows": [{"from": "host", "to": "phone"}],
    "network.piconet_list": [{"name": "bt", "central": "gateway", "peripherals": ["phone"]}],
    "network.relay": "segment", "traffic.source": "greedy", "transport.variant": "newreno",
    "transport.delayed_ack": False, "flow_control.baseband_packets": 1000,
}  # fmt: skip
TWO_PHONES = [{"name": "bt", "central": "gateway", "peripherals": ["phone", "pad"]}]
PERIODIC = UPLOADS | {"traffic.load_kbps": 800.0, "traffic.source": "periodic"}
SHORT = {"traffic.message_bytes": 300}
NOISY = UPLOADS | {"traffic.load_kbps": 800.0, "radio.model": "constant", "radio.ber": 1e-5}
DATAGRAMS, WINDOWS = "datagrams overflow", "may overflow"
BUCKETS = UPLOADS | {
    "traffic.load_kbps": 800.0, "flow_control.enabled": True, "flow_control.token_rate_kbps": 50.0
}  # fmt: skip


def line(**changes: Any) -> dict[str, Any]:
    """Return the keys of a download that comes over a slow wire."""
    link = {"name": "line", "from": "host", "to": "gateway", "kind": "wired", "rate_kbps": 300.0}
    return WIRE | {"network.outside_links": [link | {"delay_s": 0.1, "buffer_packets": 10} | changes]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # overflowing datagrams, unless visits take their packets evenly
        (UPLOADS, None),
        (UPLOADS | {"traffic.load_kbps": 60.0}, None),
        (
            UPLOADS
            | {"link.packets": ["DH5", "DH3", "DH1"]}
            | {"traffic.message_bytes": 660, "traffic.load_kbps": 500.0},
            None,
        ),
        (PERIODIC, DATAGRAMS),  # the same packets are refused again and again
        (PERIODIC | SHORT, None),  # one packet
        (NOISY, DATAGRAMS),  # visits end within segments
        (NOISY | {"network.peripherals": 1}, None),
        (UPLOADS | {"traffic.load_kbps": 3000.0}, DATAGRAMS),  # hardly any datagram is whole
        (BUCKETS, DATAGRAMS),
        (BUCKETS | SHORT, None),
        # the saw of one window before a bucket
        (SAW | {"transport.variant": "reno"}, None),  # one segment of a window is lost
        (SAW | {"transport.variant": "cubic"}, WINDOWS),  # it does not grow by a segment a round trip
        (SAW | {"transport.delayed_ack": True}, None),  # segments of an acknowledgement come together
        (SAW | {"transport.delayed_ack": True, "flow_control.buffer_packets": 15}, WINDOWS),
        # with packets on the air it holds a sixth segment
        (SAW | {"flow_control.buffer_packets": 29}, WINDOWS),
        (SAW | {"flow_control.token_rate_kbps": 310.0}, WINDOWS),  # the port is nearly as slow
        (STAR, WINDOWS),  # a bucket before full ports overflows while windows open
        # acknowledgements wait behind the data of the other flow, and a window follows them at once
        (STAR | {"network.flows": "ring"}, WINDOWS),
        (STAR | {"network.flows": "ring"} | ROOMY, None),
        # the saw of one window before a wire
        (line(), None),
        (line(half_duplex=True), WINDOWS),  # segments and acknowledgements take turns
        (line(rate_kbps=640.0), WINDOWS),  # the air is nearly as slow
        (line() | {"polling.discipline": "ldq", "network.piconet_list": TWO_PHONES}, WINDOWS),
        (line() | {"transport.delayed_ack": True}, WINDOWS),  # five pairs fill the buffer
        (line(buffer_packets=20, rate_kbps=480.0) | {"transport.delayed_ack": True}, None),
    ],
)
def test_overflows_are_in_doubt_where_their_law_is_rough(changes: dict[str, Any], words: str | None) -> None:
    asked = bt.Scenario().changed(changes)
    assert doubted(asked, words or "overflow") is bool(words)
    assert bt.solve(asked).attrs["stands"] is not bool(words)


def test_a_buffer_that_random_segments_hardly_ever_find_full_leaves_round_trips_as_they_are():
    """Segments wait behind more than it holds for less than 1 % of a round trip: it is not in doubt."""
    star = bt.load("venugopal-2006/piconet").changed({
        "network.flows": "uplink", "network.peripherals": 3, "flow_control.enabled": False,
        "link.arq": "unlimited", "transport.receive_window_segments": 20, "polling.limit": 15,
        "traffic.load_kbps": 120.0, "flow_control.baseband_packets": 24, "run.duration_s": 2000.0,
        "run.replications": 4,
    })  # fmt: skip
    solved, simulated = bt.solve(star), bt.simulate(star).mean("replication")
    assert solved.attrs["stands"] and float(simulated["segment_loss"].mean()) > 0.0
    assert solved["rtt_s"].values == pytest.approx(simulated["rtt_s"].values, rel=0.05)
