"""The whole check on simulators' output: our own and ns-3's must pass, broken ones must be caught.

The broken simulators are ours with a wrong setting, whose output is checked against the scenario that they
claim to have simulated. Seeds are fixed. Where output must pass, the false-alarm rate of a check is 1 % (over
all metrics together), so that a change of the simulator's random numbers fails one of the ten checks here by
chance with a probability of at most 10 %.
"""

from pathlib import Path

import pytest
from capture_files import DATA, unpacked

import btqueue as bt
from btqueue.cli.files import WRITERS
from btqueue.scenario import Scenario
from btqueue.simulator.traces.trace_files import record
from btqueue.study.check import Report, check
from btqueue.study.check.randomness import is_random

NS3 = bt.load(str(DATA / "ns3.toml"))
"""What data/make_ns3_files.py simulates."""
BASE = bt.load("venugopal-2006/piconet").with_(run__duration_s=90, run__warmup_s=30)
"""At the knee of the load, where buffers and limits matter."""
LOSSY = BASE.with_(radio__model="constant", radio__ber=2e-5)
"""A radio on which retransmissions are lost, too: timeouts follow timeouts."""


def csv_of(scenario: Scenario, folder: Path) -> Path:
    """Write what `btqueue simulate --out` would."""
    path = folder / "theirs.csv"
    WRITERS[path.suffix](path, bt.simulate(scenario).to_dataset(), scenario)
    return path


def checked(path: Path, scenario: Scenario) -> Report:
    """Check against simulations with other random numbers."""
    return check(path, scenario.with_(run__seed=99), solve=None)


@pytest.mark.parametrize("seed", range(1, 6))
def test_our_own_results_agree(seed, tmp_path):
    report = checked(csv_of(BASE.with_(run__seed=seed), tmp_path), BASE)
    assert report.agrees, report.summary
    assert len(report.agreements) > 30
    assert report.tried == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_our_own_capture_agrees(seed, tmp_path):
    """Every run checks captures of ns-3, and those of a sender with a wrong timer and with the right one."""
    record(BASE.with_(run__seed=seed), pcap=tmp_path / "run.pcap")
    report = checked(tmp_path / "run.pcap", BASE)
    assert report.agrees, report.summary
    assert {"goodput_kbps", "rtt_s", "timeouts_per_s"} <= {one.metric for one in report.agreements}


@pytest.mark.parametrize("name", ["ns3_flowmon.xml", "ns3_sender.pcap"])
def test_ns3_agrees(name, tmp_path):
    there = DATA / name
    report = check(there if there.exists() else unpacked(name, tmp_path), NS3)
    assert report.agrees, report.summary
    models = {one.metric: one.model for one in report.agreements}
    assert models["throughput_kbps"] == pytest.approx(90, rel=0.1)
    assert any("the model is approximate" in note for note in report.notes)


@pytest.mark.parametrize("window", [6, *(pytest.param(w, marks=pytest.mark.long) for w in (2, 8))])
def test_a_wrong_window_is_named_whatever_the_scenario_says(window, tmp_path):
    """With 6 it is no window of 44 segments, either: its few timeouts scatter the round trips widely."""
    scenario = NS3.with_(transport__receive_window_segments=window)
    report = check(unpacked("ns3_sender.pcap", tmp_path), scenario)
    assert not report.agrees
    assert dict(report.causes[0].changes) == {"transport.receive_window_segments": 4}


def test_the_capture_counts_what_the_simulator_counts(tmp_path):
    scenario = LOSSY.with_(run__replications=2)
    record(scenario, pcap=tmp_path / "run.pcap")
    report = check(tmp_path / "run.pcap", scenario, solve=None)
    own = bt.simulate(scenario).isel(replication=0, flow=0)
    for name in ("timeouts_per_s", "fast_retransmits_per_s", "retransmissions_per_s"):
        assert report.results.value(name) == pytest.approx(own[name].item(), rel=1e-9), name
    # a capture counts data when it is sent, and the simulator when it arrives: a window at most lies between
    transport = scenario.transport
    window_kbits = transport.receive_window_segments * transport.mss_bytes * 8 / 1000
    sent_kbps, own_kbps = report.results.value("throughput_kbps"), own["throughput_kbps"].item()
    assert sent_kbps == pytest.approx(own_kbps, abs=window_kbits / scenario.run.duration_s)
    # time stamps count milliseconds
    assert report.results.value("rtt_s") == pytest.approx(own["rtt_s"].item(), abs=1e-3)


BROKEN = {
    "off by one in S": (
        BASE.with_(flow_control__buffer_packets=15, traffic__load_kbps=200),
        {"flow_control__buffer_packets": 14},
        {"flow_control.buffer_packets": 14},
        "flow_control.buffer_packets = 14 (the scenario has 15): an off-by-one",
    ),
    "off by one in L": (
        BASE.with_(flow_control__token_rate_kbps=400),
        {"flow_control__baseband_packets": 19},
        {"flow_control.baseband_packets": 19},
        "at the baseband queue L",
    ),
    "no doubling of the timeout": (
        LOSSY,
        {"transport__max_rto_s": 1.0, "transport__initial_rto_s": 1.0},
        {"transport.rto_backoff": False},
        "the retransmission timer does not double",
    ),
    "forgotten warm-up": (
        BASE.with_(run__duration_s=30, run__warmup_s=60, run__replications=20),
        {"run__warmup_s": 0},
        {"run.warmup_s": 0.0},
        "the warm-up was not left out",
    ),
}


FIRST, *OTHERS = BROKEN


@pytest.mark.parametrize("fault", [FIRST, *(pytest.param(one, marks=pytest.mark.long) for one in OTHERS)])
def test_a_broken_simulator_is_caught_and_its_fault_is_named(fault, tmp_path):
    scenario, wrong, changes, words = BROKEN[fault]
    report = checked(csv_of(scenario.with_(**wrong), tmp_path), scenario)
    assert not report.agrees
    assert report.causes, report.summary
    assert dict(report.causes[0].changes) == changes
    assert words in report.causes[0].sentence


LINK = NS3.with_(run__replications=8)
"""A greedy sender over a slow link that loses data."""
SHORT = bt.load("avancha-2002/ethernet").with_(
    traffic__reply_bytes=20_000, transport__connection_per_session=True, transport__handshake=True
)
"""Sessions of a few round trips, over which the initial window matters."""


WRITES = LINK.with_(traffic__source="poisson", traffic__message_bytes=100, traffic__load_kbps=20)
"""Messages that share segments."""


def slow_link(**keys: float) -> dict[str, list[dict]]:
    fast, slow = LINK.to_dict(resolved=False)["network"]["outside_links"]
    return {"network__outside_links": [fast, slow | keys]}


PLANTED = {
    "bit error rate": (LOSSY, {"radio__ber": 3.1e-5}, "radio.ber"),
    "rate": (LINK, slow_link(rate_kbps=125.0), "network.outside_links[2].rate_kbps"),
    "window": (LINK, {"transport__receive_window_segments": 6}, "receive_window_segments"),
    "Nagle's algorithm": (WRITES, {"transport__nagle": False}, "transport.nagle"),
    "windows in segments": (WRITES, {"transport__windows": "segments"}, "transport.windows"),
}
"""Beside `BROKEN` and `peers/planted_faults.py`: scenario, fault, and the key that must be named first."""
RIGHT = {
    "knee": BROKEN["off by one in S"][0],
    "radio": LOSSY,
    "link": LINK,
    "window": LINK.with_(transport__receive_window_segments=6),
    "delayed acknowledgements": LINK.with_(transport__delayed_ack=True),
    "sessions": SHORT,
    "nothing random": LINK.with_(run__jitter_s=0.0).changed(
        {"network.outside_links": [link | {"loss": 0.0} for link in slow_link()["network__outside_links"]]}
    ),
    "gateway": bt.load("suliman-2005/round-trips"),
    "adaptive packets": bt.load("chen-2004/adaptive-1").with_(run__duration_s=60, run__warmup_s=10),
    "Vegas": bt.load("johansson-2000/asymmetric").with_(run__duration_s=60, run__warmup_s=10),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_and_its_key_is_named(fault, tmp_path):
    scenario, wrong, key = PLANTED[fault]
    report = checked(csv_of(scenario.with_(**wrong, run__seed=7), tmp_path), scenario)
    assert not report.agrees
    assert report.causes, report.summary
    assert next(iter(report.causes[0].changes)).endswith(key), report.causes[0].sentence


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
def test_other_right_results_agree(name, tmp_path):
    # ten more at 1 % each beside those above: of twenty a random alarm has a probability of at most 20 %
    report = checked(csv_of(RIGHT[name].with_(run__seed=11), tmp_path), RIGHT[name])
    assert report.agrees, [one.sentence for one in (*report.differing, *report.inconsistent)]


def test_a_timer_that_does_not_double_shows_in_the_packets(tmp_path):
    record(LOSSY.with_(transport__max_rto_s=1.0, transport__initial_rto_s=1.0), pcap=tmp_path / "run.pcap")
    report = checked(tmp_path / "run.pcap", LOSSY)
    (found,) = report.inconsistent
    assert "the retransmission timer does not double" in found.sentence
    record(LOSSY, pcap=tmp_path / "right.pcap")
    right = checked(tmp_path / "right.pcap", LOSSY)
    assert right.agrees, right.summary
    assert [one.status for one in right.findings if one.check == "back-off"] == ["passed"]


def test_a_forgotten_warm_up_shows_in_a_series(tmp_path):
    from btqueue.simulator.statistics.series import time_series

    rows = ["metric,t,replication,value"]
    for number in range(10):
        series = time_series(BASE.with_(run__warmup_s=0, run__duration_s=300), number, step_s=0.5, flows=[1])
        values = zip(series["time"].values, series["cwnd_segments"].values[:, 0], strict=True)
        rows += [f"cwnd_segments,{time},{number},{value}" for time, value in values]
    path = tmp_path / "series.csv"
    path.write_text("\n".join(rows), "utf-8")
    report = checked(path, BASE)
    (found,) = report.inconsistent
    assert found.check == "warm-up"
    assert "cwnd_segments" in found.sentence
    assert "MSER-5" in found.sentence


@pytest.mark.long
def test_a_shared_random_stream_is_caught(tmp_path):
    """`test_check_consistency` finds identical replications in every run."""
    path = csv_of(BASE.with_(run__replications=2), tmp_path)
    lines = path.read_text("utf-8").splitlines()
    of_first = [line for line in lines[1:] if line.split(",")[2] == "0"]
    copies = []
    for number in range(5):
        for line in of_first:
            fields = line.split(",")
            fields[2] = str(number)
            copies.append(",".join(fields))
    path.write_text("\n".join([lines[0], *copies]), "utf-8")
    report = checked(path, BASE)
    (found,) = report.inconsistent
    assert "all 5 replications are identical: they share one random stream" in found.sentence


@pytest.mark.parametrize(
    ("changes", "random"),
    [
        ({}, False),
        ({"run__jitter_s": 0.001}, True),
        ({"radio__interferers": 3}, True),
        ({"radio__model": "constant", "radio__ber": 1e-5}, True),
        ({"traffic__source": "poisson"}, True),
        (
            {
                "network__flows": [
                    {"from": "p1.1", "to": "p1.2"},
                    {"from": "p1.2", "to": "p1.1", "law": "poisson"},
                ]
            },
            True,
        ),
    ],
)
def test_two_runs_differ_only_where_something_is_random(changes, random):
    greedy = bt.load("venugopal-2006/piconet").with_(traffic__source="greedy", run__jitter_s=0.0)
    assert is_random(greedy.with_(**changes)) == random
