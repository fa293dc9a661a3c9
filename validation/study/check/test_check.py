"""The whole check on simulators' output: our own and ns-3's must pass, broken ones must be caught.

A broken simulator is ours with a wrong setting. Seeds are fixed. Where output must pass, the false-alarm rate
of a check is 1 %, so that other random numbers fail one of the six checks here with 6 % at most. Right runs
of other programs and planted faults are in `peers`.
"""

from pathlib import Path

import pytest
from capture_files import DATA, unpacked

import btqueue as bt
from btqueue.cli.files import WRITERS
from btqueue.scenario import Scenario, list_models
from btqueue.simulator.traces.trace_files import record
from btqueue.study.check import Report, check, verdicts
from btqueue.study.check.consistency import is_random

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


@pytest.mark.parametrize("seed", [1, 2])
def test_our_own_results_agree(seed, tmp_path):
    report = checked(csv_of(BASE.with_(run__seed=seed), tmp_path), BASE)
    assert report.agrees, report.summary
    assert len(report.agreements) > 30
    assert report.tried == 0


@pytest.mark.long
@pytest.mark.parametrize("name", list_models())
def test_our_own_results_agree_whatever_the_scenario(name, tmp_path, monkeypatch):
    """At the promised false-alarm rate of 1 % two alarms or more in four checks have a chance of 0.06 %."""
    monkeypatch.setattr(verdicts, "likely_causes", lambda *_: ((), 0))
    scenario = bt.load(name)
    wrong = []
    for seed in range(5000, 5004):
        report = checked(csv_of(scenario.with_(run__seed=seed), tmp_path), scenario)
        wrong += [] if report.agrees else [(*report.inconsistent, *report.differing)]
        (tmp_path / "theirs.csv").unlink()
    assert len(wrong) <= 1, wrong


def test_one_replication_is_one_run_without_an_interval(tmp_path):
    """Of its least round trip 40 runs of ours have six values; two runs often have one."""
    scenario = bt.load("chen-2004/alternating-regular")
    report = checked(csv_of(scenario.with_(run__seed=5005), tmp_path), scenario)
    assert report.scenario.run.replications == 30
    assert report.agrees, report.summary


@pytest.mark.parametrize("name", ["ns3_flowmon.xml", "ns3_sender.pcap"])
def test_ns3_agrees(name, tmp_path):
    there = DATA / name
    report = check(there if there.exists() else unpacked(name, tmp_path), NS3)
    assert report.agrees, report.summary
    models = {one.metric: one.model for one in report.agreements}
    assert models["throughput_kbps"] == pytest.approx(90, rel=0.1)
    assert any("the model is approximate" in note for note in report.notes)


def test_a_wrong_window_is_named_whatever_the_scenario_says(tmp_path):
    """It is no window of 44 segments, either: its few timeouts scatter the round trips widely."""
    scenario = NS3.with_(transport__receive_window_segments=6)
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


def test_a_broken_simulator_is_caught_and_its_fault_is_named(tmp_path):
    scenario = BASE.with_(flow_control__buffer_packets=15, traffic__load_kbps=200)
    report = checked(csv_of(scenario.with_(flow_control__buffer_packets=14), tmp_path), scenario)
    assert not report.agrees
    assert report.causes, report.summary
    cause = report.causes[0]
    assert dict(cause.changes) == {"flow_control.buffer_packets": 14}
    assert "flow_control.buffer_packets = 14 (the scenario has 15): an off-by-one" in cause.sentence


def test_a_timer_that_does_not_double_shows_in_the_packets(tmp_path):
    record(LOSSY.with_(transport__max_rto_s=1.0, transport__initial_rto_s=1.0), pcap=tmp_path / "run.pcap")
    report = checked(tmp_path / "run.pcap", LOSSY)
    (found,) = report.inconsistent
    assert "the retransmission timer does not double" in found.sentence
    record(LOSSY, pcap=tmp_path / "right.pcap")
    right = checked(tmp_path / "right.pcap", LOSSY)
    assert right.agrees, right.summary
    assert [one.status for one in right.findings if one.check == "back-off"] == ["passed"]


@pytest.mark.parametrize(
    "changes",
    [
        {"run__jitter_s": 0.001},
        {"traffic__source": "poisson"},
        {"network__flows": [{"from": "p1.1", "to": "p1.2"}, {"from": "c1", "to": "p1.1", "law": "poisson"}]},
    ],
)
def test_two_runs_differ_only_where_something_is_random(changes):
    greedy = bt.load("venugopal-2006/piconet").with_(traffic__source="greedy", run__jitter_s=0.0)
    assert is_random(greedy.with_(**changes)) and not is_random(greedy)
