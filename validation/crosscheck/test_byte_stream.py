"""Windows of bytes in whole networks: small writes, greedy sources, messages, captures, and the models."""

import math
from itertools import pairwise

import pytest
from thesis import over_wires, thesis_of

import btqueue as bt
from btqueue.simulator.traces.trace_files import record
from btqueue.study import summarise

LINK = {
    "network": over_wires(
        {"name": "wire", "from": "a", "to": "b", "rate_kbps": 700, "delay_s": 0.02, "header_bytes": 2}
    ),
    "traffic": {"source": "periodic", "message_bytes": 50, "load_kbps": 300},
    "transport": {"receive_window_segments": 64},
    "run": {"duration_s": 20, "warmup_s": 5, "replications": 1},
}


def on_a_link(**changes):
    return thesis_of(LINK).with_(**changes)


def goodput(scenario):
    return float(bt.simulate(scenario).goodput_kbps.mean())


@pytest.mark.parametrize("nagle", [True, False, "minshall"])
def test_small_writes_are_carried_whole(nagle):
    """ns-3 carries 300.0 of 300 kbit/s in writes of 50 bytes; segments of their own need 552 of the 700."""
    assert goodput(on_a_link(transport__nagle=nagle)) == pytest.approx(300.0, rel=1e-3)


def test_windows_of_segments_carry_a_window_of_small_writes_in_a_round_trip():
    # 4 writes in 2 * 20 ms and the time on the wire of a segment and its acknowledgement
    scenario = on_a_link(transport__windows="segments", transport__receive_window_segments=4)
    trip_s = 0.04 + 8 * (50 + 42 + 42) / 700e3
    assert goodput(scenario) == pytest.approx(4 * 400 / trip_s / 1000, rel=1e-3)


def test_a_window_of_bytes_carries_a_window_of_bytes_in_a_round_trip():
    # writes of 50 bytes fill segments of 1460, for more is written than a window of 2 can carry
    scenario = on_a_link(traffic__load_kbps=600, transport__receive_window_segments=2)
    trip_s = 0.04 + 8 * (1502 + 42) / 700e3
    assert goodput(scenario) == pytest.approx(2 * 1460 * 8 / trip_s / 1000, rel=0.01)


def test_a_message_is_delivered_with_its_last_byte():
    # one segment of 1460 bytes, one of 540 that waits for the acknowledgement of the first
    scenario = on_a_link(traffic__message_bytes=2000, traffic__load_kbps=16, transport__nagle=True)
    found = bt.simulate(scenario)
    first, second, ack = (8 * (size + 42) / 700e3 for size in (1460, 540, 0))
    assert float(found.delay_s.mean()) == pytest.approx(first + 0.02 + ack + 0.02 + second + 0.02, rel=1e-6)
    for nagle in (False, "minshall"):
        at_once = bt.simulate(scenario.with_(transport__nagle=nagle))
        assert float(at_once.delay_s.mean()) == pytest.approx(first + second + 0.02, rel=1e-6)


@pytest.mark.parametrize(("request_bytes", "reply_bytes"), [(3000, 100), (50, 2000)])
def test_the_end_of_a_lone_message_is_not_held_back(request_bytes, reply_bytes):
    """With Minshall's change sessions take as long as with windows of segments; the model answers them."""
    session = {"traffic.request_bytes": request_bytes, "traffic.reply_bytes": reply_bytes}
    scenario = on_a_link(run__duration_s=200).changed({**session, "traffic.source": "request-reply"})
    found = [bt.simulate(scenario.with_(transport__windows=one)) for one in ("bytes", "segments")]
    times = [float(one.session_time_s.mean()) for one in found]
    assert times[0] == pytest.approx(times[1], rel=1e-3)
    assert times[0] == pytest.approx(float(bt.solve(scenario).session_time_s.mean()), rel=1e-3)


ACCESS = bt.load("venugopal-2006/piconet").with_(
    network__flows="uplink", traffic__source="request-reply", link__arq="unlimited",
    flow_control__enabled=False, flow_control__baseband_packets=400,
    run__replications=2, run__duration_s=120, run__warmup_s=20,
)  # fmt: skip
DELAYED = {"transport.delayed_ack": True}
SESSIONS = {
    "held by Nagle's algorithm": {"transport.nagle": True},
    "the next request waits for the end of the last": {"transport.nagle": "minshall"},
    "acknowledged late": {"transport.nagle": True, **DELAYED},
    "more small segments": {"transport.nagle": False, "transport.receive_window_segments": 2, **DELAYED},
}
AIMS = {"session_time_s": 0.05, "rtt_s": 0.05, "goodput_kbps": 0.03}
"""Relative errors of right answers."""


@pytest.mark.parametrize("peripherals", [1, 2])
@pytest.mark.parametrize("messages", [(100, 500, 0), (2000, 500, 64), (50, 3000, 64)])
@pytest.mark.parametrize("way", SESSIONS)
def test_sessions_with_short_segments_are_solved_as_simulated_or_doubted(way, messages, peripherals):
    """Nothing is random but the phases of the clients to each other."""
    request, reply, goodbye = messages
    sizes = {"request_bytes": request, "reply_bytes": reply, "goodbye_bytes": goodbye}
    changes = {f"traffic.{key}": size for key, size in sizes.items()} | SESSIONS[way]
    scenario = ACCESS.changed({"network.peripherals": peripherals, **changes})
    solved, simulated = bt.solve(scenario), bt.simulate(scenario)
    errors = {m: abs(float(solved[m].mean()) / float(simulated[m].mean()) - 1.0) for m in AIMS}
    assert not solved.attrs["stands"] or all(errors[metric] <= aim for metric, aim in AIMS.items()), errors
    if SESSIONS[way]["transport.nagle"]:
        assert errors["goodput_kbps"] < 0.02


def test_a_greedy_source_cuts_no_stubs():
    changes = {"traffic__source": "greedy", "transport__mss_bytes": 1440, "traffic__message_bytes": 1460}
    scenario = on_a_link(**changes)
    assert goodput(scenario) == pytest.approx(700 * 1440 / 1482, rel=1e-3)
    stubs = goodput(on_a_link(**changes, transport__windows="segments"))
    assert stubs == pytest.approx(700 * 1460 / (1482 + 62), rel=2e-3)


def test_whole_segments_are_the_same_counted_either_way():
    scenario = bt.load("venugopal-2006/piconet").with_(run__duration_s=60, run__replications=2)
    scenario = scenario.with_(traffic__message_bytes=2920)
    answers = [bt.simulate(scenario.with_(transport__windows=one)) for one in ("bytes", "segments")]
    assert answers[0].equals(answers[1])


@pytest.mark.parametrize(
    "changes",
    [
        {"traffic__load_kbps": 5, "traffic__message_bytes": 700},
        {"traffic__load_kbps": 13},
        {"traffic__load_kbps": 0.1, "transport__delayed_ack": True, "run__duration_s": 20_000},
    ],
)
def test_messages_that_share_segments_are_solved_as_simulated(changes):
    """Within the half-width of the interval of 95 %, and 5 %."""
    changes = {"traffic__source": "poisson", "run__duration_s": 600, **changes}
    scenario = on_a_link(run__replications=4, **changes)
    solved, simulated = bt.solve(scenario), summarise(bt.simulate(scenario))
    assert solved.attrs["stands"] and not solved.attrs["warnings"]
    for name in ("goodput_kbps", "rtt_s", "delay_s"):
        found = simulated[name]
        width = (0.0 if math.isnan(found.ci95) else found.ci95) + 0.05 * found.mean
        if name in solved:
            assert float(solved[name].mean()) == pytest.approx(found.mean, abs=width), name


LATE = {"traffic__source": "poisson", "transport__nagle": False, "transport__delayed_ack": True}


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({}, "the last segment of a message is not full"),  # 300 kbit/s of 50 bytes
        ({**LATE, "traffic__load_kbps": 40}, "delayed acknowledgements count bytes"),
    ],
)
def test_answers_about_messages_that_often_wait_for_each_other_do_not_stand(changes, doubt):
    solved = bt.solve(on_a_link(**changes))
    assert not solved.attrs["stands"] and any(doubt in one for one in solved.attrs["why"])


def test_a_capture_counts_the_bytes_of_the_stream(tmp_path):
    dpkt = pytest.importorskip("dpkt")
    file = tmp_path / "a.pcap"
    scenario = on_a_link(traffic__message_bytes=700, run__duration_s=2)
    record(scenario, pcap=file, at="a")
    edges = set()
    with file.open("rb") as opened:
        for _, packet in dpkt.pcap.Reader(opened):
            tcp = dpkt.ip.IP(packet).data
            if tcp.data:
                edges.add((tcp.seq, tcp.seq + len(tcp.data)))
    ordered = sorted(edges)
    assert len({end - start for start, end in ordered}) > 1, "segments of several lengths"
    assert all(a[1] == b[0] for a, b in pairwise(ordered))
