"""Random scenarios over the whole vocabulary: no strange end, no hang, no impossible number."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scenario_fuzz
from any_scenario import Fuzzed, drawn, keys
from impossible_metrics import impossible
from scenario_fuzz import Worker, fuzz, write_files
from thesis import thesis

import btqueue as bt

QUICK, LONG, LONG_FIRST = 40, 5000, 100_000


def outcomes_of(numbers, folder, processes=1):
    """Put these seeds to both engines; return how often each outcome came, and the faults by seed."""
    outcomes, faults, damaged = Counter[str](), {}, 0
    for fuzzed, found in fuzz(numbers, write_files(folder), processes):
        outcomes.update(f"{part}: {found[part].partition(':')[0]}" for part in found if part != "faults")
        damaged += bool(fuzzed.damaged)
        if found["faults"]:
            faults[fuzzed.number] = found["faults"]
    return outcomes | Counter(damaged=damaged), faults


def test_random_scenarios_are_answered_or_refused(tmp_path):
    outcomes, faults = outcomes_of(range(QUICK), tmp_path)
    assert faults == {}
    assert outcomes["solve: answered"] > QUICK / 6, "as many as that are in the reach of a model"
    assert outcomes["simulate: answered"] > QUICK / 2
    assert outcomes["read: refused"] > QUICK / 30


@pytest.mark.long
def test_five_thousand_random_scenarios_are_answered_or_refused(tmp_path):
    processes = max(1, (os.cpu_count() or 1) // 2)
    outcomes, faults = outcomes_of(range(LONG_FIRST, LONG_FIRST + LONG), tmp_path, processes)
    print(dict(outcomes))
    assert faults == {}
    assert outcomes["solve: answered"] > LONG / 6
    assert outcomes["simulate: answered"] > LONG / 2
    assert outcomes["read: refused"] > LONG / 30


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not count memory mappings")
def test_many_solves_in_one_process_take_no_more_and_more_memory(tmp_path):
    """After 1,000 solves programs and buffers are warm: the last 1,000 of 3,000 need what the second did.

    A leak of one program a solve would be 20,000 mappings and more (of 65,530) from the one to the other.
    """
    command = [sys.executable, str(scenario_fuzz.HERE.with_name("many_solves.py")), "3000"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    print(said)
    rows = np.array([json.loads(line) for line in said.splitlines()])
    assert rows[-1, 0] == 3000
    second, third = (rows[(rows[:, 0] > low) & (rows[:, 0] <= low + 1000)] for low in (1000, 2000))
    assert np.median(third[:, 1]) < 1.25 * np.median(second[:, 1]), "resident memory"
    assert np.median(third[:, 2]) < 1.25 * np.median(second[:, 2]), "memory mappings"


# --------------------------------------------------------------------------------- the fuzz itself can fail


@pytest.mark.long
def test_every_key_of_the_vocabulary_is_reached(tmp_path):
    files = write_files(tmp_path)
    seen: set[str] = set()
    for number in range(1000):
        for table, given in drawn(number, files).data.items():
            if isinstance(given, dict):
                seen |= {f"{table}.{key}" for key in given}
                entries = [(key, one) for key in given if isinstance(given[key], list) for one in given[key]]
                seen |= {f"{table}.{key}[].{k}" for key, e in entries if isinstance(e, dict) for k in e}
    assert set(keys()) - seen == set()


STRANGE = """
import os, signal, sys
sys.path.insert(0, {here!r})
import scenario_fuzz

def judge(fuzzed):
    if fuzzed.number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    while fuzzed.number == 2:
        pass
    if fuzzed.number == 3:
        signal.pause()
    return {{"read": "taken", "faults": []}}

scenario_fuzz.judge, scenario_fuzz.compile_all = judge, lambda: None
scenario_fuzz.CPU_S = 0.5
scenario_fuzz.serve()
"""


def test_a_worker_that_dies_or_hangs_is_a_fault_of_its_seed(monkeypatch, tmp_path):
    script = tmp_path / "strange.py"
    script.write_text(STRANGE.format(here=str(scenario_fuzz.HERE.parent)))
    monkeypatch.setattr(scenario_fuzz, "HERE", script)
    worker, found = Worker(), []
    for number in range(5):  # only the third waits for nothing
        monkeypatch.setattr(scenario_fuzz, "WALL_S", 1.0 if number == 3 else 600.0)
        found.append(worker.answer(Fuzzed(number, {}, "", False)))
    worker.close()
    assert [one["read"] for one in found] == ["taken", "died", "hang", "hang", "taken"]
    assert "-11" in found[1]["faults"][0] and "processor" in found[2]["faults"][0]


@pytest.fixture(scope="module")
def answers():
    scenario = thesis().with_(
        run__duration_s=30, run__warmup_s=0, run__replications=2,
        traffic__load_kbps=60,
    )  # fmt: skip
    found = {"solve": bt.solve(scenario), "simulate": bt.simulate(scenario)}
    assert all(impossible(scenario, answer) == [] for answer in found.values())
    return scenario, found


def doubled(name):
    return lambda answer: answer.assign({name: answer[name] * 2.0})


def set_to(name, value):
    # timeouts that were not seen are left out
    return lambda answer: answer.assign({name: answer.get(name, answer["goodput_kbps"]) * 0.0 + value})


@pytest.mark.parametrize("engine", ["solve", "simulate"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_to("goodput_kbps", np.nan), "goodput_kbps is no number"),
        (set_to("goodput_kbps", np.inf), "goodput_kbps is infinite"),
        (set_to("rtt_s", -1.0), "rtt_s is negative"),
        (set_to("segment_loss", 1.1), "segment_loss is above 1"),
        (set_to("slot_utilisation", 1.1), "slot_utilisation is above 1"),
        (set_to("fairness", 0.0), "fairness is 0"),
        (set_to("fairness", 0.4), "fairness is below 1 / flows"),
        (set_to("goodput_kbps", 120.0), "gets more than is offered"),
        (set_to("throughput_kbps", 1.0), "goodput is above throughput"),
        (set_to("goodput_kbps", 600.0), "carries more than its slots hold"),
        (set_to("window_segments", 100.0), "above the receive window"),
        (set_to("timeouts_per_s", 3.0), "timeouts come faster"),
        (set_to("rtt_s", 1e-6), "round trip over the air is shorter"),
    ],
)
def test_an_impossible_number_is_found(answers, engine, change, words):
    scenario, found = answers
    assert any(words in fault for fault in impossible(scenario, change(found[engine])))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (doubled("rtt_p50_s"), "quantile is below the one before"),
        (set_to("rtt_min_s", 1.0), "rtt_min_s is above rtt_s"),
        (set_to("rtt_max_s", 0.02), "rtt_s is above rtt_max_s"),
        (doubled("rtt_max_s"), None),
        (set_to("rtt_max_s", 31.0), "longer than the run"),
        (set_to("cwnd_segments", 0.5), "cwnd_segments is below 1"),
        (set_to("rtt_sd_s", 20.0), "above half of the range"),
        (set_to("rtt_p95_s", np.nan), "is known where"),
        (set_to("fast_retransmits_per_s", 99.0), "more recoveries"),
        (set_to("retransmissions_per_s", 1e5), "sent again than are sent"),
        (set_to("polls_per_s", 800.0), "more visits than pairs of slots"),
    ],
)
def test_an_impossible_number_of_the_simulator_is_found(answers, change, words):
    scenario, found = answers
    faults = impossible(scenario, change(found["simulate"]))
    assert any(words in fault for fault in faults) if words else faults == []
