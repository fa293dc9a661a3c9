"""Internal consistency: each law is kept by good numbers and broken by bad ones; replications in common."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thesis import thesis

from btqueue import simulate
from btqueue.scenario import Scenario, load
from btqueue.study.check import ForeignResults, Quantity
from btqueue.study.check.consistency import check_consistency, shared_streams, unused_window

SCENARIO = thesis()
GREEDY = SCENARIO.with_(traffic__source="greedy")


def results(values: dict[str, float], **fields) -> ForeignResults:
    quantities = {name: Quantity(name, value) for name, value in values.items()}
    return ForeignResults("theirs", "CSV", quantities, **fields)


def wrong(values: dict[str, float], scenario: Scenario = SCENARIO, **fields) -> list[str]:
    found = check_consistency(results(values, **fields), scenario)
    assert found
    return [one.sentence for one in found if one.status == "failed"]


GOOD = {
    "goodput_kbps": 159.6,
    "throughput_kbps": 167.8,
    "rtt_s": 0.269,
    "rtt_min_s": 0.04,
    "rtt_p50_s": 0.26,
    "rtt_p99_s": 0.5,
    "rtt_max_s": 0.58,
    "window_segments": 7.05,
    "cwnd_segments": 10.0,
    "timeouts_per_s": 0.031,
    "fast_retransmits_per_s": 0.211,
    "retransmissions_per_s": 0.71,
    "segment_loss": 0.047,
    "slot_utilisation": 0.92,
    "fairness": 1.0,
    "packets_sent": 1000,
    "packets_delivered": 950,
    "packets_lost": 40,
    "packets_in_flight": 10,
    "queue_packets[uplink]": 6.0,
    "arrivals_per_s[uplink]": 60.0,
    "queue_delay_s[uplink]": 0.1,
    "delay_scv[download]": 1.1,
}
"""As our simulator finds them at the default scenario, to a few digits."""


def test_good_numbers_pass_every_check():
    assert wrong(GOOD) == []
    checks = {one.check for one in check_consistency(results(GOOD), SCENARIO)}
    assert checks == {"conservation", "Little's law", "range", "order", "rate bounds"}


BAD = [
    ({"packets_delivered": 960}, "not conserved: 1000 sent"),
    ({"packets_in_flight": -10, "packets_delivered": 970}, "not conserved"),
    ({"throughput_kbps": 120}, "is above throughput 120"),
    ({"segment_loss": 0.3}, "more than arrives"),
    ({"retransmissions_per_s": 3.0}, "retransmissions carry 35.04"),
    ({"queue_packets[uplink]": 7.0}, "60 packets/s that stay 0.1 s make 6"),
    ({"timeouts_per_s": -0.1}, "timeouts_per_s = -0.1 is negative"),
    ({"slot_utilisation": 1.1}, "slot_utilisation = 1.1 is above 1"),
    ({"fairness": 0.4}, "below 1/2"),
    ({"rtt_p50_s": 0.55}, "rtt_p50_s = 0.55 is above rtt_p99_s"),
    ({"cwnd_segments": 6.0}, "window_segments = 7.05 is above cwnd_segments"),
    ({"window_segments": 9.0}, "above the receive window of 8"),
    ({"timeouts_per_s": 0.9}, "fewer than the 1.111/s timeouts and fast retransmits"),
    ({"goodput_kbps": 175, "throughput_kbps": 183.2}, "above the offered load of 160"),
    ({"rtt_s": 0.57, "rtt_max_s": 0.6, "window_segments": 6.0}, "window over round trip: 6 segments in 0.57"),
    ({"timeouts_per_s": 1.2, "retransmissions_per_s": 2}, "at most 1"),
    ({"segment_loss[download]": 1.1}, "segment_loss[download] = 1.1 is above 1"),
    ({"transmissions_per_packet[download]": 0.9}, "a packet is transmitted once at least"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_each_violation_is_named(changes, words):
    assert any(words in sentence for sentence in wrong(GOOD | changes))


def test_the_intervals_of_the_numbers_are_allowed_for():
    wide = {"goodput_kbps": 175.0, "throughput_kbps": 183.2}
    found = {name: Quantity(name, value) for name, value in GOOD.items()}
    found |= {name: Quantity(name, value, half_width=20.0) for name, value in wide.items()}
    checked = check_consistency(ForeignResults("theirs", "CSV", found), SCENARIO)
    assert all(one.status == "passed" for one in checked)


def test_a_window_may_be_under_way_when_a_short_run_ends():
    short = load("suliman-2005/one-of-seven")  # 30 s, 44 segments of 1,460 bytes
    values = {"throughput_kbps": 218.7, "goodput_kbps": 200.0, "retransmissions_per_s": 0.4}
    assert wrong(values, short) == []
    assert "retransmissions carry 4.67" in " ".join(wrong(values, short.with_(run__duration_s=300)))


def test_capacity_and_window_bound_the_goodput_of_any_source():
    # 199.9 kbit/s for the mean of two flows, 330.8 for one: validation/crosscheck/test_bounds.py
    assert "devices and links have time" in " ".join(wrong({"goodput_kbps": 206.0}, GREEDY))
    assert wrong({"goodput_kbps": 206.0}, GREEDY, flow=1) == []
    small = load("avancha-2002/satellite").with_(transport__receive_window_segments=2)
    assert "of a window in each least round trip" in " ".join(wrong({"goodput_kbps": 60.0}, small))


@pytest.mark.parametrize("window", [3, 5, 7, 8])
def test_a_window_that_shared_acknowledgements_split_keeps_its_own_bound(window):
    """The round trip is that of the segment that waits for another one: 6/5 of a window's mean of 5."""
    link = {"link.packets": ["DH5"], "transport.mss_bytes": 1000, "run.duration_s": 20.0, "run.warmup_s": 5.0}
    download = Scenario().with_(network__peripherals=1, network__flows="downlink", traffic__source="greedy")
    scenario = download.changed(link | {"transport.receive_window_segments": window, "run.replications": 2})
    ours = simulate(scenario)
    names = ("goodput_kbps", "rtt_s", "window_segments")
    values = {name: float(ours[name].mean()) for name in names}
    assert wrong(values, scenario) == []
    assert unused_window(results(values), scenario) == []
    assert "window over round trip" in " ".join(wrong(values | {"rtt_s": 1.6 * values["rtt_s"]}, scenario))


def test_a_greedy_sender_that_does_not_use_its_window_is_noticed():
    """By Little's law 400 kbit/s and 110 ms are 44 kbit under way: 5.5 segments of 1,000 bytes."""
    eight = GREEDY.with_(transport__mss_bytes=1000, transport__receive_window_segments=8)
    measured = results({"goodput_kbps": 400.0, "rtt_s": 0.11})
    (said,) = unused_window(measured, eight)
    assert said.startswith("goodput times round trip is 5.5 segments of 1000 bytes, and the window has 8")
    assert unused_window(measured, eight.with_(traffic__source="poisson")) == []
    assert unused_window(measured, eight.with_(transport__receive_window_segments=6)) == []
    assert unused_window(results({"goodput_kbps": 400.0}), eight) == []


@given(st.floats(0.2, 8), st.integers(3, 20))
def test_a_doubling_timer_passes_and_a_constant_one_fails(first, count):
    doubling = tuple((first, 2 * first) for _ in range(count))
    constant = tuple((first, first) for _ in range(count))
    assert wrong({"rtt_s": 0.1}, backoff_gaps=doubling) == []
    assert any("does not double" in one for one in wrong({"rtt_s": 0.1}, backoff_gaps=constant))


def replicated(**samples: list[float]) -> ForeignResults:
    quantities = {name: Quantity(name, float(np.mean(v)), tuple(v)) for name, v in samples.items()}
    return ForeignResults("theirs", "CSV", quantities)


def test_replications_that_share_a_stream_are_found():
    goodput, rtt = [150.0, 151.0, 149.0, 152.0], [0.2, 0.21, 0.19, 0.22]
    (good,) = shared_streams(replicated(goodput_kbps=goodput, rtt_s=rtt), SCENARIO, {})
    assert (good.check, good.status) == ("replications", "passed")
    (same,) = shared_streams(replicated(goodput_kbps=[150.0] * 4, rtt_s=[0.2] * 4), SCENARIO, {})
    assert "all 4 replications are identical" in same.sentence
    goodput[3], rtt[3] = goodput[1], rtt[1]
    (copied,) = shared_streams(replicated(goodput_kbps=goodput, rtt_s=rtt), SCENARIO, {})
    assert "replications 2 and 4 are identical" in copied.sentence


def test_keys_that_every_flow_has_of_its_own_bound_the_numbers_as_those_of_the_tables_do():
    """A window of 100 segments and three timeouts a second are fine for Linux, however that is written."""
    ring = [{"from": a, "to": b, "preset": "linux"} for a, b in (("p1.1", "p1.2"), ("p1.2", "p1.1"))]
    linux = {"window_segments": 100.0, "timeouts_per_s": 3.0}
    assert wrong(linux, GREEDY)
    for changes in ({"transport__preset": "linux"}, {"network__flows": ring}):
        assert wrong(linux, GREEDY.with_(**changes)) == []


UPLINK = SCENARIO.with_(
    **{"network__flows": "uplink", "transport__protocol": "none", "flow_control__enabled": False},
    **{"traffic__message_bytes": 295, "traffic__load_kbps": 250},
)


# 212 messages of one packet come each second; 1.4 packets that wait make 6.6 ms of each
WAITING = {"goodput_kbps": 250.0, "queue_packets[uplink]": 1.4}


@pytest.mark.parametrize(
    ("scenario", "values", "words"),
    [
        (UPLINK, WAITING | {"delay_s": 0.012}, ""),
        (UPLINK, WAITING | {"delay_s": 0.0031}, "as if counted from the start of service"),
        # 1600 slots, two peripherals: 297 visits of 2.7 slots, or 602 of 1.3, of which POLL and NULL need two
        (SCENARIO, {"polls_per_s": 297.0, "slot_utilisation": 0.226}, ""),
        (SCENARIO, {"polls_per_s": 602.0, "slot_utilisation": 0.229}, "a POLL or a NULL slot is forgotten"),
        (SCENARIO, {"polls_per_s": 30.0, "slot_utilisation": 0.93}, ""),
    ],
)
def test_delays_from_the_start_of_service_and_polls_without_slots_are_told(scenario, values, words):
    found = wrong(values, scenario)
    assert len(found) == bool(words) and all(words in one for one in found)


def test_replications_may_be_alike_where_ours_are():
    found = replicated(goodput_kbps=[145.65, 145.65, 145.9], rtt_s=[0.2317, 0.2317, 0.234])
    ours = {"goodput_kbps": np.array([145.651, 145.652, 147.0]), "rtt_s": np.array([0.23171, 0.23172, 0.24])}
    other = {name: values * np.array([1.0, 1.1, 1.2]) for name, values in ours.items()}
    for simulated, status in ((ours, "passed"), (other, "failed"), ({}, "failed")):
        (one,) = shared_streams(found, SCENARIO, simulated)
        assert one.status == status, one.sentence
