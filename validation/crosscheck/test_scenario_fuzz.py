"""Random scenarios over the whole vocabulary: no strange end, no hang, no impossible number."""

import os
from collections import Counter
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
import scenario_fuzz
from any_scenario import Fuzzed, drawn, keys
from impossible_metrics import impossible
from scenario_fuzz import Worker, fuzz, write_files
from thesis import thesis

import btqueue as bt

PROCESSES = max(1, (os.cpu_count() or 1) // 2)


@pytest.mark.parametrize(
    ("first", "number", "processes"),
    [(0, 40, 1), pytest.param(100_000, 5000, PROCESSES, marks=pytest.mark.long, id="five_thousand")],
)
def test_random_scenarios_are_answered_or_refused(tmp_path, first, number, processes):
    outcomes, faults = Counter[str](), {}
    for fuzzed, found in fuzz(range(first, first + number), write_files(tmp_path), processes):
        outcomes.update(f"{part}: {found[part].partition(':')[0]}" for part in found if part != "faults")
        outcomes.update(["damaged"] * bool(fuzzed.damaged))
        if found["faults"]:
            faults[fuzzed.number] = found["faults"]
    print(dict(outcomes))
    assert faults == {}
    assert outcomes["solve: answered"] > number / 6, "as many as that are in the reach of a model"
    assert outcomes["simulate: answered"] > number / 2
    assert outcomes["read: refused"] > number / 30


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not count memory mappings")
def test_many_solves_in_one_process_take_no_more_and_more_memory(tmp_path):
    """After 1,000 solves programs and buffers are warm: the last 1,000 of 3,000 need what the second did.

    A leak of one program a solve would be 20,000 mappings and more (of 65,530) from the one to the other.
    """
    worker, files, held = Worker(), write_files(tmp_path), []
    drawings = (drawn(number, files) for number in count())
    right = (one._replace(engines=("solve",)) for one in drawings if not one.damaged and not one.extreme)
    while len(held) < 3000:
        if worker.answer(next(right)).get("solve") != "answered":
            continue
        assert worker.process is not None
        process = Path(f"/proc/{worker.process.pid}")
        pages = int((process / "statm").read_text().split()[1])
        held.append((process.name, pages, (process / "maps").read_text().count("\n")))
    worker.close()
    assert len({process for process, _, _ in held}) == 1
    second, third = (np.median([one[1:] for one in held[low : low + 1000]], axis=0) for low in (1000, 2000))
    print(second, third)
    assert (third < 1.25 * second).all(), "resident memory and memory mappings"


# --------------------------------------------------------------------------------- the fuzz itself can fail


@pytest.mark.long
def test_every_key_of_the_vocabulary_is_reached(tmp_path):
    """The rarest keys are in one of some 700 scenarios."""
    files, missing = write_files(tmp_path), set(keys())
    for number in range(5000):
        for table, given in drawn(number, files).data.items():
            if isinstance(given, dict):
                missing -= {f"{table}.{key}" for key in given}
                entries = [(key, one) for key in given if isinstance(given[key], list) for one in given[key]]
                missing -= {f"{table}.{key}[].{k}" for key, e in entries if isinstance(e, dict) for k in e}
        if not missing:
            break
    assert missing == set()


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
scenario_fuzz.serve()
"""


def test_a_worker_that_dies_or_hangs_is_a_fault_of_its_seed(monkeypatch, tmp_path):
    script = tmp_path / "strange.py"
    script.write_text(STRANGE.format(here=str(scenario_fuzz.HERE.parent)))
    monkeypatch.setattr(scenario_fuzz, "HERE", script)
    worker, found = Worker(cpu_s=0.5), []
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


def set_to(name, value):
    # timeouts that were not seen are left out
    return lambda answer: answer.assign({name: answer.get(name, answer["goodput_kbps"]) * 0.0 + value})


IMPOSSIBLE = {
    "goodput_kbps is no number": set_to("goodput_kbps", np.nan),
    "goodput_kbps is infinite": set_to("goodput_kbps", np.inf),
    "rtt_s is negative": set_to("rtt_s", -1.0),
    "segment_loss is above 1": set_to("segment_loss", 1.1),
    "slot_utilisation is above 1": set_to("slot_utilisation", 1.1),
    "fairness is 0": set_to("fairness", 0.0),
    "fairness is below 1 / flows": set_to("fairness", 0.4),
    "gets more than is offered": set_to("goodput_kbps", 120.0),
    "goodput is above throughput": set_to("throughput_kbps", 1.0),
    "carries more than its slots hold": set_to("goodput_kbps", 600.0),
    "above the receive window": set_to("window_segments", 100.0),
    "timeouts come faster": set_to("timeouts_per_s", 3.0),
    "round trip over the air is shorter": set_to("rtt_s", 1e-6),
}
SIMULATED = {
    "quantile is below the one before": lambda answer: answer.assign(rtt_p50_s=answer["rtt_p50_s"] * 2.0),
    "rtt_min_s is above rtt_s": set_to("rtt_min_s", 1.0),
    "rtt_s is above rtt_max_s": set_to("rtt_max_s", 0.02),
    "longer than the run": set_to("rtt_max_s", 31.0),
    "cwnd_segments is below 1": set_to("cwnd_segments", 0.5),
    "above half of the range": set_to("rtt_sd_s", 20.0),
    "is known where": set_to("rtt_p95_s", np.nan),
    "more recoveries": set_to("fast_retransmits_per_s", 99.0),
    "sent again than are sent": set_to("retransmissions_per_s", 1e5),
    "more visits than pairs of slots": set_to("polls_per_s", 800.0),
}


@pytest.mark.parametrize(
    ("engine", "words"), [*product(("solve", "simulate"), IMPOSSIBLE), *product(("simulate",), SIMULATED)]
)
def test_an_impossible_number_is_found(answers, engine, words):
    scenario, found = answers
    change = (IMPOSSIBLE | SIMULATED)[words]
    assert any(words in fault for fault in impossible(scenario, change(found[engine])))
